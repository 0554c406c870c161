"""Read numbers from what a run printed and wrote, and evaluate a task's checks on it.

All of this happens outside the process that is judged. A number that is not there is a reason (`Unreadable`), never a
default; a NaN equals only a NaN in the same place of the baseline.
"""

from __future__ import annotations

import array
import csv
import io
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    Task,
)
from kernelwright.toolchain.kernel_time import KernelTime

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE)


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
    if not math.isfinite(value) or value <= 0:
        raise Unreadable(f"the time read is {value:g}, which is no time")
    return 1 / value if time.better == "higher" else value


def _regex_time(time: RegexTime, text: str) -> float:
    found = list(re.finditer(time.pattern, text, re.MULTILINE))
    if not found:
        raise Unreadable(f"no line of the output matches the time's pattern {time.pattern!r}; {_ending(text)}")
    values = []
    for match in found:
        unit = match.group(time.unit_group) if time.unit_group is not None else time.unit
        values.append(_number(match.group(1)) * _seconds(unit, time.better))
    return combine(values, time.aggregate, f"the time's pattern {time.pattern!r}")


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
        raise Unreadable(f"{text!r} was found where a number was expected") from None


def read_cell(cell: CsvCell | CsvReading, files: Mapping[str, bytes | None]) -> float:
    """One number of a CSV file. Raises Unreadable where it is not there, or below `min`."""
    data = files.get(cell.file)
    if data is None:
        raise Unreadable(f"the run left no file {cell.file!r}")
    try:
        rows = [[item.strip() for item in row] for row in csv.reader(io.StringIO(data.decode(errors="replace")))]
    except csv.Error as error:
        raise Unreadable(f"{cell.file} is no CSV file: {error}") from None
    rows = rows[cell.skip :]
    wanted = (cell.column,) if isinstance(cell.column, str) else tuple(cell.column)
    columns = _columns(rows[: cell.header], wanted)
    if not columns:
        raise Unreadable(f"{cell.file} has no column {' / '.join(wanted)!r}")
    row = next((row for row in rows[cell.header :] if row and row[0] == cell.row), None)
    if row is None or len(row) <= columns[0]:
        raise Unreadable(f"{cell.file} has no row {cell.row!r} with a value under {' / '.join(wanted)!r}")
    value = _number(row[columns[0]])
    if cell.min is not None and value < cell.min:
        raise Unreadable(f"{cell.file}, row {cell.row!r}: {value:g} is below the least sensible value {cell.min:g}")
    return value


def _columns(header: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[int]:
    """Columns whose names in the last header rows are the wanted ones; with two rows, variant and tuning."""
    named = list(zip(header[-len(wanted) :], wanted, strict=True)) if len(header) >= len(wanted) else []
    width = max(map(len, header), default=0)
    return [at for at in range(width) if named and all(at < len(row) and row[at] == name for row, name in named)]


def evaluate(
    task: Task, run: Run, result: RunResult, base: RunResult | None, references: Mapping[str, RunResult]
) -> list[CheckResult]:
    """Every check of the task on one run. `base` is the same run of the original, None when the original itself is
    judged (then comparisons with it are left out); `references` are the runs with role `reference`."""
    return list(_evaluate(task, run, result, base, references))


def _evaluate(
    task: Task, run: Run, result: RunResult, base: RunResult | None, references: Mapping[str, RunResult]
) -> Iterator[CheckResult]:
    for check in task.check:
        judge = _judge(check, result, base, references)
        if isinstance(check, FileCheck) and check.path not in run.outputs:
            continue
        name = check.kind if not isinstance(check, PatternCheck) else f"{check.kind} {check.pattern!r}"
        try:
            passed, detail = judge()
        except Unreadable as reason:
            passed, detail = False, str(reason)
        yield CheckResult(name, run.name, passed, detail)


_Judge = Callable[[], tuple[bool, str]]


def _judge(check: Check, result: RunResult, base: RunResult | None, references: Mapping[str, RunResult]) -> _Judge:
    if isinstance(check, ExitCodeCheck):
        return _exit_code(check, result)
    if isinstance(check, PatternCheck):
        return _pattern(check, result)
    if isinstance(check, NumberCheck):
        return _number_check(check, result, base)
    if isinstance(check, FileCheck):
        return _file(check, result, base)
    return _row(check, result, references)


def _exit_code(check: ExitCodeCheck, result: RunResult) -> _Judge:
    return lambda: (result.job.exit_code == check.code, f"exit code {result.job.exit_code}, expected {check.code}")


def _pattern(check: PatternCheck, result: RunResult) -> _Judge:
    def judge() -> tuple[bool, str]:
        found = re.search(check.pattern, result.whole_text, re.MULTILINE)
        said = f"printed {found.group(0)!r}" if found else f"not printed; {_ending(result.whole_text)}"
        return (found is not None) == (check.kind == "require"), said

    return judge


def _number_check(check: NumberCheck, result: RunResult, base: RunResult | None) -> _Judge:
    def judge() -> tuple[bool, str]:
        values = _numbers(check, result)
        low, high = check.min, check.max
        for value in values:
            if (low is not None and not value >= low) or (high is not None and not value <= high):
                return (
                    False,
                    f"{value:g} is outside {low if low is not None else '-∞'} … {high if high is not None else '∞'}",
                )
        if base is None or (check.rel is None and check.abs is None and (low is not None or high is not None)):
            return True, f"{len(values)} number(s) read"
        return compare_numbers(values, _numbers(check, base), check.rel or 0.0, check.abs or 0.0)

    return judge


def _numbers(check: NumberCheck, result: RunResult) -> list[float]:
    if check.source == "csv":
        assert check.file is not None
        assert check.row is not None
        assert check.column is not None
        cell = CsvCell(file=check.file, skip=check.skip, header=check.header, row=check.row, column=check.column)
        return [read_cell(cell, result.files)]
    assert check.pattern is not None
    values = [_number(match.group(1)) for match in re.finditer(check.pattern, result.whole_text, re.MULTILINE)]
    if not values:
        raise Unreadable(f"no line of the output matches {check.pattern!r}; {_ending(result.whole_text)}")
    return [combine(values, check.aggregate, check.pattern)] if check.aggregate else values


def _file(check: FileCheck, result: RunResult, base: RunResult | None) -> _Judge:
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
            return _compare_text(data, wanted, check.rel, check.abs)
        return compare_numbers(_floats(data, check.dtype), _floats(wanted, check.dtype), check.rel, check.abs)

    return judge


def _floats(data: bytes, dtype: str) -> Sequence[float]:
    values = array.array("f" if dtype == "float32" else "d")
    if len(data) % values.itemsize:
        raise Unreadable(f"{len(data)} bytes are no whole number of {dtype} values")
    values.frombytes(data)
    return values


def _compare_text(data: bytes, wanted: bytes, rel: float, absolute: float) -> tuple[bool, str]:
    left, right = data.decode(errors="replace"), wanted.decode(errors="replace")
    if NUMBER.sub("#", left).split() != NUMBER.sub("#", right).split():
        return False, "the text around the numbers differs from the original's"
    return compare_numbers([*map(float, NUMBER.findall(left))], [*map(float, NUMBER.findall(right))], rel, absolute)


def _row(check: RowCheck, result: RunResult, references: Mapping[str, RunResult]) -> _Judge:
    def judge() -> tuple[bool, str]:
        reference = references.get(check.reference.run)
        if reference is None:
            raise Unreadable(f"there is no result of the reference run {check.reference.run!r}")
        values = _table_row(result, check.file, check.row)
        return compare_numbers(values, _table_row(reference, check.file, check.reference.row), check.rel, check.abs)

    return judge


def _table_row(result: RunResult, file: str, row: str) -> list[float]:
    data = result.files.get(file)
    if data is None:
        raise Unreadable(f"the run {result.run!r} left no file {file!r}")
    for line in data.decode(errors="replace").splitlines():
        words = line.replace(",", " ").split()
        if words and words[0] == row:
            numbers = [float(word) for word in words[1:] if NUMBER.fullmatch(word)]
            if numbers:
                return numbers
    raise Unreadable(f"{file} of the run {result.run!r} has no row {row!r} with a number")


def compare_numbers(values: Sequence[float], wanted: Sequence[float], rel: float, absolute: float) -> tuple[bool, str]:
    """Whether each value lies within `absolute` + `rel` × |wanted| of the original's; the detail names the worst."""
    if len(values) != len(wanted):
        return False, f"{len(values)} numbers, the original gave {len(wanted)}"
    worst, at, failed = 0.0, 0, 0
    for index, (value, goal) in enumerate(zip(values, wanted, strict=True)):
        if value == goal or (math.isnan(value) and math.isnan(goal)):
            continue
        error = abs(value - goal)
        if not (math.isfinite(error) and error <= absolute + rel * abs(goal)):
            failed += 1
        size = error / abs(goal) if goal and math.isfinite(error) else math.inf
        if not size <= worst:
            worst, at = size, index
    if failed:
        return False, (
            f"{failed} of {len(values)} numbers differ from the original's by more than rel {rel:g}, "
            f"abs {absolute:g}; the worst is {values[at]:g} instead of {wanted[at]:g}"
        )
    return True, f"{len(values)} numbers within rel {rel:g}, abs {absolute:g}; largest relative difference {worst:.2g}"


def _ending(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"the output ends with {lines[-1][:160]!r}" if lines else "nothing was printed"
