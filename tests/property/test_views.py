"""Views: random programs with random histories of insertions and deletions, judged by computing from scratch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from keyed_programs import keyed_cases
from numeric_random import numeric_case
from strategies import Case, Features, cases, numbered
from test_batch import PARTS
from test_numbers import PARTS as NUMERIC_PARTS
from tidelog.corrections.single_facts import SingleFacts
from tidelog.corrections.time_shift import TimeShift
from tidelog.engine.extent import Extent
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, Interval
from views_random import choose_history, examine_history

KEYS = ("k1", "k2", "k3", "k4", "k5", "k6")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kernels")]


def agree(part: Features, keyed: bool, seen: Counter[str]) -> None:
    """Try a few programs of a part of the language; with `keyed`, programs of which most can be split by a key."""

    @settings(max_examples=6)
    @given(keyed_cases(part) if keyed else cases(part), st.integers(0, 2**32))
    def examine(case: Case, seed: int) -> None:
        history = choose_history(case, seed, 4)
        complaint = next(examine_history(history, seen), None)
        if complaint:
            note(f"{history}\n{complaint}")
        assert not complaint

    examine()


@pytest.mark.parametrize("keyed", [False, True], ids=["as they are", "with keys"])
def test_a_view_is_what_would_be_computed_from_scratch(keyed: bool) -> None:
    seen = Counter[str]()
    for part in PARTS.values():
        agree(part, keyed, seen)
    assert seen["changes"] >= 20, seen
    assert seen["incremental"] >= 20, seen
    assert seen["recomputed"] >= 20, seen


#: Programs with a key whose facts go on for ever, with the predicates that they read and derive.
ENDLESS = {
    "mutual": "B(X) :- Diamondminus[1,1] A(X). A(X) :- Diamondminus[1,1] B(X), not C(X). D(X) :- A(X), not B(X)",
    "two periods": "A(X) :- Diamondminus[4,4] A(X). B(X) :- Diamondminus[6,6] B(X). D(X) :- A(X), B(X), not C(X)",
    "blocked": "D(X) :- A(X). D(X) :- Diamondminus[2,2] D(X), not Diamondminus[0,3] C(X). B(X) :- Boxminus[0,1] A(X)",
    "backward": "D(X) :- A(X). D(X) :- Diamondplus[3,3] D(X). B(X) :- Boxplus[0,2] A(X)",
    "both ways": "D(X) :- A(X). D(X) :- Diamondplus[3,3] D(X). D(X) :- Diamondminus[3,3] D(X), not C(X). B(X) :- C(X)",
    "since": "D(X) :- A(X) Since[0,9] B(X). D(X) :- Diamondminus[5,5] D(X). Boxplus[1,2] B(X) :- C(X)",
    "fractions": "D(X) :- Diamondminus[7/2,7/2] D(X). D(X) :- A(X). B(X) :- A(X), X != k1. C(X) :- D(X), Never(X)",
}


@pytest.mark.parametrize("integer", [False, True], ids=["rationals", "integers"])
def test_what_goes_on_for_ever_is_corrected_by_key(integer: bool) -> None:
    seen = Counter[str]()
    for name, rules in ENDLESS.items():
        if integer and "/" in rules:
            continue
        for seed in range(3 if integer else 1):
            random = Random(f"{name}{seed}")
            features = Features(integer=integer, endless_data=False, denominators=(1,))
            given = [
                (predicate, random.choice(KEYS), random.randrange(30 if integer else 9)) for predicate in "AABC" * 4
            ]
            facts = tuple(Fact(p, (key,), Interval(Fraction(at), Fraction(at + (at % 5 == 0)))) for p, key, at in given)
            parsed = tuple(map(numbered, tl.Program.parse(f"{rules}.").rules))
            history = choose_history(Case(parsed, facts, features), seed, 5)
            complaint = next(examine_history(replace(history, options={}), seen), None)
            assert not complaint, f"{history}\n{complaint}"
    assert seen["incremental"] >= 20, seen
    assert seen["changes that repeat"] >= 5, seen


#: Programs that never combine two facts.
SEPARATE = {
    "mutual": "B(X) :- Diamondminus[1,1] A(X). D(X) :- Boxminus[1,1] B(X). D(X) :- Diamondminus[1,1] C(X). "
    "C(X) :- Diamondminus[1,1] D(X)",
    "long": "Boxplus[0,1] D(X) :- A(X). D(X) :- Diamondminus[5,5] D(X). B(X) :- Diamondminus[0,2] D(X). C(X) :- B(X)",
    "shared": "D(X) :- A(X), Always. D(X) :- Diamondminus[2,2] D(X). B(X) :- Diamondminus[3,inf) C(X)",
}


@pytest.mark.parametrize("integer", [False, True], ids=["rationals", "integers"])
def test_facts_that_rules_never_combine_are_corrected_one_by_one(
    integer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Counter[str]()
    restore = SingleFacts.restore

    def count(facts: SingleFacts, extent: Extent, position: int) -> Extent:
        seen["one by one"] += 1
        return restore(facts, extent, position)

    monkeypatch.setattr(SingleFacts, "restore", count)
    # Facts as close together as these would be evaluated together.
    monkeypatch.setattr(TimeShift, "estimate_cost", lambda shift, reach: -len(shift.keys))
    for (name, rules), seed in product(SEPARATE.items(), range(3)):
        random = Random(f"{name}{seed}")
        features = Features(integer=integer, endless_data=False, denominators=(1,))
        given = [(predicate, random.choice(KEYS), random.randrange(12)) for predicate in "AABC" * 3]
        facts = tuple(Fact(p, (key,), Interval(Fraction(at), Fraction(at + at % 3))) for p, key, at in given)
        parsed = tuple(map(numbered, tl.Program.parse(f"{rules}.").rules))
        always = Fact("Always", (), Interval(-INF, INF, False, False))
        history = choose_history(Case(parsed, (*facts, always), features), seed, 4)
        complaint = next(examine_history(replace(history, options={}), seen), None)
        assert not complaint, f"{history}\n{complaint}"
    assert seen["one by one"] >= 20, seen
    assert seen["changes that repeat"] >= 3, seen


def test_a_view_with_numbers_is_what_would_be_computed_from_scratch() -> None:
    seen = Counter[str]()
    for part in NUMERIC_PARTS.values():
        for seed in range(4):
            case = numeric_case(seed, replace(part.features, keyed=seed % 2 == 0))
            history = choose_history(case, seed, 4)
            complaint = next(examine_history(history, seen), None)
            assert not complaint, f"{history}\n{complaint}"
    assert seen["changes"] >= 20, seen
    assert seen["incremental"] >= 40, seen
