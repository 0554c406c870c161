"""Every way in which Kernelwright itself stops, as one tree.

    KernelwrightError
    ├── UserError                 the user's mistake: exit code 2
    │   ├── TaskError             a task file, or the repository it names, cannot be used
    │   ├── CandidateError        a candidate file is malformed or does not fit the task
    │   └── UsageError            a command was called wrongly
    ├── InfrastructureError       the machine's fault: exit code 3; never becomes a score
    │   ├── SandboxUnavailable    no way to run a job in isolation on this machine
    │   └── JobFault              a job could not be made (full disk, machine out of memory)
    │       └── JobLost           its worker was killed in its middle; another try may be lucky
    │           └── JobLate       its deadline passed; that says nothing of the worker
    ├── Interrupted               Ctrl-C or SIGTERM: exit code 130
    └── ModelMistake              told to the model as an observation; never ends a rollout, never reaches a user

What a *candidate* does wrong is not here: that is an outcome (`kernelwright.outcome`), a result and not an exception.
"""

from __future__ import annotations


class KernelwrightError(Exception):
    """Names a thing (`what`), what was `expected` of it and what to `try_`; printed as one message, without a traceback."""

    kind = "error"
    exit_code = 3

    def __init__(self, what: str, expected: str = "", try_: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.try_ = try_

    def __str__(self) -> str:
        parts = [self.what]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.try_:
            parts.append(f"try: {self.try_}")
        return "; ".join(parts)

    def to_json(self) -> dict[str, object]:
        """The failure object that `--json` prints (docs/task-file.md, "Output")."""
        return {"error": {"kind": self.kind, "what": self.what, "expected": self.expected, "try": self.try_}}


class UserError(KernelwrightError):
    kind = "user"
    exit_code = 2


class TaskError(UserError):
    kind = "task"


class CandidateError(UserError):
    kind = "candidate"


class UsageError(UserError):
    kind = "usage"


class InfrastructureError(KernelwrightError):
    kind = "infrastructure"
    exit_code = 3


class SandboxUnavailable(InfrastructureError):
    kind = "sandbox"


class JobFault(InfrastructureError):
    kind = "job"


class JobLost(JobFault):
    """A job that was begun and whose end nobody knows."""


class JobLate(JobLost):
    """A job that was still at work when its deadline passed."""

    kind = "late"


class Interrupted(KernelwrightError):
    kind = "interrupted"
    exit_code = 130


class ModelMistake(KernelwrightError):
    kind = "model"
