"""Jobs with corrections without Spark: what buckets and stages change folds into the answers of a run from scratch."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tidelog as tl
from corrected_streams import describe_history, draw_history
from examine import parse_case
from spark_by_hand import ByHand
from spark_histories import draw_staged_case, examine_job
from strategies import Case, Features, cases
from tidelog.analysis.distribution import plan_distribution
from tidelog.engine.fact_store import Rows
from tidelog.errors import TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.spark.job.metrics import summarise_batch
from tidelog.spark.job.options import JobOptions, require_correctable
from tidelog.spark.pipeline.pipeline_file import load_pipeline
from tidelog.spark.plan.fact_columns import FactColumns
from tidelog.spark.worker.declared_rows import DeclaredTable, make_file_reader
from tidelog.spark.worker.fact_packer import pack_batch
from tidelog.spark.worker.packed_rows import BAD
from tidelog.spark.worker.passed_facts import cut_pieces
from tidelog.streaming.alerts import AlertOptions

FEATURES = (
    Features(endless_data=False, negation=True, unbounded=True),
    Features(endless_data=False, negation=True, integer=True, denominators=(1,)),
)
ALARM = "Alarm(X) :- Hot(X), not Diamondminus[0,10] Ok(X)."
STAGES = """
Up(X,Z) :- On(X,Z), not Diamondminus[0,2] Beat(X).
Region(Z) :- Up(X,Z), Diamondminus[0,3] Watch(Z).
"""


def run_batches(work: ByHand, *batches: str) -> list[str]:
    """Runs batches of facts and deletions, as text; the changes of each, and of one batch more, in one line."""
    found = []
    for batch in batches:
        before = len(work.changes)
        work.batch(tl.Dataset.parse(batch.replace("; ", "\n")))
        work.batch()
        found.append(" ".join(sorted(f"{change}~{change.known}" for change in work.changes[before:])))
    return found


# The law


@pytest.mark.parametrize("features", FEATURES, ids=lambda f: f.timeline)
@settings(max_examples=8, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_histories_over_buckets(features: Features, data: st.DataObject) -> None:
    case: Case = data.draw(cases(features))
    seed = data.draw(st.integers(0, 1 << 30))
    _, wrong = examine_job(case, seed)
    assert not wrong, describe_history(wrong, case, seed)


def test_random_histories_over_stages() -> None:
    stages: Counter[int] = Counter()
    for seed in range(30):
        case = draw_staged_case(seed, integer=seed % 3 == 0)
        history = draw_history(case, seed)
        if history is None or len(plan_distribution(parse_case(case).program, history.query).stages) == 1:
            continue
        number, wrong = examine_job(case, seed)
        assert not wrong, describe_history(wrong, case, seed)
        stages[number] += 1
        if sum(stages.values()) == 9:
            break
    assert stages[2] >= 2
    assert stages[3] >= 2


def test_a_correction_reaches_the_last_stage() -> None:
    """A late beat ends what was passed on as going on; its deletion restores it."""
    work = ByHand.start(tl.Program.parse(STAGES), "Region", buckets=3, corrections=Fraction(30), faults=True, seed=3)
    assert len(work.split.stages) == 2
    assert run_batches(
        work,
        "On(a,z)@[0,40]; Watch(z)@2; Beat(b)@20",
        "Beat(a)@3; Beat(b)@21",
        "-Beat(a)@3; Beat(b)@22",
        "-Watch(z)@2; Watch(z)@4",
    ) == [
        "+Region(z)@[2,5]~20",
        "+Region(z)@[2,3)~20 -Region(z)@[2,5]~20",
        "+Region(z)@[2,5]~21 -Region(z)@[2,3)~21",
        "+Region(z)@[4,7]~22 -Region(z)@[2,5]~22",
    ]


def test_facts_wait_for_their_time_however_long_a_batch_is() -> None:
    """A batch that spans more time than corrections reach back over loses no fact: none of them is late."""
    work = ByHand.start(tl.Program.parse(STAGES), "Region", buckets=2, corrections=Fraction(1))
    assert run_batches(work, "On(a,z)@[0,100]; Watch(z)@5; Watch(z)@50; Beat(q)@99") == [
        "+Region(z)@[5,8]~99 +Region(z)@[50,53]~99"
    ]
    assert not work.late


def test_late_facts_and_deletions_beyond_corrections_are_told_once() -> None:
    work = ByHand.start(tl.Program.parse(ALARM), "Alarm", buckets=3, delay=2, corrections=Fraction(10))
    run_batches(work, "Hot(a)@20; Hot(b)@20", "Hot(a)@10; Hot(c)@9; -Hot(b)@9; Ok(d)@(9,10]; -Hot(e)@10; Hot(b)@21")
    assert sorted(map(format_fact, work.late)) == ["-Hot(b)@9", "Hot(c)@9", "Ok(d)@(9,10]"]
    assert sum(step.get("late", 0) for step in work.stats) == 3
    assert summarise_batch(work.stats, {}, work.job.program.rules)["unmatched"] == 1
    assert [str(change) for change in work.changes] == ["+Alarm(a)@10"]  # the delay still holds back what is at 20
    assert {c.known for c in work.changes} == {Fraction(20)}


def test_alerts_are_withdrawn() -> None:
    work = ByHand.start(
        tl.Program.parse(ALARM), "Alarm", buckets=2, corrections=Fraction(60), alerts=AlertOptions(changes="start")
    )
    lines = run_batches(work, "Hot(a)@[0,20]; Hot(b)@30", "Ok(a)@0; Hot(b)@40", "-Ok(a)@0; Hot(b)@50")
    # A start is packed as all time after it, with one more argument.
    assert lines == [
        "+Alarm(a,start)@[0,inf)~30",
        "+Alarm(a,start)@(10,inf)~30 +Alarm(b,start)@[30,inf)~40 -Alarm(a,start)@[0,inf)~30",
        "+Alarm(a,start)@[0,inf)~40 +Alarm(b,start)@[40,inf)~50 -Alarm(a,start)@(10,inf)~40",
    ]


def test_history_with_deletions_is_handed_over() -> None:
    work = ByHand.start(tl.Program.parse(STAGES), "Region", buckets=2, corrections=Fraction(30))
    past = "On(a,z)@[0,40]\nWatch(z)@2\nWatch(z)@10\n-Watch(z)@10\nBeat(a)@3\nBeat(b)@20"
    work.backfill(list(tl.Dataset.parse(past)))
    assert sorted(map(str, work.changes)) == ["+Region(z)@[2,3)"]
    assert run_batches(work, "-Beat(a)@3; Beat(b)@21") == ["+Region(z)@[2,5]~20 -Region(z)@[2,3)~20"]


def test_changed_rules_correct_the_answers_of_the_old_ones() -> None:
    work = ByHand.start(tl.Program.parse(ALARM), "Alarm", buckets=2, corrections=Fraction(60))
    run_batches(work, "Hot(a)@[0,20]; Ok(a)@5; Hot(b)@30")
    work = work.changed(tl.Program.parse(ALARM.replace("10", "4")))
    assert run_batches(work, "Hot(b)@40") == ["+Alarm(a)@(9,20]~30 +Alarm(b)@30~40 -Alarm(a)@(15,20]~30"]


# Pieces


def test_pieces_that_may_change_are_short() -> None:
    rows = Rows(np.zeros((1, 2), np.int32), np.array([0, 95]), np.array([100, 98]))
    cut = cut_pieces(rows, 100, 10)
    found = sorted(zip(cut.lo.tolist(), cut.hi.tolist(), strict=True))
    assert found == [(0, 59), (60, 69), (70, 79), (80, 89), (90, 100), (95, 98)]
    assert len(cut_pieces(rows, 100, 0)) == 2


# Rows with an operation


def test_rows_say_whether_they_insert_or_delete() -> None:
    work = ByHand.start(tl.Program.parse(ALARM), "Alarm", buckets=1, corrections=Fraction(60))
    shape = FactColumns("Hot", (("sensor", "string"),), (("time", "bigint"),), "what")
    words = ["insert", "delete", None, "D", " + ", "u", "update"]
    batch = pa.RecordBatch.from_arrays(
        [pa.array([f"t{i}" for i in range(7)]), pa.array(range(7), pa.int64()), pa.array(words)], ["arg1", "time", "op"]
    )
    rows = list(pack_batch(work.job, shape, batch, True, True))
    (bad,) = [row.payload.decode() for row in rows if row.kind == BAD]
    assert "column `what`: `u` is an update, which needs the row as it was before" in bad.splitlines()[0]
    assert "column `what`: `update` is not one of insert, delete, +, -, c, r, d" in bad.splitlines()[1]
    # Deletions do not move the clock, and neither do bad rows: the last fact is at 4.
    clock = [row.time for row in rows if row.time is not None]
    assert clock == [4000 + 10**14]
    with pytest.raises(TidelogError, match="TL206"):
        list(pack_batch(work.job, shape, batch, True, False))


# Mistakes

PIPELINE = """\
rules = "rules.dmtl"
query = "Alarm"
checkpoint = "run"
{keys}
[sources.readings]
format = "json"
path = "readings"
{source}
[facts.Hot]
sql = "SELECT sensor, time FROM readings"
{fact}
[facts.Ok]
sql = "SELECT sensor, time FROM readings"
[sinks.answers]
format = "console"
{sink}
"""


@pytest.mark.parametrize(
    ("keys", "source", "fact", "line", "message"),
    [
        ("", "", 'op = "what"', 8, "TL407"),
        ("", 'envelope = "debezium"', "", 9, "TL407"),
        ('corrections = "soon"', "", "", 4, "`corrections` is not a length of time"),
        ('delay = "1h"\ncorrections = "1min"', "", "", 5, "shorter than the delay"),
        ('corrections = "1h"\nat = "input"', "", "", 4, "corrections do not work with `at`"),
        ('corrections = "1h"\nuntil = 100', "", "", 4, "corrections do not work with `until`"),
        ('corrections = "1h"\nmemory = "bounded"', "", "", 4, "bounded memory"),
        ('corrections = "1h"', "", "op = 3", 10, "op"),
        ('corrections = "1h"', "", 'op = "time"\ntime = "time"', 10, "`time` is a time"),
        ('corrections = "1h"', "", 'op = "what"\nbackground = true', 10, "cannot be deleted"),
        ('corrections = "1h"', 'envelope = "json"', "", 8, "envelope"),
        ('corrections = "1h"', 'envelope = "debezium"\npredicate = "Hot"', "", 8, "envelope cannot be declared"),
        ('mode = "batch"\ncorrections = "1h"', "", "", 5, '`corrections` is not for mode = "batch"'),
    ],
)
def test_mistakes_are_told_with_their_place(
    tmp_path: Path, keys: str, source: str, fact: str, line: int, message: str
) -> None:
    (tmp_path / "rules.dmtl").write_text(ALARM)
    text = PIPELINE.format(keys=keys, source=source, fact=fact, sink="")
    (tmp_path / "pipeline.toml").write_text("\n".join(one for one in text.splitlines() if one) + "\n")
    with pytest.raises(TidelogError) as raised:
        load_pipeline(tmp_path / "pipeline.toml")
    told = [(found.place and found.place.line, f"{found.code} {found.message}") for found in raised.value.diagnostics]
    assert any(at == line and message in what for at, what in told), told


def test_a_source_in_an_envelope_has_operations(tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text(ALARM)
    text = PIPELINE.format(keys='corrections = "1h"', source='envelope = "debezium"', fact="", sink="")
    (tmp_path / "pipeline.toml").write_text(text)
    pipeline = load_pipeline(tmp_path / "pipeline.toml")
    assert (pipeline.corrections, [fact.op for fact in pipeline.facts]) == (Fraction(3600), ["op", "op"])


def test_what_corrections_do_not_go_together_with_is_refused_by_name() -> None:
    with pytest.raises(TidelogError) as raised:
        require_correctable(JobOptions(corrections="1h", at="input", answer_until=Fraction(3)))
    assert [found.code for found in raised.value.diagnostics] == ["TL408", "TL408"]
    assert all(found.law for found in raised.value.diagnostics)


DECLARED = """\
mode = "batch"
rules = "rules.dmtl"
query = "Alarm"
[sources.readings]
format = "csv"
path = "readings"
predicate = "Hot"
columns = { what = "text", sensor = "text", at = "time" }
time = "at"
times = "numbers"
op = "what"
[facts]
Ok = "SELECT sensor, at AS time FROM readings WHERE what = 'never'"
[sinks.answers]
format = "console"
"""


def test_declared_columns_have_an_operation(tmp_path: Path) -> None:
    """Deletions stay deletions, and a word that is no operation makes a bad row with its line."""
    (tmp_path / "rules.dmtl").write_text(ALARM)
    (tmp_path / "pipeline.toml").write_text(DECLARED)
    pipeline = load_pipeline(tmp_path / "pipeline.toml")
    (source,) = pipeline.sources
    assert source.table is not None
    assert [(fact.predicate, fact.op) for fact in pipeline.facts] == [("Hot", "what"), ("Ok", None)]
    declared = DeclaredTable(source.table, "csv", False)
    content = b"what,sensor,at\ninsert,t1,3\ndelete,t2,4\n,t3,5\nmaybe,t4,6\n"
    given = pa.RecordBatch.from_pydict({"path": ["readings/1.csv"], "content": [content]})
    rows = [row for batch in make_file_reader(declared)(iter([given])) for row in batch.to_pylist()]
    bad = [row.pop("__tidelog_bad") for row in rows]
    assert sorted((row["sensor"], row["at"], row["what"]) for row in rows[:3]) == [
        ("t1", 3.0, "insert"),
        ("t2", 4.0, "delete"),
        ("t3", 5.0, "insert"),
    ]
    assert bad[:3] == [None] * 3
    assert '"line": 5' in bad[3]
    assert "`maybe` is not one of insert" in bad[3]
