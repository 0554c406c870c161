"""The store keeps what it reported, through kill -9 too, and says clearly why it cannot."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.errors import InfrastructureError, UsageError
from kernelwright.outcome import Comparison, Interval, Outcome, Verdict
from kernelwright.store import Store, network_file_system
from kernelwright.trace import Candidate, Message, StopReason, ToolCall, Usage

CALLING = Message("assistant", "né\udce4", (ToolCall("c", "search", {"pattern": "x"}),), usage=Usage(3, 4, 0.5),
                  data={"native": True}, elapsed_s=0.5)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "runs.sqlite3") as opened:
        yield opened


def test_a_run_comes_back_as_it_was_put_in(store):
    run = store.create_run("optimize", "heat.toml", {"seed": 1}, {"version": "0"})
    store.append_message(run.id, 0, CALLING)
    store.append_message(run.id, 0, Message("tool", "no hit", tool_call_id="c", name="search", ok=True))
    store.append_message(run.id, 1, Message("user", "other attempt"))
    store.finish_attempt(run.id, 0, StopReason.CALL_LIMIT, Candidate({"f": "x"}, ("-O3",), "why"))
    store.finish_attempt(run.id, 1, StopReason.NO_ANSWER, None)
    verdict = Verdict("heat", Outcome.CORRECT, "ok", Comparison.FASTER, 1.5, Interval(1.4, 1.6), 0.98)
    store.save_verdict(run.id, 0, verdict)
    store.save_result(run.id, "optimize", {"speedup": 1.5})
    store.set_status(run.id, "done")
    with Store.open(store.path) as again:
        (kept,) = again.runs()
        assert (kept.id, kept.status, kept.options, kept.provenance) == (run.id, "done", {"seed": 1}, {"version": "0"})
        assert again.messages(run.id, 0)[0] == CALLING
        assert [message.content for message in again.messages(run.id, 1)] == ["other attempt"]
        assert again.attempts_begun(run.id) == [0, 1]
        first, second = again.attempts(run.id)
        assert (first.stop, first.answer) == (StopReason.CALL_LIMIT, Candidate({"f": "x"}, ("-O3",), "why"))
        assert (second.stop, second.answer) == (StopReason.NO_ANSWER, None)
        assert again.verdicts(run.id) == {0: verdict.to_json()}
        assert again.result(run.id, "optimize") == {"speedup": 1.5}
        assert again.result(run.id, "bench") is None


def test_a_run_is_found_by_a_prefix_or_as_the_last(store, monkeypatch):
    ids = iter(["ab120000", "ab340000", "cd000000"])
    monkeypatch.setattr("kernelwright.store.secrets.token_hex", lambda _: next(ids))
    for task in ("one.toml", "two.toml", "three.toml"):
        store.create_run("optimize", task, {})
    assert store.find("ab1").task == "one.toml"
    assert store.find("CD").task == "three.toml"
    assert store.find("last").task == "three.toml"
    with pytest.raises(UsageError, match=r"'ab' names 2 runs: ab120000 .*one\.toml.*ab340000"):
        store.find("ab")
    with pytest.raises(UsageError, match=r"no run 'ff'.*cd000000"):
        store.find("ff")
    with pytest.raises(UsageError, match="no run ''"):
        store.find("")


def test_the_last_run_of_an_empty_store_is_a_clear_mistake(store):
    with pytest.raises(UsageError, match=r"no run 'last'.*optimize"):
        store.find("last")


def test_deleting_a_run_takes_all_that_belongs_to_it(store):
    gone, kept = (store.create_run("optimize", name, {}) for name in ("a", "b"))
    for run in (gone, kept):
        store.append_message(run.id, 0, CALLING)
    store.delete(gone.id)
    assert [run.id for run in store.runs()] == [kept.id]
    assert store.messages(gone.id, 0) == []
    assert len(store.messages(kept.id, 0)) == 1


def test_two_processes_write_in_turn(tmp_path):
    path = tmp_path / "runs.sqlite3"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), "30"], stdout=subprocess.PIPE) for _ in range(2)
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    with Store.open(path) as store:
        assert [len(store.messages(run.id, 0)) for run in store.runs()] == [30, 30]


WRITER = """
import sys
from pathlib import Path
from kernelwright.store import Store
from kernelwright.trace import Message
store = Store.open(Path(sys.argv[1]))
run = store.create_run("optimize", "t", {})
for n in range(int(sys.argv[2])):
    store.append_message(run.id, 0, Message("user", f"{n} " + "x" * 3000))
    print(n, flush=True)
"""


def test_kill_minus_nine_loses_nothing_that_was_reported(tmp_path):
    rng = random.Random(7)
    for trial in range(4):
        path = tmp_path / f"{trial}.sqlite3"
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), "100000"], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(rng.randint(1, 60)):
            reported = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split(b"\n")
        reported = max([reported, *(int(line) for line in rest[:-1])])
        writer.wait()
        writer.stdout.close()
        with Store.open(path) as store:
            (run,) = store.runs()
            texts = [message.content for message in store.messages(run.id, 0)]
            assert len(texts) > reported
            assert texts == [f"{n} " + "x" * 3000 for n in range(len(texts))]
            store.append_message(run.id, 0, CALLING)


def test_a_newer_store_is_refused_with_one_message(tmp_path):
    path = tmp_path / "runs.sqlite3"
    Store.open(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(InfrastructureError, match=r"newer version.*schema 99.*upgrade"):
        Store.open(path)


def test_a_file_that_is_no_store_is_a_clear_fault(tmp_path):
    path = tmp_path / "runs.sqlite3"
    path.write_bytes(b"something else entirely" * 100)
    with pytest.raises(InfrastructureError, match=r"runs\.sqlite3 failed.*not a database"):
        Store.open(path)


def test_network_file_systems_are_known_by_their_mounts(tmp_path):
    mounts = tmp_path / "mounts"
    here = str(tmp_path).replace(" ", r"\040")
    mounts.write_text(
        f"/dev/sda / ext4 rw 0 0\nserver:/h {here}/home nfs4 rw 0 0\n/dev/sdb {here}/home/scratch xfs rw 0 0\n"
        f"host: {here}/with\\040space fuse.sshfs rw 0 0\n"
    )
    assert network_file_system(tmp_path, mounts) is None
    assert network_file_system(tmp_path / "home" / "me", mounts) == "nfs4"
    assert network_file_system(tmp_path / "home" / "scratch", mounts) is None
    assert network_file_system(tmp_path / "with space", mounts) == "fuse.sshfs"
    assert network_file_system(tmp_path, tmp_path / "none") is None


def test_a_store_on_a_network_file_system_is_refused_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr("kernelwright.store.network_file_system", lambda _: "lustre")
    with pytest.raises(InfrastructureError, match=r"network file system \(lustre\).*KERNELWRIGHT_HOME"):
        Store.open(tmp_path / "runs.sqlite3")
