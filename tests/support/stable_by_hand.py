"""A batch job over stable models without Spark, and random programs that such a job can usually split."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fractions import Fraction
from random import Random
from typing import Any

import stable_random
import tidelog as tl
from tidelog.analysis.distribution import plan_stable_distribution
from tidelog.data import wire_format
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.spark.plan.job_plan import JobPlan, PlanOptions, StableMode, plan_job
from tidelog.spark.plan.stable_program import derive_query
from tidelog.spark.worker import packed_rows
from tidelog.spark.worker.packed_rows import Row, route_facts, rows_to_arrow
from tidelog.spark.worker.stable_worker import make_stable_solver

CONSTANTS = "abcd"
#: Holds of all constants, always; in every rule, so that all variables are bound.
DOMAIN = "D"


def plan_stable_job(
    program: tl.Program, query: str, buckets: int, background: Collection[str] = (), arity: int = 0
) -> JobPlan:
    """Plan a job as its driver does."""
    program = derive_query(program, query, program.predicates.get(query, arity))
    split = plan_stable_distribution(program, background=background)
    return plan_job(program, query, split, PlanOptions(buckets=buckets, delays={None: Fraction(0)}))


def run_stable_job(plan: JobPlan, facts: Iterable[str | Fact], mode: StableMode, between: tuple[int, int]) -> set[str]:
    """Send facts to their buckets, run the workers of all stages, and return the answers as text."""
    data = tl.Dataset.from_facts(facts)
    rows = [
        Row(bucket, stage.number, packed_rows.WAKE, b"") for stage in plan.stages for bucket in range(stage.buckets)
    ]
    for (predicate, _), relation in data.relations.items():
        rows += route_facts(data.symbols, data.denominator, False, relation, plan.routes.get(predicate, ()))
    for stage in plan.stages:
        work = make_stable_solver(plan, stage.number, (), mode, between)
        rows = [row for batch in work(iter([rows_to_arrow(rows, range(plan.max_buckets))])) for row in to_rows(batch)]
    assert all(row.stage == packed_rows.OUTPUT_STAGE and row.kind == packed_rows.ANSWER for row in rows)
    answers = [fact for row in rows for fact in wire_format.to_dataset([wire_format.unpack(row.payload)])]
    found = [format_fact(fact) for fact in answers]
    assert len(found) == len(set(found)), "two buckets give the same answer"
    return set(found)


def to_rows(batch: Any) -> list[Row]:
    columns = (batch[name].to_pylist() for name in ("bucket", "stage", "kind", "payload"))
    return [Row(*row) for row in zip(*columns, strict=True)]


def generate_program(rng: Random) -> str:
    """Generate a program over unary and nullary predicates; most atoms of a rule have the same variable."""
    unary = {name for name in "PQE" if rng.random() < 0.85}

    def lift(match: re.Match[str]) -> str:
        name = match[0]
        return f"{name}({rng.choice('XXXXXXXXXXXXYa')})" if name in unary else name

    rules = []
    choice = ["P :- E, not Q.", "Q :- E, not P."] if rng.random() < 0.6 else []
    for text in [*choice, *stable_random.program(rng).splitlines()]:
        rule = re.sub(r"\b[PQE]\b", lift, text).removesuffix(".")
        rules.append(", ".join([rule, *(f"{DOMAIN}({name})" for name in "XY" if f"({name})" in rule)]) + ".")
    return "\n".join(rules)


def generate_facts(rng: Random, program: tl.Program) -> list[str]:
    found = [f"{DOMAIN}({constant})" for constant in CONSTANTS[: rng.choice((2, 3, 4))]]
    for name, arity in program.predicates.items():
        for constant in CONSTANTS if arity else "-":
            if name != DOMAIN and rng.random() < 0.4:
                start = rng.randrange(3)
                found.append(f"{name}({constant})@[{start},{start + rng.randrange(2)}]".replace("(-)", ""))
    return found
