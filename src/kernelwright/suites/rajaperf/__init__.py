"""RAJAPerf (LLNL): the kernels of its groups Apps, Algorithm and Polybench, one task each, from a checkout and its build.

A kernel's base variant is the task, its sequential variant the reference. What the task builds is one unit, linked with the
rest as the user's own build made it: a small tree beside the task files holds what that takes (`tree`). `kernels` reads the
sources, `facts` asks the built program, `text` writes the task file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from kernelwright.init.conditionals import definitions
from kernelwright.sandbox import Sandbox
from kernelwright.state import replace_text
from kernelwright.suites import Benchmark, Made, Origin, file_name, licence_of, revision_of
from kernelwright.suites.rajaperf import kernels as reading
from kernelwright.suites.rajaperf.facts import Facts, ask
from kernelwright.suites.rajaperf.kernels import BASE, Kernel, NoRegion, Part
from kernelwright.suites.rajaperf.text import Draft, task_text
from kernelwright.suites.rajaperf.tree import Commands, NoBuild, Tree, read_commands
from kernelwright.trial import Progress

TREE = "rajaperf-tree"
"""The folder beside the task files that they all build in."""
_MOST_THREADS = 16
_ARCH = re.compile(r"\b(?:sm_\d+[af]?|gfx[0-9a-f]+)\b")
_SORTS = "it sorts through a library, and the suite has no kernel of its own for that"


@dataclass(frozen=True)
class RajaPerf:
    """A checkout and the folder that it was built in. `language` says which base variant becomes the tasks."""

    checkout: Path
    build_dir: Path
    language: str = "cuda"

    @cached_property
    def origin(self) -> Origin:
        return Origin("rajaperf", self.language, revision_of(self.checkout), licence_of(self.checkout))

    @property
    def _src(self) -> Path:
        return self.checkout / "src"

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return reading.find_kernels(self._src)

    def names(self) -> list[str]:
        """The kernels of the three groups; none where the folder is no checkout of RAJAPerf."""
        return sorted(self._kernels)

    async def make(self, name: str, out: Path, sandbox: Sandbox | None, progress: Progress) -> Benchmark:
        """Write one kernel's task file to `out`; with a sandbox the program is asked for its tunings and its work."""
        kernel = self._kernels[name]
        unit = self._src / kernel.unit(self.language)
        try:
            for path in (unit, self._src / kernel.header):
                if not path.is_file():
                    raise NoRegion(f"there is no {path.name}")
            commands = read_commands(self.build_dir, unit)
            branches = reading.parts_of(self.language, unit.read_bytes(), self._defined(kernel, commands))
            progress(f"asking the program of {name}")
            facts = await ask(sandbox, commands.program, name, BASE[self.language]) if sandbox is not None else None
            draft = self._draft(kernel, commands, branches, facts)
        except NoRegion as reason:
            sorts = kernel.cls.startswith("SORT")
            return Benchmark(name, (), f"{reason}: {_SORTS}" if sorts else str(reason))
        except NoBuild as reason:
            return Benchmark(name, (), str(reason))
        tree = Tree(out / TREE, self.checkout, self.build_dir)
        tree.write_makefile(commands, unit, PurePosixPath(draft.folder))
        file = file_name(name)
        replace_text(out / file, task_text(replace(draft, siblings=_siblings(out / TREE, draft.folder))))
        made = Made(file, tuple(part.name for part in draft.parts))
        return Benchmark(name, (made,), None, draft.notes, ran=isinstance(facts, Facts))

    def _defined(self, kernel: Kernel, commands: Commands) -> Mapping[str, str]:
        """Macros that say which branches of a source are compiled: of the command, the configured headers, the unit."""
        words = commands.compile.argv
        given = [word[2:].partition("=")[0] for word in words if word.startswith("-D")]
        configured = [path.read_bytes() for path in sorted(self.build_dir.glob("**/*onfig.hpp"))]
        own = [(self._src / path).read_bytes() for path in (kernel.header, kernel.unit(self.language))]
        return definitions([*configured, *own], given)

    def _draft(
        self, kernel: Kernel, commands: Commands, branches: list[list[Part]], facts: Facts | str | None
    ) -> Draft:
        known = facts if isinstance(facts, Facts) else None
        tuning, notes = self._tuning(kernel, known)
        parts = reading.parts_for(tuning, branches)
        unit = kernel.unit(self.language)
        headers = {part.name: reading.macro_headers(self._src, unit, part.text) for part in parts}
        if isinstance(facts, str):
            notes.append(facts)
        if reading.begins_constant(self._src, kernel):
            notes.append(
                "All its arrays begin as constants: which of their elements a kernel reads, no checksum tells."
            )
        if known is None:
            notes.append("The program was not asked: no [floor], and one pass a run.")
        reference = known.reference_tunings if known is not None else ()
        return Draft(
            kernel.name, self.language, TREE, f"make/{kernel.name}", (), f"src/{unit}",
            tuple(replace(part, headers=tuple(f"src/{path}" for path in headers[part.name])) for part in parts),
            tuning, reading.chosen_tuning(reference) or reading.default_tuning(self._src, kernel, "seq") or "default",
            _arch(commands), min(os.cpu_count() or 1, _MOST_THREADS), known, tuple(notes),
        )  # fmt: skip

    def _tuning(self, kernel: Kernel, facts: Facts | None) -> tuple[str, list[str]]:
        """The tuning, and what to say of it. Raises NoRegion where all call a library, or none can be named."""
        if facts is None:
            found = reading.default_tuning(self._src, kernel, self.language)
            if found is None:
                raise NoRegion(f"the tunings of {kernel.name} are named at run time: import it with a sandbox")
            return found, []
        found = reading.chosen_tuning(facts.tunings)
        if found is None:
            raise NoRegion(f"every tuning of {BASE[self.language]} calls a library: {', '.join(facts.tunings)}")
        first = facts.tunings[0]
        others = f"Its {len(facts.tunings)} tunings begin with {first!r}, the default: {found!r} was taken."
        return found, [others] if found != first else []


def _arch(commands: Commands) -> str | None:
    found = _ARCH.findall(" ".join(commands.compile.argv))
    return max(found) if found else None


def _siblings(tree: Path, own: str) -> tuple[str, ...]:
    """The tree's folders but those of other kernels' builds."""
    return tuple(sorted(path.name for path in tree.iterdir() if path.is_dir() and path.name != own.split("/")[0]))
