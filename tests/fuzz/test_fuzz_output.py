"""What a run may print and write, made against the patterns and readers of an innocent task: bounded time and memory."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import REGION, run_result, sources, task

from kernelwright import checks, patterns
from kernelwright.candidates import from_patch
from kernelwright.checks import Unreadable, evaluate, read_time
from kernelwright.errors import CandidateError, JobFault
from kernelwright.init.makefile import read_makefile
from kernelwright.interpose import read_record
from kernelwright.outcome import CheckResult
from kernelwright.task import CsvTime, FileCheck, PatternCheck, RegexTime
from kernelwright.toolchain import assembly, cpp, cuda, hip, kernel_time, symbols

TRAPS = [
    (r"(\S+) ms", "x" * 2**20),
    (r"(a+)+$", "a" * 40 + "b"),
    (r"(\d+)*:(\d+)*;", "1" * 40),
    (r"\s*(\S+)\s*ms", " " * 2**20),
    (r"(.*),(.*),(.*),(.*),(.*)x", "," * 2000),
]


@pytest.mark.parametrize(("pattern", "printed"), TRAPS)
def test_output_made_against_a_pattern_is_given_up(pattern: str, printed: str) -> None:
    with pytest.raises(patterns.GivenUp, match="processor time"):
        patterns.all_matches(pattern, printed, (1,), limit_s=0.3)


def test_a_time_and_its_checks_are_unreadable_then_and_never_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns.all_matches, "__defaults__", (0.3,))
    monkeypatch.setattr(patterns.first_match, "__defaults__", (0.3,))
    judged = task().model_copy(update={
        "time": RegexTime(source="regex", pattern=r"(\S+) ms", unit="ms"),
        "check": (PatternCheck(kind="forbid", pattern=r"\S+ FAIL"), PatternCheck(kind="require", pattern=r"\S+ PASS")),
    })  # fmt: skip
    result = run_result(b"x" * 2**20, {})
    with pytest.raises(Unreadable, match="given up"):
        read_time(judged, result)
    found: list[CheckResult] = evaluate(judged, judged.run[0], result, None, {})
    assert [check.passed for check in found] == [False, False]
    assert all("given up" in check.detail for check in found)


def test_matches_are_those_of_re_with_groups_that_took_no_part() -> None:
    assert patterns.all_matches(r"^t(?P<u>x)?(\d)", "t1\ntx2\n", (2, "u", 0)) == [["1", None, "t1"], ["2", "x", "tx2"]]
    assert patterns.first_match("b", "abc") == "b"
    assert patterns.first_match("d", "abc") is None
    assert patterns.first_match("\ud800", "a\ud800") == "\ud800"


def test_more_matches_than_lines_can_be_kept_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_MATCHES", 10)
    with pytest.raises(patterns.GivenUp, match="10 times"):
        patterns.all_matches("(a)", "a" * 100, (1,))


def test_a_pattern_that_takes_too_much_memory_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MEMORY_BYTES", 2**28)
    with pytest.raises(patterns.GivenUp, match="memory"):
        patterns.all_matches(r"(?:(a)|b)*c", "ab" * 2**22, (1,))
    assert patterns.first_match("a", "a") == "a"


def test_a_matcher_that_the_machine_killed_is_a_fault_and_the_next_question_is_answered() -> None:
    assert patterns.first_match("a", "a") == "a"
    matcher = patterns._Matcher._current
    assert matcher is not None
    os.kill(matcher.process.pid, signal.SIGKILL)
    with pytest.raises(JobFault):
        patterns.first_match("a", "a")
    assert patterns.first_match("a", "a") == "a"


def test_a_unit_that_the_line_does_not_print_is_unreadable() -> None:
    timed = task().model_copy(update={"time": RegexTime(source="regex", pattern=r"time: (\d+) ?(ms|s)?", unit_group=2)})
    assert read_time(timed, run_result(b"time: 5 ms", {})) == pytest.approx(0.005)
    with pytest.raises(Unreadable, match="the unit"):
        read_time(timed, run_result(b"time: 5", {}))


def test_a_rate_too_small_to_invert_is_no_time() -> None:
    rate = task().model_copy(update={"time": RegexTime(source="regex", pattern=r"rate: (\S+)", better="higher")})
    with pytest.raises(Unreadable, match="no time"):
        read_time(rate, run_result(b"rate: 5e-324", {}))


def test_a_long_line_or_word_of_a_file_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LINE_CHARS", 1000)
    timed = task().model_copy(update={"time": CsvTime(source="csv", file="t", row="a", column="b", unit="s"),
                                      "check": (FileCheck(kind="file", path="t"),)})  # fmt: skip
    data = b"," * 2**21
    with pytest.raises(Unreadable, match="a line of more than"):
        read_time(timed, run_result(b"", {"t": data}))
    run = timed.run[0].model_copy(update={"outputs": ("t",)})
    (check,) = evaluate(timed, run, run_result(b"", {"t": data}), run_result(b"", {"t": data + b","}), {})
    assert not check.passed
    assert "a word of more than" in check.detail


@settings(settings.get_profile("fuzz"))
@given(
    words=st.lists(st.sampled_from(["1", "2.5", "a", "x=3", "-4e5,", "nan"]), max_size=30),
    space=st.sampled_from([" ", "\n", " \r\n\t"]),
)
def test_texts_are_compared_by_their_words_whatever_lies_between(words: list[str], space: str) -> None:
    left, right = " ".join(words).encode(), space.join(words).encode() + space.encode()
    assert checks._compare_text(FileCheck(kind="file", path="f"), left, right, None)[0]
    assert not checks._compare_text(FileCheck(kind="file", path="f"), left + b" b", right, None)[0]


def test_numbers_of_thousands_of_digits_in_reports_are_left_out() -> None:
    long = "9" * 5000
    assert cuda.parse_ptxas(f"Compiling entry function 'a' for 'x'\nUsed {long} registers") == {}
    assert hip.parse_resources(f".amdhsa_kernel a\n; NumVgprs: {long}\n") == {}
    assert hip.parse_resources(".amdhsa_kernel ") == {}
    assert cpp.parse_remarks(f"a.cpp:{long}:1: note: x", "/", "a.cpp", (1, 9)) == []
    assert symbols.base_name(f"_Z{long}a") is not None
    function = assembly.Function("f", [assembly.Instruction("subq", f"${long}, %rsp", None, True)])
    assert assembly.frame_bytes(function) is None


def test_a_record_that_ends_in_its_middle_gives_the_commands_before() -> None:
    whole = b"2\x002\x000\x00c\x00/r\x00\x00g++\x00a.cpp\x00"
    assert len(read_record(whole + b"5\x005\x000\x00c\x00/r\x00\x00g++\x00", {}, "/r")) == 1
    for garbled in (
        b"1\x00x\x000\x00c\x00/r\x00\x00g++\x00",
        b"-6\x001\x000\x00c\x00/r\x00\x00",
        "٣\0".encode() * 9,
        b"0\x00" * 9,
    ):
        assert read_record(garbled, {}, "/r") == []


def test_names_of_kernels_cannot_speak_to_a_terminal() -> None:
    entry = '"launches": 1, "total_ns": 5, "min_ns": 1, "p10_ns": 1, "median_ns": 1, "p90_ns": 1, "max_ns": 1'
    (time,) = kernel_time.read(f'{{"kernels": [{{"name": "a\\u001b[2J\\ud800", {entry}}}]}}'.encode())
    assert time.name == "a?[2J?"


def test_makefiles_with_calls_that_lack_arguments_or_names_too_long_are_read(tmp_path: Path) -> None:
    long = "x" * 5000
    (tmp_path / "Makefile").write_text(
        f"include {long}\nA = $(patsubst %.c) $(wildcard {long}/*) $(abspath \0)\nB = $(A) $(subst a)\nall: ; $(B)\n"
    )
    assert read_makefile(tmp_path / "Makefile").value("B") is not None


@pytest.mark.parametrize(
    "text", [b"void f() { std::cout << ''; }", b"void f() { std::cout << '\\\n; }", REGION.encode() * 2]
)
def test_sources_with_broken_letters_are_read(text: bytes) -> None:
    sources(text)


def test_a_patch_that_renames_a_file_is_refused_with_its_name(tmp_path: Path) -> None:
    patch = tmp_path / "rename.patch"
    patch.write_text(
        "diff --git a/smooth.cpp b/moved.cpp\nsimilarity index 100%\nrename from smooth.cpp\nrename to moved.cpp\n"
    )
    with pytest.raises(CandidateError, match=r"moved\.cpp"):
        from_patch(task(), patch)
