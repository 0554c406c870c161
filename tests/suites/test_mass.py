"""A folder of tasks is tested in parallel, goes on where it was interrupted, and says why what was refused was refused."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from app import make_app
from command import PROGRAM, kernelwright
from kernelwright.suites import Benchmark, Listing, Made, Origin
from kernelwright.suites.mass import answers_folder, grouped, read_answers, sampled, task_files


def many(folder: Path) -> Path:
    """Three tasks of one program: a sound one, one with blind checks, one whose original does not build; a broken file."""
    app = make_app(folder / "app")
    text = (app / "kernelwright.toml").read_text()
    start, end = text.index('[[check]]\nkind = "number"'), text.index("[verify]")
    kinds = {
        "sound": text,
        "blind": text[:start] + text[end:],
        "broken": text.replace("make ", "make nothing ", 1),
        "odd": text.replace("schema = 1", "schema = 7"),
    }
    tasks = folder / "tasks"
    tasks.mkdir()
    for name, content in kinds.items():
        (tasks / f"{name}.toml").write_text(content.replace("language", 'repo = "../app"\nlanguage', 1))
    (app / "kernelwright.toml").unlink()
    return tasks


def test_every_task_of_a_folder_is_answered_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = many(tmp_path), tmp_path / "answers.jsonl"
    said = kernelwright(capsys, "check", folder, "--json", "--out", out)
    assert said.code == 1
    states = {one["file"]: one["state"] for one in said.data["results"]}
    assert states == {"blind.toml": "refused", "broken.toml": "unfit", "odd.toml": "unread", "sound.toml": "accepted"}
    reasons = {one["reason"]: one["count"] for one in said.data["reasons"]}
    assert reasons["the unmodified code does not build"] == 1
    assert any(reason.startswith("probe trap: ") or reason.startswith("probe null") for reason in reasons)
    answers = read_answers(out)
    assert answers["sound.toml"].acceptance is not None
    assert answers["sound.toml"].acceptance["baseline"]["noise"] > 0
    assert (answers["sound.toml"].device_s or 0) > 0

    again = kernelwright(capsys, "check", folder)
    assert "3 of the answers are from before" in again.out
    assert "1 of 4 accepted" in again.out


def test_builds_alone_accept_nothing_and_refuse_what_is_not_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = many(tmp_path)
    said = kernelwright(capsys, "check", folder, "--builds-only", "--json")
    states = {one["file"]: one["state"] for one in said.data["results"]}
    assert states == {"blind.toml": "builds", "broken.toml": "unfit", "odd.toml": "unread", "sound.toml": "builds"}
    one = kernelwright(capsys, "check", folder / "sound.toml", "--builds-only", "--json")
    assert (one.code, one.data["accepted"], one.data["ran"]) == (0, False, False)
    assert {probe["status"] for probe in one.data["probes"] if probe["probe"] != "broken"} == {"built"}
    assert "nothing was run" in kernelwright(capsys, "check", folder / "sound.toml", "--builds-only").out


def test_what_was_interrupted_goes_on_with_the_tasks_that_have_no_answer(tmp_path: Path) -> None:
    folder = many(tmp_path)
    for number in range(4):
        text = (folder / "sound.toml").read_text()
        (folder / f"more{number}.toml").write_text(text.replace('name = "', f'name = "{number} ', 1))
    driver = subprocess.Popen(
        [*PROGRAM, "check", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    results = answers_folder(folder).path / "results"
    while not list(results.glob("*.json")):
        assert driver.poll() is None
        select.select([driver.stderr], [], [], 0.05)
    driver.send_signal(signal.SIGTERM)  # a SIGINT is ignored where tests run in the background
    _, rest = driver.communicate(timeout=60)
    assert driver.returncode == 130, rest
    assert "answers so far are kept" in rest
    whole = subprocess.run([*PROGRAM, "check", folder, "--json"], capture_output=True, text=True, check=False)
    data = json.loads(whole.stdout)
    assert data["states"]["open"] == 0
    assert data["states"]["accepted"] == 5


def test_tasks_that_lack_a_file_are_left_out_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = many(tmp_path)
    benchmarks = [
        Benchmark(name, (Made(f"{name}.toml", ("smooth",)),), lacks=("mesh.txt",) if name == "broken" else ())
        for name in ("sound", "broken")
    ]
    Listing(Origin("hecbench", "cpp", None, None), tuple(benchmarks)).write(folder)
    said = kernelwright(capsys, "check", folder, "--builds-only", "--json")
    states = {one["file"]: (one["state"], one["reason"]) for one in said.data["results"]}
    assert states["broken.toml"] == ("lacking", "mesh.txt")
    assert states["sound.toml"] == ("builds", None)
    sample = kernelwright(capsys, "check", folder, "--builds-only", "--sample", 3, "--json")
    assert "broken.toml" not in {one["file"] for one in sample.data["results"]}


def test_a_sample_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.toml" for number in range(50)]
    assert sampled(files, 10, 1) == sampled(files, 10, 1) != sampled(files, 10, 2)
    assert len(set(sampled(files, 10, 1))) == 10
    assert sampled(files, None, 1) == sampled(files, 99, 1) == files


def test_files_that_are_no_tasks_are_no_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    said = kernelwright(capsys, "check", tmp_path, "--json")
    assert said.code == 2
    assert "there is no task file" in said.error["what"]
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/a.toml").write_text("[[region]]\n")
    assert [path.name for path in task_files(tmp_path)] == ["a.toml"]


@pytest.mark.parametrize(("option", "value"), [("--sample", 3), ("--pool", "x.toml"), ("--anew", None), ("--out", "x")])
def test_options_of_a_folder_are_refused_for_one_task(
    option: str, value: object, app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [option] if value is None else [option, value]
    said = kernelwright(capsys, "check", app, *words, "--json")
    assert said.code == 2
    assert option in said.error["what"]


@pytest.mark.parametrize(
    ("reason", "group"),
    [
        ("/a/b.toml: the unmodified code does not build: x.cu(3): error: y", "the unmodified code does not build"),
        (
            "/a/b.toml: the unmodified program, run 'first' fails: run 'first' passed 30 s",
            "the unmodified program fails: run … passed … s",
        ),
        (
            "/a/b.toml: the unmodified program, run 'first' fails the check number: 1 beside 2",
            "the unmodified program fails the check number",
        ),
        (
            "region 'k 2', probe trap (k): the region is never run, or no check looks at what it gives",
            "probe trap: the region is never run, or no check looks at what it gives",
        ),
        ("region 'k': no probe broken could be made; give one", "no probe broken could be made; give one"),
    ],
)  # fmt: skip
def test_reasons_of_a_kind_are_one_group(reason: str, group: str) -> None:
    assert grouped(reason) == group
