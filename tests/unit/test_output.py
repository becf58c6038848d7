"""What leaves tidelog: forms of output, questions without a time, and what is said about ranges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyarrow import parquet

import tidelog as tl
from shell import Shell

HOT = "Hot(X) :- Diamondminus[0,2] High(X)."


@pytest.mark.parametrize("command", ["entails", "explain"])
def test_the_reading_of_a_question_without_a_time_is_stated(sh: Shell, command: str) -> None:
    done = sh(command, sh.write("r.dmtl", HOT), sh.write("d.facts", "High(a)@3"), "Hot(a)")
    code, err = done.code, done.err
    assert code == 1
    assert "warning[TL310]: Hot(a) has no time, so it is read as Hot(a)@(-inf,inf)" in err
    assert sh(command, "r.dmtl", "d.facts", "Hot(a)", "--strict").code == 2
    assert all(form in err for form in ("Hot(a)@7", "Hot(a)@[0,3]", "Hot(a)@(-inf,inf)"))


def test_all_times_may_be_asked_for_and_rigid_predicates_need_no_time() -> None:
    program, data = tl.Program.parse(HOT), tl.Dataset.parse('High(a)\nHigh("b@c")')
    assert tl.entails(program, data, "Hot(a)@(-inf,inf)") is tl.types.Answer.YES
    assert tl.entails(program, data, 'Hot("b@c")') is tl.types.Answer.YES
    assert [warning.code for warning in program.find_question_warnings('Hot("b@c")')] == ["TL310"]
    temporal = tl.Program.parse("P(X,T+1) :- Q(X,T), Succ(X,Y). Near(X) :- Succ(X,Y).", syntax="tdl")
    assert tl.entails(temporal, tl.Dataset.parse("Succ(a,b)"), "Near(a)") is tl.types.Answer.YES


def test_stable_says_that_models_are_cut_to_the_range_of_the_data(sh: Shell) -> None:
    pytest.importorskip("clingo")
    rules, data = sh.write("r.dmtl", "A :- Diamondminus[1,1] A."), sh.write("d.facts", "A@2\nB@4")
    done = sh("stable", rules, data)
    assert done.code == 0
    assert done.out.startswith("% model 1\nA@[2,4]\n")
    assert "% facts from 2 to 4, the range of the data; --between LO,HI prints another range" in done.err
    assert json.loads(sh("stable", rules, data, "--json").out)["between"] == [2, 4]
    assert "range of the data" not in sh("stable", rules, data, "--between", "0,9").err


@pytest.mark.parametrize("place", ["first", "last"])
def test_changes_start_prints_starts_only(sh: Shell, place: str) -> None:
    rules, data = sh.write("r.dmtl", HOT), sh.write("d.facts", "High(a)@0\nHigh(b)@5")
    options = ["--query", "Hot", "--input", data, "--until", "9"]

    def run(*changes: str) -> list[str]:
        arguments = [*changes, rules, *options] if place == "first" else [rules, *options, *changes]
        done = sh("stream", *arguments)
        assert done.code == 0, done.err
        return done.out.splitlines()

    both = ["start Hot(a)@[0", "end Hot(a)@2]", "start Hot(b)@[5", "end Hot(b)@7]"]
    assert run("--changes") == both
    assert run("--changes", "start") == [line for line in both if line.startswith("start")]


def test_a_state_remembers_that_only_starts_are_wanted(sh: Shell, tmp_path: Path) -> None:
    rules, state = sh.write("r.dmtl", HOT), str(tmp_path / "s.state")
    first, second = sh.write("1.facts", "High(a)@0"), sh.write("2.facts", "High(b)@5\nHigh(c)@9")
    options = ["stream", rules, "--query", "Hot", "--state", state, "--continues", "--input"]
    assert sh(*options, first, "--changes", "start").out.splitlines() == []
    assert sh(*options, second).out.splitlines() == ["start Hot(a)@[0", "start Hot(b)@[5"]
    assert sh(*options, second, "--changes").code == 2


def test_json_objects_carry_the_predicate_and_typed_arguments(sh: Shell) -> None:
    rules = sh.write("r.dmtl", "A(X,Y) :- B(X,Y).")
    data = sh.write("d.facts", 'B(a,"x \\"y\\n\\\\")@5\nB(-7,"1")@2\nB(1,1/3)@[2,3)')
    objects = [json.loads(line) for line in sh("materialise", rules, data, "--json").out.splitlines()]
    assert objects[0] == {
        "fact": 'A(-7,"1")',
        "start": "2",
        "end": "2",
        "closed": "both",
        "predicate": "A",
        "args": [-7, "1"],
    }
    assert [found["args"] for found in objects[1:]] == [[1, "1/3"], ["a", 'x "y\n\\']]
    assert [
        json.loads(line) for line in sh("stream", rules, "--query", "A", "--input", data, "--json").out.splitlines()
    ]


def test_json_of_repetitions_and_changes_carries_predicate_and_arguments(sh: Shell) -> None:
    rules, data = sh.write("r.dmtl", "A(X) :- Diamondminus[3,3] A(X)."), sh.write("d.facts", "A(a)@1\nB@9")
    (repeat,) = map(json.loads, sh("materialise", rules, data, "--json").out.splitlines())
    assert (repeat["predicate"], repeat["args"], repeat["every"]) == ("A", ["a"], "3")
    started = sh("stream", rules, "--query", "A", "--input", data, "--json", "--changes", "start").out.splitlines()
    assert json.loads(started[0]) == {
        "event": "start",
        "fact": "A(a)",
        "time": "1",
        "closed": True,
        "predicate": "A",
        "args": ["a"],
    }


TWO = "Hot(X) :- High(X,N). Near(X,Y) :- Next(X,Y). Big(X,N) :- High(X,N), N > 5."
DATA = 'High("hall, 1",7)@[0,3)\nHigh(b,2)@5\nNext("",b)\n'
CSV = """predicate,arg1,arg2,start,end,closed
Big,"hall, 1",7,0,3,left
Hot,b,,5,5,both
Hot,"hall, 1",,0,3,left
Near,"",b,-inf,inf,neither
"""


def test_csv_is_one_table_for_all_predicates(sh: Shell) -> None:
    rules, data = sh.write("r.dmtl", TWO), sh.write("d.facts", DATA)
    assert sh("materialise", rules, data, "--format", "csv").out == CSV
    assert tl.materialise(tl.Program.parse(TWO), tl.Dataset.parse(DATA)).render("csv").decode() == CSV
    assert sh("materialise", rules, data, "-o", "out.csv").out == ""
    assert (sh.folder / "out.csv").read_text() == CSV
    assert sh("materialise", rules, data, "--format", "facts").out == sh("materialise", rules, data).out


def test_parquet_has_typed_columns(sh: Shell) -> None:
    rules, data = sh.write("r.dmtl", TWO), sh.write("d.facts", DATA)
    assert sh("materialise", rules, data, "--query", "Big", "-o", "big.parquet").code == 0
    table = parquet.read_table(sh.folder / "big.parquet")
    assert [str(kind) for kind in table.schema.types] == ["string", "string", "int64", "int64", "int64", "string"]
    assert table.to_pylist() == [
        {"predicate": "Big", "arg1": "hall, 1", "arg2": 7, "start": 0, "end": 3, "closed": "left"}
    ]


def test_dates_are_timestamps_in_parquet_and_infinite_ends_are_null(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    data = tl.Dataset.parse("P(a)@[2026-01-31T10:00:00.5Z,inf)\nP(1/3)@2026-01-31")
    tl.materialise(tl.Program.parse("Q(X) :- P(X)."), data).to_parquet(tmp_path / "q.parquet")
    first, second = parquet.read_table(tmp_path / "q.parquet").to_pylist()
    assert (first["arg1"], first["start"]) == ("1/3", datetime(2026, 1, 31, tzinfo=UTC))
    assert (second["start"], second["end"]) == (datetime(2026, 1, 31, 10, 0, 0, 500000, tzinfo=UTC), None)


def test_repetitions_have_columns_of_their_own() -> None:
    model = tl.materialise(tl.Program.parse("A(X) :- Diamondminus[3,3] A(X)."), tl.Dataset.parse("A(a)@1"))
    assert model.render("csv").decode() == ("predicate,arg1,start,end,closed,every,from,before\nA,a,1,1,both,3,1,\n")


@pytest.mark.parametrize("more", [(), ("--changes",)])
def test_a_stream_writes_csv_and_parquet(sh: Shell, more: tuple[str, ...]) -> None:
    rules, data = sh.write("r.dmtl", HOT), sh.write("d.facts", "High(a)@0\nHigh(b)@5")
    options = ["stream", rules, "--query", "Hot", "--input", data, "--until", "9", *more]
    expected = (
        "event,predicate,arg1,time,closed\nstart,Hot,a,0,true\nend,Hot,a,2,true\nstart,Hot,b,5,true\nend,Hot,b,7,true\n"
        if more
        else "predicate,arg1,start,end,closed\nHot,a,0,2,both\nHot,b,5,7,both\n"
    )
    assert sh(*options, "--format", "csv").out == expected
    assert sh(*options, "-o", "out.parquet").out == ""
    rows = parquet.read_table(sh.folder / "out.parquet").to_pylist()
    assert [",".join(str(cell).lower() for cell in row.values()) for row in rows] == [
        line.lower() for line in expected.splitlines()[1:]
    ]


def test_a_stream_without_answers_still_has_a_header(sh: Shell) -> None:
    rules, data = sh.write("r.dmtl", HOT), sh.write("d.facts", "Low(a)@0")
    assert sh("stream", rules, "--query", "Hot", "--input", data, "--format", "csv").out == (
        "predicate,arg1,start,end,closed\n"
    )


def test_a_resumed_stream_appends_to_its_output_and_never_overwrites_parquet(sh: Shell) -> None:
    rules, first, second = sh.write("r.dmtl", HOT), sh.write("1.facts", "High(a)@0"), sh.write("2.facts", "High(b)@5")
    for name, code in (("out.csv", 0), ("out.parquet", 2)):
        options = ["stream", rules, "--query", "Hot", "--state", f"{name}.state", "--continues", "-o", name, "--input"]
        assert sh(*options, first).code == 0
        assert sh(*options, second).code == code
    assert (sh.folder / "out.csv").read_text() == "predicate,arg1,start,end,closed\nHot,a,0,2,both\n"


def test_options_of_output_that_contradict_each_other(sh: Shell) -> None:
    rules, data = sh.write("r.dmtl", HOT), sh.write("d.facts", "High(a)@0")
    assert "--json is short for" in sh("materialise", rules, data, "--json", "--format", "csv").err
    done = sh("stream", rules, "--query", "Hot", "--input", data, "-o", data)
    assert (done.code, "--input uses this file too" in done.err) == (2, True)


def test_a_schema_names_the_columns_of_a_table(sh: Shell) -> None:
    schema = sh.write("s.toml", '[schema.Hot]\ncolumns = { room = "text", time = "time" }\ntime = "time"\n')
    rules, data = sh.write("r.dmtl", HOT), sh.write("d.facts", "High(a)@0")
    done = sh("materialise", rules, data, "--schema", schema, "--format", "csv")
    assert done.out == "predicate,room,start,end,closed\nHot,a,0,2,both\n", done.err


def test_stable_models_are_tables_with_the_number_of_their_model(sh: Shell) -> None:
    pytest.importorskip("clingo")
    sh.write("r.dmtl", "Open :- not Shut.  Shut :- not Open.  Bottom :- Open, Storm.")
    sh.write("d.facts", "Storm@1")
    command = ("stable", "r.dmtl", "d.facts", "--models", "0", "--between", "1,1")
    lines = sh(*command, "--format", "csv").out.splitlines()
    assert lines[0] == "model,predicate,start,end,closed,every,from,before"
    assert "1,Shut,1,1,both,,," in lines
    objects = [json.loads(line) for line in sh(*command, "--format", "jsonl").out.splitlines()]
    assert {"model": 1, "predicate": "Storm", "args": []}.items() <= objects[1].items()
    assert sh(*command, "-o", "m.parquet").code == 0
    assert parquet.read_table("m.parquet").column_names[:2] == ["model", "predicate"]
    assert sh(*command, "-o", "m.facts").out == ""
    assert Path("m.facts").read_text() == sh(*command).out
    along = ("stable", "r.dmtl", "--input", "d.facts")
    assert sh(*along, "--format", "csv").out == "models,predicate,start,end,closed\nall,Shut,1,1,both\n"
    assert sh(*along, "-o", "s.facts").out == ""
    assert Path("s.facts").read_text() == sh(*along).out
    assert sh(*command, "--json", "--format", "csv").code == 2
    assert sh("stable", "r.dmtl", "d.facts", "--brave", "Open@1", "--format", "csv").code == 2


def test_possible_answers_are_a_table(sh: Shell) -> None:
    sh.write("r.tdl", "Alarm(X, T) :- Hot(X, T), Hot(X, T+1).")
    sh.write("a.jsonl", '{"arrival": 0, "fact": "Hot(a,0)"}\n{"arrival": 1, "fact": "Hot(a,1)"}\n')
    command = ("hypothesise", "r.tdl", "--query", "Alarm(X,T)", "--input", "a.jsonl", "--delay", "1")
    lines = sh(*command, "--format", "csv").out.splitlines()
    assert lines[0] == "tau,status,X,T,evidence,hypotheses,conditions,decided_by,confidence"
    assert any(line.startswith("1,certain,a,0,") for line in lines)
    assert sh(*command, "--format", "jsonl").out == sh(*command, "--json").out
    assert sh(*command, "-o", "p.parquet").code == 0
    assert parquet.read_table("p.parquet").column("status").to_pylist().count("certain") == 1
    assert sh(*command, "-o", "p.txt").out == ""
    assert Path("p.txt").read_text() == sh(*command).out


def test_a_schema_names_the_columns_of_answers_everywhere(sh: Shell) -> None:
    sh.write("r.dmtl", HOT)
    sh.write("d.facts", "High(a)@3")
    sh.write("tidelog.toml", '[schema.Hot]\ncolumns = { room = "text" }\n[schema.High]\ncolumns = { place = "text" }\n')
    named = '"columns": {"room": "a"}'
    assert named in sh("materialise", "r.dmtl", "d.facts", "--json").out
    stream = ("stream", "r.dmtl", "--query", "Hot", "--input", "d.facts")
    assert named in sh(*stream, "--json").out
    assert sh(*stream, "--format", "csv").out.startswith("predicate,room,start,end,closed\n")
    assert sh(*stream, "--changes", "--format", "csv").out.startswith("event,predicate,room,time,closed\n")
    assert sh(*stream, "--exec", "cat > alert.json").code == 0
    assert named in Path("alert.json").read_text()
    assert "% columns: High(place), Hot(room)" in sh("explain", "r.dmtl", "d.facts", "Hot(a)@4").out
    assert json.loads(sh("explain", "r.dmtl", "d.facts", "Hot(a)@4", "--json").out)["columns"]["Hot"] == ["room"]
    assert sh("report", "r.dmtl", "d.facts", "-o", "r.html").code == 0
    assert "High(place), Hot(room)" in Path("r.html").read_text()
    assert sh(*stream, "--report", "s.html").code == 0
    assert "High(place), Hot(room)" in Path("s.html").read_text()
