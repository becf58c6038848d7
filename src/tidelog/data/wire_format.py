"""Facts of one predicate as bytes, and the bucket that each of them goes to.

A block carries its own constants, so it can be read anywhere. It goes through networks and into saved states, so all
numbers are as narrow as possible, and little-endian:

    header: length of the predicate, arity, dates, denominator, rows, constants, bytes of the constants, least lo, and
    the bytes per number of each array | predicate | lo - least lo | hi - lo | lengths of constants | args | constants

Times are on the doubled grid. An array of zeros only, like `hi - lo` of points, takes no bytes.

The bucket of a constant is a hash of its kind and text. States are stored by bucket, so the hash must never change.

**How a constant travels from a Spark row to the engine.** Its text stays the same; its number changes with each
dictionary, and each dictionary has another scope:

1. *One Arrow batch.* A packer (`spark.worker.fact_packer`) interns the cells of a batch into a new `Symbols`, and drops
   it with the batch: Python workers share no memory, and a packer has no state.
2. *One block.* `pack` keeps the constants that occur in one relation and one bucket, and numbers them from 0. A block
   can cross a process boundary, or wait in a checkpoint, because it refers to nothing outside itself.
3. *One step.* `to_dataset` interns the blocks that a bucket takes in one step into a new `Symbols`. Facts that turn out
   to be late, or that no rule reads, end here.
4. *The engine.* `streaming.step_layout` copies the constants that some rule reads into the dictionary of the reasoner,
   which is saved with its state. So constants of other facts never make a state grow.

Each of these copies takes one look-up per distinct constant, not per fact.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidelog.data.dataset import Dataset
from tidelog.data.number_scanner import Bytes
from tidelog.data.relation import Columns, Ids, Relation, Times, combine
from tidelog.data.symbol_table import Symbols
from tidelog.jit import kernel
from tidelog.timeline.grid import NEG_INF

_HEAD = struct.Struct("<HHHqqqqq4B")


class BlockHeader(NamedTuple):
    """The header of a block. `least` is the least `lo`, `widths` the bytes per number of each array, `end` where the
    header ends."""

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
class FactBlock:
    """Facts of one predicate; `args` refer to the block's own constants, which begin at `offsets` in `pool`."""

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

    def to_relation(self, symbols: Symbols) -> Relation:
        """Convert the block to a relation whose constants are interned in `symbols`."""
        # Arrays over received bytes are read-only, and kernels are compiled for writable ones.
        ids = symbols.intern_encoded(self.pool.copy(), self.offsets.copy())
        return Relation(self.predicate, self.arity, ids[self.args], self.lo, self.hi)


def pack(symbols: Symbols, denominator: int, dates: bool, relation: Relation) -> bytes:
    """Write the facts of a relation as the bytes of a block, with the constants that occur in them."""
    used = np.zeros(len(symbols) + 1, bool)
    used[relation.args] = True
    ids = np.flatnonzero(used).astype(np.int32)
    place = np.empty(len(used), np.int32)
    place[ids] = np.arange(len(ids), dtype=np.int32)
    pool, offsets = symbols.texts_of(ids)
    name = relation.predicate.encode()
    least = int(relation.lo.min()) if len(relation) else 0
    # Differences are below 2^64. Where they pass 2^63 they wrap around, and are right as unsigned numbers.
    numbers = (relation.lo - least, relation.hi - relation.lo, np.diff(offsets), place[relation.args])
    arrays = [_narrow(array) for array in numbers]
    widths = (array.itemsize if array.size else 0 for array in arrays)
    sizes = denominator, len(relation), len(ids), len(pool)
    header = _HEAD.pack(len(name), relation.arity, dates, *sizes, least, *widths)
    return b"".join([header, name, *(array.tobytes() for array in arrays), pool.tobytes()])


def read_header(data: bytes) -> BlockHeader:
    """Read the header of a block."""
    length, arity, dates, denominator, rows, constants, size, least, *widths = _HEAD.unpack_from(data)
    end = _HEAD.size + length
    predicate = data[_HEAD.size : end].decode()
    return BlockHeader(predicate, arity, bool(dates), denominator, rows, constants, size, least, tuple(widths), end)


def unpack(data: bytes) -> FactBlock:
    """Read the bytes of a block."""
    header = read_header(data)
    at = header.end
    arrays = []
    counts = (header.rows, header.rows, header.constants, header.arity * header.rows)
    for count, width in zip(counts, header.widths, strict=True):
        if width:
            arrays.append(np.frombuffer(data, f"<u{width}", count, at))
        else:
            arrays.append(np.zeros(count, np.uint8))
        at += count * width
    starts, lengths, constant_lengths, args = arrays
    lo = starts.astype(np.int64) + header.least
    hi = lo + lengths.astype(np.int64) if header.widths[1] else lo
    offsets = np.zeros(header.constants + 1, np.int64)
    np.cumsum(constant_lengths, out=offsets[1:])
    pool = np.frombuffer(data, np.uint8, header.size, at)
    return FactBlock(
        header.predicate,
        header.arity,
        header.denominator,
        header.dates,
        args.astype(np.int32).reshape(header.arity, header.rows),
        lo,
        hi,
        offsets,
        pool,
    )


def _narrow(array: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Convert numbers to the narrowest unsigned type that holds all of them; drop them if all are zero."""
    wide = array.view(f"u{array.itemsize}")
    largest = int(wide.max(initial=0))
    if largest == 0:
        return np.empty(0, np.uint8)
    return wide.astype(np.min_scalar_type(largest).newbyteorder("<"))


def to_dataset(blocks: Iterable[FactBlock]) -> Dataset:
    """Combine blocks to a dataset, with one dictionary for all of them."""
    symbols = Symbols()
    parts = []
    for block in blocks:
        relations = {(block.predicate, block.arity): block.to_relation(symbols)}
        parts.append(Columns(block.denominator, block.dates, relations))
    return Dataset(symbols, combine(symbols, parts)) if parts else Dataset(symbols)


def pack_dataset(data: Dataset) -> Iterator[bytes]:
    """Write a dataset as the bytes of blocks, one per predicate and arity."""
    for relation in data.relations.values():
        yield pack(data.symbols, data.denominator, data.dates, relation)


def split_by_bucket(symbols: Symbols, relation: Relation, key: int, buckets: int) -> Iterator[tuple[int, Relation]]:
    """Split a relation by the bucket of the argument at position `key`; buckets without facts are left out."""
    if buckets == 1 or not len(relation):
        if len(relation):
            yield 0, relation
        return
    row_bucket = compute_buckets(symbols, buckets)[relation.args[key]]
    # numpy sorts 16-bit numbers by counting, in one pass.
    order = np.argsort(row_bucket.astype(np.uint16) if buckets < 1 << 16 else row_bucket, kind="stable")
    ends = np.cumsum(np.bincount(row_bucket, minlength=buckets))
    for bucket in range(buckets):
        rows = order[ends[bucket - 1] if bucket else 0 : ends[bucket]]
        if len(rows):
            yield bucket, relation.select(rows)


def compute_buckets(symbols: Symbols, buckets: int) -> npt.NDArray[np.int32]:
    """Compute the bucket of every constant of a dictionary."""
    pool, offsets = symbols.texts()
    bucket_of = np.empty(len(symbols), np.int32)
    _hash_constants(offsets, pool, buckets, bucket_of)
    return bucket_of


def start_ticks(relation: Relation) -> npt.NDArray[np.int64]:
    """Return when each fact begins, in ticks, as it was written: an open end counts as its time."""
    return np.where(relation.lo == NEG_INF, NEG_INF, relation.lo >> 1)


@kernel
def _hash_constants(offsets: Times, pool: Bytes, buckets: int, bucket_of: npt.NDArray[np.int32]) -> None:
    """Hash the bytes of each constant: FNV-1a, mixed once more because neighbours differ little in the low bits."""
    for i in range(len(bucket_of)):
        h = np.uint64(14695981039346656037)
        for j in range(offsets[i], offsets[i + 1]):
            h = np.uint64((h ^ np.uint64(pool[j])) * np.uint64(1099511628211))
        h ^= h >> np.uint64(29)
        h = np.uint64(h * np.uint64(13787848793156543929))
        h ^= h >> np.uint64(32)
        bucket_of[i] = h % np.uint64(buckets)
