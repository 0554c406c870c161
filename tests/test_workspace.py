"""Private copies: what is copied, what is not, and that restoring puts back every byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernelwright.state import state_home
from kernelwright.task_file import load_task
from kernelwright.workspace import WorkFolder, copy_repository, populate, restore, snapshot, sweep


def own(_: Path) -> None:
    pass


def content(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_hidden_paths_git_and_the_task_file_are_not_copied(app: Path, tmp_path: Path) -> None:
    (app / "answers").mkdir()
    (app / "answers/better.json").write_text("{}")
    subprocess.run(["git", "init", "-q", str(app)], check=True)
    task_file = app / "kernelwright.toml"
    task_file.write_text(task_file.read_text().replace('language = "cpp"', 'language = "cpp"\nhidden = ["answers"]'))
    copy_repository(load_task(app), tmp_path / "copy")
    assert sorted(content(tmp_path / "copy")) == [
        "Makefile",
        "src/checks.cpp",
        "src/checks.hpp",
        "src/main.cpp",
        "src/smooth.hpp",
    ]


def test_what_earlier_builds_left_is_not_copied(app: Path, tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(app)], check=True)
    (app / "src/vendor.o").write_bytes(b"an object without a source")
    copy_repository(load_task(app), tmp_path / "copy")
    names = set(content(tmp_path / "copy"))
    assert {"app", "src/main.o", "src/checks.o"}.isdisjoint(names)
    assert "src/vendor.o" in names


def test_names_with_spaces_and_other_letters_are_copied(app: Path, tmp_path: Path) -> None:
    (app / "дані und mehr").mkdir()
    (app / "дані und mehr/größe 1.txt").write_text("1")
    copy_repository(load_task(app), tmp_path / "copy")
    assert "дані und mehr/größe 1.txt" in content(tmp_path / "copy")


def spoil(folder: Path) -> None:
    (folder / "src/main.cpp").write_text("int main() {}")
    (folder / "src/checks.hpp").unlink()
    (folder / "new file").write_text("x")
    (folder / "new").mkdir()
    (folder / "new/deep").symlink_to("/etc/passwd")
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc")
    same = folder / "src/smooth.hpp"
    state = same.stat()
    same.write_bytes(same.read_bytes().replace(b"sum", b"mus"))
    os.utime(same, ns=(state.st_atime_ns, state.st_mtime_ns))  # a job can forge this time, but not the change time


def test_a_spoilt_workspace_is_restored_byte_for_byte(app: Path, tmp_path: Path) -> None:
    (app / "link").symlink_to("src")
    pristine = copy_repository(load_task(app), tmp_path / "pristine")
    start = populate(tmp_path / "slot", pristine, own)
    before = content(tmp_path / "slot")
    for _ in range(2):
        spoil(tmp_path / "slot")
        start = restore(tmp_path / "slot", start, own)
        assert content(tmp_path / "slot") == before
    assert restore(tmp_path / "slot", start, own) is start


def test_a_built_tree_is_restored_from_its_own_store(app: Path, tmp_path: Path) -> None:
    pristine = copy_repository(load_task(app), tmp_path / "pristine")
    start = populate(tmp_path / "slot", pristine, own)
    subprocess.run(["make", "-s", "-C", str(tmp_path / "slot")], check=True)
    built = snapshot(tmp_path / "slot", start, tmp_path / "built")
    before = content(tmp_path / "slot")
    assert sorted(content(tmp_path / "built")) == ["app", "src/checks.o", "src/main.o"]
    (tmp_path / "slot/app").write_bytes(b"\0")
    (tmp_path / "slot/src/main.o").unlink()
    built = restore(tmp_path / "slot", built, own)
    assert content(tmp_path / "slot") == before
    assert os.access(tmp_path / "slot/app", os.X_OK)


def test_nothing_of_the_user_s_repository_changes(app: Path, tmp_path: Path) -> None:
    before = content(app)
    copy_repository(load_task(app), tmp_path / "copy")
    assert content(app) == before


def test_a_killed_owner_s_folder_is_swept_and_a_living_one_s_is_not() -> None:
    home = state_home() / "work"
    mine = WorkFolder()
    code = (
        "import os; from kernelwright.workspace import WorkFolder;"
        "print(WorkFolder().path, flush=True); os.kill(os.getpid(), 9)"
    )
    dead = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    left = Path(dead.stdout.strip())
    assert left.is_dir()
    assert left in sweep(home)
    assert not left.exists()
    assert mine.path.is_dir()
    mine.close()
    assert not mine.path.exists()


def test_a_kept_folder_is_only_removed_on_request() -> None:
    home = state_home() / "work"
    kept = WorkFolder()
    kept.hold()
    kept.close()
    assert kept.path not in sweep(home)
    assert kept.path in sweep(home, kept=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_an_unreadable_file_is_named(app: Path, tmp_path: Path) -> None:
    (app / "src/main.cpp").chmod(0)
    with pytest.raises(Exception, match=r"main\.cpp cannot be read"):
        copy_repository(load_task(app), tmp_path / "copy")


def test_folders_that_are_made_beside_each_other_are_never_swept_away() -> None:
    """Each of three processes makes work folders, and with each one sweeps; none may lose one that it holds."""
    code = (
        "from kernelwright.workspace import WorkFolder\n"
        "for _ in range(300):\n"
        "    folder = WorkFolder()\n"
        "    assert folder.path.is_dir()\n"
        "    folder.close()\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [(one.communicate()[1], one.returncode) for one in running] == [("", 0)] * 3


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody whom permissions hold")
def test_what_a_job_made_unreadable_is_restored_all_the_same(app: Path, request: pytest.FixtureRequest) -> None:
    there = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own folders let nobody else through
    request.addfinalizer(lambda: shutil.rmtree(there))
    pristine = copy_repository(load_task(app), there / "pristine")
    start = populate(there / "slot", pristine, own)
    before = content(there / "slot")
    locked = there / "slot/locked"
    locked.mkdir()
    (locked / "file").write_text("x")
    for path in [there, *there.rglob("*")]:
        os.chown(path, 65534, 65534)
    locked.chmod(0)
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            restore(there / "slot", start, own)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert content(there / "slot") == before
