"""The facts that the engine holds: flat arrays that the plan machine reads and writes.

An atom is a row of `atoms` (predicate, where its arguments and intervals stand); its intervals are sorted, coalesced
and lie in one block of the pool `iv`. One hash table finds atoms, one finds the entries of all indexes: an index of a
predicate groups its atoms by the arguments at some positions, and an index by no position lists them all. Arrays
double when they are full; what refers into them are numbers, so nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.opcodes import Code
from tidelog.engine import agenda, join_kernels, plan_machine, retention, store_tables
from tidelog.engine.array_room import copy_agenda, copy_used, enlarge, leave_room
from tidelog.engine.atom_links import AtomLinks
from tidelog.engine.maximal_intervals import coalesce
from tidelog.numeric.rows import Rows as Rows
from tidelog.numeric.rows import has_few_atoms
from tidelog.timeline.grid import NEG_INF, POS_INF

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

#: Records that go through the machine at once, with everything that follows from them: enough that the call
#: costs little, few enough that their atoms stay in the processor's cache.
BATCH = 1 << 11
#: Rows that are packed into a queue at once where no plan is run for them.
LOAD_BATCH = 1 << 15

#: A queue with more words than this is not kept for the next time.
_LONGEST_SPARE = 1 << 20

#: Room of a new store: enough for small problems, since each array that is full interrupts compiled code.
_FIRST_ATOMS = 512
_ATOMS, _IV = np.zeros((_FIRST_ATOMS, 5), np.int32), np.zeros((_FIRST_ATOMS, 2), np.int64)
_COUNTS = [store_tables.N_ATOMS, store_tables.N_ARGS, store_tables.N_IV, store_tables.N_ENTRIES]


class AllowanceExceeded(Exception):
    """The machine took more records than it was allowed to."""


class Store:
    """Facts of numbered predicates, and the machine that derives more."""

    def __init__(self, arities: list[int], dense: bool, ranks: Int64s) -> None:
        self.dense = dense
        self.ranks = ranks
        self.preds: store_tables.Array = np.zeros((len(arities), store_tables.PRED_SIZE), np.int64)
        self.preds[:, store_tables.ARITY] = arities
        self.preds[:, store_tables.LATEST] = NEG_INF
        self.indexes: list[tuple[int, tuple[int, ...]]] = []
        self.index_list: store_tables.Array = np.zeros(1, np.int64)
        self.index_table: store_tables.Array = np.zeros((1, max(arities, default=0) + 1), np.int64)
        self.atoms: store_tables.Array = _ATOMS.copy()
        self.args: store_tables.Array = np.zeros(4 * _FIRST_ATOMS, np.int32)
        self.table: store_tables.Array = np.full(2 * _FIRST_ATOMS, -1, np.int32)
        self.entries: store_tables.Array = np.zeros((_FIRST_ATOMS, 2), np.int32)
        self.keys: store_tables.Array = np.full((2 * _FIRST_ATOMS, 2), -1, np.int32)
        self.iv: store_tables.Array = _IV.copy()
        self.meta: store_tables.Array = np.zeros(store_tables.META_SIZE, np.int64)
        self.meta[store_tables.FREE :] = -1
        self.meta[store_tables.NEXT_DUE] = POS_INF
        self.scratch: store_tables.Array = np.zeros((7, 16), np.int64)
        self.pieces: store_tables.Array = np.zeros((16, 2), np.int64)
        self.horizon = (NEG_INF, POS_INF)
        self.allowance = 1 << 62
        #: Deferred records, which lie beyond the horizon, and their end.
        self.later: store_tables.Array = np.empty(64, np.int64)
        self.later_end = 0
        self.agenda = agenda.empty()
        #: New pieces of intervals of logged predicates: atom, first and last position.
        self.log: store_tables.Array = np.zeros((1, 3), np.int64)
        self.links = AtomLinks()
        self.resumed: store_tables.Array = np.zeros(5, np.int64)
        self.ahead: store_tables.Array = np.zeros((store_tables.AHEAD, 2), np.int64)
        #: A queue that is not in use, of the length that was needed before.
        self.spare: store_tables.Array | None = None

    def reset_clipped(self) -> None:
        """Forget that something was cut."""
        self.meta[[store_tables.CLIPPED_LO, store_tables.CLIPPED_HI]] = 0

    @property
    def clipped(self) -> tuple[bool, bool]:
        """Whether something derived was cut at the left and at the right end of the horizon."""
        return bool(self.meta[store_tables.CLIPPED_LO]), bool(self.meta[store_tables.CLIPPED_HI])

    @property
    def taken(self) -> int:
        """The number of records that the machine has taken so far."""
        return int(self.meta[store_tables.TAKEN])

    @property
    def news(self) -> int:
        """The number of pieces of intervals that were new so far."""
        return int(self.meta[store_tables.NEWS])

    def size(self, pred: int) -> int:
        """Return the number of atoms of a predicate."""
        return int(self.preds[pred, store_tables.SIZE])

    def nbytes(self) -> int:
        """Return the bytes in use by facts, hash tables and indexes."""
        meta = self.meta
        widths = np.array([self.atoms[0].nbytes, 4, 16, 8])
        return int(widths @ meta[_COUNTS]) + self.table.nbytes + self.keys.nbytes

    def index(self, pred: int, positions: tuple[int, ...]) -> int:
        """Return the number of an index, and make it first if needed."""
        if (pred, positions) in self.indexes:
            return self.indexes.index((pred, positions))
        self.indexes.append((pred, positions))
        number = len(self.indexes) - 1
        table = np.zeros((number + 1, self.index_table.shape[1]), np.int64)
        table[:number] = self.index_table[:number]
        table[number, 0] = len(positions)
        table[number, 1 : 1 + len(positions)] = positions
        self.index_table = table
        by_pred = sorted(range(number + 1), key=lambda i: self.indexes[i][0])
        self.index_list = np.array(by_pred, np.int64)
        self.preds[:, store_tables.N_INDEXES] = 0
        for place, i in enumerate(by_pred):
            owner = self.indexes[i][0]
            if self.preds[owner, store_tables.N_INDEXES] == 0:
                self.preds[owner, store_tables.INDEXES] = place
            self.preds[owner, store_tables.N_INDEXES] += 1
        self.make_room(entries=self.size(pred))
        store_tables.index_all(
            pred, number, self.index_table, self.atoms, self.args, self.entries, self.keys, self.meta
        )
        return number

    def insert(self, pred: int, rows: Rows, code: Code | None = None, transient: bool = False) -> None:
        """Insert rows; with plans, derive everything that follows from each as it arrives."""
        batch = BATCH if code else LOAD_BATCH
        code = code or make_empty_code(len(self.preds))
        self.preds[pred, store_tables.TRANSIENT] = transient
        if not transient:
            self.make_room(atoms=min(len(rows), 1 << 20), args=min(len(rows), 1 << 20) * rows.args.shape[0])
        if len(rows) > BATCH and has_few_atoms(rows):
            order = np.argsort(rows.lo, kind="stable")
            rows = Rows(rows.args[:, order], rows.lo[order], rows.hi[order])
        width = 3 + rows.args.shape[0]
        queue = np.empty(max(1, min(batch, len(rows))) * width, np.int64)
        columns = np.ascontiguousarray(rows.args, np.int32)
        for first in range(0, len(rows), batch):
            last = min(first + batch, len(rows))
            end = store_tables.pack(pred, columns, rows.lo, rows.hi, first, last, queue, 0)
            self.work(code, queue, end)
        self.preds[pred, store_tables.TRANSIENT] = False

    def evaluate(self, plans: list[int], code: Code, windows: list[tuple[int, int]] | None = None) -> None:
        """Evaluate whole plans, each at all times or in its window, and everything that their results trigger."""
        if plans:
            windows = windows or [(NEG_INF, POS_INF)] * len(plans)
            records = [word for plan, window in zip(plans, windows, strict=True) for word in (-1 - plan, *window, -1)]
            self.work(code, np.array(records, np.int64), len(records))

    def work(self, code: Code, queue: Int64s, end: int) -> None:
        """Work a queue off, with everything that follows from it."""
        spare, self.spare = self.spare, None
        position, following, following_end = 0, np.empty(4096, np.int64) if spare is None else spare, 0
        own = following
        while True:
            status, turned, position, end, following_end, self.later_end = plan_machine.run(
                code,
                self.tables(code),
                *self.horizon,
                self.dense,
                queue,
                position,
                end,
                following,
                following_end,
                self.later,
                self.later_end,
                self.allowance,
            )
            if turned:
                queue, following = following, queue
            if status == join_kernels.DONE:
                # The other queue may be a part of a longer one.
                self.spare = own if len(own) <= _LONGEST_SPARE else None
                return
            if status == join_kernels.TIRED:
                self.resumed[0] = 0
                raise AllowanceExceeded
            if status == join_kernels.EVALUATED:
                self._work_by_batches(code, following, following_end)
                return
            if status == join_kernels.NO_ROOM:
                following = own = store_tables.double_queue(following)
            elif status == join_kernels.NO_ROOM_LATER:
                self.later = store_tables.double_queue(self.later)
            else:
                self.grow()

    def _work_by_batches(self, code: Code, queue: Int64s, end: int) -> None:
        """Work a long queue off in batches, each with everything that follows: related facts then stay in the cache."""
        first = 0
        while first < end:
            last = store_tables.after_records(queue, first, end, BATCH, self.preds)
            self.work(code, queue[first:last], last - first)
            first = last

    def rows(self, pred: int) -> Rows:
        """Return all known intervals of a predicate."""
        return self._unpack(pred, store_tables.find_atoms(pred, self.atoms, self.meta[store_tables.N_ATOMS]))

    def rows_by_predicate(self, preds: Iterable[int]) -> list[Rows]:
        """Return all known intervals of each of many predicates, in one pass over the atoms."""
        owners = self.atoms[: self.meta[store_tables.N_ATOMS], store_tables.PRED]
        # numpy sorts 16-bit numbers by counting, in one pass.
        order = np.argsort(owners.astype(np.uint16) if len(self.preds) < 1 << 16 else owners, kind="stable")
        ends = np.cumsum(np.bincount(owners, minlength=len(self.preds)))
        return [self._unpack(pred, order[ends[pred - 1] if pred else 0 : ends[pred]]) for pred in preds]

    def _unpack(self, pred: int, found: Int64s) -> Rows:
        """Return the intervals of some atoms of a predicate as rows."""
        count = int(self.atoms[found, store_tables.LENGTH].sum())
        args = np.empty((int(self.preds[pred, store_tables.ARITY]), count), np.int32)
        lo, hi = np.empty(count, np.int64), np.empty(count, np.int64)
        store_tables.unpack(found, self.preds, self.atoms, self.args, self.iv, args, lo, hi)
        return Rows(args, lo, hi)

    def tables(self, code: Code) -> store_tables.Tables:
        """Return the arrays as they are now, with enough scratch space to run the plans."""
        if code.width >= self.scratch.shape[1]:
            self.scratch = np.zeros((7, code.width + 1), np.int64)
        return store_tables.Tables(
            self.preds,
            self.index_list,
            self.index_table,
            self.atoms,
            self.args,
            self.table,
            self.entries,
            self.keys,
            self.iv,
            self.meta,
            self.ranks,
            self.scratch,
            self.pieces,
            self.agenda,
            self.log,
            *self.links.fit(self.atoms),
            self.resumed,
            self.ahead,
        )

    def take_log(self) -> dict[int, Rows]:
        """Return the logged pieces by predicate, and empty the log."""
        atoms, lo, hi = self.log[1 : int(self.log[0, 0]) + 1].T
        self.log[0, 0] = 0
        predicates = self.atoms[atoms, store_tables.PRED]
        found = {}
        for pred in np.unique(predicates).tolist():
            mine = predicates == pred
            places = self.atoms[atoms[mine], store_tables.ARGS]
            arity = int(self.preds[pred, store_tables.ARITY])
            args = self.args[places + np.arange(arity).reshape(-1, 1)].astype(np.int32)
            found[pred] = Rows(args, lo[mine].copy(), hi[mine].copy())
        return found

    def copy(self) -> Store:
        """Return an independent copy."""
        other, meta = copy(self), self.meta
        for name in ("preds", "table", "keys", "meta", "log"):
            setattr(other, name, getattr(self, name).copy())
        for name, count in zip(("atoms", "args", "iv", "entries"), meta[_COUNTS].tolist(), strict=True):
            setattr(other, name, copy_used(getattr(self, name), count))
        other.later, other.links = copy_used(self.later, self.later_end), AtomLinks()
        other.agenda = copy_agenda(self.agenda, int(meta[store_tables.N_ATOMS]))
        return other

    def watch(self, watched: Mapping[int, int]) -> None:
        """Watch predicates for purposes of the agenda (bits), and schedule all their atoms."""
        self.preds[:, store_tables.WATCHED] = [watched.get(pred, 0) for pred in range(len(self.preds))]
        self._look_at_everything()

    def _look_at_everything(self) -> None:
        if self.preds[:, store_tables.WATCHED].any():
            self.agenda = agenda.ensure_room(self.agenda, len(self.atoms))
            predicates = self.atoms[: self.meta[store_tables.N_ATOMS], store_tables.PRED]
            agenda.schedule_all(self.agenda, self.preds[predicates, store_tables.WATCHED])

    def compact(self) -> None:
        """Remove atoms that hold nowhere, and free their space."""
        meta = self.meta
        atoms, args, intervals = retention.measure(self.atoms, self.iv, meta, self.preds)
        n_atoms, n_args, n_iv = (int(meta[at]) for at in (store_tables.N_ATOMS, store_tables.N_ARGS, store_tables.N_IV))
        new_atoms = np.zeros((leave_room(atoms, n_atoms), self.atoms.shape[1]), np.int32)
        new_args = np.zeros(leave_room(args, n_args) + 192, np.int32)
        new_iv = np.zeros((leave_room(intervals, n_iv), 2), np.int64)
        retention.move(self.atoms, self.args, self.iv, meta, self.preds, new_atoms, new_args, new_iv)
        self.atoms, self.args, self.iv = new_atoms, new_args, new_iv
        meta[store_tables.N_ATOMS], meta[store_tables.N_ARGS], meta[store_tables.N_IV] = atoms, args, intervals
        meta[store_tables.FREE :] = -1
        self.preds[:, store_tables.SIZE] = np.bincount(new_atoms[:atoms, store_tables.PRED], minlength=len(self.preds))
        self.rebuild_tables()

    def deferred(self) -> dict[int, Rows]:
        """Return the records that wait for their time, as rows by predicate."""
        places = np.empty(self.later_end // 3, np.int64)
        places = places[: int(retention.find_waiting(self.later, self.later_end, self.preds, places))]
        predicates = self.later[places]
        found = {}
        for pred in dict.fromkeys(predicates.tolist()):
            where = places[predicates == pred]
            arity = int(self.preds[pred, store_tables.ARITY])
            args = self.later[where + 3 + np.arange(arity).reshape(-1, 1)].astype(np.int32)
            found[pred] = Rows(args, self.later[where + 1], self.later[where + 2])
        return found

    def defer(self, waiting: Mapping[int, Rows]) -> None:
        """Set the records that wait for their time; those of one atom that touch are merged."""
        merged = {pred: coalesce(rows) for pred, rows in waiting.items()}
        self.later = np.empty(sum((3 + len(rows.args)) * len(rows) for rows in merged.values()) + 64, np.int64)
        self.later_end = 0
        for pred, rows in merged.items():
            self.later_end = int(
                store_tables.pack(pred, rows.args, rows.lo, rows.hi, 0, len(rows), self.later, self.later_end)
            )

    def held(self) -> dict[str, NDArray[Any]]:
        """Return all facts and deferred records as arrays, from which `put` makes the same store."""
        meta = self.meta
        if meta[store_tables.N_IV] > 2 * meta[store_tables.HELD] + 1024:
            self.compact()
        intervals = self.iv[: meta[store_tables.N_IV]].copy()
        store_tables.end_standing_intervals(self.atoms, meta[store_tables.N_ATOMS], self.preds, intervals)
        return {
            "atoms": self.atoms[: meta[store_tables.N_ATOMS]],
            "args": self.args[: meta[store_tables.N_ARGS]],
            "iv": intervals,
            "meta": meta,
            "latest": self.preds[:, store_tables.LATEST],
            "indexes": np.array([[pred, *positions] for pred, positions in self._pad_indexes()], np.int64),
            "table": self.table,
            "entries": self.entries[: meta[store_tables.N_ENTRIES]],
            "keys": self.keys,
            "later": self.later[: self.later_end],
        }

    def _pad_indexes(self) -> list[tuple[int, list[int]]]:
        """Return the indexes, all padded to one length."""
        longest = max((len(positions) for _, positions in self.indexes), default=0)
        return [(pred, [len(p), *p, *([-1] * (longest - len(p)))]) for pred, p in self.indexes]

    def put(self, held: Mapping[str, NDArray[Any]], ids: Int32s | None) -> None:
        """Take over the facts of another store of the same predicates, with new numbers for its constants, if any."""
        self.atoms, self.iv = (np.concatenate([held[name], room]) for name, room in (("atoms", _ATOMS), ("iv", _IV)))
        args = held["args"] if ids is None else ids[held["args"]]
        self.args = np.concatenate([args, np.zeros(256, np.int32)])
        self.meta = held["meta"].copy()
        atoms = held["atoms"]
        self.preds[:, store_tables.LATEST] = held["latest"]
        self.preds[:, store_tables.SIZE] = np.bincount(atoms[:, store_tables.PRED], minlength=len(self.preds))
        self.later, self.later_end = np.append(held["later"], 0), len(held["later"])
        mine = np.array([[pred, *positions] for pred, positions in self._pad_indexes()], np.int64)
        if ids is not None:
            retention.renumber_waiting(self.later, self.later_end, self.preds, ids)
        if ids is None and np.array_equal(mine, held["indexes"]):
            self.table, self.keys = held["table"], held["keys"]
            self.entries = np.concatenate([held["entries"], np.zeros((64, 2), np.int32)])
        else:
            self._rehash()
        self._look_at_everything()

    def constants(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first `count` constants occur in facts or waiting records."""
        used = np.zeros(count, np.bool_)
        used[self.args[: self.meta[store_tables.N_ARGS]]] = True
        retention.mark_waiting(self.later, self.later_end, self.preds, used)
        return used

    def renumber(self, ids: Int32s) -> None:
        """Give constants new numbers."""
        n_args = self.meta[store_tables.N_ARGS]
        self.args[:n_args] = ids[self.args[:n_args]]
        retention.renumber_waiting(self.later, self.later_end, self.preds, ids)
        self._rehash()

    def rebuild_tables(self) -> None:
        """Fill the hash tables anew, and schedule all atoms."""
        self._rehash()
        self._look_at_everything()

    def _rehash(self) -> None:
        """Fill the hash tables anew."""
        meta = self.meta
        n_atoms = int(meta[store_tables.N_ATOMS])
        self.table = np.full(1 << (len(self.atoms) * 4 // 3).bit_length(), -1, np.int32)
        store_tables.enter_atoms(0, n_atoms, self.atoms, self.args, self.preds, self.table)
        need = leave_room(sum(self.size(pred) for pred, _ in self.indexes), int(meta[store_tables.N_ENTRIES]))
        meta[[store_tables.N_ENTRIES, store_tables.N_KEYS]] = 0
        self.entries = np.zeros((need, 2), np.int32)
        self.keys = np.full((1 << (2 * need - 1).bit_length(), 2), -1, np.int32)
        for number, (pred, _) in enumerate(self.indexes):
            store_tables.index_all(pred, number, self.index_table, self.atoms, self.args, self.entries, self.keys, meta)

    def grow(self) -> None:
        """Enlarge arrays that are full, for any next record, and nearly full ones: each interrupts compiled code."""
        meta = self.meta
        longest = int(self.atoms[: meta[store_tables.N_ATOMS], store_tables.LENGTH].max(initial=0))
        if longest + 1 > len(self.pieces):
            self.pieces = np.zeros((2 * longest + 16, 2), np.int64)
        if self.preds[:, store_tables.LOGGED].any():
            self.log = enlarge(self.log, int(self.log[0, 0]) + longest + 1024)
        self.make_room(*(meta[_COUNTS] // 8 + [0, 0, 2 * longest + 2, 0]).tolist())

    def make_room(self, atoms: int = 0, args: int = 0, iv: int = 0, entries: int = 0) -> None:
        """Make room for this many more of each."""
        meta = self.meta
        n_atoms = int(meta[store_tables.N_ATOMS])
        self.atoms = enlarge(self.atoms, n_atoms + atoms + 2)
        if len(self.agenda.flags):
            self.agenda = agenda.ensure_room(self.agenda, len(self.atoms))
        self.args = enlarge(self.args, int(meta[store_tables.N_ARGS]) + args + len(self.index_table[0]))
        self.iv = enlarge(self.iv, int(meta[store_tables.N_IV]) + max(iv, atoms) + 2)
        self.entries = enlarge(self.entries, int(meta[store_tables.N_ENTRIES]) + entries + len(self.indexes))
        if 4 * (n_atoms + atoms + 2) > 3 * len(self.table):
            size = 1 << ((n_atoms + atoms + 2) * 4 // 3).bit_length()
            self.table = np.full(size, -1, np.int32)
            store_tables.enter_atoms(0, n_atoms, self.atoms, self.args, self.preds, self.table)
        need = 2 * (int(meta[store_tables.N_KEYS]) + entries + len(self.indexes) + 2)
        if need > len(self.keys):
            old, self.keys = self.keys, np.full((1 << (need - 1).bit_length(), 2), -1, np.int32)
            store_tables.rehash_keys(old, self.atoms, self.args, self.entries, self.index_table, self.keys)


def make_empty_code(n_preds: int) -> Code:
    """Return plans that derive nothing."""
    zeros = np.zeros(n_preds + 1, np.int64)
    return Code(np.zeros(1, np.int64), np.zeros(1, np.int64), zeros, np.zeros((1, 4), np.int64), 64)
