from __future__ import annotations

import asyncio
import platform
import shutil
from pathlib import Path

import pytest

from kernelwright.toolchain import CompileCommand, Exec, Report, cpp
from kernelwright.toolchain.assembly import Instruction, mix, parse
from kernelwright.toolchain.replay import within
from kernelwright.toolchain.symbols import base_name, is_named

SOURCE = """\
#include <cmath>
#include "saxpy.hpp"
void scale(float* a, const float* b, int n) {
    for (int i = 0; i < n; ++i) a[i] = 2.0f * b[i];
}
double chain(const double* b, int n) {
    double s = 0;
    for (int i = 0; i < n; ++i) s = std::exp(s) / b[i];
    return s;
}
void both(float* y, const float* x, int n) { saxpy(y, x, n); }
"""
HEADER = """\
inline void saxpy(float* y, const float* x, int n) {
    for (int i = 0; i < n; ++i) y[i] += 3.0f * x[i];
}
"""
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 assembly")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo" / "app"
    folder.mkdir(parents=True)
    (folder / "work.cpp").write_text(SOURCE)
    (folder / "saxpy.hpp").write_text(HEADER)
    return folder


def analyse(repo: Path, exec_: Exec, file: str, lines: tuple[int, int], names: tuple[str, ...] = (), *,
            flags: tuple[str, ...] = ("-O3",), compiler: str = "g++", budget: int = 6000) -> Report:  # fmt: skip
    command = CompileCommand(
        (compiler, *flags, "-MMD", "-MF", "work.d", "-c", "work.cpp", "-o", "work.o"),
        str(repo),
        ("work.cpp",),
        "work.o",
    )
    return asyncio.run(cpp.report(command, file, lines, names, exec_, budget))


@x86
def test_a_vectorised_loop_is_reported_with_its_packed_instructions(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/work.cpp", (3, 5))
    assert any("vectorized" in one["what"] and one["line"] == 4 for one in report.data["vectorized"])
    assert report.data["instructions"]["packed_fp_128"] > 0
    assert report.data["loops"][0]["instructions"]["packed_fp_128"] > 0
    assert "-march=native" in report.text


@x86
def test_a_wider_target_gives_wider_vectors_and_no_note_about_it(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/work.cpp", (3, 5), flags=("-O3", "-mavx2"))
    assert report.data["instructions"]["packed_fp_256"] > 0
    assert not any("128 bits" in note for note in report.data["notes"])


def test_a_loop_that_stays_scalar_says_why_and_what_it_calls(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/work.cpp", (6, 10))
    assert any("vectorize" in one["why"] for one in report.data["missed"])
    assert "exp" in report.data["instructions"]["calls"]
    assert any("calls functions" in note for note in report.data["notes"])
    assert any("divides" in note for note in report.data["notes"])


def test_a_region_in_a_header_is_found_where_it_was_inlined(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/saxpy.hpp", (1, 3), ("saxpy",))
    assert report.data["vectorized"]
    assert "both(float*, float const*, int):" in report.data["assembly"]


def test_lines_outside_the_region_are_not_shown(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/work.cpp", (3, 5))
    assert "exp" not in report.data["assembly"]
    assert all(3 <= one["line"] <= 5 for one in report.data["vectorized"] + report.data["missed"])


def test_the_build_leaves_nothing_behind(repo: Path, exec_here: Exec) -> None:
    before = sorted(path.name for path in repo.iterdir())
    analyse(repo, exec_here, "app/work.cpp", (3, 5))
    assert sorted(path.name for path in repo.iterdir()) == before


def test_text_keeps_to_its_budget_and_says_what_was_cut(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/work.cpp", (3, 10), budget=1500)
    assert len(report.text) <= 1500
    assert "[cut:" in report.text
    assert len(report.data["assembly"]) > len(report.text) / 2


def test_an_unoptimised_build_is_named(repo: Path, exec_here: Exec) -> None:
    report = analyse(repo, exec_here, "app/work.cpp", (3, 5), flags=())
    assert any("no -O level" in note for note in report.data["notes"])


def test_code_that_does_not_compile_is_a_report_with_the_compilers_words(repo: Path, exec_here: Exec) -> None:
    (repo / "work.cpp").write_text("void f() { undeclared(); }\n")
    report = analyse(repo, exec_here, "app/work.cpp", (1, 1))
    assert "undeclared" in report.text
    assert report.data["exit_code"] == 1


def test_a_region_that_is_not_compiled_says_so(repo: Path, exec_here: Exec) -> None:
    (repo / "work.cpp").write_text("static void unused() {}\nint used() { return 1; }\n")
    report = analyse(repo, exec_here, "app/work.cpp", (1, 1), ("unused",))
    assert "emitted no instruction" in report.text


def test_clang_is_understood_too(repo: Path, exec_here: Exec) -> None:
    clang = next((found for name in ("clang++", "clang++-15", "clang++-14") if (found := shutil.which(name))), None)
    if clang is None:
        pytest.skip("no clang++ on this machine")
    report = analyse(repo, exec_here, "app/work.cpp", (3, 10), compiler=clang)
    assert any("vectorized loop" in one["what"] for one in report.data["vectorized"])
    assert any(one["line"] == 8 for one in report.data["missed"])
    assert "exp" in report.data["instructions"]["calls"]


@pytest.mark.parametrize(
    ("mnemonic", "operands", "kinds"),
    [
        ("vfmadd231pd", "(%rax),%ymm1,%ymm2", {"packed_fp_256", "fma", "load"}),
        ("vaddps", "%zmm1,%zmm2,%zmm3", {"packed_fp_512"}),
        ("addsd", "%xmm0,%xmm1", {"scalar_fp"}),
        ("divsd", "8(%rsp),%xmm1", {"scalar_fp", "div", "load", "stack_access"}),
        ("movups", "%xmm0,(%r9,%rcx)", {"store"}),
        ("addl", "$1,(%rax)", {"load", "store"}),
        ("cmpl", "%eax,(%rdi)", {"load"}),
        ("leaq", "8(%rax),%rdx", set()),
        ("idivl", "%ebp", {"int_div"}),
        ("pxor", "%xmm0,%xmm0", set()),
        ("paddd", "%xmm1,%xmm0", {"packed_int_128"}),
        ("jne", ".L3", {"branch"}),
    ],
)
def test_x86_instructions_are_sorted_by_what_they_do(mnemonic: str, operands: str, kinds: set[str]) -> None:
    anchor = Instruction("movq", "%rax,%rbx", None, True)
    counted = mix([Instruction(mnemonic, operands, None, True), anchor])
    assert set(counted) - {"total"} == kinds


def test_aarch64_assembly_is_read_too() -> None:
    text = """\
        .file   1 "work.cpp"
        .type   _Z5scalePfPKfi, %function
_Z5scalePfPKfi:
        .loc    1 4 0
.L3:
        ldr     q0, [x1], 16
        fmul    v0.4s, v0.4s, v1.4s
        str     q0, [x0], 16
        cmp     x1, x2
        bne     .L3
        ret
"""
    (function,) = parse(text, lambda path: path == "work.cpp", (3, 5), [])
    counted = mix(function.instructions)
    assert counted == {"total": 6, "load": 1, "packed_fp_128": 1, "store": 1, "branch": 1}


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN2ns4axpyIfEEviT_PKS1_PS1_", "axpy"),
        ("_Z5sweepPdi._omp_fn.0", "sweep"),
        ("_ZL6kernelPf", "kernel"),
        ("_ZNK3abc3getEv", "get"),
        ("_ZN12_GLOBAL__N_14workEi", "work"),
        ("plain", "plain"),
        ("plain.constprop.0", "plain"),
    ],
)
def test_the_name_of_a_function_is_found_in_its_symbol(symbol: str, name: str) -> None:
    assert base_name(symbol) == name
    assert is_named(symbol, [name, "other"])
    assert not is_named(symbol, ["oth"])


@pytest.mark.parametrize("budget", [400, 450, 600, 5000])
def test_sections_never_pass_their_budget(budget: int) -> None:
    sections = [f"Section {number}:\n" + "a line of text\n" * 8 for number in range(6)]
    text = within(sections, budget)
    assert len(text) <= budget
    assert ("[left out" in text) == (budget < 5000)
