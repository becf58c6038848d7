"""What a stream reasoner gives: answers in time order, and a record of every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tidelog.engine.store import Rows
from tidelog.language.syntax import Fact
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols


class Group(NamedTuple):
    """Facts of one predicate."""

    predicate: str
    rows: Rows
    grid: Grid


class Answers:
    """Facts in groups that come one after the other in time."""

    def __init__(self, groups: list[Group], symbols: Symbols) -> None:
        self._groups = groups
        self._symbols = symbols

    @property
    def groups(self) -> list[Group]:
        """The facts as rows of numbers."""
        return self._groups

    @property
    def symbols(self) -> Symbols:
        """The dictionary of the numbers in `groups`."""
        return self._symbols

    def __len__(self) -> int:
        return sum(len(group.rows) for group in self._groups)

    def __iter__(self) -> Iterator[Fact]:
        for name, rows, grid in self._groups:
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
            for name, rows, grid in self._groups
            if len(rows)
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a reasoner: the clock, what came in, what is held after it, what it gave.

    `window_facts` are intervals that will be forgotten some day, `history_atoms` those that hold for ever from now on.
    """

    t: Time
    facts_in: int
    window_facts: int
    history_atoms: int
    answers: Answers
    late: Answers
    seconds: float
