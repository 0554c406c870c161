"""The task: what a person writes to say "this region, built and run and timed and checked like that".

The contract of docs/task-file.md as pydantic models, with what their values may be. Nothing here touches a file: reading
task files, and the message that each mistake gets, is `kernelwright.task_file`'s work, finding kernels inside files
`kernelwright.source`'s.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
import warnings
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

TASK_FILE = "kernelwright.toml"
FILE_BYTES = 16 * 2**20
"""The largest task, candidate or patch that is read."""
FLAG_TOKEN = re.compile(r"[A-Za-z0-9_=,.+:-]+")
"""Make starts a shell again, so a flag may hold nothing that a shell would read (docs/task-file.md, "Commands")."""

SECONDS_PER_UNIT = {
    "ns": 1e-9, "nsec": 1e-9, "nanosecond": 1e-9, "nanoseconds": 1e-9,
    "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "μs": 1e-6, "microsecond": 1e-6, "microseconds": 1e-6,
    "ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "min": 60.0, "minutes": 60.0,
}  # fmt: skip
Aggregate = Literal["first", "last", "min", "median", "mean", "sum", "max"]


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("text without NUL characters")
    return text


def _inside(path: str) -> str:
    parts = PurePosixPath(_plain(path)).parts
    if not path or PurePosixPath(path).is_absolute() or ".." in parts:
        raise ValueError("a path inside the repository, relative to its root, without '..'")
    return str(PurePosixPath(path))


def _regex(pattern: str) -> str:
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError(f"a regular expression ({error or 'it is too large'})") from None
    return pattern


def _command(command: str) -> str:
    try:
        words = shlex.split(_plain(command))
    except ValueError as error:
        raise ValueError(f"words as a shell would split them ({error})") from None
    if not words:
        raise ValueError("a command of at least one word")
    return command


def _flag(flag: str) -> str:
    if not FLAG_TOKEN.fullmatch(flag):
        raise ValueError(f"a flag made of {FLAG_TOKEN.pattern} only, one token each")
    return flag


Plain = Annotated[str, AfterValidator(_plain)]
RepoPath = Annotated[str, AfterValidator(_inside)]
Regex = Annotated[str, AfterValidator(_regex)]
Command = Annotated[str, AfterValidator(_command)]
Flag = Annotated[str, AfterValidator(_flag)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\s/+\x00-\x1f][^/+\x00-\x1f]*$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _rel(value: object) -> object:
    """One message for a key that takes a number or a word, where a union would give the first part's alone."""
    if value == "measured" or (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    ):
        return value
    raise ValueError('a number from 0 up, or "measured"')


Relative = Annotated[float | Literal["measured"], BeforeValidator(_rel)]
"""A relative tolerance; `measured` sets it by how far versions of the original lie apart (`kernelwright.tolerance`)."""
Scale = Literal["value", "largest"]
"""What `rel` is relative to: each number itself, or the largest of those that the check compares."""


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Probes(Model):
    """Texts of the author's own for the acceptance test, where the derived ones do not fit the region."""

    null: str | None = None
    constant: str | None = None
    trap: str | None = None


class Region(Model):
    """One contiguous span of one file that may change: by kernel name, by lines, or by markers."""

    name: Name
    file: RepoPath
    kernel: str | None = None
    lines: tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]] | None = None
    """First and last line, counted from 1, both included."""
    markers: tuple[str, str] | None = None
    """Texts of the lines before and after the region; the marker lines themselves stay."""
    expand_macros: tuple[RepoPath, ...] = ()
    probes: Probes = Probes()

    @model_validator(mode="after")
    def _one_span(self) -> Region:
        if sum(span is not None for span in (self.kernel, self.lines, self.markers)) != 1:
            raise ValueError("exactly one of kernel, lines, markers")
        if self.lines and self.lines[0] > self.lines[1]:
            raise ValueError("lines = [first, last] with first <= last")
        return self


class Build(Model):
    command: Command
    configure: Command | None = None
    artifact: RepoPath
    flags: tuple[Flag, ...] = ()
    tunables: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], tuple[int, ...]] = {}
    """The only macros that a candidate may define, with the values it may choose from."""
    arch: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.+-]+$")] | None = None
    timeout_s: Positive = 600.0


class Run(Model):
    name: Name
    role: Literal["shown", "held_out", "reference"] = "shown"
    command: Command
    env: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")], Plain] = {}
    outputs: tuple[RepoPath, ...] = ()
    timeout_s: Positive = 60.0


class RegexReading(Model):
    """Numbers that the program prints: group 1 of every match of `pattern` in its output."""

    source: Literal["regex"]
    pattern: Regex
    unit: str | None = None
    unit_group: int | str | None = None
    aggregate: Aggregate | None = None


class CsvCell(Model):
    """One cell of a CSV file, found by the names of its row and column."""

    file: RepoPath
    skip: Annotated[int, Field(ge=0)] = 0
    header: Annotated[int, Field(ge=1)] = 1
    row: str
    column: str | tuple[str, ...]
    """One name per header row; a name alone where there is one header row."""
    min: float | None = None


class CsvReading(CsvCell):
    source: Literal["csv"]
    unit: str | None = None
    unit_group: None = None
    divide_by: CsvCell | None = None
    aggregate: None = None


class WallReading(Model):
    """The wall time of the whole process, taken outside it."""

    source: Literal["wall"]
    unit: None = None
    unit_group: None = None
    aggregate: None = None


Better = Literal["lower", "higher"]


class RegexTime(RegexReading):
    better: Better = "lower"

    @model_validator(mode="after")
    def _groups(self) -> RegexTime:
        compiled = re.compile(self.pattern)
        if compiled.groups < 1:
            raise ValueError(r"a pattern whose first group is the number, as in 'time: (\S+) ms'")
        if isinstance(self.unit_group, int) and self.unit_group > compiled.groups:
            raise ValueError(f"unit_group within the pattern's {compiled.groups} groups")
        if isinstance(self.unit_group, str) and self.unit_group not in compiled.groupindex:
            raise ValueError(f"unit_group to be a named group of the pattern: {sorted(compiled.groupindex)}")
        return self


class CsvTime(CsvReading):
    better: Better = "lower"


class WallTime(WallReading):
    better: Literal["lower"] = "lower"


Time = Annotated[RegexTime | CsvTime | WallTime, Field(discriminator="source")]


class ExitCodeCheck(Model):
    kind: Literal["exit_code"]
    code: int = 0


class PatternCheck(Model):
    """The program's own word: `require` must match its output, `forbid` must not."""

    kind: Literal["require", "forbid"]
    pattern: Regex


class NumberCheck(Model):
    """Printed numbers compared with the baseline's (`rel`, `abs`), or held between `min` and `max`."""

    kind: Literal["number"]
    source: Literal["regex", "csv"] = "regex"
    pattern: Regex | None = None
    aggregate: Aggregate | None = None
    file: RepoPath | None = None
    skip: Annotated[int, Field(ge=0)] = 0
    header: Annotated[int, Field(ge=1)] = 1
    row: str | None = None
    column: str | tuple[str, ...] | None = None
    rel: Relative | None = None
    abs: Tolerance | None = None
    scale: Scale = "value"
    min: float | None = None
    max: float | None = None

    @model_validator(mode="after")
    def _complete(self) -> NumberCheck:
        if self.source == "regex" and (self.pattern is None or re.compile(self.pattern).groups < 1):
            raise ValueError("a pattern whose first group is the number")
        if self.source == "csv" and (self.file is None or self.row is None or self.column is None):
            raise ValueError("file, row and column")
        return self

    @property
    def compares(self) -> bool:
        """Whether the numbers are compared with the original's, not only held between `min` and `max`."""
        return self.rel is not None or self.abs is not None or (self.min is None and self.max is None)


class FileCheck(Model):
    """An output file compared with the baseline's: equal text, with its numbers within `rel` and `abs`."""

    kind: Literal["file"]
    path: RepoPath
    rel: Relative = 0.0
    abs: Tolerance = 0.0
    scale: Scale = "value"
    dtype: Literal["text", "float32", "float64", "bytes"] = "text"


class RowReference(Model):
    run: str
    row: str


class RowCheck(Model):
    """A row of a table, found by its first word, against a row of another run's table."""

    kind: Literal["row"]
    runs: tuple[str, ...] = ()
    """The runs that it judges, where a run of another size has a reference of its own; all where none is named."""
    file: RepoPath
    row: str
    reference: RowReference
    rel: Relative = 0.0
    abs: Tolerance = 0.0
    scale: Scale = "value"


Check = Annotated[ExitCodeCheck | PatternCheck | NumberCheck | FileCheck | RowCheck, Field(discriminator="kind")]


class Needs(Model):
    gpu: bool = False
    libraries: tuple[str, ...] = ()
    memory_bytes: Annotated[int, Field(gt=0)] = 8 * 2**30
    """What one run may use of the machine's memory."""
    disk_bytes: Annotated[int, Field(gt=0)] = 4 * 2**30
    """What one build or run may write."""


class Floor(Model):
    """What one timed unit cannot do without; a time below it is `suspect`."""

    bytes: Positive | None = None
    distinct_bytes: Positive | None = None
    """The same with each byte counted once: so many can only come from a level of memory that holds them."""
    flops: Positive | None = None


class Verify(Model):
    budget_s: Positive = 300.0
    other_inputs: bool = True
    """Whether inputs are made from the shown run where no held-out run is given."""


class Task(Model):
    """A repository, regions in it, and how to build, run, time and check it."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    language: Literal["cuda", "hip", "cpp"]
    repo: Plain = "."
    workdir: RepoPath = "."
    siblings: tuple[RepoPath, ...] = ()
    hidden: tuple[RepoPath, ...] = ()
    min_effect: Annotated[float, Field(gt=0, lt=1)] = 0.01
    forbid_flags: tuple[str, ...] = ()
    """Compile arguments that this task does not accept, as in `-use_fast_math`."""
    region: Annotated[tuple[Region, ...], Field(min_length=1)]
    build: Build
    run: Annotated[tuple[Run, ...], Field(min_length=1)]
    time: Time
    check: tuple[Check, ...] = ()
    needs: Needs = Needs()
    floor: Floor = Floor()
    verify: Verify = Verify()
    path: Path = Field(default=Path(), exclude=True)
    """Where the task file lies; set by `load_task`."""

    @property
    def root(self) -> Path:
        """The repository's root on this machine."""
        return (self.path.parent / self.repo).resolve()

    @property
    def shown(self) -> tuple[Run, ...]:
        return tuple(run for run in self.run if run.role == "shown")

    @property
    def held_out(self) -> tuple[Run, ...]:
        return tuple(run for run in self.run if run.role == "held_out")

    @property
    def references(self) -> tuple[Run, ...]:
        return tuple(run for run in self.run if run.role == "reference")

    def region_named(self, name: str) -> Region | None:
        return next((region for region in self.region if region.name == name), None)

    @property
    def fingerprint(self) -> str:
        """A hash of the task's content, the repository's files left out."""
        text = json.dumps(self.model_dump(mode="json", by_alias=True), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @model_validator(mode="after")
    def _consistent(self) -> Task:
        _unique("region", [region.name for region in self.region])
        _unique("run", [run.name for run in self.run])
        if not self.shown:
            raise ValueError('at least one run with role = "shown"')
        references = {run.name for run in self.references}
        for check in self.check:
            if isinstance(check, RowCheck) and check.reference.run not in references:
                raise ValueError(
                    f'check.reference.run to be a run with role = "reference", not {check.reference.run!r}'
                )
            judged = {run.name for run in self.run} - references
            if isinstance(check, RowCheck) and (unknown := set(check.runs) - judged):
                raise ValueError(f"check.runs to name runs that are judged, not {min(unknown)!r}")
            path = getattr(check, "path", None)
            if path and not any(path in run.outputs for run in self.run if run.role != "reference"):
                raise ValueError(f"the file {path!r} of a check to be among the outputs of a run")
        return self


def _unique(kind: str, names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"each {kind} to have a name of its own; {', '.join(map(repr, repeated))} stands twice")


def covers(folder: str, path: str) -> bool:
    """Whether the repository path `path` is `folder` or lies below it."""
    return PurePosixPath(path).is_relative_to(PurePosixPath(folder)) or folder == "."
