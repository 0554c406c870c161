"""Standard output and error that no reader can break: one who has read enough (`| head`) leaves, and the work goes on.

A run that is proven must be kept although nobody reads its table any more; and names that are not UTF-8 must be
printable, since file names and sources of other people are full of them.
"""

from __future__ import annotations

import io
import os
import sys


class Lasting(io.TextIOWrapper):
    """A text stream that goes on into nothing once its reader is gone."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._let_go()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._let_go()

    def _let_go(self) -> None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self.fileno())
        os.close(nothing)


def open_streams() -> None:
    """Make sys.stdout and sys.stderr lasting ones; a closed one stays closed."""
    sys.stdout = _lasting(sys.stdout) if sys.stdout is not None else sys.stdout
    sys.stderr = _lasting(sys.stderr) if sys.stderr is not None else sys.stderr


def _lasting(stream: object) -> Lasting:
    assert isinstance(stream, io.TextIOWrapper)
    encoding, at_once = stream.encoding, stream.line_buffering
    return Lasting(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=at_once)
