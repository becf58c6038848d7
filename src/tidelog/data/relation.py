"""Facts as columns: relations of dictionary-encoded arguments and grid intervals, on a common time step.

Every reader (of fact text, tables, Python objects) produces `Columns`; `combine` puts several on one time step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact, Value
from tidelog.language.time_text import Zone
from tidelog.language.value_like import read_fact_object
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid, time_overflow

Ids = npt.NDArray[np.int32]
Times = npt.NDArray[np.int64]
#: A predicate and its number of arguments.
Key = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Relation:
    """The facts of one predicate: one row of `args` per argument, and closed pairs `lo`, `hi` on the doubled grid.

    `lo` and `hi` may be the same array, if all facts are points; nothing writes to them. `order` is the position of
    each fact in the input, counted over all relations; None unless it was asked for.
    """

    predicate: str
    arity: int
    args: Ids
    lo: Times
    hi: Times
    order: Times | None = None

    def __len__(self) -> int:
        return len(self.lo)

    @staticmethod
    def unread(
        predicate: str, arity: int, read: Callable[[], Ids], lo: Times, hi: Times, order: Times | None
    ) -> Relation:
        """Return a relation whose arguments are read by a function, once something asks for them.

        Reading may add constants to the dictionary, so nobody may rely on the size of that before.
        """
        relation = object.__new__(Relation)
        vars(relation).update(predicate=predicate, arity=arity, lo=lo, hi=hi, order=order, _read=read)
        return relation

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Read the arguments, which alone may be missing."""
            read = vars(self).get("_read")
            if name != "args" or read is None:
                raise AttributeError(name)
            args = vars(self)["args"] = read()
            vars(self).pop("_read", None)
            return args

    @property
    def is_read(self) -> bool:
        """Whether the arguments have been read."""
        return "args" in vars(self)

    def derive(self, take: Callable[[Ids], Ids], lo: Times, hi: Times, order: Times | None) -> Relation:
        """Return facts whose arguments are computed from these: now, or when they are read if these are not read."""
        if self.is_read:
            return Relation(self.predicate, self.arity, take(self.args), lo, hi, order)
        return Relation.unread(self.predicate, self.arity, lambda: take(self.args), lo, hi, order)

    def with_order(self, order: Times | None) -> Relation:
        """Return the same facts with other positions."""
        return self.derive(lambda args: args, self.lo, self.hi, order)

    def select(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Relation:
        """Return some of the rows: those with the given numbers, or those where a mask is true."""
        order = None if self.order is None else self.order[rows]
        lo = self.lo[rows]
        return self.derive(lambda args: args[:, rows], lo, lo if self.hi is self.lo else self.hi[rows], order)

    def cut(self, first: int, stop: int) -> Relation:
        """Return the rows from `first` to `stop`, without copying them."""
        some = slice(first, stop)
        order = None if self.order is None else self.order[some]
        return self.derive(lambda args: args[:, some], self.lo[some], self.hi[some], order)


def join_relations(parts: Sequence[Relation]) -> Relation:
    """Return the rows of relations of one predicate, which lose their order of arrival if there are several."""
    if len(parts) == 1:
        return parts[0]
    args = np.concatenate([part.args for part in parts], axis=1)
    lo, hi = (np.concatenate([getattr(part, name) for part in parts]) for name in ("lo", "hi"))
    return Relation(parts[0].predicate, parts[0].arity, args, lo, hi)


@dataclass(frozen=True, eq=False)
class Columns:
    """Relations on a time step of `1/denominator`; `dates` is true if any time was written as a date.

    `numbers` is true if any time was written as a number. `names` are the columns of the arguments in a table, and
    `types` says which of them hold only text or only numbers, where that is known. `zones` says whether times of day
    had an offset from UTC, with the first source of each kind.
    """

    denominator: int
    dates: bool
    relations: dict[Key, Relation]
    numbers: bool = False
    names: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    types: dict[Key, tuple[Literal["text", "number"] | None, ...]] = field(default_factory=dict)
    zones: dict[Zone, str] = field(default_factory=dict)


EMPTY = Columns(1, False, {})


def timestamp_overflow(what: str, place: Place | None = None) -> TidelogError:
    """Build the error for a time that does not fit on the grid."""
    return time_overflow(f"the timestamp {what}", place)


def find_overflows(lo: Times, hi: Times, factor: int) -> npt.NDArray[np.bool_]:
    """Find the rows that would leave the grid if its step were `factor` times finer, as a mask."""
    bound = (LIMIT - 1) // factor - 1
    far_lo = (np.abs(lo) > bound) & (lo != NEG_INF)
    far_hi = (np.abs(hi) > bound) & (hi != POS_INF)
    result: npt.NDArray[np.bool_] = far_lo | far_hi
    return result


def finer(at: int, factor: int) -> int:
    """Return a position on a grid that is `factor` times as fine; for a gap, where it ends."""
    return at if abs(at) >= POS_INF else (at + (at & 1)) * factor - (at & 1)


def refine_pairs(lo: Times, hi: Times, factor: int) -> tuple[Times, Times]:
    """Convert grid pairs to a step that is `factor` times finer. Open ends are odd numbers, on either side."""
    open_lo, open_hi = lo & 1, hi & 1
    finer_lo = np.where(lo == NEG_INF, lo, (lo - open_lo) * factor + open_lo)
    finer_hi = np.where(hi == POS_INF, hi, (hi + open_hi) * factor - open_hi)
    return finer_lo, finer_hi


def to_common_step(numerator: Times, denominator: Times) -> tuple[int, Times, npt.NDArray[np.bool_]]:
    """Convert fractions to ticks of their least common denominator.

    Returns the denominator, the ticks, and a mask of the fractions that have too many ticks for the grid.
    """
    if (denominator == 1).all():
        return 1, numerator, np.abs(numerator) >= LIMIT // 2
    common = np.gcd(numerator, denominator)
    numerator, denominator = numerator // common, denominator // common
    step = lcm(*(int(part) for part in np.unique(denominator)))
    if step >= LIMIT:
        return step, numerator, denominator > 1
    factor = step // denominator
    far: npt.NDArray[np.bool_] = np.abs(numerator) >= LIMIT // 2 // factor
    return step, numerator * factor, far


def rescale(symbols: Symbols, columns: Columns, denominator: int) -> Columns:
    """Convert facts to a finer time step; `denominator` is a multiple of the present one."""
    if denominator % columns.denominator:
        raise ValueError(f"{denominator} is not a multiple of {columns.denominator}")
    factor = denominator // columns.denominator
    if factor == 1:
        return columns
    relations = {}
    for key, relation in columns.relations.items():
        far = find_overflows(relation.lo, relation.hi, factor)
        if far.any():
            fact = _format_row(symbols, columns, relation, int(np.argmax(far)))
            raise timestamp_overflow(f"of {fact}, in ticks of 1/{denominator},")
        lo, hi = refine_pairs(relation.lo, relation.hi, factor)
        relations[key] = relation.derive(lambda args: args, lo, hi, relation.order)
    return Columns(denominator, columns.dates, relations, columns.numbers, columns.names, zones=columns.zones)


def combine(symbols: Symbols, parts: Sequence[Columns]) -> Columns:
    """Combine facts that share a dictionary, on their common time step."""
    if len(parts) == 1:
        return parts[0]
    denominator = lcm(*(part.denominator for part in parts))
    by_key: dict[Key, list[Relation]] = {}
    for part in parts:
        for key, relation in rescale(symbols, part, denominator).relations.items():
            by_key.setdefault(key, []).append(relation)
    relations = {key: _concatenate(several) for key, several in by_key.items()}
    dates, numbers = any(part.dates for part in parts), any(part.numbers for part in parts)
    names = {key: part.names[key] for part in reversed(parts) for key in part.names}
    zones = {zone: part.zones[zone] for part in reversed(parts) for zone in part.zones}
    return Columns(denominator, dates, relations, numbers, names, zones=zones)


def shift_order(columns: Columns, count: int) -> Columns:
    """Move the positions of facts behind `count` others.

    Facts of a single predicate without positions, such as those of a table, get the order of their rows.
    """
    moved: dict[Key, Relation] = {}
    for key, relation in columns.relations.items():
        order = relation.order
        if order is None and len(columns.relations) == 1:
            order = np.arange(len(relation))
        moved[key] = relation.with_order(None if order is None else order + count)
    return replace(columns, relations=moved)


def move_time_arguments(symbols: Symbols, columns: Columns, temporal: frozenset[Key]) -> Columns:
    """Turn the last argument of temporal Datalog facts into their time.

    This concerns facts without a time whose predicate, with its arity without the time, is in `temporal`.
    """
    parts = [replace(columns, relations=dict(columns.relations))]
    for (predicate, arity), relation in columns.relations.items():
        always = (relation.lo == NEG_INF) & (relation.hi == POS_INF)
        if (predicate, arity - 1) not in temporal or not always.any():
            continue
        ids, row = np.unique(relation.args[-1][always], return_inverse=True)
        times = np.array([2 * _read_natural(symbols.value(int(id)), predicate) for id in ids], np.int64)[row]
        order = relation.order
        moved_order = None if order is None else order[always]
        moved = Relation(predicate, arity - 1, relation.args[:-1, always], times, times, moved_order)
        parts.append(Columns(1, False, {(predicate, arity - 1): moved}, numbers=True))
        parts[0].relations[predicate, arity] = relation.select(~always)
        if always.all():
            del parts[0].relations[predicate, arity]
    return combine(symbols, parts)


def _read_natural(value: Value, predicate: str) -> int:
    if isinstance(value, str) or value.denominator != 1 or value < 0:
        raise TidelogError(
            Diagnostic(
                "TL202",
                f"the time of a temporal fact is a natural number, but {predicate} has a fact whose time is `{value}`",
                law="the last argument of a temporal predicate is its time",
                help="write the time with @ instead: P(a)@7",
            )
        )
    if 2 * value >= LIMIT:
        raise timestamp_overflow(str(value))
    return int(value)


def columns_from_facts(symbols: Symbols, facts: Iterable[Fact], dates: bool = False) -> Columns:
    """Build columns from facts that are Python objects."""
    rows: dict[Key, list[Fact]] = {}
    denominator = 1
    for fact, dated in map(read_fact_object, facts):
        dates = dates or dated
        rows.setdefault((fact.predicate, len(fact.args)), []).append(fact)
        denominator = lcm(denominator, denominator_of(fact))
    relations = {}
    for (predicate, arity), same_key in rows.items():
        pairs = np.array([to_grid_pair(fact, denominator) for fact in same_key], np.int64)
        args = np.array([[symbols.intern(value) for value in fact.args] for fact in same_key], np.int32)
        columns = np.ascontiguousarray(args.reshape(len(same_key), arity).T)
        relations[predicate, arity] = Relation(predicate, arity, columns, pairs[:, 0].copy(), pairs[:, 1].copy())
    return Columns(denominator, dates, relations)


def to_facts(symbols: Symbols, denominator: int, relation: Relation) -> Iterator[Fact]:
    """Convert a relation to facts as Python objects."""
    grid = Grid(True, denominator)
    for row in range(len(relation)):
        values = tuple(symbols.value(int(id)) for id in relation.args[:, row])
        yield Fact(relation.predicate, values, grid.to_interval(int(relation.lo[row]), int(relation.hi[row])))


def _concatenate(relations: list[Relation]) -> Relation:
    if len(relations) == 1:
        return relations[0]
    orders = [relation.order for relation in relations if relation.order is not None]
    lo = np.concatenate([relation.lo for relation in relations])
    points = all(relation.hi is relation.lo for relation in relations)
    hi = lo if points else np.concatenate([relation.hi for relation in relations])
    order = np.concatenate(orders) if len(orders) == len(relations) else None

    def read() -> Ids:
        return np.concatenate([relation.args for relation in relations], axis=1)

    predicate, arity = relations[0].predicate, relations[0].arity
    if all(relation.is_read for relation in relations):
        return Relation(predicate, arity, read(), lo, hi, order)
    return Relation.unread(predicate, arity, read, lo, hi, order)


def to_grid_pair(fact: Fact, denominator: int) -> tuple[int, int]:
    """Convert a fact's interval to a closed pair on the doubled grid, in ticks of `1/denominator`."""
    pair = None if fact.interval.is_empty() else Grid(True, denominator).to_pair(fact.interval)
    if pair is None:
        raise TidelogError(
            Diagnostic("TL203", f"the interval {fact.interval.with_brackets()} of a fact of {fact.predicate} is empty")
        )
    return pair


def denominator_of(fact: Fact) -> int:
    """Compute the least common denominator of the ends of a fact's interval."""
    return lcm(*(t.denominator for t in (fact.interval.lo, fact.interval.hi) if isinstance(t, Fraction)))


def _format_row(symbols: Symbols, columns: Columns, relation: Relation, row: int) -> str:
    return format_fact(next(to_facts(symbols, columns.denominator, relation.select(np.array([row])))))
