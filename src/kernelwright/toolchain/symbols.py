"""Names of functions as linkers see them, matched with names as people write them.

Only the part of the Itanium C++ ABI's mangling that names a function is read (nested names and their template arguments'
start); the full text of a name comes from c++filt, which runs where the compiler runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kernelwright.toolchain import Exec

_OUTLINED = re.compile(r"\[clone [^\]]*\]|\.(?:_omp_fn|constprop|isra|part|cold|lto_priv|omp_outlined|clone)\b[.\d\w]*")


def base_name(symbol: str) -> str:
    """The unqualified name of the function that a symbol names: `axpy` of `_ZN2ns4axpyIfEEvi`; a C symbol is its own.

    Parts that a compiler split off (`.constprop.0`, `._omp_fn.0`, `.omp_outlined`) carry the name of their origin.
    """
    if not symbol.startswith("_Z"):
        return symbol.split(".")[0]
    nested = re.match(r"_ZL?(?:N[rVKRO]*)?(?:St|S[absiod])?L?", symbol)
    at = nested.end() if nested else 2
    name = symbol
    while (match := re.compile(r"\d{1,6}").match(symbol, at)) is not None:
        start, length = match.end(), int(match[0])
        name, at = symbol[start : start + length], start + length
        if symbol.startswith("L", at):
            at += 1
    return name


def is_named(symbol: str, names: Iterable[str]) -> bool:
    """Whether a symbol is one of the functions named (unqualified, or qualified with `::`)."""
    return base_name(symbol) in {name.split("::")[-1].split("<")[0] for name in names}


NESTING = 100
"""How deep template arguments of a name are followed."""


async def demangle(symbols: Sequence[str], cwd: str, exec_: Exec) -> dict[str, str]:
    """Each symbol as people write it, by c++filt inside the sandbox; its base name where c++filt cannot be had."""
    wanted = sorted(set(symbols))
    plain = {symbol: base_name(symbol) for symbol in wanted}
    if not wanted:
        return plain
    # by way of a shell: a program that does not exist would count as a fault of the sandbox
    done = await exec_(["sh", "-c", 'command -v c++filt >/dev/null && exec c++filt "$@"', "sh", *wanted], cwd)
    lines = done.stdout.decode(errors="replace").splitlines()
    return dict(zip(wanted, lines, strict=True)) if done.exit_code == 0 and len(lines) == len(wanted) else plain


def demangled_name(symbol: str) -> str:
    """The unqualified function name of a demangled symbol: `void a::f<int>(int*) [clone ._omp_fn.0]` is `f`."""
    text = _OUTLINED.sub("", symbol).replace("(anonymous namespace)", "anonymous").strip()
    for _ in range(NESTING):
        if (simpler := re.sub(r"<[^<>]*>|\([^()]*\)", "", text)) == text:
            break
        text = simpler
    text = re.sub(r"(?:\s|\b)(?:const|volatile|noexcept|&+)\s*$", "", text.strip())
    return (re.split(r"::|\s|\*|&", text) or [""])[-1]
