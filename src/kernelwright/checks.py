"""Read numbers from what a run printed and wrote, and evaluate a task's checks on it.

All of this happens outside the process that is judged. A number that is not there is a reason (`Unreadable`), never a
default; a NaN equals only a NaN in the same place of the baseline.
"""

from __future__ import annotations

import array
import csv
import io
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelwright import patterns
from kernelwright.outcome import CheckResult
from kernelwright.sandbox import JobResult, Limits
from kernelwright.task import (
    SECONDS_PER_UNIT,
    Aggregate,
    Check,
    CsvCell,
    CsvReading,
    CsvTime,
    ExitCodeCheck,
    FileCheck,
    NumberCheck,
    PatternCheck,
    RegexTime,
    RowCheck,
    Run,
    Scale,
    Task,
)
from kernelwright.tolerance import Numbers, Variation, exact
from kernelwright.toolchain.kernel_time import KernelTime

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)


LINE_CHARS = 16 * 2**20
"""The longest line of an output file that is read."""
SHOWN_CHARS = 160


class Unreadable(Exception):
    """A number that a task asks for is not in what the run left; the message says what was looked for."""


@dataclass(frozen=True)
class RunResult:
    """What one run left: its job's result, and the bytes of the files that the task names (None where absent)."""

    run: str
    job: JobResult
    files: Mapping[str, bytes | None]
    kernels: Sequence[KernelTime] | None = None
    """What the device spent in each kernel, where it could be had."""

    @property
    def text(self) -> str:
        """stdout, then stderr, as far as they were kept."""
        return self.job.stdout.decode(errors="replace") + self.job.stderr.decode(errors="replace")

    @property
    def whole_text(self) -> str:
        """The same, to be judged by. Raises Unreadable where a part was not kept: what was lost may say FAIL."""
        kept = Limits().output_bytes
        if max(len(self.job.stdout), len(self.job.stderr)) >= kept:
            raise Unreadable(
                f"run {self.run!r} printed more than the {kept >> 20} MiB that are kept, so nothing is read of it"
            )
        return self.text


def files_of(task: Task, run: Run) -> tuple[str, ...]:
    """Every file that a run may leave and that outputs, time or checks read: deleted before, collected after."""
    named = list(run.outputs)
    if isinstance(task.time, CsvTime):
        named += [task.time.file, *([task.time.divide_by.file] if task.time.divide_by else [])]
    named += [check.file for check in task.check if isinstance(check, NumberCheck | RowCheck) and check.file]
    return tuple(dict.fromkeys(named))


def read_time(task: Task, result: RunResult) -> float:
    """The run's time in seconds. For a rate (`better = "higher"`) its reciprocal, in units of its own: ratios of two
    such times are speedups, a single one is not a time. Raises Unreadable."""
    time = task.time
    if isinstance(time, RegexTime):
        value = _regex_time(time, result.whole_text)
    elif isinstance(time, CsvTime):
        value = _csv_time(time, result.files)
    else:
        return result.job.wall_s
    read = value
    if time.better == "higher" and value:
        value = 1 / value
    if not math.isfinite(value) or value <= 0:
        raise Unreadable(f"the time read is {read:g}, which is no time")
    return value


def _regex_time(time: RegexTime, text: str) -> float:
    found = _matches(time.pattern, text, (1, 1 if time.unit_group is None else time.unit_group))
    if not found:
        raise Unreadable(f"no line of the output matches the time's pattern {time.pattern!r}; {_ending(text)}")
    values = []
    for number, group in found:
        unit = time.unit if time.unit_group is None else group
        if time.unit_group is not None and unit is None:
            raise Unreadable(
                f"the time's pattern {time.pattern!r} matches without its group {time.unit_group!r}, the unit"
            )
        values.append(_number(number) * _seconds(unit, time.better))
    return combine(values, time.aggregate, f"the time's pattern {time.pattern!r}")


def _matches(pattern: str, text: str, groups: Sequence[int | str]) -> list[list[str | None]]:
    try:
        return patterns.all_matches(pattern, text, groups)
    except patterns.GivenUp as reason:
        raise Unreadable(f"the pattern {pattern!r} was given up: {reason}") from None


def _seconds(unit: str | None, better: str) -> float:
    if unit is None or better == "higher":
        return 1.0
    known = SECONDS_PER_UNIT.get(unit.strip().strip("()[]").lower())
    if known is None:
        raise Unreadable(f"the unit {unit!r} is none of {', '.join(sorted(SECONDS_PER_UNIT))}")
    return known


def _csv_time(time: CsvTime, files: Mapping[str, bytes | None]) -> float:
    value = read_cell(time, files) * _seconds(time.unit, time.better)
    if time.divide_by is None:
        return value
    divisor = read_cell(time.divide_by, files)
    if divisor == 0:
        raise Unreadable(f"the number to divide by, row {time.divide_by.row!r}, is 0")
    return value / divisor


def combine(values: Sequence[float], aggregate: Aggregate | None, what: str) -> float:
    """One number of several; several without a stated aggregate are Unreadable, since any choice would be a guess."""
    if aggregate is None and len(values) > 1:
        raise Unreadable(
            f"{what} matches {len(values)} times; say which with aggregate = first, last, min, median, mean, sum or max"
        )
    try:
        return AGGREGATES[aggregate or "first"](values)
    except (OverflowError, ValueError) as error:  # fsum of 1e308 twice, or of inf and -inf
        raise Unreadable(f"{what}: the {aggregate} of its {len(values)} numbers does not exist ({error})") from None


AGGREGATES: dict[Aggregate, Callable[[Sequence[float]], float]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "min": min,
    "max": max,
    "median": statistics.median,
    "mean": statistics.fmean,
    "sum": math.fsum,
}


def _number(text: str | None) -> float:
    """`text` is None where the group of a pattern took no part in its match."""
    if text is None:
        raise Unreadable("the pattern matches without its first group, which is the number")
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise Unreadable(f"{text[:SHOWN_CHARS]!r} was found where a number was expected") from None


def read_cell(cell: CsvCell | CsvReading, files: Mapping[str, bytes | None]) -> float:
    """One number of a CSV file. Raises Unreadable where it is not there, or below `min`."""
    value = _number(_cell(cell, files))
    if cell.min is not None and value < cell.min:
        raise Unreadable(f"{cell.file}, row {cell.row!r}: {value:g} is below the least sensible value {cell.min:g}")
    return value


def _cell(cell: CsvCell | CsvReading, files: Mapping[str, bytes | None]) -> str:
    data = files.get(cell.file)
    if data is None:
        raise Unreadable(f"the run left no file {cell.file!r}")
    wanted = (cell.column,) if isinstance(cell.column, str) else tuple(cell.column)
    rows = ([item.strip() for item in row] for row in csv.reader(_lines(data, cell.file)))
    try:
        columns = _columns(list(itertools.islice(rows, cell.skip, cell.skip + cell.header)), wanted)
        if not columns:
            raise Unreadable(f"{cell.file} has no column {' / '.join(wanted)!r}")
        row = next((row for row in rows if row and row[0] == cell.row), None)
    except csv.Error as error:
        raise Unreadable(f"{cell.file} is no CSV file: {error}") from None
    if row is None or len(row) <= columns[0]:
        raise Unreadable(f"{cell.file} has no row {cell.row!r} with a value under {' / '.join(wanted)!r}")
    return row[columns[0]]


def _lines(data: bytes, file: str) -> Iterator[str]:
    """The lines of an output file one by one: a list of them all could be thirty times as large as the file."""
    for line in io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace", newline=""):
        if len(line) > LINE_CHARS:
            raise Unreadable(f"{file} has a line of more than {LINE_CHARS:,} characters")
        yield line


def _columns(header: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[int]:
    """Columns whose names in the last header rows are the wanted ones; with two rows, variant and tuning."""
    named = list(zip(header[-len(wanted) :], wanted, strict=True)) if len(header) >= len(wanted) else []
    width = max(map(len, header), default=0)
    return [at for at in range(width) if named and all(at < len(row) and row[at] == name for row, name in named)]


def evaluate(
    task: Task,
    run: Run,
    result: RunResult,
    base: RunResult | None,
    references: Mapping[str, RunResult],
    measured: Mapping[int, Variation] | None = None,
) -> list[CheckResult]:
    """Every check of the task on one run. `base` is the same run of the original, None when the original itself is
    judged (then comparisons with it are left out); `references` are the runs with role `reference`; `measured` holds, by
    the check's place in the task, what `rel = "measured"` allows in this run (without it only equal numbers pass)."""
    return list(_evaluate(task, run, result, base, references, measured or {}))


def _evaluate(
    task: Task,
    run: Run,
    result: RunResult,
    base: RunResult | None,
    references: Mapping[str, RunResult],
    measured: Mapping[int, Variation],
) -> Iterator[CheckResult]:
    for at, check in enumerate(task.check):
        judge = _judge(check, result, base, references, measured.get(at))
        if not _reaches(check, run):
            continue
        name = check.kind if not isinstance(check, PatternCheck) else f"{check.kind} {check.pattern!r}"
        try:
            passed, detail = judge()
        except Unreadable as reason:
            passed, detail = False, str(reason)
        yield CheckResult(name, run.name, passed, detail)


def _reaches(check: Check, run: Run) -> bool:
    """Whether a check says anything of a run."""
    if isinstance(check, FileCheck):
        return check.path in run.outputs
    return not (isinstance(check, RowCheck) and check.runs and run.name not in check.runs)


_Judge = Callable[[], tuple[bool, str]]


def _judge(
    check: Check,
    result: RunResult,
    base: RunResult | None,
    references: Mapping[str, RunResult],
    measured: Variation | None,
) -> _Judge:
    if isinstance(check, ExitCodeCheck):
        return _exit_code(check, result)
    if isinstance(check, PatternCheck):
        return _pattern(check, result)
    if isinstance(check, NumberCheck):
        return _number_check(check, result, base, measured)
    if isinstance(check, FileCheck):
        return _file(check, result, base, measured)
    return _row(check, result, base, references, measured)


def _exit_code(check: ExitCodeCheck, result: RunResult) -> _Judge:
    return lambda: (result.job.exit_code == check.code, f"exit code {result.job.exit_code}, expected {check.code}")


def _pattern(check: PatternCheck, result: RunResult) -> _Judge:
    def judge() -> tuple[bool, str]:
        text = result.whole_text
        try:
            found = patterns.first_match(check.pattern, text)
        except patterns.GivenUp as reason:
            raise Unreadable(f"the pattern was given up: {reason}") from None
        said = f"printed {found[:SHOWN_CHARS]!r}" if found is not None else f"not printed; {_ending(text)}"
        return (found is not None) == (check.kind == "require"), said

    return judge


def _number_check(check: NumberCheck, result: RunResult, base: RunResult | None, measured: Variation | None) -> _Judge:
    def judge() -> tuple[bool, str]:
        values = _numbers(check, result)
        low, high = check.min, check.max
        for value in values:
            if (low is not None and not value >= low) or (high is not None and not value <= high):
                return (
                    False,
                    f"{value:g} is outside {low if low is not None else '-∞'} … {high if high is not None else '∞'}",
                )
        if base is None or not check.compares:
            return True, f"{len(values)} number(s) read"
        return _compare(check, values, _numbers(check, base), measured)

    return judge


def _numbers(check: NumberCheck, result: RunResult) -> list[float]:
    values = [_number(printed) for printed in _printed(check, result)]
    return [combine(values, check.aggregate, check.pattern or "")] if check.aggregate else values


def _printed(check: NumberCheck, result: RunResult) -> list[str | None]:
    if check.source == "csv":
        assert check.file is not None
        assert check.row is not None
        assert check.column is not None
        cell = CsvCell(file=check.file, skip=check.skip, header=check.header, row=check.row, column=check.column)
        return [_cell(cell, result.files)]
    assert check.pattern is not None
    text = result.whole_text
    found = [number for (number,) in _matches(check.pattern, text, (1,))]
    if not found:
        raise Unreadable(f"no line of the output matches {check.pattern!r}; {_ending(text)}")
    return found


def numbers_of(check: Check, run: Run, result: RunResult) -> Numbers | None:
    """What a check reads of one run to compare it; None where it compares no numbers of this run. Raises Unreadable."""
    if not _reaches(check, run):
        return None
    if isinstance(check, NumberCheck) and check.compares:
        printed = [text or "" for text in _printed(check, result)]
        return Numbers(_numbers(check, result), printed, check.aggregate)
    if isinstance(check, FileCheck) and check.dtype != "bytes":
        return _numbers_of_file(check, result)
    if isinstance(check, RowCheck):
        return _numbers_of_row(result, check.file, check.row)
    return None


def goal_of(check: Check, run: Run, base: RunResult, references: Mapping[str, RunResult]) -> Numbers | None:
    """What a check compares the numbers of one run with; None as `numbers_of`. Raises Unreadable."""
    if isinstance(check, RowCheck) and _reaches(check, run):
        return _numbers_of_row(references[check.reference.run], check.file, check.reference.row)
    return numbers_of(check, run, base)


def _numbers_of_file(check: FileCheck, result: RunResult) -> Numbers:
    data = result.files.get(check.path)
    if data is None:
        raise Unreadable(f"the run left no file {check.path!r}")
    if check.dtype != "text":
        return Numbers(_floats(data, check.dtype))
    printed = [number for words in _whole_words(data, check.path) for number in NUMBER.findall(words)]
    return Numbers(array.array("d", map(float, printed)), printed)


def _numbers_of_row(result: RunResult, file: str, row: str) -> Numbers:
    printed = _table_row(result, file, row)
    return Numbers([float(number) for number in printed], printed)


def _file(check: FileCheck, result: RunResult, base: RunResult | None, measured: Variation | None) -> _Judge:
    def judge() -> tuple[bool, str]:
        data = result.files.get(check.path)
        if data is None:
            raise Unreadable(f"the run left no file {check.path!r}")
        if base is None:
            return True, f"{len(data)} bytes written"
        wanted = base.files.get(check.path)
        if wanted is None:
            raise Unreadable(f"the original left no file {check.path!r}")
        if data == wanted:
            return True, f"{len(data)} bytes, equal to the original's"
        if check.dtype == "bytes":
            return False, f"{len(data)} bytes differ from the original's {len(wanted)}"
        if check.dtype == "text":
            return _compare_text(check, data, wanted, measured)
        return _compare(check, _floats(data, check.dtype), _floats(wanted, check.dtype), measured)

    return judge


def _floats(data: bytes, dtype: str) -> Sequence[float]:
    values = array.array("f" if dtype == "float32" else "d")
    if len(data) % values.itemsize:
        raise Unreadable(f"{len(data)} bytes are no whole number of {dtype} values")
    values.frombytes(data)
    return values


def _compare_text(check: FileCheck, data: bytes, wanted: bytes, measured: Variation | None) -> tuple[bool, str]:
    left, right = array.array("d"), array.array("d")
    for ours, theirs in itertools.zip_longest(_words(data, check.path, left), _words(wanted, check.path, right)):
        if ours != theirs:
            return False, "the text around the numbers differs from the original's"
    return _compare(check, left, right, measured)


def _words(data: bytes, file: str, numbers: array.array[float]) -> Iterator[str]:
    """The words of a text with `#` for each number in them; the numbers go into `numbers`."""
    for words in _whole_words(data, file):
        numbers.extend(map(float, NUMBER.findall(words)))
        yield from NUMBER.sub("#", words).split()


def _whole_words(data: bytes, file: str) -> Iterator[str]:
    """A text in pieces that end between words."""
    stream, begun = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="replace"), ""
    while piece := stream.read(2**20):
        if piece[-1].isspace():
            yield begun + piece
            begun = ""
            continue
        *head, begun = (begun + piece).rsplit(None, 1)
        yield from head
        if len(begun) > LINE_CHARS:
            raise Unreadable(f"{file} has a word of more than {LINE_CHARS:,} characters")
    yield begun


def _row(
    check: RowCheck,
    result: RunResult,
    base: RunResult | None,
    references: Mapping[str, RunResult],
    measured: Variation | None,
) -> _Judge:
    def judge() -> tuple[bool, str]:
        reference = references.get(check.reference.run)
        if reference is None:
            raise Unreadable(f"there is no result of the reference run {check.reference.run!r}")
        values = _numbers_of_row(result, check.file, check.row).values
        if base is None and check.rel == "measured":
            return True, f"{len(values)} number(s) read"
        return _compare(check, values, _numbers_of_row(reference, check.file, check.reference.row).values, measured)

    return judge


def _table_row(result: RunResult, file: str, row: str) -> list[str]:
    data = result.files.get(file)
    if data is None:
        raise Unreadable(f"the run {result.run!r} left no file {file!r}")
    for line in _lines(data, file):
        words = line.replace(",", " ").split()
        if words and words[0] == row:
            numbers = [word for word in words[1:] if NUMBER.fullmatch(word)]
            if numbers:
                return numbers
    raise Unreadable(f"{file} of the run {result.run!r} has no row {row!r} with a number")


def _compare(
    check: NumberCheck | FileCheck | RowCheck,
    values: Sequence[float],
    wanted: Sequence[float],
    measured: Variation | None,
) -> tuple[bool, str]:
    if check.rel == "measured":
        return compare_numbers(values, wanted, 0.0, check.abs or 0.0, measured=measured or exact(len(wanted)))
    return compare_numbers(values, wanted, check.rel or 0.0, check.abs or 0.0, scale=check.scale)


def compare_numbers(
    values: Sequence[float],
    wanted: Sequence[float],
    rel: float,
    absolute: float,
    *,
    scale: Scale = "value",
    measured: Variation | None = None,
) -> tuple[bool, str]:
    """Whether each value lies within `absolute` + `rel` × |wanted| of the original's (the largest |wanted| by `scale`), what
    was `measured` for it added; the detail names the worst."""
    if len(values) != len(wanted):
        return False, f"{len(values)} numbers, the original gave {len(wanted)}"
    largest = max((abs(goal) for goal in wanted if math.isfinite(goal)), default=0.0) if scale == "largest" else None
    worst, at, failed = 0.0, 0, 0
    for index, (value, goal) in enumerate(zip(values, wanted, strict=True)):
        if value == goal or (math.isnan(value) and math.isnan(goal)):
            continue
        error = abs(value - goal)
        bound = absolute + rel * (abs(goal) if largest is None else largest)
        bound += measured.allowed[index] if measured is not None else 0.0
        if not (math.isfinite(error) and error <= bound):
            failed += 1
        size = error / abs(goal) if goal and math.isfinite(error) else math.inf
        if not size <= worst:
            worst, at = size, index
    limits = str(measured) if measured is not None else f"rel {rel:g}"
    limits += " of the largest" if largest is not None else ""
    if failed:
        return False, (
            f"{failed} of {len(values)} numbers differ from the original's by more than {limits}, "
            f"abs {absolute:g}; the worst is {values[at]:.15g} instead of {wanted[at]:.15g}"
        )
    return True, f"{len(values)} numbers within {limits}, abs {absolute:g}; largest relative difference {worst:.2g}"


def _ending(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"the output ends with {lines[-1][:SHOWN_CHARS]!r}" if lines else "nothing was printed"
