"""A recorded compile command turned into one that explains itself, and its answers cut to what a model can read.

The rooms for C++, CUDA and HIP add the arguments that make their compiler talk. Commands replay over a workspace whose
writes are thrown away, so answers come back on stdout and stderr.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from kernelwright.sandbox import JobResult
from kernelwright.toolchain import CompileCommand, Report

T = TypeVar("T", bound=Hashable)

_TAKES_VALUE = {"-o", "-MF", "-MT", "-MQ", "--output-file", "--dependency-output", "--keep-dir", "-keep-dir", "-L",
                "-l", "--library", "--library-path", "-t", "--threads", "-objtemp", "-odir"}  # fmt: skip
_DROPPED = re.compile(
    r"-c|-S|-E|-MM?D?|-MP|-pipe|--compile|-dc|-dw|--device-c|--device-w|-dlink|-link|-lib|-ptx|-cubin|-fatbin|-keep|--keep"
    r"|-run|--run|-v|--verbose|-dryrun|--dryrun|-save-temps(=.*)?|-g\d?|-ggdb\d?|-flto(=.*)?|-dlto|-lto|--dlink-time-opt"
    r"|-fuse-linker-plugin|-ffat-lto-objects|-[oLl].+|-Wl,.+|--output-file=.*|-M[FTQ].+|-rdynamic|-shared|-static|-s"
    r"|--threads=.+|-t=?\d+"
)
_NOTE_CHARS = 180
_WORTH_BEGINNING = 200
"""Characters of room below which a section is rather left out than begun."""
_LINKED = re.compile(r".+\.(o|obj|a|so(\.\d+)*|lo)")


def compile_arguments(command: CompileCommand, source: str) -> list[str]:
    """The arguments of a recorded command that decide how `source` is compiled.

    Left out: the compiler itself, all sources, what names outputs, what only the linker reads, and debug levels.
    """
    kept: list[str] = []
    words = iter(command.argv[1:])
    sources = {*command.sources, source}
    for word in words:
        if word in _TAKES_VALUE:
            next(words, None)
        elif word not in sources and not _DROPPED.fullmatch(word) and not _LINKED.fullmatch(word):
            kept.append(word)
    return kept


def sources_to_try(command: CompileCommand, file: str) -> list[str]:
    """The sources of a command in which the text of `file` (relative to the repository) is compiled, likeliest first."""
    exact = [source for source in command.sources if same_file(source, command.cwd, file)]
    return exact or list(command.sources)


def same_file(path: str, cwd: str, file: str) -> bool:
    """Whether a path that a compiler printed, relative to `cwd`, is the repository's `file`."""
    whole = posixpath.normpath(posixpath.join(cwd, path))
    wanted = posixpath.normpath(file)
    return whole == wanted or whole.endswith("/" + wanted.lstrip("/"))


def failure(command: CompileCommand, done: JobResult) -> Report:
    """The report of a replay that did not compile: the compiler's words, cut."""
    words = done.stderr.decode(errors="replace").strip() or done.stdout.decode(errors="replace").strip()
    why = f"passed the limit on {done.limit.value}" if done.limit else f"exit code {done.exit_code}"
    if done.signal is not None and not done.limit:
        why = f"ended by signal {done.signal}"
    text = cut(f"{command.argv[0]} could not be replayed for analysis ({why}):\n{words}", 2000)
    return Report(text, {"error": words[-4000:], "exit_code": done.exit_code})


def cut(text: str, budget_chars: int) -> str:
    """`text` ended at a whole line within the budget, with a note of how much is missing."""
    if len(text) <= budget_chars:
        return text
    lines = text.splitlines()
    note = "[cut: {} of {} lines shown]"
    room = budget_chars - len(note.format(len(lines), len(lines))) - 1
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, note.format(len(kept), len(lines))])


def within(sections: Sequence[str], budget_chars: int) -> str:
    """Sections joined in order of importance; the one that passes the budget is cut, those after it are named.

    A budget below some 400 characters cannot hold the note of what was left out, and is passed by it.
    """
    if len(whole := "\n\n".join(sections)) <= budget_chars:
        return whole
    parts: list[str] = []
    room = budget_chars - _NOTE_CHARS
    for at, section in enumerate(sections):
        if len(section) > room:
            begun = at == 0 or room > _WORTH_BEGINNING
            parts += [cut(section, room)] if begun else []
            titles = [later.split("\n", 1)[0].rstrip(":")[:60] for later in sections[at + begun :]]
            parts += [f"[left out for length: {'; '.join(titles)[: _NOTE_CHARS - 30]}]"] if titles else []
            break
        parts.append(section)
        room -= len(section) + 2
    return "\n\n".join(parts)


def unique(items: Iterable[T]) -> list[T]:
    """The items without repetitions, in their order."""
    return list(dict.fromkeys(items))
