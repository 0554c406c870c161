"""From what a run's rollouts proposed to its result: the verifier on one proposal after the other, and the result's JSON.

Answers are judged first, the best benchmarked one before the others. Where an answer turns out not to be right, what the
same rollouts benchmarked and did not answer with is tried too, since a search that found something is not thrown away for
a last step that was wrong. Only the verifier's word is reported.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.approval import Approval
from kernelwright.candidates import patch_of
from kernelwright.chat import candidates_of
from kernelwright.explain import explained
from kernelwright.measure import EVALUATE, PROVE, Budget
from kernelwright.outcome import SCHEMA, Comparison, Outcome, Verdict
from kernelwright.rollout import best_of
from kernelwright.store import Run, Store
from kernelwright.task import Task
from kernelwright.trace import Candidate, Message
from kernelwright.trial import Progress

FALLBACKS = 3
"""How many benchmarked candidates are tried where no answer is right."""


@dataclass(frozen=True)
class Proposal:
    """A candidate that one attempt answered with, or (`fallback`) only benchmarked; `speedup` is the benchmark's."""

    attempt: int
    candidate: Candidate
    speedup: float
    fallback: bool = False

    @property
    def rank(self) -> tuple[bool, float, int]:
        return self.fallback, -self.speedup, self.attempt


def proposals(store: Store, run: Run) -> list[Proposal]:
    """What changes something, in the order in which it is judged; equal candidates once."""
    found: list[Proposal] = []
    for attempt in store.attempts(run.id):
        tried = benchmarked(store.messages(run.id, attempt.attempt))
        if attempt.answer is not None and not attempt.answer.is_original:
            found.append(Proposal(attempt.attempt, attempt.answer, tried.get(_key(attempt.answer), 0.0)))
        for name, candidate in candidates_of(store.messages(run.id, attempt.attempt)).items():
            if tried.get(_key(candidate), 0.0) > 1:
                told = replace(
                    candidate, explanation=f"Candidate {name}, which the policy benchmarked and did not answer with."
                )
                found.append(Proposal(attempt.attempt, told, tried[_key(candidate)], fallback=True))
    once: dict[object, Proposal] = {}
    for proposal in sorted(found, key=lambda proposal: proposal.rank):
        once.setdefault(_key(proposal.candidate), proposal)
    answers = [proposal for proposal in once.values() if not proposal.fallback]
    return answers + [proposal for proposal in once.values() if proposal.fallback][:FALLBACKS]


def _key(candidate: Candidate) -> tuple[object, ...]:
    return (*sorted(candidate.code.items()), candidate.compile_args)


def benchmarked(messages: Sequence[Message]) -> dict[tuple[object, ...], float]:
    """Candidate → the best speedup that a benchmark called correct."""
    known, speedups = candidates_of(messages), dict[tuple[object, ...], float]()
    for message in messages:
        tried = known.get(message.data.get("candidate", "")) if message.role == "tool" else None
        if tried is not None and message.data.get("outcome") == Outcome.CORRECT.value:
            speedups[_key(tried)] = max(speedups.get(_key(tried), 0.0), message.data.get("speedup") or 0.0)
    return speedups


Judge = Callable[[Candidate, Budget], Awaitable[Verdict]]


async def prove_best(
    task: Task, judge: Judge, store: Store, run: Run, progress: Progress, approval: Approval | None = None
) -> dict[str, Any]:
    """The result of a run: the first proposal that is proven faster, else the best verdict on one, else the original.

    `judge` asks the verifier. No further proposal is begun after twice the task's time budget.
    """
    proposed, judged = proposals(store, run), list[tuple[Proposal, Verdict]]()

    def worked_s() -> float:
        return time.monotonic() - (approval.waited_s if approval is not None else 0.0)

    started = worked_s()
    if all(proposal.fallback for proposal in proposed):
        return result_of(task, store, run, None, original_verdict(task, run), None)
    for proposal in proposed:
        settled = any(verdict.outcome is Outcome.CORRECT for _, verdict in judged)
        if judged and ((proposal.fallback and settled) or worked_s() - started > 2 * task.verify.budget_s):
            break
        what = "a benchmarked candidate" if proposal.fallback else "the answer"
        progress(f"proving {what} of attempt {proposal.attempt + 1}")
        verdict = await judge(proposal.candidate, PROVE)
        judged.append((proposal, verdict))
        if not proposal.fallback:
            store.save_verdict(run.id, proposal.attempt, verdict)
        if is_faster(verdict):
            parts = await _gain_by_part(judge, proposal.candidate, verdict)
            return result_of(task, store, run, proposal, verdict, parts)
    proposal, verdict = min(judged, key=lambda pair: pair[1].outcome is not Outcome.CORRECT)
    return result_of(task, store, run, proposal, verdict, None)


def is_faster(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.CORRECT and verdict.comparison is Comparison.FASTER


async def _gain_by_part(judge: Judge, answer: Candidate, verdict: Verdict) -> dict[str, float | None]:
    """Speedup by flags alone measured, that by code the rest: a patch cannot always carry flags."""
    assert verdict.speedup is not None
    if not answer.compile_args or not answer.code:
        return {
            "code": verdict.speedup if answer.code else 1.0,
            "flags": verdict.speedup if answer.compile_args else 1.0,
        }
    flags = await judge(replace(answer, code={}), EVALUATE)
    if flags.speedup is None:
        return {"code": None, "flags": None}
    return {"code": verdict.speedup / flags.speedup, "flags": flags.speedup}


def original_verdict(task: Task, run: Run) -> Verdict:
    """Nothing was found: the original comes back, which is as fast as itself. Nothing was measured for it."""
    return Verdict(
        task.name,
        Outcome.CORRECT,
        "nothing faster was found; this is the original",
        Comparison.SAME,
        1.0,
        provenance={"sandbox": run.provenance.get("sandbox")},
    )


def result_of(
    task: Task,
    store: Store,
    run: Run,
    proposal: Proposal | None,
    verdict: Verdict,
    parts: Mapping[str, float | None] | None,
) -> dict[str, Any]:
    """What `optimize --json` prints: the verdict's keys, and the run's (docs/task-file.md)."""
    attempts = [
        {
            "attempt": each.attempt,
            "stop": each.stop.value,
            "original": each.answer is None or each.answer.is_original,
            "best": best_of(store.messages(run.id, each.attempt)),
        }
        for each in store.attempts(run.id)
    ]
    answer = _told(store, run, proposal) if proposal is not None else None
    faster = is_faster(verdict) and answer is not None
    return {
        **verdict.to_json(),
        "schema": SCHEMA,
        "run": run.id,
        "attempts": attempts,
        "candidate": answer.to_json() if answer is not None else None,
        "patch": (patch_of(task, answer) or None) if faster and answer is not None else None,
        "gain": dict(parts) if parts else {"code": None, "flags": None},
        "flags_hint": flags_hint(task, answer, verdict) if faster and answer is not None else None,
        "options": run.options,
    }


def _told(store: Store, run: Run, proposal: Proposal) -> Candidate:
    """The proposal's candidate; a fallback's explanation gets the numbers that answers get in the rollout."""
    if not proposal.fallback:
        return proposal.candidate
    return explained(proposal.candidate, store.messages(run.id, proposal.attempt))


def flags_hint(task: Task, answer: Candidate, verdict: Verdict) -> str | None:
    """How to set compile arguments that a patch cannot carry."""
    if not answer.compile_args:
        return None
    units = verdict.provenance.get("units") or sorted({region.file for region in task.region})
    return f"compile {', '.join(units)} with {' '.join((*task.build.flags, *answer.compile_args))}"
