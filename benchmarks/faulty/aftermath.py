"""What must hold after every fault: nothing reported is lost, nothing runs or lies about, no fault became an outcome."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from faulty.processes import left
from faulty.scene import CANDIDATES, OUTCOMES, Command, Said, Scene, fingerprint, kept, told, tried

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
NATIVE = re.compile(r"[\w.-]+-[0-9a-f]{16}(\.\w+)?")
RUN_FILES = re.compile(r"lock|result\.json|candidate\.json|smooth\.patch|trace-\d+\.jsonl")
BUILDS = re.compile(r"[0-9a-f]{64}\.(tar|json)")
LOCKS = re.compile(r"kernelwright-(cpu|(cpu|gpu)-\d+)\.lock")
SHARED = (Path("/dev/shm"), Path("/run/lock"))


def running() -> Iterator[str]:
    """Processes that live on after a command ended, or was killed."""
    living, waited_s = left()
    for process in living:
        yield f"still running after {waited_s:.0f} s: {process.name} ({process.pid})"


def lying_about(scene: Scene, private: bool) -> Iterator[str]:
    """What a command that came to its end left beyond what the design keeps. `private`: the shared folders are ours alone."""
    home, store = scene.home, kept(scene.home)
    runs = {row["id"] for row in store["runs"]}
    for path in sorted(home.rglob("*")):
        place, *rest = path.relative_to(home).parts
        fits = {
            "runs.sqlite3": not rest,
            "work": not rest,
            "pools": not rest,
            "builds": not rest or (len(rest) == 1 and bool(BUILDS.fullmatch(rest[0]))),
            "native": not rest or (len(rest) == 1 and bool(NATIVE.fullmatch(rest[0]))),
            "accepted": not rest or (len(rest) == 1 and path.suffix == ".json"),
            "runs": not rest or (rest[0] in runs and (len(rest) == 1 or bool(RUN_FILES.fullmatch(rest[1])))),
        }
        if not fits.get(place, False):
            yield f"left in the state folder: {path.relative_to(home)}"
        elif path.suffix == ".json" and not _is_json(path):
            yield f"half a file: {path.relative_to(home)}"
    yield from (f"left in TMPDIR: {path.name}" for path in scene.scratch.iterdir())
    if private:
        for folder in SHARED:
            yield from (f"left: {path}" for path in folder.iterdir() if not LOCKS.fullmatch(path.name))


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except ValueError:
        return False
    return True


def touched(scene: Scene) -> Iterator[str]:
    now = fingerprint(scene.app)
    for name in sorted(set(now) | set(scene.before)):
        if now.get(name) != scene.before.get(name):
            yield f"the user's repository changed: {name}"


def lost(said: Said, before: Rows, after: Rows) -> Iterator[str]:
    """What was told, or lay in the store, and is not there any more. Verdicts and results may have been made again."""
    stored = {(attempt, candidate, outcome) for attempt, candidate, _, outcome in tried(before)}
    yield from (f"told, but not in the store: {line}" for line in sorted(told(said) - stored))
    for table in ("messages", "attempts"):
        here = {_key(row): row for row in after[table]}
        yield from (f"{table}: {_key(row)} is lost or changed" for row in before[table] if here.get(_key(row)) != row)
    for table in ("runs", "verdicts", "results"):
        here = {_key(row): row for row in after[table]}
        yield from (f"{table}: {_key(row)} is lost" for row in before[table] if _key(row) not in here)
    result = said.object
    if result is not None and "run" in result:
        kept_results = [json.loads(row["result"]) for row in before["results"] if row["run"] == result["run"]]
        if {name: value for name, value in result.items() if name != "files"} not in kept_results:
            yield "a result was printed that is not in the store"


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("id", "run", "attempt", "position", "name") if name in row)


def false_outcomes(command: Command, rows: Rows) -> Iterator[str]:
    """Outcomes in the store that the candidate does not get where nothing disturbs it."""
    names = {text.strip(): name for name, text in CANDIDATES.items()}
    for attempt, candidate, text, outcome in tried(rows):
        name = next((names[known] for known in names if known in text), None)
        wanted = OUTCOMES[name] if name else "correct"
        if outcome != wanted:
            yield f"attempt {attempt + 1}, {candidate} ({name or 'of the rules'}): {outcome} instead of {wanted}"
    for row in rows["verdicts"]:
        outcome = json.loads(row["verdict"])["outcome"]
        if outcome != "correct":
            yield f"the verdict on attempt {row['attempt'] + 1}: {outcome} instead of correct"
    for row in rows["messages"]:
        message = json.loads(row["message"])
        if message["role"] == "tool" and message["ok"] is False:
            yield f"attempt {row['attempt'] + 1}: {message['name']} failed: {message['content'][:200]}"
    for row in rows["attempts"]:
        if row["stop"] != "answered":
            yield f"attempt {row['attempt'] + 1} ended with {row['stop']}"


def wrong_answer(command: Command, said: Said) -> Iterator[str]:
    """How what a command that came to its end said differs from what it says undisturbed, times apart."""
    found = said.object
    if said.code != command.code or found is None:
        yield f"ended with {said.code}, not {command.code}: {(said.out + said.err)[-400:]!r}"
        return
    what = command.name.split()[-1]
    if command.words[0] == "optimize":
        comparisons = ("same", "faster", "unresolved") if command.name == "rules" else ("faster", "unresolved")
        if found["outcome"] != "correct" or found["comparison"] not in comparisons:
            yield f"the result is {found['outcome']}, {found['comparison']}: {found['reason']}"
    elif command.words[0] == "verify":
        if found["outcome"] != OUTCOMES[what]:
            yield f"the verdict is {found['outcome']}, not {OUTCOMES[what]}: {found['reason']}"
    elif command.words[0] == "check":
        failed = [probe for probe in found["probes"] if probe["status"] != "passed"]
        if not found["accepted"] or failed:
            yield f"the task is refused: {found['reasons']} {failed}"
    elif len(found["runs"]["small"]["time_s"]) != 5:
        yield f"bench gave {found['runs']}"


def ungraceful(said: Said, codes: Set[int]) -> Iterator[str]:
    """A command that met a fault ends with one of `codes`, one message and no traceback."""
    if "Traceback" in said.err or "Exception ignored" in said.err:
        yield f"a traceback: {said.err[-1500:]}"
    if said.code not in codes:
        yield f"the disturbed command ended with {said.code}: {(said.out + said.err)[-400:]!r}"
    elif said.code in (3, 130):
        error = (said.object or {}).get("error", {})
        if not all(error.get(name) for name in ("kind", "what", "expected", "try")):
            yield f"no whole message: {said.out[-400:]!r}"
