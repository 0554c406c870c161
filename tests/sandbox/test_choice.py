"""The sandbox as a user chooses it: by options, on the record, and attacked by `doctor`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from command import kernelwright
from kernelwright.cli.options import Isolation
from kernelwright.sandbox import attacks

Capture = pytest.CaptureFixture[str]


def test_the_sandbox_that_was_chosen_is_the_one_on_record(capsys: Capture, app: Path) -> None:
    said = kernelwright(capsys, "bench", app, "--runs", 1, "--sandbox", "namespaces", "--json")
    assert (said.code, said.data["sandbox"]) == (0, "namespaces")


def test_two_choices_at_once_are_a_mistake(capsys: Capture, app: Path) -> None:
    said = kernelwright(capsys, "bench", app, "--no-sandbox", "--sandbox", "namespaces", "--json")
    assert (said.code, said.error["try"]) == (2, "--sandbox namespaces")


def test_an_engine_without_an_image_is_a_mistake(capsys: Capture, app: Path) -> None:
    said = kernelwright(capsys, "bench", app, "--sandbox", "podman", "--json")
    assert (said.code, said.error["what"]) == (2, "podman needs an image")


@pytest.mark.parametrize(
    "words", [(), ("--no-sandbox",), ("--sandbox", "docker", "--image", "my image"), ("--image", "a")]
)
def test_a_run_goes_on_in_the_sandbox_that_it_began_in(words: tuple[str, ...]) -> None:
    options = dict(zip(words[::2], words[1::2], strict=False))
    none = "--no-sandbox" in words
    isolation = Isolation("none" if none else options.get("--sandbox", "auto"), options.get("--image"))
    assert shlex.split(isolation.words) == list(words)


def test_doctor_attacks_what_is_no_sandbox_and_says_what_got_through(capsys: Capture, state: Path) -> None:
    said = kernelwright(capsys, "doctor", "--attacks", "--no-sandbox", "--json")
    assert (said.code, said.data["sandbox"]) == (1, "none")
    assert set(said.data["attacks"]) == {attacks.name_of(case) for case in attacks.CASES if case.harmless}
    assert said.data["attacks"]["read {secret}"] is not None
    told = kernelwright(capsys, "doctor", "--attacks", "--no-sandbox").out
    assert "attacks got through" in told
    assert "the attacks that would do harm were not tried" in told


@pytest.mark.long
@pytest.mark.parametrize("name", ["bubblewrap", "namespaces"])
def test_doctor_attacks_a_sandbox_and_none_gets_through(name: str, capsys: Capture, state: Path) -> None:
    said = kernelwright(capsys, "doctor", "--attacks", "--sandbox", name, "--json")
    assert (said.code, len(said.data["attacks"])) == (0, len(attacks.CASES))
    assert set(said.data["attacks"].values()) == {None}
