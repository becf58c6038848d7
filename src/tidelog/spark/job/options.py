"""The options of a job: one frozen class, and the keywords of `reason` and `awaited` that fill it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_args

from tidelog.compiler.compiled_program import Memory
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.time_like import DurationLike, TimeLike
from tidelog.language.wording import join_words, suggest
from tidelog.spark.plan.job_plan import Awaiting, StableMode
from tidelog.streaming.alerts import AlertOptions
from tidelog.streaming.output_times import DelayLike, OutputTimesLike
from tidelog.timeline.interval import Time, TimelineName

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

#: The columns of a DataFrame: `"turbine STRING, time TIMESTAMP"`, or Spark's own class.
SchemaLike: TypeAlias = "str | StructType"

#: The options that only some kinds of jobs have.
_OPTIONS_BY_KIND = {
    "batch": {"between", "stable"},
    "backfill": {"backfill", "delay", "corrections", "at", "memory", "until"},
    "streaming": {
        "delay",
        "corrections",
        "at",
        "memory",
        "heartbeat",
        "until",
        "answer_until",
        "initial",
        "changed_rules",
        "clocked",
        "stable",
    },
}
_RESTRICTED = set().union(*_OPTIONS_BY_KIND.values())
#: The names of options in a pipeline file, where they differ.
_SHOWN = {"awaiting": "[sinks.awaited]", "answer_until": "until"}


@dataclass(frozen=True)
class JobOptions:
    """How a job over fact DataFrames runs. All options but `awaiting` are also keywords of `reason` and `awaited`."""

    #: Facts that every bucket knows from the start.
    background: Dataset | None = None
    #: The number of engines that share the work. Default: `spark.sql.shuffle.partitions`.
    buckets: int | None = None
    timeline: TimelineName | None = None
    #: Set aside rows without a value for an argument or a time, instead of failing.
    set_aside: bool = False

    #: Rows of sources that cannot be read, as JSON in a column `row`: set aside as well, or the job fails at the first.
    bad_rows: Sequence[DataFrame] = ()
    #: Read a source once for all facts that filter and project its rows. The checkpoint of a stream has an entry for
    #: each time that a source is read, so one that began with several needs False.
    read_once: bool = True
    #: The columns of fact DataFrames, by predicate: `{"Hot": "turbine STRING, time TIMESTAMP"}`. The job is then built
    #: without asking Spark about these DataFrames, as functions of declarative pipelines must.
    schemas: Mapping[str, SchemaLike] | None = None
    #: The names of the arguments of answers. Default: `arg1`, `arg2`, ...
    names: Sequence[str] | None = None

    #: Batch jobs: the first and the last time to answer for.
    between: tuple[TimeLike, TimeLike] | None = None
    #: Reason over stable models, as `tidelog stable` does. Answers are the facts that hold in some model ("brave"), in
    #: all of them ("cautious") or, in batch jobs, in one ("model"). Batch jobs need `between`; streams answer for the
    #: stable models of the facts so far, as `tidelog stable --input` does.
    stable: StableMode | None = None

    #: Streams: how late facts may arrive, when to answer, and which memory mode to use, as in `tidelog.Reasoner`.
    delay: DelayLike = 0
    at: OutputTimesLike | None = None
    memory: Memory | None = None
    #: Streams: for how long late facts and deletions are taken, as in `tidelog.Reasoner`. Answers are then changes,
    #: with columns `change` (`+` or `-`) and `known`; rows of facts may have a column `op` (`insert` or `delete`).
    corrections: DurationLike | None = None
    #: Streams: the options of `tidelog.streaming.Watch`, for example `{"changes": True, "cooldown": "10min"}`. With
    #: `changes`, answers have columns `event` (start or end), `time` and `closed` instead of `start`, `end`, `closed`.
    alerts: AlertOptions | Mapping[str, Any] | None = None
    #: Streams: advance time by the wall clock, once per this number of seconds.
    heartbeat: Fraction | None = None
    #: Streams: the last time. The first batch moves the clock there, so everything that arrives after it is late. Use
    #: it when the checkpoint has read all input but one batch. Batch jobs with `awaiting`, and backfills: the time of
    #: the clock at the end.
    until: Time | None = None
    #: Streams: the end of time. Answers that hold there are given with a closed end; facts that begin later wait in the
    #: state for a job that ends later. It moves no clock, as `until` does.
    answer_until: Time | None = None
    #: Batch DataFrames are the past of a stream. The job gives the answers that are certain at its end, and its state
    #: as `JobOutput.saved()`.
    backfill: bool = False
    #: Streams: the saved state of a backfill to continue from.
    initial: DataFrame | None = None
    #: Streams: allow other rules than those of the checkpoint. The state is carried over as far as possible, as
    #: `Reasoner.load` does it, and the first `JobOutput.stats()` have `notes` on what is lost. The split must stay
    #: the same, and of several stages only the rules of the last may change.
    changed_rules: bool = False
    #: Streams: the predicates whose DataFrames already carry Spark's watermark, from a column that they no longer have
    #: (`sources.to_spark_clock_column`). All their rows move the clock, facts or not. Otherwise the time of the latest
    #: fact is the clock. With several watermarks, the query must take the largest (`session.CLOCK_SETTINGS`).
    clocked: Collection[str] = ()
    #: Also give `JobOutput.awaited()`: the answers that are still possible while facts may be late by `delay`.
    awaiting: Awaiting | None = None


class JobKeywords(TypedDict, total=False):
    """The fields of `JobOptions` as keywords, without `awaiting`; a test keeps the two in step."""

    background: Dataset | None
    buckets: int | None
    timeline: TimelineName | None
    set_aside: bool
    bad_rows: Sequence[DataFrame]
    read_once: bool
    schemas: Mapping[str, SchemaLike] | None
    names: Sequence[str] | None
    between: tuple[TimeLike, TimeLike] | None
    stable: StableMode | None
    delay: DelayLike
    at: OutputTimesLike | None
    memory: Memory | None
    corrections: DurationLike | None
    alerts: AlertOptions | Mapping[str, Any] | None
    heartbeat: Fraction | None
    until: Time | None
    answer_until: Time | None
    backfill: bool
    initial: DataFrame | None
    changed_rules: bool
    clocked: Collection[str]


def to_options(options: JobOptions | None, keywords: JobKeywords) -> JobOptions:
    """Return the options with the keywords in place of the fields that they name."""
    known = JobOptions.__dataclass_fields__
    for name in keywords:
        if name not in known:
            close = suggest(name, known)
            raise TypeError(f"there is no option {name!r}" + (f"; did you mean {close!r}?" if close else ""))
    return replace(options or JobOptions(), **keywords)


def require_correctable(options: JobOptions) -> None:
    """Raise TL408 if an option is set that does not go together with corrections."""
    if options.corrections is None:
        return
    reasons = {
        "at": "every bucket would have to know which times of the input were withdrawn",
        "awaiting": "what is awaited depends on facts that are final once they arrive",
        "answer_until": "answers that are closed at the end of time would have to be taken back by the next run",
    }
    problems = [
        Diagnostic(
            "TL408",
            f"corrections do not work with `{_SHOWN.get(name, name)}` on Spark",
            law=reason,
            help=f"leave `{_SHOWN.get(name, name)}` or `corrections` out",
        )
        for name, reason in reasons.items()
        if getattr(options, name) is not None
    ]
    if problems:
        raise TidelogError(problems)


#: Why streams do not follow one model, and what to do instead.
ONE_MODEL_LAW = "facts to come may exclude the model that was chosen"
ONE_MODEL_HELP = 'ask for what holds in some model ("brave"), or in all ("cautious")'
#: The options that streams over stable models do not have, with the reason.
UNSTABLE_OPTIONS = {
    "corrections": "facts that are taken back would change which models there were ever since",
    "at": "the answers of stable models are intervals",
    "memory": "what is kept are the possible windows of stable models, whose size the rules decide",
    "alerts": "alerts report the model of rules without negation in cycles",
    "awaiting": "hypothetical answers are those of the one model of a program",
    "initial": "a history is reasoned over without stable models",
    "changed_rules": "other rules have other stable models, at the times that have passed, too",
}


def require_stable_options(kind: str, options: JobOptions) -> None:
    """Raise TL805 if stable models are asked for in another way, without a range of time, or with other options."""
    if options.stable is None:
        return
    if options.stable not in get_args(StableMode):
        law = f"it is {join_words(list(get_args(StableMode)), 'or')}"
        raise TidelogError(Diagnostic("TL805", f"`stable` cannot be {options.stable!r}", law=law))
    if kind == "streaming":
        _require_stable_stream(options)
    elif options.between is None:
        law = "stable models go on for ever, and no bucket knows the range of all the data"
        help = "give the first and the last time to answer for: between=(LO, HI)"
        raise TidelogError(Diagnostic("TL805", "`stable` needs `between`", law=law, help=help))


def _require_stable_stream(options: JobOptions) -> None:
    """Raise TL805 for options that do not go together with stable models of a stream."""
    if options.stable == "model":
        message = '`stable` cannot be "model" for a streaming job'
        raise TidelogError(Diagnostic("TL805", message, law=ONE_MODEL_LAW, help=ONE_MODEL_HELP))
    defaults = JobOptions()
    problems = [
        Diagnostic(
            "TL805",
            f"`stable` and `{_SHOWN.get(name, name)}` do not go together in a streaming job",
            law=law,
            help="leave one of them out",
        )
        for name, law in UNSTABLE_OPTIONS.items()
        if getattr(options, name) != getattr(defaults, name)
    ]
    if problems:
        raise TidelogError(problems)


def require_applicable(kind: str, options: JobOptions) -> None:
    """Raise TL805 if an option is set that a job of this kind does not have."""
    defaults = JobOptions()
    options = replace(options, clocked=tuple(options.clocked))
    given = {name for name in _RESTRICTED if getattr(options, name) != getattr(defaults, name)}
    allowed = _OPTIONS_BY_KIND[kind]
    if options.awaiting is not None:
        allowed = (allowed - {"stable"}) | {"delay", "until"} if kind == "batch" else allowed - {"changed_rules"}
    wrong = sorted(given - allowed)
    if not wrong:
        return
    names = ", ".join(f"`{name}`" for name in wrong)
    job = f"{kind} job with `awaiting`" if options.awaiting is not None else f"{kind} job"
    help = "leave it out" if len(wrong) == 1 else "leave them out"
    reason = "some DataFrames are streaming" if kind == "streaming" else "no DataFrame is streaming"
    raise TidelogError(
        Diagnostic(
            "TL805",
            f"{names} {'is' if len(wrong) == 1 else 'are'} not for a {job}",
            law=f"{reason}, so the options are {', '.join(sorted(allowed))}",
            help=help,
        )
    )
