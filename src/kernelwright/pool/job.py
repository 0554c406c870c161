"""One job as a command: `python -m kernelwright.pool.job SPEC --folder DIR` does what a spec says, on any machine.

The folder is a pool's (`pool.folder`). A result that is there already is the job's result; else the job is run here and its
result written whole. Exit codes are those of `kernelwright`: a candidate's failure, and a task that is not sound, are results
(0); a machine that failed is none (3), and nothing is written then.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kernelwright.errors import KernelwrightError, UsageError
from kernelwright.pool import Finished, JobSpec
from kernelwright.pool.folder import PoolFolder
from kernelwright.pool.work import Worker
from kernelwright.sandbox.backends import BACKENDS, open_sandbox


async def finished(worker: Worker, spec: JobSpec, folder: PoolFolder, tries: int = 1) -> Finished:
    """A job's one result: the kept one, or that of running it now, in the try of that number. Raises InfrastructureError."""
    known = folder.result(spec.id)
    return known if known is not None else folder.keep(replace(await worker.run(spec), tries=tries))


async def once(spec: JobSpec, folder: PoolFolder, sandbox: str) -> Finished:
    """One job by a worker of its own."""
    worker = Worker(folder, open_sandbox(sandbox), f"{socket.gethostname()}-{os.getpid()}")
    try:
        return await finished(worker, spec, folder)
    finally:
        await worker.close()


def read_spec(path: Path) -> JobSpec:
    """Raises UsageError where the file holds none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as a spec: {error}", "a JSON file", "kernelwright pool specs"
        ) from None
    return JobSpec.from_json(data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the result as JSON."""
    parser = argparse.ArgumentParser(prog="python -m kernelwright.pool.job", description="Run one job of a pool.")
    parser.add_argument("spec", type=Path, metavar="SPEC", help="a file of FOLDER/specs")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="the pool's folder")
    parser.add_argument("--sandbox", default="auto", choices=["auto", *BACKENDS])
    given = parser.parse_args(arguments)
    try:
        result = asyncio.run(once(read_spec(given.spec), PoolFolder(given.folder), given.sandbox))
    except KernelwrightError as error:
        print(json.dumps(error.to_json()))
        return error.exit_code
    print(json.dumps(result.to_json()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
