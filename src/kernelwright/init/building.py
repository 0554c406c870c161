"""How the program is built and run, as the Makefile or CMakeLists.txt nearest to the region's file says."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from kernelwright.init.makefile import MAKEFILES, RUN_TARGETS, Makefile, Rule, read_makefile
from kernelwright.toolchain import Exec

_FLAG_VARIABLE = re.compile(r"(?:EXTRA|USER|ADD|ADDITIONAL|MY|X)_?[A-Z_]*FLAGS")
_ARCH_VARIABLES = ("ARCH", "CUDA_ARCH", "GPU_ARCH", "SM", "SMS", "SM_ARCH", "HIP_ARCH", "GPU_TARGET")
_COMPILERS = ("nvcc", "hipcc", "g++", "gcc", "clang++", "clang", "c++", "cc")
_FOREIGN_FLAG = re.compile(
    r"-f?i?q?openmp(?:=\w+)?|-fopenmp-targets=.*|-fopenmp-version=.*|-Xopenmp-target.*|-mp(?:=\w+)?|--offload-arch=.*|"
    r"-march=gfx\w+|-gpu=\w+|-D__STRICT_ANSI__|-qopt.*|-xHost|-fp-model.*|-ipo|-Minfo.*|-fast|-target|-cuda|-foffload.*"
)
_NO_LIBRARY = {"m", "pthread", "dl", "rt", "stdc++", "c", "gcc", "cudart", "cuda", "gomp", "amdhip64"}


@dataclass(frozen=True)
class RunDraft:
    name: str
    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    role: str = "shown"
    note: str = ""
    active: bool = True


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
    configure: str | None = None
    arch: str | None = None
    defines: frozenset[str] = frozenset()
    includes: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    """Paths with `..` that the build names, relative to `folder`."""
    libraries: tuple[str, ...] = ()
    openmp: bool = False
    notes: tuple[str, ...] = ()


Have = Callable[[str], object]
"""Whether a program is installed, as `shutil.which` says."""


async def read_building(file: Path, root: Path, language: str, openmp: bool, have: Have, run: Exec | None) -> Building:
    """Read the nearest build description above `file`, no higher than `root`; without one, a single compiler call."""
    folder = file.parent
    while True:
        made = next((folder / name for name in MAKEFILES if (folder / name).is_file()), None)
        if made is not None:
            return await _from_makefile(made, root, language, openmp, have, run)
        if (folder / "CMakeLists.txt").is_file() and "add_executable" in _read(folder / "CMakeLists.txt"):
            return _from_cmake(folder, language, openmp)
        if folder in (root, folder.parent):
            return _alone(file, language, openmp)
        folder = folder.parent


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


async def _from_makefile(path: Path, root: Path, language: str, openmp: bool, have: Have, run: Exec | None) -> Building:
    made = read_makefile(path)
    overrides, notes = _overrides(made, language, have)
    made = read_makefile(path, overrides)
    rule = made.rule(*RUN_TARGETS)
    lines, how = (made.recipe(rule) if rule else []), f"{path.name}, read without running make"
    if run is not None and rule is not None:
        answered = await _asked(run, path.parent.relative_to(root).as_posix(), made, rule, overrides)
        if answered is not None:
            lines, how = answered, f"{path.name}, by make -n"
    runs, run_notes = _runs(lines, rule)
    artifact = _artifact(made, runs)
    command, build_notes, use_openmp = _build_command(made, overrides, language, artifact, openmp, have)
    text = " ".join([made.expand(made.text), *(" ".join(made.recipe(rule)) for rule in made.rules if rule.recipe)])
    flags = " ".join(made.value(name) for name in sorted(made.variables))
    mentioned = set(re.findall(r"(?:-I|-L)?((?:\.\./)+[\w./+-]+|\.\.(?=\s|$))", text))
    return Building(
        path.parent, command, artifact, tuple(runs), how,
        arch=None, defines=frozenset(re.findall(r"-D(\w+)", flags)),
        includes=tuple(dict.fromkeys(re.findall(r"-I\s*([\w./+-]+)", text))),
        mentioned=tuple(sorted(mentioned)), libraries=_libraries(flags + " " + text), openmp=use_openmp,
        notes=(*notes, *run_notes, *build_notes),
    )  # fmt: skip


def _libraries(text: str) -> tuple[str, ...]:
    named = dict.fromkeys(re.findall(r"(?<!\S)-l([A-Za-z][\w+.-]*)", text))
    return tuple(name for name in named if name not in _NO_LIBRARY)


def _compiler_variable(made: Makefile) -> str | None:
    """The variable that stands first in the recipes that compile."""
    recipes = " ".join(line for rule in made.rules for line in rule.recipe)
    words: list[str] = re.findall(r"\$[({](\w+)[)}]", recipes)
    for word in words:
        if word in ("CC", "CXX", "NVCC", "HIPCC", "CPP", "COMPILER", "CUDA_CC", "LD"):
            return word
    return None


def _overrides(made: Makefile, language: str, have: Have) -> tuple[dict[str, str], list[str]]:
    """Variables to give to make so that a compiler of this machine is used (only for C++)."""
    variable = _compiler_variable(made)
    if language != "cpp" or variable is None:
        return {}, []
    given = made.value(variable).split()
    if given and (have(given[0]) or given[0] in ("g++", "c++", "cc", "gcc")):
        return {}, []
    overrides = {variable: "g++"}
    if "DEVICE" in made.referenced and "DEVICE" in made.variables:
        overrides["DEVICE"] = "cpu"
    was = given[0] if given else "nothing"
    return overrides, [f"{made.path.name} sets {variable} = {was}, which is not installed here: g++ is used instead."]


def _flags_variable(made: Makefile, compiler: str | None) -> str | None:
    preferred = {"CXX": "CXXFLAGS", "CC": "CFLAGS", "NVCC": "NVCCFLAGS"}.get(compiler or "", "CFLAGS")
    recipes = " ".join(line for rule in made.rules for line in rule.recipe)
    named = re.findall(r"\$[({](\w*FLAGS)[)}]", recipes)
    return preferred if preferred in named else next((name for name in named if not name.startswith("LD")), None)


def _build_command(
    made: Makefile, overrides: Mapping[str, str], language: str, artifact: str, openmp: bool, have: Have
) -> tuple[str, list[str], bool]:
    words, notes, use_openmp = ["make", "-B", "-j{jobs}"], [], openmp and language == "cpp"
    words += [f"{name}={value}" for name, value in overrides.items()]
    compiler = _compiler_variable(made)
    flags = _flags_variable(made, compiler)
    placed = next((name for name in sorted(made.referenced)
                   if _FLAG_VARIABLE.fullmatch(name) and not made.value(name)), None)  # fmt: skip
    if overrides and flags is not None:
        kept = [word for word in shlex.split(made.value(flags)) if not _FOREIGN_FLAG.fullmatch(word)]
        words.append(f"{flags}={' '.join([*kept, *(['-fopenmp'] if use_openmp else []), '{flags}'])}")
        notes.append(f"{flags} is what the Makefile says, without what only its own compiler knows.")
        words += _link_flags(made, flags, use_openmp)
    elif placed is not None:
        words.append(f"{placed}={{flags}}")
    else:
        notes.append(
            "The Makefile has no variable for further flags: a candidate's flags are placed by the interposed compiler."
        )
    words += [] if language == "cpp" else _arch_words(made)
    goal = made.default_goal
    target = artifact.removeprefix("./")
    if goal not in (None, "all", "default", target) and made.rule(target) is not None:
        words.append(target)
    return joined(words), notes, use_openmp


def joined(words: Sequence[str]) -> str:
    """Words as a command line of a task file; placeholders in braces need no quotes there."""
    return " ".join(word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word) for word in words)


def _link_flags(made: Makefile, flags: str, openmp: bool) -> list[str]:
    """LDFLAGS without what only another compiler knows; with OpenMP where the linking recipe does not see `flags`."""
    linking = [line for rule in made.rules for line in rule.recipe if "-o" in line and "-c" not in line.split()]
    value = shlex.split(made.value("LDFLAGS"))
    kept = [word for word in value if not _FOREIGN_FLAG.fullmatch(word)]
    unseen = bool(linking) and not any(f"({flags})" in line or f"{{{flags}}}" in line for line in linking)
    if openmp and unseen:
        kept.append("-fopenmp")
    return [f"LDFLAGS={' '.join(kept)}"] if kept != value else []


def _arch_words(made: Makefile) -> list[str]:
    for name in _ARCH_VARIABLES:
        if name in made.referenced:
            value = made.value(name)
            if re.fullmatch(r"(?:sm_|gfx)\w+", value) or (not value and name == "ARCH"):
                return [f"{name}={{arch}}"]
            if re.fullmatch(r"\d+", value):
                return [f"{name}={{arch_number}}"]
    return []


async def _asked(run: Exec, folder: str, made: Makefile, rule: Rule, overrides: Mapping[str, str]) -> list[str] | None:
    """The run target's lines by `make -n`, or None where make would not say."""
    target = made.expand(rule.target).split()[0]
    words = [f"{name}={value}" for name, value in overrides.items()]
    result = await run(["make", "-n", "-B", "--no-print-directory", *words, target], folder)
    if result.exit_code != 0:
        return None
    printed = re.sub(r"\\\n", " ", result.stdout.decode(errors="replace")).strip().splitlines()
    lines = [re.sub(r"^[@+-]+\s*", "", " ".join(line.split())) for line in printed if not line.startswith("make")]
    return lines[-len(rule.recipe) :] or None


def _runs(lines: Sequence[str], rule: Rule | None) -> tuple[list[RunDraft], list[str]]:
    runs: list[RunDraft] = []
    notes: list[str] = []
    for line in lines:
        parsed = _run_line(line)
        if parsed is None:
            notes.append(f"The run target also has: {line}")
        elif parsed.command not in [run.command for run in runs]:
            runs.append(parsed)
    if not runs:
        where = "says nothing that could be run" if rule else "is missing"
        return [], [*notes, f"The Makefile's run target {where}: fill in the command."]
    program = _program(runs[0].command)
    named: list[RunDraft] = []
    for number, run in enumerate(runs):
        same = _program(run.command) == program
        role = "shown" if number == 0 else "held_out"
        note = "" if same else "another program"
        named.append(replace(run, name=["first", "second"][number] if number < 2 else f"run {number + 1}", role=role,
                             note=note, active=number < 2 and same))  # fmt: skip
    return named, notes


def _program(command: str) -> str:
    words = shlex.split(command)
    return next((word for word in words if word.startswith(("./", "../"))), words[0])


_HOUSEKEEPING = re.compile(
    "rm|mkdir|echo|diff|cp|mv|ulimit|cat|make|gunzip|for|if|tar|wget|cmp|sleep|exit|export|true|printf|unzip|cd|ln|touch"
)
_SHELL = re.compile(r"[|&;<>`$*?]")


def _run_line(line: str) -> RunDraft | None:
    """One line of a run recipe as a command without a shell, or None where it starts no program of ours."""
    line = re.sub(r"\s*(?:2>&1\s*)?\|\s*tee\b.*$", "", line).strip().rstrip(";").strip()
    line = re.sub(r"\s*&&\s*cd \.\.?$", "", line)
    folder = re.match(r"cd ([\w./-]+)\s*(?:&&|;)\s*(.*)", line)
    rest = folder[2] if folder else line
    env: dict[str, str] = {}
    while assignment := re.match(r"([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|\S*)\s+(.+)", rest):
        env[assignment[1]] = assignment[2].strip("\"'")
        rest = assignment[3]
    rest = re.sub(r"^(?:time|env)\s+", "", rest)
    try:
        words = shlex.split(rest)
    except ValueError:
        return None
    if not words or _HOUSEKEEPING.fullmatch(words[0]):
        return None
    if _SHELL.search(rest):
        return RunDraft("", shlex.join(["sh", "-c", f"cd {folder[1]} && {rest}" if folder else rest]), env,
                        note="the line needs a shell")  # fmt: skip
    prefix = ["env", f"--chdir={folder[1]}"] if folder else []
    return RunDraft("", shlex.join([*prefix, *words]), env)


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


def _from_cmake(folder: Path, language: str, openmp: bool) -> Building:
    text = re.sub(r"#.*", "", _read(folder / "CMakeLists.txt"))
    found = re.search(r"add_executable\s*\(\s*([\w${}.+-]+)", text)
    project = re.search(r"project\s*\(\s*([\w.+-]+)", text)
    name = found[1] if found else "main"
    name = re.sub(r"\$\{(?:PROJECT_NAME|CMAKE_PROJECT_NAME)\}", project[1] if project else "main", name)
    kind = {"cuda": "CUDA", "hip": "HIP"}.get(language, "CXX")
    words = ["cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_{kind}_FLAGS={{flags}}"]
    if language != "cpp":
        words.append(f"-DCMAKE_{kind}_ARCHITECTURES={'{arch_number}' if language == 'cuda' else '{arch}'}")
    packages = {one.lower() for one in re.findall(r"find_package\s*\(\s*(\w+)", text)}
    libraries = tuple(sorted(packages - {"cudatoolkit", "openmp"}))
    run = RunDraft("first", f"./build/{name}", note="CMakeLists.txt does not say with which arguments: add them")
    return Building(folder, "cmake --build build -j{jobs}", f"build/{name}", (run,), "CMakeLists.txt",
                    configure=" ".join(words), libraries=libraries,
                    openmp=openmp and language == "cpp",
                    mentioned=tuple(sorted(set(re.findall(r"(?:\.\./)+[\w./+-]+", text)))),
                    notes=("The program is taken from the first add_executable.",))  # fmt: skip


def _alone(file: Path, language: str, openmp: bool) -> Building:
    """No build description at all: one compiler call over the file."""
    name = re.sub(r"[^\w.-]", "_", file.stem)
    use_openmp = openmp and language == "cpp"
    compiler = {"cuda": ["nvcc", "-O3", "-arch={arch}"], "hip": ["hipcc", "-O3", "--offload-arch={arch}"],
                "cpp": ["g++", "-O3", *(["-fopenmp"] if use_openmp else [])]}[language]  # fmt: skip
    command = " ".join([*compiler, "{flags}", shlex.quote(file.name), "-o", name])
    run = RunDraft("first", f"./{name}", note="nothing says with which arguments: add them")
    return Building(file.parent, command, name, (run,), "no Makefile or CMakeLists.txt", openmp=use_openmp,
                    notes=("No Makefile was found: the file is compiled alone. Say how it is really built.",))  # fmt: skip
