"""What many tests share: a state folder of their own, and a small real application with a task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import make_app


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the user's state; one folder a session, so that our C programs are compiled once."""
    before = os.environ.get("KERNELWRIGHT_HOME")
    os.environ["KERNELWRIGHT_HOME"] = str(tmp_path_factory.mktemp("home"))
    yield
    if before is None:
        del os.environ["KERNELWRIGHT_HOME"]
    else:
        os.environ["KERNELWRIGHT_HOME"] = before


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder that no other test sees, with our C programs already built."""
    shared = Path(os.environ["KERNELWRIGHT_HOME"]) / "native"
    shared.mkdir(exist_ok=True)
    own = tmp_path / "home"
    own.mkdir()
    (own / "native").symlink_to(shared)
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(own))
    return own


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """The folder of a fresh copy of the small application; its task file lies in it."""
    return make_app(tmp_path / "repo")
