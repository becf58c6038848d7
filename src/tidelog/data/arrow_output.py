"""Facts as Arrow tables, which pandas, Polars, DuckDB and others read without copying.

The columns are those of `fact_sheet`: the predicate, one column per argument, `start`, `end` and `closed`. Tables are
built from the engine's columns, so that millions of facts never become Python objects.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tidelog.data.constant_order import sort_facts, sort_rows
from tidelog.data.fact_sheet import Kind, argument_kinds, argument_names, build_array
from tidelog.data.relation import Ids, Relation, Times
from tidelog.data.symbol_kernels import NAME_KIND, NUMBER_KIND
from tidelog.data.symbol_table import Symbols
from tidelog.timeline.grid import NEG_INF, POS_INF

_WORDS = ("neither", "left", "right", "both")
#: Seconds since 1970 of the first and the last date that Python and pandas can have.
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799
_SLASH = ord("/")


class ArrowExport:
    """An object that other libraries read as a table, through the Arrow PyCapsule interface."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow stream, for pyarrow, Polars, DuckDB and other libraries."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the table as a Polars DataFrame; needs Polars."""
        import polars

        return polars.from_arrow(self.to_arrow())


def build_fact_table(
    relations: Sequence[Relation],
    symbols: Symbols,
    denominator: int,
    *,
    dates: bool,
    names: Sequence[str] | None = None,
    times: Collection[int] = (),
    by_end: bool = False,
) -> Any:
    """Build the table of facts as a `pyarrow.Table`, sorted as they are printed: by arguments, or first by their ends.

    `names` are the columns of the arguments, and those at the positions `times` are times.
    """
    import pyarrow as pa

    arity = max((relation.arity for relation in relations), default=0)
    ordered = [relation.select(_sort(relation, symbols, by_end)) for relation in relations]
    args = [
        np.concatenate([_argument(relation, i) for relation in ordered]) if ordered else np.zeros(0, np.int32)
        for i in range(arity)
    ]
    lo = np.concatenate([np.zeros(0, np.int64), *(relation.lo for relation in ordered)])
    hi = np.concatenate([np.zeros(0, np.int64), *(relation.hi for relation in ordered)])
    number = np.repeat(np.arange(len(ordered)), [len(relation) for relation in ordered])
    predicates = pa.array([relation.predicate for relation in ordered], pa.string())
    closed = ((lo != NEG_INF) & (lo & 1 == 0)) + 2 * ((hi != POS_INF) & (hi & 1 == 0))
    kinds = argument_kinds(arity, times)
    columns = [
        predicates.take(pa.array(number)),
        *(_build_constants(ids, symbols, kind, dates) for ids, kind in zip(args, kinds, strict=True)),
        _build_times(lo >> 1, lo == NEG_INF, denominator, dates),
        _build_times((hi + 1) >> 1, hi == POS_INF, denominator, dates),
        pa.array(_WORDS).take(pa.array(closed)),
    ]
    return pa.Table.from_arrays(columns, ["predicate", *argument_names(arity, names), "start", "end", "closed"])


def _sort(relation: Relation, symbols: Symbols, by_end: bool) -> npt.NDArray[np.int64]:
    ranks = symbols.ranks()
    if not by_end:
        return sort_facts(relation.args, relation.lo, ranks)
    return sort_rows([relation.lo, *(ranks[ids] for ids in relation.args[::-1]), relation.hi])


def _argument(relation: Relation, position: int) -> Ids:
    return relation.args[position] if position < relation.arity else np.full(len(relation), -1, np.int32)


def _build_constants(ids: Ids, symbols: Symbols, kind: Kind, dates: bool) -> Any:
    """Build a column of constants, of the narrowest type that holds all of them; -1 is an empty cell."""
    import pyarrow as pa

    marked = np.zeros(len(symbols) + 1, np.bool_)
    marked[ids] = True
    used = np.flatnonzero(marked[:-1]).astype(np.int32)
    place = np.zeros(len(marked), np.int64)
    place[used] = np.arange(len(used))
    values = _build_names_or_integers(used, symbols) if kind == "constant" else None
    if values is None:
        values = build_array([symbols.value(int(id)) for id in used], kind, dates)
    return values.take(pa.array(place[ids], mask=ids < 0))


def _build_names_or_integers(ids: Ids, symbols: Symbols) -> Any | None:
    """Build an array of constants that are all names, or all integers of 64 bits; None for any others."""
    import pyarrow as pa
    from pyarrow import compute

    if not len(ids):
        return None
    pool, offsets = symbols.texts_of(ids)
    kinds = np.unique(pool[offsets[:-1]]).tolist()
    if kinds not in ([NAME_KIND], [NUMBER_KIND]) or (kinds == [NUMBER_KIND] and (pool == _SLASH).any()):
        return None
    marked = pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(pool))
    texts = compute.utf8_slice_codeunits(marked, 1)
    if kinds == [NAME_KIND]:
        return texts.cast(pa.string())
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None


def _build_times(ticks: Times, infinite: npt.NDArray[np.bool_], denominator: int, dates: bool) -> Any:
    """Build a column of times: timestamps if the data had dates, else numbers; infinite ends are null."""
    import pyarrow as pa

    if not dates and denominator == 1:
        return pa.array(ticks, mask=infinite)
    unit = _choose_unit(ticks[~infinite], denominator) if dates else None
    if unit is not None:
        name, per_second = unit
        counts = np.where(infinite, 0, ticks) * (per_second // denominator)
        return pa.array(counts, pa.timestamp(name, tz="UTC"), mask=infinite)
    distinct, place = np.unique(ticks[~infinite], return_inverse=True)
    values = build_array([Fraction(int(tick), denominator) for tick in distinct], "time", dates)
    rows = np.zeros(len(ticks), np.int64)
    rows[~infinite] = place
    return values.take(pa.array(rows, mask=infinite))


def _choose_unit(ticks: Times, denominator: int) -> tuple[Literal["us", "ns"], int] | None:
    """Choose the unit of timestamps that give times exactly, with its ticks per second; None if there is none."""
    least, most = (int(ticks.min()), int(ticks.max())) if len(ticks) else (0, 0)
    if 10**6 % denominator == 0:
        fits = _FIRST_SECOND * denominator <= least and most <= _LAST_SECOND * denominator
        return ("us", 10**6) if fits else None
    if 10**9 % denominator == 0 and max(-least, most) < (1 << 63) // (10**9 // denominator):
        return "ns", 10**9
    return None
