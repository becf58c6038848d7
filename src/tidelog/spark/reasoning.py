"""Reasoning over DataFrames, batch or streaming: the same rules and answers as everywhere, on many engines.

Facts are packed, sent to buckets, and reasoned over stage by stage (`tidelog.analysis.distribution`); Spark moves the
rows and keeps the state. All rows take one way, also what is late, set aside or counted; `Tagged` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import floor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tidelog.analysis.components import connected, dependencies, head_atom, strata
from tidelog.analysis.distribution import Distribution, distribution
from tidelog.analysis.distribution import in_words as distribution_in_words
from tidelog.analysis.queries import known_predicates, require_known
from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.data.symbols import Symbols
from tidelog.data.tables import from_arrow
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.codes import suggest
from tidelog.language.program import Program
from tidelog.reasoning import AnyTime, arities_of, ends_of, refuse_arities, rule_ranges, timeline_of
from tidelog.spark import answers, awaited_rows, rows
from tidelog.spark import awaiting as awaiting_part
from tidelog.spark.alerts import refuse_spread
from tidelog.spark.batch import Worker, awaiter, backfiller, evaluator
from tidelog.spark.buckets import Bucket
from tidelog.spark.facts import Shape, packer, selected, shape_of, time_type
from tidelog.spark.plan import AwaitedPart, Awaiting, Job, Part, job, spread
from tidelog.spark.session import require_state_store
from tidelog.streaming.alerts import Alerting, alerting
from tidelog.streaming.times import Delay, Times, delays
from tidelog.timeline.interval import INF, read_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession


@dataclass(frozen=True)
class Tagged:
    """All that a job gives, as packed rows, and how to tell the parts of (a batch of) them."""

    frame: DataFrame
    split: Distribution
    job: Job
    columns: answers.Columns

    def awaited(self, frame: DataFrame | None = None) -> DataFrame:
        """What is awaited, as changes: `id`, `step`, `change`, `arg1`, ..., `time`, `watermark`, `evidence`,
        `hypotheses`, `decided_by`, `confidence`, `conditions`."""
        packed, columns = self._of(rows.AWAITED, frame), self._awaited_columns()
        return packed.mapInArrow(awaited_rows.unpacker(columns), columns.schema)

    def awaited_lines(self, frame: DataFrame | None = None) -> DataFrame:
        """The same as text: `line`."""
        write = awaited_rows.liner(self.job.query, self._awaited_columns())
        return self._of(rows.AWAITED, frame).mapInArrow(write, "line string")

    def in_words(self) -> list[str]:
        """How the work is split."""
        lines = distribution_in_words(self.split, self.job.most_buckets)
        return lines if self.job.awaited is None else [*lines, awaiting_part.in_words(self.job.awaited)]

    def _awaited_columns(self) -> awaited_rows.Columns:
        return awaited_rows.Columns(self.columns.args, self.columns.time)

    def answers(self, frame: DataFrame | None = None) -> DataFrame:
        """The answers: `arg1`, `arg2`, ..., `start`, `end`, `closed`."""
        packed = self._of(rows.ANSWER, frame)
        return packed.mapInArrow(answers.unpacker(self.columns), self.columns.schema)

    def late(self, frame: DataFrame | None = None) -> DataFrame:
        """Facts that came later than their delay allows, as text: `fact`."""
        return self._of(rows.LATE, frame).mapInArrow(answers.as_text, "fact string")

    def set_aside(self, frame: DataFrame | None = None) -> DataFrame:
        """Rows of the input that are no facts, as JSON: `row`."""
        return self._of(rows.BAD, frame).mapInArrow(answers.lines, "row string")

    def saved(self, frame: DataFrame | None = None) -> DataFrame:
        """The buckets as a backfill left them, in chunks: `bucket`, `stage`, `t`, `number`, `chunk`."""
        return self._of(rows.STATE, frame).mapInArrow(answers.states, rows.SAVED)

    def stats(self, frame: DataFrame | None = None) -> DataFrame:
        """The figures of every bucket's step, as JSON: `step`."""
        return self._of(rows.STATS, frame).selectExpr("cast(payload as string) as step")

    def _of(self, kind: str, frame: DataFrame | None) -> DataFrame:
        frame = self.frame if frame is None else frame
        return frame.where(frame.kind == kind).select("bucket", "payload")


def reason(
    spark: SparkSession, program: Program, query: str, facts: Mapping[str, DataFrame], **options: Any
) -> DataFrame:
    """All answers to a query over fact DataFrames: a DataFrame of the same kind, batch or streaming.

    A fact DataFrame holds the arguments in order, then `time`, or `start`, `end` and maybe `closed`; without any of
    these its facts hold always. Answers have columns `arg1`, `arg2`, ..., `start`, `end`, `closed`; an end that is
    empty is infinite. See `tagged` for the options.
    """
    return tagged(spark, program, query, facts, **options).answers()


def awaited(
    spark: SparkSession,
    program: Program,
    query: str,
    facts: Mapping[str, DataFrame],
    awaiting: Awaiting | None = None,
    **options: Any,
) -> DataFrame:
    """What may still become true while facts are late, as a DataFrame of changes; see `Tagged.awaited`.

    Of batch DataFrames it says what is an answer, and what is awaited at the end of the data (or at `until`). See
    `tagged` for the options.
    """
    return tagged(spark, program, query, facts, awaiting=awaiting or Awaiting(), **options).awaited()


def tagged(
    spark: SparkSession,
    program: Program,
    query: str,
    facts: Mapping[str, DataFrame],
    *,
    background: Dataset | None = None,
    buckets: int | None = None,
    timeline: str | None = None,
    between: tuple[AnyTime, AnyTime] | None = None,
    delay: Delay = 0,
    at: Times | None = None,
    memory: str | None = None,
    set_aside: bool = False,
    heartbeat: Fraction | None = None,
    until: Fraction | None = None,
    backfill: bool = False,
    initial: DataFrame | None = None,
    alerts: Alerting | Mapping[str, Any] | None = None,
    changed_rules: bool = False,
    clocked: Collection[str] = (),
    awaiting: Awaiting | None = None,
) -> Tagged:
    """A job that reasons over fact DataFrames, with all that it gives.

    `buckets` is how many engines share the work (`spark.sql.shuffle.partitions` unless given). `set_aside` keeps rows
    without a value for an argument or a time apart instead of failing. `between` is for batch jobs. `delay`, `at` and
    `memory` are for streams, as the streaming reasoner has them; with `heartbeat`, the wall clock moves a stream on so
    often. `until` ends it: the first batch moves time there, so that all that comes after it is late. It is for a query
    that goes on from a checkpoint by which all but what one batch takes has been read.

    With `backfill`, batch DataFrames are taken as a stream that has passed: the job gives the answers that are certain
    at its end, and `saved()`, its state. A stream that is given this state as `initial` goes on from there.

    A stream goes on from a checkpoint with the rules that made it. With `changed_rules` they may be others: what can be
    kept is kept, as `Reasoner.load` does, and `stats()` of the first steps have `notes` on what cannot. The split has
    to stay as it is, and of several stages only the rules of the last may change.

    Time is that of the latest fact. `clocked` names the predicates whose DataFrames move Spark's watermark themselves,
    by a column on its own clock (`sources.on_spark_clock`) that they no longer have: there rows count that are no
    facts. With several watermarks, the query must run under the policy that takes the largest (`session.CLOCK`).

    `alerts` are the options of `tl.Watch`, like `{"changes": True, "cooldown": "10min"}`: with `changes`, answers have
    columns `event` (start or end), `time` and `closed` instead of `start`, `end` and `closed`.

    With `awaiting`, the job also gives `awaited()`: what may still become true, for facts that may be late by `delay`.
    """
    timeline_of(program, timeline)
    strata(program.rules)
    streaming = any(frame.isStreaming for frame in facts.values())
    kind = "streaming" if streaming else "backfill" if backfill else "batch"
    given = {
        "between": between is not None,
        "delay": delay != 0,
        "at": at is not None,
        "memory": memory is not None,
        "heartbeat": heartbeat is not None,
        "until": until is not None,
        "backfill": backfill,
        "initial": initial is not None,
        "changed_rules": changed_rules,
        "clocked": bool(clocked),
    }
    _refuse_options(kind, {name for name, is_given in given.items() if is_given}, awaiting is not None)
    shapes = _shapes(program, facts)
    require_known([query], known_predicates(program, facts))
    if streaming:
        live = {name for name, frame in facts.items() if frame.isStreaming}
    else:
        live = {name for name in facts if shapes[name].times or not (backfill or awaiting)}
    known = _background(program, background, {n: f for n, f in facts.items() if n not in live}, shapes)
    rigid = {name for name in facts if not shapes[name].times} | {name for name, _ in known.relations} - live
    batch = not streaming and not backfill
    split = distribution(program, query, background=rigid, endless=endless(program) if batch else ())
    arities = {name: len(shape.args) for name, shape in shapes.items()} | program.predicates
    count = buckets or int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    told = _alerting(alerts, arities[query], at is not None, batch)
    if told:
        refuse_spread(split, query, count, told)
    since = -INF if initial is None else read_time(_handed_over(initial))
    work = job(
        program,
        query,
        split,
        buckets=count,
        delays=delays(delay),
        timeline=timeline,
        memory=memory,
        at=at if at is None or isinstance(at, str) else tuple(Fraction(t) for t in at),
        since=since,
        alerts=told,
        changed=changed_rules,
    )
    columns = answers.Columns(
        answers.argument_types(program, query, arities[query], shapes.values(), known),
        time_type(shapes, all(end.denominator == 1 for end in ends_of(program))),
        told is not None and told.changes,
    )
    if awaiting is not None:
        coming = {name: shapes[name] for name in facts if name in live}
        dates = columns.time.startswith("timestamp")
        work = awaiting_part.with_awaited(work, awaiting, coming, known, timeline=timeline, buckets=count, dates=dates)
    known_pieces = tuple(pieces.pieces_of(known))
    inputs = {name: (selected(facts[name], shapes[name]), shapes[name]) for name in facts if name in live}
    if not batch:
        _try_out(work, known)
    if streaming:
        require_state_store(spark)
        clock = {k: str(v) for k, v in (("every", heartbeat), ("until", until)) if v is not None}
        frame = _streaming(spark, work, inputs, known_pieces, set_aside, clock, initial, clocked)
    else:
        last = (_last(inputs) if until is None else until) if backfill or awaiting else INF

        def worker(part: Part | AwaitedPart) -> Worker:
            if isinstance(part, AwaitedPart):
                return awaiter(work, known_pieces, last, saved=backfill)
            if backfill:
                return backfiller(work, part.number, known_pieces, last)
            return evaluator(work, part.number, known_pieces, between)

        frame = _batch(spark, work, inputs, known_pieces, set_aside, worker)
    return Tagged(frame, split, work, columns)


def _alerting(asked: Alerting | Mapping[str, Any] | None, arity: int, points: bool, batch: bool) -> Alerting | None:
    """What is told of the answers, checked against what there is."""
    if asked is None:
        return None
    if batch:
        law = "what is certain, and when, is a question of streams"
        raise TidelogError(Diagnostic("TL404", "alerts are not for batch jobs", law=law, help="leave them out"))
    options = asked if isinstance(asked, Mapping) else vars(asked)
    return alerting(**options, arity=arity, points=points)


#: The options that not every kind of job has.
_OPTIONS = {
    "batch": {"between"},
    "backfill": {"backfill", "delay", "at", "memory", "until"},
    "streaming": {"delay", "at", "memory", "heartbeat", "until", "initial", "changed_rules", "clocked"},
}


def _refuse_options(kind: str, given: Collection[str], awaiting: bool) -> None:
    """Refuses options that a job of this kind would not look at."""
    options = _OPTIONS[kind]
    if awaiting:
        options = options | {"delay", "until"} if kind == "batch" else options - {"changed_rules"}
    wrong = sorted(set(given) - options)
    if not wrong:
        return
    which = ", ".join(f"`{name}`" for name in wrong)
    what = f"{kind} job with `awaiting`" if awaiting else f"{kind} job"
    why = "the DataFrames stream" if kind == "streaming" else "no DataFrame streams"
    raise TidelogError(
        Diagnostic(
            "TL805",
            f"{which} {'is' if len(wrong) == 1 else 'are'} not for a {what}",
            law=f"{why}, so the options are {', '.join(sorted(options))}",
            help="leave it out" if len(wrong) == 1 else "leave them out",
        )
    )


def _streaming(
    spark: SparkSession,
    work: Job,
    inputs: Mapping[str, tuple[DataFrame, Shape]],
    background: tuple[bytes, ...],
    set_aside: bool,
    clock: Mapping[str, str],
    initial: DataFrame | None,
    clocked: Collection[str],
) -> DataFrame:
    from tidelog.spark.clock import ClockSource
    from tidelog.spark.operator import AwaitedProcessor, BucketProcessor

    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    keys = spread(work.most_buckets, partitions)
    spark.dataSource.register(ClockSource)
    woken = {"keys": ",".join(map(str, keys)), "woken": str(work.parts[0].buckets)}
    frames = [spark.readStream.format(ClockSource.name()).options(**woken, **clock).load()]
    others: list[DataFrame] = []
    for name, (frame, shape) in inputs.items():
        timed = name not in clocked
        packed = frame.mapInArrow(
            packer(work, shape, keys, timed=timed, set_aside=set_aside), rows.TIMED_ROW if timed else rows.ROW
        )
        (frames if timed else others).append(packed)
    # The clock is Spark's watermark, the largest time of all rows. Its column goes before the first stage, so that
    # Spark has nothing to drop late rows by: what is late is for the reasoner to say.
    packed = _union([_union(frames).withWatermark("time", "0 seconds").drop("time"), *others])
    run = uuid4().hex
    for part in work.chain:
        kind = AwaitedProcessor if isinstance(part, AwaitedPart) else BucketProcessor
        processor = kind(run, work, part.number, keys, background)
        mode = "eventTime" if part.number == 0 else "none"
        handed = None if initial is None else _handed(spark, initial, part.number, keys)
        packed = packed.groupBy("bucket").transformWithStateInPandas(processor, rows.ROW, "append", mode, handed)
    return packed


def _batch(
    spark: SparkSession,
    work: Job,
    inputs: Mapping[str, tuple[DataFrame, Shape]],
    background: tuple[bytes, ...],
    set_aside: bool,
    worker: Callable[[Part | AwaitedPart], Worker],
) -> DataFrame:
    most = work.most_buckets
    keys = tuple(range(most))
    woken = [(bucket, part.number, rows.WAKE, b"") for part in work.chain for bucket in range(part.buckets)]
    frames = [spark.createDataFrame(woken, rows.ROW)]
    for frame, shape in inputs.values():
        frames.append(frame.mapInArrow(packer(work, shape, keys, timed=False, set_aside=set_aside), rows.ROW))
    packed = _union(frames)
    for part in work.chain:
        spread_out = packed.repartitionById(most, packed.bucket)
        packed = spread_out.mapInArrow(worker(part), rows.ROW)
    return packed


def _union(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)


def endless(program: Program) -> frozenset[str]:
    """The predicates whose facts may repeat for ever: those of a recursion through time, and all that reads them.

    In a batch they cannot go from one stage to the next, as no finite set of rows holds them.
    """
    through_time = {
        head.predicate
        for rule in program.rules
        if (head := head_atom(rule)) is not None and any(True for _ in rule_ranges(rule))
    }
    graph: dict[str, list[str]] = {}
    for rule in program.rules:
        if (head := head_atom(rule)) is not None:
            graph.setdefault(head.predicate, []).extend(atom.predicate for atom, _ in dependencies(rule))
    found = {
        name
        for component in connected(graph)
        if component.recursive and not through_time.isdisjoint(component.predicates)
        for name in component.predicates
    }
    while more := {name for name, below in graph.items() if not found.isdisjoint(below)} - found:
        found |= more
    return frozenset(found)


def _shapes(program: Program, facts: Mapping[str, DataFrame]) -> dict[str, Shape]:
    """The shapes of all fact DataFrames; raises with everything that is wrong with them."""
    arities = program.predicates
    shapes: dict[str, Shape] = {}
    problems: list[Diagnostic] = []
    for name, frame in facts.items():
        if name not in arities:
            close = suggest(name, arities)
            help = f"did you mean {close}?" if close else "leave it out, or correct its name"
            problems.append(Diagnostic("TL302", f"there are facts of {name}, but no rule has it", help=help))
            continue
        try:
            shapes[name] = shape_of(name, frame, arities[name])
        except TidelogError as error:
            problems += error.diagnostics
    if problems:
        raise TidelogError(problems)
    return shapes


def _background(
    program: Program, given: Dataset | None, facts: Mapping[str, DataFrame], shapes: Mapping[str, Shape]
) -> Dataset:
    """What every bucket is told before it begins: what was given as such, and DataFrames that do not stream."""
    data = given or Dataset()
    if program.temporal:
        data = data.timed(program.temporal.temporal)
    for name, frame in facts.items():
        data = data | _collected(selected(frame, shapes[name]), shapes[name])
    refuse_arities(dict(arities_of(program)), data, None)
    return data


def _collected(frame: DataFrame, shape: Shape) -> Dataset:
    """The facts of a batch DataFrame, in this process."""
    symbols = Symbols()
    table = frame.toArrow().combine_chunks()
    arrays = [column.combine_chunks() for column in table.columns]
    found = from_arrow(
        table.column_names, arrays, table.num_rows, shape.predicate, f"facts of {shape.predicate}", symbols
    )
    return Dataset(symbols, found)


def _handed(spark: SparkSession, initial: DataFrame, stage: int, keys: tuple[int, ...]) -> GroupedData:
    """The saved buckets of a stage, under the keys that its operator has."""
    mine = initial.where(initial.stage == stage)
    known = spark.createDataFrame(list(enumerate(keys)), "place int, key int")
    return mine.join(known, mine.bucket == known.place).selectExpr("key as bucket", "number", "chunk").groupBy("bucket")


def _handed_over(initial: DataFrame) -> str:
    """The clock of a state that is handed over."""
    times = [row.t for row in initial.where("stage = 0").select("t").distinct().collect()]
    if len(times) == 1:
        return str(times[0])
    problem = f"the initial state has {len(times)} clocks" if times else "the initial state is empty"
    raise TidelogError(Diagnostic("TL401", problem, help="give what `saved()` of one backfill gave"))


def _last(inputs: Mapping[str, tuple[DataFrame, Shape]]) -> Fraction:
    """The largest time at which a fact of the input begins, as a stream's clock would show it."""
    found: list[Fraction] = []
    for frame, shape in inputs.values():
        name, kind = next((n, k) for n, k in shape.times if n != "closed")
        stamped = kind in ("timestamp", "timestamp_ntz", "date")
        largest = f"unix_micros(cast(max(`{name}`) as timestamp))" if stamped else f"cast(max(`{name}`) as string)"
        (value,) = frame.selectExpr(f"{largest} as t").first() or (None,)
        if value is not None:
            found.append(Fraction(value, 10**6) if stamped else Fraction(value))
    if not found:
        raise TidelogError(Diagnostic("TL307", "there are no facts to backfill from", help="give `until`, or facts"))
    return Fraction(floor(max(found) * 1000), 1000)


def _try_out(work: Job, background: Dataset) -> None:
    """Makes the first bucket of every stage, so that what cannot stand over a stream is refused before a job starts."""
    for part in work.parts:
        Bucket.new(work, part, 0, background)
