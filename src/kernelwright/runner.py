"""Run policies on tasks and have their answers judged; everything is kept as it happens, so any run can go on later.

`optimize` is one task and some attempts: each attempt is a rollout whose tool calls are jobs of a pool; then the best answer
goes to the verifier, also a job, which starts from its own pristine baseline, and where it is not proven faster the next
best. What is reported is the verifier's word only. Nothing found is a result too: the original, `same`, 1.0.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from kernelwright.approval import Approval
from kernelwright.briefing import Brief
from kernelwright.chat import Briefing, candidates_of
from kernelwright.measure import ADVISE, PROVE, Budget, estimate_s, seconds
from kernelwright.outcome import Verdict
from kernelwright.policy import Policy
from kernelwright.pool import DEADLINE_S, JobSpec, Pool
from kernelwright.pool.rollouts import PooledTools
from kernelwright.proving import prove_best
from kernelwright.rollout import RolloutLimits, rollout
from kernelwright.store import Run, Store
from kernelwright.task import Task
from kernelwright.tools import NAMES
from kernelwright.trace import Candidate, Message
from kernelwright.trial import Progress


@dataclass(frozen=True)
class Options:
    """How `optimize` was asked to search. None is no limit."""

    policy: str
    attempts: int = 1
    parallel: int = 1
    """Attempts that are under way at once."""
    max_calls: int = 8
    time_limit_s: float | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    seed: int = 0
    tools: tuple[str, ...] = NAMES
    settings: dict[str, Any] | None = None
    """What else made the policy: model, base URL, prices."""
    approve: bool = False
    """Whether a person is asked about each piece of generated code before it is compiled or run."""

    def limits(self) -> RolloutLimits:
        return RolloutLimits(
            max_calls=self.max_calls,
            time_limit_s=self.time_limit_s,
            max_tokens=self.max_tokens,
            max_cost_usd=self.max_cost_usd,
        )


@dataclass(frozen=True)
class Watcher:
    """Who is told of a run's progress: what is going on, each message, what it will cost."""

    progress: Progress = lambda _: None
    on_message: Callable[[int, Message], None] = lambda _attempt, _message: None
    on_estimate: Callable[[str], None] = lambda _: None


async def optimize(
    task: Task,
    pool: Pool,
    policy: Policy,
    options: Options,
    store: Store,
    run: Run,
    watcher: Watcher,
    approval: Approval | None = None,
) -> dict[str, Any]:
    """Search, then prove; returns what `--json` prints and keeps it in the store.

    Attempts that already ended in `run` are not made again; one that was cut off goes on from its last message. Several are
    under way at once (`Options.parallel`): while one waits for a tool or its policy, the others go on.
    """
    done = {attempt.attempt for attempt in store.attempts(run.id)}
    missing = [attempt for attempt in range(options.attempts) if attempt not in done]
    archive = await pool.add(task)
    if missing:
        watcher.progress("building and timing the original")
        told = Brief.from_json((await pool.run(JobSpec("brief", {"run": run.id}, archive))).result)
        watcher.on_estimate(estimate(task, told, options, len(missing)))
        told = replace(told, briefing=replace(told.briefing, max_calls=options.max_calls))
        room = asyncio.Semaphore(options.parallel)

        async def attempted(attempt: int) -> None:
            async with room:
                await _attempt(pool, archive, told.briefing, policy, options, store, run, attempt, watcher)

        await all_of(attempted(attempt) for attempt in missing)

    async def judge(candidate: Candidate, budget: Budget) -> Verdict:
        payload = {
            "run": run.id,
            "candidate": candidate.to_json(),
            "budget": budget.name,
            "time_budget_s": task.verify.budget_s,
        }
        spec = JobSpec("verdict", payload, archive, DEADLINE_S + 4 * task.verify.budget_s)
        return Verdict.from_json((await pool.run(spec)).result)

    result = await prove_best(task, judge, store, run, watcher.progress, approval)
    store.save_result(run.id, "optimize", result)
    store.set_status(run.id, "done")
    return result


async def all_of(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all; the first that fails ends the others, and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


async def _attempt(
    pool: Pool,
    archive: str,
    briefing: Briefing,
    policy: Policy,
    options: Options,
    store: Store,
    run: Run,
    attempt: int,
    watcher: Watcher,
) -> None:
    so_far = store.messages(run.id, attempt)
    seed = options.seed + attempt
    tools = PooledTools(
        pool,
        archive,
        briefing.language,
        {name: region.text for name, region in briefing.regions.items()},
        f"{run.id}/{attempt}",
        seed,
        options.tools,
        candidates_of(so_far),
        sum(message.role == "tool" for message in so_far),
    )

    def keep_message(message: Message) -> None:
        store.append_message(run.id, attempt, message)
        watcher.on_message(attempt, message)

    watcher.progress(f"attempt {attempt + 1}: asking {policy.name}")
    trace = await rollout(
        briefing, policy, tools, options.limits(), seed=seed, messages=so_far, on_message=keep_message
    )
    assert trace.stop is not None
    store.finish_attempt(run.id, attempt, trace.stop, trace.answer)


def estimate(task: Task, told: Brief, options: Options, attempts: int) -> str:
    """What the search and the proof will take, in words, before either starts."""
    wall_s = told.wall_s
    a_call = told.build_s + len(task.shown) * wall_s + estimate_s(ADVISE, wall_s).worst_s
    proof = estimate_s(PROVE, wall_s)
    most = min(proof.worst_s, task.verify.budget_s)
    return (
        f"the original takes {seconds(wall_s)}; at most {attempts * options.max_calls} benchmark calls of about "
        f"{a_call:.1f} s, then a proof of {min(proof.best_s, most):.0f} to {most:.0f} s"
    )


def options_json(options: Options) -> dict[str, Any]:
    """The options as the store gives them back."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(options)))
    return plain
