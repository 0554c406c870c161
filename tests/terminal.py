"""A command at a terminal of its own: what it writes there is read, and what a person would type is typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from command import PROGRAM, Said, environment

COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Terminal:
    """The side of a pseudo-terminal where the person sits."""

    descriptor: int
    seen: str = ""
    """All that was written so far, without colours."""
    _raw: bytes = field(default=b"")
    _read_to: int = 0

    def until(self, text: str) -> str:
        """What is written up to `text`, from where the last call ended."""
        while text not in self.seen[self._read_to :]:
            ready, _, _ = select.select([self.descriptor], [], [], 60)
            assert ready, f"nothing more was written, no {text!r} in {self.seen[self._read_to :]}"
            try:
                data = os.read(self.descriptor, 65536)
            except OSError as error:  # how Linux says that nobody holds the other side any more
                raise AssertionError(f"it ended without {text!r}: {self.seen[self._read_to :]}") from error
            assert data, self.seen
            self._raw += data
            self.seen = COLOURS.sub("", self._raw.decode(errors="replace")).replace("\r\n", "\n")
        start, self._read_to = self._read_to, self.seen.index(text, self._read_to) + len(text)
        return self.seen[start : self._read_to]

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def rest(self) -> None:
        """Read until the command ends, so that it never waits for a reader."""
        while select.select([self.descriptor], [], [], 60)[0]:
            try:
                if not (data := os.read(self.descriptor, 65536)):
                    return
            except OSError:
                return
            self._raw += data
            self.seen = COLOURS.sub("", self._raw.decode(errors="replace")).replace("\r\n", "\n")


@dataclass
class Command:
    terminal: Terminal
    process: subprocess.Popen[bytes]
    _out: object

    def ended(self) -> Said:
        """What it came to; only stdout is no part of the terminal."""
        self.terminal.rest()
        code = self.process.wait(timeout=60)
        self._out.seek(0)  # type: ignore[attr-defined]
        return Said(code, self._out.read().decode(), self.terminal.seen)  # type: ignore[attr-defined]


@contextmanager
def at_a_terminal(*arguments: object) -> Iterator[Command]:
    """The command with stdin and stderr at a terminal that is its own; stdout goes into a file."""
    here, there = pty.openpty()
    name = os.ttyname(there)
    with tempfile.TemporaryFile() as out:

        def take() -> None:
            os.setsid()
            os.close(os.open(name, os.O_RDWR))  # the first terminal that a session's leader opens becomes its own

        process = subprocess.Popen(
            [*PROGRAM, *map(str, arguments)], stdin=there, stdout=out, stderr=there, env=environment(), preexec_fn=take
        )
        os.close(there)
        try:
            yield Command(Terminal(here), process, out)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(here)
