"""Report the batches of a job on Spark to its figures, through the board that a live page uses, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidelog.metrics.figures import ALL, StreamFigures
from tidelog.metrics.metric_names import ANSWERS, BAD_ROWS, FACTS, LATE, RULES
from tidelog.page.live_board import Board
from tidelog.timeline.interval import Time


class MetricsBoard:
    """A board that keeps the figures of a job. Facts and late facts are counted for all predicates together."""

    def __init__(self, figures: StreamFigures, query: str) -> None:
        self._figures, self._query = figures, query
        self.count()

    def count(self, *, facts: int = 0, answers: int = 0, late: int = 0, aside: int = 0, seconds: float = 0.0) -> None:
        """Add the counts of a batch, which took `seconds`."""
        self._figures.add(FACTS, {ALL: facts})
        self._figures.add(ANSWERS, {self._query: answers})
        self._figures.add(LATE, {ALL: late})
        self._figures.add(BAD_ROWS, {"": aside})
        if seconds:
            self._figures.add_steps([seconds])

    def add_answers(self, facts: Iterable[str]) -> None:
        """Do nothing: answers are counted with their batch."""

    def set_state(self, held: Mapping[str, int], watermark: Time | None, dates: bool) -> None:
        """Set how many facts are held per predicate, and up to when all answers are known."""
        self._figures.set_state(held, watermark, dates)

    def add_rule_costs(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Add the time that rules took in a batch."""
        for cost in rules:
            self._figures.add(RULES, {" ".join(cost["rule"].split()): cost["seconds"]})


class BoardGroup:
    """Several boards that get the same figures."""

    def __init__(self, boards: Sequence[Board]) -> None:
        self._boards = boards

    def count(self, *, facts: int = 0, answers: int = 0, late: int = 0, aside: int = 0, seconds: float = 0.0) -> None:
        """Add the counts of a batch to all boards."""
        for board in self._boards:
            board.count(facts=facts, answers=answers, late=late, aside=aside, seconds=seconds)

    def add_answers(self, facts: Iterable[str]) -> None:
        """Add formatted answers to all boards."""
        texts = list(facts)
        for board in self._boards:
            board.add_answers(texts)

    def set_state(self, held: Mapping[str, int], watermark: Time | None, dates: bool) -> None:
        """Set the state on all boards."""
        for board in self._boards:
            board.set_state(held, watermark, dates)

    def add_rule_costs(self, rules: Iterable[Mapping[str, Any]]) -> None:
        """Add the time of rules to all boards."""
        costs = list(rules)
        for board in self._boards:
            board.add_rule_costs(costs)
