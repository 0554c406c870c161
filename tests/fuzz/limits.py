"""Run something with a limit that only a hang passes: a match or a parse in C cannot be interrupted, a process can."""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Callable
from typing import Any

HANG_S = 10
"""Processor time, some ten times what the slowest of these inputs takes; a busy machine does not count."""


def ends(function: Callable[..., Any], *arguments: Any) -> None:
    """Call `function` in a process of its own; an exception there, or no end within `HANG_S`, fails the test."""
    process = multiprocessing.get_context("fork").Process(target=_limited, args=(function, arguments))
    process.start()
    process.join()
    assert process.exitcode != -signal.SIGXCPU, f"no end within {HANG_S} s of processor time"
    assert process.exitcode == 0, f"exit code {process.exitcode}"


def _limited(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (HANG_S, HANG_S + 5))
    function(*arguments)
