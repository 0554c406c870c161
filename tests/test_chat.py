"""The prompt with the paper's five inputs, and how answers are read."""

import json

import pytest

from kernelwright.chat import Briefing, RegionText, candidates_of, opening, parse_answer, seconds
from kernelwright.errors import ModelMistake
from kernelwright.policy import ToolSpec
from kernelwright.trace import Candidate, Message

SWEEP = "void sweep(double *a, int n) {\n  for (int i = 0; i < n; ++i) a[i] *= 2;\n}\n"
NORM = "double norm(const double *a) {\n  return a[0];\n}\n"
TOOLS = [
    ToolSpec("benchmark_code", "Build, run and check. Returns outcome, times and a candidate id.", {
        "type": "object", "required": [], "properties": {
            "code": {"type": "object", "description": "new text by region"},
            "compile_args": {"type": "array", "items": {"type": "string"}, "default": []}}}),
    ToolSpec("file_viewer", "Show lines of a file.", {
        "type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "description": "relative to the root"},
            "first_line": {"type": "integer", "default": 1}}}),
]  # fmt: skip
ONE = Briefing(
    "heat", "cpp", "8-core x86-64 CPU, g++ 12", "x86-64-v3", {"sweep": RegionText("app/sweep.cpp", 3, 5, SWEEP)},
    {"app/sweep.cpp": f"#include <cmath>\n\n{SWEEP}"}, 0.1234, ("-O2",), {"TILE": (8, 16)}, ("-ffast-math",), 0.02, 6,
    "the file field.txt must hold the same numbers within 1e-9.",
)  # fmt: skip
TWO = Briefing(
    "heat", "cuda", "NVIDIA H200, sm_90, nvcc 13.0", "sm_90",
    {"sweep": RegionText("a.cu", 1, 3, SWEEP), "norm": RegionText("b.cuh", 9, 11, NORM)}, {}, 2.5e-5,
)  # fmt: skip
BOTH = {"sweep": SWEEP, "norm": NORM}
TRIED = {"c1": Candidate({"sweep": "void sweep() {}"}, ("-O3",)), "c3": Candidate({"sweep": "x"})}


@pytest.mark.parametrize(("briefing", "tools"), [(ONE, TOOLS), (TWO, TOOLS), (ONE, TOOLS[1:]), (ONE, [])],
                         ids=["one region", "two regions", "no benchmark", "no tools"])  # fmt: skip
def test_the_prompt_holds_the_five_inputs(briefing, tools, snapshot):
    system, user = opening(briefing, tools)
    assert (system.role, user.role) == ("system", "user")
    assert f"{system.content}\n{'=' * 40}\n{user.content}" == snapshot


def test_the_user_message_carries_the_same_as_data_for_policies_that_read_no_text():
    data = opening(ONE, TOOLS, seed=5)[1].data
    assert data["regions"] == {"sweep": {"file": "app/sweep.cpp", "first_line": 3, "last_line": 5, "text": SWEEP}}
    assert set(data) == {"task", "language", "arch", "regions", "files", "flags", "tunables", "forbid_flags", "baseline_s",
                         "min_effect", "max_calls", "seed"}  # fmt: skip
    assert (data["tunables"], data["baseline_s"], data["seed"]) == ({"TILE": [8, 16]}, 0.1234, 5)


def test_times_are_shown_with_a_unit_of_their_size():
    assert [seconds(value) for value in (3.2, 0.1234, 2.5e-5, 4e-9)] == ["3.2 s", "123.4 ms", "25 us", "4 ns"]


def answer(text: str, regions: dict[str, str] | None = None) -> Candidate:
    return parse_answer(text, regions or {"sweep": SWEEP}, TRIED)


NEW = "void sweep(double *a, int n) {\n  for (int i = 0; i < n; ++i) a[i] += a[i];\n}"


@pytest.mark.parametrize(("text", "expected"), [
    ('{"final_code": "c1", "explanation": "i", "compile_args": []}', Candidate({"sweep": "void sweep() {}"}, ("-O3",), "i")),
    ('Done.\n```json\n{"final_code": "c3", "compile_args": ["-O2"]}\n```', Candidate({"sweep": "x"}, ("-O2",))),
    ('{"final_code": "original", "explanation": "none was faster"}', Candidate({}, (), "none was faster")),
    ('{"final_code": "original", "compile_args": "-O3 -g"}', Candidate({}, ("-O3", "-g"))),
    ('{"final_code": {"sweep": "int x = 1;"}}', Candidate({"sweep": "int x = 1;"})),
    (f'```cpp\n{NEW}\n```\n{{"explanation": "adds"}}', Candidate({"sweep": NEW}, (), "adds")),
    (f'```cpp\n{NEW}\n```\n{{"final_code": "see above"}}', Candidate({"sweep": NEW})),
    ('<think>maybe {"final_code": "c3"}</think>{"final_code": "c1",}', Candidate({"sweep": "void sweep() {}"}, ("-O3",))),
])  # fmt: skip
def test_an_answer_is_read_in_each_of_its_forms(text, expected):
    assert answer(text) == expected


def test_code_in_an_answer_may_stand_in_a_json_string_with_newlines_or_a_fence():
    assert answer(json.dumps({"final_code": NEW})).code == {"sweep": NEW}
    assert answer(f'{{"final_code": "{NEW}"}}').code == {"sweep": NEW}
    assert answer(json.dumps({"final_code": f"```cpp\n{NEW}\n```"})).code == {"sweep": NEW}


def test_an_answer_for_several_regions_names_them():
    found = answer('{"final_code": {"norm": "double norm(const double *a) { return *a; }"}}', BOTH)
    assert found.code == {"norm": "double norm(const double *a) { return *a; }"}
    with pytest.raises(ModelMistake, match=r"several regions.*sweep, norm"):
        answer('{"final_code": "int f() { return 1; }"}', BOTH)


@pytest.mark.parametrize(("text", "told"), [
    ("I am done.", "neither a tool call nor a final answer"),
    ('{"final_code": "c7"}', r"no candidate 'c7'.*c1, c3"),
    ('{"final_code": {"swep": "x"}}', r"no region 'swep'.*sweep"),
    ('{"final_code": {"sweep": 3}}', r"region 'sweep' is 3"),
    ('{"final_code": ""}', "no final_code"),
    ('{"final_code": "the new one"}', r'"the new one".*candidate'),
    ('{"final_code": "c1", "compile_args": [1]}', r"compile_args is \[1\]"),
])  # fmt: skip
def test_what_is_no_answer_is_the_models_mistake(text, told):
    with pytest.raises(ModelMistake, match=told):
        answer(text)


def test_candidates_come_from_the_results_of_tools_alone():
    messages = [
        Message(
            "tool", "", name="benchmark_code", data={"candidate": "c1", "code": {"f": "x"}, "compile_args": ["-O3"]}
        ),
        Message("tool", "", name="search", data={"hits": 3}),
        Message("assistant", "", data={"candidate": "c2", "code": {}}),
    ]
    assert candidates_of(messages) == {"c1": Candidate({"f": "x"}, ("-O3",))}
