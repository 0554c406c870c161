"""What else the machine did while something was timed, and what about it should make a reader doubtful.

Read from /proc and /sys before and after, and from nvidia-smi where a device is named. What cannot be read (another
system, a container, a virtual machine that hides its clocks) is None, never a guess. Nothing here changes a setting.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

BUSY_CORES = 0.2
"""Cores' worth of other work from which on a timing is worth a warning."""
STOLEN_CORES = 0.02
BUSY_DEVICE_PERCENT = 5
SETTLE_READINGS, SETTLE_S = 4, 0.4
"""nvidia-smi's utilisation is that of the past second at most, our own last run in it: a device that seems busy at the
start is read again this often, this far apart. What still is to be seen then is somebody else's."""
GPU_FIELDS = (
    "name", "driver_version", "pstate", "clocks.sm", "clocks.max.sm", "temperature.gpu", "utilization.gpu",
    "power.draw", "clocks_throttle_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown",
)  # fmt: skip


@dataclass(frozen=True)
class Device:
    """One nvidia-smi reading: `fields` as it prints them, and the processes that compute on the device."""

    fields: dict[str, str]
    processes: tuple[int, ...]


@dataclass(frozen=True)
class Snapshot:
    """Counters at one moment; times in seconds summed over all cores."""

    at_s: float
    busy_s: float | None
    stolen_s: float | None
    own_s: float
    """CPU time of this process and of all its finished children."""
    load: float | None
    throttles: int | None
    device: Device | None


@dataclass(frozen=True)
class Conditions:
    """Two snapshots, and the machine between them."""

    cpu: str | None
    cores: int | None
    governor: str | None
    turbo: bool | None
    before: Snapshot
    after: Snapshot

    @property
    def other_cores(self) -> float | None:
        """How many cores on average worked for processes that are not ours."""
        return self._cores_of(self.before.busy_s, self.after.busy_s, self.after.own_s - self.before.own_s)

    @property
    def stolen_cores(self) -> float | None:
        """How many cores' time the hypervisor gave to other machines."""
        return self._cores_of(self.before.stolen_s, self.after.stolen_s, 0.0)

    def _cores_of(self, before_s: float | None, after_s: float | None, own_s: float) -> float | None:
        seconds = self.after.at_s - self.before.at_s
        if before_s is None or after_s is None or seconds <= 0:
            return None
        return max(0.0, after_s - before_s - own_s) / seconds

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(_cpu_warnings(self) + _gpu_warnings(self.before.device, self.after.device))

    def to_json(self) -> dict[str, Any]:
        rates = {"other_cores": self.other_cores, "stolen_cores": self.stolen_cores}
        return asdict(self) | rates | {"warnings": list(self.warnings)}


class Watch:
    """Opens with a snapshot and closes with another."""

    def __init__(self, before: Snapshot, gpu: int | None) -> None:
        self._before, self._gpu = before, gpu

    @classmethod
    async def start(cls, gpu: int | None = None) -> Watch:
        before = await snapshot(gpu)
        for _ in range(SETTLE_READINGS):
            if not _busy(before.device):
                break
            await asyncio.sleep(SETTLE_S)
            before = await snapshot(gpu)
        return cls(before, gpu)

    async def finish(self) -> Conditions:
        cpufreq = Path("/sys/devices/system/cpu/cpu0/cpufreq")
        return Conditions(
            cpu=cpu_model(),
            cores=os.cpu_count(),
            governor=_text(cpufreq / "scaling_governor"),
            turbo=_turbo(),
            before=self._before,
            after=await snapshot(self._gpu),
        )


async def snapshot(gpu: int | None = None) -> Snapshot:
    """Everything that changes, read now. `gpu` is an index as nvidia-smi counts."""
    device = await _device(gpu) if gpu is not None else None
    busy_s, stolen_s = core_seconds(_text(Path("/proc/stat")) or "")
    own = os.times()
    load = _text(Path("/proc/loadavg"))
    return Snapshot(
        at_s=time.monotonic(),
        busy_s=busy_s,
        stolen_s=stolen_s,
        own_s=own.user + own.system + own.children_user + own.children_system,
        load=float(load.split()[0]) if load else None,
        throttles=_throttles(),
        device=device,
    )


def core_seconds(stat: str) -> tuple[float | None, float | None]:
    """Busy and stolen seconds of all cores together, from /proc/stat's first line (proc(5))."""
    words = stat.partition("\n")[0].split()
    if len(words) < 9 or words[0] != "cpu":
        return None, None
    if not all(map(_is_number, words[1:9])):
        return None, None
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in words[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def cpu_model() -> str | None:
    lines = (_text(Path("/proc/cpuinfo")) or "").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _turbo() -> bool | None:
    no_turbo = _text(Path("/sys/devices/system/cpu/intel_pstate/no_turbo"))
    if no_turbo is not None:
        return no_turbo == "0"
    boost = _text(Path("/sys/devices/system/cpu/cpufreq/boost"))
    return None if boost is None else boost == "1"


def _throttles() -> int | None:
    """How often any core was slowed down by heat since the machine started."""
    files = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    counts = [int(text) for file in files if (text := _text(file)) is not None]
    return sum(counts) if counts else None


async def _device(gpu: int) -> Device | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    values = await _smi(program, gpu, f"--query-gpu={','.join(GPU_FIELDS)}")
    processes = await _smi(program, gpu, "--query-compute-apps=pid")
    if len(values) != 1 or len(values[0].split(", ")) != len(GPU_FIELDS):
        return None
    fields = dict(zip(GPU_FIELDS, values[0].split(", "), strict=True))
    return Device(fields, tuple(int(line) for line in processes if _is_number(line)))


async def _smi(program: str, gpu: int, query: str) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        program, f"--id={gpu}", query, "--format=csv,noheader,nounits",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    output, _ = await process.communicate()
    return output.decode(errors="replace").splitlines() if process.returncode == 0 else []


def _cpu_warnings(seen: Conditions) -> list[str]:
    found = []
    if seen.other_cores is not None and seen.other_cores > BUSY_CORES:
        found.append(f"other processes kept {seen.other_cores:.1f} of {seen.cores} cores busy")
    if seen.stolen_cores is not None and seen.stolen_cores > STOLEN_CORES:
        found.append(f"the hypervisor took {seen.stolen_cores:.2f} cores away")
    if seen.governor is not None and seen.governor != "performance":
        found.append(f"the clock governor is {seen.governor}, not performance")
    if seen.turbo:
        found.append("turbo is on: clocks depend on heat and on the other cores")
    if seen.before.throttles is not None and seen.after.throttles != seen.before.throttles:
        found.append("heat slowed cores down")
    return found


def _busy(device: Device | None) -> bool:
    percent = device.fields["utilization.gpu"] if device else ""
    return _is_number(percent) and int(percent) > BUSY_DEVICE_PERCENT


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 20


def _gpu_warnings(before: Device | None, after: Device | None) -> list[str]:
    """Other processes and load count from the reading before, when none of ours ran yet; heat from the one after."""
    found = []
    if before and before.processes:
        found.append(f"{len(before.processes)} other processes were on the device")
    if before and _busy(before):
        found.append(f"the device was {before.fields['utilization.gpu']} % busy before the first run")
    if after and "Active" in (after.fields[name] for name in GPU_FIELDS[-2:]):
        found.append("heat slowed the device down")
    return found
