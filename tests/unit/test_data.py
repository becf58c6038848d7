"""Constants, datasets, tables and printing."""

from __future__ import annotations

import doctest
import gzip
import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidelog as tl
import tidelog.data.dataset
import tidelog.data.fact_printer
import tidelog.data.symbol_table
from tidelog.data.data_files import load_paths
from tidelog.data.dataset import Dataset
from tidelog.data.fact_printer import render_rows
from tidelog.data.relation import Relation
from tidelog.data.symbol_table import Symbols
from tidelog.errors import TidelogError
from tidelog.language.fact_text import LineFormat, format_fact, json_value
from tidelog.language.syntax import Fact, Value
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Interval

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(["a", "abc", "ID0", "1", "a b", 'a"b\\', "zero\0", "zero", "x" * 30, "x" * 31]),
    NAMES,
    st.fractions(-100, 100, max_denominator=12),
    st.integers(-(10**25), 10**25).map(Fraction),
)
ENDS = st.fractions(-50, 50, max_denominator=6)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    lo, hi = sorted([draw(ENDS), draw(ENDS)])
    if lo == hi:
        return Interval.point(lo)
    left, right = draw(st.booleans()), draw(st.booleans())
    shape = draw(st.integers(0, 9))
    if shape == 0:
        return Interval(-INF, hi, False, right)
    if shape == 1:
        return Interval(lo, INF, left, False)
    return Interval.always() if shape == 2 else Interval(lo, hi, left, right)


FACTS = st.builds(Fact, st.sampled_from(["P", "Q", "a1:R"]), st.lists(VALUES, max_size=2).map(tuple), intervals())


# Constants


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(VALUES))
def test_a_constant_has_one_id_and_keeps_its_value(values: list[Value]) -> None:
    symbols = Symbols()
    ids = [symbols.intern(value) for value in values]
    assert [symbols.value(id) for id in ids] == values
    assert len(symbols) == len(set(values)) == len(set(ids))
    assert [symbols.intern(value) for value in values] == ids


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(VALUES, unique=True))
def test_numbers_sort_by_value_and_before_names(values: list[Value]) -> None:
    symbols = Symbols()
    for value in values:
        symbols.intern(value)
    ordered = sorted(range(len(values)), key=lambda id: (isinstance(values[id], str), values[id]))
    assert symbols.ranks()[ordered].tolist() == list(range(len(values)))


def test_ranks_follow_when_constants_come() -> None:
    symbols = Symbols()
    symbols.intern("b")
    assert symbols.ranks().tolist() == [0]
    symbols.intern("a")
    assert symbols.ranks().tolist() == [1, 0]


def test_many_constants() -> None:
    symbols = Symbols()
    ids = [symbols.intern(f"constant-{i}") for i in range(5000)]
    assert ids == list(range(5000))
    assert symbols.intern("constant-4321") == 4321
    other = Symbols()
    other.intern("new")
    other.intern("constant-7")
    copy = symbols.copy()
    assert copy.merge(other).tolist() == [5000, 7]
    assert len(symbols) == 5000


# Datasets


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(FACTS))
def test_objects_and_text_give_the_same_facts(facts: list[Fact]) -> None:
    data = Dataset.from_facts(facts)
    assert Counter(data) == Counter(facts)
    assert len(data) == len(facts)
    assert Counter(Dataset.from_facts(format_fact(fact) for fact in facts)) == Counter(facts)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(FACTS), st.lists(FACTS), st.integers(1, 5))
def test_a_union_and_a_finer_step_keep_the_facts(left: list[Fact], right: list[Fact], factor: int) -> None:
    union = Dataset.from_facts(left) | Dataset.from_facts(right)
    assert Counter(union) == Counter(left + right)
    finer = union.with_denominator(union.denominator * factor)
    assert Counter(finer) == Counter(left + right)
    assert finer.denominator == union.denominator * factor


def test_the_grid_is_doubled_and_closed() -> None:
    relation = Dataset.parse("P@[0,3)\nP@(0,3]\nP@7\nP").relations["P", 0]
    assert relation.lo.tolist() == [0, 1, 14, NEG_INF]
    assert relation.hi.tolist() == [5, 6, 14, POS_INF]


def test_a_fact_takes_16_bytes_and_4_an_argument() -> None:
    data = Dataset.parse("\n".join(f"P(a,b)@{i}" for i in range(1000)))
    relation = data.relations["P", 2]
    assert relation.args.nbytes + relation.lo.nbytes + relation.hi.nbytes == 1000 * (16 + 2 * 4)


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(TidelogError, match="empty"):
        Dataset.from_facts([Fact("P", (), Interval(Fraction(3), Fraction(1)))])


def test_a_step_too_fine_for_the_facts_is_refused() -> None:
    data = Dataset.parse(f"P@{10**17}")
    with pytest.raises(TidelogError, match=r"P@100000000000000000.*does not fit into 63 bits"):
        data.with_denominator(1000)
    with pytest.raises(TidelogError, match="does not fit into 63 bits"):
        data | Dataset.parse("P@0.001")


def test_a_dataset_shows_what_it_holds() -> None:
    assert repr(Dataset.parse("P(a)@1\nP(b)@2\nQ")) == "<Dataset of 3 facts: P/1: 2, Q/0: 1>"


def test_facts_of_temporal_datalog_take_their_last_argument_as_time() -> None:
    data = Dataset.parse("Brst(a,b,3).\nBrst(a,b)@4\nSucc(l1,l2).\nBrst(a,c,0).").with_time_arguments(
        frozenset({("Brst", 2)})
    )
    assert {format_fact(fact) for fact in data} == {
        "Brst(a,b)@3",
        "Brst(a,c)@0",
        "Brst(a,b)@4",
        "Succ(l1,l2)@(-inf,inf)",
    }
    with pytest.raises(TidelogError, match="natural number"):
        Dataset.parse("Brst(a,b,c).").with_time_arguments(frozenset({("Brst", 2)}))


@pytest.mark.parametrize("module", [tidelog.data.dataset, tidelog.data.fact_printer, tidelog.data.symbol_table])
def test_the_examples_in_docstrings(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


# Printing


def printed(data: Dataset, *, iso: bool = False, format: LineFormat = "text") -> list[str]:
    rows = (
        render_rows(data.symbols, predicate, r, Grid(True, data.denominator), iso=iso, format=format)
        for (predicate, _), r in data.relations.items()
    )
    return b"".join(rows).decode().split("\n")[:-1]


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(FACTS), st.booleans())
def test_prints_what_the_slow_printer_prints_and_reads_it_back(facts: list[Fact], iso: bool) -> None:
    data = Dataset.from_facts(facts)
    lines = printed(data, iso=iso)
    assert Counter(lines) == Counter(format_fact(fact, iso) for fact in facts)
    assert Counter(Dataset.parse("\n".join(lines))) == Counter(facts)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(FACTS))
def test_json_lines_say_the_same(facts: list[Fact]) -> None:
    expected = [
        {
            "fact": format_fact(fact).rpartition("@")[0],
            "start": str(fact.interval.lo),
            "end": str(fact.interval.hi),
            "closed": {(1, 1): "both", (1, 0): "left", (0, 1): "right", (0, 0): "neither"}[
                fact.interval.lo_closed, fact.interval.hi_closed
            ],
            "predicate": fact.predicate,
            "args": [json_value(value) for value in fact.args],
        }
        for fact in facts
    ]
    found = [json.loads(line) for line in printed(Dataset.from_facts(facts), format="jsonl")]
    assert Counter(map(str, found)) == Counter(map(str, expected))


def test_rows_are_sorted_by_arguments_and_time() -> None:
    lines = ["P(2,b)@1", "P(10,a)@[0,1)", "P(10,a)@3", "P(10,b)@0", "P(ID0,a)@1", "P(a,a)@1", 'P("a b",a)@1']
    shuffled = random.Random(1).sample(lines, len(lines))
    assert printed(Dataset.parse("\n".join(shuffled))) == lines


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("2024-02-29T23:59:59.125+01:00", "2024-02-29T22:59:59.125Z"),
        ("-0.5", "1969-12-31T23:59:59.5Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("1/3", "1/3"),
        ("253402300800", "253402300800"),
    ],
)
def test_dates_are_printed_where_they_are_exact(time: str, shown: str) -> None:
    assert printed(Dataset.parse(f"P@{time}"), iso=True) == [f"P@{shown}"]


def test_the_integer_timeline_has_a_plain_grid() -> None:
    symbols = Symbols()
    lo, hi = np.array([NEG_INF, 3, 5]), np.array([1, 3, POS_INF])
    rows = Relation("P", 0, np.zeros((0, 3), np.int32), lo, hi)
    assert render_rows(symbols, "P", rows, Grid(dense=False)).decode().split() == ["P@(-inf,1]", "P@3", "P@[5,inf)"]


def test_a_dataset_and_a_model_print_as_text() -> None:
    data = Dataset.parse("Q(b)@[0,3)\nP(b)@7\nP(a)@2026-01-31\nP(a)@1/2")
    assert str(data).splitlines() == [
        "P(a)@1970-01-01T00:00:00.5Z",
        "P(a)@2026-01-31T00:00:00Z",
        "P(b)@1970-01-01T00:00:07Z",
        "Q(b)@[1970-01-01T00:00:00Z,1970-01-01T00:00:03Z)",
    ]
    assert str(Dataset()) == ""
    model = tl.materialise(tl.Program.parse("A(X) :- Diamondminus[3,3] A(X)."), Dataset.parse("A(a)@[17,18]"))
    assert str(model) == model.render("text").decode() == "% repeats every 3 from 17: A(a)@[17,18]\n"


def test_an_unknown_format_is_named() -> None:
    model = tl.materialise(tl.Program.parse("A(X) :- B(X)."), Dataset())
    with pytest.raises(ValueError, match="facts are printed as text or jsonl or csv, not as 'xml'"):
        model.render("xml")  # type: ignore[arg-type]


# Files and tables


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | bytes], str]:
    """Write a file into the current directory."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes) -> str:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def parquet(name: str, columns: dict[str, Any]) -> str:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(columns), name)
    return name


def loaded(*paths: str) -> list[str]:
    data = Dataset.load(*paths)
    return sorted(format_fact(fact, data.dates) for fact in data)


Write = Callable[[str, str | bytes], str]


def test_csv_is_read_exactly(file: Write) -> None:
    file("Signal.csv", 'name,value,time\na,1,0.1\nb,01.50,1/3\n"c,d",x y,1e2\n"",12345678901234567890,-7\n')
    assert loaded("Signal.csv") == [
        'Signal("",12345678901234567890)@-7',
        'Signal("c,d","x y")@100',
        "Signal(a,1)@1/10",
        "Signal(b,1.5)@1/3",
    ]
    assert loaded("Other=Signal.csv")[3] == "Other(b,1.5)@1/3"


def test_start_end_and_closed(file: Write) -> None:
    file("S.csv", "start,x,end,closed\n1,a,2,left\n-inf,b,3,\n0,c,inf,neither\n1,d,1,both\n0,e,1,Right\n")
    assert loaded("S.csv") == ["S(a)@[1,2)", "S(b)@(-inf,3]", "S(c)@(0,inf)", "S(d)@1", "S(e)@(0,1]"]


def test_without_a_time_column_facts_are_background(file: Write) -> None:
    assert loaded(file("Edge.csv", "from,to\na,b\n")) == ["Edge(a,b)@(-inf,inf)"]
    assert loaded(file("Edge.tsv", "from\tto\na\tb\n")) == ["Edge(a,b)@(-inf,inf)"]
    assert loaded(file("Empty.csv", "from,to,time\n")) == []


def test_dates_in_csv(file: Write) -> None:
    file("S.csv", "x,time\na,2026-01-31\nb,2026-01-31 10:00:00\nc,2026-01-31T10:00:00.5+01:00\n")
    assert loaded("S.csv") == ["S(a)@2026-01-31T00:00:00Z", "S(b)@2026-01-31T10:00:00Z", "S(c)@2026-01-31T09:00:00.5Z"]


def test_json_lines_keep_types_and_digits(file: Write) -> None:
    file("J.jsonl", '{"a":"x","n":1,"time":0.1}\n\n{"a":"1","n":2.5,"time":3}\n')
    assert loaded("J.jsonl") == ['J("1",2.5)@3', "J(x,1)@1/10"]
    file("J.jsonl", '{"b":1,"a":"2026-01-31","time":1234567890.123456}\n{"b":1e-3,"a":"2026-02-01","time":3}\n')
    assert loaded("J.jsonl") == [
        'J(0.001,"2026-02-01")@3',
        'J(1,"2026-01-31")@19290123283179/15625',
    ]
    file("J.jsonl", '{"a":1,"time":1}\n{"a":"b","time":2}\n{"a":true,"time":"1/2"}')
    assert loaded("J.jsonl") == ["J(1)@1", "J(b)@2", "J(true)@1/2"]
    file("J.ndjson", '{"d":"2026-01-31","time":"2026-01-31T10:00:00Z"}\n')
    assert loaded("J.ndjson") == ['J("2026-01-31")@2026-01-31T10:00:00Z']


def test_parquet_types(file: Write) -> None:
    import pyarrow as pa

    moment = datetime(2026, 1, 31, 10, 0, 0, 500000)
    path = parquet(
        "T.parquet",
        {
            "k": pa.array(["a", "1"]).dictionary_encode(),
            "i": pa.array([1, 2], pa.int8()),
            "f": pa.array([0.1, 1e30]),
            "b": [True, False],
            "t": pa.array([moment, moment], pa.timestamp("ns")),
            "d": [date(2026, 1, 31)] * 2,
            "time": pa.array([moment.replace(tzinfo=UTC)] * 2, pa.timestamp("us", tz="Europe/Berlin")),
        },
    )
    when = '"2026-01-31T10:00:00.5Z","2026-01-31")@2026-01-31T10:00:00.5Z'
    assert loaded(path) == [f'T("1",2,{10**30},false,{when}', f"T(a,1,0.1,true,{when}"]
    assert Dataset.load(path).denominator == 2
    for times, expected in [
        (pa.array([date(1970, 1, 2)]), "T(a)@1970-01-02T00:00:00Z"),
        (pa.array([0.1], pa.float32()), "T(a)@1/10"),
        (pa.array([7], pa.uint64()), "T(a)@7"),
        (pa.array([moment]), "T(a)@2026-01-31T10:00:00.5Z"),
        (pa.array(["1/3"], pa.large_string()), "T(a)@1/3"),
    ]:
        assert loaded(parquet("T.parquet", {"x": ["a"], "time": times})) == [expected]


def test_several_files_share_constants_and_step(file: Write) -> None:
    file("facts.txt", "\ufeffSignal(a)@1/2\r\nConnect(a,b).\r\n")
    file("Signal.csv", "x,time\na,1/3\n")
    file("more.txt.gz", gzip.compress(b"Signal(b)@1\n", mtime=0))
    data = Dataset.load("facts.txt", "Signal.csv", "more.txt.gz")
    assert data.denominator == 6
    assert len(data.symbols) == 2
    assert len(data.relations["Signal", 1]) == 3
    assert len(load_paths([])) == 0


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"P(a)@1\nP(")))
    with pytest.raises(TidelogError, match="<stdin>:2:"):
        Dataset.load("-")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("S.csv", "x,start\na,1\n", "S.csv has a column `start`, but no `end`; its columns are x, start"),
        ("S.csv", "x,closed\na,left\n", "no `start` and no `end`"),
        ("S.csv", "x,time,start\na,1,1\n", "both `time` and `start`"),
        ("S.csv", "x,time\na,1\n,2\n", "S.csv:3:1: .*column `x`: there is no value"),
        ("S.csv", "x,time\na,1\nb\n", "S.csv:3:1: .*this row has 1 value, but the table has 2 columns"),
        ("S.csv", "x,time\na,yesterday\n", "S.csv:2:1: .*column `time`: `yesterday` is not a time"),
        ("S.csv", "x,time\na,inf\n", "infinity is not a time point"),
        ("S.csv", "x,time\na,99999999999999999999\n", "does not fit into 63 bits"),
        ("S.csv", "x,start,end\na,2,1\n", "S.csv:2:1: .*column `start`: the interval is empty"),
        ("S.csv", "x,start,end,closed\na,1,2,open\n", "`open` is not one of both, left, right, neither"),
        ("S.csv", "a,3\nb,4\n", "must name the columns"),
        ("S.csv", "", "cannot read S.csv"),
        ("2x.csv", "x\na\n", "`2x` cannot be the predicate"),
        ("S.csv", b"x\n\xff\n", "S.csv:2:1: .*not UTF-8"),
        ("J.jsonl", '{"a":1,"time":1}\n{"a":"b","time":2\n', "J.jsonl:2:18"),
        ("J.jsonl", '{"a":1,"time":1}\n{"time":2}\n', "J.jsonl:2:1: .*there is no value for `a`"),
        ("J.jsonl", "[1,2]\n", "J.jsonl:1:1: .*not an object"),
        ("J.jsonl", '{"a":{"b":1},"time":1}\n', "one of its values is a list or an object"),
        ("J.jsonl", '{"a":1e999999999,"time":1}\n', "not a number|cannot read"),
        ("T.parquet", b"PAR1 and then the machine stopped", "cannot read T.parquet"),
        ("T.parquet", b"", "cannot read T.parquet"),
        ("facts.txt", b"P(a)@1\nP(\xff)@2\n", "facts.txt:2:3: .*not UTF-8"),
        ("facts.txt.gz", gzip.compress(b"P(a)@1\n" * 100, mtime=0)[:30], "cannot unpack"),
        ("facts.txt.gz", b"no archive", "is not compressed with gzip"),
    ],
)
def test_bad_files_end_in_a_message(file: Write, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(TidelogError, match=message):
        Dataset.load(file(name, content))


def test_bad_columns_of_parquet_end_in_a_message(file: Write) -> None:
    with pytest.raises(TidelogError, match="type list"):
        Dataset.load(parquet("T.parquet", {"x": [[1]], "time": [1]}))
    with pytest.raises(TidelogError, match="row 2, column `x`"):
        Dataset.load(parquet("T.parquet", {"x": ["a", None], "time": [1, 2]}))
    with pytest.raises(TidelogError, match="row 1, column `x`: this is not a number"):
        Dataset.load(parquet("T.parquet", {"x": [float("nan")], "time": [1]}))
    with pytest.raises(TidelogError, match="cannot be a time"):
        Dataset.load(parquet("T.parquet", {"x": ["a"], "time": [True]}))


def test_bad_paths_end_in_a_message(file: Write) -> None:
    with pytest.raises(TidelogError, match="No such file"):
        Dataset.load("nowhere.txt")
    with pytest.raises(TidelogError, match="No such file"):
        Dataset.load("P=nowhere.csv")
    with pytest.raises(TidelogError, match="directory"):
        Dataset.load(".")
    with pytest.raises(TidelogError, match="not a table"):
        Dataset.load("P=" + file("facts.txt", "P(a)@1"))
