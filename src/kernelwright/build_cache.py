"""Builds that were made before, and what compilers reported: by a hash of all that went into them.

A build is a function of the repository, the build command, the candidate, the interposed compilers' plan and the machine's
compilers, so equal builds are made once for all rollouts, workers and the verifier of a user on a machine. Kept are only
builds that ended by themselves; the original's, from which the plan is learnt, is always made anew, and no time that
decides anything comes from here. Jobs cannot see the folder. What was not used for longest is removed first.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import shutil
import stat
import tarfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.interpose import Recorded
from kernelwright.state import drop_if_left, replace_text, scratch_folder, state_home
from kernelwright.workspace import Entry, Snapshot

MOST_BYTES = 2 * 2**30
"""What all kept builds may take together."""
MOST_OF_ONE = 256 * 2**20
"""A build that wrote more is made again instead."""
MACHINE = (
    "/var/lib/dpkg/status",
    "/var/lib/rpm",
    "/usr/include",
    "/usr/lib",
    "/usr/local/include",
    "/usr/local/lib",
    "/usr/local/cuda/include",
    "/usr/local/cuda/version.json",
    "/opt",
    "/opt/rocm",
)
"""Places that change when the machine's libraries and headers do."""
TOOLS = ("make", "cmake", "ninja", "ld", "as", "ptxas", "cicc")
META = "build.json"


@dataclass(frozen=True)
class KeptBuild:
    """What became of a build. `failed` is the log of one that the compiler refused; the others have a tree."""

    failed: bool
    log: str
    commands: tuple[Recorded, ...]
    artifact: str
    build_s: float
    snapshot: Snapshot | None
    """The built workspace: entries of the repository as it was, and what the build wrote."""


def key_of(parts: Iterable[object]) -> str:
    """The hash of all that goes into a build: of `parts`, and of this machine's processor (for -march=native), libraries and
    build tools, and of Kernelwright's own code."""
    places = (*MACHINE, *(found for tool in TOOLS if (found := shutil.which(tool))))
    seen = [
        (place, Path(place).stat().st_mtime_ns, Path(place).stat().st_size) for place in places if Path(place).exists()
    ]
    return hashlib.sha256(json.dumps([*parts, seen, _processor(), _own_code()], default=str).encode()).hexdigest()


@cache
def _processor() -> str:
    """What compilers see of it: its model and the instructions that it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    return platform.machine() + "".join(
        sorted(line for line in lines if line.startswith(("model", "flags", "Features")))
    )


@cache
def _own_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".c", ".cpp", ".hpp"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def tree_hash(start: Snapshot) -> str:
    """A hash of a snapshot's paths, modes and bytes."""
    digest = hashlib.sha256()
    for path in sorted(start.entries):
        entry = start.entries[path]
        data = _digest(entry.source) if entry.source else entry.target
        digest.update(json.dumps([path, stat.S_IMODE(entry.mode), data]).encode())
    return digest.hexdigest()


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def keep(key: str, made: KeptBuild, start: Snapshot) -> None:
    """Keep a build; a disk that does not take it is no reason to fail."""
    changed = _changed(made.snapshot, start)
    with suppress(OSError):
        if sum(entry.source.stat().st_size for entry in changed.values() if entry.source) > MOST_OF_ONE:
            return
        folder = _folder()
        for left in folder.iterdir():
            drop_if_left(left, shutil.rmtree)
        with scratch_folder(folder) as scratch:
            with tarfile.open(scratch / "made", mode="w") as tar:
                _add(tar, META, json.dumps(_meta(made, start)).encode())
                for path, entry in changed.items():
                    if entry.source is not None:
                        tar.add(entry.source, f"files/{path}", recursive=False, filter=_plain)
            (scratch / "made").replace(folder / f"{key}.tar")
        _make_room(folder)


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Its bytes alone: mode and time are in the list beside."""
    info.mode, info.uid, info.gid, info.uname, info.gname = 0o644, 0, 0, "", ""
    return info


def find(key: str, start: Snapshot, into: Path) -> KeptBuild | None:
    """The build of this key, its files laid out below `into`; None where there is none that is whole."""
    path = _folder() / f"{key}.tar"
    try:
        with tarfile.open(path) as tar:
            tar.extractall(into, filter="data")
        os.utime(path)
        meta = json.loads((into / META).read_text(encoding="utf-8"))
        whole = all(
            _digest(into / "files" / name) == digest for name, (*_, digest) in meta["changed"].items() if digest
        )
    except (OSError, ValueError, tarfile.TarError):
        return None
    if not whole:
        return None
    commands = tuple(
        Recorded(**{**command, "argv": tuple(command["argv"]), "depends": tuple(command["depends"])})
        for command in meta["commands"]
    )
    snapshot = None if meta["failed"] else _snapshot(meta, start, into)
    return KeptBuild(meta["failed"], meta["log"], commands, meta["artifact"], meta["build_s"], snapshot)


def keep_report(key: str, report: Mapping[str, Any]) -> None:
    """Keep a compiler's report (JSON)."""
    with suppress(OSError):
        replace_text(_folder() / f"{key}.json", json.dumps(report))


def find_report(key: str) -> dict[str, Any] | None:
    """The report of this key; None where there is none that is whole."""
    try:
        found = json.loads((_folder() / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _meta(made: KeptBuild, start: Snapshot) -> dict[str, object]:
    tree = {
        path: [entry.mode, entry.signature[2], entry.target, _digest(entry.source) if entry.source else None]
        for path, entry in _changed(made.snapshot, start).items()
    }
    same = sorted(set(made.snapshot.entries) - set(tree)) if made.snapshot else []
    return {
        "failed": made.failed,
        "log": made.log,
        "commands": [asdict(command) for command in made.commands],
        "artifact": made.artifact,
        "build_s": made.build_s,
        "same": same,
        "changed": tree,
    }


def _changed(made: Snapshot | None, start: Snapshot) -> Mapping[str, Entry]:
    """What a build wrote; the bytes of an entry that it left alone are where they were."""
    entries = made.entries if made else {}
    return {path: entry for path, entry in entries.items() if not _same(entry, start.entries.get(path))}


def _same(entry: Entry, before: Entry | None) -> bool:
    return before is not None and (entry.source, entry.target, entry.mode) == (
        before.source,
        before.target,
        before.mode,
    )


def _snapshot(meta: dict[str, Any], start: Snapshot, files: Path) -> Snapshot:
    entries = {path: start.entries[path] for path in meta["same"]}
    for path, (mode, mtime_ns, target, digest) in meta["changed"].items():
        source = files / "files" / path if digest else None
        # No file has this signature: whoever restores this puts the file in its place.
        entries[path] = Entry(mode, (0, 0, mtime_ns, 0, 0), source, target)
    return Snapshot(entries)


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


def _folder() -> Path:
    folder = state_home() / "builds"
    folder.mkdir(exist_ok=True)
    return folder


def _make_room(folder: Path) -> None:
    """Remove what was not used for longest until the rest is small enough."""
    kept = sorted(
        ((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("[0-9a-f]*.*")), reverse=True
    )
    total = 0
    for _, size, path in kept:
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)


def forget() -> int:
    """Remove all kept builds and reports; how many there were."""
    paths = list(_folder().glob("*.*"))
    for path in paths:
        path.unlink(missing_ok=True)
    return len(paths)
