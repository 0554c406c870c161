"""Compiler interposition: what the build really compiled, and the plan that makes the next build cost one file.

Arbitrary Makefiles miss header dependencies, and a global flag also relaxes the checker. So our own small program
(`interpose.c`) stands before the compilers on PATH. The baseline's build writes down every command and every file that
it read; from that record a plan follows: commands that read no region file are answered with the object that the
pristine tree gave, commands that do read one get the candidate's compile arguments. The plan and its objects are
read-only to the build of a candidate. A build system that calls compilers by absolute path is not seen; then each build
is a full clean one, and the record says so.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernelwright.state import native
from kernelwright.toolchain import CompileCommand

REPO = "/kw/repo"
"""Where every build and run sees the repository, so that commands are alike from candidate to candidate. Without a
sandbox each workspace lies elsewhere, and what was recorded is told as if it lay here."""
COMPILERS = ("g++", "gcc", "c++", "cc", "clang++", "clang", "nvcc", "hipcc", "mpicxx", "mpicc", "mpic++")
SOURCE = re.compile(r".+\.(c|cc|cpp|cxx|c\+\+|C|cu|hip)")


@dataclass(frozen=True)
class Recorded:
    """One compiler call: what was asked, what came of it, which repository files it read."""

    argv: tuple[str, ...]
    cwd: str
    status: int
    action: str
    """`c` compiled as asked, `a` compiled with the candidate's arguments, `r` answered from the pristine build."""
    depends: tuple[str, ...]

    @property
    def key(self) -> str:
        return command_key(self.cwd, self.argv)

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(word for word in self.argv[1:] if SOURCE.fullmatch(word) and not word.startswith("-"))

    @property
    def output(self) -> str | None:
        return _value(self.argv, "-o")

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
    """The `commands` file of a build. `depends` holds the dependency lists by file name; `repo` is the path of the repository
    as the build saw it: only files below it are kept, relative to it; folders and words are told as if it were `REPO`."""
    fields = data.decode(errors="surrogateescape").split("\0")
    found, at = [], 0
    while at + 6 <= len(fields) and fields[at].isdecimal():
        argc = int(fields[at])
        status, action, _program, cwd, listing = fields[at + 1 : at + 6]
        argv = tuple(word.replace(repo, REPO) for word in fields[at + 6 : at + 6 + argc])
        read = _depends(depends.get(listing, b""), cwd, repo)
        found.append(Recorded(argv, cwd.replace(repo, REPO), int(status), action, read))
        at += 6 + argc
    return found


def _depends(rule: bytes, cwd: str, repo: str) -> tuple[str, ...]:
    text = rule.decode(errors="surrogateescape").replace("\\\n", " ")
    words = [word.replace("\\ ", " ") for word in re.findall(r"(?:\\ |[^\s])+", text)]
    paths = set()
    for word in words:
        if word.endswith(":"):
            continue
        path = PurePosixPath(_normal(str(PurePosixPath(cwd) / word)))
        if path.is_relative_to(repo):
            paths.add(str(path.relative_to(repo)))
    return tuple(sorted(paths))


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
    unseen: tuple[str, ...] = ()
    """Files with a region that no command was seen to read."""

    @property
    def sees_regions(self) -> bool:
        """Whether the interposed compilers saw a command that reads it for every file with a region."""
        return bool(self.append) and not self.unseen

    def missing(self, commands: Sequence[Recorded], files: Sequence[str]) -> tuple[str, ...]:
        """Those of `files`, with a region each, that a later build did not compile again as the pristine one had."""
        again = {(command.cwd, command.sources, command.output) for command in commands if command.action == "a"}
        return tuple(
            file
            for file in files
            if not all((c.cwd, c.sources, c.output) in again for c in self.append if file in c.depends)
        )

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


def make_plan(commands: Sequence[Recorded], region_files: Sequence[str], pristine: set[str]) -> Plan:
    """Decide by what each command of the pristine build read. `pristine` holds the repository's files: a command that
    also read a file made by the build is never answered from the pristine build, since that file may change."""
    regions = set(region_files)
    compiles = [command for command in commands if command.status == 0 and command.sources and command.depends]
    append = tuple(command for command in compiles if regions & set(command.depends))
    reuse = tuple(
        command
        for command in compiles
        if not regions & set(command.depends)
        and set(command.depends) <= pristine
        and command.output is not None
        and len(command.sources) == 1
        and {"-c", "-dc", "--compile", "--device-c"} & set(command.argv)
    )
    read = {file for command in append for file in command.depends}
    return Plan(reuse, append, tuple(sorted(regions - read)))


def write_plan(plan: Plan, folder: Path, objects: dict[str, bytes]) -> None:
    """Lay the plan out for the interposed compiler. `objects` maps `KEY.o` and `KEY.d` to their bytes; a command
    without its object is compiled again."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{command.key} a" for command in plan.append]
    lines += [f"{command.key} r" for command in plan.reuse if f"{command.key}.o" in objects]
    (folder / "plan").write_text("".join(line + "\n" for line in lines))
    for name, data in objects.items():
        (folder / name).write_bytes(data)


def side_outputs(command: Recorded) -> dict[str, str]:
    """What a reusable command left in the workspace: `KEY.o` and `KEY.d` → path relative to the command's folder."""
    output = command.output
    if output is None:
        return {}
    found = {f"{command.key}.o": output}
    if {"-MD", "-MMD"} & set(command.argv):
        found[f"{command.key}.d"] = _value(command.argv, "-MF") or str(PurePosixPath(output).with_suffix(".d"))
    return found


def _value(argv: Sequence[str], option: str) -> str | None:
    at = argv.index(option) if option in argv else -1
    return argv[at + 1] if 0 <= at < len(argv) - 1 else None
