"""A streaming source that wakes every bucket once, and advances time if nothing else does.

Its first row wakes all buckets of the first stage, so that a bucket without facts knows the background and the time.
With `every`, it emits the time of the wall clock at that interval, so that absence is noticed even if nothing arrives.
With `until`, it emits a last time, for streams that end. Its rows follow from its offsets, so it can be read again.
Offsets also hold Spark's keys of the buckets, under which all state is kept: other keys would find none of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.worker.packed_rows import TIMED_ROW_SCHEMA, WAKE, to_spark_clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ClockSource(DataSource):
    """`spark.readStream.format("tidelog-clock")`: options `keys` (of all buckets), `woken` (how many of them the first
    stage has), `every` and `until` (seconds)."""

    @classmethod
    def name(cls) -> str:
        return "tidelog-clock"

    def schema(self) -> str:
        return TIMED_ROW_SCHEMA

    def streamReader(self, schema: Any) -> _ClockReader:  # noqa: N802
        every, until = self.options.get("every"), self.options.get("until")
        keys = [int(key) for key in self.options["keys"].split(",")]
        woken = int(self.options["woken"])
        return _ClockReader(keys, woken, Fraction(every) if every else None, Fraction(until) if until else None)


class _OffsetRange(InputPartition):
    def __init__(self, start: dict[str, Any], end: dict[str, Any]) -> None:
        self.start, self.end = start, end


class _ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are `{"woken": 0 or 1, "at": milliseconds on Spark's clock, or 0, "keys": of the buckets}`."""

    def __init__(self, keys: list[int], woken: int, every: Fraction | None, until: Fraction | None) -> None:
        self._keys, self._woken, self._every, self._until = keys, woken, every, until

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"woken": 0, "at": 0, "keys": self._keys}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if start["keys"] != self._keys:
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    f"the checkpoint keeps the state of {len(start['keys'])} buckets under other keys than this job",
                    law="a checkpoint continues with the same number of buckets and of partitions",
                    help="set `buckets` and spark.sql.shuffle.partitions as they were, or use a new checkpoint",
                )
            )
        at = int(start["at"])
        if self._every is not None:
            beats = Fraction(time.time_ns(), 10**9) // self._every
            at = max(at, to_spark_clock(beats * self._every))
        if self._until is not None:
            # One millisecond more: with a clock at t, facts at t may still arrive.
            at = max(at, to_spark_clock(self._until) + 1)
        return {"woken": 1, "at": at, "keys": self._keys}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_OffsetRange(start, end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _OffsetRange)
        if partition.end["woken"] > partition.start["woken"]:
            for key in self._keys[: self._woken]:
                yield key, 0, WAKE, b"", None
        if partition.end["at"] > partition.start["at"]:
            # The end of time wakes all buckets, also where Spark's clock has passed it already.
            woken = 1 if self._until is None else self._woken
            for key in self._keys[:woken]:
                yield key, 0, WAKE, b"", _EPOCH + timedelta(milliseconds=partition.end["at"])
