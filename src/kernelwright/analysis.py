"""A workshop used for looking instead of judging: replaying compile commands, expanding macros, stand-alone files.

What runs here runs in the sandbox over workspaces that are thrown away; nothing of it reaches a verdict.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from kernelwright import macros
from kernelwright.commands import compiler_environment, tool_path
from kernelwright.errors import TaskError
from kernelwright.execute import REPO, Workshop
from kernelwright.sandbox import Bind, Job, JobResult, Limits
from kernelwright.source import Span, moved, to_lf
from kernelwright.toolchain import CompileCommand, Exec, microbench
from kernelwright.trace import Candidate

ALONE = "/kw/stand-alone"
GREP_S = 10.0


@asynccontextmanager
async def analysing(
    shop: Workshop, candidate: Candidate
) -> AsyncIterator[tuple[list[CompileCommand], Exec, list[Span]]]:
    """The commands that read a region, with the candidate's arguments; the way to run one over a workspace with its
    text; and where the regions lie in it. What such a command writes is gone with the next candidate."""
    task = shop.task
    unplaced = () if "{flags}" in task.build.command else task.build.flags
    commands = [
        replace(command.command(), argv=(*command.argv, *unplaced, *candidate.compile_args))
        for command in shop.plan.append
    ]
    limits = Limits(task.build.timeout_s, task.needs.memory_bytes, 4096)
    env = {"PATH": tool_path(), **compiler_environment(task.language)}
    async with shop.spliced_slot(candidate) as slot:

        async def exec_(argv: Sequence[str], cwd: str) -> JobResult:
            bind = Bind(slot.folder, REPO, writable=True)
            return await shop.run_job(Job(tuple(argv), cwd, (bind,), env, limits))

        yield commands, exec_, moved(shop.spans, candidate.code)


async def expand_macros(shop: Workshop) -> None:
    """Expand the macros that regions name (`expand_macros`), each expansion proven by the real preprocessor.

    From a file's end to its start, so that the regions still to come lie where they were; those already done move by what
    is added before them. The original must have been built before, for its compile commands, and is to be built again.
    Raises TaskError where nothing can be expanded, or no command reads the file.
    """
    spans, files = dict(shop.spans), {file: (shop.pristine / file).read_bytes() for file in shop.region_files}
    last: dict[tuple[str, bytes], bytes] = {}

    async def preprocessed(file: str, data: bytes) -> bytes:
        """Kept once: what one region's expansion ends with, the next one's begins from."""
        if (file, data) not in last:
            output = await _preprocessed(shop, file, data)
            last.clear()
            last[file, data] = output
        return last[file, data]

    for span in sorted(shop.spans.values(), key=lambda span: span.start, reverse=True):
        region = shop.task.region_named(span.region)
        if region is None or not region.expand_macros:
            continue
        before = files[span.file]
        headers = {name: to_lf((shop.pristine / name).read_bytes()) for name in region.expand_macros}
        expansion = await macros.expand_proven(before, headers, span, partial(preprocessed, span.file))
        files[span.file] = expansion.data
        grown = len(expansion.data) - len(before), expansion.data.count(b"\n") - before.count(b"\n")
        for other in list(spans.values()):
            if other.file == span.file and other.start > span.start:
                spans[other.region] = other.shifted(*grown)
        spans[span.region] = expansion.span
    shop.replace_pristine(files, spans)


async def _preprocessed(shop: Workshop, file: str, data: bytes) -> bytes:
    """What the preprocessor makes of the first unit with `file` in it, `data` being the file's content."""
    command = next((command.command() for command in shop.plan.append if file in command.depends), None)
    if command is None:
        raise TaskError(
            f"{shop.task.path}: no compiler command that reads {file} was seen, so no expansion of its macros can be proven",
            "a build that calls its compiler by name",
            "the region without expand_macros",
        )
    async with shop.spliced_slot(Candidate()) as slot:
        (slot.folder / file).write_bytes(data)
        job = Job(
            macros.preprocess_arguments(command),
            command.cwd,
            (Bind(slot.folder, REPO, writable=True),),
            {"PATH": tool_path(), **compiler_environment(shop.task.language)},
            Limits(shop.task.build.timeout_s, output_bytes=2**28),
        )
        result = await shop.run_job(job)
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[:500]
        raise TaskError(
            f"{shop.task.path}: {file} cannot be preprocessed: {said}",
            "a command that also works with -E",
            "the region without expand_macros",
        )
    return result.stdout


async def compile_file(shop: Workshop, code: str, arguments: Sequence[str]) -> JobResult:
    """Compile one stand-alone file for the task's language, our timing headers on its include path."""
    folder = shop.folder / "stand-alone"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    name, compiler = {
        "cuda": ("main.cu", ("nvcc", f"-arch={shop.arch}")),
        "hip": ("main.hip", ("hipcc", f"--offload-arch={shop.arch}")),
        "cpp": ("main.cpp", ("g++", "-march=native", "-fopenmp")),
    }[shop.task.language]
    (folder / name).write_text(code, encoding="utf-8", errors="surrogateescape")
    shop.sandbox.own(folder)
    binds = (Bind(folder, ALONE, writable=True), Bind(microbench.header_folder(), "/kw/include"))
    include = f"-I{shop.sandbox.inside(microbench.header_folder(), '/kw/include')}"
    argv = (*compiler, "-O2", "-std=c++17", include, name, *arguments, "-o", "program")
    env = {"PATH": tool_path(), **compiler_environment(shop.task.language)}
    limits = Limits(shop.task.build.timeout_s, shop.task.needs.memory_bytes, 4096)
    return await shop.run_job(Job(argv, ALONE, binds, env, limits))


async def run_file(shop: Workshop) -> JobResult:
    """Run what `compile_file` made."""
    bind = Bind(shop.folder / "stand-alone", ALONE, writable=True)
    limits = Limits(max(run.timeout_s for run in shop.task.shown), shop.task.needs.memory_bytes)
    env = {"PATH": tool_path(), **shop.visible}
    return await shop.run_job(Job(("./program",), ALONE, (bind,), env, limits, gpu=shop.task.language != "cpp"))


async def grep(shop: Workshop, kind: str, pattern: str, below: str) -> JobResult:
    """GNU grep over the pristine copy; `kind` is -F or -P. At most some hundred hits a file, `FILE\\0LINE:TEXT` each."""
    argv = ("grep", "-rnIZ", kind, "--max-count=200", "--", pattern, below)
    return await shop.run_job(Job(argv, REPO, (Bind(shop.pristine, REPO),), {"PATH": tool_path()}, Limits(GREP_S)))
