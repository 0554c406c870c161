"""A task with its repository as one file, known by a hash of its content: how workers find what they work on.

In it are the files that the task's build needs (what a workspace holds: no `.git`, no hidden paths) and the task file as its
author wrote it. Equal content gives equal bytes, whoever packs it, wherever it lies. What `check` found of it lies beside.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path
from typing import Any

from kernelwright.acceptance import remembered
from kernelwright.errors import JobFault, TaskError
from kernelwright.pool.folder import PoolFolder, disk_faults
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.toolchain.devices import default_arch
from kernelwright.workspace import wanted_paths

META = "kernelwright.json"
WRITTEN = 946_684_800
"""When everything in an archive was last written: 2000-01-01, so that no build takes one file for newer than another."""


def put(task: Task, folder: PoolFolder) -> str:
    """Pack `task` into the pool's folder, with what `check` found of it on this machine; returns its hash."""
    data = pack(task)
    digest = hashlib.sha256(data).hexdigest()
    folder.put_bytes(_path(folder, digest), data)
    arch = task.build.arch or default_arch(task.language)
    if (found := remembered(task, arch)) is not None:
        folder.put("archives", f"{digest}.accepted", {"arch": arch, "acceptance": found})
    return digest


def pack(task: Task) -> bytes:
    """The archive's bytes. Raises TaskError where a file of the repository cannot be read."""
    base = Path(os.path.commonpath([task.path.parent, task.root]))
    meta = {"task": str(task.path.relative_to(base))}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, META, json.dumps(meta, sort_keys=True).encode())
        _add(tar, f"files/{meta['task']}", _relative_repo(task))
        for name in sorted(wanted_paths(task)):
            try:
                _add_path(tar, task.root / name, f"files/{(task.root / name).relative_to(base)}")
            except OSError as error:
                raise TaskError(
                    f"{task.root / name} cannot be read: {error.strerror}", "a readable repository", "chmod +r"
                ) from None
        for name in sorted(task.hidden):  # a task file may only name what is there; what is in it stays hidden
            hidden = task.root / name
            place = f"files/{hidden.relative_to(base)}"
            if hidden.is_dir():
                _add_folder(tar, place)
            else:
                _add(tar, place, b"")
    return gzip.compress(raw.getvalue(), compresslevel=6, mtime=0)


def unpack(folder: PoolFolder, digest: str, into: Path) -> tuple[Task, dict[str, Any] | None]:
    """Lay an archive out below the new folder `into`; the task, and what `check` found of it and for which architecture.

    Raises JobFault where the archive is not there, or is not what its name says.
    """
    path = _path(folder, digest)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise JobFault(
            f"the archive {path} cannot be read: {error.strerror}",
            "a pool's folder that all machines share",
            "another folder in the pool's configuration",
        ) from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise JobFault(f"the archive {path} is damaged", "bytes that its name is the hash of", f"remove {path}")
    with disk_faults(into), tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        into.mkdir(parents=True)
        tar.extractall(into, filter="tar")
    meta = json.loads((into / META).read_text(encoding="utf-8"))
    return load_task(into / "files" / meta["task"]), folder.get("archives", f"{digest}.accepted")


def _path(folder: PoolFolder, digest: str) -> Path:
    return folder.path / "archives" / f"{digest}.tar.gz"


def _relative_repo(task: Task) -> bytes:
    """The task file's bytes; where it names its repository by a whole path, with that made relative."""
    data = task.path.read_bytes()
    if not Path(task.repo).is_absolute():
        return data
    relative = os.path.relpath(task.root, task.path.parent)
    value = json.dumps(relative).encode()
    return re.sub(rb"^(\s*repo\s*=\s*)\S[^\r\n]*", lambda key: key[1] + value, data, count=1, flags=re.MULTILINE)


def _add_path(tar: tarfile.TarFile, path: Path, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.mtime = WRITTEN
    if path.is_symlink():
        info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
        tar.addfile(info)
    elif path.is_dir():
        _add_folder(tar, name)
    else:
        _add(tar, name, path.read_bytes(), 0o755 if path.stat().st_mode & 0o100 else 0o644)


def _add_folder(tar: tarfile.TarFile, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = tarfile.DIRTYPE, 0o755, WRITTEN
    tar.addfile(info)


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, WRITTEN
    tar.addfile(info, io.BytesIO(data))
