"""What a model may write: calls, answers and blocks that are nested, cut off, doubled, deep, long, or of strange letters."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from seeds import ANSWER, CALL
from targets import REGION, REGIONS, answers, code_blocks, completions, tool_calls

from kernelwright import blocks, calls, chat, explain
from kernelwright.errors import ModelMistake
from kernelwright.policy import wire
from kernelwright.trace import Candidate, Message, ToolCall

PIECES = (
    "<tool_call>", "</tool_call>", "<function=search>", "</function>", "<parameter=pattern>", "</parameter>", "```",
    "```json\n", "```cpp region=smooth\n", "\n", " ", "{", "}", "[", "]", '"', "'", ":", ",", "\\", '"""',
    "</think>", '"name"', '"arguments"', "'name': 'search'", '"final_code": ', '"compile_args"', "original", "c1",
    CALL, ANSWER, REGION, "b'x'", "{1: 2}", "...", "1j", "NaN", "1e999", "9"*5000, "["*300, "{"*300, '{"a":'*300,
    "\\ud800", "\ud800", "\udcff", "\0", "\u2028", "True", "é",
)  # fmt: skip
MESSAGES = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=25).map("".join)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    PLAIN | st.sampled_from(["\ud83d", "original", "{", "-O3"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass").replace(b"\xed\xa0\x80", b"\xff")


@settings(settings.get_profile("fuzz"))
@given(text=MESSAGES)
def test_a_message_of_any_pieces_is_read(text: str) -> None:
    for target in (tool_calls, answers, code_blocks):
        target(as_bytes(text))


@settings(settings.get_profile("fuzz"))
@given(
    name=st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=8),
    arguments=st.dictionaries(st.text(max_size=5), JSON),
)
@example(name="search", arguments={"a": "\ud83d\ude00\ud800"})
@example(name="search", arguments={"a": float("nan")})
def test_a_call_is_read_as_it_was_written_or_told_to_be_unreadable(name: str, arguments: dict[str, object]) -> None:
    text = f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
    (made,), rest = calls.parse_calls(text)
    assert rest == ""
    try:
        whole = json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, UnicodeError):
        tool_calls(text.encode())
    else:
        assert json.dumps(made.arguments, ensure_ascii=False).encode() == whole
        assert made.name == name


@settings(settings.get_profile("fuzz"))
@given(value=st.fixed_dictionaries({}, optional={"final_code": JSON, "compile_args": JSON, "explanation": JSON}))
def test_an_answer_with_any_values_is_a_candidate_or_a_mistake(value: dict[str, object]) -> None:
    answers(json.dumps(value).encode())


@settings(settings.get_profile("fuzz"))
@given(text=st.text(alphabet=st.characters(), max_size=30))
@example(text="\ud800 int x;")
def test_code_is_merged_whatever_its_letters(text: str) -> None:
    merged = blocks.merge_functions(REGION, f"void smooth(float* a, int n) {{ {text} }}", "cpp")
    assert merged.encode(errors="surrogateescape") is not None


FIELDS = (
    "id",
    "type",
    "index",
    "function",
    "name",
    "arguments",
    "content",
    "tool_calls",
    "reasoning",
    "role",
    "refusal",
)


@settings(settings.get_profile("fuzz"))
@given(
    choices=JSON | st.lists(st.fixed_dictionaries({"message": JSON | st.fixed_dictionaries({}, optional={
        key: JSON | st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)), max_size=2) for key in FIELDS
    })}, optional={"finish_reason": JSON}), max_size=2),
    usage=JSON,
)  # fmt: skip
def test_a_completion_with_any_values_is_a_reply_or_garbled(choices: object, usage: object) -> None:
    completions(json.dumps({"choices": choices, "usage": usage}).encode())


def test_values_too_deep_for_a_record_are_unreadable_arguments() -> None:
    deep = "[" * 500 + "]" * 500
    (call,) = calls.find_calls(f'<tool_call>{{"name": "search", "arguments": {{"pattern": {deep}}}}}</tool_call>')
    assert call.arguments == {calls.UNREADABLE: f'{{"name": "search", "arguments": {{"pattern": {deep}}}}}'}


@pytest.mark.parametrize("literal", ["b'x'", "{1, 2}", "{(1, 2): 3}", "1j", "...", "{1: 2}"])
def test_a_python_value_that_json_does_not_have_is_none(literal: str) -> None:
    assert calls.loads(f"{{'a': {literal}}}") is None


def test_the_answer_behind_code_with_unbalanced_braces_is_found() -> None:
    code = 'if (a) { b; "\n' * 200
    assert chat.parse_answer(code + '{"final_code": "original"}', REGIONS, {}) == Candidate()


def test_text_that_a_server_split_in_the_middle_of_a_letter_is_joined() -> None:
    assert calls.well_formed("\ud83d\ude00 \ud83d") == "\U0001f600 \ufffd"


def test_a_region_with_bytes_that_are_no_text_can_be_sent() -> None:
    sent = wire.chat_messages([Message("user", "caf\udce9"), Message("assistant", "", (ToolCall("1", "search", {}),))])
    json.dumps(sent, ensure_ascii=False).encode()


def test_a_mistake_is_no_exception_of_another_kind() -> None:
    with pytest.raises(ModelMistake):
        chat.parse_answer('{"final_code": {"nowhere": "int x;"}}', REGIONS, {})


def test_a_number_of_many_digits_in_an_explanation_stays() -> None:
    text = "fast " + "1" * 5000 + " x"
    assert explain.explained(Candidate({}, (), text), []).explanation.startswith(text)
