"""Which pool a command runs on: this machine's, or the one that a configuration describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.approval import Approval
from kernelwright.errors import UsageError
from kernelwright.pool.config import PoolConfig
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.local import LocalPool
from kernelwright.sandbox import Sandbox
from kernelwright.trial import Progress

if TYPE_CHECKING:
    from kernelwright.pool.cluster import ClusterPool


def pool_of(
    config: PoolConfig | None,
    sandbox: Sandbox | None,
    folder: PoolFolder | None = None,
    progress: Progress = lambda _: None,
    approval: Approval | None = None,
    keep: bool = False,
) -> LocalPool | ClusterPool:
    """The pool, not entered yet. `sandbox` is this machine's, which a cluster's workers do without: theirs is named by the
    configuration. `folder` is where results are kept, by default the configuration's, or nowhere.

    A person approves code, and looks at kept workspaces, on this machine only: else a UsageError, as for a configuration
    that cannot be used and where a cluster's library is not installed.
    """
    if sandbox is not None:
        where = folder or (PoolFolder(config.folder) if config is not None else None)
        if config is None:
            return LocalPool(sandbox, where, progress=progress, approval=approval, keep=keep)
        return LocalPool(
            sandbox,
            where,
            devices=[int(name) for name in config.names] or None,
            at_once=config.workers_per_accelerator if config.workers_per_accelerator > 1 else None,
            tries=config.tries,
            patience=config.aside_after,
            progress=progress,
            approval=approval,
            keep=keep,
        )
    assert config is not None, "what is not this machine is configured"
    if approval is not None or keep:
        said = "--approve" if approval is not None else "--keep-workspace"
        raise UsageError(f"{said} works on this machine only", "a pool of kind local", f"without {said}")
    from kernelwright.pool.cluster import ClusterPool

    return ClusterPool(config)
