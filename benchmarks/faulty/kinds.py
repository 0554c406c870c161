"""The kinds of fault: what each does to a command at a random point, and how the command may then end."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faulty import aftermath, mounts, points, processes, server
from faulty.points import Point, Usual, Watch
from faulty.scene import Command, Said, Scene

ALL = ("model", "model, short", "model, short", "model, short", "rules", "verify good", "verify wrong",
       "verify broken", "verify crashes", "bench", "check")  # fmt: skip
DAY_S = 86_400
OVERLAYS = "overlays"
"""Where, among what trials share, the folders lie over which compilers vanish."""


class Missed(Exception):
    """The command ended before the fault could strike."""


@dataclass
class Trial:
    """One trial on its way. `record` is what is written of it."""

    scene: Scene
    rng: random.Random
    chat: server.ChatServer
    usual: Usual
    shared: Path
    """A folder for what trials share."""
    record: dict[str, Any] = field(default_factory=dict)

    def strikes(self, product: subprocess.Popen[bytes]) -> tuple[Watch, Point]:
        """Wait for a random point of the command. Raises Missed."""
        point, watch = points.draw(self.rng, self.usual), Watch(product, self.scene.home)
        self.record["point"] = str(point)
        if not watch.reaches(point):
            raise Missed
        self.record["after_s"] = round(watch.passed_s, 3)
        return watch, point


# ---- signals ----


def signalled(part: str, number: int) -> Callable[[Trial], Said]:
    """A fault that sends a signal to one process of this part of the work."""

    def disturb(trial: Trial) -> Said:
        product = trial.scene.start()
        watch, _ = trial.strikes(product)
        victim = processes.look(product.pid) if part == "product" else watch.waits_for(part)
        if victim is None or not processes.kill(victim, number):
            product.wait()
            raise Missed
        trial.record["victim"] = victim.name
        said = trial.scene.ended(product)
        if part == "product" and said.code == trial.scene.command.code and number == signal.SIGKILL:
            raise Missed
        if part == "product" and number in STOPPING and said.code in (-number, 1):
            trial.record["unheard"] = True
            return _unheard(said, watch, trial.scene.command)
        return said

    return disturb


def _unheard(said: Said, watch: Watch, command: Command) -> Said:
    """Before the product listens, while it is loaded, and after it has said everything, a signal does what signals do."""
    if said.object is not None:
        return Said(command.code, said.out, said.err)
    if watch.seen:
        return said
    whole = dict.fromkeys(("kind", "what", "expected", "try"), "loading")
    return Said(130, json.dumps({"error": whole}), "")


# ---- the clock ----


def shim(folder: Path) -> Path:
    made = folder / "clock.so"
    if not made.exists():
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(made), str(source), "-ldl"], check=True)
    return made


def clock(trial: Trial) -> Said:
    """The wall clock jumps; in half of the trials the product is killed as well, and goes on in that other time."""
    scene, rng = trial.scene, trial.rng
    offset = scene.folder / "clock"
    offset.write_bytes(struct.pack("q", 0))
    scene.env = {"LD_PRELOAD": str(shim(trial.shared)), "KW_CLOCK": str(offset)}
    product = scene.start()
    watch, _ = trial.strikes(product)
    jump_s = rng.choice((-1, 1)) * rng.choice((3600, DAY_S, 365 * DAY_S))
    trial.record["jump_s"] = jump_s
    offset.write_bytes(struct.pack("q", jump_s))
    if rng.random() < 0.5:
        for _ in range(rng.randint(1, 60)):
            watch.look()
        trial.record["killed"] = processes.kill(processes.look(product.pid) or _nobody(), signal.SIGKILL)
    return scene.ended(product)


def _nobody() -> processes.Process:
    return processes.Process(0, "", 0)


# ---- the disk ----


@contextlib.contextmanager
def on_a_small_disk(trial: Trial) -> Iterator[None]:
    home = trial.scene.home
    native = home / "native"
    aside = trial.scene.folder / "aside"
    if native.exists():
        native.rename(aside)
    with mounts.small_disk(home, "64m", 4000):
        if aside.exists():
            shutil.copytree(aside, native)
        yield


def disk(trial: Trial) -> Said:
    """The disk of the state folder fills up, or has no name left for a file; afterwards there is room again."""
    scene, rng = trial.scene, trial.rng
    product = scene.start()
    trial.strikes(product)
    free = rng.choice((0, 0, 4096, 100_000, 1 << 20, 9 << 20, -1))
    trial.record["free_bytes"] = free
    filler = mounts.use_up_names(scene.home) if free < 0 else mounts.fill(scene.home, free)
    said = scene.ended(product)
    if filler.is_dir():
        shutil.rmtree(filler)
    else:
        filler.unlink()
    return said


def read_only(trial: Trial) -> Said:
    """The product is killed; then its disk can only be read for one command; then it can be written again."""
    scene = trial.scene
    product = scene.start()
    trial.strikes(product)
    if not processes.kill(processes.look(product.pid) or _nobody(), signal.SIGKILL):
        raise Missed
    scene.ended(product)
    list(aftermath.running())
    mounts.mount("-o", "remount,ro", scene.home)
    try:
        return scene.again()
    finally:
        mounts.mount("-o", "remount,rw", scene.home)


# ---- the compiler ----


def tools(shared: Path) -> list[Path]:
    """What a build needs and can lose; made removable on first use."""
    marked = shared / OVERLAYS
    found = [Path(subprocess.run(["g++", f"-print-prog-name={name}"], capture_output=True, text=True, check=True)
                  .stdout.strip()) for name in ("cc1plus",)]  # fmt: skip
    if not marked.exists():
        mounts.mount("-t", "tmpfs", "tmpfs", _made(marked))
        for number, folder in enumerate(dict.fromkeys([Path("/usr/bin"), found[0].parent])):
            mounts.removable(folder, marked / str(number))
    programs = [Path("/usr/bin") / name for name in ("g++", "as", "ld", "make")]
    return [path for path in (*programs, *found, found[0].parent / "include/stddef.h") if path.exists()]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def compiler(trial: Trial) -> Said:
    """A compiler, a part of it, make or a header vanishes; in some trials it is back before the command has ended."""
    scene, rng = trial.scene, trial.rng
    there = tools(trial.shared)
    product = scene.start()
    watch, _ = trial.strikes(product)
    gone, back = rng.choice([*there, there[0], there[0]]), rng.random() < 0.3
    trial.record |= {"gone": gone.name, "back": back}
    mounts.vanish(gone)
    try:
        if back:
            for _ in range(rng.randint(1, 100)):
                watch.look()
            mounts.come_back(gone)
        return scene.ended(product)
    finally:
        mounts.come_back(gone)


# ---- the model's server ----


def endpoint(trial: Trial) -> Said:
    """The server fails at a random request, once, some times, or until the command ends; then it serves again."""
    rng, chat = trial.rng, trial.chat
    requests = len(trial.scene.command.tries) + 1
    attempts = 2 if "--attempts" in trial.scene.command.words else 1
    at, name = rng.randrange(requests * attempts), rng.choice(list(server.FAULTS))
    number = trial.record["number"]
    name = list(server.FAULTS)[number % len(server.FAULTS)] if number < 2 * len(server.FAULTS) else name
    times = rng.choice((1, 1, 1, 2, 1000))
    fault = server.FAULTS[name](rng)
    trial.record |= {"fault": name, "how": getattr(fault, "__name__", ""), "request": at, "times": times}
    chat.faults = lambda number: fault if at <= number < at + times else None
    said = trial.scene.ended(trial.scene.start())
    if not chat.failed:
        raise Missed
    trial.record["failed_requests"] = chat.failed
    chat.faults = lambda _: None
    return said


@dataclass(frozen=True)
class Kind:
    """A kind of fault. `share` of the points asked for; `codes`: how the disturbed command may end, beside as usual."""

    name: str
    disturb: Callable[[Trial], Said]
    share: float
    codes: frozenset[int]
    commands: tuple[str, ...] = ALL
    stage: Callable[[Trial], contextlib.AbstractContextManager[None]] | None = None
    cold: float = 0.0
    """The share of trials in which our own programs are not compiled yet."""
    root: bool = False


KILL, STOP, STOPPING = signal.SIGKILL, frozenset({130}), (signal.SIGINT, signal.SIGTERM)
FAULT, KILLED = frozenset({3}), frozenset({-signal.SIGKILL})
KINDS = {
    kind.name: kind
    for kind in (
        Kind("kill product", signalled("product", KILL), 0.35, KILLED, cold=0.1),
        Kind("kill launcher", signalled("launcher", KILL), 0.15, FAULT),
        Kind("kill sandbox", signalled("sandbox", KILL), 0.15, FAULT),
        Kind("kill compiler", signalled("compiler", KILL), 0.2, FAULT, cold=0.1),
        Kind("kill program", signalled("program", KILL), 0.15, FAULT),
        Kind("terminate", signalled("product", signal.SIGTERM), 0.12, STOP, cold=0.1),
        Kind("interrupt", signalled("product", signal.SIGINT), 0.12, STOP, cold=0.1),
        Kind("full disk", disk, 0.15, FAULT, stage=on_a_small_disk, root=True, cold=0.1),
        Kind("read-only disk", read_only, 0.1, FAULT, stage=on_a_small_disk, root=True),
        Kind("clock", clock, 0.12, KILLED),
        Kind("compiler vanishes", compiler, 0.15, FAULT, root=True),
        Kind("model server", endpoint, 0.24, FAULT, commands=("model", "model, short")),
    )
}
