"""The figures of a running stream: counters and samples, written by the stream, read by the server's threads.

Writing takes a few additions under a lock, so a page that watches costs the stream next to nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from time import monotonic, time
from typing import Any, Protocol

from tidelog.language.time_text import format_iso
from tidelog.timeline.interval import INF, Time, format_time

#: Seconds between samples, how many are kept, and how many recent ones the rate of facts is averaged over.
_EVERY = 1.0
_SAMPLES = 300
_RECENT = 10
#: How many answers and rules the page shows.
_LATEST = 50
_RULES = 8


class Board(Protocol):
    """What a running job writes to: the figures of its batches."""

    def count(self, *, facts: int = 0, answers: int = 0, late: int = 0, aside: int = 0, seconds: float = 0.0) -> None:
        """Add the counts of one or more steps; `seconds` is the time of the longest."""

    def add_answers(self, facts: Iterable[str]) -> None:
        """Add formatted answers, the newest last."""

    def set_state(self, held: Mapping[str, int], watermark: Time | None, dates: bool) -> None:
        """Set how many facts are held per predicate, and up to when all answers are known."""

    def add_rule_costs(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Add the time that rules took in a step: objects with `rule` and `seconds`."""


@dataclass
class _Totals:
    facts: int = 0
    answers: int = 0
    late: int = 0
    #: Bad rows, which were set aside.
    aside: int = 0


@dataclass(frozen=True)
class OpenAlert:
    """An answer that holds now: its atom, since when, and whether it held at that time itself.

    `reason` has the `rule` and a list `because`, or is None where the facts behind it are not held.
    """

    atom: str
    since: Time
    closed: bool
    reason: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class OpenAlerts:
    """The newest answers that hold now, the newest first, how many there are in all, and up to when that is known."""

    newest: tuple[OpenAlert, ...]
    total: int
    known: Time


class LiveBoard:
    """The figures of one running stream. All methods may be called from any thread."""

    def __init__(self, largest_lag: float = INF) -> None:
        """`largest_lag` in seconds: a stream that is further behind the clock is a replay, which has no lag."""
        self._largest_lag = largest_lag
        self._open: OpenAlerts | None = None
        self._withdrawn: deque[tuple[OpenAlert, Time]] = deque(maxlen=_LATEST)
        self._lock = Lock()
        self._began = monotonic()
        self._totals = _Totals()
        self._held: dict[str, int] = {}
        self._rules: dict[str, float] = {}
        self._watermark: Time | None = None
        self._dates = False
        self._latest: deque[str] = deque(maxlen=_LATEST)
        self._slowest = 0.0
        self._before = (self._began, 0, 0)
        self._samples: deque[tuple[float, float, int, float, float]] = deque(maxlen=_SAMPLES)
        self._ended: float | None = None

    def count(self, *, facts: int = 0, answers: int = 0, late: int = 0, aside: int = 0, seconds: float = 0.0) -> None:
        """Add the counts of one or more steps; `seconds` is the time of the longest."""
        with self._lock:
            totals = self._totals
            totals.facts += facts
            totals.answers += answers
            totals.late += late
            totals.aside += aside
            self._slowest = max(self._slowest, seconds)
            self._sample()

    def add_answers(self, facts: Iterable[str]) -> None:
        """Add formatted answers, the newest last."""
        with self._lock:
            self._latest.extend(facts)

    def set_state(self, held: Mapping[str, int], watermark: Time | None, dates: bool) -> None:
        """Set how many facts are held per predicate, and up to when all answers are known."""
        with self._lock:
            self._held = {name: count for name, count in held.items() if count}
            self._dates = dates
            if watermark is not None and abs(watermark) != INF:
                self._watermark = watermark

    def set_open(self, alerts: OpenAlerts, withdrawn: Iterable[OpenAlert] = ()) -> None:
        """Set the answers that hold now; `withdrawn` are some that were shown, and never held as is known now."""
        with self._lock:
            self._open = alerts
            self._withdrawn.extend((alert, alerts.known) for alert in withdrawn)

    def add_rule_costs(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Add the time that rules took in a step: objects with `rule` and `seconds`."""
        with self._lock:
            for cost in rules:
                self._rules[cost["rule"]] = self._rules.get(cost["rule"], 0.0) + cost["seconds"]

    def set_rule_costs(self, rules: Mapping[str, float]) -> None:
        """Set the seconds that each rule took since the stream began."""
        with self._lock:
            self._rules = dict(rules)

    def end(self) -> None:
        """Mark the stream as ended; the figures stay."""
        with self._lock:
            self._sample(force=True)
            self._ended = monotonic()

    def status(self) -> dict[str, Any]:
        """Build the JSON object that the page reads."""
        with self._lock:
            self._sample()
            names = ("at", "rate", "held", "answers", "step")
            columns = list(zip(*self._samples, strict=True)) or [() for _ in names]
            totals, mark = self._totals, self._watermark
            return {
                "state": "running" if self._ended is None else "ended",
                "seconds": round((self._ended or monotonic()) - self._began, 1),
                "facts": totals.facts,
                "answers": totals.answers,
                "late": totals.late,
                "aside": totals.aside,
                "rate": self._recent_rate(),
                "dates": self._dates,
                "watermark": None if mark is None else self._format_time(mark),
                "lag_seconds": self._compute_lag(),
                "open": self._describe_open(),
                "held": dict(self._held),
                "slowest_rules": [{"rule": rule, "seconds": seconds} for rule, seconds in self._slowest_rules()],
                "latest": list(reversed(self._latest)),
                "samples": {name: list(column) for name, column in zip(names, columns, strict=True)},
            }

    def _format_time(self, at: Time) -> str:
        return format_iso(at) if self._dates else format_time(at)

    def _compute_lag(self) -> float | None:
        """Return how many seconds the stream is behind the clock; None for numbers and for replays."""
        if self._watermark is None or not self._dates:
            return None
        lag = round(time() - float(self._watermark), 1)
        return lag if lag <= self._largest_lag else None

    def _describe_open(self) -> dict[str, Any] | None:
        """Build the object for the answers that hold now; None if the stream cannot tell."""
        found = self._open
        if found is None:
            return None
        alerts = [
            {
                **self._describe_start(alert),
                "lasted": None if alert.since == -INF else float(found.known - alert.since),
                "reason": alert.reason,
            }
            for alert in found.newest
        ]
        withdrawn = [
            {**self._describe_start(alert), "known": self._format_time(known)}
            for alert, known in reversed(self._withdrawn)
        ]
        known = self._format_time(found.known)
        return {"alerts": alerts, "total": found.total, "known": known, "withdrawn": withdrawn}

    def _describe_start(self, alert: OpenAlert) -> dict[str, Any]:
        since = None if alert.since == -INF else self._format_time(alert.since)
        return {"atom": alert.atom, "since": since, "closed": alert.closed}

    def _recent_rate(self) -> float:
        """Return the facts per second over the recent samples: some streams come in batches with pauses between."""
        passed = facts = 0.0
        recent = list(self._samples)[-_RECENT - 1 :]
        for (before, *_), (at, rate, *_) in pairwise(recent):
            passed, facts = passed + at - before, facts + rate * (at - before)
        return round(facts / passed, 1) if passed else (recent[-1][1] if recent else 0.0)

    def _slowest_rules(self) -> list[tuple[str, float]]:
        return sorted(self._rules.items(), key=lambda cost: -cost[1])[:_RULES]

    def _sample(self, force: bool = False) -> None:
        """Record the figures since the last sample, at most once a second.

        An idle stream is sampled when it is read.
        """
        now = monotonic()
        then, facts, answers = self._before
        passed = now - then
        if self._ended is not None or (passed < _EVERY and not force) or passed <= 0:
            return
        rates = (total / passed for total in (self._totals.facts - facts, self._totals.answers - answers))
        facts_rate, answers_rate = (round(rate, 1) for rate in rates)
        held = sum(self._held.values())
        self._samples.append((round(now - self._began, 1), facts_rate, held, answers_rate, self._slowest))
        self._before, self._slowest = (now, self._totals.facts, self._totals.answers), 0.0
