"""Compiler interposition: what the build really compiled, and the plan that makes the next build cost one file.

Arbitrary Makefiles miss header dependencies, and a global flag also relaxes the checker. So our own small program
(`interpose.c`) stands before the compilers on PATH. The baseline's build writes down every command and every file that
it read; from that record a plan follows: commands that read no region file, and nothing that the build makes, are
answered with the object that the pristine tree gave; commands that do read one get the candidate's compile arguments. A
command that a later build words otherwise (a time stamp, a temporary name) is asked again what it reads. The plan and its
objects are read-only to the build of a candidate. A build system that calls compilers by absolute path is not seen; then
each build is a full clean one, and the record says so.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from kernelwright.state import native
from kernelwright.toolchain import CompileCommand

REPO = "/kw/repo"
"""Where every build and run sees the repository, so that commands are alike from candidate to candidate. Without a
sandbox each workspace lies elsewhere, and what was recorded is told as if it lay here."""
COMPILERS = ("g++", "gcc", "c++", "cc", "clang++", "clang", "nvcc", "hipcc", "mpicxx", "mpicc", "mpic++")
SOURCE = re.compile(r".+\.(c|cc|cpp|cxx|c\+\+|C|cu|hip)")
OUTPUT = ("-o", "--output", "--output-file")
LISTING = ("-MF", "--dependency-output")
SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")
"""Where a build may write beside the repository."""


@dataclass(frozen=True)
class Recorded:
    """One compiler call: what was asked, what came of it, which repository files it read."""

    argv: tuple[str, ...]
    cwd: str
    status: int
    action: str
    """`c` compiled as asked, `a` compiled with the candidate's arguments, `u` likewise, though the plan did not know the
    command: it was seen to read a region; `r` answered from the pristine build."""
    depends: tuple[str, ...]
    """Empty in later builds, except for commands that the plan did not know."""
    asked: int
    """How many words the build gave; the candidate's arguments follow them in `argv`."""
    scratch: bool = False
    """Whether it also read a file that the build may have written outside of the repository."""

    @property
    def key(self) -> str:
        return command_key(self.cwd, self.argv[: self.asked])

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(word for word in self.argv[1:] if SOURCE.fullmatch(word) and not word.startswith("-"))

    @property
    def places(self) -> tuple[str, ...]:
        """The sources' whole paths."""
        return tuple(_normal(str(PurePosixPath(self.cwd) / source)) for source in self.sources)

    @property
    def output(self) -> str | None:
        return _value(self.argv, OUTPUT)

    @property
    def kept(self) -> set[str]:
        """What the interposed compiler keeps of it in the pristine build: `KEY.o`, and `KEY.d` for a dependency list."""
        lists = {
            "-MD",
            "-MMD",
            "--generate-dependencies-with-compile",
            "--generate-nonsystem-dependencies-with-compile",
        }
        return {f"{self.key}.o"} | ({f"{self.key}.d"} if lists & set(self.argv) else set())

    @property
    def written(self) -> str | None:
        """The output's whole path."""
        return _normal(str(PurePosixPath(self.cwd) / self.output)) if self.output is not None else None

    @property
    def gives_one_object(self) -> bool:
        """Whether what it leaves is known: one object, and perhaps its dependency list."""
        compiles = {"-c", "-dc", "--compile", "--device-c"} & set(self.argv)
        lists_aside = any(word.startswith("-Wp,-M") for word in self.argv)
        return bool(compiles) and len(self.sources) == 1 and self.output is not None and not lists_aside

    def command(self) -> CompileCommand:
        return CompileCommand(self.argv, self.cwd, self.sources, self.output, self.depends)


def command_key(cwd: str, argv: Sequence[str]) -> str:
    """The plan's key of a command: FNV-1a over its folder and words, as `key` in interpose.c makes it."""
    value = 14695981039346656037
    for byte in b"".join(word.encode(errors="surrogateescape") + b"\0" for word in (cwd, *argv)):
        value = ((value ^ byte) * 1099511628211) % 2**64
    return f"{value:016x}"


def install(folder: Path) -> None:
    """Fill `folder` with the interposed compilers: one name for each compiler that this machine has on PATH."""
    program = native(Path(__file__).with_name("interpose.c"), ("cc", "gcc", "clang", "g++"))
    folder.mkdir(parents=True)
    shutil.copy(program, folder / "interposed")
    (folder / "interposed").chmod(0o755)
    names = {name for name in COMPILERS if shutil.which(name)}
    for base in ("g++", "gcc", "clang++", "clang"):
        names |= {f"{base}-{version}" for version in range(9, 24) if shutil.which(f"{base}-{version}")}
    for name in names:
        (folder / name).symlink_to("interposed")


def read_record(data: bytes, depends: dict[str, bytes], repo: str) -> list[Recorded]:
    """The `commands` file of a build, up to where it stops being one: what a build runs may write to it.

    `depends` holds the dependency lists by file name; `repo` is the path of the repository as the build saw it: only files
    below it are kept, relative to it; folders and words are told as if it were `REPO`.
    """
    fields = data.decode(errors="surrogateescape").split("\0")
    found, at = [], 0
    while at + 6 <= len(fields) and all(map(_SMALL.fullmatch, fields[at : at + 3])):
        argc, asked, status = map(int, fields[at : at + 3])
        action, cwd, listing = fields[at + 3 : at + 6]
        argv = tuple(word.replace(repo, REPO) for word in fields[at + 6 : at + 6 + argc])
        if not 0 < argc == len(argv):
            break
        paths = _listed(depends.get(listing, b""), cwd)
        inside = {str(path.relative_to(repo)) for path in paths if path.is_relative_to(repo)}
        scratch = any(
            path.is_relative_to(place) for path in paths for place in SCRATCH if not path.is_relative_to(repo)
        )
        found.append(Recorded(argv, cwd.replace(repo, REPO), status, action, tuple(sorted(inside)), asked, scratch))
        at += 6 + argc
    return found


_SMALL = re.compile("[0-9]{1,7}")


def _listed(rules: bytes, cwd: str) -> set[PurePosixPath]:
    """The whole paths that a dependency list names, its targets left out (nvcc sets a space before the colon)."""
    text = rules.decode(errors="surrogateescape").replace("\\\n", " ")
    text = re.sub(r"^[^\n]*?:(?=\s|$)", "", text, flags=re.MULTILINE)
    words = (re.sub(r"\\([ #])|\$(\$)", r"\1\2", word) for word in re.findall(r"(?:\\ |[^\s])+", text))
    return {PurePosixPath(_normal(str(PurePosixPath(cwd) / word))) for word in words}


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in PurePosixPath(path).parts:
        if part == ".." and parts and parts[-1] != "/":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return str(PurePosixPath(*parts))


@dataclass(frozen=True)
class Plan:
    """What the next builds of this task may skip, and where a candidate's compile arguments go."""

    reuse: tuple[Recorded, ...] = ()
    append: tuple[Recorded, ...] = ()
    other: tuple[Recorded, ...] = ()
    """Commands that are compiled as they are asked: they read what the build makes, or leave more than an object."""
    unseen: tuple[str, ...] = ()
    """Files with a region that no command was seen to read."""

    @property
    def sees_regions(self) -> bool:
        """Whether the interposed compilers saw a command that reads it for every file with a region."""
        return bool(self.append) and not self.unseen

    @property
    def whole(self) -> Plan:
        """The same without reuse: every command is compiled, the arguments find their place all the same."""
        return replace(self, reuse=(), other=(*self.other, *self.reuse))

    @cached_property
    def _known(self) -> dict[str, tuple[str, ...]]:
        return {command.key: command.depends for command in (*self.reuse, *self.append, *self.other)}

    def reads(self, command: Recorded) -> tuple[str, ...]:
        """The repository files that a command of a later build reads."""
        return command.depends or self._known.get(command.key, ())

    def missing(self, commands: Sequence[Recorded], files: Sequence[str]) -> tuple[str, ...]:
        """Those of `files`, with a region each, whose units a later build did not all compile again, with the candidate's
        arguments. Units are told apart by their sources alone: where else two builds differ in their words, they may."""
        again = Counter((c.places, file) for c in commands if c.action in ("a", "u") for file in self.reads(c))
        wanted = Counter((c.places, file) for c in self.append for file in c.depends)
        return tuple(
            file for file in files if any(again[unit] < times for unit, times in wanted.items() if unit[1] == file)
        )

    def outdated(self, commands: Sequence[Recorded], rewritten: Set[str]) -> tuple[str, ...]:
        """Which of the files that a later build rewrote were read by commands that it answered from the pristine build."""
        return tuple(sorted({file for c in commands if c.action == "r" for file in self.reads(c)} & rewritten))

    def shared_with(self, region_files: Sequence[str]) -> tuple[str, ...]:
        """Sources without a region that get the candidate's arguments too, because one command compiles both."""
        region = set(region_files)
        return tuple(
            sorted(
                {
                    source
                    for command in self.append
                    for source in command.sources
                    if len(command.sources) > 1
                    and PurePosixPath(source).name not in {PurePosixPath(file).name for file in region}
                }
            )
        )


def make_plan(commands: Sequence[Recorded], region_files: Sequence[str], unchanged: Set[str], fixed: bool) -> Plan:
    """Decide by what each command of the pristine build read. `unchanged` holds the files that the build found and left as
    they were: a command that also read one that it made or rewrote is never answered from the pristine build. `fixed`:
    every build sees the repository at the same path; else an object that was told where it lies is no good elsewhere."""
    regions = set(region_files)
    compiles = [command for command in commands if command.sources]
    known = [command for command in compiles if command.status == 0 and command.depends]
    append = tuple(command for command in known if regions & set(command.depends))
    reuse = tuple(
        command
        for command in known
        if not regions & set(command.depends)
        and set(command.depends) <= unchanged
        and not command.scratch
        and command.gives_one_object
        and (fixed or not any(word.startswith("-D") and REPO in word for word in command.argv))
    )
    planned = {command.key for command in (*append, *reuse)}
    other = tuple(command for command in compiles if command.key not in planned)
    read = {file for command in append for file in command.depends}
    return Plan(reuse, append, other, tuple(sorted(regions - read)))


def write_plan(plan: Plan, folder: Path, region_files: Sequence[str], objects: Mapping[str, bytes]) -> None:
    """Lay the plan out for the interposed compiler. `objects` holds what was kept of commands by its
    name; a command without all of its own is compiled again."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{command.key} a" for command in plan.append]
    lines += [f"{command.key} {'r' if command.kept <= set(objects) else 'c'}" for command in plan.reuse]
    lines += [f"{command.key} c" for command in plan.other]
    (folder / "plan").write_text("".join(line + "\n" for line in lines))
    (folder / "regions").write_bytes(b"".join(os.fsencode(file) + b"\n" for file in region_files))
    for name, data in objects.items():
        (folder / name).write_bytes(data)


def _value(argv: Sequence[str], options: Sequence[str]) -> str | None:
    """The value of the last of these options, as `value_of` in interpose.c reads it, joined or in a word of its own."""
    nvcc, found = PurePosixPath(argv[0]).name == "nvcc", None
    words = iter(argv[1:])
    for word in words:
        for option in options:
            joined = word.removeprefix(option)
            if word == option:
                found = next(words, None)
            elif joined == word:
                continue
            elif not (nvcc or option.startswith("--")):
                found = joined
            elif joined.startswith("="):
                found = joined[1:]
            else:
                continue
            break
    return found
