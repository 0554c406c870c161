"""Reading CMakeLists.txt files without running CMake: which executable a source goes into, and what a test starts.

Enough of the language for plain projects: `set`, `file(GLOB …)`, `add_executable`, `add_library`,
`target_link_libraries`, `target_sources`, `add_subdirectory` and `add_test`. What generator expressions and functions of
the project's own do is not seen; a real build (`kernelwright.init.running`) says whether the guess was right.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

LISTS = "CMakeLists.txt"
_MOST_LISTS = 200
_COMPILED = (".c", ".cc", ".cpp", ".cxx", ".C", ".cu", ".hip")
"""What `aux_source_directory` takes of a folder."""
_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*+\"|\([^()]*\))*+)\)")
_WORD = re.compile(r"\"((?:[^\"\\]|\\.)*+)\"|([^\s;\"]+)")
_EXECUTABLES = ("add_executable", "cuda_add_executable", "hip_add_executable")
_LIBRARIES = ("add_library", "cuda_add_library", "hip_add_library")
_NO_SOURCE = {"WIN32", "MACOSX_BUNDLE", "EXCLUDE_FROM_ALL", "STATIC", "SHARED", "MODULE", "OBJECT", "INTERFACE",
              "PUBLIC", "PRIVATE", "SYSTEM", "BEFORE", "AFTER", "IMPORTED", "GLOBAL", "ALIAS"}  # fmt: skip


@dataclass
class Target:
    """An executable or library: `folder` is that of its CMakeLists.txt, sources are whole paths."""

    name: str
    folder: Path
    program: bool
    output: str
    """The file's name, where a property changes it."""
    sources: set[Path] = field(default_factory=set)
    links: set[str] = field(default_factory=set)


@dataclass
class Project:
    """What the CMakeLists.txt files from `folder` downwards say."""

    folder: Path
    includes: set[Path] = field(default_factory=set)
    """Folders in which headers are looked for."""
    targets: dict[str, Target] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    tests: list[tuple[str, ...]] = field(default_factory=list)
    """Commands of `add_test`: a target or program, and its arguments."""
    text: str = ""
    lists: int = 0
    """How many CMakeLists.txt were read."""
    runtime_folder: str | None = None
    """Where programs are put, relative to the build folder, if the project says so."""

    def programs(self, file: Path) -> list[Target]:
        """The executables that `file` goes into, those that list it themselves first; all where none is known to."""
        programs = [target for target in self.targets.values() if target.program]
        direct = [target for target in programs if file in target.sources]
        through = [target for target in programs if target not in direct and file in self.sources(target)]
        beside = [target for target in programs if any(source.parent == file.parent for source in target.sources)]
        return [*direct, *through] or beside or programs

    def sources(self, target: Target) -> set[Path]:
        """The sources of a target and of the libraries that it links, directly or not."""
        found = set(target.sources)
        seen: set[str] = set()
        left = set(target.links)
        while left:
            name = left.pop()
            if name in seen or name not in self.targets:
                continue
            seen.add(name)
            found |= self.targets[name].sources
            left |= self.targets[name].links
        return found

    def artifact(self, target: Target) -> str:
        """Where the program lies after a build in `build`, relative to the project's folder."""
        own = target.folder.relative_to(self.folder).as_posix()
        below = own if self.runtime_folder is None else self.runtime_folder
        return os.path.normpath(f"build/{below}/{target.output}")

    def arguments(self, target: Target) -> list[tuple[str, ...]]:
        """The arguments with which tests start a target."""
        named = {target.name, target.output, f"$<TARGET_FILE:{target.name}>"}
        return [test[1:] for test in self.tests if test and (test[0] in named or PurePosixPath(test[0]).name in named)]


def project_above(file: Path, root: Path) -> Path | None:
    """The folder of the project that `file` belongs to: the nearest with `project(...)`, none above `root`."""
    for folder in file.parents:
        lists = folder / LISTS
        if lists.is_file() and re.search(r"(?im)^\s*project\s*\(", _plain(lists)):
            return folder
        if folder == root:
            return None
    return None


def read_project(folder: Path) -> Project:
    """Read the CMakeLists.txt of `folder` and those that it adds."""
    project = Project(folder)
    name = re.search(r"(?i)\bproject\s*\(\s*([\w.+-]+)", _plain(folder / LISTS))
    names = {"PROJECT_NAME": name[1] if name else "main", "CMAKE_PROJECT_NAME": name[1] if name else "main"}
    _read(project, folder, {**names, "CMAKE_SOURCE_DIR": str(folder), "PROJECT_SOURCE_DIR": str(folder)})
    return project


def _plain(path: Path) -> str:
    text = re.sub(r"#\[(=*)\[.*?\]\1\]", "", path.read_text(encoding="utf-8", errors="replace"), flags=re.S)
    return re.sub(r"(?m)(?<!\\)#.*$", "", text)


def _read(project: Project, folder: Path, variables: dict[str, str]) -> None:
    project.lists += 1
    if project.lists > _MOST_LISTS or not (folder / LISTS).is_file():
        return
    text = _plain(folder / LISTS)
    project.text += text
    variables = {**variables, "CMAKE_CURRENT_SOURCE_DIR": str(folder), "CMAKE_CURRENT_LIST_DIR": str(folder)}
    for found in _CALL.finditer(text):
        words = list(_words(found[2], variables))
        if words:
            _call(project, folder, found[1].lower(), words, variables)


def _words(text: str, variables: dict[str, str]) -> Iterator[str]:
    for quoted, plain in _WORD.findall(text):
        whole = _expanded(quoted or plain, variables)
        yield from (word for word in ([whole] if quoted else whole.split(";")) if word)


def _expanded(text: str, variables: dict[str, str]) -> str:
    for _ in range(8):
        after = re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found[1], ""), text)
        if after == text or len(after) > 100_000:
            break
        text = after
    return text


def _call(project: Project, folder: Path, name: str, words: Sequence[str], variables: dict[str, str]) -> None:
    match name:
        case "set":
            values = words[1 : words.index("CACHE")] if "CACHE" in words else words[1:]
            variables[words[0]] = ";".join(word for word in values if word != "PARENT_SCOPE")
            if words[0] in ("CMAKE_RUNTIME_OUTPUT_DIRECTORY", "EXECUTABLE_OUTPUT_PATH"):
                project.runtime_folder = _from_build(project.folder, words[1] if len(words) > 1 else "")
        case "list" if len(words) > 2 and words[0].upper() == "APPEND":
            variables[words[1]] = ";".join(filter(None, [variables.get(words[1], ""), *words[2:]]))
        case "file" if len(words) > 2 and words[0].startswith("GLOB"):
            variables[words[1]] = ";".join(str(path) for path in _globbed(folder, words[0], words[2:]))
        case "aux_source_directory" if len(words) > 1:
            beside = sorted(path for path in (folder / words[0]).glob("*") if path.suffix in _COMPILED)
            variables[words[1]] = ";".join(map(str, beside))
        case "include_directories":
            project.includes |= {(folder / word).resolve() for word in words if word not in _NO_SOURCE}
        case "find_package":
            project.packages.add(words[0].lower())
        case "add_subdirectory":
            _read(project, (folder / words[0]).resolve(), variables)
        case "add_test":
            rest = words[words.index("COMMAND") + 1 :] if "COMMAND" in words else words[1:]
            stop = next((at for at, word in enumerate(rest) if word in ("WORKING_DIRECTORY", "CONFIGURATIONS")), None)
            project.tests.append(tuple(rest[:stop]))
        case _:
            _target_call(project, folder, name, words)


def _target_call(project: Project, folder: Path, name: str, words: Sequence[str]) -> None:
    if name in (*_EXECUTABLES, *_LIBRARIES):
        if not {"IMPORTED", "ALIAS"}.intersection(words):
            target = Target(words[0], folder, name in _EXECUTABLES, words[0])
            target.sources = _sources(folder, words[1:])
            project.targets[words[0]] = target
        return
    known = project.targets.get(words[0])
    if known is None:
        return
    if name == "target_sources":
        known.sources |= _sources(folder, words[1:])
    elif name == "target_link_libraries":
        known.links |= set(words[1:]) - _NO_SOURCE
    elif name == "target_include_directories":
        project.includes |= {
            (folder / word).resolve() for word in words[1:] if word not in _NO_SOURCE and "$<" not in word
        }
    elif name == "set_target_properties" and "OUTPUT_NAME" in words[:-1]:
        known.output = words[words.index("OUTPUT_NAME") + 1]


def _sources(folder: Path, words: Sequence[str]) -> set[Path]:
    return {(folder / word).resolve() for word in words if word not in _NO_SOURCE and "$<" not in word}


def _globbed(folder: Path, kind: str, words: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for word in words:
        pattern = word.removeprefix(f"{folder}/")
        if word in ("CONFIGURE_DEPENDS", "RELATIVE") or pattern.startswith("/") or ".." in pattern:
            continue
        walk = folder.rglob if kind == "GLOB_RECURSE" else folder.glob
        found += sorted(walk(pattern))
    return found


def _from_build(project: Path, text: str) -> str:
    """A folder for programs as seen from the build folder, whose own variables stand for nothing here."""
    if Path(text).is_relative_to(project):
        return os.path.relpath(text, project / "build")
    return text.strip("/") or "."
