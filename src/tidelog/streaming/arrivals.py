"""What arrives in a step of a stream with corrections: insertions and deletions, and what they correct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.data.dataset import Dataset
from tidelog.data.deletions import is_deletion, name_deletions, strip_mark
from tidelog.data.relation import Columns, Key, Relation
from tidelog.engine.fact_store import Rows
from tidelog.streaming.answers import FactGroup
from tidelog.streaming.assertion_ledger import PENDING
from tidelog.streaming.stream_reader import order_of
from tidelog.timeline.grid import POS_INF, Grid

if TYPE_CHECKING:
    from tidelog.streaming.corrections import Corrections

Int64s = NDArray[np.int64]
Relations = dict[Key, Relation]


@dataclass(frozen=True)
class Arrivals:
    """The assertions that arrive in a step, insertions and deletions apart, with the constants of the evaluation."""

    inserted: Relations
    deleted: Relations

    @property
    def count(self) -> int:
        """The number of insertions."""
        return sum(map(len, self.inserted.values()))


@dataclass
class Touched:
    """The corrections of a step: the first late position, the first epoch of a deleted row, and their keys.

    The keys are None if corrections concern all keys.
    """

    first_late: int = POS_INF
    first_epoch: int = PENDING
    keys: set[int] | None = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.first_late < POS_INF or self.first_epoch < PENDING


def separate_late(corrections: Corrections, arrivals: Arrivals, clock: int) -> tuple[Arrivals, list[FactGroup]]:
    """Separate what starts before everything that can be corrected when the clock is at a position."""
    late: list[FactGroup] = []
    kept: tuple[Relations, Relations] = {}, {}
    for part, relations in enumerate((arrivals.inserted, arrivals.deleted)):
        for key, rows in relations.items():
            old = corrections.start_positions(rows) < clock - corrections.reach
            if old.any():
                late += name_late(corrections, key[0], bool(part), rows.select(old))
                rows = rows.select(~old)
            if len(rows):
                kept[part][key] = rows
    return Arrivals(*kept), late


def name_late(corrections: Corrections, predicate: str, deleted: bool, rows: Relation) -> list[FactGroup]:
    """Return late rows one by one."""
    grid = Grid(True, corrections.evaluation.grid.denominator)
    name = name_deletions(predicate) if deleted else predicate
    ones = (rows.select(np.array([row])) for row in range(len(rows)))
    return [FactGroup(name, Rows(one.args, one.lo, one.hi), grid) for one in ones]


@dataclass(frozen=True)
class RowsByStart:
    """Rows in order of their starts, which are grid positions."""

    rows: Relations
    starts: Mapping[Key, Int64s]

    @staticmethod
    def of(corrections: Corrections, rows: Relations) -> RowsByStart:
        """Sort rows, which mostly are in order already."""
        ordered, starts = dict(rows), {key: corrections.start_positions(r) for key, r in rows.items()}
        for key, relation in rows.items():
            if not (starts[key][1:] >= starts[key][:-1]).all():
                order = np.argsort(starts[key], kind="stable")
                ordered[key], starts[key] = relation.select(order), starts[key][order]
        return RowsByStart(ordered, starts)

    def select(self, after: int, until: int) -> Relations:
        """Return the rows that start after a position, and not after another."""
        found: Relations = {}
        for key, relation in self.rows.items():
            first, stop = np.searchsorted(self.starts[key], [after, until], "right").tolist()
            if stop > first:
                found[key] = relation.cut(first, stop)
        return found


def is_out_of_order(corrections: Corrections, rows: Relations, delay: int) -> bool:
    """Return whether it is plain that some rows come later than a delay, long after others of their kind."""
    for relation in rows.values():
        order, starts = order_of(relation), corrections.start_positions(relation)
        if (starts[1:] >= starts[:-1]).all() or not (order[1:] > order[:-1]).all():
            continue
        if (np.maximum.accumulate(starts) - starts > delay).any():
            return True
    return False


def split_deletions(data: Dataset) -> tuple[Dataset, Dataset]:
    """Split a dataset into insertions and deletions, both with the predicates that they are about."""
    parts: tuple[Relations, Relations] = {}, {}
    for (name, arity), relation in data.relations.items():
        plain = strip_mark(name)
        parts[is_deletion(name)][plain, arity] = replace(relation, predicate=plain)
    inserted, deleted = (
        Dataset(data.symbols, Columns(data.denominator, data.dates, part, data.numbers)) for part in parts
    )
    return inserted, deleted
