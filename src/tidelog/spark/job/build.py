"""Reasoning over DataFrames, batch or streaming: the rules and answers of a single engine, on many engines.

Facts are packed, sent to buckets, and reasoned over stage by stage (`tidelog.analysis.distribution`); Spark moves the
rows and keeps the state. All rows take the same path, including late facts, rows set aside and figures; `JobOutput`
separates them again. `build_job` is the place to start reading: it plans (`_plan`), then builds the DataFrame of all
stages (`stage_frames`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

from tidelog.analysis.distribution import Distribution, plan_distribution, plan_stable_distribution
from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.analysis.rule_ranges import range_ends
from tidelog.compiler.calendar_input import require_dates
from tidelog.compiler.compiled_program import Target
from tidelog.compiler.passes import check_program
from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import is_calendar
from tidelog.language.program import Program, require_program
from tidelog.language.time_like import to_finite_time
from tidelog.spark.awaiting.awaited_plan import add_awaited_stage
from tidelog.spark.job.answer_types import infer_argument_types
from tidelog.spark.job.fact_frames import (
    collect_background,
    find_all_columns,
    find_last_time,
    find_time_type,
    require_no_operations,
    select_fact_columns,
)
from tidelog.spark.job.fact_schemas import FactFrame, describe_fact_frames
from tidelog.spark.job.options import (
    JobKeywords,
    JobOptions,
    require_applicable,
    require_correctable,
    require_stable_options,
    to_options,
)
from tidelog.spark.job.output import JobOutput
from tidelog.spark.job.session import require_state_store
from tidelog.spark.job.stage_frames import JobInput, build_batch_frame, build_streaming_frame, read_saved_clock
from tidelog.spark.plan.endless_predicates import find_endless_predicates
from tidelog.spark.plan.fact_columns import FactColumns
from tidelog.spark.plan.job_plan import Awaiting, JobPlan, PlanOptions, plan_job
from tidelog.spark.plan.stable_program import check_stable_program, derive_query
from tidelog.spark.worker.alert_rows import require_alerts_in_one_bucket
from tidelog.spark.worker.answer_columns import AnswerColumns
from tidelog.spark.worker.bucket import Bucket
from tidelog.spark.worker.bucket_program import refuse_endless_calendar
from tidelog.spark.worker.stable_bucket import StableBucket
from tidelog.streaming.alerts import AlertOptions, parse_alert_options
from tidelog.streaming.output_time_text import find_times_file, read_times_file
from tidelog.streaming.output_times import OutputTimesLike, parse_corrections, parse_delays
from tidelog.timeline.interval import INF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def reason(
    spark: SparkSession,
    program: Program,
    query: str,
    facts: Mapping[str, DataFrame],
    *,
    options: JobOptions | None = None,
    **keywords: Unpack[JobKeywords],
) -> DataFrame:
    """Return all answers to a query over fact DataFrames: a DataFrame of the same kind, batch or streaming.

    A fact DataFrame holds the arguments in order, then `time`, or `start`, `end` and optionally `closed`; without any
    of these its facts always hold. Answers have columns `arg1`, `arg2`, ..., `start`, `end`, `closed`; an empty start
    or end is infinite. Options are those of `JobOptions`, as keywords (`buckets=8, delay="30s"`) or as one object.

    A column `op` of strings that is no argument says whether a row inserts or deletes a fact (`insert`, `+`, `c` and
    `r`, or `delete`, `-` and `d`). A batch DataFrame holds the answers that then stand; a stream needs `corrections`,
    and its answers are changes, with columns `change` and `known` (see `tidelog.spark.current`).
    """
    return build_job(spark, program, query, facts, to_options(options, keywords)).answers()


def awaited(
    spark: SparkSession,
    program: Program,
    query: str,
    facts: Mapping[str, DataFrame],
    awaiting: Awaiting | None = None,
    *,
    options: JobOptions | None = None,
    **keywords: Unpack[JobKeywords],
) -> DataFrame:
    """Return the answers that are still possible while facts may be late, as a DataFrame of changes.

    See `JobOutput.awaited` for its columns. Over batch DataFrames it holds the answers, and the hypothetical answers at
    the end of the data (or at `until`). Options are those of `JobOptions`, as for `reason`.
    """
    chosen = to_options(options, keywords)
    chosen = replace(chosen, awaiting=awaiting or chosen.awaiting or Awaiting())
    return build_job(spark, program, query, facts, chosen).awaited()


@dataclass(frozen=True)
class _Inputs:
    """The facts of a job, sorted into those that rows bring and those that every bucket knows."""

    #: "batch", "backfill" or "streaming".
    kind: str
    columns: Mapping[str, FactColumns]
    #: The predicates whose facts are sent to buckets as rows.
    sent: frozenset[str]
    background: Dataset


def build_job(
    spark: SparkSession, program: Program, query: str, facts: Mapping[str, DataFrame], options: JobOptions | None = None
) -> JobOutput:
    """Build a job that reasons over fact DataFrames, with all of its outputs."""
    require_program(program)
    options = options or JobOptions()
    if options.awaiting is not None:
        program = program.with_temporal_query(query)
    if options.stable is not None:
        check_stable_program(program, options.timeline)
    else:
        check_program(program, Target("stream", (query,), options.timeline))
    frames = describe_fact_frames(facts, options)
    inputs = _sort_inputs(program, frames, options)
    require_known_predicates([query], known_predicates(program, facts))
    if options.stable is not None:
        program = derive_query(program, query, _find_arities(program, inputs)[query])
    split = _split(program, query, inputs, options)
    for stage in split.stages:
        if any(map(is_calendar, stage.aliases.values())):
            raise refuse_endless_calendar(stage.outputs)
    buckets = options.buckets or int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    plan, columns = _plan(program, query, split, inputs, replace(options, buckets=buckets))
    background = tuple(wire_format.pack_dataset(inputs.background))
    sent = {name: (frame, inputs.columns[name]) for name, frame in frames.items() if name in inputs.sent}
    selected = {name: (select_fact_columns(frame, found), found) for name, (frame, found) in sent.items()}
    job = JobInput(plan, selected, background, options)
    if inputs.kind != "batch":
        _check_buckets(plan, inputs.background)
    if inputs.kind == "streaming":
        require_state_store(spark)
        frame = build_streaming_frame(spark, job)
    else:
        ends = options.backfill or options.awaiting is not None
        last = (find_last_time(job.facts) if options.until is None else options.until) if ends else INF
        frame = build_batch_frame(spark, job, last)
    return JobOutput(frame, split, plan, columns)


def _find_arities(program: Program, inputs: _Inputs) -> dict[str, int]:
    columns = {name: len(columns.args) for name, columns in inputs.columns.items()}
    return dict(inputs.background.relations.keys()) | columns | program.predicates


def _split(program: Program, query: str, inputs: _Inputs, options: JobOptions) -> Distribution:
    background = _rigid_predicates(inputs)
    if options.stable is not None:
        return plan_stable_distribution(program, background=background)
    endless = find_endless_predicates(program) if inputs.kind == "batch" else ()
    return plan_distribution(program, query, background=background, endless=endless)


def _sort_inputs(program: Program, facts: Mapping[str, FactFrame], options: JobOptions) -> _Inputs:
    streaming = any(frame.streaming for frame in facts.values())
    kind = "streaming" if streaming else "backfill" if options.backfill else "batch"
    require_applicable(kind, options)
    require_stable_options(kind, options)
    require_correctable(options)
    columns = find_all_columns(program, facts)
    if streaming:
        sent = {name for name, frame in facts.items() if frame.streaming}
    else:
        # Without a stream, a job knows facts without a time as background; a plain batch job has no need to.
        all_sent = not (options.backfill or options.awaiting)
        sent = {name for name in facts if columns[name].times or all_sent}
    if (kind != "batch" and options.corrections is None) or options.awaiting is not None:
        require_no_operations(columns[name] for name in facts if name in sent)
    if streaming and options.stable is not None:
        _require_times(name for name in sent if not columns[name].times)
    others = {name: frame for name, frame in facts.items() if name not in sent}
    background = collect_background(program, options.background, others, columns)
    return _Inputs(kind, columns, frozenset(sent), background)


def _require_times(timeless: Iterable[str]) -> None:
    """Raise TL322 for streams whose facts hold always: stable models have them as background."""
    problems = [
        Diagnostic(
            "TL322",
            f"the facts of {name} arrive in a stream, and hold from -inf on",
            law="in a stream, facts begin at some time; facts that always hold are known before it",
            help="give them a column `time`, or read them from a table that is no stream",
        )
        for name in sorted(timeless)
    ]
    if problems:
        raise TidelogError(problems)


def _rigid_predicates(inputs: _Inputs) -> set[str]:
    """Return the predicates whose facts do not depend on time, or are known from the start."""
    timeless = {name for name, columns in inputs.columns.items() if not columns.times}
    return timeless | {name for name, _ in inputs.background.relations} - inputs.sent


def _read_output_times(at: OutputTimesLike | None) -> str | tuple[Fraction, ...] | None:
    """Read a file or an iterable of times, so that workers get the times themselves."""
    path = find_times_file(at) if isinstance(at, str) else None
    if path is not None:
        return tuple(read_times_file(path))
    return at if at is None or isinstance(at, str) else tuple(map(to_finite_time, at))


def _plan(
    program: Program, query: str, split: Distribution, inputs: _Inputs, options: JobOptions
) -> tuple[JobPlan, AnswerColumns]:
    """Plan the stages of a job, and find the columns of its answers."""
    assert options.buckets is not None
    arities = _find_arities(program, inputs)
    alerts = _check_alerts(options, arities[query], inputs.kind)
    if alerts:
        require_alerts_in_one_bucket(split, query, options.buckets, alerts)
    delays = parse_delays(options.delay)
    plan = plan_job(
        program,
        query,
        split,
        PlanOptions(
            buckets=options.buckets,
            delays=delays,
            timeline=options.timeline,
            memory=options.memory,
            at=_read_output_times(options.at),
            start=-INF if options.initial is None else read_saved_clock(options.initial),
            alerts=alerts,
            rules_changed=options.changed_rules,
            until=options.answer_until,
            corrections=parse_corrections(options.corrections, delays, options.memory),
            stable=options.stable,
        ),
    )
    time = find_time_type(inputs.columns, all(end.denominator == 1 for end in range_ends(program)))
    require_dates(not program.calendars or time.startswith("timestamp"), program.rules)
    columns = AnswerColumns(
        infer_argument_types(program, query, arities[query], inputs.columns.values(), inputs.background, time),
        time,
        alerts is not None and bool(alerts.changes),
        tuple(options.names or ()),
        plan.corrections is not None,
    )
    if options.awaiting is not None:
        arriving = {name: found for name, found in inputs.columns.items() if name in inputs.sent}
        dates = columns.time.startswith("timestamp")
        plan = add_awaited_stage(
            plan, options.awaiting, arriving, inputs.background, buckets=options.buckets, dates=dates
        )
    return plan, columns


def _check_alerts(options: JobOptions, arity: int, kind: str) -> AlertOptions | None:
    """Return the alert options, checked against the query and the kind of the job."""
    if options.alerts is None:
        return None
    if kind == "batch":
        law = "what is certain, and when, is a question of streams"
        raise TidelogError(Diagnostic("TL404", "alerts are not for batch jobs", law=law, help="leave them out"))
    given = options.alerts if isinstance(options.alerts, Mapping) else vars(options.alerts)
    return parse_alert_options(**given, arity=arity, points=options.at is not None)


def _check_buckets(plan: JobPlan, background: Dataset) -> None:
    """Create the first bucket of every stage, so that rules unfit for streams are refused before the job starts."""
    for stage in plan.stages:
        if plan.stable is not None:
            StableBucket.new(plan, stage, 0, background)
        elif Bucket.new(plan, stage, 0, background).reasoner.evaluation.calendar.is_endless():
            raise refuse_endless_calendar(stage.stage.outputs)
