"""Dirty data: rows that cannot be read are named with their lines, or set aside with --bad-rows and counted."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from shell import CommandResult, Shell
from tidelog.data.table_cells import read_parquet_batches

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "A(X) :- B(X).\n"
#: Data with bad rows by file name, and the lines of the bad rows. All of them also give B(a)@1 and B(b)@5.
DIRTY: dict[str, tuple[bytes, list[int]]] = {
    "B.csv": (b'x,time\na,1\n,2\n"two\nlines",noon\n\nb,5,7\nb\nc,1e\nb,5\n\xff,6\n"open,9\n', [3, 4, 7, 8, 9, 11, 12]),
    "B.tsv": (b"x\ttime\na\t1\nb\t5\nc\tsoon\n", [4]),
    "B.jsonl": (
        b'{"x": "a", "time": 1}\nnot json\n\n{"x": "c"}\n[1]\n{"x": "b", "time": 5}\n'
        b'{"x": "d", "tme": 7}\n{"x": {"y": 1}, "time": 8}\n{"x": "e", "time": "noon"}\n{"x": "\xff", "time": 1}\n',
        [2, 4, 5, 7, 8, 9, 10],
    ),
    "B.json": (
        b'[{"x": "a", "time": 1},\n {"x": "c"},\n {"x": "b",\n  "time": 5}, 7,\n {"x": "d", "time": "no"}]',
        [2, 4, 5],
    ),
    "b.facts": (b"B(a)@1\nB(c@2\n# a comment\nB(d)@noon\nB(b)@5\nB(\xff)@6\nB(e)@[7,6]\n", [2, 4, 6, 7]),
}
COMMANDS = [("materialise", "rules.dmtl"), ("stream", "rules.dmtl", "--query", "A", "--input")]
ANSWERS = "A(a)@1\nA(b)@5\n"


@pytest.fixture(params=sorted(DIRTY))
def dirty(request: pytest.FixtureRequest, sh: Shell) -> tuple[str, list[int]]:
    sh.write("rules.dmtl", RULES)
    data, lines = DIRTY[request.param]
    Path(request.param).write_bytes(data)
    return request.param, lines


def read_bad_rows() -> list[dict[str, object]]:
    return [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    "command", [("materialise", "rules.dmtl"), ("stream", "rules.dmtl", "--query", "A", "--input")]
)
def test_bad_rows_are_set_aside_and_counted(sh: Shell, dirty: tuple[str, list[int]], command: tuple[str, ...]) -> None:
    name, lines = dirty
    ran = sh(*command, name, "--bad-rows", "bad.jsonl")
    rows = "row could not be read and was" if len(lines) == 1 else "rows could not be read and were"
    assert ran == CommandResult(0, ANSWERS, f"{name}: {len(lines)} {rows} set aside in bad.jsonl\n")
    bad = read_bad_rows()
    assert [row["line"] for row in bad] == lines
    assert all(row["file"] == name and row["reason"] and row["row"] for row in bad)


def test_without_the_option_all_bad_rows_are_named_with_their_lines(sh: Shell, dirty: tuple[str, list[int]]) -> None:
    name, lines = dirty
    ran = sh("materialise", "rules.dmtl", name)
    assert (ran.code, ran.out) == (2, "")
    if name != "b.facts":  # bytes that are no text end the reading of fact text at once
        assert [line for line in range(1, 20) if f"{name}:{line}:" in ran.err] == lines


def test_at_most_twenty_bad_rows_are_named(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("B.csv", "x,time\n" + "".join(f"a,noon{i}\n" for i in range(30)))
    ran = sh("materialise", "rules.dmtl", "B.csv")
    assert ran.code == 2
    assert "B.csv:21:1" in ran.err
    assert "B.csv:22:1" not in ran.err
    assert len(ran.err) < 6000


def test_rows_of_parquet_are_set_aside_by_number(sh: Shell) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    sh.write("rules.dmtl", RULES)
    parquet.write_table(pa.table({"x": ["a", None, "b"], "time": ["1", "2", "5"]}), "B.parquet")
    ran = sh("stream", "rules.dmtl", "--query", "A", "--input", "B.parquet", "--bad-rows", "bad.jsonl")
    assert (ran.code, ran.out) == (0, ANSWERS)
    assert [row["line"] for row in read_bad_rows()] == [2]


@pytest.mark.parametrize("damage", ["truncated", "corrupted", "empty"])
def test_a_damaged_parquet_file_is_an_error(sh: Shell, damage: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    sh.write("rules.dmtl", RULES)
    parquet.write_table(pa.table({"x": [f"name{i}" for i in range(5000)], "time": list(range(5000))}), "B.parquet")
    data = Path("B.parquet").read_bytes()
    broken = bytes(255 - byte for byte in data[200:5000])
    damaged = {"truncated": data[:-50], "corrupted": data[:200] + broken + data[5000:], "empty": b""}[damage]
    Path("B.parquet").write_bytes(damaged)
    for command in COMMANDS:
        ran = sh(*command, "B.parquet", "--bad-rows", "bad.jsonl")
        assert (ran.code, ran.out) == (2, "")
        assert "B.parquet" in ran.err
        assert "the file is damaged, or was not written to its end" in ran.err


def test_json_is_an_array_or_json_lines(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    for text in (
        '{"x": "a", "time": 1}\n{"x": "b", "time": 5}\n',
        '[\n {"x": "a", "time": 1},\n {"x": "b", "time": 5}\n]\n',
    ):
        sh.write("B.json", text)
        assert sh("materialise", "rules.dmtl", "B.json") == CommandResult(0, ANSWERS, "")
        assert sh("stream", "rules.dmtl", "--query", "A", "--input", "B.json") == CommandResult(0, ANSWERS, "")
    sh.write("B.json", '[\n {"x": "a", "time": 1},\n {"x": "b" "time": 5}\n]\n')
    ran = sh("materialise", "rules.dmtl", "B.json")
    assert ran.code == 2
    assert "B.json:3:12: error[TL207]" in ran.err


def test_columns_that_a_schema_leaves_out_may_hold_anything(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("s.toml", '[schema.B]\nfile = "b.jsonl"\ncolumns = { x = "text", time = "time" }\ntime = "time"\n')
    sh.write("b.jsonl", '{"x":"a","time":1}\n{"x":\n{"x":"c","time":"soon"}\n{"x":"b","time":5,"more":[1]}\n')
    ran = sh("materialise", "rules.dmtl", "b.jsonl", "--schema", "s.toml", "--bad-rows", "bad.jsonl")
    assert (ran.code, ran.out) == (0, ANSWERS)
    assert [row["line"] for row in read_bad_rows()] == [2, 3]


def test_a_file_of_bad_rows_that_cannot_be_written_is_refused(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("b.facts", "B(a)@1\n")
    ran = sh("materialise", "rules.dmtl", "b.facts", "--bad-rows", "no/such/folder")
    assert ran.code == 2
    assert "--bad-rows no/such/folder: cannot write it" in ran.err


def test_stray_quotation_marks_do_not_take_the_rows_between_them_along(sh: Shell) -> None:
    sh.write("r.dmtl", "A(X) :- B(X, Y).")
    rows = ["a,1,0", 'b,"1,1', "c,1,2", '"d\ne",1,3', 'f,1",4', "g,1,5"]
    sh.write("B.csv", "x,y,time\n" + "".join(f"{row}\n" for row in rows))
    for command in (("materialise", "r.dmtl", "B.csv"), ("stream", "r.dmtl", "--query", "A", "--input", "B.csv")):
        ran = sh(*command, "--bad-rows", "bad.jsonl")
        assert ran.code == 0
        assert "B.csv: 2 rows could not be read" in ran.err
        lines = [json.loads(line)["line"] for line in (sh.folder / "bad.jsonl").read_text().splitlines()]
        assert lines == [3, 7]
        assert [line.partition("@")[2] for line in sorted(ran.out.splitlines())] == ["3", "0", "2", "5"]


def test_arrivals_that_cannot_be_read_are_set_aside(sh: Shell) -> None:
    sh.write("r.tdl", "Alarm(X, T) :- Hot(X, T), Hot(X, T+1).")
    lines = ['{"arrival": 0, "fact": "Hot(a,0)"}', "{", '{"arrival": 1}', '{"arrival": 1, "fact": "Hot(a,1)"}']
    sh.write("a.jsonl", "".join(f"{line}\n" for line in lines))
    command = ("hypothesise", "r.tdl", "--query", "Alarm(X,T)", "--input", "a.jsonl", "--delay", "1")
    assert sh(*command).code == 2
    ran = sh(*command, "--bad-rows", "bad.jsonl")
    assert ran.code == 0
    assert "certain Alarm(a,0)" in ran.out
    assert "a.jsonl: 2 rows could not be read" in ran.err
    assert [json.loads(line)["line"] for line in (sh.folder / "bad.jsonl").read_text().splitlines()] == [2, 3]


def test_the_reason_of_each_bad_cell_shows_its_own_value(sh: Shell) -> None:
    sh.write("rules.dmtl", RULES)
    sh.write("s.toml", '[schema.B]\ncolumns = { x = "number", time = "time", ends = "text" }\nclosed = "ends"\n')
    sh.write("B.csv", "x,time,ends\n1,1,both\nhigh,2,both\nlow,3,both\n")
    ran = sh("materialise", "rules.dmtl", "B.csv", "--schema", "s.toml", "--bad-rows", "bad.jsonl")
    assert ran.code == 0, ran.err
    reasons = ["column `x`: `high` is not a number", "column `x`: `low` is not a number"]
    assert [row["reason"] for row in read_bad_rows()] == reasons


def test_a_parquet_table_can_be_read_from_a_pipe() -> None:
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pa.table({"x": ["a", "b"], "time": [1, 5]}), buffer)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as end:
        end.write(buffer.getvalue())
    with os.fdopen(reading, "rb") as pipe:
        assert [cells.rows for cells in read_parquet_batches(pipe, "<stdin>")] == [2]
