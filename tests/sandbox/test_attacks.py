"""Each sandbox proves itself by attack: as whoever runs the tests, and, where that is root, as a plain user too."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import kernelwright
from kernelwright.errors import InfrastructureError
from kernelwright.sandbox import Bind, Job, Sandbox, attacks
from kernelwright.sandbox.user import own

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to become")


@pytest.mark.parametrize("case", attacks.CASES, ids=attacks.name_of)
def test_an_attack_is_refused_or_stopped(case: attacks.Case, sandbox: Sandbox, attacker: Path, tmp_path: Path) -> None:
    assert asyncio.run(attacks.attack(sandbox, case, attacker, tmp_path)) is None


@pytest.mark.parametrize("file", ["/etc/passwd", "/proc/1/environ", "/etc/shadow"])
def test_the_compiler_cannot_be_made_to_read_the_machine(
    file: str, sandbox: Sandbox, workspace: Callable[..., Path]
) -> None:
    folder = workspace(a_cpp=f'#include "{file}"\n')
    job = Job(("g++", "-E", "a.cpp"), "/workspace", (Bind(folder, "/workspace", writable=True),))
    result = asyncio.run(sandbox.run(job))
    assert result.exit_code == 1
    assert b"root" not in result.stdout


def test_a_link_that_a_job_left_does_not_lead_the_next_rooms_making_out_of_it(
    sandbox: Sandbox, workspace: Callable[..., Path], tmp_path: Path
) -> None:
    folder, outside = workspace(), tmp_path / "outside"
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "up").symlink_to("../..")
    for inside in ("/workspace/link/new", "/workspace/up/new"):
        binds = (Bind(folder, "/workspace", writable=True), Bind(outside, inside))
        with contextlib.suppress(InfrastructureError):
            asyncio.run(sandbox.run(Job(("/bin/true",), "/", binds)))
    assert list(outside.iterdir()) == []


PRODUCT = """
import asyncio
from pathlib import Path
from kernelwright.errors import InfrastructureError
from kernelwright.sandbox import Bind, Job
from kernelwright.sandbox.backends import open_sandbox
binds = (Bind(Path({attacker!r}), "/attack"), Bind(Path({folder!r}), "/workspace", writable=True))
asyncio.run(open_sandbox({name!r}, {image!r}).run(Job(("/attack", "outlive_and_wait"), "/workspace", binds)))
"""


def dies_with_its_product(attacker: Path, folder: Path, name: str, image: str | None = None) -> int:
    """Kill a product while its job runs; all that the job started must die. The product's process id."""
    script = PRODUCT.format(attacker=str(attacker), folder=str(folder), name=name, image=image)
    with attacks.writers_of(folder / "fifo") as reader:
        keep_open = os.open(folder / "fifo", os.O_WRONLY)
        product = subprocess.Popen([sys.executable, "-c", script])
        assert reader.read() == b"r", "the daemon started"
        os.close(keep_open)
        product.send_signal(signal.SIGKILL)
        product.wait()
        assert reader.read_to_end() == b""
    return product.pid


@pytest.mark.parametrize("name", ["bubblewrap", "namespaces", "none"])
def test_nothing_survives_the_death_of_the_product(name: str, attacker: Path, tmp_path: Path) -> None:
    own(tmp_path)
    dies_with_its_product(attacker, tmp_path, name)


def ends_with_its_task(sandbox: Sandbox, attacker: Path, folder: Path) -> None:
    """Cancel a running job; all that it started must die."""
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


def test_a_job_that_is_cancelled_leaves_nothing_running(
    sandbox: Sandbox, attacker: Path, workspace: Callable[..., Path]
) -> None:
    ends_with_its_task(sandbox, attacker, workspace())


AS_ANOTHER = """
import asyncio, sys
from kernelwright.sandbox import attacks
from kernelwright.sandbox.backends import open_sandbox

async def main():
    tried = [(case, how) async for case, how in attacks.all_attacks(open_sandbox(sys.argv[1]))]
    print(*(f"{attacks.name_of(case)}: {how}" for case, how in tried if how is not None), sep="\\n", file=sys.stderr)
    print(len(tried))

asyncio.run(main())
"""


@as_root
@pytest.mark.parametrize("name", ["bubblewrap", "namespaces"])
def test_the_same_attacks_as_a_plain_user(name: str, attacker: Path) -> None:
    """The system's Python runs them as `nobody`; the tests' own may lie under root's home."""
    python, setpriv = shutil.which("python3", path="/usr/bin"), shutil.which("setpriv")
    if python is None or setpriv is None:
        pytest.skip("no system Python or no setpriv")
    drop = [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source = Path(kernelwright.__file__).parent
        shutil.copytree(source, home / "source" / "kernelwright", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(attacker.parent, home / "state" / "native")
        for path in (home, *home.rglob("*")):
            path.chmod(0o755)
            os.chown(path, 65534, 65534)
        env = {"KERNELWRIGHT_HOME": str(home / "state"), "PYTHONPATH": str(home / "source"), "PATH": os.environ["PATH"]}
        modern = subprocess.run([*drop, python, "-c", "import enum; enum.StrEnum"], env=env, capture_output=True)
        if modern.returncode != 0:
            pytest.skip("the system's Python is older than 3.11, or not to be read by a plain user")
        words = [*drop, python, "-c", AS_ANOTHER, name]
        done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True)
        assert (done.returncode, done.stderr.strip()) == (0, "")
        assert int(done.stdout) == len(attacks.CASES)
