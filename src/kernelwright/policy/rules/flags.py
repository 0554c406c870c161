"""Rules on compile arguments. They go to the compile-argument allow-list like anyone's; one that it refuses is dropped.

`-ffast-math` on host code comes only with `-fno-finite-math-only`: alone it drops NaN tests, in the program's own checks too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.policy.rules.rule import CPP, CUDA, EVERY, GPU, HIP, FlagRule

OPTIMISE = FlagRule(
    "optimise", (CPP,), "a C++ task", "the strongest standard level for the machine's own instruction set, and mathematical "
    "functions that need not set errno and so can be inlined and moved",
    (("-O3", "-march=native", "-fno-math-errno"), ("-O3",)), gain=1.3, risk=1, opening=True, fallback=True,
    assumes="the program runs on the machine it is built on, and does not read errno after a mathematical function",
)  # fmt: skip
FAST_MATH_HOST = FlagRule(
    "fast-math", (CPP, HIP), "a C++ or HIP task that does not forbid it",
    "sums may be reordered and so vectorised, divisions become products, square roots are approximated and refined",
    (("-ffast-math", "-fno-finite-math-only"), ("-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math"),), gain=1.15,
    risk=5, fallback=True, assumes="the result may differ by rounding; NaN and infinity keep their meaning",
)  # fmt: skip
UNROLL_LOOPS = FlagRule(
    "unroll-loops", (CPP,), "a C++ task", "loops whose trip count is known on entry are unrolled everywhere in the unit",
    (("-funroll-loops",),), gain=1.02,
)  # fmt: skip
WIDE_VECTORS = FlagRule(
    "wide-vectors", (CPP,), "a C++ task on x86-64",
    "compilers prefer 256-bit vectors even where 512-bit ones exist; code bound by arithmetic gains from the full width",
    (("-march=native", "-mprefer-vector-width=512"),), gain=1.03,
)  # fmt: skip
FAST_MATH_CUDA = FlagRule(
    "fast-math", (CUDA,), "a CUDA task that does not forbid it",
    "hardware approximations for division, square root, exp, log, sin and cos in single precision; denormals become zero",
    (("-use_fast_math",),), gain=1.1, risk=3, assumes="the lower precision stays within the task's tolerance",
)  # fmt: skip
DEVICE_VECTORS = FlagRule(
    "device-vectorization", (CUDA,), "a CUDA task",
    "neighbouring accesses of a thread are joined into wider ones more eagerly",
    (("--extra-device-vectorization",),), gain=1.01,
)  # fmt: skip
REGISTERS = FlagRule(
    "register-cap", (CUDA,), "a CUDA task whose kernels use more than 32 registers a thread, or an unknown number",
    "fewer registers a thread let more warps be resident and hide latency; too few make it spill",
    (("-maxrregcount=64",), ("-maxrregcount=32",), ("-maxrregcount=128",), ("-maxrregcount=40",)), gain=1.02, risk=1,
)  # fmt: skip
GPU_HOST = FlagRule(
    "optimise", GPU, "a CUDA or HIP task built below -O3", "the unit's host code is optimised too",
    (("-O3",),), gain=1.01, opening=True,
)  # fmt: skip
UNSAFE_ATOMICS = FlagRule(
    "hardware-atomics", (HIP,), "a HIP task",
    "floating-point atomics become one instruction instead of a compare-and-swap loop",
    (("-munsafe-fp-atomics",),), gain=1.05, risk=3, assumes="atomics only go to coarse-grained device memory",
)  # fmt: skip

RULES = (OPTIMISE, GPU_HOST, FAST_MATH_CUDA, FAST_MATH_HOST, WIDE_VECTORS, UNROLL_LOOPS, UNSAFE_ATOMICS, REGISTERS,
         DEVICE_VECTORS)  # fmt: skip

TUNABLE = FlagRule(
    "tunable", EVERY, "a macro that the task lists under tunables, one value at a time",
    "its author left the choice open; tile and block sizes decide on cache and register use", gain=1.08, risk=2,
)  # fmt: skip


def options(
    language: str, baseline: Sequence[str], forbidden: Sequence[str], tunables: Mapping[str, Sequence[int]]
) -> list[tuple[FlagRule, str, tuple[str, ...]]]:
    """All (rule, label, arguments) for a task; what the baseline has already, or the task forbids, is left out."""
    found = []
    for rule in RULES:
        for option in rule.options if language in rule.languages else ():
            new = tuple(flag for flag in option if flag not in baseline)
            if new and not set(option) & set(forbidden):
                found.append((rule, " ".join(new), new))
    for name, values in tunables.items():
        found += [(TUNABLE, f"{name}={value}", (f"-D{name}={value}",))
                  for value in values if f"-D{name}={value}" not in baseline]  # fmt: skip
    return found
