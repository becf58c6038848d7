"""What arrives in a step of a stream with corrections: insertions and deletions, and what they correct."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidelog.data.dataset import Dataset
from tidelog.data.deletions import is_deletion, strip_mark
from tidelog.data.relation import Columns, Key, Relation
from tidelog.streaming.assertion_ledger import PENDING
from tidelog.timeline.grid import POS_INF

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
