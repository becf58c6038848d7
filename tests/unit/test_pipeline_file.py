"""Pipeline files: what they say, and everything that can be wrong with them, found without Spark."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.pipeline.checkpoint_record import build_record
from tidelog.spark.pipeline.pipeline_config import Pipeline
from tidelog.spark.pipeline.pipeline_file import load_pipeline
from tidelog.spark.pipeline.sql import add_column, is_query
from tidelog.spark.plan.job_plan import Awaiting
from tidelog.streaming.alerts import AlertOptions

RULES = "Overheated(X) :- Boxminus[0,10s] Hot(X).\n"
GOOD = """\
rules = "rules.dmtl"
query = "Overheated"
checkpoint = "state"
delay = "5s"

[sources.readings]
format = "json"
path = "readings"
time = "at"
unit = "ms"
options = { maxFilesPerTrigger = 1, multiLine = true }

[facts]
Hot = "SELECT turbine FROM readings WHERE celsius > 80"

[sinks.answers]
format = "parquet"
path = "out"
"""


def load(folder: Path, text: str, rules: str = RULES) -> Pipeline:
    (folder / "rules.dmtl").write_text(rules)
    (folder / "pipeline.toml").write_text(text)
    return load_pipeline(folder / "pipeline.toml")


def refused(folder: Path, text: str, rules: str = RULES) -> tuple[Diagnostic, ...]:
    with pytest.raises(TidelogError) as raised:
        load(folder, text, rules)
    return raised.value.diagnostics


def where(found: Diagnostic) -> tuple[str, int, int]:
    assert found.place is not None
    return found.code, found.place.line, found.place.column


def test_a_pipeline_is_read(tmp_path: Path) -> None:
    pipeline = load(tmp_path, GOOD)
    assert (pipeline.name, pipeline.mode, pipeline.query) == ("pipeline", "stream", "Overheated")
    assert pipeline.delay == Fraction(5)
    (source,) = pipeline.sources
    assert source.path == str(tmp_path / "readings")
    assert source.options == {"maxFilesPerTrigger": "1", "multiLine": "true"}
    assert (source.time, source.unit, source.stream) == ("at", "ms", True)
    assert pipeline.facts[0].predicate == "Hot"
    assert pipeline.answers.path == str(tmp_path / "out")


def test_output_times_are_read(tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text("3\n1\n")
    assert load(tmp_path, GOOD.replace('delay = "5s"', 'at = "file:times.txt"')).at == f"file:{tmp_path / 'times.txt'}"
    assert load(tmp_path, GOOD.replace('delay = "5s"', 'at = "every:10s+3s"')).at == "every:10s+3s"
    (tmp_path / "times.txt").write_text("3\nsoon\n")
    (found,) = refused(tmp_path, GOOD.replace('delay = "5s"', 'at = "file:times.txt"'))
    assert where(found) == ("TL202", 2, 1)
    (found,) = refused(tmp_path, GOOD.replace('delay = "5s"', 'at = "file:no.txt"'))
    assert found.code == "TL805"
    assert "cannot read" in found.message


def test_a_checkpoint_knows_the_times_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text("3\n1\n")
    pipeline = load(tmp_path, GOOD.replace('delay = "5s"', 'at = "file:times.txt"'))
    before = build_record(pipeline, 1)
    assert build_record(pipeline, 1).at == before.at
    (tmp_path / "times.txt").write_text("4\n")
    assert build_record(pipeline, 1).at != before.at


def test_alerts_are_read(tmp_path: Path) -> None:
    options = 'path = "out"\nchanges = true\ndedupe = "30s"\ncooldown = "10min"\nper = 1'
    pipeline = load(tmp_path, GOOD.replace('path = "out"', options))
    assert pipeline.answers.alerts == AlertOptions(True, Fraction(30), Fraction(600), (1,))
    assert build_record(pipeline, 2).alerts == {"changes": True, "dedupe": "30", "cooldown": "600", "per": [1]}
    assert load(tmp_path, GOOD).answers.alerts is None
    found = refused(tmp_path, GOOD.replace('delay = "5s"', 'at = "input"').replace('path = "out"', options))
    assert [(d.code, d.message) for d in found] == [("TL404", "points neither start nor end")]
    batch = GOOD.replace('checkpoint = "state"\ndelay = "5s"', 'mode = "batch"').replace('path = "out"', options)
    assert [where(d)[0] for d in refused(tmp_path, batch)] == ["TL805"]


def test_addresses_stay_as_they_are(tmp_path: Path) -> None:
    pipeline = load(tmp_path, GOOD.replace('"readings"\ntime', '"s3a://bucket/readings"\ntime'))
    assert pipeline.sources[0].path == "s3a://bucket/readings"


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    bad = """\
rules = "rules.dmtl"
querry = "Overheated"
delay = "5 apples"
buckets = 0
mode = "strem"
checkpoint = "state"

[sources.readings]
format = "json"
options = { x = [1] }
unit = "fortnight"
pth = 3

[facts]
Hott = "SELECT turbine FROM readings"
[facts.Hot]
start = "a"

[sinks.answers]
format = "kafka"
"""
    assert [where(found) for found in refused(tmp_path, bad)] == [
        ("TL804", 1, 1),  # no query
        ("TL803", 2, 1),
        ("TL805", 3, 9),
        ("TL805", 4, 11),
        ("TL805", 5, 8),
        ("TL805", 10, 13),
        ("TL805", 11, 8),
        ("TL803", 12, 1),
        ("TL808", 15, 8),
        ("TL804", 16, 8),  # no sql
        ("TL804", 17, 9),  # no end
        ("TL804", 20, 10),  # no topic
    ]


@pytest.mark.parametrize(
    "line, meant", [("querry = 1", "query"), ("Delay = 1", "delay"), ("check_point = 1", "checkpoint")]
)
def test_a_misspelt_key_is_recognised(line: str, meant: str, tmp_path: Path) -> None:
    found = [d for d in refused(tmp_path, f"{line}\n{GOOD}") if d.code == "TL803"]
    assert [d.help for d in found] == [f"did you mean {meant}?"]


@pytest.mark.parametrize(
    "change, to, code",
    [
        ('rules = "rules.dmtl"', 'rules = "none.dmtl"', "TL010"),
        ('query = "Overheated"', 'query = "Overheatd"', "TL302"),
        ("Hot =", "Hit =", "TL808"),
        ('format = "json"', 'format = ""', "TL805"),
        ('format = "json"', "format = 3", "TL805"),
        ('path = "out"', "", "TL804"),
        ('path = "out"', 'path = "out"\noverwrite = true', "TL805"),
        ('path = "out"', 'path = "${NOT_SET_ANYWHERE}"', "TL805"),
        ('delay = "5s"', 'at = "often"', "TL805"),
        ('delay = "5s"', 'at = "every:0"', "TL805"),
        ('delay = "5s"', 'trigger = "soon"', "TL805"),
        ('delay = "5s"', 'background = ["none.facts"]', "TL010"),
        ('delay = "5s"', 'between = ["0", "1"]', "TL805"),
        ('delay = "5s"', 'mode = "batch"', "TL805"),
        ('checkpoint = "state"', "", "TL804"),
        ("[sources.readings]", "[sources.'my readings']", "TL805"),
        ('unit = "ms"', 'python = "no class"', "TL805"),
        ('path = "out"', 'path = "out"\nper = [1]', "TL404"),
        ('path = "out"', 'path = "out"\ncooldown = "1min"\nper = [2]', "TL404"),
        ('path = "out"', 'path = "out"\ncooldown = "1min"\nper = ["turbine"]', "TL805"),
        ('path = "out"', 'path = "out"\ncooldown = "soon"', "TL805"),
        ('path = "out"', 'path = "out"\ndedupe = 0', "TL404"),
        ('path = "out"', 'path = "out"\n[sinks.late]\nformat = "console"\nchanges = true', "TL803"),
    ],
)
def test_a_mistake_is_named(change: str, to: str, code: str, tmp_path: Path) -> None:
    assert change in GOOD
    assert code in {found.code for found in refused(tmp_path, GOOD.replace(change, to))}


def test_mistakes_in_the_rules_are_found_with_those_of_the_file(tmp_path: Path) -> None:
    found = refused(tmp_path, GOOD.replace("unit", "unitt"), "Overheated(X) :- Boxminos[0,10s] Hot(X).\n")
    assert {d.code for d in found} == {"TL004", "TL803"}


def test_the_environment_fills_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "elsewhere")
    assert load(tmp_path, GOOD.replace('"out"', '"${WHERE}/out"')).answers.path == str(tmp_path / "elsewhere/out")


@pytest.mark.parametrize(
    "fact, code",
    [
        ('sql = "SELECT 1"\ntime = "a"\nstart = "b"\nend = "c"', "TL805"),
        ('sql = "SELECT 1"\nbackground = true\ntime = "a"', "TL805"),
        ('sql = "SELECT 1"\ndelay = "-1s"', "TL805"),
        ('time = "a"', "TL804"),
    ],
)
def test_mistakes_in_a_fact(fact: str, code: str, tmp_path: Path) -> None:
    text = GOOD.replace('[facts]\nHot = "SELECT turbine FROM readings WHERE celsius > 80"', f"[facts.Hot]\n{fact}")
    assert code in {found.code for found in refused(tmp_path, text)}


@pytest.mark.parametrize(
    "sql, wider",
    [
        ("SELECT a FROM t", "SELECT a , `at` FROM t"),
        ("select a from t where b in (select c from d)", "select a , `at` from t where b in (select c from d)"),
        ("SELECT 'x FROM y' AS a FROM t", "SELECT 'x FROM y' AS a , `at` FROM t"),
        ("SELECT (SELECT max(b) FROM u) AS a FROM t", "SELECT (SELECT max(b) FROM u) AS a , `at` FROM t"),
        ("-- FROM\nSELECT a FROM t", "-- FROM\nSELECT a , `at` FROM t"),
        ("SELECT DISTINCT a FROM t", None),
        ("SELECT a, count(*) FROM t GROUP BY a", None),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", None),
        ("WITH t AS (SELECT 1) SELECT * FROM t", None),
        ("SELECT 1", None),
    ],
)
def test_the_column_of_time_is_selected_too_where_rows_stay_rows(sql: str, wider: str | None) -> None:
    assert add_column(sql, "at") == wider


@pytest.mark.parametrize("sql", ["DROP TABLE t", "INSERT INTO t SELECT 1", "SET x = 1", "", "-- SELECT 1"])
def test_what_changes_something_is_no_query(sql: str) -> None:
    assert not is_query(sql)
    assert is_query("-- a remark\n SELECT 1")


# What is awaited

AWAITED_RULES = "Overheated(X) :- Boxminus[0,10s] Hot(X).\nLong(X) :- Diamondminus[1,1] Long(X).\nLong(X) :- Hot(X).\n"
AWAITED = (
    GOOD.replace("checkpoint", 'timeline = "integer"\ncheckpoint')
    + """
[awaited]
horizon = "10s"
probability = { Hot = 0.9 }
chances = { Hot = "0.5:0.25" }
min_confidence = 0.1
max_open = 1000

[sinks.awaited]
format = "json"
path = "awaited"
"""
)


def test_what_is_awaited_has_a_sink_and_a_table(tmp_path: Path) -> None:
    pipeline = load(tmp_path, AWAITED)
    assert pipeline.awaited is not None
    assert pipeline.awaited.path == str(tmp_path / "awaited")
    assert pipeline.awaiting == Awaiting(None, 10, {"Hot": 0.9}, {"Hot": "0.5:0.25"}, 0.1, 1000)
    assert load(tmp_path, GOOD).awaited is None


@pytest.mark.parametrize(
    "old, new, code, message",
    [
        ("horizon", "horizont", "TL803", "there is no key `horizont` here"),
        ('"10s"', '"0.5s"', "TL805", "`horizon` is not a whole number of time points"),
        ("0.9", "1.5", "TL805", "`Hot` is not a number from 0 to 1"),
        ("0.1", "true", "TL805", "`min_confidence` is not a number from 0 to 1"),
        ("0.5:0.25", "0.9:0.9", "TL706", "`Hot=0.9:0.9`: `0.9:0.9` is not a list of chances p0:p1:..."),
        ("{ Hot = 0.9 }", "{ Hut = 0.9 }", "TL706", "`Hut=0.9`: the query awaits no facts of Hut"),
        ('"json"\npath = "awaited"', '"csv"\npath = "awaited"', "TL805", "[sinks.awaited] has columns that are lists"),
        ('[sinks.awaited]\nformat = "json"\npath = "awaited"\n', "", "TL804", "there is no [sinks.awaited]"),
        ('timeline = "integer"\n', "", "TL702", "the rational timeline is not supported by hypothetical answers"),
        ('delay = "5s"', 'delay = "0.5s"', "TL703", "the delay is 1/2"),
        ('horizon = "10s"', "", "TL701", "resolution of Long does not terminate"),
    ],
)
def test_what_stands_in_the_way_of_what_is_awaited(old: str, new: str, code: str, message: str, tmp_path: Path) -> None:
    assert AWAITED.count(old) == 1
    text = AWAITED.replace(old, new)
    text = text.replace("Overheated", "Long") if code == "TL701" else text
    (found, *_) = refused(tmp_path, text, AWAITED_RULES)
    assert found.code == code
    assert found.message.startswith(message)
    assert found.place is not None
    assert "--" not in (found.help or "")


def test_a_batch_may_say_how_late_facts_can_be_if_something_is_awaited(tmp_path: Path) -> None:
    text = AWAITED.replace('checkpoint = "state"', 'mode = "batch"\nuntil = 30')
    assert load(tmp_path, text).until == 30
    without = text[: text.index("[awaited]")]
    assert [found.code for found in refused(tmp_path, without)] == ["TL805"] * 2


def test_stable_models_of_a_batch_job_need_a_range_of_time_and_those_of_a_stream_exclude_other_keys(
    tmp_path: Path,
) -> None:
    stream = GOOD.replace('delay = "5s"', 'stable = "brave"')
    assert load(tmp_path, stream).stable == "brave"
    (found,) = refused(tmp_path, stream.replace("brave", "model"))
    assert (found.code, found.help) == ("TL805", 'ask for what holds in some model ("brave"), or in all ("cautious")')
    wrong = stream.replace("stable", 'at = "input"\nmemory = "bounded"\nchanged_rules = true\nstable')
    assert [found.message for found in refused(tmp_path, wrong)] == [
        f"`stable` and `{key}` do not go together" for key in ("at", "memory", "changed_rules")
    ]
    alerts = stream.replace("[sinks.answers]", "[sinks.answers]\nchanges = true")
    (found,) = refused(tmp_path, alerts)
    assert found.message == "`stable` and the alerts of [sinks.answers] do not go together"
    batch = stream.replace('checkpoint = "state"', 'mode = "batch"')
    assert [where(found) for found in refused(tmp_path, batch)] == [("TL804", 4, 10)]
    pipeline = load(tmp_path, batch.replace("stable", 'between = ["0", "9"]\nstable'))
    assert pipeline.stable == "brave"
