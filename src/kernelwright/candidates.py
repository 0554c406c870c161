"""Candidates as people hand them over and take them away: JSON files, patches, git revisions; and the patch of a result.

Whatever the form, only region text comes through: a patch or revision that changes anything else is refused with the
place it changes. A result is written into the user's files without git, each file replaced as a whole.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelwright.errors import CandidateError, InfrastructureError, UsageError
from kernelwright.source import Span, region_spans, splice, to_lf
from kernelwright.task import Task
from kernelwright.task_file import read_bytes, read_text
from kernelwright.trace import Candidate

SHAPE = '{"final_code": TEXT or {REGION: TEXT}, "explanation": TEXT, "compile_args": [FLAG, …]}'
NAMES_THAT_GIT_QUOTES = frozenset('"\\') | {chr(code) for code in (*range(32), 127)}


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    final_code: str | dict[str, str]
    explanation: str = ""
    compile_args: Annotated[list[str], Field(max_length=200)] = []


def read_candidate(task: Task, path: Path) -> Candidate:
    """A candidate's JSON file. Text alone, or the word "original", only where the task has one region or none is meant."""
    text = read_text(path, "candidate", CandidateError, "a candidate's JSON file", SHAPE)
    try:
        data = _File.model_validate(json.loads(text))
    except ValidationError as error:
        first = max(error.errors(include_url=False), key=lambda mistake: len(mistake["loc"]))
        where = ".".join(str(part) for part in first["loc"] if part not in ("str", "dict[str,str]")) or "the file"
        raise CandidateError(f"{path}: {where}: {first['msg']}", SHAPE, "kernelwright verify --help") from None
    except (ValueError, RecursionError) as error:
        raise CandidateError(f"{path} is not JSON: {error}", SHAPE, "a JSON library, to quote the code") from None
    return from_code(task, data.final_code, data.compile_args, data.explanation)


def from_code(task: Task, code: str | Mapping[str, str], compile_args: Sequence[str], explanation: str) -> Candidate:
    """The candidate that `final_code` means. Raises CandidateError for an unknown region, or text for several."""
    names = [region.name for region in task.region]
    if isinstance(code, str):
        if code.strip() == "original":
            return Candidate({}, tuple(compile_args), explanation)
        if len(names) != 1:
            raise CandidateError(
                "final_code is one text, but the task has several regions",
                f"an object with {', '.join(names)}",
                '{"final_code": {"REGION": TEXT}}',
            )
        code = {names[0]: code}
    unknown = sorted(set(code) - set(names))
    if unknown:
        near = difflib.get_close_matches(unknown[0], names, 1, 0.3) or names[:1]
        raise CandidateError(f"the task has no region {unknown[0]!r}", f"one of {', '.join(names)}", repr(near[0]))
    return Candidate(dict(code), tuple(compile_args), explanation)


def _git() -> str:
    found = shutil.which("git")
    if found is None:
        raise InfrastructureError(
            "git is not installed", "the program git on PATH", "apt-get install git, or a candidate as a JSON file"
        )
    return found


def from_patch(task: Task, path: Path) -> Candidate:
    """The candidate that a unified diff (`git diff`) of the repository makes. Raises CandidateError."""
    expected, try_ = "a unified diff of the repository", "git diff > my.patch"
    patch = read_bytes(path, "patch", CandidateError, expected, try_)
    known = {region.file for region in task.region}
    with tempfile.TemporaryDirectory() as folder:
        for file in known:
            target = Path(folder) / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((task.root / file).read_bytes())
        listed = _git_apply(folder, patch, "--numstat", "-z")
        if listed.returncode != 0:
            raise CandidateError(f"{path} is no patch that can be read: {_words(listed.stderr)}", expected, try_)
        changed = {_named(entry) for entry in listed.stdout.split(b"\0")[:-1]} - {""}
        above = _folders_above(task, changed)
        if strangers := sorted(file for file in changed if file.removeprefix(above) not in known):
            raise CandidateError(
                f"{path} changes {strangers[0]}, which holds no region",
                f"changes in {', '.join(sorted(known))} only",
                "git diff -- " + " ".join(sorted(known)),
            )
        done = _git_apply(folder, patch, f"-p{1 + above.count('/')}")
        if done.returncode != 0 or not all((Path(folder) / file).is_file() for file in known):
            why = f"does not apply: {_words(done.stderr)}" if done.returncode else "removes a region's file"
            raise CandidateError(f"{path} {why}", "a patch against the repository as it is now", try_)
        return _from_files(task, {file: (Path(folder) / file).read_bytes() for file in known}, str(path))


def _named(entry: bytes) -> str:
    """The file of an entry of `git apply --numstat -z`; a renamed file's names are entries of their own."""
    return entry.rsplit(b"\t", 1)[-1].decode(errors="surrogateescape")


def _git_apply(folder: str, patch: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Away from the user's repository and settings, so that only the files of `folder` are read and written."""
    return subprocess.run(
        [_git(), "apply", "--whitespace=nowarn", *options, "-"],
        cwd=folder,
        input=patch,
        capture_output=True,
        env={"PATH": os.defpath, "LC_ALL": "C", "HOME": folder, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)},
    )


def _words(said: bytes) -> str:
    return " ".join(said.decode(errors="replace").split())[:600]


def _folders_above(task: Task, changed: set[str]) -> str:
    """Where the task's root lies in its checkout (`git diff` names files from there), if all of `changed` lies in it."""
    done = subprocess.run([_git(), "-C", str(task.root), "rev-parse", "--show-prefix"], capture_output=True)
    prefix = done.stdout.decode(errors="surrogateescape").removesuffix("\n") if done.returncode == 0 else ""
    return prefix if prefix and all(file.startswith(prefix) for file in changed) else ""


def from_revision(task: Task, revision: str) -> Candidate:
    """The candidate that the regions' files of a git revision make. Raises CandidateError."""
    files = {}
    for file in {region.file for region in task.region}:
        done = subprocess.run(
            [_git(), "-C", str(task.root), "cat-file", "--filters", f"{revision}:./{file}"], capture_output=True
        )
        if done.returncode != 0 or revision.startswith("-"):
            raise CandidateError(
                f"git cannot show {file} of {revision!r}: {_words(done.stderr)}",
                "a revision of the task's repository that holds the file",
                "git log --oneline -- " + file,
            )
        files[file] = done.stdout
    return _from_files(task, files, revision)


def _from_files(task: Task, files: Mapping[str, bytes], where: str) -> Candidate:
    spans = region_spans(task)
    code: dict[str, str] = {}
    for file, new in files.items():
        here = sorted((span for span in spans.values() if span.file == file), key=lambda span: span.start)
        for span, text in zip(here, _region_texts((task.root / file).read_bytes(), new, here, where), strict=True):
            if text != span.text:
                code[span.region] = text
    return Candidate(code)


def _region_texts(old: bytes, new: bytes, spans: Sequence[Span], where: str) -> list[str]:
    """The regions' texts in a whole new file whose other text must be the old one's."""
    fixed = [
        old[a:b]
        for a, b in zip([0, *(span.end for span in spans)], [*(span.start for span in spans), len(old)], strict=True)
    ]
    outside = CandidateError(
        f"{where} changes {spans[0].file} outside the regions",
        "changes inside the regions only",
        f"look near line {_first_difference(old, new)}; a region that covers it would do too",
    )
    if not new.startswith(fixed[0]) or not new.endswith(fixed[-1]) or len(new) < len(fixed[0]) + len(fixed[-1]):
        raise outside
    texts, at = [], len(fixed[0])
    for between in fixed[1:-1]:
        found = new.find(between, at)
        if found < 0:
            raise outside
        texts.append(to_lf(new[at:found]))
        at = found + len(between)
    if at > len(new) - len(fixed[-1]):
        raise outside
    return [*texts, to_lf(new[at : len(new) - len(fixed[-1])])]


def _first_difference(old: bytes, new: bytes) -> int:
    left, right = old.splitlines(), new.splitlines()
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False), 1) if a != b), min(len(left), len(right)) + 1
    )


def changed_files(task: Task, candidate: Candidate) -> dict[str, tuple[bytes, bytes]]:
    """Each file of the repository that the candidate changes: its bytes now and then."""
    spans = region_spans(task)
    changed = {}
    for file in sorted({span.file for span in spans.values()}):
        old = (task.root / file).read_bytes()
        texts = {span: candidate.code[name] for name, span in spans.items() if name in candidate.code}
        new = splice(old, {span: text for span, text in texts.items() if span.file == file})
        if new != old:
            changed[file] = (old, new)
    return changed


def patch_of(task: Task, candidate: Candidate) -> str:
    """The candidate as a patch that `git apply` takes at the repository's root; empty where no text changes."""
    return "".join(_diff(file, old, new) for file, (old, new) in changed_files(task, candidate).items())


def _diff(file: str, old: bytes, new: bytes) -> str:
    names = [_quoted(f"{side}/{file}") for side in "ab"]
    out = [f"diff --git {names[0]} {names[1]}\n"]
    # Git ends a name with spaces by a tab.
    before, after = (name + ("\t" if " " in file else "") for name in names)
    for line in difflib.unified_diff(_lines(old), _lines(new), before, after):
        out.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(out)


def _lines(data: bytes) -> list[str]:
    """Lines as git counts them: ended by a line feed alone."""
    lines = [line.decode(errors="surrogateescape") + "\n" for line in data.split(b"\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _quoted(name: str) -> str:
    """A file's name as git writes it into a patch, where it holds characters that would end it."""
    if not NAMES_THAT_GIT_QUOTES & set(name):
        return name
    octal = "".join(
        ("\\" + char if char in '"\\' else f"\\{ord(char):03o}") if char in NAMES_THAT_GIT_QUOTES else char
        for char in name
    )
    return f'"{octal}"'


def written_over(task: Task, candidate: Candidate) -> list[str]:
    """Put the candidate into the user's files; returns their names. Each is replaced as a whole, keeping its mode, or not
    at all. Raises UsageError where one cannot be written."""
    changed = changed_files(task, candidate)
    for file, (_, new) in changed.items():
        try:
            _replace(task.root / file, new)
        except OSError as error:
            raise UsageError(
                f"{task.root / file} cannot be written: {error.strerror}",
                "a writable repository",
                "git apply with the run's patch in a copy that can be written",
            ) from None
    return list(changed)


def _replace(path: Path, data: bytes) -> None:
    status = path.stat()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(status.st_mode)
        with contextlib.suppress(PermissionError):
            os.chown(name, status.st_uid, status.st_gid)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
