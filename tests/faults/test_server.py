"""A model's server that fails in every way that the fault harness knows: asked again it is forgiven; where it goes on
failing the machine is blamed, never the model."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty import server

from command import kernelwright
from kernelwright.errors import InfrastructureError
from kernelwright.policy import endpoint
from kernelwright.policy.endpoint import Endpoint
from kernelwright.trace import Message

ASKED = [Message("system", "Be brief."), Message("user", "Begin.")]


async def at_once(_seconds: float) -> None:
    """Instead of waiting between two tries."""


@pytest.fixture(scope="module")
def serving() -> Iterator[server.ChatServer]:
    chat = server.ChatServer(["Understood."])
    yield chat
    chat.shutdown()
    chat.server_close()


@pytest.fixture
def chat(serving: server.ChatServer) -> server.ChatServer:
    serving.asked = 0
    return serving


@pytest.fixture(autouse=True)
def short_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "LONGEST_ANSWER_BYTES", 2**20)


def model(chat: server.ChatServer, stream: bool, timeout_s: float = 20.0) -> Endpoint:
    return Endpoint("scripted", chat.url, stream=stream, retries=3, timeout_s=timeout_s, sleep=at_once)


def patience_s(name: str) -> float:
    return 0.4 if name == "hang" else 20.0


def said(policy: Endpoint) -> tuple[str, int]:
    message = asyncio.run(policy.next(ASKED, []))
    return message.content, len(message.tool_calls)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", server.FAULTS)
def test_one_failure_is_forgiven(chat: server.ChatServer, name: str, seed: int, stream: bool) -> None:
    fault, policy = server.FAULTS[name](random.Random(f"{name}/{seed}")), model(chat, stream, patience_s(name))
    at = 1 if name == "hang" else seed % 2  # one that never said a word is not waited for
    chat.faults = lambda number: fault if number == at else None
    assert [said(policy) for _ in range(2)] == [("Understood.", 0)] * 2


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("name", server.FAULTS)
def test_one_that_goes_on_failing_is_the_machine_s_fault(chat: server.ChatServer, name: str, stream: bool) -> None:
    fault = server.FAULTS[name](random.Random(name))
    chat.faults = lambda _: fault
    with pytest.raises(InfrastructureError) as raised:
        said(model(chat, stream, patience_s(name)))
    assert chat.url in raised.value.what
    assert raised.value.expected
    assert raised.value.try_


@pytest.mark.parametrize("body", server.SHAPES, ids=map(repr, range(len(server.SHAPES))))
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_json_of_another_shape_is_never_what_the_model_said(
    chat: server.ChatServer, body: object, stream: bool
) -> None:
    fault = server.shaped(body)
    chat.faults = lambda number: fault if number == 0 else None
    assert said(model(chat, stream)) == ("Understood.", 0)


def test_a_run_whose_server_fell_silent_goes_on_with_more_patience(
    capsys: pytest.CaptureFixture[str], app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    chat = server.ChatServer(['{"final_code": "original", "explanation": "", "compile_args": []}'])
    silence = server.FAULTS["hang"](random.Random(1))
    chat.faults = lambda _: silence
    words = ("optimize", app, "--model", "scripted", "--base-url", chat.url, "--answer-timeout", 1, "--json")
    said = kernelwright(capsys, *words)
    assert (said.code, said.error["kind"]) == (3, "infrastructure")
    assert said.error["expected"] == "an answer within 1 s"
    chat.faults = lambda _: None
    again = kernelwright(capsys, "optimize", "--resume", "last", "--answer-timeout", 90, "--json")
    assert (again.code, again.data["outcome"], again.data["comparison"]) == (0, "correct", "same")
    assert again.data["options"]["settings"]["answer_timeout"] == 90
    assert [attempt["stop"] for attempt in again.data["attempts"]] == ["answered"]
    chat.shutdown()
