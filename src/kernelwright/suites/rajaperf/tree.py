"""The least of a checkout and its build that a program with one unit compiled anew is linked from, as a small tree.

A whole build takes minutes of processor time, and its build files hold whole paths, which a sandbox does not have. So the
commands that the user's build used for one unit and for the program are read (`compile_commands.json` and `link.txt`, both
written by CMake), and written to a Makefile with paths inside the tree; the headers, objects and archives that they name are
copied beside it. What the compiler finds in system folders stays where it is. Nothing of the checkout is changed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernelwright.interpose import COMPILERS, SOURCE

PROGRAM = "raja-perf.exe"
MADE = "_build"
"""Where the tree holds what came from the build folder."""
_ELSEWHERE = "_other"
_HEADERS = {".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".ipp", ".inc", ".def"}
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt")
"""Folders that a sandbox shows as they are."""
_FOLDERS = re.compile(r"(-I|-isystem=?|-iquote|-idirafter)(.*)")
_DEPENDENCIES = {"-MD": 0, "-MMD": 0, "-MP": 0, "-MF": 1, "-MT": 1, "-MQ": 1}
_RESPONSES = ("--options-file", "-optf")


class NoBuild(Exception):
    """Why a build folder does not say how a unit is compiled and linked; the message is for the listing."""


@dataclass(frozen=True)
class Command:
    """A command of the build: its words as they stand, response files opened, and the folder that it runs in."""

    argv: tuple[str, ...]
    cwd: Path


@dataclass(frozen=True)
class Commands:
    """How the user's build makes one unit and the program."""

    compile: Command
    link: Command
    program: Path
    """Where the user's own program lies."""


def read_commands(build: Path, unit: Path) -> Commands:
    """The commands for `unit` in a build folder of CMake. Raises NoBuild with the reason and what to do."""
    entry = next((one for one in _entries(build) if _where(one["directory"], one["file"]) == unit.resolve()), None)
    if entry is None:
        raise NoBuild(f"{build} was configured without {unit.name}: configure it for this task's language")
    words = entry.get("arguments") or shlex.split(entry["command"])
    cwd = Path(entry["directory"])
    compile_ = Command(tuple(_opened(words, cwd)), cwd)
    link = _link(build)
    program = _where(link.cwd, link.argv[link.argv.index("-o") + 1])
    if not program.is_file():
        raise NoBuild(f"{program} is not there: build {PROGRAM} in {build} first")
    return Commands(compile_, link, program)


def _entries(build: Path) -> list[dict[str, str]]:
    path = build / "compile_commands.json"
    try:
        found: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise NoBuild(f"{path} cannot be read: configure with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON") from None
    return found


def _where(cwd: str | Path, path: str) -> Path:
    return Path(os.path.normpath(Path(cwd) / path)).resolve()


def _opened(words: Sequence[str], cwd: Path) -> Iterator[str]:
    """The words with those of response files in their place."""
    rest = iter(words)
    for word in rest:
        name = next(rest, "") if word in _RESPONSES else word[1:] if word.startswith("@") else None
        path = None if name is None else cwd / name
        if path is not None and path.is_file():
            yield from shlex.split(path.read_text(encoding="utf-8"))
        else:
            yield word


def _link(build: Path) -> Command:
    found = next(iter(sorted(build.glob(f"**/CMakeFiles/{PROGRAM}.dir/link.txt"))), None)
    if found is None:
        raise NoBuild(f'{build} has no link.txt for {PROGRAM}: configure with -G "Unix Makefiles"')
    if (found.parent / "dlink.txt").is_file():
        raise NoBuild(f"{build} links device code separately: configure with CMAKE_CUDA_SEPARABLE_COMPILATION=OFF")
    cwd = found.parent.parent.parent
    words = tuple(_opened(shlex.split(found.read_text(encoding="utf-8")), cwd))
    if "-o" not in words:
        raise NoBuild(f"{found} names no output")
    return Command(words, cwd)


@dataclass(frozen=True)
class Tree:
    """The tree at `root`, filled from a checkout and its build folder as commands are written for it."""

    root: Path
    checkout: Path
    build: Path

    def place(self, path: Path) -> PurePosixPath | None:
        """Where the tree holds a file or folder; None for what stays where it is."""
        for base, inside in ((self.build.resolve(), MADE), (self.checkout.resolve(), "")):
            if path.is_relative_to(base):
                return PurePosixPath(inside) / path.relative_to(base).as_posix()
        if any(path.is_relative_to(folder) for folder in _SYSTEM):
            return None
        return PurePosixPath(_ELSEWHERE) / path.relative_to(path.anchor).as_posix()

    def add(self, path: Path) -> None:
        """Copy a file, or the headers below a folder, unless the tree has them as they are."""
        inside = self.place(path)
        if inside is None:
            return
        files = (one for one in sorted(path.rglob("*")) if one.suffix in _HEADERS) if path.is_dir() else (path,)
        for file in files:
            if file.is_file() and not (path.is_dir() and self._nested(path, file)):
                target = self.root / inside / file.relative_to(path) if path.is_dir() else self.root / inside
                _copy(file, target)

    def _nested(self, folder: Path, file: Path) -> bool:
        """Whether a build folder lies inside the include folder that a header was found in."""
        build = self.build.resolve()
        return build != folder and build.is_relative_to(folder) and file.is_relative_to(build)

    def write_makefile(self, commands: Commands, unit: Path, folder: PurePosixPath) -> None:
        """Copy what the two commands read, and write a Makefile to `folder` that makes `raja-perf.exe` there."""
        unit = unit.resolve()
        compile_ = self._compile(commands.compile, unit, folder)
        link = self._link(commands, folder)
        text = (
            "# The commands by which this program was built, for one unit and the program: the rest is as it was built.\n"
            f"{PROGRAM}: unit.o\n\t{_recipe(link)}\nunit.o: FORCE\n\t{_recipe(compile_)}\nFORCE:\n.PHONY: FORCE\n"
        )
        target = self.root / folder / "Makefile"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def _compile(self, command: Command, unit: Path, folder: PurePosixPath) -> list[str]:
        words = [_by_name(command.argv[0])]
        rest = iter(command.argv[1:])
        for word in rest:
            if word in _DEPENDENCIES:
                for _ in range(_DEPENDENCIES[word]):
                    next(rest, None)
            elif word == "-o":
                words += ["-o", "unit.o"]
                next(rest, None)
            elif found := _FOLDERS.fullmatch(word):
                words += [found[1], self._folder(found[2] or next(rest, ""), command.cwd, folder)]
                words[-2:] = ["".join(words[-2:])] if found[2] else words[-2:]
            elif SOURCE.fullmatch(word) and not word.startswith("-"):
                self.add(unit)
                words.append(self._seen_from(folder, unit))
            else:
                words.append(word)
        return words

    def _folder(self, word: str, cwd: Path, folder: PurePosixPath) -> str:
        path = _where(cwd, word)
        self.add(path)
        return self._seen_from(folder, path)

    def _link(self, commands: Commands, folder: PurePosixPath) -> list[str]:
        command, own = commands.link, commands.compile
        pristine = _where(own.cwd, own.argv[own.argv.index("-o") + 1]) if "-o" in own.argv else None
        words, placed = [_by_name(command.argv[0])], False
        rest = iter(command.argv[1:])
        for word in rest:
            path = _where(command.cwd, word)
            if word == "-o":
                words += ["-o", PROGRAM]
                next(rest, None)
            elif word.startswith("-") or not path.is_file():
                words.append(word)
            elif path == pristine:
                words.append("unit.o")
                placed = True
            else:
                if not placed and path.suffix != ".o":
                    words.append("unit.o")
                    placed = True
                self.add(path)
                words.append(self._seen_from(folder, path))
        return words if placed else [*words, "unit.o"]

    def _seen_from(self, folder: PurePosixPath, path: Path) -> str:
        inside = self.place(path)
        return str(path) if inside is None else os.path.relpath(inside, folder)


def _by_name(compiler: str) -> str:
    """The compiler as PATH finds it, where builds put their own in front."""
    name = PurePosixPath(compiler).name
    known = name in COMPILERS or re.fullmatch(r"(?:g\+\+|gcc|clang|clang\+\+)-\d+", name)
    return name if known else compiler


def _recipe(words: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, words)).replace("$", "$$")


def _copy(source: Path, target: Path) -> None:
    """Unless the file there was copied from the same one."""
    seen, there = source.stat(), target.stat() if target.is_file() else None
    if there is None or (there.st_size, there.st_mtime_ns) != (seen.st_size, seen.st_mtime_ns):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
