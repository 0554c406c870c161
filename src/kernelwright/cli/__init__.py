"""The command line: `kernelwright COMMAND`. Each room holds a few commands; this one holds what they share.

Exit codes (a contract, docs/task-file.md): 0 done, 1 the answer is no, 2 the user's mistake, 3 infrastructure,
130 interrupted. With `--json` one object goes to stdout, failures included; what a person reads meanwhile, to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from kernelwright import __version__
from kernelwright.cli.history import apply, clean, runs, show
from kernelwright.cli.judge import bench, check, doctor, verify
from kernelwright.cli.options import print_json, widen
from kernelwright.cli.pool import pools
from kernelwright.cli.run import optimize, rules
from kernelwright.cli.start import init
from kernelwright.cli.streams import open_streams
from kernelwright.cli.tasks import tasks
from kernelwright.errors import InfrastructureError, Interrupted, KernelwrightError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="kernelwright")
def app() -> None:
    """Makes one region of code in a real repository faster, and proves it.

    Begin with doctor (this machine), init (a first task file), check (the task), optimize (search and proof), apply.
    """


for command in (doctor, init, check, verify, bench, optimize, show, apply, runs, clean, rules, pools, tasks):
    app.add_command(command)


def main() -> NoReturn:
    """Entry point of the program."""
    open_streams()
    widen()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command and turn whatever stops it into one message; returns the exit code."""
    try:
        code = _invoke(list(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except KernelwrightError as error:
        return fail(error, "--json" in arguments)
    except OSError as error:
        return fail(_machine(error), "--json" in arguments)
    return code


def _invoke(arguments: list[str]) -> int:
    try:
        code = app.main(arguments, prog_name="kernelwright", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message(), err=True)
        return UsageError.exit_code
    except (click.Abort, KeyboardInterrupt):
        raise Interrupted("interrupted", "the command to run to its end", "the same command again") from None
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "kernelwright"
        raise UsageError(error.format_message(), "a call as in its help", f"{path} --help") from None
    except click.ClickException as error:
        raise UsageError(error.format_message(), "a call as in its help", "kernelwright --help") from None
    return code if isinstance(code, int) else 0


def _machine(error: OSError) -> InfrastructureError:
    """What the operating system refused us: no mistake of the user's that a command knows of, and no outcome."""
    what = error.strerror or type(error).__name__
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else "a file of ours"
    return InfrastructureError(
        f"{what}: {where}",
        "a disk with room, and files that this user may read and write",
        "free space, or point KERNELWRIGHT_HOME at a folder on another disk",
    )


def fail(error: KernelwrightError, as_json: bool) -> int:
    """One message about `error`, as JSON where asked for; returns the exit code."""
    if as_json:
        print_json(error.to_json())
    else:
        click.echo(f"kernelwright: {error.what}", err=True)
        if error.expected:
            click.echo(f"  expected: {error.expected}", err=True)
        if error.try_:
            click.echo(f"  try:      {error.try_}", err=True)
    return error.exit_code
