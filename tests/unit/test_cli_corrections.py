"""`tidelog stream --corrections` and `tidelog as-of`: input, output, states and errors."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from shell import Shell, start_command

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "Q(X) :- P(X), not Diamondminus[0,2] R(X).\n"
FACTS = "P(a)@[0,5]\nP(b)@8\nR(a)@3\nP(b)@9\n-R(a)@3\nP(c)@12\n-P(z)@4\n"
CHANGES = ["+Q(a)@[0,3)", "-Q(a)@[0,3)", "+Q(a)@[0,5]", "+Q(b)@8", "+Q(b)@9", "+Q(c)@12"]


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("rules.dmtl").write_text(RULES)
    Path("data.facts").write_text(FACTS)
    return "rules.dmtl"


def test_changes_are_printed_and_unmatched_deletions_are_reported(rules: str, sh: Shell) -> None:
    ran = sh("stream", rules, "--query", "Q", "--input", "data.facts", "--corrections", "10")
    assert ran.out.splitlines() == CHANGES
    assert "1 deletion has found no fact to delete" in ran.err


def test_facts_and_deletions_older_than_the_corrections_are_late(rules: str, sh: Shell) -> None:
    Path("old.facts").write_text("R(z)@0\nP(a)@1\nP(a)@9\n-P(a)@1\nP(b)@5\n")
    ran = sh("stream", rules, "--query", "Q", "--input", "old.facts", "--corrections", "5")
    assert ran.err == "1 fact came too late; --late FILE keeps such facts, a longer --corrections H takes them\n"
    assert "+Q(b)" in ran.out


def test_json_and_csv_say_when_a_change_was_known(rules: str, sh: Shell) -> None:
    command = ("stream", rules, "--query", "Q", "--input", "data.facts", "--corrections", "10")
    found = [json.loads(line) for line in sh(*command, "--json").out.splitlines()]
    assert [(one["change"], one["known"], one["fact"]) for one in found[:3]] == [
        ("+", "8", "Q(a)"),
        ("-", "9", "Q(a)"),
        ("+", "9", "Q(a)"),
    ]
    assert sh(*command, "--format", "csv").out.splitlines()[:2] == [
        "change,known,predicate,arg1,start,end,closed",
        "+,8,Q,a,0,3,left",
    ]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_the_answers_as_they_stood_at_some_clock(rules: str, sh: Shell, form: str) -> None:
    sh("stream", rules, "--query", "Q", "--input", "data.facts", "--corrections", "10", "-o", f"log.{form}")
    assert sh("as-of", f"log.{form}", "8").out == "Q(a)@[0,3)\n"
    assert sh("as-of", f"log.{form}", "9").out == "Q(a)@[0,5]\nQ(b)@8\n"
    assert sh("as-of", f"log.{form}", "7").out == ""


@pytest.mark.parametrize(
    ("facts", "clock"), [("P(a)@2026-01-31\nP(a)@2026-02-01\n", "8"), ("P(a)@1\nP(a)@9\n", "2026-01-31")]
)
def test_a_clock_in_another_unit_than_the_log_is_refused(rules: str, sh: Shell, facts: str, clock: str) -> None:
    Path("one.facts").write_text(facts)
    assert (
        sh("stream", rules, "--query", "Q", "--input", "one.facts", "--corrections", "10", "-o", "log.jsonl").code == 0
    )
    ran = sh("as-of", "log.jsonl", clock)
    assert ran.code == 2
    assert "TL209" in ran.err


def test_a_log_of_text_does_not_say_when_changes_were_known(rules: str, sh: Shell) -> None:
    sh("stream", rules, "--query", "Q", "--input", "data.facts", "--corrections", "10", "-o", "log.txt")
    ran = sh("as-of", "log.txt", "8")
    assert ran.code == 2
    assert "TL409" in ran.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("P.csv", "x,op,time\na,insert,1\nb,+,8\na,d,1\nc,c,9\nb,-,8\nd,,12\n"),
        ("P.jsonl", '{"x":"a","time":1}\n{"x":"c","time":9}\n{"x":"a","time":1,"op":"delete"}\n{"x":"d","time":12}\n'),
        ("P.facts", "P(a)@1\nP(c)@9\n-P(a)@1\nP(d)@12\n"),
    ],
)
def test_deletions_are_read_from_every_form(rules: str, sh: Shell, name: str, text: str) -> None:
    Path(name).write_text(text)
    Path("r.facts").write_text("R(z)@0\n")
    ran = sh("stream", rules, "--query", "Q", "--input", name, "--background", "r.facts", "--corrections", "20")
    lines = ran.out.splitlines()
    assert {line[1:] for line in lines if line[0] == "+"} - {line[1:] for line in lines if line[0] == "-"} == {
        "Q(c)@9",
        "Q(d)@12",
    }


def test_an_unknown_operation_is_refused(rules: str, sh: Shell) -> None:
    Path("P.csv").write_text("x,op,time\na,upsert,1\n")
    ran = sh("stream", rules, "--query", "Q", "--input", "P.csv", "--corrections", "20")
    assert ran.code == 2
    assert "`upsert` is not one of insert, delete" in ran.err


@pytest.mark.parametrize("name", ["data.facts", "P.csv"])
def test_deletions_need_corrections(rules: str, sh: Shell, name: str) -> None:
    Path("P.csv").write_text("x,op,time\na,insert,1\na,delete,1\n")
    ran = sh("stream", rules, "--query", "Q", "--input", name)
    assert ran.code == 2
    assert "TL407" in ran.err
    assert "--corrections 1h" in ran.err


def test_a_resumed_stream_takes_back_what_the_end_of_the_last_run_had_closed(rules: str, sh: Shell) -> None:
    Path("one.facts").write_text("P(a)@[0,5]\nR(b)@4\n")
    Path("two.facts").write_text("P(c)@6\nR(a)@3\nP(c)@9\n")
    first = sh("stream", rules, "--query", "Q", "--input", "one.facts", "--corrections", "10", "--state", "s")
    assert first.out == "+Q(a)@[0,5]\n"
    second = sh("stream", rules, "--query", "Q", "--input", "two.facts", "--state", "s")
    assert second.out == "-Q(a)@[0,5]\n+Q(a)@[0,3)\n+Q(c)@6\n+Q(c)@9\n"


def test_a_process_killed_between_two_changes_of_one_step_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sh: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.dmtl").write_text("Q(X) :- P(X), not Off.\n")
    # The late fact changes so many answers that the process is still printing them when it is killed.
    Path("one.facts").write_text("".join(f"P(p{n})@[0,5]\n" for n in range(6000)) + "P(last)@8\n")
    Path("two.facts").write_text("P(next)@9\nOff@3\nP(next)@12\n")
    first = ("stream", "rules.dmtl", "--query", "Q", "--input", "one.facts", "--corrections", "10", "--state", "s")
    sh(*first, "--continues")
    saved = Path("s").read_bytes()
    second = ("stream", "rules.dmtl", "--query", "Q", "--input", "two.facts", "--state", "s")
    with start_command(tmp_path, *second) as running:
        assert running.stdout is not None
        before = [running.stdout.readline().decode() for _ in range(100)]
        running.kill()
        assert running.wait(60) == -signal.SIGKILL
    assert Path("s").read_bytes() == saved
    again = sh(*second).out.splitlines(keepends=True)
    assert again[:100] == before
    assert Counter(again) == Counter(
        f"{line}\n" for n in range(6000) for line in (f"-Q(p{n})@[0,5]", f"+Q(p{n})@[0,3)", f"+Q(p{n})@(3,5]")
    ) + Counter(["+Q(last)@8\n", "+Q(next)@9\n", "+Q(next)@12\n"])


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_log_goes_on_after_a_run_that_was_killed_while_it_wrote_a_line(rules: str, sh: Shell, form: str) -> None:
    Path("one.facts").write_text("P(a)@[0,5]\nR(b)@4\nP(c)@6\n")
    Path("two.facts").write_text("P(c)@7\nR(a)@3\nP(c)@9\n-R(a)@3\nP(c)@10\n")
    log = Path(f"log.{form}")
    first = ("stream", rules, "--query", "Q", "--input", "one.facts", "--corrections", "10", "--continues")
    sh(*first, "--state", "s", "-o", str(log))
    second = ("stream", rules, "--query", "Q", "--input", "two.facts", "--state", "s", "-o", str(log))
    before, state = log.read_bytes(), Path("s").read_bytes()
    assert sh(*second).code == 0
    whole = log.read_bytes()
    expected = [sh("as-of", str(log), str(clock)).out for clock in range(11)]
    assert len(set(expected)) > 4
    for cut in (len(before), len(before) + 5, len(whole) - 30, len(whole) - 1):
        log.write_bytes(whole[:cut])
        Path("s").write_bytes(state)
        assert sh(*second).code == 0
        assert [sh("as-of", str(log), str(clock)).out for clock in range(11)] == expected


def test_explain_says_which_deletion_made_an_answer_appear(rules: str, sh: Shell) -> None:
    ran = sh("explain", rules, "data.facts", "Q(a)@4")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "Q(a)@4  by Q(X) :- P(X), not Diamondminus[0,2] R(X). (line 1)",
        "├─ P(a)@4  given",
        "└─ no R(a) in [2,4]",
        "Q(a)@[0,5] was added at 9, after -R(a)@3",
    ]


def test_explain_leaves_out_what_is_deleted(rules: str, sh: Shell) -> None:
    Path("P.csv").write_text("x,op,time\na,insert,1\nb,insert,8\na,delete,1\n")
    columns = 'columns = { x = "text", time = "time", op = "text" }'
    Path("P.toml").write_text(f'[schema.P]\n{columns}\ntime = "time"\nop = "op"\n')
    Path("R.facts").write_text("R(z)@0\n")
    ran = sh("explain", rules, "P.csv", "R.facts", "Q(a)@1", "--schema", "P.toml")
    assert ran.code == 1
    assert "Q(a)@1 does not hold" in ran.out


def test_explain_does_not_miss_facts_that_were_all_deleted(rules: str, sh: Shell) -> None:
    Path("data.facts").write_text("P(a)@[0,5]\nR(a)@3\n-R(a)@3\n-S(a)@4\n")
    ran = sh("explain", rules, "data.facts", "Q(a)@4")
    assert ran.code == 0
    assert "TL112" not in ran.err
    assert "warning[TL113]: no rule reads the facts of S\n" in ran.err


def test_a_withdrawn_alert_says_so(rules: str, sh: Shell) -> None:
    ran = sh("stream", rules, "--query", "Q", "--input", "data.facts", "--corrections", "10", "--changes")
    assert ran.out.splitlines()[:4] == ["+start Q(a)@[0", "+end Q(a)@3)", "-end Q(a)@3)", "+end Q(a)@5]"]


def test_check_says_what_corrections_keep(rules: str, sh: Shell) -> None:
    ran = sh("check", rules, "--query", "Q", "--corrections", "5", "--data", "data.facts")
    assert "for corrections: the facts (at most" in ran.out


def test_corrections_shorter_than_the_delay_are_refused(rules: str, sh: Shell) -> None:
    ran = sh("stream", rules, "--query", "Q", "--input", "data.facts", "--delay", "5", "--corrections", "3")
    assert ran.code == 2
    assert "TL408" in ran.err


def test_a_state_says_what_is_kept_for_corrections(rules: str, sh: Shell) -> None:
    sh("stream", rules, "--query", "Q", "--input", "data.facts", "--corrections", "10", "--state", "one.state")
    assert sh("state", "one.state").out.splitlines()[-1] == (
        "corrections  within 10; facts: 4, answers: 3, unmatched deletions: 1"
    )
    assert json.loads(sh("state", "one.state", "--json").out)["corrections"]["length"] == "10"
