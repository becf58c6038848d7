"""Streaming jobs that end at a time, without Spark: they give what `tidelog stream --until` gives, and can go on."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases
from examine import parse_case
from formula_parts import head_predicates
from spark_by_hand import ByHand, forget_engines
from strategies import Case, Features, cases
from streams import Plan, Setup, arrivals, plans, set_up
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.spark.worker import stateful_operator

pytestmark = pytest.mark.usefixtures("kernels")

STREAMS = (
    Features(endless_data=False, unbounded=True, negation=True),
    Features(endless_data=False, negation=True, integer=True, denominators=(1,)),
)


def by_one(setup: Setup, plan: Plan, until: Fraction) -> list[str]:
    """The answers of one reasoner whose stream ends at a time."""
    options = plan.options() | {"delay": 0}
    background = tl.Dataset.from_facts(setup.background)
    reasoner = tl.Reasoner(setup.program, setup.query, timeline=setup.timeline, background=background, **options)
    steps = list(reasoner.feed(tl.Dataset.from_facts(setup.stream), until=until))
    found = [fact for step in steps for fact in step.answers] + reasoner.finish(until)
    return sorted(map(format_fact, found))


def by_many(setup: Setup, plan: Plan, until: Fraction, buckets: int) -> ByHand:
    """The same on many engines, in batches, some of which hold facts from after the end."""
    options = plan.options()
    work = ByHand.start(
        setup.program,
        setup.query,
        setup.background,
        buckets=buckets,
        timeline=setup.timeline,
        seed=plan.seed,
        faults=plan.interrupted,
        until=until,
        **options,
    )
    choose = random.Random(plan.seed)
    facts = [fact for _, fact in arrivals(setup, plan, choose)]
    while facts:
        size = choose.randint(1, len(facts))
        work.batch(facts[:size])
        facts = facts[size:]
    end_job(work, until + plan.longest_delay)
    return work


def end_job(work: ByHand, at: Fraction) -> None:
    """The last batches of a run that ends at a time."""
    work.batch(until=at)
    work.batch()


def compare(setup: Setup, plan: Plan, until: Fraction, buckets: int) -> ByHand | None:
    """Compare one reasoner with many; return their work, or None where there is nothing to compare."""
    try:
        expected: list[str] | None = by_one(setup, plan, until)
    except tl.errors.Inconsistent:
        expected = None
    except tl.TidelogError:
        return None  # rules that are not for streams
    try:
        work = by_many(setup, plan, until, buckets)
    except tl.errors.Inconsistent:
        assert expected is None, "no constraint is violated"
        return None
    assert expected is not None, "a violated constraint goes unnoticed"
    assert sorted(map(format_fact, work.answers)) == expected, f"stages: {len(work.split.stages)}, buckets: {buckets}"
    return work


@pytest.mark.parametrize("features", STREAMS, ids=lambda f: f.timeline)
@settings(
    max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck)
)
@given(data=st.data())
def test_random_programs_end_at_a_time(features: Features, data: st.DataObject) -> None:
    case: Case = data.draw(cases(features))
    heads = sorted(head_predicates(case.rules))
    if not heads:
        return
    program = parse_case(case).program
    setup = set_up(program, data.draw(st.sampled_from(heads)), case.facts, case.features.timeline)
    plan = replace(data.draw(plans(tuple(program.predicates), integer=features.integer)), early=False)
    until = setup.last + data.draw(st.sampled_from((-3, -1, 0, 2)))
    compare(setup, plan, Fraction(until), data.draw(st.integers(1, 3)))


@pytest.mark.parametrize("case", [case for case in load_cases() if case.inconsistent is None], ids=lambda c: c.name)
def test_the_behaviour_suite_ends_at_a_time(case: Behaviour) -> None:
    program = tl.Program.parse(case.rules, syntax=case.syntax)
    data = tl.Dataset.parse(case.facts)
    if program.temporal:
        data = data.with_time_arguments(program.temporal.temporal)
    for number, query in enumerate(case.queries or sorted(head_predicates(program.rules))):
        if not query.startswith("$"):
            setup = set_up(program, query, list(data), case.timeline)
            for later in (-2, 0, 3):
                compare(setup, Plan(number, interrupted=bool(number % 2)), setup.last + later, 2 + number % 2)


def facts_of(*texts: str) -> list[Fact]:
    return list(tl.Dataset.from_facts(texts))


def test_an_open_answer_is_given_at_the_end_and_whole_when_a_later_run_goes_on() -> None:
    program = tl.Program.parse("Quiet(X) :- Node(X), not Diamondminus[0,5] Beat(X).")
    background = facts_of("Node(a)", "Node(b)")
    work = ByHand.start(program, "Quiet", background, buckets=2, until=Fraction(20))
    work.batch(facts_of("Beat(a)@0", "Beat(b)@0", "Beat(a)@10", "Beat(a)@50"))
    end_job(work, Fraction(20))
    assert sorted(map(format_fact, work.answers)) == [
        "Quiet(a)@(-inf,0)",
        "Quiet(a)@(15,20]",
        "Quiet(a)@(5,10)",
        "Quiet(b)@(-inf,0)",
        "Quiet(b)@(5,20]",
    ]
    end_job(work, Fraction(20))
    assert len(work.answers) == 5, "the end is reached once"
    work.answers.clear()
    work.job = replace(work.job, until=Fraction(60))
    forget_engines()
    end_job(work, Fraction(60))
    assert sorted(map(format_fact, work.answers)) == ["Quiet(a)@(15,50)", "Quiet(a)@(55,60]", "Quiet(b)@(5,60]"]


def test_a_step_with_an_end_is_stored_and_read_again() -> None:
    from tidelog.spark.worker.bucket import BucketInput

    for step in (
        BucketInput(Fraction(3), [b"f"], [b"c", b"d"], None, []),
        BucketInput(Fraction(3), [b"f"], [b"c", b"d"], Fraction(5), [b"last"]),
    ):
        assert BucketInput.from_bytes(step.to_bytes()) == step


def test_a_rule_that_looks_ahead_over_two_stages_ends_as_one_reasoner_does() -> None:
    program = tl.Program.parse("Calm(X) :- Boxplus[0,3] Quiet(X). Zone(Z) :- In(X,Z), Calm(X).")
    background = facts_of("In(a,z)", "In(b,z)")
    setup = set_up(program, "Zone", [*background, *facts_of("Quiet(a)@[0,9]", "Quiet(b)@[4,20]", "Quiet(a)@30")], None)
    for until in (2, 6, 8, 9, 12, 25, 40):
        with patch.object(stateful_operator, "_MOST_DELTAS", 2):
            assert compare(setup, Plan(until), Fraction(until), 2)
