"""What a page of a running stream shows: counters and samples, written by the stream, read by the server's threads.

Writing is a few additions under a lock, so that watching costs the stream nothing to speak of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from time import monotonic, time
from typing import Any

from tidelog.language.times import format_iso
from tidelog.timeline.interval import INF, Time, format_time

#: Seconds between samples, how many of them are kept, and of how many the rate of facts is told.
_EVERY = 1.0
_SAMPLES = 300
_RECENT = 10
#: How many answers and rules are shown.
_LATEST = 50
_RULES = 8


@dataclass
class _Totals:
    facts: int = 0
    answers: int = 0
    late: int = 0
    #: Rows that were no facts.
    aside: int = 0


class Board:
    """One running stream."""

    def __init__(self) -> None:
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
        """A step has been taken."""
        with self._lock:
            totals = self._totals
            totals.facts += facts
            totals.answers += answers
            totals.late += late
            totals.aside += aside
            self._slowest = max(self._slowest, seconds)
            self._sample()

    def answered(self, facts: Iterable[str]) -> None:
        """Answers have been given, the newest last."""
        with self._lock:
            self._latest.extend(facts)

    def stands(self, held: Mapping[str, int], watermark: Time | None, dates: bool) -> None:
        """What is held, and up to when all is answered."""
        with self._lock:
            self._held = {name: count for name, count in held.items() if count}
            self._dates = dates
            if watermark is not None and abs(watermark) != INF:
                self._watermark = watermark

    def worked(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """How long rules took, where that is known: objects with `rule` and `seconds`."""
        with self._lock:
            for cost in rules:
                self._rules[cost["rule"]] = self._rules.get(cost["rule"], 0.0) + cost["seconds"]

    def worked_in_all(self, rules: Mapping[str, float]) -> None:
        """How many seconds rules took since the stream began, where they are known as a whole."""
        with self._lock:
            self._rules = dict(rules)

    def end(self) -> None:
        with self._lock:
            self._sample(force=True)
            self._ended = monotonic()

    def status(self) -> dict[str, Any]:
        """All of it, as the page reads it."""
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
                "rate": self._rate(),
                "watermark": None if mark is None else format_iso(mark) if self._dates else format_time(mark),
                "lag_seconds": round(time() - float(mark), 1) if mark is not None and self._dates else None,
                "held": dict(self._held),
                "slowest_rules": [{"rule": rule, "seconds": seconds} for rule, seconds in self._slowest_rules()],
                "latest": list(reversed(self._latest)),
                "samples": {name: list(column) for name, column in zip(names, columns, strict=True)},
            }

    def _rate(self) -> float:
        """Facts per second lately: some streams come in batches with pauses between them."""
        passed = facts = 0.0
        recent = list(self._samples)[-_RECENT - 1 :]
        for (before, *_), (at, rate, *_) in pairwise(recent):
            passed, facts = passed + at - before, facts + rate * (at - before)
        return round(facts / passed, 1) if passed else (recent[-1][1] if recent else 0.0)

    def _slowest_rules(self) -> list[tuple[str, float]]:
        return sorted(self._rules.items(), key=lambda cost: -cost[1])[:_RULES]

    def _sample(self, force: bool = False) -> None:
        """Figures of the last second or so; a stream at which nothing happens is sampled when somebody looks."""
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
