"""Which printed value is the time: units, words that speak of a kernel's own time, and several times added to one.

Rates count where no time is printed. Verdicts and results are `kernelwright.init.meaning`'s to find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelwright.init.prints import NUMBER, Line, Value
from kernelwright.task import SECONDS_PER_UNIT

_UNIT_NAMES = {
    "ns": "ns", "nsec": "ns", "nsecs": "ns", "nanosecond": "ns", "nanoseconds": "ns",
    "us": "us", "usec": "us", "usecs": "us", "µs": "us", "μs": "us", "microsecond": "us", "microseconds": "us",
    "ms": "ms", "msec": "ms", "msecs": "ms", "millisecond": "ms", "milliseconds": "ms", "millisec": "ms",
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
}  # fmt: skip
_UNIT = "|".join(sorted(_UNIT_NAMES, key=len, reverse=True))
_UNIT_AFTER = re.compile(
    rf"\s*[(\[]?\s*({_UNIT})(?:/(?:iter(?:ation)?|step|call|launch|run))?(?![\w/])(?!\s*[=:]\s*$)", re.I
)
_UNIT_BEFORE = re.compile(rf"[(\[,]\s*({_UNIT})\s*[)\],/]|\bin ({_UNIT})\b|_({_UNIT})\s*[:=]", re.I)
TIME = re.compile(
    r"(?<![a-z])time(?!s\b|[ -]?steps?\b|stamp)|elapsed|duration|\btiming\b|\btook\b|latency|runtime|\btakes\b|walltime",
    re.I,
)
RATE = re.compile(
    r"\s*[(\[]?\s*((?:[KMGT]i?)?(?:B|b|[bB]ytes?|flops?|flop|ops?|pairs|points|keys|elements|updates|cells|zones|particles|"
    r"moves|pixels|samples|items|options|paths|DOF|F)?"
    r"/s(?:ec(?:ond)?)?\b|[KMGT]FLOPS?\b|FLOPS\b|[MG]?LUPS\b|[KMGT]i?[bB]ytes? per sec\w*"
    r"|(?![kcm]?m/)[a-z]\w{0,14}/s(?:ec(?:ond)?)?\b)(?!\s*[)\]]?\s*[=:])",
    re.I,
)
"""What follows a rate; a word with `=` or `:` behind it is the next value's label."""
_RATE_BEFORE = re.compile(
    r"bandwidth|throughput|[GT]flop|per second|\bFOM\b|figure of merit|[KMGT]i?(?:B|F|bytes?|DOF)/s(?:ec)?\b"
    r"|(?<!error )(?<!learning )(?<!sampl)(?<!sampling )(?<!acceptance )(?<!hit )(?<!miss )(?<!success )\brate\b",
    re.I,
)
_PER_ITEM = re.compile(rf"[(\[]\s*(?:{_UNIT})\s*/\s*(?!it|step|cycle|launch|call|run|kernel|rep|pass|frame)", re.I)
COARSE_S = 0.005
"""A printed time in steps of more than this moves in jumps, where programs run for seconds at most."""
_WORTH = (
    (3.0, re.compile(r"kernel", re.I)),
    (2.0, re.compile(r"device|gpu|parallel", re.I)),
    (1.0, re.compile(r"average|avg|mean", re.I)),
    (1.0, re.compile(r"execution|compute|computation|solve|iteration", re.I)),
    (0.5, re.compile(r"total|elapsed", re.I)),
    (-4.0, re.compile(r"\bhost\b|serial|sequential|reference|\bref\b", re.I)),
    (-4.0, re.compile(r"transfer|\bto offload|copy|copies|memcpy|alloc|\bread|\bload|\binit|setup|set up|verif|generat"
                      r"|\bwrit|i/o|\bio\b|warm|\bcreat|\bbuild|\bpars", re.I)),
    (-5.0, re.compile(r"speed-?up|\bratio|error|factor|limit|minim|simulated|simulation time|timeout", re.I)),
)  # fmt: skip


@dataclass(frozen=True)
class TimeDraft:
    """A printed time, or a rate where `better` is higher."""

    pattern: str
    unit: str | None
    aggregate: str
    better: Literal["lower", "higher"]
    where: str
    score: float
    unit_known: bool = True
    per_item: bool = False
    decimals: int | None = None
    """Digits that its format prints behind the point."""

    @property
    def rank(self) -> int:
        """0 for a time, 1 for a rate, 2 for a time for each of many things or one that moves in jumps."""
        step_s = (
            10.0**-self.decimals * SECONDS_PER_UNIT.get(self.unit or "s", 1.0) if self.decimals is not None else 0.0
        )
        return 1 if self.better == "higher" else 2 if self.per_item or step_s > COARSE_S else 0


def find_times(
    lines: Sequence[Line], kernels: Sequence[str], language: str, launches: Iterable[tuple[str, str, int]] = ()
) -> list[TimeDraft]:
    """Printed times and rates, the likeliest first. `launches` are (file, function, line) where the kernels are called."""
    called = list(launches)
    best: dict[str, TimeDraft] = {}
    places: dict[str, tuple[str, str, int]] = {}
    for line in lines:
        near = [line.number - number for file, function, number in called
                if file == line.file and function == line.function and number < line.number]  # fmt: skip
        bonus = (2.0 + max(0.0, 1.0 - min(near) / 100.0)) if near else 0.0
        for at in range(len(line.pieces)):
            time = _time(line, at, kernels, language)
            if time is not None and (time.pattern not in best or best[time.pattern].score < time.score + bonus):
                best[time.pattern] = replace(time, score=time.score + bonus)
                places[time.pattern] = (line.file, line.function, line.number)
    ordered = sorted(best.values(), key=lambda time: (time.rank, -time.score))
    own = [time for time in ordered if _follows_launch(places[time.pattern], places.values(), called)]
    summed = together(own) if ordered[:1] == own[:1] else None
    return ordered if summed is None else [summed, *ordered]


def _follows_launch(
    place: tuple[str, str, int], others: Iterable[tuple[str, str, int]], called: Iterable[tuple[str, str, int]]
) -> bool:
    """Whether a kernel is launched between a printed time and the one printed before it in the same function."""
    before = max((other[2] for other in others if other[:2] == place[:2] and other[2] < place[2]), default=0)
    return any(launch[:2] == place[:2] and before < launch[2] < place[2] for launch in called)


_NEAR = 1.5
"""How much less sure than the best a time may be to be added to it."""


def together(best: Sequence[TimeDraft]) -> TimeDraft | None:
    """The sum of several kernels' own times as one pattern; None where they print the same one, or cannot be added."""
    first = max(best, key=lambda time: time.score, default=None)
    if first is None or first.better == "higher":
        return None
    fit = [time for time in best if (time.unit, time.better, time.rank) == (first.unit, first.better, first.rank)
           and time.score >= first.score - _NEAR and not re.search(r"total|overall", time.pattern, re.I)]  # fmt: skip
    apart = list({time.pattern: time for time in fit}.values())
    if len(apart) < 2:
        return None
    cut = [time.pattern.partition(NUMBER) for time in apart]
    heads, tails = (list(dict.fromkeys(one[side] for one in cut)) for side in (0, 2))
    pattern = _either(heads) + NUMBER + _either(tails)
    where = ", ".join(dict.fromkeys(time.where for time in apart))
    return replace(apart[0], pattern=pattern, aggregate="sum", where=where)


def _either(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _time(line: Line, at: int, kernels: Sequence[str], language: str) -> TimeDraft | None:
    """The value at `at` as a time or a rate, or None where the words around it speak of neither."""
    value = line.pieces[at]
    if not isinstance(value, Value) or value.kind == "text" or not re.search("[A-Za-z]", line.around(at)):
        return None
    before, after = line.before(at), line.after(at)
    words = _words(line, at)
    unit_after = _UNIT_AFTER.match(after)
    if RATE.match(after) or (_RATE_BEFORE.search(before) and not unit_after):
        score = _worth(line, words, kernels, language)
        aggregate = "mean" if line.looped else "last"
        rate = TimeDraft(line.pattern(at), None, aggregate, "higher", line.where, score)
        return rate if value.kind != "integer" else None
    unit_before = _UNIT_BEFORE.search(_own(line, at)) or (_UNIT_BEFORE.search(after) if not before.strip() else None)
    unit = next((name for found in (unit_after, unit_before) if found for name in found.groups() if name), None)
    within = unit_after is not None and bool(re.search(r"\bin\s*$", before))
    named = bool(TIME.search(words)) or within or bool(TIME.search(after) and not before.strip())
    mean = words if re.search(r"\b(?:avg|average|mean)\s*[=:]\s*$", before) else ""
    sure = unit is not None and (len(unit) > 1 or bool(re.match(r"\s*[(\[]", after)))
    if not sure and (not named or (unit is None and (value.kind == "integer" or not TIME.search(before + mean)))):
        return None
    score = 2.0 * named + 2.0 * (unit is not None) + _worth(line, words + after, kernels, language)
    unit_name = _UNIT_NAMES[unit.lower()] if unit else _unit_of(value.expression)
    return TimeDraft(line.pattern(at), unit_name, "sum", "lower", line.where, score, unit is not None,
                     bool(_PER_ITEM.search(before)), value.decimals)  # fmt: skip


def _own(line: Line, at: int) -> str:
    """What stands before a value, without the unit of the value before it."""
    before = line.before(at)
    return re.sub(rf"^\s*[(\[]?\s*(?:{_UNIT})?\s*[)\]]?(?![\w/])", "", before, flags=re.I) if at > 1 else before


def _words(line: Line, at: int) -> str:
    """What the line says of one value: its own label, where it has one, else all that stands before it."""
    own = _own(line, at)
    if at > 1 and (TIME.search(own) or any(worth < 0 and pattern.search(own) for worth, pattern in _WORTH)):
        return own
    return " ".join(piece for piece in line.pieces[: at + 1] if isinstance(piece, str))


def _unit_of(expression: str) -> str:
    """A guess where no unit is printed: names in the expression, else seconds."""
    found = re.search(r"(?:_|\b)(ns|us|ms)\b|(?<=[a-z])(Ms|Us|Ns)\b|\b(milli|micro|nano)", expression)
    if found is None:
        return "s"
    name: str = next(filter(None, found.groups())).lower()
    return {"milli": "ms", "micro": "us", "nano": "ns"}.get(name, name)


def _worth(line: Line, words: str, kernels: Sequence[str], language: str) -> float:
    score = sum(worth for worth, pattern in _WORTH if _speaks(pattern, words, kernels if worth < 0 else ()))
    score += 3.0 * any(re.search(rf"(?<!\w){re.escape(kernel)}(?!\w)", line.literal) for kernel in kernels)
    if language != "cpp" and re.search(r"\bcpu\b", words, re.I):
        score -= 4.0
    return score - 6.0 * (line.guard is not None)


def _speaks(pattern: re.Pattern[str], words: str, kernels: Sequence[str]) -> bool:
    """Whether `words` hold what `pattern` means, unless a kernel is named after just that: a copy's time is its own."""
    said = (found.group().lower().replace("reference", "ref") for found in pattern.finditer(words))
    return any(not any(word in kernel.lower() for kernel in kernels) for word in said)
