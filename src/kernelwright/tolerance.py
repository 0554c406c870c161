"""What a right candidate's numbers may differ by, from what the original's own numbers differ by: pure arithmetic.

Any order of a sum is right, and so is a product that is rounded once instead of twice. How far such versions lie apart
depends on the number of terms and on what cancels (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.: section
3.1, |error| <= nu/(1 - nu) times the sum of magnitudes for any order; section 4.2, and 4.5 for why sqrt(n)u is typical), so
no number fits all programs. It is observed instead: the original is run several times, and built in ways that only
re-associate or contract (`variation`). From each component's largest deviation follows what is allowed there:

    allowed = factor x max(own deviation, typical deviation) + floor + the last printed digit

- *factor*: a further honest version is one more draw from the same distribution. With d versions that differed, its bound at
  0.1 % is Student's t with d degrees of freedom times their size; at least 10, since errors are not normal and a rewrite
  sums in blocks of another size; at most 100, since with one version alone the bound would say nothing.
- *typical*: a component may be unmoved by chance where few versions differ, so the median over all components, relative to
  their magnitudes, holds for each. Where `scale` is "largest", magnitudes and deviations are those of the whole (normwise,
  as backward-error bounds of reductions and solvers are), and the root mean square is typical.
- *floor*: sqrt(u u'), u being the unit roundoff of the precision computed in and u' that of the next lower one: 2.6e-12 for
  double, 5.4e-6 for single. So a baseline that never varies still allows another order, and lies on a logarithmic scale as
  far from its own precision's roundings as from the lower one's. Where no version differed, nothing tells which components
  are what is left of larger terms, and the floor of a small one is that of the median magnitude.

Counts (printed without a point) have neither floor nor typical deviation: they differ only if the original's differ.
"""

from __future__ import annotations

import array
import hashlib
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelwright.task import Aggregate, Scale

Precision = Literal["single", "double"]

ROUNDOFF: dict[Precision, float] = {"single": 2.0**-24, "double": 2.0**-53}
LOWER: dict[Precision, float] = {"single": 2.0**-11, "double": 2.0**-24}
"""Unit roundoff of the next lower precision: half and TF32 below single."""
STUDENT = {1: 637.0, 2: 31.6, 3: 12.9}
"""Two-sided 0.1 % points of Student's t by degrees of freedom."""
LEAST_FACTOR, MOST_FACTOR = 10.0, 100.0
MEASURABLE = 0.1
"""A typical relative tolerance above this tells right from wrong no more."""
_TOKEN = re.compile(r"[-+]?\d*(?P<point>\.?)(?P<fraction>\d*)(?:[eE](?P<exponent>[-+]?\d+))?")


@dataclass(frozen=True)
class Numbers:
    """What one check reads of one run."""

    values: Sequence[float]
    printed: Sequence[str] | None = None
    """As they stand in the text, before `aggregate`; None in binary files."""
    aggregate: Aggregate | None = None

    def last_digits(self) -> Sequence[float]:
        """For each value what one unit of its last printed digit is; 0 where no digit is missing."""
        if self.printed is None:
            return array.array("d", bytes(8 * len(self.values)))
        units = array.array("d", map(last_digit, self.printed))
        if self.aggregate is None:
            return units
        return array.array("d", [math.fsum(units) if self.aggregate == "sum" else max(units)])

    def counts(self) -> bytearray:
        """For each value whether it was printed as a whole number."""
        if self.printed is None:
            return bytearray(len(self.values))
        whole = bytearray(map(is_count, self.printed))
        return bytearray([all(whole)]) if self.aggregate is not None else whole


def last_digit(token: str) -> float:
    """One unit of the last digit of a printed number, as in 0.01 for `-1.25` and 10 for `1.2e2`."""
    found = _TOKEN.fullmatch(token.replace(",", ""))
    return float(f"1e{int(found['exponent'] or 0) - len(found['fraction'])}") if found else 0.0


def is_count(token: str) -> bool:
    found = _TOKEN.fullmatch(token.replace(",", ""))
    return found is None or not (found["point"] or found["exponent"])


@dataclass(frozen=True)
class Variation:
    """How far the numbers of one check lie apart in versions of the original, per component and absolute."""

    own: Sequence[float]
    allowed: Sequence[float]
    """What a right candidate may differ by."""
    versions: int
    """How many versions had numbers of their own."""
    relative: float
    """The median of `allowed` relative to the magnitudes that it is scaled by; 0 where all components are counts."""

    @property
    def tells(self) -> bool:
        """Whether what is allowed is small enough to tell a right number from a wrong one."""
        return self.relative <= MEASURABLE

    def __str__(self) -> str:
        seen = f"typically rel {self.relative:.1g}, from {self.versions} other versions"
        return f"what the original's own variation allows ({seen})"


def exact(count: int) -> Variation:
    """What allows nothing: where nothing was measured only equal numbers are right."""
    nothing = array.array("d", bytes(8 * count))
    return Variation(nothing, nothing, 0, 0.0)


def variation_of(
    wanted: Numbers, versions: Iterable[Sequence[float]], precision: Precision, scale: Scale = "value"
) -> Variation:
    """From the numbers that candidates are compared with, and those of other versions of the original. A version with
    another number of numbers, or one that is infinite or NaN where the original's is not, says nothing and is left out."""
    values, digits, counts = wanted.values, wanted.last_digits(), wanted.counts()
    deviations, different = _largest(values, versions)
    magnitudes = array.array("d", (abs(value) if math.isfinite(value) else 0.0 for value in values))
    inexact = [at for at in range(len(values)) if not counts[at]]
    if scale == "largest":
        magnitudes = array.array("d", [max(magnitudes, default=0.0)]) * len(values)
    elif not different and inexact:
        usual = statistics.median(magnitudes[at] for at in inexact)
        magnitudes = array.array("d", (max(each, usual) for each in magnitudes))
    # One unit of the last printed digit is what any deviation below it looks like: it is allowed for, not multiplied.
    seen = array.array("d", (0.0 if d <= 1.5 * unit else d for d, unit in zip(deviations, digits, strict=True)))
    typical = _typical(seen, magnitudes, inexact, scale)
    factor = factor_of(different)
    floor = math.sqrt(ROUNDOFF[precision] * LOWER[precision])
    own, allowed = array.array("d"), array.array("d")
    for at, deviation in enumerate(deviations):
        if counts[at]:
            own.append(deviation)
            allowed.append(factor * deviation)
        else:
            mine = max(seen[at], typical * magnitudes[at])
            own.append(max(deviation, mine))
            allowed.append(factor * mine + floor * magnitudes[at] + digits[at] * (2 if deviation else 1))
    relative = [allowed[at] / magnitudes[at] for at in inexact if magnitudes[at]]
    return Variation(own, allowed, different, statistics.median(relative) if relative else 0.0)


def _largest(values: Sequence[float], versions: Iterable[Sequence[float]]) -> tuple[array.array[float], int]:
    """Each component's largest deviation, and how many different versions deviated."""
    largest = array.array("d", bytes(8 * len(values)))
    seen = {_digest(values)}
    for version in versions:
        if len(version) != len(values) or (digest := _digest(version)) in seen:
            continue
        if any(map(_incomparable, values, version)):
            continue
        seen.add(digest)
        for at, (value, other) in enumerate(zip(values, version, strict=True)):
            if value != other and (deviation := abs(value - other)) > largest[at]:
                largest[at] = deviation
    return largest, len(seen) - 1


def _digest(values: Sequence[float]) -> bytes:
    return hashlib.sha256(array.array("d", values).tobytes()).digest()


def _incomparable(value: float, other: float) -> bool:
    return (
        not (math.isfinite(value) and math.isfinite(other))
        and value != other
        and not (value != value != other != other)
    )


def _typical(seen: Sequence[float], magnitudes: Sequence[float], inexact: Sequence[int], scale: Scale) -> float:
    """The typical deviation relative to the magnitudes."""
    relative = [seen[at] / magnitudes[at] for at in inexact if magnitudes[at]]
    if not relative:
        return 0.0
    if scale == "largest":
        return math.sqrt(math.fsum(r * r for r in relative) / len(relative))
    return statistics.median(relative)


def factor_of(versions: int) -> float:
    """What the deviation of so many different versions is multiplied by."""
    return min(max(STUDENT.get(versions, 0.0), LEAST_FACTOR), MOST_FACTOR)


def beyond(values: Sequence[float], wanted: Sequence[float], own: Variation, precision: Precision) -> str | None:
    """In words, how far a candidate's numbers lie beyond what the original's differ by; None unless that holds for at
    least half of them: what is computed in a lower precision differs all over."""
    if len(values) != len(wanted):
        return None
    apart = [
        (abs(value - goal), at)
        for at, (value, goal) in enumerate(zip(values, wanted, strict=True))
        if value != goal and abs(value - goal) > own.allowed[at]
    ]
    if 2 * len(apart) < max(1, len(values)):
        return None
    least = ROUNDOFF[precision]
    times = statistics.median(d / max(own.own[at], least * abs(wanted[at]), 5e-324) for d, at in apart)
    relative = [d / abs(wanted[at]) for d, at in apart if wanted[at]]
    size = f"rel {statistics.median(relative):.1g}" if relative else f"{statistics.median(d for d, _ in apart):.1g}"
    return f"differ from the original's by {size}, {times:,.0f} times what its own runs and builds differ by"
