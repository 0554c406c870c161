"""Candidates as people hand them over and take them away: JSON files, patches, git revisions; and the patch of a result.

Whatever the form, only region text comes through: a patch or revision that changes anything else is refused with the
place it changes.
"""

from __future__ import annotations

import difflib
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from kernelwright.errors import CandidateError
from kernelwright.source import Span, region_spans, splice, to_lf
from kernelwright.task import Task
from kernelwright.trace import Candidate


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    final_code: str | dict[str, str]
    explanation: str = ""
    compile_args: Annotated[list[str], Field(max_length=200)] = []


def read_candidate(task: Task, path: Path) -> Candidate:
    """A candidate's JSON file. Text alone, or the word "original", only where the task has one region or none is meant."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CandidateError(f"{path} cannot be read: {error}", "a candidate's JSON file") from None
    try:
        data = _File.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise CandidateError(f"{path} is not JSON: {error}", '{"final_code": …, "compile_args": […]}') from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise CandidateError(f"{path}: {where}: {first['msg']}", '{"final_code": …, "compile_args": […]}') from None
    return from_code(task, data.final_code, data.compile_args, data.explanation)


def from_code(task: Task, code: str | Mapping[str, str], compile_args: Sequence[str], explanation: str) -> Candidate:
    """The candidate that `final_code` means. Raises CandidateError for an unknown region, or text for several."""
    names = [region.name for region in task.region]
    if isinstance(code, str):
        if code.strip() == "original":
            return Candidate({}, tuple(compile_args), explanation)
        if len(names) != 1:
            raise CandidateError("final_code is one text, but the task has several regions", f"an object with {names}")
        code = {names[0]: code}
    unknown = sorted(set(code) - set(names))
    if unknown:
        raise CandidateError(f"the task has no region {unknown[0]!r}", f"one of {', '.join(names)}")
    return Candidate(dict(code), tuple(compile_args), explanation)


def from_patch(task: Task, path: Path) -> Candidate:
    """The candidate that a unified diff (`git diff`) of the repository makes. Raises CandidateError."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        patched = {file.path for file in PatchSet(text)}
    except (OSError, UnidiffParseError) as error:
        raise CandidateError(
            f"{path} is no patch that can be read: {error}", "a unified diff, as of git diff"
        ) from None
    known = {region.file for region in task.region}
    if strangers := sorted(patched - known):
        raise CandidateError(
            f"{path} changes {strangers[0]}, which holds no region", f"changes in {', '.join(sorted(known))}"
        )
    with tempfile.TemporaryDirectory() as folder:
        for file in known:
            target = Path(folder) / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((task.root / file).read_bytes())
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            cwd=folder,
            input=path.read_bytes(),
            capture_output=True,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": folder},
        )
        if done.returncode != 0:
            raise CandidateError(
                f"{path} does not apply: {done.stderr.decode(errors='replace').strip()}",
                "a patch against the repository as it is now",
            )
        return _from_files(task, {file: (Path(folder) / file).read_bytes() for file in known}, str(path))


def from_revision(task: Task, revision: str) -> Candidate:
    """The candidate that the regions' files of a git revision make. Raises CandidateError."""
    files = {}
    for file in {region.file for region in task.region}:
        done = subprocess.run(["git", "-C", str(task.root), "show", f"{revision}:./{file}"], capture_output=True)
        if done.returncode != 0:
            raise CandidateError(
                f"git cannot show {file} of {revision!r}: {done.stderr.decode(errors='replace').strip()}",
                "a revision of the task's repository that holds the file",
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
        f"the first difference is near line {_first_difference(old, new)}",
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


def patch_of(task: Task, candidate: Candidate) -> str:
    """The candidate as a patch that `git apply` takes at the repository's root; empty where no text changes."""
    spans = region_spans(task)
    parts = []
    for file in sorted({span.file for span in spans.values()}):
        old = (task.root / file).read_bytes()
        new = splice(
            old,
            {
                span: candidate.code[name]
                for name, span in spans.items()
                if span.file == file and name in candidate.code
            },
        )
        if new != old:
            parts.append(_diff(file, old, new))
    return "".join(parts)


def _diff(file: str, old: bytes, new: bytes) -> str:
    def lines(data: bytes) -> list[str]:
        return [line.decode(errors="surrogateescape") for line in data.splitlines(keepends=True)]

    out = [f"diff --git a/{file} b/{file}\n"]
    for line in difflib.unified_diff(lines(old), lines(new), f"a/{file}", f"b/{file}"):
        out.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(out)
