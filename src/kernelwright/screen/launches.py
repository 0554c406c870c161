"""Rules about launches: into which stream they go, that they are waited for on every path, what is asked in between.

A wait counts at the place where it is reached: inside a function or a named lambda of the region, where that is called.
What screening cannot see (a wait behind a condition that holds by luck) shows in a run, whose process does not get faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import tree_sitter

from kernelwright.screen import names
from kernelwright.screen.context import Change, Finding
from kernelwright.screen.pointers import ancestors, callee, parameters
from kernelwright.screen.scope import Names, declarator_names, text
from kernelwright.source import function_name, walk

_DEFAULT_STREAM = "the default stream"
_NO_STREAM = re.compile(r"|0|nullptr|NULL|\{\}|(?:cuda|hip)Stream_t(?:\(0?\)|\{(?:0|nullptr)?\})")
_STREAM = re.compile(r"(?:const )?(?:(?:struct )?CUstream_st|(?:cuda|hip)Stream_t|CUstream)")
_WAITS = re.compile(r"(?:cuda|hip)\w*Synchronize")
_ASKS = re.compile(r"(?:cuda|hip)(?:Get|PeekAt)LastError")
_LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")


@dataclass
class _Flow:
    """Where one text launches and waits, in the functions that are called from outside it."""

    root: tree_sitter.Node
    entries: frozenset[str]
    """The functions that the rest of the program calls; all else is reached through them."""
    _known: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    @cached_property
    def helpers(self) -> dict[str, list[tree_sitter.Node]]:
        """Functions and named lambdas by name, those left out that the program calls."""
        found: dict[str, list[tree_sitter.Node]] = {}
        for node in walk(self.root):
            name = None
            if node.type == "function_definition":
                name = function_name(node)
            elif node.type == "lambda_expression" and node.parent is not None and node.parent.type == "init_declarator":
                name = text(node.parent.child_by_field_name("declarator"))
            if name and name not in self.entries:
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def _held(self) -> set[int]:
        return {body.id for bodies in self.helpers.values() for body in bodies}

    @cached_property
    def _places(self) -> list[tree_sitter.Node]:
        """The only nodes that can be marks."""
        kinds = ("identifier", "call_expression", "kernel_call_syntax")
        return [node for node in walk(self.root) if node.type in kinds]

    def _inside(self, body: tree_sitter.Node | None) -> list[tree_sitter.Node]:
        if body is None:
            return self._places
        return [node for node in self._places if body.start_byte <= node.start_byte < body.end_byte]

    def marks(self, name: str) -> list[tree_sitter.Node]:
        """Where `name` (a call, or `<<<`) is reached in an entry: itself, or the call of a helper that reaches it."""
        return [node for node in self._places if self._is_mark(node, name) and self.holder(node) is None]

    def _is_mark(self, node: tree_sitter.Node, name: str) -> bool:
        if name == "<<<":
            return node.type == "kernel_call_syntax" or self._calls_to(node, name)
        return (node.type == "identifier" and text(node) == name) or self._calls_to(node, name)

    def _calls_to(self, node: tree_sitter.Node, name: str) -> bool:
        return node.type == "call_expression" and callee(node) in self.helpers and self.reached(callee(node), name)

    def reached(self, helper: str, name: str) -> bool:
        """Whether a helper reaches `name` on some path; one that calls itself does so by another way."""
        key = (helper, name, "some")
        if key not in self._known:
            self._known[key] = False
            self._known[key] = any(
                self._is_mark(node, name) for body in self.helpers[helper] for node in self._inside(body)
            )
        return self._known[key]

    def holder(self, node: tree_sitter.Node) -> tree_sitter.Node | None:
        """The helper that a node stands in, where it stands in one."""
        return next((around for around in ancestors(node) if around.id in self._held), None) if self._held else None

    def surely(self, name: str, in_loops: bool, within: tree_sitter.Node | None = None) -> bool:
        """Whether an entry (or the helper `within`) reaches `name` whatever its conditions say; a loop's body counts as
        reached with `in_loops`."""
        branches: set[int] = set()
        return any(
            self._surely_from(node, in_loops, branches, within or self.root)
            for node in self._inside(within)
            if self._is_mark(node, name) and self.holder(node) == within and self._sure_in_it(node, name, in_loops)
        )

    def _sure_in_it(self, node: tree_sitter.Node, name: str, in_loops: bool) -> bool:
        """Whether a mark surely leads to `name`: it does where it is `name` itself."""
        if not self._calls_to(node, name):
            return True
        key = (callee(node), name, f"sure {in_loops}")
        if key not in self._known:
            self._known[key] = False
            self._known[key] = any(self.surely(name, in_loops, body) for body in self.helpers[callee(node)])
        return self._known[key]

    def _surely_from(self, node: tree_sitter.Node, in_loops: bool, branches: set[int], top: tree_sitter.Node) -> bool:
        """Climbs from a mark: each step must be one that is always taken, or the second of two branches."""
        while node.id != top.id and (parent := node.parent) is not None:
            if parent.id == top.id or parent.type == "function_definition":
                return True
            if not _always(parent, node, in_loops):
                branches.add(node.id)
                both = [parent.child_by_field_name(part) for part in ("consequence", "alternative")]
                if not all(one is not None and one.id in branches for one in both):
                    return False
            node = parent
        return True


def _always(parent: tree_sitter.Node, child: tree_sitter.Node, in_loops: bool) -> bool:
    """Whether `child` is run whenever `parent` is."""
    kind = parent.type
    if kind in ("if_statement", "conditional_expression", "switch_statement"):
        return child in (parent.child_by_field_name("condition"), parent.child_by_field_name("initializer"))
    if kind in ("for_statement", "while_statement", "for_range_loop"):
        return in_loops or child != parent.child_by_field_name("body")
    if kind == "lambda_expression":
        return parent.parent is not None and parent.parent.child_by_field_name("function") == parent
    if kind == "binary_expression" and text(parent.child_by_field_name("operator")) in ("&&", "||", "and", "or"):
        return child == parent.child_by_field_name("left")
    return kind not in ("catch_clause", "case_statement")


def _flow(change: Change, new: bool) -> _Flow:
    root = change.new.root if new else change.old.root
    kept = {declared.name for declared in change.old_names.declared if declared.kind == "function"}
    if change.level == "block":
        kept.add("kernelwright_block")
    return _Flow(root, frozenset(kept))


def waits_as_the_original_does(change: Change) -> Iterator[Finding]:
    """Where the original waits for the device or asks for errors, the candidate does too: on every path, behind its last
    launch, and behind none of its returns."""
    old, new = _flow(change, new=False), _flow(change, new=True)
    for kept in sorted(name for name in change.old.names if names.KEPT_CALLS.fullmatch(name)):
        marks = new.marks(kept)
        if not marks:
            yield Finding(0, f"{kept!r} is gone, so that work or its errors would not be waited for", f"keep {kept!r}")
        elif _launch_behind(new, kept) and not _launch_behind(old, kept):
            yield Finding(0, f"it launches work behind its last {kept!r}", f"keep {kept!r} behind every launch")
        if _WAITS.fullmatch(kept) and any(
            old.surely(kept, in_loops) and not new.surely(kept, in_loops) for in_loops in (False, True)
        ):
            yield Finding(change.new.offset(marks[-1]) if marks else 0,
                          f"it reaches {kept!r} under a condition only, where the original always does",
                          f"keep {kept!r} on every path")  # fmt: skip
        if _WAITS.fullmatch(kept) and (back := _returns_early(new, kept)) and not _returns_early(old, kept):
            yield Finding(change.new.offset(back[0]), f"it returns between a launch and {kept!r}",
                          f"keep {kept!r} behind every launch")  # fmt: skip


def _launch_behind(flow: _Flow, name: str) -> bool:
    last = max((node.start_byte for node in flow.marks(name)), default=-1)
    return any(node.start_byte > last for node in flow.marks("<<<") if callee(node) not in _both(flow, name))


def _both(flow: _Flow, name: str) -> set[str]:
    """Helpers that reach `name` themselves: what they launch they wait for."""
    return {helper for helper in flow.helpers if flow.reached(helper, name)}


def _returns_early(flow: _Flow, name: str) -> list[tree_sitter.Node]:
    """Returns of entries that have a launch before them and no wait in between."""
    waits = [node.end_byte for node in flow.marks(name)]
    launches = [node.start_byte for node in flow.marks("<<<") if callee(node) not in _both(flow, name)]
    found = []
    for node in walk(flow.root):
        if node.type != "return_statement" or flow.holder(node) is not None:
            continue
        if any(around.type == "lambda_expression" for around in ancestors(node)):
            continue
        function = next((around for around in ancestors(node) if around.type == "function_definition"), flow.root)
        before = [at for at in launches if function.start_byte <= at < node.start_byte]
        if before and not any(max(before) < at <= node.end_byte for at in waits):
            found.append(node)
    return found


def launches_in_the_same_stream(change: Change) -> Iterator[Finding]:
    """A launch goes into a stream that the original region launches into; the default one where it launches nothing."""
    known = {_stream(node) for node in change.old_nodes("kernel_call_syntax")} or {_DEFAULT_STREAM}
    taken = _stream_parameters(change)
    for node in change.nodes("kernel_call_syntax"):
        if (stream := _stream(node)) not in known and not _is_taken(change, node, taken):
            yield Finding(change.new.offset(node), f"it launches into the stream {stream!r}, which the original does not use",
                          f"launch into {min(known)}")  # fmt: skip
    yield from _streams_made(change, known | {_stream(node) for node in change.nodes("kernel_call_syntax")})
    yield from _streams_handed(change, known, taken)
    yield from _waits_elsewhere(change)


def _stream(node: tree_sitter.Node) -> str:
    given = "".join("".join(text(child).split()) for child in node.named_children[3:4])
    return _DEFAULT_STREAM if _NO_STREAM.fullmatch(given) else given


def _stream_parameters(change: Change) -> dict[str, list[int]]:
    """For each function that the region adds, the positions of its parameters that are streams."""
    added: dict[str, list[int]] = {}
    for name, bodies in _flow(change, new=True).helpers.items():
        for body in bodies:
            for position, one in enumerate(parameters(body)):
                if _STREAM.fullmatch(text(one.child_by_field_name("type"))):
                    added.setdefault(name, []).append(position)
    return added


def _is_taken(change: Change, launch: tree_sitter.Node, taken: dict[str, list[int]]) -> bool:
    """Whether a launch goes into a stream that its function is handed (what is handed is looked at where it is called)."""
    given = launch.named_children[3:4]
    declared = change.new_names.local.get(given[0].id) if given else None
    function = next((around for around in ancestors(launch) if around.type == "function_definition"), None)
    return declared is not None and declared.type == "parameter_declaration" and function is not None and (
        function_name(function) or "") in taken  # fmt: skip


def _streams_made(change: Change, used: set[str]) -> Iterator[Finding]:
    """No variable of the region is a stream, none that it launches into is a local one, and no stream is set."""
    old = {text(node) for node in change.old_nodes("declaration", "optional_parameter_declaration")}
    advice = "launch into the stream that it is given, under its own name"
    for node in change.nodes("declaration", "optional_parameter_declaration"):
        found = [text(name) for d in node.children_by_field_name("declarator") for name in declarator_names(d)]
        if text(node) not in old and (_STREAM.fullmatch(text(node.child_by_field_name("type"))) or used & set(found)):
            yield Finding(change.new.offset(node), f"it makes {', '.join(found)!r}, a stream of its own", advice)
    for node in change.nodes("parameter_declaration"):
        by = node.child_by_field_name("declarator")
        changed = by is not None and by.type in ("reference_declarator", "pointer_declarator")
        if (
            changed
            and _STREAM.fullmatch(text(node.child_by_field_name("type")))
            and text(node) not in change.old.parsed_text
        ):
            yield Finding(change.new.offset(node), f"it takes a stream as {text(node)!r}, to set it", advice)
    for node in change.nodes("identifier"):
        if text(node) in used and (how := _set_at(node)) and how not in {
            _set_at(other) for other in change.old_nodes("identifier") if text(other) == text(node)}:  # fmt: skip
            yield Finding(change.new.offset(node), f"it changes the stream {text(node)!r}", advice)


def _set_at(node: tree_sitter.Node) -> str:
    parent = node.parent
    if parent is None:
        return ""
    if parent.type == "assignment_expression" and parent.child_by_field_name("left") == node:
        return "="
    if parent.type == "reference_declarator" or (parent.type == "pointer_expression" and text(parent).startswith("&")):
        return "&"
    declarator = parent.child_by_field_name("declarator") if parent.type == "init_declarator" else None
    return "&" if declarator is not None and declarator.type == "reference_declarator" else ""


def _streams_handed(change: Change, known: set[str], taken: dict[str, list[int]]) -> Iterator[Finding]:
    """A function of the region that takes a stream is handed one of the original's."""
    for node in change.nodes("call_expression"):
        arguments = node.child_by_field_name("arguments")
        if arguments is None:
            continue
        for position in taken.get(callee(node), ()):
            given = "".join("".join(text(one).split()) for one in arguments.named_children[position : position + 1])
            stream = _DEFAULT_STREAM if _NO_STREAM.fullmatch(given) else given
            if stream not in known and stream not in _parameter_names(change.new_names, arguments):
                yield Finding(change.new.offset(node), f"it hands the stream {stream!r} to {callee(node)!r}",
                              f"launch into {min(known)}")  # fmt: skip


def _parameter_names(found: Names, arguments: tree_sitter.Node) -> set[str]:
    """Names among the arguments that are parameters of the function around, streams by type."""
    names_here = {text(node): found.local.get(node.id) for node in walk(arguments) if node.type == "identifier"}
    return {
        name
        for name, declared in names_here.items()
        if declared is not None
        and declared.type == "parameter_declaration"
        and _STREAM.fullmatch(text(declared.child_by_field_name("type")))
    }


def _waits_elsewhere(change: Change) -> Iterator[Finding]:
    """A wait for one stream stays one for a stream, and does not become one for the default stream."""
    old = {(name, given) for name, given, _ in _waits(change.old.root)}
    for name, given, node in _waits(change.new.root):
        if _NO_STREAM.fullmatch(given) and given and not any(_NO_STREAM.fullmatch(g) for n, g in old if n == name):
            yield Finding(change.new.offset(node), f"its {name!r} waits for {_DEFAULT_STREAM}, the original's for another",
                          "wait for the stream that it launches into")  # fmt: skip


def _waits(root: tree_sitter.Node) -> Iterator[tuple[str, str, tree_sitter.Node]]:
    for node in walk(root):
        if node.type == "call_expression" and _WAITS.fullmatch(name := callee(node)):
            arguments = node.child_by_field_name("arguments")
            yield (
                name,
                "".join("".join(text(one).split()) for one in (arguments.named_children if arguments else ())[:1]),
                node,
            )


def asks_nothing_between_launches(change: Change) -> Iterator[Finding]:
    """The device's last error decides nothing: it is asked behind the launches, or within the macro that ends the program.

    An error that one call leaves and the next one finds is a mark; a launch that fails and another that follows is a decoy.
    """
    old, new = _flow(change, new=False), _flow(change, new=True)
    if any(True for _ in _deciding(change, old)):
        return
    for node in _deciding(change, new):
        yield Finding(change.new.offset(node), f"it asks {text(node)!r} and launches work behind it",
                      "ask for errors behind the last launch, as the original does")  # fmt: skip


def _deciding(change: Change, flow: _Flow) -> Iterator[tree_sitter.Node]:
    launches = [node.start_byte for node in flow.marks("<<<")]
    for node in walk(flow.root):
        if node.type != "identifier" or not _ASKS.fullmatch(text(node)):
            continue
        around = list(ancestors(node))
        if any(one.type == "call_expression" and callee(one) in change.outside.macros for one in around):
            continue
        loop = next((one for one in around if one.type in _LOOPS), None)
        again = loop is not None and any(loop.start_byte <= at < loop.end_byte for at in launches)
        if again or any(at > node.start_byte for at in launches):
            yield node


_QUERIES = re.compile(r"(?:cuda|hip)Occupancy\w+")
_SETTERS = re.compile(r"(?:cuda|hip)FuncSetAttribute")
_SET_MEMBERS = {
    "preferredShmemCarveout",
    "maxDynamicSharedSizeBytes",
    "nonPortableClusterSizeAllowed",
    "clusterDimMustBeSet",
}


def finds_no_marks_in_attributes(change: Change) -> Iterator[Finding]:
    """A kernel's attributes outlive a call: what may be set is not read back, and is set before occupancy is asked."""
    for node in change.new_names.members:
        if text(node) in _SET_MEMBERS and text(node) not in change.old.names:
            yield Finding(change.new.offset(node), f"it reads {text(node)!r}, which an earlier call may have set",
                          "ask for registers and static shared memory only")  # fmt: skip
    calls = list(change.nodes("call_expression"))
    for setter in (node for node in calls if _SETTERS.fullmatch(callee(node))):
        arguments = setter.child_by_field_name("arguments")
        kernel = text(arguments.named_children[0]) if arguments is not None and arguments.named_children else ""
        for query in calls:
            asked = _QUERIES.fullmatch(callee(query)) and query.start_byte < setter.start_byte
            if asked and kernel in {text(node) for node in walk(query)} and not change.original_has(callee(query)):
                yield Finding(change.new.offset(query), f"it asks {callee(query)!r} before it sets the kernel's attribute",
                              "set attributes first")  # fmt: skip
