"""Braces that need the value of another aggregate of the same rule, with random facts, in batch and over streams."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

import numeric_oracle
import tidelog as tl
from tidelog.language.fact_text import format_fact
from tidelog.timeline.interval import TimelineName

pytestmark = pytest.mark.usefixtures("kernels")

RULES = [
    "Q(K, Z) :- A(_), K = count{ P(V), V > Z }, Z = X + 1, X = max{ Y : R(_, Y) }.",
    "Q(X, S) :- count{ R(X, Y) } > 0, S = sum{ V + X : P(V) }.",
    "Q(G, K) :- M = avg{ Y : R(G, Y) }, K = count{ R(G, V), V > M }.",
    "Q(G, K) :- A(G), N = count{ R(G, _) }, K = count{ P(V), V > N }.",
    "Q(K, M) :- A(_), X = max{ Y : R(_, Y) }, M = avg{ V - X : P(V) }, K = count{ P(V), V - X > M }.",
    "Q(G, K) :- A(G), not P(G), N = last[0,3]{ Y : R(G, Y) }, K = sum[0,2]{ V : P(V), V >= N }.",
    "Q(G) :- A(G), N = min{ Y : R(G, Y) }, count[0,4]{ P(V), V = N } >= 1.",
    "Q(K) :- X = max{ Y : R(_, Y) }, K = count{ R(X, _) }.",
    "Q(G, K) :- A(G), K = sum{ V * N : P(V) }, N = count{ R(G, _) }, K > N.",
]
FACTS_PER_RULE = 4
END = 15


def draw_facts(seed: int) -> list[str]:
    """Draw facts of A, P and R, in the order of their beginnings."""
    draw = Random(seed)
    found: list[tuple[int, str]] = []
    for _ in range(draw.randint(3, 9)):
        name, lo, length = draw.choice("APRR"), draw.randint(0, 6), draw.choice([0, 0, 1, 2, 4])
        values = [draw.randint(0, 2)] * (name == "R") + [draw.randint(0, 2 if name == "A" else 4)]
        left = "(" if length and draw.random() < 0.2 else "["
        right = ")" if length and draw.random() < 0.3 else "]"
        found.append((lo, f"{name}({','.join(map(str, values))})@{left}{lo},{lo + length}{right}"))
    return [text for _, text in sorted(found, key=lambda one: one[0])]


@pytest.mark.parametrize("timeline", ["rational", "integer"])
@pytest.mark.parametrize("rule", RULES)
def test_values_come_before_the_braces_that_need_them(rule: str, timeline: TimelineName) -> None:
    program = tl.Program.parse(rule)
    for seed in range(FACTS_PER_RULE):
        text = "\n".join(draw_facts(1000 * RULES.index(rule) + seed))
        data = tl.Dataset.parse(text)
        between = Fraction(-1), Fraction(END)
        truth = numeric_oracle.evaluate(program.rules, list(data), between, timeline)
        expected = sorted(format_fact(fact) for fact in truth if fact.predicate == "Q")
        model = tl.materialise(program, data, query="Q", between=between, timeline=timeline)
        assert sorted(map(format_fact, model)) == expected, text
        reasoner = tl.Reasoner(program, "Q", timeline=timeline)
        steps = [*reasoner.feed(tl.Dataset.parse(text, ordered=True)), reasoner.finish_step(END)]
        assert sorted(format_fact(fact) for step in steps for fact in step.answers) == expected, text
        for fact in model:
            assert tl.explain(program, data, fact, timeline=timeline).proof is not None, text
