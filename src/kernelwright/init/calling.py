"""How make is called so that a Makefile builds with the compilers, libraries and GPU architecture of this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from kernelwright.init.flags import ARCH_FLAGS, Have, fitted, joined, lacking, names_arch, words_of
from kernelwright.init.makefile import Makefile

_FLAG_VARIABLE = re.compile(r"(?:EXTRA|USER|ADD|ADDITIONAL|MY|X)_?[A-Z_]*FLAGS")
_ARCH_VARIABLES = ("ARCH", "CUDA_ARCH", "GPU_ARCH", "SM", "SMS", "SM_ARCH", "HIP_ARCH", "GPU_TARGET")
_COMPILER_VARIABLES = ("CC", "CXX", "NVCC", "HIPCC", "CPP", "COMPILER", "CUDA_CC", "LD")
_BUILT_IN = {"CXX": ["g++"], "CC": ["cc"]}
"""What make takes where a Makefile says nothing."""


def assignments(overrides: Mapping[str, str]) -> list[str]:
    """Variables as words of make's command line."""
    return [f"{name}={value}" for name, value in overrides.items()]


def _compiler_variable(made: Makefile) -> str | None:
    """The variable that stands first in the recipes that compile."""
    recipes = " ".join(line for rule in made.rules for line in rule.recipe)
    words: list[str] = re.findall(r"\$[({](\w+)[)}]", recipes)
    return next((word for word in words if word in _COMPILER_VARIABLES), None)


def overriding(made: Makefile, language: str, have: Have) -> tuple[dict[str, str], list[str]]:
    """Variables to give to make so that a compiler of this machine is used."""
    variable = _compiler_variable(made)
    if variable is None:
        return {}, []
    given = words_of(made.value(variable)) or _BUILT_IN.get(variable, [])
    was = " ".join(given) or "nothing"
    if language != "cpp":
        return _device_compiler(made, variable, given, language, have)
    if given and (have(given[0]) or given[0] in ("g++", "c++", "cc", "gcc")):
        return {}, []
    overrides = {variable: "g++"}
    if "DEVICE" in made.referenced and "DEVICE" in made.variables:
        overrides["DEVICE"] = "cpu"
    return overrides, [f"{made.path.name} sets {variable} = {was}, which is not installed here: g++ is used instead."]


def _device_compiler(
    made: Makefile, variable: str, given: Sequence[str], language: str, have: Have
) -> tuple[dict[str, str], list[str]]:
    """The compiler for a GPU without what is not there: its own path, or that of a host compiler."""
    kept = fitted(given, "", mpi=True)
    compiler = PurePosixPath(given[0]).name if given else ""
    usual = {"cuda": "nvcc", "hip": "hipcc"}[language]
    if compiler not in ("nvcc", "hipcc") or given == kept or not have(usual):
        return {}, []
    words = [usual, *(kept if given[0] not in kept else kept[1:])]
    note = f"{made.path.name} sets {variable} = {' '.join(given)}, which names a path that is not there."
    return {variable: " ".join(words)}, [note]


def _flags_variable(made: Makefile, compiler: str | None) -> str | None:
    """The variable that holds the flags of compiling, as the recipes that compile name it."""
    preferred = {"CXX": "CXXFLAGS", "CC": "CFLAGS", "NVCC": "NVCCFLAGS"}.get(compiler or "", "CFLAGS")
    lines = [line for rule in made.rules for line in rule.recipe]
    compiling = [line for line in lines if "-c" in line.split()] or lines
    named = [name for line in compiling for name in re.findall(r"\$[({](\w*FLAGS)[)}]", line)]
    own = [name for name in named if not name.startswith(("LD", "LINK"))]
    return preferred if preferred in named else next(iter(own), None)


def build_command(
    made: Makefile,
    options: Sequence[str],
    overrides: Mapping[str, str],
    language: str,
    artifact: str,
    openmp: bool,
    mpi: bool,
) -> tuple[str, list[str], bool]:
    """The call of make, notes on it, and whether OpenMP is used. `options` say which Makefile it is, `mpi` whether that is
    installed."""
    use_openmp = openmp and language == "cpp"
    words = ["make", "-B", "-j{jobs}", *options, *assignments(overrides)]
    flags = _flags_variable(made, _compiler_variable(made))
    placed = next((name for name in sorted(made.referenced)
                   if _FLAG_VARIABLE.fullmatch(name) and not made.value(name)), None)  # fmt: skip
    arch = [] if language == "cpp" else _arch_words(made)
    nameless = [] if arch or language == "cpp" or _names_arch(made, language) else [ARCH_FLAGS[language]]
    if flags is not None and (reason := _unfit(made, flags, overrides, language, arch, mpi)):
        kept = [*fitted(words_of(made.value(flags)), language, mpi), *nameless]
        words.append(f"{flags}={' '.join([*kept, *(['-fopenmp'] if use_openmp else []), '{flags}'])}")
        words += [*_link_flags(made, flags, language, use_openmp, mpi), *arch]
        notes = [f"{flags} is what the Makefile says, {reason}."]
    elif placed is not None:
        words += [f"{placed}={' '.join([*nameless, '{flags}'])}", *arch]
        notes = []
    elif flags is not None and nameless:
        words.append(f"{flags}={' '.join([*words_of(made.value(flags)), *nameless, '{flags}'])}")
        notes = [f"{flags} is what the Makefile says, and the architecture, which it does not name."]
    else:
        words += arch
        notes = [
            "The Makefile has no variable for further flags: a candidate's flags are placed by the interposed compiler."
        ]
    goal, target = made.default_goal, artifact.removeprefix("./")
    if goal not in (None, "all", "default", target) and made.rule(target) is not None:
        words.append(target)
    return joined(words), notes, use_openmp


def _names_arch(made: Makefile, language: str) -> bool:
    """Whether any flag or recipe names the architecture of a GPU."""
    lines = [line for rule in made.rules for line in made.recipe(rule)]
    return names_arch(" ".join([*map(made.value, made.variables), *lines]).split(), language)


def _unfit(
    made: Makefile, flags: str, overrides: Mapping[str, str], language: str, arch: Sequence[str], mpi: bool
) -> str | None:
    """Why the flags of the Makefile cannot stay as they are; None where they can."""
    given = words_of(made.value(flags))
    if language == "cpp":
        return "without what only its own compiler knows" if overrides else None
    if gone := lacking(given, mpi):
        return f"without what is not on this machine: {' '.join(gone)}"
    if not arch and names_arch(given, language):
        return "with the architecture that is asked for in place of its own"
    return None


def _link_flags(made: Makefile, flags: str, language: str, openmp: bool, mpi: bool) -> list[str]:
    """The variable with the linker's flags, without what only another compiler knows; with OpenMP where the linking recipe
    does not see `flags`."""
    linking = [line for rule in made.rules for line in rule.recipe if "-o" in line and "-c" not in line.split()]
    named = [name for line in linking for name in re.findall(r"\$[({]((?:LD|LINK|L)\w*FLAGS)[)}]", line)]
    variable = next(iter(named), "LDFLAGS")
    value = words_of(made.value(variable))
    kept = fitted(value, language, mpi)
    unseen = bool(linking) and not any(f"({flags})" in line or f"{{{flags}}}" in line for line in linking)
    if openmp and unseen:
        kept.append("-fopenmp")
    return [f"{variable}={' '.join(kept)}"] if kept != value else []


def _arch_words(made: Makefile) -> list[str]:
    for name in _ARCH_VARIABLES:
        if name in made.referenced:
            value = made.value(name)
            if re.fullmatch(r"(?:sm_|gfx)\w+", value) or (not value and name == "ARCH"):
                return [f"{name}={{arch}}"]
            if re.fullmatch(r"\d+", value):
                return [f"{name}={{arch_number}}"]
    return []
