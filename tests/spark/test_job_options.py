"""The options of a job, as keywords and as one object, without a Spark session."""

from __future__ import annotations

import ast
import json
import pickle
import socket
import subprocess
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

import tidelog as tl
from locations import SOURCES
from shell import Shell
from tidelog.analysis.distribution import plan_distribution
from tidelog.cli.run import _Lines
from tidelog.data import wire_format
from tidelog.errors import TidelogError
from tidelog.spark.job.fact_schemas import describe_fact_frames
from tidelog.spark.job.java import prepare_java_home
from tidelog.spark.job.metrics import summarise_batch
from tidelog.spark.job.options import JobKeywords, JobOptions, require_applicable, require_stable_options, to_options
from tidelog.spark.job.output import JobOutput
from tidelog.spark.job.session import COMPILER_OPTIONS, build_java_options, session
from tidelog.spark.job.struct_types import read_struct_type
from tidelog.spark.pipeline.progress import Progress
from tidelog.spark.pipeline.sinks import format_packed_answers
from tidelog.spark.plan.fact_columns import FactColumns, RowSelection
from tidelog.spark.plan.job_plan import Awaiting, PlanOptions, plan_job
from tidelog.spark.worker import fact_packer
from tidelog.spark.worker.answer_columns import AnswerColumns
from tidelog.spark.worker.fact_packer import make_packer, pack_batch
from tidelog.spark.worker.packed_rows import FACTS, STATS, WAKE, frame_parts
from tidelog.streaming.output_times import parse_delays

#: The packages of `tidelog.spark`; each imports only from itself and those before it.
ORDER = ("plan", "worker", "awaiting", "job", "pipeline")


def test_keywords_are_the_fields_of_the_options() -> None:
    assert set(JobKeywords.__annotations__) == {field.name for field in fields(JobOptions)} - {"awaiting"}


def test_keywords_replace_fields_of_the_options() -> None:
    assert to_options(JobOptions(buckets=2, delay=1), {"delay": "5s"}) == JobOptions(buckets=2, delay="5s")
    with pytest.raises(TypeError, match="did you mean 'buckets'"):
        to_options(None, {"bucket": 2})  # type: ignore[typeddict-unknown-key]


def test_options_of_another_kind_of_job_are_refused() -> None:
    require_applicable("streaming", JobOptions(delay=3, heartbeat=Fraction(1), clocked=frozenset()))
    with pytest.raises(TidelogError, match="`delay`, `heartbeat` are not for a batch job"):
        require_applicable("batch", JobOptions(delay=3, heartbeat=Fraction(1)))
    with pytest.raises(TidelogError, match="`between` is not for a streaming job"):
        require_applicable("streaming", JobOptions(between=(0, 1)))
    with pytest.raises(TidelogError, match="`stable` is not for a backfill job"):
        require_applicable("backfill", JobOptions(stable="brave"))


def test_streams_over_stable_models_have_fewer_options() -> None:
    require_stable_options("streaming", JobOptions(stable="brave", delay=3, heartbeat=Fraction(1)))
    wrong = JobOptions(stable="brave", corrections=60, at="input", alerts={}, awaiting=Awaiting(), changed_rules=True)
    with pytest.raises(TidelogError) as raised:
        require_stable_options("streaming", wrong)
    assert [found.message for found in raised.value.diagnostics] == [
        f"`stable` and `{name}` do not go together in a streaming job"
        for name in ("corrections", "at", "alerts", "[sinks.awaited]", "changed_rules")
    ]
    with pytest.raises(TidelogError, match=r"(?s)cannot be \"model\".*facts to come may exclude"):
        require_stable_options("streaming", JobOptions(stable="model"))


def test_types_are_read_as_spark_reads_them() -> None:
    text = "`order id` STRING, n: int, a DECIMAL( 10 , 2 ), b decimal, c array<string>, at timestamp_ntz, `x``y` LONG"
    found = [(field.name, field.dataType.simpleString()) for field in read_struct_type(text).fields]
    assert found == [
        ("order id", "string"),
        ("n", "int"),
        ("a", "decimal(10,2)"),
        ("b", "decimal(10,0)"),
        ("c", "array<string>"),
        ("at", "timestamp_ntz"),
        ("x`y", "bigint"),
    ]
    for wrong, rest in (
        ("a strng", "a strng"),
        ("a int, b", "b"),
        ("a int b int", "a int b int"),
        ("a map<x>", "a map"),
    ):
        with pytest.raises(ValueError, match=rest):
            read_struct_type(wrong)


class _RefusedError(PySparkException):
    def __init__(self, condition: str) -> None:
        super().__init__("refused")
        self._condition = condition

    def getCondition(self) -> str:  # noqa: N802
        return self._condition


class _Unanalysed:
    """A DataFrame in a function of a declarative pipeline: Spark refuses to say anything about it."""

    def __init__(self, condition: str) -> None:
        self._condition = condition

    def __getattr__(self, name: str) -> object:
        assert name in ("schema", "isStreaming")
        raise _RefusedError(self._condition)


def test_declared_columns_need_no_analysis() -> None:
    frame: Any = _Unanalysed(REFUSED)
    for schema in ("turbine STRING, Time LONG", StructType.fromJson(READING)):
        found = describe_fact_frames({"Hot": frame}, JobOptions(schemas={"Hot": schema}))["Hot"]
        assert found.fields == (("turbine", "string"), ("Time", "bigint"))
        assert (found.streaming, found.declared) == (False, True)


REFUSED = "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION"
READING = {
    "type": "struct",
    "fields": [
        {"name": "turbine", "type": "string", "nullable": True, "metadata": {}},
        {"name": "Time", "type": "long", "nullable": True, "metadata": {}},
    ],
}


@pytest.mark.parametrize(
    ("schemas", "code", "said"),
    [
        (None, "TL813", "may not be asked for the columns of Hot"),
        ({"Hott": "x STRING"}, "TL302", "Hott has a schema, but no facts"),
        ({"Hot": "x STRNG"}, "TL805", "the schema of Hot cannot be read from `x STRNG` on"),
    ],
)
def test_what_is_wrong_with_declared_columns_is_said(schemas: dict[str, str] | None, code: str, said: str) -> None:
    frame: Any = _Unanalysed(REFUSED)
    with pytest.raises(TidelogError, match=said) as caught:
        describe_fact_frames({"Hot": frame}, JobOptions(schemas=schemas))
    assert caught.value.diagnostics[0].code == code


def test_other_errors_of_spark_are_passed_on() -> None:
    frame: Any = _Unanalysed("TABLE_OR_VIEW_NOT_FOUND")
    with pytest.raises(_RefusedError):
        describe_fact_frames({"Hot": frame}, JobOptions())


def test_the_output_of_a_job_leaves_its_dataframe_behind() -> None:
    frame: Any = object()
    job = JobOutput(frame, cast(Any, "split"), cast(Any, "plan"), AnswerColumns(("string",), "bigint"))
    copy = pickle.loads(pickle.dumps(job))
    assert (copy.frame, copy.plan, copy.columns) == (None, "plan", job.columns)
    assert job.frame is frame


def test_milliseconds_under_rules_with_durations_are_found_by_workers() -> None:
    program = tl.Program.parse("Late(X) :- Diamondminus[0,2h] Ordered(X).")
    shape = FactColumns("Ordered", (("order", "string"),), (("time", "bigint"),))
    split = plan_distribution(program, "Late")
    plan = plan_job(program, "Late", split, PlanOptions(buckets=1, delays=parse_delays(0)))
    said = {}
    for time in (1769853600000, 1769853600):
        batch = pa.RecordBatch.from_pydict({"arg1": ["o1"], "time": [time]})
        rows = [row for row in pack_batch(plan, shape, batch, False, False) if row.kind == STATS]
        found = summarise_batch((json.loads(row.payload) for row in rows), {}, program.rules)
        said[time] = found["unit_warnings"]
    assert said[1769853600] == []
    (message,) = said[1769853600000]
    assert message.endswith("seem to be milliseconds since 1970, and `2h` in the rules is 7200 of them")


def test_spark_lets_python_import_the_installed_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    version = """[ "$1" = -version ] && echo 'openjdk version "17.0.1"' >&2 && exit 0"""
    java.write_text(f"#!/bin/sh\n{version}\necho ${{SPARK_HOME-hidden}} ${{SPARK_CONF_DIR-unset}}\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", "/spark")
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)

    def run(argument: str, *, hide: bool) -> str:
        home, _ = prepare_java_home(tmp_path / "log", hide_spark_home=hide)
        return subprocess.run([home / "bin" / "java", argument], capture_output=True, text=True, check=True).stdout

    spark = "org.apache.spark.deploy.SparkSubmit"
    assert run(spark, hide=True) == "hidden /spark/conf\n"
    assert run("org.apache.spark.launcher.Main", hide=True) == "/spark unset\n"
    assert run(spark, hide=False) == "/spark unset\n"


def test_small_batches_of_rows_are_packed_together() -> None:
    program = tl.Program.parse("Again(X) :- Hot(X), Diamondminus(0,1] Hot(X).")
    plan = plan_job(
        program, "Again", plan_distribution(program, "Again"), PlanOptions(buckets=1, delays=parse_delays(0))
    )
    shape = FactColumns("Hot", (("machine", "string"),), (("time", "bigint"),))
    pack = make_packer(plan, [RowSelection(shape)], (0,), timed=True, set_aside=False)
    batches = [pa.RecordBatch.from_pydict({"arg1": ["m1", f"n{i % 2}"], "time": [i, i]}) for i in range(10)]
    with mock.patch.object(fact_packer, "_MOST_ROWS", 12):
        packed = list(pack(iter(batches)))
    assert [batch["kind"].to_pylist() for batch in packed] == [[FACTS, WAKE, STATS]] * 2
    blocks = [wire_format.unpack(batch["payload"][0].as_py()) for batch in packed]
    assert [len(block) for block in blocks] == [12, 8]
    expected = "".join(f"Hot(m1)@{i}\nHot(n{i % 2})@{i}\n" for i in range(10))
    assert list(wire_format.to_dataset(blocks)) == list(tl.Dataset.parse(expected))


def test_rows_are_packed_before_they_take_much_memory() -> None:
    large = pa.RecordBatch.from_pydict({"arg1": ["x" * 1000] * 10})
    with mock.patch.object(fact_packer, "_MOST_BYTES", 25_000):
        joined = list(fact_packer._join_batches([large] * 5))
    assert [batch.num_rows for batch in joined] == [20, 20, 10]


def test_a_warning_of_a_running_job_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _Lines(quiet=True)
    for progress in (Progress(), Progress(unit_warning="times seem to be milliseconds"), Progress(unit_warning="x")):
        lines.warn(progress)
    said = capsys.readouterr().err
    assert said.startswith("warning[TL211]: times seem to be milliseconds\n")
    assert 'unit = "ms"' in said
    assert said.count("TL211") == 1


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_the_last_progress_line_is_printed_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.setattr("tidelog.cli.run.monotonic", iter((0.0, seconds, seconds)).__next__)
    lines = _Lines(quiet=False)
    lines.show("batch 7: 12 answers")
    lines.end()
    lines.show_last("batch 7: 12 answers")
    assert capsys.readouterr().err == "batch 7: 12 answers\n"


def test_packed_answers_are_printed_as_rows_are() -> None:
    data = tl.Dataset.parse('P(a,1.5)@[0,3)\nP("B c",2)@(7,inf)\nP(d,-3)@4.5')
    (payload,) = wire_format.pack_dataset(data)
    numbers = AnswerColumns(("string", "double"), "double")
    assert sorted(format_packed_answers([payload], numbers, "Q")) == [
        'Q("B c",2)@(7,inf)',
        "Q(a,1.5)@[0,3)",
        "Q(d,-3)@9/2",
    ]
    assert list(format_packed_answers([], numbers, "Q")) == []
    dated = AnswerColumns(("string", "decimal(10,2)"), "timestamp")
    assert "Q(d,-3)@1970-01-01T00:00:04.5Z" in list(format_packed_answers([payload], dated, "Q"))


def test_packed_changes_are_printed_with_their_signs() -> None:
    (added,) = wire_format.pack_dataset(tl.Dataset.parse("P(a)@[0,3)"))
    (removed,) = wire_format.pack_dataset(tl.Dataset.parse("-P(b)@2"))
    payloads = [frame_parts([b"7", block]) for block in (added, removed)]
    columns = AnswerColumns(("string",), "bigint", corrections=True)
    assert list(format_packed_answers(payloads, columns, "P")) == ["+P(a)@[0,3)", "-P(b)@2"]


def test_options_of_java_that_the_user_sets_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java takes the last of several values of an option."""
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    ours, users = COMPILER_OPTIONS[0], "-XX:Tier4InvocationThreshold=5000"
    assert ours.partition("=")[0] == users.partition("=")[0]
    options = build_java_options("local[2]", users, None).split()
    assert options.index(ours) < options.index(users)
    assert options[-1].startswith("-Dlog4j2.configurationFile=")
    assert ours in build_java_options(None, "", None)
    assert ours not in build_java_options("spark://host:7077", "", None)


def test_a_server_that_does_not_answer_is_reported_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for address in (f"sc://127.0.0.1:{port}", "sc://127.0.0.1:no"):
        with pytest.raises(TidelogError, match="no Spark Connect server answers at") as caught:
            session(address)
        assert caught.value.diagnostics[0].code == "TL801"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--remote", "host:15002"), "is not an address like sc://host:15002"),
        (("--remote", "sc://h", "--master", "local"), "give one of them"),
        (("--remote", "sc://h"), "error[TL814]: job.toml is a stream, which cannot run on Spark Connect"),
        (("--master", "sc://h"), "error[TL814]"),
    ],
)
def test_what_cannot_run_on_a_connect_server_is_refused(sh: Shell, options: tuple[str, ...], said: str) -> None:
    sh.write("rules.dmtl", "Hot(X) :- Reading(X).")
    sh.write("job.toml", STREAM)
    ran = sh("run", "job.toml", *options)
    assert ran.code == 2
    assert said in ran.err


STREAM = """
rules = "rules.dmtl"
query = "Hot"
checkpoint = "checkpoint"
[sources.readings]
format = "json"
path = "readings"
schema = "x STRING, time BIGINT"
[facts]
Reading = "SELECT x, time FROM readings"
[sinks.answers]
format = "console"
"""


@pytest.mark.parametrize("package", ORDER)
def test_imports_between_the_packages_of_spark_go_one_way(package: str) -> None:
    later = ORDER[ORDER.index(package) + 1 :]
    for file in sorted((SOURCES / "spark" / package).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tidelog.spark."):
                assert (node.module or "").split(".")[2] not in later, f"{file.name} imports {node.module}"
