"""Pipelines on a real Spark session: sources and their mistakes, sinks that are whole or not there, runs end to end."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidelog as tl
from locations import EXAMPLES
from tidelog.errors import TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.page.live_board import LiveBoard
from tidelog.spark.job.fact_frames import find_last_time
from tidelog.spark.job.session import STATE_STORE_SETTINGS, missing_settings, query_settings, session
from tidelog.spark.pipeline.checkpoint_record import build_record, read_record
from tidelog.spark.pipeline.fact_queries import read_sources
from tidelog.spark.pipeline.hadoop_files import HadoopFolder
from tidelog.spark.pipeline.pipeline_config import Pipeline, Sink
from tidelog.spark.pipeline.pipeline_file import load_pipeline
from tidelog.spark.pipeline.sinks import SinkWriter, format_rows, to_kafka_records
from tidelog.spark.plan.fact_columns import FactColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelog.spark.pipeline.preparation import PreparedPipeline
    from tidelog.spark.pipeline.stream_run import StreamRun

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.xdist_group("spark")]

READING = {"turbine": "t1", "celsius": 90.5, "at": "2026-01-31T10:00:00Z", "ms": 1769853600001, "tags": ["a"]}
HOT = 'Hot = "SELECT turbine FROM readings WHERE celsius > 80"'
PIPELINE = f"""\
mode = "batch"
rules = "rules.dmtl"
query = "Overheated"

[sources.readings]
format = "json"
path = "readings"
schema = "turbine STRING, celsius DOUBLE, at TIMESTAMP, ms BIGINT, tags ARRAY<STRING>"
time = "at"

[facts]
{HOT}

[sinks.answers]
format = "console"
"""

Loaded = Callable[[str], Pipeline]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    running = session("local[2]", settings={"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"})
    yield running
    running.stop()


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """A pipeline over one reading."""
    (tmp_path / "readings").mkdir()
    (tmp_path / "readings" / "1.json").write_text(json.dumps(READING))
    (tmp_path / "rules.dmtl").write_text("Overheated(X) :- Boxminus[0,10s] Hot(X).")

    def load(text: str) -> Pipeline:
        (tmp_path / "pipeline.toml").write_text(text)
        return load_pipeline(tmp_path / "pipeline.toml")

    return load


# The session


def test_workers_run_on_this_interpreter(spark: SparkSession) -> None:
    import sys

    def where(batches: Any) -> Any:
        import sys

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(1).mapInArrow(where, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


def test_what_a_session_lacks_is_set_for_the_queries_that_start(spark: SparkSession) -> None:
    assert not missing_settings(spark)
    other = spark.newSession()
    provider = next(iter(STATE_STORE_SETTINGS))
    other.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    assert missing_settings(other) == {provider: STATE_STORE_SETTINGS[provider]}
    before = other.conf.get(provider)
    with query_settings(other, STATE_STORE_SETTINGS):
        assert not missing_settings(other)
    assert other.conf.get(provider) == before


# Sources and facts


def test_a_select_without_a_time_takes_that_of_its_source(spark: SparkSession, loaded: Loaded) -> None:
    frame = read_sources(spark, loaded(PIPELINE)).facts["Hot"]
    assert frame.schema.simpleString() == "struct<turbine:string,time:timestamp>"


@pytest.mark.parametrize(
    "unit, number, micros", [("ms", "ms", 1769853600001000), ("s", "0.1", 100000), ("d", "2", 172800000000)]
)
def test_numbers_of_a_unit_become_timestamps(
    unit: str, number: str, micros: int, spark: SparkSession, loaded: Loaded
) -> None:
    fact = f'[facts.Hot]\nsql = "SELECT turbine, {number} AS n FROM readings"\ntime = "n"\nunit = "{unit}"'
    frame = read_sources(spark, loaded(PIPELINE.replace(f"[facts]\n{HOT}", fact))).facts["Hot"]
    assert frame.selectExpr("unix_micros(time)").first() == (micros,)


@pytest.mark.parametrize(
    "sql, code, says",
    [
        ("SELECT turbine FROM readings WHERE celcius > 80", "TL807", "`celcius` cannot be resolved"),
        ("SELECT turbine FROM reading", "TL807", "no source `reading`"),
        ("SELECT turbine, celsius FROM readings", "TL102", "1 argument in the rules, and 2 here"),
        ("SELECT tags FROM readings", "TL805", "`tags` of Hot is array<string>"),
        ("DROP TABLE readings", "TL807", "not a query"),
        ("SELECT DISTINCT turbine FROM readings", "TL205", "no column `at`"),
        ("SELECT turbine, at AS time, at AS start FROM readings", "TL205", "`time` and `start`"),
        ("SELECT turbine, CAST(at AS STRING) AS time FROM readings", "TL805", "is string, which is not a time"),
        ("SELECT turbine, at AS start FROM readings", "TL205", "`start`"),
    ],
)
def test_sql_that_does_not_fit_is_refused_with_its_line(
    sql: str, code: str, says: str, spark: SparkSession, loaded: Loaded
) -> None:
    with pytest.raises(TidelogError) as raised:
        read_sources(spark, loaded(PIPELINE.replace(HOT, f'Hot = "{sql}"')))
    (found,) = raised.value.diagnostics
    assert found.code == code
    assert says in found.message
    assert found.place is not None
    assert found.place.line == 12


def test_a_column_op_that_no_fact_names_is_explained(spark: SparkSession, loaded: Loaded) -> None:
    sql = "SELECT turbine, 'insert' AS op FROM readings"
    with pytest.raises(TidelogError) as raised:
        read_sources(spark, loaded(PIPELINE.replace(HOT, f'Hot = "{sql}"')))
    (found,) = raised.value.diagnostics
    assert found.code == "TL102"
    assert found.help is not None
    assert found.help.endswith('if `op` says which rows delete a fact, write op = "op" in [facts.Hot]')


def test_the_caret_is_under_the_word_that_is_wrong(spark: SparkSession, loaded: Loaded) -> None:
    with pytest.raises(TidelogError) as raised:
        read_sources(spark, loaded(PIPELINE.replace("celsius > 80", "celcius > 80")))
    place = raised.value.diagnostics[0].place
    assert place is not None
    assert place.text[place.column - 1 : place.column - 1 + place.length] == "celcius"


def test_everything_wrong_with_sources_and_facts_is_said_at_once(spark: SparkSession, loaded: Loaded) -> None:
    text = PIPELINE.replace("[facts]", '[sources.gone]\nformat = "parquet"\npath = "nowhere"\n\n[facts]').replace(
        HOT, 'Hot = "SELECT nothing FROM readings"\nOverheated = "SELECT turbine FROM gone"'
    )
    with pytest.raises(TidelogError) as raised:
        read_sources(spark, loaded(text))
    assert [found.code for found in raised.value.diagnostics] == ["TL806", "TL807"]


def test_columns_of_numbers_that_are_joined_with_text_are_refused(spark: SparkSession, loaded: Loaded) -> None:
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    rules = "Overheated(X) :- Hot(X), not Off(X).\nOther(X) :- Hot(X), X > 3."
    facts = f'{HOT}\nOff = "SELECT ms, at AS time FROM readings"'
    (Path(loaded(PIPELINE).file).parent / "rules.dmtl").write_text(rules)
    with pytest.raises(TidelogError) as caught:
        prepare_pipeline(spark, loaded(PIPELINE.replace(HOT, facts)))
    (found,) = caught.value.diagnostics  # The query does not need the second rule.
    numbers, text = "column `ms` of the SQL of Off holds only numbers", "column `turbine` of the SQL of Hot only text"
    assert (found.code, found.message) == ("TL208", f"{numbers}, and {text}, but the rule joins them in `X`")
    assert "CAST(id AS STRING)" in (found.help or "")
    lenient = prepare_pipeline(spark, loaded("strict = false\n" + PIPELINE.replace(HOT, facts)))
    assert [(warning.code, warning.severity) for warning in lenient.pipeline.warnings] == [("TL208", "warning")]


def test_times_are_of_one_kind(spark: SparkSession, loaded: Loaded) -> None:
    with pytest.raises(TidelogError, match="the times of Overheated are numbers, those of Hot timestamps"):
        read_sources(
            spark, loaded(PIPELINE.replace(HOT, f'{HOT}\nOverheated = "SELECT turbine, ms AS time FROM readings"'))
        )


# Sinks


def sink(folder: Path, form: str = "json", **other: Any) -> Sink:
    given: dict[str, Any] = {"options": {}, "python": None, "overwrite": False, "place": None, **other}
    return Sink(form, str(folder / "out"), **given)


def kept(folder: Path) -> list[str]:
    """What a reader sees."""
    return sorted(line for path in (folder / "out").glob("batch=*/*.json") for line in path.read_text().splitlines())


def test_a_batch_is_written_once_by_its_number(spark: SparkSession, tmp_path: Path) -> None:
    output = SinkWriter(spark, sink(tmp_path), "P", "me")
    output.prepare()
    for _ in range(2):
        output.write(spark.sql("SELECT 'a' AS arg1"), 0, 1)
    output.write(spark.sql("SELECT 'b' AS arg1"), 1, 1)
    assert kept(tmp_path) == ['{"arg1":"a"}', '{"arg1":"b"}']
    assert [row.batch for row in spark.read.json(f"{tmp_path}/out").orderBy("batch").collect()] == [0, 1]


def test_a_batch_that_was_half_written_is_never_seen(spark: SparkSession, tmp_path: Path) -> None:
    output = SinkWriter(spark, sink(tmp_path), "P", "me")
    output.prepare()
    half = tmp_path / "out" / "_staging" / "batch=0"
    half.mkdir(parents=True)
    (half / "part-0.json").write_text('{"arg1":"half"}\n')
    assert kept(tmp_path) == []
    assert not HadoopFolder(spark, f"{tmp_path}/out").exists("batch=0")
    output.prepare()
    output.write(spark.sql("SELECT 'whole' AS arg1"), 0, 1)
    assert kept(tmp_path) == ['{"arg1":"whole"}']


def test_a_write_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    output = SinkWriter(spark, sink(tmp_path), "P", "me")
    output.prepare()
    failing = spark.range(4, numPartitions=2).selectExpr("IF(id = 3, raise_error('no'), 'a') AS arg1")
    with pytest.raises(PySparkException):
        output.write(failing, 0, 4)
    assert kept(tmp_path) == []


def test_batches_of_another_checkpoint_are_not_mistaken(spark: SparkSession, tmp_path: Path) -> None:
    output = SinkWriter(spark, sink(tmp_path), "P", "me")
    output.prepare()
    output.write(spark.sql("SELECT 'a' AS arg1"), 0, 1)
    output.prepare()
    with pytest.raises(TidelogError, match="batches of another checkpoint"):
        SinkWriter(spark, sink(tmp_path), "P", "you").prepare()
    (tmp_path / "other" / "out").mkdir(parents=True)
    (tmp_path / "other" / "out" / "mine.json").write_text("{}")
    with pytest.raises(TidelogError, match="did not write"):
        SinkWriter(spark, sink(tmp_path / "other"), "P", "me").prepare()


def test_a_batch_job_replaces_only_what_it_may(spark: SparkSession, tmp_path: Path) -> None:
    first, second = spark.sql("SELECT 'a' AS arg1"), spark.sql("SELECT 'b' AS arg1")
    assert SinkWriter(spark, sink(tmp_path), "P", "me").write_all(first) == 1
    with pytest.raises(TidelogError, match="exists already"):
        SinkWriter(spark, sink(tmp_path), "P", "me").require_absent()
    SinkWriter(spark, sink(tmp_path, overwrite=True), "P", "me").require_absent()
    SinkWriter(spark, sink(tmp_path, overwrite=True), "P", "me").write_all(second)
    assert [row.arg1 for row in spark.read.json(f"{tmp_path}/out").collect()] == ["b"]


def test_records_of_one_answer_have_one_key(spark: SparkSession) -> None:
    rows = "('a', 1, 2, 'both'), ('a', 1, 2, 'both'), ('a', 4, 5, 'left')"
    answers = spark.sql(f"SELECT * FROM VALUES {rows} AS t(arg1, start, end, closed)")
    found = [(row.key, json.loads(row.value)["end"]) for row in to_kafka_records(answers).collect()]
    assert found == [('{"arg1":"a","start":1}', 2), ('{"arg1":"a","start":1}', 2), ('{"arg1":"a","start":4}', 5)]


def test_answers_print_as_facts(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "('a', 0, 3, 'left'), ('A b', 7, 7, 'both'), ('c', 1, NULL, 'left')"
    numbers = spark.sql(f"SELECT * FROM VALUES {rows} AS t(arg1, start, end, closed)")
    assert sorted(format_rows(numbers, "P")) == ['P("A b")@7', "P(a)@[0,3)", "P(c)@[1,inf)"]
    stamps = "TIMESTAMP'2026-01-31T10:00:00Z' AS start, TIMESTAMP'2026-01-31T10:00:00.5Z' AS end, 'both' AS closed"
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    dated = spark.sql(f"SELECT 1.5D AS arg1, {stamps}")
    assert list(format_rows(dated, "P")) == ["P(1.5)@[2026-01-31T10:00:00Z,2026-01-31T10:00:00.5Z]"]
    assert list(format_rows(spark.sql("SELECT 'P(a)@1' AS fact"), "P")) == ["P(a)@1"]


def test_small_files_are_replaced_whole(spark: SparkSession, tmp_path: Path) -> None:
    folder = HadoopFolder(spark, str(tmp_path / "new"))
    assert (folder.read_json("a.json"), folder.names()) == (None, [])
    folder.write_json("a.json", {"n": 1})
    folder.write_json("a.json", {"n": 2, "text": "é"})
    assert folder.read_json("a.json") == {"n": 2, "text": "é"}


# Runs


ANSWERS = [
    "Overheated(t1)@[2026-01-31T10:00:50Z,2026-01-31T10:01:30Z]",
    "Overheated(t3)@[2026-01-31T10:01:30Z,2026-01-31T10:01:40Z]",
    "Overheated(t3)@[2026-01-31T10:02:20Z,2026-01-31T10:02:30Z]",
]


@pytest.fixture
def turbines(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "turbines", tmp_path / "turbines"))


def changed(folder: Path, **replaced: str) -> Pipeline:
    """The pipeline with some lines replaced: a key and its new line."""
    path = folder / "pipeline.toml"
    lines = path.read_text().splitlines()
    for key, line in replaced.items():
        lines = [line if old.startswith(f"{key} =") else old for old in lines]
    path.write_text("\n".join(lines).replace('format = "console"', 'format = "json"\npath = "run/answers"'))
    return load_pipeline(path)


def finished(job: PreparedPipeline, board: LiveBoard | None = None) -> StreamRun:
    """A run to its end."""
    for _ in range(4):
        try:
            return _finished(job, board)
        except TidelogError as problem:
            # Spark gives a source in Python ten seconds to start, which is too few on a machine that is busy.
            if "ten seconds" not in str(problem):
                raise
    return _finished(job, board)


def _finished(job: PreparedPipeline, board: LiveBoard | None) -> StreamRun:
    from tidelog.spark.pipeline.stream_run import StreamRun

    stream = StreamRun(job, board=board)
    stream.start()
    try:
        watch(stream)
    finally:
        stream.stop()
        stream.close()
    return stream


def watch(stream: StreamRun) -> None:
    while stream.running:
        stream.wait(0.5)


def answers_of(spark: SparkSession, folder: Path) -> list[str]:
    schema = "arg1 string, start timestamp, end timestamp, closed string"
    return sorted(
        format_rows(spark.read.schema(schema).json(str(folder / "run" / "answers" / "batch=*")), "Overheated")
    )


def test_a_stream_runs_to_its_end_and_goes_on_where_it_stopped(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    later = turbines / "readings" / "3.json"
    waiting = later.rename(turbines / "3.json")
    pipeline = changed(turbines)
    stream = finished(prepare_pipeline(spark, pipeline))
    assert answers_of(spark, turbines) == ANSWERS[:1]
    assert (stream.progress.answers, stream.progress.late) == (1, 0)
    assert stream.progress.restored is None
    assert stream._query is not None
    seen = [progress.observedMetrics["tidelog"] for progress in stream._query.recentProgress]
    assert sum(row["answers"] for row in seen) == 1
    waiting.rename(later)
    late = {"turbine": "t2", "celsius": 99, "at": "2026-01-31T10:00:00Z"}
    (turbines / "readings" / "4.json").write_text(json.dumps(late) + "\n")
    board = LiveBoard()
    stream = finished(prepare_pipeline(spark, pipeline), board)
    assert answers_of(spark, turbines) == ANSWERS
    shown = board.status()
    assert (shown["answers"], shown["late"], shown["facts"]) == (2, 1, stream.progress.facts)
    assert sorted(shown["latest"]) == ANSWERS[1:]
    assert (shown["watermark"], sum(shown["held"].values())) == (stream.progress.watermark, stream.progress.held)
    assert (stream.progress.answers, stream.progress.late) == (2, 1)
    restored, seconds = stream.progress.restored, stream.progress.first_seconds
    assert restored is not None
    assert seconds is not None
    assert 1 <= restored["buckets"] <= stream.prepared.buckets
    assert restored["bytes"] > 0
    assert 0 < restored["seconds"] < seconds
    assert stream.progress.at == Fraction(1769853760)
    (found,) = [json.loads(line) for path in turbines.glob("run/late/batch=*/*.json") for line in path.open()]
    assert found == {"fact": "Hot(t2)@2026-01-31T10:00:00Z"}
    figures = [json.loads(line) for line in (turbines / "run" / "metrics.jsonl").open()]
    assert sum(line["answers"] for line in figures) == 3
    assert sum(line["late"] for line in figures) == 1
    assert restored in [line["restored"] for line in figures if "restored" in line]
    assert figures[-1]["watermark"] == "2026-01-31T10:02:40Z"
    assert figures[-1]["lag_seconds"] > 0
    assert [line["batch"] for line in figures] == sorted({line["batch"] for line in figures})

    # On this checkpoint, other rules and options are refused, all of them at once.
    record = read_record(spark, pipeline)
    assert record is not None
    (turbines / "rules.dmtl").write_text("Overheated(X) :- Boxminus[0,20s] Diamondminus[0,10s] Hot(X).")
    with pytest.raises(TidelogError) as raised:
        prepare_pipeline(spark, changed(turbines, delay='delay = "1s"'))
    said = [found.message for found in raised.value.diagnostics]
    assert [found.code for found in raised.value.diagnostics] == ["TL809"] * 2
    assert "`delay` as 10, and now 1" in said[0]
    assert "it had `Overheated(X) :- Boxminus[0,30] Diamondminus[0,10] Hot(X).`" in said[1]

    # If they are asked for, the answers are those of the local reasoner with the same change.
    lines = [
        f'{{"turbine": "t2", "celsius": 99, "at": "2026-01-31T10:0{3 + s // 60}:{s % 60:02}Z"}}' for s in (0, 8, 95)
    ]
    (turbines / "readings" / "5.json").write_text("\n".join(lines) + "\n")
    stream = finished(prepare_pipeline(spark, changed(turbines, delay='delay = "10s"\nchanged_rules = true')))
    expected, notes = with_the_same_change(turbines)
    assert answers_of(spark, turbines) == sorted(ANSWERS + expected)
    assert len(expected) == 1
    assert set(stream.progress.notes) == set(notes)
    # From then on these are its rules.
    changed(turbines, changed_rules="")
    finished(prepare_pipeline(spark, load_pipeline(turbines / "pipeline.toml")))
    assert len(answers_of(spark, turbines)) == len(ANSWERS) + 1
    (turbines / "rules.dmtl").write_text("Overheated(X) :- Hot(X), Diamondminus[0,10s] Hot(Y).")
    with pytest.raises(TidelogError, match="cannot continue with these rules: in stage 1, Hot"):
        finished(prepare_pipeline(spark, changed(turbines, delay='delay = "10s"\nchanged_rules = true')))


def with_the_same_change(folder: Path) -> tuple[list[str], tuple[str, ...]]:
    """The answers of the local reasoner after the rules have changed, and what it says of the change."""

    def hot(*names: str) -> tl.Dataset:
        rows = [json.loads(line) for name in names for line in (folder / "readings" / name).open()]
        return tl.Dataset.from_facts(f"Hot({row['turbine']})@{row['at']}" for row in rows if row["celsius"] > 80)

    before = tl.Program.load(EXAMPLES / "turbines" / "rules.dmtl")
    reasoner = tl.Reasoner(before, "Overheated", delay=10)
    list(reasoner.feed(hot("1.json", "2.json", "3.json")))
    reasoner = tl.Reasoner.load(reasoner.save(), tl.Program.load(folder / "rules.dmtl"), changed=True)
    found = [fact for step in reasoner.feed(hot("5.json")) for fact in step.answers]
    return [format_fact(fact, True) for fact in found], reasoner.notes


def test_rows_that_are_no_facts_let_time_pass(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    for name in ("2.json", "3.json"):
        (turbines / "readings" / name).unlink()
    cold = {"turbine": "t2", "celsius": 20, "at": "2026-01-31T11:00:00.5Z"}
    (turbines / "readings" / "2.json").write_text(json.dumps(cold) + "\n")
    pipeline = changed(turbines)
    stream = finished(prepare_pipeline(spark, pipeline))
    hot = [json.loads(line) for line in (turbines / "readings" / "1.json").open()]
    facts = [f"Hot({row['turbine']})@{row['at']}" for row in hot if row["celsius"] > 80]
    local = tl.Reasoner(pipeline.program, "Overheated")
    local.push("2026-01-31T10:00:00Z", [])
    expected = [fact for step in local.feed(tl.Dataset.from_facts(facts)) for fact in step.answers]
    expected += local.push("2026-01-31T11:00:00Z", [])
    assert expected
    assert answers_of(spark, turbines) == sorted(format_fact(fact, True) for fact in expected)
    assert stream.progress.watermark == "2026-01-31T10:59:50.5Z"


def test_a_folder_that_disappears_ends_the_job_and_the_next_run_goes_on(
    spark: SparkSession, turbines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidelog.spark.pipeline import stream_run
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    monkeypatch.setattr(stream_run, "_LOOK_AFTER", 0.0)
    readings, elsewhere = turbines / "readings", turbines / "elsewhere"
    waiting = (readings / "3.json").rename(turbines / "3.json")
    stream = stream_run.StreamRun(prepare_pipeline(spark, changed(turbines, trigger='trigger = "1s"')))
    stream.start()
    try:
        while not stream.progress.answers:
            assert stream.running
            stream.wait(0.2)
        readings.rename(elsewhere)
        with pytest.raises(TidelogError) as raised:
            watch(stream)
    finally:
        stream.stop()
        stream.close()
    (found,) = raised.value.diagnostics
    assert (found.code, found.place and found.place.line) == ("TL806", 8)
    assert "the source `readings` is gone" in found.message
    assert answers_of(spark, turbines) == ANSWERS[:1]
    with pytest.raises(TidelogError, match="TL806"):
        prepare_pipeline(spark, load_pipeline(turbines / "pipeline.toml"))
    elsewhere.rename(readings)
    waiting.rename(readings / "3.json")
    finished(prepare_pipeline(spark, changed(turbines, trigger='trigger = "available-now"')))
    assert answers_of(spark, turbines) == ANSWERS


SOURCE = """
from datetime import UTC, datetime, timedelta
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

class Beats(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def initialOffset(self): return {"at": 0}
    def getDefaultReadLimit(self): return ReadAllAvailable()
    def prepareForTriggerAvailableNow(self): pass
    def latestOffset(self, start, limit): return {"at": 16}
    def partitions(self, start, end): return [InputPartition((start["at"], end["at"]))]
    def read(self, partition):
        for i in range(*partition.value):
            yield "t1", 99.0 if i < 9 else 20.0, datetime(2026, 1, 31, 10, tzinfo=UTC) + timedelta(seconds=5 * i)

class Readings(DataSource):
    @classmethod
    def name(cls): return "readings"
    def schema(self): return "turbine string, celsius double, at timestamp"
    def streamReader(self, schema): return Beats()
"""


def test_a_source_in_python(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    (turbines / "readings_source.py").write_text(SOURCE)
    text = (turbines / "pipeline.toml").read_text()
    for old, new in (
        ('format = "json"\npath = "readings"', 'format = "readings"\npython = "readings_source:Readings"'),
        ('schema = "turbine STRING, celsius DOUBLE, at TIMESTAMP"\n', ""),
    ):
        assert old in text
        text = text.replace(old, new)
    (turbines / "pipeline.toml").write_text(text)
    stream = finished(prepare_pipeline(spark, changed(turbines)))
    assert answers_of(spark, turbines) == ["Overheated(t1)@[2026-01-31T10:00:30Z,2026-01-31T10:00:50Z]"]
    assert stream.progress.facts == 9


def test_history_and_then_the_stream_give_what_one_stream_gives(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    (turbines / "archive").mkdir()
    for name in ("1.json", "2.json"):
        (turbines / "readings" / name).rename(turbines / "archive" / name)
    pipeline = changed(turbines, time='time = "at"\nhistory = "archive"')
    stream = finished(prepare_pipeline(spark, pipeline))
    assert answers_of(spark, turbines) == ANSWERS
    assert (stream.progress.answers, stream.progress.late) == (3, 0)
    assert (turbines / "run" / "answers" / "batch=-1").exists()
    finished(prepare_pipeline(spark, pipeline))
    assert answers_of(spark, turbines) == ANSWERS


def test_a_batch_gives_what_the_stream_gives(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.batch_run import run_batch
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    pipeline = changed(turbines, delay='mode = "batch"', checkpoint="", trigger="")
    progress = run_batch(prepare_pipeline(spark, pipeline))
    schema = "arg1 string, start timestamp, end timestamp, closed string"
    found = sorted(format_rows(spark.read.schema(schema).json(str(turbines / "run" / "answers")), "Overheated"))
    assert found == ANSWERS
    assert progress.answers == len(ANSWERS)


def test_rows_that_are_no_facts_are_set_aside_or_stop_the_job(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.batch_run import run_batch
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    with (turbines / "readings" / "3.json").open("a") as file:
        file.write(json.dumps({"turbine": None, "celsius": 99, "at": "2026-01-31T10:00:00Z"}) + "\n")
    pipeline = changed(turbines, delay='mode = "batch"', checkpoint="", trigger="")
    with pytest.raises(TidelogError) as raised:
        run_batch(prepare_pipeline(spark, pipeline))
    assert "TL206" in str(raised.value)
    assert not (turbines / "run" / "answers").exists()
    with (turbines / "pipeline.toml").open("a") as file:
        file.write('\n[sinks.aside]\nformat = "text"\npath = "run/aside"\n')
    progress = run_batch(prepare_pipeline(spark, load_pipeline(turbines / "pipeline.toml")))
    assert (progress.answers, progress.aside) == (len(ANSWERS), 1)
    (line,) = [line for path in turbines.glob("run/aside/part-*") for line in path.read_text().splitlines()]
    assert json.loads(line)["reason"] == "there is no value for turbine"


def test_rows_that_spark_cannot_read_do_not_disappear(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.batch_run import run_batch
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    bad = ['{"turbine": "t9", "celsius": ', '{"turbine": "t9", "celsius": "hot", "at": "2026-01-31T10:00:00Z"}', "42"]
    with (turbines / "readings" / "3.json").open("a") as file:
        file.write("".join(f"{line}\n" for line in bad))
    pipeline = changed(turbines, delay='mode = "batch"', checkpoint="", trigger="")
    with pytest.raises(TidelogError) as raised:
        run_batch(prepare_pipeline(spark, pipeline))
    assert "TL206" in str(raised.value)
    assert "cannot be read with the schema of the source" in str(raised.value)
    with (turbines / "pipeline.toml").open("a") as file:
        file.write('\n[sinks.aside]\nformat = "text"\npath = "run/aside"\n')
    progress = run_batch(prepare_pipeline(spark, load_pipeline(turbines / "pipeline.toml")))
    assert (progress.answers, progress.aside) == (len(ANSWERS), 3)
    lines = [line for path in turbines.glob("run/aside/part-*") for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["row"] for line in lines) == sorted(bad)
    assert all(json.loads(line)["file"].endswith("readings/3.json") for line in lines)


@pytest.mark.parametrize("begun", ["before", "now"])
def test_a_stream_reads_facts_and_bad_rows_as_its_checkpoint_began(
    spark: SparkSession, turbines: Path, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    """Earlier versions had two sources of Spark's for them, which its checkpoints count."""
    from tidelog.spark.pipeline import preparation

    later = turbines / "readings" / "3.json"
    waiting = later.rename(turbines / "3.json")
    pipeline = changed(turbines)
    with (turbines / "pipeline.toml").open("a") as file:
        file.write('\n[sinks.aside]\nformat = "text"\npath = "run/aside"\n')
    pipeline = load_pipeline(turbines / "pipeline.toml")
    with monkeypatch.context() as patched:
        if begun == "before":
            patched.setattr(preparation, "read_sources", lambda *args, **_: read_sources(*args, once=False))
            patched.setattr(
                preparation, "build_record", lambda *args: replace(build_record(*args), sources_read_once=False)
            )
        finished(preparation.prepare_pipeline(spark, pipeline))
    # The lines of an offset log: version, metadata, and one per source; the first is our clock.
    lines = (turbines / "run" / "checkpoint" / "offsets" / "0").read_text().splitlines()
    assert len(lines) == (5 if begun == "before" else 4)
    assert answers_of(spark, turbines) == ANSWERS[:1]
    waiting.rename(later)
    with later.open("a") as file:
        file.write('{"turbine": "t9", "celsius": \n')
    stream = finished(preparation.prepare_pipeline(spark, pipeline))
    assert answers_of(spark, turbines) == ANSWERS
    assert stream.progress.aside == 1
    record = read_record(spark, pipeline)
    assert record is not None
    assert record.sources_read_once is (begun == "now")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('predicate = "Hot"', "the columns of Hot are not declared: there is no tidelog.toml next to the rules"),
        ('predicate = "Hot"\ncolumns = { turbine = "text" }\ntime = "at"', "there is no column `at`"),
        ('predicate = "Hot"\ncolumns = { turbine = "words" }', "`turbine` cannot be `words`"),
        ('columns = { turbine = "text", at = "time" }\nschema = "turbine STRING"', "but not both"),
    ],
)
def test_mistakes_in_declared_columns_are_errors_of_the_file(loaded: Loaded, text: str, message: str) -> None:
    source = f'[sources.readings]\nformat = "json"\npath = "readings"\n{text}\n\n'
    pipeline = PIPELINE[: PIPELINE.index("[sources.readings]")] + source + PIPELINE[PIPELINE.index("[facts]") :]
    with pytest.raises(TidelogError) as raised:
        loaded(pipeline)
    assert message in str(raised.value)


def test_a_violated_constraint_ends_the_job_in_words(spark: SparkSession, turbines: Path) -> None:
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    with (turbines / "rules.dmtl").open("a") as file:
        file.write("Bottom :- Overheated(X).\n")
    with pytest.raises(TidelogError) as raised:
        finished(prepare_pipeline(spark, changed(turbines)))
    (found,) = raised.value.diagnostics
    assert found.code == "TL303"
    assert answers_of_nothing(turbines)


def answers_of_nothing(folder: Path) -> bool:
    return not list(folder.glob("run/answers/batch=*"))


MALFUNCTIONS = """
Flag(X, T) :- Temp(X, high, T).
Cool(X, T+1) :- Flag(X, T), Flag(X, T+1).
Shdn(X, T+1) :- Cool(X, T), Flag(X, T+1).
Malf(X, T-2) :- Shdn(X, T).
"""
AWAITING = """\
rules = "rules.tdl"
query = "Malf"
delay = "1s"
checkpoint = "run/checkpoint"
trigger = "available-now"
buckets = 2

[sources.readings]
format = "json"
path = "readings"
schema = "turbine STRING, level STRING, second BIGINT"
time = "second"
unit = "s"

[facts]
Temp = "SELECT turbine, level FROM readings"

[sinks.answers]
format = "json"
path = "run/answers"

[sinks.awaited]
format = "json"
path = "run/awaited"
"""


def test_what_is_awaited_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    import tidelog as tl
    from tidelog.hypothetical.answer_changes import ChangeTracker
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    batches = [
        [("wt2", "high", 10), ("wt4", "high", 11), ("wt2", "high", 11)],
        [("wt2", "high", 12), ("wt4", "low", 12)],
    ]
    (tmp_path / "rules.tdl").write_text(MALFUNCTIONS)
    (tmp_path / "pipeline.toml").write_text(AWAITING)
    (tmp_path / "readings").mkdir()
    pipeline = load_pipeline(tmp_path / "pipeline.toml")
    program = tl.Program.load(tmp_path / "rules.tdl")
    local = ChangeTracker(
        tl.hypothetical.Hypotheses(program, "Malf(X,T)", delay=1, options=tl.hypothetical.HypothesisOptions(early=True))
    )
    expected: list[tuple[Any, ...]] = []
    # The clock is the latest time of the batches before; the batch without facts at the end moves it once more.
    for number, (facts, clocks) in enumerate(zip(batches, ((None, 11), (11, 12)), strict=True)):
        rows = [{"turbine": x, "level": level, "second": t} for x, level, t in facts]
        (tmp_path / "readings" / f"{number}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        finished(prepare_pipeline(spark, pipeline))
        for clock in clocks:
            arriving = [("Temp", (x, level), t) for x, level, t in facts] if clock is clocks[0] else []
            for change in local.push(-1 if clock is None else clock - 1, arriving):
                entry = change.answer
                known = (change.change, entry.bindings["X"], entry.bindings["T"], clock)
                expected.append((*known, len(entry.evidence), len(entry.hypotheses)))
    found = spark.read.json(str(tmp_path / "run" / "awaited")).selectExpr(
        "change", "arg1", "unix_seconds(timestamp(time))", "unix_seconds(timestamp(watermark))", "size(evidence)",
        "size(hypotheses)",
    )  # fmt: skip
    assert sorted(map(tuple, found.collect()), key=repr) == sorted(expected, key=repr)
    assert {row[0] for row in expected} == {"awaited", "answered", "dropped"}
    texts = [json.loads(line) for path in tmp_path.glob("run/awaited/batch=*/*.json") for line in path.open()]
    assert {text for row in texts for text in row["hypotheses"]} >= {"Temp(wt2,high)@1970-01-01T00:00:12Z"}
    assert len({row["id"] for row in texts if row["change"] == "awaited"}) == len({row["id"] for row in texts})

    # Whether something is awaited is part of the checkpoint, as it is part of the state.
    (tmp_path / "pipeline.toml").write_text(AWAITING[: AWAITING.index("[sinks.awaited]")])
    with pytest.raises(TidelogError, match="`awaited` as given, and now not given"):
        prepare_pipeline(spark, load_pipeline(tmp_path / "pipeline.toml"))


# Corrections

CORRECTED = """\
rules = "rules.dmtl"
query = "Alarm"
corrections = "1min"
checkpoint = "run/checkpoint"
trigger = "available-now"
buckets = 2

[sources.readings]
format = "json"
path = "readings"
schema = "before STRUCT<sensor:STRING, value:INT, at:INT>, after STRUCT<sensor:STRING, value:INT, at:INT>, op STRING"
options = { maxFilesPerTrigger = 1 }
envelope = "debezium"
time = "at"

[facts]
Hot = "SELECT sensor FROM readings WHERE value > 80"
Ok = "SELECT sensor FROM readings WHERE value <= 80"

[sinks.answers]
format = "json"
path = "run/answers"

[sinks.late]
format = "text"
path = "run/late"

[sinks.aside]
format = "text"
path = "run/aside"
"""


def reading(sensor: str, value: int, at: int) -> dict[str, Any]:
    return {"sensor": sensor, "value": value, "at": at}


def write_changes(
    folder: Path, number: int, *changes: tuple[str, dict[str, Any] | None, dict[str, Any] | None]
) -> None:
    """Writes a file of envelopes, and gives it a time by which Spark reads files in order."""
    path = folder / "readings" / f"{number}.json"
    path.parent.mkdir(exist_ok=True)
    envelopes = ({"op": op, "before": before, "after": after} for op, before, after in changes)
    path.write_text("".join(f"{json.dumps(envelope)}\n" for envelope in envelopes))
    os.utime(path, (1e9 + number, 1e9 + number))


def test_deletions_do_not_move_the_clock_of_a_history(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a", 20, None), ("a", 90, "D "), ("b", 30, "c")], "arg1 string, time int, op string")
    shape = FactColumns("Hot", (("arg1", "string"),), (("time", "int"),), "op")
    assert find_last_time({"Hot": (rows, shape)}) == 30


def test_answers_are_corrected_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Updates, deletions, late facts and rows of an unknown kind; the changes fold into the answers that stand."""
    from tidelog.spark import current
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    rules = "Alarm(X) :- Diamondminus[0,5] Hot(X), not Diamondminus[0,5] Ok(X)."
    (tmp_path / "rules.dmtl").write_text(rules)
    (tmp_path / "pipeline.toml").write_text(CORRECTED)
    first = [reading("t1", 90, 0), reading("t1", 95, 3), reading("t2", 85, 4), reading("t1", 50, 20)]
    write_changes(tmp_path, 1, *(("c", None, row) for row in first))
    wrong = ("x", None, reading("t7", 99, 30)), ("u", None, reading("t7", 99, 30))
    write_changes(tmp_path, 2, ("u", first[1], reading("t1", 60, 3)), ("c", None, reading("t3", 99, 30)), *wrong)
    stream = finished(prepare_pipeline(spark, load_pipeline(tmp_path / "pipeline.toml")))
    assert (stream.progress.aside, stream.progress.late, stream.progress.unmatched) == (2, 0, 0)
    write_changes(tmp_path, 3, ("d", first[2], None), ("c", None, reading("t3", 90, 12)))
    write_changes(tmp_path, 4, ("c", None, reading("t2", 99, -40)), ("r", None, reading("t9", 50, 100)))
    write_changes(tmp_path, 5, ("d", reading("t8", 99, 95), None), ("c", None, reading("t9", 50, 101)))
    stream = finished(prepare_pipeline(spark, load_pipeline(tmp_path / "pipeline.toml")))
    assert (stream.progress.late, stream.progress.unmatched) == (1, 1)
    assert [row[0] for row in spark.read.text(str(tmp_path / "run" / "late" / "batch=*")).collect()] == ["Hot(t2)@-40"]

    log = spark.read.json(str(tmp_path / "run" / "answers"))
    local = tl.Reasoner(tl.Program.parse(rules), "Alarm")
    stands = ["Hot(t1)@0", "Ok(t1)@3", "Hot(t3)@12", "Ok(t1)@20", "Hot(t3)@30", "Ok(t9)@100", "Ok(t9)@101"]
    expected = [fact for step in local.feed(tl.Dataset.from_facts(stands)) for fact in step.answers]
    standing = current(log.select("arg1", "start", "end", "closed", "change", "known", "batch"))
    assert sorted(format_rows(standing, "Alarm")) == sorted(map(format_fact, expected))
    signs = {(row.change, row.arg1, row.start, row.end, row.known) for row in log.collect()}
    assert {("+", "t2", 4, 9, 20), ("-", "t2", 4, 9, 30), ("+", "t3", 12, 17, 30)} <= signs
    assert {row[4] for row in signs} <= {20, 30, 100, 101}
    early = current(log.select("arg1", "start", "end", "closed", "change", "known", "batch"), at=20)
    assert sorted(row.arg1 for row in early.collect()) == ["t1", "t2"]
