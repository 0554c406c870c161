"""What the documents say of task files is true: their examples are task files, and no key is left out."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kernelwright import task as contract
from kernelwright.task import Task

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "task-file.md").read_text(encoding="utf-8")
MINIMAL = {
    "schema": 1,
    "name": "least",
    "language": "cpp",
    "region": [{"name": "r", "file": "a.cpp", "kernel": "f"}],
    "build": {"command": "make", "artifact": "a"},
    "run": [{"name": "run", "command": "./a"}],
    "time": {"source": "wall"},
}


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["README.md", "docs/task-file.md"])
def test_a_whole_task_file_in_a_document_is_one(document: str) -> None:
    found = blocks((ROOT / document).read_text(encoding="utf-8"), "toml")
    assert found
    for text in found:
        Task.model_validate(tomllib.loads(text))


@pytest.mark.parametrize("text", blocks(PAGE, "toml fragment"))
def test_a_fragment_fits_into_a_task_file(text: str) -> None:
    data: dict[str, Any] = tomllib.loads(text)
    if "run" in data:
        data["run"] = [*MINIMAL["run"], *data["run"]]  # type: ignore[misc]
    Task.model_validate({**MINIMAL, **data})


def test_every_key_of_the_contract_is_explained() -> None:
    models = [thing for thing in vars(contract).values() if isinstance(thing, type) and issubclass(thing, BaseModel)]
    keys = {info.alias or name for model in models for name, info in model.model_fields.items()} - {"path"}
    told = set(re.findall(r"[\w]+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert keys - told == set()


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_promise_points_to_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
    promises = re.findall(r"^- .*$", page, re.MULTILINE)
    assert promises
    for promise in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", promise)
        assert named, promise
        for file, test in named:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"def {test or 'test_'}", text), f"{file}::{test}"
