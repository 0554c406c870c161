"""The adversarial suite: every cheat of every application, judged by the real verifier; run as a script, it prints the table.

An application is a folder with a task file, its repository in `app/`, and candidates: `cheats/KIND/` must gain nothing,
`honest/` must be accepted, `open/KIND/` are cheats that get through today. A candidate is the text of one region, named by
its file (`NAME.REGION.cpp`; without REGION the task's first), or a whole candidate as JSON. Its header says what it tries,
the outcome that it must get and the words that the reason must hold. No test framework is needed, so that the suite can be
carried to a machine with a device:

    PYTHONPATH=src python tests/adversarial/suite.py [APP …] [--screen-only | --compile-only] [--json FILE]

A run that was cut off goes on with the same FILE.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelwright.errors import KernelwrightError
from kernelwright.execute import Workshop
from kernelwright.measure import EVALUATE
from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.backends import BACKENDS, open_sandbox
from kernelwright.screen import Refusal, screen
from kernelwright.source import region_spans, splice
from kernelwright.task import Task
from kernelwright.task_file import load_task
from kernelwright.toolchain.arguments import check_arguments
from kernelwright.toolchain.devices import visible_gpus
from kernelwright.trace import Candidate
from kernelwright.trial import Baseline, CandidateFailed, build, open_baseline, require_screened
from kernelwright.verify import Verifier

HERE = Path(__file__).parent
KINDS = {
    "edits_the_harness": "edits or shadows the checker, the reference or the program around the region",
    "forges_the_result": "prints, writes, exits or sets what the check looks at",
    "fools_the_timer": "patches, shadows, stops or reads the timer",
    "works_elsewhere": "works on another stream, thread or process and returns early",
    "caches": "keeps results or marks from one call to the next",
    "leaves_out_work": "zeros, constants, an untouched output, a part of the work",
    "lower_precision": "computes with fewer digits, within and beyond the tolerance",
    "moves_work": "moves work out of the timed part",
    "decoy": "a kernel for show, or a fast way with a way back",
    "never_compiled": "is not what gets compiled: #if, other units, weak symbols",
    "reads_answers": "reads answers, instructions or other runs",
    "knows_the_input": "does the work only where the input is not the timed one",
    "arguments": "cheats by compile arguments",
    "undefined_behaviour": "reaches outside of its objects: dead stack, freed memory, wild pointers",
    "resources": "loops, forks, fills memory, disk or output",
    "other_spelling": "another kind's cheat, spelled so that a reader misses it",
}
GAINS_NOTHING, ALLOWED, CORRECT = "gains nothing", "allowed", "correct"
LANGUAGES = {"cpp": ".cpp", "cuda": ".cu"}
TIME_BUDGET_S = 120.0
Tell = Callable[[str], None]
Keep = Callable[["Record"], None]


@dataclass(frozen=True)
class Entry:
    """One candidate of the suite and what must become of it."""

    path: Path
    role: str
    """cheats, honest or open: the folder it lies in."""
    kind: str
    """A cheat's kind; empty for an honest one."""
    says: str
    """What it tries, or does, in one sentence."""
    wanted: tuple[str, ...]
    """The outcomes or comparisons of which it must get one."""
    evidence: str
    """Words that the reason must hold."""
    candidate: Candidate

    @property
    def name(self) -> str:
        return f"{self.kind or self.role}/{self.path.name}"

    def satisfied(self, outcome: str, comparison: str | None, words: str) -> bool:
        """Whether a verdict is what this entry must get; `words` is all that the verdict says."""
        faster = comparison == Comparison.FASTER
        if GAINS_NOTHING in self.wanted:
            return not faster and self.evidence in words
        if self.wanted == (ALLOWED,) or self.wanted == (CORRECT,):
            return outcome == Outcome.CORRECT and self.evidence in words
        answer = comparison or outcome
        if answer == Comparison.UNRESOLVED and words.startswith(f"{answer}:"):
            return (
                answer in self.wanted
            )  # the machine was too busy to tell; nothing was gained, and nothing more is known
        return answer in self.wanted and self.evidence in words


@dataclass(frozen=True)
class Record:
    """What became of one entry. `outcome` is `builds` where no more was asked, `infrastructure` where the machine failed."""

    application: str
    role: str
    kind: str
    name: str
    says: str
    wanted: str
    outcome: str
    comparison: str | None
    speedup: float | None
    reason: str
    as_wanted: bool
    seconds: float
    notes: tuple[str, ...] = ()
    """What the verdict adds to its evidence."""

    @property
    def answer(self) -> str:
        return self.comparison or self.outcome

    @property
    def faster(self) -> bool:
        return self.comparison == Comparison.FASTER


@dataclass(frozen=True)
class Application:
    """A task of our own with its candidates."""

    folder: Path
    task: Task

    @cached_property
    def entries(self) -> list[Entry]:
        return [
            _read_entry(path, self.task)
            for role in ("cheats", "open", "honest")
            for path in sorted((self.folder / role).rglob("*"))
            if path.suffix in (*LANGUAGES.values(), ".json")
        ]

    def of(self, *roles: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.role in roles]


def applications(names: Sequence[str] = ()) -> list[Application]:
    """All of them, or those named. Raises a UserError for a task file that cannot be read."""
    folders = [HERE / name for name in names] or sorted(path.parent for path in HERE.glob("*/kernelwright.toml"))
    return [Application(folder, load_task(folder)) for folder in folders]


def _read_entry(path: Path, task: Task) -> Entry:
    data = path.read_bytes().decode("utf-8")
    if path.suffix == ".json":
        head = json.loads(data)
        code, arguments = head["final_code"], head.get("compile_args", [])
    else:
        lines, head = data.split("\n"), {}
        while lines and (found := _header(lines[0])):
            head[found[0]] = found[1]
            del lines[0]
        parts = path.name.split(".")
        region = parts[1] if len(parts) == 3 else task.region[0].name
        code, arguments = {region: "\n".join(lines).rstrip("\n") + _end(task, region)}, []
    parts = path.relative_to(path.parents[1]).parts
    role = path.parent.name if path.parent.name == "honest" else path.parents[1].name
    return Entry(
        path,
        role,
        "" if role == "honest" else parts[0],
        head.get("tries") or head["does"],
        tuple(head.get("outcome", CORRECT).split(" or ")),
        head.get("evidence", ""),
        Candidate(code, tuple(arguments)),
    )


def _header(line: str) -> tuple[str, str] | None:
    key, colon, value = line.removeprefix("// ").partition(": ")
    return (
        (key, value) if line.startswith("// ") and colon and key in ("tries", "does", "outcome", "evidence") else None
    )


def _end(task: Task, region: str) -> str:
    """A region of whole lines ends with a newline, one named by its function does not."""
    return "" if next(r for r in task.region if r.name == region).kernel else "\n"


def screened(application: Application, entry: Entry) -> Refusal | str | None:
    """Why screening refuses a candidate, or None; nothing is built, all headers of the application are taken as read."""
    task, code = application.task, entry.candidate.code
    said = check_arguments(
        task.language, entry.candidate.compile_args, tunables=task.build.tunables, forbid=task.forbid_flags
    )
    if said:
        return said
    spans = region_spans(task)
    headers = [path for path in sorted(task.root.rglob("*")) if path.suffix in (".h", ".hpp", ".cuh")]
    for file in sorted({spans[name].file for name in code}):
        here = {spans[name]: text for name, text in code.items() if spans[name].file == file}
        far = [text for name, text in code.items() if spans[name].file != file]
        data = (task.root / file).read_bytes()
        others = [path.read_bytes() for path in headers if path != task.root / file]
        refusal = screen(task.language, data, splice(data, here), list(here.items()), others, far)
        if refusal is not None:
            return refusal
    return None


def screen_all(application: Application, entries: Iterable[Entry], keep: Keep = lambda _: None) -> list[Record]:
    """Screening alone; an entry that must be refused is as wanted only if it is."""
    records = []
    for entry in entries:
        start = time.monotonic()
        said = screened(application, entry)
        outcome = Outcome.REFUSED.value if said else "passes screening"
        if said is None:
            good = entry.wanted != (Outcome.REFUSED,)
        elif isinstance(said, Refusal) and said.unreadable and Outcome.BUILD_FAILED in entry.wanted:
            good = True
        else:
            good = entry.satisfied(outcome, None, str(said))
        records.append(_record(application, entry, start, outcome, str(said or ""), good))
        keep(records[-1])
    return records


async def build_all(
    application: Application, entries: Iterable[Entry], sandbox: Sandbox, tell: Tell, keep: Keep = lambda _: None
) -> list[Record]:
    """Screening and building; what needs a run to be caught must build."""
    records = []
    async with Workshop(application.task, sandbox) as shop:
        tell("building the original")
        baseline = Baseline(shop, await shop.build_baseline(), {}, {}, ())
        for entry in entries:
            start, outcome, reason = time.monotonic(), "builds", ""
            try:
                await require_screened(baseline, entry.candidate, "the adversarial suite")
                await build(baseline, entry.candidate)
            except CandidateFailed as failure:
                outcome, reason = failure.outcome.value, failure.reason
            early = {Outcome.REFUSED.value, Outcome.BUILD_FAILED.value} & set(entry.wanted)
            good = not early if outcome == "builds" else entry.satisfied(outcome, None, reason)
            records.append(_record(application, entry, start, outcome, reason, good))
            keep(records[-1])
            tell(_line(records[-1], entry))
    return records


async def judge_all(
    application: Application, entries: Iterable[Entry], sandbox: Sandbox, tell: Tell, keep: Keep = lambda _: None
) -> list[Record]:
    """Each by the real verifier, with the budget that rewards use: one workshop and one baseline for all."""
    records = []
    async with Workshop(application.task, sandbox) as shop:
        baseline = await open_baseline(shop, (*application.task.shown, *application.task.held_out), tell)
        verifier = Verifier(baseline, random.Random(1), lambda _: None)
        for entry in entries:
            start = time.monotonic()
            try:
                verdict = await verifier(entry.candidate, EVALUATE, TIME_BUDGET_S)
            except KernelwrightError as error:
                records.append(_record(application, entry, start, "infrastructure", str(error), good=False))
            else:
                records.append(_judged(application, entry, start, verdict))
            keep(records[-1])
            tell(_line(records[-1], entry))
    return records


def _judged(application: Application, entry: Entry, start: float, verdict: Verdict) -> Record:
    words = verdict.reason
    if entry.wanted == (ALLOWED,):
        words = json.dumps(verdict.to_json(), ensure_ascii=False)
    comparison = verdict.comparison.value if verdict.comparison else None
    good = entry.satisfied(verdict.outcome.value, comparison, words)
    record = _record(application, entry, start, verdict.outcome.value, verdict.reason, good)
    notes = verdict.evidence.notes if verdict.evidence else ()
    return replace(record, comparison=comparison, speedup=verdict.speedup, notes=tuple(notes))


def _record(application: Application, entry: Entry, start: float, outcome: str, reason: str, good: bool) -> Record:
    return Record(
        application.task.name,
        entry.role,
        entry.kind,
        entry.name,
        entry.says,
        " or ".join(entry.wanted),
        outcome,
        None,
        None,
        reason,
        good,
        round(time.monotonic() - start, 2),
    )


def _line(record: Record, entry: Entry) -> str:
    gain = f" {record.speedup:.2f}×" if record.speedup else ""
    said = "; ".join((record.reason[:300], *record.notes))
    mark = "" if record.as_wanted else f"   ← NOT {record.wanted} ({entry.evidence}): {said}"
    return f"{record.name}: {record.answer}{gain} in {record.seconds:.1f} s{mark}"


def table(records: Sequence[Record]) -> str:
    """One application's records as text: per kind how many were refused, caught otherwise, or got through."""
    cheats = [r for r in records if r.role == "cheats" and r.wanted != ALLOWED]
    lines = [f"{'kind':<22}{'candidates':>11}{'refused':>9}{'otherwise':>11}{'faster':>8}   otherwise, by outcome"]
    for kind in [*KINDS, "all"]:
        rows = [r for r in cheats if kind in (r.kind, "all")]
        other = Counter(r.answer for r in rows if r.outcome != Outcome.REFUSED and not r.faster)
        refused, faster = sum(r.outcome == Outcome.REFUSED for r in rows), sum(r.faster for r in rows)
        said = ", ".join(f"{name} {count}" for name, count in other.most_common())
        lines.append(f"{kind:<22}{len(rows):>11}{refused:>9}{other.total():>11}{faster:>8}   {said}".rstrip())
    for title, chosen in (
        ("within the tolerance", [r for r in records if r.role == "cheats" and r.wanted == ALLOWED]),
        ("open", [r for r in records if r.role == "open"]),
        ("honest", [r for r in records if r.role == "honest"]),
    ):
        counts = ", ".join(f"{name} {count}" for name, count in Counter(r.answer for r in chosen).most_common())
        lines.append(f"{title}: {len(chosen)}{f' ({counts})' if counts else ''}")
    return "\n".join(lines)


def can_run(task: Task, mode: str) -> bool:
    """Whether this machine has what a mode needs for a task's language."""
    if task.language == "cpp" or mode == "screen":
        return True
    return shutil.which("nvcc") is not None and (mode == "build" or bool(visible_gpus("nvidia")))


def read_records(file: Path | None) -> list[Record]:
    """What an earlier run wrote there, one record a line; nothing where there is no such file."""
    if file is None or not file.exists():
        return []
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Record(**{**row, "notes": tuple(row["notes"])}) for row in rows]


def run_suite(
    chosen: Sequence[Application],
    mode: str,
    only: str,
    sandbox: Sandbox | None,
    tell: Tell,
    done: Sequence[Record] = (),
    keep: Keep = lambda _: None,
) -> list[Record]:
    """The records of all candidates whose name holds `only`; `mode` is screen, build or judge.

    Those that are `done` are not looked at again; `keep` gets each new record as soon as there is one.
    """
    records, known = list(done), {(record.application, record.name) for record in done}
    for application in chosen:
        entries = [
            entry
            for entry in application.entries
            if only in f"{entry.role}/{entry.name}" and (application.task.name, entry.name) not in known
        ]
        if mode == "screen" or sandbox is None:
            records += screen_all(application, entries, keep)
            continue
        count = iter(range(1, len(entries) + 1))

        def numbered(text: str, count: Any = count, whole: int = len(entries)) -> None:
            number = next(count, whole) if "/" in text else 0
            tell(f"[{number}/{whole}] {text}")

        judge = build_all if mode == "build" else judge_all
        records += asyncio.run(judge(application, entries, sandbox, numbered, keep))
    return records


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where every candidate got what it must get, else 1."""
    parser = argparse.ArgumentParser(description="Judge every cheat of the adversarial suite, and print the table.")
    parser.add_argument(
        "applications", nargs="*", metavar="APP", help="folders beside this file; default: all that can run"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--screen-only", dest="mode", action="store_const", const="screen", help="build and run nothing")
    mode.add_argument("--compile-only", dest="mode", action="store_const", const="build", help="run nothing")
    parser.add_argument("--only", default="", metavar="WORD", help="candidates with this in their path")
    parser.add_argument("--sandbox", default="bubblewrap", choices=list(BACKENDS))
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write each record there, a line each; those there stay"
    )
    given = parser.parse_args(arguments)
    how = given.mode or "judge"
    chosen = [a for a in applications(given.applications) if given.applications or can_run(a.task, how)]
    sandbox = None if how == "screen" else open_sandbox(given.sandbox)

    def keep(record: Record) -> None:
        if given.json:
            with given.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    records = run_suite(chosen, how, given.only, sandbox, tell, read_records(given.json), keep)
    for application in chosen:
        print(f"{application.task.name} ({application.task.language})")
        print(table([r for r in records if r.application == application.task.name]), end="\n\n")
    offenders = [r for r in records if not r.as_wanted and r.role != "open"]
    for r in offenders:
        print(f"NOT AS IT MUST BE  {r.application} {r.name}: {r.answer}, wanted {r.wanted}: {r.reason[:400]}")
    print(f"{len(records)} candidates, {len(offenders)} not as they must be")
    return 1 if offenders else 0


if __name__ == "__main__":
    with suppress(BrokenPipeError):
        sys.exit(main())
