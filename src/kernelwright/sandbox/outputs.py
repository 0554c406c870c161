"""Read and drop what a job left behind, as if left by an enemy: a name in a workspace may be a link to anything."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_output(folder: Path, relative: str, limit_bytes: int) -> bytes | None:
    """The content of `folder/relative`, or None where that is not a regular file of at most `limit_bytes`.

    No component below `folder` may be a symbolic link, and opening never waits (a FIFO, a device).
    """
    parts = PurePosixPath(relative).parts
    if not parts or ".." in parts or relative.startswith("/"):
        return None
    try:
        fd = _open(folder, parts)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit_bytes:
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(limit_bytes + 1)
    finally:
        os.close(fd)
    return data if len(data) <= limit_bytes else None


def drop_output(folder: Path, relative: str) -> None:
    """Remove the file or link `folder/relative`, if it is there. What lies behind a symbolic link is left alone: a link in
    a copy of the user's repository may lead back to the repository itself."""
    *above, name = PurePosixPath(relative).parts
    try:
        here = _open_folder(folder, above)
    except OSError:
        return
    try:
        os.unlink(name, dir_fd=here)
    except (FileNotFoundError, IsADirectoryError):
        return
    finally:
        os.close(here)


def _open(folder: Path, parts: tuple[str, ...]) -> int:
    here = _open_folder(folder, parts[:-1])
    try:
        return os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)


def _open_folder(folder: Path, parts: Sequence[str]) -> int:
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            below = os.open(part, _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here
