"""Streaming jobs without Spark: what buckets, stages and the operator give is what one reasoner gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases
from examine import parse_case
from formula_parts import head_predicates
from spark_by_hand import ByHand
from strategies import Case, Features, cases
from streams import Plan, Setup, arrivals, plans, set_up
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.spark.job.metrics import BucketAddress, format_summary, summarise_batch
from tidelog.spark.worker import history_slices

STREAMS = (
    Features(endless_data=False),
    Features(endless_data=False, unbounded=True, negation=True),
    Features(endless_data=False, negation=True, integer=True, denominators=(1,)),
    Features(endless_data=False, negation=True, constraints=True, recursive=False),
)


def by_one(setup: Setup, plan: Plan, end: Fraction) -> list[Fact]:
    """What one reasoner gives until the clock has passed a time."""
    options = plan.options() | {"delay": 0}
    background = tl.Dataset.from_facts(setup.background)
    reasoner = tl.Reasoner(setup.program, setup.query, timeline=setup.timeline, background=background, **options)
    steps = list(reasoner.feed(tl.Dataset.from_facts(setup.stream)))
    return [fact for step in steps for fact in step.answers] + reasoner.push(end + Fraction(1, 1000))


def by_many(setup: Setup, plan: Plan, end: Fraction, buckets: int) -> ByHand:
    """The same on many engines, in batches."""
    options = plan.options()
    delay = options.pop("delay")
    work = ByHand.start(
        setup.program,
        setup.query,
        setup.background,
        buckets=buckets,
        delay=delay,
        timeline=setup.timeline,
        seed=plan.seed,
        faults=plan.interrupted,
        **options,
    )
    choose = random.Random(plan.seed)
    facts = [fact for _, fact in arrivals(setup, plan, choose)]
    if facts and choose.random() < 0.3:
        size = choose.randint(1, len(facts))
        with patch.object(history_slices, "FACTS_PER_SLICE", choose.choice((1, 2, 1000))):
            work.backfill(facts[:size])
        facts = facts[size:]
    while facts:
        size = choose.randint(1, len(facts))
        work.batch(facts[:size])
        facts = facts[size:]
        if choose.random() < 0.3:
            work.batch()
    work.batch(until=end + plan.longest_delay)
    work.batch()
    return work


def compare(setup: Setup, plan: Plan, buckets: int) -> int:
    """Compares one reasoner with many; the number of stages, or 0 where there is nothing to compare."""
    end = setup.last + (plan.beyond or 0)
    try:
        expected: list[Fact] | None = by_one(setup, plan, end)
    except tl.errors.Inconsistent:
        expected = None
    except tl.TidelogError:
        return 0  # what cannot run over a stream
    try:
        work = by_many(setup, plan, end, buckets)
    except tl.errors.Inconsistent:
        assert expected is None, "no constraint is violated"
        return 0
    assert expected is not None, "a violated constraint goes unnoticed"
    assert not work.late
    found = sorted(map(format_fact, work.answers))
    assert found == sorted(map(format_fact, expected)), f"stages: {len(work.split.stages)}, buckets: {buckets}"
    return len(work.split.stages)


counted: Counter[int] = Counter()


@pytest.mark.parametrize("features", STREAMS, ids=lambda f: f.timeline + ("-not" if f.negation else ""))
@settings(
    max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_random_programs_on_many_engines(features: Features, data: st.DataObject) -> None:
    case: Case = data.draw(cases(features))
    heads = sorted(head_predicates(case.rules))
    if not heads:
        return
    program = parse_case(case).program
    setup = set_up(program, data.draw(st.sampled_from(heads)), case.facts, case.features.timeline)
    plan = replace(data.draw(plans(tuple(program.predicates), integer=features.integer)), early=False)
    counted[compare(setup, plan, data.draw(st.integers(1, 3)))] += 1


@pytest.mark.parametrize("case", [case for case in load_cases() if case.inconsistent is None], ids=lambda c: c.name)
def test_the_behaviour_suite_on_many_engines(case: Behaviour) -> None:
    program = tl.Program.parse(case.rules, syntax=case.syntax)
    data = tl.Dataset.parse(case.facts)
    if program.temporal:
        data = data.with_time_arguments(program.temporal.temporal)
    for number, query in enumerate(case.queries or sorted(head_predicates(program.rules))):
        if not query.startswith("$"):
            setup = set_up(program, query, list(data), case.timeline)
            compare(setup, Plan(number, interrupted=bool(number % 2)), 2 + number % 2)


def test_late_facts_are_told_once_and_change_nothing() -> None:
    program = tl.Program.parse("Pair(X,Y) :- A(X), Diamondminus[0,3] B(Y). Both(X) :- Pair(X,Y), C(Y).")
    work = ByHand.start(program, "Both", buckets=3, delay={"A": 1, None: 2})
    facts = [tl.Fact("A", ("x",), tl.Interval.point(Fraction(t))) for t in (0, 5, 10)]
    work.batch(facts)
    late = [
        tl.Fact(name, args, tl.Interval.point(Fraction(t)))
        for name, args, t in (("A", ("x",), 8), ("B", ("y",), 7), ("C", ("y",), 7))
    ]
    timely = [
        tl.Fact("B", ("y",), tl.Interval.point(Fraction(8))),
        tl.Fact("C", ("y",), tl.Interval.point(Fraction(10))),
    ]
    work.batch(late + timely)
    work.batch(until=Fraction(30))
    work.batch()
    assert sorted(map(format_fact, work.late)) == ["A(x)@8", "B(y)@7", "C(y)@7"]
    assert sum(step.get("late", 0) for step in work.stats) == 3
    assert [format_fact(fact) for fact in work.answers] == ["Both(x)@10"]


def test_late_facts_of_a_later_stage_are_counted_too() -> None:
    program = tl.Program.parse(
        "Down(X) :- Node(X), not Diamondminus[0,3] Beat(X). Bad(Z) :- Down(X), In(X,Z), Diamondminus[0,2] Alarm(Z)."
    )
    known = list(tl.Dataset.from_facts(["Node(a)", "In(a,z)"]))
    work = ByHand.start(program, "Bad", known, buckets=2)
    assert "Alarm" in work.split.stages[1].inputs
    for time, late in ((10, []), (20, ["Alarm(z)@8", "Alarm(z)@9", "Beat(a)@3"])):
        work.batch(tl.Dataset.from_facts([f"Beat(a)@{time}", *late]))
    assert sorted(map(format_fact, work.late)) == ["Alarm(z)@8", "Alarm(z)@9", "Beat(a)@3"]
    assert sum(step.get("late", 0) for step in work.stats) == 3


def test_a_bucket_that_no_fact_reaches_notices_absence() -> None:
    program = tl.Program.parse("Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).")
    nodes = [tl.Fact("Node", (f"n{i}",), tl.Interval.always()) for i in range(8)]
    work = ByHand.start(program, "Down", nodes, buckets=4, at="every:10")
    work.batch([tl.Fact("Beat", ("n1",), tl.Interval.point(Fraction(t))) for t in (0, 18)])
    work.batch(until=Fraction(20))
    work.batch()
    found = {format_fact(fact) for fact in work.answers}
    others = {f"Down(n{i})@{t}" for i in range(8) for t in (0, 10, 20) if i != 1}
    assert found == others | {"Down(n1)@10"}


@pytest.mark.parametrize("at", ["every:7+2", (Fraction(2), Fraction(9), Fraction(16))])
def test_buckets_answer_at_any_output_times(at: str | tuple[Fraction, ...]) -> None:
    program = tl.Program.parse("Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).")
    nodes = [tl.Fact("Node", (f"n{i}",), tl.Interval.always()) for i in range(8)]
    work = ByHand.start(program, "Down", nodes, buckets=4, at=at)
    work.batch([tl.Fact("Beat", ("n1",), tl.Interval.point(Fraction(t))) for t in (0, 18)])
    work.batch(until=Fraction(20))
    work.batch()
    others = {f"Down(n{i})@{t}" for i in range(8) for t in (2, 9, 16) if i != 1}
    assert {format_fact(fact) for fact in work.answers} == others | {"Down(n1)@9", "Down(n1)@16"}


def test_figures_of_a_batch_name_the_slowest_rules() -> None:
    rules = "Pair(X,Y) :- A(X), B(Y). Both(X) :- Pair(X,Y), C(Y). Both(X) :- C(X), D(X)."
    program = tl.Program.parse(rules)
    work = ByHand.start(program, "Both", buckets=3)
    work.batch([tl.Fact(name, (f"{i}",), tl.Interval.point(Fraction(0))) for name in "ABCD" for i in range(20)])
    work.batch(until=Fraction(5))
    work.batch()
    latest: dict[BucketAddress, Mapping[str, Any]] = {}
    found = summarise_batch([{"facts_in": 50}, *work.stats, {"facts_in": 30}], latest, program.rules)
    assert (found["facts_in"], found["answers"], found["late"]) == (80, 20, 0)
    costs = {cost["rule"]: cost for cost in found["rules"]}
    assert next(iter(costs)) in ("Pair(X,Y) :- A(X), B(Y).", "Both(X) :- Pair(X,Y), C(Y).")
    assert set(costs) == {rule.text for rule in program.rules}
    assert costs["Both(X) :- C(X), D(X)."]["work"] >= 40
    assert costs["Pair(X,Y) :- A(X), B(Y)."]["work"] >= 400
    engines = sum(step["seconds"] for step in work.stats)
    assert 0 < sum(cost["seconds"] for cost in costs.values()) <= engines
    assert "80 facts in, 20 answers, 0 late" in format_summary(3, found)
    again = summarise_batch([], latest, program.rules)
    assert (again["facts_in"], again["rules"], again["held"]) == (0, [], found["held"])


AGGREGATES = """
Open(C,N) :- Card(C), N = count{ Order(C,Id) }.
Rate(C,S) :- S = sum[0,10]{ A : Paid(C,Id,A) }.
All(N) :- N = count[0,10]{ Paid(C,Id,A) }.
Mean(C,S / N) :- Rate(C,S), All(N).
"""


def test_aggregates_change_in_buckets_that_no_fact_reaches() -> None:
    """A payment leaves the window while nothing arrives; cards without orders have 0; states are saved in between."""
    program = tl.Program.parse(AGGREGATES)
    cards = [tl.Fact("Card", (f"c{i}",), tl.Interval.always()) for i in range(4)]
    paid = [f"Paid(c{i % 4},{i},{i})@{i}" for i in range(8)]
    orders = [f"Order(c1,{i})@[{i},{i + 3})" for i in range(4)]
    facts = sorted(tl.Dataset.from_facts(paid + orders), key=lambda fact: fact.interval.lo)
    for query in ("Open", "Rate", "All", "Mean"):
        reasoner = tl.Reasoner(program, query, background=tl.Dataset.from_facts(cards))
        expected = [f for step in reasoner.feed(tl.Dataset.from_facts(facts)) for f in step.answers]
        expected += reasoner.push(Fraction(40) + Fraction(1, 1000))
        work = ByHand.start(program, query, cards, buckets=3, faults=True, seed=5)
        for at in range(0, len(facts), 3):
            work.batch(facts[at : at + 3])
        for at in (12, 15, 30, 40):
            work.batch(until=Fraction(at))
        work.batch()
        assert sorted(map(format_fact, work.answers)) == sorted(map(format_fact, expected)), query
    assert len(work.split.stages) == 2


def test_undefined_operations_are_counted() -> None:
    program = tl.Program.parse(
        "Share(X,1 / N) :- Of(X,N). All(S) :- S = sum{ N : Of(X,N) }. Both(X,S) :- Share(X,S), All(S)."
    )
    work = ByHand.start(program, "Both", buckets=3)
    work.batch(tl.Dataset.from_facts(["Of(a,0)@1", "Of(b,0)@1", "Of(c,1)@1", "Of(d,none)@1"]))
    work.batch(until=Fraction(5))
    work.batch()
    # `none` is no number to divide by, and none to add.
    assert summarise_batch(work.stats, {}, work.job.program.rules)["undefined"] == 4
    assert [format_fact(fact) for fact in work.answers] == ["Both(c,1)@1"]


def test_a_history_is_taken_in_slices_of_time() -> None:
    """What an engine holds at most is what the stream would make it hold, and not all that ever came."""
    program = tl.Program.parse("Up(X) :- Diamondminus[0,3] Beat(X), not Diamondminus[0,1] Alarm(X).")
    facts = list(tl.Dataset.from_facts(f"Beat(n{t % 5})@{t}" for t in range(400)))
    most = []
    for size in (1 << 20, 20):
        work = ByHand.start(program, "Up", buckets=2)
        with patch.object(history_slices, "FACTS_PER_SLICE", size):
            work.backfill(facts)
        most.append(max(step["window_facts"] for step in work.stats))
        answers = sorted(map(format_fact, work.answers))
        assert len({fact.args for fact in work.answers}) == 5
        assert [step["t"] for step in work.stats if step["bucket"] == 0][-1] == "399"
    local = tl.Reasoner(program, "Up")
    steps = list(local.feed(tl.Dataset.from_facts(facts)))
    assert answers == sorted(format_fact(fact) for step in steps for fact in step.answers)
    assert most[1] < 60
