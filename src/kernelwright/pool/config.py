"""A pool's configuration: a TOML file that says which scheduler gives out the machines, and what a worker has of them.

What strangers wrote becomes a `PoolConfig` or one message about its first mistake. Which keys the table [scheduler] may have
is known to the library that submits the blocks, and is checked by `cluster`, which alone loads it.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from kernelwright.errors import UsageError
from kernelwright.task import Model
from kernelwright.task_file import SHOWN_CHARS, read_text

Kind = Literal["local", "slurm", "pbs", "lsf", "kubernetes", "flux"]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
HELP = "kernelwright pool --help shows one that works of each kind"
OWN = ("nodes_per_block", "min_blocks", "init_blocks", "max_blocks", "walltime", "worker_init")
"""What a provider calls by the same name as the configuration does: given there, and not in [scheduler]."""


class PoolConfig(Model):
    """Where jobs run, and how many at once. A block is what the scheduler is asked for at a time: one or more nodes."""

    kind: Kind
    folder: Path
    """The pool's folder (`pool.folder`), on a file system that the driver and all nodes share."""
    accelerators: Count | tuple[str | int, ...] = 0
    """Of one node: how many, or their names as in CUDA_VISIBLE_DEVICES. 0: workers on cores."""
    workers_per_accelerator: AtLeastOne = 1
    """Or on a node's cores where there is no accelerator. With 2 of them one compiles while the other is timed."""
    nodes_per_block: AtLeastOne = 1
    min_blocks: Count = 1
    init_blocks: Count = 1
    max_blocks: AtLeastOne = 1
    walltime: Annotated[str, Field(pattern=r"^\d+:[0-5]\d:[0-5]\d$")] = "01:00:00"
    """Of a block, hours:minutes:seconds."""
    worker_init: str = ""
    """Shell commands on each node before its workers start: modules, an environment."""
    launcher: str | None = None
    """How workers start on each node of a block, by Parsl's name (SrunLauncher); by default what suits the kind."""
    address: str | None = None
    """Of this machine, as the nodes reach it; by default they try all that it has."""
    tries: AtLeastOne = 3
    """How often a job is begun where the machines fail it each time."""
    aside_after: AtLeastOne = 3
    """After so many failures in a row that were the machine's, a worker gets no more jobs."""
    sandbox: Literal["auto", "bubblewrap", "namespaces", "none"] = "auto"
    scheduler: Mapping[str, Any] = Field(default_factory=dict)
    """Passed on to Parsl's provider of the kind (for flux: to its executor) as it stands."""

    @model_validator(mode="after")
    def _fits(self) -> PoolConfig:
        if not self.min_blocks <= self.init_blocks <= self.max_blocks:
            said = f"{self.min_blocks}, {self.init_blocks}, {self.max_blocks}"
            raise ValueError(f"min_blocks <= init_blocks <= max_blocks (they are {said})")
        if self.kind == "local" and self.sandbox != "auto":
            raise ValueError("no sandbox for kind local, where --sandbox names it")
        for key in OWN:
            if key in self.scheduler:
                raise ValueError(f"{key} beside [scheduler], as a key of the pool, not in it")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The accelerators of a node; empty for cores."""
        given = self.accelerators
        return tuple(map(str, range(given) if isinstance(given, int) else given))

    @property
    def lanes(self) -> tuple[str | None, ...]:
        """What each worker of a node has: an accelerator's name, or None for the cores."""
        return tuple(name for name in self.names or (None,) for _ in range(self.workers_per_accelerator))

    @property
    def walltime_s(self) -> int:
        hours, minutes, seconds = map(int, self.walltime.split(":"))
        return 3600 * hours + 60 * minutes + seconds


def load_config(path: Path) -> PoolConfig:
    """Raises UsageError with one message for the first mistake found. A relative folder is relative to the file."""
    return parse_config(read_text(path, "configuration", UsageError, "a TOML file", HELP), path)


def parse_config(text: str, path: Path) -> PoolConfig:
    """As `load_config`, of a text; `path` is where it stands, for messages."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}", "TOML", HELP) from None
    try:
        config = PoolConfig.model_validate(data)
    except ValidationError as error:
        raise _first_mistake(path, error) from None
    return config.model_copy(update={"folder": path.parent.resolve() / config.folder.expanduser()})


def unknown_key(where: str, key: str, known: list[str]) -> UsageError:
    """The message about a key that nothing reads."""
    near = difflib.get_close_matches(key, known, 3)
    return UsageError(f"{where}: unknown key {key!r}", f"one of {', '.join(known)}", " or ".join(near) or HELP)


def _first_mistake(path: Path, error: ValidationError) -> UsageError:
    mistakes = error.errors(include_url=False)
    first = next((mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"), mistakes[0])
    key = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return unknown_key(str(path), key, list(PoolConfig.model_fields))
    if first["type"] == "missing":
        return UsageError(f"{path}: the key {key!r} is missing", "it to be given", HELP)
    shown = repr(first["input"])
    shown = shown if len(shown) <= SHOWN_CHARS else f"{shown[:SHOWN_CHARS]}…"
    what = f"{path}: {key} = {shown} does not fit" if key else f"{path} does not fit"
    said = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if key == "walltime":
        said = '"hours:minutes:seconds"'
    if key == "accelerators":
        said = "how many a node has, or the list of their names"
    return UsageError(what, said[:1].lower() + said[1:], HELP)


EXAMPLES: dict[str, str] = {
    "local": """\
# This machine, without a scheduler
kind = "local"
folder = "pool"
""",
    "slurm": """\
# Slurm: up to 16 nodes of 4 accelerators
kind = "slurm"
folder = "/shared/pool"          # the driver and all nodes see it
accelerators = 4                 # of each node; or their names: ["0", "2"]
workers_per_accelerator = 2      # one compiles while the other is timed
max_blocks = 16
walltime = "04:00:00"
worker_init = "module load cuda gcc && source /shared/venv/bin/activate"
[scheduler]                      # as Parsl's SlurmProvider takes it
partition = "gpu"
account = "project"
gpus_per_node = 4
scheduler_options = "#SBATCH --mem=0"
""",
    "pbs": """\
# PBS Pro
kind = "pbs"
folder = "/shared/pool"
accelerators = 4
max_blocks = 8
walltime = "02:00:00"
worker_init = "source /shared/venv/bin/activate"
[scheduler]                      # PBSProProvider
queue = "gpu"
account = "project"
cpus_per_node = 64
select_options = "ngpus=4"
""",
    "lsf": """\
# LSF: blocks of two nodes
kind = "lsf"
folder = "/shared/pool"
accelerators = 6
nodes_per_block = 2
max_blocks = 4
walltime = "02:00:00"
worker_init = "source /shared/venv/bin/activate"
[scheduler]                      # LSFProvider
project = "project"
queue = "batch"
""",
    "kubernetes": """\
# Kubernetes: each block is a pod of an image that holds Kernelwright;
# on this machine: pip install kubernetes
kind = "kubernetes"
folder = "/pool"                 # the volume, mounted at the same path here
accelerators = 1
max_blocks = 8
sandbox = "namespaces"
[scheduler]                      # KubernetesProvider
image = "registry.example/kernelwright:latest"
namespace = "kernelwright"
max_cpu = 16
max_mem = "64Gi"
extra_limits = { "nvidia.com/gpu" = "1" }
persistent_volumes = [["pool-claim", "/pool"]]
""",
    "flux": """\
# Flux: each job is a Flux job with an accelerator of its own
kind = "flux"
folder = "/shared/pool"
accelerators = 1
[scheduler]                      # FluxExecutor
flux_path = "/usr/bin/flux"
""",
}
"""A configuration of each kind, as `kernelwright pool --help` shows them."""
