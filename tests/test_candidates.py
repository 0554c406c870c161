"""Candidates as JSON, patches and revisions, and the patch of a result: region text only comes through."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from app import FASTER, SMOOTH
from kernelwright.candidates import from_patch, from_revision, patch_of, read_candidate
from kernelwright.errors import CandidateError
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate


def written(tmp_path: Path, data: object) -> Path:
    path = tmp_path / "candidate.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def git(app: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", "-C", str(app), *identity, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(app: Path) -> Path:
    git(app, "init", "-q")
    git(app, "add", "-A")
    git(app, "commit", "-qm", "first")
    return app


def test_text_alone_means_the_only_region(app: Path, tmp_path: Path) -> None:
    task = load_task(app)
    file = written(tmp_path, {"final_code": FASTER, "compile_args": ["-O3"]})
    assert read_candidate(task, file) == Candidate({"smooth": FASTER}, ("-O3",), "")
    assert read_candidate(task, written(tmp_path, {"final_code": {"smooth": FASTER}})).code == {"smooth": FASTER}
    assert read_candidate(task, written(tmp_path, {"final_code": "original"})).is_original


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{", "is not JSON"),
        ({"code": ""}, "final_code"),
        ({"final_code": {"rough": ""}}, "no region 'rough'"),
        ({"final_code": "", "compile_args": "-O3"}, "compile_args"),
        ([1], "candidate.json"),
    ],
)
def test_a_malformed_candidate_is_named(app: Path, tmp_path: Path, data: object, said: str) -> None:
    with pytest.raises(CandidateError, match=said):
        read_candidate(load_task(app), written(tmp_path, data))


def test_a_candidate_file_that_is_not_there_is_named(app: Path, tmp_path: Path) -> None:
    with pytest.raises(CandidateError, match=r"there is no candidate file .*nowhere\.json"):
        read_candidate(load_task(app), tmp_path / "nowhere.json")


def test_a_patch_of_a_region_is_a_candidate_and_back(checkout: Path, tmp_path: Path) -> None:
    task = load_task(checkout)
    header = checkout / "src/smooth.hpp"
    before = header.read_text()
    header.write_text(before.replace(SMOOTH, FASTER))
    patch = tmp_path / "p.patch"
    patch.write_text(git(checkout, "diff"))
    header.write_text(before)
    candidate = from_patch(task, patch)
    assert candidate.code == {"smooth": FASTER.rstrip("\n")}
    (tmp_path / "again.patch").write_text(patch_of(task, candidate))
    git(checkout, "apply", str(tmp_path / "again.patch"))
    assert header.read_text() == before.replace(SMOOTH, FASTER)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("src/main.cpp", "PASS", "pass", "changes src/main.cpp, which holds no region"),
        ("src/smooth.hpp", "#pragma once", "#pragma twice", "changes src/smooth.hpp outside the regions"),
    ],
)
def test_a_patch_that_changes_more_is_refused(
    checkout: Path, tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    text = (checkout / file).read_text()
    at = text.rindex(old)
    (checkout / file).write_text(text[:at] + new + text[at + len(old) :])
    (tmp_path / "p.patch").write_text(git(checkout, "diff"))
    git(checkout, "checkout", "-q", ".")
    with pytest.raises(CandidateError, match=said):
        from_patch(load_task(checkout), tmp_path / "p.patch")


def test_a_patch_that_does_not_apply_is_refused_with_git_s_words(checkout: Path, tmp_path: Path) -> None:
    header = checkout / "src/smooth.hpp"
    header.write_text(header.read_text().replace("k <= 8", "k <= 9"))
    (tmp_path / "p.patch").write_text(git(checkout, "diff"))
    with pytest.raises(CandidateError, match="does not apply"):
        from_patch(load_task(checkout), tmp_path / "p.patch")


def test_a_revision_is_a_candidate(checkout: Path) -> None:
    header = checkout / "src/smooth.hpp"
    before = header.read_text()
    header.write_text(before.replace(SMOOTH, FASTER))
    git(checkout, "commit", "-qam", "faster")
    header.write_text(before)
    assert from_revision(load_task(checkout), "HEAD").code == {"smooth": FASTER.rstrip("\n")}
    with pytest.raises(CandidateError, match=r"git cannot show src/smooth\.hpp of 'v9'"):
        from_revision(load_task(checkout), "v9")


def test_a_crlf_file_gives_a_patch_that_applies(checkout: Path, tmp_path: Path) -> None:
    header = checkout / "src/smooth.hpp"
    header.write_bytes(header.read_bytes().replace(b"\n", b"\r\n"))
    git(checkout, "commit", "-qam", "crlf")
    patch = tmp_path / "p.patch"
    patch.write_bytes(patch_of(load_task(checkout), Candidate({"smooth": FASTER})).encode())
    git(checkout, "apply", str(patch))
    assert header.read_bytes().count(b"\r\n") == header.read_bytes().count(b"\n")
    assert b"double weight[17];\r\n" in header.read_bytes()


def test_the_original_has_no_patch(app: Path) -> None:
    assert patch_of(load_task(app), Candidate({}, ("-O3",))) == ""
