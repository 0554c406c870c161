"""Which files a build compiles, and which of their kernels it compiles and launches, by reading alone.

The files are those that the Makefile names and all that these include. Where it is not clear whether something is compiled,
it counts as compiled: a build says the truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from kernelwright.init.building import Building
from kernelwright.init.cmake import LISTS
from kernelwright.init.makefile import read_makefile
from kernelwright.source import SOURCE_SUFFIXES, Function, find_functions, unparsed_kernels

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_COMMENT = re.compile(rb"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S)

_MOST_BYTES = 2**20
"""A larger header is a library's."""
_NAME = re.compile(rb"\b[A-Za-z_]\w*\b")


@dataclass(frozen=True)
class Kernel:
    """A kernel that the build compiles; lines are counted from 1, both included."""

    file: Path
    name: str
    first_line: int
    last_line: int
    alone: bool
    """Whether the name says which it is in its file."""


@dataclass(frozen=True)
class Kernels:
    found: tuple[Kernel, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""


def compiled_files(building: Building, root: Path) -> list[Path]:
    """The sources that the build names, and what they include of files below `root`; all in its folder where it names
    none."""
    made = building.described if building.described is not None and building.described.name != LISTS else None
    named = list(building.named) or (list(_named(made, building.folder)) if made is not None else [])
    if not named:
        named = [path for path in sorted(building.folder.rglob("*")) if path.suffix in SOURCE_SUFFIXES]
    folders = [building.folder / folder for folder in building.includes]
    seen: dict[Path, None] = {}
    waiting = [path for path in named if path.is_file()]
    while waiting:
        path = waiting.pop(0)
        if path in seen or not path.is_relative_to(root) or path.stat().st_size > _MOST_BYTES:
            continue
        seen[path] = None
        for name in _INCLUDE.findall(path.read_bytes()):
            text = name.decode(errors="replace")
            beside = (folder / text for folder in (path.parent, *folders, building.folder))
            found = next((one for one in beside if one.is_file()), None)
            waiting += [found.resolve()] if found is not None else []
    return list(seen)


def _named(makefile: Path, folder: Path) -> Iterator[Path]:
    """Sources that variables and rules of a Makefile name, by themselves or by their objects."""
    made = read_makefile(makefile, folder=folder)
    texts = [made.value(name) for name in made.variables]
    for rule in made.rules:
        texts += [made.expand(rule.target), made.expand(" ".join(rule.needs)), *made.recipe(rule)]
    suffixes = [suffix for suffix in SOURCE_SUFFIXES if not suffix.startswith(".h")]
    for word in dict.fromkeys(" ".join(texts).split()):
        path = folder / word
        if path.suffix == ".o":
            path = next((one for suffix in suffixes if (one := path.with_suffix(suffix)).is_file()), path)
        if path.suffix in suffixes and path.is_file():
            yield path.resolve()


def find_kernels(texts: Mapping[Path, bytes], root: Path, language: str) -> Kernels:
    """The `__global__` functions that `texts` compile and launch; those left out stand in the notes.

    `texts` are files with what they hold; where `conditionals.compiled_part` blanked a kernel it is left out.
    """
    whole = {path: path.read_bytes() for path in texts}
    kernels = {path: [one for one in find_functions(data, language) if one.kernel]
               for path, data in whole.items() if b"__global__" in data}  # fmt: skip
    used = _used({one.name for found in kernels.values() for one in found}, texts.values(), language)
    found: list[Kernel] = []
    notes: list[str] = []
    for path, functions in kernels.items():
        name_of = path.relative_to(root).as_posix()
        for function in functions:
            where = f"{function.name} ({name_of}:{function.first_line})"
            if not texts[path][function.start : function.body_start].strip():
                notes.append(f"{where} is not compiled in and left out.")
            elif function.name not in used:
                notes.append(f"{where} is never launched and left out.")
            else:
                found.append(_kernel(path, whole[path], function, functions))
        notes += [f"{name} ({name_of}) is hidden by a macro: only lines = [first, last] reach it."
                  for name in unparsed_kernels(texts[path], language)]  # fmt: skip
    return Kernels(tuple(found), tuple(notes))


def _kernel(path: Path, data: bytes, function: Function, kernels: Sequence[Function]) -> Kernel:
    twins = [one for one in kernels if one.name == function.name]
    last = data.count(b"\n", 0, function.end) + 1
    return Kernel(path, function.name, function.first_line, last, len(twins) == 1)


def _used(names: Set[str], texts: Iterable[bytes], language: str) -> set[str]:
    """Those of `names` that stand anywhere but in kernels' own definitions and declarations."""
    used: set[str] = set()
    for text in texts:
        plain = _COMMENT.sub(lambda found: b" " * len(found.group()), text)
        kernels = [one for one in find_functions(text, language) if one.kernel] if b"__global__" in text else []
        for found in _NAME.finditer(plain):
            name = found.group().decode()
            if name in used or name not in names:
                continue
            own = any(one.name == name and one.start <= found.start() < one.end for one in kernels)
            head = re.split(rb"[;{}]", plain[max(0, found.start() - 600) : found.start()])[-1]
            if not own and b"__global__" not in head:
                used.add(name)
    return used
