"""Rules that change on a saved state: what is kept, and from when on the answers are those of the new rules."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from examine import parse_case
from formula_parts import head_predicates
from strategies import FORWARD, Case, Features, cases
from streams import Plan
from streams_random import describe
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact, Formula, Literal, Rule, Unary
from tidelog.testing import same_answers
from tidelog.timeline.interval import Interval

pytestmark = pytest.mark.usefixtures("kernels")


def change(reasoner: tl.Reasoner, rules: str) -> tl.Reasoner:
    return tl.Reasoner.load(reasoner.save(), tl.Program.parse(rules), changed=True)


def shown(answers: list[Fact]) -> list[str]:
    return list(map(format_fact, answers))


def test_what_waits_for_its_time_is_kept() -> None:
    rules = "Q :- P.  Q :- Diamondminus[5,5] Q."
    reasoner = tl.Reasoner(tl.Program.parse(rules), "Q")
    assert shown(reasoner.push(100, ["P"]) + reasoner.push(102)) == ["Q@100"]
    reasoner = change(reasoner, f"{rules}  Z :- P.")
    assert shown(reasoner.push(112) + reasoner.finish()) == ["Q@105", "Q@110"]


@pytest.mark.parametrize("other", [3, 4, 7, 20])
def test_a_diamond_with_another_end_knows_when_something_was_last(other: int) -> None:
    rules = "Down(X) :- Diamondminus[0,inf) Beat(X), not Diamondminus[0,{}] Beat(X)."
    reasoner = tl.Reasoner(tl.Program.parse(rules.format(5)), "Down", at="every:1")
    assert reasoner.push(0, ["Beat(a)"]) + reasoner.push(2, ["Beat(b)"]) + reasoner.push(3) == []
    reasoner = change(reasoner, rules.format(other))
    later = max(0, other - 5)
    assert reasoner.notes[-1] == f"answers are complete after {max(3, 2 + later)}"
    expected = [f"Down({x})@{t}" for t in range(3, 31) for x, last in (("a", 0), ("b", 2)) if t - last > other]
    assert shown(reasoner.finish(30)) == expected


def test_it_is_said_from_when_on_answers_are_complete() -> None:
    reasoner = tl.Reasoner(tl.Program.parse("Q(X) :- P(X), Diamondminus[1,3] R(X)."), "Q", memory="generic")
    reasoner.push(10, ["R(a)"])
    reasoner.advance(11)
    longer = change(reasoner, "Q(X) :- P(X), Diamondminus[1,8] R(X).")
    assert longer.notes[-1] == "answers are complete from 16 on"
    other = change(reasoner, "Q(X) :- P(X), Diamondminus[1,8] S(X).")
    assert other.notes[-1] == "answers are complete after 19, unless earlier facts of S hold longer"
    ever = change(reasoner, "Q(X) :- P(X), Diamondminus[0,inf) S(X).")
    assert ever.notes[-1].startswith("answers may stay incomplete")


def test_dates_are_printed_as_such() -> None:
    reasoner = tl.Reasoner(tl.Program.parse("Q(X) :- P(X), Diamondminus[1,3] R(X)."), "Q", memory="generic")
    reasoner.push("2026-01-31T10:00:00Z", ["R(a)@2026-01-31T10:00:00Z"])
    reasoner.advance("2026-01-31T10:00:01Z")
    longer = change(reasoner, "Q(X) :- P(X), Diamondminus[1,1min] R(X).")
    assert longer.notes[-1] == "answers are complete from 2026-01-31T10:00:58Z on"


@pytest.mark.parametrize("known", ["C@-5", "C@-16/3"])
@pytest.mark.parametrize("range_", ["(0,10]", "(0,21/2]"])
def test_new_rules_and_background_may_be_on_a_finer_grid(known: str, range_: str) -> None:
    reasoner = tl.Reasoner(tl.Program.parse("Q :- P, Diamondminus(0,3] P."), "Q")
    reasoner.push(7, ["P"])
    rules = tl.Program.parse(f"Q :- P, Diamondminus{range_} P, Diamondminus[0,inf) C.")
    reasoner = tl.Reasoner.load(reasoner.save(), rules, changed=True, background=tl.Dataset.parse(known))
    assert shown(reasoner.push(13, ["P"]) + reasoner.push("27/2", ["P"]) + reasoner.push(14)) == ["Q@13", "Q@27/2"]


def test_nothing_is_lost_before_anything_came() -> None:
    reasoner = change(tl.Reasoner(tl.Program.parse("Q :- P."), "Q"), "Q :- not Diamondminus[0,5] R.")
    assert reasoner.notes[-1] == "answers are complete"


# Random programs


def edited(rules: tuple[Rule, ...], choose: random.Random) -> tuple[Rule, ...]:
    """Other rules over the same predicates: one is left out, or one has other ranges, or is there twice so."""
    place = choose.randrange(len(rules))
    rule = rules[place]
    body = tuple(replace(b, formula=_moved(b.formula, choose)) if isinstance(b, Literal) else b for b in rule.body)
    match choose.randrange(3):
        case 0 if len(rules) > 1:
            return rules[:place] + rules[place + 1 :]
        case 1:
            return (*rules, Rule(rule.head, body))
    return (*rules[:place], Rule(rule.head, body), *rules[place + 1 :])


def _moved(formula: Formula, choose: random.Random) -> Formula:
    match formula:
        case Unary(_, span, arg):
            lo, hi = choose.choice(((0, 0), (0, 2), (1, 1), (0, -1), (-1, 0)))
            other = Interval(max(Fraction(0), Fraction(span.lo) + lo), span.hi + hi, span.lo_closed, span.hi_closed)
            return replace(formula, range=span if other.is_empty() else other, arg=_moved(arg, choose))
    return formula


def complaint(case: Case, seed: int) -> str | None:
    """What is wrong with the answers after a change of rules, from the time on from which they should be complete."""
    choose = random.Random(seed)
    timeline = case.features.timeline
    other = replace(case, rules=edited(case.rules, choose))
    before, after = (tl.Program.parse(str(tl.Program(one.rules, timeline))) for one in (case, other))
    common = sorted(head_predicates(case.rules) & head_predicates(other.rules))
    if not common:
        return None
    query = choose.choice(common)
    facts = sorted((replace(f, interval=Interval.point(Fraction(f.interval.lo))) for f in case.facts), key=_begin)
    facts += [replace(f, interval=Interval.point(Fraction(f.interval.lo) + 9)) for f in facts]
    cut = choose.randint(0, len(facts))
    delay = choose.choice((0, 0, 1))
    reasoner = tl.Reasoner(before, query, timeline=timeline, delay=delay, memory=choose.choice((None, "generic")))
    for fact in facts[:cut]:
        reasoner.push(_begin(fact), [fact])
    clock = _begin(facts[cut - 1]) if cut else Fraction(-100)
    reasoner = tl.Reasoner.load(reasoner.save(), after, changed=True)
    said = reasoner.notes[-1] if reasoner.notes else "answers are complete"
    answers = [answer for fact in facts[cut:] for answer in reasoner.push(_begin(fact), [fact])]
    end = max(map(_begin, facts), default=Fraction(0)) + 12
    answers += reasoner.finish(end)
    if "incomplete" in said:
        return None
    found = re.search(r"(from|after) (\S+?)(,| on|$)", said)
    start, closed = (Fraction(found[2]), found[1] == "from") if found else (clock - delay, False)
    data = tl.Dataset.from_facts(facts)
    try:
        expected = tl.materialise(after, data, query=query, between=(start, end), timeline=timeline)
    except tl.errors.Undecided:
        return None
    window = Interval(start, end, closed)
    same = same_answers(_clipped(list(expected), window), _clipped(answers, window), timeline=timeline)
    return None if same else f"changed after {clock} to\n{after}which says: {said}\n{same}"


def _begin(fact: Fact) -> Fraction:
    return Fraction(fact.interval.lo)


def _clipped(facts: list[Fact], window: Interval) -> list[Fact]:
    found = []
    for fact in facts:
        held = fact.interval
        lo, lo_closed = max((held.lo, not held.lo_closed), (window.lo, not window.lo_closed))
        hi, hi_open = min((held.hi, held.hi_closed), (window.hi, True))
        cut = Interval(lo, hi, not lo_closed, hi_open)
        if not cut.is_empty():
            found.append(replace(fact, interval=cut))
    return found


KINDS = {
    "plain": replace(FORWARD, endless_data=False),
    "negation": replace(FORWARD, negation=True, unbounded=True, endless_data=False),
    "integers": replace(FORWARD, negation=True, integer=True, denominators=(1,), endless_data=False),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_answers_are_complete_from_the_time_that_is_said(kind: Features) -> None:
    @settings(max_examples=30, phases=[Phase.generate])
    @given(cases(kind), st.integers(0, 9999))
    def agree(case: Case, seed: int) -> None:
        if not case.rules or not case.facts:
            return
        parse_case(case)
        found = complaint(case, seed)
        if found:
            note(describe(found, case, Plan(seed)))
        assert not found

    agree()
