"""The commands that repeat a candidate's build and run by hand.

In a workspace that was kept they are the whole of it, the interposed compilers included: those place the candidate's
compile arguments there as they did before. Without one, a comment names the units that the arguments belong to.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.commands import words
from kernelwright.execute import REPO, Workshop
from kernelwright.task import Run

CACHE = "CMakeCache.txt"


def reproduce(shop: Workshop, run: Run, arguments: Sequence[str], slot_name: str = "candidate") -> str:
    """One line for a shell, of the candidate that is built next, or was built last, with `arguments` in a slot."""
    build = shop.task.build
    flags = build.flags if shop.plan_appends else (*build.flags, *arguments)
    make = shlex.join(words(build.command, shop.arch, flags))
    go = f"{_assigned(run.env)}{shlex.join(words(run.command, shop.arch, build.flags))}"
    configure = shlex.join(words(build.configure, shop.arch, flags)) if build.configure else None
    if shop.keep:
        return f"{_kept(shop, slot_name, arguments, configure, make)} && {go}"
    steps = [f"cd {shlex.quote(shop.task.workdir)}"] if shop.task.workdir != "." else []
    line = " && ".join([*steps, *([configure] if configure else []), make, go])
    return f"{line}  # in a copy of the repository with the candidate in it{_placed(shop, arguments)}"


def _placed(shop: Workshop, arguments: Sequence[str]) -> str:
    placed = shop.placed(arguments)
    if not placed:
        return ""
    units = sorted({source for command in shop.plan.append for source in command.sources})
    return f", {shlex.join(placed)} appended to the compiler's command for {', '.join(units)}"


def _kept(shop: Workshop, slot_name: str, arguments: Sequence[str], configure: str | None, make: str) -> str:
    """The build in the slot, by the same compilers and plan, after what it made of the regions is gone."""
    folder = shop.folder / slot_name
    env = {
        "KW_PLAN": str(shop.plan_for(slot_name, arguments)),
        "KW_RECORD": str(shop.folder / f"{slot_name}-record"),
        "KW_REPO": str(folder),
    }
    steps = [f'export PATH={shlex.quote(str(shop.folder / "compilers"))}:"$PATH" {_assigned(env).rstrip()}']
    gone = [shop.task.build.artifact, *_objects(shop)]
    if configure and shop.same_place:  # CMake wrote down where the repository lay inside
        gone += [file for file in shop.known_files() if Path(file).name == CACHE]
        steps.append(configure)
    within = [os.path.relpath(file, shop.task.workdir) for file in gone]
    where = shlex.quote(str(folder / shop.task.workdir))
    return f"cd {where} && rm -f {shlex.join(within)} && ({' && '.join([*steps, make])})"


def _objects(shop: Workshop) -> list[str]:
    """What the units with a region are compiled to, relative to the repository."""
    paths = sorted({command.written for command in shop.plan.append if command.written})
    return [os.path.relpath(path, REPO) for path in paths if path.startswith(f"{REPO}/")]


def _assigned(env: Mapping[str, str]) -> str:
    return "".join(f"{name}={shlex.quote(value)} " for name, value in env.items())
