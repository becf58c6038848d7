"""Warnings as values: where they are found, and what pipelines refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidelog as tl
from tidelog.analysis.program_warnings import find_data_warnings, find_program_warnings
from tidelog.data.input_warnings import find_warnings
from tidelog.errors import TidelogError
from tidelog.spark.pipeline.pipeline_file import load_pipeline

PIPELINE = """
rules = "{rules}"
query = "Alarm"
checkpoint = "checkpoint"
{keys}

[sources.readings]
format = "json"
path = "readings"
schema = "room STRING, time BIGINT"
time = "time"

[facts]
Smoke = "SELECT room FROM readings"

[sinks.answers]
format = "json"
path = "answers"
"""
AWAITED = '\n[sinks.awaited]\nformat = "json"\npath = "awaited"\n'


def find_single_variables(text: str, syntax: str = "dmtl") -> list[tuple[str, int]]:
    found = tl.analysis.find_program_warnings(tl.Program.parse(text, syntax=syntax))
    return [(str(warning.message.split()[2]), warning.place.column) for warning in found if warning.place]


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        ("A(X) :- B(X, Y).", [("Y", 14)]),
        ("A(X) :- B(X, _Y), C(X, _).", []),
        ("A(X) :- B(X, Y), Y > 3.", []),
        ("A(X) :- B(Y) Since[0,1] C(X).", [("Y", 11)]),
        ("A(X) :- B(X, Y) Until[0,1] C(X, Y).", []),
        ("Boxplus[0,3] A(X) :- Diamondminus[0,2] Boxminus[0,1] B(X, Z).", [("Z", 59)]),
        ("A :- B(X, X).", []),
        ("Bottom :- B(X), C(Y).", [("X", 13), ("Y", 19)]),
        ("A(X) :- Boxminus[0,1] (count{ B(X, Y) } > 1).", []),
        ("A :- Boxminus[0,1] (C(X), count{ B(Y) } > 1).", [("X", 23)]),
    ],
)
def test_a_variable_that_occurs_once_is_found_with_its_place(rule: str, names: list[tuple[str, int]]) -> None:
    assert find_single_variables(rule) == names


@pytest.mark.parametrize(
    ("rule", "help"),
    [
        ("A(X) :- B(X), X % 2 = 0.", "`%` begins a comment; for the remainder of a division write X mod 2"),
        ("A(X) :- B(X), On % a comment\n.", "add facts of On, or correct the name"),
        ('A(X) :- B(X), startswith(X, "a").', "did you mean starts_with?"),
        ("A(X) :- B(X), length(X, 3).", "length is a function, so it stands in comparisons: V = length(X)"),
        ("A(X) :- B(X), min(X, 3, 1).", "min is a function, so it stands in comparisons: V = min(X, Y)"),
    ],
)
def test_what_was_meant_by_a_literal_without_facts_is_suggested(rule: str, help: str) -> None:
    assert [found.help for found in find_data_warnings(tl.Program.parse(rule), {"B"})] == [help]


def test_a_pattern_that_loses_a_backslash_is_found_with_its_place() -> None:
    rules = r"""
    A(X) :- B(X), matches(X, "[a-z]+\d\.\\w\"").
    N(K) :- K = count{ B(X), not matches(X, "\s") }.
    C(X) :- B(X), matches(X, "\\d\n\\.").
    """
    found = find_program_warnings(tl.Program.parse(rules))
    places = [(warning.code, warning.place.line, warning.place.column) for warning in found if warning.place]
    assert places == [("TL126", 2, 37), ("TL126", 3, 46)]
    assert found[0].message == r"the pattern loses its backslash before d: it is [a-z]+d.\w" + '"'
    assert found[0].help == r'write "[a-z]+\\d\\.\\w\""'


def test_time_variables_count_like_others() -> None:
    assert find_single_variables("A(X, T+1) :- B(X, T), C(Z, T).", "tdl") == [("Z", 25)]
    assert find_single_variables("A(X, T+1) :- B(X, T).\nEver(X) :- B(X, T).", "tdl") == [("T", 17)]
    assert find_single_variables("A(X, T+1) :- B(X, T).\nEver(X) :- B(X, _T).", "tdl") == []


def test_facts_in_the_rule_file_count_as_facts() -> None:
    program = tl.Program.parse("Hot(Y, T+1) :- Hot(X, T), Succ(X, Y).\nSucc(l1, l2).\nHot(l1, 0).", syntax="tdl")
    assert find_warnings(program, tl.Dataset()) == ()


def test_numbers_at_the_end_of_rigid_facts_are_no_warning_if_declared() -> None:
    rules = "Hot(X, T+1) :- Hot(X, T), Level(X, N), Limit(N)."
    data = tl.Dataset.parse("Hot(a,0)\nLevel(a,3)\nLimit(low)")
    found = find_warnings(tl.Program.parse(rules, syntax="tdl"), data)
    assert [(warning.code, "#temporal Level/2." in (warning.help or "")) for warning in found] == [("TL114", True)]
    assert find_warnings(tl.Program.parse("#rigid Level/2.\n" + rules, syntax="tdl"), data) == ()


def test_the_report_of_check_has_the_warnings_of_the_rules() -> None:
    report = tl.check(tl.Program.parse("A(X) :- B(X, Y)."))
    assert [warning.code for warning in report.warnings] == ["TL111"]
    assert report.to_json()["warnings"][0]["code"] == "TL111"


def test_the_query_makes_everything_temporal_that_shares_its_time() -> None:
    program = tl.Program.parse("Alarm(X, T) :- Hot(X, T), Room(X, Y), Cold(Y).", syntax="tdl")
    temporal = program.with_temporal_query("Alarm").temporal
    assert temporal is not None
    assert sorted(temporal.temporal) == [("Alarm", 1), ("Hot", 1)]
    assert sorted(temporal.rigid) == [("Cold", 1), ("Room", 2)]
    declared = tl.Program.parse("#rigid Alarm/2.\nAlarm(X, Y) :- Next(X, Y).", syntax="tdl")
    assert declared.with_temporal_query("Alarm") is declared


def test_a_query_that_cannot_be_temporal_is_refused_with_the_place() -> None:
    program = tl.Program.parse("Alarm(X, T) :- Hot(X, T), Limit(T, X).", syntax="tdl")
    with pytest.raises(TidelogError) as caught:
        program.with_temporal_query("Alarm")
    assert [found.code for found in caught.value.diagnostics] == ["TL108"]
    assert caught.value.diagnostics[0].place is not None


def load(folder: Path, rules: str, keys: str = "", more: str = "", name: str = "rules.dmtl") -> tuple[list[str], bool]:
    """Load a pipeline; return the codes of its warnings or errors, and whether it was refused."""
    (folder / name).write_text(rules)
    (folder / "pipeline.toml").write_text(PIPELINE.format(rules=name, keys=keys) + more)
    try:
        return [warning.code for warning in load_pipeline(folder / "pipeline.toml").warnings], False
    except TidelogError as problem:
        return [found.code for found in problem.diagnostics], True


@pytest.mark.parametrize(
    ("rules", "keys", "outcome"),
    [
        ("Alarm(X) :- Smoke(X).", "", ([], False)),
        ("Alarm(X) :- Smoke(X), not Of(X).", "", (["TL112"], True)),
        ("Alarm(X) :- Smoke(X), not Of(X).", "strict = false", (["TL112"], False)),
        ("Alarm(X) :- Smoke(X), Smoke(Y).", "", (["TL111"], False)),
        ("Alarm(X) :- Smoke(X), Smoke(Y).", "strict = true", (["TL111"], True)),
        ("Alarm(X) :- Smoke(X).\nOther(X) :- Nothing(X).", "", ([], False)),
    ],
)
def test_a_pipeline_refuses_predicates_without_facts(
    rules: str, keys: str, outcome: tuple[list[str], bool], tmp_path: Path
) -> None:
    assert load(tmp_path, rules, keys) == outcome


def test_the_command_line_says_how_strict_a_pipeline_is(tmp_path: Path) -> None:
    (tmp_path / "rules.dmtl").write_text("Alarm(X) :- Smoke(X), not Of(X), Smoke(Y).")
    (tmp_path / "pipeline.toml").write_text(PIPELINE.format(rules="rules.dmtl", keys=""))
    found = load_pipeline(tmp_path / "pipeline.toml", strict=False).warnings
    assert [warning.code for warning in found] == ["TL111", "TL112"]
    with pytest.raises(TidelogError) as caught:
        load_pipeline(tmp_path / "pipeline.toml", strict=True)
    assert {warning.code for warning in caught.value.diagnostics} == {"TL111", "TL112"}


def test_a_pipeline_over_temporal_datalog_needs_times_unless_answers_are_awaited(tmp_path: Path) -> None:
    rules = "Alarm(X, T) :- Smoke(X, T)."
    assert load(tmp_path, rules, name="rules.tdl") == (["TL115"], True)
    assert load(tmp_path, rules, more=AWAITED, name="rules.tdl") == ([], False)
