"""The command line: what is printed, on which stream, with which exit code."""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from rich.console import Console

from locations import ROOT, SOURCES
from shell import CommandResult, Shell, drop_compilation_notice, start_command
from tidelog.cli.demo import JobMonitor
from tidelog.cli.main import cli

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.fixture
def rules(sh: Shell) -> str:
    return sh.write("rules.dmtl", "A(X) :- Diamondminus[0,2] B(X).\nC(X) :- Boxminus[0,1] A(X).\n")


@pytest.fixture
def data(sh: Shell) -> str:
    return sh.write("data.facts", "B(a)@5\nB(b)@[0,1)\nB(a)@7\n")


MODEL = "A(a)@[5,9]\nA(b)@[0,3)\nC(a)@[6,9]\nC(b)@[1,3)\n"


# materialise


@pytest.mark.parametrize("command", ["materialise", "materialize"])
def test_materialise_prints_sorted_facts(sh: Shell, rules: str, data: str, command: str) -> None:
    assert sh(command, rules, data) == CommandResult(0, MODEL, "")


def test_materialise_reads_rules_or_data_from_standard_input(sh: Shell, rules: str, data: str) -> None:
    assert sh("materialise", rules, "-", stdin=Path(data).read_text()).out == MODEL
    assert sh("materialise", "-", data, stdin=Path(rules).read_text()).out == MODEL


def test_standard_input_can_be_read_once(sh: Shell) -> None:
    ran = sh("materialise", "-", "-")
    assert (ran.code, ran.out) == (2, "")
    assert "only once" in ran.err


def test_materialise_takes_several_data_files(sh: Shell, rules: str, data: str) -> None:
    more = sh.write("more.facts", "B(c)@0\n")
    assert "A(c)@[0,2]\n" in sh("materialise", rules, data, more).out


def test_queries_choose_predicates(sh: Shell, rules: str, data: str) -> None:
    assert sh("materialise", rules, data, "--query", "C").out == "C(a)@[6,9]\nC(b)@[1,3)\n"
    assert sh("materialise", rules, data, "--query", "C", "--query", "B").out == (
        "B(a)@5\nB(a)@7\nB(b)@[0,1)\nC(a)@[6,9]\nC(b)@[1,3)\n"
    )


def test_a_query_may_ask_for_a_predicate_that_only_the_data_has(sh: Shell, rules: str) -> None:
    data = sh.write("other.facts", "Other(x)@3\n")
    assert sh("materialise", rules, data, "--query", "Other").out == "Other(x)@3\n"


def test_an_unknown_query_is_an_error_with_a_suggestion(sh: Shell, data: str) -> None:
    rules = sh.write("long.dmtl", "Alarm(X) :- B(X).")
    ran = sh("materialise", rules, data, "--query", "Alrm")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean Alarm?" in ran.err


@pytest.mark.parametrize(
    "between, expected",
    [
        ("6,8", "A(a)@[6,8]\nC(a)@[6,8]\n"),
        ("-inf,1", "A(b)@[0,1]\nC(b)@1\n"),
        ("8,inf", "A(a)@[8,9]\nC(a)@[8,9]\n"),
        ("5/2, 2.5", "A(b)@5/2\nC(b)@5/2\n"),
        ("-20,-10", ""),
        ("1970-01-01T00:00:08Z,1970-01-02", "A(a)@[8,9]\nC(a)@[8,9]\n"),
    ],
)
def test_between_clips(sh: Shell, rules: str, data: str, between: str, expected: str) -> None:
    assert sh("materialise", rules, data, "--between", between) == CommandResult(0, expected, "")


@pytest.mark.parametrize("between", ["5", "1,2,3", "a,b", "5,3", "", "1,"])
def test_between_says_what_it_takes(sh: Shell, rules: str, data: str, between: str) -> None:
    ran = sh("materialise", rules, data, "--between", between)
    assert (ran.code, ran.out) == (2, "")
    assert "--between" in ran.err


def test_json_lines(sh: Shell, rules: str, data: str) -> None:
    ran = sh("materialise", rules, data, "--query", "C", "--format", "jsonl")
    assert [json.loads(line) for line in ran.out.splitlines()] == [
        {"fact": "C(a)", "start": "6", "end": "9", "closed": "both", "predicate": "C", "args": ["a"]},
        {"fact": "C(b)", "start": "1", "end": "3", "closed": "left", "predicate": "C", "args": ["b"]},
    ]
    assert sh("materialise", rules, data, "--query", "C", "--json").out == ran.out


def test_dates_come_back_as_dates(sh: Shell, rules: str) -> None:
    data = sh.write("dates.facts", "B(a)@2026-01-31T10:00:00Z\n")
    assert sh("materialise", rules, data, "--query", "A").out == "A(a)@[2026-01-31T10:00:00Z,2026-01-31T10:00:02Z]\n"
    ran = sh("materialise", rules, data, "--query", "A", "--time", "number")
    assert ran.out == "A(a)@[1769853600,1769853602]\n"


def test_numbers_can_print_as_dates(sh: Shell, rules: str, data: str) -> None:
    ran = sh("materialise", rules, data, "--query", "A", "--between", "5,6", "--time", "iso")
    assert ran.out == "A(a)@[1970-01-01T00:00:05Z,1970-01-01T00:00:06Z]\n"


def test_the_integer_timeline_is_a_choice(sh: Shell) -> None:
    rules = sh.write("join.dmtl", "P :- Q.")
    data = sh.write("join.facts", "Q@[0,1]\nQ@[2,3]\n")
    assert sh("materialise", rules, data).out == "P@[0,1]\nP@[2,3]\n"
    assert sh("materialise", rules, data, "--timeline", "integer").out == "P@[0,3]\n"


def test_what_repeats_follows_the_facts(sh: Shell) -> None:
    rules = sh.write("due.dmtl", "Due(X) :- Diamondminus[3,3] Due(X).")
    data = sh.write("due.facts", "Due(a)@1\n")
    ran = sh("materialise", rules, data)
    assert ran.code == 0
    assert "% repeats every 3 from 1: Due(a)@1" in ran.out.splitlines()


def test_a_violated_constraint_is_named(sh: Shell) -> None:
    rules = sh.write("bad.dmtl", "A(X) :- B(X).\nBottom :- A(X), Diamondminus[0,1] Off(X).\n")
    data = sh.write("bad.facts", "B(a)@5\nOff(a)@4\n")
    ran = sh("materialise", rules, data)
    assert (ran.code, ran.out) == (2, "")
    assert "bad.dmtl:2" in ran.err
    assert "5" in ran.err


def test_negation_through_a_cycle_is_refused(sh: Shell) -> None:
    rules = sh.write("win.dmtl", "Win(X) :- Move(X, Y), not Win(Y).")
    data = sh.write("win.facts", "Move(a,b)@0\n")
    ran = sh("materialise", rules, data)
    assert (ran.code, ran.out) == (2, "")
    assert "Win -> not Win" in ran.err
    assert "tidelog stable" in ran.err


# entails


@pytest.mark.parametrize(
    "fact, answer, code",
    [("A(a)@[5,9]", "yes", 0), ("A(a)@6.5", "yes", 0), ("A(a)@[5,9.5]", "no", 1), ("A(zoe)@5", "no", 1)],
)
def test_entails(sh: Shell, rules: str, data: str, fact: str, answer: str, code: int) -> None:
    assert sh("entails", rules, data, fact) == CommandResult(code, f"{answer}\n", "")


def test_entails_far_away(sh: Shell) -> None:
    rules = sh.write("step.dmtl", "A :- Diamondminus[3,3] A.")
    data = sh.write("step.facts", "A@0\n")
    assert sh("entails", rules, data, "A@3000000000").out == "yes\n"
    assert sh("entails", rules, data, "A@3000000001").out == "no\n"


def test_entails_as_json(sh: Shell, rules: str, data: str) -> None:
    ran = sh("entails", rules, data, "A(a)@5", "--json")
    assert json.loads(ran.out) == {"fact": "A(a)@5", "answer": "yes"}


@pytest.mark.parametrize("fact", ["A(a", "A(a)@[5,3]", "A(a)@", ""])
def test_entails_names_what_is_wrong_with_the_fact(sh: Shell, rules: str, data: str, fact: str) -> None:
    ran = sh("entails", rules, data, fact)
    assert (ran.code, ran.out) == (2, "")
    assert "error[TL2" in ran.err


# check, fmt, demo


def test_check_as_text_and_json(sh: Shell, rules: str) -> None:
    ran = sh("check", rules)
    assert ran.code == 0
    assert "forward-propagating, bounded, non-punctual, stratified" in ran.out
    shown = json.loads(sh("check", rules, "--json").out)
    assert shown["fragments"] == ["forward-propagating", "bounded", "non-punctual", "stratified"]
    assert shown["retention"] == {"A": "1", "B": "2"}


def test_check_reports_an_unstratified_program(sh: Shell) -> None:
    ran = sh("check", "-", "--json", stdin="Win(X) :- Move(X, Y), not Win(Y).")
    assert ran.code == 0
    assert "Win -> not Win" in json.loads(ran.out)["problems"][0]["message"]


def test_check_shows_all_mistakes_at_once(sh: Shell) -> None:
    rules = sh.write("wrong.dmtl", "A(X) :- not B(X).\nC :- Boxminus[3,1] D.\nE :- Diamonminus[0,1] F.\n")
    ran = sh("check", rules)
    assert (ran.code, ran.out) == (2, "")
    for line in (1, 2, 3):
        assert f"wrong.dmtl:{line}:" in ran.err
    assert "Diamondminus" in ran.err


def test_fmt_prints_the_standard_form_and_is_stable(sh: Shell) -> None:
    first = sh("fmt", "-", stdin="A(X):-SOMETIME[-2,0]B(X),not C(X)  % why\n")
    assert first == CommandResult(0, "A(X) :- Diamondminus[0,2] B(X), not C(X).  % why\n", "")
    assert sh("fmt", "-", stdin=first.out) == first


def test_demo_runs_with_nothing_to_configure(sh: Shell) -> None:
    ran = sh("demo", "--local", "--vehicles", "12", "--seconds", "90")
    assert (ran.code, ran.err) == (0, "")
    assert "short stops" in ran.out


def test_the_demo_shows_answers_as_they_appear(tmp_path: Path) -> None:
    shown = Console(file=io.StringIO(), width=200)
    monitor = JobMonitor(shown, tmp_path)
    jam = {"arg1": "r0", "start": "2026-01-31T10:00:49Z", "end": "2026-01-31T10:01:00Z", "closed": "left"}
    batch = {"batch": 1, "facts_in": 700, "held": {"Halt": 30, "On": 4}, "watermark": "2026-01-31T10:01:00Z"}

    def job() -> int:
        (tmp_path / "run" / "jams" / "batch=1").mkdir(parents=True)
        (tmp_path / "run" / "jams" / "batch=1" / "part.json").write_text(json.dumps(jam) + "\n")
        (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(batch) + "\n")
        return 7

    assert monitor.follow(job) == 7
    assert isinstance(shown.file, io.StringIO)
    assert shown.file.getvalue() == (
        "  answer: Jam(r0)@[49,60)\nbatch 1: 700 facts in, 34 held, answered up to 2026-01-31T10:01:00Z\n"
    )
    assert (monitor.facts, len(monitor.jams)) == (700, 1)


# Failing well


@pytest.mark.parametrize("command", ["check", "fmt"])
def test_a_missing_rule_file(sh: Shell, command: str) -> None:
    ran = sh(command, "nowhere.dmtl")
    assert (ran.code, ran.out) == (2, "")
    assert "nowhere.dmtl" in ran.err


def test_a_missing_data_file(sh: Shell, rules: str) -> None:
    ran = sh("materialise", rules, "nowhere.facts")
    assert (ran.code, ran.out) == (2, "")
    assert "nowhere.facts" in ran.err


def test_a_folder_is_not_a_file(sh: Shell, rules: str) -> None:
    for args in (("check", "."), ("materialise", rules, ".")):
        ran = sh(*args)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.count("\n") <= 3


def test_bad_facts_are_named_by_line(sh: Shell, rules: str) -> None:
    data = sh.write("bad.facts", "B(a)@5\nB(a)@[3,1]\nB(a@4\n")
    ran = sh("materialise", rules, data)
    assert (ran.code, ran.out) == (2, "")
    assert "bad.facts:2:" in ran.err
    assert "bad.facts:3:" in ran.err


@pytest.mark.parametrize(
    "args",
    [(), ("materialise",), ("materialise", "rules.dmtl"), ("check", "--no-such-option"), ("nonsense",), ("--bad",)],
)
def test_usage_errors_end_with_2(sh: Shell, args: tuple[str, ...]) -> None:
    ran = sh(*args)
    assert ran.code == 2
    assert "Traceback" not in ran.err


COMMANDS = cli.list_commands(click.Context(cli))


def test_every_module_with_a_command_is_listed() -> None:
    with_commands = [file.stem for file in (SOURCES / "cli").glob("*.py") if "@click.command(" in file.read_text()]
    assert sorted(name.replace("_", "-") for name in with_commands) == COMMANDS


def test_a_misspelt_command_gets_a_suggestion(sh: Shell) -> None:
    assert "did you mean materialise?" in sh("materialse").err


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_as_they_were_written(sh: Shell, name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command
    assert command.help
    shown = sh(name, "--help").out
    assert "\b" not in shown
    example = inspect.cleandoc(command.help).partition("Example:\n")[2]
    lines = [line for line in example.splitlines() if line.strip()]
    assert lines
    assert all(re.match("  [^ ]", line) for line in lines), "the example holds a line break: write \\\\n"
    assert "\n".join(f"  {line}" for line in lines) in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_that_works(sh: Shell, name: str) -> None:
    ran = sh(name, "--help")
    assert ran.code == 0
    assert "Example:" in ran.out
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, click.Command)
    assert command.help
    example = command.help.partition("Example:\n")[2]
    stub = f'tidelog() {{ "{sys.executable}" -c "from tidelog.cli.main import main; main()" "$@"; }}'
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    script = f"set -e\n{stub}\n{example}"
    done = subprocess.run(["sh", "-c", script], cwd=sh.folder, env=env, capture_output=True, timeout=600)
    assert (done.returncode, drop_compilation_notice(done.stderr)) == (0, b"")
    assert done.stdout


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(sh: Shell, rules: str) -> None:
    data = sh.write("many.facts", "".join(f"B(x{number})@0\n" for number in range(20_000)))
    process = start_command(sh.folder, "materialise", rules, data)
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert drop_compilation_notice(process.stderr.read()) == b""
    assert process.wait(60) == 141
    process.stderr.close()


@pytest.mark.slow
def test_an_interrupt_is_quiet(sh: Shell) -> None:
    process = start_command(sh.folder, "check", "-")
    assert process.stdin
    # The command is reading once it has taken the first of what is more than a pipe holds.
    process.stdin.write(b"% waiting\n" * 20_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"")


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "tidelog", "--version"]  # python -m tidelog
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tidelog ")
