"""A dataset of tasks: one row for each, where it comes from, what its acceptance said, and which split it belongs to.

Splits go by benchmark, never by task: a kernel and its combination with others stay together, and so do benchmarks that
near-duplicate kernels join. What evaluation is published on (RAJAPerf and LULESH, or what the user names), and whatever has
a near-duplicate of one of its kernels, is never in train. A row holds no source text: it says where the task file lies.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from kernelwright.errors import KernelwrightError, UsageError
from kernelwright.source import region_spans
from kernelwright.suites import LISTING, read_listing
from kernelwright.suites.likeness import families, windows
from kernelwright.suites.mass import Tested
from kernelwright.task_file import load_task

SCHEMA = 1
MANIFEST = "tasks.jsonl"
Split = Literal["train", "validation", "test"]
SPLITS: tuple[tuple[Split, int], ...] = (("train", 80), ("validation", 90), ("test", 100))
"""The upper bound of a family's number below 100, which is a hash of its first name."""
HELD_OUT = re.compile(r"rajaperf/|.*lulesh", re.IGNORECASE)
"""What the paper (arXiv 2510.17158) evaluates on beside its training suite."""


@dataclass(frozen=True)
class Row:
    """One task of a dataset."""

    id: str
    """A hash of the task's content, files of the repository left out (`Task.fingerprint`)."""
    file: str
    """The task file, relative to the manifest's folder."""
    name: str
    language: str
    suite: str
    benchmark: str
    kernels: tuple[str, ...]
    revision: str | None
    licence: str | None
    split: Split
    like: str | None
    """The benchmark with which near-duplicate kernels join this one's, where there is one."""
    tokens: int
    """Windows of tokens in all regions: a measure of their size."""
    accepted: bool | None
    """What `check` said; None where it was not asked or gave no answer."""
    reason: str | None
    """Why it was not accepted."""
    noise: float | None
    """Relative noise of one run of the original, as `check` found it."""


@dataclass(frozen=True)
class _Read:
    """A task file with what it belongs to."""

    path: Path
    row: dict[str, Any]
    group: str
    """suite/benchmark."""
    texts: tuple[frozenset[int], ...]


def rows(
    folders: Sequence[Path], answers: Mapping[Path, Tested], out: Path, held_out: Sequence[str] = ()
) -> tuple[list[Row], list[str]]:
    """A row for each task of the listings in `folders`, and what was left out. `answers` are those of `check`, by task file;
    `held_out` are further benchmarks, as BENCHMARK or SUITE/BENCHMARK, that must never be in train.

    Raises UsageError for a folder without a listing, or a name of `held_out` that no folder has.
    """
    read, left_out = _read(folders, answers)
    groups = sorted({one.group for one in read})
    held = {group for group in groups if HELD_OUT.match(group) or _named(group, held_out)}
    if unknown := [name for name in held_out if not any(_named(group, [name]) for group in groups)]:
        raise UsageError(
            f"no benchmark {unknown[0]!r} is in {', '.join(map(str, folders))}", "a benchmark of a listing", LISTING
        )
    family = families({group: [text for one in read if one.group == group for text in one.texts] for group in groups})
    tainted = {family[group] for group in held}
    members = {first: [group for group in groups if family[group] == first] for first in set(family.values())}
    made = []
    for one in read:
        first = family[one.group]
        like = next((group for group in members[first] if group != one.group), None)
        split: Split = "test" if first in tainted else _split(first)
        made.append(Row(**one.row, file=os.path.relpath(one.path, out), split=split, like=like))
    return made, left_out


def _read(folders: Sequence[Path], answers: Mapping[Path, Tested]) -> tuple[list[_Read], list[str]]:
    found: list[_Read] = []
    left_out: list[str] = []
    for folder in folders:
        listing = read_listing(folder)
        if listing is None:
            raise UsageError(f"{folder} has no {LISTING}", "a folder that an import wrote", "kernelwright tasks --help")
        origin = listing.origin
        for benchmark in listing.benchmarks:
            for made in benchmark.tasks:
                path = (folder / made.file).resolve()
                try:
                    task = load_task(path)
                    spans = region_spans(task)
                except (KernelwrightError, OSError) as error:
                    left_out.append(f"{path}: {error}")
                    continue
                texts = tuple(windows(span.text) for span in spans.values())
                row = {
                    "id": task.fingerprint, "name": task.name, "language": task.language, "suite": origin.suite,
                    "benchmark": benchmark.name, "kernels": made.kernels, "revision": origin.revision,
                    "licence": origin.licence, "tokens": sum(map(len, texts)), **_answer(answers.get(path)),
                }  # fmt: skip
                found.append(_Read(path, row, f"{origin.suite}/{benchmark.name}", texts))
    return found, left_out


def _answer(tested: Tested | None) -> dict[str, Any]:
    if tested is None or tested.state in ("open", "builds"):
        return {"accepted": None, "reason": None, "noise": None}
    noise = (tested.acceptance or {}).get("baseline", {}).get("noise")
    return {"accepted": tested.state == "accepted", "reason": tested.group, "noise": noise}


def _named(group: str, names: Iterable[str]) -> bool:
    return any(name in (group, group.partition("/")[2]) for name in names)


def _split(family: str) -> Split:
    number = int.from_bytes(hashlib.sha256(family.encode()).digest()[:8]) % 100
    return next(split for split, bound in SPLITS if number < bound)


def write(made: Sequence[Row], out: Path, parquet: bool) -> list[Path]:
    """The manifest as JSON lines, and as one Parquet file a split where asked; the files written. Raises UsageError where
    Parquet's library is not installed."""
    out.mkdir(parents=True, exist_ok=True)
    written = [out / MANIFEST]
    written[0].write_text(
        "".join(json.dumps({"schema": SCHEMA, **asdict(row)}) + "\n" for row in made), encoding="utf-8"
    )
    return [*written, *(_parquet(made, out) if parquet else [])]


def _parquet(made: Sequence[Row], out: Path) -> list[Path]:
    try:
        from datasets import Dataset
    except ImportError:
        raise UsageError(
            "Parquet needs the library datasets", "an installed extra", "pip install 'kernelwright[datasets]'"
        ) from None
    written = []
    for split, _ in SPLITS:
        part = [asdict(row) for row in made if row.split == split]
        if part:
            written.append(out / f"{split}.parquet")
            Dataset.from_list(part).to_parquet(str(written[-1]))
    return written


def summary(made: Sequence[Row]) -> dict[str, Any]:
    """Counts: tasks and benchmarks a split, accepted ones among them."""
    return {
        split: {
            "tasks": sum(row.split == split for row in made),
            "benchmarks": len({(row.suite, row.benchmark) for row in made if row.split == split}),
            "accepted": sum(row.split == split and row.accepted is True for row in made),
            "languages": dict(Counter(row.language for row in made if row.split == split)),
        }
        for split, _ in SPLITS
    }
