"""How the program is built and run, as the Makefile or CMakeLists.txt nearest to the region's file says."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernelwright.init import cmake
from kernelwright.init.calling import assignments, build_command, overriding
from kernelwright.init.flags import Have, fitted, libraries
from kernelwright.init.makefile import MAKEFILES, RUN_TARGETS, Makefile, Rule, read_makefile
from kernelwright.init.programs import programs_of
from kernelwright.init.runs import NO_RUN, RunDraft, read_runs
from kernelwright.toolchain import Exec

_BESIDE = ("build", "make", "Build")
"""Folders beside or above the sources in which a Makefile for them may lie."""


@dataclass(frozen=True)
class Building:
    """Commands and what was learned on the way. `folder` is where they run; notes are for a person to read."""

    folder: Path
    command: str
    artifact: str
    """Relative to `folder`."""
    runs: tuple[RunDraft, ...]
    source: str
    """The file that all this was read from, and how."""
    described: Path | None = None
    """The Makefile or CMakeLists.txt; without one it is a single compiler call."""
    named: tuple[Path, ...] = ()
    """The sources of its program, where the description lists them."""
    configure: str | None = None
    arch: str | None = None
    defines: frozenset[str] = frozenset()
    includes: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    """Paths with `..` that the build names, relative to `folder`."""
    libraries: tuple[str, ...] = ()
    openmp: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """A file that says how a program is built, and the folder in which make or cmake is started."""

    path: Path
    folder: Path

    @property
    def options(self) -> list[str]:
        """What make needs to be told to find it."""
        name = os.path.relpath(self.path, self.folder)
        return [] if name in MAKEFILES else ["-f", name]


def description_of(file: Path, root: Path) -> Description | None:
    """The build description nearest to `file`, no higher than `root`: a Makefile or CMakeLists.txt in a folder above it,
    a Makefile of another name there, or one in a folder `build` beside it that names the file."""
    for folder in file.parents:
        found = next((folder / name for name in MAKEFILES if (folder / name).is_file()), None)
        wraps = found is not None and (folder / cmake.LISTS).is_file() and re.search(r"\bcmake\b", _read(found))
        if found is not None and not wraps:
            return Description(found, folder)
        if (folder / cmake.LISTS).is_file() and (project := cmake.project_above(file, root)) is not None:
            return Description(project / cmake.LISTS, project)
        for path in _other_makefiles(folder):
            if _word(file.name, _read(path)) or _word(f"{file.stem}.o", _read(path)):
                return Description(path, _starting_folder(path, file))
        if folder == root:
            return None
    return None


def _other_makefiles(folder: Path) -> list[Path]:
    """Makefiles of other names in a folder, and all in those beside it that are made for building."""
    own = [path for path in sorted(folder.glob("[Mm]akefile.*")) if path.suffix not in (".in", ".am", ".include")]
    beside = [
        path for up in (folder, folder.parent) for name in _BESIDE for path in sorted((up / name).glob("[Mm]akefile*"))
    ]
    return [path for path in (*own, *sorted(folder.glob("*.mk")), *beside) if path.is_file()]


def _word(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) is not None


def _starting_folder(path: Path, file: Path) -> Path:
    """Where make is to be started: beside the Makefile where its rules find their sources from there, else beside the
    sources."""
    made = read_makefile(path)
    needed = {
        need for rule in made.rules for need in made.expand(" ".join(rule.needs)).split() if need.endswith(file.suffix)
    }
    here = sum((path.parent / need).is_file() for need in needed)
    there = sum((file.parent / need).is_file() for need in needed)
    return file.parent if there > here else path.parent


async def read_building(file: Path, root: Path, language: str, openmp: bool, have: Have, run: Exec | None) -> Building:
    """Read the nearest build description above `file`, no higher than `root`; without one, a single compiler call."""
    found = description_of(file, root)
    if found is None:
        return _alone(file, language, openmp)
    if found.path.name == cmake.LISTS:
        return _from_cmake(found.folder, file, language, openmp)
    return await _from_makefile(found, file, root, language, openmp, have, run)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


async def _from_makefile(
    found: Description, file: Path, root: Path, language: str, openmp: bool, have: Have, run: Exec | None
) -> Building:
    path = found.path
    made = read_makefile(path, folder=found.folder)
    mpi = bool(have("mpicc")) and not made.undefined("MPI")
    overrides, notes = overriding(made, language, have)
    made = read_makefile(path, overrides, found.folder)
    rule = made.rule(*RUN_TARGETS)
    lines, how = (made.recipe(rule) if rule else []), f"{path.name}, read without running make"
    if run is not None and rule is not None:
        folder = found.folder.relative_to(root).as_posix()
        answered = await _asked(run, folder, made, rule, [*found.options, *assignments(overrides)])
        if answered is not None:
            lines, how = answered, f"{path.name}, by make -n"
    runs, run_notes = read_runs(lines, rule is not None)
    artifact, programs = _artifact(made, runs), programs_of(made, file)
    another = bool(programs) and artifact not in {os.path.normpath(program.target) for program in programs}
    if another:
        artifact = os.path.normpath(programs[0].target)
        runs, run_notes = [], [*run_notes, f"{NO_RUN} is for another program than {artifact}: fill in the command."]
    command, build_notes, use_openmp = build_command(made, found.options, overrides, language, artifact, openmp, mpi)
    command += f" {programs[0].target}" if another else ""
    plain = re.sub(r"(?m)(?<!\\)#.*$", "", made.text)
    recipes = " ".join(line for one in made.rules if one is not rule for line in made.recipe(one))
    text = f"{made.expand(plain)} {recipes}"
    flags = " ".join(made.value(name) for name in sorted(made.variables))
    mentioned = set(re.findall(r"(?:-I|-L)?((?:\.\./)+[\w./+-]+|\.\.(?=\s|$))", text))
    if not path.is_relative_to(found.folder):
        mentioned.add(os.path.relpath(path, found.folder))
    linked = f"{flags} {recipes}" if mpi else " ".join(fitted(f"{flags} {recipes}".split(), "", mpi))
    return Building(
        found.folder, command, artifact, tuple(runs), how, described=path,
        named=programs[0].sources if another else (),
        defines=frozenset(re.findall(r"-D(\w+)", flags if mpi else linked)),
        includes=tuple(dict.fromkeys(re.findall(r"-I\s*([\w./+-]+)", text))),
        mentioned=tuple(sorted(mentioned)), libraries=libraries(linked), openmp=use_openmp,
        notes=(*notes, *run_notes, *build_notes),
    )  # fmt: skip


async def _asked(run: Exec, folder: str, made: Makefile, rule: Rule, given: Sequence[str]) -> list[str] | None:
    """The run target's lines by `make -n`, or None where make would not say."""
    target = made.expand(rule.target).split()[0]
    result = await run(["make", "-n", "-B", "--no-print-directory", *given, target], folder)
    if result.exit_code != 0:
        return None
    printed = re.sub(r"\\\n", " ", result.stdout.decode(errors="replace")).strip().splitlines()
    lines = [re.sub(r"^[@+-]+\s*", "", " ".join(line.split())) for line in printed if not line.startswith("make")]
    return lines[-len(rule.recipe) :] or None


def _artifact(made: Makefile, runs: Sequence[RunDraft]) -> str:
    if runs:
        words = shlex.split(runs[0].command)
        inner = shlex.split(words[2]) if words[:2] == ["sh", "-c"] else words
        chdir = next((word.split("=", 1)[1] for word in inner if word.startswith("--chdir=")), "")
        if inner[:1] == ["cd"]:
            chdir = inner[1]
        program = next((word for word in inner if word.startswith(("./", "../")) or (word in made.expand(made.text).split()
                        and "/" in word)), None)  # fmt: skip
        if program is not None:
            return os.path.normpath(PurePosixPath(chdir) / program)
    for name in ("program", "PROGRAM", "TARGET", "target", "EXE", "EXEC", "BIN", "PROG", "APP", "EXECUTABLE", "BINARY"):
        if value := made.value(name):
            return value.split()[0]
    for rule in made.rules:
        target = (made.expand(rule.target).split() or [""])[0]
        if any("-o" in line for line in rule.recipe) and "%" not in target and not target.endswith((".o", ".a")):
            return target
    return "main"


def _from_cmake(folder: Path, file: Path, language: str, openmp: bool) -> Building:
    project = cmake.read_project(folder)
    programs = project.programs(file)
    artifact = project.artifact(programs[0]) if programs else "build/main"
    kind = {"cuda": "CUDA", "hip": "HIP"}.get(language, "CXX")
    words = ["cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_{kind}_FLAGS={{flags}}"]
    if language != "cpp":
        words.append(f"-DCMAKE_{kind}_ARCHITECTURES={'{arch_number}' if language == 'cuda' else '{arch}'}")
    target = f" --target {programs[0].name}" if programs else ""
    return Building(folder, f"cmake --build build -j{{jobs}}{target}", artifact, _cmake_runs(project, artifact, programs),
                    cmake.LISTS, described=folder / cmake.LISTS, configure=" ".join(words),
                    includes=tuple(sorted(os.path.relpath(path, folder) for path in project.includes if path.is_dir())),
                    named=tuple(sorted(project.sources(programs[0]))) if programs else (),
                    libraries=tuple(sorted(project.packages - {"cudatoolkit", "openmp", "cuda", "hip", "threads"})),
                    openmp=openmp and language == "cpp",
                    mentioned=tuple(sorted(set(re.findall(r"(?:\.\./)+[\w./+-]+", project.text)))),
                    notes=_cmake_notes(project, file, programs))  # fmt: skip


def _cmake_runs(project: cmake.Project, artifact: str, programs: Sequence[cmake.Target]) -> tuple[RunDraft, ...]:
    """The runs of the program's tests; without any, the program without arguments."""
    given = list(dict.fromkeys(project.arguments(programs[0]))) if programs else []
    if not given:
        return (RunDraft("first", f"./{artifact}", note="CMakeLists.txt does not say with which arguments: add them"),)
    names, roles = ("first", "second"), ("shown", "held_out")
    runs = zip(names, roles, given, strict=False)
    return tuple(RunDraft(name, shlex.join([f"./{artifact}", *words]), role=role) for name, role, words in runs)


def _cmake_notes(project: cmake.Project, file: Path, programs: Sequence[cmake.Target]) -> tuple[str, ...]:
    notes = []
    if re.search(
        r"(?i)set\s*\(\s*CMAKE_(?:CUDA|HIP)_ARCHITECTURES|PROPERTIES[^)]*\b(?:CUDA|HIP)_ARCHITECTURES", project.text
    ):
        notes.append("CMakeLists.txt sets the GPU's architecture itself, which nothing outside it can change.")
    if not programs:
        notes.append("No add_executable was found: the program's name is a guess.")
    elif file not in programs[0].sources:
        names = ", ".join(program.name for program in programs[:8])
        notes.append(f"No executable lists {file.name} itself; the first of these is taken: {names}.")
    return tuple(notes)


def _alone(file: Path, language: str, openmp: bool) -> Building:
    """No build description at all: one compiler call over the file."""
    name = re.sub(r"[^\w.-]", "_", file.stem)
    use_openmp = openmp and language == "cpp"
    compiler = {"cuda": ["nvcc", "-O3", "-arch={arch}"], "hip": ["hipcc", "-O3", "--offload-arch={arch}"],
                "cpp": ["g++", "-O3", *(["-fopenmp"] if use_openmp else [])]}[language]  # fmt: skip
    command = " ".join([*compiler, "{flags}", shlex.quote(file.name), "-o", name])
    run = RunDraft("first", f"./{name}", note="nothing says with which arguments: add them")
    return Building(file.parent, command, name, (run,), "no Makefile or CMakeLists.txt",
                    openmp=use_openmp,
                    notes=("No Makefile was found: the file is compiled alone. Say how it is really built.",))  # fmt: skip
