"""The command line: `kernelwright COMMAND`. Each room holds a few commands; this one holds what they share.

Exit codes (a contract, docs/task-file.md): 0 done, 1 the answer is no, 2 the user's mistake, 3 infrastructure,
130 interrupted. With `--json` one object goes to stdout, failures included; what a person reads meanwhile, to stderr.
"""

from __future__ import annotations

import errno
import json
import sys

import click

from kernelwright import __version__
from kernelwright.cli.judge import bench, check, doctor, verify
from kernelwright.cli.run import apply, clean, optimize, rules, runs, show
from kernelwright.cli.start import init
from kernelwright.errors import InfrastructureError, KernelwrightError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kernelwright")
def app() -> None:
    """Makes one region of code in a real repository faster, and proves it."""


for command in (doctor, init, check, verify, bench, optimize, show, apply, runs, clean, rules):
    app.add_command(command)


def main() -> None:
    """Entry point: runs a command and turns whatever stops it into one message and an exit code."""
    try:
        code = app.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        code = done.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except click.ClickException as error:
        code = fail(UsageError(error.format_message(), "see kernelwright --help"))
    except KernelwrightError as error:
        code = fail(error)
    except BrokenPipeError:
        code = 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise
        code = fail(
            InfrastructureError(
                f"{error.strerror}: {error.filename or 'a file of ours'}",
                "a disk that can be written",
                "free space, or point KERNELWRIGHT_HOME at another disk",
            )
        )
    sys.exit(code if isinstance(code, int) else 0)


def fail(error: KernelwrightError) -> int:
    """One message about `error`, as JSON where asked for; returns the exit code."""
    if "--json" in sys.argv:
        click.echo(json.dumps(error.to_json(), ensure_ascii=False))
    else:
        click.echo(f"kernelwright: {error.what}", err=True)
        if error.expected:
            click.echo(f"  expected: {error.expected}", err=True)
        if error.try_:
            click.echo(f"  try:      {error.try_}", err=True)
    return error.exit_code
