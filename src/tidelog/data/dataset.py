"""Facts, ready for reasoning: a dictionary of constants and one relation per predicate.

A dataset is immutable except for its dictionary, which only grows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.data.relation import (
    EMPTY,
    Columns,
    Key,
    Relation,
    columns_from_facts,
    combine,
    move_time_arguments,
    rescale,
    to_facts,
)
from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.syntax import Fact
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.analysis.value_columns import ValueColumn
    from tidelog.data.bad_rows import BadRows
    from tidelog.data.data_frames import ArrowStream
    from tidelog.data.schema import Schema
    from tidelog.language.time_text import Zone

__all__ = ["Dataset", "Relation"]


class Dataset:
    """A collection of facts, kept as given: neither sorted nor coalesced.

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

    def __init__(
        self, symbols: Symbols | None = None, facts: Columns = EMPTY, sources: tuple[ValueColumn, ...] = ()
    ) -> None:
        self._symbols = Symbols() if symbols is None else symbols
        self.denominator: int = facts.denominator
        self.dates: bool = facts.dates
        self.numbers: bool = facts.numbers
        self.relations: dict[Key, Relation] = facts.relations
        #: Whether times of day had an offset from UTC ("zoned") or not ("local"), with the first source of each.
        self.zones: dict[Zone, str] = facts.zones
        #: The files that the facts come from, with the types of the values in each column.
        self.sources: tuple[ValueColumn, ...] = sources

    @property
    def symbols(self) -> Symbols:
        """The dictionary of all constants. Arguments that were left unread so far are read now."""
        _ = [relation.args for relation in self.relations.values()]
        return self._symbols

    def __getstate__(self) -> dict[str, Any]:
        """Read everything before the dataset is copied to another process."""
        _ = self.symbols
        return vars(self)

    @property
    def symbols_so_far(self) -> Symbols:
        """The dictionary, which lacks constants that occur only in arguments which were left unread."""
        return self._symbols

    @staticmethod
    def parse(
        text: str, *, source: str = "<text>", ordered: bool = False, reads: Collection[str] | None = None
    ) -> Dataset:
        """Parse fact text, one fact per line; raise a TidelogError that lists every bad line.

        With `ordered`, relations know the position of each fact in the text. `reads` saves time where rules read only
        some predicates, such as `program.predicates`: arguments of other facts are checked, but read only if something
        asks for them. The dataset keeps the text until then.

        >>> data = Dataset.parse("Beat(a)@1\\nNode(b)@2", reads=["Beat"])
        >>> print(data, end="")
        Beat(a)@1
        Node(b)@2
        """
        from tidelog.data.fact_scanner import scan_facts

        symbols = Symbols()
        return Dataset(symbols, scan_facts(text, symbols, source, ordered=ordered, reads=reads))

    @staticmethod
    def load(
        *paths: str | Path,
        ordered: bool = False,
        schema: Schema | str | Path | None = None,
        bad_rows: BadRows | None = None,
    ) -> Dataset:
        """Load files: fact text, `.csv`, `.jsonl`, `.json` or `.parquet`; see `tidelog.data.data_files`.

        `Dataset.load("facts.txt", "Signal.csv", "Connect=edges.parquet")`. With `ordered`, relations know the position
        of each fact in the files, in the order of the paths. `schema` is a schema file, or a schema that was loaded:
        it says what the columns of tables mean. Rows that cannot be read go to `bad_rows`, if given; otherwise they are
        an error.
        """
        from tidelog.data.data_files import load_paths
        from tidelog.data.schema import load_schema

        loaded = load_schema(schema) if isinstance(schema, str | Path) else schema
        return load_paths(paths, ordered=ordered, schema=loaded, bad_rows=bad_rows)

    @staticmethod
    def from_arrow(
        frames: Mapping[str, ArrowStream], *, schema: Schema | str | Path | None = None, bad_rows: BadRows | None = None
    ) -> Dataset:
        """Read dataframes, one per predicate: any objects with `__arrow_c_stream__`, whose buffers are not copied.

        Columns mean what they mean in files: `time`, or `start`, `end` and `closed`, say when facts hold, and all
        others are arguments, unless `schema` says otherwise. Rows that cannot be read go to `bad_rows`, if given;
        otherwise they are an error.

        >>> import pyarrow as pa
        >>> print(Dataset.from_arrow({"Reading": pa.table({"sensor": ["t1"], "value": [0.5], "time": [3]})}), end="")
        Reading(t1,0.5)@3
        """
        from tidelog.data.data_frames import read_frames

        return read_frames(frames, schema, bad_rows)

    @staticmethod
    def from_facts(facts: Iterable[str | Fact]) -> Dataset:
        """Build a dataset from facts, each as text or as an object; a single text has a fact per line."""
        from tidelog.data.fact_scanner import scan_facts
        from tidelog.language.fact_text import parse_fact

        symbols = Symbols()
        items = [facts] if isinstance(facts, str) else list_facts(facts)
        text = "\n".join(fact for fact in items if isinstance(fact, str))
        others: list[Any] = [fact for fact in items if not isinstance(fact, str)]
        objects = columns_from_facts(symbols, (f if isinstance(f, Fact) else parse_fact(f)[0] for f in others))
        return Dataset(symbols, combine(symbols, [scan_facts(text, symbols, "<facts>"), objects]))

    def with_denominator(self, denominator: int) -> Dataset:
        """Return the same facts in ticks of `1/denominator`, a multiple of the present denominator."""
        return Dataset(self._symbols, rescale(self._symbols, self.as_columns(), denominator), self.sources)

    def until(self, time: Fraction) -> Dataset:
        """Return the facts that begin at a time or before.

        >>> [str(fact.interval) for fact in Dataset.parse("A@[1,9]\\nA@3\\nA@(3,4]\\nA@4").until(Fraction(3))]
        ['[1,9]', '3']
        """
        ticks = time * self.denominator
        last = 2 * (ticks.numerator // ticks.denominator) + (ticks.denominator > 1)
        relations = {key: relation.select(relation.lo <= last) for key, relation in self.relations.items()}
        return Dataset(self.symbols, Columns(self.denominator, self.dates, relations))

    def with_background_at(self, time: Fraction) -> Dataset:
        """Return the same facts, with those that hold at all times moved to a single time.

        >>> [str(fact.interval) for fact in Dataset.parse("Beat(a)\\nBeat(b)@3").with_background_at(Fraction(1, 2))]
        ['1/2', '3']
        """
        finer = self.with_denominator(lcm(self.denominator, time.denominator))
        place = Grid(True, finer.denominator).to_pair(Interval.point(time))
        assert place is not None
        relations: dict[Key, Relation] = {}
        for key, relation in finer.relations.items():
            always = (relation.lo == NEG_INF) & (relation.hi == POS_INF)
            lo, hi = (np.where(always, place[0], end) for end in (relation.lo, relation.hi))
            relations[key] = replace(relation, lo=lo, hi=hi)
        return Dataset(self.symbols, Columns(finer.denominator, self.dates, relations, True), self.sources)

    def with_time_arguments(self, temporal: frozenset[Key]) -> Dataset:
        """Read the time of temporal Datalog facts, such as `Brst(a,b,3)`, from their last argument.

        `temporal` names the predicates that this applies to, with their arity without the time. Facts that already have
        a time stay as they are.

        >>> list(Dataset.parse("Brst(a,3)").with_time_arguments(frozenset({("Brst", 1)})))[0].interval
        Interval(lo=Fraction(3, 1), hi=Fraction(3, 1), lo_closed=True, hi_closed=True)
        """
        return Dataset(self.symbols, move_time_arguments(self.symbols, self.as_columns(), temporal), self.sources)

    def __or__(self, other: Dataset) -> Dataset:
        """Return the facts of both datasets; where both know positions, those of `other` come after."""
        symbols = self.symbols.copy()
        ids = symbols.merge(other.symbols)
        count = len(self)
        moved = {
            key: replace(r, args=ids[r.args], order=None if r.order is None else r.order + count)
            for key, r in other.relations.items()
        }
        others = Columns(other.denominator, other.dates, moved, other.numbers, zones=other.zones)
        return Dataset(symbols, combine(symbols, [self.as_columns(), others]), self.sources + other.sources)

    def __len__(self) -> int:
        return sum(len(relation) for relation in self.relations.values())

    def __iter__(self) -> Iterator[Fact]:
        for relation in self.relations.values():
            yield from to_facts(self.symbols, self.denominator, relation)

    def _repr_html_(self) -> str:
        from tidelog.data.notebook_view import facts_to_html

        return facts_to_html(self, len(self), iso=self.dates)

    def __str__(self) -> str:
        """Print the facts as text, one per line, sorted by predicate, arguments and time."""
        from tidelog.data.fact_printer import render_rows

        grid = Grid(True, self.denominator)
        lines = (
            render_rows(self.symbols, predicate, relation, grid, iso=self.dates)
            for (predicate, _), relation in sorted(self.relations.items())
        )
        return b"".join(lines).decode()

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}/{arity}: {len(rows)}" for (name, arity), rows in self.relations.items())
        return f"<Dataset of {len(self)} facts: {parts}>" if parts else "<Dataset of 0 facts>"

    def as_columns(self) -> Columns:
        """Return the facts as columns, without the dictionary of their constants."""
        return Columns(self.denominator, self.dates, self.relations, self.numbers, zones=self.zones)


def list_facts(facts: Iterable[str | Fact]) -> list[str | Fact]:
    """Return facts as a list; raise TL201 for an object that has none."""
    if isinstance(facts, Iterable):
        return list(facts)
    problem = f"the facts are an object of type {type(facts).__name__}"
    help = 'pass text, "Reading(t1,90)@3", a list of facts, a dataset, or a table by predicate: {"Reading": table}'
    raise TidelogError(Diagnostic("TL201", problem, help=help))
