"""What is fuzzed: for each reader of what others wrote, a function of bytes that fails where a promise is broken.

The promises are those of the readers' docstrings: a value that fits, or the one exception that is documented. The tests in
this folder feed them structured inputs, `guided.py` feeds them what coverage asks for.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from openai.types.chat import ChatCompletion

from kernelwright import (
    blocks,
    calls,
    chat,
    checks,
    conditions,
    explain,
    interpose,
    macros,
    preprocessor,
    source,
    store,
)
from kernelwright.checks import RunResult, Unreadable
from kernelwright.errors import ModelMistake, TaskError
from kernelwright.init.makefile import read_makefile
from kernelwright.init.prints import read_prints
from kernelwright.policy import wire
from kernelwright.sandbox import JobResult
from kernelwright.screen import screen
from kernelwright.source import Span
from kernelwright.task import CsvCell, FileCheck, NumberCheck, PatternCheck, RowCheck, RowReference, Run, Task
from kernelwright.task_file import load_task
from kernelwright.toolchain import arguments, assembly, cpp, cuda, device_code, hip, kernel_time, occupancy, symbols
from kernelwright.trace import Candidate, Message

Value = TypeVar("Value")
Mistake = TypeVar("Mistake", bound=Exception)
REGION = "void smooth(float* a, int n) {\n  for (int i = 0; i < n; ++i) a[i] = 0.5f * a[i];\n}"
REGIONS = {"smooth": REGION}
FILE = f"#include <cmath>\nstatic int calls;\n{REGION}\nint main() {{ smooth(nullptr, 0); }}\n".encode()
TASK = """\
schema = 1
name = "smooth"
language = "cpp"
region = [{ name = "smooth", file = "smooth.cpp", kernel = "smooth" }]
build = { command = "make {flags}", artifact = "app" }
run = [{ name = "small", command = "./app", outputs = ["field.txt"] }]
time = { source = "regex", pattern = 'time: (\\S+) (\\w+)', unit_group = 2, aggregate = "sum" }
check = [{ kind = "require", pattern = "PASS" }, { kind = "number", pattern = 'sum (\\S+)', rel = 1e-6 }, \
{ kind = "file", path = "field.txt", rel = 1e-6 }, { kind = "exit_code" }]
"""


def words(data: bytes) -> str:
    """Bytes as a text that may hold anything, lone surrogates among it."""
    return data.decode("utf-8", errors="surrogateescape")


def attempt(function: Callable[[], Value], documented: type[Mistake]) -> tuple[Value | None, Mistake | None]:
    """What came of it: a value, or the one kind of exception that is documented."""
    try:
        return function(), None
    except documented as mistake:
        return None, mistake


def printable_as_json(value: object) -> None:
    json.dumps(value, allow_nan=False).encode()


@cache
def _repository() -> Path:
    folder = Path(tempfile.mkdtemp())
    (folder / "smooth.cpp").write_bytes(FILE)
    (folder / "kernelwright.toml").write_text(TASK)
    return folder


@cache
def task() -> Task:
    return load_task(_repository())


def task_file(data: bytes) -> None:
    """A task that reads the same again, or one message that names the file, what was expected and what to try."""
    file = _repository() / "fuzzed.toml"
    file.write_bytes(data)
    read, mistake = attempt(lambda: load_task(file), TaskError)
    if read is None:
        assert mistake is not None
        assert str(file) in mistake.what
        assert mistake.expected
        assert mistake.try_
        assert len(str(mistake)) < 20_000
        return
    assert Task.model_validate({**json.loads(read.model_dump_json(by_alias=True)), "path": read.path}) == read
    assert len(read.fingerprint) == 16


def tool_calls(data: bytes) -> None:
    """Calls that lie in the text one after the other, with arguments that a record and a request can hold."""
    text = words(data)
    found = calls.find_calls(text)
    at = 0
    for call in found:
        assert at <= call.end <= len(text)
        assert call.start <= call.end
        at = call.end
        printable_as_json(call.arguments)
        assert all(isinstance(key, str) for key in call.arguments)
        json.dumps(call.arguments, ensure_ascii=False).encode(errors="surrogateescape")
    made, rest = calls.parse_calls(text)
    assert [call.name for call in made] == [call.name for call in found]
    assert len(rest) <= len(text)
    Message("assistant", text, tuple(made)).to_json()


def answers(data: bytes) -> None:
    """A candidate for regions that there are, or a mistake that the model is told."""
    candidates = {"c1": Candidate({"smooth": "int x;"})}
    for regions in (REGIONS, {**REGIONS, "norm": "float norm(float* a) { return a[0]; }"}):
        candidate, mistake = attempt(partial(chat.parse_answer, words(data), regions, candidates), ModelMistake)
        if candidate is None:
            assert mistake is not None
            assert mistake.what
            continue
        assert set(candidate.code) <= set(regions)
        assert all(isinstance(text, str) for text in (*candidate.code.values(), *candidate.compile_args))
        printable_as_json(candidate.to_json())
        explain.explained(candidate, [])


def code_blocks(data: bytes) -> None:
    text = words(data)
    for block in blocks.fenced(text):
        assert isinstance(blocks.is_code(block), bool)
    try:
        code = blocks.region_code(text, REGIONS, "cuda")
    except ModelMistake:
        return
    assert set(code) <= set(REGIONS)


def compile_arguments(data: bytes) -> None:
    """What passes is one plain token that neither names a file nor a program."""
    text = words(data)
    for language in ("cpp", "cuda", "hip"):
        refused = arguments.check_arguments(language, [text], tunables={"TILE": (8, 16)})
        assert refused is None or (refused and refused.isascii() and "\n" not in refused)
        if refused is None:
            assert text.isascii()
            assert text.startswith("-")
            assert not set(text) & set("/\\@ \t\r\n\0'\"$`;&|<>(){}[]*?~#!%^")


def run_result(printed: bytes, files: dict[str, bytes]) -> RunResult:
    job = JobResult(0, None, printed, b"", 1.0, 1.0, 1, None, 1.0)
    return RunResult("small", job, files)


def numbers(data: bytes) -> None:
    """A time that is one, or Unreadable; a check that passes or not, with its reason."""
    half = len(data) // 2
    result, base = run_result(data, {"field.txt": data[:half]}), run_result(data, {"field.txt": data[half:]})
    time_s, reason = attempt(lambda: checks.read_time(task(), result), Unreadable)
    assert (reason is not None and len(str(reason)) < 2000) if time_s is None else math.isfinite(time_s) and time_s > 0
    for other in (base, None):
        for checked in checks.evaluate(task(), task().run[0], result, other, {}):
            assert checked.detail
            assert len(checked.detail) < 2000


READINGS = (
    NumberCheck(kind="number", source="csv", file="t.csv", row="a", column="b", rel=0.1),
    NumberCheck(kind="number", source="csv", file="t.csv", skip=1, header=2, row="a", column=("b", "c"), min=0.0),
    FileCheck(kind="file", path="t.csv", dtype="float32"),
    FileCheck(kind="file", path="t.csv", dtype="float64", abs=1.0),
    PatternCheck(kind="forbid", pattern="FAIL"),
    RowCheck(kind="row", file="t.csv", row="a", reference=RowReference(run="small", row="b"), rel=0.5),
)


def tables(data: bytes) -> None:
    """A cell, a row and a file compared: a number, passed or not, or Unreadable."""
    result, base = run_result(data, {"t.csv": data}), run_result(b"", {"t.csv": data[::-1]})
    try:
        value = checks.read_cell(CsvCell(file="t.csv", row="a", column="b", min=0.0), result.files)
        assert not value < 0
    except Unreadable:
        pass
    reading = task().model_copy(update={"check": READINGS})
    run = Run(name="small", command="x", outputs=("t.csv",))
    found = checks.evaluate(reading, run, result, base, {"small": base})
    assert len(found) == len(READINGS)


def device_reports(data: bytes) -> None:
    """Compilers' words about kernels: what could be read of them."""
    text = words(data)
    for symbol, resources in cuda.parse_ptxas(text).items():
        for arch in ("sm_90", "sm_75", text[:20]):
            for row in occupancy.table(arch, resources.registers, resources.shared_bytes):
                assert 0 <= row.share <= 1
        assert symbols.base_name(symbol) is not None
    hip.parse_resources(text)
    for parse, mix in (
        (device_code.parse_ptx, device_code.mix_ptx),
        (device_code.parse_sass, device_code.mix_sass),
        (device_code.parse_amdgcn, device_code.mix_amdgcn),
    ):
        for function in parse(text).values():
            assert mix(function.instructions)["total"] == len(function.instructions)
            for loop in function.loops():
                assert 0 <= loop.first < loop.last < len(function.instructions)
            function.listing()


def host_reports(data: bytes) -> None:
    text = words(data)
    for remark in cpp.parse_remarks(text, "/kw/repo", "a.cpp", (1, 99)):
        assert 1 <= remark.line <= 99
    for function in assembly.parse(text, lambda path: path.endswith("a.cpp"), (1, 99), ["smooth"]):
        assert assembly.mix(function.instructions)["total"] == len(function.instructions)
        assembly.frame_bytes(function)
        for loop in assembly.loops(function):
            assembly.listing(function, loop.first, loop.last)
    symbols.base_name(text)
    symbols.demangled_name(text)


def kernel_times(data: bytes) -> None:
    """Times in order that a terminal can be shown."""
    for time in kernel_time.read(data):
        assert 0 < time.min_s <= time.p10_s <= time.median_s <= time.p90_s <= time.max_s <= time.total_s
        assert time.name.isprintable()
        assert time.symbol.isprintable()


def build_records(data: bytes) -> None:
    """Whole commands, of a file that a build may have written to."""
    head, _, lists = data.partition(b"\xff")
    found = interpose.read_record(head, {"0.deps": lists}, "/kw/repo")
    for command in found:
        assert command.argv
        assert len(command.key) == 16
        assert all(not path.startswith("/") for path in command.depends)
        command.command()
    interpose.make_plan(found, ["a.cpp"], {"a.cpp"}, True)


def sources(data: bytes) -> None:
    """Functions inside the bytes, in order; splicing a region's own text changes nothing, another text changes it alone."""
    for language in ("cpp", "cuda"):
        at = 0
        for function in source.find_functions(data, language):
            assert at <= function.start < function.body_start < function.end <= len(data)
            at = function.start
        source.unparsed_kernels(data, language)
    start, end = sorted((len(data) // 3, len(data) // 2))
    span = Span("r", "f", start, end, 1, 1, source.to_lf(data[start:end]))
    assert source.splice(data, {span: span.text}) == data
    new = source.splice(data, {span: "int x;"})
    assert new == data if span.text == "int x;" else new == data[:start] + b"int x;" + data[end:]
    read_prints(data, "a.cpp", "cpp")


def screening(data: bytes) -> None:
    """A refusal with a sentence and a line of the text, or none."""
    text = words(data).replace("\r\n", "\n")
    start = FILE.index(REGION.encode())
    span = Span("smooth", "smooth.cpp", start, start + len(REGION), 3, 5, REGION)
    for language in ("cpp", "cuda"):
        refusal = screen(language, FILE, source.splice(FILE, {span: text}), [(span, text)])
        if refusal is not None:
            assert refusal.what
            assert refusal.advice
            assert 1 <= refusal.line <= text.count("\n") + 1


def preprocessing(data: bytes) -> None:
    """Pieces that are the text again; an expansion that changes nothing outside its region."""
    text = words(data).replace("\r\n", "\n")
    assert "".join(piece for _, piece in preprocessor.lex(text)) == text
    third = len(data) // 3
    header, file = words(data[:third]), data[third:]
    start = file.rfind(b"\n", 0, len(file) // 2) + 1
    span = Span("r", "f", start, len(file), 1, 1, source.to_lf(file[start:]))
    expansion = macros.expand(file, {"h.hpp": header}, span)
    assert expansion.data[: span.start] == file[: span.start]


def completions(data: bytes) -> None:
    """Whatever JSON a server sends as a completion: a reply that can be kept and sent again, or Garbled."""
    try:
        value = json.loads(words(data))
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict) or not all(key.isidentifier() for key in value):
        return
    try:
        reply = wire.read_completion(ChatCompletion.construct(**value))
    except wire.Garbled:
        return
    message = Message("assistant", reply.text, reply.calls, data={"native": True, "reasoning": reply.reasoning})
    printable_as_json(message.to_json())
    json.dumps(wire.chat_messages([message]), ensure_ascii=False, allow_nan=False).encode()


def makefiles(data: bytes) -> None:
    folder = _repository()
    (folder / "Makefile").write_bytes(data)
    made = read_makefile(folder / "Makefile")
    assert made.default_goal is None or made.default_goal
    for name in sorted(made.referenced)[:20]:
        assert isinstance(made.value(name), str)
    for rule in made.rules[:20]:
        assert all(isinstance(line, str) for line in made.recipe(rule))


def machine(data: bytes) -> None:
    """What the system says of itself."""
    text = data.decode(errors="replace")
    busy, stolen = conditions.core_seconds(text)
    assert (busy is None) == (stolen is None)
    mounts = _repository() / "mounts"
    mounts.write_bytes(data)
    store.network_file_system(_repository(), mounts)


TARGETS: dict[str, Callable[[bytes], Any]] = {
    target.__name__: target
    for target in (
        task_file, tool_calls, answers, code_blocks, compile_arguments, numbers, tables, device_reports, host_reports,
        kernel_times, build_records, sources, screening, preprocessing, completions, makefiles, machine,
    )
}  # fmt: skip
