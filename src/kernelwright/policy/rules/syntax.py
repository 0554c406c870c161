"""A region inside its file's syntax tree: what lies in it, how its expressions read, and how it is edited.

An edit is made only wholly inside the region and outside preprocessor directives, and is dropped where the parser
understands the result less well than it understood the original. What running a piece may change is `effects`' work, what
a name is declared as `names`'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from kernelwright.source import parse


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DIRECTIVES = frozenset({"preproc_def", "preproc_function_def", "preproc_call", "preproc_include", "preproc_arg"})
LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})
FLOAT_MATH = words(
    "sqrt cbrt exp exp2 log log2 log10 sin cos tan asin acos atan atan2 sinh cosh tanh pow fabs floor ceil fmin fmax "
    "fmod fma hypot erf erfc round trunc copysign expm1 log1p rsqrt ldexp"
)
"""Functions of <cmath> (and CUDA's rsqrt) that read nothing but their arguments; each has a form with the suffix f."""
PURE_CALLS = (
    FLOAT_MATH
    | {f"{name}f" for name in FLOAT_MATH}
    | {"abs", "min", "max", "__ldg", "__expf", "__logf", "__sinf", "__cosf", "__powf", "__fdividef", "__fsqrt_rn"}
)


@dataclass(frozen=True)
class Edit:
    """Bytes `start` to `end` of the file become `text`; an insertion where they are equal."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Site:
    """A region, `start` to `end`, in the current bytes of its whole file. Line ends are `\\n`."""

    data: bytes
    start: int
    end: int
    language: str
    flags: tuple[str, ...] = ()
    """The baseline's compile arguments."""

    @cached_property
    def root(self) -> Node:
        return parse(self.data, self.language).root_node

    @property
    def text(self) -> str:
        return self.data[self.start : self.end].decode("utf-8", errors="surrogateescape")

    def holds(self, node: Node) -> bool:
        return self.start <= node.start_byte and node.end_byte <= self.end

    def scoped(self, *types: str) -> Iterator[tuple[Node, Node | None]]:
        """Nodes of these types wholly inside the region, each with the function that it stands in.

        Directives, functions that do not parse and pieces outside functions that do not are left out.
        """
        stack: list[tuple[Node, Node | None]] = [(self.root, None)]
        while stack:
            node, function = stack.pop()
            if node.end_byte <= self.start or node.start_byte >= self.end or node.type in DIRECTIVES:
                continue
            if node.type == "function_definition":
                if node.has_error:
                    continue
                function = node
            if node.type in types and self.holds(node) and not (function is None and node.has_error):
                yield node, function
            stack.extend((inner, function) for inner in reversed(node.children))

    def functions(self) -> list[Node]:
        """Definitions of functions that lie wholly in the region and parse without an error."""
        return [node for node, _ in self.scoped("function_definition")]

    def edited(self, edits: Iterable[Edit]) -> Site | None:
        """The site after `edits`, or None where nothing changes or the result parses worse than before.

        Of edits that overlap the one that begins first is made, the longer one where two begin together.
        """
        data, end, last = bytearray(), self.end, 0
        for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end)):
            if edit.start < max(last, self.start) or edit.end > self.end:
                continue
            new = edit.text.encode("utf-8", errors="surrogateescape")
            data += self.data[last : edit.start] + new
            end += len(new) - (edit.end - edit.start)
            last = edit.end
        data += self.data[last:]
        made = Site(bytes(data), self.start, end, self.language, self.flags)
        worse = made.data == self.data or _errors(made.root) > _errors(self.root)
        return None if worse else made


def _errors(root: Node) -> int:
    count, stack = 0, [root]
    while stack:
        node = stack.pop()
        count += node.is_error or node.is_missing
        if node.has_error:
            stack.extend(node.children)
    return count


def text_of(node: Node) -> str:
    return node.text.decode("utf-8", errors="surrogateescape") if node.text is not None else ""


def flat(node: Node) -> str:
    """The text of an expression without white space, to compare two of them."""
    return re.sub(r"\s+", "", text_of(node))


def ancestors(node: Node) -> Iterator[Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def enclosing(node: Node, *types: str) -> Node | None:
    return next((above for above in ancestors(node) if above.type in types), None)


def below(node: Node, *types: str) -> Iterator[Node]:
    """Nodes of these types at or below `node`, in source order; directives and what they hold are left out."""
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in types:
            yield current
        if current.type not in DIRECTIVES:
            stack.extend(reversed(current.children))


def child(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def operator(node: Node) -> str:
    found = child(node, "operator")
    return text_of(found) if found is not None else ""


def strip(node: Node) -> Node:
    """The expression inside any parentheses."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def root_name(node: Node) -> str | None:
    """The variable whose memory an lvalue names: `a` of `a[i].x`, `*a`, `a->b`; None where that cannot be said."""
    node = strip(node)
    while node.type in ("subscript_expression", "field_expression", "pointer_expression"):
        argument = child(node, "argument")
        if argument is None:
            return None
        node = strip(argument)
    if node.type == "binary_expression" and operator(node) in ("+", "-"):
        left = child(node, "left")
        return root_name(left) if left is not None else None
    return text_of(node) if node.type == "identifier" else None


def called(call: Node) -> str:
    """The plain name of the function of a call: `pow` of `std::pow(x, y)`, `f` of `f<T>(x)`; the whole text else."""
    function = child(call, "function")
    while function is not None and function.type in ("qualified_identifier", "template_function"):
        function = child(function, "name")
    return text_of(function) if function is not None else ""


def arguments(call: Node) -> list[Node]:
    listed = child(call, "arguments")
    return [node for node in listed.named_children if node.type != "comment"] if listed is not None else []


def is_math(call: Node) -> bool:
    """Whether a call has no effect and its result depends on its arguments alone."""
    function = child(call, "function")
    if function is None:
        return False
    if function.type == "primitive_type":
        return True
    plain = function.type == "identifier" or re.fullmatch(r"(::|std::)\w+", flat(function)) is not None
    return plain and called(call) in PURE_CALLS


_PURE = words(
    "identifier number_literal parenthesized_expression binary_expression unary_expression subscript_expression "
    "subscript_argument_list field_expression field_identifier cast_expression type_descriptor primitive_type "
    "sized_type_specifier type_identifier conditional_expression true false comment"
)


def pure(node: Node) -> bool:
    """Whether evaluating an expression twice, or earlier, has no effect: no calls but those of <cmath>, no stores."""
    if node.type == "call_expression":
        return is_math(node) and all(pure(argument) for argument in arguments(node))
    return node.type in _PURE and all(pure(part) for part in node.named_children)


def identifiers(node: Node) -> set[str]:
    """Variables that an expression names; the names of the functions it calls are left out."""
    return {text_of(found) for found in below(node, "identifier") if not _names_function(found)}


def _names_function(name: Node) -> bool:
    above = name.parent
    if above is not None and above.type in ("qualified_identifier", "template_function"):
        return True
    return above is not None and above.type == "call_expression" and child(above, "function") == name


def atom(node: Node) -> str:
    """The text of an expression, in parentheses unless it binds tighter than every operator."""
    tight = ("identifier", "number_literal", "subscript_expression", "call_expression", "field_expression",
             "parenthesized_expression")  # fmt: skip
    return text_of(node) if node.type in tight else f"({text_of(node)})"


def pragmas(statement: Node) -> list[str]:
    """The directives that stand right before a statement."""
    found, above = [], statement.prev_named_sibling
    while above is not None and (above.type == "comment" or above.type in DIRECTIVES):
        found += [text_of(above)] if above.type != "comment" else []
        above = above.prev_named_sibling
    return found


def may_precede(site: Site, statement: Node) -> bool:
    """Whether something can be put before a statement: it stands in a block, and no pragma speaks of it."""
    block = statement.parent
    in_block = block is not None and block.type == "compound_statement"
    return in_block and site.holds(statement) and not pragmas(statement) and not _collapsed(statement)


def _collapsed(statement: Node) -> bool:
    """Whether an OpenMP collapse clause takes a statement for the next of its perfectly nested loops."""
    depth = 0
    for above in ancestors(statement):
        if above.type == "function_definition":
            return False
        if above.type == "for_statement":
            depth += 1
            levels = [re.search(r"collapse\s*\(\s*(\d*)", text) for text in pragmas(above)]
            if any(level is not None and (not level[1] or depth < int(level[1])) for level in levels):
                return True
    return False


def insert_before(site: Site, statement: Node, *lines: str) -> Edit:
    """Lines of their own before a statement, indented as it is."""
    at = statement.start_byte
    line_start = site.data.rfind(b"\n", 0, at) + 1
    lead = site.data[line_start:at].decode("utf-8", errors="surrogateescape")
    if lead.strip():
        return Edit(at, at, "\n" + "".join(f"{line}\n" for line in lines))
    return Edit(at, at, "".join(f"{line}\n{lead}" for line in lines))


def fresh(site: Site, stem: str, taken: set[str]) -> str:
    """A name that occurs nowhere in the file and is not in `taken`, to which it is added."""
    number = 0
    while True:
        name = f"{stem}{number or ''}"
        if name not in taken and not re.search(rb"\b%s\b" % name.encode(), site.data):
            taken.add(name)
            return name
        number += 1
