"""The machine's cores and devices, one timed run at a time: locks across processes and users.

A lock is `flock` on an empty file in a folder that every user of the machine shares, so it ends with its holder,
however that died. Nothing is ever written to the files: who holds one is read from /proc/locks. Containers with a /run
of their own do not see each other's locks; there the busy-core warning of `conditions` is what remains.

The descriptors are close-on-exec, so no job inherits a lock. Who may time what, and for how long, is the caller's
choice: builds take no slot; a comparison holds its slot from the first warm-up to the last pair.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from kernelwright.errors import InfrastructureError

POLL_S = 0.05
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
NOUN = {"cpu": "core", "gpu": "device"}


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
    kind: Literal["cpu", "gpu"],
    indices: Iterable[int],
    *,
    on_wait: Callable[[str], None] | None = None,
    folder: Path | None = None,
) -> AsyncIterator[None]:
    """Hold these cores or devices alone; waits as long as it takes, without blocking the event loop.

    `on_wait` gets one sentence whenever it starts to wait for another holder. Several are taken in rising order, so two
    waiters cannot block each other. Not reentrant: the same task must not ask twice. Raises InfrastructureError where
    the lock file cannot be used.
    """
    where = folder or lock_folder()
    with ExitStack() as held:
        for index in sorted(set(indices)):
            descriptor = await _acquire(where / f"kernelwright-{kind}-{index}.lock", f"{NOUN[kind]} {index}", on_wait)
            held.callback(os.close, descriptor)
        yield


async def _acquire(path: Path, name: str, on_wait: Callable[[str], None] | None) -> int:
    told: str | None = None
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still_there(path, descriptor):
                return descriptor
            os.close(descriptor)
            continue
        except BlockingIOError:
            told = _tell(descriptor, name, told, on_wait)
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        await asyncio.sleep(POLL_S)


def _tell(descriptor: int, name: str, told: str | None, on_wait: Callable[[str], None] | None) -> str:
    holder = holder_of(descriptor)
    sentence = f"waiting for {name}, held by " + (f"pid {holder}" if holder else "another process")
    if on_wait and sentence != told:
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
