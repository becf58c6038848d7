"""Facts, ready for reasoning: a dictionary of constants and one relation a predicate.

A dataset is immutable but for its dictionary, which only grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import lcm
from pathlib import Path

import numpy as np

from tidelog.data import columns
from tidelog.data.columns import EMPTY, Columns, Key, Relation, combined
from tidelog.data.symbols import Symbols
from tidelog.language.syntax import Fact
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Interval

__all__ = ["Dataset", "Relation"]


class Dataset:
    """A set of facts; rows are kept as they were given, neither sorted nor coalesced.

    >>> data = Dataset.parse('''
    ... Signal(a)@[0,3)   % an interval
    ... Signal(b)@1/2     % a point
    ... Connect(a,b)      % background knowledge, which holds at all times
    ... ''')
    >>> len(data), data.denominator
    (3, 2)
    >>> for fact in data | Dataset.from_facts(["Signal(c)@7"]):
    ...     print(fact.predicate, *fact.args, fact.interval)
    Signal a [0,3)
    Signal b 1/2
    Signal c 7
    Connect a b (-inf,inf)
    """

    def __init__(self, symbols: Symbols | None = None, facts: Columns = EMPTY) -> None:
        self.symbols: Symbols = symbols or Symbols()
        self.denominator: int = facts.denominator
        self.dates: bool = facts.dates
        self.relations: dict[Key, Relation] = facts.relations

    @staticmethod
    def parse(text: str, *, source: str = "<text>", ordered: bool = False) -> Dataset:
        """The facts of a text, one a line; raises a TidelogError that names every bad line.

        With `ordered`, relations know the position of each fact in the text.
        """
        from tidelog.data.scanner import scan

        symbols = Symbols()
        return Dataset(symbols, scan(text, symbols, source, ordered=ordered))

    @staticmethod
    def load(*paths: str | Path, ordered: bool = False) -> Dataset:
        """The facts of files: fact text, `.csv`, `.jsonl`, `.parquet`; see `tidelog.data.files`.

        `Dataset.load("facts.txt", "Signal.csv", "Connect=edges.parquet")`. With `ordered`, relations know the position
        of each fact in the files, taken one after the other.
        """
        from tidelog.data.files import load_paths

        return load_paths(paths, ordered=ordered)

    @staticmethod
    def from_facts(facts: Iterable[str | Fact]) -> Dataset:
        """The facts given, as text or as objects."""
        from tidelog.data.scanner import scan

        symbols = Symbols()
        given = list(facts)
        text = "\n".join(fact for fact in given if isinstance(fact, str))
        objects = columns.from_facts(symbols, (fact for fact in given if not isinstance(fact, str)))
        return Dataset(symbols, combined(symbols, [scan(text, symbols, "<facts>"), objects]))

    def rescaled(self, denominator: int) -> Dataset:
        """The same facts in ticks of `1/denominator`, a multiple of the present denominator."""
        return Dataset(self.symbols, columns.rescaled(self.symbols, self._columns(), denominator))

    def at(self, time: Fraction) -> Dataset:
        """The same facts, where those that hold at all times hold at one time only.

        >>> [str(fact.interval) for fact in Dataset.parse("Beat(a)\\nBeat(b)@3").at(Fraction(1, 2))]
        ['1/2', '3']
        """
        finer = self.rescaled(lcm(self.denominator, time.denominator))
        place = Grid(True, finer.denominator).pair(Interval.point(time))
        assert place is not None
        relations: dict[Key, Relation] = {}
        for key, relation in finer.relations.items():
            always = (relation.lo == NEG_INF) & (relation.hi == POS_INF)
            lo, hi = (np.where(always, place[0], end) for end in (relation.lo, relation.hi))
            relations[key] = replace(relation, lo=lo, hi=hi)
        return Dataset(self.symbols, Columns(finer.denominator, self.dates, relations))

    def timed(self, temporal: frozenset[Key]) -> Dataset:
        """Facts as temporal Datalog writes them, `Brst(a,b,3)`: `temporal` names the predicates, with their arity
        without time, whose last argument is the time of a fact that has no other.

        >>> list(Dataset.parse("Brst(a,3)").timed(frozenset({("Brst", 1)})))[0].interval
        Interval(lo=Fraction(3, 1), hi=Fraction(3, 1), lo_closed=True, hi_closed=True)
        """
        return Dataset(self.symbols, columns.timed(self.symbols, self._columns(), temporal))

    def __or__(self, other: Dataset) -> Dataset:
        """The facts of both; where both know their positions, those of the other come behind."""
        symbols = self.symbols.copy()
        ids = symbols.merge(other.symbols)
        count = len(self)
        moved = {
            key: replace(r, args=ids[r.args], order=None if r.order is None else r.order + count)
            for key, r in other.relations.items()
        }
        theirs = Columns(other.denominator, other.dates, moved)
        return Dataset(symbols, combined(symbols, [self._columns(), theirs]))

    def __len__(self) -> int:
        return sum(len(relation) for relation in self.relations.values())

    def __iter__(self) -> Iterator[Fact]:
        for relation in self.relations.values():
            yield from columns.facts_of(self.symbols, self.denominator, relation)

    def _repr_html_(self) -> str:
        from tidelog.data.notebook import facts_html

        return facts_html(self, len(self), iso=self.dates)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}/{arity}: {len(rows)}" for (name, arity), rows in self.relations.items())
        return f"<Dataset of {len(self)} facts: {parts}>" if parts else "<Dataset of 0 facts>"

    def _columns(self) -> Columns:
        return Columns(self.denominator, self.dates, self.relations)
