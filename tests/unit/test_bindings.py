"""Which variables of rules with numbers are bound, and what is said of those that are not."""

from __future__ import annotations

import pytest

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.bindings import (
    bound_anywhere,
    bound_outside,
    group_variables,
    outer_variables,
    rule_aggregates,
)
from tidelog.language.parser import parse_rules
from tidelog.language.program import Program
from tidelog.language.syntax import Rule


def read_rule(text: str) -> Rule:
    rules, problems = parse_rules(text, "test")
    assert not problems
    return rules[0]


def errors(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(TidelogError) as caught:
        Program.parse(text)
    return caught.value.diagnostics


@pytest.mark.parametrize(
    ("text", "outer", "groups"),
    [
        ("Queue(R, N) :- N = count{ Waiting(X), On(X, R) }.", "R N", ["R"]),
        ("Over(C) :- Card(C), sum{ A : Open(C, Id, A) } > 1000.", "C", ["C"]),
        ("Over(C) :- Card(C), sum{ A : Open(C, _, A) } > L, Limit(L).", "C L", ["C"]),
        ("P(X) :- Q(X), N = count{ R(Y) }, M = count{ R(Y), S(X, N, Y) }, M > N.", "X N M", ["", "X N"]),
        ("P(X, count{ R(X, Y) }) :- Q(X).", "X $1", ["X"]),
        ("P(A) :- Q(A), sum{ A * B : R(B) } > 3.", "A", ["A"]),
    ],
)
def test_group_variables_also_occur_outside_all_braces(text: str, outer: str, groups: list[str]) -> None:
    rule = read_rule(text)
    assert {v.name for v in outer_variables(rule)} == set(outer.split())
    assert [[v.name for v in group_variables(a, rule)] for a in rule_aggregates(rule)] == [g.split() for g in groups]


@pytest.mark.parametrize(
    ("text", "outside", "anywhere"),
    [
        ("Queue(R, N) :- N = count{ Waiting(X), On(X, R) }.", "", "R N"),
        ("Over(C, N) :- Card(C), N = sum{ A : Open(C, A) }.", "C N", "C N"),
        ("P(V) :- V = W + 1, W = X * 2, Q(X).", "X W V", "X W V"),
        ("P(V) :- X * 2 = W, V = W, Q(X).", "X W V", "X W V"),
        ("P(V) :- V = 3.", "V", "V"),
        ("P(V) :- Q(X), V = W + X.", "X", "X"),
        ("P(G) :- count{ Q(X), G = X mod 3 } > 2.", "", "G"),
        ("P(N) :- N = count{ Q(X), X > N }.", "", ""),
        ("P(N) :- N = count{ Q(X), X > M }, M = count{ Q(X), X > N }.", "", ""),
        ("P(A, N) :- A = avg{ V : Q(V) }, N = count{ Q(V), V > A }.", "A N", "A N"),
        ("P(G, N, M) :- N = count{ Q(G, X) }, M = count{ R(Y), not S(G, Y) }.", "", "G N M"),
        ("P(X, L) :- Q(X), duration[0,5]{ R(X) } = L.", "X", "X"),
    ],
)
def test_atoms_equations_and_braces_bind_variables(text: str, outside: str, anywhere: str) -> None:
    rule = read_rule(text)
    assert {v.name for v in bound_outside(rule)} == set(outside.split())
    assert {v.name for v in bound_anywhere(rule)} == set(anywhere.split())


@pytest.mark.parametrize(
    "text",
    [
        "A(V) :- V = X + 1, P(X).",
        "A(V) :- V = W, W = X * 2, P(X).",
        "A(V, W) :- V = 3, W = V.",
        "A(X + 1) :- P(X).",
        "A(1 + 2).",
        "A(V) :- P(X), X + 1 = V.",
        "Over(C) :- Card(C), count{ Q(X), not Open(C, X) } > 10.",
        "Over(C) :- Card(C), count{ Q(X), X > C } > 10.",
        "Over(L) :- Card(C), L = C * 2, count{ Q(X), X > L } > 10.",
        "B(C, N) :- Card(C), F = C * 2, N = sum{ V : Open(C, A), V = A * F }.",
        "B(C, D) :- Card(C), Limit(D), duration[0,1h]{ Hot(C) } >= D.",
        'B(C) :- Card(C), not starts_with(C, "a"), X = 2, not P(C, X).',
    ],
)
def test_rules_with_bound_variables_are_safe(text: str) -> None:
    Program.parse(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A(V) :- P(X), V = W + 1.", [(19, "variable W of a comparison is unsafe", "mentions W")]),
        ("A(X) :- V = X + 1, Q(V).", [(3, "variable X of the head is unsafe", "mentions X")]),
        ("A(X + Y) :- P(X).", [(7, "variable Y of the head is unsafe", "mentions Y")]),
        (
            "A(V) :- V = W + 1, W = V - 1, P(X).",
            [(3, "variable V of the head is unsafe", "V"), (13, "variable W of a comparison is unsafe", "W")],
        ),
        (
            "Over(C) :- Card(C), sum{ A : Open(C, Id) } > 1000.",
            [(26, "variable A of the value of sum is unsafe", "inside the braces of sum")],
        ),
        (
            "Over(C) :- count{ P(X), not Open(C, X) } > 10.",
            [(34, "variable C of a negated literal is unsafe", "inside the braces or outside")],
        ),
        (
            "B(C, N) :- Card(C), N = sum{ V : Open(C, A), V = A * F }.",
            [(54, "variable F of a comparison is unsafe", "inside the braces of sum")],
        ),
        ("B(N) :- N = count{ Q(X), X > N }.", [(30, "variable N of a comparison is unsafe", "mentions N")]),
        ("B(X) :- P(X), not contains(Y, X).", [(28, "variable Y of a test is unsafe", "mentions Y")]),
        ("B(X) :- P(X), duration[0,5]{ Hot(X) } >= L.", [(42, "variable L of a comparison is unsafe", "mentions L")]),
        (
            "B(X) :- P(X), count{ Q(Y) Since[0,1] R(Z) } > 2.",
            [(24, "variable Y of a left operand inside braces is unsafe", "inside the braces of count")],
        ),
    ],
)
def test_an_unbound_variable_is_reported_where_it_stands(text: str, found: list[tuple[int, str, str]]) -> None:
    problems = errors(text)
    assert {problem.code for problem in problems} == {"TL101"}
    assert [(problem.place.column, problem.message) for problem in problems if problem.place] == [
        (column, message) for column, message, _ in found
    ]
    for problem, (_, _, words) in zip(problems, found, strict=True):
        assert words in (problem.help or "")


def test_a_variable_is_reported_once_though_it_is_unbound_in_several_braces() -> None:
    problems = errors("A(X) :- P(X), count{ Q(Y), Y > L } > 1, L > 3.")
    assert [problem.message for problem in problems] == ["variable L of a comparison is unsafe"]
