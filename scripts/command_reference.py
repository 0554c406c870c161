"""Write docs/commands.md from the commands' own help, so that the page cannot say anything else.

.venv/bin/python scripts/command_reference.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from kernelwright.cli import app

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
WIDTH = 100
HEAD = """\
# Commands

This page is made by `scripts/command_reference.py` from the help of each command.

Exit codes: 0 done; 1 the answer is no (`check` refused, `verify` not correct or slower); 2 a mistake in what was given;
3 the machine's fault; 130 interrupted. With `--json` each command prints one object on stdout, a failure as
`{"error": {"kind", "what", "expected", "try"}}`; all else goes to stderr.
"""


def page() -> str:
    top = click.Context(app, info_name="kernelwright", terminal_width=WIDTH, **app.context_settings)
    parts = [HEAD, _block(app.get_help(top))]
    for name, command in sorted(app.commands.items()):
        parts += _parts(command, top, name)
    return "\n".join(parts)


def _parts(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    """A command, and where it is a group, each of those in it."""
    context = click.Context(command, parent=parent, info_name=name, terminal_width=WIDTH)
    yield f"## {context.command_path}\n\n{_block(command.get_help(context))}"
    for inner, each in sorted(command.commands.items()) if isinstance(command, click.Group) else ():
        yield from _parts(each, context, inner)


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
