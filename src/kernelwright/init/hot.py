"""Where a run spends its time, as functions of the repository: what `init --hot` proposes as regions.

On a CPU by sampling (`perf`, clock event only, so it needs no counter rights), where that is forbidden by counting
instructions (`valgrind --tool=callgrind`, some fifty times slower). Time in libraries counts for the function of the
repository that called them. On a GPU from the kernel times of `kernelwright.toolchain.kernel_time`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelwright.errors import InfrastructureError
from kernelwright.init.regions import parallel_loops
from kernelwright.sandbox import JobResult
from kernelwright.source import Function, find_functions
from kernelwright.toolchain import Exec
from kernelwright.toolchain.kernel_time import KernelTime
from kernelwright.toolchain.symbols import demangled_name

PROFILE_FLAGS = ("-g", "-fno-inline-functions-called-once")
"""For the profiled build: functions that are called from one place stay visible."""
_PERF = (
    'd=$(mktemp -d) && perf record -q -e cpu-clock -F 299 --call-graph dwarf,4096 -o "$d/perf.data" -- "$@" >"$d/out" 2>&1; '
    'perf script -i "$d/perf.data" --no-inline -F ip,sym,dso; s=$?; rm -rf "$d"; exit $s'
)
_CALLGRIND = (
    "d=$(mktemp -d) && valgrind -q --tool=callgrind --compress-strings=no --compress-pos=no "
    '--callgrind-out-file="$d/profile" "$@" >"$d/out" 2>&1; cat "$d/profile"; s=$?; rm -rf "$d"; exit $s'
)


@dataclass(frozen=True)
class HotFunction:
    """A function and its part of the whole time (0 to 1). `file` and `line` are None where the repository has no such
    function; `region` says whether it can be a region as it is, and `note` why not or what to take instead."""

    name: str
    share: float
    file: str | None = None
    line: int | None = None
    region: bool = False
    note: str = ""


async def profile(execute: Exec, command: Sequence[str], folder: str) -> str:
    """The profile of one run of `command` in `folder`, as text for `hot_functions`.

    The program should be built with PROFILE_FLAGS. Raises InfrastructureError where neither profiler works.
    """
    said = []
    for name, script in (("perf", _PERF), ("valgrind", _CALLGRIND)):
        result = await execute(["sh", "-c", script, "sh", *command], folder)
        text = result.stdout.decode(errors="replace")
        if shares(text, set()):
            return text
        said.append(f"{name}: {_reason(result)}")
    raise InfrastructureError(f"no profiler works here ({'; '.join(said)})", "perf or valgrind",
                              "apt-get install linux-perf valgrind, or name the kernel with --kernel")  # fmt: skip


def _reason(result: JobResult) -> str:
    if result.limit is not None:
        return f"passed its limit of {result.limit}"
    lines = result.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "nothing was recorded"


def hot_functions(
    text: str, functions: Mapping[str, Sequence[tuple[str, Function]]], sources: Mapping[str, bytes] | None = None
) -> list[HotFunction]:
    """The functions of a profile (of `perf script`, or callgrind's file), the hottest first, at least 1 % each.

    `functions` are the repository's, by name (`functions_of`); `sources` give the loops of those that also print.
    """
    found = shares(text, set(functions))
    hot = [
        _located(name, share, functions.get(name, ()), sources or {}) for name, share in found.items() if share >= 0.01
    ]
    return sorted(hot, key=lambda one: -one.share)


def hot_kernels(
    times: Iterable[KernelTime], functions: Mapping[str, Sequence[tuple[str, Function]]]
) -> list[HotFunction]:
    """The same from the kernel times of a GPU; the share is of the time in kernels."""
    totals: Counter[str] = Counter()
    for time in times:
        totals[demangled_name(time.name)] += time.total_s  # type: ignore[assignment]
    whole = sum(totals.values()) or 1.0
    return [_located(name, total / whole, functions.get(name, ()), {}) for name, total in totals.most_common()]


def functions_of(sources: Mapping[str, bytes], language: str) -> dict[str, list[tuple[str, Function]]]:
    """Name → (file, function) for every function that `sources` (path → content) define."""
    found: dict[str, list[tuple[str, Function]]] = {}
    for file, data in sources.items():
        for function in find_functions(data, language):
            found.setdefault(function.name, []).append((file, function))
    return found


def _located(
    name: str, share: float, places: Sequence[tuple[str, Function]], sources: Mapping[str, bytes]
) -> HotFunction:
    if not places:
        return HotFunction(name, share, note="not a function of this repository")
    file, function = places[0]
    if len(places) > 1:
        lines = ", ".join(f"{where}:{one.first_line}" for where, one in places)
        return HotFunction(name, share, file, function.first_line, False, f"defined several times ({lines}): use lines")
    if name == "main" and file in sources:
        loops = parallel_loops(sources[file], "cpp", function)
        ranges = ", ".join(f"{loop.first}-{loop.last}" for loop in sorted(loops, key=lambda one: -one.depth)[:5])
        return HotFunction(name, share, file, function.first_line, False,
                           f"its loops: lines {ranges}" if ranges else "its loops also print or time")  # fmt: skip
    return HotFunction(name, share, file, function.first_line, True)


def shares(text: str, known: set[str]) -> dict[str, float]:
    """Function → its part of the whole. With `known` names, time elsewhere goes to the nearest known caller."""
    costs = _callgrind_costs(text, known) if text.startswith("# callgrind format") else _perf_costs(text, known)
    whole = sum(costs.values())
    return {name: cost / whole for name, cost in costs.items()} if whole else {}


def _perf_costs(text: str, known: set[str]) -> Counter[str]:
    """Samples by function from `perf script`: blocks of frames, the innermost first."""
    costs: Counter[str] = Counter()
    for block in re.split(r"\n\s*\n", text):
        frames = [
            demangled_name(found[1])
            for found in re.finditer(r"^\s+[0-9a-f]+\s+(.*?)(?:\+0x[0-9a-f]+)?\s\([^()]*\)$", block, re.M)
        ]
        if frames:
            costs[next((frame for frame in frames if frame in known), frames[0])] += 1
    return costs


def _callgrind_costs(text: str, known: set[str]) -> Counter[str]:
    """Instructions by function from callgrind's own file. A call into a library counts for its caller, unless the
    library calls the repository back (as OpenMP's runtime does)."""
    own: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    current = callee = ""
    after_calls = False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals and key in ("fn", "cfn"):
            name = demangled_name(value)
            current, callee = (name, callee) if key == "fn" else (current, name)
        elif key == "calls":
            after_calls = True
        elif re.match(r"[+*\d-]", line) and current:
            cost = int(line.split()[-1])
            if after_calls:
                edges[current, callee] += cost
            else:
                own[current] += cost
            after_calls = False
    if not known.intersection(own):
        return own
    calls_back = {caller for caller, called in edges if caller not in known and called in known}
    costs = Counter({name: cost for name, cost in own.items() if name in known})
    for (caller, called), cost in edges.items():
        if caller in known and called not in known and called not in calls_back:
            costs[caller] += cost
    return costs
