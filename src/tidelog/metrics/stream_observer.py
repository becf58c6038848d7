"""Report the steps of a running stream to its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from tidelog.data.deletions import strip_mark
from tidelog.metrics.figures import StreamFigures
from tidelog.metrics.metric_names import ANSWERS, BAD_ROWS, FACTS, LATE, RULES

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.streaming.answers import StreamStep
    from tidelog.streaming.reasoner import Reasoner

#: Seconds between two readings of the state, the share of time that they may take, and how many rules are reported.
_EVERY = 1.0
_SHARE = 0.05
_RULES = 32
#: The number of steps that are reported together.
_STEPS = 256


class MetricsObserver:
    """An observer that keeps the figures of a stream up to date, at little cost to it."""

    def __init__(self, figures: StreamFigures, query: str, count_bad_rows: Callable[[], int]) -> None:
        self._figures, self._query, self._count_bad_rows = figures, query, count_bad_rows
        self._next = 0.0
        # Steps that are not reported yet.
        self._seconds: list[float] = []
        self._answers = 0
        self._late: Counter[str] = Counter()
        figures.add(ANSWERS, {query: 0})

    def facts(self, data: Dataset) -> None:
        counts: Counter[str] = Counter()
        for (predicate, _), relation in data.relations.items():
            counts[strip_mark(predicate)] += len(relation)
        self._figures.add(FACTS, counts)
        # A counter that is 0 exists: alerts on its increase then notice the first late fact.
        self._figures.add(LATE, dict.fromkeys(counts, 0))

    def step(self, step: StreamStep) -> None:
        self._seconds.append(step.seconds)
        self._answers += len(step)
        if len(step.late):
            self._late.update(fact.predicate for fact in step.late)
        if len(self._seconds) >= _STEPS:
            self._report_steps()

    def pause(self, reasoner: Reasoner) -> None:
        self._report_steps()
        began = monotonic()
        if began >= self._next:
            self._report_state(reasoner)
            now = monotonic()
            self._next = now + max(_EVERY, (now - began) / _SHARE)

    def report_now(self, reasoner: Reasoner) -> None:
        """Report the state of the reasoner now, no matter when it was last reported."""
        self._report_steps()
        self._report_state(reasoner)

    def _report_steps(self) -> None:
        self._figures.add_steps(self._seconds)
        self._figures.add(ANSWERS, {self._query: self._answers})
        self._figures.add(LATE, self._late)
        self._seconds, self._answers = [], 0
        self._late.clear()

    def _report_state(self, reasoner: Reasoner) -> None:
        self._figures.set_state(reasoner.count_held_atoms(), reasoner.complete_until[0], reasoner.dates)
        self._figures.set(BAD_ROWS, {"": self._count_bad_rows()})
        seconds: dict[str, float] = {}
        for cost in reasoner.slowest_rules(_RULES):
            rule = " ".join(cost.rule.split())
            seconds[rule] = seconds.get(rule, 0.0) + cost.seconds
        self._figures.set(RULES, seconds)
