"""Rules on pointer parameters: what a compiler may assume about the memory behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from kernelwright.policy.rules.declared import Declared
from kernelwright.policy.rules.names import Names, file_scope
from kernelwright.policy.rules.rule import CUDA, EVERY, GPU, Rule, Variant, only
from kernelwright.policy.rules.syntax import (
    Edit,
    Site,
    arguments,
    below,
    called,
    child,
    enclosing,
    flat,
    is_math,
    operator,
    strip,
    text_of,
    words,
)
from kernelwright.source import function_name

LDG_TYPES = words(
    "char short int long float double float2 float4 double2 int2 int4 uint2 uint4 short2 short4 char2 char4 uchar2 uchar4 "
    "ushort2 ushort4 int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t half __half unsigned"
) | {
    "long long",
    "unsigned int",
    "unsigned char",
    "unsigned short",
    "unsigned long",
    "unsigned long long",
    "signed char",
}
"""Element types that CUDA's __ldg takes (CUDA C++ Programming Guide, Read-Only Data Cache Load Function)."""


def is_kernel(function: Node) -> bool:
    body = child(function, "body")
    head = text_of(function)[: body.start_byte - function.start_byte] if body is not None else ""
    return "__global__" in head


def _scopes(site: Site) -> Iterator[tuple[Node, Names]]:
    for function in site.functions():
        if child(function, "body") is not None:
            yield function, file_scope(site).inside(function)


def _pointer(parameter: Declared) -> bool:
    """A parameter `T *p`: one level, no reference, no array, nothing volatile."""
    outer = parameter.declarator
    return outer.type == "pointer_declarator" and parameter.levels == 1 and "volatile" not in parameter.qualifiers


def _restricted(parameter: Declared) -> bool:
    """Whether any spelling of restrict stands there: the parser gives `__restrict` and macros another form."""
    return "restrict" in text_of(parameter.declarator).lower()


def _name_node(parameter: Declared) -> Node | None:
    return next(below(parameter.declarator, "identifier"), None)


@lru_cache(maxsize=16)
def calls_of(site: Site, name: str) -> tuple[list[list[Node]], bool]:
    """The argument lists of every call or launch of a function in the file, and whether it is named otherwise too."""
    lists, elsewhere = [], False
    if name.encode() not in site.data:
        return [], False
    for node in below(site.root, "identifier"):
        if text_of(node) != name or _is_definition(node):
            continue
        call = _call_of(node)
        if call is None:
            elsewhere = True
        else:
            listed = arguments(call)
            launch = text_of(child(call, "function") or call) == "hipLaunchKernelGGL"
            lists.append(listed[5:] if launch else listed)
    return lists, elsewhere


def _is_definition(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "function_declarator"


def _call_of(node: Node) -> Node | None:
    above = node.parent
    while above is not None and above.type in ("template_function", "qualified_identifier"):
        above = above.parent
    if above is not None and above.type == "argument_list":
        call = above.parent
        launch = call is not None and text_of(child(call, "function") or call) == "hipLaunchKernelGGL"
        return call if launch and call is not None and arguments(call)[0].start_byte <= node.start_byte else None
    return above if above is not None and above.type == "call_expression" else None


def _memory(argument: Node) -> str:
    """What tells the memory that an argument points to: `a` for `a + 3`, `&a[i]` and `(float *)a`."""
    argument = strip(argument)
    inner = {"pointer_expression": "argument", "subscript_expression": "argument", "cast_expression": "value"}
    if argument.type in inner:
        step = child(argument, inner[argument.type])
        return _memory(step) if step is not None else flat(argument)
    left = child(argument, "left")
    if argument.type == "binary_expression" and operator(argument) in ("+", "-") and left is not None:
        return _memory(left)
    return flat(argument)


def _shared(site: Site, names: Names, name: str) -> set[str]:
    """Pointer parameters that some call in the file gives the same memory."""
    found: set[str] = set()
    for call in calls_of(site, name)[0]:
        seen: dict[str, str] = {}
        for parameter, argument in zip(names.parameters, call, strict=False):
            if parameter.levels:
                other = seen.setdefault(_memory(argument), parameter.name)
                found |= {other, parameter.name} if other != parameter.name else set()
    return found


def _exchanged(function: Node, pointers: set[str]) -> set[str]:
    """Pointers that are assigned one to another in the body, as in `a = b`."""
    found = set()
    for assignment in below(function, "assignment_expression"):
        left, right = child(assignment, "left"), child(assignment, "right")
        if left is not None and right is not None and text_of(left) in pointers:
            others = {text_of(node) for node in below(right, "identifier")} & pointers - {text_of(left)}
            found |= others | {text_of(left)} if others else set()
    return found


def _restrict_variants(site: Site) -> list[Variant]:
    edits = []
    for function, names in _scopes(site):
        pointers = {parameter.name for parameter in names.parameters if parameter.levels}
        unfit = _shared(site, names, function_name(function) or "") | _exchanged(function, pointers)
        if len(pointers) < 2:
            continue
        for parameter in names.parameters:
            name = _name_node(parameter)
            if _pointer(parameter) and not _restricted(parameter) and parameter.name not in unfit and name is not None:
                edits.append(Edit(name.start_byte, name.start_byte, "__restrict__ "))
    return only(edits)


RESTRICT = Rule(
    "restrict", EVERY,
    "a pointer parameter of a function that lies whole in the region and takes at least two; no call in the file gives two "
    "of them the same memory, and the body assigns none of them to another",
    "without it every store may change what any other pointer reads, so loads are repeated and loops are not vectorised",
    _restrict_variants, gain=1.08, opening=True, risk=1,
    assumes="callers outside the file pass memory that does not overlap",
)  # fmt: skip


def _read_only(function: Node, parameter: Declared, names: Names) -> list[Node] | None:
    """All uses of a pointer as `p[i]` reads; None where it is used in any other way, or declared twice."""
    body = child(function, "body")
    if body is None or names.local(parameter.name) is None:
        return None
    uses = []
    for node in below(body, "identifier"):
        if text_of(node) != parameter.name:
            continue
        load = node.parent
        if (
            load is None
            or load.type != "subscript_expression"
            or child(load, "argument") != node
            or not _read(load, names)
        ):
            return None
        uses.append(load)
    return uses if not _redeclared(body, parameter.name) and not _in_directives(body, parameter.name) else None


def _read(load: Node, names: Names) -> bool:
    """Whether an element is only read: not assigned, counted up, pointed to, nor bound to a reference."""
    node, above = load, load.parent
    part = ("parenthesized_expression", "field_expression", "subscript_expression")
    while above is not None and above.type in part:
        node, above = above, above.parent
    if above is not None and above.type == "call_expression" and child(above, "function") == node:
        return False
    if above is None or above.type in ("update_expression", "pointer_expression", "initializer_list"):
        return False
    if above.type == "init_declarator":
        declared = child(above, "declarator")
        return declared is not None and declared.type == "identifier"
    if above.type == "argument_list":
        whole = node == load or names.kind(node) is not None
        return whole and above.parent is not None and _by_value(above.parent, names)
    return not (above.type == "assignment_expression" and child(above, "left") == node)


def _by_value(call: Node, names: Names) -> bool:
    """Whether a call, or a constructor, is known to take its arguments as values."""
    function = child(call, "function")
    if call.type != "call_expression" or function is None or called(call) in names.file.macros:
        return False
    plain = function.type == "identifier" and names.file.by_value.get(called(call), False)
    return is_math(call) or plain or text_of(function).startswith(("make_", "atomic", "__shfl"))


def _redeclared(body: Node, name: str) -> bool:
    return any(text_of(node) == name and node.parent is not None and node.parent.type.endswith("declarator")
               for node in below(body, "identifier"))  # fmt: skip


def _in_directives(body: Node, name: str) -> bool:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return any(
        word.search(text_of(node)) for node in below(body, "preproc_call", "preproc_def", "preproc_function_def")
    )


def _ldg_variants(site: Site) -> list[Variant]:
    edits = []
    for function, names in _scopes(site):
        for parameter in names.parameters if is_kernel(function) else ():
            base = names.file.base(parameter.base)
            if not _pointer(parameter) or base not in LDG_TYPES:
                continue
            for load in _read_only(function, parameter, names) or ():
                edits.append(Edit(load.start_byte, load.start_byte, "__ldg(&"))
                edits.append(Edit(load.end_byte, load.end_byte, ")"))
    return only(edits)


LDG = Rule(
    "read-only-loads", (CUDA,),
    "a pointer parameter of a __global__ function with an element type that __ldg takes, of which the body does nothing but "
    "read elements by subscript",
    "the load goes through the read-only path (LDG.CI / ld.global.nc), which needs no coherence and may be moved past stores",
    _ldg_variants, gain=1.03, opening=True, risk=1,
    assumes="nothing writes that memory while the kernel runs",
)  # fmt: skip


def _const_variants(site: Site) -> list[Variant]:
    edits = []
    for function, names in _scopes(site):
        if not any(_pointer(p) and "const" not in _base_qualifiers(p) for p in names.parameters):
            continue
        if not _signature_is_free(site, function):
            continue
        for parameter in names.parameters:
            plain = not {"const", "volatile"} & _base_qualifiers(parameter)
            uses = _read_only(function, parameter, names) if _pointer(parameter) and plain else None
            if uses:
                edits.append(Edit(parameter.node.start_byte, parameter.node.start_byte, "const "))
    return only(edits)


def _base_qualifiers(parameter: Declared) -> set[str]:
    return {text_of(node) for node in parameter.node.children if node.type == "type_qualifier"}


def _signature_is_free(site: Site, function: Node) -> bool:
    """A function of this file alone: defined once, not declared apart, called here and named in no other way."""
    name = function_name(function)
    qualified = function.parent is None or function.parent.type not in (
        "translation_unit", "namespace_definition", "declaration_list", "preproc_ifdef",
    )  # fmt: skip
    if name is None or qualified or enclosing(function, "linkage_specification", "class_specifier", "struct_specifier"):
        return False
    head = text_of(function)[:200].split("{")[0]
    local = re.search(r"\b(static|inline|__global__|__device__|__forceinline__)\b", head) is not None
    if not local:
        return False
    declared = [node for node in below(site.root, "function_declarator") if function_name_of(node) == name]
    calls, elsewhere = calls_of(site, name)
    return len(declared) == 1 and bool(calls) and not elsewhere


def function_name_of(declarator: Node) -> str | None:
    inner = child(declarator, "declarator")
    return text_of(inner) if inner is not None and inner.type in ("identifier", "field_identifier") else None


CONST = Rule(
    "const-pointee", GPU,
    "a pointer parameter of which the body only reads elements by subscript, in a function that is defined once, called in "
    "this file, nowhere declared apart and never named but in calls",
    "const together with __restrict__ lets the compiler use the read-only path for every load through the pointer",
    _const_variants, gain=1.02, opening=True, risk=1,
    assumes="no other file declares the function",
)  # fmt: skip

RULES = (CONST, RESTRICT, LDG)
