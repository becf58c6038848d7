"""Real Spark: the behaviour suite as batch jobs, and streams that are stopped, resumed, late and backfilled."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import tidelog as tl
from behaviour import Behaviour, load_cases
from formula_parts import head_predicates
from locations import TRAFFIC_MISSING, TRAFFIC_S2
from test_streaming import SHORT_STOP
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.spark import JobOptions, JobOutput, build_job, reason
from tidelog.spark.job.session import STATE_STORE_SETTINGS, session
from tidelog.spark.plan.bucket_keys import choose_bucket_keys
from tidelog.timeline.interval import INF, Interval, Time

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    running = session("local[2]", settings={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
    yield running
    running.stop()


#: A whole row as one column.
AS_JSON = "to_json(struct(*), map('ignoreNullFields', 'false')) as row"

# Facts as rows, and answers as facts


def as_frames(spark: SparkSession, facts: Iterable[Fact]) -> dict[str, DataFrame] | None:
    """Fact DataFrames; None where columns cannot hold the facts, as Spark's have one type each."""
    by_predicate: dict[str, list[Fact]] = {}
    for fact in facts:
        by_predicate.setdefault(fact.predicate, []).append(fact)
    frames = {}
    for predicate, some in by_predicate.items():
        columns = [_column(values) for values in zip(*(fact.args for fact in some), strict=True)]
        ends = [_times([end for fact in some for end in (fact.interval.lo, fact.interval.hi)])]
        if None in columns or None in ends:
            return None
        if all(fact.interval == Interval.always() for fact in some):
            times: list[tuple[Any, ...]] = [() for _ in some]
            schema = ""
        else:
            kind = ends[0]
            times = [(_time(f.interval.lo, kind), _time(f.interval.hi, kind), _closed(f.interval)) for f in some]
            schema = f"start {kind}, end {kind}, closed string"
        args = [f"a{i} {kind}" for i, kind in enumerate(columns)]
        rows = [
            (*(_value(v, k) for v, k in zip(fact.args, columns, strict=True)), *when)
            for fact, when in zip(some, times, strict=True)
        ]
        if not args and not schema:
            return None
        frames[predicate] = spark.createDataFrame(rows, ", ".join([*args, *([schema] if schema else [])]))
    return frames


def _column(values: tuple[Any, ...]) -> str | None:
    if all(isinstance(value, str) for value in values):
        return "string"
    if any(isinstance(value, str) for value in values):
        return None
    return _times(list(values))


def _times(values: list[Any]) -> str | None:
    exact = [value for value in values if isinstance(value, Fraction)]
    if all(value.denominator == 1 for value in exact):
        return "bigint"
    return "double" if all(Fraction(str(float(value))) == value for value in exact) else None


def _value(value: Any, kind: str | None) -> Any:
    return value if isinstance(value, str) else int(value) if kind == "bigint" else float(value)


def _time(t: Time, kind: str | None) -> Any:
    return None if isinstance(t, float) else _value(t, kind)


def _rounded(fact: Fact) -> Fact:
    """A fact as the columns of an answer hold it: a computed number that is no decimal is a double."""
    args = (
        value if isinstance(value, str) or value.denominator == 1 else Fraction(str(float(value)))
        for value in fact.args
    )
    return replace(fact, args=tuple(args))


def _closed(interval: Interval) -> str:
    return {(True, True): "both", (True, False): "left", (False, True): "right", (False, False): "neither"}[
        interval.lo_closed, interval.hi_closed
    ]


def as_text(predicate: str, row: Mapping[str, Any]) -> str:
    """An answer as text, as facts are printed."""
    args = [row[name] for name in row if name.startswith("arg")]
    values = tuple(value if isinstance(value, str) else Fraction(str(value)) for value in args)
    lo = -INF if row["start"] is None else Fraction(str(row["start"]))
    hi = INF if row["end"] is None else Fraction(str(row["end"]))
    closed = row["closed"]
    return format_fact(
        Fact(predicate, values, Interval(lo, hi, closed in ("both", "left"), closed in ("both", "right")))
    )


# Batch


def one_job(spark: SparkSession, cases: list[Behaviour]) -> int:
    """Runs many cases as one job, and compares each with one engine; how many there were."""
    frames: list[DataFrame] = []
    expected: dict[str, list[str]] = {}
    for case in cases:
        program = tl.Program.parse(case.rules, syntax=case.syntax)
        data = tl.Dataset.parse(case.facts)
        if program.temporal:
            data = data.with_time_arguments(program.temporal.temporal)
        known = program.predicates
        facts = [fact for fact in data if known.get(fact.predicate) == len(fact.args)]
        given = as_frames(spark, facts)
        if given is None or not given:
            continue
        ends = [e for fact in facts for e in (fact.interval.lo, fact.interval.hi) if isinstance(e, Fraction)]
        between = (min(ends, default=Fraction(0)) - 7, max(ends, default=Fraction(0)) + 7)
        for query in case.queries or sorted(head_predicates(program.rules)):
            if query.startswith("$") or query not in known:
                continue
            local = tl.materialise(program, data, query=query, between=between, timeline=case.timeline)
            if _times([end for fact in local for end in (fact.interval.lo, fact.interval.hi)]) is None:
                continue  # thirds, say, have no exact number in Spark
            if any(abs(value) >= 1 << 63 for fact in local for value in fact.args if isinstance(value, Fraction)):
                continue  # such an answer is refused: its column holds 63 bits
            name = f"{case.name}|{query}"
            expected[name] = sorted(format_fact(_rounded(fact)) for fact in local)
            answers = reason(spark, program, query, given, timeline=case.timeline, between=between)
            frames.append(answers.selectExpr(f"'{name}' as name", AS_JSON))
    found: dict[str, list[str]] = {name: [] for name in expected}
    for name, row in reduce(DataFrame.unionAll, frames).collect():
        values = json.loads(row, parse_float=Fraction, parse_int=Fraction)
        found[name].append(as_text(name.partition("|")[2], values))
    assert {name: sorted(lines) for name, lines in found.items()} == expected
    return len(expected)


def test_the_behaviour_suite_as_batch_jobs(spark: SparkSession) -> None:
    cases = [case for case in load_cases() if case.inconsistent is None]
    size = 20
    done = sum(one_job(spark, cases[at : at + size]) for at in range(0, len(cases), size))
    assert done > 80


def test_keys_of_buckets_are_laid_out_as_spark_lays_them_out(spark: SparkSession) -> None:
    for partitions in (2, 3, 8):
        keys = choose_bucket_keys(2 * partitions, partitions)
        frame = spark.createDataFrame([(key,) for key in keys], "key int")
        found = [row[0] for row in frame.selectExpr(f"pmod(hash(key), {partitions})").collect()]
        assert found == [bucket % partitions for bucket in range(2 * partitions)]


def test_types_come_back_as_they_went_in(spark: SparkSession) -> None:
    program = tl.Program.parse("Twice(M, K) :- Hot(M, K), Diamondminus(0,10min] Hot(M, K).")
    hot = spark.sql(
        "SELECT m, cast(k AS decimal(10,2)) AS k, timestamp(t) AS time FROM VALUES (1, 0.5, '2026-01-01 10:00:00'), "
        "(1, 0.5, '2026-01-01 10:05:00.250'), (2, 0.5, '2026-01-01 10:05:00') AS t(m, k, t)"
    )
    answers = reason(spark, program, "Twice", {"Hot": hot})
    assert answers.dtypes == [
        ("arg1", "int"),
        ("arg2", "decimal(10,2)"),
        ("start", "timestamp"),
        ("end", "timestamp"),
        ("closed", "string"),
    ]
    (row,) = answers.selectExpr(
        "arg1", "string(arg2) AS k", "string(start) AS s", "string(end) AS e", "closed"
    ).collect()
    assert tuple(row) == (1, "0.50", "2026-01-01 10:05:00.25", "2026-01-01 10:05:00.25", "both")


def test_calendars_are_generated_in_every_bucket(spark: SparkSession) -> None:
    rules = 'Paid(C, D, H) :- Pay(C), calendar:day("Asia/Tokyo", D), calendar:hour("Asia/Tokyo", H).'
    pay = spark.sql(
        "SELECT c, timestamp(t) AS time FROM VALUES ('a', '2026-01-01 14:59:59'), ('b', '2026-01-01 15:00:00'), "
        "('c', '2026-06-30 23:30:00') AS t(c, t)"
    )
    answers = reason(spark, tl.Program.parse(rules), "Paid", {"Pay": pay})
    assert answers.dtypes[:3] == [("arg1", "string"), ("arg2", "string"), ("arg3", "int")]
    found = sorted(tuple(row) for row in answers.select("arg1", "arg2", "arg3").collect())
    assert found == [("a", "2026-01-01", 23), ("b", "2026-01-02", 0), ("c", "2026-07-01", 8)]
    endless = tl.Program.parse('Weekend(D) :- calendar:day("UTC", D), calendar:weekday("UTC", sunday), not Off(D).')
    off = spark.sql("SELECT '2026-01-04' AS day, timestamp('2026-01-01') AS time")
    with pytest.raises((tl.TidelogError, PythonException), match=r"TL31[57]"):
        reason(spark, endless, "Weekend", {"Off": off}).collect()


def test_what_is_wrong_with_frames_is_said_before_a_job_starts(spark: SparkSession) -> None:
    program = tl.Program.parse("Twice(M) :- Hot(M), Diamondminus(0,10] Hot(M), Node(M).")
    hot = spark.createDataFrame([("a", "x", "1")], "m string, extra string, time string")
    node = spark.createDataFrame([(["a"],)], "m array<string>")
    with pytest.raises(tl.TidelogError) as caught:
        reason(spark, program, "Twice", {"Hot": hot, "Node": node, "Nod": node})
    text = str(caught.value)
    assert "2 columns for arguments (m, extra), but Hot has 1" in text
    assert "`time` of type string cannot be a time" in text
    assert "`m` of type array<string> cannot be an argument" in text
    assert "did you mean Node?" in text
    good = spark.createDataFrame([("a", 1)], "m string, time long")
    with pytest.raises(tl.TidelogError, match="`delay`, `heartbeat` are not for a batch job"):
        reason(spark, program, "Twice", {"Hot": good}, delay=3, heartbeat=Fraction(1))
    live = spark.readStream.format("rate").load().selectExpr("string(value) as m", "timestamp as time")
    with pytest.raises(tl.TidelogError, match="`between` is not for a streaming job"):
        reason(spark, program, "Twice", {"Hot": live}, between=(0, 1))


def test_a_session_that_cannot_keep_state_is_refused_for_streams(spark: SparkSession) -> None:
    program = tl.Program.parse("Twice(M) :- Hot(M), Diamondminus(0,10] Hot(M).")
    other = spark.newSession()
    hdfs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    other.conf.set(next(iter(STATE_STORE_SETTINGS)), hdfs)
    live = other.readStream.format("rate").load().selectExpr("string(value) as m", "timestamp as time")
    with pytest.raises(tl.TidelogError, match="TL811") as caught:
        reason(other, program, "Twice", {"Hot": live})
    assert f'spark.conf.set("{next(iter(STATE_STORE_SETTINGS))}", ' in str(caught.value)
    reason(other, program, "Twice", {"Hot": other.createDataFrame([("a", 1)], "m string, time long")})


def test_rows_without_a_value_are_set_aside_or_refused(spark: SparkSession) -> None:
    program = tl.Program.parse("Twice(M) :- Hot(M), Diamondminus(0,10] Hot(M).")
    hot = spark.createDataFrame([("a", 1), (None, 2), ("a", None), ("a", 4)], "m string, time bigint")
    job = build_job(spark, program, "Twice", {"Hot": hot}, JobOptions(set_aside=True))
    assert [row.start for row in job.answers().collect()] == [4]
    aside = [json.loads(row.row) for row in job.set_aside().collect()]
    assert sorted(found["reason"] for found in aside) == ["there is no value for m", "there is no value for time"]
    # In one partition: of two that fail side by side, either may be the one that Spark tells of.
    with pytest.raises(Exception, match=r"facts of Hot, row 2.*there is no value"):
        reason(spark, program, "Twice", {"Hot": hot.coalesce(1)}).collect()


# Streams

RULES = """
Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).
Bad(Z) :- Down(X), In(X, Z), Diamondminus[0,2] Alarm(Z).
"""


class Folder:
    """Files that a stream reads, one a batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        path.mkdir()

    def put(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """A file, there at once."""
        name = f"{self.count:03}.json"
        hidden = self.path / f".{name}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(hidden, (1e9 + self.count, 1e9 + self.count))
        hidden.rename(self.path / name)
        self.count += 1

    def stream(self, spark: SparkSession, schema: str) -> DataFrame:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(self.path))


def run(job: JobOutput, checkpoint: Path, received: list[tuple[str, str]]) -> None:
    """Runs a stream over all that is there; adds what it gives."""
    query = job.plan.query

    def take(batch: DataFrame, _: int) -> None:
        batch = batch.persist()
        rows = job.answers(batch).selectExpr(AS_JSON).collect()
        for (row,) in rows:
            received.append(("answer", as_text(query, json.loads(row, parse_float=Fraction, parse_int=Fraction))))
        received.extend(("late", row.fact) for row in job.late(batch).collect())
        batch.unpersist()

    writer = job.frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def kinds(received: list[tuple[str, str]], kind: str) -> list[str]:
    return sorted(text for each, text in received if each == kind)


def test_a_stream_in_stages_that_is_backfilled_stopped_late_and_ended(spark: SparkSession, tmp_path: Path) -> None:
    """All of it at once, since each stream takes its time to start."""
    program = tl.Program.parse(RULES)
    nodes = spark.createDataFrame([(f"n{i}",) for i in range(6)], "node string")
    zones = spark.createDataFrame([(f"n{i}", i % 2) for i in range(6)], "node string, zone int")
    beats, alarms = Folder(tmp_path / "beats"), Folder(tmp_path / "alarms")
    received: list[tuple[str, str]] = []
    history = {
        "Beat": spark.createDataFrame([(f"n{i % 5}", i) for i in range(10)], "node string, time bigint"),
        "Alarm": spark.createDataFrame([(i % 2, 3 * i) for i in range(3)], "zone int, time bigint"),
    }
    passed = build_job(
        spark, program, "Bad", {"Node": nodes, "In": zones, **history}, JobOptions(backfill=True, delay=1)
    )
    frame = passed.frame.persist()
    rows = passed.answers(frame).selectExpr(AS_JSON).collect()
    for (row,) in rows:
        received.append(("answer", as_text("Bad", json.loads(row, parse_float=Fraction, parse_int=Fraction))))
    passed.saved(frame).write.parquet(str(tmp_path / "state"))
    assert len(passed.split.stages) == 2

    def go_on(**more: Any) -> None:
        live = {
            "Beat": beats.stream(spark, "node string, time bigint"),
            "Alarm": alarms.stream(spark, "zone int, time bigint"),
        }
        initial = spark.read.parquet(str(tmp_path / "state"))
        facts = {"Node": nodes, "In": zones, **live}
        job = build_job(spark, program, "Bad", facts, JobOptions(delay=1, initial=initial, **more))
        run(job, tmp_path / "checkpoint", received)

    beats.put({"node": f"n{i % 5}", "time": i} for i in (11, 10, 13, 12, 14, 15, 16, 17, 19, 18))
    alarms.put({"zone": (i // 3) % 2, "time": i} for i in (12, 9, 15, 18))
    go_on()
    beats.put([{"node": "n0", "time": 3}, *({"node": f"n{i % 5}", "time": i} for i in range(20, 30))])
    alarms.put({"zone": (i // 3) % 2, "time": i} for i in (21, 24, 27))
    go_on()
    go_on(until=Fraction(60))

    facts = [f"Beat(n{i % 5})@{i}" for i in range(30)] + [f"Alarm({i // 3 % 2})@{i}" for i in range(0, 30, 3)]
    known = tl.Dataset.from_facts([f"Node(n{i})" for i in range(6)] + [f"In(n{i},{i % 2})" for i in range(6)])
    one = tl.Reasoner(program, "Bad", background=known)
    steps = list(one.feed(tl.Dataset.from_facts(facts)))
    expected = [fact for step in steps for fact in step.answers] + one.push(61)
    assert kinds(received, "answer") == sorted(map(format_fact, expected))
    assert kinds(received, "late") == ["Beat(n0)@3"]


@pytest.mark.skipif(not TRAFFIC_S2.exists(), reason=TRAFFIC_MISSING)
def test_the_short_stops_of_the_real_traffic(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = tl.Dataset.load(TRAFFIC_S2)
    frames = {}
    for predicate in ("Pos", "NotPos", "NotOnMap"):
        facts = [fact for fact in data if fact.predicate == predicate]
        facts.sort(key=lambda fact: fact.interval.lo)
        folder = tmp_path / predicate
        folder.mkdir()
        third = max(1, -(-len(facts) // 3))
        for number in range(3):
            some = facts[number * third : (number + 1) * third]
            columns = {"v": [str(f.args[0]) for f in some], "time": [int(f.interval.lo) for f in some]}
            path = folder / f"{number}.parquet"
            pq.write_table(pa.table(columns, pa.schema([("v", pa.string()), ("time", pa.int64())])), path)
            os.utime(path, (1e9 + number, 1e9 + number))
        stream = spark.readStream.schema("v string, time bigint").option("maxFilesPerTrigger", 1)
        frames[predicate] = stream.parquet(str(folder))
    received: list[tuple[str, str]] = []
    program = tl.Program.parse(SHORT_STOP)
    options = JobOptions(at="input", delay=1000)
    run(build_job(spark, program, "ShortStop", frames, options), tmp_path / "checkpoint", received)
    run(
        build_job(spark, program, "ShortStop", frames, replace(options, until=Fraction(10**6))),
        tmp_path / "checkpoint",
        received,
    )
    assert not kinds(received, "late")
    assert len(kinds(received, "answer")) == len(set(kinds(received, "answer"))) == 5350
