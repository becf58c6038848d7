"""Metrics of a running pipeline, per batch: as JSON Lines, and as Spark's observed metrics.

Every bucket reports the figures of its steps along with its answers. `summarise_batch` adds them up. `MetricsListener`
joins them with the figures that Spark has for the batch (rates, durations, state size) and writes one object per batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from tidelog.language.printer import format_rule
from tidelog.language.syntax import Rule
from tidelog.language.time_text import format_iso
from tidelog.timeline.interval import INF, format_time, read_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

#: The name of the observation on Spark's side.
NAME = "tidelog"
#: The number of slowest rules in the metrics.
_RULES = 5


def observe_metrics(frame: DataFrame) -> DataFrame:
    """Attach observed metrics to the rows of a job; Spark shows them with each batch."""
    from pyspark.sql import functions as F  # noqa: N812

    def total(key: str) -> Column:
        figure = F.get_json_object(F.col("payload").cast("string"), f"$.{key}").cast("bigint")
        return F.coalesce(F.sum(F.when(F.col("kind") == "stats", figure)), F.lit(0)).alias(key)

    return frame.observe(NAME, *(total(key) for key in ("facts_in", "answers", "late", "window_facts")))


#: A bucket: the number of its stage, and its own.
BucketAddress = tuple[int, int]


def summarise_batch(
    steps: Iterable[Mapping[str, Any]], latest: dict[BucketAddress, Mapping[str, Any]], rules: Sequence[Rule]
) -> dict[str, Any]:
    """Add up the figures of all buckets and sources in one batch.

    `latest` has the last step of every bucket, and is kept from batch to batch: not all of them work in each.
    """
    totals = dict.fromkeys(("facts_in", "answers", "late"), 0)
    seconds: dict[BucketAddress, float] = {}
    notes: dict[str, None] = {}
    warnings: dict[str, None] = {}
    restored: list[tuple[int, float]] = []
    costs: dict[str, dict[BucketAddress, tuple[int, float]]] = {}
    for step in steps:
        for key in totals:
            totals[key] += step.get(key, 0)
        warnings |= dict.fromkeys(step.get("unit_warnings", ()))
        if "bucket" not in step:
            continue
        where = step["stage"], step["bucket"]
        latest[where] = step  # a bucket may take several steps in a batch, which come in order
        seconds[where] = seconds.get(where, 0.0) + step["seconds"]
        for key in ("silenced", "undefined"):
            if key in step:
                totals[key] = totals.get(key, 0) + step[key]
        if "restored_bytes" in step:
            restored.append((step["restored_bytes"], step["restored_seconds"]))
        notes |= dict.fromkeys(step.get("notes", ()))
        for number, (work, took) in step["rules"].items():
            rule = rules[int(number)]
            spent = costs.setdefault(" ".join((rule.text or format_rule(rule)).split()), {})
            before = spent.get(where, (0, 0.0))
            spent[where] = before[0] + work, before[1] + took
    held: dict[str, int] = {}
    for step in latest.values():
        for predicate, count in step["held"].items():
            held[predicate] = held.get(predicate, 0) + count
    sizes = [step["window_facts"] for step in latest.values()]
    unmatched = [step["unmatched"] for step in latest.values() if "unmatched" in step]
    slowest = max(seconds, key=lambda where: seconds[where], default=None)
    clocks = [read_time(step["t"]) for step in latest.values()]
    return {
        **totals,
        "held": dict(sorted(held.items())),
        "buckets": {"worked": len(seconds), "smallest": min(sizes, default=0), "largest": max(sizes, default=0)},
        "slowest": slowest and {"stage": slowest[0], "bucket": slowest[1], "seconds": round(seconds[slowest], 6)},
        "rules": sorted(map(_rule_cost, costs, costs.values()), key=lambda cost: -cost["seconds"])[:_RULES],
        "seconds": round(sum(seconds.values()), 6),
        "watermark": format_time(min(clocks)) if clocks else None,
        "notes": list(notes),
        **({"unmatched": sum(unmatched)} if unmatched else {}),
        "unit_warnings": list(warnings)[:1],
        **({"restored": _summarise_restored(restored)} if restored else {}),
    }


def _rule_cost(rule: str, spent: Mapping[BucketAddress, tuple[int, float]]) -> dict[str, Any]:
    """Return what a rule has cost in all buckets, and in which bucket it cost the most."""
    stage, bucket = max(spent, key=lambda where: spent[where][1])
    return {
        "rule": rule,
        "seconds": round(sum(took for _, took in spent.values()), 6),
        "work": sum(work for work, _ in spent.values()),
        "stage": stage,
        "bucket": bucket,
    }


def format_summary(batch: int, found: Mapping[str, Any]) -> str:
    """Format a batch as one line, for Spark's own pages."""
    rules = found["rules"]
    return f"tidelog, batch {batch}: " + ", ".join(
        [
            f"{found['facts_in']:,} facts in",
            f"{found['answers']:,} answers",
            f"{found['late']:,} late",
            f"{sum(found['held'].values()):,} held in buckets of {found['buckets']['largest']:,} at most",
            *([f"the slowest rule took {rules[0]['seconds']:.3f} s: {rules[0]['rule']}"] if rules else []),
        ]
    )


@contextmanager
def job_description(spark: SparkSession, text: str) -> Iterator[None]:
    """Make Spark's pages show this text for the jobs that this thread runs in the block."""
    context, key = spark.sparkContext, "spark.job.description"
    before = context.getLocalProperty(key)
    context.setLocalProperty(key, text)
    try:
        yield
    finally:
        context.setLocalProperty(key, before)  # type: ignore[arg-type]


def _summarise_restored(engines: list[tuple[int, float]]) -> dict[str, Any]:
    """Return the number of restored engines, their bytes in total, and the seconds of the slowest."""
    sizes, seconds = zip(*engines, strict=True)
    return {"buckets": len(engines), "bytes": sum(sizes), "seconds": max(seconds)}


def format_watermark(found: Mapping[str, Any], dates: bool) -> dict[str, Any]:
    """Format the time up to which all is answered; for dates, also how far it lags behind the wall clock."""
    text = found.get("watermark")
    if text is None or text in ("inf", "-inf"):
        return {"watermark": None, "lag_seconds": None}
    if not dates:
        return {"watermark": text, "lag_seconds": None}
    lag = datetime.now(UTC).timestamp() - float(Fraction(text))
    return {"watermark": format_iso(Fraction(text)), "lag_seconds": round(lag, 3)}


class MetricsListener(StreamingQueryListener):
    """Writes one object per batch to a file of JSON Lines, for the query of this name.

    `batches` has the figures of the buckets by the number of the batch; they are taken out as they are written.
    """

    def __init__(self, path: str | Path, name: str, batches: dict[int, dict[str, Any]]) -> None:
        self._path, self._name, self._batches = Path(path), name, batches

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        if progress.name != self._name:
            return
        found = self._batches.pop(progress.batchId, None)
        if found is None and not progress.numInputRows:
            return
        summarise_batch = {**_spark_metrics(progress), **(found or {})}
        milliseconds = progress.durationMs.get("triggerExecution", 0)
        if found is not None and milliseconds:
            summarise_batch["facts_per_second"] = round(1000 * found["facts_in"] / milliseconds, 1)
        self._write(summarise_batch)

    def finish(self, seconds: float) -> None:
        """Wait at most this long for Spark's reports, which come after a batch; write the rest without them."""
        deadline = monotonic() + seconds
        while self._batches and monotonic() < deadline:
            sleep(0.05)
        for batch in sorted(self._batches):
            self._write({"batch": batch, **self._batches.pop(batch)})

    def _write(self, summarise_batch: Mapping[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(summarise_batch, ensure_ascii=False) + "\n")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass


def _spark_metrics(progress: StreamingQueryProgress) -> dict[str, Any]:
    return {
        "batch": progress.batchId,
        "at": progress.timestamp,
        "rows_per_second": _rate(progress.processedRowsPerSecond),
        "duration_ms": dict(progress.durationMs),
        "state_rows": sum(operator.numRowsTotal for operator in progress.stateOperators),
        "state_bytes": sum(operator.memoryUsedBytes for operator in progress.stateOperators),
    }


def _rate(rate: float) -> float:
    """Round a rate; Spark reports NaN if no rows arrived, which JSON cannot hold."""
    return round(rate, 1) if rate == rate and rate < INF else 0.0
