"""The default sandbox: bubblewrap, with the launcher as process 1 of the job's own pid namespace (`closed.py`).

As root, `stage.c` shows the job's folders, drops the user id and starts bubblewrap.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from kernelwright.errors import SandboxUnavailable
from kernelwright.sandbox import Bind, Job
from kernelwright.sandbox.closed import ClosedRoom
from kernelwright.sandbox.launch import our_program
from kernelwright.sandbox.refusals import WITHOUT
from kernelwright.sandbox.room import gpu_groups
from kernelwright.sandbox.user import job_uid

HELP_TIMEOUT_S = 10.0


class BubblewrapSandbox(ClosedRoom):
    """Raises SandboxUnavailable where bubblewrap is not installed."""

    name = "bubblewrap"

    def __init__(self) -> None:
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxUnavailable("bubblewrap is not installed", "the program bwrap on PATH",
                                     f"apt-get install bubblewrap (as root), --sandbox namespaces, {WITHOUT}")  # fmt: skip
        super().__init__()
        self._bwrap = str(Path(found).resolve())
        self._stage = our_program("stage.c") if job_uid() is not None else None

    @property
    def _what(self) -> str:
        return f"bubblewrap at {self._bwrap}"

    @cached_property
    def _options(self) -> str:
        """bubblewrap's own list: Ubuntu 22.04's and RHEL's have no --size yet (the launcher counts tmpfs all the same)."""
        done = subprocess.run([self._bwrap, "--help"], capture_output=True, text=True, timeout=HELP_TIMEOUT_S)
        return done.stdout + done.stderr

    def _if_known(self, option: str, *values: str) -> list[str]:
        return [option, *values] if option in self._options else []

    def _opener(self, job: Job, binds: Sequence[Bind]) -> tuple[list[str], list[str]]:
        staged, sources = self._staged(job, binds)
        words = [*staged, self._bwrap, "--unshare-all", "--as-pid-1", "--new-session"]
        return [*words, "--cap-drop", "ALL", *self._if_known("--clearenv")], sources

    def _staged(self, job: Job, binds: Sequence[Bind]) -> tuple[list[str], list[str]]:
        """The words that drop root's id, and where bubblewrap then finds the binds' sources."""
        if self._stage is None:
            return [], [str(bind.source) for bind in binds]
        uid = str(job_uid())
        words = [str(self._stage), "-u", uid, "-g", uid]
        for group in sorted(gpu_groups()) if job.gpu else ():
            words += ["-G", str(group)]
        for bind in binds:
            words += ["-b", str(bind.source)]
        return [*words, "--"], [f"/tmp/{number}" for number in range(len(binds))]
