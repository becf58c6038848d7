"""Models of least cost, checked against all stable models of random programs."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

import stable_random
import tidelog as tl
from tidelog.language.fact_text import format_fact
from tidelog.stable import StableModel, search_limits, solver_choice
from tidelog.stable.two_way_solver import TwoWaySolver

pytestmark = pytest.mark.usefixtures("kernels")

LO, HI = -1, 3


def appearance(model: StableModel) -> frozenset[tuple[str, int]]:
    return frozenset(
        (fact.predicate, time)
        for fact in model.facts
        for time in range(LO, HI + 1)
        if fact.interval.lo <= time <= fact.interval.hi
    )


def check(seed: int, weights: dict[str, int]) -> bool:
    """Compare with the cheapest of all models; return whether some model is more expensive."""
    rng = Random(seed)
    text = stable_random.generate_two_way_program(rng) if seed % 2 == 0 else stable_random.program(rng)
    facts = stable_random.facts(rng)
    if seed % 3:  # often something to choose
        text += "\nP :- not Q, E.\nQ :- not P, E."
        facts += "\nE@[0,2]"
    program, data = tl.Program.parse(text), tl.Dataset.parse(facts)
    known = {name: weight for name, weight in weights.items() if name in program.predicates}
    try:
        models = [appearance(m) for m in tl.stable_models(program, data, models=0, between=(LO, HI))]
        found = list(tl.stable_models(program, data, models=0, between=(LO, HI), weights=known))
    except tl.errors.Undecided:
        return False
    costs = {model: sum(known.get(name, 0) for name, _ in model) for model in models}
    least = min(costs.values(), default=None)
    assert all(model.cost == least for model in found), (seed, text, weights)
    shown = [appearance(model) for model in found]
    assert len(shown) == len(set(shown)), seed
    assert set(shown) == {model for model, cost in costs.items() if cost == least}, (seed, text, weights)
    return len(set(costs.values())) > 1


@pytest.mark.parametrize("few", [0, 10**9])
def test_the_models_found_are_the_cheapest_of_all(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_limits, "FEW_CHOICES", few)
    several = 0
    for seed in range(3000, 3120):
        rng = Random(-seed)
        several += check(seed, {name: rng.choice([-2, -1, 0, 1, 1, 3]) for name in "PQE"})
    assert several > 15


def test_the_search_for_both_directions_finds_the_cheapest_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_choice, "build_solvers", lambda problem, limit: [TwoWaySolver(problem, limit)])
    assert sum(check(seed, {"P": 2, "Q": -1}) for seed in range(4000, 4060)) > 15


SHIFTS = "Ann :- Day, not Bob. Bob :- Day, not Ann. Bottom :- Boxminus[0,2] Ann. Bottom :- Boxminus[0,2] Bob."


def test_a_component_with_far_too_many_models_to_list() -> None:
    """Over 200 days there are more than 10^40 rosters. Bob works at most two days of three."""
    (model,) = tl.stable_models(tl.Program.parse(SHIFTS), tl.Dataset.parse("Day@[1,200]"), weights="Ann")
    assert model.cost == 66


def test_a_coupled_component_is_optimised_by_clingo() -> None:
    rules = """
    Red(X) :- Node(X), not Blue(X).
    Blue(X) :- Node(X), not Red(X).
    Clash(X) :- Edge(X, Y), Red(X), Red(Y).
    Clash(X) :- Edge(X, Y), Blue(X), Blue(Y).
    """
    nodes = 15
    lines = [f"Node(n{i})@[0,3]\nEdge(n{i},n{(i + 1) % nodes})@[0,3]" for i in range(nodes)]
    (model,) = tl.stable_models(tl.Program.parse(rules), tl.Dataset.parse("\n".join(lines)), weights={"Clash": 2})
    assert model.cost == 8  # an odd ring has one edge with both ends of one colour, at each of four times


def test_weights_may_be_arguments_and_patterns_add_up() -> None:
    rules = "Go(X) :- Trip(X, W), not Stay(X). Stay(X) :- Trip(X, W), not Go(X). Pays(X, W) :- Go(X), Trip(X, W)."
    data = tl.Dataset.from_facts(["Trip(a,3)@0", "Trip(b,1/2)@0", "Trip(b,1/2)@1"])
    weights = ["Pays(_,W)=W", "Stay(a)=4", "Stay(b)=1/4", "Trip=10"]
    (model,) = tl.stable_models(tl.Program.parse(rules), data, weights=weights, models=0)
    shown = [format_fact(fact) for fact in model.facts if fact.predicate in ("Go", "Stay")]
    assert (shown, model.cost) == (["Go(a)@0", "Stay(b)@[0,1]"], 30 + 3 + Fraction(1, 2))
    assert model.to_json()["cost"] == "67/2"


@pytest.mark.parametrize(
    "weight, message",
    [
        ("Late=soon", "neither a number nor an argument"),
        ("Lat=1", "occurs neither in the rules nor in the facts"),
        ("Late(a,b)=1", "has 1 argument, not 2"),
        ("Late(", "`Late\\("),
        ("Late(X)=X", "is no number"),
        (["Late=1/4000000000", "Early=1"], "differ too much"),
    ],
)
def test_unreadable_weights_are_refused(weight: str | list[str], message: str) -> None:
    program = tl.Program.parse("Late(X) :- Bus(X), not Early(X). Early(X) :- Bus(X), not Late(X).")
    with pytest.raises(tl.TidelogError, match=message) as caught:
        tl.stable_models(program, tl.Dataset.parse("Bus(b7)@1"), weights=weight)
    assert caught.value.diagnostics[0].code == "TL330"


def test_without_a_model_there_is_no_cost() -> None:
    found = tl.stable_models(tl.Program.parse("P :- A, not P."), tl.Dataset.parse("A@1"), weights="P")
    assert (found.satisfiable, list(found)) == (False, [])
