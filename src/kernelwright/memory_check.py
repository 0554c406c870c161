"""Does a program read memory that is not its to read? Asked of candidates that were found faster, by well-known checkers.

Work can be skipped where memory tells that it was done before: an old stack, a freed block, the bytes beyond an array, a
device buffer of an earlier launch. Every output is then right and every clock honest. Valgrind on a CPU and NVIDIA's
compute-sanitizer on a GPU see such reads in the very program that was timed; what the original does itself is held
against nobody, so a checker that finds something in the original is not asked about candidates.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field, replace

from kernelwright.execute import BuildFailure, Built, Workshop
from kernelwright.sandbox import Job, LimitHit, Limits
from kernelwright.task import Run
from kernelwright.trace import Candidate
from kernelwright.trial import Progress

FOUND = 113
"""The exit code by which a checker says that it found something; no program of a task is likely to use it."""
LIMIT_S = 120.0
"""What a run under a checker may take. Valgrind makes a program 10 to 50 times slower, and its threads take turns."""
NARROW = ("-mno-avx512f",)
"""Valgrind does not know AVX-512 (3.25): a program that has it is built again without, the rest of it the same."""


@dataclass(frozen=True)
class Checker:
    """A program that runs another one and looks at each of its memory accesses."""

    name: str
    words: tuple[str, ...]
    finding: re.Pattern[str]
    """The first line that tells what was found; group 1 is the finding."""


def _valgrind(*words: str) -> Checker:
    command = ("valgrind", "--quiet", "--vgdb=no", "--trace-children=yes", f"--error-exitcode={FOUND}", *words)
    said = r"Invalid|Conditional|Use of|Syscall|Jump|Source and|Argument|Process|[\d,]+ bytes? in"
    return Checker("valgrind", command, re.compile(rf"^==\d+== ((?:{said}).*)$", re.MULTILINE))


def _sanitizer(tool: str, *words: str) -> Checker:
    command = ("compute-sanitizer", "--target-processes", "all", f"--error-exitcode={FOUND}", "--print-limit=5")
    said = "Invalid|Uninitialized|Host API|Address|Out-of-range|Program hit|Leaked"
    finding = re.compile(rf"^=+ ((?:{said}).*)$", re.MULTILINE)
    return Checker(f"compute-sanitizer {tool}", (*command, f"--tool={tool}", *words), finding)


LEAKS = ("--leak-check=full", "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite")
"""A block that is never freed tells the calls after it that it was made, by the address of theirs."""
APART = "--padding=65536"
"""Allocations of the device lie apart, so that a read beyond one does not fall into the next."""
CHECKERS: dict[str, tuple[tuple[Checker, ...], ...]] = {
    "cpp": ((_valgrind(*LEAKS), _valgrind("--leak-check=no")),),
    "cuda": (
        (_sanitizer("memcheck", APART, "--leak-check=full"), _sanitizer("memcheck", APART)),
        (_sanitizer("initcheck"),),
    ),
    "hip": (),
}
"""Of each row the first that finds no fault with the original is asked: many programs leave freeing to their end."""


@dataclass(frozen=True)
class Finding:
    """What a checker says of the program: the first thing found, or None."""

    found: str | None


@dataclass(frozen=True)
class NotAsked:
    """Why a checker says nothing of it."""

    reason: str


Answer = Finding | NotAsked
UNKNOWN_INSTRUCTION = NotAsked("the program has an instruction that it does not know")


@dataclass
class MemoryCheck:
    """The checkers of one task, each tried on the original first."""

    shop: Workshop
    original: Built
    run: Run
    progress: Progress
    _originals: dict[tuple[str, ...], Answer] = field(default_factory=dict)

    async def __call__(self, candidate: Candidate, built: Built) -> tuple[str | None, list[str]]:
        """What the first checker found in the candidate alone, or None; and of which checkers nothing was learned, why."""
        missing = []
        for row in CHECKERS[self.shop.task.language]:
            answer = await self._ask(row, candidate, built)
            if isinstance(answer, NotAsked):
                missing.append(f"{row[0].name}: {answer.reason}")
            elif answer.found:
                return f"{row[0].name}: {answer.found}", missing
        return None, missing

    async def _ask(self, row: tuple[Checker, ...], candidate: Candidate, built: Built) -> Answer:
        found = None
        for checker in row:
            original = await self._original(checker)
            if isinstance(original, NotAsked):
                return original
            if original.found is None:
                self.progress(f"checking the candidate's memory by {checker.name}")
                return await self._of(checker, candidate, built, "narrow-candidate")
            found = original.found
        return NotAsked(f"it finds fault with the original itself ({found})")

    async def _original(self, checker: Checker) -> Answer:
        if checker.words not in self._originals:
            self.progress(f"checking the original's memory by {checker.name}")
            self._originals[checker.words] = (
                await self._of(checker, Candidate({}), self.original, "narrow-baseline")
                if await self._installed(checker)
                else NotAsked("it is not installed")
            )
        return self._originals[checker.words]

    async def _installed(self, checker: Checker) -> bool:
        """Asked in the sandbox, since what is there may differ from what this machine has."""
        job = Job((checker.words[0], "--version"), "/", limits=Limits(wall_s=20.0))
        return (await self.shop.run_job(job)).exit_code == 0

    async def _of(self, checker: Checker, candidate: Candidate, built: Built, slot: str) -> Answer:
        answer = await self._run(checker, built)
        if answer != UNKNOWN_INSTRUCTION:
            return answer
        again = await self.shop.build(replace(candidate, compile_args=(*candidate.compile_args, *NARROW)), slot)
        return UNKNOWN_INSTRUCTION if isinstance(again, BuildFailure) else await self._run(checker, again)

    async def _run(self, checker: Checker, built: Built) -> Answer:
        """One run; what it prints and computes is not judged, since a checker may round otherwise."""
        run = self.run.model_copy(update={"timeout_s": LIMIT_S})
        result = await self.shop.run(built, run, under=checker.words)
        if result.job.exit_code == FOUND:
            said = checker.finding.search(result.text)
            return Finding(said[1].strip() if said else "it reports an error")
        if result.job.limit is LimitHit.TIME:
            return NotAsked(f"the run takes more than {LIMIT_S:g} s under it")
        if result.job.limit is not None:
            return NotAsked(f"under it the run passes its limit of {result.job.limit.value}")
        if result.job.signal == signal.SIGILL and checker.name == "valgrind":
            return UNKNOWN_INSTRUCTION
        return Finding(f"the program ends by signal {result.job.signal}" if result.job.signal else None)
