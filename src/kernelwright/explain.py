"""The explanation of an answer: a policy may say what it likes, but the numbers are those of the trace."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernelwright.chat import candidates_of
from kernelwright.trace import Candidate, Message

NOT_MEASURED = " [not measured]"
_CLAIM = re.compile(
    r"(?<!\d)(?P<number>\d{1,15}+(?:\.\d{1,15}+)?)\s*(?P<unit>x|×|times|%|percent|ms|us|µs|milliseconds|seconds|s)(?![\w%])"
    r"(?=[^.;\n]{0,60}\b(?:fast|speed|quick|slow|improv|reduc))"
    r"|(?:fast|speed|quick|slow|improv|reduc)[^.;\n]{0,60}?\b(?P<number2>\d{1,15}+(?:\.\d{1,15}+)?)\s*"
    r"(?P<unit2>x|×|times|%|percent|ms|us|µs|milliseconds|seconds|s)(?![\w%])",
    re.IGNORECASE,
)  # fmt: skip


def explained(candidate: Candidate, messages: Sequence[Message]) -> Candidate:
    """`candidate` with an explanation whose numbers are the trace's.

    A claim of a speed or a time that no tool measured is marked as such, and a line with what benchmark_code measured
    for this very candidate is appended.
    """
    measured = _measured_numbers(messages)
    text = _CLAIM.sub(lambda claim: claim[0] if _is_measured(claim, measured) else claim[0] + NOT_MEASURED,
                      candidate.explanation)  # fmt: skip
    line = measured_line(candidate, messages)
    return Candidate(candidate.code, candidate.compile_args, f"{text.rstrip()}\n{line}".strip())


def measured_line(candidate: Candidate, messages: Sequence[Message]) -> str:
    """What the trace says of `candidate`, in one line."""
    if candidate.is_original:
        return "Measured: nothing, since this is the original."
    known = candidates_of(messages)
    for message in reversed(messages):
        tried = known.get(message.data.get("candidate", "")) if message.role == "tool" else None
        if tried and (tried.code, tried.compile_args) == (candidate.code, candidate.compile_args):
            data = message.data
            speedup, noise = data.get("speedup"), data.get("noise")
            numbers = f", {speedup:.3f} times the original's speed" if isinstance(speedup, float | int) else ""
            doubt = f" with a noise of {noise:.1%}" if numbers and isinstance(noise, float | int) else ""
            return (
                f"Measured by benchmark_code ({data['candidate']}): {data.get('outcome')}{numbers}{doubt}; not a proof."
            )
    return "Measured: nothing, since this candidate was never benchmarked."


def _measured_numbers(messages: Sequence[Message]) -> set[float]:
    """Every number that a benchmark reported, in the forms in which a text may give it."""
    numbers: set[float] = set()
    for message in messages:
        if message.role != "tool" or "candidate" not in message.data:
            continue
        for key, value in message.data.items():
            if isinstance(value, bool) or not isinstance(value, float | int) or value <= 0:
                continue
            numbers |= {value, value * 1e3, value * 1e6} if key.endswith("_s") else {value}
            if key == "speedup":
                numbers |= {1 / value, abs(value - 1) * 100, abs(1 - 1 / value) * 100}
    return numbers


def _is_measured(claim: re.Match[str], numbers: set[float]) -> bool:
    text = claim["number"] or claim["number2"]
    decimals = len(text.partition(".")[2])
    return any(abs(float(text) - number) <= 0.51 * 10**-decimals for number in numbers)
