"""Rules about what bypasses the language: inline assembly and attributes, both from lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernelwright.screen import names
from kernelwright.screen.context import Change, Finding
from kernelwright.screen.text import Code, Token

_ATTRIBUTES = {"__attribute__", "__attribute", "__declspec"}


def inline_assembly(change: Change) -> Iterator[Finding]:
    """Inline assembly: PTX of listed opcodes in device code; elsewhere only the original's own."""
    original = {"".join(strings) for _, strings in _assembly(change.old_opened)}
    for there, strings in _assembly(change.new_opened):
        at = change.place(there)
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
        elif (symbol := _symbol(code, change)) is not None:
            yield Finding(at, f"the assembly names {symbol!r}, which is no register of its own",
                          "hand what it needs in as operands")  # fmt: skip


def _assembly(code: Code) -> Iterator[tuple[int, list[str]]]:
    """Each asm statement: where, and its template's strings."""
    for index, token in enumerate(code.tokens):
        if token.kind != "name" or token.text not in names.ASSEMBLY:
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
    for line in re.sub(r"//.*?;", ";", plain).split(";"):
        words = " ".join(line.split()).lstrip("{} ")
        if words and not names.PTX_ALLOWED.fullmatch(words):
            return words
    return None


def _symbol(code: str, change: Change) -> str | None:
    """A name in PTX that is neither an opcode nor a register that the region's assembly declares: a symbol of the module."""
    own = {
        name
        for _, strings in _assembly(change.new_opened)
        for line in re.findall(r"\.reg\b([^;]*)", "".join(strings))
        for name in re.findall(r"(?<![.%\w$])[A-Za-z_$][\w$]*", line)
    }
    counted = [re.sub(r"\d+$", "", name) for name in re.findall(r"([A-Za-z_$][\w$]*)<\d+>", code)]
    plain = re.sub(r"\\[nt]|//.*?(?:\\n|$)|%\[\w+\]", " ", code)
    for line in plain.replace("{", ";").replace("}", ";").split(";"):
        operands = (
            re.sub(r"^\s*(?:@!?%?\w+\s+)?[a-z][\w.:]*", " ", line) if not line.strip().startswith((".", "%")) else ""
        )
        for found in re.finditer(r"(?<![.%\w$])[A-Za-z_$][\w$]*", operands):
            name = found[0]
            if name not in own and name not in ("WARP_SZ", "_") and not any(name.startswith(one) for one in counted):
                return name
    return None


def attributes(change: Change) -> Iterator[Finding]:
    """Attributes from a list: none that runs code, renames, places or promises."""
    original = {name for _, name in _attributes(change.old)}
    for at, name in _attributes(change.new):
        if name not in original and not names.ATTRIBUTES_ALLOWED.fullmatch(name):
            yield Finding(at, f"the attribute {name!r} is not on the list",
                          "use aligned, always_inline or target, or none")  # fmt: skip


def _attributes(code: Code) -> Iterator[tuple[int, str]]:
    """Every attribute of `__attribute__((…))` and `[[…]]`, underscores around its name left out."""
    for index, (token, after) in enumerate(zip(code.tokens, code.tokens[1:], strict=False)):
        bracketed = token.text == after.text == "["
        if token.text in _ATTRIBUTES or bracketed:
            start = index if bracketed else index + 1
            for name in _attribute_names(code.tokens[start : code.group(start) + 1]):
                yield token.at, name.strip("_")


def _attribute_names(tokens: list[Token]) -> Iterator[str]:
    depth = 0
    for token in tokens:
        depth += (token.text in "([" and token.kind == "mark") - (token.text in ")]" and token.kind == "mark")
        if token.kind == "name" and depth == 2:
            yield token.text
