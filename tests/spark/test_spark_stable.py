"""Batch jobs over stable models on a real Spark session, judged by the solver over the whole program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import tidelog as tl
from tidelog.spark import JobOptions, build_job, reason
from tidelog.spark.job.failures import to_tidelog_error
from tidelog.spark.job.output import JobOutput
from tidelog.spark.job.session import session
from tidelog.spark.pipeline.batch_run import run_batch
from tidelog.spark.pipeline.pipeline_file import load_pipeline
from tidelog.spark.pipeline.preparation import prepare_pipeline
from tidelog.spark.plan.job_plan import StableMode
from tidelog.stable import StableReasoner, stable_consequences

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.xdist_group("spark")]

#: Every gate has Ann or Bob, and nobody is at a gate for three time points in a row.
RULES = """\
Ann(G) :- Gate(G), not Bob(G).
Bob(G) :- Gate(G), not Ann(G).
Bottom :- Boxminus[0,2] Ann(G).
Bottom :- Boxminus[0,2] Bob(G).
Alone(G) :- Ann(G), Night.
"""
GATES = [(f"g{number}", time) for number in range(6) for time in range(4)]
ANN = [("g1", 0), ("g1", 1), ("g4", 2), ("g4", 3)]
BETWEEN = (0, 3)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    running = session("local[2]", settings={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
    yield running
    running.stop()


def build_frames(spark: SparkSession, ann: list[tuple[str, int]] = ANN) -> dict[str, DataFrame]:
    schema = "gate string, time long"
    return {
        "Gate": spark.createDataFrame(GATES, schema),
        "Ann": spark.createDataFrame(ann, schema),
        "Night": spark.createDataFrame([(1,), (3,)], "time long"),
    }


def build_data(ann: list[tuple[str, int]] = ANN) -> tl.Dataset:
    facts = [f"Gate({gate})@{time}" for gate, time in GATES] + [f"Ann({gate})@{time}" for gate, time in ann]
    return tl.Dataset.from_facts([*facts, "Night@1", "Night@3"])


@pytest.mark.parametrize("query", ["Ann", "Alone"])
@pytest.mark.parametrize("mode", ["brave", "cautious"])
def test_a_job_answers_as_the_solver_does(spark: SparkSession, query: str, mode: StableMode) -> None:
    program = tl.Program.parse(RULES)
    answers = reason(spark, program, query, build_frames(spark), stable=mode, between=BETWEEN, buckets=3)
    found = stable_consequences(program, build_data(), query, mode=mode, between=BETWEEN)
    expected = {(*fact.args, fact.interval.lo, fact.interval.hi, "both") for fact in found.facts}
    assert {tuple(row) for row in answers.collect()} == expected
    assert expected


def test_one_model_of_all_buckets_is_a_model_of_the_whole(spark: SparkSession) -> None:
    program = tl.Program.parse(RULES)
    answers = reason(spark, program, "Ann", build_frames(spark), stable="model", between=BETWEEN, buckets=3).collect()
    chosen = {(row.arg1, time) for row in answers for time in range(row.start, row.end + 1)}
    bob = [f"Bob({gate})@{time}" for gate, time in GATES if (gate, time) not in chosen]
    given = tl.Dataset.from_facts([*(f"Ann({gate})@{time}" for gate, time in chosen), *bob])
    assert tl.stable_models(program, build_data() | given, between=BETWEEN).satisfiable


def test_a_part_without_a_model_fails_the_job_and_is_named(spark: SparkSession) -> None:
    frames = build_frames(spark, [("g2", 0), ("g2", 1), ("g2", 2)])
    with pytest.raises(Exception, match="TL331") as raised:
        reason(spark, tl.Program.parse(RULES), "Bob", frames, stable="brave", between=BETWEEN, buckets=3).collect()
    (found,) = to_tidelog_error(raised.value, None).diagnostics
    assert found.message == "there is no stable model: the rules leave none for Alone(g2), Ann(g2), Bob(g2)"


def test_a_stream_answers_as_a_session_does_across_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    gates = [[(f"g{number}", time) for number in range(4) for time in times] for times in ((0, 1), (2, 3, 4))]
    ann = [[("g1", 0), ("g1", 1)], [("g3", 3), ("g2", 0)]]  # the last one is late
    program, out = tl.Program.parse(RULES), tmp_path / "out"

    def write(name: str, rows: list[tuple[str, int]]) -> None:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        count = len(list(folder.iterdir()))
        (folder / f"{count}.json").write_text("".join(f'{{"gate": "{gate}", "time": {at}}}\n' for gate, at in rows))
        os.utime(folder / f"{count}.json", (1e9 + count, 1e9 + count))  # Spark reads files in the order of their times

    def run() -> JobOutput:
        reader = spark.readStream.schema("gate string, time long").option("maxFilesPerTrigger", 1)
        frames = {name: reader.json(str(tmp_path / name)) for name in ("Gate", "Ann")}
        night = spark.createDataFrame([(1,), (3,)], "time long")
        options = JobOptions(stable="brave", buckets=3)
        job = build_job(spark, program, "Ann", {**frames, "Night": night}, options)
        writer = job.frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(out), format="parquet")
        query.awaitTermination()
        return job

    write("Gate", gates[0])
    write("Ann", ann[0])
    run()
    write("Gate", gates[1])
    write("Ann", ann[1])
    write("Gate", [("g0", 20)])
    job = run()
    written = spark.read.parquet(str(out))
    reasoner = StableReasoner(program, background=tl.Dataset.from_facts(["Night@1", "Night@3"]))
    facts = [(time, f"Gate({gate})") for rows in gates for gate, time in rows]
    facts += [(time, f"Ann({gate})") for rows in ann for gate, time in rows if gate != "g2"]
    expected = set()
    for time in range(6):
        reasoner.push(time, [fact for at, fact in facts if at == time])
        (point,) = reasoner.advance(time)
        expected |= {(fact.args[0], time) for fact in point.some if fact.predicate == "Ann"}
    found = [(row.arg1, time) for row in job.answers(written).collect() for time in range(row.start, row.end + 1)]
    assert sorted(found) == sorted(expected), "each once"
    assert [row.fact for row in job.late(written).collect()] == ["Ann(g2)@0"]


def test_the_plan_and_what_is_refused(spark: SparkSession) -> None:
    program, frames = tl.Program.parse(RULES), build_frames(spark)
    job = build_job(spark, program, "Ann", frames, JobOptions(stable="brave", between=BETWEEN, buckets=3))
    split = "facts of Gate go by g to 3 buckets; Night is copied to all, because of rule 5 (line 5)"
    assert job.describe()[0] == split
    streaming = {
        **frames,
        "Gate": spark.readStream.format("rate").load().selectExpr("string(value) gate", "value time"),
    }
    timeless = spark.readStream.format("rate").load().selectExpr()
    ahead = tl.Program.parse("P(X) :- Diamondplus[1,1] Gate(X).")
    counting = tl.Program.parse("Many(N) :- N = count{ Gate(G) }.")
    for asked, given, options, code in (
        (program, frames, JobOptions(stable="brave"), "TL805"),
        (program, streaming, JobOptions(stable="brave", between=BETWEEN), "TL805"),
        (program, streaming, JobOptions(stable="brave", at="input"), "TL805"),
        (program, streaming | {"Night": timeless}, JobOptions(stable="brave"), "TL322"),
        (ahead, {"Gate": streaming["Gate"]}, JobOptions(stable="brave"), "TL327"),
        (program, frames, JobOptions(stable="some", between=BETWEEN), "TL805"),  # type: ignore[arg-type]
        (program, frames, JobOptions(stable="brave", between=BETWEEN, timeline="rational"), "TL321"),
        (counting, {"Gate": frames["Gate"]}, JobOptions(stable="brave", between=BETWEEN), "TL329"),
    ):
        with pytest.raises(tl.TidelogError) as raised:
            build_job(spark, asked, next(iter(asked.predicates)), given, options)
        assert [found.code for found in raised.value.diagnostics] == [code]


def test_a_pipeline_over_stable_models(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text("Free(X) :- Spot(X), not Taken(X).\nTaken(X) :- Spot(X), not Free(X).\n")
    (tmp_path / "spots").mkdir()
    (tmp_path / "spots" / "one.json").write_text('{"spot": "a", "at": 3}\n{"spot": "b", "at": 4}\n')
    (tmp_path / "pipeline.toml").write_text(
        'mode = "batch"\nrules = "rules.dmtl"\nquery = "Free"\nstable = "brave"\nbetween = ["0", "9"]\n'
        '[sources.spots]\nformat = "json"\npath = "spots"\nschema = "spot STRING, at BIGINT"\n'
        '[facts.Spot]\nsql = "SELECT spot, at FROM spots"\ntime = "at"\n'
        '[sinks.answers]\nformat = "json"\npath = "out"\n'
    )
    prepared = prepare_pipeline(spark, load_pipeline(tmp_path / "pipeline.toml"))
    assert prepared.describe()[0].startswith("facts of Spot go by x to ")
    run_batch(prepared)
    rows = spark.read.json(str(tmp_path / "out")).select("arg1", "start", "end").collect()
    assert sorted(map(tuple, rows)) == [("a", 3, 3), ("b", 4, 4)]
