"""A stream of its own that wakes every bucket once, and makes time pass where nothing else does.

Its first row wakes all buckets of the first stage, so that one that no fact ever reaches knows the background and the
time. With `every`, it gives the time of the wall clock so often, so that absence is noticed although nothing comes at
all; with `until`, a last time, for streams that end. All it gives follows from its offsets, so it can be read again.
Offsets also hold Spark's keys of the buckets, under which all state is kept: by other keys none of it would be found.
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
from tidelog.spark.rows import TIMED_ROW, WAKE, on_clock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ClockSource(DataSource):
    """`spark.readStream.format("tidelog-clock")`: options `keys` (of all buckets), `woken` (how many of them the first
    stage has), `every` and `until` (seconds)."""

    @classmethod
    def name(cls) -> str:
        return "tidelog-clock"

    def schema(self) -> str:
        return TIMED_ROW

    def streamReader(self, schema: Any) -> _ClockReader:  # noqa: N802
        every, until = self.options.get("every"), self.options.get("until")
        keys = [int(key) for key in self.options["keys"].split(",")]
        woken = int(self.options["woken"])
        return _ClockReader(keys, woken, Fraction(every) if every else None, Fraction(until) if until else None)


class _Stretch(InputPartition):
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
                    law="a checkpoint goes on with the same number of buckets and of partitions",
                    help="give `buckets` and spark.sql.shuffle.partitions as they were, or begin with a new checkpoint",
                )
            )
        at = int(start["at"])
        if self._every is not None:
            beats = Fraction(time.time_ns(), 10**9) // self._every
            at = max(at, on_clock(beats * self._every))
        if self._until is not None:
            # One millisecond more: with a clock at t, facts may still come at t.
            at = max(at, on_clock(self._until) + 1)
        return {"woken": 1, "at": at, "keys": self._keys}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_Stretch(start, end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, _Stretch)
        if partition.end["woken"] > partition.start["woken"]:
            for key in self._keys[: self._woken]:
                yield key, 0, WAKE, b"", None
        if partition.end["at"] > partition.start["at"]:
            yield self._keys[0], 0, WAKE, b"", _EPOCH + timedelta(milliseconds=partition.end["at"])
