"""Rules about what the region defines: what is used outside stays as it was, and nothing outside changes its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter

from kernelwright.screen.context import Change, Finding
from kernelwright.screen.names import LIBRARY_FUNCTIONS
from kernelwright.screen.scope import Declared, function_declarator, text

_ARITHMETIC = re.compile(
    r"(?:(?:unsigned|signed|long|short|int|char|float|double|bool|size_t|ssize_t|ptrdiff_t|u?int(?:_fast|_least)?\d+_t"
    r"|uint) ?)+"
)
_MARKS = {
    "pointer_declarator": "*", "abstract_pointer_declarator": "*", "array_declarator": "*", "function_declarator": "()",
    "abstract_array_declarator": "*", "reference_declarator": "&", "abstract_reference_declarator": "&",
}  # fmt: skip
_FREE_OPERATORS = re.compile(r"operator ?(?:[-+*/%&|^]|<<|>>)=?")
_VECTOR_TYPE = re.compile(
    r"\b(?:(?:float|double|u?int|u?char|u?short|u?long|u?longlong)[1234]|(?:__)?half2?|(?:__)?nv_bfloat16[2]?)\b"
)
_OPEN_NAMESPACES = re.compile(r"using namespace (?:cooperative_groups|nvcuda|nvcuda::wmma|cub|rocwmma) ?;")


def keeps_what_is_used_outside(change: Change) -> Iterator[Finding]:
    """Functions, types and variables of the original that other code uses keep name and call-compatible type."""
    used = change.used_outside
    new: dict[tuple[str, str], list[Declared]] = {}
    for declared in change.new_names.declared:
        new.setdefault((declared.kind, declared.qualified), []).append(declared)
    for declared in change.old_names.declared:
        if declared.kind == "prototype" or (declared.name not in used and "::" not in declared.qualified):
            continue
        there = new.get((declared.kind, declared.qualified), [])
        if not there:
            yield Finding(0, f"the {declared.kind} {declared.qualified!r} is used outside and no longer defined in it",
                          "keep its name and the types of its parameters")  # fmt: skip
        elif not any(_serves_as(declared, other) for other in there):
            yield Finding(change.new.offset(there[0].node),
                          f"the type of {declared.qualified!r} has changed, and code outside uses it",
                          f"keep it as {_head(declared.node)!r}")  # fmt: skip


def _serves_as(old: Declared, new: Declared) -> bool:
    """Whether code that uses `old` can use `new`: the same type, or a call-compatible function."""
    left, right = _signature(old.node), _signature(new.node)
    if left is None or right is None:
        return left is right and _type_words(old.node) == _type_words(new.node)
    (old_result, old_parameters), (new_result, new_parameters) = left, right
    extra = new_parameters[len(old_parameters) :]
    return (
        old_result == new_result
        and len(new_parameters) >= len(old_parameters)
        and all(has_default for _, has_default in extra)
        and all(
            (a == b or bool(_ARITHMETIC.fullmatch(a) and _ARITHMETIC.fullmatch(b))) and b_default >= a_default
            for (a, a_default), (b, b_default) in zip(old_parameters, new_parameters, strict=False)
        )
    )


def _type_words(node: tree_sitter.Node) -> str:
    return " ".join(text(node.child_by_field_name("type")).split())


def _head(node: tree_sitter.Node) -> str:
    body = node.child_by_field_name("body")
    whole = node.text or b""
    return " ".join(whole[: body.start_byte - node.start_byte if body is not None else 80].decode().split())


def _signature(node: tree_sitter.Node) -> tuple[str, list[tuple[str, bool]]] | None:
    """Result type, and parameter types with whether each has a default; names and qualifiers are left out."""
    declarator = node.child_by_field_name("declarator")
    inner = function_declarator(declarator) if declarator is not None else None
    parameters = inner.child_by_field_name("parameters") if inner is not None else None
    if declarator is None or inner is None or parameters is None:
        return None
    marks = "".join(re.findall(r"[*&]", text(declarator)[: inner.start_byte - declarator.start_byte]))
    return _type_words(node) + marks, [
        (_parameter_words(child), child.type == "optional_parameter_declaration")
        for child in parameters.named_children
        if child.type.endswith("parameter_declaration") and text(child) != "void"
    ]


def _parameter_words(node: tree_sitter.Node) -> str:
    """`const float* __restrict__ a` is `float *`, `float a[4]` too; `const T& x` serves as `T x`."""
    declarator, marks = node.child_by_field_name("declarator"), ""
    while declarator is not None:
        marks += _MARKS.get(declarator.type, "")
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if child.type.endswith("declarator")), None
        )
    if marks == "&" and any(text(child) == "const" for child in node.children):
        marks = ""
    words = re.sub(r"\b(?:const|volatile|struct|class|typename)\b", " ", text(node.child_by_field_name("type")))
    return f"{' '.join(words.split())} {marks}".strip()


def takes_no_name_of_the_outside(change: Change) -> Iterator[Finding]:
    """What it declares newly is not a name that other code uses, and no member of something that lies outside."""
    used = change.used_outside
    own_types = change.new_names.of_kind("type")
    old = {(declared.kind, declared.qualified) for declared in change.old_names.declared}
    for declared in change.new_names.declared:
        at = change.new.offset(declared.node)
        if (declared.kind, declared.qualified) in old or declared.kind == "prototype":
            continue
        if declared.name.startswith("operator"):
            if change.level == "file" and not _own_operator(change, declared):
                yield Finding(at, f"{declared.name!r} would change what that operator means outside the region",
                              "write a function with a name of its own")  # fmt: skip
        elif declared.kind == "function" and (
            LIBRARY_FUNCTIONS.fullmatch(declared.name) or declared.name.startswith("_")
        ):
            yield Finding(at, f"it defines {declared.name!r}, a name of the runtime library", "choose another name")
        elif declared.name in used and change.level != "class":
            yield Finding(at, f"it declares {declared.name!r}, a name that code outside the region uses",
                          "choose another name")  # fmt: skip
        elif "::" in declared.qualified and re.split(r"::|<", declared.qualified)[0] not in own_types:
            yield Finding(at, f"it defines {declared.qualified!r}, a part of something outside the region",
                          "define functions of its own")  # fmt: skip


def _own_operator(change: Change, declared: Declared) -> bool:
    """An arithmetic operator on a type of the region, or on a vector type where the file has no such operator."""
    name = " ".join(declared.name.split())
    declarator = declared.node.child_by_field_name("declarator")
    words = re.findall(r"\w+", text(declarator))
    if any(word in change.new_names.of_kind("type") for word in words):
        return "new" not in words and "delete" not in words
    return bool(
        _FREE_OPERATORS.fullmatch(name)
        and _VECTOR_TYPE.search(text(declarator))
        and name not in change.outside.code.text
    )


def defines_the_functions_it_declares(change: Change) -> Iterator[Finding]:
    """A prototype names something that lies elsewhere, unless the region defines it too."""
    defined = set(change.new_names.of_kind("function"))
    original = {" ".join(text(node).split()) for node in change.old_nodes("declaration")}
    for node in change.nodes("declaration"):
        for declarator in node.children_by_field_name("declarator"):
            inner = function_declarator(declarator)
            if inner is None or " ".join(text(node).split()) in original:
                continue
            name = text(inner.child_by_field_name("declarator"))
            if name not in defined and not _is_object(change, inner) and not name.startswith("operator"):
                yield Finding(change.new.offset(node), f"it declares {name!r}, a function that it does not define",
                              "define in the region what it calls")  # fmt: skip


def _is_object(change: Change, inner: tree_sitter.Node) -> bool:
    """`dim3 grid(n);` looks like a function's declaration; it is none where `n` is a value."""
    parameters = inner.child_by_field_name("parameters")
    if parameters is None or not parameters.named_children:
        return False
    kind = parameters.named_children[0].child_by_field_name("type")
    if kind is None or kind.type not in ("type_identifier", "qualified_identifier"):
        return kind is None
    name = kind if kind.type == "type_identifier" else kind.named_children[0]
    declared = change.new_names.local.get(name.id)
    if declared is not None:
        return declared.type.endswith(("declaration", "loop", "enumerator")) and not declared.type.startswith("alias")
    return text(name) in change.value_names or text(name).isupper()


def links_nothing_in(change: Change) -> Iterator[Finding]:
    """`extern`, `friend`, specialisations, instantiations and `using namespace` reach beyond the region."""
    tokens = change.new.tokens
    for index, token in enumerate(tokens):
        shared = any(after.text == "__shared__" for after in tokens[index + 1 : index + 8])
        if token.text == "extern" and not shared and not change.original_has("extern"):
            yield Finding(token.at, "extern names something that lies elsewhere", "use extern for __shared__ only")
        if (
            token.text in ("friend", "import", "export")
            and token.kind == "name"
            and not change.original_has(token.text)
        ):
            yield Finding(token.at, f"{token.text!r} reaches beyond the region", "define functions of its own")
    for node in change.nodes("template_instantiation"):
        if text(node) not in change.old.parsed_text:
            yield Finding(change.new.offset(node), "it instantiates a template explicitly", "call it in its place")
    for node in change.nodes("using_declaration"):
        yield from _using(change, node)
    for node in change.nodes("namespace_definition"):
        if "inline" in [text(child) for child in node.children]:
            yield Finding(change.new.offset(node), "an inline namespace adds to the names outside", "name it plainly")
    yield from _specialisations(change)


def _using(change: Change, node: tree_sitter.Node) -> Iterator[Finding]:
    words = " ".join(text(node).split())
    outermost = node.parent is None or node.parent.id == change.new.root.id or node.parent.type == "declaration_list"
    if not outermost or words in " ".join(change.old.parsed_text.split()) or _OPEN_NAMESPACES.fullmatch(words):
        return
    last = re.findall(r"\w+", words)[-1]
    if words.startswith("using namespace") or last in change.used_outside:
        yield Finding(change.new.offset(node), f"{words!r} changes what names mean behind the region",
                      "write it inside a function's body")  # fmt: skip


def _specialisations(change: Change) -> Iterator[Finding]:
    primary = {
        declared.name
        for declared in change.new_names.declared
        if declared.template and "<" not in declared.qualified and not _is_specialisation(declared)
    } | {declared.name for declared in change.old_names.declared}
    for declared in change.new_names.declared:
        special = declared.template and (_is_specialisation(declared) or "<" in declared.qualified)
        if special and declared.name not in primary:
            yield Finding(change.new.offset(declared.node),
                          f"it specialises {declared.qualified!r}, a template from outside the region",
                          "write a function or type of its own")  # fmt: skip


def _is_specialisation(declared: Declared) -> bool:
    head = declared.node.parent
    return (
        head is not None
        and head.type == "template_declaration"
        and text(head.child_by_field_name("parameters")).replace(" ", "") == "<>"
    )
