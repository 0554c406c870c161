"""What each target is given to begin with: one sound input or more, and pieces that its reader looks for."""

from __future__ import annotations

from targets import FILE, REGION, TASK

CALL = '<tool_call>\n{"name": "benchmark_code", "arguments": {"compile_args": ["-O3"]}}\n</tool_call>'
ANSWER = '{"final_code": {"smooth": "void smooth(float* a, int n) {}"}, "explanation": "2x", "compile_args": ["-O3"]}'
PTXAS = """\
ptxas info    : Compiling entry function '_Z4axpyPfi' for 'sm_90'
ptxas info    : Function properties for _Z4axpyPfi
    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 1024 bytes smem, 380 bytes cmem[0]
"""
PTX = """\
.visible .entry _Z4axpyPfi(
\t.param .u64 p0
)
{
\t.reg .f32 %f<4>;
$L__BB0_1:
\tld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
\tfma.rn.f32 %f1, %f2, %f3, %f4;
\t@%p1 bra \t$L__BB0_1;
\tret;
}
"""
SASS = """\
.text._Z4axpyPfi:
        /*0000*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
.L_x_1:
        /*0010*/                   FFMA R0, R1, R2, R3 ;
        /*0020*/               @P0 BRA `(.L_x_1) ;
"""
AMD = """\
_Z4axpyPfi:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
.LBB0_1:
\tv_fma_f32 v0, v1, v2, v3
\ts_cbranch_scc1 .LBB0_1
\t.section .rodata
\t.amdhsa_kernel _Z4axpyPfi
; NumVgprs: 4
; NumSgprs: 8
; ScratchSize: 0
; LDSByteSize: 16
; Occupancy: 8
"""
GCC = """\
a.cpp:3:18: optimized: loop vectorized using 16 byte vectors
a.cpp:4:1: missed:   statement clobbers memory: foo (_1); [-Rpass-missed=loop-vectorize]
a.cpp:5:1: remark: vectorized loop (vectorization width: 4) [-Rpass=loop-vectorize]
"""
ASSEMBLY = """\
\t.file 1 "/kw/repo" "a.cpp"
\t.type\tsmooth, @function
smooth:
\t.loc 1 3 1
\tsubq\t$24, %rsp
.L3:
\tvmovups\t(%rdi,%rax), %ymm0
\tvfmadd213ps\t8(%rsp), %ymm1, %ymm0
\trep stosq
\tcall\texp@PLT
\tjne\t.L3
\tret
"""
TIMES = (
    '{"kernels": [{"name": "axpy(float*)", "symbol": "_Z4axpyPf", "launches": 3, "total_ns": 30, "min_ns": 1, '
    '"p10_ns": 2, "median_ns": 3, "p90_ns": 4, "max_ns": 5}]}'
)
RECORD = b"\0".join(
    [b"4", b"4", b"0", b"c", b"/kw/repo", b"0.deps", b"g++", b"-c", b"a.cpp", b"-oa.o", b""]
) + b"\xffa.o: a.cpp \\\n h\\ x.hpp /usr/include/stdio.h ../b.hpp\n"  # fmt: skip
COMPLETION = (
    '{"choices": [{"finish_reason": "stop", "message": {"content": "a", "reasoning": "b", "tool_calls": [{"id": "1", '
    '"type": "function", "function": {"name": "search", "arguments": "{\\"pattern\\": \\"\\\\ud800\\"}"}}]}}], '
    '"usage": {"prompt_tokens": 1, "completion_tokens": 2}}'
)
MAKE = """\
ifeq ($(DEBUG),)
FLAGS ?= -O2 $(patsubst %.c,%.o,$(wildcard *.c)) $(A:.c=.o)
else
include other.mk
endif
A := $(foreach x,a b,$(x).c) $(if $(B),$(subst a,b,abc))
%.o: %.cpp
\tg++ -c $< -o $@ $(FLAGS)
run: app ; ./app $(N)
"""
SEEDS: dict[str, tuple[bytes, ...]] = {
    "task_file": (TASK.encode(),),
    "tool_calls": (
        CALL.encode(),
        b"```json\n{'name': 'search', 'arguments': {\"pattern\": \"a\\_b\",}}\n```",
        b"<function=search><parameter=pattern>a</parameter></function></tool_call>",
        b'<tool_call>{"name": "benchmark_code", "arguments": {"code": """int x;"""}',
    ),
    "answers": (
        ANSWER.encode(),
        f'```cpp\n{REGION}\n```\n{{"final_code": "c1"}}'.encode(),
        b'{"final_code": "original"',
        b'{"final_code": "void smooth() { return; }", "compile_args": "-O3 -funroll-loops"}',
    ),
    "code_blocks": (f"```cpp region=smooth\n{REGION}\n```\n{CALL}\n```\nint main() {{}}\n```".encode(),),
    "compile_arguments": (b"-O3", b"-Xptxas=-dlcm=ca,-O3", b"--param=max-unroll-times=8", b"-DTILE=8"),
    "numbers": (b"time: 1.5 ms\ntime: 2e3 us\nsum 1,000.5\nPASS\n", b"sum nan\ntime: inf s\nsum -1e999"),
    "tables": (b"x\na,b,c\na,1,2\nb,2,3\n", b"a 1 2.5 nan\nb 1 2 3\n", b'"a","b\n'),
    "device_reports": tuple(text.encode() for text in (PTXAS, PTX, SASS, AMD)),
    "host_reports": (GCC.encode(), ASSEMBLY.encode(), b"_ZN2ns4axpyIfEEvi", b"void a::f<int>(int*) [clone ._omp_fn.0]"),
    "kernel_times": (TIMES.encode(),),
    "build_records": (RECORD,),
    "sources": (
        FILE,
        b'template <class T> __global__ void __launch_bounds__(128, 2) k(T* a) { printf("time: %f ms\\n", t); }\n',
        b'void f() { std::cout << "sum " << x << std::endl; }\n',
    ),
    "screening": (
        REGION.encode(),
        b'void smooth(float* a, int n) {\n#pragma omp simd\n  for (int i = 0; i < n; ++i) a[i] *= 0.5f; // "x\n}',
        b'[[gnu::noinline]] void smooth(float* a, int n) { asm("" ::: "memory"); auto f = [&](int i) { a[i] /= 2; }; }',
    ),
    "preprocessing": (
        b"#define A(x, ...) x ## 1 # x __VA_OPT__(,) __VA_ARGS__\n#define B A(1,\n" * 2 + b"A(b, c) B\n" * 8,
    ),
    "completions": (COMPLETION.encode(),),
    "makefiles": (MAKE.encode(),),
    "machine": (
        b"cpu  1 2 3 4 5 6 7 8 9 10\n",
        b"proc /proc proc rw 0 0\nserver:/x /tmp/a\\040b nfs4 rw 0 0\n/dev/sda / ext4 rw 0 0\n",
    ),
}
