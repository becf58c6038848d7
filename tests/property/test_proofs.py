"""Every proof of every fact, checked by the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given, note, settings

import tidelog as tl
from behaviour import Behaviour, load_cases
from examine import format_as_behaviour, parse_case
from judge import Claim
from proof_checker import Checker, why_not_complaints
from strategies import Case, Features, cases
from test_batch import PARTS
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.proofs.explanation import explain_fact
from tidelog.timeline.interval import Interval, TimelineName

#: The largest number of facts of one model that are explained, so that no case takes long.
MOST_FACTS = 10
#: Cases whose times lie too far apart for tables of them.
TOO_WIDE = {"dates", "durations", "many_intervals_of_one_atom"}


def find_complaints(program: tl.Program, data: tl.Dataset, timeline: TimelineName | None) -> Iterator[str]:
    """Yield what is wrong with the proofs of the facts of a model, and of some facts that repeat, near and far."""
    try:
        model = tl.materialise(program, data, timeline=timeline)
    except (tl.errors.Inconsistent, tl.errors.Undecided):
        return
    claim = Claim(tuple(model), tuple(model.repeats))
    integer = (timeline or program.timeline) == "integer"
    checker = Checker(program.rules, (*data, *program.facts), claim, integer=integer)
    explainer = tl.proofs.Explainer(program, data, timeline=timeline)
    asked = list(claim.facts)[:MOST_FACTS]
    for repeat in claim.repeats:
        held = repeat.fact.interval
        for rounds in (0, 3, 40):
            far = repeat.every * (-rounds if repeat.before else rounds)
            moved = Interval(held.lo + far, held.hi + far, held.lo_closed, held.hi_closed)
            asked.append(Fact(repeat.fact.predicate, repeat.fact.args, moved))
    for fact in [*asked, *other_facts(claim, asked)]:
        explanation = explain_fact(explainer, fact)
        if explanation.why_not is not None:
            if fact in asked:
                yield f"{format_fact(fact)} is denied"
            for complaint in why_not_complaints(checker, explanation.why_not):
                yield f"{complaint}, in the explanation\n{explanation}"
            continue
        proof = explainer.proof(fact)
        if proof is None:
            yield f"{format_fact(fact)} has no proof"
            continue
        for complaint in checker.complaints(proof):
            yield f"{complaint}, in the proof\n{proof}"
        # A question about one fact is answered from the facts that can matter for it.
        alone = tl.explain(program, data, fact, timeline=timeline).proof if fact in asked[:2] else proof
        if alone is None:
            yield f"{format_fact(fact)} has no proof by itself"
            continue
        for complaint in checker.complaints(alone):
            yield f"{complaint}, in the proof of it alone\n{alone}"


def other_facts(claim: Claim, asked: list[Fact]) -> Iterator[Fact]:
    """Yield facts that may hold or not: those of a model at other times, and with other arguments."""
    for fact in asked[:4]:
        yield Fact(fact.predicate, fact.args, Interval.point(Fraction(2)))
        yield Fact(fact.predicate, fact.args, Interval(Fraction(-3), Fraction(7), False, True))
        if fact.args:
            yield Fact(fact.predicate, ("nobody", *fact.args[1:]), Interval.point(Fraction(1)))


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_every_fact_of_a_random_program_has_a_proof(part: Features) -> None:
    @settings(max_examples=15)
    @given(cases(part))
    def prove(case: Case) -> None:
        held = parse_case(case)
        found = next(find_complaints(held.program, held.data, held.timeline), None)
        if found:
            note(format_as_behaviour(found, case))
        assert not found

    prove()


@pytest.mark.parametrize(
    "case",
    [case for case in load_cases() if case.expect and case.syntax == "dmtl" and case.name not in TOO_WIDE],
    ids=lambda case: case.name,
)
def test_every_fact_of_the_behaviour_suite_has_a_proof(case: Behaviour) -> None:
    program, data = tl.Program.parse(case.rules, syntax=case.syntax), tl.Dataset.parse(case.facts)
    assert not next(find_complaints(program, data, case.timeline), None)
