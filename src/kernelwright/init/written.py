"""The files that a program writes, read from its sources: what of a run's results can be compared outside the process.

A name is known where the source states it in one place: as a literal, by way of a variable or a macro, or as an argument
of the command line. Whether the file appears at all, a real run says.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from kernelwright.source import Function, find_functions

Dtype = Literal["text", "float32", "float64", "bytes"]

_OPENED = re.compile(
    rb'\bfopen\s*\(\s*(?P<c>[^,;]{1,80}?)\s*,\s*"[wa]|\b(?:std::)?ofstream\s+\w+\s*[({]\s*(?P<stream>"[^"\n]{1,80}"|[^,;(){}]{1,60}(?:\(\))*)'
    rb'|(?P<object>\w+)\s*\.\s*open\s*\(\s*(?P<open>"[^"\n]{1,80}"|[^,;()]{1,60}(?:\(\))*)\s*(?P<mode>,[^;]{0,80})?\)'
)
_LARGE_BYTES = 16 * 2**20
_PLAIN_NAME = re.compile(r"(?=.*[A-Za-z])[\w./+-]+")
_ARGUMENT = re.compile(r"argv\s*\[\s*(\d{1,2})\s*\]")
_SIZES: dict[bytes, Dtype] = {b"float": "float32", b"double": "float64"}
_BINARY = re.compile(rb"\bfwrite\s*\(|\.\s*write\s*\(")
_NOT_RESULTS = re.compile(r"log|prof|trace|debug|timing|perf|tmp|temp|\.(?:png|jpe?g|bmp|pdf|gp|gnuplot|plt)$", re.I)


@dataclass(frozen=True)
class FileDraft:
    """A file that the program writes. `active` where a check compares it; without one it goes into the file as a comment."""

    where: str
    expression: str
    """How the source names it."""
    path: str | None
    """Relative to the folder of the run, where the name is known."""
    dtype: Dtype
    active: bool = False
    note: str = ""


def find_written(sources: Mapping[str, bytes]) -> list[FileDraft]:
    """Every place where one of `sources` (path → text) opens a file to write, in functions that are called."""
    text = b"\n".join(sources.values())
    found: list[FileDraft] = []
    for file, data in sources.items():
        functions = find_functions(data, "cuda") if _OPENED.search(data) else []
        for match in _OPENED.finditer(data):
            if match["object"] and not _is_output(match["object"], match["mode"] or b"", data):
                continue
            around = _around(functions, match.start())
            if around is not None and not _is_called(around.name, text):
                continue
            inside = data[around.body_start : around.end] if around else data
            expression = (match["c"] or match["stream"] or match["open"]).decode(errors="replace").strip()
            line = data.count(b"\n", 0, match.start()) + 1
            found.append(FileDraft(f"{file}:{line}", expression, _name(expression, inside, text), _dtype(inside)))
    return found


def _is_output(name: bytes, mode: bytes, data: bytes) -> bool:
    return re.search(rb"ofstream\s+(?:\w+\s*,\s*)*%s\b" % re.escape(name), data) is not None or (
        re.search(rb"ios(?:_base)?::(?:out|app|trunc)", mode) is not None
    )


def _around(functions: Iterable[Function], at: int) -> Function | None:
    return next((one for one in functions if one.body_start <= at < one.end), None)


def _is_called(name: str, text: bytes) -> bool:
    return name == "main" or len(re.findall(rb"\b%s\b" % re.escape(name.encode()), text)) > 1


def _name(expression: str, inside: bytes, text: bytes) -> str | None:
    """The name that an expression stands for, where exactly one literal is its value."""
    if literal := re.fullmatch(r'"([^"%]+)"', expression):
        return _usable(literal[1])
    identifier = re.match(r"([A-Za-z_]\w*)(?:\.(?:str|c_str|data)\(\))*$", expression)
    if identifier is None or identifier[1] == "argv":
        return None
    name = re.escape(identifier[1].encode())
    stated = rb'\b%s(?:\s*\[\w*\])?\s*[=({]\s*(?:std::string\s*\(\s*)?"([^"\n]+)"' % name
    other = rb'(?:[;{}]\s*%s\s*<<|strn?cpy\s*\(\s*%s\s*,)\s*"([^"\n]+)"' % (name, name)
    given = stated + b"|" + other
    values = {one or other for one, other in re.findall(given, inside)}
    values = values or {one or other for one, other in re.findall(rb'#\s*define\s+%s\s+"([^"\n]+)"()' % name, text)}
    values = values or {one or other for one, other in re.findall(given, text)}
    return _usable(values.pop().decode(errors="replace")) if len(values) == 1 else None


def _usable(name: str) -> str | None:
    path = PurePosixPath(name)
    return None if path.is_absolute() or ".." in path.parts or not _PLAIN_NAME.fullmatch(name) else str(path)


def _dtype(inside: bytes) -> Dtype:
    """What a function writes: text, or numbers of the size that it names."""
    if not _BINARY.search(inside):
        return "text"
    sizes = set(re.findall(rb"sizeof\s*\(\s*(\w+)", inside))
    return _SIZES[sizes.pop()] if len(sizes) == 1 and sizes <= set(_SIZES) else "bytes"


def placed(files: Iterable[FileDraft], command: str, sure: bool) -> list[FileDraft]:
    """The files as a run's command names them (`argv[2]`), each path once; active where nothing else is `sure` to tell a
    right result from a wrong one."""
    words = shlex.split(command)
    first = next((at for at, word in enumerate(words) if word.startswith(("./", "../"))), 0)
    found: list[FileDraft] = []
    for file in files:
        argument = _ARGUMENT.fullmatch(file.expression)
        at = first + int(argument[1]) if argument else len(words)
        one = replace(file, path=_usable(words[at])) if at < len(words) else file
        if one.path is None or one.path not in {other.path for other in found}:
            active = not sure and one.path is not None and not _NOT_RESULTS.search(one.path) and one.dtype != "bytes"
            found.append(replace(one, active=active))
    return found


def seen(file: FileDraft, content: bytes | None) -> FileDraft:
    """A file as a trial run left it: compared where it holds numbers, whatever else is checked."""
    if not content:
        return replace(file, active=False, path=None, note="not written in a trial run")
    text = b"\0" not in content[:65536]
    dtype: Dtype = "text" if text else "bytes" if file.dtype == "text" else file.dtype
    numbers = dtype != "text" or re.search(rb"\d", content[:65536]) is not None
    results = not _NOT_RESULTS.search(file.path or "")
    note = f"{len(content)} bytes in a trial run"
    if text and len(content) > _LARGE_BYTES:
        note += "; comparing so much text takes many seconds, which a held-out run of a smaller size does not"
    return replace(file, active=numbers and results and dtype != "bytes", dtype=dtype, note=note)
