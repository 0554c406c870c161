"""Plain truths: what a job gets, what is told of it, and whose fault is whose."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import JobFault, SandboxUnavailable, UsageError
from kernelwright.sandbox import Bind, Job, JobResult, LimitHit, Limits, Sandbox, attacks
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.refusals import why_not_started
from kernelwright.sandbox.seccomp import IOCTL, REFUSED, REFUSED_EVERYWHERE, SOCKET, SOCKETPAIR, seccomp_filter
from kernelwright.sandbox.user import JOB_UID

EACH = pytest.mark.parametrize("name", ["bubblewrap", "namespaces", "none"])


def run(sandbox: Sandbox, *argv: str, folder: Path | None = None, **more: object) -> JobResult:
    binds = (Bind(folder, "/workspace", writable=True),) if folder else ()
    cwd = "/workspace" if folder else "/tmp"
    return asyncio.run(sandbox.run(replace(Job(argv, cwd, binds), **more)))  # type: ignore[arg-type]


def shell(sandbox: Sandbox, script: str, **more: object) -> JobResult:
    return run(sandbox, "/bin/sh", "-c", script, **more)  # type: ignore[arg-type]


@EACH
def test_a_job_tells_its_exit_code_and_both_streams(name: str, state: Path) -> None:
    result = shell(open_sandbox(name), "echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.signal, result.limit) == (3, None, None)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


@EACH
@pytest.mark.parametrize(("word", "number"), [("crash", 11), ("kill_itself", 9)])
def test_a_job_tells_the_signal_that_ended_it(word: str, number: int, name: str, attacker: Path) -> None:
    sandbox = open_sandbox(name)
    result = asyncio.run(sandbox.run(Job(("/attack", word), "/tmp", (Bind(attacker, "/attack"),))))
    assert (result.exit_code, result.signal, result.limit) == (None, number, None)


@EACH
def test_times_and_memory_are_those_of_the_program_and_its_children(name: str, state: Path) -> None:
    result = shell(open_sandbox(name), "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; true")
    assert 0 < result.wall_s <= result.outside_s
    assert result.cpu_s > 0
    assert result.max_rss_bytes > 2**18


@EACH
def test_a_program_that_does_not_exist_is_the_jobs_own_failure(name: str, state: Path) -> None:
    result = run(open_sandbox(name), "no-such-program")
    assert result.exit_code == 127
    assert b"no-such-program: No such file or directory" in result.stderr


@EACH
def test_the_environment_is_minimal_and_the_jobs_own_words_win(
    name: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    result = run(open_sandbox(name), "env", env={"OMP_NUM_THREADS": "2", "LANG": "de"})
    env = dict(line.split("=", 1) for line in result.stdout.decode().splitlines())
    assert set(env) == {"PATH", "HOME", "TMPDIR", "LANG", "OMP_NUM_THREADS"}
    assert (env["LANG"], env["HOME"], env["OMP_NUM_THREADS"]) == ("de", "/tmp", "2")


@EACH
def test_a_job_runs_on_the_cores_that_it_was_given(name: str, state: Path) -> None:
    core = min(os.sched_getaffinity(0))
    result = shell(open_sandbox(name), "grep Cpus_allowed_list /proc/self/status", cpus=(core,))
    assert result.stdout.split() == [b"Cpus_allowed_list:", str(core).encode()]


@EACH
def test_what_a_job_writes_into_its_folder_is_there_afterwards(name: str, state: Path, tmp_path: Path) -> None:
    sandbox = open_sandbox(name)
    (tmp_path / "in").write_text("given")
    sandbox.own(tmp_path)
    inside = sandbox.inside(tmp_path, "/workspace")
    result = shell(sandbox, f"cat in; echo made > {inside}/out", folder=tmp_path)
    assert result.stdout == b"given"
    assert (tmp_path / "out").read_text() == "made\n"


@EACH
def test_a_compiler_and_threads_work_inside(name: str, state: Path, tmp_path: Path) -> None:
    sandbox = open_sandbox(name)
    (tmp_path / "a.cpp").write_text(
        '#include <cstdio>\n#include <thread>\nint main() { std::thread([] { std::puts("thread"); }).join(); }\n'
    )
    sandbox.own(tmp_path)
    built = run(sandbox, "g++", "-pthread", "-I/workspace/include", "-o", "/workspace/a", "a.cpp", folder=tmp_path)
    assert (built.exit_code, built.stderr) == (0, b"")
    assert run(sandbox, "/workspace/a", folder=tmp_path).stdout == b"thread\n"


def test_a_job_can_open_its_own_streams_by_name(sandbox: Sandbox) -> None:
    result = shell(sandbox, "echo out > /dev/stdout; echo err > /dev/stderr")
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")


@EACH
def test_a_terminal_keeps_what_a_program_printed_before_it_was_stopped(name: str, attacker: Path) -> None:
    job = Job(("/attack", "speak_and_loop"), "/tmp", (Bind(attacker, "/attack"),), limits=Limits(wall_s=0.2))
    quiet = asyncio.run(open_sandbox(name).run(job))
    heard = asyncio.run(open_sandbox(name).run(replace(job, terminal=True)))
    assert (quiet.stdout, heard.stdout) == (b"", b"said\n")
    assert quiet.limit == heard.limit == LimitHit.TIME


def test_a_terminal_passes_all_bytes_unchanged(sandbox: Sandbox) -> None:
    result = shell(sandbox, r"printf 'a\r\nb\n\004\003c'; head -c 300000 /dev/zero", terminal=True)
    assert result.stdout == b"a\r\nb\n\x04\x03c" + bytes(300000)


LEFT_BEHIND = ("fork_bomb", "segments", "many_names")
"""What the kernel or the machine's own /tmp would keep, were it not for a room that ends."""
HELD_WITHOUT = [
    case for case in attacks.CASES if case.limit and case.name not in LEFT_BEHIND and case.argument[:1] != "/"
]


@pytest.mark.parametrize("case", HELD_WITHOUT, ids=attacks.name_of)
def test_without_a_sandbox_the_limits_on_time_memory_disk_and_output_hold_too(
    case: attacks.Case, attacker: Path, tmp_path: Path
) -> None:
    assert asyncio.run(attacks.attack(open_sandbox("none"), case, attacker, tmp_path)) is None


REACHING_OUT = [case for case in attacks.CASES if case.name in ("read", "network", "visit") and case.harmless]


@pytest.mark.parametrize("case", REACHING_OUT, ids=attacks.name_of)
def test_the_attacks_are_real_and_succeed_without_a_sandbox(case: attacks.Case, attacker: Path, tmp_path: Path) -> None:
    assert "exit_code=0" in (asyncio.run(attacks.attack(open_sandbox("none"), case, attacker, tmp_path)) or "")


def test_without_a_sandbox_only_attacks_that_do_no_harm_are_tried(state: Path) -> None:
    async def tried() -> list[attacks.Case]:
        return [case async for case, _ in attacks.all_attacks(open_sandbox("none"))]

    assert asyncio.run(tried()) == [case for case in attacks.CASES if case.harmless]


def test_a_folder_that_must_not_be_seen_is_empty_even_inside_a_system_folder(sandbox: Sandbox) -> None:
    script = "ls /usr/include; touch /usr/include/new; ls /usr"
    result = shell(sandbox, script, unseen=(Path("/usr/include"),))
    assert b"stdio.h" not in result.stdout
    assert b"include" in result.stdout
    assert b"Read-only file system" in result.stderr


def test_thirty_jobs_at_once_keep_their_limits_and_streams_apart(sandbox: Sandbox, attacker: Path) -> None:
    binds = (Bind(attacker, "/attack"),)
    bombs = [Job(("/attack", "fork_bomb"), "/tmp", binds, limits=attacks.LIMITS) for _ in range(4)]
    jobs = [Job(("/bin/sh", "-c", f"echo {number}; exit {number}"), "/tmp") for number in range(26)]

    async def together() -> list[JobResult]:
        return await asyncio.gather(*(sandbox.run(job) for job in (*bombs, *jobs)))

    results = asyncio.run(together())
    assert [result.limit for result in results[:4]] == [LimitHit.PROCESSES] * 4
    assert [(result.exit_code, result.stdout) for result in results[4:]] == [(n, b"%d\n" % n) for n in range(26)]


def test_after_a_cancelled_job_the_next_ones_streams_are_heard_to_their_end(sandbox: Sandbox, tmp_path: Path) -> None:
    """The next job gets the same descriptor numbers, which the event loop must have forgotten."""

    async def scenario() -> list[bytes]:
        binds = (Bind(tmp_path, "/workspace", writable=True),)
        script = "echo on; echo > fifo; exec sleep 60"
        loud = asyncio.create_task(sandbox.run(Job(("/bin/sh", "-c", script), "/workspace", binds)))
        await asyncio.to_thread((tmp_path / "fifo").read_bytes)
        loud.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loud
        return [(await sandbox.run(Job(("/bin/echo", "next"), "/tmp"))).stdout for _ in range(3)]

    os.mkfifo(tmp_path / "fifo")
    sandbox.own(tmp_path)
    assert asyncio.run(scenario()) == [b"next\n"] * 3


DRIVER = """
import asyncio, sys
from kernelwright.sandbox import Job
from kernelwright.sandbox.backends import open_sandbox

async def work(sandbox):
    while True:
        await sandbox.run(Job(("/bin/true",), "/tmp", env={"MARK": sys.argv[2]}))

async def main():
    sandbox = open_sandbox(sys.argv[1])
    await sandbox.run(Job(("/bin/true",), "/tmp"))
    print("on", flush=True)
    await asyncio.gather(*(work(sandbox) for _ in range(4)))

asyncio.run(main())
"""


def living(mark: str) -> list[int]:
    """The processes of jobs with this mark, once all that are ending have had five seconds for it."""
    until = time.monotonic() + 5
    while (found := _living(mark)) and time.monotonic() < until:
        os.sched_yield()
    return found


def _living(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"MARK={mark}".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def test_a_job_that_is_cancelled_while_its_room_opens_leaves_no_process(sandbox: Sandbox) -> None:
    async def cancelled(after_ms: float) -> None:
        job = asyncio.create_task(sandbox.run(Job(("/bin/true",), "/tmp", env={"MARK": "cancelled"})))
        asyncio.get_running_loop().call_later(after_ms / 1000, job.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await job

    async def scenario() -> None:
        for step in range(120):
            await cancelled(step / 10)

    asyncio.run(scenario())
    assert living("cancelled") == []


def test_a_driver_that_is_killed_while_rooms_open_leaves_no_process(sandbox: Sandbox) -> None:
    for number in range(30):
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, sandbox.name, f"killed{number}"], stdout=subprocess.PIPE
        )
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"on\n"
        for _ in range(number * 20):
            os.sched_yield()
        driver.kill()
        driver.communicate()
        assert living(f"killed{number}") == []


def test_owning_a_folder_follows_no_link(sandbox: Sandbox, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir()
    (outside / "file").touch()
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").touch()
    (folder / "link").symlink_to(outside)
    (folder / "file").symlink_to(outside / "file")
    sandbox.own(folder)
    assert {path.stat().st_uid for path in (outside, outside / "file")} == {os.geteuid()}
    expected = JOB_UID if os.geteuid() == 0 else os.geteuid()
    assert {path.lstat().st_uid for path in (folder, *folder.rglob("*"))} == {expected}


def test_a_room_that_does_not_open_is_the_machines_fault(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(JobFault, match=re.escape(str(tmp_path / "missing"))):
        run(sandbox, "/bin/true", folder=tmp_path / "missing")


def test_bubblewrap_that_is_not_there_is_named_with_what_to_do(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match=r"apt-get install bubblewrap.*--sandbox namespaces.*--no-sandbox"):
        open_sandbox("bubblewrap")


@pytest.mark.parametrize(
    "said",
    [
        "bwrap: setting up uid map: Permission denied",
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user "
        "namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.",
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
        "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
        "stage: a mount namespace of its own: Operation not permitted",
        "room: namespaces of its own: No space left on device",
        "room: a root of its own: Permission denied",
        "room: a /proc of its own: Operation not permitted",
    ],
)
def test_a_machine_that_forbids_the_sandbox_is_told_in_the_sandboxs_own_words_with_what_to_do(said: str) -> None:
    error = why_not_started(said)
    assert isinstance(error, SandboxUnavailable)
    assert said in error.what
    assert "--no-sandbox" in error.try_


def test_a_full_disk_is_the_machines_fault_and_not_the_sandboxs() -> None:
    error = why_not_started("bwrap: Can't mkdir /newroot/workspace: No space left on device")
    assert isinstance(error, JobFault)


def test_the_probe_opens_the_real_room(sandbox: Sandbox) -> None:
    probe = asyncio.run(sandbox.probe())
    assert probe.works, probe
    assert sandbox.name in probe.detail


def test_a_sandbox_that_does_not_exist_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="auto, bubblewrap, namespaces, none, podman, docker, apptainer"):
        open_sandbox("chroot")


@pytest.mark.parametrize(
    ("machine", "header"), [("x86_64", "x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")]
)
def test_the_tables_of_system_calls_agree_with_the_kernels_headers(machine: str, header: str) -> None:
    path = Path("/usr/include") / header
    if not path.exists():
        pytest.skip(f"no {path}")
    numbers = dict(re.findall(r"#define __NR_(\w+) (\d+)", path.read_text()))
    ours = REFUSED[machine] | REFUSED_EVERYWHERE | {"socket": SOCKET[machine], "socketpair": SOCKETPAIR[machine]}
    known = {name: number for name, number in (ours | {"ioctl": IOCTL[machine]}).items() if name in numbers}
    assert len(known) > 30
    assert known == {name: int(numbers[name]) for name in known}


def test_a_filter_is_made_of_whole_instructions_and_only_for_machines_that_are_known() -> None:
    assert {len(seccomp_filter(machine) or b"") % 8 for machine in REFUSED} == {0}
    assert seccomp_filter("riscv64") is None
