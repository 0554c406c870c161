"""The task file: what is read, and the one message that each mistake gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import TaskError
from kernelwright.source import region_spans
from kernelwright.task_file import load_task


def change(app: Path, old: str, new: str) -> Path:
    file = app / "kernelwright.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return app


def test_a_task_is_read_from_its_folder_or_its_file(app: Path) -> None:
    task = load_task(app)
    assert task == load_task(app / "kernelwright.toml")
    assert task.root == app.resolve()
    assert [run.name for run in task.shown] == ["small"]
    assert [run.name for run in task.held_out] == ["odd"]
    assert task.min_effect == 0.01


def test_a_task_file_elsewhere_may_name_its_repository(app: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "tasks" / "smooth.toml"
    elsewhere.parent.mkdir()
    elsewhere.write_text('repo = "../repo"\n' + (app / "kernelwright.toml").read_text())
    assert load_task(elsewhere).root == app.resolve()


MISTAKES = [
    ('name = "smooth"\nlanguage', 'nmae = "smooth"\nlanguage', "unknown key 'nmae'", "'name'"),
    ('kernel = "smooth"', 'kernle = "smooth"', "unknown key 'region[0].kernle'", "'kernel'"),
    ('kernel = "smooth"', 'kernel = "smooth"\nlines = [1, 2]', "region[0]", "exactly one of kernel, lines, markers"),
    ('kernel = "smooth"', "", "region[0]", "exactly one of kernel, lines, markers"),
    ('kernel = "smooth"', "lines = [9, 2]", "region[0]", "first <= last"),
    ('file = "src/smooth.hpp"', 'file = "../smooth.hpp"', "region[0].file = '../smooth.hpp'", "without '..'"),
    ('file = "src/smooth.hpp"', 'file = "src/smoth.hpp"', "src/smoth.hpp", "smooth.hpp"),
    ('artifact = "app"', "", "'build.artifact' is missing", "docs/task-file.md"),
    ('flags = ["-O1"]', 'flags = ["-O1; rm -rf x"]', "build.flags[0]", "a flag made of"),
    ('command = "./app 20000"', 'command = "./app \'20000"', "run[0].command", "as a shell would split them"),
    ("pattern = 'smooth: (\\S+) ms'", "pattern = 'smooth: (\\S+ ms'", "time.pattern", "a regular expression"),
    ("pattern = 'smooth: (\\S+) ms'", "pattern = 'smooth'", "time", "whose first group is the number"),
    ('name = "odd"', 'name = "small"', "the task", "each run to have a name of its own"),
    ('path = "field.txt"', 'path = "other.txt"', "the task", "among the outputs of a run"),
    ('language = "cpp"', 'language = "fortran"', "language = 'fortran'", "'cuda', 'hip' or 'cpp'"),
    ("schema = 1", "schema = 2", "schema = 2", "1"),
    ("schema = 1", "schema = ", "is not TOML", "TOML"),
    ('path = "field.txt"', 'path = "field.txt"\nscale = "norm"', "check[3].scale = 'norm'", "'value' or 'largest'"),
    ("'^sum (\\S+)'\nrel = 1e-10", "'^sum (\\S+)'\nrel = 'exact'", "check[2].rel = 'exact'", 'or "measured"'),
    ("'^sum (\\S+)'\nrel = 1e-10", "'^sum (\\S+)'\nrel = -1", "check[2].rel = -1", "a number from 0 up"),
    ('role = "held_out"', 'role = "hidden"', "run[1].role = 'hidden'", "held_out"),
]


@pytest.mark.parametrize(("old", "new", "what", "hint"), MISTAKES)
def test_a_mistake_names_file_key_and_what_was_expected(app: Path, old: str, new: str, what: str, hint: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_task(change(app, old, new))
    assert "kernelwright.toml" in caught.value.what
    assert what in caught.value.what
    assert hint in str(caught.value)


def test_a_folder_without_a_task_file_says_what_writes_one(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no task file") as caught:
        load_task(tmp_path)
    assert "kernelwright init" in caught.value.try_


def test_a_region_outside_what_the_build_copies_is_told_to_be_a_sibling(app: Path) -> None:
    (app / "build").mkdir()
    with pytest.raises(TaskError, match="outside workdir and siblings") as caught:
        load_task(change(app, 'language = "cpp"', 'language = "cpp"\nworkdir = "build"'))
    assert caught.value.try_ == "siblings = ['src']"


def test_a_kernel_that_is_not_there_gets_the_nearest_names(app: Path) -> None:
    with pytest.raises(TaskError, match="no function 'smoth'") as caught:
        region_spans(load_task(change(app, 'kernel = "smooth"', 'kernel = "smoth"')))
    assert "smooth" in caught.value.try_


def test_a_kernel_defined_twice_gets_its_lines(app: Path) -> None:
    header = app / "src/smooth.hpp"
    header.write_text(header.read_text() + "inline void smooth(int) {}\n")
    with pytest.raises(TaskError, match="defined 2 times, at lines 2, 12"):
        region_spans(load_task(app))


def test_lines_beyond_the_file_are_refused_with_its_length(app: Path) -> None:
    with pytest.raises(TaskError, match="has 11 lines"):
        region_spans(load_task(change(app, 'kernel = "smooth"', "lines = [3, 99]")))


def test_overlapping_regions_are_refused_with_their_lines(app: Path) -> None:
    second = '[[region]]\nname = "inner"\nfile = "src/smooth.hpp"\nlines = [4, 6]\n[build]'
    with pytest.raises(TaskError, match=r"'smooth' \(lines 2 to 11\) and 'inner' \(lines 4 to 6\)"):
        region_spans(load_task(change(app, "[build]", second)))


def test_markers_hold_the_lines_between_them(app: Path) -> None:
    header = app / "src/smooth.hpp"
    header.write_text(
        header.read_text()
        .replace("    double sum", "// BEGIN\n    double sum")
        .replace("    out[i]", "// END\n    out[i]")
    )
    span = region_spans(load_task(change(app, 'kernel = "smooth"', 'markers = ["BEGIN", "END"]')))["smooth"]
    assert span.text.startswith("    double sum = 0.0;\n")
    assert span.text.endswith("    }")


def test_a_marker_that_stands_twice_is_refused(app: Path) -> None:
    with pytest.raises(TaskError, match="marker 'sum' stands on 3 lines"):
        region_spans(load_task(change(app, 'kernel = "smooth"', 'markers = ["sum", "END"]')))
