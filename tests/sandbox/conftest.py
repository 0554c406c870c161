"""A state folder of the tests' own, the sandboxes that make their room themselves, and the attacking program, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.errors import InfrastructureError
from kernelwright.sandbox import Sandbox, attacks
from kernelwright.sandbox.backends import open_sandbox


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELWRIGHT_HOME", str(home))
        yield home


@pytest.fixture(scope="session", params=["bubblewrap", "namespaces"])
def sandbox(state: Path, request: pytest.FixtureRequest) -> Sandbox:
    try:
        return open_sandbox(request.param)
    except InfrastructureError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def attacker(state: Path) -> Path:
    return attacks.program()


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
