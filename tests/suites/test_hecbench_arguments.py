"""A user's own arguments for HeCBench's benchmarks, since the suite's are meant for another device."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.suites.hecbench import HecBench, read_arguments
from kernelwright.task_file import load_task

MAKEFILE = """\
CC = g++
program = main
CFLAGS := $(EXTRA_CFLAGS) -O3 -fopenmp
$(program): main.cpp
\t$(CC) $(CFLAGS) main.cpp -o $@
run: $(program)
\t./$(program) 134217728 1000
\t./$(program) 67108864 1000
"""
MAIN = """\
#include <cstdio>
void sweep(double *a, int n) {
#pragma omp target teams distribute parallel for
  for (int i = 0; i < n; ++i) a[i] *= 2;
}
int main(int argc, char **argv) {
  double time = 1, a[8] = {};
  sweep(a, 8);
  printf("Average kernel execution time: %f (us)\\n", time);
  printf("%s\\n", a[0] == 0 ? "PASS" : "FAIL");
}
"""


def checkout(root: Path) -> Path:
    for name in ("wave-omp", "heat-omp", "wave-cuda"):
        (root / "src" / name).mkdir(parents=True)
        (root / "src" / name / "Makefile").write_text(MAKEFILE)
        (root / "src" / name / "main.cpp").write_text(MAIN)
    return root


def test_only_benchmarks_with_arguments_are_made_and_these_are_their_only_run(tmp_path: Path) -> None:
    (tmp_path / "arguments.toml").write_text('wave = "400 3"\n')
    suite = HecBench(checkout(tmp_path / "repo"), "cpp", arguments=read_arguments(tmp_path / "arguments.toml"))
    assert suite.names() == ["wave"]
    (made,) = asyncio.run(suite.make("wave", tmp_path / "tasks", None, print)).tasks
    runs = load_task(tmp_path / "tasks" / made.file).run
    assert [(run.command, run.role) for run in runs] == [("./main 400 3", "shown")]


def test_without_arguments_the_suites_own_are_taken(tmp_path: Path) -> None:
    suite = HecBench(checkout(tmp_path / "repo"), "cpp")
    assert suite.names() == ["heat", "wave"]
    (made,) = asyncio.run(suite.make("heat", tmp_path / "tasks", None, print)).tasks
    assert load_task(tmp_path / "tasks" / made.file).shown[0].command == "./main 134217728 1000"


@pytest.mark.parametrize("text", ["wave = 3", 'wave = "\'"', "wave: 3", "[wave]\nargs = 3"])
def test_a_file_of_another_form_is_a_mistake_of_the_users(tmp_path: Path, text: str) -> None:
    (tmp_path / "arguments.toml").write_text(text)
    with pytest.raises(UsageError):
        read_arguments(tmp_path / "arguments.toml")


def test_arguments_for_a_benchmark_that_is_not_there_name_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no benchmark 'waves'") as caught:
        HecBench(checkout(tmp_path / "repo"), "cpp", arguments={"waves": "3"})
    assert "wave" in str(caught.value)
