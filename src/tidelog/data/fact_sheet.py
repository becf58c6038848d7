"""Facts as one table, for CSV and Parquet: a column for the predicate, one per argument, and the ends of the interval.

Facts of several predicates share the table: it has as many argument columns as the longest of them, and a fact with
fewer arguments leaves the others empty. In CSV every cell is text, and infinite ends are `inf` and `-inf`. In Parquet a
column has the narrowest type that holds all of its values exactly: integers, floats, dates, or else text; infinite ends
are null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal

from tidelog.language.fact_text import format_value
from tidelog.language.syntax import Fact
from tidelog.language.time_text import format_iso
from tidelog.timeline.interval import INF, Time, format_time

#: The kind of the cells of a column: text as it is, a constant, or a time.
Kind = Literal["text", "constant", "time"]
#: The seconds since 1970 that a date can have.
_FIRST, _LAST = Fraction(-62135596800), Fraction(253402300799)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sheet:
    """A table before it is written: named columns with their kinds, and rows; None is an empty cell."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: list[tuple[Any, ...]]


def argument_names(arity: int, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the names of argument columns: those given if there is one for each, else arg1, arg2, ..."""
    if names is not None and len(names) == arity:
        return tuple(names)
    return tuple(f"arg{position}" for position in range(1, arity + 1))


def argument_kinds(arity: int, times: Collection[int] = ()) -> tuple[Kind, ...]:
    """Return the kinds of argument columns; those at the positions `times` hold times."""
    return tuple("time" if position in times else "constant" for position in range(arity))


def fill_arguments(args: tuple[Any, ...], arity: int) -> tuple[Any, ...]:
    """Add empty cells for the arguments that a fact does not have."""
    return (*args, *(None,) * (arity - len(args)))


def build_fact_sheet(
    facts: Iterable[Fact], arity: int = 0, names: Sequence[str] | None = None, times: Collection[int] = ()
) -> Sheet:
    """Build the table of facts, with at least `arity` argument columns, which `names` may name.

    The arguments at the positions `times` are times.
    """
    found = list(facts)
    arity = max([arity, *(len(fact.args) for fact in found)])
    rows: list[tuple[Any, ...]] = [
        (fact.predicate, *fill_arguments(fact.args, arity), fact.interval.lo, fact.interval.hi, fact.interval.closed)
        for fact in found
    ]
    columns = ("predicate", *argument_names(arity, names), "start", "end", "closed")
    return Sheet(columns, ("text", *argument_kinds(arity, times), "time", "time", "text"), rows)


def render_csv(sheet: Sheet, iso: bool = False, header: bool = True) -> bytes:
    """Write a table as CSV; times are dates if `iso`.

    >>> from tidelog.timeline.interval import Interval
    >>> fact = Fact("Hot", ("hall 1", Fraction(7)), Interval(Fraction(0), INF, True, False))
    >>> print(render_csv(build_fact_sheet([fact])).decode(), end="")
    predicate,arg1,arg2,start,end,closed
    Hot,hall 1,7,0,inf,left
    """
    lines = [",".join(map(_quote_cell, sheet.names))] if header else []
    for row in sheet.rows:
        cells = (_format_cell(cell, kind, iso) for cell, kind in zip(row, sheet.kinds, strict=True))
        lines.append(",".join(map(_quote_cell, cells)))
    return "".join(line + "\n" for line in lines).encode()


def build_arrow_table(sheet: Sheet, iso: bool = False) -> Any:
    """Convert a table to a `pyarrow.Table`; times are timestamps in UTC if `iso` and dates give them exactly."""
    import pyarrow as pa

    arrays = [build_array([row[i] for row in sheet.rows], kind, iso) for i, kind in enumerate(sheet.kinds)]
    return pa.Table.from_arrays(arrays, list(sheet.names))


def render_parquet(sheet: Sheet, iso: bool = False) -> bytes:
    """Write a table as a Parquet file, and return its bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(build_arrow_table(sheet, iso), sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _format_cell(cell: Any, kind: Kind, iso: bool) -> str | None:
    if cell is None or isinstance(cell, bool):
        return None if cell is None else str(cell).lower()
    if kind == "time" and not isinstance(cell, str):
        return format_iso(cell) if iso else format_time(cell)
    return cell if isinstance(cell, str) else format_value(cell)


def _quote_cell(cell: str | None) -> str:
    """Quote a cell where CSV needs it; an empty text is quoted, which tells it from an empty cell."""
    if cell is None:
        return ""
    if not cell or any(char in cell for char in ',"\r\n') or cell != cell.strip():
        return '"' + cell.replace('"', '""') + '"'
    return cell


def build_array(cells: list[Any], kind: Kind, iso: bool) -> Any:
    """Build a column of the narrowest type that holds every cell exactly."""
    import pyarrow as pa

    present = [cell for cell in cells if cell is not None and not _is_infinite(cell)]
    if present and all(isinstance(cell, bool) for cell in present):
        return pa.array(cells, pa.bool_())
    if kind == "time" and iso and all(map(_is_exact_date, present)):
        dates = [None if _is_infinite(cell) else _EPOCH + timedelta(microseconds=int(cell * 1000000)) for cell in cells]
        return pa.array(dates, pa.timestamp("us", tz="UTC"))
    if kind != "text" and (present or kind == "time") and all(isinstance(cell, Fraction) for cell in present):
        finite = [None if cell is None or _is_infinite(cell) else cell for cell in cells]
        if all(cell.denominator == 1 and abs(cell) < 1 << 63 for cell in present):
            return pa.array([None if cell is None else int(cell) for cell in finite], pa.int64())
        if all(_is_exact_float(cell) for cell in present):
            return pa.array([None if cell is None else float(cell) for cell in finite], pa.float64())
    return pa.array([_format_cell(cell, kind, iso) for cell in cells], pa.string())


def _is_infinite(cell: Any) -> bool:
    return isinstance(cell, float) and abs(cell) == INF


def _is_exact_date(time: Time) -> bool:
    return isinstance(time, Fraction) and _FIRST <= time <= _LAST and 1000000 % time.denominator == 0


def _is_exact_float(value: Fraction) -> bool:
    """Return whether a float, as it is printed, is this number."""
    try:
        return Fraction(repr(float(value))) == value
    except (OverflowError, ValueError):
        return False
