"""A stream as its page shows it while it runs."""

from __future__ import annotations

from collections import deque
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from tidelog.language.facts import format_fact

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.page.board import Board
    from tidelog.streaming.answers import Answers, Step
    from tidelog.streaming.reasoner import Reasoner

#: Looks at what is held may take this part of the time, and write out so many answers.
_SHARE = 0.05
_SHOWN = 50
#: Seconds between looks at what rules cost, which nobody reads more often, and how many rules are told.
_COSTS_EVERY = 1.0
_RULES = 16
#: So many short steps are told at once.
_TOGETHER = 64


class Watching:
    """Tells a board of the steps of a reasoner. Answers are only counted, and the last of them written out now and
    then."""

    def __init__(self, board: Board, dates: bool | None) -> None:
        """`dates` says how times are shown; None: as the data have them."""
        self._board, self._dates = board, dates
        self._answers: deque[Answers] = deque(maxlen=_SHOWN)
        self._next = self._next_costs = 0.0
        #: Steps that the board does not know of yet: how many, their facts, answers and late facts, the longest one.
        self._steps = 0
        self._counted = [0, 0, 0]
        self._slowest = 0.0

    def facts(self, data: Dataset) -> None:
        """Facts are counted when they are taken."""

    def step(self, step: Step) -> None:
        answers = step.answers
        if len(answers):
            self._answers.append(answers)
            self._counted[1] += len(answers)
        self._counted[0] += step.facts_in
        self._counted[2] += len(step.late)
        self._slowest = max(self._slowest, step.seconds)
        self._steps += 1
        if self._steps == _TOGETHER:
            self._tell()

    def pause(self, reasoner: Reasoner) -> None:
        self._tell()
        began = monotonic()
        if began < self._next:
            return
        self._stand(reasoner)
        if began >= self._next_costs:
            self._costs(reasoner)
            self._next_costs = began + _COSTS_EVERY
        now = monotonic()
        self._next = now + (now - began) / _SHARE

    def look(self, reasoner: Reasoner) -> None:
        """How the reasoner stands now, whenever that was told last."""
        self._tell()
        self._stand(reasoner)
        self._costs(reasoner)

    def _stand(self, reasoner: Reasoner) -> None:
        dates = reasoner.dates if self._dates is None else self._dates
        self._board.stands(reasoner.held(), reasoner.complete[0], dates)
        latest: list[str] = []
        while self._answers and len(latest) < _SHOWN:
            some = [format_fact(fact, dates) for fact in islice(self._answers.pop(), _SHOWN)]
            latest = some + latest
        self._answers.clear()
        self._board.answered(latest[-_SHOWN:])

    def _costs(self, reasoner: Reasoner) -> None:
        seconds: dict[str, float] = {}
        for cost in reasoner.slowest(_RULES):
            rule = " ".join(cost.rule.split())
            seconds[rule] = seconds.get(rule, 0.0) + cost.seconds
        self._board.worked_in_all({rule: round(took, 6) for rule, took in seconds.items()})

    def _tell(self) -> None:
        facts, answers, late = self._counted
        self._board.count(facts=facts, answers=answers, late=late, seconds=self._slowest)
        self._steps, self._counted, self._slowest = 0, [0, 0, 0], 0.0
