"""Facts on their way into a reasoner: rows of many relations in one order of arrival."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidelog.data.columns import Relation
from tidelog.engine import window
from tidelog.engine.store import Int32s, Int64s, Rows
from tidelog.reasoning import on_timeline
from tidelog.streaming.answers import Group
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid


@dataclass(frozen=True)
class Batch:
    """`relation[i]` and `row[i]` say which row the i-th fact is; the rest describes the relations.

    `numbers` are the engine's numbers of the relations' predicates, -1 where no rule reads them; `starts` is where the
    arguments of a relation begin in `args`, row after row. `begin` and `stop` are a fact's ends as they were written,
    in ticks: on the integers (0,3) holds from 1 to 2, but its times are 0 and 3.
    """

    names: tuple[str, ...]
    numbers: Int64s
    arities: Int64s
    starts: Int64s
    args: Int32s
    relation: Int64s
    row: Int64s
    lo: Int64s
    hi: Int64s
    begin: Int64s
    stop: Int64s

    def __len__(self) -> int:
        return len(self.lo)

    def where(self, keep: NDArray[np.bool_]) -> Batch:
        return self if keep.all() else self._part(keep)

    def between(self, first: int, last: int) -> Batch:
        return self._part(slice(first, last))

    def _part(self, part: NDArray[np.bool_] | Int64s | slice) -> Batch:
        columns = ("relation", "row", "lo", "hi", "begin", "stop")
        return replace(self, **{name: getattr(self, name)[part] for name in columns})

    def records(self) -> tuple[Int64s, Int64s]:
        """The records of the facts that some rule reads, and where the record of each fact begins, and all end."""
        width = 3 + int(self.arities.max(initial=0))
        queue, offsets = np.empty(width * len(self) + 1, np.int64), np.empty(len(self) + 1, np.int64)
        columns = (self.relation, self.row, self.numbers, self.arities, self.starts, self.args, self.lo, self.hi)
        window.arranged(*columns, queue, offsets)
        return queue, offsets

    def groups(self, grid: Grid) -> list[Group]:
        """The facts themselves, one after the other."""
        found: list[Group] = []
        for i in range(len(self)):
            relation = int(self.relation[i])
            begin = int(self.starts[relation] + self.row[i] * self.arities[relation])
            args = self.args[begin : begin + int(self.arities[relation])].reshape(-1, 1)
            found.append(Group(self.names[relation], Rows(args, self.lo[i : i + 1], self.hi[i : i + 1]), grid))
        return found


def arrange(relations: Sequence[Relation], ids: Int32s, numbers: Mapping[str, int], dense: bool) -> Batch:
    """Relations as a batch; `ids` are the new numbers of their constants."""
    sizes = [len(relation) for relation in relations]
    arities = [relation.arity for relation in relations]
    widths = [size * arity for size, arity in zip(sizes, arities, strict=True)]
    args = np.concatenate([np.empty(0, np.int32), *(ids[relation.args].T.ravel() for relation in relations)])
    lo = np.concatenate([np.empty(0, np.int64), *(relation.lo for relation in relations)])
    hi = np.concatenate([np.empty(0, np.int64), *(relation.hi for relation in relations)])
    batch = Batch(
        tuple(relation.predicate for relation in relations),
        np.array([numbers.get(r.predicate, -1) for r in relations] or [-1], np.int64),
        np.array(arities or [0], np.int64),
        np.cumsum([0, *widths])[:-1] if widths else np.zeros(1, np.int64),
        args.astype(np.int32),
        np.repeat(np.arange(len(relations)), sizes),
        np.concatenate([np.empty(0, np.int64), *(np.arange(size) for size in sizes)]),
        *on_timeline(lo, hi, dense),
        np.where(lo == NEG_INF, NEG_INF, lo >> 1),
        np.where(hi == POS_INF, POS_INF, (hi + 1) >> 1),
    )
    return batch._part(_arrival(relations, lo))


def _arrival(relations: Sequence[Relation], lo: Int64s) -> Int64s:
    """The order of arrival, or of time where that is not known."""
    known = [relation.order for relation in relations if relation.order is not None]
    if known and len(known) == len(relations):
        return np.argsort(np.concatenate(known), kind="stable")
    return np.argsort(lo, kind="stable")
