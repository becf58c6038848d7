"""What streams hold: the bounds of the literature, and memory that does not depend on how dense a stream is."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import cast

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from examine import parse_case
from formula_parts import head_predicates
from strategies import FORWARD, Case, Features, cases
from streams import Plan, plans, run, set_up
from streams_random import describe, examine_stream, moved
from tidelog.analysis.memory_bounds import MemoryBounds, StreamProfile, find_program_constants, greatest_common_divisor
from tidelog.compiler.compiled_program import Memory
from tidelog.data.statistics import compute_time_divisor, find_constants
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Binary, Formula, Literal, Rule, Unary
from tidelog.streaming.capacity import add_capacity
from tidelog.timeline.interval import Interval, TimelineName

pytestmark = pytest.mark.usefixtures("kernels")

#: Programs over P(X) and R(X) that ask for Q and have no range that is a single point.
WIDE = {
    "diamond": "Q(X) :- P(X), Diamondminus[1,3] R(X).",
    "diamond alone": "Q(X) :- Diamondminus[3,5] P(X).",
    "open ends": "Q(X) :- P(X), Diamondminus(1,3) R(X), Boxminus(0,1) P(X).",
    "box": "Q(X) :- Boxminus[1,4] P(X), R(X).",
    "two boxes": "Q(X) :- Boxminus[1,3] P(X), Boxminus[0,2] R(X).",
    "box over a diamond": "Q(X) :- R(X), Boxminus[0,2] Diamondminus[1,2] P(X).",
    "history": "Q(X) :- P(X), Diamondminus[2,inf) R(X).",
    "box in the head": "Boxplus[2,3] Q(X) :- R(X), Diamondminus[0,1] P(X).",
    "several rules": """
        S(X) :- P(X), Boxminus[0,1] R(X).  T(X) :- Diamondminus[0,5] P(X).
        Q(X) :- T(X), Diamondminus[3,4] S(X).
    """,
    "recursion": "Q(X) :- P(X), Diamondminus[1,2] Q(X). Q(X) :- R(X), Boxminus[1,2] P(X).",
    "negation": "Q(X) :- P(X), not Diamondminus[1,3] R(X).",
    "since": "Q(X) :- P(X) Since[1,4] R(X).",
    "since with now": "Q(X) :- P(X) Since[0,5] R(X).",
    "since with open ends": "Q(X) :- P(X) Since(2,5) R(X).",
    "since for ever": "Q(X) :- P(X) Since[1,inf) R(X).",
    "since over runs": "Q(X) :- (Diamondminus[0,1/4] P(X)) Since[1,3] (Diamondminus[1,2] R(X)).",
    "since and others": "Q(X) :- P(X), R(X) Since[1,4] P(X), not P(X) Since[0,2] R(X).",
    "since in a recursion": "Q(X) :- P(X) Since[1,4] Q(X). Q(X) :- R(X), Diamondminus[0,1] P(X).",
    "negated box": "Q(X) :- P(X), not Boxminus[1,3] R(X), Diamondminus[0,1] R(X).",
}


def most_held(rules: str, memory: Memory | None, dense: int) -> int:
    """The most that is held over 15 time units with so many readings in each."""
    reasoner = tl.Reasoner(tl.Program.parse(rules), "Q", memory=memory)
    choose, most = random.Random(0), 0
    for n in range(15 * dense):
        reasoner.push(Fraction(n, dense), [f"{choose.choice('PR')}(a)"])
        most = max(most, reasoner.last_step.window_facts + reasoner.last_step.history_atoms)
    return most


@pytest.mark.parametrize("rules", WIDE.values(), ids=WIDE.keys())
def test_bounded_memory_does_not_depend_on_density(rules: str) -> None:
    assert most_held(rules, "bounded", 64) <= most_held(rules, "bounded", 8) + 3


def test_a_long_stream_with_runs_that_break_holds_no_more() -> None:
    program = tl.Program.parse("Q(X) :- (Diamondminus[0,2] P(X)) Since[1,4] R(X).")
    most: dict[int, int] = {}
    answers: dict[str, list[str]] = {}
    for dense, memory in ((10, "bounded"), (200, "bounded"), (200, "generic")):
        # Every 20 time units a pause of 5 ends all runs.
        choose, times = random.Random(0), [Fraction(n, dense) + n // (20 * dense) * 5 for n in range(60 * dense)]
        reasoner = tl.Reasoner(program, "Q", memory=cast(Memory, memory))
        facts = tl.Dataset.from_facts([f"{choose.choice('PR')}(a)@{t}" for t in times])
        steps = list(reasoner.feed(facts))
        if memory == "bounded":
            most[dense] = max(step.window_facts + step.history_atoms for step in steps)
        found = [fact for step in steps for fact in step.answers]
        answers[memory] = [format_fact(fact) for fact in [*found, *reasoner.finish()]]
    assert most[200] <= most[10] <= 10
    assert answers["bounded"] == answers["generic"]
    assert len(answers["bounded"]) == 3


@pytest.mark.parametrize("kind", ["plain", "negation", "integers"])
def test_since_in_bounded_memory_gives_the_same_answers(kind: str) -> None:
    ran = 0

    @settings(max_examples=25, phases=[Phase.generate])
    @given(cases(KINDS[kind]), st.data())
    def agree(case: Case, data: st.DataObject) -> None:
        nonlocal ran
        case = replace(case, rules=tuple(map(wide, case.rules)))
        if "Since" not in str(tl.Program(case.rules, case.features.timeline)):
            return
        ran += 1
        plan = replace(data.draw(plans(("A", "B"), integer=case.features.integer)), memory="bounded")
        found = next(examine_stream(tl.Reasoner, case, plan), None)
        if found:
            note(describe(found, case, plan))
        assert not found

    agree()
    assert ran >= 3


def test_generic_memory_depends_on_density() -> None:
    assert most_held(WIDE["diamond"], "generic", 64) > 4 * most_held(WIDE["diamond"], "generic", 8)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("Q(X) :- P(X), Diamondminus[2,2] R(X).", "a single point"),
        ("Boxplus[2,2] Q(X) :- P(X), Diamondminus[0,1] R(X).", "a single point"),
        ("Q(X) :- (Diamondminus[0,1] P(X)) Since[5,5] R(X).", "a single point"),
        ("Q(X) :- P(X), not (Diamondminus[0,1] P(X)) Since[2,2] R(X).", "a single point"),
        ("Q(X) :- P(X) Until[0,5] R(X).", "ahead"),
        ("Q(X) :- P(X), Diamondplus[0,3] R(X).", "ahead"),
        ("Q(X) :- P(X), not Diamondplus[0,3] R(X).", "ahead"),
    ],
)
def test_where_memory_depends_on_density_bounded_memory_is_refused(rule: str, reason: str) -> None:
    with pytest.raises(tl.TidelogError, match=reason) as raised:
        tl.Reasoner(tl.Program.parse(f"S(X) :- P(X), Diamondminus[0,1] R(X).\n{rule}"), "Q", memory="bounded")
    assert [found.code for found in raised.value.diagnostics] == ["TL309"]
    assert raised.value.diagnostics[0].place is not None
    assert raised.value.diagnostics[0].place.line == 2
    assert most_held(rule, "generic", 64) > 2 * most_held(rule, "generic", 8), "it is refused for a reason"


def test_an_open_range_may_be_a_point_of_the_integers() -> None:
    program = tl.Program.parse("Q(X) :- P(X), Diamondminus(1,3) R(X).")
    assert tl.Reasoner(program, "Q", memory="bounded").query == "Q"
    with pytest.raises(tl.TidelogError, match="a single point"):
        tl.Reasoner(program, "Q", memory="bounded", timeline="integer")


# The bounds


def bounds(
    program: tl.Program, query: str, stream: StreamProfile, timeline: TimelineName | None = None
) -> MemoryBounds:
    found = tl.check(program, query, timeline=timeline, stream=stream).memory
    assert found is not None
    return add_capacity(found, program, query, timeline)


MONITOR = """
    Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z).
    Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Connect(X, Y).
"""


def test_the_bounds_of_the_signal_monitoring_program() -> None:
    # Its normal form has five rules, three fresh predicates beside four, and the ranges [0,2], [0,4] and [0,3].
    found = bounds(tl.Program.parse(MONITOR), "Flag", StreamProfile(objects=10, every=Fraction(1, 2), step=Fraction(1)))
    assert (found.form.rules, found.form.predicates, found.form.arity) == (5, 7, 2)
    assert [found.form.window, found.form.shortest, found.form.least] == [4, 2, 2]
    assert found.generic.facts == (4 * (5 * 2 + 1) ** 2 + 1) * 7 * 10**2
    # The exponent (4 + 1)/2 is not rounded: the square of 5^(5/2) is 5^5.
    assert found.bounded.facts == 9 * (2 * (4 // 2 + 2)) ** 2 * 5**5 * 7 * 10**2


def test_a_bound_without_numbers_is_a_formula() -> None:
    found = bounds(tl.Program.parse(MONITOR), "Flag", StreamProfile())
    assert found.generic.facts is None
    assert found.generic.formula == "(4 * ((4 + 1) / g + 1)^2 + 1) * 7 * n^2"
    assert found.bounded.formula == "9 * (2 * (2 + 2) * 5^(5/2))^2 * 7 * n^2"


@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 2), Fraction(2, 3), Fraction(7, 5)])
@pytest.mark.parametrize("least", [2, 3, 7])
def test_theorem_15_is_evaluated_exactly(step: Fraction, least: int) -> None:
    # Three rules and six predicates in normal form, ranges [0,least] and [0,8]. The reference uses 80 digits.
    program = tl.Program.parse(f"Q(X) :- P(X), Diamondminus[0,{least}] R(X), Diamondminus[0,8] S(X).")
    found = bounds(program, "Q", StreamProfile(objects=3, every=Fraction(1, 30), step=step))
    assert (found.form.rules, found.form.predicates) == (3, 6)
    with localcontext(prec=80):
        exponent = 2 * (8 + step) / least
        power = Decimal(3) ** (Decimal(exponent.numerator) / exponent.denominator)
        factor = 36 * (Fraction(8, least) + 2) ** 2 * 6 * 3
        assert found.bounded.facts == int(power * factor.numerator / factor.denominator)


def test_theorem_15_with_a_root_that_is_an_integer() -> None:
    # Four rules: the square of 4^(5/4) is 2^5. A step of a nanosecond has an exponent with a large denominator.
    program = tl.Program.parse("Q(X) :- P(X), Diamondminus[0,4] R(X). S(X) :- Q(X). Q(X) :- S(X), T(X).")
    found = bounds(program, "Q", StreamProfile(objects=3, every=Fraction(1, 30), step=Fraction(1)))
    assert found.form.rules == 4
    assert found.bounded.facts == 36 * 9 * 2**5 * found.form.predicates * 3
    fine = bounds(program, "Q", StreamProfile(objects=3, every=Fraction(1, 30), step=Fraction(1, 10**9))).bounded
    assert fine.facts == int(36 * 9 * 4 ** (2 + 0.5e-9) * found.form.predicates * 3)


def test_theorem_15_with_a_single_rule() -> None:
    # Every power of 1 is 1, also one with a fraction as exponent, for which the search for enough digits never ended.
    program = tl.Program.parse("Q(X) :- Diamondminus[0,5] R(X, _).")
    found = bounds(program, "Q", StreamProfile(objects=2, every=Fraction(1, 10), step=Fraction(1, 10)))
    assert found.form.rules == 1
    assert found.bounded.facts == 36 * 9 * found.form.predicates * 2**2


def test_a_bound_with_very_many_digits() -> None:
    program = tl.Program.parse("Q(X) :- P(X), Diamondminus[1s,2h] R(X).  Q(X) :- Diamondminus[0,1d] Q(X).")
    found = bounds(program, "Q", StreamProfile(objects=100, every=Fraction(1))).bounded
    assert found.facts is None
    assert found.log10 is not None
    assert found.log10 > 1000


@pytest.mark.parametrize("rule", ["Q :- P Since[0,1] R.", "Q :- P, not R.", "Q :- Diamondplus[0,1] P."])
def test_beyond_the_literature_there_are_only_the_reasoners_own_bounds(rule: str) -> None:
    found = bounds(tl.Program.parse(rule), "Q", StreamProfile(objects=1, every=Fraction(1)))
    assert found.generic.reason
    assert found.bounded.reason
    assert found.held_generic
    assert found.held_generic.facts


@pytest.mark.parametrize(
    ("rule", "bounded"),
    [
        ("Q(X) :- count[0,5]{ R(X, _) } >= 2.", False),
        ("Q(X) :- S(X, V), Diamondminus[0,5] V2(X, V).  V2(X, W) :- R(X, V), W = V + 1.", False),
        ("Q(X) :- Diamondminus[0,5] S(X).  S(X) :- R(X, V), V * 2 > 3.", True),
    ],
)
def test_rows_and_computed_values_have_no_bound(rule: str, bounded: bool) -> None:
    found = bounds(tl.Program.parse(rule), "Q", StreamProfile(objects=2, every=Fraction(1, 10)))
    assert found.held_generic
    assert (found.held_generic.reason is None) == bounded


@pytest.mark.parametrize("rule", ["Q :- Diamondplus[0,inf) P.", "Q :- P, not Q."])
def test_what_cannot_run_has_no_bound(rule: str) -> None:
    found = bounds(tl.Program.parse(rule), "Q", StreamProfile(objects=1, every=Fraction(1)))
    assert found.held_generic
    assert found.held_generic.reason


def wide(rule: Rule) -> Rule:
    """The same rule with ranges that are longer than a point."""
    body = tuple(replace(b, formula=_wide(b.formula)) if isinstance(b, Literal) else b for b in rule.body)
    return Rule(_wide(rule.head), body)


def _wide(formula: Formula) -> Formula:
    match formula:
        case Unary(_, span, arg):
            longer = Interval(span.lo, span.hi + 3, span.lo_closed, span.hi_closed) if span.hi - span.lo < 3 else span
            return replace(formula, range=longer, arg=_wide(arg))
        case Binary(_, span, left, right):
            longer = Interval(span.lo, span.hi + 3, span.lo_closed, span.hi_closed) if span.hi - span.lo < 3 else span
            return replace(formula, range=longer, left=_wide(left), right=_wide(right))
    return formula


#: Data come again after so long, so often.
PERIOD, ROUNDS = 10, 6


def complaint(case: Case, seed: int, memory: Memory) -> str | None:
    """Whether more is held after some step than a bound says."""
    program, query = parse_case(case).program, random.Random(seed).choice(sorted(head_predicates(case.rules)))
    facts = tuple(moved(fact, PERIOD * n) for n in range(ROUNDS) for fact in case.facts)
    setup = set_up(program, query, facts, case.features.timeline)
    data = tl.Dataset.from_facts(facts)
    every = greatest_common_divisor([compute_time_divisor(data) or Fraction(1), Fraction(1, 1 if setup.integer else 4)])
    stream = StreamProfile(len(find_constants(data) | find_program_constants(program)), every, every)
    found = bounds(program, query, stream, case.features.timeline)
    own = found.held_generic if memory == "generic" else found.held_bounded
    theorem = found.generic if memory == "generic" else found.bounded
    assert own is not None
    if own.facts is None:
        return None  # refused, in words
    done = run(
        tl.Reasoner, setup, Plan(seed, bulk=bool(seed % 2), step=Fraction(1) if seed % 3 else None, memory=memory)
    )
    for t, held, history in done.held:
        for name, bound in (("the reasoner's own", own), ("the theorem's", theorem)):
            if bound.facts is not None and held + history > bound.facts:
                return f"{held} + {history} facts are held at {t}; {name} bound is {bound}"
    return None


KINDS = {
    "plain": replace(FORWARD, endless_data=False),
    "negation": replace(FORWARD, negation=True, unbounded=True, endless_data=False),
    "integers": replace(FORWARD, negation=True, integer=True, denominators=(1,), endless_data=False),
}


@pytest.mark.parametrize("memory", ["generic", "bounded"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_no_more_is_held_than_the_bounds_say(kind: Features, memory: Memory) -> None:
    @settings(max_examples=25, phases=[Phase.generate])
    @given(cases(kind), st.integers(0, 999))
    def agree(case: Case, seed: int) -> None:
        if memory == "bounded":
            case = replace(case, rules=tuple(map(wide, case.rules)))
        if not head_predicates(case.rules):
            return
        found = complaint(case, seed, memory)
        if found:
            note(describe(found, case, Plan(seed, memory=memory)))
        assert not found

    agree()


@pytest.mark.parametrize(
    "rules",
    [
        "A(X) :- B(X). A(X) :- Diamondminus[5,8] A(X).",
        "Boxplus[3,6] A(X) :- A(X). A(X) :- B(X).",
        "Boxplus[0,3] A(X) :- C(X). C(X) :- A(X), Diamondminus[0,2] B(X). A(X) :- B(X).",
    ],
)
def test_what_a_recursion_derives_for_later_does_not_grow_with_density(rules: str) -> None:
    most = {}
    for dense in (1, 256):
        facts = [f"B(a)@{Fraction(i, dense)}" for i in range(12 * dense)]
        found = {}
        for memory in ("bounded", "generic"):
            reasoner = tl.Reasoner(tl.Program.parse(rules), "A", memory=memory)
            words, answers = [0], []
            for step in reasoner.feed(tl.Dataset.from_facts(facts)):
                words.append(reasoner.evaluation.store.later_end)
                answers += [format_fact(fact) for fact in step.answers]
            found[memory] = answers + [format_fact(fact) for fact in reasoner.finish()]
            most[dense, memory] = max(words)
        assert found["bounded"] == found["generic"]
    assert most[256, "bounded"] <= 1200


@pytest.mark.parametrize(
    "rules",
    [
        "Boxplus[2,2] C :- Boxminus[1/2,1/2] C Since[3,3] Diamondminus[1,2) C.",
        "Boxplus[2,2] C :- Diamondminus[1/2,1/2] C Since[3,3] Diamondminus[1,1] C.",
    ],
)
def test_what_a_recursion_puts_off_still_touches_what_is_kept(rules: str) -> None:
    """At 4 the left operand ends exactly at the present, and the fact that continues it begins right after it."""
    for clocks in ((4,), (1, 2, 4, 5, 8, 9, 13), tuple(range(1, 20))):
        reasoner = tl.Reasoner(tl.Program.parse(rules), "C", background=tl.Dataset.parse("C@(-inf,1)"))
        found = [str(fact.interval) for clock in clocks for fact in reasoner.push(clock, [])]
        found += [str(fact.interval) for fact in reasoner.finish(20).answers]
        assert found == ["(-inf,20]"], clocks
