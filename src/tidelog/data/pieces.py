"""Facts of one predicate as bytes, and which bucket each of them goes to.

A piece carries its own constants, so it can be read anywhere; those who read many put them into one dictionary. It goes
through networks and into states, so all numbers are as narrow as they can be, and little-endian:

    head: predicate (its length), arity, dates, denominator, rows, constants, bytes of them, least lo, bytes of a number
    in each array | predicate | lo - least lo | hi - lo | lengths of the constants | args | constants

Times are on the doubled grid. An array of nothing but zeros, like `hi - lo` of points, takes no bytes.

The bucket of a constant is a hash of its kind and text. States are kept by bucket, so it never changes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import Columns, Ids, Relation, Times, combined
from tidelog.data.dataset import Dataset
from tidelog.data.numerals import Bytes
from tidelog.data.symbols import Symbols
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.kernels import kernel

_HEAD = struct.Struct("<HHHqqqqq4B")


class Head(NamedTuple):
    """What a piece says of itself: `least` is where the first of its facts begins."""

    predicate: str
    arity: int
    dates: bool
    denominator: int
    rows: int
    constants: int
    size: int
    least: int
    widths: tuple[int, ...]
    end: int


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
    least = int(relation.lo.min()) if len(relation) else 0
    # Distances are below 2^64, and come out right as such where they pass 2^63.
    numbers = (relation.lo - least, relation.hi - relation.lo, np.diff(offsets), place[relation.args])
    arrays = [_narrow(array) for array in numbers]
    widths = (array.itemsize if array.size else 0 for array in arrays)
    sizes = denominator, len(relation), len(ids), len(pool)
    head = _HEAD.pack(len(name), relation.arity, dates, *sizes, least, *widths)
    return b"".join([head, name, *(array.tobytes() for array in arrays), pool.tobytes()])


def head(data: bytes) -> Head:
    """What the bytes of a piece say of it."""
    length, arity, dates, denominator, rows, constants, size, least, *widths = _HEAD.unpack_from(data)
    end = _HEAD.size + length
    predicate = data[_HEAD.size : end].decode()
    return Head(predicate, arity, bool(dates), denominator, rows, constants, size, least, tuple(widths), end)


def unpacked(data: bytes) -> Piece:
    """The piece that some bytes are."""
    known = head(data)
    at = known.end
    found = []
    counts = (known.rows, known.rows, known.constants, known.arity * known.rows)
    for count, width in zip(counts, known.widths, strict=True):
        if width:
            found.append(np.frombuffer(data, f"<u{width}", count, at))
        else:
            found.append(np.zeros(count, np.uint8))
        at += count * width
    lo = found[0].astype(np.int64) + known.least
    hi = lo + found[1].astype(np.int64) if known.widths[1] else lo
    offsets = np.zeros(known.constants + 1, np.int64)
    np.cumsum(found[2], out=offsets[1:])
    args = found[3].astype(np.int32).reshape(known.arity, known.rows)
    pool = np.frombuffer(data, np.uint8, known.size, at)
    return Piece(known.predicate, known.arity, known.denominator, known.dates, args, lo, hi, offsets, pool)


def _narrow(array: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Numbers in as few bytes as all of them take; none at all where they are zeros."""
    wide = array.view(f"u{array.itemsize}")
    most = int(wide.max(initial=0))
    if most == 0:
        return np.empty(0, np.uint8)
    return wide.astype(np.min_scalar_type(most).newbyteorder("<"))


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
