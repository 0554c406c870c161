"""What printed lines mean: which text is the verdict, and which numbers are results; times are `kernelwright.init.times`'."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelwright.init.prints import Line, Text, Value
from kernelwright.init.times import RATE, TIME, TimeDraft

MEASURED: Literal["measured"] = "measured"
"""Nobody who reads a source can say how far an honest rewrite's numbers lie apart; runs and builds of the original can."""


@dataclass(frozen=True)
class CheckDraft:
    """A check that the sources suggest. `active` is False where it goes into the file as a comment only."""

    kind: Literal["require", "forbid", "number"]
    pattern: str
    where: str
    note: str = ""
    rel: float | Literal["measured"] | None = None
    abs: float | None = None
    max: float | None = None
    aggregate: str | None = None
    active: bool = True


_GOOD = re.compile(
    r"\bPASS(?:ED)?\b|\b[Pp]ass(?:ed)?\b|\bSUCCESS(?:FUL(?:LY)?)?\b|\b[Ss]uccess(?:ful(?:ly)?)?\b|\bVERIFIED\b|\b[Vv]erified\b"
    r"|\bCORRECT\b|\b[Cc]orrect(?:ly)?\b|\bOK\b|\b[Oo]kay\b|\b[Mm]atch(?:es|ed)?\b|\bMATCH\b|\bVALID\b|\b[Vv]alid\b"
    r"|\b[Ii]dentical\b|\b(?:no|No) errors?\b"
)  # fmt: skip
_BAD = re.compile(
    r"\b[Ff]ailed to (?:pass|match|verify|converge)\b"
    r"|\bFAIL(?:ED|URES?|S)?\b|\b[Ff]ail(?:ed|ures?|s)?\b|\b[Mm]is-?match(?:es|ed)?\b|\bINCORRECT\b|\b[Ii]ncorrect\b"
    r"|\b[Ww]rong\b|\bWRONG\b|\bINVALID\b|\b[Ii]nvalid\b|\b(?:not|n't|NOT) "
    r"(?:match|correct|equal|pass|valid|verified|identical)\w*"
    r"|\b[Uu]nsuccessful\w*|\bERRORS?!|\b[Dd]iffers?\b|\b[Ii]naccurate\b"
)  # fmt: skip
_NOT_A_VERDICT = re.compile(
    r"\b(?:file|open|opening|alloc\w*|malloc|memory|usage|option|argument|param\w*|device|platform|launch\w*|thread|"
    r"input|read\w*|loaded|exists?|create\w*|cuda\w*|hip\w*|initiali\w*|line \d|number of|format|size|dimension|driver|"
    r"support\w*)\b",
    re.I,
)
_WEAK = re.compile(r"(?:correct|ok|okay|match|valid|pass|identical|success|errors?|verified)\w*$", re.I)


def find_verdicts(texts: Sequence[Text]) -> list[CheckDraft]:
    """`require` and `forbid` checks from the program's own words for right and wrong."""
    good: list[tuple[Text, str]] = []
    bad: list[tuple[Text, str]] = []
    for text in texts:
        wrong, right = _BAD.search(text.text), _GOOD.search(text.text)
        counts = text.labels and (wrong is None or _is_count(text.text.partition("%")[0]))
        if counts or _NOT_A_VERDICT.search(text.text) or len(text.text) > 160 or "%" in text.text[:1] or (
            wrong and right and not _overlap(wrong, right)):  # fmt: skip
            continue
        if wrong:
            bad.append((text, _word_pattern(text.text, wrong)))
        elif right:
            good.append((text, _word_pattern(text.text, right)))
    chosen = max(good, key=lambda one: _strength(one[0], one[1], bad), default=None)
    checks = []
    if chosen is not None:
        text, pattern = chosen
        telling = re.search(r"PASS|[Pp]assed|SUCCESS|[Tt]est|[Vv]erif|[Rr]esult", text.text)
        checks.append(_verdict("require", text, pattern, bool(telling) or _distance(text, bad) < 30))
    seen: set[str] = set()
    for text, pattern in bad:
        if pattern not in seen and len(seen) < 4:
            checks.append(_verdict("forbid", text, pattern, True))
            seen.add(pattern)
    return checks


def _verdict(kind: Literal["require", "forbid"], text: Text, pattern: str, sure: bool) -> CheckDraft:
    note = f'read from "{" ".join(text.text.split())[:60]}"'
    if text.guard:
        note += f"; compiled in only with -D{text.guard}"
    return CheckDraft(kind, pattern, f"{text.file}:{text.number}", note,
                      active=sure and (kind == "forbid" or not text.guard))  # fmt: skip


def _overlap(one: re.Match[str], other: re.Match[str]) -> bool:
    return one.start() <= other.end() and other.start() <= one.end()


def _word_pattern(text: str, word: re.Match[str]) -> str:
    """The word alone where it is telling, else with the literal text around it."""
    if not _WEAK.fullmatch(word.group()) or word.group() in ("PASS", "PASSED", "SUCCESS"):
        return (
            rf"\b{re.escape(word.group()).replace(chr(92) + ' ', ' ')}\b"
            if word.group()[-1].isalpha()
            else re.escape(word.group())
        )
    line = next((part for part in re.split(r"[\n]|%[-0-9.]*l*[a-z]", text) if word.group() in part), word.group())
    plain = " ".join(line.split())
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", plain) if plain != word.group() else rf"\b{plain}\b"


def _distance(text: Text, others: Sequence[tuple[Text, str]]) -> int:
    return min((abs(text.number - other.number) for other, _ in others if other.file == text.file), default=10**6)


def _strength(text: Text, pattern: str, bad: Sequence[tuple[Text, str]]) -> float:
    telling = 3.0 * bool(re.search(r"PASS|SUCCESS|[Pp]assed|VERIFIED|CORRECT", pattern))
    near = 3.0 if _distance(text, bad) < 12 else 0.0
    about = 1.0 * bool(re.search(r"test|verif|result|check", text.text, re.I))
    return telling + near + about - 5.0 * (text.guard is not None) - len(text.text) / 80.0


_SUMS = re.compile(r"check-?\s?sum|hash(?! ?(?:table|map|set|join|key))|\bsum\b|crc", re.I)
_ERRORS = re.compile(
    r"\b(?:(?:max(?:imum)?|mean|average|relative|absolute|total|l[12]|rel|abs)[ _-]*)*(?:error|err|diff(?:erence)?|deviation|"
    r"rmse?|mse|nrmse|mae)s?\b|mismatch|residual",
    re.I,
)
_STEPS = re.compile(r"\b(?:iterations?|cycles?|time ?steps?)\b[^:=]{0,20}[:=]\s*$", re.I)
_LABEL = re.compile(r"(?:[:=]|\b(?:is|are|of|errors?|mismatch(?:es)?))\s*$", re.I)
_STRONG = re.compile(r"energy|\bnorm\b|\bfinal\b|solution|answer", re.I)
_RESULTS = re.compile(
    r"result|energy|norm|value|average|mean|accuracy|answer|solution|cost|loss|score|total|final|count|found|number",
    re.I,
)


def find_numbers(
    lines: Sequence[Line], times: Sequence[TimeDraft], only_sums: bool, launches: Iterable[tuple[str, str, int]] = ()
) -> list[CheckDraft]:
    """Number checks from printed checksums, errors and results; with `only_sums` all but checksums are suggestions. What is
    printed before any of `launches` in its function is an input, and no check."""
    taken = {draft.pattern for draft in times}
    first: dict[tuple[str, str], int] = {}
    for file, function, number in launches:
        first[file, function] = min(number, first.get((file, function), number))
    ranked: list[tuple[int, CheckDraft]] = []
    for line in lines:
        for at, value in enumerate(line.pieces):
            if (
                isinstance(value, Value)
                and value.kind != "text"
                and line.guard is None
                and line.pattern(at) not in taken
                and line.number > first.get((line.file, line.function), 0)
                and not _ECHOES.search(line.function)
                and not _tells_failure(line, at, value)
                and not (
                    line.after(at).lstrip().startswith("%") and any(line.pattern(one) in taken for one in range(at))
                )
            ):
                kind = _number(line, at, value)
                if kind is not None and (kind[0] in (0, 2, 3) or not only_sums):
                    ranked.append((kind[0], replace(kind[1], active=kind[0] == 0 or not only_sums)))
    unique = {draft.pattern: (rank, draft) for rank, draft in reversed(ranked)}
    ordered = sorted(unique.values(), key=lambda one: one[0])
    ordered = [one for one in ordered if not _BY_HOST.search(one[1].pattern)] or ordered
    least = ordered[0][0] if ordered else 0
    worth = least if least > 2 else 3 if least == 2 else 2
    wanted = [draft for rank, draft in ordered if rank <= worth]
    return wanted[:_MOST_NUMBERS]


_MOST_NUMBERS = 6
_ECHOES = re.compile(r"usage|pars|option|inputs?$|config|^read|^load|^init|^show|^help", re.I)
"""Functions that print what they were given."""
_BY_HOST = re.compile(r"\b(?:cpu|host|reference|expected|golden)\b", re.I)
_COMPLAINT = re.compile(
    r"\W*(?:fatal |cuda |hip |gpu )?(?:error|warning|cannot|could not|unable)\b(?!(?:\W*\w+){0,4}\W*[:=]\s*$)"
    r"|.*\berror: \w+ ?=",
    re.I,
)
"""A line that is printed only where something went wrong; `Error (L2 norm):` is the label of a number."""


def _tells_failure(line: Line, at: int, value: Value) -> bool:
    """Whether a line is printed only where something went wrong, its values then being what went wrong."""
    said = line.pieces[0] if isinstance(line.pieces[0], str) else ""
    wrong = _BAD.search(line.literal)
    if wrong is None:
        return _COMPLAINT.match(said) is not None or "!=" in line.literal
    return value.kind == "float" or not _is_count(line.before(at))


def _is_count(label: str) -> bool:
    """Whether a label ends with its word for wrong: `mismatches: ` and then how many."""
    words = list(_BAD.finditer(label))
    counted = re.match(r"\W*(?:number of|total|count|#)", label, re.I)
    return bool(words) and re.fullmatch(r"\W*(?:\w+\W*)?" if counted else r"\W*", label[words[-1].end() :]) is not None


_NO_RESULT = re.compile(
    r"performance|speed|bandwidth|throughput|flop|alloc|memory|\bsize\b|clocks|efficien|\bper (?:[mun]?s|sec\w*)\b"
    r"|\b(?:thread|block|grid)s?\b",
    re.I,
)


def _number(line: Line, at: int, value: Value) -> tuple[int, CheckDraft] | None:
    before = line.before(at)
    if not re.search(r"[A-Za-z]{2}", before) or TIME.search(before) or RATE.match(line.after(at)):
        return None
    if _NO_RESULT.search(before):
        return None
    exact = value.kind == "integer"
    aggregate = "sum" if line.looped else None
    where, pattern = line.where, line.pattern(at)
    if _SUMS.search(before):
        rel = 0.0 if exact else MEASURED
        return 0, CheckDraft("number", pattern, where, "a checksum", rel=rel, aggregate=aggregate)
    if _ERRORS.search(before) and (not exact or _LABEL.search(before)):
        note = "how far the program's own check is off"
        tolerance = 0.0 if exact else 1e-5
        return 1, CheckDraft("number", pattern, where, note, abs=tolerance, aggregate="max" if line.looped else None)
    if exact and _STEPS.search(before):
        return 2, CheckDraft("number", pattern, where, "how many steps it took", rel=0.0, aggregate=aggregate)
    if exact and (not _RESULTS.search(before) or _ERRORS.search(before)):
        return None
    note = "a printed number that may be a result"
    rank = 2 if _STRONG.search(before) and not exact else 3 if _RESULTS.search(before) and not exact else 4
    return rank, CheckDraft("number", pattern, where, note, rel=0.0 if exact else MEASURED, aggregate=aggregate)
