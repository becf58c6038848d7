"""Dataframes of pandas, Polars, DuckDB, Ibis and pyarrow as facts, and answers as dataframes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import tidelog as tl
from kernel_ways import change_after, run_kernels
from tidelog.data import arrow_kernels
from tidelog.data.bad_rows import BadRows
from tidelog.data.input_warnings import find_warnings
from tidelog.data.schema import parse_schema

pytestmark = pytest.mark.usefixtures("kernels")

TEN = datetime(2026, 1, 31, 10)
ROWS: dict[str, list[Any]] = {
    "sensor": ["t1", "a sensor with a long name", "t1"],
    "value": [85, 70, 99],
    "time": [TEN, TEN + timedelta(seconds=1), TEN + timedelta(milliseconds=2500)],
}
FACTS = """\
Reading("a sensor with a long name",70)@2026-01-31T10:00:01Z
Reading(t1,85)@2026-01-31T10:00:00Z
Reading(t1,99)@2026-01-31T10:00:02.5Z
"""
HOT = tl.Program.parse("Hot(X) :- Reading(X, V), V > 80.")


def read(columns: Any, **options: Any) -> str:
    table = columns if hasattr(columns, "__arrow_c_stream__") else pa.table(columns)
    return str(tl.Dataset.from_arrow({"P": table}, **options))


def raised(call: Callable[[], object]) -> tl.Diagnostic:
    with pytest.raises(tl.TidelogError) as caught:
        call()
    return caught.value.diagnostics[0]


# Every library, and everywhere


def make_duckdb() -> Any:
    connection = duckdb.connect()
    connection.register("rows", pa.table(ROWS))
    return connection.sql("SELECT * FROM rows")


FRAMES: dict[str, Callable[[], Any]] = {
    "pyarrow table": lambda: pa.table(ROWS),
    "pyarrow batch": lambda: pa.RecordBatch.from_pydict(ROWS),
    "pyarrow reader": lambda: pa.table(ROWS).to_reader(),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with categories": lambda: pd.DataFrame(ROWS).astype({"sensor": "category"}),
    "pandas of Arrow": lambda: pd.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index of times": lambda: pd.DataFrame(ROWS).set_index("time"),
    "pandas with an index without a name": lambda: pd.DataFrame(ROWS).set_index("time").rename_axis(None),
    "Polars": lambda: pl.DataFrame(ROWS),
    "Polars with categories": lambda: pl.DataFrame(ROWS).with_columns(pl.col("sensor").cast(pl.Categorical)),
    "DuckDB": make_duckdb,
    "Ibis": lambda: ibis.memtable(pa.table(ROWS)),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_the_frames_of_every_library_give_the_same_facts(make: Callable[[], Any]) -> None:
    assert str(tl.Dataset.from_arrow({"Reading": make()})) == FACTS


def test_frames_are_accepted_wherever_data_is() -> None:
    frames = {"Reading": pl.DataFrame(ROWS)}
    ready = tl.Dataset.from_arrow(frames)
    fact = "Hot(t1)@2026-01-31T10:00:00Z"
    assert str(tl.materialise(HOT, frames)) == str(tl.materialise(HOT, ready)) != ""
    assert tl.entails(HOT, frames, fact) is tl.types.Answer.YES
    assert str(tl.explain(HOT, frames, fact)) == str(tl.explain(HOT, ready, fact))
    fed = [answer for step in tl.Reasoner(HOT, "Hot").feed(frames) for answer in step]
    assert fed == [answer for step in tl.Reasoner(HOT, "Hot").feed(ready) for answer in step] != []
    known = tl.Program.parse("Hot(X) :- Reading(X, V), Limit(X, L), V > L.")
    reasoner = tl.Reasoner(known, "Hot", background={"Limit": pl.DataFrame({"sensor": ["t1"], "limit": [90]})})
    reasoner.push("2026-01-31T11:00:00Z", frames)
    assert [str(answer.args[0]) for answer in reasoner.finish()] == []
    assert reasoner.late_count == 3
    integers = {"D": pa.table({"time": [0]})}
    choice = tl.Program.parse("P :- D, not Q. Q :- D, not P.")
    assert len(list(tl.stable_models(choice, integers, models=0))) == 2
    assert tl.stable.stable_entails(choice, integers, "P@0", mode="brave") is tl.types.Answer.YES
    session = tl.stable.StableReasoner(choice)
    assert session.push(0, {"D": pa.table({"nothing": pa.array([], pa.int64())}).select([])}) == []
    late = tl.Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    waiting = tl.hypothetical.Hypotheses(late, "Alarm(X, T)", delay={"Hot": 1})
    waiting.push(0, {"Hot": pa.table({"x": ["a"], "time": [0]})})
    assert waiting.hypothetical()[0].hypotheses == ("Hot(a,1)",)


def test_a_pushed_frame_without_times_holds_at_the_clock() -> None:
    reasoner = tl.Reasoner(HOT, "Hot")
    reasoner.push(TEN, {"Reading": pl.DataFrame({"sensor": ["t1"], "value": [85.5]})})
    (answer,) = reasoner.push(TEN + timedelta(seconds=1))
    assert str(answer.interval) == str(int(TEN.replace(tzinfo=UTC).timestamp()))


def test_a_frame_that_cannot_be_read_is_an_error() -> None:
    frames: dict[str, Any] = {"list": [1, 2], "frame": pl.DataFrame(ROWS), "lazy": pl.LazyFrame(ROWS)}
    assert raised(lambda: tl.materialise(HOT, {"Reading": frames["list"]})).code == "TL207"
    assert raised(lambda: tl.materialise(HOT, frames["frame"])).help is not None
    lazy = raised(lambda: tl.materialise(HOT, {"Reading": frames["lazy"]}))
    assert lazy.message == "the table Reading is an object of type LazyFrame, which is no table"
    assert lazy.help == "call its method `collect` first"
    assert raised(lambda: tl.Dataset.from_arrow({"a b": pa.table(ROWS)})).code == "TL207"
    mixed = raised(lambda: tl.Dataset.from_arrow({"P": pd.DataFrame({"x": [1, "a"]})}))
    assert mixed.message.startswith("cannot read the table P: ")


# Types


@pytest.mark.parametrize(
    ("array", "printed"),
    [
        (pa.array(["a b", "ä", ""], pa.string()), ['""', '"a b"', '"ä"']),
        (pa.array(["a b", "ä", "x"], pa.large_string()), ['"a b"', "x", '"ä"']),
        (
            pa.array(["0123456789ab", "0123456789abc", "7"], pa.string_view()),
            ['"0123456789ab"', '"0123456789abc"', '"7"'],
        ),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.DictionaryArray.from_arrays(pa.array([1, 1, 0], pa.int8()), pa.array([0.5, 2.0])), ["0.5", "2"]),
        (pa.DictionaryArray.from_arrays(pa.array([2, 2, 0]), pa.array(["a", "unused", "c"])), ["a", "c"]),
        (pa.array([3, -1, 3], pa.int8()), ["-1", "3"]),
        (pa.array([2**63 - 1, -(2**63), 0], pa.int64()), [str(-(2**63)), "0", str(2**63 - 1)]),
        (pa.array([2**64 - 1, 1, 0], pa.uint64()), ["0", "1", str(2**64 - 1)]),
        (pa.array([10**12, 5, 10**15], pa.int64()), ["5", str(10**12), str(10**15)]),
        (pa.array([0.1, -0.0, 1e-7], pa.float64()), ["0", "0.0000001", "0.1"]),
        (pa.array([0.1, 80.0, 1e20], pa.float32()), ["0.1", "80", str(10**20)]),
        (pa.array([Decimal("1.50"), Decimal("0.10"), Decimal("-2")]), ["-2", "0.1", "1.5"]),
        (pa.array([True, False, True]), ["false", "true"]),
        (pa.array([date(2026, 1, 31)] * 3), ['"2026-01-31"']),
        (pa.array([TEN] * 3), ['"2026-01-31T10:00:00Z"']),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_arguments_of_every_type_are_exact(array: Any, printed: list[str]) -> None:
    facts = [f"P({value})@0" for value in printed]
    chunked, offset = pa.chunked_array([array[:1], array[1:1], array[1:]]), pa.concat_arrays([array[:1], array])[1:]
    for column in (array, chunked, offset):
        assert list(dict.fromkeys(read({"x": column, "time": [0, 0, 0]}).splitlines())) == facts


@pytest.mark.parametrize(
    ("array", "printed"),
    [
        (pa.array([1, 2], pa.int16()), "1 2"),
        (pa.array([1, 2], pa.uint32()), "1 2"),
        (pa.array([1, 2], pa.uint64()), "1 2"),
        (pa.array([0.5, 2.25]), "1/2 9/4"),
        (pa.array([Decimal("0.5"), Decimal("2.25")]), "1/2 9/4"),
        (pa.array(["1/3", "2"]), "1/3 2"),
        (pa.array(["1/3", "2"]).dictionary_encode(), "1/3 2"),
        (pa.array(["1/3", "2"], pa.string_view()), "1/3 2"),
        (pa.array([0, 1], pa.timestamp("s")), "1970-01-01T00:00:00Z 1970-01-01T00:00:01Z"),
        (pa.array([1, 1001], pa.timestamp("ms", "Europe/Berlin")), "1970-01-01T00:00:00.001Z 1970-01-01T00:00:01.001Z"),
        (pa.array([1500000, -1], pa.timestamp("us")), "1970-01-01T00:00:01.5Z 1969-12-31T23:59:59.999999Z"),
        (pa.array([3, 10**9], pa.timestamp("ns")), "1970-01-01T00:00:00.000000003Z 1970-01-01T00:00:01Z"),
        (pa.array([0, 1], pa.date32()), "1970-01-01T00:00:00Z 1970-01-02T00:00:00Z"),
        (pa.array([0, 86400000], pa.date64()), "1970-01-01T00:00:00Z 1970-01-02T00:00:00Z"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_times_of_every_type_are_exact(array: Any, printed: str) -> None:
    facts = "".join(f"P(a)@{time}\n" for time in sorted(printed.split(), key=lambda text: ("Z" in text, text)))
    for column in (array, pa.chunked_array([array[:1], array[1:]]), pa.concat_arrays([array[:1], array])[1:]):
        assert read({"x": ["a", "a"], "time": column}) == facts


def test_intervals_have_a_start_an_end_and_closed_ends() -> None:
    columns = {"x": ["a", "b"], "start": [0, 1], "end": [2, 3]}
    assert read(columns) == "P(a)@[0,2]\nP(b)@[1,3]\n"
    words = pa.array(["left", "neither"]).dictionary_encode()
    assert read({**columns, "closed": words}) == "P(a)@[0,2)\nP(b)@(1,3)\n"
    assert read({**columns, "closed": pl.Series(["right", None])}) == "P(a)@(0,2]\nP(b)@[1,3]\n"
    dated = {"start": pa.array([1], pa.timestamp("s")), "end": pa.array([1500], pa.timestamp("ms"))}
    assert read(dated) == "P@[1970-01-01T00:00:01Z,1970-01-01T00:00:01.5Z]\n"
    assert (
        raised(lambda: read({"start": [2], "end": [1]})).message
        == "the table P, row 1, column `start`: the interval is empty"
    )


def test_a_predicate_without_arguments_has_a_time_alone() -> None:
    assert read({"time": [3, 5]}) == "P@3\nP@5\n"


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"x": [], "time": []}), pl.DataFrame({"x": [], "time": []}), pa.table({})]
)
def test_an_empty_frame_has_no_facts(frame: Any) -> None:
    assert read(frame) == ""
    assert str(tl.materialise(tl.Program.parse("Q(X) :- P(X)."), {"P": frame})) == ""


def test_a_time_that_does_not_fit_names_its_cell() -> None:
    found = raised(lambda: read({"time": [0, 2**61]}))
    assert (found.code, "row 2, column `time`" in found.message) == ("TL204", True)
    far = pa.array([0, 2**62 + 3], pa.timestamp("ns"))
    assert raised(lambda: read({"time": far})).code == "TL204"


def test_an_unsupported_type_is_an_error() -> None:
    assert raised(lambda: read({"x": [[1], [2]]})).code == "TL207"
    assert raised(lambda: read({"x": [timedelta(1)]})).code == "TL207"
    assert raised(lambda: read({"time": [True]})).code == "TL207"


def test_missing_values_are_errors_or_bad_rows_as_in_files(tmp_path: Path) -> None:
    table = pa.table({"x": ["a", None, "c"], "n": [0.5, 1.0, float("nan")], "time": pa.array([1, 2, 3])})
    found = raised(lambda: read(table))
    assert (found.code, found.message) == ("TL206", "the table P, row 2, column `x`: there is no value")
    aside, of_file = io.StringIO(), io.StringIO()
    data = tl.Dataset.from_arrow({"P": table}, bad_rows=BadRows(aside))
    assert str(data) == "P(a,0.5)@1\n"
    parquet.write_table(table, tmp_path / "P.parquet")
    assert str(tl.Dataset.load(tmp_path / "P.parquet", bad_rows=BadRows(of_file))) == str(data)
    assert aside.getvalue() == of_file.getvalue().replace(str(tmp_path / "P.parquet"), "the table P")
    torn = pl.DataFrame({"x": ["a", None, "c"], "y": ["d", "e", None], "time": [1, 2, 3]})
    for frame in (torn, torn.with_columns(pl.col("x", "y").cast(pl.Categorical)), torn.to_pandas()):
        bad = BadRows(io.StringIO())
        assert str(tl.Dataset.from_arrow({"P": frame}, bad_rows=bad)) == "P(a,d)@1\n"
        assert bad.counts == {"the table P": 2}
    entry = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    assert "row 2, column `x`" in raised(lambda: read({"x": entry})).message


# Schemas, checks and warnings

SCHEMA = """
[schema.Reading]
columns = { id = "text", value = "number", at = "time" }
time = "at"
unit = "ms"
[schema.Hot]
columns = { sensor = "text", time = "time" }
"""


def test_a_schema_says_what_columns_mean(tmp_path: Path) -> None:
    frame = pl.DataFrame({"note": ["x"], "at": [1769853600000], "value": ["85.5"], "id": [1001]})
    path = tmp_path / "tidelog.toml"
    path.write_text(SCHEMA)
    for schema in (path, str(path), parse_schema(SCHEMA)):
        model = tl.materialise(HOT, {"Reading": frame}, schema=schema)
        assert str(model) == 'Hot("1001")@2026-01-31T10:00:00Z\n'
        assert model.to_polars().columns == ["predicate", "sensor", "start", "end", "closed"]
        assert tl.entails(HOT, {"Reading": frame}, 'Hot("1001")@1769853600', schema=schema) is tl.types.Answer.YES
    bad = raised(lambda: tl.materialise(HOT, {"Reading": frame.with_columns(value=pl.lit("hot"))}, schema=path))
    assert bad.message == "the table Reading, row 1, column `value`: `hot` is not a number"
    missing = raised(lambda: tl.materialise(HOT, {"Reading": frame.drop("at")}, schema=path))
    assert missing.message.startswith("the table Reading has no column `at`")


def test_local_times_have_the_zone_of_the_schema() -> None:
    schema = parse_schema('[schema.P]\ncolumns = { time = "time" }\nzone = "Europe/Berlin"\n')
    assert read({"time": [TEN]}, schema=schema) == "P@2026-01-31T09:00:00Z\n"
    aware = pa.array([TEN], pa.timestamp("us", "America/New_York"))
    assert read({"time": aware}, schema=schema) == "P@2026-01-31T10:00:00Z\n"
    night = raised(lambda: read({"time": [datetime(2026, 10, 25, 2, 30)]}, schema=schema))
    assert "occurs twice in Europe/Berlin" in night.message


def test_frames_get_the_warnings_of_files(tmp_path: Path) -> None:
    tables = {
        "Order": pa.table({"id": [1001], "time": [1]}),
        "Paid": pa.table({"id": ["1001", "1002 "], "time": [2, 2]}),
        "Seen": pa.table({"id": ["a"], "timestamp": [TEN]}),
    }
    for name, table in tables.items():
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    program = tl.Program.parse("Done(X) :- Order(X), Diamondplus[0,2h] Paid(X). New(X) :- Seen(X, T).")
    of_files = find_warnings(program, tl.Dataset.load(*(tmp_path / f"{name}.parquet" for name in tables)))
    of_frames = find_warnings(program, tl.Dataset.from_arrow(tables))
    assert {warning.code for warning in of_frames} >= {"TL208", "TL210", "TL212"}
    texts = [warning.message.replace(f"{tmp_path}/", "the table ").replace(".parquet", "") for warning in of_files]
    assert [warning.message for warning in of_frames] == texts
    mixed = {"A": pa.table({"time": [3]}), "B": pa.table({"time": [TEN]})}
    assert raised(lambda: tl.Dataset.from_arrow(mixed)).code == "TL209"


# Nothing is copied


def addresses_read(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Record the addresses of all arrays that the kernels read from now on."""
    found: set[int] = set()

    def watch(name: str) -> None:
        kernel = getattr(arrow_kernels, name)

        def call(*args: Any) -> Any:
            found.update(arg.ctypes.data for arg in args if isinstance(arg, np.ndarray) and arg.size)
            return kernel(*args)

        monkeypatch.setattr(arrow_kernels, name, call)

    for name in ("intern_short_views", "intern_long_views", "intern_spans", "intern_near_integers", "double_quotients"):
        watch(name)
    return found


def test_a_million_rows_of_polars_are_read_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1_000_000
    number = np.arange(count)
    frame = pl.DataFrame(
        {
            "short": pl.Series(number % 100).cast(pl.String),
            "long": pl.Series(["a text that is longer than a view holds", "another text, also longer"] * (count // 2)),
            "value": number % 7,
            "time": pl.Series(number).cast(pl.Datetime("us")),
        }
    )
    # What Polars hands out is shared with the frame: it has the same address each time. (Categories are not: Polars
    # writes their keys anew.)
    exported = pa.RecordBatchReader.from_stream(frame).read_all()
    expected = {
        buffer.address for name in frame.columns for buffer in exported[name].chunk(0).buffers() if buffer is not None
    }
    assert frame["value"].to_numpy(allow_copy=False).ctypes.data in expected
    read_at = addresses_read(monkeypatch)
    data = tl.Dataset.from_arrow({"P": frame})
    assert expected <= read_at
    assert len(data) == count
    last = next(iter(tl.Dataset.from_arrow({"P": frame.tail(1)})))
    assert last.args == ("99", "another text, also longer", Fraction(count - 1) % 7)
    assert last.interval.lo == Fraction(count - 1, 10**6)


def test_texts_of_pyarrow_are_read_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array(["a", "bc"] * 50, pa.large_string())
    read_at = addresses_read(monkeypatch)
    read({"x": texts})
    assert {buffer.address for buffer in texts.buffers() if buffer is not None} <= read_at


def test_views_into_many_buffers_are_all_read() -> None:
    parts = [pa.array([f"a text in buffer {n}", f"{n}"] * 3, pa.string_view()) for n in range(5)]
    together = pa.concat_arrays(parts)
    assert len(together.buffers()) > 3
    values = sorted({str(fact.args[0]) for fact in tl.Dataset.from_arrow({"P": pa.table({"x": together})})})
    assert values == sorted(set(together.to_pylist()))


@pytest.mark.parametrize("far", [5_000, -5_000, 2**63 - 1, -(2**63), 2**62 + 100])
def test_integers_that_few_others_are_near_are_exact(far: int) -> None:
    values = [2**62 - 50 if far == -(2**63) else 7] * 500
    values[333] = far
    frames = {"P": pa.table({"value": pa.array(values, pa.int64()), "time": range(500)})}
    found = tl.Dataset.from_arrow(frames)
    assert [fact.args[0] for fact in found] == values


@pytest.mark.parametrize("times", [[0, 0, 4, 4, -4, 0], [-6, -6, 0, 3, 3, 3], [5, 5, 5]])
def test_times_may_repeat(times: list[int]) -> None:
    stamps = pa.array([time * 500 for time in times], pa.timestamp("ms"))
    found = tl.Dataset.from_arrow({"P": pa.table({"time": stamps})})
    assert [fact.interval.lo for fact in found] == [Fraction(time, 2) for time in times]


@st.composite
def columns_of_constants(draw: st.DrawFn) -> tuple[list[Any], Any]:
    kind = draw(st.sampled_from(["text", "integer", "wide", "float"]))
    values: st.SearchStrategy[Any] = {
        "text": st.text(max_size=20).filter(lambda text: "\0" not in text),
        "integer": st.integers(-50, 5000),
        "wide": st.integers(-(2**63), 2**63 - 1),
        "float": st.floats(allow_nan=False, allow_infinity=False),
    }[kind]
    found = draw(st.lists(values, min_size=1, max_size=60))
    types = {"text": [pa.string(), pa.large_string(), pa.string_view()], "float": [pa.float64()]}
    array = pa.array(found, draw(st.sampled_from(types.get(kind, [pa.int64()]))))
    if draw(st.booleans()) and kind != "text":
        array = array.dictionary_encode()
    cut = draw(st.integers(0, len(found)))
    return found, pa.chunked_array([array[:cut], array[cut:]])


@settings(max_examples=60, deadline=None)
@given(columns_of_constants())
def test_columns_hold_the_values_that_they_were_made_of(example: tuple[list[Any], Any]) -> None:
    values, column = example
    expected = [value if isinstance(value, str) else Fraction(str(value)) for value in values]
    for way in (run_kernels("interpreted"), run_kernels("compiled"), change_after(len(values) // 2)):
        with way:
            data = tl.Dataset.from_arrow({"P": pa.table({"x": column})})
        assert [fact.args[0] for fact in data] == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(10**17), 10**17), min_size=1, max_size=50), st.sampled_from(["s", "ms", "us", "ns"]))
def test_timestamps_are_exact_in_every_unit(counts: list[int], unit: str) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    with run_kernels("interpreted"):
        interpreted = tl.Dataset.from_arrow({"P": pa.table({"time": pa.array(counts, pa.timestamp(unit))})})
    data = tl.Dataset.from_arrow({"P": pa.table({"time": pa.array(counts, pa.timestamp(unit))})})
    assert [fact.interval.lo for fact in data] == [Fraction(count, ticks) for count in counts]
    assert list(interpreted) == list(data)
    assert data.denominator == int(np.lcm.reduce([Fraction(count, ticks).denominator for count in counts]))


# Answers as tables


def hot_model() -> tl.Model:
    program = tl.Program.parse("Hot(X) :- Diamondminus[0,5s] Reading(X, V), V > 80. Top(V) :- Reading(X, V).")
    return tl.materialise(program, {"Reading": pl.DataFrame(ROWS)}, query=["Hot", "Reading", "Top"])


def test_a_model_is_a_table_with_timestamps_and_names() -> None:
    model = hot_model()
    hot = model.to_arrow("Hot")
    assert hot.schema.field("start").type == pa.timestamp("us", "UTC")
    start = TEN.replace(tzinfo=UTC)
    end = start + timedelta(seconds=7.5)
    assert hot.to_pylist() == [{"arg1": "t1", "start": start, "end": end, "closed": "both"}]
    assert model.to_arrow("Reading").column_names == ["sensor", "value", "start", "end", "closed"]
    assert model.to_arrow("Hot", names=["sensor"]).column_names[0] == "sensor"
    whole = model.to_arrow()
    assert whole.column_names == ["predicate", "arg1", "arg2", "start", "end", "closed"]
    assert whole["predicate"].to_pylist() == [fact.predicate for fact in model]
    assert raised(lambda: model.to_arrow("Hit")).help == "the predicates are Hot, Reading, Top"


def test_a_table_of_a_model_is_what_its_parquet_file_holds() -> None:
    rules = "Q(X, N) :- Diamondminus(0,1/2] P(X, N). R(X) :- P(X, N). S :- P(X, 1)."
    facts = "P(a,1)@0\nP(b,1/3)@[1,2)\nP(7,0.5)@(-inf,3]\nP(c,x)"
    dated = "P(a,1)@2026-01-31T10:00:00Z\nP(b,1/3)@2026-02-01\nP(7,0.5)@(-inf,2026-02-02]\nP(c,x)"
    for text in (facts, dated):
        model = tl.materialise(tl.Program.parse(rules), tl.Dataset.parse(text))
        written = parquet.read_table(pa.BufferReader(model.to_parquet()))
        assert model.to_arrow().to_pylist() == written.to_pylist()
        assert model.to_arrow().schema.types == written.schema.types
        for predicate in model.predicates:
            assert model.to_arrow(predicate).num_rows == sum(fact.predicate == predicate for fact in model)


def test_facts_that_repeat_are_rows_of_the_table() -> None:
    model = tl.materialise(tl.Program.parse("A(X) :- Diamondminus[3,3] A(X)."), tl.Dataset.parse("A(a)@[17,18]"))
    (row,) = model.to_arrow("A").to_pylist()
    assert (row["start"], row["every"], row["from"], row["before"]) == (17, 3, 17, None)


def test_nanoseconds_stay_exact() -> None:
    times = pa.array([1000000000000000001], pa.timestamp("ns"))
    model = tl.materialise(tl.Program.parse("Q :- P."), {"P": pa.table({"time": times})})
    assert model.to_arrow("Q")["start"].cast(pa.int64()).to_pylist() == [1000000000000000001]


def test_a_table_of_a_model_is_data_again() -> None:
    model = hot_model()
    again = tl.Dataset.from_arrow({"Hot": model.to_arrow("Hot"), "Reading": model.to_arrow("Reading")})
    assert sorted(str(again).splitlines()) == [line for line in str(model).splitlines() if not line.startswith("Top")]


def test_libraries_read_a_model() -> None:
    model = hot_model()
    expected = model.to_arrow().to_pylist()
    assert pa.table(model).to_pylist() == expected
    assert pl.DataFrame(model).to_dicts() == model.to_polars().to_dicts() == expected
    frame = model.to_pandas()
    assert frame["start"].dtype == "datetime64[us, UTC]"
    assert len(frame) == len(model)


def test_duckdb_queries_a_model_by_its_variable() -> None:
    model = hot_model()
    assert len(model)
    longest = duckdb.sql("SELECT arg1, epoch(max(\"end\")) FROM model WHERE predicate = 'Hot' GROUP BY arg1")
    assert longest is not None
    assert longest.fetchall() == [("t1", TEN.replace(tzinfo=UTC).timestamp() + 7.5)]
    pairs = duckdb.sql("SELECT count(*) FROM model JOIN model AS other USING (predicate, arg1)")
    assert pairs is not None
    assert pairs.fetchall()[0][0] >= len(model)


def steps_of(reasoner: tl.Reasoner) -> Iterator[tl.streaming.StreamStep]:
    yield from reasoner.feed({"Reading": pl.DataFrame(ROWS)})
    yield reasoner.finish_step()


def test_the_answers_of_steps_are_tables() -> None:
    tables = [step.to_arrow(names=["sensor"]) for step in steps_of(tl.Reasoner(HOT, "Hot"))]
    together = pa.concat_tables(tables)
    assert together.column_names == ["predicate", "sensor", "start", "end", "closed"]
    assert together["start"].to_pylist() == [ROWS["time"][row].replace(tzinfo=UTC) for row in (0, 2)]
    pushed = tl.Reasoner(HOT, "Hot")
    pushed.push(TEN, ["Reading(t1,85)"])
    answers = pushed.push(TEN + timedelta(seconds=1))
    assert answers.to_arrow().to_pylist() == pushed.last_step.to_arrow().to_pylist()
    assert answers.to_pandas()["start"].dtype == "datetime64[us, UTC]"
    assert answers.to_polars()["arg1"].to_list() == ["t1"]
    assert pa.RecordBatchReader.from_stream(answers).read_all().num_rows == 1


def test_late_facts_are_a_table() -> None:
    reasoner = tl.Reasoner(HOT, "Hot")
    reasoner.push(5, ["Reading(a,1)"])
    reasoner.push(9, ["Reading(a,1)@3", "Other(b)@2"])
    late = reasoner.last_step.late.to_arrow()
    assert late.column_names == ["predicate", "arg1", "arg2", "start", "end", "closed"]
    assert [row["start"] for row in late.to_pylist()] == [fact.interval.lo for fact in reasoner.last_step.late]


def test_alerts_are_tables() -> None:
    program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] Reading(X, C), C > 80.")
    watch = tl.streaming.Watch(tl.Reasoner(program, "Hot"), changes=True)
    watch.push(TEN, ["Reading(t1,85)"])
    started = watch.push(TEN + timedelta(seconds=3)).to_arrow(names=["sensor"])
    row = {"event": "start", "predicate": "Hot", "sensor": "t1", "time": TEN.replace(tzinfo=UTC), "closed": True}
    assert started.to_pylist() == [row]
    assert watch.push(TEN + timedelta(seconds=9)).to_polars()["event"].to_list() == ["end"]
    quiet = tl.streaming.Watch(tl.Reasoner(program, "Hot"), dedupe=3)
    quiet.push(0, ["Reading(t1,85)"])
    assert quiet.push(20).to_pandas()["end"].tolist() == [5]
    assert watch.finish().to_arrow().num_rows == 0
