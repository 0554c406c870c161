"""Which tasks were tested before they judged anything: what `check` found, remembered by the task and its regions' files.

An acceptance holds for a task file, the files that hold its regions, and an architecture; when one of them changes, the
task counts as untested again. Nothing is forbidden without it: verdicts say so.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from kernelwright.state import replace_text, state_home
from kernelwright.task import Task


def _file(task: Task, arch: str) -> Path:
    digest = hashlib.sha256(f"{task.fingerprint} {arch}".encode())
    for name in sorted({region.file for region in task.region}):
        digest.update((task.root / name).read_bytes())
    return state_home() / "accepted" / f"{digest.hexdigest()[:32]}.json"


def remember(task: Task, arch: str, acceptance: dict[str, Any]) -> None:
    """Keep the JSON form of an acceptance; a later one of the same task replaces it."""
    file = _file(task, arch)
    file.parent.mkdir(exist_ok=True)
    replace_text(file, json.dumps(acceptance))


def remembered(task: Task, arch: str) -> dict[str, Any] | None:
    """What the last acceptance test of this very task found; None where there was none."""
    try:
        found = json.loads(_file(task, arch).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def is_accepted(task: Task, arch: str) -> bool:
    """Whether this very task was accepted on this machine, or on the one that it came from."""
    return bool((remembered(task, arch) or {}).get("accepted"))
