"""From one build with several kernels to its task files: one task for each kernel, and one for all of them.

What all importers of built programs share: the kernels are found, the drafts made, the program is built and run once for all
of them, and what is fit to be a task is written. Where programs come from, and what is said of them beside their sources,
is each importer's own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from kernelwright.checks import RunResult
from kernelwright.errors import TaskError, UsageError
from kernelwright.execute import failure_of
from kernelwright.init import TaskDraft, render, running
from kernelwright.init.building import Building
from kernelwright.init.compiled import Kernel, compiled_files, find_kernels
from kernelwright.init.conditionals import compiled_part, definitions
from kernelwright.init.draft import Sources, composed, read_sources
from kernelwright.init.regions import RegionDraft, candidates, choose, parallel_loops
from kernelwright.init.repeats import fewer
from kernelwright.sandbox import LimitHit, Sandbox
from kernelwright.source import find_functions, region_spans
from kernelwright.suites import Benchmark, Made, file_name
from kernelwright.task_file import load_task
from kernelwright.trial import Progress

SHORTEST_LIMIT_S = 30.0
LIMIT_FACTOR = 10.0
"""How much longer than the original's own run a candidate's may last before it is stopped."""


LONG = 10.0
"""A first run of so many times what is wanted is stopped, where it can be repeated less often."""
ENOUGH = 2.0
"""A run of at most so many times what is wanted stays as it is."""


class NoTask(Exception):
    """Why a benchmark gives no task; importers make a `Benchmark` of it."""

    def __init__(self, reason: str, notes: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.notes = tuple(notes)


@dataclass(frozen=True)
class Plan:
    """One build as read, with the regions of each task to be by the task's label."""

    name: str
    language: str
    building: Building
    sources: Sources
    tasks: Mapping[str, tuple[RegionDraft, ...]]
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Compile arguments without which its program does not say whether it is right."""


def plan(name: str, root: Path, language: str, building: Building, pairs: bool) -> Plan:
    """Read what `building` compiles. Raises NoTask where no region is in it.

    Where a program says whether it is right only with a macro such as VERIFY, that macro is defined.
    """
    texts = {path: path.read_bytes() for path in compiled_files(building, root)}
    first = read = _plan(name, root, language, building, pairs, texts, ())
    for macro in ("", *_switches(texts.values())):
        read = _plan(name, root, language, building, pairs, texts, (macro,)) if macro else first
        label, regions = list(read.tasks.items())[-1]
        if _is_judged([_draft(read, label, regions)]):
            return read
    return first


_SWITCH = re.compile(rb"^[ \t]*#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t]*\(?[ \t]*)(\w+)", re.MULTILINE)
_SWITCHES = ("VERIF", "VALID", "CHECK", "TEST", "DEBUG", "OUTPUT", "DUMP", "PRINT", "VERBOSE")


def _switches(texts: Iterable[bytes]) -> list[str]:
    """Macros that seem to turn on a check, the likeliest first."""
    names = {name.decode() for data in texts for name in _SWITCH.findall(data)}
    return [name for word in _SWITCHES for name in sorted(names) if word in name.upper() and not name.startswith("_")]


def _plan(
    name: str, root: Path, language: str, building: Building, pairs: bool, texts: Mapping[Path, bytes],
    macros: tuple[str, ...],
) -> Plan:  # fmt: skip
    building = replace(building, defines=building.defines | set(macros))
    defined = definitions(texts.values(), building.defines)
    compiled = {path: compiled_part(data, defined) for path, data in texts.items()}
    if language == "cpp":
        regions, notes = _parallel_regions(compiled, root)
    else:
        kernels = find_kernels(compiled, root, language)
        regions, notes = _kernel_regions(kernels.found, root), list(kernels.notes)
    if not regions:
        raise NoTask(notes[0] if notes else _nothing(language), notes)
    sources = read_sources(root, building, language, compiled)
    regions = [_below(region, root, sources.root) for region in regions]
    flags = tuple(f"-D{macro}" for macro in macros)
    return Plan(name, language, building, sources, combined(regions, pairs), tuple(notes), flags)


def _below(region: RegionDraft, root: Path, above: Path) -> RegionDraft:
    """A region whose file is named from a root further up, where the build reaches out of the one given."""
    if region.file is None or root == above:
        return region
    return replace(region, file=(root / region.file).relative_to(above).as_posix())


def _nothing(language: str) -> str:
    return "no function has an OpenMP loop" if language == "cpp" else "it has no kernel of its own, only a library's"


def _kernel_regions(kernels: Sequence[Kernel], root: Path) -> list[RegionDraft]:
    """A region for each kernel, named by what tells it from others of its name: its file, else its line."""
    regions = []
    for kernel in kernels:
        twins = [other for other in kernels if other.name == kernel.name]
        beside = [other for other in twins if other.file == kernel.file]
        name = kernel.name
        name += f" {kernel.file.stem}" if len(beside) < len(twins) else ""
        name += f" line {kernel.first_line}" if len(beside) > 1 else ""
        file = kernel.file.relative_to(root).as_posix()
        lines = None if kernel.alone else (kernel.first_line, kernel.last_line)
        regions.append(RegionDraft(name, kernel.name if kernel.alone else None, lines, file=file))
    return _named_apart(regions)


_OPENMP = re.compile(rb"#[ \t]*pragma[ \t]+omp\b")


def _named_apart(regions: Iterable[RegionDraft]) -> list[RegionDraft]:
    seen: dict[str, int] = {}
    apart = []
    for region in regions:
        count = seen[region.name] = seen.get(region.name, 0) + 1
        apart.append(region if count == 1 else replace(region, name=f"{region.name} {count}"))
    return apart


def _parallel_regions(texts: Mapping[Path, bytes], root: Path) -> tuple[list[RegionDraft], list[str]]:
    """Functions with OpenMP loops, or these loops by lines where the function also prints or times."""
    regions: list[RegionDraft] = []
    notes: list[str] = []
    for path, data in texts.items():
        file = path.relative_to(root).as_posix()
        for function in candidates(data, "cpp"):
            if not _OPENMP.search(data[function.body_start : function.end]):
                continue
            last = data.count(b"\n", 0, function.end) + 1
            alone = sum(one.name == function.name for one in find_functions(data, "cpp")) == 1
            try:
                (chosen,) = choose(data, file, "cpp", function.name if alone else f"{function.first_line}-{last}")
            except UsageError as reason:
                notes.append(f"{function.name} ({file}:{function.first_line}) is left out: {reason.what}.")
                continue
            loops = parallel_loops(data, "cpp", function) if chosen.lines is not None else []
            if len(loops) < 2:
                regions.append(replace(chosen, name=chosen.name if alone else function.name, file=file, note=""))
            else:
                regions += [RegionDraft(f"{function.name} line {loop.first}", None, (loop.first, loop.last), file=file)
                            for loop in loops]  # fmt: skip
    return _named_apart(regions), notes


def combined(regions: Sequence[RegionDraft], pairs: bool) -> dict[str, tuple[RegionDraft, ...]]:
    """The regions of each task by its label: each alone, every two where that is asked for, and all together."""
    tasks: dict[str, tuple[RegionDraft, ...]] = {region.name: (region,) for region in regions}
    if pairs and len(regions) > 2:
        tasks |= {f"{one.name} and {other.name}": (one, other) for one, other in combinations(regions, 2)}
    return tasks | ({"all": tuple(regions)} if len(regions) > 1 else {})


def drafts_of(read: Plan) -> dict[str, TaskDraft]:
    """The drafts by label. Raises NoTask where nothing that is printed tells right from wrong."""
    drafts = {label: _draft(read, label, regions) for label, regions in read.tasks.items()}
    require_checks(drafts.values(), read.notes)
    return {label: draft for label, draft in drafts.items() if _is_judged([draft])}


def _draft(read: Plan, label: str, regions: Sequence[RegionDraft]) -> TaskDraft:
    path = read.sources.root / (regions[0].file or "")
    draft = composed(read.sources, path, read.language, regions, read.building)
    return replace(draft, name=file_name(read.name, label).removesuffix(".toml"), flags=read.flags)


def require_checks(drafts: Collection[TaskDraft], notes: Sequence[str]) -> None:
    if not _is_judged(drafts):
        raise NoTask("prints nothing that tells a right result from a wrong one", notes)


def _is_judged(drafts: Collection[TaskDraft]) -> bool:
    return any(check.active for draft in drafts for check in draft.checks) or any(
        file.active for draft in drafts for file in draft.files
    )


async def tried_once(
    drafts: Mapping[str, TaskDraft], sandbox: Sandbox, limit_s: float, seconds: float, progress: Progress
) -> tuple[dict[str, TaskDraft], bool]:
    """The program of all drafts built and run once: the drafts as that corrects them, and whether it ran, which it does not
    where this machine has no device for it. One that says how often it repeats is made to take about `seconds`, if not 0.
    Raises NoTask where the original does not build, run or call its result right.
    """
    draft = drafts["all"] if "all" in drafts else next(iter(drafts.values()))
    shown = await trial_of(draft, sandbox, limit_s, progress, seconds)
    if shown.command:
        drafts = {label: running.run_less(draft, shown.command) for label, draft in drafts.items()}
    return settled_by(drafts, shown), shown.result is not None


async def trial_of(
    draft: TaskDraft, sandbox: Sandbox, limit_s: float, progress: Progress, seconds: float = 0.0
) -> running.Trial:
    """What a build and a run of a draft's program show. Raises NoTask where it does not build or end well."""
    found = running.repeats_of(draft) if seconds else None
    limit_s = min(limit_s, LONG * seconds) if found is not None else limit_s

    def shorter(command: str, result: RunResult) -> str | None:
        late, wall_s = result.job.limit is LimitHit.TIME, result.job.wall_s
        if found is None or (not late and (failure_of(result, limit_s) or wall_s <= ENOUGH * seconds)):
            return None
        count = int(shlex.split(command)[found.at].removeprefix(found.prefix))
        less = fewer(count, wall_s * (LONG if late else 1.0), seconds)
        return found.in_command(command, less) if less is not None else None

    try:
        task = running.as_task(replace(draft, timeout_s=limit_s))
        shown = await running.trial(task, sandbox, lambda said: progress(f"{draft.name}: {said}"), shorter)
    except TaskError as error:
        raise NoTask(_first_line(error.what)) from None
    if shown.result is None:
        return shown
    job, text = shown.result.job, shown.result.text
    if (failed := failure_of(shown.result, limit_s)) is not None:
        raise NoTask(f"the unmodified program does not end well: {failed[1]}")
    if job.exit_code != 0:
        ending = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "nothing")
        raise NoTask(f"the unmodified program ends with exit code {job.exit_code}; its last line is {ending[:200]!r}")
    return shown


def settled_by(drafts: Mapping[str, TaskDraft], shown: running.Trial) -> dict[str, TaskDraft]:
    """The drafts as a trial of their program corrects them. Raises NoTask where it calls its own result wrong, or printed
    nothing to judge by."""
    settled = {label: running.settled(draft, shown.result) for label, draft in drafts.items()}
    if shown.result is not None:
        settled = {label: _settled(draft, shown.result.job.wall_s) for label, draft in settled.items()}
        require_checks(settled.values(), ())
    return settled


def _settled(draft: TaskDraft, wall_s: float) -> TaskDraft:
    if any("calls its own result wrong" in note for note in draft.notes):
        raise NoTask("the unmodified program calls its own result wrong")
    return replace(draft, timeout_s=float(round(max(SHORTEST_LIMIT_S, LIMIT_FACTOR * wall_s))))


def _first_line(text: str) -> str:
    """What a mistake says without the path of a task file that is not there, its first line and the first with an error."""
    lines = [line.strip() for line in re.sub(r"^\S+\.toml: ", "", text).splitlines() if line.strip()]
    return lines[0][:400]


def write_tasks(name: str, drafts: Mapping[str, TaskDraft], out: Path, notes: Sequence[str], ran: bool) -> Benchmark:
    """Write the drafts that are tasks, and say what became of the others."""
    made, left = [], list(notes)
    out.mkdir(parents=True, exist_ok=True)
    for label, draft in drafts.items():
        target = out / file_name(name, label)
        target.write_text(render(draft, target), encoding="utf-8")
        try:
            region_spans(load_task(target))
        except TaskError as error:
            target.unlink()
            left.append(f"{label} is left out: {error.what}.")
            continue
        made.append(Made(target.name, tuple(region.name for region in draft.regions)))
    if not made:
        return Benchmark(name, (), left[-1], tuple(left[:-1]))
    return Benchmark(name, tuple(made), None, tuple(left), ran)
