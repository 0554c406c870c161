"""Tools whose calls are jobs of a pool: how many rollouts share machines without knowing of each other.

While a call is queued, compiled and timed, its rollout waits and nothing else does. A call's job carries all that the call
needs, the candidates that were benchmarked before among it, so that any worker can make it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelwright.policy import ToolSpec
from kernelwright.pool import JobSpec, Pool
from kernelwright.toolbox import schema_of
from kernelwright.tools import NAMES, forms
from kernelwright.trace import Candidate, Message, ToolCall


@dataclass
class PooledTools:
    """The tools of one rollout; see `kernelwright.toolbox.Tools`."""

    pool: Pool
    archive: str
    """Of the task."""
    language: str
    regions: Mapping[str, str]
    rollout: str
    """What no other rollout is called: equal calls of two are different jobs, since times are measured anew."""
    seed: int
    chosen: Sequence[str] = NAMES
    known: dict[str, Candidate] = field(default_factory=dict)
    """Candidates that were benchmarked, by id."""
    calls: int = 0
    """Calls made so far, those before a resume among them."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in NAMES if name in self.chosen)

    def specs(self) -> list[ToolSpec]:
        return [
            ToolSpec(name, description, schema_of(arguments))
            for name, description, arguments in forms(self.language)
            if name in self.chosen
        ]

    async def call(self, call: ToolCall, content: str) -> Message:
        """Time in queues does not count as the call's."""
        self.calls += 1
        payload = {
            "rollout": f"{self.rollout}/{self.calls}",
            "seed": f"{self.seed}/{self.calls}",
            "tools": list(self.names),
            "call": vars(call),
            "content": content,
            "known": {name: candidate.to_json() for name, candidate in self.known.items()},
        }
        done = await self.pool.run(JobSpec("tool", payload, self.archive))
        message = Message.from_json(done.result)
        if new := message.data.get("candidate"):
            self.known[new] = Candidate(dict(message.data["code"]), tuple(message.data["compile_args"]))
        return replace(message, elapsed_s=max(0.0, message.elapsed_s - done.times.waiting_s))
