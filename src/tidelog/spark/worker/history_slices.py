"""Cut a history into slices of time that an engine takes one by one, so that it holds no more than a stream would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tidelog.data import wire_format
from tidelog.data.symbol_table import Symbols
from tidelog.data.wire_format import FactBlock
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import INF, Time

#: The approximate number of facts per slice.
FACTS_PER_SLICE = 1 << 20
#: The approximate number of facts that are sampled to find slices of the same size.
_SAMPLE = 1 << 14


def split_by_time(payloads: Sequence[bytes], last: Time) -> Iterator[tuple[Time, list[bytes]]]:
    """Split facts by their start times; yield the start of each slice, and its facts.

    The first slice starts at minus infinity, and none starts after `last`.
    """
    total = sum(len(wire_format.unpack(payload)) for payload in payloads)
    bounds = [bound for bound in _find_bounds(payloads, total) if bound <= last] if total > FACTS_PER_SLICE else []
    ends: list[Time] = [*bounds, INF]
    begin: Time = -INF
    for end in ends:
        yield begin, [part for payload in payloads for part in _select_between(payload, begin, end)]
        begin = end


def select_facts(piece: FactBlock, rows: NDArray[np.bool_]) -> bytes:
    """Select some facts of a block as a block of their own."""
    symbols = Symbols()
    return wire_format.pack(symbols, piece.denominator, piece.dates, piece.to_relation(symbols).select(rows))


def _find_bounds(payloads: Sequence[bytes], total: int) -> list[Fraction]:
    """Find start times of facts that cut them into slices of about the same size."""
    step = max(1, total // _SAMPLE)
    found: list[tuple[float, int, int]] = []
    for payload in payloads:
        piece = wire_format.unpack(payload)
        begins = piece.lo[::step]
        ticks = (begins[begins > NEG_INF] >> 1).tolist()
        found += ((tick / piece.denominator, tick, piece.denominator) for tick in ticks)
    found.sort()
    count = ceil(total / FACTS_PER_SLICE)
    places = sorted({len(found) * number // count for number in range(1, count)})
    return sorted({Fraction(tick, denominator) for _, tick, denominator in (found[place] for place in places)})


def _select_between(payload: bytes, begin: Time, end: Time) -> Iterator[bytes]:
    piece = wire_format.unpack(payload)
    ticks = piece.lo >> 1
    rows = np.ones(len(piece), bool)
    if not isinstance(begin, float):
        rows &= ticks >= ceil(begin * piece.denominator)
    if not isinstance(end, float):
        rows &= ticks < ceil(end * piece.denominator)
    if rows.all():
        yield payload
    elif rows.any():
        yield select_facts(piece, rows)
