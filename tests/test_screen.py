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
    assert "do not balance" in str(screened("", old, "\n", hidden))


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


SOFTEN = "__global__ void soften(const float* in, float* out) {\n    int i = threadIdx.x;\n    out[i] = 2 * in[i];\n}"
MACROS = (
    "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
    "#define AS_FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])\n#define TWICE(value) value value\n"
    '#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\\n" ::"r"(to), "l"(from))\n'
    '#define STOP() asm volatile("trap;")\n#ifdef FAST\n#define TAKE(to) asm("mov.u32 %0, 1;" : "=r"(to))\n#else\n'
    '#define TAKE(to) asm("mov.u32 %0, %clock;" : "=r"(to))\n#endif\n'
    "__device__ float kept(float v) {\n    static float sums[32];\n    return sums[threadIdx.x] += v;\n}\n"
)


def soften(body: str) -> str:
    return f"__global__ void soften(const float* in, float* out) {{\n    int i = threadIdx.x;\n    {body}\n}}"


def test_a_macro_is_judged_by_what_it_does() -> None:
    """Its stores are stores and its loads are loads, in the line in which the macro stands."""
    honest = soften("float4 v = AS_FLOAT4(in[4 * i]);\n    AS_FLOAT4(out[4 * i]) = v;")
    assert screened(MACROS, SOFTEN, "\n", honest, language="cuda") is None
    reads = soften("float4 v = AS_FLOAT4(in[4 * i]);\n    if (AS_FLOAT4(out[4 * i]).x == 0) AS_FLOAT4(out[4 * i]) = v;")
    assert "line 4: it reads 'out'" in str(screened(MACROS, SOFTEN, "\n", reads, language="cuda"))
    writes = soften("AS_FLOAT4(in[4 * i]) = AS_FLOAT4(in[0]);\n    out[i] = 2 * in[i];")
    assert "line 3: it writes 'in'" in str(screened(MACROS, SOFTEN, "\n", writes, language="cuda"))


def test_assembly_in_a_macro_is_judged_as_assembly() -> None:
    start = "__shared__ float t[32];\n    unsigned to = __cvta_generic_to_shared(t + i);\n    "
    copies = soften(start + "COPY(to, &in[i]);\n    out[i] = 2 * t[i];")
    assert screened(MACROS, SOFTEN, "\n", copies, language="cuda") is None
    old_output = soften(start + "COPY(to, &out[i]);\n    out[i] = t[i];")
    assert "it reads 'out'" in str(screened(MACROS, SOFTEN, "\n", old_output, language="cuda"))
    for call, named in (
        ("STOP();", "'trap;' is not on the list"),
        ("unsigned t; TAKE(t);", "the macro 'TAKE' holds 'asm'"),
    ):
        said = screened(MACROS, SOFTEN, "\n", soften(call + " out[i] = 2 * in[i];"), language="cuda")
        assert named in str(said)


def test_braces_around_operands_and_braces_around_statements_are_told_apart() -> None:
    load = 'asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];\\n" : "=r"(a), "=r"(b) : "r"(i));'
    load = "unsigned a, b;\n    " + load
    work = " out[i] = 2 * in[i];"
    assert screened("", SOFTEN, "\n", soften(load + work), language="cuda") is None
    scope = 'asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; @p bar.sync 0; }");'
    assert screened("", SOFTEN, "\n", soften(scope + work), language="cuda") is None
    for cheat in ("{ trap; }", "{ mov.u32 %0, 1; } trap;", "{ { exit; } }"):
        said = screened("", SOFTEN, "\n", soften(f'asm volatile("{cheat}");' + work), language="cuda")
        assert "is not on the list" in str(said)


def test_macro_calls_that_grow_without_end_are_not_opened() -> None:
    deep = "TWICE(" * 60 + ";" + ")" * 60
    assert "readable" not in str(screened(MACROS, SOFTEN, "\n", soften(deep + " out[i] = 2 * in[i];"), language="cuda"))


def test_static_shared_memory_is_shared_memory_and_nothing_else_that_is_static() -> None:
    for words in ("static __shared__ float", "__shared__ static float", "static float __shared__"):
        mine = soften(f"{words} t[32];\n    t[i] = in[i];\n    out[i] = 2 * t[i];")
        assert screened(MACROS, SOFTEN, "\n", mine, language="cuda") is None
    for words in ("static float", "__shared__ float s; static float", "static __device__ float"):
        mine = soften(f"{words} t[32];\n    t[i] = in[i];\n    out[i] = 2 * t[i];")
        assert "'t' outlives a call" in str(screened(MACROS, SOFTEN, "\n", mine, language="cuda"))
    host = function("    static __shared__ float t[32];\n    for (int i = 0; i < n; ++i) out[i] = 2 * in[i] + t[0];")
    assert "'t' outlives a call" in str(screened("#define __shared__\n", SCALE, "\n", host))
    helper = soften("out[i] = kept(in[i]);")
    assert "keeps static storage" in str(screened(MACROS, SOFTEN, "\n", helper, language="cuda"))


def test_waiting_for_a_group_is_not_waiting_for_a_process() -> None:
    work = " out[i] = 2 * in[i];"
    assert screened(MACROS, SOFTEN, "\n", soften("cg::wait(cg::this_thread_block());" + work), language="cuda") is None
    for cheat in ("wait(0);", "std::wait(0);", "namespace cg = std; cg::wait(0);", "namespace cooperative_groups = std; "
                  "cooperative_groups::wait(0);"):  # fmt: skip
        assert "'wait' acts on the process" in str(
            screened(MACROS, SOFTEN, "\n", soften(cheat + work), language="cuda")
        )


def test_conditions_on_the_machine_are_screened_branch_by_branch() -> None:
    honest = "#if __CUDA_ARCH__ >= 700\n    out[i] = 2 * __ldg(in + i);\n#else\n    out[i] = 2 * in[i];\n#endif"
    assert screened("", SOFTEN, "\n", soften(f"\n{honest}\n"), language="cuda") is None
    wide = "\n#if defined(__AVX2__) && defined(__FMA__)\n    n += 0;\n#endif\n"
    plain = "    for (int i = 0; i < n; ++i) out[i] = 2 * in[i];"
    assert screened("", SCALE, "\n", function(wide + plain)) is None


@pytest.mark.parametrize(
    ("cheat", "named"),
    [
        ("#if __CUDA_ARCH__ < 100\n out[i] = 0;\n#endif\n if (out[i] == 0) out[i] = 2 * in[i];", "it reads 'out'"),
        ("#if CUDA_VERSION < 9000\n int kept;\n#endif\n if (!kept++) out[i] = 2 * in[i];", "it changes 'kept'"),
        ("#if CUDA_VERSION < 9000\n void (*wait)(int);\n#endif\n wait(0); out[i] = 2 * in[i];", "'wait' acts"),
        ("#if __CUDA_ARCH__ >= 700\n out[i] = 2 * in[i];\n#else\n printf(\"PASS\");\n#endif", "'printf' writes output"),
        ("#if CUDA_VERSION > 1\n int y = 0;\n#endif\n#include <cuda_fp16.h>\n#if CUDA_VERSION > 1\n#else\n y += out[i];\n"
         "#endif\n out[i] = 2 * in[i];", "it reads 'out'"),
        ("#if __CUDA_ARCH__ >= 700\n }\n#endif\n out[i] = 2 * in[i];", "brackets"),
        ("#if __CUDA_ARCH__ >= 700 //\\ \n printf(\"PASS\");\n#endif\n out[i] = 2 * in[i];", "a backslash at the end"),
        ("#if 0\n out[i] = 2 * in[i];\n#endif", "the directive '#if 0'"),
        ("#ifdef __OPTIMIZE__\n return;\n#endif\n out[i] = 2 * in[i];", "the directive '#ifdef __OPTIMIZE__'"),
        ("#if __has_include(\"answers.h\")\n return;\n#endif\n out[i] = 2 * in[i];", "the directive '#if __has_include"),
    ],
)  # fmt: skip
def test_what_one_branch_holds_says_nothing_for_another(cheat: str, named: str) -> None:
    said = screened("__device__ int kept;\n", SOFTEN, "\n", soften(f"\n{cheat}\n"), language="cuda")
    assert named in str(said)


def test_a_store_in_a_branch_that_the_original_has_covers_no_read_outside_of_it() -> None:
    old = SOFTEN.replace("    out[i]", "#ifdef VERIFY\n    out[i] = 0;\n#endif\n    out[i]")
    assert screened("", old, "\n", old.replace("2 * in[i]", "in[i] + in[i]"), language="cuda") is None
    cheat = old.replace("    out[i] = 2", "    if (out[i] == 0) out[i] = 2")
    assert "it reads 'out'" in str(screened("", old, "\n", cheat, language="cuda"))


def test_a_count_behind_an_operator_is_a_count() -> None:
    for use in ("!kept++", "-kept++", "~kept--", "!!kept++"):
        said = screened(
            "__device__ int kept;\n", SOFTEN, "\n", soften(f"if ({use}) out[i] = 2 * in[i];"), language="cuda"
        )
        assert "it changes 'kept'" in str(said)
    for use in ("out[i] = -in[i]++;", "out[i] = in[i]++;", "if (!in[i]--) out[i] = 0;"):
        assert "it writes 'in'" in str(screened("", SOFTEN, "\n", soften(use), language="cuda"))


def test_conditions_of_the_surroundings_may_be_used_and_are_screened_branch_by_branch() -> None:
    before = "#if DOUBLE\nusing real = double;\n#else\nusing real = float;\n#endif\n"
    both = soften("\n#if DOUBLE\n    out[i] = 2.0 * in[i];\n#else\n    out[i] = 2.0f * in[i];\n#endif\n")
    assert screened(before, SOFTEN, "\n", both, language="cuda") is None
    assert "the directive '#if __DOUBLE__'" in str(
        screened("", SOFTEN, "\n", both.replace("DOUBLE", "__DOUBLE__"), language="cuda")
    )
    cheat = soften("\n#if DOUBLE\n    out[i] = 0;\n#endif\n    if (out[i] == 0) out[i] = 2 * in[i];\n")
    assert "it reads 'out'" in str(screened(before, SOFTEN, "\n", cheat, language="cuda"))


def test_constants_whose_type_has_a_name_of_its_own_are_constants() -> None:
    use = soften("out[i] = TWO * in[i];")
    for kind in ("#define REAL float\nstatic const REAL TWO = 2;\n", "typedef double real;\nconst real TWO = 2;\n",
                 "using real = float;\nusing number = real;\nconst number TWO = 2;\n"):  # fmt: skip
        assert screened(kind, SOFTEN, "\n", use, language="cuda") is None
    for kind in ("#define REAL float\nstatic REAL TWO = 2;\n", "typedef double* real;\nreal const TWO = 0;\n",
                 "struct Sums { mutable double last; };\ntypedef Sums real;\nconst real TWO{};\n"):  # fmt: skip
        assert "the variable 'TWO'" in str(screened(kind, SOFTEN, "\n", use, language="cuda"))


def test_names_that_begin_like_a_system_call_are_names() -> None:
    local = "unsigned shmem_words = 32, timer_less = 1, malloc_free = 0;\n    out[i] = 2 * in[i];"
    assert screened("", SOFTEN, "\n", soften(local), language="cuda") is None
    for cheat in ("shmat(0, 0, 0);", "timer_settime(0, 0, 0, 0);", "malloc_trim(0);"):
        assert "and the original region does not use it so" in str(
            screened("", SCALE, "\n", function(f"    {cheat}\n    for (int i = 0; i < n; ++i) out[i] = 2 * in[i];"))
        )


def test_a_helper_of_the_surroundings_may_check_and_look_up_but_keep_nothing() -> None:
    use = function("    for (int i = 0; i < n; ++i) out[i] = weight(i) * in[i];")
    types = "#include <cassert>\ntypedef unsigned char byte;\nstruct Sums { mutable int last; };\n"
    start, end = "static float weight(int i) {\n    ", " return 2 * kept[i % 2]; }\n"
    for table in ("static const byte kept[2] = {1, 1};", "static constexpr float kept[2] = {1, 1};",
                  "assert(i >= 0); const int kept[2] = {1, 1};"):  # fmt: skip
        assert screened(types + start + table + end, SCALE, "\n", use) is None
    for table in ("static byte kept[2] = {1, 1};", "static const byte* kept = 0;", "static const Sums kept[2];"):
        assert "keeps static storage" in str(screened(types + start + table + end, SCALE, "\n", use))
    said = screened(
        types, SCALE, "\n", function("    assert(n > 0);\n    for (int i = 0; i < n; ++i) out[i] = 2 * in[i];")
    )
    assert "'assert' writes output" in str(said)
