"""Task files with values of other types, keys too many or too few, of other sizes and letters: a task or one message."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from targets import TASK, task_file

from kernelwright.errors import TaskError
from kernelwright.task_file import load_task

SOUND: dict[str, Any] = tomllib.loads(TASK)
SCALARS = st.one_of(
    st.text(max_size=20), st.integers(), st.booleans(), st.floats(),
    st.sampled_from(["", ".", "..", "/", "a/../b", "\0", "x" * 5000, "sm_90", "(", "(?P<a>x)", "a{9999999999999}", "(" * 5000,
                     "'", "$(rm)", "{flags}", "a\u202eb", "✓", "-O2;x", "1e999", "reference", "regex", "csv", "./app"]),
    st.sampled_from([0, -1, 2**63, 10**400, math.nan, math.inf, -0.0, 1e-320]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "a", "", "ü"]), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = (
    "name", "lines", "markers", "kernel", "unit_group", "unit", "tunables", "env", "hidden", "siblings", "repo", "workdir",
    "aggregate", "min", "rel", "role", "divide_by", "needs", "floor", "probes", "column", "header", "expand_macros",
)  # fmt: skip


def toml(value: object) -> str:
    """A value in TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def document(data: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in data.items()).encode(errors="replace")


@st.composite
def changed(draw: st.DrawFn, value: Any = None) -> Any:
    """The sound task with one or more places changed."""
    data = json.loads(json.dumps(SOUND))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = data
        while True:
            keys = place if isinstance(place, dict) else range(len(place))
            below = [key for key in keys if isinstance(place[key], dict | list) and place[key]]
            if not below or draw(st.booleans()):
                break
            place = place[draw(st.sampled_from(below))]
        if isinstance(place, list):
            place[draw(st.integers(0, len(place) - 1))] = draw(VALUES)
        elif draw(st.booleans()) and place:
            del place[draw(st.sampled_from(sorted(place)))]
        else:
            place[draw(st.sampled_from([*sorted(place), *KEYS]))] = draw(VALUES)
    return data


@settings(settings.get_profile("fuzz"))
@given(data=changed())
def test_a_changed_task_file_is_a_task_or_one_message(data: dict[str, Any]) -> None:
    task_file(document(data))


@settings(settings.get_profile("fuzz"))
@given(key=st.sampled_from(sorted(SOUND)), value=VALUES)
@example(key="repo", value="x" * 5000)
@example(key="siblings", value=["y" * 300])
@example(key="time", value={"source": "regex", "pattern": "(" * 5000})
@example(key="time", value={"source": "regex", "pattern": "(a{99999999999999999999})"})
@example(key="time", value={"source": "regex", "pattern": "(a)[[a]"})
def test_any_value_of_a_key_is_a_task_or_one_message(key: str, value: object) -> None:
    task_file(document({**SOUND, key: value}))


def test_the_sound_task_is_read_in_this_form_too() -> None:
    task_file(document(SOUND))


def test_a_loop_of_links_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "smooth.cpp").symlink_to("other.cpp")
    (tmp_path / "other.cpp").symlink_to("smooth.cpp")
    (tmp_path / "kernelwright.toml").write_text(TASK)
    with pytest.raises(TaskError):
        load_task(tmp_path)
