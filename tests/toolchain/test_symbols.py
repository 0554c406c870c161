"""Names of functions, as compilers and tools write them."""

from __future__ import annotations

import pytest

from kernelwright.toolchain.symbols import base_name, demangled_name


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("k(float*)", "k"),
        ("void ns::k<float, 4>(float*, int)", "k"),
        ("(anonymous namespace)::k(float*)", "k"),
        ("void (anonymous namespace)::k<float>(float*)", "k"),
        ("float a::B<int>::f(int) const", "f"),
        ("sweep(Plate const&, double const*) [clone ._omp_fn.0]", "sweep"),
        ("k", "k"),
    ],
)
def test_a_demangled_name_loses_all_but_the_function(demangled: str, name: str) -> None:
    assert demangled_name(demangled) == name


@pytest.mark.parametrize(("symbol", "name"), [("_ZN2ns4axpyIfEEvi", "axpy"), ("main", "main"), ("f.constprop.0", "f")])
def test_a_symbol_names_its_function(symbol: str, name: str) -> None:
    assert base_name(symbol) == name
