"""The oracle itself is judged: by sampling time much finer than its cells, and by results worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numeric_oracle
from behaviour import Behaviour, load_cases
from formula_parts import denominator_of, head_predicates
from judge import Claim, clip_claim, find_complaints, find_form_complaints, read_claim
from oracle import evaluate, strata_of
from strategies import ranges
from tidelog.language.fact_text import parse_fact
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Bottom,
    Comparison,
    Condition,
    Constant,
    Fact,
    Literal,
    Rule,
    Unary,
    UnaryOp,
    Value,
    Variable,
)
from tidelog.timeline.interval import INF, Interval
from truth_cells import Scope, contains, since_or_until, some_or_every

SCOPE = Scope.between(-2, 2)
#: Samples of t inside the window; three of them lie inside every gap. Each step down samples twice as finely, so that
#: a stretch between two samples is never empty.
TIMES = [Fraction(n, 4) for n in range(-4 * 2, 4 * 2 + 1)]
OTHERS = [Fraction(n, 8) for n in range(-8 * 6, 8 * 6 + 1)]
BETWEEN = [Fraction(n, 16) for n in range(-16 * 6, 16 * 6 + 1)]


def interval(lo: float, hi: float, brackets: str = "[]") -> Interval:
    exact = [t if abs(t) == INF else Fraction(t) for t in (lo, hi)]
    return Interval(exact[0], exact[1], brackets[0] == "[", brackets[1] == "]")


def vectors() -> st.SearchStrategy[bytes]:
    length = SCOPE.last - SCOPE.first + 3
    return st.lists(st.integers(0, 1), min_size=length, max_size=length).map(bytes)


def truth_of(vector: bytes) -> Callable[[Fraction], bool]:
    """The truth at any time of a vector whose outside entries hold throughout."""

    def at(t: Fraction) -> bool:
        floor = t.numerator // t.denominator
        cell = 2 * floor if t == floor else 2 * floor + 1
        return bool(vector[SCOPE.index(cell)])

    return at


def difference(t: Fraction, other: Fraction, past: bool) -> Fraction:
    return t - other if past else other - t


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(UnaryOp), ranges(2, denominators=(1,), unbounded=True), vectors())
def test_diamonds_and_boxes_agree_with_fine_sampling(op: UnaryOp, range_: Interval, vector: bytes) -> None:
    found, truth = some_or_every(SCOPE, op, range_, vector, definite=True), truth_of(vector)
    past = op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
    together = any if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS) else all
    for t in TIMES:
        expected = together(truth(other) for other in OTHERS if contains(range_, difference(t, other, past)))
        assert truth_of(found)(t) == expected, t


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(BinaryOp), ranges(2, denominators=(1,), unbounded=True), vectors(), vectors())
def test_since_and_until_agree_with_fine_sampling(op: BinaryOp, range_: Interval, left: bytes, right: bytes) -> None:
    found = since_or_until(SCOPE, op, range_, left, right, definite=True)
    a, b, past = truth_of(left), truth_of(right), op is BinaryOp.SINCE
    for t in TIMES:
        witnesses = [other for other in OTHERS if contains(range_, difference(t, other, past)) and b(other)]
        expected = any(all(a(s) for s in BETWEEN if min(t, w) < s < max(t, w)) for w in witnesses)
        assert truth_of(found)(t) == expected, t


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(list(UnaryOp)), ranges(2, denominators=(1,), unbounded=True, integer=True), vectors())
def test_integer_operators_see_integers_only(op: UnaryOp, range_: Interval, vector: bytes) -> None:
    scope = Scope.between(SCOPE.first, SCOPE.last, integer=True)
    found = some_or_every(scope, op, range_, vector, definite=True)
    past = op in (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
    together = any if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS) else all
    for t in scope.cells:
        others = [s for s in range(-30, 31) if contains(range_, difference(Fraction(t), Fraction(s), past))]
        assert found[scope.index(t)] == together(vector[scope.index(s)] for s in others)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(list(BinaryOp)),
    ranges(2, denominators=(1,), unbounded=True, integer=True),
    vectors(),
    vectors(),
)
def test_integer_since_has_integers_between(op: BinaryOp, range_: Interval, left: bytes, right: bytes) -> None:
    scope = Scope.between(SCOPE.first, SCOPE.last, integer=True)
    found = since_or_until(scope, op, range_, left, right, definite=True)
    for t in scope.cells:
        others = [
            s
            for s in range(-30, 31)
            if contains(range_, difference(Fraction(t), Fraction(s), op is BinaryOp.SINCE)) and right[scope.index(s)]
        ]
        expected = any(all(left[scope.index(k)] for k in range(min(s, t) + 1, max(s, t))) for s in others)
        assert found[scope.index(t)] == expected


# The behaviour suite and the oracle were written from the same definitions, apart from each other


@pytest.mark.parametrize("case", [case for case in load_cases() if case.expect is not None], ids=lambda case: case.name)
def test_the_behaviour_suite_is_what_the_oracle_says(case: Behaviour) -> None:
    program = Program.parse(case.rules, syntax=case.syntax)
    integer = (case.timeline or program.timeline) == "integer"
    facts = [*program.facts, *(fact for fact, _ in map(parse_fact, fact_lines(case.facts)))]
    assert case.expect is not None
    claim = read_claim(case.expect)
    if has_numbers(program.rules):
        assert case.between or not claim.repeats
        found = numeric_oracle.evaluate(program.rules, facts, case.between, "integer" if integer else "rational")
        assert {fact for fact in found if not is_hidden(fact.predicate)} == set(claim.facts)
        return
    denominator = 1 if integer else denominator_of(program.rules, facts)
    if case.between and case.between[1] < 100:
        lo, hi = (int(t) for t in case.between)
        scope = Scope.between(min(lo, 0) - 5, max(hi, 0) + 5, denominator, integer=integer)
        heads = head_predicates(program.rules)
        shown = [
            Fact(key[0], key[1], scope.interval(*run))
            for key, vector in evaluate(program.rules, facts, scope).definite.items()
            for run in scope.runs(vector)
            if key[0] in heads
        ]
        assert clip_claim(Claim(tuple(shown), ()), lo, hi, denominator, integer=integer) == set(claim.facts)
    elif not case.between and not case.queries and "2026" not in case.facts:
        assert not [*find_complaints(program.rules, facts, claim, integer=integer)]
        assert not [*find_form_complaints(claim, denominator, integer=integer)]


MISTAKES = {
    "a fact too few": ["C@[1,2]", "A@[0,2)"],
    "a fact too many": ["A@[0,2]", "C@[1,2]", "C@9"],
    "an end too far": ["A@[0,2]", "C@[1,3]"],
    "an end that is open": ["A@[0,2]", "C@[1,2)"],
    "not maximal": ["A@[0,2]", "C@[1,3/2)", "C@[3/2,2]"],
    "nothing repeats": ["A@[0,2]", "C@[1,2]", "D@0"],
    "another period": ["A@[0,2]", "C@[1,2]", "% repeats every 2 from 0: D@0"],
    "twice the period": ["A@[0,2]", "C@[1,2]", "% repeats every 6 from 0: D@0", "% repeats every 6 from 0: D@3"],
    "a late start": ["A@[0,2]", "C@[1,2]", "D@0", "% repeats every 3 from 3: D@3"],
    "an early start": ["A@[0,2]", "C@[1,2]", "% repeats every 3 from -3: D@-3"],
    "repeats into the past": [
        "A@[0,2]",
        "C@[1,2]",
        "% repeats every 3 from 0: D@0",
        "% repeats every 3 before 0: D@-3",
    ],
    "it has always been so": ["A@[0,2]", "C@[1,2]", "% repeats every 3 from 0: D@0", "F@(-inf,inf)"],
}


@pytest.mark.parametrize("lines", MISTAKES.values(), ids=MISTAKES.keys())
def test_the_judge_notices(lines: list[str]) -> None:
    text = """
        A :- Diamondminus[0,1] B.
        C :- A Since[1,5] E.
        D :- Diamondminus[3,3] D.
        F :- Boxplus[1,inf) F.
    """
    program = Program.parse(text)
    facts = [parse_fact(line)[0] for line in ("B@[0,1]", "E@0", "D@0")]
    right = read_claim(["A@[0,2]", "C@[1,2]", "% repeats every 3 from 0: D@0"])
    for claim, wrong in ((right, False), (read_claim(lines), True)):
        found = [
            *find_complaints(program.rules, facts, claim, integer=False),
            *find_form_complaints(claim, 2, integer=False),
        ]
        assert bool(found) == wrong


def test_the_judge_tells_a_fact_that_ends_at_the_start_of_what_repeats_from_one_that_ends_before_it() -> None:
    def complaints(fact: str) -> list[str]:
        claim = read_claim([fact, "% repeats every 1 before 1: B(k)@(0,1)"])
        return [*find_form_complaints(claim, 2, integer=False)]

    assert not complaints("B(k)@(0,1]")
    assert complaints("B(k)@(0,1)")
    assert complaints("B(k)@1/4")


def has_numbers(rules: Sequence[Rule]) -> bool:
    """Whether rules have conditions, or recursion through time: then `numeric_oracle` judges."""
    try:
        strata_of(rules)
    except ValueError:
        return True
    return any(isinstance(literal, Condition) for rule in rules for literal in rule.body)


def fact_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and line[0] not in "%#"]


# By hand

A, B, C = Atom("A"), Atom("B"), Atom("C")


def holds(rules: list[Rule], facts: list[Fact], predicate: str, *, integer: bool = False) -> list[str]:
    """The intervals of a predicate without arguments between -10 and 20, all of them certain."""
    truth = evaluate(rules, facts, Scope.between(-10, 20, 2, integer=integer))
    key = (predicate, ())
    nothing = truth.scope.constant(False)
    assert truth.definite.get(key, nothing)[1:-1] == truth.possible.get(key, nothing)[1:-1]
    return [str(truth.scope.interval(*run)) for run in truth.scope.runs(truth.definite.get(key, nothing))]


def fact(predicate: str, when: Interval, *args: str) -> Fact:
    return Fact(predicate, args, when)


def since(left: Atom, range_: Interval, right: Atom) -> Literal:
    return Literal(Binary(BinaryOp.SINCE, range_, left, right))


def test_since_holds_at_once_where_zero_is_in_the_range() -> None:
    rules = [Rule(C, (since(A, interval(0, 5), B),))]
    assert holds(rules, [fact("A", interval(10, 11)), fact("B", interval(0, 0))], "C") == ["0"]
    assert holds(rules, [fact("B", interval(0, 0))], "C") == ["0"]


def test_since_needs_points_strictly_between_only() -> None:
    rules = [Rule(C, (since(A, interval(1, 5), B),))]
    facts = [fact("A", interval(0, 2, "()")), fact("B", interval(0, 0))]
    assert holds(rules, facts, "C") == ["[1,2]"]
    assert holds(rules, [fact("B", interval(0, 0))], "C") == []
    assert holds(rules, [fact("B", interval(0, 0))], "C", integer=True) == ["1"]


def test_levels_coalesce() -> None:
    nested = Unary(UnaryOp.BOX_MINUS, interval(0, 6), Unary(UnaryOp.DIAMOND_MINUS, interval(0, 5), A))
    facts = [fact("A", interval(t, t)) for t in (0, 4, 8)]
    assert holds([Rule(C, (Literal(nested),))], facts, "C") == ["[6,13]"]


@pytest.mark.parametrize(
    ("given_", "range_", "expected"),
    [
        (interval(0, 10, "()"), interval(2, 4, "()"), "[4,12]"),
        (interval(0, 10), interval(2, 4, "()"), "[4,12]"),
        (interval(0, 10, "(]"), interval(2, 4), "(4,12]"),
    ],
)
def test_erosion_minds_the_brackets(given_: Interval, range_: Interval, expected: str) -> None:
    assert holds([Rule(C, (Literal(Unary(UnaryOp.BOX_MINUS, range_, A)),))], [fact("A", given_)], "C") == [expected]


def test_nested_boxes_in_a_head() -> None:
    head = Unary(UnaryOp.BOX_PLUS, interval(1, 2), Unary(UnaryOp.BOX_MINUS, interval(0, 3, "[)"), A))
    assert holds([Rule(head, (Literal(B),))], [fact("B", interval(5, 5))], "A") == ["(3,7]"]


def test_negation_holds_before_the_data_begins() -> None:
    rules = [Rule(C, (Literal(A, negated=True),))]
    assert holds(rules, [fact("A", interval(0, 1, "[)"))], "C") == ["[-10,0)", "[1,20]"]


def test_forward_recursion_is_known_in_all_of_the_window() -> None:
    rules = [Rule(A, (Literal(Unary(UnaryOp.DIAMOND_MINUS, interval(7, 7), A)),))]
    assert holds(rules, [fact("A", interval(0, 1, "[)"))], "A") == ["[0,1)", "[7,8)", "[14,15)"]


def test_what_depends_on_the_outside_is_unknown() -> None:
    both = [Rule(A, (Literal(Unary(op, interval(7, 7), A)),)) for op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS)]
    truth = evaluate(both, [fact("A", interval(0, 0))], Scope.between(-10, 10))
    assert [truth.at(("A", ()), 2 * t) for t in (-7, 0, 7)] == [True, True, True]
    assert truth.at(("A", ()), 2 * 3) is None
    always = [Rule(C, (Literal(Unary(UnaryOp.BOX_PLUS, interval(0, INF, "[)"), A)),))]
    truth = evaluate(always, [fact("A", interval(0, INF, "[)"))], Scope.between(-10, 10))
    assert [truth.at(("C", ()), t) for t in (-1, 0, 20)] == [False, True, True]


def test_a_variable_of_a_left_operand_alone_means_some_value() -> None:
    left = Binary(BinaryOp.SINCE, interval(0, 5), Atom("P", (Variable("X"),)), B)
    rules = [Rule(C, (Literal(left),))]
    assert holds(rules, [fact("B", interval(0, 0))], "C") == ["0"]
    assert holds(rules, [fact("B", interval(0, 0)), fact("P", interval(0, 2), "a")], "C") == ["[0,2]"]


def test_constraints() -> None:
    rules = [Rule(Bottom(), (Literal(A), Literal(B)))]
    scope = Scope.between(-10, 10)
    overlapping = [fact("A", interval(0, 1)), fact("B", interval(1, 2))]
    apart = [fact("A", interval(0, 1)), fact("B", interval(1, 2, "(]"))]
    assert evaluate(rules, overlapping, scope).consistent is False
    assert evaluate(rules, apart, scope).consistent is True


def test_numbers_come_before_strings() -> None:
    x, y = Variable("X"), Variable("Y")
    p = Atom("P", (x,)), Atom("P", (y,))
    rules = [Rule(Atom("Less", (x, y)), (Literal(p[0]), Literal(p[1]), Comparison("<", x, y)))]
    values: list[Value] = [Fraction(10), Fraction(9), "b", "a"]
    facts = [Fact("P", (value,), Interval.always()) for value in values]
    truth = evaluate(rules, facts, Scope.between(0, 1))
    pairs = {key[1] for key, vector in truth.definite.items() if key[0] == "Less" and 1 in vector}
    ordered = [Fraction(9), Fraction(10), "a", "b"]
    assert pairs == {(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]}


def test_negation_in_a_cycle_is_not_stratifiable() -> None:
    with pytest.raises(ValueError, match="stratifiable"):
        strata_of([Rule(A, (Literal(B, negated=True),)), Rule(B, (Literal(A),))])
    constant = Atom("P", (Constant("a"),))
    assert len(strata_of([Rule(A, (Literal(constant, negated=True),)), Rule(B, (Literal(A),))])) == 2
