"""A task's regular expressions, matched against text that a candidate may have written, in bounded time and memory.

An innocent pattern such as `(\\S+) ms` takes hours on eight megabytes without a space, and nothing in Python interrupts a
match. So matching happens in a process of its own (`kernelwright.matcher`), whose use of the processor and of memory the
kernel bounds. What is made of the matches, and of a search that was given up, is for `kernelwright.checks` to say.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwright.errors import JobFault

LIMIT_S = 10.0
"""Processor time of one search. An honest pattern takes about a second on all the output that is kept of a run."""
MEMORY_BYTES = 2 * 2**30
MOST_MATCHES = 2**20
"""One for each line of eight characters of all the output that is kept."""
WALL_FACTOR = 30
"""How much longer than its processor time a search may last on a machine that is busy with other things."""


class GivenUp(Exception):
    """A search that did not come to its end; the message says what it ran out of."""


def first_match(pattern: str, text: str, limit_s: float = LIMIT_S) -> str | None:
    """The text of the first match of `pattern` (as by re.MULTILINE), or None. Raises GivenUp."""
    found = _ask(pattern, text, (0,), 1, limit_s)
    return found[0][0] if found else None


def all_matches(
    pattern: str, text: str, groups: Sequence[int | str], limit_s: float = LIMIT_S
) -> list[list[str | None]]:
    """For each match of `pattern` (as by re.MULTILINE) its `groups`; None for one that took no part. Raises GivenUp, also
    for more than `MOST_MATCHES`."""
    found = _ask(pattern, text, groups, MOST_MATCHES + 1, limit_s)
    if len(found) > MOST_MATCHES:
        raise GivenUp(f"it matches more than {MOST_MATCHES:,} times")
    return found


def _ask(pattern: str, text: str, groups: Sequence[int | str], most: int, limit_s: float) -> list[Any]:
    question = {"pattern": pattern, "groups": list(groups), "most": most, "limit_s": limit_s, "memory": MEMORY_BYTES}
    with _lock:
        matcher = _Matcher.current()
        try:
            answer = matcher.ask(question, text.encode(errors="surrogatepass"), limit_s)
        except BaseException:
            matcher.close()
            raise
    if answer is None:
        raise GivenUp(f"it needs more than {MEMORY_BYTES >> 30} GiB of memory on this output")
    return answer


_lock = threading.Lock()


class _Matcher:
    """The process that matches. It waits between questions, and ends when this process does, however that ends."""

    _current: _Matcher | None = None

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("matcher.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", start_new_session=True,
        )  # fmt: skip

    @classmethod
    def current(cls) -> _Matcher:
        if cls._current is None or cls._current.owner != os.getpid():  # a fork has no say over its parent's
            cls._current = cls()
        return cls._current

    def ask(self, question: dict[str, Any], text: bytes, limit_s: float) -> list[Any] | None:
        """The matches, None where memory ran out. Raises GivenUp where time did."""
        to, back = self.process.stdin, self.process.stdout
        assert to is not None
        assert back is not None
        line = b""
        with contextlib.suppress(BrokenPipeError):
            to.write(json.dumps({**question, "bytes": len(text)}).encode() + b"\n" + text)
            to.flush()
            waiting = select.poll()
            waiting.register(back, select.POLLIN)
            line = back.readline() if waiting.poll(1000 * limit_s * WALL_FACTOR) else b"late"
        if line == b"late":
            raise GivenUp(f"it takes more than {limit_s * WALL_FACTOR:g} s on this output")
        if not line.endswith(b"\n"):
            self._explain_end(limit_s)
        answer: list[Any] | None = json.loads(line)
        return answer

    def _explain_end(self, limit_s: float) -> None:
        self.close()
        if self.process.returncode == -signal.SIGVTALRM:
            raise GivenUp(f"it takes more than {limit_s:g} s of processor time on this output")
        raise JobFault("the process that reads a run's output was killed", "it to answer",
                       "look for an out-of-memory message in the kernel's log (dmesg)")  # fmt: skip

    def close(self) -> None:
        """End it; the next question starts another."""
        _Matcher._current = None
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.wait(timeout=1)  # where it ended by itself, its own reason is the one to know
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
