"""Reading times and numbers from what a run left, and judging a run by a task's checks."""

from __future__ import annotations

import array
from pathlib import Path
from typing import Any

import pytest

from app import FILES
from kernelwright.checks import (
    RunResult,
    Unreadable,
    compare_numbers,
    evaluate,
    files_of,
    goal_of,
    numbers_of,
    read_time,
)
from kernelwright.sandbox import JobResult
from kernelwright.task import Task
from kernelwright.tolerance import variation_of

CSV = b"""Mean Runtime Report (sec.)
Kernel, Base_Seq, Base_CUDA, Base_CUDA
, default, block_128, block_256
Apps_FIR, 1.5, 0.25, 0.125
"""
ROWS = b"Kernel reps\nApps_FIR, 4\nApps_NONE, 0\n"


def task_with(tmp_path: Path, time: str = "", checks: str = "") -> Task:
    import tomllib

    data = tomllib.loads(FILES["kernelwright.toml"])
    if time:
        data["time"] = tomllib.loads(time)["time"]
    data["check"] = tomllib.loads(checks).get("check", [])
    return Task.model_validate({**data, "path": tmp_path / "kernelwright.toml"})


def result(stdout: str = "", code: int | None = 0, files: dict[str, bytes | None] | None = None) -> RunResult:
    return RunResult("small", JobResult(code, None, stdout.encode(), b"", 0.5, 0.4, 0), files or {})


def test_a_time_is_read_in_seconds_by_its_unit(tmp_path: Path) -> None:
    task = task_with(tmp_path)
    assert read_time(task, result("smooth: 2.5 ms\n")) == pytest.approx(0.0025)


def test_a_printed_unit_is_taken_from_its_group(tmp_path: Path) -> None:
    task = task_with(tmp_path, "[time]\nsource='regex'\npattern='took (\\S+) \\((\\w+)\\)'\nunit_group=2\n")
    assert read_time(task, result("took 12 (us)")) == pytest.approx(12e-6)
    with pytest.raises(Unreadable, match="unit 'furlongs'"):
        read_time(task, result("took 12 (furlongs)"))


def test_several_times_need_a_stated_aggregate(tmp_path: Path) -> None:
    pattern = "[time]\nsource='regex'\nunit='s'\npattern='t (\\S+)'\n"
    with pytest.raises(Unreadable, match="matches 3 times; say which with aggregate"):
        read_time(task_with(tmp_path, pattern), result("t 1\nt 2\nt 6"))
    for aggregate, wanted in (
        ("first", 1),
        ("last", 6),
        ("min", 1),
        ("median", 2),
        ("mean", 3),
        ("sum", 9),
        ("max", 6),
    ):
        task = task_with(tmp_path, pattern + f"aggregate='{aggregate}'\n")
        assert read_time(task, result("t 1\nt 2\nt 6")) == wanted


def test_a_rate_counts_as_its_reciprocal(tmp_path: Path) -> None:
    task = task_with(tmp_path, "[time]\nsource='regex'\npattern='(\\S+) GB/s'\nbetter='higher'\n")
    assert read_time(task, result("4 GB/s")) / read_time(task, result("8 GB/s")) == 2


@pytest.mark.parametrize("numbers", [("1e308", "1e308"), ("inf", "-inf")])
def test_a_sum_that_does_not_exist_is_no_number(tmp_path: Path, numbers: tuple[str, str]) -> None:
    text = "".join(f"t {number}\n" for number in numbers)
    time = "[time]\nsource='regex'\nunit='s'\npattern='t (\\S+)'\naggregate="
    with pytest.raises(Unreadable, match="the sum of its 2 numbers does not exist"):
        read_time(task_with(tmp_path, time + "'sum'\n"), result(text))
    assert outcome(
        tmp_path, "[[check]]\nkind='number'\npattern='t (\\S+)'\naggregate='last'\nmin=0\n", result(text), None
    ) == [numbers[1] != "-inf"]


def test_a_csv_field_without_end_is_no_number(tmp_path: Path) -> None:
    huge = b"Mean\n" + b'"' + b"x" * 200_000
    with pytest.raises(Unreadable, match=r"t\.csv is no CSV file"):
        read_time(
            task_with(tmp_path, CELL.replace('"Kernel reps"', '"reps"')), result(files={"t.csv": huge, "r.csv": ROWS})
        )


def test_output_that_was_not_kept_whole_is_not_judged(tmp_path: Path) -> None:
    flood = result("PASS\n" + "x" * 2**23)
    check = "[[check]]\nkind='forbid'\npattern='FAIL'\n"
    assert outcome(tmp_path, check, flood, None) == [False]


@pytest.mark.parametrize("printed", ["0", "-1", "nan", "inf"])
def test_a_time_that_is_none_is_never_a_time(tmp_path: Path, printed: str) -> None:
    with pytest.raises(Unreadable, match="which is no time"):
        read_time(task_with(tmp_path), result(f"smooth: {printed} ms"))


def test_a_pattern_that_matches_nothing_says_how_the_output_ended(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="the output ends with 'bye'"):
        read_time(task_with(tmp_path), result("hello\nbye\n"))


def test_a_wall_time_is_the_process_s_own(tmp_path: Path) -> None:
    assert read_time(task_with(tmp_path, "[time]\nsource='wall'\n"), result()) == 0.5


CELL = """[time]
source = "csv"
file = "t.csv"
skip = 1
header = 2
row = "Apps_FIR"
column = ["Base_CUDA", "block_256"]
unit = "s"
divide_by = { file = "r.csv", row = "Apps_FIR", column = "Kernel reps", min = 1 }
"""


def test_a_cell_is_found_by_its_row_and_both_of_its_headers(tmp_path: Path) -> None:
    task = task_with(tmp_path, CELL.replace('"Kernel reps"', '"reps"'))
    files = {"t.csv": CSV, "r.csv": b"Kernel, reps\nApps_FIR, 4\n"}
    assert files_of(task, task.shown[0]) == ("field.txt", "t.csv", "r.csv")
    assert read_time(task, result(files=files)) == pytest.approx(0.125 / 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("Apps_FIR", "Apps_NIL"), "no row 'Apps_NIL'"),
        (("block_256", "block_512"), "no column 'Base_CUDA / block_512'"),
        (("t.csv", "u.csv"), "left no file 'u.csv'"),
    ],
)
def test_a_cell_that_is_not_there_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    task = task_with(tmp_path, CELL.replace(*change))
    with pytest.raises(Unreadable, match=said):
        read_time(task, result(files={"t.csv": CSV, "r.csv": ROWS}))


def test_zero_repetitions_are_no_time(tmp_path: Path) -> None:
    task = task_with(tmp_path, CELL.replace('"Kernel reps"', '"reps"'))
    with pytest.raises(Unreadable, match="below the least sensible value 1"):
        read_time(task, result(files={"t.csv": CSV, "r.csv": b"Kernel, reps\nApps_FIR, 0\n"}))


def outcome(
    tmp_path: Path, checks: str, mine: RunResult, base: RunResult | None, **references: Any
) -> list[bool | None]:
    task = task_with(tmp_path, checks=checks)
    return [check.passed for check in evaluate(task, task.shown[0], mine, base, references)]


def test_the_program_s_own_word_and_exit_code(tmp_path: Path) -> None:
    checks = (
        "[[check]]\nkind='exit_code'\n[[check]]\nkind='require'\npattern='^PASS$'\n"
        "[[check]]\nkind='forbid'\npattern='FAIL'\n"
    )
    assert outcome(tmp_path, checks, result("x\nPASS\n"), None) == [True, True, True]
    assert outcome(tmp_path, checks, result("xPASS\nFAIL", code=1), None) == [False, False, False]
    assert outcome(tmp_path, checks, result("PASS\n", code=None), None) == [False, True, True]


def test_numbers_are_compared_with_the_original_s(tmp_path: Path) -> None:
    check = "[[check]]\nkind='number'\npattern='sum (\\S+)'\nrel=1e-3\n"
    assert outcome(tmp_path, check, result("sum 1.0005"), result("sum 1.0")) == [True]
    assert outcome(tmp_path, check, result("sum 1.002"), result("sum 1.0")) == [False]
    assert outcome(tmp_path, check, result("sum nan"), result("sum 1.0")) == [False]
    assert outcome(tmp_path, check, result("sum 1.0\nsum 2.0"), result("sum 1.0")) == [False]
    assert outcome(tmp_path, check, result("nothing"), result("sum 1.0")) == [False]


def test_a_guard_holds_without_an_original(tmp_path: Path) -> None:
    check = "[[check]]\nkind='number'\npattern='error (\\S+)'\nmin=0\nmax=1e-6\n"
    assert outcome(tmp_path, check, result("error 1e-7"), None) == [True]
    assert outcome(tmp_path, check, result("error 1e-5"), None) == [False]
    assert outcome(tmp_path, check, result("error nan"), None) == [False]


def test_files_of_text_are_compared_number_by_number(tmp_path: Path) -> None:
    check = "[[check]]\nkind='file'\npath='field.txt'\nrel=1e-6\n"
    base = result(files={"field.txt": b"x 1.0 y 2e3\n"})
    assert outcome(tmp_path, check, result(files={"field.txt": b"x 1.0000001 y 2000\n"}), base) == [True]
    assert outcome(tmp_path, check, result(files={"field.txt": b"x 1.0 z 2e3\n"}), base) == [False]
    assert outcome(tmp_path, check, result(files={"field.txt": b"x 1.0\n"}), base) == [False]
    assert outcome(tmp_path, check, result(files={"field.txt": None}), base) == [False]


def test_binary_files_are_compared_as_what_they_hold(tmp_path: Path) -> None:
    check = "[[check]]\nkind='file'\npath='field.txt'\nrel=1e-6\ndtype='float32'\n"
    base = result(files={"field.txt": array.array("f", [1.0, -2.0]).tobytes()})
    near = array.array("f", [1.0000001, -2.0]).tobytes()
    assert outcome(tmp_path, check, result(files={"field.txt": near}), base) == [True]
    assert outcome(tmp_path, check, result(files={"field.txt": near[:7]}), base) == [False]
    assert outcome(tmp_path, check.replace("float32", "bytes"), result(files={"field.txt": near}), base) == [False]


def test_a_table_row_is_compared_with_another_run_s(tmp_path: Path) -> None:
    check = "[[check]]\nkind='row'\nfile='sums.txt'\nrow='Base_CUDA'\nrel=1e-6\nreference={run='seq',row='Base_Seq'}\n"
    import tomllib

    data = tomllib.loads(FILES["kernelwright.toml"])
    data["run"].append({"name": "seq", "role": "reference", "command": "./app"})
    data["check"] = tomllib.loads(check)["check"]
    task = Task.model_validate({**data, "path": tmp_path})
    seq = result(files={"sums.txt": b"Base_Seq 10.5 0.0\n"})
    for text, passed in ((b"Base_CUDA 10.500001 0.0\n", True), (b"Base_CUDA 11 0.0\n", False), (b"\n", False)):
        mine = result(files={"sums.txt": text})
        assert [c.passed for c in evaluate(task, task.shown[0], mine, mine, {"seq": seq})] == [passed]


def test_a_row_judges_the_runs_that_it_names_and_no_others(tmp_path: Path) -> None:
    import tomllib

    data = tomllib.loads(FILES["kernelwright.toml"])
    data["run"] = [run for run in data["run"] if run.get("role", "shown") == "shown"]
    data["run"] += [{"name": name, "role": "reference", "command": "./app"} for name in ("seq", "seq, less")]
    data["run"].append({"name": "less", "role": "held_out", "command": "./app 3"})
    data["check"] = [
        {
            "kind": "row",
            "runs": [run],
            "file": "sums.txt",
            "row": "Base",
            "reference": {"run": reference, "row": "Base"},
        }
        for run, reference in ((data["run"][0]["name"], "seq"), ("less", "seq, less"))
    ]
    task = Task.model_validate({**data, "path": tmp_path})
    large, small = (result(files={"sums.txt": text}) for text in (b"Base 10.5\n", b"Base 3.5\n"))
    references = {"seq": large, "seq, less": small}
    assert [c.passed for c in evaluate(task, task.shown[0], large, large, references)] == [True]
    assert [c.passed for c in evaluate(task, task.held_out[0], small, small, references)] == [True]
    assert [c.passed for c in evaluate(task, task.held_out[0], large, large, references)] == [False]
    assert [goal_of(check, task.held_out[0], small, references) is None for check in task.check] == [True, False]
    data["check"][0]["runs"] = ["seq"]
    with pytest.raises(ValueError, match=r"check\.runs to name runs that are judged, not 'seq'"):
        Task.model_validate({**data, "path": tmp_path})


def test_the_worst_number_is_named() -> None:
    passed, detail = compare_numbers([1.0, 5.0, 3.1], [1.0, 2.0, 3.0], 1e-3, 0.0)
    assert not passed
    assert "2 of 3 numbers differ" in detail
    assert "the worst is 5 instead of 2" in detail


def test_a_nan_passes_only_where_the_original_has_one() -> None:
    nan = float("nan")
    assert compare_numbers([nan, 1.0], [nan, 1.0], 0.0, 0.0)[0]
    assert not compare_numbers([nan, 1.0], [0.0, 1.0], 1e9, 1e9)[0]
    assert not compare_numbers([float("inf")], [1.0], 1.0, 1.0)[0]
    assert not compare_numbers([0.0], [float("inf")], 1e-3, 0.0)[0]
    assert compare_numbers([float("inf")], [float("inf")], 1e-3, 0.0)[0]


def test_a_row_and_a_file_have_what_versions_of_the_original_differ_by(tmp_path: Path) -> None:
    checks = (
        "[[check]]\nkind='row'\nfile='sums.txt'\nrow='CUDA'\nrel='measured'\nreference={run='seq',row='Seq'}\n"
        "[[check]]\nkind='file'\npath='field.txt'\nrel='measured'\nabs=0.5\n"
    )
    import tomllib

    data = tomllib.loads(FILES["kernelwright.toml"])
    data["run"].append({"name": "seq", "role": "reference", "command": "./app"})
    data["check"] = tomllib.loads(checks)["check"]
    task = Task.model_validate({**data, "path": tmp_path})
    run, seq = task.shown[0], result(files={"sums.txt": b"Seq 10.5 2.0\n"})

    def ran(row: str, field: str) -> RunResult:
        return result(files={"sums.txt": f"CUDA {row}\n".encode(), "field.txt": f"t = {field}\n".encode()})

    base, again = ran("10.5000000 2.0000000", "4.00000"), ran("10.5000010 2.0000000", "4.01000")
    measured = {}
    for at, check in enumerate(task.check):
        goal, other = goal_of(check, run, base, {"seq": seq}), numbers_of(check, run, again)
        assert goal is not None
        assert other is not None
        measured[at] = variation_of(goal, [other.values], "double")
    for mine, passed in (
        (ran("10.5000020 2.0000000", "4.02000"), [True, True]),
        (ran("10.6000000 2.5000000", "9.00000"), [False, False]),
        (ran("10.5000010 2.0000000", "4.00000 5"), [True, False]),
    ):
        assert [c.passed for c in evaluate(task, run, mine, base, {"seq": seq}, measured)] == passed
    unmeasured = ran("10.5 2.0", "4.00001"), ran("10.5000001 2.0", "4.0"), ran("10.5 2.0", "4.6")
    assert [[c.passed for c in evaluate(task, run, mine, base, {"seq": seq})] for mine in unmeasured] == [
        [True, True], [False, True], [True, False],
    ]  # fmt: skip
    assert [c.passed for c in evaluate(task, run, again, None, {"seq": seq})] == [True, True]
