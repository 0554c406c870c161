"""The acceptance test: sound tasks are accepted, and each way in which a task can be blind is named."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from app import SMOOTH
from kernelwright.accept import Acceptance, accept
from kernelwright.probes import derive
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.task_file import load_task


def acceptance(app: Path) -> Acceptance:
    return asyncio.run(accept(load_task(app), open_sandbox()))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_sound_task_is_accepted_and_every_probe_is_named(app: Path) -> None:
    found = acceptance(app)
    assert found.reasons == ()
    assert {probe.probe: probe.status for probe in found.probes} == dict.fromkeys(
        ("broken", "null", "constant", "trap", "unchanged"), "passed"
    )
    data = found.to_json()
    assert data["accepted"] is True
    assert len(data["baseline"]["samples_s"]) == 8
    assert data["baseline"]["noise"] > 0


def blind(app: Path) -> Path:
    """The same task with checks that the region's results do not reach."""
    file = app / "kernelwright.toml"
    text = file.read_text()
    start, end = text.index('[[check]]\nkind = "number"'), text.index("[verify]")
    file.write_text(text[:start] + text[end:])
    return app


def test_checks_that_do_not_see_the_region_are_refused(app: Path) -> None:
    found = acceptance(blind(app))
    assert not found.accepted
    assert any(
        "probe null (smooth) is called correct: the checks do not see what the region computes" in reason
        for reason in found.reasons
    )


def test_a_region_that_is_never_run_is_refused(app: Path) -> None:
    edit(
        app / "src/main.cpp",
        "smooth(a.data(), b.data(), n); smooth(b.data(), a.data(), n);",
        "if (argc > 9) smooth(&a[0], &b[0], n);",
    )
    found = acceptance(app)
    assert any("probe trap (smooth): the region is never run" in reason for reason in found.reasons)


def test_a_part_of_a_function_is_probed_too(app: Path) -> None:
    edit(app / "kernelwright.toml", 'kernel = "smooth"', "lines = [4, 9]")
    found = acceptance(app)
    assert found.accepted, found.reasons


def test_the_author_s_own_text_is_used(app: Path) -> None:
    edit(
        app / "kernelwright.toml",
        'kernel = "smooth"',
        "kernel = \"smooth\"\nprobes = { null = 'inline void smooth(const double*, double*, int) {}' }",
    )
    found = acceptance(app)
    assert [probe.target for probe in found.probes if probe.probe == "null"] == ["given"]
    assert found.accepted


KERNELS = """\
__device__ float twice(float x) { return 2 * x; }
__global__ void add(float* a, const float* b) { int i = threadIdx.x; a[i] += twice(b[i]); }
__global__ void sum(float* total, const float* a) { float v = a[threadIdx.x]; atomicAdd(total, v); }
"""


@pytest.mark.parametrize(
    ("kind", "target", "text"),
    [
        ("null", "add", "const float* b) { { volatile int kw = 1; if (kw) return; } "),
        ("trap", "sum", '{ asm volatile("trap;");  float v'),
        ("constant", "add", "a[i] += 1;"),
        ("constant", "sum", "atomicAdd(total, 0);"),
    ],
)
def test_kernels_are_probed_one_at_a_time(kind: str, target: str, text: str) -> None:
    probes = {probe.target: probe.text for probe in derive(kind, KERNELS, "cuda")}
    assert set(probes) == {"add", "sum"}
    changed = probes[target]
    assert changed is not None
    assert text in changed
    assert changed.count("__global__") == 2


def test_a_function_that_returns_a_value_is_emptied_with_one() -> None:
    (probe,) = derive("null", "double f(const double* a) { return a[0]; }", "cpp")
    assert probe.text is not None
    assert "if (kw) return {};" in probe.text


def test_statements_lose_their_stores_to_what_outlives_them() -> None:
    (probe,) = derive(
        "null", "double s = 0;\nfor (int i = 0; i < n; i++) { s += a[i]; out[i] = s; }\ntotal = s;", "cpp"
    )
    assert probe.text == "double s = 0;\nfor (int i = 0; i < n; i++) { s += a[i]; (void)0; }\n(void)0;"


def test_a_region_that_stores_nothing_says_so() -> None:
    (probe,) = derive("constant", "int f(int a) { return a; }", "cpp")
    assert (probe.text, probe.reason) == (None, "no store to anything that outlives the region was found")


def test_the_first_token_of_a_broken_region_is_no_c() -> None:
    (probe,) = derive("broken", SMOOTH, "cpp")
    assert probe.text == "@ " + SMOOTH
