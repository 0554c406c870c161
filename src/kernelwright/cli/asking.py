"""Asking a person, at the terminal of this process, whether a piece of generated code may be compiled and run.

The terminal itself is used (`/dev/tty`), so that neither a pipe nor `--json` comes between. What was typed before a question
stood there is no answer to it. Generated code may hold anything: what a terminal would obey or hide is shown as escapes.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import termios
import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from kernelwright.approval import Answer, Piece
from kernelwright.errors import Interrupted, UsageError

KEYS = "y: yes   n: no   n and why: no, and the policy is told why   q: stop here, to go on later"
STYLES = {"+": "green", "-": "red", "@": "cyan"}
LINE_BYTES = 4096
"""The longest line that Linux hands out of a terminal."""


def require_terminal() -> None:
    """Before a run begins. Raises UsageError."""
    os.close(open_terminal())


def open_terminal() -> int:
    """A file descriptor of this process's terminal. Raises UsageError where it has none."""
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise UsageError(
            "--approve has nobody to ask: this process has no terminal",
            "a person at a terminal (ssh -t, docker run -it)",
            "the same command in a terminal, or without --approve in the sandbox",
        ) from None


@dataclass
class TerminalPerson:
    """Whoever sits at the terminal; other output is held back (`paused`) while a question stands there. A context manager."""

    paused: Callable[[], AbstractContextManager[None]]
    asked: int = 0

    def __enter__(self) -> TerminalPerson:
        self._terminal = open_terminal()
        self._file = os.fdopen(os.dup(self._terminal), "w", encoding="utf-8", errors="backslashreplace")
        self._console = Console(file=self._file, highlight=False, soft_wrap=True)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the terminal may have been closed
            self._file.close()
        os.close(self._terminal)

    async def __call__(self, piece: Piece, purpose: str) -> Answer:
        """Raises Interrupted where the person stops the run, or leaves the terminal."""
        self.asked += 1
        with self.paused():
            try:
                return await self._answered(piece, purpose)
            except OSError:
                raise self._stopped("the terminal was closed") from None

    async def _answered(self, piece: Piece, purpose: str) -> Answer:
        self._console.rule(f"{self.asked}: a {piece.kind}, for {purpose}")
        for line in piece.shown:
            self._console.print(Text(plain(line), STYLES.get(line[:1], "") if piece.kind == "candidate" else ""))
        for line in summary(piece):
            self._console.print(Text(line, "bold"))
        termios.tcflush(self._terminal, termios.TCIFLUSH)
        while True:
            self._console.print(Text(f"{KEYS}\ncompile and run it? "), end="")
            self._file.flush()
            line = await self._line()
            word, _, reason = line.strip().partition(" ")
            if not line or word.lower() in ("q", "quit"):
                raise self._stopped("the person who approves stopped it")
            if word.lower() in ("y", "yes") and not reason:
                return Answer(True)
            if word.lower() in ("n", "no"):
                return Answer(False, plain(reason))

    async def _line(self) -> str:
        """The next line that is typed; empty at the end of the terminal's input. Nothing else waits meanwhile."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._terminal, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._terminal)
        return os.read(self._terminal, LINE_BYTES).decode(sys.getfilesystemencoding(), errors="replace")

    def _stopped(self, why: str) -> Interrupted:
        return Interrupted(why, "a yes or no to each piece of code", "go on with the run")


def summary(piece: Piece) -> list[str]:
    """What must not be overlooked at the end of long code."""
    lines = [plain(piece.size), plain(f"compile arguments: {shlex.join(piece.compile_args) or 'none'}")]
    if odd := Counter(char for char in piece.new if not char.isascii()):
        names = [f"{unicodedata.name(char, f'U+{ord(char):04X}')} ({count}×)" for char, count in odd.most_common(8)]
        lines.append(f"not ASCII: {', '.join(names)}{', …' if len(odd) > 8 else ''}")
    return lines


def plain(line: str) -> str:
    """`line` with all that a terminal would obey, reorder or not show written as escapes; tabs stay."""
    return "".join(char if char == "\t" or _visible(char) else _escape(char) for char in line)


def _visible(char: str) -> bool:
    return char.isprintable() and unicodedata.category(char) not in ("Cf", "Mn", "Me")


def _escape(char: str) -> str:
    return char.encode("unicode_escape", errors="backslashreplace").decode("ascii")
