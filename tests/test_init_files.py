"""Files that a program writes, and a build's own flags: what is read of sources and Makefiles, and what a run corrects."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.init.flags import fitted, lacking, libraries
from kernelwright.init.makefile import read_makefile
from kernelwright.init.programs import programs_of
from kernelwright.init.written import FileDraft, find_written, placed, seen


def written(body: str, before: str = "") -> list[tuple[str | None, str]]:
    source = f"{before}\nint main(int argc, char **argv) {{\n{body}\n}}\n"
    return [(file.path, file.dtype) for file in find_written({"main.cpp": source.encode()})]


@pytest.mark.parametrize(
    "body",
    [
        'FILE *f = fopen("field.txt", "w");',
        'const char *name = "field.txt"; FILE *f = fopen(name, "wb"); fprintf(f, "%f", x);',
        'char name[80]; strcpy(name, "field.txt"); FILE *f = fopen(name, "w");',
        'std::stringstream name; name << "field.txt"; FILE *f = fopen(name.str().c_str(), "wb");',
        'std::ofstream out("field.txt");',
        'std::string name = "field.txt"; std::ofstream out(name.c_str());',
        'std::ofstream out; out.open("field.txt");',
        'std::fstream out; out.open("field.txt", std::ios::out);',
    ],
)
def test_a_file_is_known_by_the_one_literal_that_names_it(body: str) -> None:
    assert written(body) == [("field.txt", "text")]


def test_a_macro_may_hold_the_name() -> None:
    assert written('FILE *f = fopen(RESULT, "w");', '#define RESULT "field.txt"') == [("field.txt", "text")]


@pytest.mark.parametrize(
    "body",
    [
        'FILE *f = fopen(step ? "a.txt" : "b.txt", "w");',
        'sprintf(name, "field_%d.txt", step); FILE *f = fopen(name, "w");',
        'FILE *f = fopen("/var/field.txt", "w");',
        'FILE *f = fopen("../field.txt", "w");',
        'std::cout << name << "\\n"; FILE *f = fopen(name, "w");',
    ],
)
def test_a_name_that_the_source_does_not_state_is_left_open(body: str) -> None:
    assert written(body) == [(None, "text")]


def test_what_is_read_or_never_called_is_no_output() -> None:
    assert written('FILE *f = fopen("in.txt", "r"); std::ifstream in("in.txt"); in.open("in.txt");') == []
    assert written("", 'void dump() { FILE *f = fopen("field.txt", "w"); }') == []
    assert written("dump();", 'void dump() { FILE *f = fopen("field.txt", "w"); }') == [("field.txt", "text")]


def test_binary_numbers_have_the_size_that_is_written() -> None:
    body = 'FILE *f = fopen("field.bin", "wb"); fwrite(a, sizeof({}), n, f);'
    assert written(body.format("float")) == [("field.bin", "float32")]
    assert written(body.format("double")) == [("field.bin", "float64")]
    assert written(body.format("Cell")) == [("field.bin", "bytes")]


def test_an_argument_of_the_command_line_names_the_file() -> None:
    (file,) = find_written({"main.cpp": b'int main(int c, char **argv) { FILE *f = fopen(argv[2], "w"); }'})
    assert [one.path for one in placed([file], "env A=1 ./main 10 out.txt", sure=False)] == ["out.txt"]
    assert [one.path for one in placed([file], "./main 10", sure=False)] == [None]


def test_a_file_is_compared_where_nothing_else_tells_and_where_a_run_wrote_numbers() -> None:
    file = FileDraft("main.cpp:3", '"field.txt"', "field.txt", "text")
    log = FileDraft("main.cpp:4", '"run.log"', "run.log", "text")
    assert [one.active for one in placed([file, log], "./main", sure=False)] == [True, False]
    assert [one.active for one in placed([file, log], "./main", sure=True)] == [False, False]
    assert seen(file, b"1.5\n").active
    assert not seen(file, b"done\n").active
    assert not seen(log, b"1.5\n").active
    assert seen(file, None).path is None
    assert (seen(file, b"\0\1").active, seen(file, b"\0\1").dtype) == (False, "bytes")


def test_flags_are_fitted_to_this_machine(tmp_path: Path) -> None:
    given = ["-O3", "-gencode", "arch=compute_35,code=sm_35", "-gencode=arch=compute_70,code=sm_70", "-lineinfo"]
    assert fitted(given, "cuda", mpi=True) == ["-O3", "-arch={arch}", "-lineinfo"]
    assert fitted(["--offload-arch=gfx906", "-O2"], "hip", mpi=True) == ["--offload-arch={arch}", "-O2"]
    far = [f"-I{tmp_path}/none", "-I", f"{tmp_path}/none", f"-I{tmp_path}", "-DUSE_MPI", "-DUSE_MPI=0", "-lmpi"]
    assert fitted(far, "cuda", mpi=False) == [f"-I{tmp_path}", "-DUSE_MPI=0"]
    assert lacking(far, mpi=True) == [f"-I{tmp_path}/none", f"{tmp_path}/none"]
    assert fitted(["-mcpu=pwr8", "-fiopenmp", "-O3"], "cpp", mpi=True) == ["-O3"]
    assert libraries("-lineinfo -lm -lcublas -lcublas -L/x") == ("cublas",)


def test_variables_of_targets_hold_for_what_the_default_goal_needs(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "all: fast\nfast: FLAGS += -O3\ndebug: FLAGS += -g\nfast: app\ndebug: app\nFLAGS = -Wall\napp: app.o\n\tcc -o app\n"
    )
    assert read_makefile(tmp_path / "Makefile").value("FLAGS") == "-Wall -O3"
    assert read_makefile(tmp_path / "Makefile", {"FLAGS": "-O1"}).value("FLAGS") == "-O1"


def test_a_source_goes_into_the_program_whose_rule_names_it(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "app: main.o sub/wave.o\n\tcc -o $@ $^\n%.o: %.c\n\tcc -c $< -o $@\nbin/%: tools/%.c\n\tcc $< -o $@\nlib.a: lib.o\n"
    )
    for name in ("main.c", "sub/wave.c", "tools/show.c", "lib.c", "wave.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    made = read_makefile(tmp_path / "Makefile")
    found = {name: [program.target for program in programs_of(made, tmp_path / name)]
             for name in ("sub/wave.c", "tools/show.c", "lib.c", "wave.h")}  # fmt: skip
    assert found == {"sub/wave.c": ["app"], "tools/show.c": ["bin/show"], "lib.c": [], "wave.h": []}
    assert programs_of(made, tmp_path / "main.c")[0].sources == (tmp_path / "main.c", tmp_path / "sub/wave.c")
