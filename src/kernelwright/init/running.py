"""What `init` runs: make, asked for its commands; the draft, built and run once; the run's profile.

Everything runs in a workshop, that is in the sandbox over a private copy, with the repository itself out of sight: even
`make -n` executes parts of a Makefile, and may write what it includes. Nothing but the task file is written here.
"""

from __future__ import annotations

import shlex
import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from kernelwright.checks import RunResult
from kernelwright.commands import tool_path, words
from kernelwright.errors import KernelwrightError, TaskError, UsageError
from kernelwright.execute import REPO, Workshop
from kernelwright.init.building import Building, description_of, read_building
from kernelwright.init.draft import GUESSED_RUN, TaskDraft, adapt, compose, draft, is_sure, language_of
from kernelwright.init.hot import PROFILE_FLAGS, HotFunction, functions_of, hot_functions, hot_kernels, profile
from kernelwright.init.render import render
from kernelwright.init.repeats import Repeats, find_repeats
from kernelwright.init.runs import NO_RUN, RunDraft
from kernelwright.init.written import placed
from kernelwright.sandbox import Bind, Job, JobResult, Limits, Sandbox
from kernelwright.source import SOURCE_SUFFIXES, find_functions
from kernelwright.task import TASK_FILE, Task
from kernelwright.toolchain.devices import visible_gpus
from kernelwright.trace import Candidate
from kernelwright.trial import Progress

MAKE_TIMEOUT_S = 60.0
TRIALS = 3
"""Runs of one trial, each shorter than the one before."""
PROFILE_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Tried:
    """A draft after its trial run, the text of its task file, and why the trial failed, where it did."""

    draft: TaskDraft
    text: str
    trouble: KernelwrightError | None


async def drafted(root: Path, file: str, kernel: str | None, sandbox: Sandbox | None) -> TaskDraft:
    """The draft for `file` (relative to `root`); with a sandbox, make itself says what the run target starts.

    Raises UsageError for a file or kernel that is not there or not clear.
    """
    read = await draft(root, file, kernel)
    if sandbox is None:
        return read
    building = await asked_building(read, root.resolve(), sandbox)
    return compose(root.resolve(), root.resolve() / file, read.language, read.regions, building)


async def read_building_of(file: Path, repo: Path, language: str) -> Building:
    """How the program that `file` belongs to is built, by reading alone."""
    found = description_of(file, repo)
    folder = found.folder if found else file.parent
    sources = (path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES and path.is_file())
    openmp = language == "cpp" and any(b"#pragma omp" in path.read_bytes() for path in sources)
    return await read_building(file, repo, language, openmp, shutil.which, None)


async def asked_building(read: TaskDraft, repo: Path, sandbox: Sandbox) -> Building:
    """The building of a draft again, make itself asked what the run target starts; as it was where it cannot be asked."""

    async def asked(argv: Sequence[str], folder: str) -> JobResult:
        return await _in_a_copy(read, sandbox, argv, repo / folder)

    file, openmp = read.root / read.file, read.building.openmp
    try:
        return await read_building(file, repo, read.language, openmp, shutil.which, asked)
    except TaskError:  # what was read is no task yet, or cannot be copied: the trial run says so
        return read.building


async def _in_a_copy(read: TaskDraft, sandbox: Sandbox, argv: Sequence[str], folder: Path) -> JobResult:
    """Run `argv` where a copy of the repository has `folder`; printed paths are those that a task's runs see."""
    async with Workshop(as_task(read), sandbox) as shop, shop.spliced_slot(Candidate({})) as slot:
        cwd = str(PurePosixPath(REPO) / folder.relative_to(read.root))
        binds = (Bind(slot.folder, REPO, writable=True),)
        result = await shop.run_job(Job(tuple(argv), cwd, binds, {"PATH": tool_path()}, Limits(MAKE_TIMEOUT_S)))
        seen = sandbox.inside(slot.folder, REPO).encode()
        return replace(result, stdout=result.stdout.replace(seen, REPO.encode()))


def as_task(read: TaskDraft, target: Path | None = None) -> Task:
    """The draft as a task for a trial, with all that its program may write among the outputs; nothing is written to its
    `target`. Raises TaskError where it is none yet."""
    target = target or read.root / read.workdir / TASK_FILE
    read = replace(read, files=tuple(replace(file, active=file.path is not None) for file in read.files))
    try:
        return Task.model_validate({**tomllib.loads(render(read, target)), "path": target.resolve()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise TaskError(
            f"what was read of {read.file} is no task yet: {where}: {first['msg']}",
            "a build inside the repository",
            "init --no-run, and the rest by hand",
        ) from None


def with_run(read: TaskDraft, command: str | None) -> TaskDraft:
    """The draft with one run of the user's own in place of those that the Makefile names."""
    if command is None:
        return read
    env = read.building.runs[0].env if read.building.runs else {}
    told = tuple(note for note in read.building.notes if not note.startswith(NO_RUN))
    building = replace(read.building, runs=(RunDraft("first", command, env),), notes=told)
    files = placed(read.files, command, is_sure(read.checks))
    notes = tuple(note for note in read.notes if note != GUESSED_RUN)
    return replace(read, building=building, files=tuple(files), notes=notes)


def repeats_of(read: TaskDraft) -> Repeats | None:
    """Which argument of its first run says how often the program repeats what it times."""
    if not read.building.runs:
        return None
    command = read.building.runs[0].command
    program = next((word for word in command.split() if word.startswith(("./", "../"))), "")
    return find_repeats(command, program, _sources(read).values())


def run_less(read: TaskDraft, command: str) -> TaskDraft:
    """The draft with `command`, which repeats less often, in place of its first run's; the others repeat less by as much."""
    first, found = read.building.runs[0], repeats_of(read)
    if found is None or command == first.command:
        return read
    share = int(shlex.split(command)[found.at].removeprefix(found.prefix)) / found.count
    runs = [replace(first, command=command, note=f"repeated less often than in {first.command!r}")]
    for run in read.building.runs[1:]:
        own = repeats_of(replace(read, building=replace(read.building, runs=(run,))))
        less = max(1, round(own.count * share)) if own is not None else 0
        runs.append(replace(run, command=own.in_command(run.command, less)) if own is not None else run)
    return replace(read, building=replace(read.building, runs=tuple(runs)))


@dataclass(frozen=True)
class Trial:
    """What one build of the unmodified program, and one run, showed."""

    reads: frozenset[str] | None
    """Repository files that its compilers read; None where they were not seen."""
    result: RunResult | None
    """None where this machine lacks the device that the program needs."""
    command: str = ""
    """What was run."""


Shorter = Callable[[str, RunResult], str | None]
"""Given a command and its run, another command to run in its place; None where it may stay."""


async def trial(
    task: Task, sandbox: Sandbox, progress: Progress, shorter: Shorter = lambda _command, _run: None
) -> Trial:
    """Build the unmodified program and run it as the first shown run says, or as `shorter` says after that. Raises
    KernelwrightError where it does not build; that it did not end well is in the result."""
    async with Workshop(task, sandbox) as shop:
        progress("building the original")
        built = await shop.build_baseline()
        reads = frozenset(file for command in built.commands for file in command.depends)
        if shop.uses_gpu and not visible_gpus("amd" if task.language == "hip" else "nvidia"):
            return Trial(reads or None, None)
        run, result = task.shown[0], None
        for _ in range(TRIALS):
            other = shorter(run.command, result) if result is not None else run.command
            if other is None:
                break
            run = run.model_copy(update={"command": other})
            progress(f"running it: {run.command}")
            result = await shop.run(built, run)
        return Trial(reads or None, result, run.command)


def settled(read: TaskDraft, result: RunResult | None) -> TaskDraft:
    """The draft as its trial run corrects it; with a note alone where there was none."""
    if result is None:
        note = "The program builds and was not run: this machine has no device for it."
        return replace(read, notes=(note, *read.notes))
    return adapt(read, result.job.exit_code, result.text, result.job.wall_s, result.files)


async def tried(read: TaskDraft, target: Path, sandbox: Sandbox | None, progress: Progress) -> Tried:
    """Write the draft to `target`, build and run it, and write it again as the run corrects it."""
    text = render(read, target)
    _write(target, text)
    if sandbox is None:
        return Tried(read, text, None)
    try:
        shown = await trial(as_task(read, target), sandbox, progress)
    except KernelwrightError as trouble:
        return Tried(read, text, trouble)
    final = settled(read, shown.result)
    text = render(final, target)
    _write(target, text)
    return Tried(final, text, None)


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror}", "a folder that can be written", "--out FILE"
        ) from None


async def hot(root: Path, file: str, sandbox: Sandbox, command: str | None) -> list[HotFunction]:
    """Where one run of the program that `file` belongs to spends its time, the hottest first."""
    data = (root / file).read_bytes()
    functions = find_functions(data, language_of(data, Path(file).suffix))
    if not functions:
        raise UsageError(
            f"{file} defines no function",
            "a source file of the program",
            "the file with the hot loop, or the one with main",
        )
    read = with_run(await drafted(root, file, functions[0].name, sandbox), command)
    task, sources = as_task(read), _sources(read)
    known = functions_of(sources, task.language)
    if task.language != "cpp":
        async with Workshop(task, sandbox) as shop:
            built = await shop.build_baseline()
            return hot_kernels((await shop.run(built, task.shown[0], recorded=True)).kernels or (), known)
    build = task.build.model_copy(update={"flags": (*task.build.flags, *PROFILE_FLAGS)})
    return hot_functions(await _profiled(task.model_copy(update={"build": build}), sandbox), known, sources)


def _sources(read: TaskDraft) -> dict[str, bytes]:
    return {
        str(path.relative_to(read.root)): path.read_bytes()
        for folder in (read.workdir, *read.siblings)
        for path in sorted((read.root / folder).rglob("*"))
        if path.suffix in SOURCE_SUFFIXES and path.is_file()
    }


async def _profiled(task: Task, sandbox: Sandbox) -> str:
    """The profile of the first shown run, as text for `hot_functions`."""
    async with Workshop(task, sandbox) as shop:
        built, run = await shop.build_baseline(), task.shown[0]

        async def execute(argv: Sequence[str], folder: str) -> JobResult:
            binds = (Bind(built.slot.folder, REPO, writable=True),)
            limits = Limits(PROFILE_TIMEOUT_S, task.needs.memory_bytes, output_bytes=2**28)
            return await shop.run_job(Job(tuple(argv), folder, binds, {"PATH": tool_path(), **run.env}, limits))

        return await profile(execute, words(run.command, shop.arch, task.build.flags), shop.cwd)
