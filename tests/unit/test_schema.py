"""Schemas of tables: reading them, reading tables with them, and what happens without one."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidelog as tl
from shell import Shell
from tidelog.data.schema import Schema, load_schema, parse_schema
from tidelog.data.schema_inference import infer_schema
from tidelog.errors import TidelogError

pytestmark = pytest.mark.usefixtures("kernels")

SCHEMA = """
[schema.Ordered]
file = "orders.csv"
columns = { order = "text", placed = "time" }
time = "placed"
zone = "Europe/Berlin"

[schema.Amount]
file = "orders.csv"
columns = { order = "text", amount = "number" }

[schema.Paid]
columns = { order = "text", ts = "time" }
time = "ts"
unit = "ms"
"""
ORDERS = "order,amount,placed\n1001,5,2026-01-31T10:00:00\n007,6.5,2026-07-31T10:00:00+00:00\n"
PAYMENTS = '{"order": 1001, "ts": 1769853600000}\n{"order": "007", "ts": 1769853600500}\n'
RULES = "Both(X) :- Ordered(X), Diamondplus[0,1h] Paid(X).\n"


@pytest.fixture
def sh(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("tidelog.toml", SCHEMA),
        ("orders.csv", ORDERS),
        ("Paid.jsonl", PAYMENTS),
        ("rules.dmtl", RULES),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_schema_gives_types_units_zones_and_several_predicates_of_a_file(folder: Path) -> None:
    data = tl.Dataset.load("orders.csv", "Paid.jsonl", schema="tidelog.toml")
    assert str(data).splitlines() == [
        'Amount("007",6.5)@(-inf,inf)',
        'Amount("1001",5)@(-inf,inf)',
        'Ordered("007")@2026-07-31T10:00:00Z',
        'Ordered("1001")@2026-01-31T09:00:00Z',
        'Paid("007")@2026-01-31T10:00:00.5Z',
        'Paid("1001")@2026-01-31T10:00:00Z',
    ]


def test_a_schema_next_to_the_rules_is_used_in_batch_and_in_a_stream(folder: Path, sh: Shell) -> None:
    batch = sh("materialise", "rules.dmtl", "orders.csv", "Paid.jsonl")
    assert batch.out == 'Both("1001")@2026-01-31T09:00:00Z\n'
    stream = sh("stream", "rules.dmtl", "--query", "Both", "--input", "orders.csv", "--input", "Paid.jsonl")
    assert 'Both("1001")@2026-01-31T09:00:00Z' in stream.out


def test_a_schema_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    text = (folder / "tidelog.toml").read_bytes()
    (folder / "marked.toml").write_bytes(b"\xef\xbb\xbf" + text)
    marked, plain = (tl.Dataset.load("orders.csv", schema=name) for name in ("marked.toml", "tidelog.toml"))
    assert str(marked) == str(plain)


def test_column_names_are_those_of_the_arguments() -> None:
    schema = parse_schema(SCHEMA)
    assert schema.column_names("Amount") == ("order", "amount")
    assert schema.column_names("Paid", 1) == ("order",)
    assert schema.column_names("Paid", 2) is None
    assert schema.column_names("Sent") is None
    assert parse_schema('[schema.A]\ntopic = "a"\ncolumns = {x = "text"}').find_topic("a")[0].predicate == "A"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('[schema.P]\ncolumns = { x = "txt" }', "`x` cannot be `txt`", 2),
        ('[schema.P]\ncolumns = { x = "text" }\ntime = "at"', "there is no column `at`", 3),
        ('[schema.P]\ncolumns = { x = "text" }\nunit = "m"', "`unit` cannot be `m`", 3),
        ('[schema.P]\ncolumns = { x = "text" }\nzone = "Europe/Berlim"', "there is no time zone `Europe/Berlim`", 3),
        ('[schema.P]\ncolumns = { x = "text" }\nzoen = "UTC"', "there is no key `zoen`", 3),
        ('[schema.P]\nfile = "p.csv"', "[schema.P] has no `columns`", 1),
        ('[schema.P]\ncolumns = { start = "time" }', "there is a column for `start`, but none for `end`", 1),
        ('[schema.P]\ncolumns = { time = "number" }', "the column `time` says when a fact holds", 1),
        ("[schema.P\n", "this is not TOML", 1),
    ],
)
def test_a_mistake_in_a_schema_is_reported_with_its_line(text: str, message: str, line: int) -> None:
    with pytest.raises(TidelogError) as caught:
        parse_schema(text)
    found = caught.value.diagnostics[0]
    assert message in found.message
    assert found.place is not None
    assert found.place.line == line


def load(text: str, table: str, name: str = "P.csv") -> list[str]:
    Path(name).write_text(table, encoding="utf-8")
    return str(tl.Dataset.load(name, schema=parse_schema(text))).splitlines()


@pytest.mark.parametrize(
    ("schema", "table", "message"),
    [
        ('columns = { x = "number" }', "x\n1\none\n", "column `x`: `one` is not a number"),
        ('columns = { y = "number" }', "x\n1\n", "has no column `y`; its columns are x"),
        (
            'columns = { time = "time" }\nzone = "Europe/Berlin"',
            "time\n2026-03-29T02:30:00\n",
            "there is no such local time in Europe/Berlin",
        ),
        (
            'columns = { time = "time" }\nzone = "Europe/Berlin"',
            "time\n2026-10-25T02:30:00\n",
            "this local time occurs twice in Europe/Berlin",
        ),
    ],
)
def test_a_table_that_does_not_fit_its_schema_is_refused(folder: Path, schema: str, table: str, message: str) -> None:
    with pytest.raises(TidelogError, match=message):
        load(f"[schema.P]\n{schema}", table)


def test_a_schema_may_choose_columns_ends_and_the_later_of_two_local_times(folder: Path) -> None:
    text = '[schema.P]\ncolumns = { b = "text", s = "time", e = "time" }\nstart = "s"\nend = "e"\nclosed = "left"'
    assert load(text, "a,b,s,e\n1,01,3,5\n") == ['P("01")@[3,5)']
    text = '[schema.P]\ncolumns = { time = "time" }\nzone = "Europe/Berlin"\nambiguous = "later"'
    assert load(text, "time\n2026-10-25T02:30:00\n2026-07-01\n") == [
        "P@2026-06-30T22:00:00Z",
        "P@2026-10-25T01:30:00Z",
    ]


def test_a_column_with_leading_zeros_is_text_as_a_whole(folder: Path) -> None:
    Path("P.csv").write_text("x,y\n007,0.5\n8,0\n", encoding="utf-8")
    assert str(tl.Dataset.load("P.csv")).splitlines() == ['P("007",0.5)@(-inf,inf)', 'P("8",0)@(-inf,inf)']


def test_a_join_of_numbers_with_text_is_reported_with_both_files_and_columns(folder: Path, sh: Shell) -> None:
    Path("tidelog.toml").unlink()
    Path("Ordered.csv").write_text("id,time\n1001,5\n1002,6\n", encoding="utf-8")
    Path("Paid.jsonl").write_text('{"order": "1001", "time": 5}\n', encoding="utf-8")
    expected = "column `id` of Ordered.csv holds only numbers, and column `order` of Paid.jsonl only text"
    assert expected in sh("materialise", "rules.dmtl", "Ordered.csv", "Paid.jsonl").err
    streamed = sh("stream", "rules.dmtl", "--query", "Both", "--input", "Ordered.csv", "--input", "Paid.jsonl")
    assert expected in streamed.err
    Path("rules.dmtl").write_text("Both(X) :- Ordered(X), Ordered(abc).\n", encoding="utf-8")
    assert "abc" in sh("materialise", "rules.dmtl", "Ordered.csv").err


def test_times_in_different_units_are_refused_with_a_fact_of_each_kind(folder: Path, sh: Shell) -> None:
    Path("a.facts").write_text("Ordered(a)@2026-01-31T10:00:00Z\n", encoding="utf-8")
    for number in ("3", "1769853600000"):
        Path("b.facts").write_text(f"Paid(a)@{number}\n", encoding="utf-8")
        for command in (
            ("materialise", "rules.dmtl", "a.facts", "b.facts"),
            ("stream", "rules.dmtl", "--query", "Both", "--input", "a.facts", "--input", "b.facts"),
        ):
            result = sh(*command)
            assert result.code == 2
            error = result.err
            assert "TL209" in error
            assert "Ordered(a)@2026-01-31T10:00:00Z in a.facts" in error
            assert f"Paid(a)@{number} in b.facts" in error
    Path("b.facts").write_text("Paid(a)@1769853600\n", encoding="utf-8")
    assert len(tl.Dataset.load("a.facts", "b.facts")) == 2
    Path("b.facts").write_text("Paid(a)@2026-01-31\nPaid(a)@7\n", encoding="utf-8")
    with pytest.raises(TidelogError, match="TL209"):
        tl.Dataset.load("b.facts")


def test_infer_prints_a_schema_that_loads_again(folder: Path, sh: Shell) -> None:
    Path("silent-devices.csv").write_text("device,start,end\n07,2026-01-01,2026-01-02\n", encoding="utf-8")
    text = sh("infer", "orders.csv", "Paid.jsonl", "silent-devices.csv").out
    schema = parse_schema(text)
    assert set(schema.tables) == {"orders", "Paid", "SilentDevices"}
    paid = schema.tables["Paid"]
    assert (paid.time, paid.unit) == ("ts", "ms")
    assert {column.name: column.type for column in schema.tables["orders"].columns} == {
        "order": "text",
        "amount": "number",
        "placed": "time",
    }
    assert (schema.tables["SilentDevices"].start, schema.tables["SilentDevices"].end) == ("start", "end")
    Path("inferred.toml").write_text(text, encoding="utf-8")
    loaded: Schema = load_schema("inferred.toml")
    assert 'SilentDevices("07")@[2026-01-01T00:00:00Z,2026-01-02T00:00:00Z]' in str(
        tl.Dataset.load("silent-devices.csv", schema=loaded)
    )
    with pytest.raises(TidelogError, match="not a table"):
        infer_schema(["a.facts"])


def test_a_time_column_with_another_name_is_pointed_out(folder: Path, sh: Shell) -> None:
    Path("tidelog.toml").unlink()
    Path("rules.dmtl").write_text("Seen(X) :- Smoke(X, _).\n", encoding="utf-8")
    Path("Smoke.csv").write_text("room,timestamp\nhall,2026-01-31\n", encoding="utf-8")
    error = sh("materialise", "rules.dmtl", "Smoke.csv").err
    assert "warning[TL210]: the facts of Smoke.csv hold at all times" in error
    assert 'write time = "timestamp" into a schema' in error
