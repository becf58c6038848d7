"""`tidelog check --plan`: how the engine goes about a program, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.cli.main import run
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.run_plans import batch_plans as plans
from tidelog.timeline.interval import TimelineName


def shown(rules: str, query: str | None = None, timeline: TimelineName | None = None) -> list[str]:
    return plans(Program.parse(rules), query, timeline=timeline).splitlines()


def test_ranges_are_the_users_times() -> None:
    assert shown("Boxplus[0,1h] P(X) :- Boxminus[1/2,inf) Q(X), not Diamondplus(1,2] R(X).") == [
        "part 1: P",
        "  Boxplus[0,3600] P(X)",
        "    each Boxminus[1/2,inf) Q(X)",
        "    without Diamondplus(1,2] R(X)",
    ]


def test_a_hidden_predicate_is_shown_as_what_it_names() -> None:
    lines = shown("P(X) :- Boxminus[0,4] Diamondminus[0,2] Q(X). R(X) :- Boxplus[1,1] (A(X) Since[1,5] B(X)).")
    assert "    each Boxminus[0,4] Diamondminus[0,2] Q(X)" in lines
    assert "    each Boxplus[1,1] (A(X) Since[1,5] B(X))" in lines
    assert "    the A(X) as the left side of Since[1,5]" in lines
    assert not any("$" in line for line in lines)


def test_a_group_is_shown_as_it_was_written() -> None:
    lines = shown("P(X) :- Diamondminus[0,5] (A(X), B(X, _)). Q(X) :- A(X) or C(X), not (B(X, X), C(X)).")
    assert "    each Diamondminus[0,5] (A(X), B(X, _))" in lines
    assert "    without (B(X, X), C(X))" in lines
    assert not any("$" in line for line in lines)


def test_recursion_has_plans_for_new_facts() -> None:
    assert shown('P(X) :- Diamondminus[1,1] P(Y), E(Y,X,"a b"), X != Y.') == [
        "part 1: P (recursive)",
        "  P(X)",
        '    by 3 E(Y,X,"a b")',
        "      X != Y",
        "    the Diamondminus[1,1] P(Y)",
        "  P(X)",
        "    new Diamondminus[1,1] P(Y)",
        '    by 1,3 E(Y,X,"a b")',
        "      X != Y",
    ]


def test_constraints_and_queries() -> None:
    rules = "P :- Q.\nR :- S.\nBottom :- R, Q."
    assert "part 3: the constraint in line 3" in shown(rules)
    assert "part 1: P" in shown(rules, query="P")
    with pytest.raises(TidelogError):
        plans(Program.parse(rules), "Z")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rules.dmtl"
    path.write_text("P :- Diamondminus[0,1] Q.\n")
    assert run(["check", "--plan", str(path)]) == 0
    assert capsys.readouterr().out == "part 1: P\n  P\n    new Diamondminus[0,1] Q\n"
    assert run(["check", "--plan", "--json", str(path)]) == 2
    path.write_text("P :- not P.\n")
    assert run(["check", "--plan", str(path)]) == 2
    assert "TL301" in capsys.readouterr().err


def test_the_plan_follows_the_sizes_of_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, few, many = (tmp_path / name for name in ("rules.dmtl", "few.facts", "many.facts"))
    rules.write_text("P(X, Z) :- A(X, Y), B(Y, Z). Q(X) :- A(X, Y), B(Y, X).\n")
    few.write_text("A(a,b)@0\n")
    many.write_text("".join(f"B(b,c{i})@0\n" for i in range(20)))
    assert run(["check", "--plan", str(rules), "--query", "P", "--data", str(few), "--data", str(many)]) == 0
    small_first = capsys.readouterr().out
    few.write_text("".join(f"A(a{i},b)@0\n" for i in range(40)))
    assert run(["check", "--plan", str(rules), "--data", str(few), "--data", str(many)]) == 0
    assert "each A(X,Y)\n    by 1 B(Y,Z)" not in small_first
    assert "new B(Y,Z)\n    by 2 A(X,Y)" in small_first
    assert "each B(Y,Z)\n    by 2 A(X,Y)" in capsys.readouterr().out


def test_the_plan_of_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rules.dmtl"
    path.write_text("P(X) :- A(X), not Diamondminus[0,5] B(X).\n")
    assert run(["check", "--stream-plan", str(path)]) == 2
    assert "--query" in capsys.readouterr().err
    assert run(["check", "--stream-plan", "--query", "P", str(path)]) == 0
    out = capsys.readouterr().out
    assert "for A(X)" in out
    assert "without Diamondminus[0,5] B(X)" in out
