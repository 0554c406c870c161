"""No sandbox: the job runs as the user, with all that the user may do. Explicit, and recorded by its name.

The same launcher holds the limits and ends everything the job started, as far as a job that is not its enemy lets it: a
program can kill its launcher here, and number of tasks and memory are only watched. Paths inside do not exist, so words
that name one are rewritten to the folder they stand for: a word that is the path, or starts with it and a slash, also
after `=`, `:`, `,` or a one-letter option (-I/workspace). Texts of other shapes are left as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

from kernelwright.errors import InfrastructureError, JobFault
from kernelwright.sandbox import Bind, Job, JobResult, Probe
from kernelwright.sandbox.launch import Wrapping, launch, our_program
from kernelwright.sandbox.room import environment


def _outside(word: str, binds: tuple[Bind, ...]) -> str:
    for bind in sorted(binds, key=lambda bind: -len(bind.inside)):
        inside = re.escape(bind.inside.rstrip("/"))
        word = re.sub(rf"(^|^-[A-Za-z]|[=:,]){inside}(?=$|[/:,])", rf"\g<1>{_literal(bind.source)}", word)
    return word


def _literal(source: Path) -> str:
    return str(source).replace("\\", r"\\")


def _never_started(said: str) -> InfrastructureError:
    return JobFault(
        f"a job did not start: {said or 'no reason given'}", "the launcher to run the program", "kernelwright doctor"
    )


class NoSandbox:
    """Runs jobs directly, for `--no-sandbox`."""

    name = "none"

    def __init__(self) -> None:
        self._launcher = our_program("launch.c")

    def inside(self, source: Path, inside: str) -> str:
        return str(source)

    def own(self, folder: Path) -> None:
        """Jobs run as us: what is ours is theirs."""

    async def run(self, job: Job) -> JobResult:
        env = {name: _outside(value, job.binds) for name, value in environment(job).items()}
        writable = tuple(str(bind.source) for bind in job.binds if bind.writable)
        wrapping = Wrapping((str(self._launcher),), env, writable)
        argv = [_outside(word, job.binds) for word in job.argv]
        return await launch(job, wrapping, argv, _outside(job.cwd, job.binds), _never_started)

    async def probe(self) -> Probe:
        return Probe(True, "no isolation: jobs run with all your rights", "only for code that you trust")
