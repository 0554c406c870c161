"""Private copies of the repository: made once, changed only by splicing regions, restored byte for byte.

The user's repository is read once and never written. What a workspace held is kept as a `Snapshot`, a manifest with the
place of each file's bytes; restoring compares every file's inode, size, modification and change time (a job cannot set
the last one) and puts back what differs. Folders of a product that was killed are swept by the next start: each is
locked while its owner lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from kernelwright.errors import JobFault, TaskError
from kernelwright.sandbox.outputs import drop_output
from kernelwright.source import SOURCE_SUFFIXES
from kernelwright.state import drop_if_left, locked_folder, state_home
from kernelwright.task import TASK_FILE, Task, covers

P = ParamSpec("P")
T = TypeVar("T")
Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Entry:
    """A file, folder or link of a workspace; `source` holds the bytes of a file, `target` the text of a link."""

    mode: int
    signature: Signature
    source: Path | None
    target: str | None


@dataclass(frozen=True)
class Snapshot:
    """What a folder held at one moment: repository-relative path → entry."""

    entries: Mapping[str, Entry]

    def files(self) -> set[str]:
        return {path for path, entry in self.entries.items() if entry.source is not None}


class WorkFolder:
    """A folder of ours under the state home for as long as its owner lives; removed on close, or by the next sweep."""

    def __init__(self) -> None:
        home = state_home() / "work"
        home.mkdir(exist_ok=True)
        sweep(home)
        self.path, self._lock = locked_folder(home)
        self.keep = False

    def close(self) -> None:
        if not self.keep:
            remove(self.path)
        os.close(self._lock)

    def hold(self) -> None:
        """Keep the folder after the end (`--keep-workspace`); `kernelwright clean` removes it."""
        self.keep = True
        (self.path / "keep").touch()


async def to_its_end(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call `function` in a thread and, where the caller is cancelled meanwhile, wait for it all the same: a thread that
    still writes into a workspace would put back what is being removed."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *arguments, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


def sweep(home: Path, kept: bool = False) -> list[Path]:
    """Remove work folders whose owner is gone; those kept on purpose only if `kept`. Returns what was removed."""
    gone = []
    for folder in home.iterdir() if home.is_dir() else ():
        if (folder / "keep").exists() and not kept:
            continue
        if drop_if_left(folder, remove):
            gone.append(folder)
    return gone


def remove(folder: Path) -> None:
    """Remove a folder that a job may have made hard to remove (folders without write permission)."""

    def retry(function: Callable[..., object], path: str, _error: object) -> None:
        Path(path).parent.chmod(0o700)
        if Path(path).is_dir() and not Path(path).is_symlink():
            Path(path).chmod(0o700)
        with contextlib.suppress(FileNotFoundError):
            function(path)

    shutil.rmtree(folder, onerror=retry)


def copy_repository(task: Task, to: Path) -> Snapshot:
    """Copy what the task's build needs (workdir and siblings, without hidden paths, `.git` and the task file) to `to`.

    Raises JobFault where the disk is full, TaskError where a file of the repository cannot be read.
    """
    root = task.root
    to.mkdir(parents=True)
    for path in wanted_paths(task):
        source, target = root / path, to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if source.is_symlink():
                target.symlink_to(source.readlink())
            elif source.is_dir():
                target.mkdir(exist_ok=True)
            else:
                shutil.copy2(source, target)
                target.chmod(target.stat().st_mode | stat.S_IWUSR | stat.S_IRUSR)
        except PermissionError as error:
            raise TaskError(
                f"{source} cannot be read: {error.strerror}",
                "a readable repository",
                "chmod +r, or hidden = [...] in the task",
            ) from None
        except OSError as error:
            raise JobFault(
                f"the workspace cannot be written: {error.strerror} ({target})",
                "free space",
                "free space, or point KERNELWRIGHT_HOME at another disk",
            ) from None
    _drop_products(task, to)
    return snapshot(to, None, to)


def _drop_products(task: Task, folder: Path) -> None:
    """Remove what earlier builds left in the user's tree: the program, objects whose source is there, CMake's build
    folders. A Makefile that misses a header would take them for fresh, and the region would never be compiled."""
    drop_output(folder, task.build.artifact)
    stems = {path.stem for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES}
    for path in list(folder.rglob("*")):
        if path.suffix in (".o", ".obj") and path.stem.split(".")[0] in stems:
            path.unlink(missing_ok=True)
        elif path.name == "CMakeCache.txt" and task.build.configure and path.parent != folder:
            remove(path.parent)


def wanted_paths(task: Task) -> Iterator[str]:
    """Repository paths to copy, parents first."""
    folders = (task.workdir, *task.siblings)
    own_home = state_home()
    seen = set()
    for folder in folders:
        for here, names, files in os.walk(task.root / folder):
            base = Path(here)
            names[:] = sorted(
                name
                for name in names
                if name != ".git" and not _is_hidden(task, base / name) and (base / name).resolve() != own_home
            )
            links = [name for name in names if (base / name).is_symlink()]
            names[:] = [name for name in names if name not in links]
            for path in [base, *(base / name for name in sorted(files) + links)]:
                relative = str(path.relative_to(task.root))
                if relative in seen or path == task.path or path.name == TASK_FILE or _is_hidden(task, path):
                    continue
                if path.is_dir() or path.is_file() or path.is_symlink():
                    seen.add(relative)
                    yield relative


def _is_hidden(task: Task, path: Path) -> bool:
    relative = str(path.relative_to(task.root))
    return any(covers(hidden, relative) for hidden in task.hidden)


def _scan(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below `folder` with its own state, links not followed."""
    stack, prefix = [str(folder)], len(str(folder)) + 1
    while stack:
        with _opened(Path(stack.pop())) as listing:
            for item in listing:
                yield item.path[prefix:], item.stat(follow_symlinks=False)
                if item.is_dir(follow_symlinks=False):
                    stack.append(item.path)


def _opened(folder: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """A job may have taken its own folder's permissions away; it is ours all the same."""
    try:
        return os.scandir(folder)
    except PermissionError:
        folder.chmod(0o700)
        return os.scandir(folder)


def _signature(state: os.stat_result) -> Signature:
    if stat.S_ISDIR(state.st_mode):
        return (state.st_ino, 0, 0, 0, 0)
    return (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_mode)


def snapshot(folder: Path, parent: Snapshot | None, store: Path) -> Snapshot:
    """Remember what `folder` holds. Bytes of files that differ from `parent` are copied to `store`; where `store` is
    `folder` itself, the folder is its own store and must not change afterwards."""
    entries: dict[str, Entry] = {}
    for path, state in _scan(folder):
        known = parent.entries.get(path) if parent else None
        signature = _signature(state)
        if known is not None and known.signature == signature:
            entries[path] = known
            continue
        source = target = None
        if stat.S_ISREG(state.st_mode):
            source = store / path
            if store != folder:
                source.parent.mkdir(parents=True, exist_ok=True)
                _copy_content(folder / path, source)
        elif stat.S_ISLNK(state.st_mode):
            target = str((folder / path).readlink())
        elif not stat.S_ISDIR(state.st_mode):
            continue
        entries[path] = Entry(state.st_mode, signature, source, target)
    return Snapshot(entries)


def _copy_content(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except PermissionError:
        source.chmod(0o600)
        shutil.copyfile(source, target)


def populate(folder: Path, like: Snapshot, own: Callable[[Path], None]) -> Snapshot:
    """Make `folder` a fresh copy of what `like` remembers, owned by jobs; returns its own snapshot."""
    folder.mkdir(parents=True)
    for path in sorted(like.entries):
        _put(folder / path, like.entries[path])
    own(folder)
    return _resign(folder, like)


def restore(folder: Path, like: Snapshot, own: Callable[[Path], None]) -> Snapshot:
    """Make `folder` equal to `like`, byte for byte, and return the snapshot to restore from next time."""
    seen = dict(_scan(folder))
    for path in sorted(seen, reverse=True):
        entry = like.entries.get(path)
        if entry is None or _signature(seen[path]) != entry.signature:
            _drop(folder / path)
            seen.pop(path)
    changed = [path for path in sorted(like.entries) if path not in seen]
    for path in changed:
        _put(folder / path, like.entries[path])
        own(folder / path)
    if not changed:
        return like
    entries = dict(like.entries)
    for path in changed:
        entries[path] = _signed(folder / path, like.entries[path])
    return Snapshot(entries)


def rewritten(folder: Path, since: Snapshot) -> set[str]:
    """Files of `since` that were written in `folder` meanwhile, or are gone; the same bytes written again count."""
    seen = dict(_scan(folder))
    return {
        path for path in since.files() if path not in seen or _signature(seen[path]) != since.entries[path].signature
    }


def _put(path: Path, entry: Entry) -> None:
    if entry.target is not None:
        path.symlink_to(entry.target)
    elif entry.source is not None:
        shutil.copyfile(entry.source, path)
        path.chmod(stat.S_IMODE(entry.mode))
        os.utime(path, ns=(entry.signature[2], entry.signature[2]))
    else:
        path.mkdir(exist_ok=True)
        path.chmod(stat.S_IMODE(entry.mode) | stat.S_IRWXU)


def _drop(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def _resign(folder: Path, like: Snapshot) -> Snapshot:
    return Snapshot({path: _signed(folder / path, entry) for path, entry in like.entries.items()})


def _signed(path: Path, entry: Entry) -> Entry:
    return Entry(entry.mode, _signature(path.lstat()), entry.source, entry.target)
