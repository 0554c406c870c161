"""Screening as callers use it: one sentence with region, line, what and what to do; files, line ends, several regions."""

from __future__ import annotations

import pytest

from kernelwright.screen import MAX_TEXT, Refusal, screen
from kernelwright.source import Span, splice

SCALE = "void scale(const float* in, float* out, int n) {\n    for (int i = 0; i < n; ++i) out[i] = 2 * in[i];\n}"


def span(data: bytes, text: str, region: str = "r") -> Span:
    raw = text.encode().replace(b"\n", b"\r\n") if b"\r\n" in data else text.encode()
    start = data.index(raw)
    return Span(region, "file.cpp", start, start + len(raw), data.count(b"\n", 0, start) + 1, 0, text)


def screened(before: str, old: str, after: str, new: str, *, language: str = "cpp", header: str = "") -> str | None:
    data = (before + old + after).encode()
    at = Span("r", "file.cpp", len(before.encode()), len((before + old).encode()), 1, 1, old)
    refusal = screen(language, data, splice(data, {at: new}), [(at, new)], [header.encode()] if header else [])
    return None if refusal is None else str(refusal)


def function(body: str) -> str:
    return "void scale(const float* in, float* out, int n) {\n" + body + "\n}"


def test_a_refusal_is_one_sentence_with_region_line_reason_and_advice() -> None:
    said = screened("", SCALE, "\n", function('    // a comment\n    puts(in ? "PASS" : "");'))
    assert said == ("region 'r', line 3: 'puts' writes output, and the original region does not use it so; "
                    "compute only what the original region computes")  # fmt: skip


def test_lines_are_counted_through_continued_lines_and_comments() -> None:
    said = screened("", SCALE, "\n", function("    int a = \\\n 1;\n    /* two\n lines */\n    abort();"))
    assert said is not None
    assert said.startswith("region 'r', line 6:")


def test_an_unchanged_region_passes_whatever_it_does() -> None:
    old = 'void scale() { static int calls; printf("%d", ++calls); }'
    assert screened("", old, "\n", old) is None


def test_what_the_original_does_a_candidate_may_do_too_but_not_more_often() -> None:
    old = 'void scale() { static int calls; printf("%d", ++calls); }'
    assert screened("", old, "\n", old.replace("++calls", "calls += 1")) is None
    twice = old.replace("}", 'printf("PASS"); }')
    assert "'printf' writes output" in str(screened("", old, "\n", twice))
    assert "'other' outlives a call" in str(screened("", old, "\n", old.replace("{", "{ static int other;")))


def test_a_file_that_differs_outside_its_regions_is_refused() -> None:
    data = f"int tolerance = 1;\n{SCALE}\n".encode()
    at = span(data, SCALE)
    changed = data.replace(b"tolerance = 1", b"tolerance = 9")
    assert screen("cpp", data, changed, [(at, SCALE)]) == Refusal(
        "r", 1, "the file differs outside its regions", "change the regions' text only"
    )


def test_a_file_with_crlf_line_ends_is_read_like_any_other() -> None:
    data = f"#include <cmath>\n{SCALE}\nint main() {{ scale(0, 0, 0); }}\n".replace("\n", "\r\n").encode()
    at = span(data, SCALE)
    for new, passes in ((SCALE.replace("2 * in[i]", "in[i] + in[i]"), True), (function("exit(0);"), False)):
        assert (screen("cpp", data, splice(data, {at: new}), [(at, new)]) is None) is passes


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    said = screened("", SCALE, "\n", SCALE + "\n" * MAX_TEXT)
    assert said is not None
    assert "characters" in said


def test_regions_of_one_file_are_read_together() -> None:
    other = "void shift(float* out, int n) {\n    for (int i = 0; i < n; ++i) out[i] += 1;\n}"
    data = f"{SCALE}\n{other}\nint main() {{ scale(0, 0, 0); shift(0, 0); }}\n".encode()
    first, second = span(data, SCALE, "scale"), span(data, other, "shift")
    helper = "static inline float twice(float x) { return 2 * x; }\n" + SCALE.replace("2 * in[i]", "twice(in[i])")
    uses = other.replace("out[i] += 1", "out[i] += twice(0.5f)")
    both = [(first, helper), (second, uses)]
    assert screen("cpp", data, splice(data, dict(both)), both) is None
    bad = [(first, helper), (second, uses.replace("}", "exit(0); }"))]
    refusal = screen("cpp", data, splice(data, dict(bad)), bad)
    assert refusal is not None
    assert refusal.region == "shift"


def test_a_helper_in_another_region_may_not_do_what_the_region_itself_may_not() -> None:
    other = "float first(const float* in) {\n    return in[0];\n}"
    data = f"{SCALE}\n{other}\nint main() {{ scale(0, 0, 0); first(0); }}\n".encode()
    scale, first = span(data, SCALE, "scale"), span(data, other, "first")
    for helper, passes in (
        ("inline float peek(float* p) { return p[3]; }", False),
        ("inline float peek(float* p) { p[3] = 1; return 2; }", True),
    ):
        uses = SCALE.replace("{\n", "{\n    if (peek(out) == 1) n -= 1;\n", 1)
        both = [(scale, uses), (first, f"{helper}\n{other}")]
        assert (screen("cpp", data, splice(data, dict(both)), both) is None) is passes
        alone = [(scale, uses)]
        apart = screen("cpp", data, splice(data, dict(alone)), alone, (), [f"{helper}\n{other}"])
        assert (apart is None) is passes


HUGE = {
    "sums": "n = n" + " + 1" * 9000 + ";",
    "brackets": "n = " + "(" * 20000 + "1" + ")" * 20000 + ";",
    "stars": "int " + "*" * 40000 + "p;",
    "names": "int " + ", ".join(f"a{i}" for i in range(6000)) + ";",
    "aliases": "".join(f"float* p{i};" for i in range(1200)) + "".join(f"p{i + 1}=p{i};" for i in range(1198, -1, -1)),
    "stores": "if(n){out[0]=1;}" * 1500 + "out[0]=1;" + "n+=out[0];" * 2500,
}


@pytest.mark.parametrize("statements", HUGE.values(), ids=HUGE)
def test_a_text_made_to_be_slow_to_read_is_read_or_refused_soon(statements: str) -> None:
    """Each of these took from a minute to hours, or ended in a RecursionError."""
    screened("", SCALE, "\n", SCALE.replace("{\n", "{\n    " + statements + "\n", 1))


@pytest.mark.parametrize(
    ("use", "named"),
    [("record(0.0);", "'record'"), ("best = 0;", "'best'"), ("Watch w; w.stop();", "'Watch'"), ("DONE();", "'puts'")],
)
def test_what_a_header_of_the_repository_declares_belongs_to_the_harness(use: str, named: str) -> None:
    header = """
        inline double best;
        void record(double seconds);
        struct Watch { void stop() { best = 0; } };
        #define DONE() puts("PASS")
    """
    assert named in str(screened('#include "watch.hpp"\n', SCALE, "\n", function(use), header=header))


def test_helpers_of_the_file_may_be_used_where_they_only_compute() -> None:
    before = (
        "static inline float twice(float x) { return x + x; }\nstatic int calls;\nint count() { return ++calls; }\n"
    )
    assert screened(before, SCALE, "\n", SCALE.replace("2 * in[i]", "twice(in[i])")) is None
    assert "'calls'" in str(screened(before, SCALE, "\n", SCALE.replace("2 *", "count() *")))


def test_what_stands_outside_may_not_be_renamed_or_retyped() -> None:
    after = "\nint main() { float a[2], b[2]; scale(a, b, 2); }\n"
    assert "no longer defined" in str(screened("", SCALE, after, SCALE.replace("scale", "scales")))
    assert "has changed" in str(screened("", SCALE, after, SCALE.replace("float* out", "double* out")))
    for passes in ("const float* __restrict in, float* __restrict out, const int n",
                   "const float in[], float out[], long n", "const float* in, float* out, int n, int step = 1"):  # fmt: skip
        assert screened("", SCALE, after, SCALE.replace("const float* in, float* out, int n", passes)) is None


def test_a_region_that_nobody_names_outside_may_change_freely() -> None:
    assert screened("", SCALE, "\n", "template <typename T> void scaled(T* p) { *p = T(); }") is None


def test_a_part_of_a_function_keeps_what_follows_it_working() -> None:
    before, old, after = (
        "int f(int n) {\n",
        "    double sum = n;\n",
        "    for (int i = 0; i < n; ++i) sum += i;\n    return sum;\n}\n",
    )
    assert screened(before, old, after, "    int i = 2;\n    double sum = n + 0 * i;\n") is None
    assert "'sum' is used outside" in str(screened(before, old, after, "    double total = n;\n"))
    assert "the type of 'sum'" in str(screened(before, old, after, "    struct Sum {} sum;\n"))
    assert "return leaves the region" in str(screened(before, old, after, "    double sum = n; return 1;\n"))
    assert "brackets do not balance" in str(screened(before, old, after, "    double sum = n; } int g() {\n"))
    assert screened(before, old, after, "    double sum = [&] { return n; }();\n    for (;;) break;\n") is None


def test_a_function_s_body_may_return() -> None:
    head, body = "int f(int n)\n", "{\n    return n + n;\n}"
    assert screened(head, body, "\n", "{\n    if (n == 0) return 0;\n    return 2 * n;\n}") is None


def test_a_method_may_get_helpers_but_no_new_members() -> None:
    before, after = "struct Field {\n    double* data;\n", "\n};\n"
    old = "    double first() const { return data[0]; }"
    assert screened(before, old, after, old + "\n    static double half(double x) { return x / 2; }") is None
    assert "'last' outlives a call" in str(screened(before, old, after, old + "\n    double last;"))


def test_directives_that_the_original_has_may_stay() -> None:
    old = "#ifdef FAST\nvoid scale() { }\n#else\nvoid scale() { int a; }\n#endif"
    assert screened("", old, "\n", old.replace("int a", "int b")) is None
    assert "has no #if" in str(screened("", old, "\n", old.replace("#ifdef FAST\n", "")))
    assert "has no #endif" in str(screened("", old, "\n", old.replace("#endif", "")))
    hidden = "#ifdef FAST\nvoid scale() { \n#else\nvoid scale() { int a; } }\n#endif"
    assert "leaves a bracket open" in str(screened("", old, "\n", hidden))


def test_a_macro_of_the_file_counts_as_what_it_stands_for() -> None:
    before = "#define KEEP static int\n#define CALL(f) f\n#define SAFE __device__ inline\n#define HELP static inline\n"
    assert "'static'" in str(screened(before, SCALE, "\n", function("KEEP last = 0;")))
    assert "'static'" in str(screened(before, SCALE, "\n", function("HELP int last(0);")))
    assert "'puts'" in str(screened(before, SCALE, "\n", function('CALL(puts)("PASS");')))
    assert screened(before, SCALE, "\n", "HELP float two() { return 2; }\n" + SCALE) is None


def test_ordinary_words_are_names_where_the_region_declares_them() -> None:
    assert screened("", SCALE, "\n", function("for (int time = 0; time < n; ++time) out[time] = 2 * in[time];")) is None
    assert "'time' reads or steers a clock" in str(screened("", SCALE, "\n", function("out[0] = time(nullptr);")))


def test_a_buffer_that_is_read_by_the_original_may_be_read() -> None:
    old = "void scale(float* data, int n) {\n    for (int i = 0; i < n; ++i) data[i] = 2 * data[i];\n}"
    assert screened("", old, "\n", old.replace("data[i] = 2 * data[i]", "data[i] *= 2")) is None


def test_a_store_under_another_condition_does_not_excuse_a_read() -> None:
    honest = function("for (int i = 0; i < n; ++i) { out[i] = in[i]; out[i] += in[i]; if (out[i] > 9) out[i] = 9; }")
    assert screened("", SCALE, "\n", honest) is None
    for skips in ("if (n < 0) out[0] = 0;\n    if (out[0] != 0) return;", "out[1] = 0;\n    if (out[0] != 0) return;"):
        assert "it reads 'out'" in str(screened("", SCALE, "\n", function(skips)))


@pytest.mark.parametrize(
    "text", ["", "}", "{{{{", "((((" * 500, "\\", '"', "#", "/*", "\x00", "struct", "template<", "é" * 10]
)
@pytest.mark.parametrize("language", ["cpp", "cuda", "hip"])
def test_nonsense_is_refused_and_never_breaks_the_reader(text: str, language: str) -> None:
    after = "\nint main() { scale(0, 0, 0); }\n"
    assert screened("", SCALE, after, text, language=language) is not None
