"""Facts from one source: it is read once, and the answers are those of reading it once per fact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tidelog as tl
from tidelog.spark import JobOptions, build_job
from tidelog.spark.job.session import session

pytestmark = pytest.mark.xdist_group("spark")

RULES = "Alarm(X) :- Hot(X), not Diamondminus[0,10] Cold(X).\nCold(X) :- Icy(X, Y)."
SCHEMA = "machine STRING, celsius STRING, time BIGINT"
READINGS = [
    ("a", "90", 1),
    ("b", "90", 2),
    ("b", "5", 1),
    ("c", "none", 3),
    ("c", "91", 20),
    ("a", None, 21),
    ("b", "95", 30),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    running = session("local[2]", settings={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
    yield running
    running.stop()


def facts_of(readings: DataFrame) -> dict[str, DataFrame]:
    """Facts with conditions: that of one fact keeps its numbers from a cast that fails for the other."""
    readings.createOrReplaceTempView("readings")
    spark = readings.sparkSession
    icy = "SELECT machine, CAST(celsius AS INT) AS degrees, time FROM readings WHERE celsius < '6'"
    return {
        "Hot": spark.sql("SELECT machine, time FROM (SELECT * FROM readings) WHERE celsius > '80'"),
        "Icy": spark.sql(icy),
    }


def count_scans(frame: DataFrame, name: str) -> int:
    java: Any = frame._jdf
    return str(java.queryExecution().optimizedPlan().toString()).count(name)


def as_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


EXPECTED = [("a", 1, 1, "both"), ("b", 30, 30, "both"), ("c", 3, 3, "both"), ("c", 20, 20, "both")]


def test_a_batch_source_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(READINGS, SCHEMA).write.parquet(str(tmp_path / "readings"))
    frames = facts_of(spark.read.parquet(str(tmp_path / "readings")))
    shared = build_job(spark, tl.Program.parse(RULES), "Alarm", frames)
    assert count_scans(shared.frame, "Relation [") == 1
    assert as_rows(shared.answers()) == EXPECTED
    separate = build_job(spark, tl.Program.parse(RULES), "Alarm", frames, JobOptions(read_once=False))
    assert count_scans(separate.frame, "Relation [") == 2
    assert as_rows(separate.answers()) == EXPECTED


def test_facts_without_a_condition_take_all_rows(spark: SparkSession) -> None:
    readings = spark.createDataFrame([("a", 1), ("b", 5)], "machine STRING, time BIGINT")
    frames = {"All": readings, "Some": readings.where("machine = 'b'").select("machine", "time")}
    job = build_job(spark, tl.Program.parse("P(X) :- All(X), not Some(X).\nP(X) :- Some(X)."), "P", frames)
    assert count_scans(job.frame, "LogicalRDD [machine") + count_scans(job.frame, "LocalRelation [machine") == 1
    assert as_rows(job.answers()) == [("a", 1, 1, "both"), ("b", 5, 5, "both")]


def test_what_is_cached_stays_cached(spark: SparkSession) -> None:
    readings = spark.range(4).selectExpr("concat('m', id % 2) AS machine", "id AS time").where("time > 0").cache()
    frames = {"All": readings, "Some": readings.where("machine = 'm1'").select("machine", "time")}
    job = build_job(spark, tl.Program.parse("P(X) :- All(X), not Some(X)."), "P", frames)
    # All rows come from the cache, where the plan that filled it is shown once.
    assert count_scans(job.frame, "InMemoryRelation") == count_scans(job.frame, "Range (") > 0
    assert as_rows(job.answers()) == [("m0", 2, 2, "both")]
    readings.unpersist()


def test_other_queries_are_read_by_themselves(spark: SparkSession) -> None:
    """Aggregates, joins, Python functions and subqueries: the answers are right, whatever is shared."""
    from pyspark.sql import functions as F  # noqa: N812

    readings = spark.createDataFrame([("a", 1), ("a", 2), ("b", 5)], "machine STRING, time BIGINT")
    readings.createOrReplaceTempView("readings")
    double = F.udf(lambda text: text * 2, "string")
    frames = {
        "First": spark.sql("SELECT machine, min(time) AS time FROM readings GROUP BY machine"),
        "Pair": spark.sql("SELECT r.machine, s.machine AS other, r.time FROM readings r JOIN readings s USING (time)"),
        "Twice": readings.select(double("machine").alias("name"), "time"),
        "Known": spark.sql(
            "SELECT machine, time FROM readings WHERE machine IN (SELECT machine FROM readings WHERE time = 5)"
        ),
        "All": readings,
    }
    rules = "P(X) :- First(X).\nP(X) :- Pair(X, X).\nP(X) :- Twice(X).\nP(X) :- Known(X).\nP(X) :- All(X), First(X)."
    job = build_job(spark, tl.Program.parse(rules), "P", frames)
    expected = [("a", 1), ("a", 2), ("aa", 1), ("aa", 2), ("b", 5), ("bb", 5)]
    assert [row[:2] for row in as_rows(job.answers())] == expected


def test_a_stream_reads_its_source_once(spark: SparkSession, tmp_path: Path) -> None:
    """`test_spark_pipeline` runs such streams, and goes on with checkpoints of both kinds."""
    frames = facts_of(spark.readStream.schema(SCHEMA).json(str(tmp_path)))
    for once, scans in ((True, 1), (False, 2)):
        job = build_job(spark, tl.Program.parse(RULES), "Alarm", frames, JobOptions(read_once=once))
        java: Any = job.frame._jdf
        assert str(java.queryExecution().analyzed().toString()).count("FileSource[") == scans
