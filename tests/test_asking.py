"""`optimize --approve` at a real (pseudo-)terminal: what a person is shown, may type, and is never tricked by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import FASTER
from command import kernelwright, program
from kernelwright.approval import candidate_piece, microbenchmark_piece
from kernelwright.cli.asking import plain, summary
from kernelwright.trace import Candidate
from terminal import at_a_terminal

QUESTION = "compile and run it? "
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _home(home: Path) -> None:
    """Runs of other tests are not in the way."""


def test_each_piece_waits_for_its_answer_and_q_stops_a_run_that_goes_on(capsys: Capture, app: Path) -> None:
    with at_a_terminal("optimize", app, "--max-calls", 2, "--approve", "--json") as command:
        person = command.terminal
        person.type("y\n")  # before there is anything to say yes to
        shown = person.until(QUESTION)
        assert "--- src/smooth.hpp (original)" in shown
        assert "src/smooth.hpp: 1 line(s) added, 1 removed\ncompile arguments: -O3 -march=native" in shown
        person.type("perhaps\n")
        assert "y: yes" in person.until(QUESTION)
        person.type("n -fno-math-errno is not for us\n")
        assert "c1 refused" in person.until("2: a candidate, for benchmark_code")
        person.until(QUESTION)
        person.type("q\n")
        said = command.ended()
    assert (said.code, json.loads(said.out)["error"]["kind"]) == (130, "interrupted")
    shown = kernelwright(capsys, "show", "--json").data
    [decision] = shown["approvals"]
    assert (decision["approved"], decision["reason"]) == (False, "-fno-math-errno is not for us")
    assert (shown["run"]["status"], shown["run"]["options"]["approve"]) == ("interrupted", True)
    with at_a_terminal("optimize", "--resume", "last", "--json") as command:
        person = command.terminal
        shown_again = person.until(QUESTION)
        assert "-fno-math-errno" not in shown_again, "it was refused by its name, so it is left out"
        person.type("Y\n")
        said = command.ended()
    assert (said.code, said.data["outcome"], said.data["options"]["approve"]) == (0, "correct", True)
    assert "1 approved, 1 refused" in kernelwright(capsys, "show").out


def test_a_terminal_that_is_left_stops_the_run_and_nothing_is_run_unseen(capsys: Capture, app: Path) -> None:
    with at_a_terminal("optimize", app, "--max-calls", 2, "--approve", "--no-sandbox") as command:
        command.terminal.until(QUESTION)
        command.terminal.type("\x04")
        said = command.ended()
    assert (said.code, "go" in said.err) == (130, True)
    with at_a_terminal("optimize", "--resume", "last", "--no-sandbox") as command:
        command.terminal.until(QUESTION)
        command.terminal.type("\x03")
        assert command.ended().code == 130
    shown = kernelwright(capsys, "show", "--json").data
    assert (shown["approvals"], shown["run"]["status"]) == (None, "interrupted")


def test_without_a_terminal_there_is_nobody_to_ask(capsys: Capture, app: Path) -> None:
    said = program("optimize", app, "--approve", "--json", start_new_session=True)
    assert (said.code, said.error["kind"]) == (2, "usage")
    assert "ssh -t" in said.error["expected"]
    assert kernelwright(capsys, "runs", "--json").data["runs"] == []


def test_code_cannot_hide_from_who_reads_it() -> None:
    assert plain("\tif (a) {  // \x1b[2K\x1b[1A fine \u202e }\r") == (
        "\tif (a) {  // \\x1b[2K\\x1b[1A fine \\u202e }\\r"
    )
    assert plain("größer = \u200b1;\u00a0\udcff") == "größer = \\u200b1;\\xa0\\udcff"
    disguised = FASTER.replace("weight[17]", "w\u0435ight[17]")
    piece = candidate_piece(Candidate({"r": disguised}, ("-O2", "-DA=1 2")), {"a": b""}, {"a": disguised.encode()})
    assert summary(piece) == [
        "a: 13 line(s) added, 0 removed",
        "compile arguments: -O2 '-DA=1 2'",
        "not ASCII: CYRILLIC SMALL LETTER IE (1×)",
    ]
    assert summary(microbenchmark_piece("int main() {}\n", ()))[1] == "compile arguments: none"
