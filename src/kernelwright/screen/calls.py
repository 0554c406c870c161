"""Rules about names: what a region may call and touch of the library, of the machine, and of the program around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import tree_sitter

from kernelwright.screen import names
from kernelwright.screen.context import Change, Finding
from kernelwright.screen.scope import text
from kernelwright.screen.text import Code, Token
from kernelwright.source import walk

_ADVICE = "compute only what the original region computes"
_ASM = {"asm", "__asm__", "__asm"}
_ATTRIBUTES = {"__attribute__", "__attribute", "__declspec"}


def refused_names(change: Change) -> Iterator[Finding]:
    """No output, files, processes, clocks, threads or state that the original region did not have, macros opened."""
    old, seen = _with_macros(change, change.old), Counter[str]()
    for token in change.new.tokens:
        for name in _opened(change, token):
            reason = names.refused_reason(name)
            seen[name] += reason is not None
            if reason is not None and seen[name] > old[name]:
                yield _refused(change, token, name, reason)
    for node in change.new_names.free:
        reason = names.refused_word(text(node))
        if reason is not None and text(node) not in old:
            yield Finding(change.new.offset(node), _does(text(node), text(node), reason), _ADVICE)
    for node in change.new_names.members:
        if _is_called(node) and text(node) not in old and names.refused_word(text(node)) is not None:
            yield Finding(
                change.new.offset(node), f"it calls {text(node)!r}, which the original region does not", _ADVICE
            )


def _is_called(member: tree_sitter.Node) -> bool:
    call = member.parent.parent if member.parent is not None else None
    return call is not None and call.type == "call_expression"


def _refused(change: Change, token: Token, name: str, reason: str) -> Finding:
    return Finding(token.at, _does(name, token.text, reason), _ADVICE)


def _does(name: str, written: str, reason: str) -> str:
    through = "" if name == written else f" (through the macro {written!r})"
    return f"{name!r}{through} {reason}, and the original region does not use it so"


def _opened(change: Change, token: Token) -> Iterator[str]:
    """A name, and what it stands for where it is a macro of the surroundings."""
    if token.kind != "name":
        return
    yield token.text
    seen, todo = {token.text}, [token.text]
    while todo:
        macro = change.outside.macros.get(todo.pop())
        for name in re.findall(r"[A-Za-z_]\w*", _unquoted(macro.body) if macro else ""):
            if name not in seen:
                seen.add(name)
                todo.append(name)
                yield name


def _unquoted(body: str) -> str:
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', body)


def _with_macros(change: Change, code: Code) -> Counter[str]:
    return Counter(name for token in code.tokens for name in _opened(change, token))


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
        hidden = set(_opened(change, token)) & ({"static", "extern", *_ASM, *_ATTRIBUTES, "_Pragma"})
        if hidden and not change.original_has(token.text) and token.text not in change.new.qualifiers:
            yield Finding(token.at, f"the macro {token.text!r} holds {min(hidden)!r}", "write out what it stands for")


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


def waits_as_the_original_does(change: Change) -> Iterator[Finding]:
    """Where the original waits for the device or asks for errors, the candidate does too, behind its last launch."""
    for kept in sorted(name for name in change.old.names if names.KEPT_CALLS.fullmatch(name)):
        if not change.new.names[kept]:
            yield Finding(0, f"{kept!r} is gone, so that work or its errors would not be waited for", f"keep {kept!r}")
        elif _launch_after(change.new, kept) and not _launch_after(change.old, kept):
            yield Finding(0, f"it launches work behind its last {kept!r}", f"keep {kept!r} behind every launch")


def _launch_after(code: Code, name: str) -> bool:
    last = max(token.at for token in code.tokens if token.text == name)
    return any(token.text == "<<<" and token.at > last for token in code.tokens)


def launches_in_the_same_stream(change: Change) -> Iterator[Finding]:
    """A launch goes into a stream that the original region uses, or into the default one."""
    known = {"0", "nullptr", "NULL"} | {
        stream for node in change.old_nodes("kernel_call_syntax") for stream in _stream(node)
    }
    for node in change.nodes("kernel_call_syntax"):
        for stream in _stream(node):
            if stream not in known:
                yield Finding(change.new.offset(node), f"it launches into the stream {stream!r}, which the original does not use",
                              "launch into the original's stream")  # fmt: skip


def _stream(node: tree_sitter.Node) -> list[str]:
    return ["".join(text(child).split()) for child in node.named_children[3:4]]


def touches_only_what_the_original_touches(change: Change) -> Iterator[Finding]:
    """Variables of the surroundings that the original does not name stay untouched, constants and sizes apart."""
    for node in change.new_names.free:
        name = text(node)
        if change.original_has(name) or _is_qualifier(node):
            continue
        declared = change.outside.variable(name, change.level)
        if declared is not None and not _is_plain_constant(declared):
            yield Finding(change.new.offset(node), f"it uses the variable {name!r}, which the original region does not name",
                          "use the data that the original uses")  # fmt: skip


def _is_qualifier(node: tree_sitter.Node) -> bool:
    return node.type == "namespace_identifier"


_INTEGRAL = re.compile(
    r"(?:const|constexpr|static|unsigned|long|short|int|size_t|u?int\d+_t|bool|ptrdiff_t|ssize_t|dim3|uint|\s)+"
)
_ARITHMETIC = re.compile(_INTEGRAL.pattern[:-2] + r"|float|double|__constant__)+")


def _is_plain_constant(declared: tree_sitter.Node) -> bool:
    """A size (an integer), or a const scalar; no arrays and no pointers."""
    declarators = declared.children_by_field_name("declarator")
    if any(
        kind in {n.type for n in walk(d)} for d in declarators for kind in ("array_declarator", "pointer_declarator")
    ):
        return b"constexpr" in (declared.text or b"")
    start = min((d.start_byte for d in declarators), default=declared.end_byte) - declared.start_byte
    head = (declared.text or b"")[:start].decode(errors="replace")
    return bool(_INTEGRAL.fullmatch(head)) or ("const" in head and bool(_ARITHMETIC.fullmatch(head)))


def calls_helpers_only(change: Change) -> Iterator[Finding]:
    """Functions and types of the surroundings that the original does not use must be such as a region could hold."""
    for node in change.new_names.free:
        name = text(node)
        if change.original_has(name):
            continue
        trouble = change.outside.trouble(name)
        if trouble is not None:
            yield Finding(change.new.offset(node), f"it uses {name!r} of the surroundings, which {trouble}", _ADVICE)


def assembly(change: Change) -> Iterator[Finding]:
    """Inline assembly: PTX of listed opcodes in device code; elsewhere only the original's own."""
    original = {"".join(strings) for _, strings in _assembly(change.old)}
    for at, strings in _assembly(change.new):
        code = "".join(strings)
        if code in original:
            continue
        if change.language != "cuda":
            yield Finding(at, "inline assembly, which the original region does not have", "use intrinsics")
        elif (line := _refused_ptx(code)) is not None:
            yield Finding(
                at,
                f"the assembly {line[:40]!r} is not on the list",
                "use intrinsics, or ld, st, cp.async, mma and their like",
            )


def _assembly(code: Code) -> Iterator[tuple[int, list[str]]]:
    """Each asm statement: where, and its template's strings."""
    for index, token in enumerate(code.tokens):
        if token.kind != "name" or token.text not in _ASM:
            continue
        start = next((i for i in range(index, min(index + 5, len(code.tokens))) if code.tokens[i].text == "("), index)
        strings = []
        for part in code.tokens[start + 1 : code.group(start) + 1]:
            if part.kind != "string":
                break
            strings.append(part.text.split('"', 1)[1][:-1])
        yield token.at, strings


def _refused_ptx(code: str) -> str | None:
    plain = re.sub(r"\\[nt]", " ; ", code)
    if "\\" in plain or names.PTX_REFUSED.search(plain):
        return code
    for line in re.split(r"[;{}](?![^;]*\}[^;]*;)|;", re.sub(r"//.*?;", ";", plain)):
        words = " ".join(line.split())
        words = re.sub(r"^[{}\s]+|[{}\s]+$", "", words) if not re.search(r"\w.*[{}]", words) else words.lstrip("{ ")
        if words and not names.PTX_ALLOWED.fullmatch(words):
            return words
    return None


def attributes(change: Change) -> Iterator[Finding]:
    """Attributes from a list: none that runs code, renames, places or promises."""
    tokens = change.new.tokens
    for index, token in enumerate(tokens):
        bracket = (
            token.text == "["
            and tokens[index + 1 : index + 2]
            and tokens[index + 1].text == "["
            and tokens[index + 1].at == token.at + 1
        )
        if token.text not in _ATTRIBUTES and not bracket:
            continue
        start = index if bracket else index + 1
        for name in _attribute_names(tokens[start : change.new.group(start) + 1]):
            if not names.ATTRIBUTES_ALLOWED.fullmatch(name.strip("_")) and not change.original_has(name):
                yield Finding(
                    token.at,
                    f"the attribute {name!r} is not on the list",
                    "use aligned, always_inline or target, or none",
                )


def _attribute_names(tokens: list[Token]) -> Iterator[str]:
    depth = 0
    for token in tokens:
        depth += (token.text in "([" and token.kind == "mark") - (token.text in ")]" and token.kind == "mark")
        if token.kind == "name" and depth == 2:
            yield token.text


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
