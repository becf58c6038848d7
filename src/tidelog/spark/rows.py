"""The rows that go between workers, packed: a few of them carry many facts, whatever Spark takes for a row.

`stage` and `bucket` are the address. What `kind` and `payload` hold:

    facts    facts of one predicate (`tidelog.data.pieces`)
    clock    up to when a bucket of the stage before has given all: JSON
    wake     nothing; it only makes a bucket work
    answer   facts of the query, on their way to the user
    awaited  changes of what is awaited: JSON
    late     facts that came later than their delay allows
    bad      rows of the input that are no facts, set aside: JSON Lines
    stats    the figures of one bucket's step, or how many facts came in, or too late: JSON
    state    a chunk of a bucket as it was saved, to be handed over to a stream: a line of JSON, and the bytes
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from tidelog.data import pieces
from tidelog.data.columns import Relation
from tidelog.data.symbols import Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.plan import Route
from tidelog.timeline.interval import INF, Time, format_time

FACTS, CLOCK, WAKE = "facts", "clock", "wake"
ANSWER, AWAITED, LATE, BAD, STATS, STATE = "answer", "awaited", "late", "bad", "stats", "state"

#: The columns of packed rows, for Spark; `time` drives the clock and is dropped before the first stage.
ROW = "bucket int, stage int, kind string, payload binary"
TIMED_ROW = f"{ROW}, time timestamp"

#: The columns of saved buckets, for Spark.
SAVED = "bucket int, stage int, t string, number int, chunk binary"

#: What is large is cut into chunks of so many bytes, so that Spark never has more of it in memory at once.
CHUNK = 1 << 20

_LENGTH = struct.Struct("<q")

#: Rows that are on their way to the user have passed all stages.
OUT = 1 << 30

#: Spark's watermark begins at 1970 and cannot be before it. So the clock that Spark sees is ahead by this much, and
#: time may begin some three thousand years earlier.
SHIFT_MS = 10**14


class Row(NamedTuple):
    bucket: int
    stage: int
    kind: str
    payload: bytes
    #: Milliseconds on Spark's clock, where the row drives it.
    time: int | None = None


def addressed(
    symbols: Symbols, denominator: int, dates: bool, relation: Relation, routes: Iterable[Route]
) -> Iterator[Row]:
    """Facts as rows for the buckets that they go to."""
    for route in routes:
        relation = replace(relation, predicate=route.name)
        if route.key is None:
            if len(relation):
                payload = pieces.packed(symbols, denominator, dates, relation)
                for bucket in range(route.buckets):
                    yield Row(bucket, route.stage, FACTS, payload)
            continue
        for bucket, part in pieces.by_bucket(symbols, relation, route.key, route.buckets):
            yield Row(bucket, route.stage, FACTS, pieces.packed(symbols, denominator, dates, part))


def chunks(data: bytes) -> list[bytes]:
    return [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]


def framed(parts: Iterable[bytes]) -> bytes:
    """Parts one after the other, each with its length before it."""
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def frames(data: bytes) -> Iterator[bytes]:
    """The parts that `framed` was given."""
    at = 0
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + size
        yield data[at - size : at]


def on_clock(t: Fraction) -> int:
    """A time on Spark's clock, in milliseconds."""
    at = t.numerator * 1000 // t.denominator + SHIFT_MS
    if 0 < at < 2 * SHIFT_MS:
        return at
    raise TidelogError(
        Diagnostic(
            "TL204",
            f"the timestamp {format_time(t)} is too far from 0 for Spark's clock",
            law="in a streaming job times are less than 10^11 seconds away from 1970",
            help="give times in seconds, or the unit that they have",
        )
    )


def from_clock(milliseconds: int) -> Time:
    """The time that Spark's clock shows; minus infinity before any row has come."""
    return -INF if milliseconds <= 0 else Fraction(milliseconds - SHIFT_MS, 1000)


def as_arrow(rows: Sequence[Row], keys: Sequence[int], *, timed: bool = False) -> Any:
    """Packed rows as an Arrow batch; `keys` are Spark's keys for the buckets."""
    import pyarrow as pa

    columns = [
        pa.array([keys[row.bucket] for row in rows], pa.int32()),
        pa.array([row.stage for row in rows], pa.int32()),
        pa.array([row.kind for row in rows], pa.string()),
        pa.array([row.payload for row in rows], pa.binary()),
    ]
    names = ["bucket", "stage", "kind", "payload"]
    if timed:
        times = [None if row.time is None else row.time * 1000 for row in rows]
        columns.append(pa.array(times, pa.timestamp("us", tz="UTC")))
        names.append("time")
    return pa.RecordBatch.from_arrays(columns, names)
