"""Ctrl-C and SIGTERM as a wish to stop at the next good moment, and not in the middle of a step."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stopping:
    """Whether a stop is `asked` for, by which signal, and a file descriptor that becomes readable then."""

    wake: int
    asked: bool = False
    signal: int = 0


@contextmanager
def stopping() -> Iterator[Stopping]:
    """While this lasts, the first signal is noted; a second one interrupts at once."""
    wake, write = os.pipe()
    os.set_blocking(write, False)
    stop = Stopping(wake)

    def note(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked, stop.signal = True, number

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(wake)
        os.close(write)
