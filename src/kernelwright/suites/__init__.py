"""Importers that turn other people's programs into tasks: a public suite's checkout, or any folder with a Makefile.

An importer reads the user's own checkout and writes task files beside it; nothing of a suite lies here. This module holds
what all importers share: what is said of each benchmark (its tasks, or the reason for none), the listing `suite.json` beside
the task files, and the loop that makes them several at a time and goes on where an earlier one stopped. Whether a task is
fit for use is the acceptance test's to say, never an importer's.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from kernelwright.errors import UsageError
from kernelwright.sandbox import Sandbox
from kernelwright.state import replace_text
from kernelwright.trial import Progress

SCHEMA = 1
LISTING = "suite.json"


@dataclass(frozen=True)
class Origin:
    """Where tasks come from, as it goes into a dataset's manifest."""

    suite: str
    """hecbench, rajaperf, make."""
    language: str
    """A task's: cuda, hip or cpp."""
    revision: str | None
    """The checkout's git revision; None where it is none."""
    licence: str | None
    """What the checkout's own licence file is, as an SPDX identifier; None where that is not clear."""


@dataclass(frozen=True)
class Made:
    """One task file that an importer wrote."""

    file: str
    """Relative to the folder of the listing."""
    kernels: tuple[str, ...]
    """What its regions are: the names of kernels or functions, or lines."""


@dataclass(frozen=True)
class Benchmark:
    """What became of one benchmark: its tasks, or the reason for none."""

    name: str
    tasks: tuple[Made, ...]
    reason: str | None = None
    """Why there is no task; None where there are some."""
    notes: tuple[str, ...] = ()
    """What a person should know of it: kernels left out, libraries that it needs."""
    ran: bool = False
    """Whether its program was built and run once, so that what was read is known to be printed."""
    lacks: tuple[str, ...] = ()
    """Files that its runs name and that the checkout does not have: its tasks wait for whoever has them."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Benchmark:
        made = tuple(Made(one["file"], tuple(one["kernels"])) for one in data["tasks"])
        return Benchmark(data["name"], made, data["reason"], tuple(data["notes"]), data["ran"], tuple(data["lacks"]))


class Importer(Protocol):
    """One suite's checkout."""

    @property
    def origin(self) -> Origin: ...

    def names(self) -> list[str]:
        """Every benchmark of the checkout in the importer's language, sorted."""
        ...

    async def make(self, name: str, out: Path, sandbox: Sandbox | None, progress: Progress) -> Benchmark:
        """Write the task files of one benchmark to the folder `out`. With a sandbox its program is built and run there
        once, and what was read is corrected by that; without one, it is read alone.

        What cannot become a task is a `reason`, never an exception; InfrastructureError is the machine's fault.
        """
        ...


@dataclass(frozen=True)
class Listing:
    """All that an importer said, as it lies in `suite.json` beside the task files."""

    origin: Origin
    benchmarks: tuple[Benchmark, ...]

    @property
    def tasks(self) -> int:
        return sum(len(benchmark.tasks) for benchmark in self.benchmarks)

    def write(self, out: Path) -> None:
        data = {
            "schema": SCHEMA,
            "origin": asdict(self.origin),
            "benchmarks": [benchmark.to_json() for benchmark in self.benchmarks],
        }
        replace_text(out / LISTING, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read_listing(out: Path) -> Listing | None:
    """The listing in a folder of task files; None where it has none. Raises UsageError for one that is damaged."""
    path = out / LISTING
    if not path.is_file():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Listing(Origin(**data["origin"]), tuple(map(Benchmark.from_json, data["benchmarks"])))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is no listing: {error!r}", "what `kernelwright tasks` wrote", "the import again, with --anew"
        ) from None


async def imported(
    importer: Importer,
    out: Path,
    names: Sequence[str],
    sandbox: Sandbox | None,
    at_once: int,
    progress: Progress,
    anew: bool = False,
) -> AsyncIterator[Benchmark]:
    """Every benchmark of `names` as it is finished, those of an earlier import first; the listing grows with them.

    An earlier one is taken over where checkout, revision and language are the same, unless it was only read and is to be
    run now. `at_once` benchmarks are at work at a time.
    """
    before = None if anew else read_listing(out)
    same = before is not None and before.origin == importer.origin
    done = {one.name: one for one in before.benchmarks} if before is not None and same else {}
    for name in names:
        if name in done and (done[name].ran or sandbox is None):
            yield done[name]
    left = [name for name in names if name not in done or not (done[name].ran or sandbox is None)]
    room = asyncio.Semaphore(at_once)

    async def one(name: str) -> Benchmark:
        async with room:
            return await importer.make(name, out, sandbox, progress)

    tasks = [asyncio.ensure_future(one(name)) for name in left]
    try:
        for finished in asyncio.as_completed(tasks):
            made = await finished
            done[made.name] = made
            Listing(importer.origin, tuple(done[key] for key in sorted(done))).write(out)
            yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def file_name(*parts: str) -> str:
    """The name of a task file: words of a benchmark and its kernels, kept to what every file system takes."""
    stem = ".".join(re.sub(r"[^\w-]+", "-", part).strip("-") for part in parts)
    return f"{stem[:120]}.toml"


def revision_of(checkout: Path) -> str | None:
    """The revision of a checkout as its git folder says, without running git; None where it has none."""
    git = checkout / ".git"
    try:
        if git.is_file():
            git = (checkout / git.read_text().removeprefix("gitdir:").strip()).resolve()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head or None
        common = (git / (git / "commondir").read_text().strip()).resolve() if (git / "commondir").is_file() else git
        name = head.removeprefix("ref: ")
        for base in (git, common):
            if (base / name).is_file():
                return (base / name).read_text().strip() or None
        packed = (common / "packed-refs").read_text()
    except OSError:
        return None
    found = re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(name)}$", packed, re.MULTILINE)
    return found[1] if found else None


_LICENCES = (
    ("Apache-2.0", r"Apache License\s+Version 2\.0"),
    ("GPL-3.0", r"GNU GENERAL PUBLIC LICENSE\s+Version 3"),
    ("GPL-2.0", r"GNU GENERAL PUBLIC LICENSE\s+Version 2"),
    ("LGPL-2.1", r"GNU LESSER GENERAL PUBLIC LICENSE\s+Version 2\.1"),
    ("MPL-2.0", r"Mozilla Public License,? [Vv]ersion 2\.0"),
    ("BSD-3-Clause", r"Redistribution and use in source and binary(?s:.*)(?:[Nn]either the name|may be used to endorse)"),
    ("BSD-2-Clause", r"Redistribution and use in source and binary forms"),
    ("MIT", r"Permission is hereby granted, free of charge"),
)  # fmt: skip


def licence_of(checkout: Path) -> str | None:
    """The licence that a checkout's own file states, as an SPDX identifier; None where there is none or it is another."""
    for name in ("LICENSE", "LICENCE", "LICENSE.md", "LICENSE.txt", "COPYING"):
        path = checkout / name
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            return next((spdx for spdx, pattern in _LICENCES if re.search(pattern, text)), None)
    return None
