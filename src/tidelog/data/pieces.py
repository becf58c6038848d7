"""Facts of one predicate as bytes, and which bucket each of them goes to.

A piece carries its own constants, so it can be read anywhere; those who read many put them into one dictionary. All
numbers are little-endian, times are on the doubled grid:

    predicate (2 bytes, its length) | arity (2) | dates (4) | denominator, rows, constants, bytes of them (8 each) |
    predicate | padding to 8 | lo | hi | offsets | args | constants

The bucket of a constant is a hash of its kind and text. States are kept by bucket, so it never changes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import Columns, Ids, Relation, Times, combined
from tidelog.data.dataset import Dataset
from tidelog.data.numerals import Bytes
from tidelog.data.symbols import Symbols
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.kernels import kernel

_HEAD = struct.Struct("<HHIqqqq")


@dataclass(frozen=True, eq=False)
class Piece:
    """Facts of one predicate; `args` refer to the piece's own constants, which begin at `offsets` in `pool`."""

    predicate: str
    arity: int
    denominator: int
    dates: bool
    args: Ids
    lo: Times
    hi: Times
    offsets: Times
    pool: Bytes

    def __len__(self) -> int:
        return len(self.lo)


def packed(symbols: Symbols, denominator: int, dates: bool, relation: Relation) -> bytes:
    """The facts of a relation as a piece's bytes, with the constants that occur in it."""
    used = np.zeros(len(symbols) + 1, bool)
    used[relation.args] = True
    ids = np.flatnonzero(used).astype(np.int32)
    place = np.empty(len(used), np.int32)
    place[ids] = np.arange(len(ids), dtype=np.int32)
    pool, offsets = symbols.some_texts(ids)
    name = relation.predicate.encode()
    head = _HEAD.pack(len(name), relation.arity, dates, denominator, len(relation), len(ids), len(pool)) + name
    arrays = (relation.lo, relation.hi, offsets, np.ascontiguousarray(place[relation.args]), pool)
    return b"".join([head, bytes(-len(head) % 8), *(array.tobytes() for array in arrays)])


def unpacked(data: bytes) -> Piece:
    """The piece that some bytes are."""
    length, arity, dates, denominator, rows, constants, size = _HEAD.unpack_from(data)
    predicate = data[_HEAD.size : _HEAD.size + length].decode()
    at = _HEAD.size + length
    at += -at % 8
    lo = np.frombuffer(data, np.int64, rows, at)
    hi = np.frombuffer(data, np.int64, rows, at + 8 * rows)
    at += 16 * rows
    offsets = np.frombuffer(data, np.int64, constants + 1, at)
    at += 8 * (constants + 1)
    args = np.frombuffer(data, np.int32, arity * rows, at).reshape(arity, rows)
    pool = np.frombuffer(data, np.uint8, size, at + 4 * arity * rows)
    return Piece(predicate, arity, denominator, bool(dates), args, lo, hi, offsets, pool)


def dataset(pieces: Iterable[Piece]) -> Dataset:
    """All the facts of some pieces, under one dictionary."""
    symbols = Symbols()
    parts = []
    for piece in pieces:
        ids = symbols.intern_all(piece.pool.copy(), piece.offsets.copy())
        relation = Relation(piece.predicate, piece.arity, ids[piece.args], piece.lo, piece.hi)
        parts.append(Columns(piece.denominator, piece.dates, {(piece.predicate, piece.arity): relation}))
    return Dataset(symbols, combined(symbols, parts)) if parts else Dataset(symbols)


def pieces_of(data: Dataset) -> Iterator[bytes]:
    """A dataset as pieces, one a predicate."""
    for relation in data.relations.values():
        yield packed(data.symbols, data.denominator, data.dates, relation)


def by_bucket(symbols: Symbols, relation: Relation, key: int, buckets: int) -> Iterator[tuple[int, Relation]]:
    """The parts of a relation that go to each bucket, by the argument at a position; empty parts are left out."""
    if buckets == 1 or not len(relation):
        if len(relation):
            yield 0, relation
        return
    row_bucket = buckets_of(symbols, buckets)[relation.args[key]]
    # Small numbers are sorted by counting, in one pass.
    order = np.argsort(row_bucket.astype(np.uint16) if buckets < 1 << 16 else row_bucket, kind="stable")
    ends = np.cumsum(np.bincount(row_bucket, minlength=buckets))
    for bucket in range(buckets):
        rows = order[ends[bucket - 1] if bucket else 0 : ends[bucket]]
        if len(rows):
            yield bucket, part_of(relation, rows)


def part_of(relation: Relation, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Relation:
    """Some rows of a relation."""
    lo, hi = relation.lo[rows], relation.hi[rows]
    return Relation(relation.predicate, relation.arity, relation.args[:, rows], lo, hi)


def buckets_of(symbols: Symbols, buckets: int) -> npt.NDArray[np.int32]:
    """The bucket of every constant of a dictionary."""
    pool, offsets = symbols.texts()
    found = np.empty(len(symbols), np.int32)
    _hashed(offsets, pool, buckets, found)
    return found


def begins(relation: Relation) -> npt.NDArray[np.int64]:
    """When each fact begins, in ticks, as it was written."""
    return np.where(relation.lo == NEG_INF, NEG_INF, relation.lo >> 1)


@kernel
def _hashed(offsets: Times, pool: Bytes, buckets: int, found: npt.NDArray[np.int32]) -> None:
    """FNV-1a over the bytes of each constant, mixed once more, as neighbours differ little in the low bits."""
    for i in range(len(found)):
        h = np.uint64(14695981039346656037)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(pool[j])) * np.uint64(1099511628211)
        h ^= h >> np.uint64(29)
        h *= np.uint64(13787848793156543929)
        h ^= h >> np.uint64(32)
        found[i] = np.int32(h % np.uint64(buckets))
