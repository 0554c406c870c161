"""Where jobs run: this machine, or a cluster. One form for both: a spec in, its one result out.

A spec says what is to be done in JSON alone and is known by a hash of that, so that whoever finds its result knows what it
is the result of. `work` does what a spec says; `job` is the command around it, `local` and `cluster` are pools; `folder` is
what a pool leaves on disk, `board` what it tells of itself. A candidate's failure is a result. A fault of the machine is
tried again elsewhere, and at last raised; it is never a result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

from kernelwright.errors import (
    CandidateError,
    InfrastructureError,
    JobFault,
    JobLate,
    JobLost,
    KernelwrightError,
    SandboxUnavailable,
    TaskError,
    UsageError,
    UserError,
)
from kernelwright.slots import Stage
from kernelwright.task import Task

__all__ = ["DEADLINE_S", "Finished", "JobSpec", "Kind", "Pool", "Stage", "Times", "error_from", "error_to_json"]

SCHEMA = 1
DEADLINE_S = 3600.0
Kind = Literal["tool", "verdict", "accept", "brief", "health"]


@dataclass(frozen=True)
class JobSpec:
    """What is to be done. Equal specs are one job: who wants the same thing twice says so in `payload`."""

    kind: Kind
    payload: Mapping[str, Any] = field(default_factory=dict)
    archive: str | None = None
    """The hash of the task's archive (`pool.archive`); None for what needs no task."""
    deadline_s: float = DEADLINE_S
    """Seconds from the job's start, without those in which it waits for cores, the device or a person, after which it is
    lost, whatever it does. Not part of what it is."""

    @cached_property
    def id(self) -> str:
        """32 hexadecimal digits of a hash of what the job is."""
        what = {"schema": SCHEMA, "kind": self.kind, "payload": self.payload, "archive": self.archive}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "id": self.id,
            "kind": self.kind,
            "payload": dict(self.payload),
            "archive": self.archive,
            "deadline_s": self.deadline_s,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> JobSpec:
        """Raises UsageError where this is no spec, or one whose text was changed after its id was made."""
        try:
            spec = JobSpec(data["kind"], data["payload"], data["archive"], float(data["deadline_s"]))
            sound = data["schema"] == SCHEMA and data["id"] == spec.id
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"this is no job spec: {error!r}", "what a pool wrote", "kernelwright pool --help"
            ) from None
        if not sound:
            raise UsageError(f"the spec {str(data['id'])[:40]} is not what its id says", "a spec as it was written", "")
        return spec


@dataclass(frozen=True)
class Times:
    """Seconds of one job: until it began, and from then on at each stage."""

    queued_s: float = 0.0
    waiting_s: float = 0.0
    """For cores and the device."""
    working_s: float = 0.0
    building_s: float = 0.0
    running_s: float = 0.0
    total_s: float = 0.0
    """From its begin to its end."""


@dataclass(frozen=True)
class Finished:
    """The one result of a job: what it found, or the user's mistake that it met (a task whose original does not build)."""

    id: str
    kind: str
    value: dict[str, Any] | None
    error: dict[str, str] | None
    """A UserError as kind, what, expected, try; exactly one of `value` and `error` is there."""
    worker: str
    times: Times
    ended: float
    """Unix time."""
    tries: int = 1

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Finished:
        known = {key: value for key, value in data.items() if key != "schema"}
        return Finished(**{**known, "times": Times(**data["times"])})

    @property
    def result(self) -> dict[str, Any]:
        """The value. Raises the UserError that the job met."""
        if self.value is None:
            raise error_from(self.error or {})
        return self.value


class Pool(Protocol):
    """Runs jobs; an async context manager. All of it in one event loop."""

    async def add(self, task: Task) -> str:
        """Make a task known to all workers; the archive's hash, for specs."""
        ...

    async def run(self, spec: JobSpec) -> Finished:
        """The job's result: at once where there is one already. Waits where the queue is full. Raises
        InfrastructureError where the machines failed it again and again."""
        ...


_ERRORS: dict[str, type[KernelwrightError]] = {
    error.kind: error
    for error in (
        UserError,
        TaskError,
        CandidateError,
        UsageError,
        InfrastructureError,
        SandboxUnavailable,
        JobFault,
        JobLost,
        JobLate,
    )
}


def error_to_json(error: KernelwrightError) -> dict[str, str]:
    """An error as it travels between processes."""
    return {"kind": error.kind, "what": error.what, "expected": error.expected, "try": error.try_}


def error_from(data: Mapping[str, str]) -> KernelwrightError:
    """The error that `error_to_json` wrote, of the same class."""
    made = _ERRORS.get(data.get("kind", ""), InfrastructureError)
    return made(data.get("what", "a job failed"), data.get("expected", ""), data.get("try", ""))
