"""The reward of a rollout, equations 2 to 4 of the paper (arXiv 2510.17158), its parts apart.

    r       = r_perf + r_tools                                                                     (2)
    r_perf  = −2 if not correct, −1 if correct but slower, else min(10, t_base / t − 1)            (3)
    r_tools = 0.5 × distinct tools used / tools available                                          (4)

What the paper leaves open is fixed so: `same` and `unresolved` count 0, since a gain inside the noise is none; only calls
that succeeded count as used, since empty calls would earn the bonus; what could not be verified, and what the machine
failed to run, has no score at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.trace import Message

CAP = 10.0
NOT_CORRECT = -2.0
SLOWER = -1.0
TOOL_WEIGHT = 0.5


@dataclass(frozen=True)
class Reward:
    """Both parts, dimensionless. `performance` is None where there is no score, and then so is `total`."""

    performance: float | None
    tools: float

    @property
    def total(self) -> float | None:
        return None if self.performance is None else self.performance + self.tools


def reward(verdict: Verdict | None, messages: Iterable[Message], available: Collection[str]) -> Reward:
    """The reward of a rollout with these `messages` and `available` tools; no verdict is an infrastructure fault."""
    performance = performance_reward(verdict) if verdict is not None else None
    return Reward(performance, tools_reward(successful_tools(messages), available))


def performance_reward(verdict: Verdict) -> float | None:
    """Equation 3, or None where the candidate could not be verified."""
    if verdict.outcome is Outcome.UNVERIFIED:
        return None
    if verdict.outcome is not Outcome.CORRECT:
        return NOT_CORRECT
    if verdict.comparison is Comparison.SLOWER:
        return SLOWER
    if verdict.comparison is Comparison.FASTER and verdict.speedup is not None:
        return min(CAP, verdict.speedup - 1)
    return 0.0


def tools_reward(used: Collection[str], available: Collection[str]) -> float:
    """Equation 4; 0 where no tool was available."""
    return TOOL_WEIGHT * len(set(used) & set(available)) / len(set(available)) if available else 0.0


def successful_tools(messages: Iterable[Message]) -> set[str]:
    """The names of the tools of which at least one call succeeded."""
    return {message.name for message in messages if message.role == "tool" and message.ok and message.name}
