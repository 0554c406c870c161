"""The room without bubblewrap: when it is chosen, where it opens, and how it says that it does not."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from kernelwright.errors import SandboxUnavailable
from kernelwright.sandbox import Bind, Job, Sandbox, attacks, namespaces
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.launch import our_program
from kernelwright.sandbox.namespaces import NamespacesSandbox
from kernelwright.sandbox.refusals import why_not_started

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="root alone needs no user namespace")


@pytest.fixture
def without_bubblewrap(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with nothing but a C compiler."""
    for name in ("cc", "as", "ld"):
        (tmp_path / name).symlink_to(shutil.which(name) or pytest.skip(f"no {name}"))
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("without_bubblewrap")
def test_without_bubblewrap_it_is_the_one_that_is_used() -> None:
    assert open_sandbox().name == "namespaces"


@pytest.mark.usefixtures("without_bubblewrap")
def test_where_neither_opens_one_message_says_so_and_nothing_runs_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        NamespacesSandbox, "refusal", lambda self: "room: namespaces of its own: Operation not permitted"
    )
    with pytest.raises(SandboxUnavailable, match=r"bubblewrap is not installed.*namespaces of its own.*--no-sandbox"):
        open_sandbox()


def test_bubblewrap_comes_first(state: Path) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    assert open_sandbox().name == "bubblewrap"


def test_a_machine_that_forbids_namespaces_is_told_so(sandbox: Sandbox) -> None:
    """Such a machine is at hand: the inside of a sandbox."""
    binds = (Bind(our_program("namespaces.c"), "/room"),)
    result = asyncio.run(sandbox.run(Job(("/room", "--ro-bind", "/usr", "/usr", "--", "/usr/bin/env"), "/", binds)))
    assert (result.exit_code, result.stderr) == (125, b"room: namespaces of its own: Operation not permitted\n")
    assert isinstance(why_not_started(result.stderr.decode()), SandboxUnavailable)


@as_root
def test_as_root_it_opens_and_holds_where_the_machine_has_no_user_namespaces(
    attacker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spaces").write_text("0\n")
    monkeypatch.setattr(namespaces, "USER_SPACES", tmp_path / "spaces")
    sandbox = NamespacesSandbox()
    result = asyncio.run(sandbox.run(Job(("/bin/cat", "/proc/self/uid_map"), "/")))
    assert result.stdout.split()[:2] == [b"0", b"0"]
    tried = (
        "read",
        "rights",
        "become_root",
        "new_user",
        "remount",
        "settings",
        "writable_mounts",
        "fork_bomb",
        "visit",
    )
    for number, case in enumerate(case for case in attacks.CASES if case.name in tried):
        home = tmp_path / str(number)
        home.mkdir()
        assert asyncio.run(attacks.attack(sandbox, case, attacker, home)) is None, attacks.name_of(case)
