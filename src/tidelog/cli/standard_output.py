"""Write bytes to standard output in full."""

from __future__ import annotations

import sys


def write_stdout(text: bytes) -> None:
    """Write all of a text to standard output; an unbuffered one (python -u) may take only part of it per call."""
    rest = memoryview(text)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
