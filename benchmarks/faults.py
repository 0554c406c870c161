"""Does anything get lost, left behind or blamed on a candidate when the machine fails?

    python benchmarks/faults.py --out faults.jsonl --points 100 --seed 1
    python benchmarks/faults.py --out faults.jsonl --summary

Each trial runs the real command line on a fresh copy of the small application of the tests, disturbs it at a random
point, and looks afterwards: nothing that was reported is lost; no process lives on; nothing lies about once the next
command has ended; the user's repository is as it was; going on (`--resume`, or the command again) ends as if nothing had
happened; no candidate has an outcome other than the one it gets undisturbed.

A trial is made from the seed, its kind and its number alone, so that one that failed can be made again (`--only KIND
--number N`), and a run that was stopped goes on where it was. One line of JSON for each trial. As root, disks fill up and
compilers vanish in a mount namespace of the harness's own; without, those kinds are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faulty import aftermath, mounts, processes, server
from faulty.kinds import ALL, KINDS, OVERLAYS, Kind, Missed, Trial
from faulty.points import Usual, Watch
from faulty.scene import COMMANDS, Command, Scene, kept, script


@dataclass
class Workshop:
    """What trials share: our programs compiled once, and how long each command usually takes."""

    folder: Path
    private: bool
    commands: tuple[str, ...]
    _usual: dict[str, Usual] = field(default_factory=dict)

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        if (overlays := self.folder / OVERLAYS).exists():
            mounts.unmount(overlays)

    def scene(self, command: Command, folder: Path, url: str, cold: bool = False) -> Scene:
        scene = Scene(folder, command, url)
        native = self.folder / "native"
        if native.exists() and not cold:
            shutil.copytree(native, scene.home / "native")
        return scene

    def usual(self, command: Command) -> Usual:
        """Measured on first use, on a scene of its own."""
        if command.name not in self._usual:
            chat = server.ChatServer(script(command.tries))
            with self._room("usual") as folder:
                scene = self.scene(command, folder, chat.url)
                product = scene.start()
                usual = Watch(product, scene.home).to_its_end()
                said = scene.ended(product)
                if wrong := list(aftermath.wrong_answer(command, said)):
                    raise SystemExit(f"undisturbed, {command.name} gives: {wrong}")
                if not (self.folder / "native").exists():
                    shutil.copytree(scene.home / "native", self.folder / "native")
            chat.shutdown()
            self._usual[command.name] = usual
        return self._usual[command.name]

    @contextlib.contextmanager
    def _room(self, name: str) -> Iterator[Path]:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        yield folder
        shutil.rmtree(folder)

    def trial(self, kind: Kind, number: int, seed: int) -> dict[str, Any]:
        """Make a trial, with other points of the same series where the command ended before the fault."""
        for again in range(20):
            rng = random.Random(f"{seed}/{kind.name}/{number}/{again}")
            allowed = [name for name in self.commands if name in kind.commands] or list(kind.commands)
            command = COMMANDS[rng.choice(allowed)]
            self.usual(command)
            chat = server.ChatServer(script(command.tries))
            with self._room("trial") as folder:
                scene = self.scene(command, folder, chat.url, cold=rng.random() < kind.cold)
                trial = Trial(scene, rng, chat, self.usual(command), self.folder)
                trial.record |= {"kind": kind.name, "number": number, "command": command.name, "missed": again}
                try:
                    return self._judged(trial, kind)
                except Missed:
                    continue
                finally:
                    chat.shutdown()
        raise SystemExit(f"{kind.name} {number}: no point was reached in 20 tries")

    def _judged(self, trial: Trial, kind: Kind) -> dict[str, Any]:
        scene, record, start = trial.scene, trial.record, time.monotonic()
        problems: list[str] = []
        with kind.stage(trial) if kind.stage else contextlib.nullcontext():
            said = kind.disturb(trial)
            problems += aftermath.ungraceful(said, kind.codes | {scene.command.code})
            problems += aftermath.running()
            before = kept(scene.home)
            record |= {"code": said.code, "error": ((said.object or {}).get("error") or {}).get("what"),
                       "kept": {table: len(rows) for table, rows in before.items()},
                       "left": _left(scene)}  # fmt: skip
            if said.code == scene.command.code:
                problems += aftermath.wrong_answer(scene.command, said)
            problems += aftermath.false_outcomes(scene.command, before)
            again = scene.again()
            record["again"] = again.code
            problems += aftermath.wrong_answer(scene.command, again)
            problems += aftermath.running()
            after = kept(scene.home)
            problems += aftermath.lost(said, before, after)
            problems += aftermath.false_outcomes(scene.command, after)
            problems += aftermath.lying_about(scene, self.private)
            problems += aftermath.touched(scene)
        record |= {"problems": list(dict.fromkeys(problems)), "took_s": round(time.monotonic() - start, 1)}
        return record


def _left(scene: Scene) -> int:
    """Work folders that the disturbed command left for the next one to sweep."""
    work = scene.home / "work"
    return len(list(work.iterdir())) if work.is_dir() else 0


def made(out: Path) -> list[dict[str, Any]]:
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text().splitlines()]


def summary(records: Iterable[dict[str, Any]]) -> str:
    records = list(records)
    lines = [f"{'kind':18} {'trials':>6} {'went on':>8} {'as usual':>9} {'stopped':>8} {'problems':>9}"]
    for name in KINDS:
        mine = [record for record in records if record["kind"] == name]
        if mine:
            usual = sum(record["code"] == COMMANDS[record["command"]].code for record in mine)
            bad = sum(bool(record["problems"]) for record in mine)
            went_on = sum(record["again"] == COMMANDS[record["command"]].code for record in mine)
            lines.append(f"{name:18} {len(mine):6} {went_on:8} {usual:9} {len(mine) - usual:8} {bad:9}")
    for record in records:
        lines += [f"{record['kind']} {record['number']} ({record['command']}): {each}" for each in record["problems"]]
    return "\n".join(lines)


def as_json(records: Iterable[dict[str, Any]]) -> str:
    """One trial a line, so that a changed trial is a changed line."""
    names = list(KINDS)
    rows = sorted(records, key=lambda record: (names.index(record["kind"]), record["number"]))
    return '{"schema": 1, "trials": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n"


def wanted(arguments: argparse.Namespace, done: Iterable[dict[str, Any]], private: bool) -> list[tuple[Kind, int]]:
    """The trials still to make, the kinds in turn."""
    if arguments.number is not None:
        return [(KINDS[name], arguments.number) for name in arguments.only or KINDS]
    before = Counter((record["kind"], record["number"]) for record in done)
    kinds = [kind for kind in KINDS.values() if (not arguments.only or kind.name in arguments.only)]
    for kind in [kind for kind in kinds if kind.root and not private]:
        print(f"left out without root: {kind.name}", file=sys.stderr)
        kinds.remove(kind)
    todo = [
        ((number + 0.5) / count, kind, number)
        for kind in kinds
        for count in [max(1, round(kind.share * arguments.points))]
        for number in range(count)
        if (kind.name, number) not in before
    ]
    return [(kind, number) for _, kind, number in sorted(todo, key=lambda each: (each[0], each[1].name))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the trials' lines are; more are added")
    parser.add_argument("--points", type=int, default=100, help="kills (-9); the other kinds follow in proportion")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="begin no further trial after this")
    parser.add_argument("--only", action="append", choices=list(KINDS), help="this kind of fault; may be repeated")
    parser.add_argument("--number", type=int, help="only this trial of each kind, made again")
    parser.add_argument("--command", action="append", choices=list(COMMANDS), help="only this one; may be repeated")
    parser.add_argument("--summary", action="store_true", help="only say what the trials came to")
    parser.add_argument("--data", type=Path, help="with --summary: the trials as one JSON object, into this file")
    arguments = parser.parse_args()
    if arguments.summary or arguments.data:
        print(summary(made(arguments.out)))
        if arguments.data:
            arguments.data.write_text(as_json(made(arguments.out)))
        return
    private = mounts.become_private()
    processes.become_reaper()
    start, todo = time.monotonic(), wanted(arguments, made(arguments.out), private)
    with contextlib.ExitStack() as stack, arguments.out.open("a") as out:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelwright-faults-"))
        workshop = stack.enter_context(Workshop(Path(folder), private, tuple(arguments.command or ALL)))
        for kind, number in todo:
            if arguments.minutes and time.monotonic() - start > 60 * arguments.minutes:
                break
            record = {"seed": arguments.seed, **workshop.trial(kind, number, arguments.seed)}
            out.write(json.dumps(record) + "\n")
            out.flush()
            os.fsync(out.fileno())
            bad = "; ".join(record["problems"]) or "clean"
            print(f"{kind.name} {number}, {record['command']}: {record['took_s']} s, {bad}"[:2000], flush=True)
    records = made(arguments.out)
    print(summary(records))
    sys.exit(1 if any(record["problems"] for record in records) else 0)


if __name__ == "__main__":
    main()
