"""Rewrites that an expert would make pass: a false refusal is as bad as a cheat that gets through.

Each file of `rewrites/` holds an original and honest rewrites of it, parted by lines `// ==== name`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelwright.screen import screen
from kernelwright.source import Span, splice

FOLDER = Path(__file__).parent / "rewrites"
AROUND = {
    "cu": ("#include <cstdio>\n#include <vector>\n", '\nint main() { std::puts("done"); }\n'),
    "cpp": (
        "#include <chrono>\n#include <cstdio>\nstatic double total;\n",
        '\nint main() { std::printf("%f", total); }\n',
    ),
    "macros": (
        "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
        "#define AS_FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])\n#define PACK(value) (AS_FLOAT4(value))\n"
        '#define COPY_ASYNC(to, from, bytes) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;\\n" '
        '::"r"(to), "l"(from), "n"(bytes))\n#define COPY_WAIT() asm volatile("cp.async.wait_all;\\n" ::)\n'
        "__device__ float block_sum(float v) {\n    static __shared__ float sums[32];\n"
        "    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;\n    __syncthreads();\n    return sums[0];\n}\n",
        "\nint main() { return 0; }\n",
    ),
    "method": (
        "struct Field {\n",
        "\n    double* data_;\n    int size_;\n};\nint main() { return Field{}.norm() > 0; }\n",
    ),
}
"""What stands around a region in its file, by the file's name or its suffix."""


def sections(path: Path) -> dict[str, str]:
    parts = re.split(r"^// ==== (.*)\n", path.read_text(), flags=re.MULTILINE)
    return {name: text.rstrip("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


REWRITES = [(path, name) for path in sorted(FOLDER.iterdir()) for name in sections(path) if name != "original"]


@pytest.mark.parametrize(("path", "name"), REWRITES, ids=lambda value: getattr(value, "name", value))
def test_an_expert_rewrite_passes(path: Path, name: str) -> None:
    before, after = AROUND.get(path.stem) or AROUND[path.suffix[1:]]
    texts = sections(path)
    data = (before + texts["original"] + after).encode()
    span = Span("r", path.name, len(before), len(before) + len(texts["original"]), 1, 1, texts["original"])
    language = "cuda" if path.suffix == ".cu" else "cpp"
    assert screen(language, data, splice(data, {span: texts[name]}), [(span, texts[name])]) is None
