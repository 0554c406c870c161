"""Original and candidate on other memory: a heap that is the same in every call, and variables that hold a pattern.

A call can be told from the first one by where blocks lie (the C library hands freed ones out in another order) and by what
is in them. No memory checker minds the first, and one that can run sees the second (`memory_check`); what it could not
look at is overwritten here. What a gain is worth on such memory is asked by `doubts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelwright.errors import CandidateError, InfrastructureError
from kernelwright.execute import BuildFailure, Built, Workshop
from kernelwright.sandbox import Bind
from kernelwright.state import native
from kernelwright.task import Run
from kernelwright.trace import Candidate

PATTERN = {
    "cpp": ("-ftrivial-auto-var-init=pattern",),
    "hip": ("-ftrivial-auto-var-init=pattern",),
    "cuda": ("-Xcompiler=-ftrivial-auto-var-init=pattern",),
}
"""Fills every variable without an initialiser, at each call (GCC 12, Clang 8); of a CUDA program those of its host code."""
HEAP_INSIDE = "/kw/heap.so"


@dataclass(frozen=True)
class OtherMemory:
    """What the original and one candidate become on other memory."""

    original: Built
    candidate: Built
    run: Run


@dataclass
class OtherMemories:
    """Makes it for one candidate after another of a task; the original with its variables filled is built once."""

    shop: Workshop
    original: Built
    run: Run
    _filled: list[Built | None] = field(default_factory=list)

    async def of(self, candidate: Candidate, built: Built, fill: bool) -> OtherMemory | None:
        """With `fill`, variables and blocks hold a pattern too. None where the library or a build cannot be made."""
        run = self._on_another_heap(fill)
        if run is None:
            return None
        if not fill:
            return OtherMemory(self.original, built, run)
        original = await self._filled_original()
        filled = await self._build(candidate, "filled-candidate") if original else None
        return OtherMemory(original, filled, run) if original and filled else None

    def _on_another_heap(self, fill: bool) -> Run | None:
        try:
            source = Path(__file__).with_name("heap.c")
            library = native(source, ("cc", "gcc", "clang"), ("-shared", "-fPIC", "-lpthread"), ".so")
        except InfrastructureError:
            return None
        bind = Bind(library, HEAP_INSIDE)
        if bind not in self.shop.beside:
            self.shop.beside.append(bind)
        heap = {"LD_PRELOAD": self.shop.sandbox.inside(library, HEAP_INSIDE), **({"KW_HEAP_FILL": "1"} if fill else {})}
        return self.run.model_copy(update={"env": {**self.run.env, **heap}})

    async def _filled_original(self) -> Built | None:
        if not self._filled:
            self._filled.append(await self._build(Candidate({}), "filled-baseline"))
        return self._filled[0]

    async def _build(self, candidate: Candidate, slot: str) -> Built | None:
        arguments = (*candidate.compile_args, *PATTERN[self.shop.task.language])
        try:
            built = await self.shop.build(replace(candidate, compile_args=arguments), slot)
        except CandidateError:
            return None
        return None if isinstance(built, BuildFailure) else built
