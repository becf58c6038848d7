"""Rules that never combine two facts, whose facts a view evaluates one by one."""

from __future__ import annotations

import pytest

import tidelog as tl
from tidelog.analysis.key_stages import plan_stages
from tidelog.compiler.compiled_program import Target
from tidelog.compiler.passes import compile_program
from tidelog.corrections.single_facts import combines_no_facts

SEPARATE = {
    "diamonds and heads": "Boxplus[0,2] Q(X) :- Diamondminus[1,5] P(X). Q(X) :- Diamondminus[7,7] Q(X).",
    "a box at a single distance": "Q(X) :- Boxminus[1,1] P(X, Y). Q(X) :- Diamondplus[1,2] Q(X).",
    "nested operators": "Q(X) :- Diamondminus[0,3] Boxminus[2,2] P(X).",
    "another argument": "Q(Y, X) :- P(X, Y). Q(Y, X) :- Diamondminus[2,2] Q(Y, X).",
}

COMBINED = {
    "a join": "Q(X) :- P(X), Diamondminus[1,1] R(X).",
    "negation": "Q(X) :- P(X), not R(X).",
    "a box over a range": "Q(X) :- Boxminus[0,2] P(X).",
    "since": "Q(X) :- P(X) Since[0,3] R(X).",
    "a constant of the key": "Q(X) :- P(X). Q(a) :- P(a), R(a).",
    "a comparison of the key": "Q(X) :- P(X), X != a.",
    "a key that occurs twice": "Q(X) :- P(X, X).",
    "a head with the key twice": "Q(X, X) :- P(X).",
}


def examine(rules: str, query: str = "Q") -> bool:
    (stage,) = plan_stages(tl.Program.parse(rules), (query,))
    assert stage.keyed
    return combines_no_facts(compile_program(stage.program, Target("batch", stage.queries, "rational")), stage.key)


@pytest.mark.parametrize("rules", SEPARATE.values(), ids=SEPARATE)
def test_facts_are_separate(rules: str) -> None:
    assert examine(rules)


@pytest.mark.parametrize("rules", COMBINED.values(), ids=COMBINED)
def test_facts_are_combined_or_their_constants_matter(rules: str) -> None:
    assert not examine(rules)


def test_relations_that_all_constants_read_do_not_count() -> None:
    assert examine("Q(X) :- P(X, V), High(V), not Off.")
