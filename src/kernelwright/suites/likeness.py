"""Whether two kernels are nearly the same code: by windows of tokens in which names stand only for their order.

A model that was trained on a kernel is not tested by one that differs in names, numbers and layout. Comments, qualifiers and
layout are dropped, literals are alike, and each name of a window is replaced by when it first came there; so a rename, a
moved line or a new variable elsewhere changes few windows. What is kept: keywords, types, and the words of the device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import combinations

from kernelwright.preprocessor import lex

WINDOW = 12
"""Tokens that are compared at a time: about a line and a half of code."""
LIKE = 0.7
"""The share of the shorter one's windows that the longer one has, from which two texts are near-duplicates."""
FEW = 30
"""Below so many windows a text is mostly what all kernels begin with, so all of both texts has to be alike."""
_DROPPED = {
    "const",
    "__restrict__",
    "restrict",
    "__restrict",
    "static",
    "inline",
    "__forceinline__",
    "extern",
    "volatile",
}
_KEPT = {
    "if", "else", "for", "while", "do", "return", "break", "continue", "switch", "case", "template", "typename", "struct",
    "sizeof", "new", "delete", "goto", "default", "operator", "auto", "void", "bool", "char", "short", "int", "long", "float",
    "double", "unsigned", "signed", "size_t", "half", "float2", "float4", "double2", "int2", "int4", "__global__",
    "__device__", "__shared__", "__host__", "__syncthreads", "threadIdx", "blockIdx", "blockDim", "gridDim", "x", "y", "z",
    "atomicAdd", "atomicMax", "atomicMin", "atomicCAS", "__shfl_down_sync", "__shfl_xor_sync", "sqrt", "sqrtf", "exp", "expf",
    "log", "logf", "pow", "powf", "sin", "cos", "fabs", "fabsf", "min", "max", "fmin", "fmax", "pragma", "omp",
}  # fmt: skip


def windows(text: str) -> frozenset[int]:
    """Hashes of all windows of a text; of all of it where it is shorter than one."""
    tokens = [
        token if kind != "name" or token in _KEPT else "\0"
        for kind, token in _plain(lex(text))
        if token not in _DROPPED
    ]
    names = [token for kind, token in _plain(lex(text)) if token not in _DROPPED]
    spans = range(max(1, len(tokens) - WINDOW + 1))
    return frozenset(_hash(tokens[at : at + WINDOW], names[at : at + WINDOW]) for at in spans)


def _plain(pieces: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for kind, token in pieces:
        if kind not in ("space", "comment"):
            yield kind, token if kind in ("name", "mark", "other") else "0"


def _hash(tokens: list[str], names: list[str]) -> int:
    order: dict[str, int] = {}
    words = [
        f"\0{order.setdefault(name, len(order))}" if token == "\0" else token
        for token, name in zip(tokens, names, strict=True)
    ]
    return int.from_bytes(hashlib.blake2b("\1".join(words).encode(), digest_size=8).digest())


def alike(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether two texts, by their windows, are near-duplicates."""
    shared = len(one & other)
    few = min(len(one), len(other)) < FEW
    return shared >= LIKE * (len(one | other) if few else min(len(one), len(other)))


def families(texts: Mapping[str, Iterable[frozenset[int]]]) -> dict[str, str]:
    """Each key of `texts` (the windows of its texts) with the first key, by name, of those that near-duplicates join."""
    parent = {key: key for key in texts}

    def root(key: str) -> str:
        while parent[key] != key:
            key = parent[key]
        return key

    holders: dict[int, list[tuple[str, frozenset[int]]]] = {}
    for key in sorted(texts):
        for text in texts[key]:
            for window in text:
                holders.setdefault(window, []).append((key, text))
    seen: set[tuple[str, str, int, int]] = set()
    for row in holders.values():
        for (left, one), (right, other) in combinations(row, 2):
            pair = (left, right, id(one), id(other))
            if left == right or pair in seen:
                continue
            seen.add(pair)
            if alike(one, other):
                first, second = sorted((root(left), root(right)))
                parent[second] = first
    return {key: root(key) for key in texts}
