"""`tidelog hypothesise` as a user sees it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from locations import ROOT
from shell import Shell, start_command

RULES = (ROOT / "examples" / "turbines" / "turbines.tdl").read_text(encoding="utf-8")


def arrivals(*pairs: tuple[int, str]) -> str:
    return "".join(json.dumps({"arrival": arrival, "fact": fact}) + "\n" for arrival, fact in pairs)


def test_every_time_point_has_an_object_in_the_fixed_form(sh: Shell) -> None:
    sh.write("rules.tdl", RULES)
    stream = arrivals((0, "Temp(wt2,high,0)"), (1, "Temp(wt2,high,1)"), (3, "Temp(wt2,high,2)"))
    ran = sh(
        "hypothesise", "rules.tdl", "--query", "Malf(X,T)", "--input", "-", "--delay", "Temp=1", "--json", stdin=stream
    )
    assert ran.code == 0
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert [line["tau"] for line in lines] == [0, 1, 2, 3]
    assert [list(line) for line in lines] == [["tau", "answers", "hypothetical"]] * 4
    assert lines[1]["hypothetical"][0] == {
        "bindings": {"X": "wt2", "T": 0},
        "evidence": ["Temp(wt2,high,0)", "Temp(wt2,high,1)"],
        "hypotheses": ["Temp(wt2,high,2)"],
        "decided_by": 3,
    }
    assert [line["answers"] for line in lines[:3]] == [[], [], []]
    assert lines[3]["answers"] == [
        {
            "bindings": {"X": "wt2", "T": 0},
            "evidence": ["Temp(wt2,high,0)", "Temp(wt2,high,1)", "Temp(wt2,high,2)"],
            "hypotheses": [],
            "decided_by": 3,
        }
    ]


def test_the_run_ends_at_the_last_arrival_or_at_until(sh: Shell) -> None:
    sh.write("rules.tdl", RULES)
    stream = arrivals((1, "Temp(wt2,high,1)"), (4, "Temp(wt2,high,4)"))
    for until, last in (((), 4), (("--until", "2"), 2), (("--until", "6"), 6), (("--until", "0"), 0)):
        ran = sh("hypothesize", "rules.tdl", "--query", "Malf(X,T)", "--input", "-", "--json", *until, stdin=stream)
        assert [json.loads(line)["tau"] for line in ran.out.splitlines()] == list(range(last + 1))
    assert sh("hypothesise", "rules.tdl", "--query", "Malf(X,T)", "--input", "-", "--json").out == ""


def test_facts_out_of_time_are_counted_reported_and_saved(sh: Shell) -> None:
    sh.write("rules.tdl", RULES)
    stream = arrivals(
        (2, "Temp(a,high,0)"),
        (2, "Temp(a,high,3)"),
        (1, "Temp(a,high,1)"),
        (2, "Temp(a,high,2)"),
        (3, "Temp(a,high,3)"),
        (4, "Temp(a,high,4)"),
    )
    command = ("hypothesise", "rules.tdl", "--query", "Malf(X,T)", "--input", "-", "--json")
    ran = sh(*command, "--late", "late.jsonl", stdin=stream)
    assert ran.code == 0
    assert ran.err.startswith(
        "3 facts not taken: 1 later than the delay allows, 1 before their own time, 1 with an arr"
    )
    kept = [json.loads(line) for line in (sh.folder / "late.jsonl").read_text().splitlines()]
    assert sorted((line["arrival"], line["fact"], line["why"]) for line in kept) == [
        (1, "Temp(a,high,1)", "backwards"),
        (2, "Temp(a,high,0)", "late"),
        (2, "Temp(a,high,3)", "future"),
    ]
    answers = [entry for line in ran.out.splitlines() for entry in json.loads(line)["answers"]]
    assert [entry["bindings"] for entry in answers] == [{"X": "a", "T": 2}]


def test_an_unreadable_line_ends_the_run_after_the_moments_before_it(sh: Shell) -> None:
    sh.write("rules.tdl", "Hot(X,T) :- Temp(X,high,T). #temporal Temp/3.")
    good = arrivals((0, "Temp(a,high,0)"))
    for bad, column in (
        ("{", 2),
        ("[]", 1),
        ('{"arrival": -1, "fact": "Temp(a,high,0)"}', 1),
        ('{"arrival": true, "fact": "Temp(a,high,0)"}', 1),
        ('{"arrival": 1}', 1),
        ('{"arrival": 1, "fact": "Temp(a"}', 7),
        ('{"arrival": 1, "fact": "Temp(a,0)"}', 1),
    ):
        ran = sh("hypothesise", "rules.tdl", "--query", "Hot(X,T)", "--input", "-", stdin=good + bad + "\n")
        assert ran.code == 2
        assert ran.out == "0: certain Hot(a,0) since Temp(a,high,0)\n"
        assert ran.err.startswith(f"<stdin>:2:{column}: error[TL"), ran.err


def test_bad_options_are_one_message(sh: Shell) -> None:
    sh.write("rules.tdl", RULES)
    command = ("hypothesise", "rules.tdl", "--query", "Malf(X,T)", "--input", "-")
    for options, said in (
        (("--delay", "Tmp=1"), "did you mean Temp?"),
        (("--delay", "Temp=soon"), "error[TL703]"),
        (("--probability", "2"), "error[TL706]"),
        (("--chances", "Temp=0.9:0.9"), "error[TL706]"),
        (("--until", "-1"), "-1"),
        (("--input", "none.jsonl"), "--input is given twice"),
    ):
        ran = sh(*command, *options)
        assert (ran.code, said in ran.err) == (2, True), ran.err
    assert sh("hypothesise", "rules.tdl", "--query", "Melf(X,T)", "--input", "-").err.count("did you mean Malf?") == 1
    assert sh("hypothesise", "-", "--query", "Malf(X,T)", "--input", "-").code == 2
    assert "cannot read none.jsonl" in sh(*command[:-1], "none.jsonl").err


def test_arrivals_may_be_compressed_and_begin_with_a_byte_order_mark(sh: Shell) -> None:
    sh.write("rules.tdl", RULES)
    text = "\ufeff" + arrivals((0, "Temp(a,high,0)")) + "\n"
    (sh.folder / "stream.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    ran = sh("hypothesise", "rules.tdl", "--query", "Malf(X,T)", "--input", "stream.jsonl.gz")
    assert (ran.code, ran.out.count("possible Malf(a,0)")) == (0, 1)


def test_background_from_a_file(sh: Shell) -> None:
    sh.write("rules.tdl", "Hot(X,T) :- Sensor(X), Temp(X,high,T), Temp(X,high,T+1). #rigid Sensor/1.")
    sh.write("sensors.facts", "Sensor(a)\n")
    stream = arrivals((0, "Temp(a,high,0)"), (0, "Temp(b,high,0)"))
    command = ("hypothesise", "rules.tdl", "--query", "Hot(X,T)", "--input", "-", "--background", "sensors.facts")
    assert sh(*command, stdin=stream).out == (
        "0: possible Hot(a,0) since Temp(a,high,0) awaits Temp(a,high,1); decided by 1\n"
    )


@pytest.mark.slow
def test_a_live_stream_is_answered_as_it_arrives(tmp_path: Path) -> None:
    (tmp_path / "rules.tdl").write_text(RULES, encoding="utf-8")
    process = start_command(tmp_path, "hypothesise", "rules.tdl", "--query", "Malf(X,T)", "--input", "-", "--json")
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(arrivals((0, "Temp(a,high,0)"), (1, "Temp(a,high,1)")).encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["tau"] == 0
        process.stdin.close()
        assert json.loads(process.stdout.readline())["tau"] == 1
    assert process.returncode == 0


def test_changes_are_printed_once_each(sh: Shell) -> None:
    sh.write("rules.tdl", "Alarm(X, T) :- Hot(X, T), Hot(X, T+1).")
    stream = arrivals((0, "Hot(a,0)"), (2, "Hot(a,1)"))
    command = ("hypothesise", "rules.tdl", "--query", "Alarm(X,T)", "--input", "-", "--delay", "1", "--changes")
    ran = sh(*command, "--until", "9", stdin=stream)
    assert ran.out.splitlines() == [
        "0: awaited Alarm(a,0) since Hot(a,0) awaits Hot(a,1); decided by 2",
        "2: answered Alarm(a,0) since Hot(a,0), Hot(a,1)",
        "2: awaited Alarm(a,1) since Hot(a,1) awaits Hot(a,2); decided by 3",
        "3: dropped Alarm(a,1) since Hot(a,1) awaits Hot(a,2)",
    ]
    found = [json.loads(line) for line in sh(*command, "--json", "--until", "9", stdin=stream).out.splitlines()]
    assert [(line["tau"], line["change"], line["decided_by"]) for line in found] == [
        (0, "awaited", 2),
        (2, "answered", None),
        (2, "awaited", 3),
        (3, "dropped", None),
    ]
    assert found[0]["id"] == found[1]["id"] != found[2]["id"] == found[3]["id"]
    table = sh(*command, "--format", "csv", stdin=stream).out.splitlines()
    assert table[0].startswith("tau,status,X,T,evidence")
    assert [line.split(",")[1] for line in table[1:]] == ["awaited", "answered", "awaited"]


def test_schemas_are_printed_as_rules_without_reading_arrivals(sh: Shell) -> None:
    sh.write("rules.tdl", RULES)
    command = ("hypothesise", "rules.tdl", "--query", "Malf(X,T)")
    assert sh(*command, "--schemas").out == "Malf(X,T) :- Temp(X,high,T), Temp(X,high,T+1), Temp(X,high,T+2).\n"
    (line,) = sh(*command, "--schemas", "--json").out.splitlines()
    awaited = ["Temp(X,high,T)", "Temp(X,high,T+1)", "Temp(X,high,T+2)"]
    assert json.loads(line) == {"answer": "Malf(X,T)", "awaits": awaited}
    sh.write("pairs.tdl", "P(X, 0) :- A(X, T), B(Y, T), X != Y.\n#temporal A/2, B/2, P/2.")
    printed = sh("hypothesise", "pairs.tdl", "--query", "P(X,T)", "--schemas").out
    assert printed == "P(X,0) :- A(X,T1), B(Y,T1), X != Y.\n"
    ran = sh(*command)
    assert (ran.code, "--input" in ran.err) == (2, True)
    assert sh(*command, "--schemas", "--format", "csv").code == 2


def test_answers_without_evidence_are_printed_on_request(sh: Shell) -> None:
    sh.write("rules.tdl", "Alarm(X, T) :- Hot(X, T), Hot(X, T+1).")
    command = ("hypothesise", "rules.tdl", "--query", "Alarm(X,T)", "--input", "-", "--delay", "1", "--unsupported")
    assert sh(*command, stdin=arrivals((1, "Hot(a,1)"))).out.splitlines() == [
        "0: possible Alarm(X,T) awaits Hot(X,T), Hot(X,T+1) where T >= 0",
        "1: possible Alarm(X,T) awaits Hot(X,T), Hot(X,T+1) where T >= 1",
        "1: possible Alarm(a,1) since Hot(a,1) awaits Hot(a,2); decided by 3",
    ]
    assert sh(*command, "--changes").code == 2
