"""Writing a draft as a task file: TOML with comments that say where each thing was read, and what to look at."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.init.draft import TaskDraft, relative
from kernelwright.init.meaning import MEASURED, CheckDraft
from kernelwright.init.regions import RegionDraft
from kernelwright.init.runs import RunDraft
from kernelwright.init.times import TimeDraft
from kernelwright.init.written import FileDraft

_WIDTH = 110


def quoted(text: str) -> str:
    """`text` as a TOML string, literal where it may be, so that regular expressions stay readable."""
    if "'" not in text and not re.search(r"[\x00-\x1f\x7f]", text) and ("\\" in text or '"' in text):
        return f"'{text}'"
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found.group()):04x}", text) + '"'


def _list(values: Sequence[str]) -> str:
    return "[" + ", ".join(quoted(value) for value in values) + "]"


def _comment(text: str) -> list[str]:
    lines, line = [], "#"
    for word in re.sub(r"[\x00-\x1f\x7f]", " ", text).split():
        if len(line) + len(word) > _WIDTH:
            lines.append(line)
            line = "#"
        line += f" {word}"
    return [*lines, line]


def render(task: TaskDraft, task_file: Path) -> str:
    """The task file's text, for a file at `task_file`; paths that leave its folder are written relative to it."""
    lines = ["# A first task file. Lines with LOOK say what a person should decide.",
             *(line for note in task.notes for line in _comment(f"LOOK: {note}"))]  # fmt: skip
    if task.proven:
        lines += _comment(f"The unmodified program was built and run: {task.proven}.")
    lines += ["schema = 1", f"name = {quoted(task.name)}", f"language = {quoted(task.language)}",
              f"repo = {quoted(relative(task.root, task_file.resolve().parent))}"]  # fmt: skip
    lines.append(f"workdir = {quoted(task.workdir)}  # the folder of {task.building.source}")
    if task.siblings:
        lines.append(f"siblings = {_list(task.siblings)}  # named by the build, the sources or the run")
    for region in task.regions:
        lines += _region(region, region.file or task.file)
    lines += _build(task)
    for run in task.building.runs or (RunDraft("first", f"./{task.building.artifact}", note="a guess"),):
        lines += _run(run, task)
    lines += _time(task.time, task.other_times)
    lines += ["", "[[check]]", 'kind = "exit_code"  # proves little by itself']
    for check in task.checks:
        lines += _check(check)
    for file in task.files:
        lines += _file(file, task)
    lines += _needs(task)
    return "\n".join(lines) + "\n"


def _region(region: RegionDraft, file: str) -> list[str]:
    lines = ["", "[[region]]", f"name = {quoted(re.sub(r'[/+]', ' ', region.name))}", f"file = {quoted(file)}"]
    if region.kernel is not None:
        lines.append(f"kernel = {quoted(region.kernel)}")
    elif region.lines is not None:
        lines.append(f"lines = [{region.lines[0]}, {region.lines[1]}]")
    return [*lines[:2], *(_comment(f"LOOK: {region.note}.") if region.note else []), *lines[2:]]


def _build(task: TaskDraft) -> list[str]:
    building = task.building
    artifact = os.path.normpath(f"{task.workdir}/{building.artifact}")
    lines = ["", "[build]", *(line for note in building.notes for line in _comment(note))]
    if building.configure:
        lines.append(f"configure = {quoted(building.configure)}")
    lines += [f"command = {quoted(building.command)}", f"artifact = {quoted(artifact)}"]
    if task.flags:
        lines.append(f"flags = {_list(task.flags)}  # without which it prints nothing to check it by")
    return lines


def _run(run: RunDraft, task: TaskDraft) -> list[str]:
    lines = ["", "[[run]]", f"name = {quoted(run.name)}"]
    if run.role != "shown":
        lines.append(f"role = {quoted(run.role)}  # never shown to a candidate")
    lines.append(f"command = {quoted(run.command)}")
    env: Mapping[str, str] = run.env
    if task.building.openmp and "OMP_NUM_THREADS" not in env:
        env = {**env, "OMP_NUM_THREADS": str(min(os.cpu_count() or 1, 16))}
    if env:
        lines.append("env = { " + ", ".join(f"{name} = {quoted(value)}" for name, value in env.items()) + " }")
    if outputs := [task.inside(file.path) for file in task.files if file.active and file.path is not None]:
        lines.append(f"outputs = {_list(outputs)}  # deleted before each run")
    lines.append(f"timeout_s = {task.timeout_s:g}")
    notes = [f"LOOK: {run.note}."] if run.note else []
    if run.role == "shown":
        notes.append("Best are arguments with which it runs for 0.1 to 2 seconds.")
    body = [lines[1], *(line for note in notes for line in _comment(note)), *lines[2:]]
    return ["", *(body if run.active else [f"# {line}" for line in body])]


def _time(time: TimeDraft | None, others: Sequence[TimeDraft]) -> list[str]:
    lines = ["", "[time]"]
    if time is None:
        lines += _comment(
            "LOOK: the wall time of the whole process; a time of the region alone, printed by it, is better."
        )
        return [*lines, 'source = "wall"']
    lines += _comment(f"Printed at {time.where}.")
    if not time.unit_known:
        lines += _comment("LOOK: no unit is printed; only the absolute numbers depend on it.")
    lines += _reading(time)
    for other in others:
        lines += ["#", *_comment(f"or, printed at {other.where}:"), *(f"# {line}" for line in _reading(other))]
    return lines


def _reading(time: TimeDraft) -> list[str]:
    lines = ['source = "regex"', f"pattern = {quoted(time.pattern)}"]
    if time.better == "higher":
        lines.append('better = "higher"  # a rate')
    elif time.unit:
        lines.append(f"unit = {quoted(time.unit)}")
    return [*lines, f"aggregate = {quoted(time.aggregate)}"]


def _check(check: CheckDraft) -> list[str]:
    lines = ["[[check]]", f"kind = {quoted(check.kind)}", f"pattern = {quoted(check.pattern)}"]
    for name, value in (("rel", check.rel), ("abs", check.abs), ("max", check.max)):
        if value is not None:
            lines.append(f"{name} = {quoted(value) if isinstance(value, str) else repr(float(value))}")
    if check.aggregate:
        lines.append(f"aggregate = {quoted(check.aggregate)}")
    note = _comment(f"{check.where}: {check.note}." if check.note else f"{check.where}.")
    body = [lines[0], *note, *lines[1:]]
    if check.active:
        return ["", *body]
    return [
        "",
        "# LOOK: left out, because it is not sure:",
        *(line if line.startswith("#") else f"# {line}" for line in body),
    ]


def _file(file: FileDraft, task: TaskDraft) -> list[str]:
    if file.path is None:
        return []
    body = ["[[check]]", *_comment(f"Written at {file.where}{f'; {file.note}' if file.note else ''}."), 'kind = "file"',
            f"path = {quoted(task.inside(file.path))}", f"rel = {quoted(MEASURED)}"]  # fmt: skip
    if file.dtype != "text":
        body.append(f"dtype = {quoted(file.dtype)}")
    if file.active:
        return ["", *body]
    note = "# LOOK: left out, because the program tells by itself whether its result is right; so does a comparison of:"
    return ["", note, *(line if line.startswith("#") else f"# {line}" for line in body)]


def _needs(task: TaskDraft) -> list[str]:
    lines = ["", "[needs]", f"gpu = {'false' if task.language == 'cpp' else 'true'}"]
    if task.libraries:
        lines.append(f"libraries = {_list(task.libraries)}")
    return lines
