"""Which program of a Makefile a source file goes into, where the Makefile builds several."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernelwright.init.makefile import Makefile, Rule
from kernelwright.source import SOURCE_SUFFIXES

_PARTS = (".o", ".a", ".so", ".ptx", ".sass", ".d")


@dataclass(frozen=True)
class Program:
    """A target that is linked, and the sources that its rule names, by themselves or by their objects."""

    target: str
    sources: tuple[Path, ...]


def programs_of(made: Makefile, file: Path) -> list[Program]:
    """The programs that `file` goes into by the rules of a Makefile; empty where no rule names it, as for headers."""
    folder = made.folder
    name = os.path.relpath(file, folder)
    objects = {str(PurePosixPath(one).with_suffix(".o")) for one in (name, file.name)}
    found: dict[str, Program] = {}
    for rule in made.rules:
        needs = made.expand(" ".join(rule.needs)).split()
        for target in made.expand(rule.target).split():
            if "%" in target:
                program = _by_pattern(made, rule, target, needs, name, file)
            elif not target.endswith(_PARTS) and (name in needs or objects.intersection(needs)):
                program = Program(target, _sources(folder, needs))
            else:
                continue
            if program is not None:
                found.setdefault(program.target, program)
    return list(found.values())


def _by_pattern(made: Makefile, rule: Rule, target: str, needs: list[str], name: str, file: Path) -> Program | None:
    """The program that a pattern rule such as `%: %.cu` makes of one source."""
    if target.endswith(_PARTS) or not needs or "%" not in needs[0] or any("-c" in line.split() for line in rule.recipe):
        return None
    head, tail = needs[0].split("%", 1)
    if not name.startswith(head) or not name.endswith(tail) or len(name) <= len(head) + len(tail):
        return None
    stem = name[len(head) : len(name) - len(tail)]
    return Program(target.replace("%", stem, 1), (file,))


def _sources(folder: Path, needs: list[str]) -> tuple[Path, ...]:
    found = []
    for need in needs:
        path = folder / need
        if path.suffix == ".o":
            path = next((one for suffix in SOURCE_SUFFIXES if (one := path.with_suffix(suffix)).is_file()), path)
        if path.suffix in SOURCE_SUFFIXES and path.is_file():
            found.append(path.resolve())
    return tuple(found)
