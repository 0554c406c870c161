"""Which argument says how often a program repeats what it times, and what fewer repetitions make of its run."""

from __future__ import annotations

import pytest

from kernelwright.init.repeats import Repeats, fewer, find_repeats

MAIN = b"""
int main(int argc, char* argv[]) {
  const int width = atoi(argv[1]);
  const int %s = atoi(argv[2]);
"""


@pytest.mark.parametrize("name", ["repeat", "repetitions", "iterations", "num_iter", "nreps", "n_runs", "loop_count"])
def test_a_variable_that_is_named_so_says_it(name: str) -> None:
    assert find_repeats("./main 512 1000", "./main", [MAIN % name.encode()]) == Repeats(2, 1000)


@pytest.mark.parametrize("name", ["steps", "height", "rep_size", "iter_width", "runs_per_block", "seed"])
def test_sizes_steps_and_seeds_are_other_work(name: str) -> None:
    assert find_repeats("./main 512 1000", "./main", [MAIN % name.encode()]) is None


@pytest.mark.parametrize(
    "read",
    [
        b"repeat = (argc > 1) ? atoi(argv[1]) : 100;",
        b"int repeat = argc > 1 ? std::stoi(argv[1]) : 100;",
        b"size_t repeat = strtoul(argv[1], NULL, 10);",
    ],
)
def test_the_ways_of_reading_a_number(read: bytes) -> None:
    assert find_repeats("./main 77", "./main", [read]) == Repeats(1, 77)


def test_options_that_are_named_so_say_it() -> None:
    assert find_repeats("./main -n 5 --iterations 400", "./main", []) == Repeats(4, 400)
    assert find_repeats("./main --runs=400 5", "./main", []) == Repeats(1, 400, "--runs=")
    assert find_repeats("./main -r 400", "./main", []) is None


def test_what_is_not_sure_is_left_alone() -> None:
    two = [MAIN % b"repeat", b"int main(int c, char** argv) { int width = atoi(argv[2]); }"]
    assert find_repeats("./main 512 1000", "./main", two) is None
    assert find_repeats("./main 512 1e3", "./main", [MAIN % b"repeat"]) is None
    assert find_repeats("./main 512", "./main", [MAIN % b"repeat"]) is None
    assert find_repeats("other 512 1000", "./main", [MAIN % b"repeat"]) is None


def test_a_launcher_before_the_program_counts_for_nothing() -> None:
    found = find_repeats("mpirun -n 2 ./main 512 1000", "./main", [MAIN % b"repeat"])
    assert found == Repeats(5, 1000)
    assert found.in_command("mpirun -n 2 ./main 512 1000", 3) == "mpirun -n 2 ./main 512 3"


def test_fewer_repetitions_take_about_as_long_as_wanted() -> None:
    assert fewer(1000, 20.0, 1.0) == 50
    assert fewer(10, 100.0, 1.0) == 1
    assert fewer(1, 100.0, 1.0) is None
    assert fewer(10, 0.5, 1.0) is None
