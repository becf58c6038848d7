"""A live view of a reasoner: one output of a notebook, which changes as facts arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from time import monotonic
from typing import Any

from tidelog.data.data_frames import DataLike, FactsLike
from tidelog.data.notebook_view import facts_to_html
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.language.time_like import DurationLike, TimeLike
from tidelog.language.time_text import format_iso
from tidelog.language.wording import plural
from tidelog.streaming.answers import AnswerList, StreamStep
from tidelog.streaming.reasoner import Reasoner
from tidelog.timeline.interval import Time, format_time


@dataclass(frozen=True)
class _Picture:
    """What a view shows at one moment."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


class LiveView:
    """A reasoner with a view: what holds now, the latest answers as a timeline and a table, and counts.

    Use it like the reasoner: `push`, `advance`, `finish` and `feed` do the same, and refresh the view. The view appears
    below the cell that calls `show`, or that ends with the view itself.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] Reading(X, V), V > 80.")
    >>> view = tl.notebook.LiveView(tl.Reasoner(program, "Hot"))
    >>> view.push(0, ["Reading(t1,85)"]), view.push(3, ["Reading(t2,70)"])
    ([], [])
    >>> print(view)
    Hot at 3: 2 facts, 0 answers, 0 late
    holds now: Hot(t1) since 0
    """

    def __init__(self, reasoner: Reasoner, *, latest: int = 30, every: float = 0.2) -> None:
        """Prepare a view of the `latest` answers, which is refreshed no more often than `every` seconds.

        At the end of a cell it is always up to date.
        """
        self.reasoner = reasoner
        self._latest: deque[Fact] = deque(maxlen=latest)
        self._answers = 0
        self._every, self._next, self._stale = every, 0.0, False
        self._handles: list[Any] = []

    def push(self, t: TimeLike, facts: FactsLike = ()) -> AnswerList:
        """Do what `Reasoner.push` does, and refresh the view."""
        return self._take(self.reasoner.push(t, facts))

    def advance(self, t: TimeLike) -> AnswerList:
        """Do what `Reasoner.advance` does, and refresh the view."""
        return self._take(self.reasoner.advance(t))

    def finish(self, until: TimeLike | None = None) -> AnswerList:
        """Do what `Reasoner.finish` does, and refresh the view for the last time."""
        answers = self._take(self.reasoner.finish(until))
        self.refresh()
        return answers

    def feed(
        self, data: DataLike, *, step: DurationLike | None = None, until: TimeLike | None = None
    ) -> Iterator[StreamStep]:
        """Do what `Reasoner.feed` does, and refresh the view after steps."""
        for taken in self.reasoner.feed(data, step=step, until=until):
            self._note(list(taken))
            yield taken
        self.refresh()

    def show(self) -> None:
        """Show the view below the current cell; it changes there from now on."""
        from IPython.core.getipython import get_ipython
        from IPython.display import display

        shell = get_ipython()
        if shell is not None and not self._handles:
            shell.events.register("post_run_cell", self._finish_cell)
        handle = display(self._draw(), display_id=True)
        if handle is not None:  # outside of IPython, the view was printed
            self._handles.append(handle)

    def refresh(self) -> None:
        """Bring all places where the view is shown up to date."""
        for handle in self._handles:
            handle.update(self._draw())
        self._next, self._stale = monotonic() + self._every, False

    def _finish_cell(self, _: object) -> None:
        """Show the last change of a cell, even if it came too soon after another."""
        if self._stale:
            self.refresh()

    def _take(self, answers: AnswerList) -> AnswerList:
        self._note(answers)
        return answers

    def _note(self, answers: list[Fact]) -> None:
        self._latest.extend(answers)
        self._answers += len(answers)
        self._stale = True
        if self._handles and monotonic() >= self._next:
            self.refresh()

    @property
    def _dates(self) -> bool:
        return self.reasoner.dates

    def _format_time(self, time: Time) -> str:
        return format_iso(time) if self._dates else format_time(time)

    def _describe(self) -> str:
        reasoner = self.reasoner
        counts = (
            f"{plural(reasoner.facts_taken, 'fact')}, {plural(self._answers, 'answer')}, {reasoner.late_count} late"
        )
        return f"{reasoner.query} at {self._format_time(reasoner.last_step.time)}: {counts}"

    def _find_holding(self) -> list[str]:
        """Return the atoms that hold now, newest first, each with the time since when."""
        if self.reasoner.evaluation.output is not None:
            return []
        holding = sorted(self.reasoner.open_intervals()[0], key=lambda fact: fact.interval.lo, reverse=True)
        atoms = [(format_fact(fact).rpartition("@")[0], fact.interval.lo) for fact in holding]
        return [f"{atom} since {self._format_time(since)}" for atom, since in atoms]

    def __str__(self) -> str:
        return "\n".join([self._describe(), *(f"holds now: {line}" for line in self._find_holding())])

    __repr__ = __str__

    def _draw(self) -> _Picture:
        holding = "".join(f"<li>{escape(line)}</li>" for line in self._find_holding()[: self._latest.maxlen])
        now = f"<div>holds now:<ul>{holding}</ul></div>" if holding else ""
        table = facts_to_html(self._latest, len(self._latest), iso=self._dates)
        html = f'<div class="tidelog-live"><div><b>{escape(self._describe())}</b></div>{now}{table}</div>'
        return _Picture(str(self), html)

    def _ipython_display_(self) -> None:
        """Show the view where a cell ends with it."""
        self.show()
