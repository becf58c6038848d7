"""Stable models, checked against the paper's examples, the definitions on random programs, and the other reasoners."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, product
from math import inf
from random import Random

import pytest

import stable_random
import tidelog as tl
from stable_oracle import FiniteOracle, StableOracle, Word, atoms_of
from tidelog.language.fact_text import format_fact
from tidelog.stable import (
    StableModel,
    StableReasoner,
    search_limits,
    solver_choice,
    stable_consequences,
    stable_entails,
    window_paths,
)
from tidelog.stable.two_way_solver import TwoWaySolver

pytestmark = pytest.mark.usefixtures("kernels")

SERVICE = "Service(X) :- Diamondminus[12,12] Service(X), not Diamondminus(0,12) Service(X)."


def find_models(
    rules: str, data: str = "", between: tuple[int, int] | None = None, number: int = 0
) -> list[StableModel]:
    found = tl.stable_models(tl.Program.parse(rules), tl.Dataset.parse(data), models=number, between=between)
    listed = list(found)
    assert found.satisfiable is bool(listed)
    return listed


def list_facts(rules: str, data: str = "", between: tuple[int, int] | None = None) -> list[list[str]]:
    return sorted([format_fact(fact) for fact in model.facts] for model in find_models(rules, data, between))


def answer(rules: str, data: str, fact: str, mode: str) -> str:
    return stable_entails(tl.Program.parse(rules), tl.Dataset.parse(data), fact, mode=mode).value


# Examples


def test_example_3_6_first_part() -> None:
    assert list_facts("R :- Diamondminus[1,1] P, not Q.", "P@[0,1]", (-5, 5)) == [["P@[0,1]", "R@[1,2]"]]


def test_example_3_6_second_part_looks_both_ways() -> None:
    rules = "R :- P, not Diamondplus[1,1] R. R :- Q, not Diamondminus[1,1] R."
    assert list_facts(rules, "P@0\nQ@1") == [["P@0", "Q@1", "R@0"], ["P@0", "Q@1", "R@1"]]
    assert all(model.repeats_after is model.repeats_before is None for model in find_models(rules, "P@0\nQ@1"))
    assert answer(rules, "P@0\nQ@1", "R@0", "brave") == "yes"
    assert answer(rules, "P@0\nQ@1", "R@0", "cautious") == "no"
    assert answer(rules, "P@0\nQ@1", "R@2", "brave") == "no"


def test_example_3_6_third_part_has_a_model_for_every_set_of_times() -> None:
    assert list_facts("Q :- not P. P :- not Q.", "", (0, 1)) == [
        ["P@0", "Q@1"],
        ["P@1", "Q@0"],
        ["P@[0,1]"],
        ["Q@[0,1]"],
    ]


def test_service_rule_over_several_vehicles() -> None:
    (model,) = find_models(SERVICE, "Service(a)@0\nService(b)@3\nService(a)@5", (0, 40))
    at = {"a": [0, 5, 17, 29], "b": [3, 15, 27, 39]}
    assert [format_fact(f) for f in model.facts] == [f"Service({v})@{t}" for v, times in at.items() for t in times]
    assert model.repeats_after is not None
    assert model.repeats_after.start == 3
    assert model.repeats_after.every == 12
    assert [format_fact(f) for f in model.repeats_after.facts] == ["Service(a)@5", "Service(b)@3"]
    assert model.repeats_before is None
    shifted = "Boxplus[12,12] Service(X) :- Service(X), not Diamondplus(0,12) Service(X)."
    assert list_facts(shifted, "Service(a)@0\nService(a)@5", (0, 40)) == list_facts(
        SERVICE, "Service(a)@0\nService(a)@5", (0, 40)
    )


def test_decommissioning_rule() -> None:
    rules = "Boxplus[0,inf) D(X) :- Diamondminus(12,inf) M(X), not Diamondminus[0,1] Pass(X)."
    assert list_facts(rules, "M(a)@0\nPass(a)@[13,15]\nM(b)@2", (16, 20)) == [["D(a)@[17,20]", "D(b)@[16,20]"]]
    assert answer(rules, "M(a)@0", "D(a)@[13,inf)", "cautious") == "yes"


@pytest.mark.parametrize("rules, data", [("P :- not P.", ""), ("P :- A, not P.", "A@3"), ("P :- not Q. Q :- P.", "")])
def test_odd_loops_have_no_model(rules: str, data: str) -> None:
    assert list_facts(rules, data) == []
    assert answer(rules, data, "P@0", "brave") == "no"
    assert answer(rules, data, "P@0", "cautious") == "yes"


def test_an_atom_that_only_follows_from_itself_does_not_hold() -> None:
    assert list_facts("P :- Diamondminus[1,1] P.", "", (-3, 3)) == [[]]
    assert list_facts("R :- Boxminus[0,inf) R.", "", (-3, 3)) == [[]]
    assert list_facts("P :- Diamondminus[1,1] Q. Q :- Diamondminus[1,1] P.", "", (-3, 3)) == [[]]


def test_a_default_holds_from_the_beginning_of_time() -> None:
    (model,) = find_models("P :- not Q. R :- Boxminus[0,inf) P.", "", (-2, 2))
    assert [format_fact(fact) for fact in model.facts] == ["P@[-2,2]", "R@[-2,2]"]
    assert model.repeats_before is not None
    assert [format_fact(fact) for fact in model.repeats_before.facts] == ["P@-3", "R@-3"]
    assert [format_fact(fact) for fact in model.within(-1000, 1000)] == ["P@[-1000,1000]", "R@[-1000,1000]"]


def test_a_prefix_that_cannot_go_on_for_ever_is_no_model() -> None:
    rules = "P :- Diamondminus[1,1] P. Bottom :- P, not Q."
    assert list_facts(rules, "P@0\nQ@[0,50]") == []
    assert list_facts(rules, "P@0\nQ@[0,inf)", (0, 1)) == [["P@[0,1]", "Q@[0,1]"]]
    # Choices that lead into the dead end are left out; the others stay.
    choice = "P :- A, not Q. Q :- A, not P. R :- P. R :- Diamondminus[1,1] R. Bottom :- Diamondminus[20,20] R."
    assert list_facts(choice, "A@0") == [["A@0", "Q@0"]]


def test_background_facts_hold_before_the_data() -> None:
    rules = "Down(X) :- Node(X), not Diamondminus[0,2] Beat(X)."
    (model,) = find_models(rules, "Node(a)\nBeat(a)@0", (-1, 3))
    assert [format_fact(f) for f in model.facts] == ["Beat(a)@0", "Down(a)@-1", "Down(a)@3", "Node(a)@[-1,3]"]
    assert answer(rules, "Node(a)\nBeat(a)@0", "Down(a)@(-inf,-1]", "cautious") == "yes"
    assert answer(rules, "Node(a)\nBeat(a)@0", "Down(a)@(-inf,0]", "brave") == "no"


def test_backward_propagating_programs_are_mirrored() -> None:
    rules = "P :- Diamondplus[1,1] P, not Q. Q :- Diamondplus[4,4] End."
    assert list_facts(rules, "P@3\nEnd@3", (-5, 3)) == [["End@3", "P@[0,3]", "Q@-1"]]
    assert list_facts(rules, "P@[3,inf)\nEnd@3", (-5, 4)) == [["End@3", "P@[0,4]", "Q@-1"]]
    assert answer(rules, "P@[3,inf)\nEnd@3", "P@[0,inf)", "cautious") == "yes"


def test_rules_that_look_ahead_without_a_cycle_are_decided() -> None:
    rules = "P :- Diamondplus[2,2] Q, not R. R :- Diamondminus[1,1] R. Bottom :- Diamondplus[1,1] X, not P."
    assert list_facts(rules, "Q@5\nX@4", (3, 5)) == [["P@3", "Q@5", "X@4"]]
    assert list_facts(rules, "Q@5\nX@5") == []


def test_unbounded_questions() -> None:
    rules = "P :- not Q. Q :- not P. Bottom :- P, E."
    assert answer(rules, "E@3", "P@[4,inf)", "brave") == "yes"
    assert answer(rules, "E@3", "P@(-inf,2]", "brave") == "yes"
    assert answer(rules, "E@3", "P@(-inf,inf)", "brave") == "no"
    assert answer(rules, "E@3", "P@[4,inf)", "cautious") == "no"
    stays = rules + " P :- Diamondminus[1,1] P, not E. Start :- Diamondminus[1,1] Go. P :- Start."
    assert answer(stays, "Go@5", "P@[6,inf)", "cautious") == "yes"
    assert answer(stays, "Go@5", "P@[5,inf)", "cautious") == "no"
    assert answer(stays, "Go@5", "P@(-inf,inf)", "brave") == "yes"
    assert answer("P :- E, not Q.", "E@3", "P@(3,4)", "cautious") == "yes"


def test_cautious_answers_wait_for_what_must_come() -> None:
    # In every model P fails at some time, but for each time there is a model in which it has not failed yet.
    rules = "P :- Go, not Q. Q :- Go, not P. Bottom :- P, Boxminus[1,3] P. Go :- Diamondminus[1,1] Go."
    assert answer(rules, "Go@0", "P@[0,inf)", "brave") == "no"
    assert answer(rules, "Go@0", "P@[0,2]", "brave") == "yes"


def test_components_do_not_multiply() -> None:
    """Sixty independent choices have 2^60 models; the first few are found without enumerating the others."""
    rules = "On(X) :- Lamp(X), not Off(X). Off(X) :- Lamp(X), not On(X). Bottom :- On(X), Diamondminus[1,1] On(X)."
    data = "\n".join(f"Lamp(l{i})@[0,9]" for i in range(60))
    found = list(tl.stable_models(tl.Program.parse(rules), tl.Dataset.parse(data), models=5))
    assert len({tuple(model.facts) for model in found}) == 5
    assert answer(rules, data, "On(l7)@[3,4]", "brave") == "no"


RING = """
Red(X) :- Node(X), not Green(X).
Green(X) :- Node(X), not Red(X).
Bottom :- Edge(X, Y), Red(X), Red(Y).
Bottom :- Red(X), Diamondminus[1,1] Red(X).
"""


def ring(nodes: int, last: int) -> tl.Dataset:
    edges = [f"Edge(n{i},n{(i + 1) % nodes})" for i in range(nodes)]
    return tl.Dataset.from_facts([*edges, *(f"Node(n{i})@[0,{last}]" for i in range(nodes))])


@pytest.mark.parametrize("few", [0, 10**9])
def test_a_component_with_many_choices_has_the_models_of_its_definition(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both time point by time point, and as one program over the whole range."""
    monkeypatch.setattr(search_limits, "FEW_CHOICES", few)
    nodes, last = 5, 2
    apart = [s for s in range(1 << nodes) if not s & (s << 1 | s >> (nodes - 1))]
    expected = {
        frozenset((f"n{i}", t) for t, s in enumerate(way) for i in range(nodes) if s >> i & 1)
        for way in product(apart, repeat=last + 1)
        if not any(a & b for a, b in pairwise(way))
    }
    found = [
        frozenset((fact.args[0], t) for fact in model.facts for t in range(last + 1) if is_red_at(fact, t))
        for model in tl.stable_models(tl.Program.parse(RING), ring(nodes, last), models=0)
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_ring_of_100_nodes_over_21_times_has_a_model() -> None:
    """It has far too many models to list the slices of a single time point."""
    (model,) = tl.stable_models(tl.Program.parse(RING), ring(100, 20))
    red = {(fact.args[0], t) for fact in model.facts for t in range(21) if is_red_at(fact, t)}
    assert not any((f"n{(i + 1) % 100}", t) in red for i in range(100) for t in range(21) if (f"n{i}", t) in red)
    assert not any((f"n{i}", t + 1) in red for i in range(100) for t in range(20) if (f"n{i}", t) in red)


def is_red_at(fact: tl.Fact, time: int) -> bool:
    return fact.predicate == "Red" and fact.interval.lo <= time <= fact.interval.hi


def test_programs_that_look_both_ways_say_unknown_rather_than_guess() -> None:
    rules = "P :- Diamondminus[1,1] P, not Diamondplus[1,1] Q. P :- A. Q :- Diamondplus[7,7] Q, not P. Q :- not Q, B."
    program, data = tl.Program.parse(rules), tl.Dataset.parse("A@0")
    try:
        found = list(tl.stable_models(program, data, models=0, between=(0, 2)))
    except tl.errors.Undecided:
        return
    assert [[format_fact(fact) for fact in model.facts] for model in found] == [["A@0", "P@[0,2]"]]


# Random programs, by the definitions

LO, HI, SETTLED = 0, 2, 6


def random_case(seed: int) -> tuple[tl.Program, tl.Dataset, StableOracle, str]:
    rng = Random(seed)
    program = tl.Program.parse(stable_random.program(rng))
    data = tl.Dataset.parse(stable_random.facts(rng))
    given = tuple((f.predicate, float(f.interval.lo), float(f.interval.hi)) for f in data)
    return program, data, StableOracle(program.rules, given), atoms_of(program.rules, given)


def appearance(model: StableModel, lo: int = LO, hi: int = HI) -> tuple[frozenset[str], ...]:
    facts = model.within(lo, hi)
    return tuple(
        frozenset(fact.predicate for fact in facts if fact.interval.lo <= time <= fact.interval.hi)
        for time in range(lo, hi + 1)
    )


def to_word(model: StableModel) -> tuple[Word, int]:
    """Return a whole model as the oracle has it, and how many of the last slices repeat."""
    before, after = model.repeats_before, model.repeats_after
    left = int(before.every) if before else 1
    right = int(after.every) if after else 1
    begin = min(int(before.start) if before else LO - 50, LO)
    end = max(int(after.start) - 1 if after else HI + 50, HI)
    slices = appearance(model, begin - left, end + right)
    return Word(begin, slices[:left], slices[left:]), right


def test_data_from_the_beginning_of_time_against_the_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    with_past, undecided = 0, 0
    for seed in range(7000, 7030):
        rng = Random(seed)
        program = tl.Program.parse(stable_random.program(rng))
        past = f"{rng.choice('EP')}@(-inf,{rng.randint(-1, 3)}]"
        data = tl.Dataset.parse(f"{stable_random.facts(rng)}\n{past}")
        given = tuple((f.predicate, float(f.interval.lo), float(f.interval.hi)) for f in data)
        oracle = StableOracle(program.rules, given)
        found = list(tl.stable_models(program, data, models=0, between=(LO, HI)))
        appearances = {appearance(model) for model in found}
        for model in found[:5]:
            whole, right = to_word(model)
            assert oracle.is_stable(whole, right, SETTLED), (seed, model.to_json())
        assert oracle.find_models(atoms_of(program.rules, given), LO, HI, SETTLED) <= appearances, seed
        with_past += any(model.repeats_before is not None for model in found)
        with monkeypatch.context() as patched:
            patched.setattr(solver_choice, "build_solvers", lambda problem, limit: [TwoWaySolver(problem, limit)])
            try:
                both_ways = list(tl.stable_models(program, data, models=0, between=(LO, HI)))
            except tl.errors.Undecided:
                undecided += 1
            else:
                assert {appearance(model) for model in both_ways} == appearances, seed
    assert with_past > 12
    assert undecided < 4


def show_around_gap(program: tl.Program, times: list[int], gap: int) -> object:
    """Return the facts of some models around a gap, with those after it as if there was none, and what repeats."""
    data = tl.Dataset.from_facts([f"{'EP'[i % 2]}@{t + (gap if i > 1 else 0)}" for i, t in enumerate(times)])
    try:
        found = list(tl.stable_models(program, data, models=9, between=(-3, gap + 9)))
    except tl.errors.Undecided:
        return None
    shown = [fact for model in found for part in ((-3, 16), (gap - 9, gap + 9)) for fact in model.within(*part)]
    ends = [(f.predicate, end) for f in shown for end in (f.interval.lo, f.interval.hi)]
    moved = [(predicate, end - (gap if end > gap // 2 else 0)) for predicate, end in ends]
    return moved, [(repeat.fact.predicate, repeat.before) for model in found for repeat in model.repeats]


@pytest.mark.parametrize("periods", [(), (2, 3), (4, 5), (1, 6, 7)])
def test_long_gaps_are_like_short_ones(monkeypatch: pytest.MonkeyPatch, periods: tuple[int, ...]) -> None:
    """A gap of billions is a gap of some hundreds with its middle repeated."""
    compared = 0
    for seed in range(8000, 8030):
        rng = Random(seed)
        text = stable_random.program(rng)
        for every in periods:
            text += (
                f"\n{rng.choice('PQ')} :- Diamondminus[{every},{every}] {rng.choice('PPE')}, not {rng.choice('PQE')}."
            )
        program = tl.Program.parse(text.replace("minus", "plus") if seed % 2 else text)
        times = [*rng.sample(range(6), 2), *rng.sample(range(6), 2)]
        monkeypatch.setattr(window_paths, "MOST_REPEATED", 10**6)
        short = show_around_gap(program, times, 840)
        monkeypatch.setattr(window_paths, "MOST_REPEATED", 4)
        assert show_around_gap(program, times, 840) == short, seed
        far = show_around_gap(program, times, 840 * 10**7)
        if far is not None:
            compared += 1
            assert far == short, seed
    assert compared > 15


@pytest.mark.parametrize("block", range(4))
def test_random_programs_against_the_definitions(block: int) -> None:
    for seed in range(block * 150, block * 150 + 150):
        program, data, oracle, atoms = random_case(seed)
        found = list(tl.stable_models(program, data, models=0, between=(LO, HI)))
        appearances = [appearance(model) for model in found]
        assert len(set(appearances)) == len(appearances), seed
        for model in found[:5]:
            whole, right = to_word(model)
            assert oracle.is_stable(whole, right, SETTLED), (seed, model.to_json())
        assert oracle.find_models(atoms, LO, HI, SETTLED) <= set(appearances), seed


def test_the_search_for_both_directions_agrees_where_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    undecided = 0
    for seed in range(1000, 1150):
        program, data, _, _ = random_case(seed)
        expected = {appearance(model) for model in tl.stable_models(program, data, models=0, between=(LO, HI))}
        with monkeypatch.context() as patched:
            patched.setattr(solver_choice, "build_solvers", lambda problem, limit: [TwoWaySolver(problem, limit)])
            found: set[tuple[frozenset[str], ...]] = set()
            try:
                for model in tl.stable_models(program, data, models=0, between=(LO, HI)):
                    found.add(appearance(model))
            except tl.errors.Undecided:
                undecided += 1
                assert found <= expected, seed
            else:
                assert found == expected, seed
    assert undecided < 15


def test_programs_that_look_both_ways_against_the_definitions() -> None:
    several = 0
    for seed in range(6000, 6120):
        rng = Random(seed)
        program = tl.Program.parse(stable_random.generate_two_way_program(rng))
        times = sorted(rng.sample(range(6), 4))
        facts = [("E", t) for t in times] + [(rng.choice("PQ"), rng.choice(times))] * rng.randrange(2)
        oracle = FiniteOracle(program.rules, tuple((a, t, t) for a, t in facts), 0, 5)
        expected = oracle.find_models("PQ")
        data = tl.Dataset.from_facts([f"{atom}@{t}" for atom, t in facts])
        found = [
            frozenset((atom, t) for t, some in enumerate(appearance(model, 0, 5)) for atom in some)
            for model in tl.stable_models(program, data, models=0, between=(0, 5))
        ]
        assert len(found) == len(set(found)), seed
        assert set(found) == expected, seed
        several += len(found) > 1
    assert several > 10


def _points(facts: Iterable[tl.Fact], lo: int, hi: int) -> set[tuple[str, int]]:
    return {(f.predicate, t) for f in facts for t in range(lo, hi + 1) if f.interval.lo <= t <= f.interval.hi}


@pytest.mark.parametrize("few", [0, 10**9])
def test_consequences_are_those_of_the_models(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all predicates at once, by each solver."""
    monkeypatch.setattr(search_limits, "FEW_CHOICES", few)
    several = 0
    for seed in range(3000, 3100):
        rng = Random(seed)
        text = stable_random.generate_two_way_program(rng) if seed % 2 == 0 else stable_random.program(rng)
        program, data = tl.Program.parse(text), tl.Dataset.parse(stable_random.facts(rng))
        try:
            models = [_points(m.facts, LO, HI) for m in tl.stable_models(program, data, models=0, between=(LO, HI))]
        except tl.errors.Undecided:
            continue
        several += len(models) > 1
        for predicate in sorted(program.predicates):
            for mode in ("brave", "cautious"):
                found = stable_consequences(program, data, predicate, mode=mode, between=(LO, HI))
                assert found.satisfiable == bool(models), seed
                combined = (set.union if mode == "brave" else set.intersection)(*models) if models else set()
                expected = {point for point in combined if point[0] == predicate}
                assert _points(found.facts, LO, HI) == expected, (seed, predicate, mode, text)
    assert several > 4


def test_consequences_of_a_pattern() -> None:
    rules = "On(X, Y) :- Lamp(X, Y), not Off(X, Y). Off(X, Y) :- Lamp(X, Y), not On(X, Y). Bottom :- Off(hall, Y)."
    program = tl.Program.parse(rules)
    data = tl.Dataset.from_facts(["Lamp(hall,l1)@[0,3]", "Lamp(hall,l2)@[2,5]", "Lamp(attic,l1)@1", "On(attic,l9)@7"])

    def facts(pattern: str, mode: str) -> list[str]:
        return [format_fact(fact) for fact in stable_consequences(program, data, pattern, mode=mode).facts]

    assert facts("On", "cautious") == ["On(attic,l9)@7", "On(hall,l1)@[0,3]", "On(hall,l2)@[2,5]"]
    assert facts("On(_,l1)", "brave") == ["On(attic,l1)@1", "On(hall,l1)@[0,3]"]
    assert facts("Off", "brave") == ["Off(attic,l1)@1"]
    assert facts("Off", "cautious") == []
    assert facts("Lamp(attic,_)", "cautious") == ["Lamp(attic,l1)@1"]
    nothing = stable_consequences(tl.Program.parse("P :- A, not P."), tl.Dataset.parse("A@1"), "P", mode="cautious")
    assert (nothing.satisfiable, nothing.facts) == (False, ())


@pytest.mark.parametrize("mode", ["brave", "cautious"])
def test_random_questions_agree_with_the_models(mode: str) -> None:
    for seed in range(2000, 2120):
        program, data, _, atoms = random_case(seed)
        if "P" not in atoms:
            continue
        found = [appearance(model) for model in tl.stable_models(program, data, models=0, between=(LO, HI))]
        for lo, hi in ((0, 0), (1, 2)):
            truths = [all("P" in some[t] for t in range(lo, hi + 1)) for some in found]
            expected = any(truths) if mode == "brave" else all(truths)
            answer = stable_entails(program, data, f"P@[{lo},{hi}]", mode=mode)
            assert (answer is tl.types.Answer.YES) is expected, (seed, lo, hi)


def test_mirrored_programs_have_mirrored_models() -> None:
    reversed_words = {"minus": "plus", "Since": "Until"}
    for seed in range(3000, 3060):
        rng = Random(seed)
        rules, facts = stable_random.program(rng), stable_random.facts(rng)
        if "Boxplus" in rules or "inf" in facts:
            continue
        backwards = rules
        for old, new in reversed_words.items():
            backwards = backwards.replace(old, new)
        data = tl.Dataset.parse(facts)
        flipped = [
            tl.Fact(f.predicate, f.args, tl.Interval(-f.interval.hi, -f.interval.lo))
            for f in data
            if f.interval.lo != -inf
        ]
        flipped += [f for f in data if f.interval.lo == -inf]
        ahead = tl.stable_models(tl.Program.parse(rules), data, models=0, between=(LO, HI))
        back = tl.stable_models(
            tl.Program.parse(backwards), tl.Dataset.from_facts(flipped), models=0, between=(-HI, -LO)
        )
        assert {appearance(m) for m in ahead} == {appearance(m, -HI, -LO)[::-1] for m in back}, seed


# Programs that other reasoners can solve too


@pytest.mark.parametrize("negation", [False, True])
def test_programs_with_one_model_are_materialised(negation: bool) -> None:
    """Without negation the stable model is the least model; with strata, it is the one that `materialise` returns."""
    compared = 0
    for seed in range(4000, 4150):
        rng = Random(seed)
        lines = [
            stable_random.rule(rng, heads, heads + lower) for heads, lower in (("P", "E"), ("Q", "PE"), ("Q", "PE"))
        ]
        rules = [line if negation else line.replace("not ", "") for line in lines if not line.startswith("Bottom")]
        program, data = tl.Program.parse("\n".join(rules)), tl.Dataset.parse(stable_random.facts(rng))
        try:
            model = tl.materialise(program, data, query=["P", "Q"], between=(-3, 9), timeline="integer")
        except tl.TidelogError:
            continue  # a negation in a cycle, a predicate that does not occur, or a model that could not be decided
        (stable,) = tl.stable_models(program, data, models=0, between=(-3, 9))
        assert [f for f in stable.facts if f.predicate in "PQ"] == list(model), seed
        compared += 1
    assert compared > 40


# Streams


def test_streams_against_the_definitions() -> None:
    for seed in range(5000, 5060):
        rng = Random(seed)
        # Every rule needs a fact, so nothing holds before the stream.
        lines = [f"{rule[:-1]}, Diamondminus[0,2] E." for rule in stable_random.program(rng).split("\n")]
        program = tl.Program.parse("\n".join(lines))
        given = sorted((rng.randrange(4), rng.choice("EEPQ")) for _ in range(4))
        oracle = StableOracle(program.rules, tuple((atom, float(t), float(t)) for t, atom in given))
        reasoner = StableReasoner(program)
        words = [Word(0, (frozenset(),), ())]
        for time in range(6):
            words = [
                longer
                for old in words
                for some in range(8)
                if oracle.next_is_founded(
                    longer := Word(0, old.left, (*old.body, frozenset(a for i, a in enumerate("EPQ") if some >> i & 1)))
                )
            ]
            reasoner.push(time, [atom for t, atom in given if t == time])
            if not words:
                with pytest.raises(tl.errors.Inconsistent, match="TL326"):
                    reasoner.advance(time)
                break
            (step,) = reasoner.advance(time)
            heads = {atom for atom in "PQ" if any(line.split(" :- ")[0].endswith(atom) for line in lines)}
            last = [w.body[-1] & heads for w in words]
            assert {fact.predicate for fact in step.some} == frozenset.union(*last), (seed, time)
            assert {fact.predicate for fact in step.all} == frozenset.intersection(*last), (seed, time)


def test_constants_that_arrive_later_join_existing_components() -> None:
    rules = """
        A(X) :- S(X), not B(X).  B(X) :- S(X), not A(X).
        Bottom :- L(X,Y), Diamondminus[0,3] A(X), Diamondminus[0,3] A(Y).
    """
    reasoner = StableReasoner(tl.Program.parse(rules))
    reasoner.push(0, ["S(a)"])
    reasoner.push(1, ["S(b)"])
    (step,) = reasoner.advance(1)[-1:]
    assert [format_fact(fact) for fact in step.some] == ["A(b)@1", "B(b)@1"]
    reasoner.push(2, ["L(a,b)", "L(a,a)"])
    (step,) = reasoner.advance(2)
    assert step.some == ()
    reasoner.push(3, ["S(c)", "L(b,c)", "L(c,c)"])
    (step,) = reasoner.advance(3)
    assert [format_fact(fact) for fact in step.some] == ["B(c)@3"] == [format_fact(fact) for fact in step.all]


def test_a_stream_may_begin_before_the_timed_facts_of_its_background() -> None:
    program = tl.Program.parse("P :- E, not Q.  Q :- E, not P.  R :- E, Late.")
    reasoner = StableReasoner(program, background=tl.Dataset.parse("Late@2"))
    assert reasoner.push(0, ["E"]) == []
    found = [(int(point.time), [fact.predicate for fact in point.some]) for point in reasoner.advance(0)]
    assert found == [(0, ["P", "Q"])]
    reasoner.push(2, ["E"])
    assert [fact.predicate for point in reasoner.advance(2) for fact in point.all] == ["R"]


def test_gaps_in_which_something_repeats_are_as_long_as_they_like_in_a_stream() -> None:
    rules = "S(X) :- Diamondminus[7,7] S(X), not Diamondminus(0,7) S(X).  D :- S(X), not N.  N :- S(X), not D."

    def follow(gap: int) -> list[object]:
        reasoner = StableReasoner(tl.Program.parse(rules))
        reasoner.push(0, ["S(a)"])
        reasoner.push(3, ["S(b)"])
        found: list[object] = []
        for time in range(gap, gap + 16):
            reasoner.push(time, ["S(a)"] if time == gap + 5 else [])
            found += [([f.predicate for f in p.some], [f.args for f in p.all]) for p in reasoner.advance(time)]
        return found[-16:]

    assert follow(70) == follow(7 * 10**9)
    assert follow(72) == follow(7 * 10**9 + 2) != follow(70)


def test_what_repeats_in_a_gap_is_known_at_every_time_of_it() -> None:
    program = tl.Program.parse(
        "S(X) :- Diamondminus[7,7] S(X), not Diamondminus(0,7) S(X).  Late(X) :- Diamondminus[2,2] S(X), not E.\n"
        "C(X) :- S(X), E, not D(X).  D(X) :- S(X), E, not C(X).  Bottom :- E, Diamondminus[3,3] S(c)."
    )
    for gap in (70, 7 * 10**9):
        data = tl.Dataset.from_facts(["S(a)@0", "S(b)@3", f"E@[{gap},{gap + 3}]", f"S(b)@{gap + 20}"])
        middle = gap // 14 * 7
        shown = {"between": (middle, middle + 9)}
        (model,) = tl.stable_models(program, data, **shown)  # type: ignore[arg-type]
        found = [(f.predicate, f.args[0], int(f.interval.lo) - middle) for f in model.facts]
        assert found == [
            ("Late", "a", 2), ("Late", "a", 9), ("Late", "b", 5), ("S", "a", 0), ("S", "a", 7), ("S", "b", 3),
        ]  # fmt: skip
        for mode in ("brave", "cautious"):
            facts = stable_consequences(program, data, "S(b)", mode=mode, **shown).facts  # type: ignore[arg-type]
            assert [int(fact.interval.lo) - middle for fact in facts] == [3]
            answers = [stable_entails(program, data, f"S(a)@{middle + at}", mode=mode).value for at in (6, 7, 8)]
            assert answers == ["no", "yes", "no"]
        # At the end of the gap there is a choice for a, at its beginning, and for b, three later.
        assert len(list(tl.stable_models(program, data, models=0, between=(gap, gap + 9)))) == 4
        best = list(tl.stable_models(program, data, models=0, between=(gap, gap + 9), weights={"C": 1, "S": 1}))
        assert [model.cost for model in best] == [3]
        past = tl.Dataset.from_facts([f"S(c)@{gap % 7}", f"E@{gap + 3}", "S(a)@0"])
        unsatisfiable = tl.stable_models(program, past)
        assert not unsatisfiable.satisfiable
        assert set(unsatisfiable.conflict) >= {"Late(c)", "S(c)"}


def test_a_stream_without_a_model_names_the_constraint() -> None:
    reasoner = StableReasoner(tl.Program.parse("Bottom :- Hot(X), Diamondminus[0,2] Cold(X)."))
    reasoner.push(0, ["Cold(a)"])
    reasoner.push(2, ["Hot(a)"])
    with pytest.raises(tl.errors.Inconsistent, match=r"(?s)TL326.*from 2 on.*TL303.*X = a"):
        reasoner.advance(2)


def test_streams_refuse_what_they_cannot_follow() -> None:
    looks_ahead = r"(?s)TL327.*`P :- Diamondplus\[1,1\] Q\.` looks ahead.*use past operators only, or ask"
    with pytest.raises(tl.TidelogError, match=looks_ahead):
        StableReasoner(tl.Program.parse("R :- Q.\nP :- Diamondplus[1,1] Q."))
    with pytest.raises(tl.TidelogError, match="TL327"):
        StableReasoner(tl.Program.parse("P :- A(X) Since[0,3] Q."))
    reasoner = StableReasoner(tl.Program.parse("P :- Q."))
    reasoner.push(3, ["Q"])
    with pytest.raises(tl.TidelogError, match="TL328"):
        reasoner.push(2, ["Q"])
