"""The ledger: the multiset of assertions that input is made of.

An assertion is an atom with an interval. An insertion adds one, a deletion takes one away; an atom holds at the times
that assertions with a positive multiplicity cover. A deletion that arrives before its insertion waits: the multiplicity
is negative until then. Timelines coalesce intervals and forget which assertion contributed what, so the ledger is kept
apart from them.

Assertions are columns, as in a `Relation`, with a multiplicity each; a hash table finds the row of an assertion. An
assertion is identified by its interval as written: on the integers `(0,3)` and `[1,2]` are two assertions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from tidelog.corrections.ledger_kernels import chain_rows, count_rows, fill_slots, gather_chains
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import has_deletions, is_deletion, strip_mark
from tidelog.data.relation import Columns, Ids, Key, Relation, Times, rescale
from tidelog.data.symbol_table import Symbols, grow_array
from tidelog.timeline.grid import NEG_INF, POS_INF

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

#: Rows whose multiplicity is zero are dropped once there are more of them than others, and at least this many.
_FEWEST_DROPPED = 1024


@dataclass(frozen=True)
class LedgerRows:
    """Rows of one relation in the ledger that began (`began`) or ceased to stand."""

    relation: Relation
    began: NDArray[np.bool_]


@dataclass(frozen=True)
class LedgerChange:
    """The effect of insertions and deletions: what began or ceased to stand, and the counts by which to undo it.

    An assertion whose multiplicity stays positive, or stays at most zero, is not among `changed`.
    """

    changed: Mapping[Key, LedgerRows]
    counted: Mapping[Key, tuple[Relation, Int64s]]
    #: Before the change: the denominator of the step, and whether times had been inserted as dates, and as numbers.
    before: tuple[int, bool, bool]


class Ledger:
    """A multiset of assertions, in one dictionary of constants and on one time step.

    >>> ledger = Ledger()
    >>> _ = ledger.apply(insert=Dataset.parse("P(a)@[0,5]\\nP(a)@[3,8]"))
    >>> _ = ledger.apply(delete=Dataset.parse("P(a)@[3,8]\\nP(b)@1"))
    >>> print(ledger.standing(), end="")
    P(a)@[0,5]
    >>> print(ledger.unmatched(), end="")
    P(b)@1
    """

    def __init__(self, symbols: Symbols | None = None) -> None:
        self.symbols = Symbols() if symbols is None else symbols
        self.denominator = 1
        #: Whether any time was inserted as a date, or as a number.
        self.dates = False
        self.numbers = False
        self.tables: dict[Key, LedgerTable] = {}

    def apply(self, insert: Dataset | None = None, delete: Dataset | None = None) -> LedgerChange:
        """Count insertions and deletions; return what began and what ceased to stand.

        The step becomes finer if a time needs it. All changes count at once: an assertion that is both inserted and
        deleted stays as it was.
        """
        before = self.denominator, self.dates, self.numbers
        parts = [(data, by) for data, by in ((insert, 1), (delete, -1)) if data is not None and len(data)]
        self.refine(lcm(self.denominator, *(data.denominator for data, _ in parts)))
        together: dict[Key, list[tuple[Relation, int]]] = {}
        for data, by in parts:
            self.dates |= by > 0 and data.dates
            self.numbers |= by > 0 and data.numbers
            for key, relation in self.encode(data).items():
                if len(relation):
                    together.setdefault(key, []).append((relation, by))
        counted = {key: _concatenate(several) for key, several in together.items()}
        return LedgerChange(self._count(counted), counted, before)

    def add_tables(self, keys: Iterable[Key]) -> None:
        """Make relations known, even if they have no assertions."""
        for key in keys:
            self.tables.setdefault(key, LedgerTable(key[1]))

    def undo(self, change: LedgerChange) -> None:
        """Take back the last change; only constants stay."""
        for key, (relation, by) in change.counted.items():
            self.tables[key].count(relation.args, relation.lo, relation.hi, -by)
        denominator, self.dates, self.numbers = change.before
        factor = self.denominator // denominator
        self.denominator = denominator
        for table in self.tables.values() if factor > 1 else ():
            # What was not there before does not lie on the coarser step, and counts zero now.
            table.keep(table.counts[: table.size] != 0)
            table.move(*_coarsen_pairs(table.lo[: table.size], table.hi[: table.size], factor))

    def encode(self, data: Dataset) -> dict[Key, Relation]:
        """Return facts in the ledger's dictionary and on its step, which must be a multiple of theirs."""
        columns = rescale(data.symbols, data.as_columns(), self.denominator)
        if data.symbols is self.symbols:
            return columns.relations
        arguments = [relation.args.ravel() for relation in columns.relations.values()]
        used = sum(map(len, arguments))
        which = np.unique(np.concatenate(arguments)) if used and 4 * used < len(data.symbols) else None
        ids = self.symbols.merge(data.symbols, None if which is None else which.astype(np.int64))
        return {key: Relation(r.predicate, r.arity, ids[r.args], r.lo, r.hi) for key, r in columns.relations.items()}

    def refine(self, denominator: int) -> None:
        """Make the step finer; raise before anything changes if a time does not fit on it."""
        factor = denominator // self.denominator
        if factor == 1:
            return
        whole = {key: table.relation(key, np.arange(table.size)) for key, table in self.tables.items()}
        finer = rescale(self.symbols, Columns(self.denominator, False, whole), denominator)
        self.denominator = denominator
        for key, relation in finer.relations.items():
            self.tables[key].move(relation.lo, relation.hi)

    def standing(self) -> Dataset:
        """Return the assertions that stand, each once."""
        return self._dataset({key: table.relation(key, table.standing()) for key, table in self.tables.items()})

    def unmatched(self) -> Dataset:
        """Return the deletions that wait for their insertion, each as often as it waits."""
        waiting: dict[Key, Relation] = {}
        for key, table in self.tables.items():
            if table.waiting:
                counts = np.minimum(table.counts[: table.size], 0)
                waiting[key] = table.relation(key, np.repeat(np.arange(table.size), -counts))
        return self._dataset(waiting)

    @property
    def waiting(self) -> int:
        """The number of deletions that wait for their insertion."""
        return sum(table.waiting for table in self.tables.values())

    def __len__(self) -> int:
        """Return the number of assertions that stand, with their multiplicities."""
        return sum(int(np.maximum(table.counts[: table.size], 0).sum()) for table in self.tables.values())

    def counted(self) -> Iterator[tuple[Relation, Int64s]]:
        """Yield all assertions by relation, each with its multiplicity, which is not zero."""
        for key, table in self.tables.items():
            rows = np.flatnonzero(table.counts[: table.size])
            if len(rows):
                yield table.relation(key, rows), table.counts[rows]

    @staticmethod
    def restore(
        symbols: Symbols, denominator: int, counted: Iterable[tuple[Relation, Int64s]], *, dates: bool = False
    ) -> Ledger:
        """Make a ledger of what `counted` gave, whose ids are those of `symbols`."""
        ledger = Ledger(symbols)
        ledger.denominator, ledger.dates = denominator, dates
        ledger._count({(relation.predicate, relation.arity): (relation, by) for relation, by in counted})
        return ledger

    def forget(self, before: int) -> int:
        """Drop assertions that begin before a position on the doubled grid; return how many rows were dropped."""
        return sum(table.keep(table.lo[: table.size] >= before) for table in self.tables.values())

    def _count(self, counted: dict[Key, tuple[Relation, Int64s]]) -> dict[Key, LedgerRows]:
        changed: dict[Key, LedgerRows] = {}
        for key, (relation, by) in counted.items():
            table = self.tables.get(key)
            if table is None:
                table = self.tables[key] = LedgerTable(relation.arity)
            rows, began = table.count(relation.args, relation.lo, relation.hi, by)
            if len(rows):
                changed[key] = LedgerRows(table.relation(key, rows), began)
        return changed

    def _dataset(self, relations: dict[Key, Relation]) -> Dataset:
        present = {key: relation for key, relation in relations.items() if len(relation)}
        return Dataset(self.symbols, Columns(self.denominator, self.dates, present, self.numbers))


class LedgerTable:
    """The assertions of one predicate: columns with spare room at the end, of which the first `size` rows are used."""

    def __init__(self, arity: int) -> None:
        self.args: Int32s = np.empty((arity, 0), np.int32)
        self.lo: Times = np.empty(0, np.int64)
        self.hi: Times = np.empty(0, np.int64)
        self.counts: Int64s = np.empty(0, np.int64)
        self.size = 0
        #: The number of deletions that wait, and of rows that stand.
        self.waiting = 0
        self.stands = 0
        self.slots: Int32s = np.full(4, -1, np.int32)
        self.chains: dict[int, _Chains] = {}

    def count(self, args: Ids, lo: Times, hi: Times, by: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
        """Add to multiplicities; return the rows that began or ceased to stand, and which of them began."""
        self._make_room(len(lo))
        rows = np.empty(len(lo), np.int64)
        old_size = self.size
        self.size = int(
            count_rows(
                self.slots,
                self.args,
                self.lo,
                self.hi,
                self.counts,
                self.size,
                np.ascontiguousarray(args, np.int32),
                np.ascontiguousarray(lo, np.int64),
                np.ascontiguousarray(hi, np.int64),
                by,
                rows,
            )
        )
        if not old_size and self.size == len(rows):
            # All are new and distinct, as most first data are.
            touched, after, before = rows, by, np.zeros(len(rows), np.int64)
        else:
            touched, inverse = np.unique(rows, return_inverse=True)
            after = self.counts[touched]
            before = after - np.bincount(inverse, weights=by, minlength=len(touched)).astype(np.int64)
        self.waiting += int(np.minimum(before, 0).sum() - np.minimum(after, 0).sum())
        crossed = (before > 0) != (after > 0)
        self.stands += int((after > 0).sum() - (before > 0).sum())
        return touched[crossed], after[crossed] > 0

    def relation(self, key: Key, rows: Int64s) -> Relation:
        """Return some rows as a relation."""
        return Relation(key[0], key[1], self.args[:, rows], self.lo[rows], self.hi[rows])

    def standing(self) -> Int64s:
        """Return the numbers of the rows that stand."""
        return np.flatnonzero(self.counts[: self.size] > 0)

    def find(self, position: int, keys: Int64s) -> Int64s:
        """Return the rows that stand and have one of the (distinct) constants at an argument position.

        The first call for a position chains all rows, later ones only those that were added since.
        """
        if position not in self.chains:
            self.chains[position] = _Chains()
        chains = self.chains[position]
        chains.extend(self.args[position], self.size)
        rows = np.empty(max(64, 4 * len(keys)), np.int64)
        while True:
            found = int(gather_chains(chains.first, chains.following, self.counts, keys, rows))
            if found <= len(rows):
                return rows[:found]
            rows = np.empty(found, np.int64)

    def move(self, lo: Times, hi: Times) -> None:
        """Replace all ends."""
        self.lo[: self.size], self.hi[: self.size] = lo, hi
        self._hash_again(len(self.slots))

    def keep(self, mask: NDArray[np.bool_]) -> int:
        """Drop the rows where a mask is false, and return their number; rows are renumbered."""
        dropped = int(np.count_nonzero(~mask))
        if dropped:
            kept = len(mask) - dropped
            for column in (*self.args, self.lo, self.hi, self.counts):
                column[:kept] = column[: self.size][mask]
            self.size = kept
            self.waiting = int(-np.minimum(self.counts[:kept], 0).sum())
            self.stands = int((self.counts[:kept] > 0).sum())
            self.chains.clear()
            self._hash_again(len(self.slots))
        return dropped

    def _make_room(self, more: int) -> None:
        zeros = 0
        if self.size + more > len(self.lo) and self.size >= _FEWEST_DROPPED:
            zeros = self.size - int(np.count_nonzero(self.counts[: self.size]))
            if 2 * zeros > self.size:
                self.keep(self.counts[: self.size] != 0)
        needed = self.size + more
        if needed > len(self.lo):
            # The first facts are taken without spare room, which many relations never need.
            length = needed if not self.size else max(needed, 2 * len(self.lo))
            args = np.empty((len(self.args), length), np.int32)
            args[:, : self.size] = self.args[:, : self.size]
            self.args = args
            self.lo, self.hi, self.counts = (_lengthen(c, length) for c in (self.lo, self.hi, self.counts))
        if 2 * needed > len(self.slots):
            self._hash_again(1 << (2 * needed - 1).bit_length())

    def _hash_again(self, slots: int) -> None:
        self.slots = np.full(slots, -1, np.int32)
        fill_slots(self.slots, self.args, self.lo, self.hi, self.size)


class _Chains:
    """Rows by the constant at one argument position."""

    def __init__(self) -> None:
        self.first: Int32s = np.empty(0, np.int32)
        self.following: Int32s = np.empty(0, np.int32)
        self.size = 0

    def extend(self, column: Int32s, size: int) -> None:
        """Chain the rows that are new."""
        if size == self.size:
            return
        if size > len(self.following):
            self.following = grow_array(self.following, size)
        most = int(column[self.size : size].max())
        if most >= len(self.first):
            known = len(self.first)
            self.first = grow_array(self.first, most + 1)
            self.first[known:] = -1
        chain_rows(self.first, self.following, column, self.size, size)
        self.size = size


def _lengthen(column: Int64s, length: int) -> Int64s:
    longer = np.empty(length, np.int64)
    longer[: len(column)] = column
    return longer


def _coarsen_pairs(lo: Times, hi: Times, factor: int) -> tuple[Times, Times]:
    """Undo `refine_pairs`."""
    open_lo, open_hi = lo & 1, hi & 1
    coarse_lo = np.where(lo == NEG_INF, lo, (lo - open_lo) // factor + open_lo)
    coarse_hi = np.where(hi == POS_INF, hi, (hi + open_hi) // factor - open_hi)
    return coarse_lo, coarse_hi


def _concatenate(several: list[tuple[Relation, int]]) -> tuple[Relation, Int64s]:
    by = np.concatenate([np.full(len(relation), by, np.int64) for relation, by in several])
    relations = [relation for relation, _ in several]
    if len(relations) == 1:
        return relations[0], by
    first = relations[0]
    args = np.concatenate([relation.args for relation in relations], axis=1)
    lo, hi = (np.concatenate([getattr(relation, end) for relation in relations]) for end in ("lo", "hi"))
    return Relation(first.predicate, first.arity, args, lo, hi), by


def apply_deletions(data: Dataset) -> Dataset:
    """Return the facts of a dataset that stand after its deletions; a deletion without a fact changes nothing.

    >>> print(apply_deletions(Dataset.parse("P(a)@1\\nP(a)@1\\nP(b)@2\\n-P(a)@1\\n-P(b)@2\\n-P(c)@3")), end="")
    P(a)@1
    """
    if not has_deletions(data.relations):
        return data
    others: dict[Key, Relation] = {}
    inserted: dict[Key, Relation] = {}
    deleted: dict[Key, Relation] = {}
    concerned = {(strip_mark(name), arity) for name, arity in data.relations if is_deletion(name)}
    for (name, arity), relation in data.relations.items():
        key = strip_mark(name), arity
        target = deleted if is_deletion(name) else inserted if key in concerned else others
        target[key] = Relation(key[0], arity, relation.args, relation.lo, relation.hi)
    rest, given, taken = (
        Dataset(data.symbols, Columns(data.denominator, data.dates, part, data.numbers))
        for part in (others, inserted, deleted)
    )
    ledger = Ledger()
    ledger.apply(insert=given, delete=taken)
    return rest | ledger.standing()
