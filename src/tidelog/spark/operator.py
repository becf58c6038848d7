"""The stateful operator: one engine a bucket, kept by Spark's state store.

Per bucket Spark keeps a base (a saved bucket), the inputs of the steps since as deltas, and a cell with a token for the
version; the first step makes a base. Bases and deltas are cut into chunks, each an entry of its own: what Spark has in
memory at once is then a chunk, however large a state is. The engine itself stays in the worker process under that
token: a step then reads one small cell and adds one delta. The engine is taken out of the cache before work, so that a
task that is tried again never meets a state that a failed attempt has touched; what is not in the cache, or has another
token, is made from base and deltas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import uuid4

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.spark.awaited_buckets import AwaitedBucket
from tidelog.spark.buckets import Bucket, Step, timely
from tidelog.spark.plan import Job
from tidelog.spark.rows import CLOCK, FACTS, Row, chunks, framed, frames, from_clock
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues


class Engine(Protocol):
    """What works in a bucket."""

    #: The bytes of state that it was made from, and the seconds that took.
    restored: tuple[int, float] | None

    @staticmethod
    def new(job: Job, part: Any, number: int, background: Dataset) -> Engine: ...
    @staticmethod
    def load(job: Job, part: Any, state: bytes, *, changed: bool = False) -> Engine: ...
    def step(self, step: Step) -> list[Row]: ...
    def save(self) -> bytes: ...
    def change(self, background: Dataset) -> bool: ...


#: The engines of this worker, by run, stage and bucket, with the tokens of their versions, and since when.
_ENGINES: dict[tuple[str, int, int], tuple[str, Engine]] = {}
_SINCE: dict[tuple[str, int, int], float] = {}
#: Seconds after which an engine is dropped that nobody has asked for: its query may have ended.
_IDLE = 600.0

#: A new base is made after so many steps, or once they have an eighth of its bytes (or are no longer small): to replay
#: some MB of steps takes a second, to load a base some hundred.
_MOST_DELTAS = 32
_SMALL = 1 << 16


class Version(NamedTuple):
    """What is kept of a bucket: the bytes of its base and in how many chunks, the same of the deltas, and their steps.

    The chunks of the base are numbered from 0 on, those of the deltas from -1 down.
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

    engine: type[Engine] = Bucket

    def __init__(self, run: str, job: Job, stage: int, keys: tuple[int, ...], background: tuple[bytes, ...]) -> None:
        self._run, self._job, self._keys, self._background = run, job, keys, background
        self._part = job.chain[stage]

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
        facts, clocks, passing, mine = [], [], [], False
        for frame in rows:
            for stage, kind, payload in zip(frame["stage"], frame["kind"], frame["payload"], strict=True):
                if stage != self._part.number:
                    passing.append(Row(bucket, int(stage), kind, bytes(payload)))
                    continue
                mine = True
                if kind == FACTS:
                    facts.append(bytes(payload))
                elif kind == CLOCK:
                    clocks.append(bytes(payload))
        given = list(self._passed(passing, clock))
        if mine:
            given += self._step(bucket, Step(clock, facts, clocks))
            self._wake_later(timerValues)
        if given:  # Spark cannot tell the types of a frame without rows
            yield self._frame(given)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[Any, ...],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        clock = self._clock(timerValues)
        given = self._step(self._keys.index(key[0]), Step(clock))
        self._wake_later(timerValues)
        yield self._frame(given)

    def handleInitialState(  # noqa: N802
        self,
        key: tuple[Any, ...],
        initialState: Any,  # noqa: N803
        timerValues: TimerValues,  # noqa: N803
    ) -> None:
        """Some chunks of a bucket that is handed over."""
        known, size = Version(*(self._version.get() or ())), 0
        for number, chunk in zip(initialState["number"], initialState["chunk"], strict=True):
            self._chunks.updateValue((int(number),), (bytes(chunk),))
            size += len(chunk)
        count = known.base_chunks + len(initialState)
        self._version.update(known._replace(base=known.base + size, base_chunks=count))

    def close(self) -> None:
        pass

    def _clock(self, timer_values: TimerValues) -> Time:
        return max(from_clock(timer_values.getCurrentWatermarkInMs()), self._job.since)

    def _wake_later(self, timer_values: TimerValues) -> None:
        """Makes the first stage work whenever time passes, with or without facts; later ones are told the time."""
        if self._part.number == 0:
            for timer in list(self._handle.listTimers()):
                self._handle.deleteTimer(timer)
            self._handle.registerTimer(max(timer_values.getCurrentWatermarkInMs(), 0) + 1)

    def _passed(self, rows: list[Row], clock: Time) -> Iterator[Row]:
        """Rows for later stages; what is late is found where it comes in."""
        for row in rows:
            if self._part.number == 0 and row.kind == FACTS:
                kept, late = timely(self._job, row.stage, row.bucket, [row.payload], clock)
                yield from (row._replace(payload=payload) for payload in kept)
                yield from late
            else:
                yield row

    # State

    def _step(self, bucket: int, step: Step) -> list[Row]:
        engine, version = self._taken(bucket)
        rows = engine.step(step)
        token = uuid4().hex
        delta = step.to_bytes()
        full = version.deltas + len(delta) > max(version.base // 8, _SMALL)
        # A base knows the rules; as the first step makes one, other rules are refused from then on.
        if not version.base or version.steps >= _MOST_DELTAS or full:
            self._keep(engine.save(), token, version)
        else:
            count = self._put(framed([delta]), -1 - version.delta_chunks, -1)
            more = {"deltas": version.deltas + len(delta), "delta_chunks": version.delta_chunks + count}
            self._version.update(version._replace(token=token, steps=version.steps + 1, **more))
        _cache((self._run, self._part.number, bucket), token, engine)
        return rows

    def _keep(self, state: bytes, token: str, before: Version) -> None:
        """Makes a saved bucket the base, in place of what was kept before."""
        count = self._put(state, 0, 1)
        for number in (*range(count, before.base_chunks), *range(-before.delta_chunks, 0)):
            self._chunks.removeKey((number,))
        self._version.update(Version(token, len(state), count))

    def _put(self, data: bytes, first: int, direction: int) -> int:
        """Writes bytes as chunks, numbered upwards or downwards; returns how many."""
        cut = chunks(data)
        for count, chunk in enumerate(cut):
            self._chunks.updateValue((first + direction * count,), (chunk,))
        return len(cut)

    def _get(self, numbers: Iterable[int]) -> bytes:
        found = (self._chunks.getValue((number,)) for number in numbers)
        return b"".join(bytes(chunk[0]) for chunk in found if chunk)

    def _taken(self, bucket: int) -> tuple[Engine, Version]:
        """The engine of a bucket as Spark's state has it, and what that is."""
        cached = _ENGINES.pop((self._run, self._part.number, bucket), None)
        kept = self._version.get()
        if kept is None:
            return self.engine.new(self._job, self._part, bucket, self._known()), Version()
        version = Version(*kept)
        if cached is not None and cached[0] == version.token:
            return cached[1], version
        begun = perf_counter()
        state = self._get(range(version.base_chunks))
        engine = self.engine.load(self._job, self._part, state, changed=self._job.changed)
        deltas = self._get(range(-1, -1 - version.delta_chunks, -1))
        for delta in frames(deltas):
            engine.step(Step.from_bytes(delta))
        engine.restored = len(state) + len(deltas), perf_counter() - begun
        if self._job.changed and engine.change(self._known()):
            # The steps so far were of other rules, so the next one makes a base.
            version = version._replace(base=0)
        return engine, version

    def _known(self) -> Dataset:
        return pieces.dataset(map(pieces.unpacked, self._background))

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


def _cache(place: tuple[str, int, int], token: str, engine: Engine) -> None:
    """Keeps an engine for the next step, and drops those that nobody has asked for."""
    now = monotonic()
    for other in [other for other, since in _SINCE.items() if now - since > _IDLE]:
        del _SINCE[other]
        _ENGINES.pop(other, None)
    _ENGINES[place], _SINCE[place] = (token, engine), now


class AwaitedProcessor(BucketProcessor):
    """The buckets that keep what is awaited."""

    engine = AwaitedBucket
