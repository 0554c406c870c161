"""A real Slurm of one node on 127.0.0.1: its own key, configuration, state and ports, and no process left at the end.

As root, with Debian's packages slurm-wlm and munge. Nothing of a Slurm that the machine may have is read or changed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = ("setpriv", "munged", "slurmctld", "slurmd", "sinfo", "sbatch", "squeue", "scancel")
SBIN = "/usr/sbin:/usr/local/sbin"
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmUser=root
SlurmdUser=root
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
InactiveLimit=0
MinJobAge=300
SlurmctldTimeout=60
SlurmdTimeout=60
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 NodeHostname={host} CPUs={cpus} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def missing() -> str | None:
    """Why no Slurm can be started here."""
    if os.geteuid() != 0:
        return "only root can start a Slurm"
    absent = [name for name in PROGRAMS if _program(name) is None]
    return f"{', '.join(absent)}: not installed (apt-get install slurm-wlm munge)" if absent else None


@dataclass
class Slurm:
    folder: Path
    env: dict[str, str]
    """What programs need to find this Slurm."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def call(self, *command: str) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(command, env={**os.environ, **self.env}, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout

    def jobs(self) -> list[str]:
        """The ids of jobs that wait or run."""
        return self.call("squeue", "--noheader", "--format=%i").split()

    def start(self, *command: str) -> None:
        """A daemon, which the kernel ends with us where we are killed."""
        bound = ("setpriv", "--pdeathsig", "KILL", *command)
        env = {**os.environ, **self.env}
        with (self.folder / f"{Path(command[0]).name}.out").open("wb") as log:
            self.processes.append(subprocess.Popen(bound, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL))


@contextlib.contextmanager
def one_node_slurm(folder: Path) -> Iterator[Slurm]:
    """A Slurm whose node takes jobs, until the end: then its jobs are cancelled and each of its processes has ended."""
    for part in ("state", "spool"):
        (folder / part).mkdir(parents=True)
    host = socket.gethostname().partition(".")[0]
    ctld, slurmd = _free_ports(2)
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(host=host, ctld=ctld, slurmd=slurmd, folder=folder, cpus=os.cpu_count()))
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    folder.chmod(0o755)
    slurm = Slurm(folder, {"SLURM_CONF": str(conf)})
    try:
        slurm.start(_found("munged"), "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}",
                    f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
                    f"--seed-file={folder}/munged.seed", "--num-threads=2")  # fmt: skip
        _until(lambda: (folder / "munge.socket").exists(), slurm)
        slurm.start(_found("slurmctld"), "-D", "-c", "-f", str(conf))
        slurm.start(_found("slurmd"), "-D", "-f", str(conf), "-N", host)
        _until(lambda: _state(slurm) in ("idle", "mix"), slurm)
        yield slurm
    finally:
        with contextlib.suppress(AssertionError):
            slurm.call("scancel", "--user=root")
            _until(lambda: not slurm.jobs(), slurm, 20.0)
        for process in reversed(slurm.processes):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in processes_of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def processes_of(folder: Path) -> list[int]:
    """Processes whose command or environment names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                if str(folder).encode() in told:
                    found.append(int(entry.name))
    return found


def _state(slurm: Slurm) -> str:
    done = subprocess.run(
        ["sinfo", "--noheader", "--format=%t"], env={**os.environ, **slurm.env}, capture_output=True, text=True
    )
    return done.stdout.strip()


def _until(so: Callable[[], object], slurm: Slurm, within_s: float = 60.0) -> None:
    end = time.monotonic() + within_s
    while not so():
        logs = [
            path.read_text(errors="replace")[-1500:]
            for path in (*slurm.folder.glob("*.log"), *slurm.folder.glob("*.out"))
        ]
        dead = [process.args for process in slurm.processes if process.poll() is not None]
        assert not dead, f"{dead} ended: {logs}"
        assert time.monotonic() < end, f"Slurm is not ready: {logs}"
        time.sleep(0.1)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SBIN}")


def _found(name: str) -> str:
    program = _program(name)
    assert program is not None
    return program


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
