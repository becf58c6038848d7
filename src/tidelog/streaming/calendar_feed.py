"""The calendar of a stream: its facts are generated as time advances, a month ahead of the clock.

A rule that looks ahead waits for the clock in any case, so nothing is lost; and memory stays bounded, because days and
months are forgotten like all other facts.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.compiler.calendar_demand import EVER
from tidelog.compiler.calendar_input import find_stream_start, generate, require_dates
from tidelog.compiler.flat_rules import Pair
from tidelog.data.dataset import Dataset
from tidelog.engine.fact_store import Rows
from tidelog.engine.stream_kernel import NOW, REPORTED
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.streaming.answers import AnswerColumns
from tidelog.streaming.step_layout import Clock
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation

#: How far ahead of the clock the calendar is generated, in seconds.
_AHEAD = 32 * 86400


class CalendarFeed:
    """Feeds the facts of calendar predicates to an evaluation, before the clock gets there."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        #: Whether rules read a calendar; nothing is generated otherwise.
        self.active = bool(evaluation.program.calendars)
        #: Facts that are known before the stream begins.
        self.background = Dataset()
        #: Up to when the calendar was generated, in seconds.
        self.until: int | None = None
        #: From when on answers are given, if they follow from the calendar without data: the start of the stream.
        self.start: Fraction | None = None

    def note_background(self, data: Dataset) -> None:
        """Note the facts that are known before the stream begins."""
        self.background = data if self.active else self.background

    def cover(self, first: int, last: int, data: Dataset | None = None) -> Inconsistent | None:
        """Generate the calendar for a clock that goes from one position to another, with facts that arrive then.

        Return the constraint that is violated by it, if any.
        """
        evaluation = self._evaluation
        if not self.active:
            return None
        if data is not None and not evaluation.dates:
            timeless = all(find_finite_start(relation.lo) is None for relation in data.relations.values())
            require_dates(timeless, evaluation.form.source.rules)
        end = ceil(evaluation.grid.to_time(last))
        if last >= POS_INF or (self.until is not None and end <= self.until):
            return None
        second = evaluation.grid.tick * evaluation.grid.denominator
        start = self._find_start(first, data) if self.until is None else self.until * second
        after, self.until = self.until, end + _AHEAD
        if start is None:
            return None
        return self._tell(generate(evaluation.form, (start, self.until * second), after))

    def _tell(self, facts: Dataset) -> Inconsistent | None:
        """Give the evaluation facts that lie ahead, or all of them before it begins, while its clock stands still."""
        evaluation = self._evaluation
        clock = Clock(int(evaluation.at[NOW]), NEG_INF - 1, NEG_INF)
        batch = evaluation.batch(facts, clock, fixed=True, own=False, delay=0)
        evaluation.take_first(batch)
        if not len(batch.counts):
            return None
        batch.todo.lasts[:], batch.todo.over[:] = NEG_INF, False
        evaluation.fixed_grid = True
        violated = evaluation.run(batch.todo, 0, 1)[3]
        evaluation.fixed_grid = False
        return violated

    def _find_start(self, first: int, data: Dataset | None) -> int | None:
        """Find where the calendar begins that the query can read, if the stream begins at a position."""
        evaluation = self._evaluation
        grid, form = evaluation.grid, evaluation.form
        starts = [
            find_finite_start(relation.lo)
            for given in (self.background, data)
            if given is not None
            for relation in given.with_denominator(grid.denominator).relations.values()
        ]
        begun = min([first, *(start if grid.dense else start // 2 for start in starts if start is not None)])
        earliest = begun - int(max(evaluation.delays.values()) * grid.denominator * grid.tick) - grid.tick
        demand, cut = find_stream_start(form, earliest, self._find_endless(self.background, data))
        self.background = Dataset()
        if cut:
            self.start = grid.to_time(begun)
            evaluation.at[REPORTED] = max(int(evaluation.at[REPORTED]), begun - 1)
        return None if demand is None else demand[0]

    def is_endless(self) -> bool:
        """Return whether answers may follow from the calendar without data of the stream."""
        return self.active and find_stream_start(self._evaluation.form, 0, self._find_endless(self.background))[1]

    def _find_endless(self, *given: Dataset | None) -> dict[str, Pair]:
        """Return the predicates that hold from the beginning of time, with their extents."""
        names = {name for data in given if data for (name, _), r in data.relations.items() if (r.lo == NEG_INF).any()}
        return {name: EVER for name in names if name in self._evaluation.form.arities}

    def clip(self, rows: Rows) -> Rows:
        """Cut intervals of the query at the start of the stream, if they follow from the calendar without data."""
        return rows if self.start is None else rows.clip(self._evaluation.position(self.start), POS_INF)

    def clip_answers(self, found: AnswerColumns) -> AnswerColumns:
        """Cut answers at the start of the stream; none may end earlier."""
        if self.start is None or self._evaluation.output is not None:
            return found
        return found._replace(lo=np.maximum(found.lo, self._evaluation.position(self.start)))

    def to_json(self) -> dict[str, Any]:
        """Return the state of the feed."""
        calendars = {name: list(zones) for name, zones in self._evaluation.program.calendars.items()}
        return {"calendars": calendars, "until": self.until, "start": None if self.start is None else str(self.start)}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Continue from a saved state; raise TL403 if its rules read other calendars."""
        now = {name: list(zones) for name, zones in self._evaluation.program.calendars.items()}
        if self.active and self._evaluation.at[NOW] > NEG_INF and (state is None or state["calendars"] != now):
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    "the rules read other calendars than those that the state was saved with",
                    help="start without the state, or keep the calendar predicates and their time zones",
                )
            )
        if state is not None:
            self.until, self.start = state["until"], state["start"] and Fraction(state["start"])


def find_finite_start(lo: np.ndarray[Any, Any]) -> int | None:
    """Return the first finite start of facts."""
    finite = lo[lo > NEG_INF]
    return int(finite.min()) if len(finite) else None
