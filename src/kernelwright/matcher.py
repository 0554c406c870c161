"""The process that matches patterns for `kernelwright.patterns`, run as a script: questions on stdin, answers on stdout.

Nothing but the standard library is imported, so that it starts fast. It ends itself: the timer's signal keeps its default
action, which no match holds up, and a closed stdin is the end of the process that asked.
"""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from itertools import islice
from typing import IO, Any


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until `questions` ends: a line of JSON and then so many bytes of text; `null` where memory ran out."""
    while line := questions.readline():
        question = json.loads(line)
        text = questions.read(question["bytes"])
        resource.setrlimit(resource.RLIMIT_AS, (question["memory"], resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_VIRTUAL, question["limit_s"])
        try:
            answer = json.dumps(_matches(question, text)).encode()
        except MemoryError:
            answer = b"null"
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        answers.write(answer + b"\n")
        answers.flush()


def _matches(question: dict[str, Any], text: bytes) -> list[list[str | None]]:
    found = re.finditer(question["pattern"], text.decode(errors="surrogatepass"), re.MULTILINE)
    return [[match[group] for group in question["groups"]] for match in islice(found, question["most"])]


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
