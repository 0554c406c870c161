"""The compile-argument allow-list: honest tuning passes, everything that reaches beyond the region's code does not."""

from __future__ import annotations

import pytest

from kernelwright.task import FLAG_TOKEN
from kernelwright.toolchain.arguments import MAX_ARGUMENTS, check_arguments

HONEST = {
    "cpp": """-O2 -O3 -march=native -march=x86-64-v3 -march=znver4 -mtune=native -mavx2 -mfma -mavx512f
        -mprefer-vector-width=512 -funroll-loops -fno-math-errno -fno-trapping-math -fassociative-math
        -freciprocal-math -fno-signed-zeros -ffp-contract=fast -fopenmp-simd -ftree-vectorize
        -fvect-cost-model=unlimited -fno-strict-aliasing -finline-limit=2000 -floop-interchange
        -fgcse-after-reload -fno-exceptions --param=max-unroll-times=8 -fprefetch-loop-arrays
        -fomit-frame-pointer -falign-loops=32 -DTILE=16""",
    "cuda": """-O3 -use_fast_math --use_fast_math -maxrregcount=64 --maxrregcount=32 -ftz=true -prec-div=false
        --prec-sqrt=false -fmad=true --extra-device-vectorization -Xptxas=-O3 -Xptxas=-dlcm=ca
        -Xptxas=-dlcm=cg,-O3 -restrict -Xptxas=--allow-expensive-optimizations=true --ptxas-options=-O3
        -DTILE=8""",
    "hip": "-O3 -ffp-contract=fast -munsafe-fp-atomics --gpu-max-threads-per-block=256 -fno-math-errno -DTILE=8",
}
HOSTILE = {
    "cpp": """-wrapper -wrapper=sh -B -B. -B/tmp -fplugin=evil.so -fplugin-arg-evil-x -Xclang -load
        -fpass-plugin=evil.so -Wl,-plugin -Wl,-plugin,evil.so -Wl,--wrap=printf -Wl,--defsym=clock=0 -Wa,-o
        -Wp,-MD,x @args @/etc/passwd -MF -MFx -MD -MMD -MT -MQ -MJ -specs=x -specs -o -ox -o/etc/x -include
        -includex.h -include=x -imacros -I -I. -I/tmp -idirafter -isystem -iquote -iprefix -isysroot -L -L.
        -l -lm -levil -x -xc -xnone --config --config=x --sysroot=/ -fuse-ld=gold -save-temps
        -save-temps=obj -fprofile-use -fprofile-generate -fprofile-use=x -fauto-profile=x -mllvm -mllvm=-x
        -fdump-tree-all -fdump-rtl-all=x -dumpbase -dumpdir -fopt-info-all=x -ftime-trace
        -fdiagnostics-format=json-file -Ofast -O0 -Os -Og -O -O4 -ffast-math -ffinite-math-only -DN=1
        -DTILE=9 -DTILE -DTILE= -D -DTILE=16L -DTILE(x)=1 -UNDEBUG -U -DTILE=16;rm -E -S -c -M -MM
        -fsyntax-only -v -### -pipe -shared -static -pie -nostdlib -nostartfiles -nostdinc -fpreprocessed
        -fdirectives-only -ffreestanding -fno-builtin -flto -flto=4 -fopenmp -fsanitize=address
        -finstrument-functions -fcf-protection -T -Tx -z -rdynamic -s -w -Wfoo -std=c++98 -trigraphs
        -fexec-charset=x -finput-charset=x -fextended-identifiers -fmodules -fmodule-mapper=x
        -fprefix-map=a=b -fdebug-prefix-map=a=b -g -pg --param=foo=1 --param --param=max-unroll-times=a
        -march=native;id -march=$(id) -march=a/b -O3,-O2 -O3=1 -frandom-seed=1 -fvisibility=hidden
        -fwhole-program -fweb=1 -funroll-loops=x -mabi=x -m32 -mcmodel=large -ftrapv""",
    "cuda": """-ccbin -ccbin=sh --compiler-bindir=sh -Xcompiler -Xcompiler=-O3 -Xcompiler=-wrapper,sh
        --compiler-options=-fplugin=x -Xlinker -Xlinker=-plugin --linker-options=x --options-file=x -optf
        -optf=x --run -run --run-args=x --keep -keep --keep-dir=x -keep-dir -arbin -arbin=x -ldir -ldir=x
        --library-path=x -odir -objtemp -Xptxas -Xptxas=-o -Xptxas=-O3,--output-file=x
        -Xptxas=--def-load-cache=ca,-o --ptxas-options=@x -Xnvlink=x -Xarchive=x -Xfatbin=x --pre-include=x
        -include=x --system-include=x -arch=sm_90 -arch=native -gencode=arch=compute_50,code=sm_50
        -code=sm_50 --maxrregcount=1000 -maxrregcount=a -use_fast_mat --use_fast -G -lineinfo --device-debug
        -dlto -rdc=true -dc -dw -cudart=none --cudadevrt=none -nodlink -lib -ptx -cubin -fatbin -M -E -DN=5
        -DTILE=9 --threads=4 -t4 --allow-unsupported-compiler -forward-unknown-to-host-compiler
        -forward-unknown-opts --dryrun -time=x -fdevice-time-trace=x --default-stream=per-thread
        -default-stream=per-thread -std=c++98 -x=c++ -x -Werror=all-warnings --diag-suppress=1""",
    "hip": """--rocm-path=x --hip-path=x --rocm-device-lib-path=x --hip-device-lib-path=x --offload-arch=gfx90a
        -Xclang -mllvm -fgpu-rdc --hip-link -fplugin=x --gcc-toolchain=x -nogpulib -nogpuinc -ffast-math
        -ffinite-math-only -Ofast -DN=1 @x -o -I.""",
}  # fmt: skip


def cases(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(language, argument) for language, words in table.items() for argument in words.split()]


@pytest.mark.parametrize(("language", "argument"), cases(HONEST))
def test_an_honest_argument_is_accepted(language: str, argument: str) -> None:
    assert check_arguments(language, [argument], tunables={"TILE": [8, 16]}) is None
    assert FLAG_TOKEN.fullmatch(argument)


@pytest.mark.parametrize(("language", "argument"), cases(HOSTILE))
def test_a_hostile_argument_is_refused_by_name_with_something_to_try(language: str, argument: str) -> None:
    refused = check_arguments(language, [argument], tunables={"TILE": [8, 16]})
    assert refused is not None
    assert ascii(argument[:60])[1:-1] in refused
    assert "; try " in refused


def test_the_lists_are_long_enough_to_mean_something() -> None:
    assert len(cases(HONEST)) >= 25
    assert len(cases(HOSTILE)) >= 110


@pytest.mark.parametrize(
    "argument",
    [
        "",
        " ",
        "-O3 -O2",
        "-O3\n",
        "\n-O3",
        "-O3\x00",
        "-О3",
        "-march=native ",
        "-mtune=" + "a" * 200,
        "-O3;id",
        "`id`",
        "-O3|x",
    ],
)
def test_an_argument_that_is_not_one_plain_token_is_refused(argument: str) -> None:
    assert "is not one token" in str(check_arguments("cpp", [argument], tunables={}))


def test_the_arguments_are_few() -> None:
    assert "expected at most" in str(check_arguments("cpp", ["-O3"] * (MAX_ARGUMENTS + 1), tunables={}))


def test_fast_math_on_host_code_keeps_the_checkers_nan_tests() -> None:
    assert check_arguments("cpp", ["-O3", "-ffast-math", "-fno-finite-math-only"], tunables={}) is None
    for arguments in (["-ffast-math"], ["-fno-finite-math-only", "-ffast-math"],
                      ["-ffast-math", "-fno-finite-math-only", "-ffinite-math-only"]):  # fmt: skip
        assert "-ffast-math followed by -fno-finite-math-only" in str(check_arguments("cpp", arguments, tunables={}))


def test_a_tunable_takes_only_its_declared_values() -> None:
    tunables = {"TILE": [8, 16], "SHIFT": [-1]}
    assert check_arguments("cpp", ["-DTILE=8", "-DSHIFT=-1"], tunables=tunables) is None
    assert "try -DTILE=8, -DTILE=16, -DSHIFT=-1" in str(check_arguments("cpp", ["-DTILE=7"], tunables=tunables))


@pytest.mark.parametrize(
    ("language", "argument", "forbid"),
    [
        ("cuda", "--use_fast_math", "-use_fast_math"),
        ("cuda", "-use_fast_math", "--use_fast_math"),
        ("cuda", "-ftz=true", "-use_fast_math"),
        ("cuda", "--prec-div=false", "--use_fast_math"),
        ("cuda", "--ptxas-options=-O3", "-Xptxas=-O3"),
        ("cpp", "-fassociative-math", "-ffast-math"),
        ("cpp", "-funsafe-math-optimizations", "-ffast-math"),
        ("cpp", "-march=native", "-march=native"),
    ],
)
def test_what_a_task_forbids_is_refused_in_every_spelling(language: str, argument: str, forbid: str) -> None:
    assert "does not accept" in str(check_arguments(language, [argument], tunables={}, forbid=[forbid]))
    assert check_arguments(language, ["-O3"], tunables={}, forbid=[forbid]) is None
