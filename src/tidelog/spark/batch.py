"""Batch reasoning, bucket by bucket: all the facts of a bucket in memory, and one model, or one stream, of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.reasoning import AnyTime, materialise
from tidelog.spark.awaited_buckets import AwaitedBucket
from tidelog.spark.buckets import Bucket, Step, program_of, share
from tidelog.spark.plan import Job
from tidelog.spark.rows import ANSWER, CLOCK, FACTS, OUT, STATE, Row, addressed, as_arrow, chunks
from tidelog.spark.slices import stretches
from tidelog.streaming.state import unpack
from tidelog.timeline.interval import INF, Time, format_time, read_time

Between = tuple[AnyTime, AnyTime]
#: What `mapInArrow` takes.
Worker = Callable[[Iterator[Any]], Iterator[Any]]


def evaluator(job: Job, stage: int, background: tuple[bytes, ...], between: Between | None) -> Worker:
    """A function for `mapInArrow`: packed rows of some buckets to what their stage gives."""
    part = job.parts[stage]

    def given(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        facts = (pieces.unpacked(row.payload) for row in rows if row.kind == FACTS)
        data = pieces.dataset(facts) | share(part, bucket, known)
        yield list(_model(job, stage, bucket, data, between if part.last else None))

    return _by_bucket(job, stage, background, given)


def backfiller(job: Job, stage: int, background: tuple[bytes, ...], until: Time) -> Worker:
    """A function for `mapInArrow`: as a stream would go, stretch by stretch of time, and the state at its end."""
    part = job.parts[stage]

    def given(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        engine = Bucket.new(job, part, bucket, known)
        facts = [row.payload for row in rows if row.kind == FACTS]
        end = Step(until, [], [row.payload for row in rows if row.kind == CLOCK])
        last = min((read_time(json.loads(payload)[1]) for payload in end.clocks), default=-INF) if stage else until
        for begin, some in stretches(facts, last):
            told = begin > -INF and stage > 0
            clocks = [json.dumps([before, format_time(begin), False]).encode() for before in range(part.before)]
            yield engine.step(Step(begin if stage == 0 else -INF, some, clocks if told else []))
        yield engine.step(end)
        yield from _saved(engine.save())

    return _by_bucket(job, stage, background, given)


def awaiter(job: Job, background: tuple[bytes, ...], until: Time, *, saved: bool) -> Worker:
    """A function for `mapInArrow`: what is awaited once all facts have come and the clock is at `until`; and the state
    at this end, if it is to be `saved`."""
    part = job.awaited
    assert part is not None

    def given(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        engine = AwaitedBucket.new(job, part, bucket, known)
        yield engine.pass_over([row.payload for row in rows if row.kind == FACTS], until)
        if saved:
            yield from _saved(engine.save())

    return _by_bucket(job, part.number, background, given)


def _saved(state: bytes) -> Iterator[list[Row]]:
    """The state of a bucket, chunk by chunk."""
    meta, _ = unpack(state, "the state of a bucket")
    for number, chunk in enumerate(chunks(state)):
        address = json.dumps([meta["stage"], meta["t"], number]).encode()
        yield [Row(meta["bucket"], OUT, STATE, address + b"\n" + chunk)]


def _by_bucket(
    job: Job, stage: int, background: tuple[bytes, ...], given: Callable[[int, list[Row], Dataset], Iterator[list[Row]]]
) -> Worker:
    """Collects the rows of each bucket of a stage, and gives what it makes of them, some at a time; others pass."""
    keys = range(job.most_buckets)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        mine: dict[int, list[Row]] = {}
        for batch in batches:
            passing = []
            for row in zip(*(batch[name].to_pylist() for name in ("bucket", "stage", "kind", "payload")), strict=True):
                if row[1] == stage:
                    mine.setdefault(row[0], []).append(Row(*row))
                else:
                    passing.append(Row(*row))
            if passing:
                yield as_arrow(passing, keys)
        known = pieces.dataset(map(pieces.unpacked, background))
        for bucket in sorted(mine):
            for some in given(bucket, mine.pop(bucket), known):
                yield as_arrow(some, keys)

    return work


def _model(job: Job, stage: int, bucket: int, data: Dataset, between: Between | None) -> Iterator[Row]:
    part = job.parts[stage]
    names = list(part.stage.gives)
    model = materialise(program_of(job, part, bucket), data, query=names, between=between, timeline=part.timeline)
    if model.repeats:
        raise TidelogError(
            Diagnostic(
                "TL304",
                f"answers go on for ever ({model.repeats[0].text()[2:]})",
                law="a DataFrame is finite",
                help="ask for a stretch of time: between=(LO, HI)",
            )
        )
    for relation, denominator in model.relations():
        if bucket and relation.predicate in part.copied:
            continue
        if part.last and relation.predicate == job.query:
            payload = pieces.packed(model.symbols, denominator, data.dates, relation)
            yield Row(bucket, OUT, ANSWER, payload)
        yield from addressed(model.symbols, denominator, data.dates, relation, part.routes[relation.predicate])
