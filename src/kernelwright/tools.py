"""The six tools of the paper (arXiv 2510.17158), over a workshop of their own.

They advise, they never decide: times come from one or two pairs, and only the shown runs are made, so that nothing a
policy sees tells of the held-out ones. What a policy gets wrong is a ModelMistake, which becomes an observation; what a
candidate does wrong is part of the result.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from kernelwright.analysis import GREP_S, analysing, compile_file, grep, run_file
from kernelwright.approval import microbenchmark_piece
from kernelwright.build_cache import find_report, keep_report
from kernelwright.errors import ModelMistake
from kernelwright.measure import ADVISE, Measurement, seconds
from kernelwright.outcome import Outcome
from kernelwright.sandbox import JobResult
from kernelwright.source import find_functions, to_lf
from kernelwright.toolbox import Tool, ToolResult
from kernelwright.toolchain import CompileCommand, Exec, Report, cpp, cuda, hip, microbench
from kernelwright.toolchain.arguments import check_arguments
from kernelwright.trace import Candidate
from kernelwright.trial import (
    Baseline,
    CandidateFailed,
    Progress,
    build,
    compare,
    exclusive,
    refuse,
    require_screened,
    try_runs,
)
from kernelwright.workspace import to_its_end

NAMES = ("benchmark_code", "microbench_code", "compiler_analysis", "file_viewer", "list_dir", "search")
VIEW_LINES = 200
SEARCH_HITS = 60
LOG_CHARS = 2500


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BenchmarkArguments(_Arguments):
    code: dict[str, str] = Field(
        {}, description="leave it out and put the code into a fenced block before the call; else {region: text}"
    )
    candidate: str | None = Field(
        None, description="id of a candidate whose code to take, as in c1, to try other arguments"
    )
    compile_args: list[str] = Field([], description='arguments for the compiler, as in ["-O3"]')
    note: str = Field("", description="what you expect of this candidate, in a few words")


class AnalysisArguments(_Arguments):
    code: dict[str, str] = Field({}, description="new text of regions, as for benchmark_code; none for the original")
    compile_args: list[str] = Field([], description="arguments for the compiler")
    candidate: str | None = Field(None, description="id of a candidate that was benchmarked, instead of code")


class MicrobenchArguments(_Arguments):
    code: str = Field(
        description="one whole source file, with several variants in it; best as a fenced block before the call"
    )
    compile_args: list[str] = Field([], description="arguments for the compiler")


class ViewArguments(_Arguments):
    path: str = Field(description="a file, relative to the repository's root")
    first_line: int = Field(1, ge=1, description="the first line to show")
    last_line: int | None = Field(None, description=f"the last one; at most {VIEW_LINES} are shown")


class ListArguments(_Arguments):
    path: str = Field(".", description="a folder, relative to the repository's root")


class SearchArguments(_Arguments):
    pattern: str = Field(description="what to look for in the text of all files")
    regex: bool = Field(False, description="whether pattern is a regular expression")
    path: str = Field(".", description="the folder or file to search in")


def forms(language: str) -> list[tuple[str, str, type[BaseModel]]]:
    """Name, description and arguments of each tool, as a model reads them; each is a method of `Bench`."""
    return [
        (
            "benchmark_code",
            "Put code into the regions, build the whole application with compile_args, run it and check its results. "
            "Returns the outcome, the times of original and candidate, the speedup, the noise, and a candidate id.",
            BenchmarkArguments,
        ),
        (
            "microbench_code",
            "Build and run one stand-alone file, to test a hypothesis in isolation. "
            f"{microbench.usage(language)} Returns median and spread of each variant.",
            MicrobenchArguments,
        ),
        ("compiler_analysis", _ANALYSIS[language], AnalysisArguments),
        ("file_viewer", "Show lines of a file of the repository, numbered.", ViewArguments),
        ("list_dir", "List a folder of the repository with the sizes of its files.", ListArguments),
        ("search", "Find text in the repository. Returns file, line number and line of each hit.", SearchArguments),
    ]


@dataclass
class Bench:
    """What the tools of one rollout share: the baseline, and the candidates that were benchmarked so far."""

    baseline: Baseline
    rng: random.Random
    progress: Progress
    known: dict[str, Candidate] = field(default_factory=dict)
    """Id → candidate; given anew where a rollout is resumed."""

    def tools(self, names: Sequence[str] = NAMES) -> list[Tool[Any]]:
        """The tools of these names, in the paper's order."""
        return [
            Tool(name, description, arguments, getattr(self, name))
            for name, description, arguments in forms(self.baseline.task.language)
            if name in names
        ]

    async def benchmark_code(self, arguments: BenchmarkArguments) -> ToolResult:
        candidate = self._proposed(arguments)
        name = f"c{len(self.known) + 1}"
        self.known[name] = candidate
        data: dict[str, Any] = {
            "candidate": name,
            "code": dict(candidate.code),
            "compile_args": list(candidate.compile_args),
        }
        try:
            measured = await self._benchmark(candidate)
        except CandidateFailed as failure:
            data |= {
                "outcome": failure.outcome.value,
                "reason": failure.reason[:LOG_CHARS],
                "speedup": None,
                "noise": None,
            }
            return ToolResult(f"{name}: {failure.outcome.value}\n{failure.reason[:LOG_CHARS]}", data)
        data |= {
            "outcome": Outcome.CORRECT.value,
            "reason": measured.sentence,
            "speedup": measured.speedup,
            "noise": measured.noise_floor,
            "base_s": measured.base_s,
            "candidate_s": measured.candidate_s,
            "kernel_speedup": measured.kernel.estimate if measured.kernel else None,
        }
        what = "" if candidate.code else ", the original's code with these compile arguments"
        return ToolResult(f"{name}: correct{what}\n{_times(measured)}", data)

    def _proposed(self, arguments: BenchmarkArguments | AnalysisArguments, original: bool = False) -> Candidate:
        """The candidate that a call means. Raises ModelMistake for an unknown id, and for the original unless allowed."""
        code = {name: text for name, text in arguments.code.items() if text != self.baseline.shop.spans[name].text}
        compile_args = tuple(arguments.compile_args)
        if arguments.candidate is not None:
            if arguments.candidate not in self.known:
                known = (
                    f"one of {', '.join(self.known)}" if self.known else "code, since no candidate was benchmarked yet"
                )
                raise ModelMistake(f"there is no candidate {arguments.candidate!r}", known)
            known_one = self.known[arguments.candidate]
            code, compile_args = {**known_one.code, **code}, compile_args or known_one.compile_args
        if not code and not compile_args and not original:
            raise ModelMistake(
                "this is the original, whose time you have",
                "new code, or compile_args",
                "complete functions in a fenced block before the call",
            )
        return Candidate(code, compile_args)

    async def _benchmark(self, candidate: Candidate) -> Measurement:
        task = self.baseline.task
        await require_screened(self.baseline, candidate, "benchmark_code")
        self.progress("building a candidate")
        built = await build(self.baseline, candidate)
        await try_runs(self.baseline, built, task.shown, self.progress)
        return await compare(
            self.baseline, built, task.shown[0], ADVISE, rng=self.rng, time_budget_s=None, progress=self.progress
        )

    async def microbench_code(self, arguments: MicrobenchArguments) -> ToolResult:
        language, approval = self.baseline.task.language, self.baseline.shop.approval
        if said := check_arguments(language, arguments.compile_args, tunables={}):
            raise ModelMistake(said)
        piece = microbenchmark_piece(arguments.code, arguments.compile_args)
        if approval is not None and (no := await approval(piece, "microbench_code")):
            raise ModelMistake(no)
        self.progress("running a microbenchmark")
        made = await compile_file(self.baseline.shop, arguments.code, arguments.compile_args)
        if made.exit_code != 0:
            return ToolResult(f"build_failed\n{_log(made)}", {"outcome": "build_failed"}, ok=False)
        async with exclusive(self.baseline.shop, self.progress):
            ran = await run_file(self.baseline.shop)
        out = ran.stdout.decode(errors="replace")
        times, failed = microbench.parse(out), microbench.failures(out)
        said = "".join(f"{name}: failed, {error}\n" for name, error in failed.items())
        if ran.exit_code != 0 or not times:
            why = (
                f"passed its limit of {ran.limit.value}"
                if ran.limit
                else f"exit code {ran.exit_code}, signal {ran.signal}"
            )
            text = f"{said}no times were printed ({why})\n{_log(ran)}"
            return ToolResult(text, {"outcome": "crashed", "failures": failed}, ok=False)
        return ToolResult(
            said + microbench.table(times), {"variants": [vars(time) for time in times], "failures": failed}
        )

    async def compiler_analysis(self, arguments: AnalysisArguments) -> ToolResult:
        shop, task = self.baseline.shop, self.baseline.task
        candidate = self._proposed(arguments, original=True)
        if refusal := refuse(shop, candidate):
            raise ModelMistake(refusal.sentence)
        if said := await shop.not_approved(candidate, "compiler_analysis"):
            raise ModelMistake(said)
        key = await to_its_end(shop.report_key, candidate)
        if key is not None and (known := find_report(key)) is not None:
            return ToolResult(known["text"], known["data"])
        self.progress("analysing with the compiler")
        texts, numbers = [], {}
        async with analysing(shop, candidate) as (commands, exec_, spans):
            for span in spans:
                command = next((command for command in commands if span.file in command.depends), None)
                if command is None:
                    raise ModelMistake(f"no compiler command that reads {span.file} was seen", "another tool")
                names = [
                    function.name
                    for function in find_functions(span.text.encode(errors="surrogateescape"), task.language)
                ]
                lines = (span.first_line, span.last_line)
                report = await _report(task.language, command, span.file, lines, names, exec_, shop.arch)
                texts.append(f"region {span.region}\n{report.text}" if len(spans) > 1 else report.text)
                numbers[span.region] = report.data
        data = next(iter(numbers.values())) if len(numbers) == 1 else {"regions": numbers}
        made = ToolResult("\n\n".join(texts), data)
        if key is not None and not any("error" in report for report in numbers.values()):
            keep_report(key, {"text": made.text, "data": made.data})
        return made

    async def file_viewer(self, arguments: ViewArguments) -> ToolResult:
        path = self._path(arguments.path)
        if not path.is_file():
            raise ModelMistake(f"{arguments.path} is no file", "a file of the repository", "list_dir")
        lines = to_lf(path.read_bytes()).splitlines()
        first = arguments.first_line
        last = min(arguments.last_line or len(lines), first + VIEW_LINES - 1, len(lines))
        if first > len(lines):
            raise ModelMistake(f"{arguments.path} has {len(lines)} lines", f"first_line up to {len(lines)}")
        shown = "\n".join(f"{number:5} {_printable(lines[number - 1])}" for number in range(first, last + 1))
        more = f"\n(lines {first} to {last} of {len(lines)})" if (first, last) != (1, len(lines)) else ""
        return ToolResult(shown + more, {"path": arguments.path, "lines": [first, last]})

    async def list_dir(self, arguments: ListArguments) -> ToolResult:
        path = self._path(arguments.path)
        if not path.is_dir():
            raise ModelMistake(f"{arguments.path} is no folder", "a folder of the repository", "list_dir of '.'")
        root = self.baseline.shop.pristine.resolve()
        inside = [entry for entry in path.iterdir() if entry.exists() and entry.resolve().is_relative_to(root)]
        entries = sorted(inside, key=lambda entry: (entry.is_file(), entry.name))
        lines = [
            f"{entry.name}/" if entry.is_dir() else f"{entry.name}  {entry.stat().st_size} bytes" for entry in entries
        ]
        return ToolResult("\n".join(lines) or "(empty)", {"path": arguments.path, "entries": len(lines)})

    async def search(self, arguments: SearchArguments) -> ToolResult:
        """By grep, in the sandbox: a pattern that takes for ever is stopped there, and ours to wait for nowhere."""
        root = self.baseline.shop.pristine.resolve()
        below = str(self._path(arguments.path).relative_to(root))
        kind = "-P" if arguments.regex else "-F"
        found = await grep(self.baseline.shop, kind, arguments.pattern, below)
        if found.limit is not None or (found.exit_code or 0) > 1:
            said = found.stderr.decode(errors="replace").strip() or f"it took longer than {GREP_S:g} s"
            raise ModelMistake(
                f"the search for {arguments.pattern!r} failed: {said[:200]}", "a simple pattern", "regex = false"
            )
        hits = [_hit(line) for line in to_lf(found.stdout).splitlines()]
        text = "\n".join(hits[:SEARCH_HITS]) or "no hit"
        more = f"\n(more hits: search in a smaller path than {arguments.path!r})" if len(hits) > SEARCH_HITS else ""
        return ToolResult(text + more, {"hits": len(hits)})

    def _path(self, given: str) -> Path:
        """A path of the pristine copy; nothing outside of it, not through links either."""
        root = self.baseline.shop.pristine.resolve()
        path = Path(os.path.normpath(root / given.lstrip("/"))).resolve()
        if not path.is_relative_to(root) or not path.exists():
            raise ModelMistake(f"the repository has no {given!r}", "a path relative to its root", "list_dir of '.'")
        return path


async def _report(
    language: str,
    command: CompileCommand,
    file: str,
    lines: tuple[int, int],
    names: Sequence[str],
    exec_: Exec,
    arch: str,
) -> Report:
    if language == "cpp":
        return await cpp.report(command, file, lines, names, exec_)
    report = hip.report if language == "hip" else cuda.report
    return await report(command, file, lines, names, exec_, arch)


_ANALYSIS = {
    "cpp": "What the compiler makes of the regions: which loops became SIMD and which did not and why, instruction mix, "
    "the hot loop's assembly.",
    "cuda": "What the compiler makes of the regions' kernels: registers, spills, shared memory, occupancy, instruction mix, "
    "excerpts of PTX and SASS.",
    "hip": "What the compiler makes of the regions' kernels: registers, spills, shared memory, occupancy, instruction mix.",
}


def _times(measured: Measurement) -> str:
    lines = [
        f"original {seconds(measured.base_s)}, candidate {seconds(measured.candidate_s)}: speedup {measured.speedup:.3f}"
    ]
    if measured.noise_floor is not None:
        lines[0] += f" (noise about ±{measured.noise_floor:.1%}; {len(measured.pairs)} pairs, no proof)"
    if measured.kernel is not None:
        lines.append(f"the regions' kernels alone: speedup {measured.kernel.estimate:.3f}")
    if measured.wall is not None:
        lines.append(f"whole process: speedup {measured.wall.estimate:.3f}")
    return "\n".join(lines)


def _log(job: JobResult) -> str:
    return (job.stdout + job.stderr).decode(errors="replace").strip()[-LOG_CHARS:]


def _hit(line: str) -> str:
    """`FILE\\0LINE:TEXT`, as grep prints it, for the model."""
    file, _, rest = line.partition("\0")
    number, _, text = rest.partition(":")
    return f"{file.removeprefix('./')}:{number}: {_printable(text.strip()[:200])}"


def _printable(line: str) -> str:
    return line.encode(errors="replace").decode()
