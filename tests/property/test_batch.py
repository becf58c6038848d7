"""Batch reasoning: the behaviour suite, and random programs against the oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases, sort_repeats
from examine import examine, examine_restrictions, format_as_behaviour
from strategies import BACKWARD, BOTH, FORWARD, Case, Features, cases

PARTS = {
    "forward": FORWARD,
    "backward": BACKWARD,
    "both directions": BOTH,
    "forward with negation": replace(FORWARD, negation=True, constraints=True),
    "forward, unbounded": replace(FORWARD, unbounded=True, negation=True),
    "without recursion": replace(BOTH, unbounded=True, negation=True, recursive=False, constraints=True),
    "integers": replace(BOTH, integer=True, denominators=(1,), negation=True),
    "integers, forward": replace(FORWARD, integer=True, denominators=(1,), unbounded=True),
    "rationals": replace(FORWARD, denominators=(2, 3), negation=True),
    "everything": replace(BOTH, unbounded=True, negation=True, constraints=True),
    "groups": replace(BOTH, groups=True, negation=True),
    "groups over the integers": replace(FORWARD, groups=True, negation=True, integer=True, denominators=(1,)),
}


# The behaviour suite


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_behaviour(case: Behaviour) -> None:
    program, data = tl.Program.parse(case.rules, syntax=case.syntax), tl.Dataset.parse(case.facts)
    queries = list(case.queries) or None
    if case.inconsistent is not None:
        with pytest.raises(tl.errors.Inconsistent) as raised:
            tl.materialise(program, data, timeline=case.timeline)
        for words in case.inconsistent:
            assert words in str(raised.value)
    if case.expect is not None:
        model = tl.materialise(program, data, query=queries, between=case.between, timeline=case.timeline)
        assert sort_repeats(model.render().decode().splitlines()) == sort_repeats(case.expect)
    for answer, fact in case.entails:
        assert tl.entails(program, data, fact, timeline=case.timeline).value == answer, fact


# Random programs


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_random_programs_agree_with_the_oracle(part: Features) -> None:
    @settings(max_examples=40)
    @given(cases(part))
    def agree(case: Case) -> None:
        found = next(examine(case), None)
        if found:
            note(format_as_behaviour(found, case))
        assert not found

    agree()


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_queries_windows_and_single_facts_agree_with_the_model(part: Features) -> None:
    @settings(max_examples=6)
    @given(cases(part), st.integers(-6, 4), st.integers(0, 12))
    def agree(case: Case, lo: int, length: int) -> None:
        found = next(examine_restrictions(case, lo, lo + length), None)
        if found:
            note(format_as_behaviour(found, case))
        assert not found

    agree()
