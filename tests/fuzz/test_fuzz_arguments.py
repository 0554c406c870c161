"""Compile arguments: hostile ones in every spelling are refused, and what is accepted does no more than compile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.toolchain import arguments
from kernelwright.toolchain.arguments import check_arguments

TUNABLES = {"TILE": (8, 16)}
REACHING = (
    "wrapper", "B", "fplugin", "fplugin-arg-x", "fpass-plugin", "Xclang", "load", "Wl", "Wa", "Wp", "specs", "o",
    "include", "imacros", "I", "isystem", "iquote", "idirafter", "isysroot", "L", "l", "x", "config", "sysroot",
    "fuse-ld", "save-temps", "fprofile-use", "fprofile-generate", "mllvm", "MF", "MD", "MMD", "MT", "MQ", "MJ",
    "ccbin", "compiler-bindir", "Xcompiler", "compiler-options", "Xlinker", "linker-options", "options-file",
    "optf", "run", "run-args", "keep", "keep-dir", "arbin", "ldir", "library", "library-path", "odir", "objtemp",
    "Xnvlink", "Xarchive", "Xfatbin", "pre-include", "system-include", "output-file", "dependency-output",
    "rocm-path", "hip-path", "hip-device-lib-path", "rocm-device-lib-path", "gcc-toolchain", "D", "U", "E", "S",
    "c", "M", "fdump-tree-all", "fopt-info-all", "ftime-trace", "T", "z", "shared", "nostdlib", "fmodule-mapper",
    "fsanitize", "dumpbase", "dumpdir", "auxbase", "no-integrated-cpp", "fuse-linker-plugin", "pipe", "time",
    "dryrun", "pass-exit-codes",
)  # fmt: skip
VALUES = ("x", "sh", "/tmp/x", "./x.so", "a,b", "-o,x", "@x", "$(id)", "x;id", "..", "-", "=", "", "1")
AROUND = (
    "{}", "-Xptxas={}", "-Xptxas=-O3,{}", "--ptxas-options={}", "-Xcompiler={}", "-Wl,{}", "-Wp,{}", "-Xclang={}", "-O3,{}",
    "-O3 {}", "{}\n", "\n{}", "\0{}", "'{}'", '"{}"', "@{}", " {}",
)  # fmt: skip


@st.composite
def hostile(draw: st.DrawFn) -> str:
    """An option that reaches beyond the code, by one of the ways in which compilers take one."""
    name = draw(st.sampled_from(REACHING))
    if draw(st.booleans()) and len(name) > 4:
        name = name[: draw(st.integers(max(3, len(name) - 3), len(name)))]
    value = draw(st.sampled_from(VALUES))
    dash = draw(st.sampled_from(["-", "--"]))
    around = draw(st.sampled_from(AROUND))
    joined = draw(st.sampled_from(["{}{}", "{}={}", "{} {}", "{},{}", "{}:{}"]))
    spelled = around.format(joined.format(dash + name, value))
    return spelled.replace("-", draw(st.sampled_from(["-", "-", "-", "‐", "–", "\u2212"])))


@settings(settings.get_profile("fuzz"), max_examples=2 * settings.get_profile("fuzz").max_examples)
@given(
    argument=hostile(), language=st.sampled_from(["cpp", "cuda", "hip"]), beside=st.lists(st.just("-O3"), max_size=2)
)
def test_an_argument_that_reaches_beyond_the_code_is_refused(argument: str, language: str, beside: list[str]) -> None:
    refused = check_arguments(language, [*beside, argument], tunables=TUNABLES)
    assert refused is not None, argument
    assert refused.isprintable()


@pytest.mark.parametrize("language", ["cpp", "cuda", "hip"])
@settings(settings.get_profile("fuzz"))
@given(data=st.data())
def test_no_letter_added_to_an_honest_argument_makes_it_two(language: str, data: st.DataObject) -> None:
    argument = data.draw(st.sampled_from(["-O3", "-ffp-contract=fast", "-DTILE=8"]))
    at = data.draw(st.integers(0, len(argument)))
    letter = data.draw(st.characters(exclude_categories=["L", "Nd"], exclude_characters="-_=,.+:"))
    assert check_arguments(language, [argument[:at] + letter + argument[at:]], tunables=TUNABLES) is not None


def accepted(language: str) -> st.SearchStrategy[str]:
    """Arguments that the list's own patterns make up, kept where the check says yes."""
    patterns = {"cpp": arguments._HOST, "cuda": arguments._CUDA, "hip": arguments._HIP}
    made = st.from_regex(
        patterns[language], fullmatch=True, alphabet=st.characters(min_codepoint=33, max_codepoint=126)
    )
    return made.filter(lambda argument: check_arguments(language, [argument], tunables=TUNABLES) is None)


def harmless(compiler: list[str], source: str, argument: str, folder: Path) -> None:
    """Compile with `argument`, where every other program that PATH offers would leave a trace, and look what was written.

    Whether the compiler knows the argument does not matter: it may say no."""
    shutil.rmtree(folder, ignore_errors=True)
    work, traps = folder / "work", folder / "traps"
    for made in (work, traps, folder / "tmp"):
        made.mkdir(parents=True)
    (work / source).write_text("int f(int* a, int n) { int s = 0; for (int i = 0; i < n; ++i) s += a[i]; return s; }\n")
    for name in ("sh", "x", "id", "ld", "collect2", "plugin", "rm", "cat", "python3", "make", "perl"):
        (traps / name).write_text(f"#!/bin/sh\n: > {folder}/trapped-{name}\n")
        (traps / name).chmod(0o755)
    subprocess.run(
        [*compiler, argument, "-c", source, "-o", "out.o"], cwd=work, capture_output=True, timeout=120,
        env={"PATH": f"{traps}:{os.environ['PATH']}", "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "tmp")},
    )  # fmt: skip
    assert {path.name for path in work.iterdir()} <= {source, "out.o"}, argument
    trapped = {path.name for path in folder.glob("trapped-*")} - (
        {"trapped-sh", "trapped-rm"} if source == "a.cu" else set()
    )
    assert not trapped, argument


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_what_is_accepted_for_a_host_compiler_only_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    assert compiler is not None

    @settings(settings.get_profile("fuzz"), max_examples=max(15, settings.get_profile("fuzz").max_examples // 4))
    @given(argument=accepted("cpp"))
    def compiles(argument: str) -> None:
        harmless([compiler], "a.cpp", argument, tmp_path / "gcc")

    compiles()


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
def test_what_is_accepted_for_nvcc_only_compiles(tmp_path: Path) -> None:
    compiler = shutil.which("nvcc")
    assert compiler is not None

    @settings(settings.get_profile("fuzz"), max_examples=max(15, settings.get_profile("fuzz").max_examples // 4))
    @given(argument=accepted("cuda"))
    def compiles(argument: str) -> None:
        harmless([compiler], "a.cu", argument, tmp_path / "nvcc")

    compiles()
