"""Jobs over stable models, bucket by bucket, must answer as the solver does over the whole program."""

from __future__ import annotations

from random import Random

import pytest

import tidelog as tl
from stable_by_hand import DOMAIN, generate_facts, generate_program, plan_stable_job, run_stable_job
from tidelog.analysis.distribution import describe_distribution, plan_stable_distribution
from tidelog.language.fact_text import format_fact
from tidelog.spark.plan.job_plan import StableMode
from tidelog.stable import stable_consequences

pytestmark = pytest.mark.usefixtures("kernels")

BETWEEN = (-1, 4)
CASES = 80
MODES: tuple[StableMode, ...] = ("brave", "cautious")


def run_or_none(rules: str, facts: list[str], query: str, mode: StableMode, buckets: int) -> set[str] | None:
    """The answers of a job; None where it says that there is no model."""
    plan = plan_stable_job(tl.Program.parse(rules), query, buckets, {DOMAIN}, arity=1)
    try:
        return run_stable_job(plan, facts, mode, BETWEEN)
    except tl.TidelogError as problem:
        if [found.code for found in problem.diagnostics] != ["TL331"]:
            raise
        return None


@pytest.mark.slow
def test_random_programs_by_buckets_are_the_same_as_whole() -> None:
    rng = Random(0)
    seen = {"split": 0, "whole": 0, "none": 0, "several": 0}
    for number in range(CASES):
        rules = generate_program(rng)
        program = tl.Program.parse(rules)
        facts = generate_facts(rng, program)
        data = tl.Dataset.from_facts(facts)
        query, buckets = rng.choice([name for name in program.predicates if name != DOMAIN]), rng.choice((2, 3))
        try:
            models = [
                {format_fact(fact) for fact in model.facts if fact.predicate == query}
                for model in tl.stable_models(program, data, models=200, between=BETWEEN, most=20_000)
            ]
        except tl.errors.Undecided:
            continue
        seen["none"] += not models
        seen["several"] += len(models) > 1
        seen["whole" if plan_stable_distribution(program, background={DOMAIN}).stages[0].single else "split"] += 1
        where = f"case {number}:\n{rules}\n{facts}\n{query}"
        for mode in MODES:
            whole = stable_consequences(program, data, query, mode=mode, between=BETWEEN)
            expected = {format_fact(fact) for fact in whole.facts} if whole.satisfiable else None
            assert run_or_none(rules, facts, query, mode, buckets) == expected, f"{mode}, {where}"
        chosen = run_or_none(rules, facts, query, "model", buckets)
        assert chosen is None if not models else chosen in models or len(models) == 200, where
    assert min(seen.values()) > CASES / 20, seen


CHOICE = "Free(X) :- Spot(X), not Taken(X). Taken(X) :- Spot(X), not Free(X). "


def test_a_choice_that_all_buckets_read_is_made_in_one_of_them() -> None:
    """With `Open` in every bucket, those without a fault would still find it possible."""
    rules = "Open :- D(X), not Shut. Shut :- D(X), not Open. Bottom :- Open, Fault(X). Served(X) :- Guest(X), Open."
    facts = ["D(today)", "Fault(a)@0", *(f"Guest({name})@0" for name in "abcdefgh")]
    assert run_or_none(rules, facts, "Served", "brave", 4) == set()
    assert run_or_none(rules, facts, "Shut", "cautious", 4) == {"Shut@0"}
    assert run_or_none(rules, facts[:1] + facts[2:], "Served", "brave", 4) == {
        f"Served({name})@0" for name in "abcdefgh"
    }


def test_rules_that_the_query_does_not_read_can_leave_no_model() -> None:
    rules = CHOICE + "Odd(X) :- Spot(X), Broken(X), not Odd(X)."
    facts = [f"Spot({name})@0" for name in "abcdefgh"]
    assert run_or_none(rules, facts, "Free", "brave", 3) == {f"Free({name})@0" for name in "abcdefgh"}
    assert run_or_none(rules, [*facts, "Broken(c)@0"], "Free", "brave", 3) is None


def test_the_error_names_the_part_without_a_model() -> None:
    rules = CHOICE + "Bottom :- Free(X), Full(X). Bottom :- Taken(X), Full(X)."
    plan = plan_stable_job(tl.Program.parse(rules), "Free", 4)
    with pytest.raises(tl.TidelogError) as raised:
        run_stable_job(plan, ["Spot(a)@0", "Spot(b)@0", "Full(b)@0"], "cautious", (0, 1))
    assert raised.value.diagnostics[0].message == "there is no stable model: the rules leave none for Free(b), Taken(b)"


def test_a_model_is_the_same_in_all_answers_of_a_bucket() -> None:
    facts = [f"Spot({name})@[0,3]" for name in "abcdefgh"]
    found = run_or_none(CHOICE + "Both(X) :- Free(X), Taken(X).", facts, "Free", "model", 3)
    assert found is not None
    program = tl.Program.parse(CHOICE)
    given = tl.Dataset.from_facts([*facts, *found])
    assert tl.stable_models(program, given, between=BETWEEN).satisfiable


def test_facts_of_a_predicate_that_no_rule_derives_are_answers() -> None:
    facts = ["Spot(a)@0", "Spot(b)@[0,2]", "Other(c)@1"]
    assert run_or_none(CHOICE, facts, "Spot", "cautious", 3) == {"Spot(a)@0", "Spot(b)@[0,2]"}
    assert run_or_none(CHOICE, facts, "Other", "cautious", 3) == {"Other(c)@1"}


def test_the_plan_says_by_what_parts_are_split_and_what_keeps_them_together() -> None:
    def describe(rules: str) -> str:
        return describe_distribution(plan_stable_distribution(tl.Program.parse(rules)), 4)[0]

    assert describe(CHOICE) == "facts of Spot go by x to 4 buckets"
    together = describe(CHOICE + "Bottom :- Taken(X), Taken(Y), Rival(X, Y).")
    assert together.startswith("all in one bucket, because of rule 3 (line 1): no argument of Free, Taken goes through")
