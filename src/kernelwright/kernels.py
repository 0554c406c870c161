"""How the kernels of one run get timed: our recorder is loaded into the run by CUDA itself, and writes beside it.

The process that is judged writes these times, so they are shown and never decide (`toolchain.kernel_time` has the why).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelwright.sandbox import Bind, Sandbox
from kernelwright.sandbox.outputs import read_output
from kernelwright.toolchain import kernel_time
from kernelwright.toolchain.kernel_time import KernelTime


@dataclass(frozen=True)
class Recorder:
    """Our recorder of kernel times, and the folder of the CUPTI library that it needs."""

    library: Path
    cupti: Path


@dataclass(frozen=True)
class KernelTiming:
    """The binds and variables by which CUDA loads our activity recorder into a run, and where its times come out."""

    binds: tuple[Bind, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    @staticmethod
    def into(folder: Path, recorder: Recorder, sandbox: Sandbox) -> KernelTiming:
        """For one run whose times come out in `folder`, made anew."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        sandbox.own(folder)
        binds = [Bind(folder, "/kw/kernels", writable=True), Bind(recorder.library, "/kw/kernel-time.so")]
        if not recorder.cupti.is_relative_to("/usr") and not recorder.cupti.is_relative_to("/opt"):
            binds.append(Bind(recorder.cupti, str(recorder.cupti)))
        env = kernel_time.environment(
            sandbox.inside(recorder.library, "/kw/kernel-time.so"), f"{sandbox.inside(folder, '/kw/kernels')}/times"
        )
        return KernelTiming(tuple(binds), env, folder)

    def read(self) -> list[KernelTime] | None:
        """The kernels of the run, as its process said; None where there is no word."""
        data = read_output(self.folder, "times", kernel_time.TIMES_FILE_BYTES) if self.folder else None
        return kernel_time.read(data) if data is not None else None
