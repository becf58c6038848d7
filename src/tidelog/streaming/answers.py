"""What a stream reasoner gives: answers in time order, and a record of every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidelog.engine.store import Int32s, Int64s, Rows
from tidelog.language.syntax import Fact
from tidelog.timeline.grid import NEG_INF, Grid
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols


class Group(NamedTuple):
    """Facts of one predicate."""

    predicate: str
    rows: Rows
    grid: Grid


class Found(NamedTuple):
    """The answers of many steps: `arity` arguments for each, one after the other."""

    predicate: str
    arity: int
    args: Int32s
    lo: Int64s
    hi: Int64s
    grid: Grid
    symbols: Symbols

    def groups(self, first: int, last: int) -> list[Group]:
        """Some of the answers in groups that end together, in time order."""
        rows = self.rows(first, last)
        order = np.argsort(rows.hi, kind="stable")
        ends = np.flatnonzero(np.diff(rows.hi[order])) + 1
        if not len(ends):
            return [Group(self.predicate, rows, self.grid)]
        parts = np.split(order, ends)
        return [Group(self.predicate, Rows(rows.args[:, p], rows.lo[p], rows.hi[p]), self.grid) for p in parts]

    def rows(self, first: int, last: int) -> Rows:
        """Some of the answers."""
        columns = self.args[first * self.arity : last * self.arity].reshape(last - first, self.arity).T
        return Rows(columns, self.lo[first:last], self.hi[first:last])


class Answers:
    """Facts in groups that come one after the other in time."""

    __slots__ = ("_count", "_first", "_found", "_symbols")

    def __init__(self, count: int, found: Found | Sequence[Group], first: int, symbols: Symbols) -> None:
        self._count = count
        self._found = found
        self._first = first
        self._symbols = symbols

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Fact]:
        for name, rows, grid in self._groups():
            ranks = self._symbols.ranks()
            keys = [[int(ranks[a]) for a in args] for args in rows.args.T]
            for i in sorted(range(len(rows)), key=keys.__getitem__):
                args = tuple(self._symbols.value(int(a)) for a in rows.args[:, i])
                yield Fact(name, args, grid.interval(int(rows.lo[i]), int(rows.hi[i])))

    def render(self, fmt: str = "text", iso: bool = False) -> bytes:
        """The facts as text, one a line."""
        from tidelog.data.render import render_rows

        return b"".join(
            render_rows(self._symbols, name, rows.args, rows.lo, rows.hi, grid.denominator, grid.timeline, iso, fmt)
            for name, rows, grid in self._groups()
            if len(rows)
        )

    def _repr_html_(self) -> str:
        from tidelog.data.notebook import facts_html

        return facts_html(self, len(self))

    def block(self) -> tuple[Rows, Grid, Symbols]:
        """The answers of a step as they are inside, in no order."""
        assert isinstance(self._found, Found), "late facts are not all of one predicate"
        return self._found.rows(self._first, self._first + self._count), self._found.grid, self._symbols

    def _groups(self) -> Sequence[Group]:
        if isinstance(self._found, Found):
            return self._found.groups(self._first, self._first + self._count) if self._count else []
        return self._found


class Step:
    """One step of a reasoner: the clock, what came in, what is held after it, what it gave.

    `window_facts` are intervals that will be forgotten some day, `history_atoms` those that hold for ever from now on.
    """

    __slots__ = ("_answers", "_clock", "_grid", "_late", "facts_in", "history_atoms", "seconds", "window_facts")

    def __init__(
        self,
        clock: int,
        grid: Grid,
        facts_in: int,
        window_facts: int,
        history_atoms: int,
        nanoseconds: int,
        answers: tuple[Found, int, int],
        late: Answers,
    ) -> None:
        self._clock = clock
        self._grid = grid
        self.facts_in = facts_in
        self.window_facts = window_facts
        self.history_atoms = history_atoms
        self.seconds = nanoseconds / 1e9
        self._answers = answers
        self._late = late

    @property
    def t(self) -> Time:
        return -INF if self._clock == NEG_INF else self._grid.time(self._clock)

    def with_answers(self, answers: tuple[Found, int, int]) -> Step:
        """The same step with other answers."""
        nanoseconds = round(self.seconds * 1e9)
        held = self.window_facts, self.history_atoms
        return Step(self._clock, self._grid, self.facts_in, *held, nanoseconds, answers, self._late)

    @property
    def answers(self) -> Answers:
        found, first, last = self._answers
        return Answers(last - first, found, first, found.symbols)

    @property
    def late(self) -> Answers:
        return self._late
