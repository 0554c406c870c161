"""The sandbox for machines without bubblewrap: the same room (`closed.py`), opened by a program of ours (`namespaces.c`).

As root it needs no user namespace, so it opens also where the machine keeps those from plain users.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from kernelwright.sandbox import Bind, Job
from kernelwright.sandbox.closed import ClosedRoom
from kernelwright.sandbox.launch import our_program
from kernelwright.sandbox.room import gpu_groups
from kernelwright.sandbox.user import job_uid

USER_SPACES = Path("/proc/sys/user/max_user_namespaces")


class NamespacesSandbox(ClosedRoom):
    """Raises InfrastructureError where there is no C compiler to make its program with."""

    name = "namespaces"

    def __init__(self) -> None:
        super().__init__()
        self._program = str(our_program("namespaces.c"))

    @property
    def _what(self) -> str:
        return "Linux namespaces, made by Kernelwright itself"

    @cached_property
    def _has_user_spaces(self) -> bool:
        return USER_SPACES.exists() and USER_SPACES.read_text().strip() != "0"

    @property
    def _limits_tasks(self) -> bool:
        return super()._limits_tasks and self._has_user_spaces

    def _if_known(self, option: str, *values: str) -> list[str]:
        return [option, *values]

    def _opener(self, job: Job, binds: Sequence[Bind]) -> tuple[list[str], list[str]]:
        sources = [str(bind.source) for bind in binds]
        if (uid := job_uid()) is None:
            return [self._program], sources
        words = [
            self._program,
            "--uid",
            str(uid),
            "--gid",
            str(uid),
            *([] if self._has_user_spaces else ["--share-user"]),
        ]
        for group in sorted(gpu_groups()) if job.gpu else ():
            words += ["--group", str(group)]
        return words, sources
