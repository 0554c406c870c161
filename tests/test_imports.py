"""Imports point one way, heavy libraries stay where they belong, and importing anything does nothing else."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src"
PACKAGE = "kernelwright"

LAYERS = (
    "errors outcome task task_file trace",
    "state source blocks calls candidates preprocessor macros probes screen workspace sandbox toolchain interpose mishaps "
    "commands kernels approval build_cache execute by_hand acceptance "
    "analysis patterns matcher checks conditions limits measure slots "
    "stats means references trial tolerance variation store policy",
    "pool toolbox tools",
    "policy.endpoint policy.wire policy.local policy.rules policy.scripted chat explain rollout",
    "memory_check other_inputs other_memory doubts verify reward accept briefing",
    "pool.work pool.job pool.remote pool.local pool.cluster pool.opening",
    "init",
    "suites proving runner report train",
    "cli __main__",
)
"""From the vocabulary up to the command line: a module imports from its own layer and those above it in this list.

The longest name that fits counts: `policy` alone is the seam (what a message producer is), its modules are policies.
"""

HEAVY = {
    "torch": ("train", "policy.local"),
    "transformers": ("train", "policy.local"),
    "peft": ("train", "policy.local"),
    "trl": ("train",),
    "parsl": ("pool.cluster",),
    "datasets": ("suites.dataset",),
    "matplotlib": ("report",),
}
"""Optional libraries and the only places that may import them."""


def modules() -> dict[str, Path]:
    """Every module of the package by its name without the package's own."""
    found = {}
    for path in sorted((SRC / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SRC / PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return {name: path for name, path in found.items() if name}


MODULES = modules()


def imported(path: Path) -> Iterator[str]:
    """Full names of all that a file imports, also inside functions; `from a import b` gives a.b where that is a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner.removeprefix(f"{PACKAGE}.") in MODULES else str(node.module)


def own_imports(name: str) -> set[str]:
    names = {full.removeprefix(f"{PACKAGE}.") for full in imported(MODULES[name]) if full.startswith(f"{PACKAGE}.")}
    return names & set(MODULES)


def below(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def layer(name: str) -> int:
    places = [(len(place), rank) for rank, row in enumerate(LAYERS) for place in row.split() if below(name, place)]
    assert places, f"src/{PACKAGE}: {name} has no place in LAYERS of {Path(__file__).name}"
    return max(places)[1]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_from_its_own_layer_and_those_before_it(name: str) -> None:
    wrong = sorted(other for other in own_imports(name) if layer(other) > layer(name))
    assert not wrong, f"{name} imports {', '.join(wrong)} of a later layer"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: own_imports(name) - {name} for name in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_is_imported_only_where_it_belongs(library: str) -> None:
    users = {name for name, path in MODULES.items() for full in imported(path) if below(full, library)}
    assert {name for name in users if not any(below(name, place) for place in HEAVY[library])} == set()


def python(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter whose home, state and working folder are `home`, which it may leave as it is."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "KERNELWRIGHT_"))}
    env |= {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(SRC)}
    return subprocess.run([sys.executable, "-c", code], cwd=home, env=env, capture_output=True, text=True, check=False)


def test_the_command_line_loads_none_of_the_heavy_libraries(tmp_path: Path) -> None:
    code = f"import sys, kernelwright.cli; print(*(name for name in {list(HEAVY)!r} if name in sys.modules))"
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_importing_any_module_prints_nothing_and_leaves_no_file(tmp_path: Path) -> None:
    names = [f"{PACKAGE}.{name}" for name in MODULES if not name.endswith("__main__")]
    code = f"""
import importlib
for name in {names!r}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {list(HEAVY)!r}:
            raise
"""
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
