"""Every cheat in `refused/` is refused with a sentence that names it; every rewrite in `honest/` passes.

A candidate is the text of one region of `heat/`; its first line says what the refusal must name. The suffix names the
region: `.cpp` the function sweep, `.total.cpp` the loop inside main, `.cu` the kernel, `.step.cu` its launch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.screen import Refusal, screen
from kernelwright.source import Span, find_functions, splice

HERE = Path(__file__).parent
REFUSED = sorted(path for path in (HERE / "refused").rglob("*.c*") if path.is_file())
HONEST = sorted(path for path in (HERE / "honest").rglob("*.c*") if path.is_file())


def screened(candidate: Path) -> Refusal | None:
    """What screening says of a candidate file, the application's header read with it."""
    device, part = candidate.suffix == ".cu", candidate.name.split(".")[1]
    file, language = HERE / "heat" / ("heat.cu" if device else "heat.cpp"), "cuda" if device else "cpp"
    data = file.read_bytes()
    if part == "total":
        start, end = data.index(b"    for (int i = 0; i < n * n; ++i) {"), data.index(b"\n    // END total")
    else:
        name = "step" if part == "step" else "sweep"
        found = next(function for function in find_functions(data, language) if function.name == name)
        start, end = found.start, found.end
    span = Span(part, file.name, start, end, data.count(b"\n", 0, start) + 1, 0, data[start:end].decode())
    text = candidate.read_text().rstrip("\n")
    return screen(language, data, splice(data, {span: text}), [(span, text)], [(HERE / "heat/heat.hpp").read_bytes()])


@pytest.mark.parametrize("candidate", REFUSED, ids=lambda path: str(path.relative_to(HERE / "refused")))
def test_a_cheat_is_refused_with_a_sentence_that_names_it(candidate: Path) -> None:
    named = candidate.read_text().split("\n")[0].removeprefix("// refused for: ")
    refusal = screened(candidate)
    assert refusal is not None
    assert named in str(refusal)


@pytest.mark.parametrize("candidate", HONEST, ids=lambda path: str(path.relative_to(HERE / "honest")))
def test_an_honest_rewrite_passes(candidate: Path) -> None:
    assert screened(candidate) is None


def test_the_suite_covers_every_kind_with_many_spellings() -> None:
    assert {path.parent.name for path in REFUSED} == {"forged_result", "timer", "cache", "elsewhere", "device"}
    assert len(REFUSED) >= 100
