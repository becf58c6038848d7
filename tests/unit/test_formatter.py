"""`tidelog fmt` and `tidelog check --watch`: the standard form with its comments, and checks that follow an editor."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from locations import ROOT
from shell import CommandResult, Shell, start_command
from tidelog.language.formatter import format_source
from tidelog.language.program import Program

FILES = sorted(path for kind in ("dmtl", "tdl") for path in ROOT.glob(f"examples/**/*.{kind}"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_standard_form_is_the_same_program_with_the_same_comments(path: Path) -> None:
    text, kind = path.read_text(encoding="utf-8"), path.suffix[1:]
    found = format_source(text, syntax=kind)
    assert format_source(found, syntax=kind) == found
    assert Program.parse(found, syntax=kind) == Program.parse(text, syntax=kind)
    comment = re.compile("%.*" if kind == "tdl" else "[%#].*")
    assert comment.findall(found) == comment.findall(text)


@pytest.mark.parametrize(
    "text, kind, expected",
    [
        ("", "dmtl", ""),
        ("% alone", "dmtl", "% alone\n"),
        ("\n\n\nA:-B", "dmtl", "A :- B.\n"),
        ("# one\n\n\n\n# two\nA:-B # three\n# four", "dmtl", "# one\n\n# two\nA :- B.  # three\n# four\n"),
        ("A :- B, % why\n  C. % so", "dmtl", "% why\nA :- B, C.  % so\n"),
        ("A :- B. C :- D.% end", "dmtl", "A :- B.\nC :- D.  % end\n"),
        ('A("% no") :- B("#").', "dmtl", 'A("% no") :- B("#").\n'),
        (
            "% t\n#temporal P/2,Q/1.\nP(a,1). P(X,T):-Q(T),R(X)",
            "tdl",
            "% t\n#temporal P/2, Q/1.\nP(a, 1).\nP(X, T) :- Q(T), R(X).\n",
        ),
    ],
)
def test_comments_and_blank_lines(text: str, kind: str, expected: str) -> None:
    assert format_source(text, syntax=kind) == expected
    assert format_source(expected, syntax=kind) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("P(X):-Boxminus[0,10min]Q(X),not R(X)", "P(X) :- Boxminus[0,10min] Q(X), not R(X).\n"),
        ("P(X):-SOMETIME[-1.5h,-5min]Q(X)", "P(X) :- Diamondminus[5min,1.5h] Q(X).\n"),
        ("P(X):-Boxplus[5min]Q(X)", "P(X) :- Boxplus[5min,5min] Q(X).\n"),
        (
            "P(X):-Q(X,C),C>60,Diamondminus[60,2min)Q(X,60)",
            "P(X) :- Q(X, C), C > 60, Diamondminus[60,2min) Q(X, 60).\n",
        ),
        ("P(X):-Q(X,C),C>60,Diamondminus[0,1min]Q(X,C)", "P(X) :- Q(X, C), C > 60, Diamondminus[0,1min] Q(X, C).\n"),
        ("P(X):-duration[0,1h]{Hot(X)}>=1/2h", "P(X) :- duration[0,1h]{ Hot(X) } >= 1/2h.\n"),
        ('P(X):-Q(X,"600"),R(X)Since(0,10min]S(X)', 'P(X) :- Q(X, "600"), R(X) Since(0,10min] S(X).\n'),
    ],
)
def test_durations_keep_their_units(text: str, expected: str) -> None:
    assert format_source(text) == expected
    assert format_source(expected) == expected
    assert Program.parse(expected) == Program.parse(text)


def test_files_are_checked_and_written(sh: Shell) -> None:
    good, bad = sh.write("good.dmtl", "A :- B.\n"), sh.write("bad.dmtl", "A:-B % x")
    assert sh("fmt", "--check", good) == CommandResult(0, "", "")
    ran = sh("fmt", "--check", good, bad)
    assert ran.code == 1
    assert ran.out.startswith("bad.dmtl: not in standard form")
    assert sh("fmt", "-i", good, bad) == CommandResult(0, "bad.dmtl: formatted\n", "")
    assert (sh.folder / bad).read_text() == "A :- B.  % x\n"
    assert sh("fmt", "--check", good, bad).code == 0
    assert sh("fmt", "--check", "-", stdin="A:-B").code == 1
    assert sh("fmt", "-", "--syntax", "tdl", stdin="P(X,T+1):-P(X,T)").out == "P(X, T+1) :- P(X, T).\n"


def test_what_is_wrong_is_not_written(sh: Shell) -> None:
    wrong = sh.write("wrong.dmtl", "A :- .\n")
    assert sh("fmt", "-i", wrong).code == 2
    assert (sh.folder / wrong).read_text() == "A :- .\n"
    for args in (("-i", "-"), ("--check", "-i", wrong), (wrong, wrong)):
        assert sh("fmt", *args).code == 2


@pytest.mark.slow
def test_a_watched_file_is_checked_after_every_change(sh: Shell) -> None:
    rules = sh.folder / sh.write("rules.dmtl", "A(X) :- B(X).\n")
    process = start_command(sh.folder, "check", "rules.dmtl", "--watch")
    assert process.stdout
    try:

        def until(word: bytes) -> bytes:
            said = b""
            assert process.stdout
            while word not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            return said

        assert b"checked at" in until(b"Ctrl-C")
        rules.write_text("A(X) :- .\n")
        assert b"TL001" in until(b"with errors at")
        rules.unlink()
        assert b"TL010" in until(b"with errors at")
        part = sh.folder / "rules.part"
        part.write_text("A(X) :- Diamondminus[0,7] B(X).\n")
        os.replace(part, rules)
        assert b"7" in until(b"checked at")
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_standard_input_is_not_watched(sh: Shell) -> None:
    assert sh("check", "-", "--watch").code == 2
