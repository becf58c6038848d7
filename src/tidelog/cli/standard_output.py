"""Write bytes to standard output in full, or give it to a protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


def write_stdout(text: bytes) -> None:
    """Write all of a text to standard output; an unbuffered one (python -u) may take only part of it per call."""
    rest = memoryview(text)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]


@contextmanager
def protocol_output() -> Iterator[BinaryIO]:
    """Give standard output to a protocol: what else is printed goes to standard error, where it does no harm."""
    sys.stdout.flush()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        yield output
    finally:
        if not output.closed:
            output.close()
