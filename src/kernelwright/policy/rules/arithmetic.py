"""Rules on single expressions: cheaper arithmetic that gives the same value up to rounding."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from tree_sitter import Node

from kernelwright.policy.rules.names import Kind, Names, file_scope, literal_kind
from kernelwright.policy.rules.rule import EVERY, Rule, Variant, only
from kernelwright.policy.rules.syntax import (
    FLOAT_MATH,
    Edit,
    Site,
    arguments,
    atom,
    called,
    child,
    enclosing,
    is_math,
    operator,
    pure,
    strip,
    text_of,
)

_LARGEST_POWER = 8
_FLAT_FACTORS = 3


def scopes(site: Site, *types: str) -> Iterator[tuple[Node, Names]]:
    """Nodes of these types in the region, each with the names that its function sees."""
    scope = file_scope(site)
    for node, function in site.scoped(*types):
        yield node, scope.inside(function)


def _value(text: str) -> float | None:
    kind = literal_kind(text)
    if kind is None or (kind == "int" and not text.lstrip("+-").isdigit()):
        return None
    return float(text.rstrip("fF"))


def _literal(node: Node) -> float | None:
    node = strip(node)
    if node.type == "unary_expression" and operator(node) == "-":
        argument = child(node, "argument")
        inner = _literal(argument) if argument is not None else None
        return -inner if inner is not None else None
    return _value(text_of(node)) if node.type == "number_literal" else None


def sink(node: Node, names: Names) -> Kind | None:
    """What the value of an arithmetic expression is rounded to in the end: the kind of what it is assigned to."""
    top, above = node, node.parent
    while above is not None and above.type in ("binary_expression", "unary_expression", "parenthesized_expression"):
        if above.type == "binary_expression" and operator(above) not in ("+", "-", "*", "/"):
            return None
        top, above = above, above.parent
    if above is None:
        return None
    if above.type in ("assignment_expression", "init_declarator"):
        return _target(top, above, names)
    if above.type == "call_expression" or above.type == "argument_list":
        call = above if above.type == "call_expression" else above.parent
        return "float" if call is not None and is_math(call) and names.kind(call) == "float" else None
    if (
        above.type == "return_statement"
        and names.function is not None
        and enclosing(above, "lambda_expression") is None
    ):
        returned, declarator = child(names.function, "type"), child(names.function, "declarator")
        by_value = declarator is not None and declarator.type == "function_declarator"
        return "float" if by_value and returned is not None and names.file.base(text_of(returned)) == "float" else None
    return None


def _target(value: Node, above: Node, names: Names) -> Kind | None:
    if above.type == "assignment_expression":
        left = child(above, "left")
        return names.kind(left) if left is not None and left != value else None
    declarator = child(above, "declarator")
    if declarator is None or declarator.type != "identifier":
        return None
    declared = names.find(text_of(declarator))
    base = names.file.base(declared.base) if declared is not None and declared.levels == 0 else ""
    return "float" if base == "float" else "double" if base == "double" else None


def _no_double(node: Node, names: Names) -> bool:
    """Whether the whole sum or product that a literal stands in has variables in it and, literals apart, no double."""
    top = node
    while top.parent is not None and top.parent.type in (
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
    ):
        top = top.parent
    kinds = [names.kind(leaf) for leaf in _leaves(top) if leaf.type != "number_literal"]
    return bool(kinds) and all(kind in ("float", "int") for kind in kinds)


def _leaves(node: Node) -> Iterator[Node]:
    node = strip(node)
    if node.type in ("binary_expression", "unary_expression"):
        for part in node.named_children:
            if part.type != "comment":
                yield from _leaves(part)
    else:
        yield node


def _power_variants(site: Site) -> list[Variant]:
    edits = []
    for call, names in scopes(site, "call_expression"):
        if is_math(call) and called(call) in ("pow", "powf") and len(arguments(call)) == 2:
            new = _power(call, names)
            if new is not None:
                edits.append(Edit(call.start_byte, call.end_byte, new))
    return only(edits)


def _power(call: Node, names: Names) -> str | None:
    base, exponent = arguments(call)
    kind = names.kind(call) if _literal(base) == 2 else names.kind(base)
    if kind not in ("float", "double") or (called(call) == "powf" and kind == "double"):
        return None
    if kind == "float" and called(call) == "pow" and names.kind(call) != "float" and sink(call, names) != "float":
        return None
    suffix = "f" if kind == "float" else ""
    if _literal(base) == 2:
        return _power_of_base_two(exponent, suffix, names)
    power = _literal(exponent)
    return _product(base, power, suffix) if power is not None and pure(base) else None


def _power_of_base_two(exponent: Node, suffix: str, names: Names) -> str | None:
    kind = names.kind(exponent)
    if kind == "int":
        return f"ldexp{suffix}(1.0{suffix}, {text_of(exponent)})"
    return f"exp2{suffix}({text_of(exponent)})" if kind == ("float" if suffix else "double") else None


def _product(base: Node, power: float, suffix: str) -> str | None:
    """x to a whole or half power as products and a square root; None for powers that take more than eight factors."""
    whole, half = divmod(abs(power), 1)
    if half not in (0, 0.5) or not 0 < abs(power) <= _LARGEST_POWER:
        return None
    factors = [_repeated(atom(base), int(whole))] if whole else []
    factors += [f"sqrt{suffix}({text_of(base)})"] if half else []
    found = factors[0] if len(factors) == 1 and not (whole and not half) else f"({' * '.join(factors)})"
    return found if power > 0 else f"(1.0{suffix} / {found})"


def _repeated(x: str, times: int) -> str:
    """x · x · …, halves in parentheses so that the compiler computes each once."""
    if times <= _FLAT_FACTORS:
        return " * ".join([x] * times)
    half = _repeated(x, times // 2)
    return f"({half}) * ({half})" + (f" * {x}" if times % 2 else "")


POWER = Rule(
    "pow-to-multiply", EVERY,
    "pow(x, c) with a literal c that is a whole or half number of at most 8, or its negative, x a float or double expression "
    "without a call of unknown effect or a store, and the result of the same precision as x; or pow(2, x)",
    "pow is a library routine of some hundred instructions; a product or a square root is one or two",
    _power_variants, gain=1.1, opening=True, repeats=True,
    assumes="a difference in the last bits, and the sign of pow(-0.0, 0.5), does not matter",
)  # fmt: skip


def _float_math_variants(site: Site) -> list[Variant]:
    edits = []
    for call, names in scopes(site, "call_expression"):
        function = child(call, "function")
        if function is None or function.type != "identifier" or called(call) not in FLOAT_MATH:
            continue
        if _all_float(call, names) and (names.kind(call) == "float" or sink(call, names) == "float"):
            edits.append(Edit(function.end_byte, function.end_byte, "f"))
            edits += [_suffixed(leaf) for node in arguments(call) for leaf in _leaves(node) if _double_literal(leaf)]
    return only(edits)


def _double_literal(node: Node) -> bool:
    return node.type == "number_literal" and literal_kind(text_of(node)) == "double" and _in_range(node)


def _all_float(call: Node, names: Names) -> bool:
    """Whether every argument is float once its double literals are, and one of them is so by a variable."""
    if called(call) in names.file.returns or called(call) in names.file.macros:
        return False
    kinds = [{names.kind(leaf) for leaf in _leaves(node) if not _double_literal(leaf)} for node in arguments(call)]
    return (
        any("float" in kind for kind in kinds)
        and all("float" in kind or not kind for kind in kinds)
        and not any(kind - {"float", "int"} for kind in kinds)
    )


def _suffixed(literal: Node) -> Edit:
    return Edit(literal.end_byte, literal.end_byte, "f")


FLOAT_CALLS = Rule(
    "float-math", EVERY,
    "a call of a <cmath> function by its plain name, all of whose arguments are float but for literals, the result going "
    "into a float",
    "the double form converts up, computes twice the digits at a fraction of the rate, and the result is rounded back",
    _float_math_variants, gain=1.08, opening=True, repeats=True,
    assumes="the float function's own rounding is accurate enough",
)  # fmt: skip


def _literal_variants(site: Site) -> list[Variant]:
    edits = []
    for literal, names in scopes(site, "number_literal"):
        if literal_kind(text_of(literal)) != "double" or literal.parent is None or not _in_range(literal):
            continue
        arithmetic = literal.parent.type in ("binary_expression", "unary_expression", "parenthesized_expression")
        if (arithmetic and _no_double(literal, names) and sink(literal, names) == "float") or _compared(literal, names):
            edits.append(_suffixed(literal))
    return only(edits)


def _in_range(literal: Node) -> bool:
    value = abs(float(text_of(literal)))
    return value == 0 or 1e-37 < value < 1e38


def _compared(literal: Node, names: Names) -> bool:
    above = literal.parent
    if above is None or above.type != "binary_expression" or operator(above) not in ("<", ">", "<=", ">=", "==", "!="):
        return False
    value = float(text_of(literal))
    exact = struct.unpack("f", struct.pack("f", value))[0] == value
    other = next((c for c in above.named_children if c != literal and c.type != "comment"), None)
    return exact and other is not None and names.kind(other) == "float"


LITERALS = Rule(
    "float-literals", EVERY,
    "a double literal in a sum, product or quotient whose other operands are float or integer and whose result goes into a "
    "float; or compared with a float and exact in float",
    "one double literal turns the whole expression into double arithmetic, with conversions on both sides",
    _literal_variants, gain=1.1, opening=True,
    assumes="rounding each step to float, as the rest of the code does, is accurate enough",
)  # fmt: skip


def _reciprocal_variants(site: Site) -> list[Variant]:
    edits = []
    for division, names in scopes(site, "binary_expression", "assignment_expression"):
        sign = next((c for c in division.children if c.type in ("/", "/=")), None)
        right = child(division, "right")
        if sign is None or right is None or not (new := _reciprocal(division, right, names)):
            continue
        edits += [Edit(sign.start_byte, sign.start_byte + 1, "*"), Edit(right.start_byte, right.end_byte, new)]
    return only(edits)


def _reciprocal(division: Node, right: Node, names: Names) -> str | None:
    left = child(division, "left")
    kind, value = (names.kind(left) if left is not None else None), _literal(right)
    if kind not in ("float", "double") or value is None or right.type != "number_literal" or _power_of_two(value):
        return None
    wide = "double" in (kind, literal_kind(text_of(right)))
    digits = re.sub(r"[fFuUlL]+$", "", text_of(right))
    if not re.search(r"[.eE]", digits):
        digits += ".0"
    return f"(1.0 / {digits})" if wide else f"(1.0f / {digits}f)"


def _power_of_two(value: float) -> bool:
    return value == 0 or abs(value).hex().split("p")[0] == "0x1.0000000000000"


CONSTANT_DIVISION = Rule(
    "constant-reciprocal", EVERY,
    "a float or double divided by a literal that is not a power of two",
    "a division takes several times a multiplication's cycles and its unit is not pipelined as deeply",
    _reciprocal_variants, gain=1.03, risk=2,
    assumes="the product with the rounded reciprocal, off by an ulp at most, is accurate enough",
)  # fmt: skip

RULES = (POWER, FLOAT_CALLS, LITERALS, CONSTANT_DIVISION)
