"""File systems that fill up and programs that vanish, in a mount namespace that nobody else sees.

Needs root. A small tmpfs stands for a small disk; overlays over /usr/bin and the compiler's folder make their programs
removable without touching the machine's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PRIVATE = "KW_FAULTS_PRIVATE"
AWAY = ".away"


def mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def become_private() -> bool:
    """Start this program again in a mount namespace of its own, with shared folders of its own; False without root."""
    if os.geteuid() != 0:
        return False
    if PRIVATE not in os.environ:
        os.environ[PRIVATE] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    for folder in ("/run/lock", "/dev/shm"):
        mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", folder)
    return True


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def small_disk(folder: Path, size: str, inodes: int) -> Iterator[None]:
    mount("-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "tmpfs", folder)
    try:
        yield
    finally:
        unmount(folder)


def fill(folder: Path, free_bytes: int) -> Path:
    """Write one file until only `free_bytes` of the file system are free; what is freed meanwhile is taken as well."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while (room := _free(folder) - free_bytes) > 0:
            file.write(bytes(min(room, 1 << 20)))
    return filler


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def use_up_names(folder: Path) -> Path:
    """Make files until the file system has no inode left."""
    names = folder / "filler"
    names.mkdir()
    with contextlib.suppress(OSError):
        for number in range(1_000_000):
            (names / str(number)).touch()
    return names


def removable(folder: Path, scratch: Path) -> None:
    """Lay an overlay over `folder`; what is renamed there is renamed for us alone."""
    upper, work = scratch / "upper", scratch / "work"
    upper.mkdir(parents=True)
    work.mkdir()
    mount("-t", "overlay", "-o", f"lowerdir={folder},upperdir={upper},workdir={work}", "overlay", folder)


def vanish(program: Path) -> None:
    program.rename(program.with_name(program.name + AWAY))


def come_back(program: Path) -> None:
    away = program.with_name(program.name + AWAY)
    if away.exists() or away.is_symlink():
        away.replace(program)
