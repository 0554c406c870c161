"""What reference runs of a task left, made once on a machine and kept: the slow way to the right answer is slow each time.

A reference is a run of the unmodified program, so it depends on that program, the run's command and the files around it. Its
result lies beside the kept builds, which jobs cannot see, and goes with them. Nothing that is timed is taken from here.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from kernelwright import build_cache
from kernelwright.checks import RunResult, files_of
from kernelwright.execute import Built, Workshop, failure_of
from kernelwright.sandbox import JobResult
from kernelwright.task import Run
from kernelwright.trace import Candidate
from kernelwright.workspace import to_its_end

MOST_BYTES = 16 * 2**20
"""A result that is larger is made again each time."""


async def reference_run(shop: Workshop, built: Built, run: Run) -> RunResult:
    """The result of one reference run, kept from an earlier one where all that it depends on is the same."""
    key = await to_its_end(_key, shop, built, run)
    kept = build_cache.find_report(key) if key is not None else None
    if kept is not None:
        return _read(run, kept)
    result = await shop.run(built, run)
    small = sum(len(data) for data in (result.job.stdout, *result.files.values()) if data) <= MOST_BYTES
    if key is not None and small and failure_of(result, run.timeout_s) is None:
        build_cache.keep_report(key, _written(result))
    return result


def _key(shop: Workshop, built: Built, run: Run) -> str | None:
    original = shop.report_key(Candidate())
    if original is None:
        return None
    told = [run.command, sorted(run.env.items()), sorted(files_of(shop.task, run))]
    return build_cache.key_of(["reference", original, built.artifact, *told])


def _written(result: RunResult) -> dict[str, Any]:
    files = {name: None if data is None else _text(data) for name, data in result.files.items()}
    job = result.job
    said = {"stdout": _text(job.stdout), "stderr": _text(job.stderr)}
    return {"files": files, **said, "exit_code": job.exit_code, "wall_s": job.wall_s, "cpu_s": job.cpu_s}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _read(run: Run, kept: Mapping[str, Any]) -> RunResult:
    files = {name: None if data is None else base64.b64decode(data) for name, data in kept["files"].items()}
    stdout, stderr = base64.b64decode(kept["stdout"]), base64.b64decode(kept["stderr"])
    return RunResult(
        run.name, JobResult(kept["exit_code"], None, stdout, stderr, kept["wall_s"], kept["cpu_s"], 0), files
    )
