"""The rules and the background facts of one bucket, and the facts of each predicate that it derives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from tidelog.analysis.stage_programs import build_stage_program, choose_stage_query
from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Columns
from tidelog.data.symbol_table import Symbols
from tidelog.engine.fact_store import Rows
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.hidden_predicates import STAGE_OUTPUT, is_hidden
from tidelog.language.program import Program
from tidelog.language.syntax import Atom, Literal, Rule, Value, Variable
from tidelog.language.wording import join_words
from tidelog.spark.plan.job_plan import JobPlan, StagePlan


def build_bucket_program(job: JobPlan, plan: StagePlan, bucket: int) -> Program:
    """Build the rules of a stage as one of its buckets evaluates them."""

    program = build_stage_program(job.program, plan.stage, owns_constant(plan, bucket))
    query = choose_stage_query(plan.stage)
    if query in program.predicates:
        return program
    # No rule derives the query, so the answers are the facts themselves.
    atom = Atom(query, tuple(Variable(f"X{i}") for i in range(job.program.predicates[query])))
    return replace(program, rules=(*program.rules, Rule(atom, (Literal(atom),))))


def owns_constant(plan: StagePlan, bucket: int) -> Callable[[Value], bool]:
    """Return the function that says whether a constant belongs to a bucket."""

    def mine(value: Value) -> bool:
        symbols = Symbols()
        symbols.intern(value)
        return bool(wire_format.compute_buckets(symbols, plan.buckets)[0] == bucket)

    return mine


def split_by_predicate(plan: StagePlan, rows: Rows, symbols: Symbols) -> Iterator[tuple[str, Rows]]:
    """Split the facts that a stage derives by predicate."""
    query = choose_stage_query(plan.stage)
    if query != STAGE_OUTPUT:
        yield query, rows
        return
    for tag in np.unique(rows.args[0]) if len(rows) else ():
        predicate, _, arity = str(symbols.value(int(tag))).rpartition("/")
        select_facts = rows.where(rows.args[0] == tag)
        yield predicate, Rows(select_facts.args[1 : 1 + int(arity)], select_facts.lo, select_facts.hi)


def select_background(plan: StagePlan, bucket: int, background: Dataset) -> Dataset:
    """Select the background facts of a bucket: its share of hashed predicates, and all facts of copied ones."""
    found = {}
    for name in plan.stage.inputs:
        for (predicate, arity), relation in background.relations.items():
            if predicate != plan.stage.aliases.get(name, name):
                continue
            position = plan.stage.key[name]
            named = replace(relation, predicate=name)
            if position is not None and plan.buckets > 1 and len(relation):
                mine = wire_format.compute_buckets(background.symbols, plan.buckets)[relation.args[position]] == bucket
                named = named.select(mine)
            found[name, arity] = named
    return Dataset(background.symbols, Columns(background.denominator, background.dates, found))


def refuse_endless_calendar(predicates: Iterable[str]) -> TidelogError:
    """Build the error for predicates that follow from a calendar without data, which no bucket has the range of."""
    names = join_words([name for name in predicates if not is_hidden(name)] or ["a part of a rule"])
    return TidelogError(
        Diagnostic(
            "TL317",
            f"{names} may follow from a calendar alone, for ever",
            law="in a job, each bucket has its own data, so what holds without data has no range that all agree on",
            help="add a literal about data to the rules that read the calendar or, in a batch job that is not divided "
            "into stages, ask for a range with between",
        )
    )
