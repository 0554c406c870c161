"""Rules about names: what a region may call and touch of the library, of the machine, and of the program around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import tree_sitter

from kernelwright.screen import names
from kernelwright.screen.context import PLAIN_TYPE, Change, Finding, Outside
from kernelwright.screen.pointers import counted
from kernelwright.screen.scope import Names, text
from kernelwright.screen.text import Code, Token
from kernelwright.source import walk

_ADVICE = "compute only what the original region computes"
_HIDING = {"extern", "asm", "__asm__", "__asm", "__attribute__", "__attribute", "__declspec", "_Pragma"}


def refused_names(change: Change) -> Iterator[Finding]:
    """No output, files, processes, clocks, threads or state that the original region did not have, macros opened."""
    old, seen = _used(change, change.old), Counter[tuple[str, str]]()
    for index, token in enumerate(change.new.tokens):
        how = _how(change, change.new, index)
        for name in () if how == _QUIET and change.original_has(token.text) else _opened(change, token):
            reason = names.refused_reason(name)
            seen[name, how] += reason is not None
            if reason is not None and seen[name, how] > old[name, how]:
                yield _refused(change, token, name, reason)
    known = {name for name, _ in old}
    for node in change.new_names.free:
        reason = names.refused_word(text(node))
        named = text(node) in known or text(node) in change.outside.helpers or _of_cooperative_groups(change, node)
        if reason is not None and not named:
            yield Finding(change.new.offset(node), _does(text(node), text(node), reason), _ADVICE)
    for node in change.new_names.members:
        if _is_called(node) and text(node) not in known and names.refused_word(text(node)) is not None:
            yield Finding(
                change.new.offset(node), f"it calls {text(node)!r}, which the original region does not", _ADVICE
            )


def _of_cooperative_groups(change: Change, node: tree_sitter.Node) -> bool:
    """Whether a name is `cooperative_groups::name`, or stands behind an alias that means nothing but that namespace."""
    around = node.parent
    scope = (
        text(around.child_by_field_name("scope"))
        if around is not None and around.type == "qualified_identifier"
        else ""
    )
    meant = set(change.aliases.get(scope, ["cooperative_groups"] if scope == "cooperative_groups" else []))
    return meant == {"cooperative_groups"} and change.language != "cpp"


_PLAIN, _QUIET, _SPEAKING = "as it is", "through a macro", "through a macro that is given a text"


def _how(change: Change, code: Code, index: int) -> str:
    """How a token stands for names: as it is, or as a macro of the surroundings, given something to print or not."""
    if code.tokens[index].text not in change.outside.macros:
        return _PLAIN
    after = code.tokens[index + 1 : index + 2]
    end = code.group(index + 1) if after and after[0].text == "(" else index
    printable = any(token.kind in ("string", "char") for token in code.tokens[index : end + 1])
    return _SPEAKING if printable else _QUIET


def _is_called(member: tree_sitter.Node) -> bool:
    call = member.parent.parent if member.parent is not None else None
    return call is not None and call.type == "call_expression"


def _refused(change: Change, token: Token, name: str, reason: str) -> Finding:
    return Finding(token.at, _does(name, token.text, reason), _ADVICE)


def _does(name: str, written: str, reason: str) -> str:
    through = "" if name == written else f" (through the macro {written!r})"
    return f"{name!r}{through} {reason}, and the original region does not use it so"


def _opened(change: Change, token: Token) -> tuple[str, ...]:
    """A name, and the names that it stands for where it is a macro of the surroundings."""
    return change.outside.opened(token.text) if token.kind == "name" else ()


def _used(change: Change, code: Code) -> Counter[tuple[str, str]]:
    """How often a text uses each name, in each way; a macro that it uses is one that a candidate may use as often."""
    return Counter(
        (name, _how(change, code, index)) for index, token in enumerate(code.tokens) for name in _opened(change, token)
    )


def macros_of_the_outside(change: Change) -> Iterator[Finding]:
    """A macro that pastes tokens, or that hides storage or assembly, is used as the original uses it or not at all."""
    for index, token in enumerate(change.new.tokens):
        if token.kind != "name" or token.text not in change.outside.macros:
            continue
        opened = [m for name in _opened(change, token) if (m := change.outside.macros.get(name)) is not None]
        words = " ".join(_call_text(change.new, index))
        if any(macro.pastes for macro in opened) and words not in _calls(change.old, token.text):
            yield Finding(token.at, f"the macro {token.text!r} pastes names together in a way the original does not",
                          "write out what it stands for")  # fmt: skip
        hidden = set(_opened(change, token)) & _HIDING
        if change.language == "cuda" and not any(macro.name in change.new_opened.names for macro in opened):
            hidden -= names.ASSEMBLY  # opened, it is judged as assembly is
        if hidden and not change.original_has(token.text) and token.text not in change.new.qualifiers:
            yield Finding(token.at, f"the macro {token.text!r} holds {min(hidden)!r}", "write out what it stands for")
        if "static" in _opened(change, token) and not _heads_function(change.new, index):
            yield Finding(token.at, f"the macro {token.text!r} holds 'static'", "keep variables local")


def _heads_function(code: Code, index: int) -> bool:
    """Whether the declaration that starts at a token is a function's definition."""
    for at in range(index + 1, len(code.tokens)):
        if code.tokens[at].text in ("=", ";", "{", "["):
            return False
        if code.tokens[at].text == "(":
            return any(
                after.text in ("{", "const", "noexcept", "->") for after in code.tokens[code.group(at) + 1 :][:1]
            )
    return False


def _calls(code: Code, name: str) -> set[str]:
    return {" ".join(_call_text(code, index)) for index, token in enumerate(code.tokens) if token.text == name}


def _call_text(code: Code, index: int) -> list[str]:
    after = code.tokens[index + 1 : index + 2]
    end = code.group(index + 1) if after and after[0].text == "(" else index
    return [token.text for token in code.tokens[index : end + 1]]


def device_calls(change: Change) -> Iterator[Finding]:
    """Of the device's programming interface, only calls that ask or that set up a launch."""
    for node in change.new_names.free:
        name = text(node)
        if (
            names.DEVICE_CALL.fullmatch(name)
            and not names.DEVICE_CALLS_ALLOWED.fullmatch(name)
            and not change.original_has(name)
            and name not in change.outside.macros
        ):
            yield Finding(change.new.offset(node), f"the original region does not use {name!r}",
                          "leave memory, streams, events and library calls as the original has them")  # fmt: skip


def touches_only_what_the_original_touches(change: Change) -> Iterator[Finding]:
    """Variables of the surroundings that the original does not name stay untouched, constants and sizes apart."""
    for node in change.new_names.free:
        name = text(node)
        if change.original_has(name) or _is_qualifier(node):
            continue
        declared = change.outside.variable(name, change.level)
        if declared is not None and not is_plain_constant(declared, change.outside):
            yield Finding(change.new.offset(node), f"it uses the variable {name!r}, which the original region does not name",
                          "use the data that the original uses")  # fmt: skip


def _is_qualifier(node: tree_sitter.Node) -> bool:
    return node.type == "namespace_identifier"


_INTEGRAL = re.compile(
    r"(?:const|constexpr|static|inline|unsigned|long|short|int|size_t|u?int\d+_t|bool|ptrdiff_t|ssize_t|dim3|uint|\s)+"
)


def is_plain_constant(declared: tree_sitter.Node, outside: Outside) -> bool:
    """A size (an integer), or a const scalar, whatever its type is called; no arrays and no pointers."""
    declarators = declared.children_by_field_name("declarator")
    if any(
        kind in {n.type for n in walk(d)} for d in declarators for kind in ("array_declarator", "pointer_declarator")
    ):
        return b"constexpr" in (declared.text or b"")
    start = min((d.start_byte for d in declarators), default=declared.end_byte) - declared.start_byte
    head = (declared.text or b"")[:start].decode(errors="replace")
    return bool(_INTEGRAL.fullmatch(head)) or (
        "const" in head.split() and bool(PLAIN_TYPE.fullmatch(outside.meaning(head)))
    )


def changes_only_what_the_original_changes(change: Change) -> Iterator[Finding]:
    """Variables of the surroundings are not set, and their objects not emptied or resized, where the original does not."""
    changed = {name for name, _, _ in _changed(change.old_names)}
    for name, how, node in _changed(change.new_names):
        if name not in changed and change.outside.variable(name, change.level) is not None:
            yield Finding(change.new.offset(node), f"it changes {name!r} by {how!r}, which the original does not",
                          "write to local variables and to the original's outputs")  # fmt: skip


def _changed(found: Names) -> Iterator[tuple[str, str, tree_sitter.Node]]:
    """Names of the surroundings that are assigned, counted, bound to a reference or have a changing member called."""
    for node in found.free:
        how = next((how for place in _places(node) if (how := change_at(place, place.id == node.id)) is not None), None)
        if how is not None:
            yield text(node), how, node


def _places(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """A name and what is reached through it: `a`, `a.b`, `a.b[i]`, `a.data()[i]`."""
    yield node
    while (parent := node.parent) is not None:
        part = parent.child_by_field_name("function" if parent.type == "call_expression" else "argument")
        reaches = ("field_expression", "subscript_expression", "call_expression")
        if parent.type != "parenthesized_expression" and (parent.type not in reaches or part != node):
            return
        node = parent
        yield node


def change_at(place: tree_sitter.Node, whole: bool) -> str | None:
    """How an expression changes `place`; `whole` where that is a variable itself."""
    parent = place.parent
    if parent is None:
        return None
    if parent.type == "assignment_expression" and parent.child_by_field_name("left") == place:
        return text(parent.child_by_field_name("operator"))
    if (counting := counted(place)) is not None:
        return "--" if "--" in text(counting).replace(text(place), "") else "++"
    if whole and parent.type == "pointer_expression" and text(parent).startswith("&"):
        return "&"
    if whole and parent.type == "init_declarator" and _binds_reference(parent):
        return "&"
    method = text(place.child_by_field_name("field")) if parent.type == "call_expression" else ""
    return method if _MUTATORS.fullmatch(method) else None


def _binds_reference(node: tree_sitter.Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    constant = node.parent is not None and any(text(child) == "const" for child in node.parent.children)
    return declarator is not None and declarator.type == "reference_declarator" and not constant


_MUTATORS = re.compile(
    r"clear|resize|assign|swap|push_\w+|pop_\w+|erase|insert\w*|emplace\w*|reserve|shrink_to_fit|reset|release|fill|set\w*|store"
)


def calls_helpers_only(change: Change) -> Iterator[Finding]:
    """Functions and types of the surroundings that the original does not use must be such as a region could hold."""
    for node in change.new_names.free:
        name = text(node)
        if change.original_has(name):
            continue
        trouble = change.outside.trouble(name)
        if trouble is not None:
            yield Finding(change.new.offset(node), f"it uses {name!r} of the surroundings, which {trouble}", _ADVICE)


def addresses_are_not_written_as_numbers(change: Change) -> Iterator[Finding]:
    """No pointer made from a number: nothing that a region may touch lies at an address it can know."""
    for node in change.nodes("cast_expression", "call_expression"):
        value = node.child_by_field_name("value") or (node.child_by_field_name("arguments") or node)
        kind = text(node.child_by_field_name("type") or node.child_by_field_name("function"))
        number = value.named_children[0] if value.type == "argument_list" and len(value.named_children) == 1 else value
        pointer = "*" in kind and (node.type == "cast_expression" or kind.startswith("reinterpret_cast"))
        if pointer and number.type == "number_literal" and text(number).strip("0xXuUlL'"):
            yield Finding(
                change.new.offset(node),
                f"it makes a pointer from the number {text(number)}",
                "use the pointers that it is given",
            )
