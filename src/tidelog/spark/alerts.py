"""Alerts of a job: how they leave a bucket, and whether each bucket can tell its own.

An answer leaves as it is. A change leaves as a fact with one argument more, which says `start` or `end`, and with the
half of the timeline that it is the edge of: `start A(a)@[8` is `A(a,start)@[8,inf)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.analysis.distribution import Distribution
from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.syntax import Fact
from tidelog.streaming.alerts import Alert, Alerting, Change
from tidelog.timeline.interval import INF, Interval


def packed(alerts: Sequence[Alert], dates: bool) -> bytes:
    """Alerts, of which there are some, as a piece's bytes."""
    data = Dataset.from_facts(_as_fact(alert) for alert in alerts)
    (relation,) = data.relations.values()
    return pieces.packed(data.symbols, data.denominator, dates, relation)


def change_of(fact: Fact) -> Change:
    """The change that left a bucket as a fact."""
    *args, event = fact.args
    held = fact.interval
    time, closed = (held.lo, held.lo_closed) if event == "start" else (held.hi, held.hi_closed)
    return Change(str(event), fact.predicate, tuple(args), time, closed)


def refuse_spread(split: Distribution, query: str, buckets: int, config: Alerting) -> None:
    """A bucket keeps silence for those whose answers are all its own: for every atom, but not for every argument."""
    stage = next(stage for stage in reversed(split.stages) if query in stage.gives)
    key = stage.key[query]
    if config.per is None or stage.single or key is None or buckets == 1 or key + 1 in config.per:
        return
    raise TidelogError(
        Diagnostic(
            "TL404",
            f"`per`: answers of {query} are spread over buckets by argument {key + 1}, which is not among "
            f"{', '.join(map(str, config.per))}",
            law="buckets do not ask each other, so a silence is kept by a bucket that has all the answers it is about",
            help=f"add {key + 1} to `per`, or run with buckets = 1",
        )
    )


def _as_fact(alert: Alert) -> Fact:
    if isinstance(alert, Fact):
        return alert
    if alert.event == "start":
        half = Interval(alert.time, INF, alert.closed, False)
    else:
        half = Interval(-INF, alert.time, False, alert.closed)
    return Fact(alert.predicate, (*alert.args, alert.event), half)
