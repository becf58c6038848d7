"""The result of batch reasoning: the facts that hold, and those that repeat forever."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.analysis.query_names import require_known_predicates
from tidelog.data.arrow_output import ArrowExport, build_fact_table
from tidelog.data.relation import Relation
from tidelog.engine.extent import Extent
from tidelog.engine.repetition import Repetition, split_repetitions
from tidelog.errors import Diagnostic
from tidelog.language.fact_text import FactFormat, format_fact, json_value
from tidelog.language.syntax import Fact
from tidelog.language.time_text import format_iso
from tidelog.language.wording import join_words, plural
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Interval, format_time

if TYPE_CHECKING:
    from tidelog.data.fact_sheet import Sheet
    from tidelog.data.symbol_table import Symbols
    from tidelog.engine.fact_store import Rows


class Answer(Enum):
    """The answer to whether a fact holds; `UNKNOWN` where the bounds of the search do not decide it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Repeat:
    """A fact that comes again every so often: from `start` on, or (`before`) at all times before `start`."""

    fact: Fact
    every: Fraction
    start: Fraction
    before: bool = False

    def __str__(self) -> str:
        return self.text()

    def text(self, iso: bool = False) -> str:
        """Return the line that `tidelog materialise` prints."""
        start = format_iso(self.start) if iso else format_time(self.start)
        word = "before" if self.before else "from"
        return f"% repeats every {format_time(self.every)} {word} {start}: {format_fact(self.fact, iso)}"


class Model(ArrowExport):
    """The facts that hold, as maximal intervals, sorted by predicate, arguments and time.

    Iterating gives the facts that do not repeat; `repeats` has those that repeat forever.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("A(X) :- Diamondminus[3,3] A(X).")
    >>> model = tl.materialise(program, tl.Dataset.parse("A(a)@[17,18]"))
    >>> [str(repeat) for repeat in model.repeats]
    ['% repeats every 3 from 17: A(a)@[17,18]']
    """

    def __init__(
        self,
        extents: Mapping[str, Extent | Sequence[Extent]],
        grid: Grid,
        symbols: Symbols,
        dates: bool,
        time_arguments: Mapping[str, tuple[int, ...]] | None = None,
        names: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        #: The extents of each predicate: one or, if groups of its atoms repeat in different ways, several.
        self._extents = {name: (e,) if isinstance(e, Extent) else tuple(e) for name, e in extents.items()}
        self._grid = grid
        self._symbols = symbols
        self._dates = dates
        #: The positions of arguments that are times, by predicate.
        self._time_arguments = time_arguments or {}
        #: The columns of arguments that have names, by predicate.
        self._names = names or {}
        #: The predicates that follow from a calendar without data, for ever, and the range that they were cut to.
        self.cut: Mapping[str, Interval] = {}

    @cached_property
    def _divided(self) -> dict[str, tuple[Rows, list[Repetition]]]:
        divided: dict[str, tuple[Rows, list[Repetition]]] = {}
        for name, extents in sorted(self._extents.items()):
            parts = [split_repetitions(extent, self._grid.tick) for extent in extents]
            rows = [rows for rows, _ in parts]
            divided[name] = (
                rows[0].concatenate(rows, len(rows[0].args)),
                [repetition for _, repetitions in parts for repetition in repetitions],
            )
        return divided

    def __len__(self) -> int:
        return sum(len(rows) for rows, _ in self._divided.values())

    def __iter__(self) -> Iterator[Fact]:
        ranks = self._symbols.ranks()
        for name, (rows, _) in self._divided.items():
            keys = [(*(int(ranks[a]) for a in args), int(lo)) for args, lo in zip(rows.args.T, rows.lo, strict=True)]
            for row in sorted(range(len(rows)), key=keys.__getitem__):
                args = tuple(self._symbols.value(int(a)) for a in rows.args[:, row])
                yield Fact(name, args, self._grid.to_interval(int(rows.lo[row]), int(rows.hi[row])))

    def relations(self) -> Iterator[tuple[Relation, int]]:
        """Return the facts that do not repeat, as columns, each with the denominator of its ticks."""
        for name, (rows, _) in self._divided.items():
            yield relation_of(name, rows, self._grid), self._grid.denominator

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """A warning if predicates that follow from a calendar for ever were cut to the range of the data."""
        if not self.cut:
            return ()
        names = join_words(sorted(self.cut))
        verb, be = ("follows", "is") if len(self.cut) == 1 else ("follow", "are")
        to = next(iter(self.cut.values()))
        lo, hi = (format_iso(end) if isinstance(end, Fraction) else format_time(end) for end in (to.lo, to.hi))
        message = f"{names} {verb} from a calendar for ever, and {be} given from {lo} to {hi}"
        return (Diagnostic("TL316", message, severity="warning"),)

    @property
    def symbols(self) -> Symbols:
        """The dictionary of the constants in `relations`."""
        return self._symbols

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """The facts that repeat forever, sorted by predicate, arguments and time."""
        ranks = self._symbols.ranks()
        found: list[Repeat] = []
        for name, (_, repetitions) in self._divided.items():
            for r in sorted(repetitions, key=lambda r: ([int(ranks[a]) for a in r.args], not r.before, r.part)):
                fact = Fact(name, tuple(self._symbols.value(a) for a in r.args), self._grid.to_interval(*r.part))
                found.append(Repeat(fact, self._grid.to_time(r.every), self._grid.to_time(r.at), r.before))
        return tuple(found)

    def render(self, format: FactFormat = "text", iso: bool | None = None) -> bytes:
        """Print all facts and repetitions, one per line, as `"text"`, `"jsonl"` or `"csv"`.

        Times are dates if the data had dates, unless `iso` says otherwise. Any other format raises a ValueError; for
        Parquet see `to_parquet`.
        """
        from tidelog.data.fact_printer import check_format, render_rows

        check_format(format)
        iso = self._dates if iso is None else iso
        if format == "csv":
            from tidelog.data.fact_sheet import render_csv

            return render_csv(self.to_sheet(), iso)
        parts = [
            render_rows(
                self._symbols,
                name,
                rows,
                self._grid,
                iso=iso,
                format=format,
                times=self._time_arguments.get(name, ()),
            )
            for name, (rows, _) in self._divided.items()
        ]
        for repeat in self.repeats:
            line = repeat.text(iso) if format == "text" else json.dumps(_as_object(repeat, iso), ensure_ascii=False)
            parts.append(line.encode() + b"\n")
        return b"".join(parts)

    def to_sheet(self, names: Sequence[str] | None = None) -> Sheet:
        """Return all facts as one table; what repeats follows, with the columns `every`, `from` and `before`.

        `names` are the columns of the arguments.
        """
        from tidelog.data.fact_sheet import Sheet, build_fact_sheet

        arity = max((len(rows.args) for rows, _ in self._divided.values()), default=0)
        repeats = self.repeats
        facts = chain(self, (repeat.fact for repeat in repeats))
        sheet = build_fact_sheet(facts, arity, names, self._shared_times)
        if not repeats:
            return sheet
        once = [(*row, None, None, None) for row in sheet.rows[: -len(repeats)]]
        again = [
            (*row, repeat.every, *((None, repeat.start) if repeat.before else (repeat.start, None)))
            for row, repeat in zip(sheet.rows[-len(repeats) :], repeats, strict=True)
        ]
        columns = (*sheet.names, "every", "from", "before")
        return Sheet(columns, (*sheet.kinds, "constant", "time", "time"), once + again)

    @property
    def _shared_times(self) -> set[int]:
        """The positions of arguments that are times in all predicates that have them."""
        arities = {name: len(rows.args) for name, (rows, _) in self._divided.items()}
        times = self._time_arguments
        found = {position for name in arities for position in times.get(name, ())}
        return {
            position
            for position in found
            if all(position in times.get(name, ()) for name, arity in arities.items() if arity > position)
        }

    def to_arrow(self, predicate: str | None = None, *, names: Sequence[str] | None = None) -> Any:
        """Return the facts as a `pyarrow.Table`, with the columns of `to_sheet`; dates are timestamps in UTC.

        With `predicate`, return the facts of that predicate only, without the column that names it: such a table is
        also one that `materialise` takes. `names` are the columns of the arguments; without them, those that a schema
        or the table of the facts has.

        >>> import tidelog as tl
        >>> program = tl.Program.parse("Hot(X) :- Reading(X, C), C > 80.")
        >>> model = tl.materialise(program, tl.Dataset.parse("Reading(t1, 85)@3"))
        >>> model.to_arrow("Hot").to_pylist()
        [{'arg1': 't1', 'start': 3, 'end': 3, 'closed': 'both'}]
        """
        if predicate is not None:
            require_known_predicates([predicate], self.predicates)
            return self._select(predicate).to_arrow(names=names).drop_columns("predicate")
        if names is None and len(self._extents) == 1:
            names = self._names.get(next(iter(self._extents)))
        if self.repeats:
            from tidelog.data.fact_sheet import build_arrow_table

            return build_arrow_table(self.to_sheet(names), self._dates)
        relations = [relation for relation, _ in self.relations()]
        return build_fact_table(
            relations, self._symbols, self._grid.denominator, dates=self._dates, names=names, times=self._shared_times
        )

    def to_pandas(self, predicate: str | None = None, *, names: Sequence[str] | None = None) -> Any:
        """Return the table of `to_arrow` as a pandas DataFrame; needs pandas."""
        return self.to_arrow(predicate, names=names).to_pandas()

    def to_polars(self, predicate: str | None = None, *, names: Sequence[str] | None = None) -> Any:
        """Return the table of `to_arrow` as a Polars DataFrame; needs Polars."""
        import polars

        return polars.from_arrow(self.to_arrow(predicate, names=names))

    def _select(self, predicate: str) -> Model:
        """Return the part of a single predicate."""
        extents = {predicate: self._extents[predicate]}
        return Model(extents, self._grid, self._symbols, self._dates, self._time_arguments, self._names)

    def to_parquet(self, path: str | Path | None = None, iso: bool | None = None) -> bytes:
        """Return the table of all facts as a Parquet file, and write it to `path` if given."""
        from tidelog.data.fact_sheet import render_parquet

        written = render_parquet(self.to_sheet(), self._dates if iso is None else iso)
        if path is not None:
            Path(path).write_bytes(written)
        return written

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates that were asked for, sorted."""
        return tuple(sorted(self._extents))

    @property
    def dates(self) -> bool:
        """Whether times print as dates unless told otherwise."""
        return self._dates

    def _repr_html_(self) -> str:
        from tidelog.data.notebook_view import facts_to_html

        again = [repeat.text(self._dates) for repeat in self.repeats]
        return facts_to_html(self, len(self), iso=self._dates, more=again)

    def __str__(self) -> str:
        """Print all facts and repetitions as text, one per line, as `tidelog materialise` does."""
        return self.render().decode()

    def __repr__(self) -> str:
        return f"<Model of {plural(len(self), 'fact')}, {len(self.repeats)} that repeat>"


def relation_of(predicate: str, rows: Rows, grid: Grid) -> Relation:
    """Return rows of an engine as a relation, with ends on the doubled grid on either timeline."""
    lo, hi = rows.lo, rows.hi
    if not grid.dense:
        lo = np.where(lo == NEG_INF, NEG_INF, 2 * lo)
        hi = np.where(hi == POS_INF, POS_INF, 2 * hi)
    return Relation(predicate, len(rows.args), rows.args.astype(np.int32), lo, hi)


def _as_object(repeat: Repeat, iso: bool) -> dict[str, Any]:
    interval = repeat.fact.interval
    atom, _, _ = format_fact(repeat.fact).rpartition("@")

    def format_end(t: Fraction | float) -> str:
        return format_iso(t) if iso and isinstance(t, Fraction) else format_time(t)

    return {
        "fact": atom,
        "start": format_end(interval.lo),
        "end": format_end(interval.hi),
        "closed": interval.closed,
        "every": format_time(repeat.every),
        "before" if repeat.before else "from": format_end(repeat.start),
        "predicate": repeat.fact.predicate,
        "args": [json_value(value) for value in repeat.fact.args],
    }
