"""The results of a stream reasoner: answers in time order, and a record of every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import numpy as np

from tidelog.data.arrow_output import ArrowExport, build_fact_table
from tidelog.data.fact_sheet import build_arrow_table, build_fact_sheet
from tidelog.data.notebook_view import FactList
from tidelog.data.relation import EMPTY, Columns, combine
from tidelog.engine.fact_store import Int32s, Int64s, Rows
from tidelog.language.printer import format_rule
from tidelog.language.syntax import Fact, Rule
from tidelog.model import relation_of
from tidelog.session import Step
from tidelog.timeline.grid import NEG_INF, Grid
from tidelog.timeline.interval import INF, Time

if TYPE_CHECKING:
    from tidelog.data.symbol_table import Symbols
    from tidelog.language.fact_text import FactFormat


class FactGroup(NamedTuple):
    """Facts of one predicate, in the engine's columns."""

    predicate: str
    rows: Rows
    grid: Grid


class AnswerColumns(NamedTuple):
    """The answers of many steps in columns; `args` holds `arity` arguments per answer, one answer after another."""

    predicate: str
    arity: int
    args: Int32s
    lo: Int64s
    hi: Int64s
    grid: Grid
    symbols: Symbols
    #: The positions of arguments that are times.
    times: tuple[int, ...] = ()
    #: Whether the stream had dates.
    dates: bool = False

    def groups(self, first: int, last: int) -> list[FactGroup]:
        """Return the answers from `first` to `last` in groups that end together, in time order."""
        rows = self.rows(first, last)
        order = np.argsort(rows.hi, kind="stable")
        ends = np.flatnonzero(np.diff(rows.hi[order])) + 1
        if not len(ends):
            return [FactGroup(self.predicate, rows, self.grid)]
        parts = np.split(order, ends)
        return [FactGroup(self.predicate, Rows(rows.args[:, p], rows.lo[p], rows.hi[p]), self.grid) for p in parts]

    def rows(self, first: int, last: int) -> Rows:
        """Return the answers from `first` to `last` as rows."""
        columns = self.args[first * self.arity : last * self.arity].reshape(last - first, self.arity).T
        return Rows(columns, self.lo[first:last], self.hi[first:last])


class Answers(Sequence[Fact], ArrowExport):
    """Facts in time order; `Fact` objects are created on access. `dates` says that times are dates."""

    __slots__ = ("_count", "_dates", "_first", "_found", "_symbols")

    def __init__(
        self,
        count: int,
        found: AnswerColumns | Sequence[FactGroup],
        first: int,
        symbols: Symbols,
        dates: bool = False,
    ) -> None:
        self._count = count
        self._found = found
        self._first = first
        self._symbols = symbols
        self._dates = found.dates if isinstance(found, AnswerColumns) else dates

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Fact]:
        for name, rows, grid in self._groups():
            ranks = self._symbols.ranks()
            keys = [[int(ranks[a]) for a in args] for args in rows.args.T]
            for i in sorted(range(len(rows)), key=keys.__getitem__):
                args = tuple(self._symbols.value(int(a)) for a in rows.args[:, i])
                yield Fact(name, args, grid.to_interval(int(rows.lo[i]), int(rows.hi[i])))

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fact]: ...
    def __getitem__(self, index: int | slice) -> Fact | list[Fact]:
        return list(self)[index]

    def render(self, format: FactFormat = "text", iso: bool = False) -> bytes:
        """Print the facts, one per line, as `"text"`, `"jsonl"` or `"csv"`. Any other format raises a ValueError."""
        from tidelog.data.fact_printer import check_format, render_rows

        check_format(format)
        if format == "csv":
            from tidelog.data.fact_sheet import render_csv

            return render_csv(build_fact_sheet(self, times=self._times), iso)
        found = [self._whole_group()] if isinstance(self._found, AnswerColumns) else self._found
        return b"".join(
            render_rows(self._symbols, name, rows, grid, iso=iso, format=format, by_end=True, times=self._times)
            for name, rows, grid in found
            if len(rows)
        )

    def to_arrow(self, *, names: Sequence[str] | None = None, dates: bool | None = None) -> Any:
        """Return the facts as a `pyarrow.Table`; `names` are the columns of the arguments.

        Times are timestamps if the stream had dates, unless `dates` says otherwise.
        """
        groups = [self._whole_group()] if isinstance(self._found, AnswerColumns) else self._found
        parts = [
            Columns(grid.denominator, False, {(name, len(rows.args)): relation_of(name, rows, grid)})
            for name, rows, grid in groups
        ]
        columns = combine(self._symbols, parts or [EMPTY])
        return build_fact_table(
            list(columns.relations.values()),
            self._symbols,
            columns.denominator,
            dates=self._dates if dates is None else dates,
            names=names,
            times=self._times,
            by_end=True,
        )

    @property
    def predicate(self) -> str:
        """The predicate of the answers of a step."""
        assert isinstance(self._found, AnswerColumns), "late facts are not all of one predicate"
        return self._found.predicate

    @property
    def _times(self) -> tuple[int, ...]:
        return self._found.times if isinstance(self._found, AnswerColumns) else ()

    def _repr_html_(self) -> str:
        from tidelog.data.notebook_view import facts_to_html

        return facts_to_html(self, len(self), iso=self._dates)

    def _whole_group(self) -> FactGroup:
        """Return the answers of a step as one group, in no order."""
        rows, grid, _ = self.block()
        assert isinstance(self._found, AnswerColumns)
        return FactGroup(self._found.predicate, rows, grid)

    def block(self) -> tuple[Rows, Grid, Symbols]:
        """Return the answers of a step in the engine's columns, in no order."""
        assert isinstance(self._found, AnswerColumns), "late facts are not all of one predicate"
        return self._found.rows(self._first, self._first + self._count), self._found.grid, self._symbols

    def _groups(self) -> Sequence[FactGroup]:
        if isinstance(self._found, AnswerColumns):
            return self._found.groups(self._first, self._first + self._count) if self._count else []
        return self._found


@dataclass(frozen=True)
class RuleCost:
    """The cost of a rule: its text, its position in the program (from 0), its work and its time.

    `work` counts how often the rule was tried and how many rows it looked at. Compiled code does not time single rules,
    so `seconds` is the rule's share of the total time, in proportion to its work.
    """

    rule: str
    number: int
    work: int
    seconds: float


def share_costs(rules: Sequence[Rule], work: Int64s, seconds: float) -> list[RuleCost]:
    """Return the costs of rules with some work, most expensive first; time is shared in proportion to work."""
    total = int(work.sum())
    order = [int(number) for number in np.argsort(-work, kind="stable") if work[number]]
    texts = {n: rules[n].text or format_rule(rules[n]) for n in order}
    return [RuleCost(texts[n], n, int(work[n]), seconds * int(work[n]) / total) for n in order]


class StepColumns(NamedTuple):
    """What the steps of one call share: their grid and their answers, in columns."""

    grid: Grid
    found: AnswerColumns


#: One step in numbers: its clock, the facts that arrived, the held intervals that end and that do not, nanoseconds, and
#: where its answers begin and end in the columns.
StepNumbers = tuple[int, ...]


class StreamStep(Step[Fact], ArrowExport):
    """The record of one step of a reasoner: its time, how many facts arrived, how many are held after it, its answers.

    It refers to numbers and columns; everything else is computed on access, since most steps are asked for little.
    """

    __slots__ = ("_late", "_numbers", "_shared")

    def __init__(self, shared: StepColumns, numbers: StepNumbers, late: Answers) -> None:
        self._shared = shared
        self._numbers = numbers
        self._late = late

    @property
    def position(self) -> int:
        """The grid position of the clock."""
        return self._numbers[0]

    @property
    def time(self) -> Time:
        clock = self._numbers[0]
        return -INF if clock == NEG_INF else self._shared.grid.to_time(clock)

    @property
    def facts_in(self) -> int:
        """The number of facts that arrived."""
        return self._numbers[1]

    @property
    def window_facts(self) -> int:
        """The number of held intervals that will be forgotten eventually."""
        return self._numbers[2]

    @property
    def history_atoms(self) -> int:
        """The number of held intervals that hold forever."""
        return self._numbers[3]

    @property
    def seconds(self) -> float:
        """The time that the step took."""
        return self._numbers[4] / 1e9

    def __len__(self) -> int:
        return self._numbers[6] - self._numbers[5]

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.answers)

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fact]: ...
    def __getitem__(self, index: int | slice) -> Fact | list[Fact]:
        return self.answers[index]

    def with_answers(self, found: AnswerColumns) -> Self:
        """Return the same step with other answers."""
        return type(self)(self._shared._replace(found=found), (*self._numbers[:5], 0, len(found.lo)), self._late)

    @property
    def columns(self) -> AnswerColumns:
        """The columns that hold the answers of this step and of its neighbours."""
        return self._shared.found

    @property
    def answers(self) -> Answers:
        """The answers that became certain."""
        found, first = self._shared.found, self._numbers[5]
        return Answers(self._numbers[6] - first, found, first, found.symbols)

    def to_arrow(self, *, names: Sequence[str] | None = None, dates: bool | None = None) -> Any:
        """Return the answers as a `pyarrow.Table`; see `Answers.to_arrow`."""
        return self.answers.to_arrow(names=names, dates=dates)

    @property
    def late(self) -> Answers:
        """The facts that arrived later than the delay allows."""
        return self._late


class AnswerList(FactList, Step[Fact], ArrowExport):
    """The answers of a step as a list of facts, which a notebook shows as a table; `time` is that of the clock."""

    def __init__(self, step: StreamStep, iso: bool) -> None:
        super().__init__(step.answers, iso)
        self._time, self._columns = step.time, step.columns

    def to_arrow(self, *, names: Sequence[str] | None = None) -> Any:
        """Return the answers as a `pyarrow.Table`; `names` are the columns of the arguments."""
        sheet = build_fact_sheet(self, self._columns.arity, names, self._columns.times)
        return build_arrow_table(sheet, self._iso)

    @property
    def time(self) -> Time:
        return self._time
