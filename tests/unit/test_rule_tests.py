"""Tests of rules in files beside them: how they are read, run and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from locations import ROOT
from tidelog.cli.main import run

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "Hot(X) :- Boxminus[0,2] High(X), not Off(X).\n"


def told(folder: Path, text: str, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    """The exit code and the output of `tidelog test` on one file beside rules."""
    (folder / "hot.dmtl").write_text(RULES)
    (folder / "hot.test").write_text(text)
    code = run(["test", str(folder), *options])
    out = capsys.readouterr()
    return code, out.out.replace(f"{folder}/", ""), out.err.replace(f"{folder}/", "")


def test_a_test_that_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "test: two units\ngiven:\n  High(a)@[0,9]  % a comment\nexpect only:\n  Hot(a)@[2,9]\nexpect not:\n  Hot(b)\n"
    )
    assert told(tmp_path, text, capsys) == (0, "ok   hot.test:1 two units\n1 test passed\n", "")


def test_what_is_missing_is_shown_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "given:\nHigh(a)@[0,9]\ntest: too early\nexpect: Hot(a)@1\n"
    code, out, _ = told(tmp_path, text, capsys)
    assert code == 1
    assert out.splitlines()[:2] == ["FAIL hot.test:3 too early", "     - expected, but missing: Hot(a)@1"]
    assert "Boxminus[0,2] High(a) fails at 1" in out
    assert out.splitlines()[-1] == "1 of 1 test failed"


@pytest.mark.parametrize("expectation", ["expect only: Hot(a)@[2,5]", "expect not: Hot(a)@(5,9]"])
def test_what_should_not_be_there_is_shown_with_its_proof(
    expectation: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = told(tmp_path, f"test: too long\ngiven:\nHigh(a)@[0,9]\n{expectation}\n", capsys)
    assert code == 1
    assert "+ not expected, but there: Hot(a)@(5,9]" in out
    assert "High(a)@(3,9]  given" in out


def test_a_query_may_have_no_answers_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, "test: quiet\ngiven:\nHigh(a)@1\nquery: Hot\n", capsys)[0] == 0
    assert told(tmp_path, "test: quiet\ngiven:\nHigh(a)@[1,5]\nquery: Hot\n", capsys)[0] == 1


def test_json_names_the_facts_and_the_way_of_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(tmp_path, "test: no\ngiven:\nHigh(a)@[0,9]\nexpect: Hot(a)@1\n", capsys, "--json")
    found = json.loads(out)
    assert (code, found["passed"], found["failed"]) == (1, 0, 1)
    (only,) = found["tests"]
    assert (only["file"], only["line"], only["test"], only["streamed"]) == ("hot.test", 1, "no", True)
    assert [(wrong["fact"], wrong["problem"], wrong["in"]) for wrong in only["wrong"]] == [
        ("Hot(a)@1", "missing", "batch")
    ]


def test_rules_that_look_ahead_for_ever_run_in_batch_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ahead.dmtl").write_text("P :- Diamondplus[0,inf) Q.\n")
    text = "rules: ahead.dmtl\ntest: once\ngiven:\nQ@5\nexpect: P@3\n"
    code, out, _ = told(tmp_path, text, capsys)
    assert code == 0
    assert "(in batch only: " in out


def test_facts_of_files_and_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more.facts").write_text("High(a)@[0,3]\n")
    text = "timeline: integer\ndelay: 2\nuntil: 3\ntest: files\ngiven: more.facts\nexpect only: Hot(a)@[2,3]\n"
    assert told(tmp_path, text, capsys)[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test: a\nexpects: P@1\n", "hot.test:2:1: error[TL901]: there is no section `expects:`"),
        ("test: a\n", "hot.test:1:1: error[TL901]: this test expects nothing"),
        ("given:\nP@1\n", "hot.test:1:1: error[TL901]: there is no test in this file"),
        ("P@1\ntest: a\n", "hot.test:1:1: error[TL901]: a line before the first section"),
        ("test: a\nexpect:\nHot(a@1\n", "hot.test:3:"),
        ("test: a\nstream: maybe\nexpect: Hot(a)@1\n", "`stream:` is yes or no, not `maybe`"),
        ("test: a\ndelay: soon\nexpect: Hot(a)@1\n", "`soon` is not a duration"),
        ("rules: none.dmtl\ntest: a\nexpect: Hot(a)@1\n", "cannot read none.dmtl"),
        ("test: a\nexpect: Hott(a)@1\n", "did you mean Hot?"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_place(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = told(tmp_path, text, capsys)
    assert code == 2
    assert message in err


def test_no_tests_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["test", str(tmp_path)]) == 2
    assert "there are no tests in" in capsys.readouterr().err


def test_the_examples_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["test", str(ROOT / "examples")]) == 0
    assert "passed" in capsys.readouterr().out


def test_tables_are_read_with_the_schema_next_to_the_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tidelog.toml").write_text(
        '[schema.High]\nfile = "values.csv"\ncolumns = { device = "text", at = "time" }\ntime = "at"\n'
    )
    (tmp_path / "values.csv").write_text("device,at,note\n007,3,a\n")
    code, out, err = told(tmp_path, 'given: values.csv\ntest: one\nexpect not: Hot("007")@3\n', capsys)
    assert (code, out, err) == (0, "ok   hot.test:2 one\n1 test passed\n", "")


def test_expected_facts_may_have_dates_for_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "since.dmtl").write_text("Since(X, S) :- S = start{ High(X) }.\n")
    first, when = "2026-01-31T10:00:00Z", "[2026-01-31T10:00:00Z,2026-01-31T10:05:00Z]"
    (tmp_path / "since.test").write_text(
        f"test: since ten\ngiven:\nHigh(a)@{when}\nexpect only:\nSince(a,{first})@{when}\n"
    )
    assert run(["test", str(tmp_path / "since.test")]) == 0
    assert "1 test passed" in capsys.readouterr().out
