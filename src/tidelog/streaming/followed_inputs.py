"""Follow live inputs: read what is there, then wait for more, until all have ended or the stream is stopped."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidelog.data.dataset import Dataset
from tidelog.streaming.live_input import LiveInput
from tidelog.streaming.merged_input import InputMerger
from tidelog.streaming.stream_reader import StopSignal, StreamPiece

#: Seconds between two looks at inputs that have not grown.
PAUSE = 0.1
#: Facts of one input that may wait for the others before it is no longer read.
MOST_HELD = 1_000_000


@dataclass(frozen=True)
class Patience:
    """How long a silent input holds the others back, in seconds, and how often an idle stream ticks.

    None means that it holds them back for ever, and that the stream never ticks.
    """

    silence: float | None = None
    heartbeat: float | None = None


def follow_inputs(
    merger: InputMerger,
    inputs: Sequence[LiveInput],
    prepare: Callable[[int, Dataset], Dataset],
    stop: StopSignal | None,
    patience: Patience,
) -> Iterator[StreamPiece]:
    """Yield what arrives at inputs, merged by time; with a heartbeat, also empty pieces while nothing arrives.

    `prepare` finds the times of the facts of an input. An input that is behind holds the others back until it has been
    silent for a while.
    """
    heard = [time.monotonic()] * len(inputs)
    ticked = time.monotonic()
    open_inputs = set(range(len(inputs)))
    while open_inputs and not (stop and stop.requested):
        grown = False
        for number in sorted(open_inputs):
            piece = inputs[number].read() if merger.count_held(number) < MOST_HELD else None
            if inputs[number].ended:
                merger.end(number)
                open_inputs.discard(number)
                piece = piece or StreamPiece(Dataset(), -1)
            if piece is not None:
                grown, heard[number] = True, time.monotonic()
                merger.add(number, prepare(number, piece.data))
                yield replace(piece, data=merger.take(everything=piece.error is not None), input=number)
        now = time.monotonic()
        silent = {n for n in open_inputs if patience.silence is not None and now - heard[n] >= patience.silence}
        if len(waiting := merger.take(ignored=silent)):
            yield StreamPiece(waiting, -1)
        if patience.heartbeat is not None and now - max(ticked, *heard) >= patience.heartbeat:
            ticked = now
            yield StreamPiece(merger.take(everything=True), -1, idle=True)
        elif not grown:
            fds = [fd for number in open_inputs if (fd := inputs[number].wait_fd) is not None]
            select.select([*fds, *([stop.wake_fd] if stop else [])], [], [], PAUSE)
