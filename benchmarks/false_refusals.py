"""How often screening refuses honest code: pairs of `real_rewrites.py`, compiled once, screened after each change.

    python benchmarks/false_refusals.py compile PAIRS.jsonl … --compiled COMPILED.jsonl [--include DIR …]
    python benchmarks/false_refusals.py screen PAIRS.jsonl … --compiled COMPILED.jsonl --out RESULT.json [--half development]
    python benchmarks/false_refusals.py arguments GIT … --language cuda|cpp

A refusal matters only where the candidate compiles: without that it would be a failed build. A candidate is compiled in its
repository's folders as far as its includes reach (nvcc to PTX without optimisation, gcc or g++ for the syntax). A header is
compiled as part of a unit beside it that includes it; the files that a unit reads are what screening is shown around the
region. The pairs are halved by their group's hash; refusals of the development half may be looked at, the other half is for
the end. RESULT.json holds names, outcomes and shortened sentences, no code. `arguments` asks the list of compile arguments
for all optimising ones that makefiles and CMake files of a repository hold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from real_rewrites import Pair, git, read_blob

from kernelwright.screen import screen
from kernelwright.source import Span, splice
from kernelwright.toolchain.arguments import check_arguments

MAX_SENTENCE = 140
UNITS = (".cu", ".cpp", ".cc", ".cxx", ".c")
SYSTEM = ("/usr/include", "/usr/local/cuda/include", "/usr/lib/gcc/x86_64-linux-gnu/12/include")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)
_FLAG = re.compile(r"(?<![\w$(/.-])--?[A-Za-z][\w=,.+:-]*")
_OPTIMISES = re.compile(
    r"-O\w*|-f(?!openmp|PIC|pic|iopenmp|opt-info|save|sanitize|visibility|syntax|diagnostics|color|stack|profile|sycl|offload|permissive)\w.*"
    r"|-m(?!64$|32$|p$|allow|acosx|inline-all)\w.*|--?use_fast_math|--?maxrregcount.*|--?(?:ftz|prec-div|prec-sqrt|fmad)\b.*|--?Xptxas.*"
    r"|--ptxas-options.*|--?extra-device-vectorization|--?restrict|--?expt-\w.*|--?extended-lambda|--?default-stream.*|--param.*"
)
Record = dict[str, Any]


def half(pair: Pair) -> str:
    return ("development", "held-out")[hashlib.sha256(pair.group.encode()).digest()[0] % 2]


def read_pairs(files: Iterable[Path]) -> list[Pair]:
    """Every pair once, whichever repository it was found in first."""
    found: dict[str, Pair] = {}
    for file in files:
        for line in file.read_text().splitlines():
            fields = json.loads(line)
            found.setdefault(fields.pop("id"), Pair(**fields))
    return list(found.values())


class Tree:
    """The files of a repository at a revision, read as they are asked for."""

    def __init__(self, folder: str, revision: str) -> None:
        self.folder = folder
        listed = git(folder, "ls-tree", "-r", revision).decode(errors="replace").splitlines()
        self.blobs = {line.split("\t", 1)[1]: line.split()[2] for line in listed}
        self.named: dict[str, list[str]] = defaultdict(list)
        for path in self.blobs:
            self.named[path.rsplit("/", 1)[-1]].append(path)

    def read(self, path: str) -> bytes:
        return read_blob(self.folder, self.blobs[path])

    def included(self, path: str, data: bytes) -> Iterator[tuple[str, str]]:
        """What a file includes of the repository: the path there, and the folder that has to be searched for it."""
        for quote, name in {(m[1], m[2].decode(errors="replace")) for m in _INCLUDE.finditer(data)}:
            if quote == b"<" and _of_the_system(name):
                continue
            beside = str(Path(path).parent / name)
            ends = [
                p
                for p in self.named.get(name.rsplit("/", 1)[-1], ())
                if f"/{p}".endswith(f"/{name.removeprefix('../')}")
            ]
            best = max(ends, key=lambda p: (p == beside, len(_common(p, path)), -len(p)), default=None)
            if best is not None:
                yield best, best[: -len(name)].rstrip("/") or "."

    def closure(self, path: str) -> tuple[list[str], list[str]]:
        """All files that a unit reads of the repository, itself first, and the folders to search."""
        seen, folders = [path], [str(Path(path).parent)]
        for file in seen:
            for found, folder in self.included(file, self.read(file)):
                seen += [found] if found not in seen and len(seen) < 400 else []
                folders += [folder] if folder not in folders else []
        return seen, folders

    def unit(self, path: str) -> str | None:
        """What compiles a file: itself, or the first one near it that includes it."""
        if path.endswith(UNITS):
            return path
        top = str(Path(path).parent)
        near = sorted(
            (p for p in self.blobs if p.endswith(UNITS) and p.startswith(top + "/")), key=lambda p: (p.count("/"), p)
        )
        near += sorted(
            p for p in self.blobs if p.endswith(UNITS) and p.startswith(str(Path(top).parent) + "/") and p not in near
        )
        return next((p for p in near[:60] if path in self.closure(p)[0]), None)


@cache
def _of_the_system(name: str) -> bool:
    roots = [Path(root) for root in SYSTEM] + list(Path("/usr/include/c++").glob("*"))
    return any((root / name).exists() for root in roots)


def _common(left: str, right: str) -> str:
    parts = zip(left.split("/"), right.split("/"), strict=False)
    return "/".join(a for a, b in parts if a == b)


@lru_cache(maxsize=8)
def tree(folder: str, revision: str) -> Tree:
    return Tree(folder, revision)


def placed(pair: Pair) -> tuple[bytes, Span, str]:
    """The file before, the region in it, and the unit that compiles it ('' where there is none)."""
    there = tree(pair.git, pair.revision)
    data = there.read(pair.file)
    old = pair.old.encode("utf-8", errors="surrogateescape")
    if b"\r\n" in data[pair.start : pair.end]:
        old = old.replace(b"\n", b"\r\n")
    before = data[: pair.start] + old + data[pair.end :]
    first = data.count(b"\n", 0, pair.start) + 1
    span = Span(
        pair.function, pair.file, pair.start, pair.start + len(old), first, first + pair.old.count("\n"), pair.old
    )
    return before, span, there.unit(pair.file) or ""


def compiled(pair: Pair, further: list[str]) -> Record:
    before, span, unit = placed(pair)
    if not unit:
        return {"id": pair.id, "status": "no unit includes it"}
    after = splice(before, {span: pair.new})
    if _compiles(pair, unit, after, further):
        return {"id": pair.id, "status": "compiles"}
    return {
        "id": pair.id,
        "status": "build failed" if _compiles(pair, unit, before, further) else "original does not compile here",
    }


def _compiles(pair: Pair, unit: str, text: bytes, further: list[str]) -> bool:
    """Versions of one function stand in the same file, so that one compilation answers for all of them."""
    return _taken(pair.git, pair.revision, pair.file, unit, text, tuple(further))


@lru_cache(maxsize=200)
def _taken(folder: str, revision: str, file: str, unit: str, text: bytes, further: tuple[str, ...]) -> bool:
    there = tree(folder, revision)
    files, folders = there.closure(unit)
    with tempfile.TemporaryDirectory() as root:
        for path in {*files, file}:
            target = Path(root) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if path == file else there.read(path))
        search = [f"-I{folder}" for folder in (*folders, *further)]
        device = ["nvcc", "-std=c++17", "-w", "-arch=sm_90", "-ptx", "-Xcicc", "-O0", "-o", "/dev/null"]
        host = ["gcc" if unit.endswith(".c") else "g++", "-w", "-fopenmp", "-fsyntax-only", "-march=haswell"]
        host += ["-std=gnu17" if unit.endswith(".c") else "-std=gnu++20"]
        command = [*(device if unit.endswith(".cu") else host), *search, unit]
        try:
            return subprocess.run(command, cwd=root, capture_output=True, timeout=120).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def compile_all(options: argparse.Namespace) -> None:
    done = statuses(options.compiled)
    pairs = [pair for pair in read_pairs(options.inputs) if pair.id not in done]
    pairs.sort(key=lambda pair: (pair.git, pair.revision, pair.file))
    end, start = time.monotonic() + options.minutes * 60, time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool, options.compiled.open("a") as out:
        for at in range(0, len(pairs), 8):
            out.writelines(
                json.dumps(record) + "\n" for record in pool.map(compiled, pairs[at : at + 8], [options.include] * 8)
            )
            out.flush()
            if time.monotonic() > end:
                break
    print(
        f"{len(pairs)} pairs in {time.monotonic() - start:.0f} s: {dict(Counter(statuses(options.compiled).values()))}"
    )


def statuses(file: Path) -> dict[str, str]:
    lines = file.read_text().splitlines() if file.exists() else []
    return {record["id"]: record["status"] for record in map(json.loads, lines)}


def screened(pair: Pair) -> str | None:
    """What screening says of a pair, None where it passes; shown around the region is what its unit reads."""
    before, span, unit = placed(pair)
    there = tree(pair.git, pair.revision)
    language = "cuda" if unit.endswith(".cu") else "cpp"
    around = [there.read(path) for path in there.closure(unit)[0] if path != pair.file]
    refusal = screen(language, before, splice(before, {span: pair.new}), [(span, pair.new)], around)
    return None if refusal is None else str(refusal)


def screen_all(options: argparse.Namespace) -> None:
    """Without `--compiled`, pairs that are known to compile; `--earlier` keeps what an earlier screening said of each."""
    status, records = statuses(options.compiled) if options.compiled else {}, list[Record]()
    earlier = {one["id"]: one["refused"] for file in options.earlier for one in json.loads(file.read_text())["pairs"]}
    unscreened: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in sorted(read_pairs(options.inputs), key=lambda pair: (pair.git, pair.revision, pair.file)):
        said = status.get(pair.id, "not compiled yet" if options.compiled else "compiles")
        if options.half not in ("both", half(pair)):
            continue
        if said != "compiles":
            unscreened[f"{pair.source}, {pair.kind}"][said] += 1
            continue
        record = {key: getattr(pair, key) for key in ("id", "source", "kind", "file", "function")}
        record |= {"revision": _revision(pair), "half": half(pair), "refused": _sentence(screened(pair))}
        records.append(record | ({"before": earlier.get(pair.id)} if options.earlier else {}))
    rows = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
    options.out.write_text(f'{{"unscreened": {json.dumps(unscreened)},\n"pairs": [\n{rows}\n]}}\n')
    print(table(records))


def _revision(pair: Pair) -> str:
    """The revision's first digits, with `^` where it is the one before it."""
    if pair.revision == "HEAD":
        return git(pair.git, "rev-parse", "HEAD").decode()[:12]
    return pair.revision[:12] + "^" * pair.revision.count("^")


def _sentence(said: str | None) -> str | None:
    return said and said.partition("', line ")[2].partition("; ")[0][:MAX_SENTENCE]


def table(records: list[Record]) -> str:
    lines = ["| source | kind | half | compile | refused | rate |", "|---|---|---|---|---|---|"]
    keys = sorted({(r["source"], r["kind"], r["half"]) for r in records})
    for source, kind, side in [*keys, *sorted({("all", kind, side) for _, kind, side in keys})]:
        mine = [r for r in records if source in ("all", r["source"]) and (kind, side) == (r["kind"], r["half"])]
        refused = sum(r["refused"] is not None for r in mine)
        lines.append(f"| {source} | {kind} | {side} | {len(mine)} | {refused} | {refused / len(mine):.1%} |")
    return "\n".join(lines)


def arguments(options: argparse.Namespace) -> None:
    """Which optimising arguments of a repository's build files the list of compile arguments refuses."""
    seen: Counter[str] = Counter()
    for folder in map(str, options.inputs):
        there = tree(folder, "HEAD")
        for path in there.blobs:
            if re.search(r"(?:^|/)(?:[Mm]akefile\w*|CMakeLists\.txt|\w+\.(?:mk|cmake))$", path):
                seen.update(
                    f for f in set(_FLAG.findall(there.read(path).decode(errors="replace"))) if _OPTIMISES.fullmatch(f)
                )
    answers = {flag: check_arguments(options.language, [flag], tunables={}) for flag in seen}
    refused = [flag for flag, said in answers.items() if said]
    uses = sum(seen[flag] for flag in refused)
    print(f"{len(seen)} arguments, {sum(seen.values())} uses; refused: {len(refused)} arguments, {uses} uses")
    for flag in sorted(refused, key=lambda flag: -seen[flag]):
        print(f"  {seen[flag]:5} {str(answers[flag]).partition(' is refused: ')[2].partition('; try')[0]}: {flag}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("compile", "screen", "arguments"))
    parser.add_argument("inputs", type=Path, nargs="+")
    parser.add_argument("--compiled", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--earlier", type=Path, nargs="*", default=[], help="results of an earlier screening")
    parser.add_argument("--half", choices=("development", "held-out", "both"), default="both")
    parser.add_argument("--language", choices=("cuda", "cpp"), default="cuda")
    parser.add_argument("--include", nargs="*", default=[], help="further folders to search for headers")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    {"compile": compile_all, "screen": screen_all, "arguments": arguments}[options.way](options)


if __name__ == "__main__":
    main()
