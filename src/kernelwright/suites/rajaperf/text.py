"""The task file of one kernel: what is built, run, read and compared, with the guards that this suite needs.

An unknown kernel ends with exit code 0, a variant that is not compiled in prints DONE, and repetitions may become 0, with
a time of 0 and equal checksums. So the time is that of one row and column, divided by a number of repetitions that must be
1 at least and what the original did, and each run's checksum is held against the sequential variant's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.init.render import quoted
from kernelwright.suites.rajaperf.facts import Facts
from kernelwright.suites.rajaperf.kernels import BASE, REFERENCE, Part
from kernelwright.suites.rajaperf.tree import PROGRAM

SMALLER = "0.37"
"""The held-out runs' size relative to the shown one's: sizes that no block or tile divides, and less for the reference."""
REL = 1e-9
"""How far a checksum may lie from the sequential one's. It is a weighted sum of all results, added up in higher precision:
built to re-associate and contract, the suite's own OpenMP variants lie within 6e-14 of it, and FIR, whose sum cancels to a
millionth of its terms, within 1.2e-11. What a lower precision does is asked apart (`variation`)."""
PASSES = 3
"""How often a run on a device measures, its repetitions together taking a millisecond; the sequential reference makes as
many passes, since checksums add up, so it is one where that would take long."""
_CHEAP_OPERATIONS = 1e10
_OUT = "out"
_PREFIX = f"{_OUT}/RAJAPerf"


@dataclass(frozen=True)
class Draft:
    """One kernel's task file to be."""

    name: str
    language: str
    repo: str
    folder: str
    """Where the Makefile lies and runs start, relative to the repository."""
    siblings: tuple[str, ...]
    file: str
    parts: tuple[Part, ...]
    tuning: str
    reference_tuning: str
    arch: str | None
    threads: int
    facts: Facts | None
    notes: tuple[str, ...]

    @property
    def variant(self) -> str:
        return BASE[self.language]

    @property
    def passes(self) -> int:
        facts = self.facts
        if facts is None or self.language == "cpp" or facts.repetitions * facts.flops > _CHEAP_OPERATIONS:
            return 1
        return PASSES


def task_text(draft: Draft) -> str:
    """The task file as TOML."""
    lines = [
        *(f"# {note}" for note in draft.notes),
        "schema = 1",
        f"name = {quoted(draft.name)}",
        f"language = {quoted(draft.language)}",
        f"repo = {quoted(draft.repo)}",
        f"workdir = {quoted(draft.folder)}",
        f"siblings = {_list(draft.siblings)}",
        *(line for part in draft.parts for line in _region(draft, part)),
        "",
        "[build]",
        'command = "make"',
        f"artifact = {quoted(f'{draft.folder}/{PROGRAM}')}",
        *([f"arch = {quoted(draft.arch)}"] if draft.arch else []),
        "timeout_s = 600",
        *_run(draft, "default", "shown", draft.variant, draft.tuning, ()),
        *_run(draft, "smaller", "held_out", draft.variant, draft.tuning, ("--sizefact", SMALLER)),
        *_run(draft, "sequential", "reference", REFERENCE, draft.reference_tuning, ()),
        *_run(draft, "sequential, smaller", "reference", REFERENCE, draft.reference_tuning, ("--sizefact", SMALLER)),
        *_time(draft),
        *_checks(draft),
        "",
        "[needs]",
        f"gpu = {'false' if draft.language == 'cpp' else 'true'}",
        *(['libraries = ["openmp"]'] if draft.language == "cpp" else []),
        *_floor(draft.facts),
    ]
    return "\n".join(lines) + "\n"


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(map(quoted, values)) + "]"


def _region(draft: Draft, part: Part) -> list[str]:
    place = f"kernel = {quoted(part.kernel)}" if part.kernel else f"lines = [{part.lines[0]}, {part.lines[1]}]"
    lines = ["", "[[region]]", f"name = {quoted(part.name)}", f"file = {quoted(draft.file)}", place]
    return [*lines, *([f"expand_macros = {_list(part.headers)}"] if part.headers else [])]


def _run(draft: Draft, name: str, role: str, variant: str, tuning: str, options: Sequence[str]) -> list[str]:
    words = [f"./{PROGRAM}", "-k", draft.name, "-v", variant, "-t", tuning, *options]
    words += ["--npasses", str(draft.passes), "--outdir", _OUT]
    lines = ["", "[[run]]", f"name = {quoted(name)}", *([f"role = {quoted(role)}"] if role != "shown" else [])]
    lines.append(f"command = {quoted(' '.join(words))}")
    if variant != REFERENCE and draft.language == "cpp":
        lines.append(f'env = {{ OMP_NUM_THREADS = "{draft.threads}" }}')
    if variant != REFERENCE and draft.language == "cuda":
        lines.append('env = { CUDA_MODULE_LOADING = "EAGER" }  # else the first repetition pays for loading the kernel')
    return [*lines, f"timeout_s = {600 if role == 'reference' else 120}"]


def _time(draft: Draft) -> list[str]:
    return [
        "",
        "[time]",
        "# Seconds over all repetitions, the mean over passes; a variant that did not run has no number.",
        'source = "csv"',
        f"file = {quoted(f'{draft.folder}/{_PREFIX}-timing-Average.csv')}",
        "skip = 1",
        "header = 2",
        f"row = {quoted(draft.name)}",
        f"column = {_list((draft.variant, draft.tuning))}",
        'unit = "s"',
        "",
        "[time.divide_by]",
        *_repetitions(draft),
        "min = 1",
    ]


def _repetitions(draft: Draft) -> list[str]:
    return [
        f"file = {quoted(f'{draft.folder}/{_PREFIX}-kernels.csv')}",
        "skip = 1",
        f"row = {quoted(draft.name)}",
        'column = "Reps"',
    ]


def _checks(draft: Draft) -> list[str]:
    lines = ["", "[[check]]", 'kind = "exit_code"  # 0 also for an unknown kernel', "", "[[check]]"]
    lines += ["# No repetitions would be no time, and a right checksum.", 'kind = "number"', 'source = "csv"']
    lines += [*_repetitions(draft), "min = 1", "rel = 0.0"]
    for run, reference in (("default", "sequential"), ("smaller", "sequential, smaller")):
        lines += [
            "",
            "[[check]]",
            'kind = "row"',
            f"runs = [{quoted(run)}]",
            f"file = {quoted(f'{draft.folder}/{_PREFIX}-checksum.txt')}",
            f"row = {quoted(f'{draft.variant}-{draft.tuning}')}",
            f"reference = {{ run = {quoted(reference)}, row = {quoted(f'{REFERENCE}-{draft.reference_tuning}')} }}",
            f"rel = {REL!r}",
        ]
    return lines


def _floor(facts: Facts | None) -> list[str]:
    """One repetition's bytes, as the suite counts them. It counts each kernel by itself, and what one leaves in a cache the
    next may find there; so where there are several, the mean of one is what all together cannot do without."""
    if facts is None or not (facts.bytes or facts.flops):
        return []
    lines = ["", "[floor]"]
    if facts.bytes:
        told = "" if facts.kernels <= 1 else f"  # the mean of {facts.kernels} kernels: the next may find it in a cache"
        lines.append(f"distinct_bytes = {facts.bytes / max(1, facts.kernels):.9g}{told}")
    return [*lines, *([f"flops = {facts.flops:.9g}"] if facts.flops else [])]
