"""The sandbox proves itself by attack: as whoever runs the tests, and, where that is root, as a plain user too."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import attacks
import pytest

import kernelwright
from kernelwright.sandbox import Bind, Job, Sandbox

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to become")


@pytest.mark.parametrize("case", attacks.CASES, ids=attacks.name_of)
def test_an_attack_is_refused_or_stopped(case: attacks.Case, sandbox: Sandbox, attacker: Path, tmp_path: Path) -> None:
    asyncio.run(attacks.attack(sandbox, case, attacker, tmp_path))


@as_root
def test_a_file_that_only_root_may_read_stays_unread_even_in_a_folder_that_is_shown(
    sandbox: Sandbox, attacker: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(attacks.SECRET)
    secret.chmod(0o600)
    job = Job(("/attack", "read", "/shown/secret"), "/", (Bind(attacker, "/attack"), Bind(tmp_path, "/shown")))
    assert asyncio.run(sandbox.run(job)).exit_code == 1


@pytest.mark.parametrize("file", ["/etc/passwd", "/proc/1/environ", "/etc/shadow"])
def test_the_compiler_cannot_be_made_to_read_the_machine(
    file: str, sandbox: Sandbox, workspace: Callable[..., Path]
) -> None:
    folder = workspace(a_cpp=f'#include "{file}"\n')
    job = Job(("g++", "-E", "a.cpp"), "/workspace", (Bind(folder, "/workspace", writable=True),))
    result = asyncio.run(sandbox.run(job))
    assert result.exit_code == 1
    assert b"root" not in result.stdout


@pytest.mark.parametrize("name", ["bubblewrap", "none"])
def test_nothing_survives_the_death_of_the_product(
    name: str, sandbox: Sandbox, attacker: Path, workspace: Callable[..., Path]
) -> None:
    folder = workspace()
    os.mkfifo(folder / "fifo")
    (folder / "fifo").chmod(0o666)
    script = f"""
import asyncio
from pathlib import Path
from kernelwright.sandbox import Bind, Job
from kernelwright.sandbox.backends import open_sandbox
binds = (Bind(Path({str(attacker)!r}), "/attack"), Bind(Path({str(folder)!r}), "/workspace", writable=True))
asyncio.run(open_sandbox({name!r}).run(Job(("/attack", "outlive_and_wait"), "/workspace", binds)))
"""
    with attacks.writers_of(folder / "fifo") as reader:
        keep_open = os.open(folder / "fifo", os.O_WRONLY)
        product = subprocess.Popen([sys.executable, "-c", script])
        assert reader.read() == b"r", "the daemon started"
        os.close(keep_open)
        product.send_signal(signal.SIGKILL)
        product.wait()
        assert reader.read_to_end() == b""


def test_a_job_that_is_cancelled_leaves_nothing_running(
    sandbox: Sandbox, attacker: Path, workspace: Callable[..., Path]
) -> None:
    folder = workspace()
    os.mkfifo(folder / "fifo")
    (folder / "fifo").chmod(0o666)
    binds = (Bind(attacker, "/attack"), Bind(folder, "/workspace", writable=True))

    async def start_and_cancel(reader: attacks.Reader) -> None:
        task = asyncio.create_task(sandbox.run(Job(("/attack", "outlive_and_wait"), "/workspace", binds)))
        assert await asyncio.to_thread(reader.read) == b"r", "the daemon started"
        os.close(keep_open)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with attacks.writers_of(folder / "fifo") as reader:
        keep_open = os.open(folder / "fifo", os.O_WRONLY)
        asyncio.run(start_and_cancel(reader))
        assert reader.read_to_end() == b""


@as_root
def test_the_same_attacks_as_a_plain_user(attacker: Path) -> None:
    """The system's Python runs attacks.py as `nobody`; the tests' own may lie under root's home."""
    python, setpriv = shutil.which("python3", path="/usr/bin"), shutil.which("setpriv")
    if python is None or setpriv is None:
        pytest.skip("no system Python or no setpriv")
    drop = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        source = Path(kernelwright.__file__).parent
        shutil.copytree(source, home / "source" / "kernelwright", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(attacker, home / "attacker")
        shutil.copy(attacks.__file__, home / "attacks.py")
        (home / "run").mkdir()
        for path in (home, *home.rglob("*")):
            path.chmod(0o755)
            os.chown(path, 65534, 65534)
        env = {"KERNELWRIGHT_HOME": str(home / "state"), "PYTHONPATH": str(home / "source"), "PATH": os.environ["PATH"]}
        modern = subprocess.run([*drop, python, "-c", "import enum; enum.StrEnum"], env=env, capture_output=True)
        if modern.returncode != 0:
            pytest.skip("the system's Python is older than 3.11, or not to be read by a plain user")
        words = [*drop, python, str(home / "attacks.py"), str(home / "attacker"), str(home / "run")]
        done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
