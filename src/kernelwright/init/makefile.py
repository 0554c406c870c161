"""Reading a Makefile without running it: variables, conditionals, rules, and what the `run` target would start.

A subset of GNU make, enough for the Makefiles of benchmark suites. Where a runner is given, `asked` takes the truth from
`make -n` instead; `make -n` runs `$(shell ...)` and lines with `+`, so that runner must be the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
RUN_TARGETS = ("run", "run-benchmark", "bench", "benchmark", "test", "check")
MOST_EXPANDED = 5_000_000
EXPANSION = 100
"""What one expansion counts beside its characters."""
MOST_READ = 200
"""Makefiles that one Makefile includes, counted each time."""
_ASSIGN = re.compile(r"\s*(?:export\s+|override\s+)*([A-Za-z_][\w.-]*)\s*(\?=|::?:?=|\+=|!=|=)\s*(.*)", re.S)
_RULE = re.compile(r"([^:=\s](?:[^:=\s]|\s++(?!::?|$))*+)\s*::?(?!=)\s*([^;]*)(?:;(.*))?$", re.S)
_REFERENCE = re.compile(r"\$(?:\(|\{)([A-Za-z_][\w.-]*)[:)}]")


@dataclass(frozen=True)
class Rule:
    target: str
    needs: tuple[str, ...]
    recipe: tuple[str, ...]
    number: int
    """1-based line of the Makefile."""


@dataclass
class Makefile:
    """What one Makefile says under given overrides (variables of make's command line)."""

    path: Path
    overrides: Mapping[str, str] = field(default_factory=dict)
    started_in: Path | None = None
    """Where make is started, if not in the Makefile's own folder."""
    variables: dict[str, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    of_targets: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Assignments that hold for some targets and what these need: (targets, name, operator, value)."""
    text: str = ""
    files: int = 0
    """Makefiles read, included ones among them."""
    expanded: int = 0
    """Characters looked at by expansions so far."""

    @property
    def folder(self) -> Path:
        return self.started_in or self.path.parent

    def undefined(self, start: str) -> set[str]:
        """Variables whose names start like this and that are used, but set nowhere in the Makefile."""
        given = {*self.variables, *self.overrides}
        return {name for name in self.referenced if name.startswith(start) and name not in given}

    @property
    def referenced(self) -> set[str]:
        """Variables that are used anywhere."""
        return set(_REFERENCE.findall(self.text))

    def rule(self, *names: str) -> Rule | None:
        """The first rule with a recipe whose target, after expansion, is one of `names`, in the order of `names`."""
        for name in names:
            for rule in self.rules:
                if rule.recipe and name in self.expand(rule.target).split():
                    return rule
        return None

    @property
    def default_goal(self) -> str | None:
        for rule in self.rules:
            for name in self.expand(rule.target).split():
                if not name.startswith(".") and "%" not in name:
                    return name
        return None

    def recipe(self, rule: Rule) -> list[str]:
        """The recipe's lines as make would start them: variables expanded, `@`, `-` and `+` taken off."""
        target = (self.expand(rule.target).split() or [""])[0]
        needs = self.expand(" ".join(rule.needs)).split()
        automatic = {"@": target, "<": needs[0] if needs else "", "^": " ".join(needs), "*": PurePosixPath(target).stem}
        lines = [re.sub(r"^[@+-]+\s*", "", self.expand(line, automatic).strip()) for line in rule.recipe]
        return [" ".join(line.split()) for line in lines if line]

    def value(self, name: str) -> str:
        return " ".join(self.expand(f"$({name})").split())

    def expand(self, text: str, automatic: Mapping[str, str] | None = None, depth: int = 0) -> str:
        """`text` with make's variables and the pure functions expanded; `$(shell ...)` gives nothing. Variables that grow
        without end (a recursive one, which make refuses) stop growing at `MOST_EXPANDED`."""
        self.expanded += len(text) + EXPANSION
        if depth > 40 or "$" not in text or self.expanded > MOST_EXPANDED:
            return text
        out, at = "", 0
        while at < len(text):
            if text[at] != "$" or at + 1 == len(text):
                out += text[at]
                at += 1
                continue
            opening = text[at + 1]
            if opening == "$":
                out, at = out + "$", at + 2
            elif opening in "({":
                end = _closing(text, at + 1)
                out += self._reference(text[at + 2 : end], automatic or {}, depth + 1)
                at = end + 1
            else:
                out += (automatic or {}).get(opening, self._variable(opening, automatic or {}, depth + 1))
                at += 2
        return out

    def _variable(self, name: str, automatic: Mapping[str, str], depth: int) -> str:
        if name in automatic:
            return automatic[name]
        known = {"CURDIR": str(self.folder), "MAKE": "make", "PWD": str(self.folder)}
        raw = self.overrides.get(name, self.variables.get(name, known.get(name, "")))
        return self.expand(raw, automatic, depth)

    def _reference(self, inner: str, automatic: Mapping[str, str], depth: int) -> str:
        function = re.match(r"([a-z-]+)[ \t]+(.*)", inner, re.S)
        if function and function[1] in _FUNCTIONS:
            arguments = [self.expand(part, automatic, depth) for part in _commas(function[2])]
            if len(arguments[-1]) * max(map(len, arguments[:-1]), default=1) > MOST_EXPANDED:
                return ""
            result = _FUNCTIONS[function[1]](self.folder, arguments)
            self.expanded += len(result)
            return result if self.expanded <= MOST_EXPANDED else ""
        if function and function[1] in (
            "if",
            "or",
            "and",
            "foreach",
            "call",
            "eval",
            "info",
            "warning",
            "error",
            "shell",
        ):
            return self._control(function[1], _commas(function[2]), automatic, depth)
        inner = self.expand(inner, automatic, depth)
        name, colon, change = inner.partition(":")
        value = self._variable(name.strip(), automatic, depth)
        if not colon or "=" not in change:
            return value
        old, _, new = change.partition("=")
        old, new = (old, new) if "%" in old else (f"%{old}", f"%{new}")
        return " ".join(_substituted(word, old, new) for word in value.split())

    def _control(self, name: str, parts: list[str], automatic: Mapping[str, str], depth: int) -> str:
        if name == "if":
            taken = 1 if self.expand(parts[0], automatic, depth).strip() else 2
            return self.expand(parts[taken], automatic, depth) if taken < len(parts) else ""
        if name == "foreach" and len(parts) == 3:
            words = self.expand(parts[1], automatic, depth).split()
            return " ".join(self.expand(parts[2], {**automatic, parts[0].strip(): word}, depth) for word in words)
        return ""


def _closing(text: str, at: int) -> int:
    close = ")" if text[at] == "(" else "}"
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] == text[at]) - (text[index] == close)
        if depth == 0:
            return index
    return len(text)


def _commas(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _substituted(word: str, old: str, new: str) -> str:
    head, percent, tail = old.partition("%")
    if not percent:
        return new if word == old else word
    if word.startswith(head) and word.endswith(tail) and len(word) >= len(head) + len(tail):
        return new.replace("%", word[len(head) : len(word) - len(tail)], 1)
    return word


def _matches(word: str, patterns: str) -> bool:
    return any(fnmatchcase(word, pattern.replace("%", "*")) for pattern in patterns.split())


def _whole(folder: Path, word: str) -> str:
    try:
        return str((folder / word).resolve())
    except (OSError, ValueError, RuntimeError):  # a name too long, with a NUL, or a loop of links
        return word


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    """`Path.is_file` or `Path.is_dir`, which raise where a name is too long."""
    try:
        return kind(path)
    except OSError:
        return False


def _wildcard(folder: Path, patterns: str) -> str:
    found: list[str] = []
    for pattern in patterns.split():
        if Path(pattern).is_absolute() or (
            ".." in PurePosixPath(pattern).parts and not _is(Path.is_dir, (folder / pattern).parent)
        ):
            continue
        parent, name = folder / PurePosixPath(pattern).parent, PurePosixPath(pattern).name
        if name and _is(Path.is_dir, parent):
            prefix = pattern[: len(pattern) - len(name)]
            found += sorted(prefix + path.name for path in parent.iterdir() if fnmatchcase(path.name, name))
    return " ".join(found)


_FUNCTIONS: dict[str, Callable[[Path, list[str]], str]] = {
    "wildcard": lambda folder, a: _wildcard(folder, a[0]),
    "strip": lambda _, a: " ".join(a[0].split()),
    "subst": lambda _, a: a[2].replace(a[0], a[1]) if len(a) > 2 and a[0] else a[-1],
    "patsubst": lambda _, a: " ".join(
        _substituted(word, a[0].strip(), a[1].strip()) for word in (a[-1].split() if len(a) > 2 else ())
    ),
    "notdir": lambda _, a: " ".join(word.rsplit("/", 1)[-1] for word in a[0].split()),
    "dir": lambda _, a: " ".join(word[: word.rfind("/") + 1] or "./" for word in a[0].split()),
    "basename": lambda _, a: " ".join(re.sub(r"\.[^./]*$", "", word) for word in a[0].split()),
    "suffix": lambda _, a: " ".join(PurePosixPath(word).suffix for word in a[0].split()),
    "addprefix": lambda _, a: " ".join(a[0].strip() + word for word in a[-1].split()),
    "addsuffix": lambda _, a: " ".join(word + a[0].strip() for word in a[-1].split()),
    "filter": lambda _, a: " ".join(word for word in a[-1].split() if _matches(word, a[0])),
    "filter-out": lambda _, a: " ".join(word for word in a[-1].split() if not _matches(word, a[0])),
    "sort": lambda _, a: " ".join(sorted(set(a[0].split()))),
    "firstword": lambda _, a: (a[0].split() or [""])[0],
    "lastword": lambda _, a: (a[0].split() or [""])[-1],
    "findstring": lambda _, a: a[0] if a[0] in a[-1] else "",
    "abspath": lambda folder, a: " ".join(_whole(folder, word) for word in a[0].split()),
    "realpath": lambda folder, a: " ".join(_whole(folder, word) for word in a[0].split()),
}


def read_makefile(path: Path, overrides: Mapping[str, str] | None = None, folder: Path | None = None) -> Makefile:
    """Read the Makefile at `path` as `make VAR=value ...` with these overrides would, started in `folder`."""
    made = Makefile(path, dict(overrides or {}), folder)
    _read(made, path, depth=0)
    _assign_for_goal(made)
    return made


def _assign_for_goal(made: Makefile) -> None:
    """Variables that are set for targets, as the default goal and all that it needs would see them."""
    if not made.of_targets or made.default_goal is None:
        return
    reached, left = {made.default_goal}, [made.default_goal]
    while left:
        target = left.pop()
        needs = [rule.needs for rule in made.rules if target in made.expand(rule.target).split()]
        more = {need for names in needs for need in made.expand(" ".join(names)).split()} - reached
        reached |= more
        left += more
    for targets, name, how, value in made.of_targets:
        if reached.intersection(made.expand(targets).split()):
            _assign(made, name, how, value)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """(number, line) with continuations joined; recipe lines keep their tab."""
    held, first = "", 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        first = first if held else number
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            held += line[:-1] + " "
            continue
        yield first, held + line
        held = ""


def _read(made: Makefile, path: Path, depth: int) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    made.text += text
    made.files += 1
    taken: list[tuple[bool, bool]] = []
    targets: list[int] = []
    for number, line in _logical(text):
        active = all(now for now, _ in taken)
        if line.startswith("\t") and targets:
            if active:
                for index in targets:
                    rule = made.rules[index]
                    made.rules[index] = Rule(rule.target, rule.needs, (*rule.recipe, line), rule.number)
            continue
        plain = re.sub(r"(?<!\\)#.*", "", line, flags=re.S)
        if _conditional(made, plain.strip(), taken) or not active or not plain.strip():
            continue
        if include := re.match(r"\s*-?include\s+(.*)", plain):
            for name in made.expand(include[1]).split():
                if depth < 5 and made.files < MOST_READ and _is(Path.is_file, made.folder / name):
                    _read(made, made.folder / name, depth + 1)
            continue
        assignment = _ASSIGN.fullmatch(plain.rstrip())
        if assignment:
            _assign(made, *assignment.groups())
            targets = []
        elif rule_found := _RULE.match(plain.strip()):
            target, needs, inline = rule_found.groups()
            if "=" in needs:
                if of_target := _ASSIGN.fullmatch(plain.strip().partition(":")[2].strip()):
                    name, how, value = of_target.groups()
                    made.of_targets.append((target, name, how, value))
                continue
            made.rules.append(Rule(target, tuple(needs.split()), (inline.strip(),) if inline else (), number))
            targets = [len(made.rules) - 1]


def _assign(made: Makefile, name: str, how: str, value: str) -> None:
    if (how == "?=" and name in made.variables) or how == "!=":
        return
    if how == "+=":
        made.variables[name] = f"{made.variables.get(name, '')} {value}".strip()
    else:
        made.variables[name] = made.expand(value) if ":" in how else value


def _conditional(made: Makefile, line: str, taken: list[tuple[bool, bool]]) -> bool:
    """Handle a conditional line; `taken` holds (this branch is taken, some branch was) for each open conditional."""
    if line == "endif":
        if taken:
            taken.pop()
        return True
    if line.startswith("else") and (line == "else" or line[4] in " \t"):
        if taken:
            _, done = taken.pop()
            rest = line[4:].strip()
            now = not done and (not rest or _holds(made, rest))
            taken.append((now, done or now))
        return True
    if re.match(r"if(?:n?eq|n?def)\b", line):
        now = _holds(made, line)
        taken.append((now, now))
        return True
    return False


def _holds(made: Makefile, line: str) -> bool:
    word, _, rest = (
        line.partition(" ") if " " in line.split("(")[0] else (line.split("(")[0], "", line[line.find("(") :])
    )
    rest = rest.strip()
    if word in ("ifdef", "ifndef"):
        return (made.overrides.get(rest, made.variables.get(rest, "")) != "") == (word == "ifdef")
    if rest.startswith("("):
        parts = _commas(rest[1:].rstrip()[:-1])
    else:
        parts = [one or other for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", rest)]
    left, right = (made.expand(part).strip() for part in [*parts, "", ""][:2])
    return (left == right) == (word == "ifeq")
