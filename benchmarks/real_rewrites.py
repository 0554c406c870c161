"""Rewrites that people and rules made of real kernels, found in git repositories: pairs of a region before and after.

    python benchmarks/real_rewrites.py history GIT --source NAME --suffix .cu .cuh --out PAIRS.jsonl [--stated] [--skip REGEX]
    python benchmarks/real_rewrites.py versions GIT --source NAME --files REGEX --out PAIRS.jsonl [--same REGEX]
    python benchmarks/real_rewrites.py rules GIT --source NAME --files REGEX --out PAIRS.jsonl [--each N]

GIT is a git directory. A region is one function for the device, or one with a loop that neither prints nor reads files nor
allocates on the device; its callers are not changed with it.

- history: each commit that changes a function's tokens and keeps the types that it takes and returns, with the new functions
  of that commit's file which it calls in front of it. Of commits whose subject does not speak of performance, code for the
  device alone; none of them with `--stated`.
- versions: of the functions of one revision that take the same parameters, each later one stands for the first one, under one
  name: in the file as it is, the later one is the candidate, and the first one's body in its place is the original. They
  belong together when their names begin alike, or when what `--same` captures of "path:name" is equal.
- rules: what the rules of `kernelwright.policy` make of each function, alone and together.

Left to `benchmarks/false_refusals.py`: whether a pair compiles, and what screening says of it. What is dropped is counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock

from kernelwright.policy.rules.draft import CODE_RULES
from kernelwright.policy.rules.rule import rewrites
from kernelwright.policy.rules.syntax import Site
from kernelwright.screen.text import Code
from kernelwright.source import Function, find_functions, to_lf

STATED = re.compile(
    r"optimi[sz]|\bperf\b|performan|speed|faster|coalesc|shared mem|unroll|restrict|__ldg|reduc(?:e|ing|tion)|vectori|atomic"
    r"|register|\btil(?:e|ing)|warp|shuffle|cache|latency|bandwidth|occupancy|\bfus(?:e|ing)|\bsimd\b|\bavx|\bsse\d?\b|\bneon\b|inline|efficien"
    r"|overhead|hoist|redundant|unnecessary|intrinsic|pragma",
    re.IGNORECASE,
)
"""What a commit's subject holds when it means performance; what it really changes is for the reader of the results."""
MAX_FILES = 30
"""Files of one commit; one that changes more renames, moves or reformats."""
MAX_BYTES = 400_000
_FREE = {"const", "__restrict__", "__restrict", "restrict", "static", "inline", "__inline__", "__forceinline__", "extern",
         "__launch_bounds__", "register", "constexpr", "__noinline__", "volatile"}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A region of a file of a repository at a revision, and what it was rewritten to. `old` stands at start..end in place of
    what the revision has there, where the two differ."""

    source: str
    git: str
    revision: str
    file: str
    language: str
    function: str
    kind: str
    label: str
    group: str
    start: int
    end: int
    old: str
    new: str

    @property
    def id(self) -> str:
        tokens = (" ".join(t.text for t in Code(text, self.language).tokens) for text in (self.old, self.new))
        return hashlib.sha256("\0".join(tokens).encode(errors="replace")).hexdigest()[:16]


def git(folder: str, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True).stdout


@cache
def _reader(folder: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["git", "-C", folder, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


_one_at_a_time = Lock()


@lru_cache(maxsize=4000)
def read_blob(folder: str, name: str) -> bytes:
    """The bytes of a git object, from one process for each repository: there are tens of thousands of them."""
    reader = _reader(folder)
    assert reader.stdin is not None
    assert reader.stdout is not None
    with _one_at_a_time:
        reader.stdin.write(name.encode() + b"\n")
        reader.stdin.flush()
        size = int(reader.stdout.readline().split()[2])
        return reader.stdout.read(size + 1)[:-1]


def language_of(path: str) -> str:
    """By the suffix; a header's, by whether its folders speak of CUDA."""
    header = path.endswith((".h", ".hpp")) and "cuda" in str(Path(path).parent).lower()
    return "cuda" if header or path.endswith((".cu", ".cuh")) else "cpp"


def _group(source: str, path: str, function: str) -> str:
    """What belongs together, for halving: a suite's benchmark, which is a folder with a programming model at its name's end;
    elsewhere all versions of a function, whatever their numbers."""
    folder = re.search(r"([^/]+)-(?:cuda|omp|hip|sycl|ompt)/", path)
    return f"{source}:{folder[1] if folder else re.sub(r'[0-9]+', '', function)}"


@cache
def _functions(folder: str, blob: str, language: str) -> dict[str, Function | None]:
    """A file's functions by name; None for a name that is defined more than once."""
    found: dict[str, Function | None] = {}
    for function in find_functions(read_blob(folder, blob), language):
        found[function.name] = None if function.name in found else function
    return found


def _tokens(text: str, language: str) -> list[str]:
    return [token.text for token in Code(text, language).tokens]


def _types(data: bytes, function: Function, language: str) -> str:
    """What a function takes and returns: qualifiers and parameters' names left out."""
    words = _tokens(to_lf(data[function.start : function.body_start]), language)
    head, depth = list[str](), 0
    for index, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        named = depth > 0 and words[index + 1 : index + 2] in ([","], [")"], ["["], ["="]) and word.isidentifier()
        if word not in _FREE and not (named and head[-1] not in ("(", ",", "unsigned", "struct")):
            head.append(word)
    plain = re.sub(r"__launch_bounds__ \(.*?\) |__align__ \(.*?\) ", "", " ".join(head))
    return re.sub(r"\[ \w* ?\]", "*", plain)


def _worth(data: bytes, function: Function) -> bool:
    """Device code, or a function with a loop that neither prints nor reads files nor allocates on the device."""
    text = data[function.start : function.end]
    busy = re.search(rb"printf|cout|cerr|fopen|fread|ifstream|(?:cuda|hip)Malloc|\bmain\b", text)
    return bool(re.search(rb"__global__|__device__", text) or (re.search(rb"\b(?:for|while) ?\(", text) and not busy))


def _called_anew(data: bytes, function: Function, known: set[str], language: str, functions: Sequence[Function]) -> str:
    """The texts of functions that `function` calls and that the file did not have before, in the file's order."""
    own = {f.name: f for f in functions if f.name not in known and f.name != function.name}
    wanted, stack = set[str](), [function]
    while stack:
        inside = stack.pop()
        for word in set(re.findall(r"\w+", to_lf(data[inside.start : inside.end]))) & own.keys() - wanted:
            wanted.add(word)
            stack.append(own[word])
    ordered = sorted((own[name] for name in wanted), key=lambda f: f.start)
    return "".join(to_lf(data[f.start : f.end]) + "\n\n" for f in ordered)


def _commits(folder: str, suffixes: Sequence[str]) -> Iterator[tuple[str, str, list[tuple[str, str, str]]]]:
    """Revision, subject and (old blob, new blob, path) of files that a commit modified."""
    log = git(folder, "log", "--no-merges", "--diff-filter=M", "--no-renames", "--raw", "--no-abbrev", "--format=%x01%H %s",
              "--", *(f"*{suffix}" for suffix in suffixes))  # fmt: skip
    for part in log.decode(errors="replace").split("\x01")[1:]:
        first, *lines = part.splitlines()
        raw = [re.match(r":\d+ \d+ (\w+) (\w+) M\t(.*)", line) for line in lines]
        yield *first.split(" ", 1), [(m[1], m[2], m[3]) for m in raw if m]  # type: ignore[misc]


def history(options: argparse.Namespace, dropped: Counter[str]) -> Iterator[Pair]:
    for revision, subject, files in _commits(options.git, options.suffix):
        stated = bool(STATED.search(subject))
        if len(files) > MAX_FILES or (options.stated and not stated):
            dropped["commit of more than 30 files" if len(files) > MAX_FILES else "commit not about performance"] += 1
            continue
        for old, new, path in files:
            if not (options.skip and re.search(options.skip, path)):
                kind = "history, stated" if stated else "history, other"
                yield from _changed(options, f"{revision}^", path, old, new, kind, subject, dropped)


def _changed(options: argparse.Namespace, revision: str, path: str, old: str, new: str, kind: str, label: str,
             dropped: Counter[str]) -> Iterator[Pair]:  # fmt: skip
    before, after, language = read_blob(options.git, old), read_blob(options.git, new), language_of(path)
    if max(len(before), len(after)) > MAX_BYTES:
        dropped["file of more than 400 kB"] += 1
        return
    there, here = _functions(options.git, old, language), _functions(options.git, new, language)
    for name, was in there.items():
        now = here.get(name)
        if was is None or now is None:
            dropped["function gone, renamed or not unique"] += name not in here or was is None
            continue
        text, made = to_lf(before[was.start : was.end]), to_lf(after[now.start : now.end])
        if _tokens(text, language) == _tokens(made, language) and text.count("#") == made.count("#"):
            continue
        device = bool(re.search("__global__|__device__|#pragma omp target", text))
        if not _worth(before, was) or not (device or kind == "history, stated"):
            why = (
                "without a loop, or that prints, reads files or allocates"
                if not _worth(before, was)
                else "of other commits"
            )
            dropped[f"host function {why}"] += 1
        elif Code(text, language).unmatched or Code(made, language).unmatched:
            dropped["brackets that do not balance"] += 1
        elif _types(before, was, language) != _types(after, now, language):
            dropped["takes or returns other types"] += 1
        else:
            helpers = _called_anew(after, now, set(there), language, [f for f in here.values() if f is not None])
            yield Pair(options.source, options.git, revision, path, language, name, kind, label,
                       _group(options.source, path, name), was.start, was.end, text, helpers + made)  # fmt: skip


def _listed(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Path and blob of the newest revision's files that `--files` matches."""
    for line in git(options.git, "ls-tree", "-r", "HEAD").decode(errors="replace").splitlines():
        meta, path = line.split("\t", 1)
        if re.search(options.files, path) and not (options.skip and re.search(options.skip, path)):
            yield path, meta.split()[2]


def versions(options: argparse.Namespace, dropped: Counter[str]) -> Iterator[Pair]:
    families: dict[str, list[tuple[str, bytes, Function]]] = defaultdict(list)
    for path, blob in _listed(options):
        data, language = read_blob(options.git, blob), language_of(path)
        for function in _functions(options.git, blob, language).values():
            if function is not None and _worth(data, function):
                families[_family(options, path, data, function, language)].append((path, data, function))
    for members in families.values():
        first, *later = members
        for path, data, function in later:
            yield _version(options, first, path, data, function)
        dropped["only version"] += not later


def _family(options: argparse.Namespace, path: str, data: bytes, function: Function, language: str) -> str:
    head = " ".join(_tokens(to_lf(data[function.start : function.body_start]), language))
    parameters = re.sub(
        r" ?\b(?:const|__restrict__|__restrict|restrict)\b", "", head.partition(f"{function.name} (")[2]
    )
    bounds = r"__launch_bounds__ \((?:[^()]|\([^()]*\))*\) ?|template <.*>"
    returned = " ".join(re.sub(bounds, "", head.partition(function.name)[0]).split()[-2:])
    if options.same:
        found = re.search(options.same, f"{path}:{function.name}")
        return f"{found[1] if found else f'{path}:{function.name}'} {returned} {parameters}"
    return f"{path} {function.kernel} {returned} {function.name[:4]} {parameters}"


def _version(options: argparse.Namespace, first: tuple[str, bytes, Function], path: str, data: bytes,
             function: Function) -> Pair:  # fmt: skip
    from_path, from_data, one = first
    text = re.sub(rf"\b{one.name}\b", function.name, to_lf(from_data[one.start : one.end]))
    return Pair(options.source, options.git, "HEAD", path, language_of(path), function.name, "versions",
                f"{from_path}:{one.name}", _group(options.source, path, function.name), function.start, function.end, text,
                to_lf(data[function.start : function.end]))  # fmt: skip


def by_rules(options: argparse.Namespace, dropped: Counter[str]) -> Iterator[Pair]:
    for path, blob in _listed(options):
        data, language = read_blob(options.git, blob), language_of(path)
        if b"\r" in data or len(data) > MAX_BYTES:
            dropped["file with carriage returns, or of more than 400 kB"] += 1
            continue
        for function in _functions(options.git, blob, language).values():
            if function is not None and _worth(data, function):
                old = to_lf(data[function.start : function.end])
                pair = Pair(options.source, options.git, "HEAD", path, language, function.name, "rules", "",
                            _group(options.source, path, function.name), function.start, function.end, old, "")  # fmt: skip
                for label, site in _ways(Site(data, function.start, function.end, language)):
                    yield replace(pair, label=label, new=to_lf(site.data[site.start : site.end]))


def _ways(site: Site) -> Iterator[tuple[str, Site]]:
    together = site
    for rule in CODE_RULES:
        for rewrite in rewrites(rule, site):
            yield f"{rule.name} {rewrite.label}".strip(), rewrite.site
        found = rewrites(rule, together) if rule.opening else []
        together = found[0].site if found else together
    if together.data != site.data:
        yield "together", together


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("history", "versions", "rules"))
    parser.add_argument("git")
    parser.add_argument("--source", required=True, help="the repository's name, as it stands in the results")
    parser.add_argument("--suffix", nargs="+", default=[".cu", ".cuh"])
    parser.add_argument("--files", default="", help="a pattern that a file's path must match")
    parser.add_argument("--skip", default="", help="a pattern that it must not match")
    parser.add_argument("--same", default="", help="a pattern with a group, for versions")
    parser.add_argument("--stated", action="store_true")
    parser.add_argument("--each", type=int, default=0, help="at most so many of each group, by their ids")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    dropped, found = Counter[str](), dict[str, Pair]()
    for pair in {"history": history, "versions": versions, "rules": by_rules}[options.way](options, dropped):
        dropped["the same pair again"] += pair.id in found
        found.setdefault(pair.id, pair)
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in sorted(found.values(), key=lambda pair: pair.id):
        groups[pair.group].append(pair)
    kept = [pair for pairs in groups.values() for pair in pairs[: options.each or None]]
    with options.out.open("a") as out:
        out.writelines(json.dumps(asdict(pair) | {"id": pair.id}) + "\n" for pair in kept)
    print(f"{len(kept)} pairs of {len(groups)} groups (of {len(found)}); dropped: {dict(dropped)}")


if __name__ == "__main__":
    main()
