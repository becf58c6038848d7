"""The packed rows that pass between workers: each carries many facts, so Spark handles few rows.

`stage` and `bucket` are the address. What `kind` and `payload` hold:

    facts    facts of one predicate (`tidelog.data.wire_format`), or deletions of them
    final    facts that a stage derives only because time ends: as facts
    clock    the time up to which a bucket of the stage before is complete: JSON
    wake     nothing; it only wakes a bucket
    answer   facts of the query, on their way to the user; with corrections, answers that are added or taken back
             (`tidelog.spark.worker.change_log`)
    awaited  changes of hypothetical answers: JSON
    late     facts that arrived later than their delay allows
    bad      input rows that are not facts, set aside: JSON Lines
    stats    the figures of one step of a bucket, or the number of facts read, or of late facts: JSON
    state    a chunk of a saved bucket, for a stream that continues from it: a line of JSON, and the bytes
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from tidelog.errors import Diagnostic, TidelogError
from tidelog.timeline.interval import INF, Time, format_time

if TYPE_CHECKING:
    from tidelog.data.relation import Relation
    from tidelog.data.symbol_table import Symbols
    from tidelog.spark.plan.job_plan import Route

FACTS, FINAL, CLOCK, WAKE = "facts", "final", "clock", "wake"
ANSWER, AWAITED, LATE, BAD, STATS, STATE = "answer", "awaited", "late", "bad", "stats", "state"

#: The columns of packed rows, for Spark; `time` drives the clock and is dropped before the first stage.
ROW_SCHEMA = "bucket int, stage int, kind string, payload binary"
TIMED_ROW_SCHEMA = f"{ROW_SCHEMA}, time timestamp"

#: The columns of saved buckets, for Spark.
SAVED_STATE_SCHEMA = "bucket int, stage int, t string, number int, chunk binary"

#: States are cut into chunks of this many bytes, so that Spark never holds more in memory at once.
CHUNK_BYTES = 1 << 20

_LENGTH = struct.Struct("<q")

#: The stage of rows for the user, after all others.
OUTPUT_STAGE = 1 << 30

#: Spark's watermark cannot be before 1970. So the clock that Spark sees is ahead by this much, and time may start some
#: three thousand years earlier.
CLOCK_SHIFT_MS = 10**14


class Row(NamedTuple):
    bucket: int
    stage: int
    kind: str
    payload: bytes
    #: Milliseconds on Spark's clock, where the row drives it.
    time: int | None = None


def route_facts(
    symbols: Symbols, denominator: int, dates: bool, relation: Relation, routes: Iterable[Route]
) -> Iterator[Row]:
    """Pack facts into rows for the buckets that they go to."""
    # Imported here, because Spark starts four processes for the clock of a stream, which pack nothing.
    from tidelog.data import wire_format
    from tidelog.data.deletions import is_deletion, name_deletions

    for route in routes:
        name = name_deletions(route.name) if is_deletion(relation.predicate) else route.name
        relation = replace(relation, predicate=name)
        if route.key is None:
            if len(relation):
                payload = wire_format.pack(symbols, denominator, dates, relation)
                for bucket in range(route.buckets):
                    yield Row(bucket, route.stage, FACTS, payload)
            continue
        for bucket, part in wire_format.split_by_bucket(symbols, relation, route.key, route.buckets):
            yield Row(bucket, route.stage, FACTS, wire_format.pack(symbols, denominator, dates, part))


def split_into_chunks(data: bytes) -> list[bytes]:
    return [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]


def frame_parts(parts: Iterable[bytes]) -> bytes:
    """Join parts into one, each preceded by its length."""
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def unframe_parts(data: bytes) -> Iterator[bytes]:
    """Yield the parts that `frame_parts` joined."""
    at = 0
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size + size
        yield data[at - size : at]


def to_spark_clock(t: Fraction) -> int:
    """Convert a time to Spark's clock, in milliseconds."""
    at = t.numerator * 1000 // t.denominator + CLOCK_SHIFT_MS
    if 0 < at < 2 * CLOCK_SHIFT_MS:
        return at
    raise TidelogError(
        Diagnostic(
            "TL204",
            f"the timestamp {format_time(t)} is too far from 0 for Spark's clock",
            law="in a streaming job, times are less than 10^11 seconds away from 1970",
            help="use times in seconds, or set their unit",
        )
    )


def from_spark_clock(milliseconds: int) -> Time:
    """Convert Spark's clock to a time; minus infinity before any row has arrived."""
    return -INF if milliseconds <= 0 else Fraction(milliseconds - CLOCK_SHIFT_MS, 1000)


def rows_to_arrow(rows: Sequence[Row], keys: Sequence[int], *, timed: bool = False) -> Any:
    """Return packed rows as an Arrow batch; `keys` are Spark's keys of the buckets."""
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
