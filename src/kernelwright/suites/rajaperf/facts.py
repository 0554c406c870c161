"""What the built program says of one kernel when it is asked without running anything: tunings, size, repetitions, work.

`--dryrun` prints them in some milliseconds and needs no device. It runs in the sandbox, since the program is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.commands import tool_path
from kernelwright.interpose import REPO
from kernelwright.sandbox import Bind, Job, Limits, Sandbox
from kernelwright.suites.rajaperf.kernels import REFERENCE, NoRegion

_ASKING_S = 60.0


@dataclass(frozen=True)
class Facts:
    """One kernel at one size. Amounts are those of one repetition, as the suite's authors count them."""

    tunings: tuple[str, ...]
    """Of the variant that was asked for; the first is the default."""
    reference_tunings: tuple[str, ...]
    """Of the sequential reference."""
    repetitions: int
    kernels: int
    """How many launches or parallel loops there are in a repetition."""
    bytes: float
    """Read and written; what is modified atomically is left out, since partial results can be put together first."""
    flops: float


async def ask(sandbox: Sandbox, program: Path, kernel: str, variant: str, options: Sequence[str] = ()) -> Facts | str:
    """The program's own words on a kernel, or why it has none, in a sentence. Raises NoRegion where it says that it does not
    have the kernel in this variant."""
    argv = (f"./{program.name}", "--dryrun", "-k", kernel, "-v", REFERENCE, variant, *options)
    job = Job(argv, REPO, (Bind(program.parent, REPO),), {"PATH": tool_path()}, Limits(wall_s=_ASKING_S))
    result = await sandbox.run(job)
    text = result.stdout.decode(errors="replace")
    if result.exit_code != 0:
        said = (result.stderr.decode(errors="replace") or text).strip()[-300:]
        return f"{program.name} --dryrun fails here: {said or f'exit code {result.exit_code}, signal {result.signal}'}"
    return read_facts(text, kernel, variant)


def read_facts(text: str, kernel: str, variant: str) -> Facts | str:
    """The same from what the program printed. Raises NoRegion."""
    table = [[word.strip() for word in line.split(",")] for line in text.splitlines() if " , " in line]
    row = next((row for row in table if row[0] == kernel), None)
    if row is None:
        raise NoRegion(f"the program knows no kernel {kernel}")
    known = dict(zip(table[0], row, strict=False))
    try:
        amounts = [
            float(known[name]) for name in ("Reps", "Kernels/rep", "BytesRead/rep", "BytesWritten/rep", "FLOPS/rep")
        ]
    except (KeyError, ValueError):
        return f"the program prints no table of repetitions, bytes and operations of {kernel} that can be read"
    repetitions, kernels, read, written, flops = amounts
    tunings = _tunings(text, variant)
    if not tunings:
        raise NoRegion(f"{variant} of {kernel} is not compiled into the program")
    return Facts(tunings, _tunings(text, REFERENCE), int(repetitions), int(kernels), read + written, flops)


def _tunings(text: str, variant: str) -> tuple[str, ...]:
    return tuple(re.findall(rf"^{re.escape(variant)}-(\S+)$", text, re.MULTILINE))
