"""Which compile arguments a candidate may ask for: an allow-list, one token each, every pattern anchored.

A deny-list cannot work here: compilers run programs (`-wrapper`, `-B`, `-fplugin=`), read and write files (`@file`,
`-MF`, `-include`) and take abbreviations of their own options. So an argument is accepted when a pattern below matches
all of it, and refused otherwise, with the reason where it is a known one. Two rules look at the arguments together:
plain fast-math on host code comes only with `-fno-finite-math-only`, since it turned a checker's FAIL into PASS by
dropping its NaN tests, and what a task forbids is compared by meaning (`--use_fast_math` is `-use_fast_math`; fast-math
spelled by its parts is refused where fast-math is).

Left to others: where the arguments go (compiler interposition), and that they reach the region's units alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kernelwright.task import FLAG_TOKEN

MAX_ARGUMENTS = 24
MAX_LENGTH = 80

_SWITCHES = (
    "unroll-loops", "unroll-all-loops", "peel-loops", "split-loops", "unswitch-loops", "tree-vectorize", "vectorize",
    "slp-vectorize", "tree-slp-vectorize", "tree-loop-vectorize", "tree-loop-distribution",
    "tree-loop-distribute-patterns",
    "tree-loop-im", "tree-loop-ivcanon", "tree-partial-pre", "tree-pre", "ivopts", "omit-frame-pointer", "math-errno",
    "trapping-math", "associative-math", "reciprocal-math", "signed-zeros", "openmp-simd", "strict-aliasing",
    "strict-overflow", "inline-functions", "inline-small-functions", "prefetch-loop-arrays", "modulo-sched",
    "rename-registers",
    "schedule-insns", "schedule-insns2", "sched-pressure", "ipa-cp-clone", "ipa-pta", "version-loops-for-strides",
    "align-loops", "align-functions", "align-jumps", "predictive-commoning", "variable-expansion-in-unroller", "web",
    "rounding-math", "signaling-nans", "cx-limited-range", "fp-int-builtin-inexact", "tracer", "branch-count-reg",
    "if-conversion", "if-conversion2", "tree-loop-if-convert", "data-sections", "plt", "semantic-interposition", "gcse",
    "gcse-after-reload", "gcse-las", "gcse-lm", "gcse-sm", "loop-block", "loop-interchange", "loop-nest-optimize",
    "loop-parallelize-all", "loop-strip-mine", "loop-unroll-and-jam", "graphite-identity", "wrapv", "split-paths",
    "unsafe-math-optimizations", "fast-math", "finite-math-only", "approx-func", "hoist-adjacent-loads", "crossjumping",
    "expensive-optimizations",
)  # fmt: skip
_PARAMS = (
    "max-unroll-times", "max-unrolled-insns", "max-average-unrolled-insns", "max-peel-times", "max-peeled-insns",
    "max-completely-peel-times", "max-completely-peeled-insns", "max-inline-insns-single", "max-inline-insns-auto",
    "inline-unit-growth", "large-function-growth", "large-function-insns", "large-unit-insns", "early-inlining-insns",
    "vect-max-version-for-alias-checks", "vect-max-version-for-alignment-checks", "vect-epilogues-nomask",
    "vect-partial-vector-usage", "prefetch-latency", "simultaneous-prefetches", "l1-cache-size", "l1-cache-line-size",
    "l2-cache-size", "min-insn-to-prefetch-ratio", "ipa-cp-eval-threshold", "avoid-fma-max-bits", "loop-block-tile-size",
    "unroll-jam-min-percent", "unroll-jam-max-unroll", "max-unswitch-insns", "max-unswitch-level",
)  # fmt: skip
_INSTRUCTIONS = (
    r"sse[234]?(?:\.[12])?|ssse3|avx2?|avx512(?:f|cd|bw|dq|vl|ifma|vbmi|vbmi2|vnni|bitalg|vpopcntdq|bf16|fp16)|avxvnni|fma4?"
    r"|f16c|v?aes|v?pclmul(?:qdq)?|gfni|sha|bmi2?|lzcnt|popcnt|movbe|adx|xop|prfchw|sse4a|amx-(?:tile|int8|bf16)|vzeroupper|recip|veclibabi=svml"
)
_HOST = re.compile(
    rf"-O[123]|-march=[a-z0-9][a-z0-9.+_-]*|-mtune=[a-z0-9][a-z0-9.+_-]*|-mcpu=[a-z0-9][a-z0-9.+_-]*|-mno-(?:{_INSTRUCTIONS})"
    rf"|-m(?:{_INSTRUCTIONS})|-mprefer-vector-width=(?:none|128|256|512)|-mrecip=[a-z0-9,:]+|-msve-vector-bits=\w+"
    rf"|-mbranch-cost=[0-5]|-f(?:no-)?(?:{'|'.join(map(re.escape, _SWITCHES))})"
    r"|-ffp-contract=(?:fast|on|off)|-fexcess-precision=(?:fast|standard)|-f(?:vect|simd)-cost-model=(?:unlimited|dynamic|cheap|very-cheap)"
    r"|-finline-limit=\d{1,6}|-falign-(?:loops|functions|jumps|labels)=\d{1,4}(?::\d{1,4})*"
    rf"|--param=(?:{'|'.join(_PARAMS)})=\d{{1,7}}|-fno-exceptions|-fno-rtti"
)
_PTXAS = (
    r"-O[0123]|-dlcm=(?:ca|cg|cs|cv)|-dscm=(?:wb|cg|cs|wt)|--allow-expensive-optimizations=(?:true|false)|-v|-warn-spills"
    r"|--fmad=(?:true|false)|-fmad=(?:true|false)|--disable-optimizer-constants|--maxrregcount=\d{1,3}|--opt-level=[0123]"
)
_CUDA = re.compile(
    r"-O[123]|--?use_fast_math|--?maxrregcount=\d{1,3}|--?ftz=(?:true|false)|--?prec-div=(?:true|false)"
    r"|--?prec-sqrt=(?:true|false)|--?fmad=(?:true|false)|--?extra-device-vectorization|--?restrict|--?dopt=on"
    r"|--?expt-relaxed-constexpr|--?expt-extended-lambda|--?extended-lambda|--?default-stream=legacy"
    rf"|-Xptxas=(?:{_PTXAS})(?:,(?:{_PTXAS}))*|--ptxas-options=(?:{_PTXAS})(?:,(?:{_PTXAS}))*"
    r"|--?split-compile=\d{1,2}|-Xnvvm=-opt-fusion=\d"
)
_HIP = re.compile(
    r"-O[123]|-ffp-contract=(?:fast|on|off)|-f(?:no-)?(?:unroll-loops|vectorize|slp-vectorize|math-errno"
    r"|trapping-math|associative-math|reciprocal-math|signed-zeros|finite-math-only|fast-math|approx-func|strict-aliasing"
    r"|gpu-flush-denormals-to-zero|unsafe-math-optimizations|inline-functions|hip-fp32-correctly-rounded-divide-sqrt"
    r"|cuda-flush-denormals-to-zero)|-m(?:no-)?(?:cumode|wavefrontsize64|unsafe-fp-atomics|tgsplit)"
    r"|--gpu-max-threads-per-block=\d{1,4}|-fgpu-flush-denormals-to-zero|-munsafe-fp-atomics|-fvectorize"
)
_ALLOWED = {"cpp": _HOST, "cuda": _CUDA, "hip": _HIP}
_TRY = {
    "cpp": "-O3, -march=native, -funroll-loops, -ffp-contract=fast, -fno-math-errno or --param=max-unroll-times=N",
    "cuda": "-O3, --use_fast_math, --maxrregcount=N, --fmad=true, --extra-device-vectorization or -Xptxas=-dlcm=cg",
    "hip": "-O3, -ffp-contract=fast, -munsafe-fp-atomics or --gpu-max-threads-per-block=N",
}
_DEFINE = re.compile(r"-D([A-Za-z_]\w*)=(-?(?:0|[1-9]\d{0,17}))")
_REASONS = {
    "reads further arguments from a file": re.compile(r"@.*"),
    "defines a macro that the task does not declare as a tunable with that value": re.compile(
        r"-[DU].*|--(?:un)?define-macro.*"
    ),
    "runs other programs or plugins while compiling": re.compile(
        r"-(?:wrapper|B|f?plugin|fpass|Xclang|load|specs|ccbin|-compiler-bindir|mllvm|-?allow-unsupported).*"
    ),
    "reads or writes files of its own": re.compile(
        r"-(?:o|M[A-Z]*|save-temps|fdump|d[A-Za-z]|fprofile|keep|-keep|-output|objtemp|time|ftime).*"
    ),
    "changes what is read into the build": re.compile(
        r"-(?:include|imacros|I|i[a-z]+|L|l|x|-sysroot|isystem|-library|-include).*"
    ),
    "hands options to other programs": re.compile(
        r"-(?:X|W[alp],|-compiler-options|-linker-options|-options-file|optf|fuse-ld|T|z|shared|static|r|u|Wl).*"
    ),
    "changes what the compiler does, not how well": re.compile(r"-(?:-?run|E|S|c|-?dryrun|###|v|fsyntax-only).*"),
    "is no level to measure, or implies finite-math-only as -Ofast does": re.compile(r"-O(?:fast|0|g|s|z)?"),
}
_FAST_MATH_PARTS = {
    "-ffast-math": {
        "fast-math", "finite-math-only", "associative-math", "reciprocal-math", "approx-func", "unsafe-math-optimizations",
        "cx-limited-range",
    },
    "-use_fast_math": {"ftz=true", "prec-div=false", "prec-sqrt=false"},
}  # fmt: skip


def check_arguments(
    language: str, arguments: Sequence[str], *, tunables: Mapping[str, Sequence[int]], forbid: Sequence[str] = ()
) -> str | None:
    """None, or one sentence: which argument was refused, why, and what to try.

    `language` is a task's (cuda, hip, cpp), `tunables` its macros with their values, `forbid` what it does not accept.
    """
    if len(arguments) > MAX_ARGUMENTS:
        return f"there are {len(arguments)} compile arguments; expected at most {MAX_ARGUMENTS}; keep those that matter"
    for argument in arguments:
        refused = _refused(language, argument, tunables) or _forbidden(argument, forbid)
        if refused:
            return refused
    return _finite_math(language, arguments)


def _refused(language: str, argument: str, tunables: Mapping[str, Sequence[int]]) -> str | None:
    shown = ascii(argument[:60])
    if not argument or len(argument) > MAX_LENGTH or not FLAG_TOKEN.fullmatch(argument):
        return (f"the compile argument {shown} is refused: it is not one token of at most {MAX_LENGTH} characters "
                f"from {FLAG_TOKEN.pattern}; try {_TRY[language]}")  # fmt: skip
    define = _DEFINE.fullmatch(argument)
    if define and int(define[2]) in tunables.get(define[1], ()):
        return None
    if not define and _ALLOWED[language].fullmatch(argument):
        return None
    why = next(
        (why for why, pattern in _REASONS.items() if pattern.fullmatch(argument)), f"is not on the list for {language}"
    )
    known = ", ".join(f"-D{name}={value}" for name, values in tunables.items() for value in values) if define else ""
    return f"the compile argument {shown} is refused: it {why}; try {known or _TRY[language]}"


def _canonical(argument: str) -> str:
    """One spelling of an argument: two dashes are one, `-Xptxas=` and `--ptxas-options=` are the same."""
    return re.sub(r"^--?ptxas-options=", "-Xptxas=", argument).replace("--", "-", 1)


def _forbidden(argument: str, forbid: Sequence[str]) -> str | None:
    given = _canonical(argument)
    for refused in map(_canonical, forbid):
        part = given.removeprefix("-").removeprefix("f") if refused == "-ffast-math" else given.removeprefix("-")
        if given == refused or part in _FAST_MATH_PARTS.get(refused, ()):
            return (f"the compile argument {argument!r} is refused: this task does not accept {refused!r} or a part of it; "
                    "leave it out")  # fmt: skip
    return None


def _finite_math(language: str, arguments: Sequence[str]) -> str | None:
    """Fast-math on host code keeps NaN tests: `-fno-finite-math-only` stands behind the last argument that drops them."""
    dropped = ""
    for argument in arguments:
        if argument in ("-ffast-math", "-ffinite-math-only"):
            dropped = argument
        elif argument in ("-fno-finite-math-only", "-fno-fast-math"):
            dropped = ""
    if not dropped or language == "cuda":
        return None
    return (f"the compile argument {dropped!r} is refused: alone it drops NaN tests, a checker's among them; "
            "try -ffast-math followed by -fno-finite-math-only")  # fmt: skip
