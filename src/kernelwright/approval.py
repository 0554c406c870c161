"""A person's yes or no to generated code before it is compiled or run: what arXiv 2510.17158 has in place of isolation.

Each piece is asked once in a run: a candidate, as a diff of the files that it would change, or a microbenchmark, whole, each
with its compile arguments. What was said is remembered by content and goes into the run's record, also for a run that goes
on later. How a person is asked is the command line's work (`cli/asking.py`); where code must be asked for, that of
`trial` and `tools`. The original, and builds of it with arguments of our own, are the user's code and are not asked.
"""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from kernelwright.errors import UsageError
from kernelwright.outcome import SCHEMA
from kernelwright.source import to_lf
from kernelwright.trace import Candidate

CONTEXT_LINES = 3


@dataclass(frozen=True)
class Piece:
    """One piece of generated code, and what a person is shown of it."""

    kind: Literal["candidate", "microbenchmark"]
    texts: Mapping[str, str]
    """Region (or the file's name) → the generated text."""
    compile_args: tuple[str, ...]
    shown: tuple[str, ...]
    """Lines: a unified diff, or the whole text. As they are: a terminal must not be given them raw."""
    size: str
    """How much that is, in words."""
    new: str
    """What of it is not in the original."""

    @property
    def hashes(self) -> dict[str, str]:
        return {
            name: hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest() for name, text in self.texts.items()
        }


def candidate_piece(candidate: Candidate, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Piece:
    """A candidate as the diff of whole files (path → content), so that line numbers are those of the file."""
    shown, added, sizes = list[str](), list[str](), list[str]()
    for file, data in after.items():
        old, new = to_lf(before[file]).split("\n"), to_lf(data).split("\n")
        names = f"{file} (original)", f"{file} (proposed)"
        lines = list(difflib.unified_diff(old, new, *names, n=CONTEXT_LINES, lineterm=""))
        here = [line[1:] for line in lines[2:] if line.startswith("+")]
        if lines:
            sizes.append(
                f"{file}: {len(here)} line(s) added, {sum(line.startswith('-') for line in lines[2:])} removed"
            )
        shown, added = shown + lines, added + here
    size = "; ".join(sizes) or "the original's code, unchanged"
    return Piece("candidate", dict(candidate.code), candidate.compile_args, tuple(shown), size, "\n".join(added))


def microbenchmark_piece(code: str, compile_args: Sequence[str]) -> Piece:
    lines = tuple(code.split("\n"))
    return Piece("microbenchmark", {"": code}, tuple(compile_args), lines, f"a program of {len(lines)} lines", code)


@dataclass(frozen=True)
class Answer:
    """What a person said; `reason` may be empty."""

    approved: bool
    reason: str = ""


class Person(Protocol):
    """Whoever decides. Raises Interrupted where the run is to stop here and to go on later."""

    async def __call__(self, piece: Piece, purpose: str) -> Answer: ...


@dataclass(frozen=True)
class Decision:
    """An answer as the run's record keeps it: which code (by hash), for what, when."""

    kind: str
    purpose: str
    texts: Mapping[str, str]
    """Region → SHA-256 of the text."""
    compile_args: tuple[str, ...]
    approved: bool
    reason: str
    at: str
    """ISO 8601, UTC."""

    def is_of(self, piece: Piece) -> bool:
        """Whether it was made on this very piece, or is a yes to one that this is a part of: the same arguments, and fewer
        regions (the code of the others being the user's own)."""
        texts = piece.hashes.items()
        if (self.kind, self.compile_args) != (piece.kind, piece.compile_args):
            return False
        return texts <= self.texts.items() if self.approved else texts == self.texts.items()


@dataclass
class Approval:
    """Asks `person` about each piece that was not decided in this run yet, one question at a time."""

    person: Person
    decisions: list[Decision] = field(default_factory=list)
    on_decision: Callable[[dict[str, Any]], None] = lambda _: None
    """Told all decisions as JSON after each new one."""
    waited_s: float = 0.0
    """Time that went by waiting for answers, which is nobody's working time."""
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __call__(self, piece: Piece, purpose: str) -> str | None:
        """Why the piece may not be compiled or run, in one sentence; None where it may."""
        start = time.monotonic()
        async with self._asking:
            decision = self._known(piece) or await self._asked(piece, purpose)
        self.waited_s += time.monotonic() - start
        if decision.approved:
            return None
        return f"a person refused this code: {decision.reason}" if decision.reason else "a person refused this code"

    def _known(self, piece: Piece) -> Decision | None:
        found = [decision for decision in self.decisions if decision.is_of(piece)]
        return next((decision for decision in found if not decision.approved), found[0] if found else None)

    async def _asked(self, piece: Piece, purpose: str) -> Decision:
        answer = await self.person(piece, purpose)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        decision = Decision(
            piece.kind, purpose, piece.hashes, piece.compile_args, answer.approved, answer.reason.strip(), now
        )
        self.decisions.append(decision)
        self.on_decision(self.to_json())
        return decision

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "decisions": [asdict(decision) for decision in self.decisions]}


def decisions_from(data: Mapping[str, Any] | None) -> list[Decision]:
    """What `Approval.to_json` gave; none where a run has none."""
    entries = data["decisions"] if data is not None else ()
    return [Decision(**{**entry, "compile_args": tuple(entry["compile_args"])}) for entry in entries]


@dataclass
class ScriptedPerson:
    """Gives the answers it was made with, one after the other: for tests, and to replay what a person once said."""

    answers: Sequence[Answer]
    asked: list[tuple[Piece, str]] = field(default_factory=list)

    async def __call__(self, piece: Piece, purpose: str) -> Answer:
        if len(self.asked) >= len(self.answers):
            raise UsageError(
                f"the script ended after {len(self.answers)} answers", "an answer to each piece", "one more"
            )
        self.asked.append((piece, purpose))
        return self.answers[len(self.asked) - 1]
