"""Facts as bytes: whatever they are, they come back as they were, in few bytes, and go to the same bucket for ever."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidelog.data import wire_format
from tidelog.data.relation import Relation
from tidelog.data.symbol_table import Symbols
from tidelog.timeline.grid import NEG_INF, POS_INF

ENDS = st.one_of(st.integers(-300, 300), st.integers(NEG_INF + 1, POS_INF - 1), st.sampled_from([NEG_INF, POS_INF]))
NAMES = st.one_of(st.sampled_from("abc"), st.text(min_size=1, max_size=300), st.integers(-1000, 1000))
ROWS = st.lists(st.tuples(st.tuples(NAMES, NAMES), ENDS, ENDS))


@pytest.mark.slow
@given(ROWS, st.integers(1, 10**9), st.booleans())
@example([(("a", "b"), NEG_INF, POS_INF)], 1, False)
@example([(("a", "b"), NEG_INF, NEG_INF + 1), (("a", "b"), POS_INF - 1, POS_INF)], 1, False)
@example([], 1, True)
def test_facts_come_back_as_they_were(
    rows: list[tuple[tuple[str | int, str | int], int, int]], denominator: int, dates: bool
) -> None:
    symbols = Symbols()
    ids = [[symbols.intern(str(name)) for name in names] for names, _, _ in rows]
    args = np.array(ids, np.int32).reshape(-1, 2).T
    lo, hi = (np.array([sorted(row[1:])[end] for row in rows], np.int64) for end in (0, 1))
    data = wire_format.pack(symbols, denominator, dates, Relation("Née", 2, args, lo, hi))
    piece, head = wire_format.unpack(data), wire_format.read_header(data)
    assert (piece.predicate, piece.arity, piece.denominator, piece.dates) == ("Née", 2, denominator, dates)
    assert (piece.lo.tolist(), piece.hi.tolist()) == (lo.tolist(), hi.tolist())
    texts = [bytes(piece.pool[a:b]) for a, b in zip(piece.offsets[:-1], piece.offsets[1:], strict=True)]
    pool, offsets = symbols.texts()
    assert [[texts[i] for i in row] for row in piece.args.T] == [
        [bytes(pool[offsets[i] : offsets[i + 1]]) for i in row] for row in args.T
    ]
    assert (head.rows, head.least) == (len(rows), min(lo.tolist(), default=0))


def test_a_piece_takes_few_bytes() -> None:
    times = np.arange(100_000) + (1 << 40)
    symbols = Symbols()
    ids = np.array([symbols.intern(f"machine{i}") for i in range(200)], np.int32)
    args = ids[np.arange(100_000) % 200].reshape(1, -1)
    points = wire_format.pack(symbols, 1, False, Relation("Hot", 1, args, times, times))
    assert len(points) < 6 * 100_000, "four for a time, one for a name, none for an end that is the beginning"
    one = wire_format.pack(symbols, 1, False, Relation("Hot", 1, args[:, :1], times[:1], times[:1]))
    assert len(one) < 100


def test_the_bucket_of_a_constant_never_changes() -> None:
    """A checkpoint that was written years ago has its facts where this hash says."""

    def bucket(kind: str, text: str) -> int:
        h = 14695981039346656037
        for byte in (kind + text).encode():
            h = (h ^ byte) * 1099511628211 % 2**64
        h ^= h >> 29
        h = h * 13787848793156543929 % 2**64
        return (h ^ (h >> 32)) % 1000

    symbols = Symbols()
    for value in ("a", "machine17", Fraction(12), Fraction(1, 2)):
        symbols.intern(value)
    named = [("s", "a"), ("s", "machine17"), ("n", "12"), ("n", "1/2")]
    assert (
        wire_format.compute_buckets(symbols, 1000).tolist() == [bucket(*name) for name in named] == [501, 318, 918, 800]
    )
