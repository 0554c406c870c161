"""First task files from repositories of ours: read, loaded, and proven by a real build and run where there is one."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import fingerprint, kernelwright
from kernelwright.errors import UsageError
from kernelwright.init import TaskDraft, adapt, draft, render
from kernelwright.init.hot import (
    PROFILE_FLAGS,
    functions_of,
    hot_functions,
    hot_kernels,
    profile,
)
from kernelwright.init.makefile import read_makefile
from kernelwright.init.meaning import find_numbers, find_verdicts
from kernelwright.init.prints import read_prints
from kernelwright.init.render import quoted
from kernelwright.init.times import find_times, together
from kernelwright.sandbox import JobResult
from kernelwright.source import region_spans
from kernelwright.task import Build, NumberCheck, PatternCheck, RegexTime, Task, WallTime
from kernelwright.task_file import load_task
from kernelwright.toolchain.kernel_time import KernelTime
from kernelwright.toolchain.symbols import demangled_name

MAKEFILE = """\
CC = nvcc
OPTIMIZE = yes
ARCH = sm_60
LAUNCHER =
program = main
source = main.cu
obj = $(source:.cu=.o)
CFLAGS := $(EXTRA_CFLAGS) -std=c++17 -arch=$(ARCH) -I../shared
ifeq ($(OPTIMIZE),yes)
  CFLAGS += -O3
endif
$(program): $(obj)
\t$(CC) $(CFLAGS) $(obj) -o $@ -lcublas
%.o: %.cu ../shared/check.h
\t$(CC) $(CFLAGS) -c $< -o $@
clean:
\trm -f $(program) $(obj)
run: $(program)
\t$(LAUNCHER) ./$(program) 400 10
\t$(LAUNCHER) ./$(program) 403 10
"""
KERNEL = """\
#include <cstdio>
#include "../shared/check.h"
__global__ void sweep(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = 2.0f * a[i];
}
int main(int argc, char **argv) {
  double t0 = 0, t1 = 0, tc = 0;
  printf("Host reference time: %f ms\\n", tc);
  for (int r = 0; r < 3; ++r) sweep<<<1, 1>>>(nullptr, 0);
  printf("Average execution time of sweep: %10.3f (us)\\n", (t1 - t0) * 1e-3f / 3);
  printf("Transfer time: %f (us)\\n", tc);
  return report(0);
}
"""
CHECK = '#include <cstdio>\ninline int report(int bad) { printf("%s\\n", bad ? "FAIL" : "PASS"); return 0; }\n'


def repository(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def drafted(root: Path, file: str, kernel: str | None = None, **given: object) -> TaskDraft:
    return asyncio.run(draft(root, file, kernel, **given))  # type: ignore[arg-type]


def loaded(task: TaskDraft, folder: Path) -> Task:
    """The draft written to a file and read back; its regions are found."""
    path = folder / "kernelwright.toml"
    path.write_text(render(task, path), encoding="utf-8")
    read = load_task(path)
    region_spans(read)
    return read


def cuda_repository(root: Path) -> Path:
    files = {"app/main.cu": KERNEL, "app/Makefile": MAKEFILE, "shared/check.h": CHECK}
    return repository(root, **files)


async def here(argv: Sequence[str], folder: str) -> JobResult:
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    return JobResult(process.returncode, None, out, errors, 0.0, 0.0, 0)


def test_a_cuda_makefile_gives_a_whole_task(tmp_path: Path) -> None:
    task = loaded(drafted(cuda_repository(tmp_path), "app/main.cu"), tmp_path)
    assert (task.language, task.workdir, task.siblings) == ("cuda", "app", ("shared",))
    assert task.region[0].kernel == "sweep"
    assert task.build == Build(command="make -B -j{jobs} EXTRA_CFLAGS={flags} ARCH={arch}", artifact="app/main")
    assert [(run.command, run.role) for run in task.run] == [("./main 400 10", "shown"), ("./main 403 10", "held_out")]
    assert task.needs.gpu
    assert task.needs.libraries == ("cublas",)


def test_the_kernels_own_time_wins_over_those_of_the_host(tmp_path: Path) -> None:
    task = drafted(cuda_repository(tmp_path), "app/main.cu")
    assert task.time is not None
    assert task.time.pattern == r"Average execution time of sweep:\s*([-+.\w]+) \(us\)"
    assert task.time.unit == "us"
    assert "Transfer time" in render(task, tmp_path / "task.toml")


def test_the_programs_own_words_become_checks(tmp_path: Path) -> None:
    checks = loaded(drafted(cuda_repository(tmp_path), "app/main.cu"), tmp_path).check
    assert [check.kind for check in checks] == ["exit_code", "require", "forbid"]
    assert [check.pattern for check in checks if isinstance(check, PatternCheck)] == [r"\bPASS\b", r"\bFAIL\b"]


def test_comments_say_where_each_thing_was_read(tmp_path: Path) -> None:
    text = render(drafted(cuda_repository(tmp_path), "app/main.cu"), tmp_path / "task.toml")
    assert "# Printed at app/main.cu:11." in text
    assert '# shared/check.h:2: read from "PASS".' in text


def test_the_root_moves_up_where_the_build_reaches_out_of_the_repository(tmp_path: Path) -> None:
    cuda_repository(tmp_path)
    task = loaded(drafted(tmp_path / "app", "main.cu"), tmp_path / "app")
    assert task.root == tmp_path.resolve()
    assert (task.workdir, task.region[0].file) == ("app", "app/main.cu")


def test_spaces_and_letters_beyond_ascii_and_crlf_are_fine(tmp_path: Path) -> None:
    root = tmp_path / "mein Gerät"
    files = {"über app/main.cu": KERNEL.replace("\n", "\r\n"), "über app/Makefile": MAKEFILE.replace("\n", "\r\n"),
             "shared/check.h": CHECK}  # fmt: skip
    task = loaded(drafted(repository(root, **files), "über app/main.cu"), root)
    assert task.workdir == "über app"
    assert isinstance(task.time, RegexTime)


def test_a_missing_data_file_is_pointed_out(tmp_path: Path) -> None:
    cuda_repository(tmp_path)
    makefile = tmp_path / "app/Makefile"
    makefile.write_text(makefile.read_text().replace("400 10", "../data/mesh.txt"))
    text = render(drafted(tmp_path, "app/main.cu"), tmp_path / "task.toml")
    assert "LOOK: These paths are named and not there: ../data/mesh.txt." in text


@pytest.mark.parametrize(
    ("file", "kernel", "message"),
    [
        ("app/mian.cu", None, r"there is no file app/mian\.cu .* try: one of main\.cu"),
        ("app/main.cu", "swep", r"defines no function 'swep'.* try: one of sweep"),
        ("shared/check.h", None, r"holds 0 functions|no kernel was found in shared/check\.h"),
    ],
)
def test_a_file_or_kernel_that_is_not_there_gets_the_nearest_names(
    tmp_path: Path, file: str, kernel: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        drafted(cuda_repository(tmp_path), file, kernel)


def test_several_kernels_are_listed_for_the_user_to_choose(tmp_path: Path) -> None:
    cuda_repository(tmp_path)
    source = tmp_path / "app/main.cu"
    source.write_text("__global__ void scale(float *a) { a[0] = 1; }\n" + source.read_text())
    with pytest.raises(UsageError, match=r"2 functions that may be the region: scale \(line 1\), sweep \(line 4\)"):
        drafted(tmp_path, "app/main.cu")
    both = loaded(drafted(tmp_path, "app/main.cu", "scale+sweep"), tmp_path)
    assert [region.name for region in both.region] == ["scale", "sweep"]
    assert loaded(drafted(tmp_path, "app/main.cu", "1-1"), tmp_path).region[0].lines == (1, 1)


OMP_MAKEFILE = """\
CC = icpx-that-is-not-here
DEVICE = gpu
program = main
CFLAGS := $(EXTRA_CFLAGS) -std=c++17 -Wall -O2
ifeq ($(DEVICE),gpu)
  CFLAGS += -fiopenmp -fopenmp-targets=spir64 -D__STRICT_ANSI__
else
  CFLAGS += -qopenmp
endif
SIZE := $(shell echo 2000)
$(program): main.o
\t$(CC) $(CFLAGS) main.o -o $@
%.o: %.cpp
\t$(CC) $(CFLAGS) -c $< -o $@
run: $(program)
\t./$(program) $(SIZE)
"""
OMP_SOURCE = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
int main(int argc, char **argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 0;
  std::vector<double> a(n, 1.0);
  double worst = 0.0;
  auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < 3; ++r) {
    #pragma omp parallel for
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < 50; ++k) a[i] = 0.5 * a[i] + 1.0;
  }
  auto stop = std::chrono::steady_clock::now();
  for (int i = 0; i < n; ++i) worst = a[i] > 2.0 ? a[i] - 2.0 : worst;
  std::printf("loop took %g ms\\n", std::chrono::duration<double, std::milli>(stop - start).count());
  if (false) std::printf("Total kernel time: %f ms\\n", 0.0);
  double sum = 0.0;
  for (double x : a) sum += x;
  std::printf("checksum: %.10g\\nmax error: %g\\n", sum, worst);
  std::printf(n > 0 ? "SUCCESS\\n" : "FAILURE\\n");
  return n > 0 ? 0 : 1;
}
"""
needs_make = pytest.mark.skipif(not (shutil.which("make") and shutil.which("g++")), reason="make and g++ are needed")


def omp_repository(root: Path) -> Path:
    return repository(root, **{"main.cpp": OMP_SOURCE, "Makefile": OMP_MAKEFILE})


def test_a_compiler_that_is_not_installed_is_replaced_and_its_own_flags_go(tmp_path: Path) -> None:
    task = loaded(drafted(omp_repository(tmp_path), "main.cpp", "main"), tmp_path)
    assert shlex.split(task.build.command)[3:] == [
        "CC=g++",
        "DEVICE=cpu",
        "CFLAGS=-std=c++17 -Wall -O2 -fopenmp {flags}",
    ]
    assert task.needs.libraries == ("openmp",)
    assert "OMP_NUM_THREADS" in task.run[0].env


def test_a_function_that_also_times_and_prints_gives_its_parallel_loop(tmp_path: Path) -> None:
    task = drafted(omp_repository(tmp_path), "main.cpp", "main")
    assert task.regions[0].lines == (11, 13)


@needs_make
def test_make_itself_says_the_truth_about_the_run_target(tmp_path: Path) -> None:
    root = omp_repository(tmp_path)

    async def sandboxed(argv: Sequence[str], folder: str) -> JobResult:
        return await here(argv, str(root / folder))

    task = drafted(root, "main.cpp", "main", run=sandboxed)
    assert task.building.runs[0].command == "./main 2000"
    assert "make -n" in task.building.source


GENERATED = "-include sizes.mk\nsizes.mk:\n\techo 'SIZE := 2000' > $@\n\ttouch $(CURDIR)/../seen-by-make\n"


@needs_make
@pytest.mark.parametrize("options", [(), ("--no-sandbox",)])
@pytest.mark.parametrize("hot", [(), ("--hot",)])
def test_what_make_writes_when_it_is_only_asked_never_reaches_the_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], hot: tuple[str, ...]
) -> None:
    makefile = GENERATED + OMP_MAKEFILE.replace("SIZE := $(shell echo 2000)\n", "")
    root = repository(tmp_path / "top", **{"app/main.cpp": OMP_SOURCE, "app/Makefile": makefile})
    before = fingerprint(tmp_path / "top")
    out = tmp_path / "task.toml"
    if hot and not (perf_samples() or shutil.which("valgrind")):
        pytest.skip("no profiler works here")
    said = kernelwright(
        capsys, "init", "--file", root / "app/main.cpp", "--repo", root, "--out", out, *hot, *options, "--json"
    )
    assert said.code == 0, said
    assert fingerprint(tmp_path / "top") == before
    if not hot:
        assert (said.data["sandbox"], said.data["trouble"]) == ("none" if options else "bubblewrap", None)
        assert "by make -n" in out.read_text()
        assert load_task(out).run[0].command == "./main 2000"


@needs_make
def test_what_is_no_task_yet_is_not_asked_of_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    makefile = OMP_MAKEFILE.replace("program = main", "program = ../../main")
    root = repository(tmp_path / "top", **{"main.cpp": OMP_SOURCE, "Makefile": makefile})
    said = kernelwright(capsys, "init", "--file", root / "main.cpp", "--repo", root, "--json")
    assert (said.code, "build.artifact" in said.data["trouble"]["what"]) == (0, True)


async def built_and_run(task: TaskDraft) -> TaskDraft:
    words = [word.replace("{jobs}", "2").replace("{flags}", "") for word in shlex.split(task.building.command)]
    built = await here(words, str(task.building.folder))
    assert built.exit_code == 0, built.stderr.decode()
    done = await here(shlex.split(task.building.runs[0].command), str(task.building.folder))
    return adapt(task, done.exit_code, done.stdout.decode())


@needs_make
def test_a_real_build_and_run_corrects_the_draft(tmp_path: Path) -> None:
    task = drafted(omp_repository(tmp_path), "main.cpp", "main")
    run = replace(task.building.runs[0], command="./main 500")
    task = asyncio.run(built_and_run(replace(task, building=replace(task.building, runs=(run,)))))
    read = loaded(task, tmp_path)
    assert isinstance(read.time, RegexTime)
    assert read.time.pattern.startswith("loop took")
    assert read.time.aggregate == "last"
    assert [check.pattern for check in read.check if isinstance(check, PatternCheck)] == [
        r"\bSUCCESS\b",
        r"\bFAILURE\b",
    ]
    assert (r"checksum:\s*([-+.\w]+)", "measured") in [
        (check.pattern, check.rel) for check in read.check if isinstance(check, NumberCheck)
    ]


def test_a_trial_run_that_prints_its_own_failure_is_pointed_out(tmp_path: Path) -> None:
    task = adapt(drafted(cuda_repository(tmp_path), "app/main.cu"), 0, "FAIL\n")
    assert "calls its own result wrong" in task.notes[0]
    assert isinstance(loaded(task, tmp_path).time, WallTime)


def test_a_trial_run_that_ends_badly_changes_nothing_but_says_so(tmp_path: Path) -> None:
    before = drafted(cuda_repository(tmp_path), "app/main.cu")
    after = adapt(before, 1, "usage: main N\n")
    assert after.time == before.time
    assert "exit code 1" in after.notes[0]


def test_a_file_that_the_program_writes_is_pointed_out_as_evidence(tmp_path: Path) -> None:
    source = OMP_SOURCE.replace("double sum", 'FILE *f = std::fopen("field.txt", "w"); double sum')
    task = drafted(repository(tmp_path, **{"main.cpp": source, "Makefile": OMP_MAKEFILE}), "main.cpp", "main")
    assert [(file.path, file.active) for file in task.files] == [("field.txt", False)]
    assert '# path = "field.txt"' in render(task, tmp_path / "task.toml")


def test_a_stream_that_is_opened_later_is_pointed_out_too(tmp_path: Path) -> None:
    source = OMP_SOURCE.replace("double sum", 'std::ofstream f; f.open("field.bin", std::ios::out); double sum')
    task = drafted(repository(tmp_path, **{"main.cpp": source, "Makefile": OMP_MAKEFILE}), "main.cpp", "main")
    assert [(file.path, file.active) for file in task.files] == [("field.bin", False)]


def test_a_result_beside_a_verdict_is_suggested_and_not_taken(tmp_path: Path) -> None:
    source = OMP_SOURCE.replace("checksum", "Total energy").replace("double sum", 'std::puts("PASS"); double sum')
    root = repository(tmp_path, **{"main.cpp": source, "Makefile": OMP_MAKEFILE})
    number = next(check for check in drafted(root, "main.cpp", "main").checks if check.kind == "number")
    assert "energy" in number.pattern
    assert not number.active


def test_a_trial_run_that_takes_long_is_pointed_out(tmp_path: Path) -> None:
    before = drafted(cuda_repository(tmp_path), "app/main.cu")
    assert "took 23 s" in adapt(before, 0, "PASS\n", 23.2).notes[0]
    assert "after 120 s" in adapt(before, None, "", 120.0).notes[0]


def test_cmake_gives_a_configure_command(tmp_path: Path) -> None:
    cmake = "project(heat CXX)\nadd_executable(${PROJECT_NAME} main.cpp)\n"
    root = repository(tmp_path, **{"main.cpp": OMP_SOURCE, "CMakeLists.txt": cmake})
    task = loaded(drafted(root, "main.cpp", "main"), tmp_path)
    assert task.build.artifact == "build/heat"
    assert task.build.configure is not None
    assert "-DCMAKE_CXX_FLAGS={flags}" in task.build.configure


def test_a_file_without_any_build_description_is_compiled_alone(tmp_path: Path) -> None:
    task = loaded(drafted(repository(tmp_path, **{"my heat.cpp": OMP_SOURCE}), "my heat.cpp", "main"), tmp_path)
    assert shlex.split(task.build.command) == ["g++", "-O3", "-fopenmp", "{flags}", "my heat.cpp", "-o", "my_heat"]


def printed(statement: str) -> tuple[list[object], str]:
    source = f"void f(double t, int n) {{ {statement} }}"
    lines, _ = read_prints(source.encode(), "a.cpp", "cpp")
    times = find_times(lines, [], "cpp")
    return [(time.pattern, time.unit, time.better) for time in times], source


@pytest.mark.parametrize(
    ("statement", "pattern", "unit"),
    [
        (r'printf("Kernel time: %8.3f ms\n", t);', r"Kernel time:\s*([-+.\w]+) ms", "ms"),
        (r'printf("Time (us): %f\n", t);', r"Time \(us\):\s*([-+.\w]+)", "us"),
        (r'printf("Total time = %.3fs\n", t);', r"Total time =\s*([-+.\w]+)s", "s"),
        (r'printf("%d steps took %g seconds\n", n, t);', r"\S+ steps took\s*([-+.\w]+) seconds", "s"),
        (r'printf("%s time [ms]:\t%f\n", "x", t);', r".*? time \[ms\]:\s*([-+.\w]+)", "ms"),
        (r'printf("elapsed %" PRId64 " usec\n", n);', r"elapsed\s*([-+.\w]+) usec", "us"),
        (
            r'std::cout << "average time " << t * 1e-3 << " (us)" << std::endl;',
            r"average time\s*([-+.\w]+) \(us\)",
            "us",
        ),
        (r'cout << "n " << n << ", " << std::setw(9) << t << " sec\n";', r"n\s*\S+,\s*([-+.\w]+) sec", "s"),
        (r'printf("Elapsed time"); printf(": %f ms\n", t);', r"Elapsed time:\s*([-+.\w]+) ms", "ms"),
        (r'std::println("wall time {:.3f} ms", t);', r"wall time\s*([-+.\w]+) ms", "ms"),
        (r'printf("Total time:\n"); printf("%f s\n", t);', r"Total time:\s*([-+.\w]+) s", "s"),
        (r'printf("Runtime: %f\n", time_ms);', r"Runtime:\s*([-+.\w]+)", "ms"),
        (r'printf("done in %f s for %d rounds\n", t, n);', r"done in\s*([-+.\w]+) s for\s*", "s"),
        (r'printf("%f\t#runtime [s]\n", t);', r"([-+.\w]+)\s+#runtime \[s\]", "s"),
        (r'printf("Total time %f (s) for %d iterations\n", t, n);', r"Total time\s*([-+.\w]+) \(s\) for\s*", "s"),
    ],
)
def test_a_printed_time_is_read_with_its_unit(statement: str, pattern: str, unit: str) -> None:
    assert printed(statement)[0] == [(pattern, unit, "lower")]


@pytest.mark.parametrize(
    "statement",
    [
        r'printf("running %d times\n", n);',
        r'printf("time steps: %d\n", n);',
        r'printf("dt %f\n", t);',
        r'fprintf(out, "time: %f ms\n", t);',
        r'printf("%f\n", t);',
        r'printf("speedup %f\n", t);',
        r'printf("Error rate: %f\n", t);',
    ],
)
def test_what_is_no_time_is_not_taken_for_one(statement: str) -> None:
    assert printed(statement)[0] == []


def test_the_label_of_the_next_value_is_no_unit() -> None:
    times = printed(r'printf("N=%d elapsed time=%f GDOF/s=%f\n", n, t, t);')[0]
    assert times[0] == (r"N=\s*\S+ elapsed time=\s*([-+.\w]+) GDOF/s=\s*", "s", "lower")


def test_a_rate_counts_upwards() -> None:
    assert printed(r'printf("bandwidth: %f GB/s\n", t);')[0] == [(r"bandwidth:\s*([-+.\w]+) GB/s", None, "higher")]


def checks_of(body: str) -> list[tuple[str, str, bool]]:
    lines, texts = read_prints(body.encode(), "a.cpp", "cpp")
    found = [*find_verdicts(texts), *find_numbers(lines, [], only_sums=False)]
    return [(check.kind, check.pattern, check.active) for check in found]


def test_verdicts_are_told_from_labels_and_messages_about_files() -> None:
    body = r"""
void f(bool ok, int errors) {
  printf("failed to open the file\n");
  printf("number of failures: %d\n", errors);
  if (ok) printf("Verification passed\n"); else printf("Verification FAILED!\n");
}"""
    found = checks_of(body)
    assert ("require", "Verification passed", True) in found or ("require", r"\bpassed\b", True) in found
    assert ("forbid", r"\bFAILED\b", True) in found
    assert not any("open" in pattern for _, pattern, _ in found)


def test_a_message_of_failure_is_forbidden_and_its_numbers_are_no_results() -> None:
    body = r"""
void f(int i, float a, int bad) {
  printf("mismatch at %d: %f\n", i, a);
  printf("Error: no table for size=%d\n", i);
  printf("number of mismatches: %d\n", bad);
}"""
    assert checks_of(body) == [
        ("forbid", r"\bmismatch\b", True),
        ("number", r"number of mismatches:\s*([-+.\w]+)", True),
    ]


def test_what_a_macro_prints_is_read() -> None:
    source = b'#define REPORT(t) \\\n  printf("Kernel time: %f (us)\\n", \\\n    t)\nvoid f() { REPORT(1.0); }\n'
    lines, _ = read_prints(source, "a.cu", "cuda")
    assert [(line.number, line.function) for line in lines] == [(2, "REPORT")]
    assert find_times(lines, [], "cuda")[0].unit == "us"


def test_a_number_printed_before_the_launch_is_an_input() -> None:
    source = b"""void f(float n, float r) {
  printf("value: %f\\n", n);
  k<<<1, 1>>>();
  printf("result: %f\\n", r);
}"""
    lines, _ = read_prints(source, "a.cu", "cuda")
    found = find_numbers(lines, [], False, [("a.cu", "f", 3)])
    assert [check.pattern for check in found] == [r"result:\s*([-+.\w]+)"]


def test_the_time_of_a_reference_kernel_is_its_own() -> None:
    source = b"""void f(float t) {
  printf("time of sweep: %f ms\\n", t);
  printf("time of reference: %f ms\\n", t);
}"""
    lines, _ = read_prints(source, "a.cu", "cuda")
    assert "sweep" in find_times(lines, ["sweep"], "cuda", [])[0].pattern
    assert "reference" in find_times(lines, ["sweep_ref"], "cuda", [("a.cu", "f", 2)])[0].pattern


def test_the_times_of_one_kernel_that_is_launched_again_are_one_pattern() -> None:
    source = b"""void f(float t) {
  k<float><<<1, 1>>>();
  printf("kernel time (float): %f ms\\n", t);
  k<double><<<1, 1>>>();
  printf("kernel time (double): %f ms\\n", t);
  other<<<1, 1>>>();
  printf("kernel time (other): %f ms\\n", t);
}"""
    lines, _ = read_prints(source, "a.cu", "cuda")
    time = find_times(lines, ["k"], "cuda", [("a.cu", "f", 2), ("a.cu", "f", 4)])[0]
    assert ("float" in time.pattern, "double" in time.pattern, "other" in time.pattern) == (True, True, False)


def test_the_times_of_several_kernels_are_one_pattern() -> None:
    source = b'void f(float t) { printf("a: time %f (us)\\n", t); printf("b: time %f (us)\\n", t); }'
    lines, _ = read_prints(source, "a.cu", "cuda")
    both = together([find_times(lines, [kernel], "cuda")[0] for kernel in "ab"])
    assert both is not None
    assert (both.pattern, both.aggregate) == (r"(?:a: time\s*|b: time\s*)([-+.\w]+) \(us\)", "sum")


def test_a_verdict_that_is_not_compiled_in_stays_a_comment() -> None:
    assert checks_of('#ifdef VERIFY\nvoid f() { puts("PASS"); }\n#endif\n') == [("require", r"\bPASS\b", False)]


def test_a_residual_is_compared_as_a_number() -> None:
    assert ("number", r"residual\s*([-+.\w]+)", True) in checks_of(r'void f(double r) { printf("residual %g\n", r); }')


MAKE_WORDS = """\
A = x.cu y.cu
B := $(A:.cu=.o) $(patsubst %.cu,obj/%.o,$(A))
C ?= $(strip   one   two )
C ?= three
D = $(if $(EMPTY),yes,no) $(filter %.cu,$(A) z.c) $(filter-out x%,$(A))
E = $(notdir a/b.c d/e.c) $(dir a/b.c) $(basename a/b.c) $(addprefix -I,p q)
F = $(foreach w,1 2,v$(w)) $(subst a,b,banana) $(firstword p q) $(sort b a b)
F += more \\
  lines
ifneq ($(A),)
  ifdef NOTHING
    G = 1
  else ifeq "$(words)" ""
    G = 2
  else
    G = 3
  endif
endif
all:
\t@echo $@
"""


@needs_make
@pytest.mark.parametrize("name", list("ABCDEFG"))
def test_variables_are_what_make_says(tmp_path: Path, name: str) -> None:
    path = tmp_path / "Makefile"
    path.write_text(MAKE_WORDS)
    said = subprocess.run(["make", "-s", f"--eval=ask:;@echo '$({name})'", "ask"], cwd=tmp_path, capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert read_makefile(path).value(name) == " ".join(said.stdout.split())


@given(st.text(max_size=40).filter(lambda text: not any(0xD800 <= ord(letter) < 0xE000 for letter in text)))
def test_any_text_survives_being_written_as_toml(text: str) -> None:
    assert tomllib.loads(f"x = {quoted(text)}")["x"] == text


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("sweep", "sweep"),
        ("void ns::sweep<float, (int)3>(float*, std::vector<int>)", "sweep"),
        ("sweep(double*) [clone ._omp_fn.0]", "sweep"),
        ("sweep._omp_fn.1", "sweep"),
        ("sweep.constprop.0.isra.0", "sweep"),
        ("(anonymous namespace)::sweep(int)", "sweep"),
    ],
)
def test_symbols_lead_back_to_the_functions_name(symbol: str, name: str) -> None:
    assert demangled_name(symbol) == name


HOT_SOURCE = """\
#include <cmath>
#include <cstdio>
#include <vector>
double sweep(std::vector<double> &a) {
  double s = 0.0;
  for (int r = 0; r < REPEAT; ++r)
    for (auto &x : a) s += std::sin(x) * std::exp(-x);
  return s;
}
double norm(const std::vector<double> &a) {
  double s = 0.0;
  for (double x : a) s += x * x;
  return s;
}
int main() {
  std::vector<double> a(1000, 0.5);
  std::printf("%g %g\\n", sweep(a), norm(a));
}
"""


def hot_program(folder: Path, repeat: int) -> Path:
    (folder / "hot.cpp").write_text(HOT_SOURCE)
    program = folder / "hot program"
    words = ["g++", "-O1", *PROFILE_FLAGS, f"-DREPEAT={repeat}", "-o", str(program), str(folder / "hot.cpp")]
    subprocess.run(words, check=True)
    return program


def names_of(profiled: str) -> list[str]:
    sources = {"hot.cpp": HOT_SOURCE.encode()}
    hot = hot_functions(profiled, functions_of(sources, "cpp"), sources)
    known = [one for one in hot if one.file is not None]
    assert known[0].share > 0.5
    assert (known[0].file, known[0].line, known[0].region) == ("hot.cpp", 4, True)
    return [one.name for one in known]


def perf_samples() -> bool:
    if not (shutil.which("perf") and shutil.which("g++")):
        return False
    return (
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", "-", "true"], capture_output=True).returncode
        == 0
    )


@pytest.mark.skipif(not perf_samples(), reason="perf may not sample here")
def test_time_in_libraries_counts_for_the_function_that_calls_them(tmp_path: Path) -> None:
    program = hot_program(tmp_path, 6000)
    text = asyncio.run(profile(here, [str(program)], str(tmp_path)))
    assert names_of(text)[0] == "sweep"


@pytest.mark.skipif(not (shutil.which("valgrind") and shutil.which("g++")), reason="valgrind is not installed")
def test_callgrind_takes_over_where_perf_is_forbidden(tmp_path: Path) -> None:
    program = hot_program(tmp_path, 50)

    async def without_perf(argv: Sequence[str], folder: str) -> JobResult:
        if "perf record" in argv[2]:
            return JobResult(255, None, b"", b"perf_event_open: Operation not permitted\n", 0.0, 0.0, 0)
        return await here(argv, folder)

    text = asyncio.run(profile(without_perf, [str(program)], str(tmp_path)))
    assert text.startswith("# callgrind format")
    assert names_of(text)[0] == "sweep"


def test_the_share_of_kernels_is_of_the_time_in_kernels() -> None:
    def kernel(name: str, total_s: float) -> KernelTime:
        return KernelTime(name, name, 1, total_s, total_s, total_s, total_s, total_s, total_s)

    sources = {"main.cu": KERNEL.encode()}
    times = [kernel("void cub::scan<int>(int*)", 0.25), kernel("sweep(float*, int)", 0.75)]
    hot = hot_kernels(times, functions_of(sources, "cuda"))
    assert [(one.name, one.share, one.region) for one in hot] == [("sweep", 0.75, True), ("scan", 0.25, False)]
    assert hot[0].line == 3
