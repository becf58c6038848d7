"""What Ctrl-C and SIGTERM do: end compiled code at once, or ask a stream to stop after the current step."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once: compiled code would notice an exception only when it returns."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class StopRequest:
    """Whether a stop has been `requested`, by which signal; `wake_fd` becomes readable at that moment."""

    wake_fd: int
    requested: bool = False
    signal: int = 0


@contextmanager
def stop_on_signal() -> Iterator[StopRequest]:
    """Record the first SIGINT or SIGTERM as a request to stop; a second one interrupts at once."""
    wake_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    request = StopRequest(wake_fd)

    def record(number: int, frame: FrameType | None) -> None:
        if request.requested:
            raise KeyboardInterrupt
        request.requested, request.signal = True, number

    handlers = {number: signal.signal(number, record) for number in (signal.SIGINT, signal.SIGTERM)}
    wakeup_before = signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
    try:
        yield request
    finally:
        signal.set_wakeup_fd(wakeup_before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(wake_fd)
        os.close(write_fd)
