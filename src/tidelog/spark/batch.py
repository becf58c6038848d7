"""Batch reasoning, bucket by bucket: all the facts of a bucket in memory, and one model of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tidelog.data import pieces
from tidelog.errors import Diagnostic, TidelogError
from tidelog.reasoning import AnyTime, materialise
from tidelog.spark.buckets import program_of, share
from tidelog.spark.plan import Job
from tidelog.spark.rows import ANSWER, FACTS, OUT, Row, addressed, as_arrow

Between = tuple[AnyTime, AnyTime]


def evaluator(
    job: Job, stage: int, background: tuple[bytes, ...], between: Between | None
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """A function for `mapInArrow`: packed rows of some buckets to what their stage gives."""
    part = job.parts[stage]
    keys = range(max(part.buckets for part in job.parts))

    def evaluate(batches: Iterator[Any]) -> Iterator[Any]:
        mine: dict[int, list[bytes]] = {}
        for batch in batches:
            passing = []
            for row in zip(*(batch[name].to_pylist() for name in ("bucket", "stage", "kind", "payload")), strict=True):
                bucket, target, kind, payload = row
                if target != stage:
                    passing.append(Row(*row))
                    continue
                facts = mine.setdefault(bucket, [])
                if kind == FACTS:
                    facts.append(payload)
            if passing:
                yield as_arrow(passing, keys)
        known = pieces.dataset(map(pieces.unpacked, background))
        for bucket in sorted(mine):
            data = pieces.dataset(map(pieces.unpacked, mine.pop(bucket))) | share(part, bucket, known)
            yield as_arrow(list(_given(job, stage, bucket, data, between if part.last else None)), keys)

    return evaluate


def _given(job: Job, stage: int, bucket: int, data: Any, between: Between | None) -> Iterator[Row]:
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
