"""Tool calls in text: every spelling that models really use, and what is nearly right."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.calls import UNREADABLE, arguments_of, loads, objects_in, parse_calls


def read(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, call.arguments) for call in parse_calls(text)[0]]


SPELLINGS = {
    "tags": '<tool_call>\n{"name": "search", "arguments": {"pattern": "x"}}\n</tool_call>',
    "no closing tag": '<tool_call>{"name": "search", "arguments": {"pattern": "x"}}',
    "in the middle of thinking": '<think>So <tool_call>{"name": "search", "arguments": {"pattern": "x"}}</tool_call> and',
    "fenced JSON": 'I look.\n```json\n{"name": "search", "arguments": {"pattern": "x"}}\n```',
    "fenced JSON inside tags": '<tool_call>\n```json\n{"name": "search", "arguments": {"pattern": "x"}}\n```\n</tool_call>',
    "parameters": '{"name": "search", "parameters": {"pattern": "x"}}',
    "arguments as a string": r'<tool_call>{"name": "search", "arguments": "{\"pattern\": \"x\"}"}</tool_call>',
    "nested function": '<tool_call>{"type": "function", "function": {"name": "search", "arguments": {"pattern": "x"}}}',
    "function tag with JSON": '<function=search>{"pattern": "x"}</function>',
    "function tag with parameters": "<tool_call>\n<function=search>\n<parameter=pattern>\nx\n</parameter>\n"
    "</function>\n</tool_call>",
    "in a fence of code": 'I call it:\n```cpp\n{"name": "search", "arguments": {"pattern": "x"}}\n```\nand wait.',
    "on lines of its own": 'I call\n{"name": "search",\n "arguments": {"pattern": "x"}}\nand wait.',
    "trailing comma": '<tool_call>{"name": "search", "arguments": {"pattern": "x",},}</tool_call>',
    "single quotes": "<tool_call>{'name': 'search', 'arguments': {'pattern': 'x'}}</tool_call>",
    "one brace too few": '<tool_call>{"name": "search", "arguments": {"pattern": "x"}</tool_call>',
    "one brace too many": '<tool_call>{"name": "search", "arguments": {"pattern": "x"}}}</tool_call>',
    "bare after thinking": '<think>hm</think>\n{"name": "search", "arguments": {"pattern": "x"}}',
    "triple quotes": '<tool_call>{"name": "search", "arguments": {"pattern": """x"""}}</tool_call>',
    "list": '<tool_call>[{"name": "search", "arguments": {"pattern": "x"}}]</tool_call>',
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_call_is_read_however_it_is_spelled(text):
    assert read(text) == [("search", {"pattern": "x"})]


def test_several_calls_of_one_message_keep_their_order_and_leave_the_rest():
    text = 'a <tool_call>{"name": "list_dir", "arguments": {}}</tool_call> b <function=search>{"pattern": "<"}</function> c'
    calls, rest = parse_calls(text, "m3")
    assert [(call.id, call.name) for call in calls] == [("m3_1", "list_dir"), ("m3_2", "search")]
    assert rest.split() == ["a", "b", "c"]


def test_a_literal_newline_in_a_string_is_kept():
    assert read('<tool_call>{"name": "b", "arguments": {"code": "int a;\nint b;"}}') == [
        ("b", {"code": "int a;\nint b;"})
    ]


def test_unknown_escapes_are_repaired_and_known_ones_kept():
    text = r'<tool_call>{"name": "search", "arguments": {"pattern": "\w+\\n \'q\'"}}</tool_call>'
    assert read(text) == [("search", {"pattern": "\\w+\\n 'q'"})]


def test_a_string_that_was_cut_off_is_not_closed_by_guessing():
    calls = read('<tool_call>{"name": "benchmark_code", "arguments": {"code": "int half(')
    assert calls == [("benchmark_code", {UNREADABLE: '{"name": "benchmark_code", "arguments": {"code": "int half('})]


def test_what_cannot_be_read_is_still_a_call():
    assert read("<tool_call>benchmark please</tool_call>") == [("", {UNREADABLE: "benchmark please"})]
    assert arguments_of("no json") == {UNREADABLE: "no json"}


@pytest.mark.parametrize("text", [
    "no call", "```cpp\nint f() { return 1; }\n```", '{"final_code": "c1", "explanation": "x"}',
    '```json\n{"final_code": "original"}\n```', "```cpp\n{ int x = 1; }\n```",
    '{"name": "heat"}', "",
])  # fmt: skip
def test_what_is_no_call_is_left_alone(text):
    assert parse_calls(text) == ([], text.strip())


def test_objects_are_found_between_prose_and_code():
    text = 'void f() { g({1}); }\n```json\n{"a": 1,}\n``` and {"b": {"c": "}"}} {'
    assert objects_in(text) == [{"a": 1}, {"b": {"c": "}"}}]


LEAVES = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_good_json_is_read_as_it_is(value):
    assert loads(json.dumps(value)) == value
    assert loads(json.dumps(value, ensure_ascii=False)) == value


@given(st.text(alphabet="<tool_call>/function={}[]\",:'\\`nameargumts \n", max_size=120))
def test_no_text_makes_the_reader_fail(text):
    calls, rest = parse_calls(text)
    assert len(rest) <= len(text)
    assert len({call.id for call in calls}) == len(calls)
