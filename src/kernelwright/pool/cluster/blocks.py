"""What Parsl is given: an executor with the provider of a configuration's kind, each checked before anything is submitted."""

from __future__ import annotations

import inspect
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from kernelwright.errors import UsageError
from kernelwright.pool.config import PoolConfig, unknown_key
from kernelwright.pool.remote import GIVEN, Settings

BEAT_S, SILENT_S = 2, 10
"""How often interchange and blocks tell each other that they live, and after how long one that does not is dead."""
POLL_S = 10
"""How often the scheduler is asked what became of the blocks."""
LABEL = "kernelwright"
PROVIDERS = {"local": "LocalProvider", "slurm": "SlurmProvider", "pbs": "PBSProProvider", "lsf": "LSFProvider",
             "kubernetes": "KubernetesProvider"}  # fmt: skip
LAUNCHERS = {"slurm": "SrunLauncher", "pbs": "MpiExecLauncher", "lsf": "JsrunLauncher"}
"""What starts the workers of blocks of several nodes."""


def settings_of(config: PoolConfig) -> Settings:
    return {
        "sandbox": config.sandbox,
        "aside_after": config.aside_after,
        "lanes": [None] if config.kind == "flux" else list(config.lanes),
        "by_index": isinstance(config.accelerators, int),
        "once": config.kind == "flux",
    }


def resources_of(config: PoolConfig) -> dict[str, int]:
    """What Flux gives to one job."""
    return {"num_tasks": 1, "gpus_per_task": min(1, len(config.names))} if config.kind == "flux" else {}


def executor_of(config: PoolConfig, runs: Path) -> Any:
    """Parsl's executor, with the provider of the kind; nothing is started or submitted."""
    try:
        import parsl  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError(
            "a pool on a cluster needs Parsl", "the extra [cluster]", "pip install 'kernelwright[cluster]'"
        ) from None
    return flux_of(config, runs) if config.kind == "flux" else high_throughput_of(config)


def high_throughput_of(config: PoolConfig) -> Any:
    from parsl.executors import HighThroughputExecutor
    from parsl.jobs.error_handlers import windowed_error_handler

    executor = type("Executor", (HighThroughputExecutor,), {"status_polling_interval": POLL_S})
    lanes = config.lanes
    return executor(
        label=LABEL,
        provider=provider_of(config),
        address=config.address or ("127.0.0.1" if config.kind == "local" else None),
        interchange_launch_cmd=interchange(),
        cores_per_worker=1e-3,  # as many workers as we say, however few cores the node has
        max_workers_per_node=len(lanes),
        available_accelerators=[name for name in lanes if name is not None],
        heartbeat_period=BEAT_S,
        heartbeat_threshold=SILENT_S,
        address_probe_timeout=2 * SILENT_S,
        drain_period=drain_s(config),
        block_error_handler=windowed_error_handler,
    )


def drain_s(config: PoolConfig) -> int | None:
    """Seconds after which a block takes no more jobs, so that its end loses few; None for blocks that have no end."""
    if config.kind in ("local", "kubernetes"):
        return None
    return config.walltime_s - min(600, config.walltime_s // 4)


def interchange() -> list[str]:
    """Its command: ended by the kernel when we end, however that is, and out of reach of the terminal's Ctrl-C, since it
    takes leave of the blocks after that."""
    program = shutil.which("interchange.py", path=f"{scripts()}{os.pathsep}{os.environ.get('PATH', '')}")
    bound = [("setpriv", "--pdeathsig", "KILL"), ("setsid",)]
    return [*(word for words in bound if shutil.which(words[0]) for word in words), program or "interchange.py"]


def scripts() -> Path:
    """Where this environment's programs lie."""
    return Path(sys.executable).parent


def provider_of(config: PoolConfig) -> Any:
    """Raises UsageError for keys of [scheduler] that the provider does not have, or values that it does not take."""
    from parsl import launchers, providers

    made = getattr(providers, PROVIDERS[config.kind])
    known = inspect.signature(made.__init__).parameters
    own = {
        "nodes_per_block": config.nodes_per_block,
        "min_blocks": config.min_blocks,
        "init_blocks": config.init_blocks,
        "max_blocks": config.max_blocks,
        "walltime": config.walltime,
        "worker_init": worker_init(config),
    }
    launcher = config.launcher or (LAUNCHERS.get(config.kind) if config.nodes_per_block > 1 else None)
    if launcher is not None:
        own["launcher"] = launcher_of(launcher, launchers)
    return called(made, {name: value for name, value in own.items() if name in known}, config)


def launcher_of(name: str, launchers: Any) -> Any:
    if name not in launchers.__all__:
        raise unknown_key("launcher", name, list(launchers.__all__))
    return getattr(launchers, name)()


def called(made: Any, own: dict[str, Any], config: PoolConfig) -> Any:
    """`made` with our arguments and the table [scheduler]."""
    known = [name for name in inspect.signature(made.__init__).parameters if name not in ("self", "label", *own)]
    for key in config.scheduler:
        if key not in known:
            raise unknown_key(f"[scheduler] of kind {config.kind!r}", key, known)
    from parsl.errors import OptionalModuleMissing

    given = {key: [tuple(each) for each in value] if key == "persistent_volumes" else value
             for key, value in config.scheduler.items()}  # fmt: skip
    try:
        return made(**own, **given)
    except OptionalModuleMissing as error:
        raise UsageError(
            f"kind {config.kind!r} needs {error.module_names}", "them to be installed", "pip install"
        ) from None
    except (TypeError, OSError) as error:
        raise UsageError(
            f"{made.__name__} does not take [scheduler]: {error}",
            "what its documentation says",
            "Parsl's documentation",
        ) from None


def worker_init(config: PoolConfig) -> str:
    """Shell commands before workers start: this environment's programs (a pod has its own), and what the scheduler gave."""
    path = [] if config.kind == "kubernetes" else [f"export PATH={shlex.quote(str(scripts()))}:$PATH"]
    given = f'export {GIVEN}="${{CUDA_VISIBLE_DEVICES:-${{ROCR_VISIBLE_DEVICES:-$HIP_VISIBLE_DEVICES}}}}"'
    return "\n".join([*path, given, config.worker_init])


def flux_of(config: PoolConfig, runs: Path) -> Any:
    from parsl.executors import FluxExecutor

    return called(FluxExecutor, {"working_dir": str(runs / "flux"), "label": LABEL}, config)
