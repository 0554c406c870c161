"""Sandboxes by name. `bubblewrap` unless asked otherwise; `none` is never chosen in its place."""

from __future__ import annotations

from kernelwright.errors import UsageError
from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.bubblewrap import BubblewrapSandbox
from kernelwright.sandbox.none import NoSandbox

BACKENDS: dict[str, type[BubblewrapSandbox] | type[NoSandbox]] = {"bubblewrap": BubblewrapSandbox, "none": NoSandbox}


def open_sandbox(name: str = "bubblewrap") -> Sandbox:
    """Raises SandboxUnavailable where its program is missing; whether it works is `BubblewrapSandbox.probe`'s to say."""
    if name not in BACKENDS:
        raise UsageError(f"there is no sandbox {name!r}", f"one of {', '.join(BACKENDS)}", "bubblewrap")
    return BACKENDS[name]()
