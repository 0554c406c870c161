"""Versions of the original that compute the same, and how far their numbers lie apart: what `rel = "measured"` allows.

The original is run again, since atomics and threads add up in an order of their own; with other numbers of threads, where it
was compiled for OpenMP; and from builds whose arguments let the compiler re-associate, contract or divide by reciprocals,
as an honest rewrite may. They are the original's own code, built by the user's own build. A version that does not build,
crashes, or is not right by the task's other checks is left out. What follows from the numbers is `tolerance`'s work.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelwright.checks import RunResult, Unreadable, evaluate, goal_of, numbers_of
from kernelwright.errors import CandidateError
from kernelwright.execute import BuildFailure, Built, Workshop, failure_of
from kernelwright.task import Check, FileCheck, NumberCheck, RowCheck, Run, Scale, Task
from kernelwright.tolerance import Numbers, Precision, Variation, beyond, variation_of
from kernelwright.trace import Candidate

_ANY_ORDER = ("-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math")
_UNROLLED = ("-funroll-loops", "-fvariable-expansion-in-unroller", "--param=max-variable-expansions-in-unroller=6")
"""Unrolled with sums of their own (GCC; Clang, which does that by itself, warns of them)."""
BUILDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "cpp": (
        ("-O3", "-march=native", *_ANY_ORDER),
        ("-O2", "-march=native", "-ffp-contract=fast", "--param=avoid-fma-max-bits=0"),  # GCC avoids chains of FMA
        ("-O3", *_ANY_ORDER),
        ("-O2", "-march=native", "-fno-tree-vectorize", *_UNROLLED, *_ANY_ORDER),
        ("-ffp-contract=off",),
    ),
    # nvcc never re-associates; division and square root by approximations are off by one or two units in the last place
    # (CUDA C++ Programming Guide, "Mathematical Functions"), which is what rounding somewhere else does.
    "cuda": (("-fmad=false",), ("-prec-div=false", "-prec-sqrt=false")),
    "hip": (("-ffp-contract=off",), _ANY_ORDER),
}
"""Compile arguments of further versions, the most telling first."""
BUILDING_S = 120.0
"""No further version is built after this long; two are built in any case."""
SAME, OTHER = 1, 4
"""Further runs of a program whose second run gave the same numbers as its first, and of one whose did not."""


@dataclass
class OwnVariation:
    """Measures the original's variation in one run after another; the versions are built once."""

    _builds: list[Built] | None = None
    _of_run: dict[str, dict[int, Variation]] = field(default_factory=dict)

    def of_another(self) -> OwnVariation:
        """What was measured, for another workshop of the same program; it has no builds of its own yet."""
        return OwnVariation(_of_run=dict(self._of_run))

    def known(self, run: Run) -> Mapping[int, Variation]:
        """By the check's place in the task, what was measured in this run so far."""
        return self._of_run.get(run.name, {})

    async def measure(
        self, shop: Workshop, built: Built, run: Run, results: Sequence[RunResult], references: Mapping[str, RunResult]
    ) -> Mapping[int, Variation]:
        """The variation of every check that compares numbers. `results` are runs of `built` in `run`, the first that which
        candidates are compared with."""
        if run.name not in self._of_run:
            versions = [*results[1:], *[result async for result in self._versions(shop, built, run, results)]]
            sound = [each for each in versions if _is_sound(shop.task, run, each, references)]
            self._of_run[run.name] = dict(_variations(shop, run, results[0], sound, references))
        return self.known(run)

    async def _versions(
        self, shop: Workshop, built: Built, run: Run, results: Sequence[RunResult]
    ) -> AsyncIterator[RunResult]:
        for _ in range(SAME if _equal(shop.task, run, results) else OTHER):
            yield await shop.run(built, run)
        for count in _other_threads(built, run):
            yield await shop.run(built, run.model_copy(update={"env": {**run.env, "OMP_NUM_THREADS": str(count)}}))
        if self._builds is None:
            self._builds = await _other_builds(shop, built)
        for other in self._builds:
            yield await shop.run(other, run)


async def _other_builds(shop: Workshop, built: Built) -> list[Built]:
    """The versions that build, and that are other programs than those before them."""
    found, start = [built], time.monotonic()
    for number, arguments in enumerate(BUILDS[shop.task.language]):
        if number >= 2 and time.monotonic() - start > BUILDING_S:
            break
        try:
            other = await shop.build(Candidate({}, arguments), f"version-{number}")
        except CandidateError:  # arguments have no place in this build
            break
        if not isinstance(other, BuildFailure) and other.artifact not in {each.artifact for each in found}:
            found.append(other)
    return found[1:]


def _other_threads(built: Built, run: Run) -> list[int]:
    """Numbers of threads near that of the run, where the program was compiled for OpenMP."""
    if not any("openmp" in word for command in built.commands for word in command.argv):
        return []
    given = run.env.get("OMP_NUM_THREADS", "").split(",")[0]
    count = int(given) if given.isdecimal() else os.cpu_count() or 1
    return [other for other in (count + 1, count - 1, count + 2) if other > 0][:2]


def _equal(task: Task, run: Run, results: Sequence[RunResult]) -> bool:
    read = [[_values(check, run, result) for check in task.check] for result in results]
    return all(each == read[0] for each in read[1:])


def _values(check: Check, run: Run, result: RunResult) -> Sequence[float] | None:
    try:
        numbers = numbers_of(check, run, result)
    except Unreadable:
        return None
    return numbers.values if numbers is not None else None


def _is_sound(task: Task, run: Run, result: RunResult, references: Mapping[str, RunResult]) -> bool:
    if failure_of(result, run.timeout_s):
        return False
    return all(check.passed is not False for check in evaluate(task, run, result, None, references))


def _variations(
    shop: Workshop, run: Run, first: RunResult, versions: Sequence[RunResult], references: Mapping[str, RunResult]
) -> Iterator[tuple[int, Variation]]:
    for at, check in enumerate(shop.task.check):
        wanted = _goal(check, run, first, references)
        if wanted is None:
            continue
        # A row is compared with another run's, from which the original itself may be apart.
        every = (first, *versions) if isinstance(check, RowCheck) else versions
        numbers = (values for result in every if (values := _values(check, run, result)) is not None)
        yield at, variation_of(wanted, numbers, precision_of(check, shop), _scale(check))


def _goal(check: Check, run: Run, first: RunResult, references: Mapping[str, RunResult]) -> Numbers | None:
    try:
        return goal_of(check, run, first, references)
    except Unreadable:
        return None


def _scale(check: Check) -> Scale:
    return check.scale if isinstance(check, NumberCheck | FileCheck | RowCheck) else "value"


def precision_of(check: Check, shop: Workshop) -> Precision:
    """What the numbers of a check are computed in: single where the file holds singles, or where the regions speak of
    `float` and never of `double`."""
    if isinstance(check, FileCheck) and check.dtype in ("float32", "float64"):
        return "single" if check.dtype == "float32" else "double"
    text = "\n".join(span.text for span in shop.spans.values())
    single = re.search(r"\bfloat[234]?\b", text) and not re.search(r"\bdouble[234]?\b", text)
    return "single" if single else "double"


def beyond_variation(
    shop: Workshop,
    run: Run,
    result: RunResult,
    first: RunResult,
    references: Mapping[str, RunResult],
    measured: Mapping[int, Variation] | None = None,
) -> str | None:
    """In a sentence, where a candidate's numbers in `run` lie far beyond what the original's differ by. Without anything
    `measured`, beyond what is allowed where the original does not vary at all: None then says that nothing need be."""
    for at, check in enumerate(shop.task.check):
        wanted, values = _goal(check, run, first, references), _values(check, run, result)
        if wanted is None or values is None:
            continue
        precision = precision_of(check, shop)
        own = measured[at] if measured is not None else variation_of(wanted, (), precision, _scale(check))
        if said := beyond(values, wanted.values, own, precision):
            return f"its numbers of the check {check.kind} {said}: lower precision?"
    return None
