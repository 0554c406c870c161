"""Bad input gets one message that names the thing, what was expected and what to try; no traceback; and nothing of the
user's repository is changed, ever."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from app import FASTER, FILES, SMOOTH, WRONG, make_app
from command import Said, fingerprint, finished, kernelwright, program
from kernelwright.trace import Candidate

Capture = pytest.CaptureFixture[str]
TOML, MAIN, MAKEFILE = FILES["kernelwright.toml"], FILES["src/main.cpp"], FILES["Makefile"]
SOURCES = Path(__file__).parent.parent / "src"

mounts = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
    reason="this user may not mount",
)


def change(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def refused(capsys: Capture, app: Path, *arguments: object, code: int = 2) -> dict[str, str]:
    """Run a command that must be refused; returns its message. The repository must be as it was."""
    before = fingerprint(app)
    said = kernelwright(capsys, *arguments, "--json")
    assert fingerprint(app) == before
    assert said.code == code, said
    return said.error


def candidate(folder: Path, data: object = None) -> Path:
    path = folder / "candidate.json"
    data = {"final_code": FASTER} if data is None else data
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


# The task file


@pytest.mark.parametrize(
    ("old", "new", "what", "hint"),
    [
        ('name = "smooth"\nlang', 'nmae = "smooth"\nlang', "unknown key 'nmae'", "'name'"),
        ("timeout_s = 20\n[time]", "timout_s = 20\n[time]", "unknown key 'run[1].timout_s'", "'timeout_s'"),
        ('kernel = "smooth"', 'kernel = "smoth"', "no function 'smoth' was found", "smooth"),
        ('kernel = "smooth"', "lines = [3, 400]", "lines = [3, 400], but src/smooth.hpp has 11 lines", "at most 11"),
        ('kernel = "smooth"', 'markers = ["BEGIN", "END"]', "the marker 'BEGIN' stands on 0 lines", "a longer text"),
        ('file = "src/smooth.hpp"', 'file = "src/smoth.hpp"', "'src/smoth.hpp', which is not in", "smooth.hpp"),
        ('file = "src/smooth.hpp"', 'file = "../smooth.hpp"', "region[0].file = '../smooth.hpp'", "docs/task-file.md"),
        ('artifact = "app"', 'artifact = "a\\u0000p"', "build.artifact", "docs/task-file.md"),
        (
            'language = "cpp"',
            'language = "cpp"\nrepo = "elsewhere"',
            "repo = 'elsewhere' is not a folder",
            'repo = "."',
        ),
        ("pattern = 'smooth: (\\S+) ms'", "pattern = 'smooth: (\\S+ ms'", "time.pattern", "docs/task-file.md"),
        ("pattern = 'smooth: (\\S+) ms'", "pattern = 'smooth'", "time", "docs/task-file.md"),
        ("schema = 1", "schema = [[[", "is not TOML", "quote regular expressions"),
        ("schema = 1", "schema = " + 10000 * "9", "is not TOML", "quote regular expressions"),
        ("schema = 1", "schema = " + 100_000 * "[", "is not TOML", "quote regular expressions"),
    ],
)
def test_a_mistake_in_a_task_file(capsys: Capture, app: Path, old: str, new: str, what: str, hint: str) -> None:
    (app / "kernelwright.toml").write_text(change(TOML, old, new))
    error = refused(capsys, app, "check", app)
    assert error["kind"] == "task"
    assert what in error["what"]
    assert hint in error["try"]


def test_two_regions_that_overlap(capsys: Capture, app: Path) -> None:
    second = '[[region]]\nname = "inner"\nfile = "src/smooth.hpp"\nlines = [4, 6]\n[build]'
    (app / "kernelwright.toml").write_text(change(TOML, "[build]", second))
    error = refused(capsys, app, "check", app)
    assert "'smooth' (lines 2 to 11) and 'inner' (lines 4 to 6) of src/smooth.hpp overlap" in error["what"]


def test_a_kernel_that_is_defined_twice(capsys: Capture, app: Path) -> None:
    header = app / "src/smooth.hpp"
    header.write_text(header.read_text() + SMOOTH.replace("double* in", "float* in"))
    error = refused(capsys, app, "check", app)
    assert "'smooth' is defined 2 times, at lines 2, 12" in error["what"]
    assert error["try"] == "lines = [first, last]"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda path: None, "there is no task file"),
        (lambda path: path.mkdir(), "there is no task file"),
        (lambda path: path.write_bytes(b"\x7fELF\xff\xfe\0"), "is not UTF-8 text"),
        (lambda path: path.write_bytes(b"#" * (2**24 + 1)), "has more than 16 MiB"),
        (lambda path: path.symlink_to("/dev/zero"), "has more than 16 MiB"),
        (lambda path: path.write_bytes(b""), "the key 'schema' is missing"),
        (lambda path: (path.mkdir(), (path / "kernelwright.toml").mkdir()), "cannot be read: Is a directory"),
    ],
)
def test_what_is_no_task_file(capsys: Capture, tmp_path: Path, make: Callable[[Path], object], what: str) -> None:
    make(tmp_path / "a täsk")
    error = refused(capsys, tmp_path, "check", tmp_path / "a täsk")
    assert what in error["what"]
    assert "a täsk" in error["what"]


def test_a_byte_order_mark_is_no_mistake(capsys: Capture, app: Path, tmp_path: Path) -> None:
    (app / "kernelwright.toml").write_text(TOML, encoding="utf-8-sig")
    assert "no candidate file" in refused(capsys, app, "verify", app, tmp_path / "none.json")["what"]


# The program of the task


@pytest.mark.parametrize(
    ("file", "old", "new", "what"),
    [
        ("src/main.cpp", "int main(", "int main((", "the unmodified code does not build: src/main.cpp:7"),
        ("kernelwright.toml", "make EXTRA", "nosuchcompiler EXTRA", "does not build: nosuchcompiler: No such file"),
        ("kernelwright.toml", 'artifact = "app"', 'artifact = "ape"', "the build ended without ape"),
        ("kernelwright.toml", "./app 20000", "./ape 20000", "'small' fails the check exit_code: exit code 127"),
        ("kernelwright.toml", "smooth: (", "smoothed: (", "no line of the output matches the time's pattern"),
        ("kernelwright.toml", "'smooth: (\\S+)", "'(nothing)?smooth: \\S+", "matches without its first group"),
        ("src/main.cpp", '\\n", ms)', '\\n", 0 * ms)', "the time read is 0, which is no time"),
        ("src/main.cpp", '\\n", ms)', '\\n", ms / 0.0)', "the time read is inf, which is no time"),
        ("src/main.cpp", '"PASS" : "FAIL"', '"FAIL" : "PASS"', "fails the check require 'PASS': not printed"),
        ("src/main.cpp", "sum, plausible", "ms, plausible", "fails the check number"),
    ],
)
def test_a_program_that_cannot_be_judged(
    capsys: Capture, app: Path, tmp_path: Path, file: str, old: str, new: str, what: str
) -> None:
    path = app / file
    path.write_text(change(path.read_text(), old, new))
    error = refused(capsys, app, "verify", app, candidate(tmp_path))
    assert error["kind"] == "task"
    assert what in error["what"]


def test_a_search_on_a_task_that_does_not_build_leaves_no_run(capsys: Capture, app: Path) -> None:
    before = kernelwright(capsys, "runs", "--json").data["runs"]
    (app / "src/main.cpp").write_text("int main( {")
    assert "does not build" in refused(capsys, app, "optimize", app)["what"]
    assert kernelwright(capsys, "runs", "--json").data["runs"] == before


# The candidate


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b'{"final_code": "a', "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b"9" * 10_000, "is not JSON"),
        (b"\x80\x81", "is not UTF-8 text"),
        (b"null", "the file"),
        ([1], "the file"),
        ({}, "final_code"),
        ({"final_code": None}, "final_code"),
        ({"final_code": {"smooth": 1}}, "final_code.smooth"),
        ({"final_code": {"smoth": ""}}, "the task has no region 'smoth'"),
        ({"final_code": "", "compile_args": "-O3"}, "compile_args"),
        ({"final_code": "", "compile_args": [None]}, "compile_args.0"),
        ({"final_code": "", "compile_args": ["-O1"] * 201}, "compile_args"),
        ({"final_code": "", "explanation": []}, "explanation"),
        ({"final_code": "", "finalcode": ""}, "finalcode"),
    ],
)
def test_a_candidate_file_that_is_none(capsys: Capture, app: Path, tmp_path: Path, data: object, what: str) -> None:
    error = refused(capsys, app, "verify", app, candidate(tmp_path, data))
    assert error["kind"] == "candidate"
    assert what in error["what"]
    assert "final_code" in error["expected"] + error["try"] or "smooth" in error["expected"]


def test_a_text_that_no_file_can_hold_is_an_outcome(capsys: Capture, app: Path, tmp_path: Path) -> None:
    said = kernelwright(capsys, "verify", app, candidate(tmp_path, {"final_code": SMOOTH + "// \ud800"}), "--json")
    assert (said.code, said.data["outcome"]) == (1, "refused")


def test_no_candidate_or_two(capsys: Capture, app: Path, tmp_path: Path) -> None:
    for arguments in ([], [candidate(tmp_path), "--rev", "HEAD"]):
        assert refused(capsys, app, "verify", app, *arguments)["what"] == "no single candidate is named"


PATCHES = {
    "nothing": b"",
    "junk": b"\xff\xfe\x00junk\n",
    "other": b"--- a/Makefile\n+++ b/Makefile\n@@ -1 +1 @@\n-CXX = g++\n+CXX = true\n",
    "outside": b"--- a/src/smooth.hpp\n+++ b/src/smooth.hpp\n@@ -1,3 +1,3 @@\n-#pragma once\n+#pragma twice\n"
    + b"".join(b" " + line + b"\n" for line in SMOOTH.encode().splitlines()[:2]),
    "stale": b"--- a/src/smooth.hpp\n+++ b/src/smooth.hpp\n@@ -1,1 +1,1 @@\n-#pragma never\n+#pragma once\n",
    "escape": b"--- a/../../x\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n",
    "removal": b"diff --git a/src/smooth.hpp b/src/smooth.hpp\ndeleted file mode 100644\n--- a/src/smooth.hpp\n"
    b"+++ /dev/null\n@@ -1,11 +0,0 @@\n"
    + b"".join(b"-" + line + b"\n" for line in FILES["src/smooth.hpp"].encode().splitlines()),
}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("nothing", "is no patch that can be read"),
        ("junk", "is no patch that can be read"),
        ("other", "changes Makefile, which holds no region"),
        ("outside", "changes src/smooth.hpp outside the regions"),
        ("stale", "does not apply"),
        ("escape", "changes ../../x, which holds no region"),
        ("removal", "removes a region's file"),
    ],
)
def test_a_patch_that_is_no_candidate(capsys: Capture, app: Path, tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "my.patch").write_bytes(PATCHES[name])
    error = refused(capsys, app, "verify", app, "--patch", tmp_path / "my.patch")
    assert error["kind"] == "candidate"
    assert what in error["what"]


@pytest.mark.parametrize("revision", ["v9", "--output=x", "HEAD:src", ""])
def test_a_revision_that_is_none(capsys: Capture, app: Path, revision: str) -> None:
    assert "git cannot show src/smooth.hpp" in refused(capsys, app, "verify", app, f"--rev={revision}")["what"]
    git(app, "init", "-q")
    git(app, "commit", "-q", "--allow-empty", "-m", "empty")
    assert "git cannot show src/smooth.hpp" in refused(capsys, app, "verify", app, f"--rev={revision}")["what"]


def test_a_patch_of_a_larger_checkout_names_files_from_its_top(capsys: Capture, tmp_path: Path) -> None:
    app = make_app(tmp_path / "top/der täsk")
    git(tmp_path / "top", "init", "-q")
    git(tmp_path / "top", "add", "-A")
    git(tmp_path / "top", "commit", "-qm", "first")
    header = app / "src/smooth.hpp"
    header.write_text(header.read_text().replace(SMOOTH, WRONG))
    patch = subprocess.run(["git", "-C", str(app), "diff"], check=True, capture_output=True).stdout
    header.write_text(header.read_text().replace(WRONG, SMOOTH))
    (tmp_path / "my.patch").write_bytes(patch)
    said = kernelwright(capsys, "verify", app, "--patch", tmp_path / "my.patch", "--json")
    assert (said.code, said.data["outcome"]) == (1, "wrong_result")


# The machine


def bare_path(folder: Path, *programs: str) -> str:
    """A PATH on which only these programs are."""
    folder.mkdir()
    for name in programs:
        (folder / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is not installed"))
    return str(folder)


@pytest.mark.parametrize(
    ("programs", "arguments", "kind", "what"),
    [
        (["bwrap", "git"], ["CANDIDATE"], "infrastructure", "none of cc, gcc, clang is installed"),
        (
            ["git", "gcc", "as", "ld"],
            ["CANDIDATE", "--sandbox", "bubblewrap"],
            "sandbox",
            "bubblewrap is not installed",
        ),
        (["bwrap"], ["--rev", "HEAD"], "infrastructure", "git is not installed"),
        (["bwrap"], ["--patch", "PATCH"], "infrastructure", "git is not installed"),
    ],
)
def test_a_program_that_is_not_installed(
    capsys: Capture,
    app: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    programs: list[str],
    arguments: list[str],
    kind: str,
    what: str,
) -> None:
    monkeypatch.setenv("PATH", bare_path(tmp_path / "bin", *programs))
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "my.patch").write_bytes(PATCHES["outside"])
    files = {"CANDIDATE": candidate(tmp_path), "PATCH": tmp_path / "my.patch"}
    error = refused(capsys, app, "verify", app, *(files.get(word, word) for word in arguments), code=3)
    assert (error["kind"], error["what"]) == (kind, what)
    assert "apt-get install" in error["try"]


@pytest.mark.parametrize(
    ("env", "what"),
    [
        ({"KERNELWRIGHT_HOME": "/dev/null"}, "/dev/null cannot be made: File exists"),
        ({"KERNELWRIGHT_HOME": "/proc/kernelwright"}, "/proc/kernelwright cannot be made"),
        ({"KERNELWRIGHT_HOME": "", "XDG_STATE_HOME": "", "HOME": ""}, "HOME is not set"),
    ],
)
def test_a_state_folder_that_cannot_be(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], what: str
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    error = refused(capsys, tmp_path, "runs", code=3)
    assert what in error["what"]
    assert "KERNELWRIGHT_HOME" in error["try"]


def mounted(shell: str, *arguments: object, home: Path) -> Said:
    """Run a command where `shell` has mounted something, in a mount namespace of its own."""
    before = ["unshare", "-m", "bash", "-ec", f'{shell}; exec "$@"', "bash"]
    return program(*arguments, before=before, env={"KERNELWRIGHT_HOME": str(home)})


@mounts
@pytest.mark.parametrize("size", ["16k", "1500k"])
def test_a_full_disk_is_the_machine_s_fault(app: Path, tmp_path: Path, size: str) -> None:
    disk, before = tmp_path / "disk", fingerprint(app)
    disk.mkdir()
    shell = f"mount -t tmpfs -o size={size} none '{disk}'"
    said = mounted(shell, "verify", app, candidate(tmp_path), "--json", home=disk / "home")
    assert said.code == 3
    assert f"the disk that holds {disk / 'home'}" in said.error["what"]
    assert "KERNELWRIGHT_HOME" in said.error["try"]
    assert fingerprint(app) == before


@mounts
def test_a_state_folder_on_a_read_only_disk(tmp_path: Path) -> None:
    shell = f"mount -t tmpfs -o ro none '{tmp_path}'"
    said = mounted(shell, "runs", "--json", home=tmp_path)
    assert (said.code, "cannot be written" in said.error["what"]) == (3, True)


@mounts
def test_a_read_only_repository_is_judged_and_init_and_apply_say_that_they_cannot_write(
    app: Path, tmp_path: Path
) -> None:
    home = Path(os.environ["KERNELWRIGHT_HOME"])
    for path in app.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o222)
    before = fingerprint(app)
    shell = f"mount --bind '{app}' '{app}'; mount -o remount,bind,ro '{app}'"
    file = candidate(tmp_path, {"final_code": WRONG})
    assert mounted(shell, "verify", app, file, "--json", home=home).data["outcome"] == "wrong_result"
    wanted = ["init", "--file", app / "src/smooth.hpp", "--kernel", "smooth", "--repo", app, "--no-run", "--force"]
    said = mounted(shell, *wanted, "--json", home=home)
    assert (said.code, "cannot be written: Read-only" in said.error["what"]) == (2, True)
    run = finished(app, Candidate({"smooth": FASTER}))
    said = mounted(shell, "apply", run.id, "--json", home=home)
    assert (said.code, "cannot be written: Read-only" in said.error["what"]) == (2, True)
    assert fingerprint(app) == before


# Names, links, line ends, dirty trees


def test_names_with_spaces_and_of_other_languages_are_no_mistake(capsys: Capture, tmp_path: Path) -> None:
    toml = change(TOML, "src/smooth.hpp", "src dir/glätten 火.hpp")
    build = "'''g++ -std=c++17 {flags} -o \"the app\" \"src dir/haupt ü.cpp\" \"src dir/checks.cpp\"'''"
    toml = change(toml, '"make EXTRA_CFLAGS={flags}"', build)
    toml = change(change(toml, 'artifact = "app"', 'artifact = "the app"'), '"./app 20000"', "'\"./the app\" 20000'")
    toml = change(change(toml, '"./app 3001 77"', "'\"./the app\" 3001 77'"), '"field.txt"', '"das Feld ü.txt"')
    toml = change(toml, 'name = "small"', 'name = "kleiner Läuf (1)"')
    app = make_app(tmp_path / "mein répo", kernelwright_toml=toml)
    (app / "src").rename(app / "src dir")
    (app / "src dir/smooth.hpp").rename(app / "src dir/glätten 火.hpp")
    (app / "src dir/main.cpp").write_text(
        change(change(MAIN, "smooth.hpp", "glätten 火.hpp"), "field.txt", "das Feld ü.txt")
    )
    (app / "src dir/main.cpp").rename(app / "src dir/haupt ü.cpp")
    before = fingerprint(app)
    said = program(
        "verify", app, candidate(tmp_path), "--budget", "evaluate", "--json",
        env={"KERNELWRIGHT_HOME": str(tmp_path / "ein örtlicher Platz")},
    )  # fmt: skip
    assert (said.code, said.data["outcome"]) == (0, "correct"), said
    assert list(said.data["samples"]) == ["kleiner Läuf (1)"]
    assert fingerprint(app) == before


def test_crlf_sources_in_a_dirty_tree_are_judged_and_stay_as_they_are(
    capsys: Capture, app: Path, tmp_path: Path
) -> None:
    git(app, "init", "-q")
    git(app, "add", "-A")
    git(app, "commit", "-qm", "first")
    for file in (app / "src").iterdir():
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    (app / "src/main.o").write_bytes(b"stale")
    (app / "app").write_bytes(b"precious")
    before = fingerprint(app)
    said = kernelwright(capsys, "verify", app, candidate(tmp_path), "--budget", "evaluate", "--json")
    assert (said.code, said.data["outcome"]) == (0, "correct")
    assert fingerprint(app) == before


def test_a_region_behind_a_link_is_refused_with_the_real_file(capsys: Capture, app: Path) -> None:
    real = app / "src/real.hpp"
    (app / "src/smooth.hpp").rename(real)
    (app / "src/smooth.hpp").symlink_to(real)
    error = refused(capsys, app, "check", app)
    assert f"'src/smooth.hpp', which is a link to {real}" in error["what"]
    assert error["try"] == "file = 'src/real.hpp'"


def test_what_lies_behind_the_repository_s_links_is_never_touched(capsys: Capture, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "field.txt").write_text("precious")
    (outside / "app").write_text("precious")
    toml = change(TOML, '"field.txt"', '"results/field.txt"').replace('artifact = "app"', 'artifact = "bin/app"')
    app = make_app(tmp_path / "repo", kernelwright_toml=toml)
    for name in ("results", "bin"):
        (app / name).symlink_to(outside)
    before = fingerprint(outside)
    refused(capsys, app, "verify", app, candidate(tmp_path))
    assert fingerprint(outside) == before


# Every message of every module


def raised(path: Path) -> list[ast.Call]:
    """The calls that make an error which a user reads."""
    kinds = {"TaskError", "UsageError", "CandidateError", "InfrastructureError", "SandboxUnavailable", "JobFault"}
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in kinds]


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: path.stem)
def test_every_message_says_what_was_expected_and_what_to_try(path: Path) -> None:
    short = [call for call in raised(path) if len(call.args) < 3 and not any(map(ast_starred, call.args))]
    assert [f"line {call.lineno}: {ast.unparse(call)}" for call in short] == []


def ast_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)
