"""How often a program repeats what it times, as one of its arguments says.

Benchmarks repeat a kernel until its mean is steady on the machine that they were written for, which may be minutes. A task
is run a hundred times, in pairs, and gets its steadiness from those. Fewer repetitions do the same work at the same size.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(
    r"(?:n|num|number|max|total|outer|timing|benchmark|kernel)?_?(?:of)?_?"
    r"(?:repeat(?:s|ed)?|repetitions?|reps?|iter(?:s|ation|ations)?|loops?|runs?|trials?|launches|passes|rounds)"
    r"(?:_?(?:n|num|count|times))?",
    re.IGNORECASE,
)
_READ = re.compile(
    rb"(\w+)\s*=\s*(?:\(?\s*argc\s*[<>=!]+\s*\d+\s*\)?\s*\?\s*|\([\w\s]*\)\s*)?(?:std::)?(?:ato[il]l?|sto[ui]?l*|strtou?l+)"
    rb"\s*\(\s*argv\s*\[\s*(\d+)\s*\]"
)
_OPTION = re.compile(r"--?([A-Za-z][\w-]*)(?:=(\d+))?")


@dataclass(frozen=True)
class Repeats:
    """The word of a command that says how often."""

    at: int
    count: int
    prefix: str = ""
    """What stands before the number in that word."""

    def in_command(self, command: str, count: int) -> str:
        words = shlex.split(command)
        words[self.at] = f"{self.prefix}{count}"
        return shlex.join(words)


def find_repeats(command: str, program: str, sources: Iterable[bytes]) -> Repeats | None:
    """Which argument of `command` says how often `program`, one of its words, repeats; None where none does for sure."""
    words = shlex.split(command)
    if program not in words:
        return None
    first = words.index(program)
    for at, word in enumerate(words[first + 1 :], first + 1):
        option = _OPTION.fullmatch(word)
        if option is None or not _NAME.fullmatch(option[1].replace("-", "_")):
            continue
        if option[2]:
            return Repeats(at, int(option[2]), word[: -len(option[2])])
        if at + 1 < len(words) and words[at + 1].isdecimal():
            return Repeats(at + 1, int(words[at + 1]))
    read = {(name.decode(), int(number)) for source in sources for name, number in _READ.findall(source)}
    places = {first + number for name, number in read if _NAME.fullmatch(name)}
    named_otherwise = {first + number for name, number in read if not _NAME.fullmatch(name)}
    sure = sorted(at for at in places - named_otherwise if at < len(words) and words[at].isdecimal())
    return Repeats(sure[0], int(words[sure[0]])) if len(sure) == 1 else None


def fewer(count: int, wall_s: float, seconds: float) -> int | None:
    """How often in about `seconds`, where `count` repetitions took `wall_s`; None where that is not less often."""
    wanted = max(1, int(count * seconds / wall_s))
    return wanted if wanted < count else None
