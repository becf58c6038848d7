"""Alerts of a job: how they leave a bucket, and whether each bucket can decide on its own alerts.

An answer leaves as it is. A change leaves as a fact with an additional argument `start` or `end`, over the half of the
timeline that it bounds: `start A(a)@[8` becomes `A(a,start)@[8,inf)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidelog.analysis.distribution import Distribution
from tidelog.data import wire_format
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import name_deletions
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.syntax import Fact
from tidelog.streaming.alerts import Alert, AlertOptions, Change
from tidelog.timeline.interval import INF, Interval


def pack_alerts(alerts: Sequence[Alert], dates: bool, *, deleted: bool = False) -> bytes:
    """Pack one or more alerts, or the deletions of them."""
    data = Dataset.from_facts(_alert_to_fact(alert) for alert in alerts)
    (relation,) = data.relations.values()
    if deleted:
        relation = replace(relation, predicate=name_deletions(relation.predicate))
    return wire_format.pack(data.symbols, data.denominator, dates, relation)


def fact_to_change(fact: Fact) -> Change:
    """Convert a fact that left a bucket back to the change."""
    *args, event = fact.args
    held = fact.interval
    time, closed = (held.lo, held.lo_closed) if event == "start" else (held.hi, held.hi_closed)
    return Change("start" if event == "start" else "end", fact.predicate, tuple(args), time, closed)


def require_alerts_in_one_bucket(split: Distribution, query: str, buckets: int, config: AlertOptions) -> None:
    """Raise TL404 if alerts that share a cooldown are spread over several buckets."""
    stage = next(stage for stage in reversed(split.stages) if query in stage.outputs)
    key = stage.key[query]
    if config.per is None or stage.single or key is None or buckets == 1 or key + 1 in config.per:
        return
    raise TidelogError(
        Diagnostic(
            "TL404",
            f"`per`: answers of {query} are spread over buckets by argument {key + 1}, which is not among "
            f"{', '.join(map(str, config.per))}",
            law="buckets do not communicate, so one bucket must hold all answers that share a cooldown",
            help=f"add {key + 1} to `per`, or run with buckets = 1",
        )
    )


def _alert_to_fact(alert: Alert) -> Fact:
    if isinstance(alert, Fact):
        return alert
    if alert.event == "start":
        half = Interval(alert.time, INF, alert.closed, False)
    else:
        half = Interval(-INF, alert.time, False, alert.closed)
    return Fact(alert.predicate, (*alert.args, alert.event), half)
