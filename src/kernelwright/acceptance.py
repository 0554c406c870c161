"""Which tasks were tested before they judged anything: what `check` found, remembered by the task and its regions' files.

An acceptance holds for a task file, the files that hold its regions, and an architecture; when one of them changes, the
task counts as untested again. Nothing is forbidden without it: verdicts say so.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from kernelwright.execute import Workshop
from kernelwright.state import replace_text, state_home


def _file(shop: Workshop) -> Path:
    digest = hashlib.sha256(f"{shop.task.fingerprint} {shop.arch}".encode())
    for name in sorted({region.file for region in shop.task.region}):
        digest.update((shop.task.root / name).read_bytes())
    return state_home() / "accepted" / f"{digest.hexdigest()[:32]}.json"


def remember(shop: Workshop, acceptance: dict[str, Any]) -> None:
    """Keep the JSON form of an acceptance; a later one of the same task replaces it."""
    file = _file(shop)
    file.parent.mkdir(exist_ok=True)
    replace_text(file, json.dumps(acceptance))


def is_accepted(shop: Workshop) -> bool:
    """Whether this very task was accepted on this machine."""
    try:
        return bool(json.loads(_file(shop).read_text(encoding="utf-8"))["accepted"])
    except (OSError, ValueError, KeyError):
        return False
