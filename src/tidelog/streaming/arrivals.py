"""What arrives in a step of a stream with corrections: insertions and deletions, and what they correct."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

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


def select_started(corrections: Corrections, rows: Relations, after: int, until: int, last: int) -> Relations:
    """Return the rows that start after a position, not after another, and do not begin to hold after `last`."""
    found: Relations = {}
    for key, relation in rows.items():
        starts = corrections.start_positions(relation)
        if (starts[1:] >= starts[:-1]).all():
            first, stop = np.searchsorted(starts, [after, until], "right")
            part = relation.cut(int(first), int(stop))
        else:
            part = relation.select((starts > after) & (starts <= until))
        if last < POS_INF:
            part = part.select(corrections.first_positions(part) <= last)
        if len(part):
            found[key] = part
    return found


def is_out_of_order(corrections: Corrections, rows: Relations, delay: int) -> bool:
    """Return whether it is plain that some rows come later than a delay, long after others of their kind."""
    for relation in rows.values():
        order, starts = order_of(relation), corrections.start_positions(relation)
        if (order[1:] > order[:-1]).all() and (np.maximum.accumulate(starts) - starts > delay).any():
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
