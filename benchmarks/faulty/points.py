"""Where in a command's life a fault strikes: after a share of its usual time, at a job's start, or at a commit of the store.

Counting what happens reaches every phase alike; a share of the time reaches what lies between the events.
"""

from __future__ import annotations

import random
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from faulty.processes import Process, below

POLL_S = 0.008


@dataclass(frozen=True)
class Usual:
    """What a command does where nothing disturbs it."""

    took_s: float
    jobs: int
    commits: int
    parts: dict[str, int]
    """How many processes of each part of the work were seen."""


@dataclass(frozen=True)
class Point:
    """`event` is time, job or commit; `number` counts from 1. `delay_s` follows, or for time is all."""

    event: str
    number: int
    delay_s: float

    def __str__(self) -> str:
        return f"{self.delay_s:.3f} s" if self.event == "time" else f"{self.event} {self.number} + {self.delay_s:.3f} s"


def draw(rng: random.Random, usual: Usual) -> Point:
    event = rng.choice(("time", "job", "job", "commit"))
    count = {"time": 0, "job": usual.jobs, "commit": usual.commits}[event]
    if not count:
        return Point("time", 0, rng.random() * usual.took_s)
    return Point(event, rng.randint(1, count), rng.choice((0.0, 0.02, 0.2)) * rng.random())


@dataclass
class Watch:
    """Looks at a running command again and again and counts what it does."""

    product: subprocess.Popen[bytes]
    home: Path
    seen: set[Process] = field(default_factory=set)
    living: list[Process] = field(default_factory=list)
    jobs: int = 0
    commits: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    _log: tuple[int, int] = (0, 0)

    @property
    def passed_s(self) -> float:
        return time.monotonic() - self.began

    def look(self) -> bool:
        """One look, after a moment; False once the command has ended."""
        time.sleep(POLL_S)
        if self.product.poll() is not None:
            return False
        self.living = below(self.product.pid)
        for process in self.living:
            if process not in self.seen:
                self.seen.add(process)
                self.parts[process.part] = self.parts.get(process.part, 0) + 1
                self.jobs += process.part == "launcher"
        try:
            status = (self.home / "runs.sqlite3-wal").stat()
            log = (status.st_size, status.st_mtime_ns)
        except OSError:
            log = (0, 0)
        self.commits += log not in (self._log, (0, 0))
        self._log = log
        return True

    def reaches(self, point: Point) -> bool:
        """Wait for a point; False where the command ended before it."""
        while self.look():
            done = {"time": 0, "job": self.jobs, "commit": self.commits}[point.event]
            if done >= point.number:
                until = (self.began if point.event == "time" else time.monotonic()) + point.delay_s
                while time.monotonic() < until:
                    if not self.look():
                        return False
                return True
        return False

    def waits_for(self, part: str) -> Process | None:
        """A living process of this part of the work, the next that is seen; None where the command ended before."""
        while self.look():
            found = [process for process in self.living if process.part == part]
            if found:
                return found[-1]
        return None

    def to_its_end(self) -> Usual:
        while self.look():
            pass
        return Usual(self.passed_s, self.jobs, self.commits, self.parts)
