"""Macro expansion inside a region, held against the real preprocessor."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.errors import TaskError
from kernelwright.macros import Expansion, expand, expand_proven, preprocess_arguments, program_tokens, same_program
from kernelwright.source import Span, to_lf
from kernelwright.toolchain import CompileCommand

HEADER = r"""
#pragma once
#define SWEEP_BODY(i) \
  double s = 0.0; \
  for (int k = 0; k < n; ++k) { \
    s += a[i * n + k]; /* a row */ \
  } \
  b[i] = s;
#define SQUARE(x) ((x) * (x))
#define MINUS_ONE -1
#define JOIN(a, b) a##b
#define TEXT(x) #x
#define VALUE_TEXT(x) TEXT(x)
#define REPORT(format, ...) printf(format, ##__VA_ARGS__)
#define REPORT20(format, ...) printf(format __VA_OPT__(, ) __VA_ARGS__)
#define TWICE(...) do { __VA_ARGS__; __VA_ARGS__; } while (0)
#define RECURSIVE(x) RECURSIVE(x + 1)
#define HERE __LINE__
#define CALL SQUARE
#define NAMED(args...) f(args)
"""


def region(data: bytes, begin: str = "void sweep") -> Span:
    """The span from the text `begin` to the end of the file."""
    start = data.index(begin.encode())
    text = to_lf(data[start:])
    first = data.count(b"\n", 0, start) + 1
    return Span("sweep", "sweep.cpp", start, len(data), first, first + text.count("\n"), text)


def expanded(source: str, header: str = HEADER) -> Expansion:
    data = source.encode()
    return expand(data, {"body.hpp": header}, region(data))


def shown(expansion: Expansion) -> str:
    return to_lf(expansion.data[expansion.span.start : expansion.span.end])


class PreprocessorRefused(Exception):
    pass


class Preprocessor:
    """g++ -E over a folder of ours."""

    def __init__(self, folder: Path, header: str, standard: str = "-std=c++20") -> None:
        self.folder = folder
        command = CompileCommand(("g++", standard, "-c", "sweep.cpp", "-o", "x.o"), ".", ("sweep.cpp",), "x.o")
        self.argv = preprocess_arguments(command)
        (folder / "body.hpp").write_text(header)

    async def __call__(self, data: bytes) -> bytes:
        (self.folder / "sweep.cpp").write_bytes(data)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self.argv, cwd=self.folder, stdout=pipe, stderr=pipe)
        out, errors = await process.communicate()
        if process.returncode != 0:
            raise PreprocessorRefused(errors.decode())
        return out


def test_a_body_of_several_statements_gets_a_line_for_each() -> None:
    done = expanded("void sweep() {\n  for (int i = 0; i < n; ++i) {\n    SWEEP_BODY(i)\n  }\n}\n")
    assert shown(done) == (
        "void sweep() {\n  for (int i = 0; i < n; ++i) {\n    double s = 0.0;\n    for (int k = 0; k < n; ++k) {\n"
        "      s += a[i * n + k];\n    }\n    b[i] = s;\n  }\n}\n"
    )
    assert done.names == ("SWEEP_BODY",)


def test_the_span_follows_the_text() -> None:
    data = b"int before;\nvoid sweep() {\n  SWEEP_BODY(i)\n}\n"
    done = expand(data, {"body.hpp": HEADER}, region(data))
    assert done.data[done.span.start : done.span.end].decode() == done.span.text
    assert done.span.last_line - done.span.first_line == done.span.text.count("\n")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("y = -MINUS_ONE;", "y = - -1;"),
        ("y = SQUARE(SQUARE(2));", "y = ((((2) * (2))) * (((2) * (2))));"),
        ("JOIN(va, lue) = JOIN(1, e5);", "value = 1e5;"),
        ('puts(TEXT(SQUARE( 1 ) "a\\n"));', r'puts("SQUARE( 1 ) \"a\\n\"");'),
        ("puts(VALUE_TEXT(MINUS_ONE));", 'puts("-1");'),
        ('REPORT("x");', 'printf("x");'),
        ('REPORT20("x %d", 1);', 'printf("x %d", 1);'),
        ("if (y) TWICE(f(1, 2));", "if (y) do { f(1, 2); f(1, 2); } while (0);"),
        ("y = CALL(3);", "y = CALL(3);"),
        ("NAMED(1, 2);", "f(1, 2);"),
        ("SQUARE;", "SQUARE;"),
        ('puts("SQUARE(1)"); // SQUARE(1)', 'puts("SQUARE(1)"); // SQUARE(1)'),
        ('puts(R"(SQUARE(1))");', 'puts(R"(SQUARE(1))");'),
        ("assert(SQUARE(2) == 4);", "assert(SQUARE(2) == 4);"),
        ("RECURSIVE(1);", "RECURSIVE(1);"),
        ("y = HERE;", "y = HERE;"),
    ],
)
def test_one_call_becomes(call: str, text: str) -> None:
    source = "void sweep() {\n  %s\n}\n"
    assert shown(expanded(source % call)) == source % text


def test_directives_inside_the_region_stay() -> None:
    source = "void sweep() {\n#if SQUARE(1)\n  f();\n  #pragma omp parallel for num_threads(SQUARE(2))\n#endif\n}\n"
    assert shown(expanded(source)) == source


def test_a_macro_of_two_definitions_stays_and_the_reason_is_given() -> None:
    header = "#ifdef FAST\n#define STEP(x) x\n#else\n#define STEP(x) (x)\n#endif\n#define ONE 1\n"
    done = expanded("void sweep() { STEP(ONE); }\n", header)
    assert "STEP(1)" in shown(done)
    assert "several definitions" in done.left["STEP"]


def test_a_macro_that_the_file_redefines_stays() -> None:
    assert "SQUARE(2)" in shown(expanded('#include "body.hpp"\n#undef SQUARE\nvoid sweep() { SQUARE(2); }\n'))


def test_nothing_is_expanded_inside_a_call_of_a_macro_of_the_file() -> None:
    assert "SHOW(SQUARE(2))" in shown(expanded("#define SHOW(x) #x\nvoid sweep() { SHOW(SQUARE(2)); }\n"))


def test_line_ends_of_the_file_are_kept() -> None:
    data = b"// \xc3\xa4\r\nvoid sweep() {\r\n  SWEEP_BODY(i)\r\n}\r\n"
    done = expand(data, {"body.hpp": HEADER.replace("\n", "\r\n")}, region(data))
    assert done.data.count(b"\r\n") == done.data.count(b"\n") > 6
    assert done.data.startswith("// ä\r\n".encode())


def test_tokens_leave_out_spacing_and_line_markers_but_not_the_end_of_a_pragma() -> None:
    assert same_program(b'# 1 "a.cpp"\nint  a;\n', b"int a ;")
    assert not same_program(b"#pragma omp simd\nfor(;;);", b"#pragma omp simd for(;;);")
    assert not same_program(b"a - -1", b"a --1")
    assert program_tokens(b"a<<<1>>>(b)") == ["a", "<<", "<", "1", ">>", ">", "(", "b", ")"]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (b"int a;\nint b;\nint c;", b'# 9 "h"\nint a;\n\nint b ; int c;'),
        (b"a;\nb;\nb;\nc;", b"a;\nb;\nc;"),
        (b"a;\nb;\nc;", b"a;\nb;\nb;\nc;"),
        (b"a\n+\n+\nb", b"a\n++\nb"),
        (b"f(\n1,\n2\n)\n;", b"f(1, 2);"),
        (b"#pragma omp for\nfor;\n", b"#pragma omp\nfor for;\n"),
        (b'R"(a\nb  c\nd)"', b'R"(a\nb c\nd)"'),
        (b'/* a\n"b\n*/ c;', b'/* a\n"b\n*/ d;'),
        (b"", b"x"),
    ],
)
def test_reading_only_the_lines_that_differ_says_what_reading_all_says(left: bytes, right: bytes) -> None:
    around = b"#include_next\nint before;\n"
    for before, after in (
        (left, right),
        (right, left),
        (left, left),
        (around + left + around, around + right + around),
    ):
        assert same_program(before, after) == (program_tokens(before) == program_tokens(after))


needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@needs_gxx
def test_the_proof_accepts_a_whole_region(tmp_path: Path) -> None:
    data = (
        b'#include "body.hpp"\n#include <cassert>\nvoid sweep() {\n  SWEEP_BODY(i)\n  assert(SQUARE(1));\n'
        b'  REPORT("a"); REPORT20("b", 1); TWICE(f(MINUS_ONE, -MINUS_ONE)); RECURSIVE(2); y = HERE;\n}\n'
        b"void after() { assert(1); }\n"
    )
    done = asyncio.run(expand_proven(data, {"body.hpp": HEADER}, region(data), Preprocessor(tmp_path, HEADER)))
    assert {"SWEEP_BODY", "REPORT", "REPORT20", "TWICE", "MINUS_ONE"} <= set(done.names)


@needs_gxx
def test_a_macro_that_is_not_active_stays_and_the_others_are_expanded(tmp_path: Path) -> None:
    header = "#ifdef NEVER\n#define OFF(x) x\n#endif\n#define ON(x) x\n"
    data = b'#include "body.hpp"\nvoid sweep() { OFF(1); ON(2); }\n'
    done = asyncio.run(expand_proven(data, {"body.hpp": header}, region(data), Preprocessor(tmp_path, header)))
    assert shown(done) == "void sweep() { OFF(1); 2; }\n"
    assert done.left == {"OFF": "its expansion would change the program"}


@needs_gxx
def test_a_region_without_such_macros_is_the_users_mistake(tmp_path: Path) -> None:
    data = b'#include "body.hpp"\nvoid sweep() { f(); }\n'
    with pytest.raises(TaskError, match=r"no macro of body\.hpp can be expanded in the region 'sweep'"):
        asyncio.run(expand_proven(data, {"body.hpp": HEADER}, region(data), Preprocessor(tmp_path, HEADER)))


NAMES = ["A", "B", "C", "D"]
ATOMS = st.sampled_from([*NAMES, "x", "y", "z", "-", "+", "1", "2.5", "->", ">", "(", ")", ",", '"s"', "v"])


@st.composite
def headers(draw: st.DrawFn) -> str:
    """Four macros of random form whose bodies name one another."""
    lines = []
    for name in NAMES:
        form = draw(st.sampled_from(["", "(x)", "(x, y)", "(...)", "(x, ...)", "()"]))
        words = [word for word in ("x", "y") if word in form] + (["__VA_ARGS__"] if "..." in form else [])
        piece = st.one_of(
            st.sampled_from(words or ["q"]),
            st.sampled_from(words or ["q"]).map(lambda word, form=form: f"#{word}" if form and word != "q" else word),
            st.sampled_from(words or ["q"]).map(lambda word: f"v##{word}"),
            st.sampled_from(NAMES).flatmap(lambda n: st.sampled_from([n, f"{n}(1)", f"{n}(x, 2)", f"{n}()"])),
            st.sampled_from(["+", "-", ";", "{", "}", "w", "\\\n", "__VA_OPT__(o)" if "..." in form else "k"]),
        )
        lines.append(f"#define {name}{form} {' '.join(draw(st.lists(piece, max_size=6)))} ")
    return "\n".join(lines) + "\n"


@st.composite
def calls(draw: st.DrawFn) -> str:
    arguments = st.lists(st.lists(ATOMS.filter(lambda a: a not in "(),"), max_size=3).map(" ".join), max_size=3)
    one = st.builds(lambda n, a, close: f"{n}({', '.join(a)}){close}", st.sampled_from(NAMES), arguments,
                    st.sampled_from(["", ";", "-", "(1)"]))  # fmt: skip
    return "".join(draw(st.lists(st.one_of(one, st.sampled_from([*NAMES, "-", " ", "\n", "x"])), max_size=5)))


@needs_gxx
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(header=headers(), text=calls())
def test_whatever_is_expanded_the_preprocessor_gives_the_same_tokens(
    tmp_path_factory: pytest.TempPathFactory, header: str, text: str
) -> None:
    preprocess = Preprocessor(tmp_path_factory.getbasetemp(), header)
    data = f'#include "body.hpp"\nvoid sweep() {{\n  {text}\n}}\n'.encode()
    try:
        before = asyncio.run(preprocess(data))
    except PreprocessorRefused:
        return
    done = expand(data, {"body.hpp": header}, region(data))
    assert same_program(before, asyncio.run(preprocess(done.data)))
