"""Finding functions, and splicing text without touching a byte beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.source import Span, find_functions, moved, splice, unparsed_kernels

CUDA = b"""\
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(const T* __restrict__ a, T* b) { b[threadIdx.x] = N * a[threadIdx.x]; }
extern "C" __global__ void copy(float* a) {}
namespace n { struct S { void f() { scale<float, 1><<<1, 2>>>(0, 0); } S& operator+(int) { return *this; } }; }
static __device__ inline float* twice(float* x) { return x; }
"""


def test_functions_are_found_with_their_template_and_linkage() -> None:
    found = find_functions(CUDA, "cuda")
    assert [(function.name, function.kernel) for function in found] == [
        ("scale", True),
        ("copy", True),
        ("f", False),
        ("operator+", False),
        ("twice", False),
    ]
    assert CUDA[found[0].start :].startswith(b"template <typename T")
    assert CUDA[found[1].start :].startswith(b'extern "C"')
    assert CUDA[found[0].body_start : found[0].end].startswith(b"{ b[")


def test_a_kernel_hidden_behind_a_macro_is_named_as_unparsed() -> None:
    data = b"#define ATTR __attribute__((used))\n__global__ ATTR void odd(int* p) { p[0] = 1; }\nMAKE(kernel)\n"
    parsed = {function.name for function in find_functions(data, "cuda")}
    assert "odd" in parsed | set(unparsed_kernels(data, "cuda"))


def span(data: bytes, start: int, end: int, name: str = "r") -> Span:
    text = data[start:end].decode().replace("\r\n", "\n")
    first = data.count(b"\n", 0, start) + 1
    return Span(name, "f", start, end, first, first + text.count("\n"), text)


def test_a_crlf_file_stays_one() -> None:
    data = b"one\r\ntwo\r\nthree\r\n"
    assert splice(data, {span(data, 5, 8): "2\n2"}) == b"one\r\n2\r\n2\r\nthree\r\n"
    assert splice(data, {span(data, 5, 8): "two"}) == data


def test_bytes_that_are_no_utf8_survive() -> None:
    data = b"// \xff\xfe\nint a;\nint b;\n"
    assert splice(data, {span(data, 6, 12): "int c;"}) == b"// \xff\xfe\nint c;\nint b;\n"


OUTSIDE = st.text(alphabet="ab\n", max_size=6)
REGION = st.text(alphabet="cd\n", min_size=1, max_size=6)


@given(OUTSIDE, REGION, OUTSIDE, REGION, OUTSIDE, st.text(max_size=9), st.text(max_size=9))
def test_two_regions_are_spliced_as_if_one_after_the_other(
    a: str, x: str, b: str, y: str, c: str, first: str, second: str
) -> None:
    first, second = first.replace("\r", ""), second.replace("\r", "")
    data = (a + x + b + y + c).encode()
    at = len(a), len(a + x), len(a + x + b), len(a + x + b + y)
    spans = {span(data, at[0], at[1], "x"): first, span(data, at[2], at[3], "y"): second}
    assert splice(data, spans).decode() == a + first + b + second + c


def test_regions_move_with_what_is_put_before_them() -> None:
    data = b"a\nb\nc\nd\n"
    spans = {"x": span(data, 2, 3, "x"), "y": span(data, 6, 7, "y")}
    after = splice(data, {spans["x"]: "b1\nb2\nb3"})
    now = {each.region: each for each in moved(spans, {"x": "b1\nb2\nb3"})}
    assert (now["x"].first_line, now["x"].last_line) == (2, 4)
    assert (now["y"].first_line, now["y"].last_line) == (6, 6)
    assert after[now["y"].start : now["y"].end] == b"d"


@pytest.mark.parametrize("language", ["cpp", "cuda", "hip"])
def test_every_language_parses_plain_functions(language: str) -> None:
    assert [function.name for function in find_functions(b"int f(int a) { return a; }", language)] == ["f"]
