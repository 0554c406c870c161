"""Where Kernelwright keeps its own things: `$KERNELWRIGHT_HOME`, else the XDG state folder; never a user's repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
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
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "made"
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
