"""The command line's contract: one object with --json, exit codes, help for everything, streams, signals, what is kept."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
from pathlib import Path

import click
import pytest

from app import FASTER, FILES, SMOOTH, WRONG, make_app
from command import PROGRAM, environment, fingerprint, finished, kernelwright, program
from kernelwright.candidates import patch_of
from kernelwright.cli import app as commands
from kernelwright.cli.kept import patch_name
from kernelwright.outcome import Comparison
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate

ROOT = Path(__file__).parent.parent
VERDICT_KEYS = {
    "schema", "task", "outcome", "reason", "comparison", "speedup", "interval", "level", "kernel_speedup", "checks",
    "samples", "evidence", "independence", "notes", "reproduce", "provenance",
}  # fmt: skip
OPTIMIZE_KEYS = VERDICT_KEYS | {"run", "attempts", "candidate", "patch", "gain", "flags_hint", "options"}
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def candidate(tmp_path: Path) -> Path:
    return written(tmp_path, FASTER)


def written(folder: Path, code: str, flags: tuple[str, ...] = ()) -> Path:
    path = folder / "candidate.json"
    path.write_text(json.dumps({"final_code": code, "compile_args": list(flags)}))
    return path


def test_a_right_candidate_is_zero_and_every_key_is_there(capsys: Capture, app: Path, candidate: Path) -> None:
    before = fingerprint(app)
    said = kernelwright(capsys, "verify", app, candidate, "--json", "--budget", "evaluate")
    assert (said.code, said.data["outcome"]) == (0, "correct")
    assert set(said.data) == VERDICT_KEYS
    assert said.data["provenance"]["sandbox"] == "bubblewrap"
    assert fingerprint(app) == before


def test_a_wrong_candidate_is_one_and_no_key_is_missing(capsys: Capture, app: Path, tmp_path: Path) -> None:
    said = kernelwright(capsys, "verify", app, written(tmp_path, WRONG), "--json")
    assert (said.code, said.data["outcome"]) == (1, "wrong_result")
    assert set(said.data) == VERDICT_KEYS
    assert [said.data[key] for key in ("comparison", "speedup", "interval", "level")] == [None] * 4


def test_without_a_sandbox_only_when_asked_and_then_on_record(
    capsys: Capture, app: Path, candidate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(app / "nothing here"))
    refused = kernelwright(capsys, "verify", app, candidate, "--json")
    assert (refused.code, refused.error["kind"]) == (3, "sandbox")
    assert "apt-get install bubblewrap" in refused.error["try"]
    monkeypatch.undo()
    said = kernelwright(capsys, "verify", app, candidate, "--json", "--no-sandbox", "--budget", "evaluate")
    assert (said.code, said.data["outcome"]) == (0, "correct")
    assert said.data["provenance"]["sandbox"] == "none"
    assert "run without a sandbox" in said.data["notes"]
    for options, name in (((), "bubblewrap"), (("--no-sandbox",), "none")):
        assert kernelwright(capsys, "bench", app, "--runs", 1, "--json", *options).data["sandbox"] == name


def test_a_kept_workspace_is_named_and_clean_removes_it(capsys: Capture, app: Path, tmp_path: Path, home: Path) -> None:
    said = kernelwright(capsys, "verify", app, written(tmp_path, WRONG), "--keep-workspace")
    [kept] = (home / "work").iterdir()
    assert f"kept: {kept}" in said.err
    (app / "src/main.cpp").write_text("int main( {")
    failed = kernelwright(capsys, "bench", app, "--keep-workspace", "--json")
    [other] = set((home / "work").iterdir()) - {kept}
    assert (failed.code, "does not build" in failed.error["what"]) == (2, True)
    assert [line for line in failed.err.splitlines() if line.startswith("kept:")] == [f"kept: {other}"]
    removed = kernelwright(capsys, "clean", "--json").data
    assert (sorted(removed["workspaces"]), removed["runs"]) == (sorted(map(str, (kept, other))), [])
    assert list((home / "work").iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("show",), ("apply",), ("optimize", "--resume", "last")])
def test_an_empty_store_has_no_runs(capsys: Capture, home: Path, arguments: tuple[str, ...]) -> None:
    if not arguments:
        assert kernelwright(capsys, "runs", "--json").data == {"schema": 1, "runs": []}
        assert kernelwright(capsys, "clean").code == 0
        return
    said = kernelwright(capsys, *arguments, "--json")
    assert said.code == 2
    assert "there is no run 'last'" in said.error["what"]


def test_a_prefix_names_one_run_or_the_candidates_are_listed(
    capsys: Capture, home: Path, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = iter(["ab000001", "ab000002"])
    monkeypatch.setattr("kernelwright.store.secrets.token_hex", lambda _: next(ids))
    for _ in range(2):
        finished(app, Candidate({"smooth": FASTER}))
    said = kernelwright(capsys, "show", "ab", "--json")
    assert said.code == 2
    assert "ab000001" in said.error["what"]
    assert kernelwright(capsys, "show", "ab000001", "--json").data["run"]["id"] == "ab000001"
    assert "nothing" not in kernelwright(capsys, "show", "last").out
    assert "no attempt 7" in kernelwright(capsys, "show", "last", "--attempt", 7, "--json").error["what"]
    assert "both a run and --all" in kernelwright(capsys, "clean", "ab000001", "--all", "--json").error["what"]
    assert kernelwright(capsys, "clean", "--all", "--json").data["runs"] == ["ab000001", "ab000002"]


def test_a_patch_is_applied_once_and_only_onto_the_file_that_it_was_made_for(
    capsys: Capture, home: Path, app: Path
) -> None:
    header = app / "src/smooth.hpp"
    header.chmod(0o640)
    before = header.read_text()
    finished(app, Candidate({"smooth": FASTER}, ("-O3",)))
    assert kernelwright(capsys, "apply", "--check", "--json").data["applied"] is False
    assert header.read_text() == before
    header.write_text("// mine\n" + before)
    changed = kernelwright(capsys, "apply", "--json")
    assert (changed.code, "changed since run" in changed.error["what"]) == (2, True)
    header.write_text(before)
    (app / "src/main.cpp").write_text("// dirty, and no business of the patch\n")
    said = kernelwright(capsys, "apply", "--json")
    assert said.code == 0
    assert said.data["flags_hint"] == "compile src/smooth.hpp with -O1 -O3"
    assert header.read_text() == before.replace(SMOOTH.rstrip(), FASTER)
    assert header.stat().st_mode & 0o777 == 0o640
    again = kernelwright(capsys, "apply", "--json")
    assert (again.code, "applied already" in again.error["what"]) == (2, True)


def test_a_patch_is_applied_in_a_folder_of_a_larger_checkout(capsys: Capture, home: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    app = make_app(tmp_path / "deep/in it")
    finished(app, Candidate({"smooth": FASTER}))
    assert kernelwright(capsys, "apply").code == 0
    assert "double weight[17];" in (app / "src/smooth.hpp").read_text()


@pytest.mark.parametrize(
    ("answer", "comparison", "said"),
    [
        (Candidate({}, ("-O3",)), Comparison.FASTER, "found compile arguments alone"),
        (Candidate({"smooth": FASTER}), Comparison.SAME, "found nothing faster"),
    ],
)
def test_without_a_patch_there_is_nothing_to_apply(
    capsys: Capture, home: Path, app: Path, answer: Candidate, comparison: Comparison, said: str
) -> None:
    finished(app, answer, comparison)
    refused = kernelwright(capsys, "apply", "--json")
    assert (refused.code, said in refused.error["what"]) == (2, True)


def test_out_of_a_file_is_refused_before_anything_runs(capsys: Capture, home: Path, app: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    said = kernelwright(capsys, "optimize", app, "--out", tmp_path / "taken", "--json")
    assert (said.code, "taken" in said.error["what"]) == (2, True)
    assert kernelwright(capsys, "runs", "--json").data["runs"] == []


def test_copies_of_a_run_have_names_that_a_disk_takes_and_the_user_s_checkout_stays_as_it_is(
    capsys: Capture, home: Path, tmp_path: Path
) -> None:
    name = "火 " * 50
    app = make_app(tmp_path / "repo", kernelwright_toml=FILES["kernelwright.toml"].replace('"smooth"', f'"{name}"', 1))
    subprocess.run(["git", "init", "-q", str(app)], check=True)
    subprocess.run(["git", "-C", str(app), "add", "-A"], check=True)
    (app / "Makefile").touch()
    before = fingerprint(app)
    out = tmp_path / "mein Platz/für alles"
    said = kernelwright(capsys, "optimize", app, "--max-calls", 1, "--out", out, "--json")
    assert (said.code, said.data["task"], said.data["files"]) == (0, name, str(out))
    assert json.loads((out / "result.json").read_text())["run"] == said.data["run"]
    (tmp_path / patch_name(load_task(app))).touch()
    assert fingerprint(app) == before


def test_a_store_that_is_none_is_named(capsys: Capture, home: Path) -> None:
    (home / "runs.sqlite3").write_bytes(b"no database" * 1000)
    said = kernelwright(capsys, "runs", "--json")
    assert (said.code, "runs.sqlite3 failed" in said.error["what"]) == (3, True)


def lines_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if word in line:
            return
    pytest.fail(f"the command ended without saying {word!r}")


def heed_interruptions() -> None:
    """Whoever runs the tests in the background lets them inherit ignored signals, which the product then ignores too."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        preexec_fn=heed_interruptions,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def alive(home: Path) -> list[str]:
    """Command lines of processes that work in our state folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if str(home).encode() in words:
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "building the original"), (signal.SIGTERM, "checking")])
def test_verify_that_is_interrupted_leaves_nothing(
    home: Path, app: Path, candidate: Path, number: signal.Signals, word: str
) -> None:
    before = fingerprint(app)
    process = start("verify", app, candidate, "--json")
    lines_until(process, word)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["error"]["kind"] == "interrupted"
    assert "Traceback" not in err
    assert (list((home / "work").iterdir()), alive(home)) == ([], [])
    assert fingerprint(app) == before


def test_optimize_that_is_interrupted_goes_on_to_the_same_kind_of_result(
    capsys: Capture, home: Path, app: Path
) -> None:
    process = start("optimize", app, "--max-calls", 2, "--json")
    lines_until(process, "attempt 1")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    error = json.loads(out)["error"]
    [run] = kernelwright(capsys, "runs", "--json").data["runs"]
    assert (process.returncode, error["try"]) == (130, f"kernelwright optimize --resume {run['id']}")
    assert run["status"] == "interrupted"
    assert (list((home / "work").iterdir()), alive(home)) == ([], [])
    said = kernelwright(capsys, "optimize", "--resume", "last", "--json")
    assert (said.code, said.data["outcome"]) == (0, "correct")
    assert set(said.data) == OPTIMIZE_KEYS | {"files"}
    assert [run["status"] for run in kernelwright(capsys, "runs", "--json").data["runs"]] == ["done"]


def test_a_run_says_from_its_beginning_and_ever_after_that_it_has_no_sandbox(
    capsys: Capture, home: Path, app: Path
) -> None:
    def sandbox() -> str:
        name: str = kernelwright(capsys, "show", "--json").data["run"]["provenance"]["sandbox"]
        return name

    process = start("optimize", app, "--max-calls", 1, "--no-sandbox", "--json")
    lines_until(process, "attempt 1")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["error"]["try"].endswith(" --no-sandbox")
    assert sandbox() == "none"
    assert kernelwright(capsys, "optimize", "--resume", "last", "--json").code == 0
    assert sandbox() == "none"
    assert "without a sandbox" in kernelwright(capsys, "show").out


def test_a_run_goes_on_with_other_limits_and_as_nothing_else(capsys: Capture, home: Path, app: Path) -> None:
    first = kernelwright(capsys, "optimize", app, "--max-calls", 1, "--seed", 3, "--json").data
    assert (len(first["attempts"]), first["options"]["max_calls"]) == (1, 1)
    go_on = ("optimize", "--resume", "last", "--json")
    refused = kernelwright(capsys, *go_on, "--seed", 3, "--without", "search", "--price", 1, 2)
    assert (refused.code, refused.error["kind"]) == (2, "usage")
    assert "--price, --without, --seed beside --resume" in refused.error["what"]
    assert "without a price" in kernelwright(capsys, *go_on, "--max-cost", 1).error["what"]
    said = kernelwright(capsys, *go_on, "--attempts", 2, "--time-limit", 40, "--max-tokens", 9).data
    changed = {"attempts": 2, "time_limit_s": 40.0, "max_tokens": 9}
    assert said["options"] == {**first["options"], **changed}
    assert len(said["attempts"]) == 2
    assert kernelwright(capsys, "show", "--json").data["run"]["options"] == said["options"]
    header = app / "src/smooth.hpp"
    header.write_text("// a new first line\n" + header.read_text())
    assert kernelwright(capsys, *go_on).code == 0
    header.write_text(header.read_text().replace("double sum = 0.0", "double sum = 0"))
    other = kernelwright(capsys, *go_on)
    assert (other.code, "the code of smooth has changed since run" in other.error["what"]) == (2, True)
    assert kernelwright(capsys, "show", "--json").data["run"]["status"] == "done"


def test_rules_are_listed_and_explained(capsys: Capture) -> None:
    listed, explained = kernelwright(capsys, "rules"), kernelwright(capsys, "rules", "--explain")
    names = [rule["name"] for rule in kernelwright(capsys, "rules", "--json").data["rules"]]
    assert [line.split()[0] for line in listed.out.splitlines()] == names
    assert all(f"{name} (" in explained.out for name in names)
    assert "  when " in explained.out
    assert "--explain" in kernelwright(capsys, "optimize", "--explain", "--json").error["what"]


def test_a_product_that_is_killed_leaves_no_job_and_the_next_start_sweeps(
    capsys: Capture, home: Path, app: Path, tmp_path: Path
) -> None:
    process = start("optimize", app, "--max-calls", 2)
    lines_until(process, "the original takes")
    [run] = kernelwright(capsys, "runs", "--json").data["runs"]
    assert run["status"] == "running"
    assert "worked on" in kernelwright(capsys, "optimize", "--resume", run["id"], "--json").error["what"]
    assert "worked on" in kernelwright(capsys, "clean", run["id"], "--json").error["what"]
    process.kill()
    process.communicate(timeout=60)
    os.sched_yield()
    assert list((home / "work").iterdir()), "nobody was left to remove them"
    assert kernelwright(capsys, "runs", "--json").data["runs"][0]["status"] == "interrupted"
    kernelwright(capsys, "verify", app, written(tmp_path, "int smooth;"), "--json")
    assert (list((home / "work").iterdir()), alive(home)) == ([], [])


def test_a_reader_that_leaves_early_breaks_nothing() -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$@" | head -n 1', "bash", *PROGRAM, "rules"], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    closed = subprocess.run(["bash", "-c", '"$@" >&-', "bash", *PROGRAM, "rules"], capture_output=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_the_machine_s_fault() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*PROGRAM, "rules"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
    assert "No space left" in done.stderr


def test_names_that_are_no_text_are_printed_as_json_has_them() -> None:
    said = program("check", b"/no/\xff/where".decode(errors="surrogateescape"), "--json")
    assert (said.code, r"\udcff" in said.out) == (2, True)
    assert said.error["what"].endswith("/no/\udcff/where")
    assert program("check", "/nö", "--json", env={"LC_ALL": "C", "PYTHONUTF8": "0"}).code == 2


def test_called_without_anything_it_shows_its_help(capsys: Capture) -> None:
    said = kernelwright(capsys)
    assert (said.code, "Commands:" in said.err, said.out) == (2, True, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("verify",),
        ("verify", "a", "b", "c"),
        ("verify", ".", "--frob"),
        ("verify", ".", "--budget", "huge"),
        ("verify", ".", "--time-limit", "0"),
        ("verify", ".", "--time-limit", "nan"),
        ("check", ".", "--seed", "x"),
        ("bench", ".", "--runs", "0"),
        ("optimize", ".", "--attempts", "0"),
        ("optimize", ".", "--max-calls", "1e3"),
        ("optimize", ".", "--price", "1"),
        ("optimize", ".", "--temperature", "9"),
        ("optimize", ".", "--without", "benchmark_code"),
        ("optimize", ".", "--policy", "magic"),
        ("show", "last", "--attempt", "0"),
        ("init",),
    ],
)
def test_a_wrong_call_is_the_user_s_mistake(capsys: Capture, arguments: tuple[str, ...]) -> None:
    said = kernelwright(capsys, *arguments, "--json")
    assert said.code == 2
    assert said.error["kind"] == "usage"
    assert "--help" in said.error["try"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((), "no task is named"),
        (("--policy", "endpoint"), "needs a model and a server"),
        (("--policy", "rules", "--model", "m"), "has no model"),
        (("--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--max-cost", "1"), "cannot hold without a price"),
    ],
)
def test_options_that_do_not_go_together(
    capsys: Capture, home: Path, app: Path, arguments: tuple[str, ...], what: str
) -> None:
    said = kernelwright(capsys, "optimize", *([app] if arguments else []), *arguments, "--json")
    assert (said.code, what in said.error["what"]) == (2, True)


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_and_option_says_what_it_is_for(name: str) -> None:
    command = commands.commands[name]
    assert command.help
    assert command.short_help
    assert len(command.short_help) <= 60
    for option in command.params:
        assert not isinstance(option, click.Option) or option.help, option.name


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    made = runpy.run_path(str(ROOT / "scripts/command_reference.py"))
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    assert made["page"]() == page, "run scripts/command_reference.py"


def test_the_patch_of_a_file_with_a_strange_name_is_git_applicable(tmp_path: Path) -> None:
    name = 'src/a "b" ü\tc.hpp'
    toml = FILES["kernelwright.toml"].replace('"src/smooth.hpp"', json.dumps(name, ensure_ascii=False))
    app = make_app(tmp_path / "repo", kernelwright_toml=toml)
    (app / "src/smooth.hpp").rename(app / name)
    patch = patch_of(load_task(app), Candidate({"smooth": FASTER}))
    subprocess.run(["git", "init", "-q", str(app)], check=True)
    subprocess.run(["git", "-C", str(app), "apply", "-"], input=patch.encode(), check=True)
    assert "double weight[17];" in (app / name).read_text()
