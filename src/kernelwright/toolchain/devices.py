"""The accelerators of this machine, as the vendors' own tools report them, and the architecture to compile for.

Nothing here loads a driver library: a machine without a GPU, with a broken driver or with a tool of another version gives
an empty list, never an exception. Whether the device is free for a timed run is asked here; who waits for whom is the
pool's business.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_QUERY = ("index", "uuid", "name", "compute_cap", "memory.total", "memory.used", "utilization.gpu")
_TOOL_TIMEOUT_S = 20.0
"""nvidia-smi takes seconds where it has to load the driver first (no persistence mode)."""
_BUSY_UTILISATION_PERCENT = 10
DEFAULT_ARCH = {"cuda": "sm_90", "hip": "gfx90a", "cpp": "native"}


@dataclass(frozen=True)
class Gpu:
    """One accelerator. A value that the vendor's tool does not know is None."""

    index: int
    vendor: str
    """nvidia or amd."""
    name: str
    arch: str | None
    """As compilers take it: sm_90, gfx90a."""
    uuid: str | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    utilisation_percent: int | None = None


def gpus() -> list[Gpu]:
    """Every accelerator that nvidia-smi and rocm-smi list; empty where there is neither."""
    return _nvidia() + _amd()


def visible_gpus(vendor: str) -> list[Gpu]:
    """The accelerators of a vendor that a program would see, CUDA_VISIBLE_DEVICES and its like respected, in its order."""
    found = [gpu for gpu in gpus() if gpu.vendor == vendor]
    names = ("CUDA_VISIBLE_DEVICES",) if vendor == "nvidia" else ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    chosen = next((os.environ[name] for name in names if name in os.environ), None)
    return found if chosen is None else _select(found, chosen)


def _select(found: Sequence[Gpu], chosen: str) -> list[Gpu]:
    selected = []
    for word in (part.strip() for part in chosen.split(",")):
        match = next((gpu for gpu in found if str(gpu.index) == word or _uuid_starts(gpu, word)), None)
        if match is None:
            break  # as the runtimes do: devices after the first unknown one are not visible
        selected.append(match)
    return selected


def _uuid_starts(gpu: Gpu, word: str) -> bool:
    return bool(word) and gpu.uuid is not None and gpu.uuid.startswith(word) and not word.isdigit()


def default_arch(language: str) -> str:
    """The architecture of the first visible GPU (sm_90, gfx90a), or a default where there is none; native for cpp."""
    if language == "cpp":
        return DEFAULT_ARCH["cpp"]
    vendor = "amd" if language == "hip" else "nvidia"
    arch = next((gpu.arch for gpu in visible_gpus(vendor) if gpu.arch), None)
    return arch or DEFAULT_ARCH.get(language, "native")


def arch_number(arch: str) -> str:
    """What `{arch_number}` stands for: 90 of sm_90, 90a of sm_90a, 90a of gfx90a; other names are their own number."""
    match = re.fullmatch(r"(?:sm|compute|lto)_(\d+[af]?)|gfx([0-9a-f]+)", arch)
    return (match[1] or match[2]) if match else arch


def gpu_is_busy(index: int = 0, vendor: str = "nvidia") -> bool | None:
    """Whether something else computes on a GPU now; None where the vendor's tool cannot say."""
    gpu = next((gpu for gpu in gpus() if gpu.vendor == vendor and gpu.index == index), None)
    if gpu is None:
        return None
    if vendor == "nvidia":
        processes = _output("nvidia-smi", f"--id={index}", "--query-compute-apps=pid", "--format=csv,noheader")
        if processes is not None and re.search(r"^\d+\s*$", processes, re.MULTILINE):
            return True
    return None if gpu.utilisation_percent is None else gpu.utilisation_percent >= _BUSY_UTILISATION_PERCENT


def _output(*argv: str) -> str | None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_TOOL_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def nvidia_driver() -> str | None:
    """The version of the NVIDIA driver; None where none is loaded."""
    lines = (_output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader") or "").split()
    return lines[0] if lines else None


def _nvidia() -> list[Gpu]:
    text = _output("nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits")
    return parse_nvidia_smi(text) if text else []


def parse_nvidia_smi(text: str) -> list[Gpu]:
    """The rows of nvidia-smi's CSV (`_QUERY`, no header, no units: memory in MiB); rows of another shape are left out."""
    found = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        values = dict(zip(_QUERY, row, strict=False))
        index = _number(values.get("index"))
        if len(row) != len(_QUERY) or index is None:
            continue
        total, used = _number(values["memory.total"]), _number(values["memory.used"])
        found.append(Gpu(index, "nvidia", values["name"], _sm(values["compute_cap"]), values["uuid"] or None,
                         None if total is None else total * 2**20, None if used is None else used * 2**20,
                         _number(values["utilization.gpu"])))  # fmt: skip
    return found


def _sm(capability: str) -> str | None:
    match = re.fullmatch(r"(\d+)\.(\d)", capability.strip())
    return f"sm_{match[1]}{match[2]}" if match else None


def _number(text: str | None) -> int | None:
    match = re.fullmatch(r"\s*(\d+)(?:\.\d+)?\s*", text or "")
    return int(match[1]) if match else None


def _amd() -> list[Gpu]:
    text = _output("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showuse", "--showuniqueid", "--json")
    if not text:
        return []
    found = parse_rocm_smi(text)
    if any(gpu.arch is None for gpu in found):  # rocm-smi before ROCm 6 does not name the architecture
        arches = re.findall(r"^\s*Name:\s+(gfx[0-9a-f]+)\s*$", _output("rocminfo") or "", re.MULTILINE)
        found = [
            Gpu(**{**vars(gpu), "arch": gpu.arch or (arches[i] if i < len(arches) else None)})
            for i, gpu in enumerate(found)
        ]
    return found


def parse_rocm_smi(text: str) -> list[Gpu]:
    """The cards of rocm-smi's JSON; empty where it is not JSON of that form."""
    try:
        cards = json.loads(text[text.index("{") :])
    except ValueError:
        return []
    found = []
    for card, values in cards.items():
        match = re.fullmatch(r"card(\d+)", card)
        if match and isinstance(values, dict):
            found.append(_amd_card(int(match[1]), values))
    return sorted(found, key=lambda gpu: gpu.index)


def _amd_card(index: int, values: dict[str, Any]) -> Gpu:
    lower = {str(key).lower(): str(value) for key, value in values.items()}
    arch = re.fullmatch(r"gfx[0-9a-f]+", lower.get("gfx version", ""))
    return Gpu(index, "amd", lower.get("card series") or lower.get("card model") or "AMD GPU", arch[0] if arch else None,
               lower.get("unique id"), _number(lower.get("vram total memory (b)")),
               _number(lower.get("vram total used memory (b)")), _number(lower.get("gpu use (%)")))  # fmt: skip
