"""RAJAPerf's conventions on a small checkout of our own: read, built, run and accepted; a device's sources read alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rajaperf_checkout import SOURCES, build_it, make_checkout, stand_in

from kernelwright import macros
from kernelwright.accept import accept
from kernelwright.build_cache import forget
from kernelwright.checks import RunResult, Unreadable, read_time
from kernelwright.execute import BuildFailure, Workshop
from kernelwright.sandbox import JobResult
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.source import region_spans, to_lf
from kernelwright.suites import Benchmark, imported, read_listing
from kernelwright.suites.rajaperf import RajaPerf
from kernelwright.suites.rajaperf.facts import Facts, read_facts
from kernelwright.suites.rajaperf.kernels import NoRegion, Part, chosen_tuning, parts_for, parts_of
from kernelwright.task import RowCheck, Task
from kernelwright.task_file import load_task
from kernelwright.trace import Candidate


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of task files of the CPU variant, imported from a checkout that was really built."""
    checkout, build = make_checkout(tmp_path_factory.mktemp("suite"))
    build_it(build)
    out = checkout.parent / "out"
    out.mkdir()
    made(RajaPerf(checkout, build, "cpp"), out, sandboxed=True)
    return out


def made(importer: RajaPerf, out: Path, *, sandboxed: bool = False) -> dict[str, Benchmark]:
    async def all_of_them() -> dict[str, Benchmark]:
        sandbox = open_sandbox() if sandboxed else None
        return {one.name: one async for one in imported(importer, out, importer.names(), sandbox, 2, print)}

    return asyncio.run(all_of_them())


def device(tmp_path: Path) -> tuple[Task, Benchmark]:
    checkout, build = make_checkout(tmp_path)
    stand_in(build)
    found = made(RajaPerf(checkout, build, "cuda"), tmp_path)
    return load_task(tmp_path / "Apps_BLEND.toml"), found["Algorithm_SORT"]


def test_each_kernel_of_the_three_groups_is_a_task_or_says_why_not(tasks: Path) -> None:
    listing = read_listing(tasks)
    assert listing is not None
    assert (listing.origin.suite, listing.origin.licence) == ("rajaperf", "MIT")
    found = {one.name: one for one in listing.benchmarks}
    assert list(found) == ["Algorithm_SORT", "Apps_BLEND"]  # not those of other groups
    assert "no kernel of its own" in str(found["Algorithm_SORT"].reason)
    assert found["Apps_BLEND"].ran
    assert found["Apps_BLEND"].tasks[0].kernels == ("loop",)


def test_a_region_on_a_cpu_is_what_stands_in_the_repetition_loop(tasks: Path) -> None:
    task = load_task(tasks / "Apps_BLEND.toml")
    span = region_spans(task)["loop"]
    assert span.text.startswith("        #pragma omp parallel for")
    assert span.text.count("for (") == 2
    assert "irep" not in span.text
    assert task.region[0].expand_macros == ("src/apps/BLEND.hpp",)


def test_the_task_is_accepted_with_one_unit_compiled(tasks: Path) -> None:
    forget()
    found = asyncio.run(accept(load_task(tasks / "Apps_BLEND.toml"), open_sandbox()))
    assert found.reasons == ()
    outcomes = {probe.probe: probe.outcome for probe in found.probes}
    assert outcomes["broken"] == "build_failed"
    assert outcomes["null"] == "wrong_result"


def test_the_build_compiles_the_unit_alone_and_places_arguments_on_it(tasks: Path) -> None:
    async def tried() -> tuple[list[str], str]:
        async with Workshop(load_task(tasks / "Apps_BLEND.toml"), open_sandbox()) as shop:
            built = await shop.build_baseline()
            slower = await shop.build(Candidate(compile_args=("-O1",)))
            assert not isinstance(slower, BuildFailure)
            return [source for one in built.commands for source in one.sources], slower.log

    sources, log = asyncio.run(tried())
    assert [Path(source).name for source in sources] == ["BLEND-OMP.cpp"]
    assert "unit.o" in log


def test_a_run_of_another_size_has_a_reference_of_its_own(tasks: Path) -> None:
    task = load_task(tasks / "Apps_BLEND.toml")
    rows = [check for check in task.check if isinstance(check, RowCheck)]
    assert [(check.runs, check.reference.run) for check in rows] == [
        (("default",), "sequential"),
        (("smaller",), "sequential, smaller"),
    ]
    assert "--sizefact" in task.held_out[0].command
    assert {run.command.split("-v ")[1].split()[0] for run in task.references} == {"Base_Seq"}


def test_bytes_of_several_kernels_are_no_more_than_those_of_one_on_average(tasks: Path) -> None:
    floor = load_task(tasks / "Apps_BLEND.toml").floor
    assert (floor.distinct_bytes, floor.flops) == (60000 * 16, 60000 * 8)


TIMING = b"Mean Runtime Report (sec.)  , \nKernel , Base_OpenMP\nKernel , default\nApps_BLEND , %s\n"
KERNELS = b"Kernels run\nKernels , Problem size , Reps\nApps_BLEND , 60000 , %s\n"


@pytest.mark.parametrize(
    ("timing", "kernels", "why"),
    [
        (TIMING % b"0.5", KERNELS % b"0", "below the least sensible value 1"),
        (TIMING % b"Not run", KERNELS % b"40", "'Not run' was found where a number was expected"),
        (TIMING.replace(b"OpenMP", b"Seq") % b"0.5", KERNELS % b"40", "no column 'Base_OpenMP / default'"),
        (b"Mean Runtime Report (sec.)  , \nKernel \nKernel \n", KERNELS % b"40", "no column"),
        (TIMING % b"0.0", KERNELS % b"40", "which is no time"),
    ],
)
def test_runs_that_ran_nothing_have_no_time(tasks: Path, timing: bytes, kernels: bytes, why: str) -> None:
    task = load_task(tasks / "Apps_BLEND.toml")
    out = f"{task.workdir}/out/RAJAPerf"
    files = {f"{out}-timing-Average.csv": timing, f"{out}-kernels.csv": kernels}
    ended = JobResult(0, None, b"DONE", b"", 1.0, 1.0, 0)
    with pytest.raises(Unreadable, match=why):
        read_time(task, RunResult("default", ended, files))


def test_the_time_is_that_of_one_repetition(tasks: Path) -> None:
    task = load_task(tasks / "Apps_BLEND.toml")
    out = f"{task.workdir}/out/RAJAPerf"
    files = {f"{out}-timing-Average.csv": TIMING % b"0.5", f"{out}-kernels.csv": KERNELS % b"40"}
    assert read_time(task, RunResult("default", JobResult(0, None, b"", b"", 1.0, 1.0, 0), files)) == 0.5 / 40


def test_regions_on_a_device_are_the_kernels_that_the_base_variant_launches(tmp_path: Path) -> None:
    task, sort = device(tmp_path)
    spans = region_spans(task)
    assert list(spans) == ["blend1", "blend2"]  # and not the one of the lambda variant
    assert spans["blend2"].text.count("__global__") == 1
    assert "block_size)" not in spans["blend2"].text  # of two of a name, the one that is compiled
    assert task.region[1].lines is not None
    assert sort.tasks == ()
    assert "Base_CUDA" in str(sort.reason)


def test_on_a_device_the_tuning_follows_from_the_block_size_and_nothing_is_run(tmp_path: Path) -> None:
    task, _ = device(tmp_path)
    assert "-t block_128 " in task.shown[0].command
    assert task.shown[0].env == {"CUDA_MODULE_LOADING": "EAGER"}
    assert task.build.arch == "sm_90"
    assert task.floor.flops is None
    makefile = (task.root / task.workdir / "Makefile").read_text()
    assert (
        "\tnvcc -I../../_build/include -I../../src -arch=sm_90 -x cu -o unit.o -c ../../src/apps/BLEND-Cuda.cpp\n"
        in makefile
    )


def test_macros_of_the_kernels_header_are_expanded_in_the_regions_alone(tmp_path: Path) -> None:
    task, _ = device(tmp_path)
    assert task.region[0].expand_macros == ("src/apps/BLEND.hpp",)
    span = region_spans(task)["blend1"]
    data = (task.root / span.file).read_bytes()
    headers = {name: to_lf((task.root / name).read_bytes()) for name in task.region[0].expand_macros}
    expanded = macros.expand(data, headers, span)
    assert expanded.names == ("BLEND_BODY1", "BLEND_OF")
    assert "out[i] = (share * (in[i]) + (1.0 - share) * (out[i]));" in expanded.span.text
    assert (task.root / "src/apps/BLEND.hpp").read_text() == SOURCES["src/apps/BLEND.hpp"]


def test_the_tree_holds_what_is_read_and_the_checkout_stays_as_it_was(tmp_path: Path) -> None:
    task, _ = device(tmp_path)
    files = {path.relative_to(task.root).as_posix() for path in task.root.rglob("*") if path.is_file()}
    assert files == {
        "_build/include/config.hpp", "_build/lib/libapps.a", "_build/src/Driver.o", "make/Apps_BLEND/Makefile",
        "src/algorithm/SORT.hpp", "src/apps/BLEND-Cuda.cpp", "src/apps/BLEND.hpp", "src/apps/ROWS.hpp",
        "src/common/Factory.hpp", "src/common/Suite.hpp",
    }  # fmt: skip
    assert not list((tmp_path / "checkout").glob("*.toml"))


def test_paths_may_be_relative_to_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, build = make_checkout(tmp_path)
    stand_in(build)
    monkeypatch.chdir(tmp_path)
    made(RajaPerf(Path("checkout"), Path("checkout/build"), "cuda"), Path())
    task = load_task(tmp_path / "Apps_BLEND.toml")
    assert list(region_spans(task)) == ["blend1", "blend2"]
    assert sorted(path.name for path in task.root.iterdir()) == ["_build", "make", "src"]


def without(build: Path, name: str) -> None:
    for path in build.rglob(name):
        path.unlink()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("compile_commands.json", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"),
        ("link.txt", "Unix Makefiles"),
        ("raja-perf.exe", "build raja-perf.exe in"),
    ],
)
def test_a_build_that_does_not_say_enough_is_a_reason(tmp_path: Path, name: str, why: str) -> None:
    checkout, build = make_checkout(tmp_path)
    stand_in(build)
    without(build, name)
    found = made(RajaPerf(checkout, build, "cuda"), tmp_path)
    assert found["Apps_BLEND"].tasks == ()
    assert why in str(found["Apps_BLEND"].reason)


def test_a_build_for_another_language_is_a_reason(tmp_path: Path) -> None:
    checkout, build = make_checkout(tmp_path)
    stand_in(build)
    (checkout / "src/apps/BLEND-Hip.cpp").write_text(SOURCES["src/apps/BLEND-Cuda.cpp"].replace("CUDA", "HIP"))
    found = made(RajaPerf(checkout, build, "hip"), tmp_path)
    assert "was configured without BLEND-Hip.cpp" in str(found["Apps_BLEND"].reason)


def test_a_folder_that_is_no_checkout_has_no_kernels(tmp_path: Path) -> None:
    assert RajaPerf(tmp_path, tmp_path, "cuda").names() == []


@pytest.mark.parametrize(
    ("language", "text", "why"),
    [
        ("cuda", "void run() { if ( vid == RAJA_CUDA ) { sort(x); } }", "it has no Base_CUDA variant"),
        ("cuda", "void run() { if ( vid == Base_CUDA ) { library(x); } }", "launches no kernel of its own"),
        ("cpp", "void run() { switch (vid) { case Base_OpenMP : { library(x); } } }", "has no repetition loop"),
        (
            "cpp",
            "#if defined(NOWHERE)\nvoid run() { switch (vid) { case Base_OpenMP : { } } }\n#endif\n",
            "has no Base_OpenMP",
        ),
    ],
)
def test_a_variant_without_code_of_its_own_is_a_reason(language: str, text: str, why: str) -> None:
    with pytest.raises(NoRegion, match=why):
        parts_of(language, text.encode(), {})


def test_a_library_is_never_the_tuning_and_a_grid_for_the_device_comes_first() -> None:
    assert chosen_tuning(("library", "block_256")) == "block_256"
    assert chosen_tuning(("cub", "blkatm_direct_256", "blkatm_occgs_256")) == "blkatm_occgs_256"
    assert (
        chosen_tuning(("replicate_1_global_256", "replicate_2_warp_256", "replicate_64_warp_256"))
        == "replicate_64_warp_256"
    )
    assert chosen_tuning(("block_256", "default")) == "default"
    assert chosen_tuning(("cub",)) is None


def test_a_tuning_takes_the_branch_whose_kernels_share_its_words() -> None:
    branches = [[Part(f"add_replicate_{of}", f"add_replicate_{of}", (1, 2), "")] for of in ("thread", "warp", "block")]
    assert [part.name for part in parts_for("replicate_64_warp_256", branches)] == ["add_replicate_warp"]


DRY = """\
Variants and Tunings
--------
Base_Seq-default
Base_CUDA-library
Base_CUDA-block_256

Kernels , Problem size , Reps , Kernels/rep , FLOPS/rep , BytesRead/rep , BytesWritten/rep , BytesAtomicModifyWritten/rep
-----
Apps_BLEND , 1000 , 40 , 1 , 8000 , 8000 , 8000 , 8000
"""


def test_what_a_dry_run_prints_is_read_and_atomic_updates_are_no_floor() -> None:
    facts = read_facts(DRY, "Apps_BLEND", "Base_CUDA")
    assert facts == Facts(("library", "block_256"), ("default",), 40, 1, 16000.0, 8000.0)
    assert "can be read" in str(read_facts(DRY.replace("FLOPS/rep", "FLOPS"), "Apps_BLEND", "Base_CUDA"))


@pytest.mark.parametrize(
    ("kernel", "variant", "why"),
    [
        ("Apps_OTHER", "Base_CUDA", "the program knows no kernel Apps_OTHER"),
        ("Apps_BLEND", "Base_HIP", "Base_HIP of Apps_BLEND is not compiled into the program"),
    ],
)
def test_what_the_program_does_not_have_is_a_reason(kernel: str, variant: str, why: str) -> None:
    with pytest.raises(NoRegion, match=why):
        read_facts(DRY, kernel, variant)
