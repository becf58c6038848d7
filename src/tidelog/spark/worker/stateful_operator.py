"""The stateful operator: one engine per bucket, kept in Spark's state store.

Per bucket, Spark keeps a base (a saved bucket), the inputs of the steps since as deltas, and a cell with a token for
the version; the first step writes a base. Bases and deltas are cut into chunks, each an entry of its own, so Spark
holds one chunk in memory at a time, however large the state is. The engine itself stays in the worker process under
that token (`engine_cache`): a step then reads one small cell and adds one delta. The engine is taken out of the cache
before it works, so a task that is retried never meets a state that a failed attempt has touched. An engine that no
worker of this machine has under that token is restored from base and deltas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.spark.plan.job_plan import JobPlan
from tidelog.spark.worker.bucket import Bucket, BucketInput
from tidelog.spark.worker.engine_cache import EngineCache
from tidelog.spark.worker.late_facts import split_late_facts
from tidelog.spark.worker.packed_rows import (
    CLOCK,
    FACTS,
    FINAL,
    Row,
    frame_parts,
    from_spark_clock,
    split_into_chunks,
    unframe_parts,
)
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues


class BucketEngine(Protocol):
    """The engine of a bucket: reasons, follows stable models, or holds hypothetical answers."""

    #: The bytes of state that it was restored from, and the seconds it took.
    restored: tuple[int, float] | None

    @staticmethod
    def new(job: JobPlan, plan: Any, number: int, background: Dataset) -> BucketEngine: ...
    @staticmethod
    def load(job: JobPlan, plan: Any, state: bytes, *, changed: bool = False) -> BucketEngine: ...
    def step(self, step: BucketInput) -> list[Row]: ...
    def save(self) -> bytes: ...
    def adopt_rules(self, background: Dataset) -> bool: ...


#: The engines of this worker.
_ENGINES = EngineCache()

#: A new base is written after this many steps, or once their inputs reach an eighth of its bytes (and are not small):
#: replaying some MB of steps takes a second, as loading a base of some hundred MB does.
_MOST_DELTAS = 32
_SMALL = 1 << 16


class Version(NamedTuple):
    """The stored version of a bucket: bytes and chunks of its base and of its deltas, and the number of steps.

    Chunks of the base are numbered from 0 up, those of the deltas from -1 down.
    """

    token: str = ""
    base: int = 0
    base_chunks: int = 0
    deltas: int = 0
    delta_chunks: int = 0
    steps: int = 0


_VERSION = "token string, base long, base_chunks int, deltas long, delta_chunks int, steps int"


class BucketProcessor(StatefulProcessor):
    """The buckets of one stage."""

    def __init__(
        self, run: str, job: JobPlan, stage: int, keys: tuple[int, ...], background: tuple[bytes, ...]
    ) -> None:
        self._run, self._job, self._keys, self._background = run, job, keys, background
        self._plan = job.all_stages[stage]
        self._engine = self._choose_engine()

    def _choose_engine(self) -> type[BucketEngine]:
        """Return the class of the engines."""
        if self._job.stable is None:
            return Bucket
        from tidelog.spark.worker.stable_bucket import StableBucket

        return StableBucket

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._version = handle.getValueState("version", _VERSION)
        self._chunks = handle.getMapState("chunks", "number int", "bytes binary")

    def handleInputRows(  # noqa: N802
        self,
        key: tuple[Any, ...],
        rows: Any,
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        clock = self._clock(timerValues)
        bucket = self._keys.index(key[0])
        facts, clocks, finals, passing, has_own_rows = [], [], [], [], False
        for frame in rows:
            for stage, kind, payload in zip(frame["stage"], frame["kind"], frame["payload"], strict=True):
                if stage != self._plan.number:
                    passing.append(Row(bucket, int(stage), kind, bytes(payload)))
                    continue
                has_own_rows = True
                if kind == FACTS:
                    facts.append(bytes(payload))
                elif kind == CLOCK:
                    clocks.append(bytes(payload))
                elif kind == FINAL:
                    finals.append(bytes(payload))
        output = list(self._forward(passing, clock))
        if has_own_rows:
            output += self._step(bucket, BucketInput(clock, facts, clocks, self._job.until, finals))
            self._wake_later(timerValues)
        if output:  # Spark cannot tell the types of a frame without rows
            yield self._frame(output)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[Any, ...],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        clock = self._clock(timerValues)
        output = self._step(self._keys.index(key[0]), BucketInput(clock, until=self._job.until))
        self._wake_later(timerValues)
        yield self._frame(output)

    def handleInitialState(  # noqa: N802
        self,
        key: tuple[Any, ...],
        initialState: Any,  # noqa: N803
        timerValues: TimerValues,  # noqa: N803
    ) -> None:
        """Store some chunks of a bucket that a backfill saved."""
        known, size = Version(*(self._version.get() or ())), 0
        for number, chunk in zip(initialState["number"], initialState["chunk"], strict=True):
            self._chunks.updateValue((int(number),), (bytes(chunk),))
            size += len(chunk)
        count = known.base_chunks + len(initialState)
        self._version.update(known._replace(base=known.base + size, base_chunks=count))

    def close(self) -> None:
        pass

    def _clock(self, timer_values: TimerValues) -> Time:
        return max(from_spark_clock(timer_values.getCurrentWatermarkInMs()), self._job.start)

    def _wake_later(self, timer_values: TimerValues) -> None:
        """Wake the first stage whenever time passes, with or without facts; later stages receive the clock as rows."""
        if self._plan.number == 0:
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            self._handle.registerTimer(max(timer_values.getCurrentWatermarkInMs(), 0) + 1)

    def _forward(self, rows: list[Row], clock: Time) -> Iterator[Row]:
        """Pass rows on to later stages, without late facts: the first stage finds those."""
        for row in rows:
            if self._plan.number == 0 and row.kind == FACTS:
                kept, late = split_late_facts(self._job, row.stage, row.bucket, [row.payload], clock)
                yield from (row._replace(payload=payload) for payload in kept)
                yield from late
            else:
                yield row

    # State

    def _step(self, bucket: int, step: BucketInput) -> list[Row]:
        engine, version = self._load_engine(bucket)
        rows = engine.step(step)
        token = _ENGINES.make_token()
        delta = step.to_bytes()
        full = version.deltas + len(delta) > max(version.base // 8, _SMALL)
        # A base holds the rules. The first step writes one, so other rules are refused from then on.
        if not version.base or version.steps >= _MOST_DELTAS or full:
            self._write_base(engine.save(), token, version)
        else:
            count = self._write_chunks(frame_parts([delta]), -1 - version.delta_chunks, -1)
            more = {"deltas": version.deltas + len(delta), "delta_chunks": version.delta_chunks + count}
            self._version.update(version._replace(token=token, steps=version.steps + 1, **more))
        _ENGINES.keep((self._run, self._plan.number, bucket), token, engine)
        return rows

    def _write_base(self, state: bytes, token: str, before: Version) -> None:
        """Write a saved bucket as the base, and remove the chunks of the version before."""
        count = self._write_chunks(state, 0, 1)
        for number in (*range(count, before.base_chunks), *range(-before.delta_chunks, 0)):
            self._chunks.removeKey((number,))
        self._version.update(Version(token, len(state), count))

    def _write_chunks(self, data: bytes, first: int, direction: int) -> int:
        """Write bytes as chunks, numbered upwards or downwards; return their number."""
        cut = split_into_chunks(data)
        for count, chunk in enumerate(cut):
            self._chunks.updateValue((first + direction * count,), (chunk,))
        return len(cut)

    def _read_chunks(self, numbers: Iterable[int]) -> bytes:
        found = (self._chunks.getValue((number,)) for number in numbers)
        return b"".join(bytes(chunk[0]) for chunk in found if chunk)

    def _load_engine(self, bucket: int) -> tuple[BucketEngine, Version]:
        """Return the engine of a bucket at the version in Spark's state, and that version."""
        kept = self._version.get()
        version = Version(*(kept or ()))
        cached: BucketEngine | None = _ENGINES.take((self._run, self._plan.number, bucket), version.token)
        if kept is None:
            return self._engine.new(self._job, self._plan, bucket, self._background_facts()), version
        if cached is not None:
            return cached, version
        begun = perf_counter()
        state = self._read_chunks(range(version.base_chunks))
        engine = self._engine.load(self._job, self._plan, state, changed=self._job.rules_changed)
        deltas = self._read_chunks(range(-1, -1 - version.delta_chunks, -1))
        for delta in unframe_parts(deltas):
            engine.step(BucketInput.from_bytes(delta))
        engine.restored = len(state) + len(deltas), perf_counter() - begun
        if self._job.rules_changed and engine.adopt_rules(self._background_facts()):
            # The steps so far were taken with other rules, so the next one writes a base.
            version = version._replace(base=0)
        return engine, version

    def _background_facts(self) -> Dataset:
        return wire_format.to_dataset(map(wire_format.unpack, self._background))

    def _frame(self, rows: list[Row]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            {
                "bucket": pd.Series([self._keys[row.bucket] for row in rows], dtype="int32"),
                "stage": pd.Series([row.stage for row in rows], dtype="int32"),
                "kind": [row.kind for row in rows],
                "payload": [row.payload for row in rows],
            }
        )
