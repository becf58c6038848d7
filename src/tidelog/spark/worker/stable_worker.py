"""Batch jobs over stable models: each bucket solves its own part of the program, and fails the job if it has no model.

The plan (`plan_stable_distribution`) makes parts independent: a stable model of the program is one of each bucket. So
what holds in some model, or in all models, of a bucket does so for the whole program, as long as every bucket has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidelog.analysis.stage_programs import build_stage_program
from tidelog.corrections.ledger import apply_deletions
from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.spark.plan.job_plan import JobPlan, StableMode, StagePlan
from tidelog.spark.worker.batch_worker import Between, Worker, run_per_bucket
from tidelog.spark.worker.bucket_program import owns_constant, select_background
from tidelog.spark.worker.packed_rows import ANSWER, FACTS, OUTPUT_STAGE, Row
from tidelog.stable.consequences import stable_consequences
from tidelog.stable.models import stable_models


def make_stable_solver(
    job: JobPlan, stage: int, background: tuple[bytes, ...], mode: StableMode, between: Between
) -> Worker:
    """Make a function for `mapInArrow` that solves the part of each bucket."""
    plan = job.stages[stage]

    def evaluate(bucket: int, rows: list[Row], known: Dataset) -> Iterator[list[Row]]:
        facts = (wire_format.unpack(row.payload) for row in rows if row.kind == FACTS)
        data = apply_deletions(wire_format.to_dataset(facts)) | select_background(plan, bucket, known)
        program = build_stable_program(job, plan, bucket)
        query = job.query if job.query in plan.stage.outputs else None
        found = solve_part(program, data, query, mode, between)
        answers = Dataset.from_facts(() if bucket and job.query in plan.copied else found)
        relations = answers.relations.values()
        payloads = (wire_format.pack(answers.symbols, 1, data.dates, relation) for relation in relations)
        yield [Row(bucket, OUTPUT_STAGE, ANSWER, payload) for payload in payloads]

    return run_per_bucket(job, stage, background, evaluate)


def build_stable_program(job: JobPlan, plan: StagePlan, bucket: int) -> Program:
    """Build the rules of a stage as one of its buckets solves them."""
    program = build_stage_program(job.program, plan.stage, owns_constant(plan, bucket))
    # Without the rules for the output of the stage, which come last: they would be solved, too.
    return replace(program, rules=program.rules[: len(plan.stage.rules)])


def solve_part(
    program: Program, data: Dataset, query: str | None, mode: StableMode, between: Between
) -> tuple[Fact, ...]:
    """Return the answers of one part of a program; without a query, only make sure that it has a stable model."""
    if query is not None and mode != "model":
        consequences = stable_consequences(program, data, query, mode=mode, between=between)
        if not consequences.satisfiable:
            raise refuse_conflict(consequences.conflict)
        return consequences.facts
    models = stable_models(program, data, between=between)
    if not models.satisfiable:
        raise refuse_conflict(models.conflict)
    if query is None:
        return ()
    return tuple(fact for fact in next(iter(models)).facts if fact.predicate == query)


def refuse_conflict(atoms: Sequence[str], since: str = "") -> TidelogError:
    """Build the error for a part of a program without a stable model, named by its atoms; `since` says from when on."""
    shown = ", ".join(atoms[:5]) + (f" and {len(atoms) - 5} more" if len(atoms) > 5 else "")
    where = f": the rules leave none for {shown}" if shown else ""
    return TidelogError(Diagnostic("TL331", f"there is no stable model{since}{where}"))
