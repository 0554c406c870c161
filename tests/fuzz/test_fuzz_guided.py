"""The same targets under coverage guidance, where atheris is installed (no dependency: few Pythons have a wheel)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from targets import TARGETS


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_coverage_guided_inputs_break_no_promise(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed: pip install atheris")
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("guided.py")),
            name,
            "--seconds",
            "20",
            "--corpus",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
