"""Merge several inputs of a stream by time, while at most a piece of each is in memory.

Each input keeps its own order: a fact arrives when the latest time that its input has shown so far is reached. Facts
are given out up to the time that every input has reached that has not ended, so that no input is late because
of another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.data.deletions import is_deletion
from tidelog.data.relation import Columns, Times
from tidelog.errors import TidelogError
from tidelog.streaming.stream_reader import StreamPiece, order_of, select_rows
from tidelog.timeline.grid import NEG_INF, POS_INF


@dataclass
class _Held:
    """The facts of one input that were read and not given out, with the arrival time of each, in ticks."""

    data: Dataset = field(default_factory=Dataset)
    arrivals: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    #: The latest time that the input has shown.
    reached: int = NEG_INF
    ended: bool = False


class InputMerger:
    """The facts of several inputs that wait for each other.

    >>> merger = InputMerger(2)
    >>> merger.add(0, Dataset.parse("A@1\\nA@5", ordered=True))
    >>> merger.add(1, Dataset.parse("B@2\\nB@3", ordered=True))
    >>> print(merger.take(), end="")
    A@1
    B@2
    B@3
    >>> merger.slowest()
    1
    """

    def __init__(self, count: int) -> None:
        self._held = [_Held() for _ in range(count)]
        self._denominator = 1

    def add(self, number: int, data: Dataset) -> None:
        """Add facts of an input; they know their positions."""
        if not len(data):
            return
        self._refine(lcm(self._denominator, data.denominator))
        data = data.with_denominator(self._denominator)
        held = self._held[number]
        begins = np.empty(len(data), np.int64)
        for relation in data.relations.values():
            # A deletion does not move the clock.
            untimed = (relation.lo == NEG_INF) | is_deletion(relation.predicate)
            begins[order_of(relation)] = np.where(untimed, NEG_INF, relation.lo >> 1)
        arrivals = np.maximum(np.maximum.accumulate(begins), held.reached)
        held.data = held.data | data if len(held.data) else data
        held.arrivals = np.concatenate([held.arrivals, arrivals])
        held.reached = int(arrivals[-1])

    def end(self, number: int) -> None:
        """Note that an input has no more facts."""
        self._held[number].ended = True

    def slowest(self) -> int | None:
        """Return the input that the others wait for; None if all have ended."""
        open_inputs = [number for number, held in enumerate(self._held) if not held.ended]
        return min(open_inputs, key=lambda number: self._held[number].reached, default=None)

    def count_held(self, number: int) -> int:
        """Count the facts of an input that wait for others."""
        return len(self._held[number].arrivals)

    def take(self, everything: bool = False, ignored: Collection[int] = ()) -> Dataset:
        """Remove and return the facts that no input can precede any more, or all facts, in order of arrival.

        The inputs of `ignored` are not waited for.
        """
        reached = [held.reached for n, held in enumerate(self._held) if not held.ended and n not in ignored]
        bound = POS_INF if everything or not reached else min(reached)
        return _merge([_cut(held, bound) for held in self._held])

    def held_facts(self) -> Dataset:
        """Return the facts that were read and not given out, in order of arrival."""
        return _merge([(held.data, held.arrivals) for held in self._held])

    def _refine(self, denominator: int) -> None:
        """Convert all facts held to a finer time step."""
        factor = denominator // self._denominator
        if factor == 1:
            return
        self._denominator = denominator
        for held in self._held:
            held.data = held.data.with_denominator(denominator)
            held.arrivals = np.where(held.arrivals == NEG_INF, NEG_INF, held.arrivals * factor)
            held.reached = held.reached if held.reached == NEG_INF else held.reached * factor


def _cut(held: _Held, bound: int) -> tuple[Dataset, Times]:
    """Remove and return the facts of an input that arrive up to a time."""
    count = int(np.searchsorted(held.arrivals, bound, "right"))
    data, arrivals = held.data, held.arrivals
    if not count:
        return Dataset(), arrivals[:0]
    if count == len(arrivals):
        held.data, held.arrivals = Dataset(), arrivals[:0]
        return data, arrivals
    early = {key: order_of(relation) < count for key, relation in data.relations.items()}
    held.data, held.arrivals = select_rows(data, {key: ~mask for key, mask in early.items()}), arrivals[count:]
    return select_rows(data, early), arrivals[:count]


def _merge(parts: Sequence[tuple[Dataset, Times]]) -> Dataset:
    """Merge facts with sorted arrival times; inputs that come first win ties."""
    parts = [(data, arrivals) for data, arrivals in parts if len(data)]
    if len(parts) <= 1:
        return parts[0][0] if parts else Dataset()
    merged = parts[0][0]
    for data, _ in parts[1:]:
        merged = merged | data
    rank = np.empty(len(merged), np.int64)
    rank[np.argsort(np.concatenate([arrivals for _, arrivals in parts]), kind="stable")] = np.arange(len(merged))
    relations = {key: replace(r, order=rank[order_of(r)]) for key, r in merged.relations.items()}
    return Dataset(merged.symbols, Columns(merged.denominator, merged.dates, relations))


def merge_files(
    merger: InputMerger, inputs: Sequence[Iterator[StreamPiece]], prepare: Callable[[Dataset], Dataset]
) -> Iterator[StreamPiece]:
    """Read inputs that wait to be read, always the one that is behind; `prepare` finds the times of facts.

    A piece names the input that was read last. An error comes after all facts that arrive before it.
    """
    errors: dict[int, TidelogError] = {}
    while (number := merger.slowest()) is not None:
        piece = None if number in errors else next(inputs[number], None)
        if piece is None:
            merger.end(number)
            data = merger.take() if number not in errors else Dataset()
            yield StreamPiece(data, -1, errors.get(number), number)
            if number in errors:
                return
            continue
        if piece.error:
            errors[number] = piece.error
        merger.add(number, prepare(piece.data))
        yield replace(piece, data=merger.take(), input=number, error=None)
