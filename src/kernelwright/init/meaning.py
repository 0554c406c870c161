"""What printed lines mean: which value is the time, which text is the verdict, which numbers are results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelwright.init.prints import Line, Text, Value

_UNIT_NAMES = {
    "ns": "ns", "nsec": "ns", "nsecs": "ns", "nanosecond": "ns", "nanoseconds": "ns",
    "us": "us", "usec": "us", "usecs": "us", "µs": "us", "μs": "us", "microsecond": "us", "microseconds": "us",
    "ms": "ms", "msec": "ms", "msecs": "ms", "millisecond": "ms", "milliseconds": "ms", "millisec": "ms",
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
}  # fmt: skip
_UNIT = "|".join(sorted(_UNIT_NAMES, key=len, reverse=True))
_UNIT_AFTER = re.compile(rf"\s*[(\[]?\s*({_UNIT})(?![\w/])", re.I)
_UNIT_BEFORE = re.compile(rf"[(\[,]\s*({_UNIT})\s*[)\],/]|\bin ({_UNIT})\b|_({_UNIT})\s*[:=]", re.I)
_TIME = re.compile(
    r"(?<![a-z])time(?!s\b|[ -]?steps?\b|stamp)|elapsed|duration|\btook\b|latency|runtime|\btakes\b|walltime", re.I
)
_RATE = re.compile(
    r"\s*[(\[]?\s*((?:[KMGT]i?)?(?:B|b|bytes?|flops?|flop|ops?|pairs|points|keys|elements|updates|cells|zones|particles)?"
    r"/s(?:ec(?:ond)?)?\b|[KMGT]FLOPS?\b|FLOPS\b|[MG]?LUPS\b)",
    re.I,
)
_RATE_BEFORE = re.compile(r"bandwidth|throughput|[GT]flop|per second|\brate\b", re.I)
_WORTH = (
    (3.0, re.compile(r"kernel", re.I)),
    (2.0, re.compile(r"device|gpu|offload|parallel", re.I)),
    (1.0, re.compile(r"average|avg|mean", re.I)),
    (1.0, re.compile(r"execution|compute|computation|solve|iteration", re.I)),
    (0.5, re.compile(r"total|elapsed", re.I)),
    (-4.0, re.compile(r"\bhost\b|serial|sequential|reference|\bref\b", re.I)),
    (-4.0, re.compile(r"transfer|copy|copies|memcpy|alloc|\bread|\bload|\binit|setup|set up|verif|generat|writ|i/o|\bio\b"
                      r"|warm|creat|build|pars", re.I)),
    (-5.0, re.compile(r"speed-?up|ratio|error|factor|limit|minim|simulated|timeout", re.I)),
)  # fmt: skip


@dataclass(frozen=True)
class TimeDraft:
    """A printed time, or a rate where `better` is higher."""

    pattern: str
    unit: str | None
    aggregate: str
    better: Literal["lower", "higher"]
    where: str
    score: float
    unit_known: bool = True


def find_times(
    lines: Sequence[Line], kernels: Sequence[str], language: str, launches: Iterable[tuple[str, str, int]] = ()
) -> list[TimeDraft]:
    """Printed times and rates, the likeliest first. `launches` are (file, function, line) where the kernels are called."""
    called = list(launches)
    best: dict[str, TimeDraft] = {}
    for line in lines:
        near = [line.number - number for file, function, number in called
                if file == line.file and function == line.function and number < line.number]  # fmt: skip
        bonus = (2.0 + max(0.0, 1.0 - min(near) / 100.0)) if near else 0.0
        for at in range(len(line.pieces)):
            time = _time(line, at, kernels, language)
            if time is not None and (time.pattern not in best or best[time.pattern].score < time.score + bonus):
                best[time.pattern] = replace(time, score=time.score + bonus)
    return sorted(best.values(), key=lambda time: (time.better != "lower", -time.score))


def _time(line: Line, at: int, kernels: Sequence[str], language: str) -> TimeDraft | None:
    """The value at `at` as a time or a rate, or None where the words around it speak of neither."""
    value = line.pieces[at]
    if not isinstance(value, Value) or value.kind == "text" or not re.search("[A-Za-z]", line.around(at)):
        return None
    before, after = line.before(at), line.after(at)
    words = " ".join(piece for piece in line.pieces[: at + 1] if isinstance(piece, str))
    unit_after = _UNIT_AFTER.match(after)
    if _RATE.match(after) or (_RATE_BEFORE.search(before) and not unit_after):
        score = _worth(line, words, kernels, language)
        aggregate = "mean" if line.looped else "last"
        rate = TimeDraft(line.pattern(at), None, aggregate, "higher", line.where, score)
        return rate if value.kind != "integer" else None
    unit_before = _UNIT_BEFORE.search(before)
    unit = next((name for found in (unit_after, unit_before) if found for name in found.groups() if name), None)
    named = bool(_TIME.search(words)) or bool(_TIME.search(after) and not before.strip())
    sure = unit is not None and (len(unit) > 1 or bool(re.match(r"\s*[(\[]", after)))
    if not sure and (not named or (unit is None and (value.kind == "integer" or not _TIME.search(before)))):
        return None
    score = 2.0 * named + 2.0 * (unit is not None) + _worth(line, words + after, kernels, language)
    unit_name = _UNIT_NAMES[unit.lower()] if unit else _unit_of(value.expression)
    return TimeDraft(line.pattern(at), unit_name, "sum", "lower", line.where, score, unit is not None)


def _unit_of(expression: str) -> str:
    """A guess where no unit is printed: names in the expression, else seconds."""
    found = re.search(r"(?:_|\b)(ns|us|ms)\b|(?<=[a-z])(Ms|Us|Ns)\b|\b(milli|micro|nano)", expression)
    if found is None:
        return "s"
    name: str = next(filter(None, found.groups())).lower()
    return {"milli": "ms", "micro": "us", "nano": "ns"}.get(name, name)


def _worth(line: Line, words: str, kernels: Sequence[str], language: str) -> float:
    score = sum(worth for worth, pattern in _WORTH if pattern.search(words))
    score += 3.0 * any(re.search(rf"(?<!\w){re.escape(kernel)}(?!\w)", line.literal) for kernel in kernels)
    if language != "cpp" and re.search(r"\bcpu\b", words, re.I):
        score -= 4.0
    return score - 6.0 * (line.guard is not None)


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
    r"\bFAIL(?:ED|URES?|S)?\b|\b[Ff]ail(?:ed|ures?|s)?\b|\b[Mm]is-?match(?:es|ed)?\b|\bINCORRECT\b|\b[Ii]ncorrect\b"
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
        if text.labels or _NOT_A_VERDICT.search(text.text) or len(text.text) > 160 or "%" in text.text[:1] or (
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
    if not _WEAK.fullmatch(word.group()):
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


_SUMS = re.compile(r"check-?\s?sum|hash|\bsum\b|crc", re.I)
_ERRORS = re.compile(
    r"\b(?:max(?:imum)?|mean|average|relative|absolute|total|l[12]|rel|abs)?[ _-]*(?:error|err|diff(?:erence)?|deviation|"
    r"rmse?|mse|nrmse|mae)s?\b|mismatch|residual",
    re.I,
)
_RESULTS = re.compile(
    r"result|energy|norm|value|average|mean|accuracy|answer|solution|cost|loss|score|total|final|count|found|number",
    re.I,
)


def find_numbers(lines: Sequence[Line], times: Sequence[TimeDraft], only_sums: bool) -> list[CheckDraft]:
    """Number checks from printed checksums, errors and results; with `only_sums` all but checksums are suggestions."""
    taken = {draft.pattern for draft in times}
    ranked: list[tuple[int, CheckDraft]] = []
    for line in lines:
        for at, value in enumerate(line.pieces):
            if (
                isinstance(value, Value)
                and value.kind != "text"
                and line.guard is None
                and line.pattern(at) not in taken
            ):
                kind = _number(line, at, value)
                if kind is not None and (kind[0] in (0, 2) or not only_sums):
                    ranked.append((kind[0], replace(kind[1], active=kind[0] == 0 or not only_sums)))
    unique = {draft.pattern: (rank, draft) for rank, draft in reversed(ranked)}
    ordered = sorted(unique.values(), key=lambda one: one[0])
    least = ordered[0][0] if ordered else 0
    return [draft for rank, draft in ordered if rank <= max(least, 1)][:3]


def _number(line: Line, at: int, value: Value) -> tuple[int, CheckDraft] | None:
    before = line.before(at)
    if not re.search(r"[A-Za-z]{2}", before) or _TIME.search(before) or _RATE.match(line.after(at)):
        return None
    if re.search(r"performance|speed|bandwidth|throughput|flop", before, re.I):
        return None
    exact = value.kind == "integer"
    aggregate = "sum" if line.looped else None
    where, pattern = line.where, line.pattern(at)
    if _SUMS.search(before):
        rel = 0.0 if exact else MEASURED
        return 0, CheckDraft("number", pattern, where, "a checksum", rel=rel, aggregate=aggregate)
    if _ERRORS.search(before):
        note = "how far the program's own check is off"
        tolerance = 0.0 if exact else 1e-5
        return 1, CheckDraft("number", pattern, where, note, abs=tolerance, aggregate="max" if line.looped else None)
    if exact and not _RESULTS.search(before):
        return None
    note = "a printed number that may be a result"
    rank = 2 if _RESULTS.search(before) and not exact else 3
    return rank, CheckDraft("number", pattern, where, note, rel=0.0 if exact else MEASURED, aggregate=aggregate)
