"""The record of a checkpoint: the rules and options that made it, so that no others run on its state."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tidelog.compiler.compiled_program import Memory
from tidelog.data.data_files import strip_predicate
from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.pipeline.hadoop_files import HadoopFolder
from tidelog.spark.pipeline.pipeline_config import Pipeline
from tidelog.spark.plan.state_layout import explain_layout_change
from tidelog.streaming.output_time_text import find_times_file
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "tidelog.json"
_VERSION = 1
#: Fields that must not change, and their names in the pipeline file.
_FIXED = {
    "query": "query",
    "timeline": "timeline",
    "memory": "memory",
    "at": "at",
    "delay": "delay",
    "corrections": "corrections",
    "facts": "facts",
    "background": "background",
    "history": "history",
    "alerts": "[sinks.answers] changes, dedupe, cooldown, per",
    "awaited": "awaited",
}


@dataclass(frozen=True)
class CheckpointRecord:
    """The pipeline of a checkpoint; `id` distinguishes its output from that of others."""

    id: str
    rules: str
    query: str
    timeline: TimelineName | None
    memory: Memory | None
    at: str | None
    delay: dict[str, str]
    facts: list[str]
    background: list[str]
    #: The sources that had a history when the checkpoint began.
    history: list[str]
    buckets: int
    #: How the work is split, once a job has started: see `JobPlan.layout`.
    layout: list[dict[str, Any]] | None = None
    #: Whether the rules have changed, so that some of the state may still be of old rules.
    changed: bool = False
    #: The options of hypothetical answers, if there is a sink for them.
    awaited: dict[str, Any] | None = None
    version: int = _VERSION
    alerts: dict[str, Any] | None = None
    corrections: str | None = None
    #: Whether a source is read once for all its facts, and its rows that cannot be read. Spark has an entry in the
    #: checkpoint for each time that a source is read, so one that began with several goes on with several.
    sources_read_once: bool = False


def build_record(pipeline: Pipeline, buckets: int) -> CheckpointRecord:
    """Build the record of a pipeline."""
    own = {fact.predicate: str(fact.delay) for fact in pipeline.facts if fact.delay is not None}
    return CheckpointRecord(
        uuid4().hex,
        str(pipeline.program),
        pipeline.query,
        pipeline.timeline,
        pipeline.memory,
        _describe_output_times(pipeline.at),
        {"": str(pipeline.delay), **own},
        [fact.predicate for fact in pipeline.facts],
        [sha256(Path(strip_predicate(given)).read_bytes()).hexdigest() for given in pipeline.background],
        [source.name for source in pipeline.sources if source.history],
        buckets,
        alerts=pipeline.answers.alerts.to_json() if pipeline.answers.alerts else None,
        corrections=None if pipeline.corrections is None else str(pipeline.corrections),
        awaited={key: value for key, value in asdict(pipeline.awaiting).items() if value is not None}
        if pipeline.awaited
        else None,
        sources_read_once=True,
    )


def _describe_output_times(at: str | None) -> str | None:
    """Return `at` as it is recorded: a file by its contents, since other times would need other answers."""
    path = find_times_file(at)
    return at if path is None else f"file:{sha256(Path(path).read_bytes()).hexdigest()}"


def read_record(spark: SparkSession, pipeline: Pipeline) -> CheckpointRecord | None:
    """Read the record of a pipeline's checkpoint; None if it is new, or if no job has started from it."""
    folder = _folder(spark, pipeline)
    found = folder.read_json(_NAME)
    if found is not None and not folder.exists("offsets") and not folder.exists("history"):
        return None
    if found is None:
        if any(not name.startswith((".", "_")) for name in folder.names()):
            message = f"{pipeline.checkpoint} is not a checkpoint of tidelog"
            raise TidelogError(Diagnostic("TL809", message, help="choose an empty folder, or one that does not exist"))
        return None
    if found.get("version") != _VERSION:
        message = f"{pipeline.checkpoint} was made by another version of tidelog"
        raise TidelogError(Diagnostic("TL809", message, help="start over with another checkpoint"))
    return CheckpointRecord(**found)


def reconcile_records(existing: CheckpointRecord, new: CheckpointRecord, pipeline: Pipeline) -> CheckpointRecord:
    """Return the record to continue with; raise TL809 if the pipeline has changed, except for rules that may."""
    errors = [
        _difference(key, existing, new, pipeline) for key in _FIXED if getattr(existing, key) != getattr(new, key)
    ]
    if pipeline.buckets is not None and pipeline.buckets != existing.buckets:
        message = f"the checkpoint has {existing.buckets} buckets, not {pipeline.buckets}"
        errors.append(_refusal(message, "leave `buckets` out or as it was, or start over with another checkpoint"))
    if existing.rules != new.rules and not pipeline.changed_rules:
        help = (
            "allow the change (`--changed-rules`), or start over with another checkpoint; with `history` it can "
            "reason over the past first"
        )
        errors.append(
            _refusal(f"{pipeline.checkpoint} was made with other rules: {_describe_rule_change(existing, new)}", help)
        )
    if existing.rules != new.rules and existing.awaited is not None:
        help = "leave the rules as they were, or start over with another checkpoint"
        errors.append(_refusal("a checkpoint with [sinks.awaited] cannot continue with other rules", help))
    if errors:
        raise TidelogError(errors)
    return existing if existing.rules == new.rules else replace(existing, rules=new.rules, changed=True)


def add_layout(record: CheckpointRecord, layout: list[dict[str, Any]], pipeline: Pipeline) -> CheckpointRecord:
    """Return the record with the layout of its job; raise TL809 if its state has an incompatible layout."""
    other = explain_layout_change(record.layout, layout) if record.layout else None
    if other is not None:
        message = f"{pipeline.checkpoint} cannot continue with these rules: {other}"
        raise TidelogError(_refusal(message, "leave these rules as they were, or start over with another checkpoint"))
    return replace(record, layout=layout)


def write_record(spark: SparkSession, pipeline: Pipeline, record: CheckpointRecord) -> None:
    _folder(spark, pipeline).write_json(_NAME, asdict(record))


def _folder(spark: SparkSession, pipeline: Pipeline) -> HadoopFolder:
    assert pipeline.checkpoint is not None
    return HadoopFolder(spark, pipeline.checkpoint)


def _difference(key: str, existing: CheckpointRecord, new: CheckpointRecord, pipeline: Pipeline) -> Diagnostic:
    was, now = getattr(existing, key), getattr(new, key)
    what = f"{_format_setting(was)}, and now {_format_setting(now)}" if key != "background" else "other facts than now"
    message = f"{pipeline.checkpoint} was made with `{_FIXED[key]}` as {what}"
    return _refusal(message, f"leave `{_FIXED[key]}` as it was, or start over with another checkpoint")


def _refusal(message: str, help: str) -> Diagnostic:
    return Diagnostic("TL809", message, help=help)


def _describe_rule_change(existing: CheckpointRecord, new: CheckpointRecord) -> str:
    old, now = existing.rules.splitlines(), new.rules.splitlines()
    gone = [rule for rule in old if rule not in now]
    come = [rule for rule in now if rule not in old]
    parts = [f"it had `{gone[0]}`"] if gone else []
    parts += [f"it did not have `{come[0]}`"] if come else []
    return " and ".join(parts) or "in another order"


def _format_setting(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {text}" if name else text for name, text in value.items()) or "given"
    return (", ".join(value) or "none") if isinstance(value, list) else str(value)
