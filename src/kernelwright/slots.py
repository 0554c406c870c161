"""The machine's cores and devices and who holds them: locks across tasks, processes and users.

A lock is `flock` on an empty file in a folder that every user of the machine shares, so it ends with its holder,
however that died. Nothing is ever written to the files: who holds one is read from /proc/locks. Containers with a /run
of their own do not see each other's locks; there the busy-core warning of `conditions` is what remains.

A compiler holds one core, any. A run on a device holds that device; a timed run on the cores holds all of them. A proof on a
device holds both. So builds fill the machine while devices are timed, and nothing is compiled beside what is timed on cores.
Cores are handed out one request after another (`gate`), so that whoever needs all gets them as soon as those at work end. No
holder of a core asks for a device: nobody can wait for each other.

The descriptors are close-on-exec, so no job inherits a lock: the process that spawns jobs grants and takes back, never
code beside a candidate. What this task holds already is not asked for twice.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

from kernelwright.errors import InfrastructureError

POLL_S = 0.05
"""How often another process's lock is tried; what a task of this one gives back is had at once."""
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
NOUN = {"cpu": "core", "gpu": "device"}
Kind = Literal["cpu", "gpu"]
Claim = tuple[Kind, int]
Stage = Literal["waiting", "working", "building", "running"]
"""What is awaited: a core or a device; none of these; what holds one core; what holds a device or all cores."""
OnWait = Callable[[str], None] | None

_HELD: ContextVar[frozenset[Claim]] = ContextVar("held", default=frozenset())
_OBSERVER: ContextVar[Callable[[Stage], None] | None] = ContextVar("observer", default=None)


@dataclass
class _Here:
    """The queues of one event loop: within a process waiters are served in order, and at once."""

    turns: dict[str, asyncio.Lock] = field(default_factory=dict)
    freed: asyncio.Event = field(default_factory=asyncio.Event)

    def turn(self, name: str) -> asyncio.Lock:
        return self.turns.setdefault(name, asyncio.Lock())


_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Here] = WeakKeyDictionary()


def _here() -> _Here:
    return _LOOPS.setdefault(asyncio.get_running_loop(), _Here())


@contextmanager
def observed(observer: Callable[[Stage], None]) -> Iterator[None]:
    """Tell `observer` of each stage that what is awaited inside enters; it begins with working."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def available_cores() -> tuple[int, ...]:
    """The cores that this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def lock_folder() -> Path:
    """/run/lock where every user may write there (Debian's way), else /tmp: the same answer for every user."""
    shared = Path("/run/lock")
    try:
        mode = shared.stat().st_mode
    except OSError:
        return Path("/tmp")
    open_to_all = stat.S_ISVTX | stat.S_IWOTH
    return shared if mode & open_to_all == open_to_all else Path("/tmp")


@asynccontextmanager
async def slot(
    kind: Kind, indices: Iterable[int], *, on_wait: OnWait = None, folder: Path | None = None
) -> AsyncIterator[None]:
    """Hold these cores or devices alone; waits as long as it takes, without blocking the event loop.

    `on_wait` gets one sentence whenever it starts to wait for another holder. Raises InfrastructureError where a lock file
    cannot be used.
    """
    wanted = [(kind, index) for index in sorted(set(indices)) if (kind, index) not in _HELD.get()]
    async with _hold(kind, wanted, len(wanted), "running", on_wait, folder):
        yield


@asynccontextmanager
async def any_core(*, on_wait: OnWait = None, folder: Path | None = None) -> AsyncIterator[None]:
    """Hold one core, whichever is free first; whoever holds something already has what it needs."""
    cores: list[Claim] = [] if _HELD.get() else [("cpu", core) for core in available_cores()]
    async with _hold("cpu", cores, min(1, len(cores)), "building", on_wait, folder):
        yield


@asynccontextmanager
async def _hold(
    kind: Kind, wanted: list[Claim], count: int, stage: Stage, on_wait: OnWait, folder: Path | None
) -> AsyncIterator[None]:
    """Hold `count` of `wanted`, which are tried in order."""
    if not wanted:
        yield
        return
    where, here = folder or lock_folder(), _here()
    with ExitStack() as held:
        held.callback(_tell_stage, "working")
        held.callback(here.freed.set)
        _tell_stage("waiting")
        got = await _collect(here, where, kind, wanted, count, on_wait, held)
        token = _HELD.set(_HELD.get() | frozenset(got))
        _tell_stage(stage)
        try:
            yield
        finally:
            _HELD.reset(token)


def _tell_stage(stage: Stage) -> None:
    if (observer := _OBSERVER.get()) is not None and not (stage in ("waiting", "working") and _HELD.get()):
        observer(stage)


async def _collect(
    here: _Here,
    where: Path,
    kind: Kind,
    wanted: list[Claim],
    count: int,
    on_wait: OnWait,
    held: ExitStack,
) -> list[Claim]:
    """Lock `count` of `wanted`; their descriptors close with `held`. Cores are collected by one request at a time, on the
    whole machine, and devices in rising order: so of two that want the same, none waits for what the other has."""
    got: list[Claim] = []
    names = [f"{kind}-{index}" for _, index in wanted]
    async with here.turn("cpu" if kind == "cpu" else names[0]):
        with ExitStack() as gate:
            if kind == "cpu":
                await _lock_one_of(here, where, {"cpu": "the cores"}, on_wait, gate)
            while len(got) < count:
                left = {name: f"{NOUN[kind]} {index}" for name, (_, index) in zip(names, wanted, strict=True)
                        if (kind, index) not in got}  # fmt: skip
                if kind == "gpu":
                    left = dict([next(iter(left.items()))])
                name = await _lock_one_of(here, where, left, on_wait, held)
                got.append(wanted[names.index(name)])
    return got


async def _lock_one_of(here: _Here, where: Path, names: dict[str, str], on_wait: OnWait, held: ExitStack) -> str:
    """Lock the first of these that is free, and return its name; `names` says what to call each."""
    told: str | None = None
    while True:
        here.freed.clear()
        for name in names:
            descriptor = _try(where / f"kernelwright-{name}.lock")
            if descriptor is not None:
                held.callback(os.close, descriptor)
                return name
        if on_wait is not None:
            first = next(iter(names))
            told = _tell(where / f"kernelwright-{first}.lock", names[first], told, on_wait)
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await here.freed.wait()


def _try(path: Path) -> int | None:
    """The descriptor of a lock that was free."""
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still_there(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _tell(path: Path, name: str, told: str | None, on_wait: Callable[[str], None]) -> str:
    descriptor = _open(path)
    try:
        holder = holder_of(descriptor)
    finally:
        os.close(descriptor)
    sentence = f"waiting for {name}, held by " + (f"pid {holder}" if holder else "another process")
    if sentence != told:
        on_wait(sentence)
    return sentence


def _open(path: Path) -> int:
    """Open the lock file, made where it is missing; only ever a regular file of one name, never through a link."""
    try:
        descriptor = _open_or_make(path)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise _unusable(path, "it is not a plain file of its own")
    return descriptor


def _open_or_make(path: Path) -> int:
    """First without O_CREAT: the kernel (fs.protected_regular) forbids it on another user's file in a sticky folder."""
    try:
        return os.open(path, FLAGS)
    except FileNotFoundError:
        pass
    try:
        descriptor = os.open(path, FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return os.open(path, FLAGS)
    os.fchmod(descriptor, 0o666)
    return descriptor


def _unusable(path: Path, why: str) -> InfrastructureError:
    return InfrastructureError(f"the lock file {path} cannot be used: {why}", "a plain file that every user may open",
                               f"remove {path}")  # fmt: skip


def _still_there(path: Path, descriptor: int) -> bool:
    """Whether the locked file is the one that others will open; it may have been removed in between."""
    try:
        now = path.lstat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (now.st_dev, now.st_ino) == (mine.st_dev, mine.st_ino)


def holder_of(descriptor: int) -> int | None:
    """The process that holds the lock on this open file; None where the kernel does not say (another namespace)."""
    status = os.fstat(descriptor)
    wanted = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if "->" not in words and len(words) > 5 and words[1] == "FLOCK" and words[5] == wanted:
            return int(words[4]) if int(words[4]) > 0 else None
    return None
