"""Fenced blocks of code in a message, and how they become text for regions.

Small models cannot put code into JSON strings, so code stands in a fenced block before the call. A block may be a whole
region, or only the functions that change: complete functions replace like-named ones, and the rest of the region stays.
Whether the result compiles, and whether it may be spliced at all, is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelwright.calls import loads
from kernelwright.errors import ModelMistake
from kernelwright.source import Function, find_functions, to_bytes

CODE_TAGS = frozenset({"", "c", "cc", "cpp", "c++", "cxx", "cu", "cuda", "h", "hpp", "hip", "cuh", "code"})
_CALL_OPENS, _CALL_CLOSES = ("<tool_call>", "<function="), ("</tool_call>", "</function>")
_REGION = re.compile(r"""region\s*[=:]\s*["']?([^"'\s]+)""")


@dataclass(frozen=True)
class Block:
    """A fenced block: its tag (the first word after the fence), the region that the fence names, and its text."""

    tag: str
    region: str | None
    text: str


def fenced(text: str) -> list[Block]:
    """Every closed fenced block of `text`, in order. One that the end of the message cut off is none.

    A tool call closes a block that stands open before it; models also fence the call itself, and then the fence after
    the call opens nothing.
    """
    blocks: list[Block] = []
    info: str | None = None
    lines: list[str] = []
    in_call = call_was_fenced = False
    for line in text.splitlines(keepends=True):
        word = line.strip()
        if in_call or word.startswith(_CALL_OPENS):
            if info is not None:
                blocks.append(_block(info, lines))
                info, call_was_fenced = None, True
            in_call = not any(tag in word for tag in _CALL_CLOSES)
        elif word.startswith("```") and "`" not in word[3:]:
            if info is not None:
                blocks.append(_block(info, lines))
            opens = word != "```" or (info is None and not call_was_fenced)
            info, lines, call_was_fenced = (word[3:] if opens else None), [], False
        elif info is not None:
            lines.append(line)
        elif word and word not in _CALL_CLOSES:
            call_was_fenced = False
    return blocks


def _block(info: str, lines: Sequence[str]) -> Block:
    named = _REGION.search(info)
    return Block(info.split()[0].lower() if info.strip() else "", named[1] if named else None, "".join(lines))


def is_code(block: Block) -> bool:
    """Whether a block may be code: by its tag, and not JSON (models put calls and answers into any kind of fence)."""
    return block.tag in CODE_TAGS and bool(block.text.strip()) and not isinstance(loads(block.text), dict)


def region_code(text: str, regions: Mapping[str, str], language: str) -> dict[str, str]:
    """What the fenced blocks of `text` propose for `regions` (name → text): region name → new text, merged.

    A block belongs to the region that its fence names, else to the only region, else to the one region that defines its
    functions. Later blocks win. Raises ModelMistake where a block names no region there is, or fits several.
    """
    proposed: dict[str, str] = {}
    names = {name.lower(): name for name in regions}
    for block in fenced(text):
        if block.region is not None or block.tag in names:
            name = named_region(block.region or names[block.tag], regions)
        elif not is_code(block):
            continue
        else:
            name = _fitting(block.text, regions, language)
        proposed[name] = merge_functions(regions[name], block.text, language)
    return proposed


def named_region(name: str, regions: Mapping[str, str]) -> str:
    """`name` where it is a region's, also as a file of that name (`sweep.cpp` for `sweep`), which models write when they
    mean the region in it. Raises ModelMistake, with the names there are, where it is not."""
    stem = name.rsplit("/", 1)[-1].split(".")[0]
    if name not in regions and stem in regions:
        return stem
    if name not in regions:
        raise ModelMistake(
            f"there is no region {name!r}",
            f"one of the regions {', '.join(regions)}",
            f"{next(iter(regions))!r}, or no code in JSON but a fenced block before the call",
        )
    return name


def _fitting(text: str, regions: Mapping[str, str], language: str) -> str:
    if len(regions) == 1:
        return next(iter(regions))
    defined = _names(text, language)
    fits = [name for name, region in regions.items() if defined & _names(region, language)]
    if len(fits) == 1:
        return fits[0]
    raise ModelMistake(
        "a fenced block does not say which region it is for",
        "a fence with the region's name",
        f"```cpp region={next(iter(regions))}",
    )


def _names(text: str, language: str) -> set[str]:
    return {function.name for function in find_functions(to_bytes(text), language)}


def merge_functions(region_text: str, block_text: str, language: str) -> str:
    """`block_text` as text for the region: as it is, or its functions put in the place of the region's like-named ones.

    It is merged where it defines some of the region's functions and the region holds more than those. What stands before
    a function in the block (helpers, constants, templates) goes along with it. A block is the whole region where it
    shares no function with it, defines a name another number of times, or brings other declarations beside all the
    region's functions. A `main` that models add to try the code out is dropped.
    """
    block = block_text.strip("\n")
    old, new = to_bytes(region_text), to_bytes(block)
    functions = find_functions(old, language)
    if "main" not in {function.name for function in functions}:
        new = _without(new, [function for function in find_functions(new, language) if function.name == "main"])
    offered = find_functions(new, language)
    pairs = _pairs(functions, offered)
    replaced = [left for left, _ in pairs]
    declares = bool(_code_in(_without(new, offered)))
    if not pairs or not _code_in(_without(old, replaced)) or (len(replaced) == len(functions) and declares):
        return new.decode(errors="surrogateescape").strip("\n")
    return _replaced(old, new, pairs).decode(errors="surrogateescape")


def _pairs(old: Sequence[Function], new: Sequence[Function]) -> list[tuple[Function, Function]]:
    """Like-named functions of the region and the block, in the block's order; none where their counts differ."""
    pairs: list[tuple[Function, Function]] = []
    theirs = _by_name(old)
    for name, right in _by_name(new).items():
        left = theirs.get(name, [])
        if left and len(left) != len(right):
            return []
        pairs += zip(left, right, strict=True) if left else []
    return sorted(pairs, key=lambda pair: pair[1].start)


def _by_name(functions: Sequence[Function]) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for function in functions:
        found.setdefault(function.name, []).append(function)
    return found


def _without(data: bytes, functions: Sequence[Function]) -> bytes:
    """`data` with `functions` cut out."""
    at, parts = 0, []
    for function in sorted(functions, key=lambda function: function.start):
        parts.append(data[at : function.start])
        at = max(at, function.end)
    return b"".join([*parts, data[at:]])


def _code_in(data: bytes) -> bytes:
    """`data` without comments and the space around it."""
    return re.sub(rb"//[^\n]*|/\*.*?(?:\*/|\Z)", b"", data, flags=re.DOTALL).strip()


def _replaced(old: bytes, new: bytes, pairs: Sequence[tuple[Function, Function]]) -> bytes:
    cuts = [0, *(right.end for _, right in pairs[:-1]), len(new)]
    texts = {left: new[start:end].strip(b"\n") for (left, _), start, end in zip(pairs, cuts, cuts[1:], strict=False)}
    for left in sorted(texts, key=lambda function: function.start, reverse=True):
        old = old[: left.start] + texts[left] + old[left.end :]
    return old
