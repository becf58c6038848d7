"""Report the steps of a running stream to its live page, at little cost to the stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from time import monotonic, thread_time
from typing import TYPE_CHECKING

from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.page.open_alerts import OpenAlertTracker
from tidelog.streaming.answer_changes import AnswerChange

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.page.live_board import LiveBoard
    from tidelog.streaming.answers import Answers, StreamStep
    from tidelog.streaming.reasoner import Reasoner

#: The share of time that reading the reasoner's state may take, and the longest pause in seconds that follows from it.
_SHARE = 0.05
_LONGEST_PAUSE = 5.0
#: The most answers that are formatted at once.
_ANSWERS = 50
#: Seconds between two readings of what rules cost, and how many rules are reported.
_COSTS_EVERY = 1.0
_RULES = 16
#: The number of steps that are reported together.
_STEPS = 64


class BoardObserver:
    """Reports the steps of a reasoner to a board. Answers are counted; only the latest are formatted, now and then."""

    def __init__(self, board: LiveBoard, dates: bool | None, count_bad_rows: Callable[[], int] = lambda: 0) -> None:
        """`dates` chooses dates or numbers for times; None means as in the data."""
        self._board, self._dates, self._count_bad_rows = board, dates, count_bad_rows
        self._bad_rows = 0
        self._answers: deque[Answers] = deque(maxlen=_ANSWERS)
        self._next = self._next_costs = 0.0
        # Steps that are not reported yet: their number, their facts, answers and late facts, and the longest one.
        self._steps = 0
        self._facts = self._answer_count = self._late = 0
        self._slowest = 0.0
        self._alerts = OpenAlertTracker()

    def facts(self, data: Dataset) -> None:
        """Do nothing: facts are counted with their step."""

    def step(self, step: StreamStep) -> None:
        answers = step.answers
        self._alerts.note_step(step)
        if len(answers):
            self._answers.append(answers)
            self._answer_count += len(answers)
        self._facts += step.facts_in
        self._late += len(step.late)
        self._slowest = max(self._slowest, step.seconds)
        self._steps += 1
        if self._steps == _STEPS:
            self._report_steps()

    def pause(self, reasoner: Reasoner) -> None:
        self._report_steps()
        began, used = monotonic(), thread_time()
        if began < self._next:
            return
        if began >= self._next_costs:
            self._report_costs(reasoner)
            self._next_costs = began + _COSTS_EVERY
        self._report_state(reasoner)  # last, since reasons of alerts may take a while
        self._next = monotonic() + min((thread_time() - used) / _SHARE, _LONGEST_PAUSE)

    def report_now(self, reasoner: Reasoner) -> None:
        """Report the state of the reasoner now, no matter when it was last reported."""
        self._report_steps()
        self._report_state(reasoner)
        self._report_costs(reasoner)

    def _report_state(self, reasoner: Reasoner) -> None:
        dates = reasoner.dates if self._dates is None else self._dates
        self._board.set_state(reasoner.count_held_atoms(), reasoner.complete_until[0], dates)
        times = reasoner.evaluation.times
        latest: list[str] = []
        while self._answers and len(latest) < _ANSWERS:
            formatted = [_format_answer(fact, dates, times) for fact in islice(self._answers.pop(), _ANSWERS)]
            latest = formatted + latest
        self._answers.clear()
        self._board.add_answers(latest[-_ANSWERS:])
        if reasoner.evaluation.output is None:  # answers at points neither begin nor end
            self._board.set_open(*self._alerts.update(reasoner, dates))

    def _report_costs(self, reasoner: Reasoner) -> None:
        seconds: dict[str, float] = {}
        for cost in reasoner.slowest_rules(_RULES):
            rule = " ".join(cost.rule.split())
            seconds[rule] = seconds.get(rule, 0.0) + cost.seconds
        self._board.set_rule_costs({rule: round(took, 6) for rule, took in seconds.items()})

    def _report_steps(self) -> None:
        known, self._bad_rows = self._bad_rows, self._count_bad_rows()
        counts = {"facts": self._facts, "answers": self._answer_count, "late": self._late}
        self._board.count(**counts, aside=self._bad_rows - known, seconds=self._slowest)
        self._steps = self._facts = self._answer_count = self._late = 0
        self._slowest = 0.0


def _format_answer(fact: Fact, dates: bool, times: tuple[int, ...]) -> str:
    """Format an answer, with its sign if it is added or taken back."""
    return (fact.change if isinstance(fact, AnswerChange) else "") + format_fact(fact, dates, times)
