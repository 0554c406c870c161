"""Options that several commands share, and the ways in which they open a sandbox, show progress and print JSON."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from kernelwright.errors import UsageError
from kernelwright.pool.config import PoolConfig
from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.backends import NAMES as SANDBOXES
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.state import state_home
from kernelwright.trace import Message
from kernelwright.trial import Progress

T = TypeVar("T")

INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

WIDTH_ELSEWHERE = 200
"""Columns of what is written into a file or a pipe, where nobody needs lines to end at a window's edge."""


console = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


class Number(click.FloatRange):
    """A range that holds numbers only: nan compares with nothing, and so would pass any bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def widen() -> None:
    """Make both consoles wide where they are no terminals."""
    for each in (console, stderr):
        if not each.is_terminal and "COLUMNS" not in os.environ:
            each.width = WIDTH_ELSEWHERE


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")


@dataclass(frozen=True)
class Isolation:
    """The sandbox that was asked for."""

    sandbox: str = "auto"
    image: str | None = None

    @property
    def words(self) -> str:
        """As it is typed; empty for the default, else with a space before it."""
        if self.sandbox == "none":
            return " --no-sandbox"
        chosen = f" --sandbox {self.sandbox}" if self.sandbox != "auto" else ""
        return chosen + (f" --image {shlex.quote(self.image)}" if self.image is not None else "")


def isolation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--sandbox, --image and --no-sandbox, which the command gets as one `isolation`."""

    @functools.wraps(command)
    def with_isolation(*arguments: Any, sandbox: str, image: str | None, no_sandbox: bool, **named: Any) -> Any:
        if no_sandbox and sandbox not in ("auto", "none"):
            raise UsageError(f"--no-sandbox beside --sandbox {sandbox}", "one of the two", f"--sandbox {sandbox}")
        chosen = Isolation("none" if no_sandbox else sandbox, image)
        return command(*arguments, isolation=chosen, **named)

    which = click.option(
        "--sandbox", type=click.Choice(SANDBOXES), default="auto", metavar="NAME",
        help="bubblewrap, namespaces, podman, docker, apptainer (these three with --image) or none. Default: bubblewrap, "
        "else namespaces; with --image the first engine that is installed.",
    )  # fmt: skip
    image = click.option(
        "--image", metavar="NAME", help="The container's image, with the compilers that the task needs."
    )
    none = click.option(
        "--no-sandbox",
        is_flag=True,
        help="Run builds and programs without isolation. For code that you trust; it is recorded.",
    )
    return which(image(none(with_isolation)))


def sandbox_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those of isolation_options, and --keep-workspace."""
    keep = click.option("--keep-workspace", is_flag=True, help="Leave the workspaces in place and say where they are.")
    return keep(isolation_options(command))


@contextmanager
def kept_workspaces(keep_workspace: bool) -> Iterator[None]:
    """Say at the end, also where the command raises, which workspaces --keep-workspace left: those that came meanwhile."""
    before = _kept() if keep_workspace else set()
    try:
        yield
    finally:
        for folder in sorted(_kept() - before) if keep_workspace else ():
            stderr.print(f"kept: {folder}", soft_wrap=True, markup=False)


def _kept() -> set[Path]:
    return {mark.parent for mark in (state_home() / "work").glob("*/keep")}


def sandbox_for(isolation: Isolation) -> Sandbox:
    """The sandbox to use. Raises SandboxUnavailable, with what to do, where there is none and none was not asked for."""
    if isolation.sandbox == "none":
        stderr.print("[yellow]without a sandbox:[/] builds and programs run with your own rights")
    return open_sandbox(isolation.sandbox, isolation.image)


def sandbox_of_pool(config: PoolConfig | None, isolation: Isolation) -> Sandbox | None:
    """This machine's where the pool is here; None on a cluster, whose workers open the one that the configuration names."""
    if config is None or config.kind == "local":
        return sandbox_for(isolation)
    if isolation != Isolation():
        said = f"{isolation.words.strip()} beside a pool of kind {config.kind}"
        raise UsageError(said, "the sandbox to be named by the configuration", 'sandbox = "none", in its file')
    return None


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in the main thread (sandboxed children die with the thread that started them). Ctrl-C, SIGTERM and
    SIGHUP cancel it, so that everything is cleaned up, and end the command with 130; a second one does not disturb
    the cleaning."""
    before = {number: signal.getsignal(number) for number in INTERRUPTIONS}

    async def cancellable() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)

        def stop() -> None:
            if not task.cancelling():
                click.echo("stopping…", err=True)
                task.cancel()

        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                loop.add_signal_handler(number, stop)
        return await task

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_display(quiet: bool = False) -> Iterator[Progress]:
    """What is going on, on stderr: a status line on a terminal, one line for each new stage elsewhere."""
    if quiet:
        yield lambda _: None
    elif stderr.is_terminal:
        with stderr.status("") as status:
            yield lambda text: status.update(escape(text))
    else:
        last = [""]

        def say(text: str) -> None:
            stage = text.split(": pair ")[0]
            if stage != last[0]:
                last[0] = stage
                click.echo(stage, err=True)

        yield say


class Live:
    """The progress of an optimisation on stderr: a line for each thing that happened, and on a terminal a status line
    below them with the stage, the time since the start, and the best so far. A context manager."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._best: float | None = None
        self._stage = ""
        self._status: Status | None = None
        self._held: list[str] | None = None

    def __enter__(self) -> Live:
        if stderr.is_terminal:
            self._status = stderr.status("")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is written meanwhile, so that the terminal is another's; lines come afterwards."""
        self._held = []
        if self._status is not None:
            self._status.stop()
        try:
            yield
        finally:
            held, self._held = self._held, None
            for line in held:
                stderr.print(line)
            if self._status is not None:
                self._status.start()

    def _print(self, line: str) -> None:
        if self._held is not None:
            self._held.append(line)
        else:
            stderr.print(line)

    def stage(self, text: str) -> None:
        self._stage = text
        if self._status is not None and self._held is None:
            best = f", best so far {self._best:.3f}×" if self._best else ""
            self._status.update(f"{escape(text)} [dim]({time.monotonic() - self._start:.0f} s{best})[/]")

    def estimate(self, text: str) -> None:
        self._print(escape(text))

    def message(self, attempt: int, message: Message) -> None:
        """One line for each tool call's result."""
        if message.role != "tool":
            return
        data, said = message.data, ""
        if "candidate" in data:
            said = f"{data['candidate']} {data['outcome']}"
            if data["outcome"] == "correct" and data["speedup"]:
                said += f" {data['speedup']:.3f}×"
                self._best = max(self._best or 0.0, data["speedup"])
        elif message.ok is False:
            said = message.content.splitlines()[0][:100] if message.content else "failed"
        self._print(
            f"[dim]{time.monotonic() - self._start:6.1f} s[/]  attempt {attempt + 1}  {message.name}  {escape(said)}"
        )


def print_json(data: dict[str, Any]) -> None:
    """One object, on one line. Names that are not UTF-8 are printed with the escapes that JSON has for them."""
    plain = sys.stdout is not None and (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(data, ensure_ascii=plain, allow_nan=False)
    click.echo(text.encode("utf-8", errors="backslashreplace").decode("utf-8"))
