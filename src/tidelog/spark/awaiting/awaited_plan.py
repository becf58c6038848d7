"""Plan the stage for hypothetical answers: check that it is supported, and split its facts over buckets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.key_split import KeySplit, find_key_split
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.spark.awaiting.awaited_bucket import create_session
from tidelog.spark.awaiting.change_rows import build_query_atom
from tidelog.spark.plan.fact_columns import FactColumns
from tidelog.spark.plan.job_plan import AwaitedStagePlan, Awaiting, JobPlan, Route
from tidelog.timeline.interval import TimelineName

_POINTS = "hypothetical answers wait for facts from outside, each at one time point"


def add_awaited_stage(
    job: JobPlan,
    options: Awaiting,
    columns: Mapping[str, FactColumns],
    background: Dataset,
    *,
    buckets: int,
    dates: bool,
) -> JobPlan:
    """Add the stage for hypothetical answers to a job; raise everything that is unsupported.

    `columns` are those of the facts that arrive, without the background.
    """
    plan = AwaitedStagePlan(
        len(job.stages),
        1,
        build_query(job.program, job.query),
        options,
        format_delays(job.program, job.delays),
        job.stages[0].timeline,
        dates,
        tuple(wire_format.pack_dataset(background)),
        KeySplit({}),
    )
    session = create_session(job.program, plan)
    if session.has_negation:
        message = "`not` is not supported by hypothetical answers on Spark"
        raise TidelogError(Diagnostic("TL702", message, help="leave out [sinks.awaited] and `awaited`"))
    awaited = {premise.predicate for schema in session.schemas for premise in schema.premises}
    errors = list(_find_unsupported_facts(job, awaited, columns))
    if errors:
        raise TidelogError(errors)
    split = find_key_split(session.query, session.schemas)
    plan = replace(plan, buckets=1 if split.single else buckets, key_split=split)
    routes = {
        name: (*job.routes.get(name, ()), Route(plan.number, plan.buckets, split.keys.get(name), name))
        for name in sorted(awaited)
    }
    return replace(job, awaited=plan, routes={**job.routes, **routes})


def check_awaited(
    program: Program,
    query: str,
    options: Awaiting,
    timeline: TimelineName | None,
    delays: Mapping[str | None, Fraction],
) -> None:
    """Raise everything in the rules, the delays and the options that hypothetical answers do not support."""
    create_session(
        program,
        AwaitedStagePlan(
            0,
            1,
            build_query(program, query),
            options,
            format_delays(program, delays),
            timeline,
            False,
            (),
            KeySplit({}),
        ),
    )


def build_query(program: Program, predicate: str) -> str:
    """Build the query for all hypothetical answers of a predicate."""
    rigid = program.temporal is not None and predicate in dict(program.temporal.rigid)
    return build_query_atom(predicate, program.predicates[predicate], temporal=not rigid)


def format_delays(program: Program, delays: Mapping[str | None, Fraction]) -> tuple[str, ...]:
    """Format the delays of a job for a session; raise TL703 unless they are whole numbers of time points."""
    derived = _derived_predicates(program)
    for name, delay in delays.items():
        if delay.denominator != 1:
            message = f"the delay{f' of {name}' if name else ''} is {delay}"
            raise TidelogError(Diagnostic("TL703", message, help="use whole seconds, or time points"))
    own = (f"{name}={delay}" for name, delay in delays.items() if name in program.predicates and name not in derived)
    return (str(delays[None]), *own)


def describe_awaited_stage(plan: AwaitedStagePlan) -> str:
    """Describe in a sentence how hypothetical answers are split over buckets."""
    if plan.key_split.single:
        return f"hypothetical answers are kept in one bucket, {plan.key_split.reason}"
    by: dict[int, list[str]] = {}
    for name, position in plan.key_split.keys.items():
        by.setdefault(position, []).append(name)
    moves = "; ".join(f"facts of {', '.join(names)} go by argument {at + 1}" for at, names in sorted(by.items()))
    return f"hypothetical answers: {moves} to {plan.buckets} buckets"


def _derived_predicates(program: Program) -> set[str]:
    return {head.predicate for rule in program.rules if rule.body and (head := head_atom(rule)) is not None}


def _find_unsupported_facts(
    job: JobPlan, awaited: Collection[str], columns: Mapping[str, FactColumns]
) -> Iterator[Diagnostic]:
    derived = _derived_predicates(job.program)
    for name, found in columns.items():
        roles = {role for role, _ in found.times}
        if name in derived and name in job.routes:
            yield _unsupported_facts(name, "rules derive it, too", "give these facts a predicate of their own")
        elif name in awaited and not roles:
            yield _unsupported_facts(
                name, "they hold at all times, but arrive in a stream", "read them once, as background"
            )
        elif name in awaited and roles != {"time"}:
            yield _unsupported_facts(name, "they hold over intervals", "give them a `time`")


def _unsupported_facts(name: str, why: str, help: str) -> Diagnostic:
    return Diagnostic("TL702", f"facts of {name} are not supported: {why}", law=_POINTS, help=help)
