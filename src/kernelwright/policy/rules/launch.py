"""Rules on how a kernel is launched: what the launches in the file say of the block size, and other sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from kernelwright.policy.rules.effects import effects
from kernelwright.policy.rules.names import Names, file_scope
from kernelwright.policy.rules.pointers import calls_of, is_kernel
from kernelwright.policy.rules.rule import GPU, Rule, Variant
from kernelwright.policy.rules.syntax import (
    Edit,
    Site,
    arguments,
    below,
    called,
    child,
    enclosing,
    identifiers,
    strip,
    text_of,
)
from kernelwright.source import function_name

THREADS_PER_SM = 2048
"""Resident threads a multiprocessor holds at most, from sm_70 to sm_100 but for consumer parts (CUDA C++ Programming
Guide, compute capabilities); only the choice of a second launch bound rests on it."""
BLOCKS_PER_SM = 32
"""Resident blocks likewise; the smaller parts that hold fewer take the bound as a wish."""
BLOCK_SIZES = (128, 256, 512, 64, 1024)


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel: its name, the expressions of grid and block, and the function it stands in."""

    kernel: str
    grid: Node
    block: Node
    names: Names


@lru_cache(maxsize=8)
def launches(site: Site) -> list[Launch]:
    """All launches in the file, `<<<…>>>` and hipLaunchKernelGGL."""
    if b"<<<" not in site.data and b"hipLaunchKernelGGL" not in site.data:
        return []
    scope, found = file_scope(site), list[Launch]()
    for call in below(site.root, "call_expression"):
        shape = _shape(call)
        if shape is not None:
            found.append(Launch(*shape, scope.inside(enclosing(call, "function_definition"))))
    return found


def _shape(call: Node) -> tuple[str, Node, Node] | None:
    syntax = next((part for part in call.children if part.type == "kernel_call_syntax"), None)
    if syntax is not None and syntax.named_child_count >= 2:
        return called(call), syntax.named_children[0], syntax.named_children[1]
    listed = arguments(call)
    if called(call) != "hipLaunchKernelGGL" or len(listed) < 5:
        return None
    inner = next(below(listed[0], "identifier"), None)
    return (text_of(inner), listed[1], listed[2]) if inner is not None else None


def block_threads(launch: Launch) -> int | None:
    """Threads a block, where literals, constants or variables set once say it."""
    return _threads(launch.block, launch.names, 4)


def _threads(node: Node, names: Names, depth: int) -> int | None:
    node = strip(node)
    if depth == 0:
        return None
    if node.type == "call_expression" and called(node) == "dim3":
        return _product([_threads(part, names, depth - 1) for part in arguments(node)])
    if node.type in ("argument_list", "initializer_list"):
        return _product([_threads(part, names, depth - 1) for part in node.named_children if part.type != "comment"])
    if node.type == "identifier":
        return _named_threads(text_of(node), names, depth)
    return names.constant(node)


def _named_threads(name: str, names: Names, depth: int) -> int | None:
    value = set_once(name, names)
    if value is not None:
        return _threads(value, names, depth - 1)
    parts = _dim3_of_names(name, names)
    return _product([_named_threads(part, names, depth - 1) for part in parts]) if parts else names.constant_name(name)


def _dim3_of_names(name: str, names: Names) -> list[str]:
    """`dim3 block(BX, BY)` with names alone, which the parser takes for the declaration of a function."""
    found = []
    for node in below(names.function, "declaration") if names.function is not None else ():
        kind, declarator = child(node, "type"), child(node, "declarator")
        if kind is not None and text_of(kind) == "dim3" and declarator is not None and function_name(node) == name:
            listed = child(declarator, "parameters")
            found.append([text_of(part) for part in listed.named_children] if listed is not None else [])
    return found[0] if len(found) == 1 and all(part.isidentifier() for part in found[0]) else []


def _product(parts: list[int | None]) -> int | None:
    total = 1
    for part in parts:
        if part is None:
            return None
        total *= part
    return total if parts else None


def set_once(name: str, names: Names) -> Node | None:
    """The initial value of a local or global scalar or dim3 that nothing in its function changes afterwards."""
    declared = names.find(name)
    if declared is None or declared.value is None or declared.levels:
        return None
    scope = names.function if names.local(declared.name) is not None else None
    fixed = declared.qualifiers & {"const", "constexpr"}
    if not fixed and (scope is None or declared.name in _reassigned(scope)):
        return None
    return declared.value


def _reassigned(function: Node) -> set[str]:
    found = set()
    for node in below(function, "assignment_expression", "update_expression", "pointer_expression"):
        if node.type != "pointer_expression" or text_of(node).startswith("&"):
            left = child(node, "left") or child(node, "argument")
            found |= effects(node).modified | (identifiers(left) if left is not None else set())
    return found


def _bounds_variants(site: Site) -> list[Variant]:
    kernels = [function for function in site.functions() if is_kernel(function) and not _bounded(function)]
    threads = (
        {function.id: _known_threads(site, function_name(function) or "") for function in kernels} if kernels else {}
    )
    known = [(function, n) for function in kernels if (n := threads[function.id]) is not None]
    plain = [_bound(function, f"{n}") for function, n in known]
    dense = [_bound(function, f"{n}, {min(THREADS_PER_SM // n, BLOCKS_PER_SM)}")
             for function, n in known if n <= THREADS_PER_SM // 2]  # fmt: skip
    variants = [Variant("threads", tuple(edit for edit in plain if edit)),
                Variant("threads and full occupancy", tuple(edit for edit in dense if edit))]  # fmt: skip
    return [variant for variant in variants if variant.edits]


def _bounded(function: Node) -> bool:
    return next(below(function, "launch_bounds"), None) is not None or "__launch_bounds__" in text_of(function)


def _known_threads(site: Site, kernel: str) -> int | None:
    """The largest block of all launches of a kernel, where the file launches it and every launch says its block."""
    found = [block_threads(launch) for launch in launches(site) if launch.kernel == kernel]
    counts = [n for n in found if n is not None and 0 < n <= 1024]
    named = calls_of(site, kernel)
    return max(counts) if counts and len(counts) == len(found) == len(named[0]) and not named[1] else None


def _bound(function: Node, bound: str) -> Edit | None:
    kind = child(function, "type")
    return Edit(kind.end_byte, kind.end_byte, f" __launch_bounds__({bound})") if kind is not None else None


LAUNCH_BOUNDS = Rule(
    "launch-bounds", GPU,
    "a __global__ function without launch bounds; every launch of it in the file has a block size that literals and "
    "constants give, and it is named nowhere else",
    "the compiler otherwise reckons with blocks of 1024 threads; knowing the size it can give each thread more registers, or "
    "(second variant) few enough for full occupancy",
    _bounds_variants, gain=1.03, risk=1, assumes="no other file launches it with larger blocks",
)  # fmt: skip


def _size_variants(site: Site) -> list[Variant]:
    places = list(_size_places(site))
    sizes = {old for old, _ in places}
    return [Variant(f"{size} threads", tuple(Edit(*span, str(size + shift)) for _, spans in places for span, shift in spans))
            for size in BLOCK_SIZES if places and sizes != {size}]  # fmt: skip


Places = list[tuple[tuple[int, int], int]]


def _size_places(site: Site) -> Iterator[tuple[int, Places]]:
    """For each one-dimensional block size set in the region: its value, and the literals to change with their offset."""
    seen = set()
    for launch in launches(site):
        block = strip(launch.block)
        if block.type == "call_expression" and called(block) == "dim3" and len(arguments(block)) == 1:
            block = strip(arguments(block)[0])
        literals = _inline(launch, block) if block.type == "number_literal" else _variable(launch, block, site)
        inside = all(site.start <= start and end <= site.end for (start, end), _ in literals)
        key = tuple(literals)
        size = block_threads(launch)
        if literals and inside and key not in seen and size is not None and _size_is_free(site, launch, size):
            seen.add(key)
            yield size, literals


def _variable(launch: Launch, block: Node, site: Site) -> Places:
    if block.type != "identifier" or launch.names.local(text_of(block)) is None:
        return []
    name = text_of(block)
    value = set_once(name, launch.names)
    if value is not None and value.type == "argument_list" and value.named_child_count == 1:
        value = value.named_children[0]
    if value is not None and value.type == "identifier":
        return _variable(launch, value, site)
    if value is None or value.type != "number_literal" or not re.fullmatch(r"[1-9]\d*", text_of(value)):
        return []
    grid = _expanded(launch.grid, launch.names)
    return [((value.start_byte, value.end_byte), 0)] if name in grid or f"{name}.x" in grid else []


def _expanded(node: Node, names: Names, depth: int = 4) -> set[str]:
    """Names that an expression depends on, through initial values."""
    found = identifiers(node)
    for name in list(found) if depth else []:
        declared = names.find(name)
        if declared is not None and declared.value is not None:
            found |= _expanded(declared.value, names, depth - 1)
    return found


def _inline(launch: Launch, block: Node) -> Places:
    """`<<<(n + 255) / 256, 256>>>`: the literal in the block and its like in the grid."""
    size = text_of(block)
    if not re.fullmatch(r"[1-9]\d*", size):
        return []
    found: Places = [((block.start_byte, block.end_byte), 0)]
    numbers = [node for node in below(launch.grid, "number_literal") if text_of(node) not in ("0", "1")]
    for node in numbers:
        shift = {size: 0, str(int(size) - 1): -1}.get(text_of(node))
        if shift is None:
            return []
        found.append(((node.start_byte, node.end_byte), shift))
    return found if any(shift == 0 for _, shift in found[1:]) else []


def _size_is_free(site: Site, launch: Launch, size: int) -> bool:
    """Whether the kernel is in the file, asks blockDim for its size, and holds neither shared memory nor the number."""
    kernels = [node for node in below(site.root, "function_definition") if function_name(node) == launch.kernel]
    if len(kernels) != 1 or "blockDim.x" not in text_of(kernels[0]):
        return False
    text = text_of(kernels[0])
    tied = re.search(rf"__shared__|__shfl|__syncthreads|cooperative|cub::|blockDim\.y|\b({size}|{size - 1})\b", text)
    return tied is None and "__launch_bounds__" not in text


BLOCK_SIZE = Rule(
    "block-size", GPU,
    "a launch in the region with a one-dimensional block whose size is a literal, or a local set to one, that the grid is "
    "reckoned from too; the kernel is in the file, uses blockDim.x, and no shared memory, shuffle or barrier",
    "occupancy and the tail of the last wave depend on the block size, and the best one on the device",
    _size_variants, gain=1.04, risk=2, assumes="the kernel's result does not depend on how threads fall into blocks",
)  # fmt: skip

RULES = (BLOCK_SIZE, LAUNCH_BOUNDS)
"""In this order: bounds follow the size, and a kernel that has bounds keeps its size."""
