"""Any repository with a Makefile or CMakeLists.txt: each kernel of a source file becomes a task, and all of them together.

A benchmark is a source file that holds kernels and lies below a build description. What is built, run, printed and checked
is read by `kernelwright.init`, which does the same for one file; here files are found, and what several of them share (the
description's reading, its build and its trial run) is done once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from kernelwright.errors import UsageError
from kernelwright.init import TaskDraft, running
from kernelwright.init.building import Building, description_of
from kernelwright.init.draft import compose, language_of
from kernelwright.init.regions import RegionDraft
from kernelwright.sandbox import Sandbox
from kernelwright.source import SOURCE_SUFFIXES
from kernelwright.suites import Benchmark, Origin, file_name, licence_of, revision_of
from kernelwright.suites.drafting import NoTask, Plan, combined, drafts_of, plan, settled_by, trial_of, write_tasks
from kernelwright.trial import Progress

MOST_TOGETHER = 12
"""Kernels of one file that are offered together as one task."""
_MOST_BYTES = 4 * 2**20
_OPENMP_LOOP = re.compile(rb"#\s*pragma\s+omp\s[^\n]*\b(?:parallel|for|simd|loop|teams|distribute)\b")
_KERNEL = re.compile(rb"\b__global__\b")
_APART = re.compile(r"\.(?!\.)[^/]+|build.*|CMakeFiles|__pycache__")
"""Folders that hold no sources of the repository's own."""


@dataclass
class _Program:
    """What the files of one program share, in one language."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    plan: Plan | NoTask | None = None
    trial: running.Trial | NoTask | None = None


@dataclass(frozen=True)
class AnyBuild:
    """The source files with kernels below `folder`; only those of one language, where it is given."""

    folder: Path
    language: str | None = None
    command: str | None = None
    """How the program is run, from the folder of its build, in place of what the description says."""
    run_limit_s: float = 120.0
    """A program whose first run lasts longer gives no task."""
    _programs: dict[tuple[Path, str, str], _Program] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise UsageError(
                f"{self.folder} is no folder", "a folder with sources and a Makefile", "check the spelling"
            )

    @property
    def root(self) -> Path:
        return self.folder.resolve()

    @cached_property
    def origin(self) -> Origin:
        checkout = next((up for up in (self.root, *self.root.parents) if (up / ".git").exists()), self.root)
        languages = [language for _, language in self._found]
        language = self.language or max(sorted(set(languages)), key=languages.count, default="cpp")
        return Origin("make", language, revision_of(checkout), licence_of(checkout))

    def names(self) -> list[str]:
        """Source files with kernels, relative to the folder."""
        return [path.relative_to(self.root).as_posix() for path, _ in self._found]

    @cached_property
    def _found(self) -> list[tuple[Path, str]]:
        found = []
        for path in sorted(_sources(self.root)):
            data = path.read_bytes()
            if not _KERNEL.search(data) and not _OPENMP_LOOP.search(data):
                continue
            language = self._language(path, data)
            pattern = _OPENMP_LOOP if language == "cpp" else _KERNEL
            if self.language in (None, language) and pattern.search(data) and description_of(path, self.root):
                found.append((path, language))
        return found

    def _language(self, path: Path, data: bytes) -> str:
        """The language of a file; hip and cuda look alike, so one that is asked for decides."""
        description = description_of(path, self.root)
        language = language_of(data, path.suffix, [description.path.read_bytes()] if description else [])
        return self.language if self.language in ("cuda", "hip") and language != "cpp" else language

    async def make(self, name: str, out: Path, sandbox: Sandbox | None, progress: Progress) -> Benchmark:
        """As `suites.Importer` says; `name` is a file's path below the folder."""
        for stale in out.glob(file_name(name).removesuffix("toml") + "*.toml"):
            stale.unlink()
        try:
            read, program = await self._read(name, sandbox)
            drafts = {label: running.with_run(draft, self.command) for label, draft in drafts_of(read).items()}
            if sandbox is None:
                return write_tasks(name, drafts, out, read.notes, ran=False)
            async with program.lock:
                tried = program.trial or await self._tried(next(iter(drafts.values())), sandbox, progress)
                program.trial = tried
            shown = _or_raised(tried)
            _require_compiled(read, shown)
            return write_tasks(name, settled_by(drafts, shown), out, read.notes, shown.result is not None)
        except NoTask as reason:
            return Benchmark(name, (), str(reason), reason.notes)

    async def _read(self, name: str, sandbox: Sandbox | None) -> tuple[Plan, _Program]:
        """What the build of a file says, kept to that file's regions; and what its other files share."""
        path = self.root / name
        if not path.is_file():
            raise NoTask(f"there is no file {name}")
        language, description = self._language(path, path.read_bytes()), description_of(path, self.root)
        if description is None:
            raise NoTask("no Makefile or CMakeLists.txt lies beside it or above it")
        building = await running.read_building_of(path, self.root, language)
        key = (description.path, building.artifact, language)
        program = self._programs.setdefault(key, _Program())
        async with program.lock:
            whole = program.plan or await self._plan(path, language, building, sandbox)
            program.plan = whole
        return _kept_to(name, path, _or_raised(whole)), program

    async def _plan(self, path: Path, language: str, building: Building, sandbox: Sandbox | None) -> Plan | NoTask:
        if sandbox is not None:
            building = await self._asked(path, language, building, sandbox)
        try:
            return plan(path.name, self.root, language, building, pairs=False)
        except NoTask as reason:
            return reason

    async def _asked(self, path: Path, language: str, building: Building, sandbox: Sandbox) -> Building:
        whole = RegionDraft("all", None, (1, path.read_bytes().count(b"\n") + 1))
        draft = compose(self.root, path, language, [whole], building)
        return await running.asked_building(draft, self.root, sandbox)

    async def _tried(self, draft: TaskDraft, sandbox: Sandbox, progress: Progress) -> running.Trial | NoTask:
        try:
            return await trial_of(draft, sandbox, self.run_limit_s, progress)
        except NoTask as reason:
            return reason


Found = TypeVar("Found")


def _or_raised(found: Found | NoTask) -> Found:
    if isinstance(found, NoTask):
        raise NoTask(str(found), found.notes)
    return found


def _kept_to(name: str, path: Path, read: Plan) -> Plan:
    """The plan with the regions of one file. Raises NoTask where it has none."""
    file = path.relative_to(read.sources.root).as_posix()
    own = [regions[0] for regions in read.tasks.values() if len(regions) == 1 and regions[0].file == file]
    notes = [note for note in read.notes if f"({name}" in note]
    if not own:
        raise NoTask("nothing of it is compiled and can be a region", notes)
    tasks = combined([_plainly(region, own) for region in own], pairs=False)
    if len(own) > MOST_TOGETHER:
        del tasks["all"]
        notes.append(f"Its {len(own)} kernels together are no task: more than {MOST_TOGETHER}.")
    return replace(read, name=name, tasks=tasks, notes=tuple(notes))


def _plainly(region: RegionDraft, beside: Sequence[RegionDraft]) -> RegionDraft:
    """A region named by its kernel alone, where that is enough among those of its file."""
    alone = region.kernel is not None and sum(one.kernel == region.kernel for one in beside) == 1
    return replace(region, name=region.kernel) if region.kernel is not None and alone else region


def _require_compiled(read: Plan, shown: running.Trial) -> None:
    file = next(iter(read.tasks.values()))[0].file
    if shown.reads is not None and file not in shown.reads:
        raise NoTask(f"the build of {read.building.source.partition(',')[0]} does not read it")


def _sources(root: Path) -> Iterator[Path]:
    """Sources below a folder, those of builds and hidden folders left out."""
    for path in root.iterdir():
        if path.is_symlink():
            continue
        if path.is_dir() and not _APART.fullmatch(path.name):
            yield from _sources(path)
        elif path.suffix in SOURCE_SUFFIXES and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            yield path
