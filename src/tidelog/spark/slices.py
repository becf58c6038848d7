"""A history cut into stretches of time, which an engine takes one after the other: it then holds no more than it would
of the stream itself, and not all that ever came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tidelog.data import pieces
from tidelog.data.columns import Relation
from tidelog.data.pieces import Piece
from tidelog.data.symbols import Symbols
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import INF, Time

#: So many facts, more or less, are taken at once.
FACTS = 1 << 20
#: Of all facts about so many are looked at to find stretches of the same size.
_SAMPLE = 1 << 14


def stretches(payloads: Sequence[bytes], last: Time) -> Iterator[tuple[Time, list[bytes]]]:
    """Facts by the time at which they begin: the time from which on those of a stretch do, and they themselves.

    The first stretch begins at minus infinity, and none begins after `last`.
    """
    total = sum(len(pieces.unpacked(payload)) for payload in payloads)
    bounds = [bound for bound in _bounds(payloads, total) if bound <= last] if total > FACTS else []
    ends: list[Time] = [*bounds, INF]
    begin: Time = -INF
    for end in ends:
        yield begin, [part for payload in payloads for part in _within(payload, begin, end)]
        begin = end


def chosen(piece: Piece, rows: NDArray[np.bool_]) -> bytes:
    """Some facts of a piece, as a piece of their own."""
    symbols = Symbols()
    ids = symbols.intern_all(piece.pool.copy(), piece.offsets.copy())
    relation = Relation(piece.predicate, piece.arity, ids[piece.args], piece.lo, piece.hi)
    return pieces.packed(symbols, piece.denominator, piece.dates, pieces.part_of(relation, rows))


def _bounds(payloads: Sequence[bytes], total: int) -> list[Fraction]:
    """Times at which facts begin, with about as many facts between each two."""
    step = max(1, total // _SAMPLE)
    found: list[tuple[float, int, int]] = []
    for payload in payloads:
        piece = pieces.unpacked(payload)
        begins = piece.lo[::step]
        ticks = (begins[begins > NEG_INF] >> 1).tolist()
        found += ((tick / piece.denominator, tick, piece.denominator) for tick in ticks)
    found.sort()
    count = ceil(total / FACTS)
    places = sorted({len(found) * number // count for number in range(1, count)})
    return sorted({Fraction(tick, denominator) for _, tick, denominator in (found[place] for place in places)})


def _within(payload: bytes, begin: Time, end: Time) -> Iterator[bytes]:
    piece = pieces.unpacked(payload)
    ticks = piece.lo >> 1
    rows = np.ones(len(piece), bool)
    if not isinstance(begin, float):
        rows &= ticks >= ceil(begin * piece.denominator)
    if not isinstance(end, float):
        rows &= ticks < ceil(end * piece.denominator)
    if rows.all():
        yield payload
    elif rows.any():
        yield chosen(piece, rows)
