"""Calls as models really send them, and what they are told when they are wrong."""

import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from kernelwright.calls import UNREADABLE
from kernelwright.errors import InfrastructureError, JobFault, ModelMistake
from kernelwright.toolbox import Tool, Toolbox, ToolResult, schema_of, shorten
from kernelwright.trace import Message, ToolCall


class Inner(BaseModel):
    size: int


class Arguments(BaseModel):
    code: dict[str, str] = Field({}, description="new text of regions")
    compile_args: list[str] = []
    lines: int = Field(1, ge=1, description="how many")
    mode: Literal["fast", "slow"] = "fast"
    last: int | None = None
    inner: Inner | None = None


class FileArguments(BaseModel):
    code: str = Field(description="one whole file")


async def echo(arguments: BaseModel) -> ToolResult:
    return ToolResult("done", arguments.model_dump(exclude_defaults=True))


REGION = "void f() {}\nvoid g() {}\n"
BOX = Toolbox(
    [Tool("benchmark_code", "", Arguments, echo), Tool("microbench_code", "", FileArguments, echo)], {"f": REGION}
)
BOTH = Toolbox(BOX.tools, {"f": "void f() {}", "g": "void g() {}"})


def call(name: str, arguments: dict[str, Any], content: str = "", box: Toolbox = BOX) -> Message:
    return asyncio.run(box.call(ToolCall("call_1", name, arguments), content))


@pytest.mark.parametrize(("sent", "understood"), [
    ({"lines": "3"}, {"lines": 3}),
    ({"lines": None}, {}),
    ({"compile_args": "-O3 -funroll-loops"}, {"compile_args": ["-O3", "-funroll-loops"]}),
    ({"compile_args": '["-O3"]'}, {"compile_args": ["-O3"]}),
    ({"inner": '{"size": "2"}'}, {"inner": {"size": 2}}),
    ({"arguments": {"lines": 3}}, {"lines": 3}),
    ({"code": "void g() { ; }"}, {"code": {"f": "void f() {}\nvoid g() { ; }\n"}}),
    ({"code": '{"f": "int x;"}'}, {"code": {"f": "int x;"}}),
])  # fmt: skip
def test_what_models_send_is_understood(sent, understood):
    result = call("benchmark_code", sent)
    assert (result.data, result.ok, result.content) == (understood, True, "done")
    assert (result.role, result.tool_call_id, result.name) == ("tool", "call_1", "benchmark_code")


def test_an_unknown_argument_is_named_and_the_call_still_runs():
    result = call("benchmark_code", {"lines": 2, "speed": "max"})
    assert result.ok
    assert result.content == "done\n(ignored: 'speed', which benchmark_code does not take)"
    assert result.data == {"lines": 2, "ignored": ["'speed', which benchmark_code does not take"]}


def test_a_block_counts_where_the_json_beside_it_is_garbled():
    """As small models write it: the whole code in a block, and then again, broken, inside the call."""
    garbled = {"arguments": '{"code": {"f": {"lines": 4, 15, "new'}
    result = call("benchmark_code", garbled, "```cpp\nvoid g() { ; }\n```\n")
    assert result.ok
    assert result.data["code"] == {"f": "void f() {}\nvoid g() { ; }\n"}
    assert "the fenced block was taken" in result.content
    assert not call("benchmark_code", garbled, "no block").ok


@pytest.mark.parametrize(("name", "sent", "told"), [
    ("benchmark", {}, ["there is no tool 'benchmark'", "one of benchmark_code, microbench_code", "try: benchmark_code"]),
    ("benchmark_code", {"lines": "many"}, ["'lines'", '"many"', "integer", "how many"]),
    ("benchmark_code", {"lines": 0}, ["'lines'", "greater than or equal to 1"]),
    ("benchmark_code", {"mode": "warp"}, ["'mode'", '"fast", "slow"']),
    ("benchmark_code", {"inner": {}}, ["'inner.size'"]),
    ("benchmark_code", {"code": {"h": "x"}}, ["no region 'h'", "f"]),
    ("benchmark_code", {"code": {"f": 3}}, ["region 'f'", "a text"]),
    ("benchmark_code", {UNREADABLE: '{"code": "half'}, ["no JSON object", "fenced block"]),
    ("microbench_code", {}, ["needs the argument 'code'", "fenced block"]),
    ("", {UNREADABLE: "please"}, ["could not be read", "please"]),
])  # fmt: skip
def test_a_mistake_is_an_observation_that_says_what_to_do(name, sent, told):
    result = call(name, sent)
    assert result.ok is False
    assert all(part in result.content for part in told), result.content


def test_fenced_code_fills_a_call_without_code():
    content = "First\n```cpp\nvoid f() { 1; }\n```\nthen\n```cpp\nvoid g() { 2; }\n```\n"
    assert call("benchmark_code", {"lines": 2}, content).data == {
        "code": {"f": "void f() {}\nvoid g() { 2; }\n"},
        "lines": 2,
    }
    assert call("microbench_code", {}, content).data == {"code": "void g() { 2; }\n"}
    assert call("benchmark_code", {"code": "int x;"}, content).data == {"code": {"f": "int x;"}}


def test_with_several_regions_each_block_goes_to_its_own():
    content = "```cpp region=g\nvoid g() { 2; }\n```\n```f\nvoid f() { 1; }\n```"
    assert call("benchmark_code", {}, content, BOTH).data == {"code": {"g": "void g() { 2; }", "f": "void f() { 1; }"}}
    told = call("benchmark_code", {"code": "void f() {}"}, box=BOTH)
    assert "several regions" in told.content
    assert "region=f" in told.content


def test_a_tools_own_mistake_is_an_observation_and_a_fault_passes_through():
    async def mistaken(_: BaseModel) -> ToolResult:
        raise ModelMistake("no file 'x'", "a file", "list_dir")

    async def lost(_: BaseModel) -> ToolResult:
        raise JobFault("the disk is full")

    box = Toolbox([Tool("view", "", Arguments, mistaken), Tool("run", "", Arguments, lost)])
    assert call("view", {}, box=box).content == "error: no file 'x'; expected a file; try: list_dir"
    with pytest.raises(InfrastructureError, match="disk is full"):
        call("run", {}, box=box)


def test_a_long_result_keeps_its_ends_and_says_what_was_cut():
    text = "\n".join(f"line {n}" for n in range(1000))
    cut = shorten(text, 600)
    assert len(cut) < 700
    assert cut.startswith("line 0\n")
    assert cut.endswith("line 999")
    kept = sum(len(line) + 1 for line in cut.splitlines() if line.startswith("line")) - 1
    assert f"{len(text) - kept:,} characters were cut" in cut
    assert shorten("short", 600) == "short"


def test_schemas_hold_nothing_that_a_small_model_trips_over(snapshot):
    schema = schema_of(Arguments)
    assert schema == snapshot
    for word in ("title", "$ref", "$defs", "null", "anyOf"):
        assert word not in str(schema)
