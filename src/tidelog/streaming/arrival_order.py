"""Insertions and deletions in their order of arrival, as steps; and which steps correct something."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidelog.data.dataset import Dataset
from tidelog.data.deletions import is_deletion
from tidelog.data.relation import Columns, Relation
from tidelog.engine.stream_kernel import FRONTIER, NOW
from tidelog.streaming.answers import FactGroup
from tidelog.streaming.arrivals import Arrivals, Relations, name_late
from tidelog.streaming.corrections import Corrections
from tidelog.streaming.stream_reader import order_of
from tidelog.timeline.grid import NEG_INF, POS_INF

if TYPE_CHECKING:
    from tidelog.streaming.query_evaluation import Evaluation

Int64s = NDArray[np.int64]


class Stand(NamedTuple):
    """Where an evaluation stood when arrivals were arranged: clock, frontier, last time seen, longest delay."""

    now: int
    frontier: int
    seen: int
    longest: int

    @staticmethod
    def of(evaluation: Evaluation) -> Stand:
        at = evaluation.at
        return Stand(int(at[NOW]), int(at[FRONTIER]), evaluation.seen, evaluation.task.longest)


@dataclass(frozen=True)
class Arrived:
    """Insertions and deletions in order of arrival: of each its relation and row, its position, and the clock.

    `seen` is the last time that any insertion before it had, even if it was left out.
    """

    relations: list[Relation]
    is_deleted: list[bool]
    relation: Int64s
    row: Int64s
    order: Int64s
    seen: Int64s
    clock: Int64s
    #: Which are insertions that come too late for the evaluation.
    is_behind: NDArray[np.bool_]
    #: Where steps begin and end, which of them correct something, and which have deletions or facts that are too late.
    begins: Int64s
    ends: Int64s
    is_special: NDArray[np.bool_]
    is_hard: NDArray[np.bool_]

    def select(self, first: int, stop: int, corrections: Corrections) -> tuple[Arrivals, list[FactGroup]]:
        """Return the rows from `first` to `stop`, and those of them that came too late."""
        parts: tuple[Relations, Relations] = {}, {}
        late: list[FactGroup] = []
        for number in np.unique(self.relation[first:stop]).tolist():
            mine = self.relation[first:stop] == number
            rows, deleted = self.relations[number].select(self.row[first:stop][mine]), self.is_deleted[number]
            old = corrections.start_positions(rows) < self.seen[first:stop][mine] - corrections.reach
            if old.any():
                late += name_late(corrections, rows.predicate, deleted, rows.select(old))
                rows = rows.select(~old)
            if len(rows):
                parts[deleted][rows.predicate, rows.arity] = rows
        return Arrivals(*parts), late

    def gather(self, arrivals: Int64s) -> Relations:
        """Return some insertions as rows."""
        found: Relations = {}
        numbers = self.relation[arrivals]
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            rows = self.relations[number].select(self.row[arrivals[numbers == number]])
            found[rows.predicate, rows.arity] = rows
        return found

    def end_of(self, clock: int) -> int:
        """Return how many have arrived when the clock leaves a position."""
        return int(np.searchsorted(self.clock, clock, "right"))


def arrange_arrivals(
    corrections: Corrections, rows: tuple[Relations, Relations], length: int, last: int, stand: Stand
) -> Arrived:
    """Find the steps of insertions and deletions, with steps of a length (0: one for every time)."""
    relations = [relation for part in rows for relation in part.values()]
    is_deleted = [False] * len(rows[0]) + [True] * len(rows[1])
    sizes = [len(relation) for relation in relations]
    none = np.zeros(0, np.int64)
    order = np.concatenate([none, *(order_of(relation) for relation in relations)])
    arrival = np.argsort(order, kind="stable")
    relation = np.repeat(np.arange(len(sizes)), sizes)[arrival]
    row = np.concatenate([none, *(np.arange(size) for size in sizes)])[arrival]
    start = np.concatenate([none, *(corrections.start_positions(r) for r in relations)])[arrival]
    lo = np.concatenate([none, *(corrections.first_positions(r) for r in relations)])[arrival]
    deleted = np.array(is_deleted, np.bool_)[relation] if len(relation) else np.zeros(0, np.bool_)
    left_out = (lo > last) & ~deleted
    moment = np.where(deleted, NEG_INF, start)
    seen = np.maximum.accumulate(np.maximum(moment, max(stand.now, stand.seen)))
    clock = np.maximum.accumulate(np.maximum(np.where(left_out, NEG_INF, moment), stand.now))
    # Deletions that come before everything else wait for the first step.
    order = order[arrival]
    if left_out.any():
        kept = ~left_out
        relation, row, order, lo, start = relation[kept], row[kept], order[kept], lo[kept], start[kept]
        deleted, seen, clock = deleted[kept], seen[kept], clock[kept]
    clock = np.maximum(clock, clock[clock > NEG_INF].min(initial=POS_INF))
    turn = clock if length == 0 else -(-clock // length)
    begins = np.flatnonzero(np.append(True, turn[1:] != turn[:-1])) if len(turn) else none
    ends = np.append(begins[1:], len(clock))[: len(begins)]
    # The frontier before a step is that of the step before it.
    before = np.append(NEG_INF, clock[ends[:-1] - 1] - 1 - stand.longest)[: len(begins)]
    behind = lo <= np.repeat(np.maximum(before, stand.frontier), ends - begins)
    hard = deleted | (start < seen - corrections.reach)
    if corrections.can_begin_elsewhere:
        # A fact that comes out of order may be the first one, once those before it are withdrawn.
        hard |= start < clock
    is_special, is_hard = (
        np.logical_or.reduceat(rows, begins) if len(begins) else np.zeros(0, np.bool_) for rows in (hard | behind, hard)
    )
    return Arrived(
        relations, is_deleted, relation, row, order, seen, clock, behind & ~deleted, begins, ends, is_special, is_hard
    )


def with_order(data: Dataset) -> Dataset:
    """Return facts that know their order of arrival; where it is unknown, they arrive in the order of their times."""
    relations = list(data.relations.values())
    if all(relation.order is not None for relation in relations):
        return data
    # At one time, facts come before deletions.
    deleted = np.concatenate([np.zeros(0, np.bool_), *(np.full(len(r), is_deletion(r.predicate)) for r in relations)])
    lo = np.concatenate([np.zeros(0, np.int64), *(relation.lo for relation in relations)])
    rank = np.empty(len(lo), np.int64)
    rank[np.lexsort((deleted, lo))] = np.arange(len(lo))
    ends = np.cumsum([len(relation) for relation in relations])
    numbered = {
        key: replace(relation, order=rank[end - len(relation) : end])
        for (key, relation), end in zip(data.relations.items(), ends.tolist(), strict=True)
    }
    return Dataset(data.symbols, Columns(data.denominator, data.dates, numbered, data.numbers))
