"""Facts that stand: they are not extended step by step, and yet all answers are those of batch reasoning."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest

import tidelog as tl
from formula_parts import head_predicates
from streams import choose_plan, complaints, set_up
from tidelog.streaming import query_evaluation
from tidelog.streaming.compiled_query import compile_query
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import TimelineName

OPERATORS = (
    "",
    "",
    "Diamondminus[0,2] ",
    "Diamondminus[1,3] ",
    "Diamondminus(0,2) ",
    "Diamondminus[2,2] ",
    "Diamondminus[1,inf) ",
    "Boxminus[0,2] ",
    "Boxminus[1,3) ",
    "Boxminus(0,1] ",
)
BELOW = ("A(X)", "B(X)", "C(X)", "E(X,Y)", "E(Y,X)")


def draw_rules(chance: random.Random) -> str:
    """Layers of predicates over each other, the first with negation."""
    rules = []
    layers = ["P", "Q", "R", "S"][: chance.randint(1, 4)]
    for number, head in enumerate(layers):
        known = [f"{name}(X)" for name in layers[:number]]
        for _ in range(chance.choice((1, 1, 2))):
            body = [chance.choice(OPERATORS) + chance.choice([*known, *known, *BELOW])]
            if chance.random() < 0.5:
                body.append(chance.choice(OPERATORS) + chance.choice([*known, *BELOW]))
            if number == 0 or chance.random() < 0.3:
                body.append("not " + chance.choice(OPERATORS) + chance.choice([*known, *BELOW[:3]]))
            if not any("X" in part and not part.startswith("not") for part in body):
                body.append("A(X)")
            if chance.random() < 0.1 and number:
                body = [f"A(X) Since[0,3] {chance.choice(known)}"]
            box = "Boxplus[0,1] " if chance.random() < 0.1 else ""
            rules.append(f"{box}{head}(X) :- {', '.join(body)}.")
    return "\n".join(rules)


def draw_facts(chance: random.Random, integer: bool) -> list[str]:
    """Facts of all predicates, also of derived ones, some of which lie ahead or have no end."""
    facts = []
    for _ in range(chance.randint(3, 25)):
        name = chance.choice("AAABBCCEPQR")
        args = chance.choice(("a", "b"))
        if name == "E":
            args = f"{args},{chance.choice('abc')}"
        lo = chance.randint(0, 14) if integer else chance.randint(0, 28) / 2
        hi = lo + chance.choice((0, 0, 0, 1, 1, 2, 5))
        when = (
            f"[{lo},{hi}]" if integer or hi == lo else chance.choice((f"[{lo},{hi}]", f"({lo},{hi})", f"[{lo},{hi})"))
        )
        facts.append(f"{name}({args})" + chance.choice(("", *[f"@{when}"] * 9, "@[3,inf)")))
    return facts


def count_standing(rules: str, query: str, timeline: TimelineName) -> int:
    grid = Grid(timeline == "rational", 2 if timeline == "rational" else 1)
    return len(compile_query(tl.Program.parse(rules), query, grid, False).bounds.standing)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_facts_that_stand_are_those_of_batch_reasoning(start: int) -> None:
    """In half of the runs, constants get new numbers as often as possible, so that all atoms are looked at again."""
    stood = 0
    for seed in range(start, start + 50):
        chance = random.Random(seed)
        timeline: TimelineName = chance.choice(("rational", "integer"))
        rules, facts = draw_rules(chance), draw_facts(chance, timeline == "integer")
        program = tl.Program.parse(rules)
        query = chance.choice(sorted(head_predicates(program.rules)))
        stood += count_standing(rules, query, timeline)
        plan = choose_plan(chance.choice, ("A", "B", "C"), integer=timeline == "integer")
        setup = set_up(program, query, [program.to_fact(fact) for fact in facts], timeline)
        with patch.object(query_evaluation, "MANY_NAMES", -(10**6) if seed % 2 else query_evaluation.MANY_NAMES):
            wrong = next(complaints(tl.Reasoner, setup, plan), None)
        assert wrong is None, f"seed {seed}: {wrong}\n{plan}\n{rules}\n" + "\n".join(facts)
    assert stood > 30


@pytest.mark.usefixtures("kernels")
def test_a_fact_that_begins_to_stand_where_it_was_known_anyway_keeps_what_was_known() -> None:
    """Here A(c) is known up to 20 from a fact that is forgotten, stands from there on, and is ended at once."""
    rules = "A(X) :- R(X), not Diamondminus[0,1] Q(X).  A(X) :- Diamondminus[0,2] P(X)."
    reasoner = tl.Reasoner(tl.Program.parse(rules), "A", delay="1/2")
    with patch.object(query_evaluation, "MANY_NAMES", -(10**6)):  # all atoms are looked at again after every step
        found = [*reasoner.push(18, ["P(c)@18"]), *reasoner.push(20, ["R(c)@(20,21]"]), *reasoner.push(21, ["P(c)@21"])]
    assert [str(fact.interval) for fact in [*found, *reasoner.finish()]] == ["[18,21]"]
