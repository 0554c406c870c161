"""Reading task files: what a stranger wrote becomes a `Task`, or one message about the first mistake in it.

Each message names the file, the key, what was expected and what to try. That the repository and its paths are there is
asked here; what is in them is `kernelwright.source`'s to find.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from kernelwright.errors import TaskError, UserError
from kernelwright.task import (
    FILE_BYTES,
    TASK_FILE,
    Build,
    CsvCell,
    CsvTime,
    ExitCodeCheck,
    FileCheck,
    Floor,
    Model,
    Needs,
    NumberCheck,
    PatternCheck,
    Probes,
    RegexTime,
    Region,
    RowCheck,
    RowReference,
    Run,
    Task,
    Verify,
    WallTime,
    covers,
)


def load_task(where: str | Path) -> Task:
    """Read a task file, or the `kernelwright.toml` of a folder.

    Raises TaskError with one message for the first mistake found, be it of the file system, of TOML or of the contract.
    """
    path = Path(where)
    if path.is_dir():
        path = path / TASK_FILE
    text = read_text(path, "task", TaskError, f"a TOML file, or a folder with {TASK_FILE}",
                     "kernelwright init, which writes a first one")  # fmt: skip
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{path} is not TOML: {error}", "TOML", "quote regular expressions with '…'") from None
    try:
        task = Task.model_validate({**data, "path": path.resolve()})
    except ValidationError as error:
        raise _first_mistake(path, error) from None
    try:
        _check_paths(task)
    except (OSError, RuntimeError) as error:  # a name that is too long, a folder that may not be read, a loop of links
        raise TaskError(f"{path}: a path in it cannot be looked up: {error}", "paths that can be read",
                        "shorter names, and ls -l on each of them") from None  # fmt: skip
    return task


def read_bytes(path: Path, thing: str, mistake: type[UserError], expected: str, try_: str) -> bytes:
    """The content of a file that a user named, of at most `FILE_BYTES`; raises `mistake` where there is none to be had."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except FileNotFoundError:
        raise mistake(f"there is no {thing} file {path}", expected, try_) from None
    except OSError as error:
        raise mistake(f"{path} cannot be read: {error.strerror}", expected, try_) from None
    if len(data) > FILE_BYTES:
        raise mistake(f"{path} has more than {FILE_BYTES // 2**20} MiB", expected, try_)
    return data


def read_text(path: Path, thing: str, mistake: type[UserError], expected: str, try_: str) -> str:
    """As `read_bytes`, and it must be UTF-8."""
    try:
        return read_bytes(path, thing, mistake, expected, try_).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise mistake(f"{path} is not UTF-8 text (byte {error.start})", expected, try_) from None


def _first_mistake(path: Path, error: ValidationError) -> TaskError:
    mistakes = error.errors(include_url=False)
    # A misspelt key is both unknown and missing; only the first says what happened.
    first = next((mistake for mistake in mistakes if mistake["type"] == "extra_forbidden"), mistakes[0])
    tags = {"regex", "csv", "wall", "exit_code", "require", "forbid", "number", "file", "row"}
    where: list[str] = []
    for part in first["loc"]:
        if isinstance(part, int):
            where[-1:] = [f"{where[-1]}[{part}]"] if where else [f"[{part}]"]
        elif not (part in tags and where and (where[-1].startswith("check[") or where[-1] == "time")):
            where.append(str(part))
    key = ".".join(where)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = _known_keys(first["loc"])
        near = difflib.get_close_matches(str(first["loc"][-1]), known, 1)
        return TaskError(f"{path}: unknown key {key!r}", f"one of {', '.join(known)}" if known else "a key of task files",
                         f"{near[0]!r}" if near else "see docs/task-file.md")  # fmt: skip
    if first["type"] == "missing":
        return TaskError(f"{path}: the key {key!r} is missing", "it to be given", "see docs/task-file.md")
    given = "" if isinstance(first["input"], dict) else f" = {_shown(first['input'])}"
    return TaskError(f"{path}: {key or 'the task'}{given} does not fit", message[:1].lower() + message[1:],
                     "see docs/task-file.md")  # fmt: skip


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"


SHOWN_CHARS = 200
"""What a message repeats of a value that does not fit."""
_TABLES: dict[str, type[Model]] = {
    "region": Region, "probes": Probes, "build": Build, "run": Run, "needs": Needs, "floor": Floor, "verify": Verify,
    "regex": RegexTime, "csv": CsvTime, "wall": WallTime, "divide_by": CsvCell, "number": NumberCheck,
    "require": PatternCheck, "forbid": PatternCheck, "exit_code": ExitCodeCheck, "row": RowCheck,
    "reference": RowReference, "file": FileCheck,
}  # fmt: skip


def _known_keys(loc: tuple[int | str, ...]) -> list[str]:
    table = next((_TABLES[part] for part in reversed(loc[:-1]) if isinstance(part, str) and part in _TABLES), Task)
    return [field.alias or name for name, field in table.model_fields.items() if name != "path"]


def _check_paths(task: Task) -> None:
    root = task.root
    if not root.is_dir():
        raise TaskError(f"{task.path}: repo = {task.repo!r} is not a folder ({root})",
                        "the repository's root, relative to the task file",
                        'repo = "." where the task file lies in it')  # fmt: skip
    for key, paths in (("workdir", (task.workdir,)), ("siblings", task.siblings), ("hidden", task.hidden)):
        for path in paths:
            if not (root / path).exists():
                raise TaskError(f"{task.path}: {key} names {path!r}, which is not in {root}", "a path that exists",
                                _nearest(root, path))  # fmt: skip
    for region in task.region:
        _check_plain_file(task, region)
        if not (root / region.file).is_file():
            raise TaskError(f"{task.path}: region {region.name!r} names the file {region.file!r}, which is not in {root}",
                            "a file that exists", _nearest(root, region.file))  # fmt: skip
        if not any(covers(folder, region.file) for folder in (task.workdir, *task.siblings)):
            raise TaskError(f"{task.path}: region {region.name!r} lies in {region.file!r}, outside workdir and siblings",
                            "the region inside a folder that the build copies",
                            f"siblings = [{str(PurePosixPath(region.file).parent)!r}]")  # fmt: skip


def _check_plain_file(task: Task, region: Region) -> None:
    """A region behind a symbolic link would be spliced into the file that the link leads to, which no copy holds."""
    real = (task.root / region.file).resolve()
    if real == task.root / region.file:
        return
    inside = real.is_relative_to(task.root)
    raise TaskError(
        f"{task.path}: region {region.name!r} names {region.file!r}, which is a link to {real}",
        "the file itself",
        f"file = {str(real.relative_to(task.root))!r}" if inside else f"a repo that holds {real}",
    )


def _nearest(root: Path, path: str) -> str:
    parent = (root / path).parent
    while not parent.is_dir():
        parent = parent.parent
    near = difflib.get_close_matches(PurePosixPath(path).name, sorted(p.name for p in parent.iterdir()), 3, 0.5)
    return f"one of {', '.join(near)}" if near else "check the spelling; paths are relative to the repository's root"
