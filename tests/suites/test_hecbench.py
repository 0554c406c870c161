"""A checkout with HeCBench's conventions, in our own words: read for CUDA and HIP, and really built and run for OpenMP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.suites import Benchmark
from kernelwright.suites.hecbench import HecBench, read_metadata
from kernelwright.task import PatternCheck, RegexTime, Task
from kernelwright.task_file import load_task

MAKEFILE = """\
CC = {compiler}
ARCH = sm_60
LAUNCHER =
VERIFY = no
program = main
source = {source}
obj = main.o
CFLAGS := $(EXTRA_CFLAGS) -std=c++17 {flags}
ifeq ($(VERIFY),yes)
  CFLAGS += -DVERIFY
endif
$(program): $(obj)
\t$(CC) $(CFLAGS) $(obj) -o $@
main.o: $(source)
\t$(CC) $(CFLAGS) -c $< -o $@
run: $(program)
{runs}
"""
PAIR = """\
#include <cstdio>
#include "kernels.h"
#ifdef OLDER
__global__ void older(float *a) { a[0] = 1.0f; }
#endif
__global__ void unused(float *a) { a[0] = 2.0f; }
__global__ void shift(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += 1.0f;
}
int main(int argc, char **argv) {
  float *a = nullptr, t = 0.0f;
  int n = 8;
  printf("number of elements: %d\\n", n);
  scale<<<1, 8>>>(a, n);
  printf("Average execution time of scale: %f (us)\\n", t);
  shift<<<1, 8>>>(a, n);
  printf("Average execution time of shift: %f (us)\\n", t);
  printf("Host reference time: %f (us)\\n", t);
  printf("%s\\n", n == 8 ? "PASS" : "FAIL");
}
"""
SCALE = "__global__ void scale(float *a, int n) {\n  if (threadIdx.x < n) a[threadIdx.x] *= 2.0f;\n}\n"
ONE = """\
#include <cstdio>
__global__ void add(float *a, float b) {{ a[threadIdx.x] += b; }}
{more}
int main() {{
  float *a = nullptr, t = 0.0f, sum = 0.0f;
  add<<<1, 8>>>(a, 1.0f);
  printf("Average kernel execution time: %f (ms)\\n", t);
  {prints}
}}
"""
LOOPS = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
static void sweep(double *a, int n) {
  #pragma omp target teams distribute parallel for map(tofrom: a[0:n])
  for (int i = 0; i < n; ++i) a[i] = 0.5 * a[i] + 1.0;
}
static void shift(double *a, int n) {
  #pragma omp target teams distribute parallel for map(tofrom: a[0:n])
  for (int i = 0; i < n; ++i) a[i] += 0.25;
}
int main(int argc, char **argv) {
  const int n = std::atoi(argv[1]);
  if (n < 0) for (volatile int spin = 1; spin;) {}
  if (n == 0) return 3;
  std::vector<double> a(n, 1.0);
  auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < 10; ++r) { sweep(a.data(), n); shift(a.data(), n); }
  auto stop = std::chrono::steady_clock::now();
  double sum = 0.0;
  for (double x : a) sum += x;
  std::printf("Average kernel execution time: %f (us)\\n",
              std::chrono::duration<double, std::micro>(stop - start).count() / 10);
  std::printf("%s\\n", sum > n ? "PASS" : "FAIL");
}
"""


def makefile(
    compiler: str = "nvcc", source: str = "main.cu", runs: tuple[str, ...] = ("100",), flags: str = "-arch=$(ARCH)"
) -> str:
    lines = "\n".join(f"\t$(LAUNCHER) ./$(program) {arguments}" for arguments in runs)
    return MAKEFILE.format(compiler=compiler, source=source, runs=lines, flags=flags)


def checkout(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "LICENSE").write_text("Redistribution and use in source and binary forms may be used to endorse")
    return root


def of_one(
    root: Path, more: str = "", prints: str = 'printf("%s\\n", t < 1 ? "PASS" : "FAIL");', **making: object
) -> Path:
    source = ONE.format(more=more, prints=prints)
    return checkout(root, **{"one-cuda/main.cu": source, "one-cuda/Makefile": makefile(**making)})  # type: ignore[arg-type]


def made(importer: HecBench, name: str, out: Path, run: bool = False) -> tuple[Benchmark, dict[str, Task]]:
    async def one() -> Benchmark:
        return await importer.make(name, out, open_sandbox() if run else None, lambda _: None)

    benchmark = asyncio.run(one())
    return benchmark, {task.file: load_task(out / task.file) for task in benchmark.tasks}


def pair(root: Path) -> Path:
    files = {"pair-cuda/main.cu": PAIR, "pair-cuda/kernels.h": SCALE, "pair-cuda/Makefile": makefile(runs=("8", "9"))}
    return checkout(root / "suite", **files)


def test_each_kernel_becomes_a_task_and_all_of_them_another(tmp_path: Path) -> None:
    importer = HecBench(pair(tmp_path), "cuda")
    assert importer.names() == ["pair"]
    assert (importer.origin.suite, importer.origin.licence) == ("hecbench", "BSD-3-Clause")
    benchmark, tasks = made(importer, "pair", tmp_path / "out")
    assert sorted(tasks) == ["pair.all.toml", "pair.scale.toml", "pair.shift.toml"]
    assert tasks["pair.scale.toml"].region[0].file == "pair-cuda/kernels.h"
    assert [region.kernel for region in tasks["pair.all.toml"].region] == ["shift", "scale"]
    assert tasks["pair.all.toml"].name == "pair.all"
    assert (benchmark.reason, benchmark.ran) == (None, False)


def test_a_task_has_the_suites_arguments_its_words_and_the_kernels_own_time(tmp_path: Path) -> None:
    task = made(HecBench(pair(tmp_path), "cuda"), "pair", tmp_path / "out")[1]["pair.shift.toml"]
    assert task.build.command == "make -B -j{jobs} EXTRA_CFLAGS={flags} ARCH={arch}"
    assert [(run.command, run.role) for run in task.run] == [("./main 8", "shown"), ("./main 9", "held_out")]
    assert isinstance(task.time, RegexTime)
    assert task.time.pattern == r"Average execution time of shift:\s*([-+.\w]+) \(us\)"
    checks = [(check.kind, check.pattern) for check in task.check if isinstance(check, PatternCheck)]
    assert checks == [("require", r"\bPASS\b"), ("forbid", r"\bFAIL\b")]


def test_the_times_of_kernels_are_summed_for_all_of_them(tmp_path: Path) -> None:
    time = made(HecBench(pair(tmp_path), "cuda"), "pair", tmp_path / "out")[1]["pair.all.toml"].time
    assert isinstance(time, RegexTime)
    assert time.aggregate == "sum"
    assert "of scale:" in time.pattern
    assert "of shift:" in time.pattern
    assert "Host" not in time.pattern


def test_kernels_that_are_not_compiled_or_not_launched_are_left_out_and_named(tmp_path: Path) -> None:
    notes = made(HecBench(pair(tmp_path), "cuda"), "pair", tmp_path / "out")[0].notes
    assert any(note.startswith("older (pair-cuda/main.cu:4) is not compiled in") for note in notes)
    assert any(note.startswith("unused (pair-cuda/main.cu:6) is never launched") for note in notes)


def test_every_two_kernels_are_a_task_where_that_is_asked_for(tmp_path: Path) -> None:
    third = PAIR.replace("__global__ void unused", "__global__ void third").replace(
        "  shift<<<", "  third<<<1, 1>>>(a);\n  shift<<<"
    )
    root = pair(tmp_path)
    (root / "src/pair-cuda/main.cu").write_text(third)
    assert len(made(HecBench(root, "cuda"), "pair", tmp_path / "out")[1]) == 4
    assert len(made(HecBench(root, "cuda", pairs=True), "pair", tmp_path / "out")[1]) == 7


def test_overloads_are_told_apart_by_their_lines(tmp_path: Path) -> None:
    root = of_one(tmp_path / "suite", "__global__ void add(double *a, double b) {\n  a[threadIdx.x] += b;\n}")
    tasks = made(HecBench(root, "cuda"), "one", tmp_path / "out")[1]
    assert [task.region[0].lines for task in tasks.values() if len(task.region) == 1] == [(2, 2), (3, 5)]


def test_kernels_of_a_neighbour_folder_come_with_it(tmp_path: Path) -> None:
    source = "../pair-cuda/main.cu"
    root = checkout(pair(tmp_path), **{"pair-hip/Makefile": makefile("hipcc", source, ("8",), "")})
    tasks = made(HecBench(root, "hip"), "pair", tmp_path / "out")[1]
    assert {(task.workdir, task.siblings, task.language) for task in tasks.values()} == {
        ("pair-hip", ("pair-cuda",), "hip")
    }
    assert tasks["pair.shift.toml"].region[0].file == "pair-cuda/main.cu"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"runs": ()}, "says how it is run"),
        ({"prints": ""}, "prints nothing that tells a right result from a wrong one"),
        ({"prints": 'printf("Error: no memory for %d\\n", 3);'}, "prints nothing that tells"),
    ],
)
def test_what_cannot_become_a_task_says_why(tmp_path: Path, given: dict[str, object], reason: str) -> None:
    root = of_one(tmp_path / "suite", **given)  # type: ignore[arg-type]
    benchmark, tasks = made(HecBench(root, "cuda"), "one", tmp_path / "out")
    assert not tasks
    assert benchmark.reason is not None
    assert reason in benchmark.reason


def test_a_benchmark_whose_data_is_missing_gives_tasks_that_wait_for_it(tmp_path: Path) -> None:
    root = of_one(tmp_path / "suite", runs=("data/mesh.txt 8",))
    benchmark, tasks = made(HecBench(root, "cuda"), "one", tmp_path / "out")
    assert benchmark.lacks == ("data/mesh.txt",)
    assert len(tasks) == 1
    (root / "src/one-cuda/data").mkdir()
    (root / "src/one-cuda/data/mesh.txt").write_text("1\n")
    assert made(HecBench(root, "cuda"), "one", tmp_path / "out")[0].lacks == ()


def test_a_launcher_of_another_machine_is_called_by_its_name(tmp_path: Path) -> None:
    root = of_one(tmp_path / "suite")
    makefile = root / "src/one-cuda/Makefile"
    text = makefile.read_text()
    assert "LAUNCHER =\n" in text
    makefile.write_text(text.replace("LAUNCHER =\n", "LAUNCHER = /opt/mpi/bin/mpirun -n 1\n"))
    task = made(HecBench(root, "cuda"), "one", tmp_path / "out")[1]["one.add.toml"]
    assert task.run[0].command.startswith("mpirun -n 1 ./main")
    assert task.build.artifact == "one-cuda/main"


def test_a_benchmark_without_kernels_of_its_own_says_so(tmp_path: Path) -> None:
    root = checkout(tmp_path / "suite", **{"blas-cuda/main.cu": "int main() {}\n", "blas-cuda/Makefile": makefile()})
    assert "only a library's" in str(made(HecBench(root, "cuda"), "blas", tmp_path / "out")[0].reason)


def test_files_that_a_run_writes_need_not_be_there(tmp_path: Path) -> None:
    root = of_one(tmp_path / "suite", runs=("8 output.txt", "9 -o field.txt"))
    assert len(made(HecBench(root, "cuda"), "one", tmp_path / "out")[1]) == 1


def test_a_macro_that_turns_on_its_check_is_defined(tmp_path: Path) -> None:
    verified = '\n#ifdef VERIFY\n  printf("%s\\n", t < 1 ? "PASS" : "FAIL");\n#endif\n'
    task = made(HecBench(of_one(tmp_path / "suite", prints=verified), "cuda"), "one", tmp_path / "out")[1][
        "one.add.toml"
    ]
    assert task.build.flags == ("-DVERIFY",)
    assert [check.kind for check in task.check] == ["exit_code", "require", "forbid"]


def test_the_metadata_gives_arguments_where_the_makefile_gives_none(tmp_path: Path) -> None:
    root = of_one(tmp_path / "suite", runs=())
    (root / "benchmarks.yaml").write_text('# about\none:\n  models: [cuda]\n  test:\n    args: ["64", "2"]\n\ntwo:\n')
    task = made(HecBench(root, "cuda"), "one", tmp_path / "out")[1]["one.add.toml"]
    assert task.run[0].command == "./main 64 2"


def test_the_metadata_gives_the_time_where_none_is_recognised(tmp_path: Path) -> None:
    root = of_one(tmp_path / "suite")
    source = root / "src/one-cuda/main.cu"
    source.write_text(source.read_text().replace("Average kernel execution time: %f (ms)", "#1 %f"))
    (root / "benchmarks.yaml").write_text("one:\n  test:\n    regex: '(?:#1 )([0-9.+-e]+)(?: \\((?:ms)\\))'\n")
    time = made(HecBench(root, "cuda"), "one", tmp_path / "out")[1]["one.add.toml"].time
    assert isinstance(time, RegexTime)
    assert (time.pattern, time.unit) == (r"(?:#1 )([-+.\w]+)(?: \((?:ms)\))", "ms")


def test_the_metadata_is_read_by_its_fixed_form() -> None:
    text = "one:\n  test:\n    regex: '(?:it''s )([0-9]+)'\n    args: []\n    timeout: 300\n\ntwo:\n  models: [hip]\n"
    read = read_metadata(text)
    assert (read["one"].regex, read["one"].args) == ("(?:it's )([0-9]+)", ())
    assert "two" not in read


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no checkout of HeCBench with omp benchmarks.*folders src/NAME-omp"):
        HecBench(pair(tmp_path), "cpp")


def loops(root: Path, *arguments: str) -> HecBench:
    files = {"loops-omp/main.cpp": LOOPS, "loops-omp/Makefile": makefile("icpx", "main.cpp", arguments, "-fiopenmp")}
    return HecBench(checkout(root / "suite", **files), "cpp", run_limit_s=10.0)


def test_an_openmp_benchmark_is_built_and_run_once_for_all_its_tasks(tmp_path: Path) -> None:
    benchmark, tasks = made(loops(tmp_path, "1000"), "loops", tmp_path / "out", run=True)
    assert benchmark.ran, benchmark
    assert sorted(tasks) == ["loops.all.toml", "loops.shift.toml", "loops.sweep.toml"]
    assert {task.run[0].timeout_s for task in tasks.values()} == {30.0}
    assert tasks["loops.sweep.toml"].needs.libraries == ("openmp",)
    assert isinstance(tasks["loops.sweep.toml"].time, RegexTime)


def test_a_run_that_takes_too_long_repeats_less_often(tmp_path: Path) -> None:
    importer = replace(loops(tmp_path, "1000 40000000", "900 20000000"), seconds=0.1)
    makefile = importer.root / "loops-omp/Makefile"
    makefile.write_text(makefile.read_text().replace("LAUNCHER =", "LAUNCHER = OMP_NUM_THREADS=1"))
    source = importer.root / "loops-omp/main.cpp"
    text = source.read_text().replace("r < 10", "r < repeat").replace("/ 10)", "/ repeat)")
    source.write_text(
        text.replace("const int n", "const int repeat = argc > 2 ? std::atoi(argv[2]) : 10;\n  const int n")
    )
    benchmark, tasks = made(importer, "loops", tmp_path / "out", run=True)
    assert benchmark.ran, benchmark
    shown, held_out = tasks["loops.sweep.toml"].run
    size, count = map(int, shown.command.split()[1:])
    assert size == 1000
    assert 1 <= count <= 4_000_000
    assert held_out.command == f"./main 900 {max(1, round(count / 2))}"
    assert "'./main 1000 40000000'" in (tmp_path / "out/loops.sweep.toml").read_text()
    whole = replace(importer, seconds=0.0, run_limit_s=1.0)
    assert "passed 1 s" in str(made(whole, "loops", tmp_path / "out", run=True)[0].reason)


@pytest.mark.parametrize(
    ("argument", "limit_s", "reason"), [("0", 10.0, "ends with exit code 3"), ("-1", 0.5, "passed 0.5 s")]
)
def test_an_original_that_does_not_end_well_gives_no_task(
    tmp_path: Path, argument: str, limit_s: float, reason: str
) -> None:
    importer = HecBench(loops(tmp_path, argument).checkout, "cpp", run_limit_s=limit_s)
    benchmark, _ = made(importer, "loops", tmp_path / "out", run=True)
    assert reason in str(benchmark.reason)
    assert not list((tmp_path / "out").glob("*.toml"))


def test_an_original_that_does_not_build_gives_no_task(tmp_path: Path) -> None:
    importer = loops(tmp_path, "1000")
    source = importer.root / "loops-omp/main.cpp"
    source.write_text(source.read_text().replace("const int n", "const undeclared n"))
    assert "does not build" in str(made(importer, "loops", tmp_path / "out", run=True)[0].reason)
