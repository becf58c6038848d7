"""What the language reads: rules, operators in all their spellings, MeTeoR's files, facts; and its printed form."""

from __future__ import annotations

import difflib
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from tidelog.language.fact_text import format_fact, format_iso, format_value, parse_fact, parse_time
from tidelog.language.printer import format_program
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Bottom,
    Comparison,
    Constant,
    Fact,
    Literal,
    Rule,
    Top,
    Unary,
    UnaryOp,
    Value,
    Variable,
)
from tidelog.language.wording import suggest
from tidelog.timeline.interval import INF, Interval

A, B, C = Atom("A"), Atom("B"), Atom("C")
X = Variable("X")


def rules(text: str) -> tuple[Rule, ...]:
    return Program.parse(text).rules


def printed(text: str) -> str:
    """The canonical form of a text, without the final line break."""
    program = Program.parse(text)
    assert Program.parse(str(program)).rules == program.rules
    return str(program).removesuffix("\n")


def span(lo: int, hi: float, left: bool = True, right: bool = True) -> Interval:
    return Interval(Fraction(lo), hi if hi == INF else Fraction(hi), left, right)


def test_a_rule_becomes_a_tree() -> None:
    (rule,) = rules("Boxplus[0,3] Monit(X, z) :- Flag(X), not Diamondminus(1,2] Down(X), X != 3.")
    assert rule == Rule(
        Unary(UnaryOp.BOX_PLUS, span(0, 3), Atom("Monit", (X, Constant("z")))),
        (
            Literal(Atom("Flag", (X,))),
            Literal(Unary(UnaryOp.DIAMOND_MINUS, span(1, 2, left=False), Atom("Down", (X,))), negated=True),
            Comparison("!=", X, Constant(Fraction(3))),
        ),
    )


def test_rules_keep_their_text_and_place() -> None:
    first, second = rules("% header\nA :- B.\n  B(X)\n    :- C(X), % why\n  D(X).".replace("A :- B.", "A :- E."))
    assert (first.text, str(first.place)) == ("A :- E.", "<text>:2:1")
    assert second.text.startswith("B(X)")
    assert second.text.endswith("D(X).")
    assert second.place is not None
    assert second.place.line == 3


@pytest.mark.parametrize(
    "text",
    [
        "A :- B. C :- D.",
        "A :- B\nC :- D",
        "A:-B.C:-D",
        "A\n:-\nB\nC\n:-\nD",
        "A :- B % one rule\n\n# and another\nC :- D",
        "\r\nA :- B\r\nC :- D\r\n",
        "  A :- B\n  C :- D",
    ],
)
def test_rules_end_with_a_dot_or_where_the_next_begins(text: str) -> None:
    assert printed(text) == "A :- B.\nC :- D."


@pytest.mark.parametrize(
    "text",
    [
        "A :- B,\nC",
        "A :- B\n, C",
        "A :-\nB, C.",
        "A\n  :- B,\n     C.",
    ],
)
def test_a_rule_may_stretch_over_lines(text: str) -> None:
    assert printed(text) == "A :- B, C."


def test_operators_and_ranges_may_stretch_over_lines() -> None:
    text = "P(\nX\n) :- Diamondminus\n[0,\n1]\nQ(X), A\nSince(0,1)\nR(X), Boxminus 5\nS(X)"
    expected = "P(X) :- Diamondminus[0,1] Q(X), A Since(0,1) R(X), Boxminus[5,5] S(X)."
    assert printed(text) == expected


def test_rules_without_a_body_hold_at_all_times() -> None:
    assert printed("P(a).Q(b)\nR\nS(c) :- R") == "P(a).\nQ(b).\nR.\nS(c) :- R."


def test_the_final_dot_is_not_a_decimal_point() -> None:
    assert printed("P(X) :- Q(X), X > 5.R(X) :- Q(X), X < 0.5.") == "P(X) :- Q(X), X > 5.\nR(X) :- Q(X), X < 0.5."


def test_comments_end_with_their_line_and_leave_quotes_alone() -> None:
    assert printed('P("50% #1") :- Q. % P(b) :- Q.\n# R :- S') == 'P("50% #1") :- Q.'


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Diamondminus[0,5] A", "Diamondminus[0,5] A"),
        ("DIAMONDMINUS[0,5]A", "Diamondminus[0,5] A"),
        ("boxMinus(0,5)A", "Boxminus(0,5) A"),
        ("◇⁻[0,5] A", "Diamondminus[0,5] A"),
        ("⊟[0,5] A", "Boxminus[0,5] A"),
        ("◇⁺ 5 A", "Diamondplus[5,5] A"),
        ("⊞[0,inf) A", "Boxplus[0,inf) A"),
        ("Boxplus[0,+inf) A", "Boxplus[0,inf) A"),
        ("Boxplus[0,inf] A", "Boxplus[0,inf) A"),
        ("Diamondminus[5] A", "Diamondminus[5,5] A"),
        ("Diamondminus 0.5 A", "Diamondminus[1/2,1/2] A"),
        ("Diamondminus[1/3,2/4] A", "Diamondminus[1/3,1/2] A"),
        ("Diamondminus[500ms,1.5s] A", "Diamondminus[1/2,3/2] A"),
        ("Diamondminus[10min,2h] A", "Diamondminus[600,7200] A"),
        ("Diamondminus[1d,1w] A", "Diamondminus[86400,604800] A"),
        ("Diamondminus 5min A", "Diamondminus[300,300] A"),
        ("Boxminus[0,4] ◇⁻[0,2] A", "Boxminus[0,4] Diamondminus[0,2] A"),
        ("A Since[0,1] B", "A Since[0,1] B"),
        ("A SINCE[0,1] B", "A Since[0,1] B"),
        ("A until(0,1] B", "A Until(0,1] B"),
        ("Boxminus[0,1] A Since[0,2] Diamondplus[0,1] B", "Boxminus[0,1] A Since[0,2] Diamondplus[0,1] B"),
        ("(A Since[0,1] B) Since[0,2] C", "(A Since[0,1] B) Since[0,2] C"),
        ("A Since[0,1] (B Until[0,2] C)", "A Since[0,1] (B Until[0,2] C)"),
        ("Boxminus[0,1] (A Since[0,1] B)", "Boxminus[0,1] (A Since[0,1] B)"),
        ("((A))", "A"),
        ("Top Since[1,5] B", "Top Since[1,5] B"),
        ("not bottom", "not Bottom"),
        ("not A Since[0,1] B", "not A Since[0,1] B"),
        ("NOT A", "not A"),
        ("not (A)", "not A"),
    ],
)
def test_operators_have_many_spellings(written: str, meant: str) -> None:
    assert printed(f"H :- {written}") == f"H :- {meant}."


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("SOMETIME[-2,-1] A", "Diamondminus[1,2] A"),
        ("SOMETIME(-2,-1] A", "Diamondminus[1,2) A"),
        ("SOMETIME[1,2) A", "Diamondplus[1,2) A"),
        ("ALWAYS[-1,0]A", "Boxminus[0,1] A"),
        ("ALWAYS(-inf,-1]A", "Boxminus[1,inf) A"),
        ("ALWAYS[0,+inf)A", "Boxplus[0,inf) A"),
        ("SOMETIME -1 A", "Diamondminus[1,1] A"),
        ("A UNTIL[-5,-1] B", "A Since[1,5] B"),
        ("A UNTIL(-5,0] B", "A Since[0,5) B"),
        ("A UNTIL[1,5] B", "A Until[1,5] B"),
        ("A||B,C", "A, not B, not C"),
        ("A || Diamondminus[0,1] B", "A, not Diamondminus[0,1] B"),
        ("||B", "not B"),
    ],
)
def test_meteors_words_mean_the_same_operators(written: str, meant: str) -> None:
    assert printed(f"H:-{written}") == f"H :- {meant}."


def test_a_meteor_file_loads_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "lubm.txt"
    path.write_text(
        "ALWAYS[0,1]Alive(X):-Alive(X)\n"
        "Immortal(X):-ALWAYS[0,+inf)Alive(X)\n"
        "a1:Scientist(X):-Boxminus[1,1]a1:Candidate(X), Diamondminus [ 1 , 2 ] a1:doctoralDegreeFrom( X , Y )\n"
        "\n"
        "a1:Cand(X):-a1:Scientist(X)||a1:Dead(X)\n"
    )
    assert str(Program.load(path)) == (
        "Boxplus[0,1] Alive(X) :- Alive(X).\n"
        "Immortal(X) :- Boxplus[0,inf) Alive(X).\n"
        "a1:Scientist(X) :- Boxminus[1,1] a1:Candidate(X), Diamondminus[1,2] a1:doctoralDegreeFrom(X, Y).\n"
        "a1:Cand(X) :- a1:Scientist(X), not a1:Dead(X).\n"
    )


@pytest.mark.parametrize(
    "rule",
    [
        "Box(X) :- Always(X, Y), Since(X).",
        "Always :- Diamondminus, not Since.",
        "P(X) :- Top(X), Bottom(X, X).",
        "P(top, not, since, inf, X) :- Q(X), X != top.",
        "Diamondminus(X) :- Diamondminus[0,1] Diamondminus(X).",
    ],
)
def test_names_of_operators_are_names_where_no_range_follows(rule: str) -> None:
    assert str(Program.parse(rule)).replace('"not"', "not") == rule + "\n"


def test_terms_are_variables_names_numbers_and_strings() -> None:
    (rule,) = rules('P :- Q(X, _y, abc, "abc", "Abc", 1, 1.0, -1/2, "1", "a\\"b\\\\\\n")')
    (literal,) = rule.body
    assert isinstance(literal, Literal)
    assert isinstance(literal.formula, Atom)
    values: tuple[Value, ...] = ("abc", "abc", "Abc", Fraction(1), Fraction(1), Fraction(-1, 2), "1", 'a"b\\\n')
    assert literal.formula.args == (X, Variable("_y"), *map(Constant, values))
    assert str(Program.parse(printed(str(Program((rule,), "rational"))))).startswith(
        'P :- Q(X, _y, abc, abc, "Abc", 1, 1, -0.5, "1"'
    )


def test_every_underscore_is_a_variable_of_its_own() -> None:
    (rule,) = rules("P(_1) :- Q(_, _1, _), R(_).")
    names = [arg.name for lit in rule.body for arg in lit.formula.args]  # type: ignore[union-attr]
    assert names == ["_2", "_1", "_3", "_4"]
    assert str(Program((rule,), "rational")) == "P(_1) :- Q(_, _1, _), R(_).\n"


def test_comparisons_may_be_negated_and_spelt_with_two_signs() -> None:
    assert printed("P :- Q(X,Y), X == Y, not X < Y, not X != 3, X <-1") == "P :- Q(X, Y), X = Y, X >= Y, X = 3, X < -1."


def test_a_constraint_needs_no_head() -> None:
    assert rules(":- A, B. :- C.")[0].head == Bottom()
    assert printed(":- A.") == "Bottom :- A."


def test_top_and_bottom_are_formulas() -> None:
    (rule,) = rules("Boxminus[0,1] BOTTOM :- top Since[0,1] A")
    assert rule.head == Unary(UnaryOp.BOX_MINUS, span(0, 1), Bottom())
    assert rule.body == (Literal(Binary(BinaryOp.SINCE, span(0, 1), Top(), A)),)


def test_empty_brackets_are_no_arguments() -> None:
    assert printed("P() :- Q()") == "P :- Q."


def test_a_program_knows_its_predicates() -> None:
    assert Program.parse("P(X) :- Q(X, Y), Alarm.").predicates == {"P": 1, "Q": 2, "Alarm": 0}


def test_an_empty_text_is_an_empty_program() -> None:
    assert rules("") == rules("% nothing\n\n") == ()


def test_brackets_may_nest_deeply() -> None:
    assert printed("A :- " + "(" * 5000 + "B" + ")" * 5000) == "A :- B."


def test_two_hundred_operators_are_read() -> None:
    assert rules("A :- " + "Diamondminus[0,1] " * 200 + "B")


WHOLE = strategies.Features(backward=True, unbounded=True, negation=True, constraints=True, denominators=(1, 2, 3))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(strategies.cases(WHOLE))
def test_a_printed_program_reads_back_as_the_same_tree(case: strategies.Case) -> None:
    assert Program.parse(format_program(case.rules)).rules == case.rules


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_any_string_can_be_a_constant(text: str) -> None:
    rule = Rule(Atom("P", (Constant(text),)))
    assert Program.parse(format_program((rule,))).rules == (rule,)
    fact = Fact("P", (text,), Interval.point(Fraction(1)))
    assert parse_fact(format_fact(fact)) == (fact, False)
    assert "\n" not in format_fact(fact)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("P(a,b)@[0,3)", Fact("P", ("a", "b"), span(0, 3, right=False))),
        ("P(a)@7", Fact("P", ("a",), span(7, 7))),
        ("P(a)@7.", Fact("P", ("a",), span(7, 7))),
        ("P(a)@[7]", Fact("P", ("a",), span(7, 7))),
        ("  P ( ID0 , X ) @ ( 0 , 2 ] .  % why", Fact("P", ("ID0", "X"), span(0, 2, left=False))),
        ("Alarm@(-inf,2]", Fact("Alarm", (), Interval(-INF, Fraction(2), False, True))),
        ("Alarm@[-inf,+inf]", Fact("Alarm", (), Interval.always())),
        (
            'a1:P(1.0,-1/2,"1","x, y)@")@0.5',
            Fact("a1:P", (Fraction(1), Fraction(-1, 2), "1", "x, y)@"), Interval.point(Fraction(1, 2))),
        ),
        ("P(a-b,http://x/y,1e5)", Fact("P", ("a-b", "http://x/y", "1e5"), Interval.always())),
        ("Alarm", Fact("Alarm", (), Interval.always())),
        ("Alarm.", Fact("Alarm", (), Interval.always())),
        ("P()@1 # why", Fact("P", (), span(1, 1))),
        ("P@2min", Fact("P", (), span(120, 120))),
    ],
)
def test_facts_are_read(text: str, fact: Fact) -> None:
    assert parse_fact(text) == (fact, False)
    assert parse_fact(format_fact(fact)) == (fact, False)


def test_facts_may_have_dates() -> None:
    fact, dated = parse_fact("P(a)@[2026-01-31T10:00:00Z,2026-02-01)")
    assert dated
    assert fact.interval == Interval(Fraction(1769853600), Fraction(1769904000), True, False)
    assert format_fact(fact, iso=True) == "P(a)@[2026-01-31T10:00:00Z,2026-02-01T00:00:00Z)"
    assert format_fact(fact) == "P(a)@[1769853600,1769904000)"
    assert (
        format_fact(Fact("P", (), Interval(-INF, Fraction(0), False, True)), iso=True)
        == "P@(-inf,1970-01-01T00:00:00Z]"
    )


def test_facts_of_temporal_datalog_end_with_their_time() -> None:
    temporal = frozenset({("Brst", 2), ("Alarm", 0)})
    assert parse_fact("Brst(a, b, 3).", temporal=temporal)[0] == Fact("Brst", ("a", "b"), span(3, 3))
    assert parse_fact("Alarm(4)", temporal=temporal)[0] == Fact("Alarm", (), span(4, 4))
    assert parse_fact("Brst(a,b)@3", temporal=temporal)[0] == Fact("Brst", ("a", "b"), span(3, 3))
    assert parse_fact("Succ(a,1)", temporal=temporal)[0] == Fact("Succ", ("a", Fraction(1)), Interval.always())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86400),
        ("1970-01-01T00:00:01", 1),
        ("1970-01-01T00:01Z", 60),
        ("1970-01-01t01:00:00+01:00", 0),
        ("1970-01-01 00:00:00-0030", 1800),
        ("1969-12-31T23:59:59.5Z", "-1/2"),
        ("2024-02-29T12:00:00.000001Z", "1709208000000001/1000000"),
    ],
)
def test_dates_are_seconds_since_1970(text: str, seconds: int | str) -> None:
    assert parse_time(text) == (Fraction(seconds), True)


@pytest.mark.slow
@given(st.fractions(min_value=-(10**12), max_value=10**12, max_denominator=1000))
def test_every_time_reads_back_from_its_date(time: Fraction) -> None:
    assert parse_time(format_iso(time))[0] == time


def test_values_are_quoted_where_a_fact_needs_it() -> None:
    values: list[Value] = ["abc", "ID0", "_x", "1", "a b", "", "é", Fraction(3), Fraction(1, 2)]
    assert [*map(format_value, values)] == ["abc", "ID0", "_x", '"1"', '"a b"', '""', '"é"', "3", "0.5"]


def test_close_names_are_suggested() -> None:
    assert suggest("Sigal", ["Signal", "Flag"]) == "Signal"
    assert suggest("signal", ["Signal", "Flag"]) == "Signal"
    assert suggest("Weather", ["Signal", "Flag"]) is None


def test_suggestions_among_many_names_are_those_of_difflib() -> None:
    rng = Random(0)
    found = 0
    for _ in range(40):
        names = list({"".join(rng.choices("abxé_01", k=rng.randint(0, 7))) for _ in range(400)})
        meant, cutoff = "".join(rng.choices("abxé_2", k=rng.randint(1, 7))), rng.choice([0.5, 0.6, 0.75, 0.9])
        close = difflib.get_close_matches(meant, [name for name in names if name != meant], n=1, cutoff=cutoff)
        assert suggest(meant, names, cutoff) == (close[0] if close else None)
        found += bool(close)
    assert 5 < found < 40


def test_a_program_from_another_process_is_the_same_key() -> None:
    text = "Hot(X) :- Boxminus[0,2] High(X)."
    program = Program.parse(text)
    assert {program: 1}[Program.parse(text)] == 1
    look = (
        "import pickle, sys; from tidelog.language.program import Program; "
        f"print({{pickle.loads(sys.stdin.buffer.read()): 'found'}}.get(Program.parse({text!r})))"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, "-c", look], input=pickle.dumps(program), env=environment, stdout=subprocess.PIPE
        )
        assert run.stdout.split() == [b"found"]
