"""What a checkpoint was made with: a small file in its folder, so that other rules are not run on an old state."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tidelog.data.files import path_of
from tidelog.errors import Diagnostic, TidelogError
from tidelog.spark.pipeline import Pipeline
from tidelog.spark.plan import other_layout
from tidelog.spark.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = "tidelog.json"
_VERSION = 1
_LAW = "a checkpoint goes on with the rules, the query and the options that made it"
#: What has to be as it was, and how it is called in the file.
_FIXED = {
    "query": "query",
    "timeline": "timeline",
    "memory": "memory",
    "at": "at",
    "delay": "delay",
    "facts": "facts",
    "background": "background",
    "history": "history",
    "alerts": "[sinks.answers] changes, dedupe, cooldown, per",
    "awaited": "awaited",
}


@dataclass(frozen=True)
class Record:
    """The pipeline of a checkpoint; `id` tells its output from that of others."""

    id: str
    rules: str
    query: str
    timeline: str | None
    memory: str | None
    at: str | None
    delay: dict[str, str]
    facts: list[str]
    background: list[str]
    #: The sources that had one when the checkpoint began.
    history: list[str]
    buckets: int
    #: How the work is split, once a job has started: see `Job.layout`.
    layout: list[dict[str, Any]] | None = None
    #: Whether the rules have been others, so that some of the state may still be of those.
    changed: bool = False
    #: How what is awaited is said, if it is.
    awaited: dict[str, Any] | None = None
    version: int = _VERSION
    alerts: dict[str, Any] | None = None


def record_of(pipeline: Pipeline, buckets: int) -> Record:
    """A new record for a pipeline."""
    own = {fact.predicate: str(fact.delay) for fact in pipeline.facts if fact.delay is not None}
    return Record(
        uuid4().hex,
        str(pipeline.program),
        pipeline.query,
        pipeline.timeline,
        pipeline.memory,
        pipeline.at,
        {"": str(pipeline.delay), **own},
        [fact.predicate for fact in pipeline.facts],
        [sha256(Path(path_of(given)).read_bytes()).hexdigest() for given in pipeline.background],
        [source.name for source in pipeline.sources if source.history],
        buckets,
        alerts=pipeline.answers.alerts.to_json() if pipeline.answers.alerts else None,
        awaited={key: value for key, value in asdict(pipeline.awaiting).items() if value is not None}
        if pipeline.awaited
        else None,
    )


def kept_record(spark: SparkSession, pipeline: Pipeline) -> Record | None:
    """The record of a pipeline's checkpoint; None if it is new, or if nothing was done with it yet."""
    folder = _folder(spark, pipeline)
    found = folder.read_json(_NAME)
    if found is not None and not folder.exists("offsets") and not folder.exists("history"):
        return None
    if found is None:
        if any(not name.startswith((".", "_")) for name in folder.names()):
            message = f"{pipeline.checkpoint} is not a checkpoint of tidelog"
            raise TidelogError(Diagnostic("TL809", message, help="choose a folder that is empty, or none yet"))
        return None
    if found.get("version") != _VERSION:
        message = f"{pipeline.checkpoint} is of another version of tidelog"
        raise TidelogError(Diagnostic("TL809", message, help="begin again with another checkpoint"))
    return Record(**found)


def agreed(kept: Record, new: Record, pipeline: Pipeline) -> Record:
    """The record to go on with: the old one, if the pipeline is still the same, but for rules that may change."""
    errors = [_differs(key, kept, new, pipeline) for key in _FIXED if getattr(kept, key) != getattr(new, key)]
    if pipeline.buckets is not None and pipeline.buckets != kept.buckets:
        message = f"the checkpoint has {kept.buckets} buckets, not {pipeline.buckets}"
        errors.append(_refusal(message, "leave `buckets` out or as it was, or begin again with another checkpoint"))
    if kept.rules != new.rules and not pipeline.changed_rules:
        help = (
            "ask for the change (`--changed-rules`), or begin again with another checkpoint; with `history` it can "
            "reason over the past first"
        )
        errors.append(_refusal(f"{pipeline.checkpoint} was made with other rules: {_first_change(kept, new)}", help))
    if kept.rules != new.rules and kept.awaited is not None:
        help = "leave the rules as they were, or begin again with another checkpoint"
        errors.append(_refusal("what is awaited cannot go on with other rules", help))
    if errors:
        raise TidelogError(errors)
    return kept if kept.rules == new.rules else replace(kept, rules=new.rules, changed=True)


def laid_out(record: Record, layout: list[dict[str, Any]], pipeline: Pipeline) -> Record:
    """The record of a job that is split like this; refused if its state is laid out in another way."""
    other = other_layout(record.layout, layout) if record.layout else None
    if other is not None:
        message = f"{pipeline.checkpoint} cannot go on with these rules: {other}"
        raise TidelogError(_refusal(message, "leave these rules as they were, or begin again with another checkpoint"))
    return replace(record, layout=layout)


def write_record(spark: SparkSession, pipeline: Pipeline, record: Record) -> None:
    _folder(spark, pipeline).write_json(_NAME, asdict(record))


def _folder(spark: SparkSession, pipeline: Pipeline) -> Storage:
    assert pipeline.checkpoint is not None
    return Storage(spark, pipeline.checkpoint)


def _differs(key: str, kept: Record, new: Record, pipeline: Pipeline) -> Diagnostic:
    was, now = getattr(kept, key), getattr(new, key)
    what = f"{_shown(was)}, and now {_shown(now)}" if key != "background" else "other facts than now"
    message = f"{pipeline.checkpoint} was made with `{_FIXED[key]}` as {what}"
    return _refusal(message, f"leave `{_FIXED[key]}` as it was, or begin again with another checkpoint")


def _refusal(message: str, help: str) -> Diagnostic:
    return Diagnostic("TL809", message, law=_LAW, help=help)


def _first_change(kept: Record, new: Record) -> str:
    old, now = kept.rules.splitlines(), new.rules.splitlines()
    gone = [rule for rule in old if rule not in now]
    come = [rule for rule in now if rule not in old]
    parts = [f"it had `{gone[0]}`"] if gone else []
    parts += [f"it did not have `{come[0]}`"] if come else []
    return " and ".join(parts) or "in another order"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {text}" if name else text for name, text in value.items()) or "given"
    return (", ".join(value) or "none") if isinstance(value, list) else str(value)
