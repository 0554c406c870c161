"""Reading RAJAPerf's sources: which kernels there are, where the code of a variant lies, and where its macros are defined.

Each kernel is a class with one source file a programming model. Its base variant is what a region holds: on a device the
`__global__` functions that the branch of that variant launches, on a CPU what stands inside the branch's repetition loop.
Nothing is run here. The repetition loop, the timer and the launches stay outside of every region.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.init.conditionals import compiled_part
from kernelwright.preprocessor import Macro, definitions, lex
from kernelwright.source import Function, find_functions, to_lf

GROUPS = ("Apps", "Algorithm", "Polybench")
BASE = {"cuda": "Base_CUDA", "hip": "Base_HIP", "cpp": "Base_OpenMP"}
"""The variant that a task's language stands for."""
REFERENCE = "Base_Seq"
_ENDING = {"cuda": "Cuda", "hip": "Hip", "cpp": "OMP", "seq": "Seq"}
_SETTING = {"cuda": "setCudaTuning", "hip": "setHipTuning", "cpp": "setOpenMPTuning", "seq": "setSeqTuning"}
_FACTORY = "common/RAJAPerfSuite.cpp"
_CASE = re.compile(r"\bcase\s+(\w+)\s*:\s*\{?\s*kernel\s*=\s*new\s+(\w+)::(\w+)\s*\(")
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*")
_LIBRARY = {"library", "cub", "rocprim"}
"""Tunings that call a library instead of a kernel of the suite."""
_DEFAULT = "default"
_NAMES_DEFAULT = re.compile(r'addVariantTuningName\(\s*vid\s*,\s*"default"\s*\)')
_NAMES_BLOCKS = re.compile(
    r'"block_"\s*\+\s*std::to_string\(\s*block_size\s*\)|\bRAJAPERF_GPU_BLOCK_SIZE_TUNING_DEFINE\w*\('
)


class NoRegion(Exception):
    """Why a kernel has nothing of its own that could be a region."""


@dataclass(frozen=True)
class Kernel:
    """One kernel of the suite: `Apps_ENERGY` is the class `ENERGY` in the folder `apps`."""

    name: str
    folder: str
    cls: str

    def unit(self, language: str) -> str:
        """The source of one programming model, relative to the folder `src`."""
        return f"{self.folder}/{self.cls}-{_ENDING[language]}.cpp"

    @property
    def header(self) -> str:
        return f"{self.folder}/{self.cls}.hpp"


@dataclass(frozen=True)
class Part:
    """A region to be: a function by its name, or lines where that is not clear; `text` is what it holds."""

    name: str
    kernel: str | None
    lines: tuple[int, int]
    text: str
    headers: tuple[str, ...] = ()
    """Whose macros are expanded in it."""


def find_kernels(src: Path) -> dict[str, Kernel]:
    """The kernels of the three groups by name, as the suite's factory lists them; none where that is not there."""
    try:
        text = (src / _FACTORY).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found = (Kernel(*words) for words in _CASE.findall(text))
    return {kernel.name: kernel for kernel in found if kernel.name.partition("_")[0] in GROUPS}


def parts_of(language: str, data: bytes, defined: Mapping[str, str]) -> list[list[Part]]:
    """What the branches of the base variant hold, a list for each that has code of its own: functions that it launches, or
    the body of its repetition loop. `defined` are macros as the build has them. Raises NoRegion where there is none.
    """
    live = compiled_part(data, defined)
    blocks = list(_branches(to_lf(live), BASE[language]))
    if not blocks:
        raise NoRegion(f"it has no {BASE[language]} variant")
    if language == "cpp":
        loops = [_loop(to_lf(data), start, end) for start, end in blocks if _repeated(to_lf(live), start, end)]
        if not loops:
            raise NoRegion(f"its {BASE[language]} variant has no repetition loop that could be read")
        return loops
    functions = find_functions(data, language)
    kernels = [one for one in functions if one.kernel and live[one.start : one.body_start].strip()]
    text = to_lf(live)
    launched = [_launched(_code(text[start:end]), kernels) for start, end in blocks]
    if not any(launched):
        raise NoRegion(f"its {BASE[language]} variant launches no kernel of its own")
    return [[_function(data, one, functions) for one in some] for some in launched if some]


def _branches(text: str, variant: str) -> Iterator[tuple[int, int]]:
    """The blocks that belong to one variant alone: of `if ( vid == V )` and of `case V :`."""
    code = _code(text)
    for found in re.finditer(rf"(?:==\s*{variant}\s*\)|\bcase\s+{variant}\s*:)\s*\{{", code):
        yield found.end(), _closing(code, found.end())


def _code(text: str) -> str:
    """`text` with blanks for comments, strings and directives other than pragmas, so that offsets stay what they are."""
    return "".join(re.sub(r"[^\n]", " ", piece) if _silent(kind, piece) else piece for kind, piece in lex(text))


def _silent(kind: str, piece: str) -> bool:
    return kind in ("comment", "string") or (kind == "directive" and re.match(r"\s*#\s*pragma\b", piece) is None)


def _closing(code: str, at: int) -> int:
    """Where the brace stands that closes the one before `at`."""
    depth = 1
    while at < len(code):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at
        at += 1
    return at


def _launched(code: str, kernels: Sequence[Function]) -> list[Function]:
    names = set(_NAME.findall(code))
    return [one for one in kernels if one.name in names]


def _function(data: bytes, function: Function, functions: Sequence[Function]) -> Part:
    alone = sum(one.name == function.name and one.kernel for one in functions) == 1
    last = data.count(b"\n", 0, function.end) + 1
    text = to_lf(data[function.start : function.end])
    return Part(function.name, function.name if alone else None, (function.first_line, last), text)


_REPETITIONS = re.compile(r"\bfor\s*\(\s*RepIndex_type\b[^{};]*;[^{};]*;[^{};]*\)\s*\{")


def _repeated(text: str, start: int, end: int) -> bool:
    return _REPETITIONS.search(_code(text), start, end) is not None


def _loop(text: str, start: int, end: int) -> list[Part]:
    """The lines inside the repetition loop, its own two lines and blank ones at the ends left out."""
    code = _code(text)
    loop = _REPETITIONS.search(code, start, end)
    assert loop is not None, "asked before"
    inside, closing = loop.end(), _closing(code, loop.end())
    first = text.count("\n", 0, inside) + 2
    last = text.count("\n", 0, closing)
    lines = text.split("\n")
    while first < last and not lines[first - 1].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return [Part("loop", None, (first, last), "\n".join(lines[first - 1 : last]))]


def macro_headers(src: Path, unit: str, text: str) -> list[str]:
    """Headers beside a unit, relative to `src`, whose macros `text` uses, directly or through others of them."""
    texts = _headers_beside(src, unit)
    macros, _ = definitions(texts)
    used = _opened(text, macros)
    return [path for path, header in texts.items() if used & set(definitions({path: header})[0])]


def _headers_beside(src: Path, unit: str) -> dict[str, str]:
    """What a unit includes from its own folder, directly or not: kernels' bodies are macros there."""
    folder, found, waiting = Path(unit).parent, dict[str, str](), [unit]
    while waiting:
        text = to_lf((src / waiting.pop()).read_bytes())
        for name in _INCLUDE.findall(text):
            path = (folder / name).as_posix()
            if path not in found and (src / path).is_file():
                found[path] = to_lf((src / path).read_bytes())
                waiting.append(path)
    return found


def _opened(text: str, macros: Mapping[str, Macro]) -> set[str]:
    """The macros that a text uses, and those that stand in their definitions."""
    waiting, seen = set(_NAME.findall(_code(text))) & set(macros), set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        waiting |= ({token.text for token in macros[name].body} & set(macros)) - seen
    return seen


def begins_constant(src: Path, kernel: Kernel) -> bool:
    """Whether a kernel's set-up fills every array with one value."""
    path = src / kernel.folder / f"{kernel.cls}.cpp"
    text = _code(to_lf(path.read_bytes())) if path.is_file() else ""
    return set(re.findall(r"\ballocAndInit\w+", text)) == {"allocAndInitDataConst"}


def default_tuning(src: Path, kernel: Kernel, language: str) -> str | None:
    """The tuning's name by reading alone; None where the program must be asked. `language` may be `seq`."""
    unit = src / kernel.unit(language)
    own = to_lf(unit.read_bytes()) if unit.is_file() else ""
    text = own + "".join(_headers_beside(src, kernel.header).values()) + to_lf((src / kernel.header).read_bytes())
    if _SETTING[language] not in text or _NAMES_DEFAULT.search(text):
        return _DEFAULT
    size = _block_size(text) if language in ("cuda", "hip") else None
    return f"block_{size}" if size and _NAMES_BLOCKS.search(text) else None


def _block_size(text: str) -> int | None:
    """The product that `default_gpu_block_size` is, its factors numbers or macros that are."""
    found = re.search(r"\bdefault_gpu_block_size\s*=\s*([\w\s*]+);", text)
    if found is None:
        return None
    size = 1
    for factor in map(str.strip, found[1].split("*")):
        defined = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{factor}[ \t]+(\d+)[ \t]*$", text, re.MULTILINE)
        if not factor.isdigit() and defined is None:
            return None
        size *= int(defined[1] if defined else factor)
    return size


def chosen_tuning(tunings: Sequence[str]) -> str | None:
    """Of the tunings that the program names the one to take: no library's; the default; a grid made for the device rather
    than one thread an element, partial results of a warp, most replicas. None where all are a library's."""
    own = [name for name in tunings if name not in _LIBRARY]
    return max(own, key=_rank) if own else None


def _rank(tuning: str) -> tuple[bool, bool, bool, int]:
    words = re.split(r"[_<>()]+", tuning)
    replicas = re.search(r"replicate_(\d+)", tuning)
    return tuning == _DEFAULT, "occgs" in words, "warp" in words, int(replicas[1]) if replicas else 0


def parts_for(tuning: str, branches: Sequence[Sequence[Part]]) -> list[Part]:
    """The parts that a tuning runs: of branches with different ones those whose names share most words with the tuning's."""
    distinct = {tuple(part.name for part in branch): branch for branch in branches}
    if len(distinct) == 1:
        return list(next(iter(distinct.values())))
    words = set(tuning.split("_"))

    def shared(names: tuple[str, ...]) -> int:
        return max(len(words & set(name.split("_"))) for name in names)

    most = max(map(shared, distinct))
    return [part for names, branch in distinct.items() if shared(names) == most for part in branch]
