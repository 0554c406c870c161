"""A state folder of the tests' own, the sandbox, and the attacking program, made once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.backends import open_sandbox

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELWRIGHT_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def sandbox(state: Path) -> Sandbox:
    return open_sandbox()


@pytest.fixture(scope="session")
def attacker(state: Path) -> Path:
    program = state / "attacks"
    subprocess.run(["cc", "-O0", "-o", program, HERE / "attacks.c"], check=True)
    return program


@pytest.fixture
def workspace(tmp_path: Path, sandbox: Sandbox) -> Callable[..., Path]:
    """Makes a folder with the given files that jobs may write to."""

    def make(**files: str) -> Path:
        folder = tmp_path / "workspace"
        folder.mkdir()
        for name, text in files.items():
            (folder / name.replace("_", ".")).write_text(text)
        sandbox.own(folder)
        return folder

    return make
