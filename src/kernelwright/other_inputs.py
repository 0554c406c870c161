"""Other inputs for a task whose author gave none: its shown run with another number or another seed.

A candidate that is right, or fast, for the one input that it was shown proves little. So numbers in the command are
changed one at a time (a size becomes odd, a repeat count grows), and a library before the C library gives `srand` another
seed. What the original cannot do is no input: each is kept only where the original passes its own checks twice, the
second time with its heap overwritten, and takes about as long as in the shown run. Nobody can say what a number means,
so this finds what a person would have written, or nothing; held-out runs of the author's are always the better evidence.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kernelwright.checks import RunResult, evaluate
from kernelwright.errors import InfrastructureError, TaskError
from kernelwright.execute import Workshop
from kernelwright.sandbox import Bind
from kernelwright.state import native
from kernelwright.task import FileCheck, NumberCheck, RowCheck, Run
from kernelwright.trial import Baseline, Progress, open_baseline, require_repeatable, require_sound

NUMBERS_KEPT = 2
"""How many changed numbers are tried of candidates; each costs every candidate a run."""
SEARCH_S, SEARCH_RUNS = 10.0, 12.0
"""The search ends after this many seconds or the time of this many shown runs, whichever is later."""
SLOWER, SLOWER_S = 2.0, 1.0
"""An input that takes longer than this multiple of the shown run's time, and so many seconds, is not kept."""
NUMBER = re.compile(r"(?P<head>(?:--?[A-Za-z][\w-]*=|-[A-Za-z])?)(?P<number>\d{1,9})")
NOTHING_FOUND = "no held-out run is given, and no other input could be made from the shown one"
SEED_INSIDE = "/kw/seed.so"
OTHER_HEAP = {"MALLOC_PERTURB_": "165"}
"""The C library fills what malloc hands out and takes back: an original that reads it gives itself away."""


async def open_judged(shop: Workshop, progress: Progress) -> Baseline:
    """The baseline that verdicts are made against: shown runs, held-out runs, and where there are none, other inputs.

    Raises TaskError where the unmodified program is not sound in a run that its author gave.
    """
    task = shop.task
    baseline = await open_baseline(shop, (*task.shown, *task.held_out), progress)
    if task.held_out or not task.verify.other_inputs:
        return baseline
    found = await _find(baseline, progress)
    named = "; ".join(repr(run.name) for run in found)
    shop.notes.append(f"no held-out run is given; tried in its place: {named}" if found else NOTHING_FOUND)
    return replace(baseline, others=tuple(found))


def with_other_numbers(run: Run) -> Iterator[tuple[str, Run]]:
    """Runs with one number of the command changed, with the word that it changes, likeliest first for each word."""
    words = shlex.split(run.command)
    for at, word in enumerate(words[1:], 1):
        if (found := NUMBER.fullmatch(word)) is None:
            continue
        for number in _others(int(found["number"])):
            other = f"{found['head']}{number}"
            command = shlex.join([*words[:at], other, *words[at + 1 :]])
            yield word, run.model_copy(update={"name": f"{run.name}, {word} → {other}", "command": command})


def _others(number: int) -> list[int]:
    """An odd neighbour first; then what programs take that want multiples of a tile, or powers of two."""
    near = [number + 1]
    if number >= 16:
        near += [number + (64 if number >= 64 else 8), number // 2]
    return near


def with_other_seed(run: Run, library: str) -> Run:
    env = {**run.env, "LD_PRELOAD": library}
    return run.model_copy(update={"name": f"{run.name}, another seed", "env": env})


async def _find(baseline: Baseline, progress: Progress) -> list[Run]:
    """Those that the original passes: of each word's numbers the first, and a seed where it changes what is compared."""
    shown = baseline.task.shown[0]
    wall_s = baseline.results[shown.name].job.wall_s
    until = time.monotonic() + max(SEARCH_S, SEARCH_RUNS * wall_s)
    found: list[Run] = []
    done: set[str] = set()
    if (library := _seed_library(baseline.shop)) and await _passes(baseline, with_other_seed(shown, library), progress):
        found.append(with_other_seed(shown, library))
    for word, run in with_other_numbers(shown):
        if len(done) == NUMBERS_KEPT or time.monotonic() > until:
            break
        if word not in done and await _passes(baseline, run, progress):
            done.add(word)
            found.append(run)
    return found


async def _passes(baseline: Baseline, run: Run, progress: Progress) -> bool:
    """Whether the original is sound in `run`, then among the baseline's results, and the input is another one."""
    shown = baseline.results[baseline.task.shown[0].name]
    progress(f"looking for another input: {run.name}")
    try:
        first = await baseline.shop.run(baseline.built, run)
        if first.job.wall_s > SLOWER * shown.job.wall_s + SLOWER_S or not _differs(baseline, run, first):
            return False
        require_sound(baseline, run, first, None)
        again = await baseline.shop.run(baseline.built, run.model_copy(update={"env": {**OTHER_HEAP, **run.env}}))
        await require_repeatable(baseline, run, first, again, progress)
    except TaskError:
        return False
    baseline.results[run.name] = first
    return True


def _differs(baseline: Baseline, run: Run, result: RunResult) -> bool:
    """Whether a run with another seed computes something else. One with another number may take other steps to the same
    end; and where no check compares, nobody can tell."""
    task = baseline.task
    if "LD_PRELOAD" not in run.env:
        return True
    checks = evaluate(task, run, result, baseline.results[task.shown[0].name], baseline.references)
    compared = any(isinstance(check, FileCheck | NumberCheck | RowCheck) for check in task.check)
    return compared and any(check.passed is False for check in checks)


def _seed_library(shop: Workshop) -> str | None:
    """Where runs see the library that changes seeds; None where it cannot be made."""
    try:
        library = native(
            Path(__file__).with_name("seed.c"), ("cc", "gcc", "clang"), ("-shared", "-fPIC", "-ldl"), ".so"
        )
    except InfrastructureError:
        return None
    shop.beside.append(Bind(library, SEED_INSIDE))
    return shop.sandbox.inside(library, SEED_INSIDE)
