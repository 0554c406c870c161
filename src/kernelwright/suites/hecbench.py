"""HeCBench: each kernel of a benchmark becomes a task, and all kernels of it together another one.

A checkout holds src/NAME-cuda, -hip and -omp, each with a Makefile whose `run` target has the arguments, and
benchmarks.yaml, whose regular expressions hint at the printed time. What is compiled, printed, timed and checked is read by
`kernelwright.init`, which knows nothing of the suite; here is what this suite's conventions add.
"""

from __future__ import annotations

import difflib
import re
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from kernelwright.errors import UsageError
from kernelwright.init import TaskDraft
from kernelwright.init.building import Building, read_building
from kernelwright.init.makefile import MAKEFILES
from kernelwright.init.prints import NUMBER
from kernelwright.init.runs import RunDraft
from kernelwright.init.times import TimeDraft
from kernelwright.sandbox import Sandbox
from kernelwright.suites import Benchmark, Origin, file_name, licence_of, revision_of
from kernelwright.suites.drafting import NoTask, Plan, drafts_of, plan, tried_once, write_tasks
from kernelwright.trial import Progress

Language = Literal["cuda", "hip", "cpp"]
FOLDERS = {"cuda": "cuda", "hip": "hip", "cpp": "omp"}
"""How a benchmark's folder ends, by a task's language."""
METADATA = "benchmarks.yaml"
DATA_FILE = re.compile(
    r"[\w./+-]*\w\.(?:txt|dat|data|bin|csv|in|png|bmp|ppm|pgm|jpe?g|mtx|gr|egr|json|h5|raw|yuv|xyz|sdf|fasta|fastq|fa|ply|tiff?|"
    r"params|nii|flt|grd|inp|f32|hdr|tsp|seq)(?:\.gz)?(?![\w.])|\w*[A-Za-z]\w*(?:\.[\w-]+){3,}|(?<![\w./+-])[\w.+-]*/[\w./+-]*\w\.[A-Za-z]\w{1,7}(?![\w./])"
)
WRITTEN = re.compile(r"(?<![a-z])(?:out|output|result|dump|denoised)", re.I)
"""Names of files that a run writes."""
TOOLKIT = {
    "cublas", "cublasLt", "cusparse", "curand", "cufft", "cusolver", "nvrtc", "nvToolsExt", "nvtx3", "cupti", "nppc", "nppif",
    "nppig", "nppicc", "nppidei", "nppist", "nvjpeg", "culibos", "cudadevrt", "cudart_static", "nvidia-ml", "cuda",
    "nvJitLink", "hipblas", "hipblaslt", "rocblas", "hipsparse", "rocsparse", "hiprand", "rocrand", "hipfft", "rocfft",
    "hipsolver", "rocsolver", "amdhip64", "hiprtc", "openmp", "pthread", "stdc++fs",
}  # fmt: skip
"""Libraries that come with a vendor's toolkit or the compiler."""


@dataclass(frozen=True)
class Metadata:
    """What benchmarks.yaml says of one benchmark's test."""

    regex: str | None
    args: tuple[str, ...]


@dataclass(frozen=True)
class HecBench:
    """The checkout's benchmarks in one language; `cpp` are the OpenMP ones, for the processor."""

    checkout: Path
    language: Language
    pairs: bool = False
    """Whether every two kernels of a benchmark are a task too."""
    run_limit_s: float = 60.0
    """A benchmark whose first run lasts longer gives no task."""
    seconds: float = 1.0
    """What a run is made to take, about, by fewer repetitions where it takes more; 0 leaves the suite's own arguments."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """Arguments of the user's own, by benchmark, in place of the suite's; where there are any, only these are made."""

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.arguments) - set(self._all_names())):
            near = difflib.get_close_matches(unknown[0], self._all_names(), 4, 0.4)
            raise UsageError(
                f"{self.checkout} has no benchmark {unknown[0]!r}, which arguments are given for",
                f"names of folders src/NAME-{FOLDERS[self.language]}",
                f"one of {', '.join(near)}" if near else "ls, to see their names",
            )
        if not self.names():
            raise UsageError(
                f"{self.checkout} is no checkout of HeCBench with {FOLDERS[self.language]} benchmarks",
                f"folders src/NAME-{FOLDERS[self.language]} in it",
                "the top folder of a clone of zjin-lcf/HeCBench",
            )

    @property
    def root(self) -> Path:
        return self.checkout.resolve() / "src"

    @cached_property
    def origin(self) -> Origin:
        return Origin("hecbench", self.language, revision_of(self.checkout), licence_of(self.checkout))

    @cached_property
    def metadata(self) -> dict[str, Metadata]:
        path = self.checkout / METADATA
        return read_metadata(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else {}

    def names(self) -> list[str]:
        return sorted(self.arguments) or self._all_names()

    def _all_names(self) -> list[str]:
        ending = f"-{FOLDERS[self.language]}"
        return sorted(path.name.removesuffix(ending) for path in self.root.glob(f"*{ending}") if path.is_dir())

    async def make(self, name: str, out: Path, sandbox: Sandbox | None, progress: Progress) -> Benchmark:
        """As `suites.Importer` says."""
        for stale in out.glob(file_name(name).removesuffix("toml") + "*.toml"):
            stale.unlink()
        notes: tuple[str, ...] = ()
        try:
            read, lacks = await self._read(name)
            notes = read.notes
            regex = self.metadata[name].regex if name in self.metadata else None
            drafts, ran = {label: _timed(draft, regex) for label, draft in drafts_of(read).items()}, False
            if sandbox is not None and not lacks:
                drafts, ran = await tried_once(drafts, sandbox, self.run_limit_s, self.seconds, progress)
            return replace(write_tasks(name, drafts, out, notes, ran), lacks=lacks)
        except NoTask as reason:
            return Benchmark(name, (), str(reason), reason.notes or notes)

    async def _read(self, name: str) -> tuple[Plan, tuple[str, ...]]:
        """What is read of a benchmark, and the files that its run needs and the checkout does not have."""
        folder = self.root / f"{name}-{FOLDERS[self.language]}"
        found = [path for below in (folder, *sorted(folder.glob("*/"))) for makefile in MAKEFILES
                 if (path := below / makefile).is_file()]  # fmt: skip
        if not found:
            raise NoTask(f"{folder.name} has no Makefile")
        building = await read_building(found[0], self.root, self.language, self.language == "cpp", shutil.which, None)
        building = _with_arguments(building, self.arguments.get(name))
        building, lacks = _with_runs(building, self.metadata.get(name))
        read = plan(name, self.root, self.language, building, self.pairs)
        return replace(read, notes=(*_libraries(read), *read.notes)), lacks


def _timed(draft: TaskDraft, regex: str | None) -> TaskDraft:
    """The draft with the metadata's pattern where no printed time was recognised; elsewhere its own is better."""
    found = re.fullmatch(r"(.*?)\(\[[^\]]+\]\+\)(.*)", regex) if regex is not None and draft.time is None else None
    unit = re.search(r"(?<![a-z])([num]?s|msec|usec|seconds)(?![a-z/])", found[2]) if found is not None else None
    if found is None or unit is None:
        return draft
    time = TimeDraft(f"{found[1]}{NUMBER}{found[2]}", unit[1], "sum", "lower", METADATA, 0.0)
    return replace(draft, time=time, notes=tuple(note for note in draft.notes if "printed time" not in note))


def read_arguments(path: Path) -> dict[str, str]:
    """A TOML file of the user's with `BENCHMARK = "arguments"` on each line. Raises UsageError."""
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "a TOML file", 'lines like nbody = "4000 3"') from None
    for name, arguments in read.items():
        if not isinstance(arguments, str) or not _splits(arguments):
            raise UsageError(f"{path}: {name} is {arguments!r}", "arguments as one string", f'{name} = "4000 3"')
    return read


def _splits(arguments: str) -> bool:
    try:
        shlex.split(arguments)
    except ValueError:
        return False
    return True


def _with_arguments(building: Building, arguments: str | None) -> Building:
    """The building with one run, of the user's arguments."""
    if arguments is None:
        return building
    env = building.runs[0].env if building.runs else {}
    return replace(building, runs=(RunDraft("first", f"./{building.artifact} {arguments}".strip(), env),))


def _with_runs(building: Building, metadata: Metadata | None) -> tuple[Building, tuple[str, ...]]:
    """The building with the runs whose files are there, else with all of them and what they lack; the metadata's arguments
    where the Makefile has none."""
    runs = building.runs
    if not runs and metadata is not None and metadata.args:
        runs = (RunDraft("first", shlex.join([f"./{building.artifact}", *metadata.args]), note=f"by {METADATA}"),)
    if not runs:
        also = next((note for note in building.notes if "run target" in note), "")
        raise NoTask(" ".join(("neither the Makefile nor the metadata says how it is run.", also)).strip())
    missing = {run.name: gone for run in runs if (gone := _missing(building.folder, run))}
    there = [run for run in runs if run.name not in missing]
    lacks = () if there and there[0].note != "another program" else tuple(dict.fromkeys(missing.values()))
    first, *others = runs if lacks else there
    return replace(building, runs=(replace(first, name="first", role="shown", active=True), *others)), lacks


def _missing(folder: Path, run: RunDraft) -> str | None:
    """The first data file that a run names and that is not there."""
    before = ""
    for word in shlex.split(run.command):
        option, before = before, word
        if re.fullmatch(r"--?o(?:ut(?:put)?(?:-?file)?)?", option):
            continue
        if word.startswith("--chdir="):
            folder /= word.removeprefix("--chdir=")
        for path in DATA_FILE.findall(word):
            if not (folder / path).exists() and not WRITTEN.search(Path(path).name):
                return str(path)
    return None


def _libraries(read: Plan) -> list[str]:
    others = [name for name in read.sources.libraries if name not in TOOLKIT]
    return [f"It needs {', '.join(others)}, which no toolkit has."] if others else []


_ENTRY = re.compile(r"^([\w.+-]+):\s*$(.*?)(?=^\S|\Z)", re.MULTILINE | re.S)


def read_metadata(text: str) -> dict[str, Metadata]:
    """The entries of benchmarks.yaml that have a test, by name: one key to a line, lists and strings within it."""
    found = {}
    for name, body in _ENTRY.findall(text):
        regex = re.search(r"^\s+regex:\s*'((?:[^']|'')*)'\s*$", body, re.MULTILINE)
        args = re.search(r"^\s+args:\s*\[(.*)\]\s*$", body, re.MULTILINE)
        if regex or args:
            given = tuple(re.findall(r'"([^"]*)"', args[1])) if args else ()
            found[name] = Metadata(regex[1].replace("''", "'") if regex else None, given)
    return found
