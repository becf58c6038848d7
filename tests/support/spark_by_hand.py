"""A streaming job without Spark: the same packed rows, buckets and operator, with Spark's part done by hand.

Spark's part is to bring rows to their buckets stage by stage, to keep state and timers, to move the watermark after
each batch, and to lose its workers or try a task again when it likes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pandas as pd

import tidelog as tl
from tidelog.analysis.distribution import Distribution, plan_distribution, plan_stable_distribution
from tidelog.compiler.compiled_program import Memory
from tidelog.data import wire_format
from tidelog.data.deletions import strip_mark
from tidelog.language.syntax import Fact
from tidelog.spark.awaiting.awaited_operator import AwaitedProcessor
from tidelog.spark.awaiting.awaited_plan import add_awaited_stage
from tidelog.spark.awaiting.awaited_worker import make_awaiter
from tidelog.spark.plan.job_plan import AwaitedStagePlan, Awaiting, JobPlan, PlanOptions, StableMode, plan_job
from tidelog.spark.plan.stable_program import derive_query
from tidelog.spark.worker import stateful_operator
from tidelog.spark.worker.batch_worker import make_backfiller
from tidelog.spark.worker.change_log import unpack_changes
from tidelog.spark.worker.engine_cache import EngineCache
from tidelog.spark.worker.fact_packer import route_input_facts
from tidelog.spark.worker.packed_rows import (
    ANSWER,
    AWAITED,
    LATE,
    OUTPUT_STAGE,
    STATE,
    STATS,
    WAKE,
    Row,
    rows_to_arrow,
    to_spark_clock,
)
from tidelog.spark.worker.stateful_operator import BucketProcessor
from tidelog.streaming.alerts import AlertOptions
from tidelog.streaming.answer_changes import AnswerChange
from tidelog.streaming.output_times import DelayLike, parse_delays
from tidelog.timeline.interval import TimelineName

#: The engines of the workers that tasks run in: the first one or, with faults, any of them. They ask each other.
WORKERS = (EngineCache(), EngineCache())


def forget_engines() -> None:
    """Let workers begin anew."""
    stateful_operator._ENGINES = WORKERS[0]
    for worker in WORKERS:
        worker.clear()


@dataclass
class _Cell:
    value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


@dataclass
class _Map:
    values: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:  # noqa: N802
        return self.values.get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: N802
        self.values[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:  # noqa: N802
        del self.values[key]


@dataclass
class _Handle:
    """The state and the timers of one key."""

    cells: dict[str, _Cell] = field(default_factory=dict)
    maps: dict[str, _Map] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)

    def getValueState(self, name: str, schema: str) -> _Cell:  # noqa: N802
        return self.cells.setdefault(name, _Cell())

    def getMapState(self, name: str, key: str, value: str) -> _Map:  # noqa: N802
        return self.maps.setdefault(name, _Map())

    def registerTimer(self, at: int) -> None:  # noqa: N802
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:  # noqa: N802
        self.timers.discard(at)

    def listTimers(self) -> Iterator[int]:  # noqa: N802
        return iter(sorted(self.timers))


@dataclass(frozen=True)
class _Clock:
    watermark: int

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.watermark


@dataclass
class ByHand:
    """A job and its state."""

    split: Distribution
    job: JobPlan
    background: tuple[bytes, ...]
    choose: random.Random
    faults: bool
    watermark: int = 0
    handles: dict[tuple[int, int], _Handle] = field(default_factory=dict)
    answers: list[Fact] = field(default_factory=list)
    late: list[Fact] = field(default_factory=list)
    #: How the answers have changed, with corrections.
    changes: list[AnswerChange] = field(default_factory=list)
    #: The figures of all steps.
    stats: list[dict[str, Any]] = field(default_factory=list)
    #: What has changed of what is awaited.
    awaited: list[dict[str, Any]] = field(default_factory=list)
    begun: bool = False

    @staticmethod
    def start(
        program: tl.Program,
        query: str,
        background: Sequence[Fact] = (),
        *,
        buckets: int = 2,
        delay: DelayLike = 0,
        timeline: TimelineName | None = None,
        memory: Memory | None = None,
        at: str | tuple[Fraction, ...] | None = None,
        seed: int = 0,
        faults: bool = False,
        alerts: AlertOptions | None = None,
        awaiting: Awaiting | None = None,
        until: Fraction | None = None,
        corrections: Fraction | None = None,
        stable: StableMode | None = None,
    ) -> ByHand:
        known = tl.Dataset.from_facts(background)
        names = {name for name, _ in known.relations}
        if stable is not None:
            program = derive_query(program, query, program.predicates[query])
            split = plan_stable_distribution(program, background=names)
        else:
            split = plan_distribution(program, query, background=names)
        work = plan_job(
            program,
            query,
            split,
            PlanOptions(
                buckets,
                parse_delays(delay),
                timeline,
                memory,
                at,
                alerts=alerts,
                until=until,
                corrections=corrections,
                stable=stable,
            ),
        )
        if awaiting is not None:
            work = add_awaited_stage(work, awaiting, {}, known, buckets=buckets, dates=False)
        return ByHand(split, work, tuple(wire_format.pack_dataset(known)), random.Random(seed), faults)

    def changed(self, program: tl.Program, background: Sequence[Fact] = ()) -> ByHand:
        """The same job, stopped and started again with other rules, with all that Spark kept of it."""
        known = tl.Dataset.from_facts(background)
        last = self.job.stages[-1]
        work = plan_job(
            program,
            self.job.query,
            plan_distribution(program, self.job.query, background={name for name, _ in known.relations}),
            PlanOptions(
                buckets=max(stage.buckets for stage in self.job.stages),
                delays=self.job.delays,
                timeline=last.timeline,
                memory=last.memory,
                at=last.at,
                rules_changed=True,
                corrections=self.job.corrections,
            ),
        )
        other = replace(
            self, job=work, background=tuple(wire_format.pack_dataset(known)), handles=deepcopy(self.handles)
        )
        other.answers, other.late, other.stats, other.changes = [], [], [], []
        forget_engines()
        return other

    def batch(self, facts: Iterable[Fact | str] = (), until: Fraction | None = None) -> None:
        """One micro-batch, with the watermark that those before it have left."""
        data = tl.Dataset.from_facts(facts)
        rows = [
            row
            for relation in data.relations.values()
            for row in route_input_facts(self.job, data.symbols, data.denominator, data.dates, relation, timed=True)
        ]
        if not self.begun:
            rows += [Row(bucket, 0, WAKE, b"") for bucket in range(self.job.stages[0].buckets)]
            self.begun = True
        if until is not None:
            at = to_spark_clock(until) + 1
            rows += [Row(bucket, 0, WAKE, b"", at) for bucket in range(self.job.stages[0].buckets)]
        following = max([self.watermark, *(row.time for row in rows if row.time is not None)])
        for part in self.job.all_stages:
            rows = list(self._stage(part.number, rows))
        self._received(rows)
        self.watermark = following

    def backfill(self, facts: Iterable[Fact]) -> None:
        """All that has passed at once, as a batch job, whose state is handed over to the stream."""
        data = tl.Dataset.from_facts(facts)
        keys = tuple(range(self.job.max_buckets))
        rows = [Row(bucket, part.number, WAKE, b"") for part in self.job.all_stages for bucket in range(part.buckets)]
        for relation in data.relations.values():
            rows += route_input_facts(self.job, data.symbols, data.denominator, data.dates, relation, timed=False)
        until = max(Fraction(fact.interval.lo) for fact in facts)
        until = Fraction(until * 1000 // 1, 1000)
        for part in self.job.all_stages:
            if isinstance(part, AwaitedStagePlan):
                worker = make_awaiter(self.job, self.background, until, saved=True)
            else:
                worker = make_backfiller(self.job, part.number, self.background, until)
            done = worker(iter([rows_to_arrow(rows, keys)]))
            rows = [Row(*row.values()) for batch in done for row in batch.to_pylist()]
        self._received(rows)
        self.job = replace(self.job, start=until)
        for row in rows:
            if row.kind == STATE:
                address, _, chunk = row.payload.partition(b"\n")
                stage, _, number = json.loads(address)
                handle = self.handles.setdefault((stage, row.bucket), _Handle())
                processor = self._processor(stage, keys)
                processor.init(handle)
                processor.handleInitialState(
                    (row.bucket,), pd.DataFrame({"number": [number], "chunk": [chunk]}), _Clock(0)
                )

    def _processor(self, stage: int, keys: tuple[int, ...]) -> Any:
        kind = AwaitedProcessor if isinstance(self.job.all_stages[stage], AwaitedStagePlan) else BucketProcessor
        return kind(str(id(self)), self.job, stage, keys, self.background)

    def _received(self, rows: Iterable[Row]) -> None:
        for row in rows:
            assert row.stage == OUTPUT_STAGE
            if row.kind == ANSWER and self.job.corrections is not None:
                sign, known, block = unpack_changes(row.payload)
                facts = (replace(f, predicate=strip_mark(f.predicate)) for f in wire_format.to_dataset([block]))
                self.changes += (AnswerChange(f.predicate, f.args, f.interval, sign, known) for f in facts)
            elif row.kind in (ANSWER, LATE):
                found = list(wire_format.to_dataset([wire_format.unpack(row.payload)]))
                (self.answers if row.kind == ANSWER else self.late).extend(found)
            elif row.kind == STATS:
                self.stats.append(json.loads(row.payload))
            elif row.kind == AWAITED:
                told = json.loads(row.payload)
                self.awaited += ({**change, "step": told["step"]} for change in told["changes"])

    def _stage(self, stage: int, rows: Sequence[Row]) -> Iterator[Row]:
        by_bucket: dict[int, list[Row]] = {}
        for row in rows:
            by_bucket.setdefault(row.bucket, []).append(row)
        for bucket, some in by_bucket.items():
            yield from self._called(stage, bucket, self.choose.sample(some, len(some)))
        for at, bucket in list(self.handles):
            if at == stage and any(timer <= self.watermark for timer in self.handles[at, bucket].timers):
                yield from self._called(stage, bucket, None)

    def _called(self, stage: int, bucket: int, rows: list[Row] | None) -> list[Row]:
        if self.faults:
            stateful_operator._ENGINES = self.choose.choice(WORKERS)
        for worker in WORKERS if self.faults else ():
            if self.choose.random() < (0.2 if worker is stateful_operator._ENGINES else 0.5):
                worker.clear()  # a new worker in its place
        if self.faults and self.choose.random() < 0.3:  # an attempt that fails after its work
            self._attempt(stage, bucket, rows, deepcopy(self.handles.get((stage, bucket), _Handle())))
        return self._attempt(stage, bucket, rows, self.handles.setdefault((stage, bucket), _Handle()))

    def _attempt(self, stage: int, bucket: int, rows: list[Row] | None, handle: _Handle) -> list[Row]:
        keys = tuple(range(self.job.max_buckets))
        processor = self._processor(stage, keys)
        processor.init(handle)
        clock = _Clock(self.watermark if stage == 0 else -1)
        if rows is None:
            frames = list(processor.handleExpiredTimer((bucket,), clock, None))
        else:
            half = len(rows) // 2
            given = [_frame(part) for part in (rows[:half], rows[half:]) if part]
            frames = list(processor.handleInputRows((bucket,), iter(given), clock))
        assert all(len(frame) for frame in frames), "Spark cannot tell the types of a frame without rows"
        return [Row(*row) for frame in frames for row in frame.itertuples(index=False)]


def _frame(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame([row[:4] for row in rows], columns=["bucket", "stage", "kind", "payload"])
