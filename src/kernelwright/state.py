"""Where Kernelwright keeps its own things: `$KERNELWRIGHT_HOME`, else the XDG state folder; never a user's repository."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kernelwright.errors import InfrastructureError


def state_home() -> Path:
    """The state folder, made where it does not exist yet. Raises InfrastructureError where it cannot be written."""
    home = _named()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"the state folder {home} cannot be made: {error.strerror}",
            "a writable folder",
            "set KERNELWRIGHT_HOME to one on a local disk",
        ) from None
    if not os.access(home, os.W_OK | os.X_OK):
        raise InfrastructureError(
            f"the state folder {home} cannot be written", "a writable folder", "set KERNELWRIGHT_HOME to another"
        )
    return home.resolve()


def _named() -> Path:
    if named := os.environ.get("KERNELWRIGHT_HOME"):
        return Path(named)
    if base := os.environ.get("XDG_STATE_HOME"):
        return Path(base) / "kernelwright"
    # Path.home raises where nobody knows this user, and takes an empty HOME for the root folder.
    home = Path(os.path.expanduser("~"))  # noqa: PTH111
    if not home.is_absolute() or os.environ.get("HOME") == "":
        raise InfrastructureError(
            "this user has no home folder (HOME is not set)", "a place for runs", "set KERNELWRIGHT_HOME to a folder"
        )
    return home / ".local" / "state" / "kernelwright"


def locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder in `parent` and the lock on it, a descriptor: the folder is ours until that is closed, also by our
    death. Whoever finds a folder without a lock may remove it, at any moment: so we look whether we still have it."""
    while True:
        folder = parent / secrets.token_hex(6)
        folder.mkdir()
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(folder.stat(), os.fstat(lock)):
                return folder, lock
        os.close(lock)


def drop_if_left(folder: Path, remove: Callable[[Path], object]) -> bool:
    """Remove a folder whose owner is gone; whether it was."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(folder)
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(lock)
    return True


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent` until the end; where we are killed, whoever calls `drop_if_left` next removes it."""
    folder, lock = locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def replace_text(path: Path, text: str, *, errors: str = "strict") -> None:
    """Write a file as a whole or not at all: whoever looks meanwhile, or after we were killed, sees the old text or the
    new one, never half of one."""
    part = path.with_name(f".{path.name[:200]}.part")
    try:
        part.write_text(text, encoding="utf-8", errors=errors)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def native(source: Path, compilers: Sequence[str], arguments: Sequence[str] = (), suffix: str = "") -> Path:
    """Compile one of our own small C/C++ sources on first use; the result is kept by the content of all that made it.

    `compilers` are tried in order; `arguments` follow the source. The result is readable by every user of the machine,
    because jobs run under a user id of their own. Raises InfrastructureError with the compiler's words.
    """
    compiler = next((found for name in compilers if (found := shutil.which(name))), None)
    if compiler is None:
        raise InfrastructureError(
            f"none of {', '.join(compilers)} is installed", "a C/C++ compiler", "apt-get install g++"
        )
    text = source.read_bytes()
    key = hashlib.sha256(b"\0".join([text, compiler.encode(), *(word.encode() for word in arguments)])).hexdigest()[:16]
    folder = state_home() / "native"
    folder.mkdir(exist_ok=True)
    target = folder / f"{source.stem}-{key}{suffix}"
    if target.exists():
        return target
    for left in folder.iterdir():
        drop_if_left(left, shutil.rmtree)
    with scratch_folder(folder) as scratch:
        made = scratch / "made"
        done = subprocess.run(
            [compiler, str(source), "-O2", "-o", str(made), *arguments], capture_output=True, text=True
        )
        if "No space left" in done.stderr:
            raise InfrastructureError(
                f"the disk that holds {folder} is full",
                "a few MB",
                "free some space, or point KERNELWRIGHT_HOME at a folder on another disk",
            )
        if done.returncode != 0:
            raise InfrastructureError(
                f"{compiler} cannot build {source.name}: {done.stderr.strip()[-800:]}",
                "a working compiler",
                "kernelwright doctor",
            )
        made.chmod(0o755)
        made.replace(target)
    return target
