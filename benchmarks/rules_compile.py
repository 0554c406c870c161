"""Whether what the rules rewrite still compiles, and on how many kernels each of them fires.

    python benchmarks/rules_compile.py FOLDER --out FILE.jsonl [--kernels 200] [--arch sm_90] [--minutes M] [--jobs N]
    python benchmarks/rules_compile.py FOLDER --out FILE.jsonl --summary

FOLDER holds CUDA sources (.cu), searched recursively. A kernel's regions are the kernel, the device functions of its file
that it calls, and the host functions that launch it. Every rule is applied alone to each region, and all rules of the first
candidate together. Files in which rarer rules fire come first, then the others by name; only files that compile as they are
(device code to PTX) count. The rewrites of one rule in one file are compiled in one go, and one by one where that fails.
Every rewrite is one line of FILE; called again with the same FILE it goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.policy.rules.draft import CODE_RULES
from kernelwright.policy.rules.rule import CUDA, rewrites
from kernelwright.policy.rules.syntax import Site
from kernelwright.source import Function, find_functions

TOGETHER = "first candidate"
Record = dict[str, Any]


@dataclass(frozen=True)
class Rewritten:
    """One region of one file after one way of one rule; `kernels` are those that the region belongs to."""

    region: str
    kernels: tuple[str, ...]
    rule: str
    label: str
    site: Site


def compiles(path: Path, text: bytes, arch: str) -> tuple[bool, str]:
    """Whether nvcc makes PTX of `text` in the place of the file `path`; its words where not."""
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".cu", prefix=".rules-") as file:
        file.write(text)
        file.flush()
        command = ["nvcc", "-std=c++17", "-w", f"-arch={arch}", "-ptx", "-I.", "-o", "/dev/null", file.name]
        done = subprocess.run(command, capture_output=True, cwd=path.parent, timeout=600)
    return done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")[-600:]


def regions(data: bytes) -> list[tuple[Function, tuple[str, ...]]]:
    """Each kernel, each function that a kernel calls and each that launches one, with the kernels it belongs to."""
    functions = find_functions(data, CUDA)
    words = {f: set(re.findall(rb"[A-Za-z_]\w*", data[f.body_start : f.end])) for f in functions}
    owners: dict[Function, set[str]] = defaultdict(set)
    for kernel in (function for function in functions if function.kernel):
        reached, stack = {kernel}, [kernel]
        while stack:
            inside = words[stack.pop()]
            called = {f for f in functions if not f.kernel and f.name.encode() in inside} - reached
            reached |= called
            stack += called
        launchers = {f for f in functions if kernel.name.encode() in words[f] and b"<<<" in data[f.body_start : f.end]}
        for function in reached | launchers:
            owners[function].add(kernel.name)
    return [(function, tuple(sorted(owners[function]))) for function in functions if function in owners]


def rewritten(data: bytes) -> Iterator[Rewritten]:
    for function, kernels in regions(data):
        site = Site(data, function.start, function.end, CUDA)
        together = site
        for rule in CODE_RULES:
            for rewrite in rewrites(rule, site):
                yield Rewritten(function.name, kernels, rule.name, rewrite.label, rewrite.site)
            found = rewrites(rule, together) if rule.opening else []
            together = found[0].site if found else together
        if together.data != data:
            yield Rewritten(function.name, kernels, TOGETHER, "", together)


def joined(group: list[Rewritten], data: bytes) -> bytes:
    """One file with all rewrites of a group in it; they are of different regions, so the last goes in first."""
    made = data
    for one in sorted(group, key=lambda one: -one.site.start):
        unchanged = len(one.site.data) - one.site.end
        made = made[: one.site.start] + one.site.data[one.site.start : one.site.end] + made[len(data) - unchanged :]
    return made


def fires(path: Path) -> dict[str, int]:
    """Rule → on how many of a file's kernels it fires; empty for a file without kernels."""
    data = path.read_bytes()
    pairs = {(one.rule, kernel) for one in (rewritten(data) if usable(data) else ()) for kernel in one.kernels}
    return dict(Counter(rule for rule, _ in pairs))


def usable(data: bytes) -> bool:
    return b"__global__" in data and b"\r" not in data


def judge(path: Path, arch: str) -> list[Record]:
    """One record for each rewrite of a file; none where the file itself does not compile."""
    data = path.read_bytes()
    if not compiles(path, data, arch)[0]:
        return []
    groups: dict[tuple[str, str], list[Rewritten]] = defaultdict(list)
    for one in rewritten(data):
        groups[one.rule, one.label].append(one)
    kernels = len({name for _, names in regions(data) for name in names})
    records: list[Record] = [{"file": str(path), "kernels_in_file": kernels}]
    for group in groups.values():
        good, _ = compiles(path, joined(group, data), arch)
        for one in group:
            alone = (True, "") if good else compiles(path, one.site.data, arch)
            fields = {key: value for key, value in vars(one).items() if key != "site"}
            records.append({"file": str(path), **fields, "compiles": alone[0], "error": alone[1]})
    return records


def summary(lines: list[Record]) -> str:
    kernels = sum(line.get("kernels_in_file", 0) for line in lines)
    made = [line for line in lines if "rule" in line]
    good = sum(line["compiles"] for line in made)
    table = [f"{kernels} kernels in {len({line['file'] for line in lines})} files; "
             f"{good} of {len(made)} rewrites compile ({good / max(1, len(made)):.2%})", "",
             "| rule | kernels | rewrites | that compile |", "|---|---|---|---|"]  # fmt: skip
    for name in [*(rule.name for rule in CODE_RULES if CUDA in rule.languages), TOGETHER]:
        mine = [line for line in made if line["rule"] == name]
        on = {(line["file"], kernel) for line in mine for kernel in line["kernels"]}
        table.append(f"| {name} | {len(on)} | {len(mine)} | {sum(line['compiles'] for line in mine)} |")
    return "\n".join(table)


def ordered(files: list[Path], pool: ProcessPoolExecutor) -> list[Path]:
    """Files with kernels, those first in which the rules that fire least often fire."""
    fired = dict(zip(files, pool.map(fires, files), strict=True))
    total = Counter(rule for found in fired.values() for rule in found)
    return sorted((path for path in files if fired[path]), key=lambda path: (min(total[r] for r in fired[path]), path))


def measure(options: argparse.Namespace, lines: list[Record]) -> None:
    done, start = {line["file"] for line in lines}, time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool, options.out.open("a") as out:
        files = [path for path in ordered(sorted(options.folder.rglob("*.cu")), pool) if str(path) not in done]
        while files and time.monotonic() - start < options.minutes * 60:
            batch, files = files[: options.jobs * 4], files[options.jobs * 4 :]
            for records in pool.map(judge, batch, [options.arch] * len(batch)):
                if sum(line.get("kernels_in_file", 0) for line in lines) < options.kernels:
                    lines += records
                    out.writelines(json.dumps(record) + "\n" for record in records)
            out.flush()
            if sum(line.get("kernels_in_file", 0) for line in lines) >= options.kernels:
                break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    if not options.summary:
        measure(options, lines)
    print(summary(lines))


if __name__ == "__main__":
    main()
