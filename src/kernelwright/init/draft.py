"""A first task, put together from what the sources and the build description say, and corrected by a real run."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright.errors import UsageError
from kernelwright.init.building import Building, read_building
from kernelwright.init.flags import Have
from kernelwright.init.meaning import CheckDraft, find_numbers, find_verdicts
from kernelwright.init.prints import Line, Text, read_prints
from kernelwright.init.regions import RegionDraft, choose
from kernelwright.init.times import TimeDraft, find_times, together
from kernelwright.init.written import FileDraft, find_written, placed, seen
from kernelwright.source import SOURCE_SUFFIXES, find_functions
from kernelwright.toolchain import Exec

ERRORS_APART = 10.0
"""How many times the original's own error a right candidate's may differ by: an error of rounding has no steady size."""
_MOST_FILES = 120
_MOST_BYTES = 2**20
_LIFT = 3
"""How many folders the repository's root may move up to take in what the build names."""
_LONG_RUN_S = 5.0
"""A trial run beyond this gets a note: a proof makes 20 to 128 such runs."""


@dataclass(frozen=True)
class TaskDraft:
    """A task file to be: what `render` writes. `notes` say what a person should look at."""

    name: str
    language: str
    root: Path
    workdir: str
    siblings: tuple[str, ...]
    file: str
    regions: tuple[RegionDraft, ...]
    building: Building
    time: TimeDraft | None
    """None where no printed time was found: the wall time is taken."""
    other_times: tuple[TimeDraft, ...]
    checks: tuple[CheckDraft, ...]
    libraries: tuple[str, ...]
    notes: tuple[str, ...]
    proven: str | None = None
    """What a real run said, where there was one."""
    timeout_s: float = 120.0
    """For each run."""
    flags: tuple[str, ...] = ()
    """Compile arguments of the baseline."""
    files: tuple[FileDraft, ...] = ()
    """What the program writes."""

    def inside(self, path: str) -> str:
        """A path relative to the working folder, relative to the repository's root."""
        return os.path.normpath(f"{self.workdir}/{path}")


def language_of(data: bytes, suffix: str, beside: Iterable[bytes] = ()) -> str:
    """A task's language from a file's name and content; `beside` are the build description's texts."""
    hip = b"hip/hip_runtime" in data or suffix == ".hip" or any(b"hipcc" in text for text in beside)
    if suffix in (".cu", ".cuh", ".hip") or b"__global__" in data:
        return "hip" if hip else "cuda"
    return "cpp"


async def draft(
    repo: Path, file: str, kernel: str | None = None, *, run: Exec | None = None, have: Have = shutil.which
) -> TaskDraft:
    """Draft a task for `kernel` in `file` (relative to `repo`) by reading alone, and by `make -n` where `run` is given.

    `run` gets working folders relative to the repository's root; it must be the sandbox, since make runs parts of a
    Makefile even when it is only asked. Raises UsageError for a file or kernel that is not there or not clear.
    """
    repo = repo.resolve()
    path = _existing(repo, file)
    data = path.read_bytes()
    language = language_of(data, path.suffix, _build_texts(path.parent))
    regions = choose(data, file, language, kernel)
    building = await read_building(path, repo, language, b"omp" in data or _uses_openmp(path.parent), have, run)
    return compose(repo, path, language, regions, building)


def _existing(repo: Path, file: str) -> Path:
    path = repo / file
    if path.is_file() and path.resolve().is_relative_to(repo):
        return path
    folder = next((up for up in path.parents if up.is_dir() and up.is_relative_to(repo)), repo)
    names = sorted(one.name for one in folder.iterdir() if one.suffix in SOURCE_SUFFIXES)
    near = difflib.get_close_matches(path.name, names, 3, 0.4) or names[:6]
    raise UsageError(f"there is no file {file} in {repo}", "a source file inside the repository, relative to its root",
                     f"one of {', '.join(near)}" if near else "check the spelling")  # fmt: skip


def _build_texts(folder: Path) -> list[bytes]:
    return [path.read_bytes() for name in ("Makefile", "makefile", "GNUmakefile") if (path := folder / name).is_file()]


def _uses_openmp(folder: Path) -> bool:
    return any(b"#pragma omp" in path.read_bytes() for path in _source_files(folder))


def _source_files(folder: Path) -> list[Path]:
    """Sources below `folder`, those in the folder itself first."""
    found = [path for path in sorted(folder.rglob("*"), key=lambda path: (len(path.parts), path))
             if path.suffix in SOURCE_SUFFIXES and path.is_file() and not path.is_symlink()
             and path.stat().st_size <= _MOST_BYTES]  # fmt: skip
    return found[:_MOST_FILES]


@dataclass(frozen=True)
class Sources:
    """What the sources of one build say, read once for all drafts of it."""

    root: Path
    workdir: str
    folders: frozenset[Path]
    """Outside the build's folder, with what the build needs."""
    lines: tuple[Line, ...]
    texts: tuple[Text, ...]
    calls: Mapping[str, tuple[tuple[str, str, int], ...]]
    """By a function's name, the (file, function, line) of every place that launches or calls it."""
    libraries: tuple[str, ...]
    missing: tuple[str, ...]
    written: tuple[FileDraft, ...]


def compose(repo: Path, path: Path, language: str, regions: Sequence[RegionDraft], building: Building) -> TaskDraft:
    """The draft from regions and build, with what the sources in the build's folder print."""
    files = _source_files(building.folder)
    texts = {file: file.read_bytes() for file in (*files, *([] if path in files else [path]))}
    return composed(read_sources(repo, building, language, texts), path, language, regions, building)


def read_sources(repo: Path, building: Building, language: str, given: Mapping[Path, bytes]) -> Sources:
    """Read the files `given` with their texts, and those outside the build's folder that the build names."""
    outside, missing = _outside(building, given)
    root = _lifted(repo, [building.folder, *outside])
    inside = [one for one in outside if one.is_relative_to(root)]
    missing += [str(one) for one in outside if one not in inside]
    more = {one: one.read_bytes() for one in inside if one.is_file() and one.suffix in SOURCE_SUFFIXES}
    data = {**more, **given}
    lines, texts = _printed(data, root, language)
    folders = {one if one.is_dir() else one.parent for one in (*inside, *given)}
    return Sources(
        root, building.folder.relative_to(root).as_posix(), frozenset(folders), tuple(lines), tuple(texts),
        _calls({path.relative_to(root).as_posix(): text for path, text in data.items()}),
        (*building.libraries, *(["openmp"] if building.openmp else []), *_included(data.values())),
        tuple(dict.fromkeys(missing)),
        tuple(find_written({path.relative_to(root).as_posix(): text for path, text in data.items()})),
    )  # fmt: skip


def composed(
    sources: Sources, path: Path, language: str, regions: Sequence[RegionDraft], building: Building
) -> TaskDraft:
    """The draft of one task out of what was read for all of its build."""
    root, kernels = sources.root, [region.kernel or region.name for region in regions]
    launches = _launches(sources, kernels)
    times = find_times(sources.lines, kernels, language, launches)
    if len(regions) > 1:
        each = [find_times(sources.lines, [kernel], language, _launches(sources, [kernel])) for kernel in kernels]
        summed = together([found[0] for found in each if found])
        times = times if summed is None else [summed, *times]
    checks = _checks(sources.lines, sources.texts, times, building.defines, launches)
    files = _files(sources, building, checks)
    return TaskDraft(
        name=_name(building.folder, path, regions), language=language, root=root, workdir=sources.workdir,
        siblings=_folders(sources.folders, building.folder, root), file=path.relative_to(root).as_posix(),
        regions=tuple(regions), building=building, time=times[0] if times else None,
        other_times=tuple(times[1:8]), checks=tuple(checks), libraries=tuple(dict.fromkeys(sources.libraries)),
        notes=(*_notes(building, sources.missing, times, checks, files), *_unnamed(files)), files=tuple(files),
    )  # fmt: skip


def _name(folder: Path, path: Path, regions: Sequence[RegionDraft]) -> str:
    words = f"{folder.name} {regions[0].kernel or regions[0].name if len(regions) == 1 else path.stem}"
    return re.sub(r"[^\w.-]+", "-", words).strip("-.")[:80] or "task"


def _outside(building: Building, sources: Mapping[Path, bytes]) -> tuple[list[Path], list[str]]:
    """Paths outside the build's folder that build, sources or runs name: those that exist, and those that do not."""
    named: dict[Path, str] = {}
    for text in building.mentioned:
        named[(building.folder / text).resolve()] = text
    for source, data in sources.items():
        for include in re.findall(rb'#\s*include\s*"((?:\.\./)[^"]+)"', data):
            text = include.decode(errors="replace")
            named.setdefault((source.parent / text).resolve(), text)
    for run in building.runs:
        for word in run.command.split():
            if "../" in word or re.search(
                r"\w\.(?:txt|dat|bin|csv|in|inp|png|bmp|ppm|pgm|jpg|mtx|gr|egr|json|h5)$", word
            ):
                named.setdefault((building.folder / word).resolve(), word)
    far = [path for path in named if not path.is_relative_to(building.folder)]
    existing = [path for path in far if path.exists() and not building.folder.is_relative_to(path)]
    missing = [text for path, text in named.items() if not path.exists() and not re.search(r"\.o$|\.a$|[$%*]", text)]
    return existing, missing


def _lifted(repo: Path, paths: Sequence[Path]) -> Path:
    """The repository's root, moved up by a few folders where the build reaches out of it."""
    root = repo
    for _ in range(_LIFT):
        if all(path.is_relative_to(root) for path in paths) or root.parent in (root, Path.home(), Path("/")):
            return root
        root = root.parent
    return root if all(path.is_relative_to(root) for path in paths) else repo


def _folders(folders: Iterable[Path], workdir: Path, root: Path) -> tuple[str, ...]:
    """What has to be copied beside the working folder, no folder inside another."""
    apart = [one for one in folders if not one.is_relative_to(workdir) and one.is_relative_to(root)]
    outer = [one for one in apart if not any(one != other and one.is_relative_to(other) for other in apart)]
    return tuple(sorted({one.relative_to(root).as_posix() for one in outer}))


def _printed(sources: Mapping[Path, bytes], root: Path, language: str) -> tuple[list[Line], list[Text]]:
    lines: list[Line] = []
    texts: list[Text] = []
    for source, data in sources.items():
        kind = language if source.suffix not in (".cu", ".cuh") or language != "cpp" else "cuda"
        more = read_prints(data, source.relative_to(root).as_posix(), kind)
        lines += more[0]
        texts += more[1]
    return lines, texts


_CALLERS = 3
"""How many calls may lie between a kernel's launch and the function that times it."""


def _launches(sources: Sources, kernels: Sequence[str]) -> list[tuple[str, str, int]]:
    """(file, function, line) of every place that launches or calls one of `kernels`, or a function that does."""
    found: list[tuple[str, str, int]] = []
    names, known = list(kernels), set(kernels)
    for _ in range(_CALLERS):
        places = [place for name in names for place in sources.calls.get(name, ())]
        found += places
        names = [name for name in dict.fromkeys(name for _, name, _ in places) if name not in known and name != "main"]
        known.update(names)
    return found


_CALLED = re.compile(rb"\b([A-Za-z_]\w*)\s*(?:<|[(,>])")


def _calls(texts: Mapping[str, bytes]) -> dict[str, tuple[tuple[str, str, int], ...]]:
    functions = {file: find_functions(text, "cuda") for file, text in texts.items()}
    names = {one.name.encode() for found in functions.values() for one in found}
    names |= {name for text in texts.values() for name in re.findall(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", text, re.M)}
    calls: dict[str, list[tuple[str, str, int]]] = {}
    for file, text in texts.items():
        bodies = sorted((one.body_start, one.end, one.name) for one in functions[file])
        starts = [start for start, _, _ in bodies]
        lines = [found.start() for found in re.finditer(b"\n", text)]
        for found in _CALLED.finditer(text):
            if found[1] not in names:
                continue
            at = bisect_right(starts, found.start()) - 1
            while at >= 0 and bodies[at][1] <= found.start():
                at -= 1
            if at >= 0:
                place = (file, bodies[at][2], bisect_right(lines, found.start()) + 1)
                calls.setdefault(found[1].decode(), []).append(place)
    return {name: tuple(places) for name, places in calls.items()}


def _checks(
    lines: Sequence[Line],
    texts: Sequence[Text],
    times: Sequence[TimeDraft],
    defines: frozenset[str],
    launches: Sequence[tuple[str, str, int]],
) -> list[CheckDraft]:
    live_lines = [replace(line, guard=None) if line.guard in defines else line for line in lines]
    live_texts = [replace(text, guard=None) if text.guard in defines else text for text in texts]
    verdicts = find_verdicts(live_texts)
    sure = any(check.kind == "require" and check.active for check in verdicts)
    return [*verdicts, *find_numbers(live_lines, times, sure, launches)]


def _included(texts: Iterable[bytes]) -> list[str]:
    found = {b"mpi.h": "mpi", b"gsl/": "gsl", b"boost/": "boost", b"tbb/": "tbb", b"opencv2/": "opencv", b"nccl.h": "nccl",
             b"nvshmem": "nvshmem", b"cudnn": "cudnn"}  # fmt: skip
    text = b"".join(re.findall(rb"#\s*include\s*[<\"][^>\"\n]*[>\"]", b"\n".join(texts)))
    return [name for header, name in found.items() if header in text]


GUESSED_RUN = "The command that runs the program is a guess."


def _notes(
    building: Building, missing: Sequence[str], times: Sequence[TimeDraft], checks: Sequence[CheckDraft],
    files: Sequence[FileDraft],
) -> list[str]:  # fmt: skip
    notes = []
    if missing:
        notes.append(f"These paths are named and not there: {', '.join(dict.fromkeys(missing))}.")
    if not times:
        notes.append("No printed time was recognised: the wall time of the whole process is taken.")
    if not any(check.active and check.kind != "forbid" for check in checks) and not any(file.active for file in files):
        notes.append(
            "Nothing that the program prints tells a right result from a wrong one: add an output file or a number."
        )
    if not building.runs:
        notes.append(GUESSED_RUN)
    return notes


def _files(sources: Sources, building: Building, checks: Sequence[CheckDraft]) -> list[FileDraft]:
    """The files that the program writes and that the repository does not hold itself."""
    command = building.runs[0].command if building.runs else ""
    files = placed(sources.written, command, is_sure(checks))
    return [file for file in files if file.path is None or not (building.folder / file.path).exists()]


def is_sure(checks: Sequence[CheckDraft]) -> bool:
    """Whether the program itself tells a right result from a wrong one."""
    return any(check.kind == "require" and check.active for check in checks)


def _unnamed(files: Sequence[FileDraft]) -> list[str]:
    """A note for each file whose name only the program knows: a file's content is the strongest evidence."""
    notes = [f"{file.where} writes the file {file.expression}: where it holds results, name it among the outputs of a run and"
             ' add a check of kind "file".' for file in files if file.path is None]  # fmt: skip
    return notes[:3]


def adapt(
    task: TaskDraft, exit_code: int | None, output: str, wall_s: float | None = None,
    files: Mapping[str, bytes | None] | None = None,
) -> TaskDraft:  # fmt: skip
    """The draft corrected by what the program really printed and wrote (`files`, by repository path; None where that is not
    known); unchanged but for a note where it did not end well."""
    said = f"exit code {exit_code}" if exit_code is not None else "a signal or its time limit"
    took = f" after {wall_s:.3g} s" if wall_s is not None else ""
    if exit_code != 0:
        note = f"The unmodified program ended with {said}{took} in a trial run: choose arguments with which it ends with 0."
        return replace(task, notes=(note, *task.notes))
    times = [time for time in (task.time, *task.other_times) if time is not None and _numbers(time.pattern, output)]
    notes = [note for note in task.notes if "printed time" not in note]
    if not times:
        notes.append("No printed time was found in a trial run: the wall time of the whole process is taken.")
    if any(check.kind == "forbid" and check.active and _is_printed(check, output) for check in task.checks):
        notes.insert(0, "The unmodified program calls its own result wrong in a trial run: choose other arguments.")
    if wall_s is not None and wall_s > _LONG_RUN_S:
        notes.insert(0, f"A trial run took {wall_s:.0f} s: a proof makes tens of them, so choose smaller arguments.")
    return replace(
        task, time=_counted(times[0], output) if times else None, other_times=tuple(times[1:]),
        checks=tuple(_adapted(check, output) for check in task.checks), notes=tuple(notes),
        proven=f"{said}{took}, {len(output.splitlines())} lines of output",
        files=task.files if files is None else tuple(_seen(task, file, files) for file in task.files),
    )  # fmt: skip


def _seen(task: TaskDraft, file: FileDraft, files: Mapping[str, bytes | None]) -> FileDraft:
    return file if file.path is None else seen(file, files.get(task.inside(file.path)))


def _is_printed(check: CheckDraft, output: str) -> bool:
    return re.search(check.pattern, output, re.MULTILINE) is not None


def _counted(time: TimeDraft, output: str) -> TimeDraft:
    """The time with the aggregate that fits how often it was printed."""
    count = len(_numbers(time.pattern, output))
    several = "sum" if time.better == "lower" else "mean"
    return replace(time, aggregate=several if count > 1 else "last", where=f"{time.where}, {count} in a trial run")


def _numbers(pattern: str, output: str) -> list[float]:
    found = []
    for match in re.finditer(pattern, output, re.MULTILINE):
        try:
            found.append(float(match[1]))
        except ValueError:
            continue
    return found


def _adapted(check: CheckDraft, output: str) -> CheckDraft:
    printed = _is_printed(check, output)
    if check.kind == "require":
        note = check.note if printed else f"{check.note}; not printed in a trial run"
        return replace(check, active=printed, note=note)
    if check.kind == "forbid":
        note = f"{check.note}; but printed by the unmodified program" if printed else check.note
        return replace(check, active=check.active and not printed, note=note)
    values = _numbers(check.pattern, output)
    if not values:
        return replace(check, active=False, note=f"{check.note}; not printed in a trial run")
    aggregate = check.aggregate or ("sum" if len(values) > 1 else None)
    if check.abs:
        scale = ERRORS_APART * max(abs(value) for value in values)
        return replace(check, abs=float(f"{max(scale, 1e-12):.0e}"), aggregate=aggregate,
                       note=f"{check.note}; {values[0]:g} in a trial run")  # fmt: skip
    return replace(check, aggregate=aggregate)


def relative(target: Path, start: Path) -> str:
    """`target` as seen from the folder `start`, with forward slashes."""
    return Path(os.path.relpath(target, start)).as_posix()
