"""`kernelwright pool`: real jobs of a real pool, watched from outside, killed in the middle, and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from app import SMOOTH, WRONG, make_app
from command import PROGRAM, environment, kernelwright
from kernelwright.cli.pool import pools
from kernelwright.pool import JobSpec
from kernelwright.pool.folder import PoolFolder, read_json
from kernelwright.state import scratch_folder
from terminal import at_a_terminal

Capture = pytest.CaptureFixture[str]
MANY = 150


def lines(file: Path, *specs: JobSpec) -> Path:
    file.write_text("".join(json.dumps(spec.to_json()) + "\n" for spec in specs))
    return file


def health(count: int) -> list[JobSpec]:
    return [JobSpec("health", {"number": number}) for number in range(count)]


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A command of the pool as a process that ends with the test, and whose stdout is read line by line."""
    words = [*PROGRAM, "pool", *map(str, arguments)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def watched_until(word: str, folder: Path) -> str:
    """The first line of `status --watch` with the word in it."""
    with started("status", folder, "--watch") as watch:
        assert watch.stdout is not None
        return next(line for line in watch.stdout if word in line)


@contextmanager
def driver(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path, Path]]:
    """A run of many jobs that stands still with some of them done: the process, its specs, its folder."""
    file, folder = lines(tmp_path / "jobs.jsonl", *health(MANY)), tmp_path / "jobs.pool"
    PoolFolder(folder)
    with started("run", file) as process:
        while not list((folder / "results").glob("*.json")):
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGSTOP)
        yield process, file, folder


def test_every_job_has_a_result_and_the_same_command_again_adopts_them(
    capsys: Capture, tmp_path: Path, home: Path
) -> None:
    file = lines(tmp_path / "jobs.jsonl", *health(6), *health(3))
    said = kernelwright(capsys, "pool", "run", file)
    assert (said.code, said.out) == (0, f"6 of 6 jobs have a result: {tmp_path}/jobs.pool/results\n")
    kept = {spec.id: read_json(tmp_path / f"jobs.pool/results/{spec.id}.json") for spec in health(6)}
    assert all(result is not None and result["value"] == {} for result in kept.values())
    again = kernelwright(capsys, "pool", "run", file, "--json").data
    assert (again["jobs"], again["results"], again["adopted"], again["failed"]) == (6, 6, 6, [])
    assert kept == {spec.id: read_json(tmp_path / f"jobs.pool/results/{spec.id}.json") for spec in health(6)}
    [told] = kernelwright(capsys, "pool", "status", tmp_path / "jobs.pool", "--json").data["pools"]
    assert (told["driver"]["state"], told["jobs"]["adopted"], told["wanted"]) == ("ended", 6, 6)
    text = kernelwright(capsys, "pool", "status", tmp_path / "jobs.pool", "--prometheus").out
    assert f'kernelwright_pool_ended_jobs_total{{folder="{tmp_path}/jobs.pool",how="adopted"}} 6\n' in text


def test_a_configuration_says_where_the_folder_is(capsys: Capture, tmp_path: Path, home: Path) -> None:
    (tmp_path / "pool.toml").write_text('kind = "local"\nfolder = "there"\n')
    file = lines(tmp_path / "jobs.jsonl", *health(2))
    asked = ("pool", "run", file, "--config", tmp_path / "pool.toml", "--json")
    assert kernelwright(capsys, *asked).data["folder"] == str(tmp_path / "there")
    other = kernelwright(capsys, *asked, "--folder", tmp_path / "elsewhere").data
    assert (other["folder"], other["adopted"]) == (str(tmp_path / "elsewhere"), 0)
    (tmp_path / "cluster.toml").write_text('kind = "slurm"\nfolder = "there"\n')
    said = refused(capsys, "run", file, "--config", tmp_path / "cluster.toml", "--no-sandbox")
    assert "named by the configuration" in said["expected"]


def test_specs_may_be_files_of_one_object_and_a_folder(capsys: Capture, tmp_path: Path, home: Path) -> None:
    folder = PoolFolder(tmp_path / "pool")
    for spec in health(2):
        folder.put("specs", spec.id, spec.to_json())
    single = tmp_path / "one.json"
    single.write_text(json.dumps(JobSpec("health", {"number": 9}).to_json(), indent=1))
    said = kernelwright(capsys, "pool", "run", folder.path, single, "--json").data
    assert (said["jobs"], said["folder"]) == (3, str(folder.path))
    assert len(folder.results()) == 3


def test_a_machine_that_fails_a_job_again_and_again_is_code_three(capsys: Capture, tmp_path: Path, home: Path) -> None:
    file = lines(tmp_path / "jobs.jsonl", *health(2), JobSpec("health", {"number": 7}, deadline_s=1e-6))
    said = kernelwright(capsys, "pool", "run", file)
    assert said.code == 3
    assert "2 of 3 jobs have a result" in said.out
    assert "failed: health" in said.err
    assert "try: a longer deadline" in said.err
    assert "the same command again" in said.err
    data = kernelwright(capsys, "pool", "run", file, "--json").data
    assert (data["results"], data["adopted"], [each["kind"] for each in data["failed"]]) == (2, 2, ["health"])
    shown = kernelwright(capsys, "pool", "status", tmp_path / "jobs.pool").out
    assert "2 of 3 done (2 before), 1 failed, 2 retried" in shown
    assert "was at work for" in shown


def test_a_mistake_in_a_task_is_a_result(capsys: Capture, tmp_path: Path, home: Path) -> None:
    app = make_app(tmp_path / "broken", src_checks_cpp="int nothing(")
    written = kernelwright(capsys, "pool", "specs", app, "--kind", "accept", "--folder", tmp_path / "pool")
    assert written.code == 0
    said = kernelwright(capsys, "pool", "run", tmp_path / "pool")
    assert said.code == 0
    assert "1 of 1 jobs have a result" in said.out
    assert "does not build" in said.out


def test_candidates_are_judged_by_jobs_and_the_same_specs_again_are_the_same_jobs(
    capsys: Capture, app: Path, tmp_path: Path, home: Path
) -> None:
    candidates: list[object] = []
    for name, code in (("wrong", WRONG), ("broken", SMOOTH.replace("{", "", 1))):
        (tmp_path / f"{name}.json").write_text(json.dumps({"final_code": code}))
        candidates += ["--candidate", tmp_path / f"{name}.json"]
    asked = (
        "pool",
        "specs",
        app,
        "--kind",
        "verdict",
        *candidates,
        "--budget",
        "evaluate",
        "--folder",
        tmp_path / "pool",
    )
    ids = kernelwright(capsys, *asked).out.split()
    made = kernelwright(capsys, *asked, "--json").data["specs"]
    assert ids == [spec["id"] for spec in made]
    assert len(list((tmp_path / "pool/archives").iterdir())) == 1
    said = kernelwright(capsys, "pool", "run", tmp_path / "pool/specs", "--json")
    assert (said.code, said.data["results"]) == (0, 2)
    outcomes = [read_json(tmp_path / f"pool/results/{job}.json")["value"]["outcome"] for job in ids]  # type: ignore[index]
    assert outcomes == ["wrong_result", "build_failed"]


def refused(capsys: Capture, *arguments: object) -> dict[str, str]:
    said = kernelwright(capsys, "pool", *arguments, "--json")
    assert said.code == 2
    return said.error


def test_each_mistake_in_a_call_is_one_message(capsys: Capture, app: Path, tmp_path: Path, home: Path) -> None:
    changed = {**JobSpec("health", {"number": 1}).to_json(), "payload": {"number": 2}}
    texts = {
        "changed": json.dumps(changed),
        "words": "no json",
        "empty": "",
        "list": "[1]",
        "half": '{"kind": "health"}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    run = {name: refused(capsys, "run", tmp_path / name)["what"] for name in texts}
    assert "not what its id says" in run["changed"]
    assert "is not JSON" in run["words"]
    assert "there is no spec" in run["empty"]
    assert "no job spec" in run["half"]
    assert "no job spec" in run["list"]
    assert "cannot be read" in refused(capsys, "run", tmp_path / "missing")["what"]
    archived = lines(tmp_path / "archived", JobSpec("accept", {"seed": 0}, "0" * 64))
    assert "--folder" in refused(capsys, "run", archived)["try"]
    assert "no pool's folder" in refused(capsys, "status", tmp_path)["what"]
    assert "no candidate" in refused(capsys, "specs", app, "--kind", "verdict", "--folder", tmp_path / "p")["what"]
    assert "one way" in refused(capsys, "status", "--watch")["what"]


def test_where_no_pool_runs_none_is_shown(capsys: Capture, home: Path) -> None:
    assert kernelwright(capsys, "pool", "status", "--json").data == {"schema": 1, "pools": []}
    assert "no pool of yours runs" in kernelwright(capsys, "pool", "status").out
    assert kernelwright(capsys, "pool", "status", "--watch").code == 0
    with scratch_folder(home / "pools"):
        assert kernelwright(capsys, "pool", "status", "--json").data["pools"] == []


def test_a_run_is_watched_to_its_end(tmp_path: Path, home: Path, capsys: Capture) -> None:
    with driver(tmp_path) as (process, _, folder), started("status", "--watch") as watch:
        assert watch.stdout is not None
        first = watch.stdout.readline()
        process.send_signal(signal.SIGCONT)
        assert process.wait() == 0
        told = [first, *watch.communicate()[0].splitlines()]
    assert all(line.startswith(f"{folder}: ") for line in told)
    assert first.endswith("; running\n")
    assert told[-1].endswith(f"{MANY} of {MANY} done; ended")
    final = kernelwright(capsys, "pool", "status", folder).out
    assert f"{MANY} of {MANY} done" in final


def test_at_a_terminal_the_progress_is_a_live_view(tmp_path: Path, home: Path) -> None:
    file = lines(tmp_path / "jobs.jsonl", *health(MANY))
    with at_a_terminal("pool", "run", file) as command:
        seen = command.terminal.until(f"of {MANY} done")
        assert "cores" in seen + command.terminal.until("cores")
        assert command.ended().code == 0


def test_after_the_driver_was_killed_status_says_so_and_the_same_command_adopts_what_is_done(
    tmp_path: Path, home: Path, capsys: Capture
) -> None:
    with driver(tmp_path) as (process, file, folder):
        process.kill()
        process.wait()
    done = {path.stem: path.read_bytes() for path in (folder / "results").glob("*.json")}
    assert 0 < len(done) < MANY
    for place in ((), (folder,)):
        [found] = kernelwright(capsys, "pool", "status", *place, "--json").data["pools"]
        assert (found["folder"], found["driver"]["state"]) == (str(folder), "gone")
    assert "driver is gone" in kernelwright(capsys, "pool", "status", folder).out
    assert "driver is gone" in watched_until("gone", folder)
    again = kernelwright(capsys, "pool", "run", file, "--json").data
    assert (again["results"], again["adopted"]) == (MANY, len(done))
    results = {path.stem: path for path in (folder / "results").glob("*.json")}
    assert set(results) == {spec.id for spec in health(MANY)}
    assert {job: results[job].read_bytes() for job in done} == done
    assert kernelwright(capsys, "pool", "status", "--json").data["pools"] == []


def test_an_interrupted_run_says_how_to_go_on_and_leaves_nothing_half(tmp_path: Path, home: Path) -> None:
    with driver(tmp_path) as (process, _, folder):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.wait() == 130
        assert process.stderr is not None
        assert "the same command again" in process.stderr.read()
    assert all(read_json(path) for path in (folder / "results").glob("*"))
    status: Any = read_json(folder / "status.json")
    assert status["ended"] is not None
    assert [status["jobs"][state] for state in ("queued", "working", "waiting", "building", "running")] == [0] * 5


def test_a_folder_has_one_driver_at_a_time(tmp_path: Path, home: Path, capsys: Capture) -> None:
    with driver(tmp_path) as (process, file, folder):
        second = kernelwright(capsys, "pool", "run", file, "--json")
        assert (second.code, second.error["what"]) == (2, f"{folder} is driven by another process")
        assert process.poll() is None


def test_the_help_shows_a_working_configuration_of_each_kind(capsys: Capture, tmp_path: Path) -> None:
    from kernelwright.pool.config import EXAMPLES, load_config

    shown = kernelwright(capsys, "pool", "--help").out
    unindented = "\n".join(line.removeprefix("    ") for line in shown.splitlines())
    for kind, text in EXAMPLES.items():
        assert text.strip() in unindented
        (tmp_path / f"{kind}.toml").write_text(text)
        assert load_config(tmp_path / f"{kind}.toml").kind == kind


@pytest.mark.parametrize("name", sorted(pools.commands))
def test_every_option_says_what_it_is_for(name: str) -> None:
    command = pools.commands[name]
    assert command.help
    assert command.short_help
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, option.name
