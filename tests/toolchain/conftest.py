from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

import pytest

from kernelwright.sandbox import JobResult
from kernelwright.toolchain import Exec


@pytest.fixture(scope="session")
def exec_here() -> Exec:
    """Runs commands on this machine, as the sandbox would over a workspace."""

    async def run(argv: Sequence[str], cwd: str) -> JobResult:
        process = await asyncio.create_subprocess_exec(*argv, cwd=cwd, stdout=-1, stderr=-1)
        stdout, stderr = await process.communicate()
        code = process.returncode
        return JobResult(code if code is not None and code >= 0 else None, None, stdout, stderr, 0.0, 0.0, 0)

    return run


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ.setdefault("KERNELWRIGHT_HOME", str(tmp_path_factory.mktemp("state")))
