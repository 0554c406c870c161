"""What is kept survives: full disks, jumps of the clock, kills in the middle of writing; what is left is swept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kernelwright import state, store
from kernelwright.state import locked_folder, native, replace_text, state_home
from kernelwright.store import Store
from kernelwright.workspace import sweep

HARNESS = Path(__file__).parents[2] / "benchmarks"

FULL = """
import resource, sys
from pathlib import Path
from kernelwright.errors import InfrastructureError
from kernelwright.store import Store
from kernelwright.trace import Message
path, told = Path(sys.argv[1]), 0
with Store.open(path) as store:
    run = store.create_run("optimize", "t", {})
    size = path.with_name(path.name + "-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 60_000, resource.RLIM_INFINITY))
    try:
        for told in range(1000):
            store.append_message(run.id, 0, Message("user", f"{told} " + "x" * 3000))
    except InfrastructureError as error:
        assert "failed" in error.what, error
    else:
        raise AssertionError("nothing was full")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.append_message(run.id, 0, Message("user", "room again"))
print(told)
"""


def test_a_commit_for_which_there_is_no_room_loses_nothing_and_the_store_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with Store.open(path) as opened:
        [run] = opened.runs()
        texts = [message.content.split()[0] for message in opened.messages(run.id, 0)]
    assert texts == [*map(str, range(int(done.stdout))), "room"]


def test_the_last_run_is_the_one_that_was_begun_last_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = iter((0, -1, 400, -800))

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: object = UTC) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(days=next(days))

    monkeypatch.setattr(store, "datetime", Jumping)
    with Store.open(tmp_path / "runs.sqlite3") as opened:
        ids = [opened.create_run("optimize", "t", {}).id for _ in range(4)]
        assert [run.id for run in opened.runs()] == ids
        assert opened.find("last").id == ids[-1]


def killed(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import os, signal\n{code}\n"], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def test_a_work_folder_that_was_half_made_or_half_removed_is_swept_at_once() -> None:
    home = state_home() / "work"
    home.mkdir(exist_ok=True)
    (home / "half").mkdir()
    (home / "half" / "rest").mkdir()
    mine, lock = locked_folder(home)
    assert sweep(home) == [home / "half"]
    assert mine.is_dir()
    os.close(lock)
    assert sweep(home) == [mine]


def test_what_a_killed_compilation_of_our_own_programs_left_is_removed_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "one.c").write_text("int main(void) { return 0; }\n")
    folder = state_home() / "native"
    folder.mkdir(exist_ok=True)
    code = (
        f"from pathlib import Path; from kernelwright.state import locked_folder; locked_folder(Path({str(folder)!r}))"
    )
    killed(f"{code}; os.kill(os.getpid(), signal.SIGKILL)")
    assert any(path.is_dir() for path in folder.iterdir())
    native(tmp_path / "one.c", ("cc", "gcc", "clang"))
    assert not any(path.is_dir() for path in folder.iterdir())


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "result.json"
    replace_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(file, "new \udce4")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("result.json", "old")]
    killed(
        "from pathlib import Path; from kernelwright import state\n"
        "Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"state.replace_text(Path({str(file)!r}), 'new' * 100)"
    )
    assert file.read_text() == "old"
    replace_text(file, "newer")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("result.json", "newer")]
    assert state.replace_text is replace_text


NO_NAMES = """
import asyncio, os, subprocess, sys
from pathlib import Path
sys.path[:0] = sys.argv[3:]
home = Path(os.environ["KERNELWRIGHT_HOME"])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=2000", "tmpfs", home], check=True)
from faulty.mounts import use_up_names
from kernelwright.errors import JobFault
from kernelwright.execute import Workshop
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task

async def story():
    async with Workshop(load_task(Path(sys.argv[1])), open_sandbox()) as shop:
        built = await shop.build_baseline()
        use_up_names(home)
        try:
            await shop.run(built, shop.task.shown[0])
        except JobFault as fault:
            print(fault.what)

asyncio.run(story())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_a_disk_without_a_name_left_is_a_full_disk(app: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", NO_NAMES, str(app), "", str(HARNESS)]
    done = subprocess.run(command, env={**os.environ, "KERNELWRIGHT_HOME": str(tmp_path / "home")}, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.stdout.strip().endswith("is full"), done.stdout + done.stderr
