"""Any Makefile or CMakeLists.txt: small repositories of our own become tasks, by reading and by a real build and run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.suites import Benchmark
from kernelwright.suites.make import AnyBuild
from kernelwright.task import FileCheck, NumberCheck, RegexTime, Task
from kernelwright.task_file import load_task

SWEEP = """\
#include "work.h"
void sweep(double *a, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) a[i] = a[i] * 0.5 + 1.0;
}
void shift(double *a, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) a[i] += 0.25;
}
"""
NORM = """\
#include "work.h"
double norm(const double *a, int n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += a[i] * a[i];
  return sum;
}
"""
MAIN = """\
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "work.h"
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  std::vector<double> a(n, 1.0);
  auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < 20; ++step) { sweep(a.data(), n); shift(a.data(), n); }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  printf("Elapsed time = %.6f s\\n", took.count());
  printf("Final energy = %12.6e\\n", norm(a.data(), n));
  FILE *out = fopen("field.txt", "w");
  for (int i = 0; i < 8; ++i) fprintf(out, "%.10f\\n", a[i]);
  fclose(out);
}
"""
HEADER = "void sweep(double *, int);\nvoid shift(double *, int);\ndouble norm(const double *, int);\n"
MAKEFILE = """\
CXX = g++
CXXFLAGS = -O2 -fopenmp $(EXTRA)
objects := $(patsubst src/%.cpp,%.o,$(wildcard src/[!o]*.cpp))
app: $(objects)
\t$(CXX) $(CXXFLAGS) $^ -o $@
%.o: src/%.cpp
\t$(CXX) $(CXXFLAGS) -c $< -o $@
"""
CUDA = """\
#include <cstdio>
__global__ void first(float *a) { a[threadIdx.x] *= 2; }
__global__ void second(float *a) { a[threadIdx.x] += 1; }
#ifdef WITH_MPI
__global__ void far(float *a) { a[threadIdx.x] -= 1; }
#endif
void go(float *a) {
  first<<<1, 32>>>(a);
  second<<<1, 32>>>(a);
#ifdef WITH_MPI
  far<<<1, 32>>>(a);
#endif
}
"""
CUDA_MAIN = """\
#include <cstdio>
#include <sstream>
void go(float *);
void write_field() {
  std::stringstream name;
  name << "field.asc";
  FILE *out = fopen(name.str().c_str(), "wb");
  fprintf(out, "%f\\n", 1.0);
}
int main(int argc, char **argv) {
  double seconds = 1, energy = 2, worst = 0, zones = 3;
  int its = 4;
  go(nullptr);
  printf("   Iteration count     =  %i \\n", its);
  printf("   Final Origin Energy = %12.6e \\n", energy);
  printf("        MaxRelDiff   = %12.6e\\n\\n", worst);
  printf("Elapsed time         = %10.2f (s)\\n", seconds);
  printf("FOM                  = %10.8g (z/s)\\n", zones);
  write_field();
}
"""


def repository(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def program(root: Path) -> Path:
    files = {"src/sweep.cpp": SWEEP, "src/norm.cpp": NORM, "src/main.cpp": MAIN, "src/work.h": HEADER}
    return repository(root / "repo", **files)


def made(importer: AnyBuild, out: Path, run: bool = False) -> tuple[dict[str, Benchmark], list[str]]:
    """What became of every file, and what the importer said that it did meanwhile."""
    said: list[str] = []

    async def all_of_them() -> dict[str, Benchmark]:
        sandbox = open_sandbox() if run else None
        return {name: await importer.make(name, out, sandbox, said.append) for name in importer.names()}

    return asyncio.run(all_of_them()), said


def tasks(benchmark: Benchmark, out: Path) -> dict[str, Task]:
    return {"+".join(one.kernels): load_task(out / one.file) for one in benchmark.tasks}


def test_every_function_with_a_parallel_loop_is_a_task_and_one_build_serves_them_all(tmp_path: Path) -> None:
    root, out = program(tmp_path), tmp_path / "tasks"
    repository(root, Makefile=MAKEFILE, **{"src/old.cpp": SWEEP})
    found, said = made(AnyBuild(root, command="./app 20000"), out, run=True)
    assert list(found) == ["src/norm.cpp", "src/old.cpp", "src/sweep.cpp"]
    assert [one.kernels for one in found["src/sweep.cpp"].tasks] == [("sweep",), ("shift",), ("sweep", "shift")]
    assert found["src/norm.cpp"].ran
    assert found["src/old.cpp"].reason == "the build of Makefile does not read it"
    assert sum(one.endswith("building the original") for one in said) == 1
    task = tasks(found["src/norm.cpp"], out)["norm"]
    assert task.root == root.resolve()
    assert (task.shown[0].command, task.shown[0].outputs) == ("./app 20000", ("field.txt",))
    assert isinstance(task.time, RegexTime)
    assert task.time.unit == "s"
    assert [check.path for check in task.check if isinstance(check, FileCheck)] == ["field.txt"]


CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(Heat CXX)
find_package(OpenMP)
set(KERNELS ${CMAKE_CURRENT_SOURCE_DIR}/src/sweep.cpp src/norm.cpp)  # shared
add_library(kernels STATIC ${KERNELS})
target_compile_options(kernels PUBLIC ${OpenMP_CXX_FLAGS})
add_executable(idle idle.cpp)
add_subdirectory(app)
enable_testing()
add_test(NAME short COMMAND heat 20000)
add_test(NAME odd COMMAND heat 20011)
"""
APP = """\
add_executable(heat ../src/main.cpp)
target_link_libraries(heat PRIVATE kernels ${OpenMP_CXX_FLAGS})
"""


def test_a_cmake_project_is_configured_built_and_run_as_its_tests_do(tmp_path: Path) -> None:
    root, out = program(tmp_path), tmp_path / "tasks"
    repository(root, **{"CMakeLists.txt": CMAKE, "app/CMakeLists.txt": APP, "idle.cpp": "int main() {}\n"})
    found, _ = made(AnyBuild(root), out, run=True)
    assert found["src/sweep.cpp"].reason is None
    assert found["src/sweep.cpp"].ran
    task = tasks(found["src/sweep.cpp"], out)["sweep+shift"]
    assert task.build.artifact == "build/app/heat"
    assert [(run.command, run.role) for run in task.run] == [
        ("./build/app/heat 20000", "shown"),
        ("./build/app/heat 20011", "held_out"),
    ]


FAR_MAKEFILE = """\
MPI_FLAGS = -DWITH_MPI -I$(MPICH_DIR)/include
NVCC = nvcc -ccbin /opt/of-no-machine/bin/CC
FLAGS = -arch=sm_35
RFLAGS = $(MPI_FLAGS) -O3
LINKFLAGS = -lmpich -L$(MPICH_DIR)/lib
all: release
debug: LINKFLAGS +=
release: FLAGS += $(RFLAGS)
debug: FLAGS += -g
release: wave
debug: wave
wave: main.o wave.o
\t$(NVCC) $(LINKFLAGS) main.o wave.o -o wave
main.o: main.cu
\t$(NVCC) $(FLAGS) main.cu -c -o main.o
wave.o: wave.cu
\t$(NVCC) $(FLAGS) wave.cu -c -o wave.o
"""


def test_a_cuda_makefile_for_another_machine_is_read_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = repository(tmp_path / "bin", nvcc="#!/bin/sh\n")
    (programs / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    root, out = tmp_path / "repo", tmp_path / "tasks"
    repository(root, **{"src/wave.cu": CUDA, "src/main.cu": CUDA_MAIN, "build/Makefile.BIG": FAR_MAKEFILE})
    found, _ = made(AnyBuild(root, command="./wave -s 120"), out)
    assert list(found) == ["src/wave.cu"]
    assert [one.kernels for one in found["src/wave.cu"].tasks] == [("first",), ("second",), ("first", "second")]
    assert any("far (src/wave.cu:5) is not compiled in" in note for note in found["src/wave.cu"].notes)
    task = tasks(found["src/wave.cu"], out)["first"]
    assert (task.workdir, task.siblings, task.build.artifact) == ("src", ("build",), "src/wave")
    assert task.build.command == (
        "make -B -j{jobs} -f ../build/Makefile.BIG NVCC=nvcc 'FLAGS=-arch={arch} -O3 {flags}' LINKFLAGS="
    )
    assert task.needs.libraries == ()


def test_a_rate_stands_for_a_time_that_is_printed_in_jumps_and_results_become_checks(tmp_path: Path) -> None:
    root, out = tmp_path / "repo", tmp_path / "tasks"
    makefile = "wave: main.cu wave.cu\n\tnvcc main.cu wave.cu -o wave\nrun: wave\n\t./wave -s 120\n"
    repository(root, **{"wave.cu": CUDA, "main.cu": CUDA_MAIN, "Makefile": makefile})
    task = tasks(made(AnyBuild(root), out)[0]["wave.cu"], out)["first"]
    assert isinstance(task.time, RegexTime)
    assert (task.time.pattern, task.time.better) == (r"FOM\s+=\s*([-+.\w]+) \(z/s\)", "higher")
    numbers = {check.pattern: check for check in task.check if isinstance(check, NumberCheck)}
    by_name = {pattern.split("\\s")[0].split(" =")[0]: check for pattern, check in numbers.items() if pattern}
    assert set(by_name) == {"Iteration count", "Final Origin Energy", "MaxRelDiff"}
    assert (by_name["Iteration count"].rel, by_name["Final Origin Energy"].rel) == (0.0, "measured")
    assert [(check.path, check.rel) for check in task.check if isinstance(check, FileCheck)] == [
        ("field.asc", "measured")
    ]


def test_a_program_that_does_not_build_or_run_is_a_reason(tmp_path: Path) -> None:
    root, out = program(tmp_path), tmp_path / "tasks"
    repository(root, Makefile=MAKEFILE)
    found, _ = made(AnyBuild(root, command="./app"), out, run=True)
    reason = found["src/norm.cpp"].reason or ""
    assert reason.startswith("the unmodified program does not end well: run 'first' was ended by signal")
    repository(root, Makefile=MAKEFILE.replace("-fopenmp", "-fno-such-flag"))
    found, said = made(AnyBuild(root, command="./app 20000"), out, run=True)
    assert "the unmodified code does not build" in (found["src/norm.cpp"].reason or "")
    assert sum(one.endswith("building the original") for one in said) == 1
    assert list(out.glob("*.toml")) == []


def test_a_folder_without_a_build_gives_no_names_and_a_file_of_it_a_reason(tmp_path: Path) -> None:
    root = program(tmp_path)
    importer = AnyBuild(root)
    assert importer.names() == []
    benchmark = asyncio.run(importer.make("src/sweep.cpp", tmp_path, None, print))
    assert benchmark.reason == "no Makefile or CMakeLists.txt lies beside it or above it"
    assert asyncio.run(importer.make("src/none.cpp", tmp_path, None, print)).reason == "there is no file src/none.cpp"
    with pytest.raises(UsageError, match="is no folder"):
        AnyBuild(root / "nowhere")


def test_where_tasks_come_from_is_kept(tmp_path: Path) -> None:
    root = program(tmp_path)
    repository(root, Makefile=MAKEFILE, LICENSE="Permission is hereby granted, free of charge, to any person", **{
        ".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "0" * 40 + "\n"})  # fmt: skip
    origin = AnyBuild(root / "src").origin
    assert (origin.suite, origin.language, origin.revision, origin.licence) == ("make", "cpp", "0" * 40, "MIT")


SEVERAL = """\
NVCC = nvcc
CFLAGS = -O3
%: %.cu
\t$(NVCC) $(CFLAGS) $< -o $@
all: wave norm
wave: wave.cu
norm: norm.cu
"""
ONE_FILE = CUDA.replace("second", "other") + CUDA_MAIN.replace("void go(float *);\n", "")


def test_each_file_of_a_makefile_with_several_programs_gets_its_own_program(tmp_path: Path) -> None:
    root, out = tmp_path / "repo", tmp_path / "tasks"
    repository(root, Makefile=SEVERAL, **{"wave.cu": ONE_FILE, "norm.cu": ONE_FILE.replace("FOM", "Rate")})
    found, _ = made(AnyBuild(root), out)
    first = {name: tasks(benchmark, out)["first"] for name, benchmark in found.items()}
    assert [(task.build.artifact, task.build.command) for task in first.values()] == [
        ("norm", "make -B -j{jobs} 'CFLAGS=-O3 -arch={arch} {flags}' norm"),
        ("wave", "make -B -j{jobs} 'CFLAGS=-O3 -arch={arch} {flags}' wave"),
    ]
    assert [task.shown[0].command for task in first.values()] == ["./norm", "./wave"]
    assert [isinstance(task.time, RegexTime) and task.time.pattern[:4] for task in first.values()] == [
        "Rate",
        r"FOM\s"[:4],
    ]


def test_a_makefile_that_only_calls_cmake_leaves_the_build_to_cmake(tmp_path: Path) -> None:
    root, out = tmp_path / "repo", tmp_path / "tasks"
    lists = """\
cmake_minimum_required(VERSION 3.18)
project(Waves LANGUAGES CXX CUDA)
include_directories(${PROJECT_SOURCE_DIR}/src)
aux_source_directory(${PROJECT_SOURCE_DIR}/src SRC)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_SOURCE_DIR}/bin)
add_executable(wave main.cu ${SRC})
set_target_properties(wave PROPERTIES CUDA_ARCHITECTURES 70 OUTPUT_NAME waves)
"""
    files = {"main.cu": CUDA_MAIN, "src/go.cu": '#include "deep/wave.cuh"\n', "src/deep/wave.cuh": CUDA}
    repository(
        root, **files, **{"CMakeLists.txt": lists, "Makefile": "all:\n\tcmake -B build && cmake --build build\n"}
    )
    found, _ = made(AnyBuild(root, command="./bin/waves 3"), out)
    task = tasks(found["src/deep/wave.cuh"], out)["first+second"]
    assert (task.build.artifact, task.workdir) == ("bin/waves", ".")
    assert task.build.configure is not None
    assert "-DCMAKE_CUDA_ARCHITECTURES={arch_number}" in task.build.configure
    text = (out / found["src/deep/wave.cuh"].tasks[0].file).read_text()
    assert "# CMakeLists.txt sets the GPU's architecture itself, which nothing outside it can change." in text
