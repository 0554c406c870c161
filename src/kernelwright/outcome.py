"""The closed set of things that can become of a candidate, and the verdict that says so.

A value that exists only on success cannot be read otherwise: a verdict that is not `correct` has no comparison, no
speedup and no interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = 1


class Outcome(StrEnum):
    """What the verifier found. An infrastructure fault is never an outcome: it is raised."""

    NO_ANSWER = "no_answer"
    REFUSED = "refused"
    """Structure screening or the compile-argument allow-list said no."""
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG_RESULT = "wrong_result"
    UNVERIFIED = "unverified"
    """A check could not be made."""
    SUSPECT = "suspect"
    """Faster than physics allows, or the pieces of evidence disagree."""
    CORRECT = "correct"


class Comparison(StrEnum):
    """How a correct candidate's time compares with the original's."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """The whole interval lies within ± the task's least effect of interest."""
    UNRESOLVED = "unresolved"
    """The budget ended before the interval left the region of doubt."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio t_base / t_candidate (dimensionless; above 1 is faster)."""

    low: float
    high: float


@dataclass(frozen=True)
class CheckResult:
    """One check of one run. `passed` is None where the check could not be made; `detail` says what was compared."""

    check: str
    run: str
    passed: bool | None
    detail: str


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on, shown beside every speedup (docs/task-file.md, "Output")."""

    kinds: tuple[str, ...]
    """A subset of `outside`, `numbers`, `program`."""
    independence: str
    """`held-out` where runs that the task holds back were tried too, `derived` where other inputs were made from the shown
    run, else `single-input`."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The verifier's decision on one candidate of one task."""

    task: str
    outcome: Outcome
    reason: str
    """One sentence: why this outcome."""
    comparison: Comparison | None = None
    speedup: float | None = None
    """t_base / t_candidate, Hodges–Lehmann estimate."""
    interval: Interval | None = None
    level: float | None = None
    """The confidence level of `interval`, after correction for repeated looks."""
    kernel_speedup: float | None = None
    checks: tuple[CheckResult, ...] = ()
    samples: dict[str, Any] = field(default_factory=dict)
    """Raw times in seconds of each pair, the reason for stopping, and the conditions they were taken under."""
    evidence: Evidence | None = None
    reproduce: str | None = None
    """The command that repeats the build and run by hand."""
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the candidate may be kept: correct and not slower."""
        return self.outcome is Outcome.CORRECT and self.comparison is not Comparison.SLOWER

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "task": self.task,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "comparison": self.comparison.value if self.comparison else None,
            "speedup": self.speedup,
            "interval": [self.interval.low, self.interval.high] if self.interval else None,
            "level": self.level,
            "kernel_speedup": self.kernel_speedup,
            "checks": [vars(check) for check in self.checks],
            "samples": self.samples,
            "evidence": list(self.evidence.kinds) if self.evidence else None,
            "independence": self.evidence.independence if self.evidence else None,
            "notes": list(self.evidence.notes) if self.evidence else [],
            "reproduce": self.reproduce,
            "provenance": self.provenance,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Verdict:
        """The verdict that `to_json` wrote."""
        kinds = data["evidence"]
        return Verdict(
            data["task"],
            Outcome(data["outcome"]),
            data["reason"],
            Comparison(data["comparison"]) if data["comparison"] else None,
            data["speedup"],
            Interval(*data["interval"]) if data["interval"] else None,
            data["level"],
            data["kernel_speedup"],
            tuple(CheckResult(**check) for check in data["checks"]),
            data["samples"],
            Evidence(tuple(kinds), data["independence"], tuple(data["notes"])) if kinds is not None else None,
            data["reproduce"],
            data["provenance"],
        )
