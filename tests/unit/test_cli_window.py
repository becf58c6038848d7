"""`tidelog window` as a user sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tidelog as tl
from locations import EXAMPLES
from tidelog.cli.main import run

BLACKLIST = str(EXAMPLES / "intrusion" / "blacklist.tdl")


def window(*args: str) -> int:
    return run(["window", BLACKLIST, "--query", "Black", *args])


def test_the_report_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert window() == 0
    assert capsys.readouterr().out == (
        "radius   2  because of line 3\nuniform  2  since no rules of less radius give what line 3 gives\n"
    )
    assert window("--objects", "a,b,max") == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "exact    1  over a, b, max",
        "With a window of 0 this stream loses Black(a,1):",
        "Brst(a,a,0)",
        "Brst(a,a,1)",
    ]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert window("--json") == 0
    assert json.loads(capsys.readouterr().out) == {"radius": 2, "uniform": 2}
    assert window("--objects", "a,b,max", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "radius": 2,
        "uniform": 2,
        "exact": 1,
        "witness": {"background": [], "stream": ["Brst(a,a,0)", "Brst(a,a,1)"], "lost": "Black(a,1)"},
    }


@pytest.mark.parametrize(
    "args, code, verdict",
    [
        (["--check", "2"], 0, "A window of 2 is valid."),
        (["--check", "1"], 3, "Whether a window of 1 is valid is not known: the query is recursive; name all"),
        (["--check", "1", "--objects", "a,max"], 0, "A window of 1 is valid."),
        (["--check", "0", "--objects", "a,max"], 1, "A window of 0 is not valid: this stream loses Black(a,1):"),
    ],
)
def test_checking_one_window(args: list[str], code: int, verdict: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert window(*args) == code
    assert verdict in capsys.readouterr().out
    assert window(*args, "--json") == code
    valid = {0: True, 1: False, 3: None}[code]
    assert json.loads(capsys.readouterr().out)["check"]["valid"] is valid


@pytest.mark.usefixtures("kernels")
def test_a_witness_can_be_replayed_by_the_stream_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, witness = tmp_path / "rules.tdl", tmp_path / "witness.facts"
    rules.write_text("P(X, T) :- A(X, T-1), R(X, Y).\n#rigid R/2.\n")
    assert run(["window", str(rules), "--query", "P", "--objects", "a", "--witness", str(witness)]) == 0
    assert witness.read_text() == "R(a,a)\nA(a,0)\n"
    capsys.readouterr()
    assert run(["stream", str(rules), "--query", "P", "--input", str(witness), "--until", "1"]) == 0
    assert capsys.readouterr().out == "P(a)@1\n"


@pytest.mark.parametrize(
    "args, message",
    [
        (["--objects", ""], "error[TL602]: no objects are given"),
        (["--objects", "a,,b"], "error[TL602]: cannot read the objects: expected a constant, found `,`"),
        (["--check", "-1"], "-1"),
        (["--timeout", "0"], "0"),
    ],
)
def test_bad_input_is_one_message(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert window(*args) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_predicate_gets_a_did_you_mean(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["window", BLACKLIST, "--query", "Blak"]) == 2
    assert "did you mean Black?" in capsys.readouterr().err


def test_a_search_that_may_take_long_is_announced_and_ends_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    objects = ",".join([*(f"o{i}" for i in range(25)), "max"])
    assert window("--objects", objects, "--timeout", "2", "--json") == 0
    printed = capsys.readouterr()
    assert "may take very long; it ends after 2 s" in printed.err
    low, high = json.loads(printed.out)["exact"]
    assert low <= 1 <= high == 2


def test_without_clingo_there_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "clingo", None)
    assert window() == 0
    assert window("--objects", "a") == 2
    assert "error[TL605]: the exact window over known objects needs clingo" in capsys.readouterr().err
    with pytest.raises(tl.TidelogError, match=r"pip install 'tidelog\[stable\]'"):
        tl.window(tl.Program.load(BLACKLIST), "Black", "a")


# A stream over known objects


def stream(tmp_path: Path, text: str, *args: str, query: str = "Black") -> int:
    facts = tmp_path / "stream.facts"
    facts.write_text(text)
    return run(["stream", BLACKLIST, "--query", query, "--input", str(facts), *args])


@pytest.mark.usefixtures("kernels")
def test_a_stream_over_known_objects_uses_the_proved_window(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "Succ(l1,max)\nBrst(a,b,0)\nBrst(a,b,1)\nBrst(b,a,3)\nBrst(a,a,4)\nBrst(b,a,5)\n"
    stats = tmp_path / "stats"
    assert stream(tmp_path, text) == 0
    expected = capsys.readouterr().out
    assert expected == "Black(a)@[1,5]\nBlack(b)@5\n"
    assert stream(tmp_path, text, "--objects", "a,b,l1,max", "--stats", str(stats)) == 0
    assert capsys.readouterr().out == expected
    rule = "line 3: Black(X, T+2) :- Attk(X, Y, T), Attk(X, Y, T+1), Attk(X, Y, T+2)."
    assert json.loads(stats.read_text().splitlines()[0])["saved"] == {
        "rules": [rule],
        "retention": {"Attk": ["2", "0"]},
        "radius": 2,
        "window": 1,
    }


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    "text, message",
    [
        ("Brst(a,b,0)\nBrst(a,c,1)\n", "a fact of Brst mentions c, which is not among the objects"),
        ("Attk(a,b,0)\n", "the input has a fact of Attk, which rules derive"),
        ("Brst(a,b,0)\nSucc(a,b)@3\n", "a fact of Succ, which is rigid, has a time"),
    ],
)
def test_facts_that_the_proof_does_not_cover_are_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stream(tmp_path, text, "--objects", "a,b") == 2
    assert f"error[TL606]: {message}" in capsys.readouterr().err
    assert stream(tmp_path, text) == 0


# DatalogMTL


def test_datalogmtl_rules_get_a_retention_for_each_predicate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.dmtl"
    rules.write_text("P(X) :- Diamondminus[0,2] A(X), B(X).\nP(X) :- A(X), Diamondminus[0,6] A(X).\n")
    assert run(["window", str(rules), "--query", "P", "--objects", "a", "--timeline", "integer"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "A has to be kept for 2, of the 6 that rules look back, for streams over a.",
        "With 1 this stream loses P(a)@2:",
        "A(a)@0",
        "B(a)@2",
    ]
    assert run(["window", str(rules), "--query", "P", "--objects", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "timeline": "rational",
        "tick": "2",
        "retention": {
            "A": {
                "read": "6",
                "enough": "2",
                "least": "2",
                "witness": {"stream": ["A(a)@0", "B(a)@2"], "lost": "P(a)@2"},
            }
        },
        "reason": None,
    }


def test_datalogmtl_rules_that_are_not_decided_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "rules.dmtl"
    rules.write_text("P(X) :- A(X), not Diamondminus[0,2] B(X).\n")
    assert run(["window", str(rules), "--query", "P"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "B kept for 2, for all streams, is enough; whether less is enough is not known.",
        "Less is not tried: line 1 negates.",
    ]
    rules.write_text("P(X) :- A(X).\n")
    assert run(["window", str(rules), "--query", "P"]) == 0
    assert capsys.readouterr().out == "P looks back at nothing.\n"
    assert run(["window", str(rules), "--query", "P", "--check", "1"]) == 2
    assert "--check and --witness are for temporal Datalog (.tdl)" in capsys.readouterr().err
    assert run(["window", BLACKLIST, "--query", "Black", "--timeline", "rational"]) == 2
    assert "temporal Datalog (.tdl) has the integer timeline" in capsys.readouterr().err
