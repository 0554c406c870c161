"""A first task, put together from what the sources and the build description say, and corrected by a real run."""

from __future__ import annotations

import difflib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright.errors import UsageError
from kernelwright.init.building import Building, Have, read_building
from kernelwright.init.meaning import CheckDraft, TimeDraft, find_numbers, find_times, find_verdicts
from kernelwright.init.prints import Line, Text, read_prints
from kernelwright.init.regions import RegionDraft, choose
from kernelwright.source import SOURCE_SUFFIXES, find_functions
from kernelwright.toolchain import Exec

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


def compose(repo: Path, path: Path, language: str, regions: Sequence[RegionDraft], building: Building) -> TaskDraft:
    """The draft from regions and build, with what the sources in the build's folder print."""
    sources = _source_files(building.folder)
    if path not in sources:
        sources.append(path)
    outside, missing = _outside(building, sources)
    root = _lifted(repo, [building.folder, *outside])
    inside = [one for one in outside if one.is_relative_to(root)]
    missing += [str(one) for one in outside if one not in inside]
    sources += [one for one in inside if one.is_file() and one.suffix in SOURCE_SUFFIXES]
    lines, texts = _printed(sources, root, language)
    kernels = [region.kernel for region in regions if region.kernel]
    times = find_times(lines, kernels, language, _launches(sources, root, kernels))
    defined = building.defines
    checks = _checks(lines, texts, times, defined)
    workdir = building.folder.relative_to(root).as_posix()
    folders = {one if one.is_dir() else one.parent for one in inside} | {path.parent}
    libraries = (*building.libraries, *(["openmp"] if building.openmp else []), *_included(sources))
    return TaskDraft(
        name=_name(building.folder, path, regions), language=language, root=root, workdir=workdir,
        siblings=_folders(folders, building.folder, root), file=path.relative_to(root).as_posix(),
        regions=tuple(regions), building=building, time=times[0] if times else None,
        other_times=tuple(times[1:8]), checks=tuple(checks), libraries=tuple(dict.fromkeys(libraries)),
        notes=(*_notes(building, missing, times, checks), *_written(sources, root)),
    )  # fmt: skip


def _name(folder: Path, path: Path, regions: Sequence[RegionDraft]) -> str:
    words = f"{folder.name} {regions[0].kernel or regions[0].name if len(regions) == 1 else path.stem}"
    return re.sub(r"[^\w.-]+", "-", words).strip("-.")[:80] or "task"


def _outside(building: Building, sources: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Paths outside the build's folder that build, sources or runs name: those that exist, and those that do not."""
    named: dict[Path, str] = {}
    for text in building.mentioned:
        named[(building.folder / text).resolve()] = text
    for source in sources:
        for include in re.findall(rb'#\s*include\s*"((?:\.\./)[^"]+)"', source.read_bytes()):
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


def _printed(sources: Sequence[Path], root: Path, language: str) -> tuple[list[Line], list[Text]]:
    lines: list[Line] = []
    texts: list[Text] = []
    for source in dict.fromkeys(sources):
        kind = language if source.suffix not in (".cu", ".cuh") or language != "cpp" else "cuda"
        more = read_prints(source.read_bytes(), source.relative_to(root).as_posix(), kind)
        lines += more[0]
        texts += more[1]
    return lines, texts


def _launches(sources: Sequence[Path], root: Path, kernels: Sequence[str]) -> list[tuple[str, str, int]]:
    """(file, function, line) of every place that launches or calls one of `kernels`."""
    found = []
    for source in sources:
        data = source.read_bytes()
        functions = find_functions(data, "cuda")
        for kernel in kernels:
            for match in re.finditer(rb"\b%s\s*(?:<|\()" % re.escape(kernel.encode()), data):
                inside = next((one for one in functions if one.body_start <= match.start() < one.end), None)
                if inside is not None:
                    line = data.count(b"\n", 0, match.start()) + 1
                    found.append((source.relative_to(root).as_posix(), inside.name, line))
    return found


def _checks(
    lines: Sequence[Line], texts: Sequence[Text], times: Sequence[TimeDraft], defines: frozenset[str]
) -> list[CheckDraft]:
    live_lines = [replace(line, guard=None) if line.guard in defines else line for line in lines]
    live_texts = [replace(text, guard=None) if text.guard in defines else text for text in texts]
    verdicts = find_verdicts(live_texts)
    sure = any(check.kind == "require" and check.active for check in verdicts)
    return [*verdicts, *find_numbers(live_lines, times, only_sums=sure)]


def _included(sources: Sequence[Path]) -> list[str]:
    found = {b"mpi.h": "mpi", b"gsl/": "gsl", b"boost/": "boost", b"tbb/": "tbb", b"opencv2/": "opencv", b"nccl.h": "nccl",
             b"nvshmem": "nvshmem", b"cudnn": "cudnn"}  # fmt: skip
    text = b"".join(re.findall(rb"#\s*include\s*[<\"][^>\"\n]*[>\"]", b"\n".join(one.read_bytes() for one in sources)))
    return [name for header, name in found.items() if header in text]


def _notes(
    building: Building, missing: Sequence[str], times: Sequence[TimeDraft], checks: Sequence[CheckDraft]
) -> list[str]:
    notes = []
    if missing:
        notes.append(f"These paths are named and not there: {', '.join(dict.fromkeys(missing))}.")
    if not times:
        notes.append("No printed time was recognised: the wall time of the whole process is taken.")
    if not any(check.active and check.kind != "forbid" for check in checks):
        notes.append(
            "Nothing that the program prints tells a right result from a wrong one: add an output file or a number."
        )
    if not building.runs:
        notes.append("The command that runs the program is a guess.")
    return notes


def _written(sources: Sequence[Path], root: Path) -> list[str]:
    """A note for each place where a source opens a file to write: a file's content is the strongest evidence."""
    notes = []
    for source in sources:
        data = source.read_bytes()
        for found in re.finditer(
            rb'\bfopen\s*\(\s*([^,;]{1,60}),\s*"w|\bofstream\s+\w+\s*[({]\s*([^,;)}]{1,60})'
            rb'|\.open\s*\(\s*("[^"]{1,60}"),[^;]{0,60}\bios(?:_base)?::(?:out|app|trunc)',
            data,
        ):
            line = data.count(b"\n", 0, found.start()) + 1
            name = (found[1] or found[2] or found[3]).decode(errors="replace").strip()
            notes.append(f"{source.relative_to(root).as_posix()}:{line} writes the file {name}: where it holds results, name"
                         ' it among the outputs of a run and add a check of kind "file".')  # fmt: skip
    return notes[:3]


def adapt(task: TaskDraft, exit_code: int | None, output: str, wall_s: float | None = None) -> TaskDraft:
    """The draft corrected by what the program really printed; unchanged but for a note where it did not end well."""
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
    )  # fmt: skip


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
        scale = max(abs(value) for value in values)
        return replace(check, abs=float(f"{max(scale, 1e-12):.0e}"), aggregate=aggregate,
                       note=f"{check.note}; {values[0]:g} in a trial run")  # fmt: skip
    return replace(check, aggregate=aggregate)


def relative(target: Path, start: Path) -> str:
    """`target` as seen from the folder `start`, with forward slashes."""
    return Path(os.path.relpath(target, start)).as_posix()
