"""Every reader of what others wrote keeps its promise on bytes of any kind, and on sound inputs cut, doubled and mixed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import SEEDS
from targets import TARGETS

STRANGE = (
    "\0", "\x1b[2J", "\\ud800", "\u202e", "\U0001d7db", "\r", "{", "[", '"', "'", "\\", "`", "<", "9" * 5000, "1e999",
    "NaN", "-0.0", "\n\n", "  ", "((((", "/*", "*/", "#", "$(A)", ":",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """A sound input with pieces taken out, repeated, exchanged, or strange ones put in."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + draw(st.sampled_from([1, 8, 80])))))
        piece = draw(
            st.one_of(
                st.just(b""),
                st.sampled_from([word.encode() for word in STRANGE]),
                st.sampled_from(seeds),
                st.just(data[start:end] * 3),
                st.binary(max_size=8),
            )
        )
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", TARGETS)
def test_a_sound_input_is_read(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
@settings(settings.get_profile("fuzz"))
@given(data=st.data())
def test_no_input_breaks_a_promise(name: str, data: st.DataObject) -> None:
    anything = st.binary(max_size=200) | st.text().map(lambda text: text.encode(errors="replace"))
    TARGETS[name](data.draw(mutated(SEEDS[name]) | anything))
