"""Facts as columns: relations of dictionary-encoded arguments and grid intervals, on a common time step.

Everything that reads data (fact text, tables, Python objects) makes `Columns`; `combined` puts them on one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np
import numpy.typing as npt

from tidelog.data.symbols import Symbols
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.facts import format_fact
from tidelog.language.syntax import Fact, Value
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid

Ids = npt.NDArray[np.int32]
Times = npt.NDArray[np.int64]
#: A predicate and its number of arguments.
Key = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Relation:
    """The facts of one predicate: one row of `args` an argument, and closed pairs `lo`, `hi` on the doubled grid.

    `order` is the position of each fact in the input, counted over all relations; None where nobody asked for it.
    """

    predicate: str
    arity: int
    args: Ids
    lo: Times
    hi: Times
    order: Times | None = None

    def __len__(self) -> int:
        return len(self.lo)


@dataclass(frozen=True, eq=False)
class Columns:
    """Relations on one time step of `1/denominator`; `dates` where some time was written as a date."""

    denominator: int
    dates: bool
    relations: dict[Key, Relation]


EMPTY = Columns(1, False, {})


def leaves_63_bits(what: str, place: Place | None = None) -> TidelogError:
    """The error for a time that has no room on the grid."""
    return TidelogError(
        Diagnostic(
            "TL204",
            f"the timestamp {what} leaves 63 bits",
            place,
            law="times are whole numbers of ticks (the common denominator of program and data) below 2^60",
            help="use fewer decimal places, or times closer to 0",
        )
    )


def too_large(lo: Times, hi: Times, factor: int) -> npt.NDArray[np.bool_]:
    """Which rows would leave the grid if its step were `factor` times as fine."""
    bound = (LIMIT - 1) // factor - 1
    far_lo = (np.abs(lo) > bound) & (lo != NEG_INF)
    far_hi = (np.abs(hi) > bound) & (hi != POS_INF)
    result: npt.NDArray[np.bool_] = far_lo | far_hi
    return result


def refined(lo: Times, hi: Times, factor: int) -> tuple[Times, Times]:
    """Grid pairs on a step that is `factor` times as fine. An open left end is odd, and so is an open right end."""
    open_lo, open_hi = lo & 1, hi & 1
    finer_lo = np.where(lo == NEG_INF, lo, (lo - open_lo) * factor + open_lo)
    finer_hi = np.where(hi == POS_INF, hi, (hi + open_hi) * factor - open_hi)
    return finer_lo, finer_hi


def on_common_step(numerator: Times, denominator: Times) -> tuple[int, Times, npt.NDArray[np.bool_]]:
    """The least common denominator of fractions, how many of its ticks each one is, and which ones are too many."""
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


def rescaled(symbols: Symbols, columns: Columns, denominator: int) -> Columns:
    """The same facts on a finer step, of which the old one is a multiple."""
    if denominator % columns.denominator:
        raise ValueError(f"{denominator} is not a multiple of {columns.denominator}")
    factor = denominator // columns.denominator
    if factor == 1:
        return columns
    relations = {}
    for key, relation in columns.relations.items():
        far = too_large(relation.lo, relation.hi, factor)
        if far.any():
            fact = _shown(symbols, columns, relation, int(np.argmax(far)))
            raise leaves_63_bits(f"of {fact}, in ticks of 1/{denominator},")
        lo, hi = refined(relation.lo, relation.hi, factor)
        relations[key] = Relation(relation.predicate, relation.arity, relation.args, lo, hi, relation.order)
    return Columns(denominator, columns.dates, relations)


def combined(symbols: Symbols, parts: Sequence[Columns]) -> Columns:
    """All the facts of all the parts, on their common step."""
    if len(parts) == 1:
        return parts[0]
    denominator = lcm(*(part.denominator for part in parts))
    found: dict[Key, list[Relation]] = {}
    for part in parts:
        for key, relation in rescaled(symbols, part, denominator).relations.items():
            found.setdefault(key, []).append(relation)
    return Columns(denominator, any(part.dates for part in parts), {key: _joined(some) for key, some in found.items()})


def after(columns: Columns, count: int) -> Columns:
    """The same facts with their positions moved behind `count` others. Facts without positions are in the order of
    their rows where they are of one predicate, as those of a table are; else they stay without."""
    moved: dict[Key, Relation] = {}
    for key, relation in columns.relations.items():
        order = relation.order
        if order is None and len(columns.relations) == 1:
            order = np.arange(len(relation))
        moved[key] = replace(relation, order=None if order is None else order + count)
    return replace(columns, relations=moved)


def timed(symbols: Symbols, columns: Columns, temporal: frozenset[Key]) -> Columns:
    """Facts as temporal Datalog writes them: where a predicate, with its arity without time, is in `temporal`, the last
    argument of a fact that came without a time is its time."""
    parts = [Columns(columns.denominator, columns.dates, dict(columns.relations))]
    for (predicate, arity), relation in columns.relations.items():
        always = (relation.lo == NEG_INF) & (relation.hi == POS_INF)
        if (predicate, arity - 1) not in temporal or not always.any():
            continue
        ids, row = np.unique(relation.args[-1][always], return_inverse=True)
        times = np.array([2 * _natural(symbols.value(int(id)), predicate) for id in ids], np.int64)[row]
        order = relation.order
        when, rest = (None, None) if order is None else (order[always], order[~always])
        moved = Relation(predicate, arity - 1, relation.args[:-1, always], times, times, when)
        parts.append(Columns(1, False, {(predicate, arity - 1): moved}))
        parts[0].relations[predicate, arity] = Relation(
            predicate, arity, relation.args[:, ~always], relation.lo[~always], relation.hi[~always], rest
        )
        if always.all():
            del parts[0].relations[predicate, arity]
    return combined(symbols, parts)


def _natural(value: Value, predicate: str) -> int:
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
        raise leaves_63_bits(str(value))
    return int(value)


def from_facts(symbols: Symbols, facts: Iterable[Fact], dates: bool = False) -> Columns:
    """Columns of facts that are Python objects."""
    rows: dict[Key, list[Fact]] = {}
    denominator = 1
    for fact in facts:
        rows.setdefault((fact.predicate, len(fact.args)), []).append(fact)
        denominator = lcm(denominator, own_denominator(fact))
    relations = {}
    for (predicate, arity), some in rows.items():
        pairs = np.array([grid_pair(fact, denominator) for fact in some], np.int64)
        args = np.array([[symbols.intern(value) for value in fact.args] for fact in some], np.int32)
        columns = np.ascontiguousarray(args.reshape(len(some), arity).T)
        relations[predicate, arity] = Relation(predicate, arity, columns, pairs[:, 0].copy(), pairs[:, 1].copy())
    return Columns(denominator, dates, relations)


def facts_of(symbols: Symbols, denominator: int, relation: Relation) -> Iterator[Fact]:
    """The facts of a relation as Python objects."""
    grid = Grid(True, denominator)
    for row in range(len(relation)):
        values = tuple(symbols.value(int(id)) for id in relation.args[:, row])
        yield Fact(relation.predicate, values, grid.interval(int(relation.lo[row]), int(relation.hi[row])))


def _joined(relations: list[Relation]) -> Relation:
    if len(relations) == 1:
        return relations[0]
    orders = [relation.order for relation in relations if relation.order is not None]
    return Relation(
        relations[0].predicate,
        relations[0].arity,
        np.concatenate([relation.args for relation in relations], axis=1),
        np.concatenate([relation.lo for relation in relations]),
        np.concatenate([relation.hi for relation in relations]),
        np.concatenate(orders) if len(orders) == len(relations) else None,
    )


def grid_pair(fact: Fact, denominator: int) -> tuple[int, int]:
    """The closed pair of a fact's interval in ticks of `1/denominator`."""
    pair = None if fact.interval.is_empty() else Grid(True, denominator).pair(fact.interval)
    if pair is None:
        raise TidelogError(
            Diagnostic(
                "TL203",
                f"the interval {fact.interval.bracketed()} of a fact of {fact.predicate} is empty",
                law="a fact holds at one point of time at least",
            )
        )
    return pair


def own_denominator(fact: Fact) -> int:
    """The least common denominator of the ends of a fact."""
    return lcm(*(t.denominator for t in (fact.interval.lo, fact.interval.hi) if isinstance(t, Fraction)))


def _shown(symbols: Symbols, columns: Columns, relation: Relation, row: int) -> str:
    one = Relation(relation.predicate, relation.arity, relation.args[:, [row]], relation.lo[[row]], relation.hi[[row]])
    fact = next(facts_of(symbols, columns.denominator, one))
    return format_fact(fact)
