"""Which pool a command runs on: this machine's, or the one that a configuration describes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kernelwright.approval import Approval
from kernelwright.errors import UsageError
from kernelwright.pool import Pool
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.local import LocalPool
from kernelwright.sandbox import Sandbox
from kernelwright.trial import Progress


@asynccontextmanager
async def open_pool(
    file: Path | None,
    sandbox: Sandbox,
    progress: Progress = lambda _: None,
    approval: Approval | None = None,
    keep: bool = False,
) -> AsyncIterator[Pool]:
    """A person approves code, and looks at kept workspaces, on this machine only. Raises UsageError for a configuration
    that cannot be used, and where a cluster's library is not installed."""
    if file is None:
        async with LocalPool(sandbox, progress=progress, approval=approval, keep=keep) as local:
            yield local
        return
    from kernelwright.pool.cluster import ClusterPool
    from kernelwright.pool.config import load_config

    config = load_config(file)
    if config.kind == "local":
        folder = PoolFolder(config.folder)
        async with LocalPool(sandbox, folder, progress=progress, approval=approval, keep=keep) as local:
            yield local
        return
    if approval is not None or keep:
        said = "--approve" if approval is not None else "--keep-workspace"
        raise UsageError(f"{said} works on this machine only", "a pool of kind local", f"without {said}")
    progress(f"starting workers ({config.kind})")
    async with ClusterPool(config) as cluster:
        yield cluster
