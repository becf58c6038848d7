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


class Watching:
    """Tells a board of the steps of a reasoner. Answers are only counted, and the last of them written out now and
    then."""

    def __init__(self, board: Board, dates: bool | None) -> None:
        """`dates` says how times are shown; None: as the data have them."""
        self._board, self._dates = board, dates
        self._answers: deque[Answers] = deque(maxlen=_SHOWN)
        self._next = 0.0

    def facts(self, data: Dataset) -> None:
        """Facts are counted when they are taken."""

    def step(self, step: Step) -> None:
        if len(step.answers):
            self._answers.append(step.answers)
        self._board.count(facts=step.facts_in, answers=len(step.answers), late=len(step.late), seconds=step.seconds)

    def pause(self, reasoner: Reasoner) -> None:
        began = monotonic()
        if began < self._next:
            return
        self.look(reasoner)
        now = monotonic()
        self._next = now + (now - began) / _SHARE

    def look(self, reasoner: Reasoner) -> None:
        """How the reasoner stands now."""
        dates = reasoner.dates if self._dates is None else self._dates
        self._board.stands(reasoner.held(), reasoner.complete[0], dates)
        latest: list[str] = []
        while self._answers and len(latest) < _SHOWN:
            some = [format_fact(fact, dates) for fact in islice(self._answers.pop(), _SHOWN)]
            latest = some + latest
        self._answers.clear()
        self._board.answered(latest[-_SHOWN:])
