"""The facts that the engine holds: flat arrays that the plan machine reads and writes.

An atom is a row of `atoms` (predicate, where its arguments and intervals stand); its intervals are sorted, coalesced
and lie in one block of the pool `iv`. One hash table finds atoms, one finds the entries of all indexes: an index of a
predicate groups its atoms by the arguments at some positions, and an index by no position lists them all. Arrays
double when they are full; what refers into them are numbers, so nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.engine import agenda, machine, tables, window
from tidelog.engine.machine import Code
from tidelog.timeline.grid import NEG_INF, POS_INF

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

#: Records that go through the machine at once, with all that follows from them: enough that a call costs nothing, few
#: enough that the atoms that they concern stay in the cache.
BATCH = 1 << 11
#: Rows that are packed into a queue at once where nothing follows from them.
LOAD_BATCH = 1 << 15


@dataclass(frozen=True, slots=True)
class Rows:
    """Intervals of one predicate's atoms: `args[k, i]` is argument k of row i, which holds on `[lo[i], hi[i]]`."""

    args: Int32s
    lo: Int64s
    hi: Int64s

    def __len__(self) -> int:
        return len(self.lo)

    @staticmethod
    def empty(arity: int) -> Rows:
        return Rows(np.empty((arity, 0), np.int32), np.empty(0, np.int64), np.empty(0, np.int64))

    @staticmethod
    def joined(parts: list[Rows], arity: int) -> Rows:
        if not parts:
            return Rows.empty(arity)
        if len(parts) == 1:
            return parts[0]
        return Rows(
            np.concatenate([p.args for p in parts], axis=1),
            np.concatenate([p.lo for p in parts]),
            np.concatenate([p.hi for p in parts]),
        )

    def clipped(self, lo: int, hi: int) -> Rows:
        """The part inside [lo,hi]; ends that were cut are now at the border."""
        if not len(self) or (self.lo.min() >= lo and self.hi.max() <= hi):
            return self
        new_lo, new_hi = np.maximum(self.lo, lo), np.minimum(self.hi, hi)
        keep = new_lo <= new_hi
        return Rows(self.args[:, keep], new_lo[keep], new_hi[keep])

    def where(self, keep: NDArray[np.bool_]) -> Rows:
        return Rows(self.args[:, keep], self.lo[keep], self.hi[keep])


_ATOMS, _IV = np.zeros((64, 5), np.int32), np.zeros((64, 2), np.int64)


class Tired(Exception):
    """The machine took more records than it was allowed to."""


class Store:
    """Facts of numbered predicates, and the machine that derives more."""

    def __init__(self, arities: list[int], dense: bool, ranks: Int64s) -> None:
        self.dense = dense
        self.ranks = ranks
        self.preds: tables.Array = np.zeros((len(arities), tables.PRED_SIZE), np.int64)
        self.preds[:, tables.ARITY] = arities
        self.preds[:, tables.LATEST] = NEG_INF
        self.indexes: list[tuple[int, tuple[int, ...]]] = []
        self.index_list: tables.Array = np.zeros(1, np.int64)
        self.index_table: tables.Array = np.zeros((1, max(arities, default=0) + 1), np.int64)
        self.atoms: tables.Array = _ATOMS.copy()
        self.args: tables.Array = np.zeros(256, np.int32)
        self.table: tables.Array = np.full(128, -1, np.int32)
        self.entries: tables.Array = np.zeros((64, 2), np.int32)
        self.keys: tables.Array = np.full((128, 2), -1, np.int32)
        self.iv: tables.Array = _IV.copy()
        self.meta: tables.Array = np.zeros(tables.META_SIZE, np.int64)
        self.meta[tables.FREE :] = -1
        self.meta[tables.NEXT_DUE] = POS_INF
        self.scratch: tables.Array = np.zeros((7, 16), np.int64)
        self.pieces: tables.Array = np.zeros((16, 2), np.int64)
        self.horizon = (NEG_INF, POS_INF)
        self.allowance = 1 << 62
        #: Records that lie beyond the horizon, and where they end.
        self.later: tables.Array = np.empty(64, np.int64)
        self.later_end = 0
        self.agenda = agenda.empty()

    def unclip(self) -> None:
        """Forgets that something was cut."""
        self.meta[[tables.CLIPPED_LO, tables.CLIPPED_HI]] = 0

    @property
    def clipped(self) -> tuple[bool, bool]:
        """Whether something derived was cut at the left and at the right end of the horizon."""
        return bool(self.meta[tables.CLIPPED_LO]), bool(self.meta[tables.CLIPPED_HI])

    @property
    def taken(self) -> int:
        """How many records the machine has taken so far."""
        return int(self.meta[tables.TAKEN])

    @property
    def news(self) -> int:
        """How many parts of intervals were new so far."""
        return int(self.meta[tables.NEWS])

    def size(self, pred: int) -> int:
        """The number of atoms of a predicate."""
        return int(self.preds[pred, tables.SIZE])

    def nbytes(self) -> int:
        """What the facts take, with all tables, as far as it is in use."""
        meta = self.meta
        used = meta[tables.N_ATOMS] * self.atoms[0].nbytes + meta[tables.N_ARGS] * 4 + meta[tables.N_IV] * 16
        return int(used + meta[tables.N_ENTRIES] * 8) + self.table.nbytes + self.keys.nbytes

    def index(self, pred: int, positions: tuple[int, ...]) -> int:
        """The number of an index, which is made where it is not there yet."""
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
        self.preds[:, tables.N_INDEXES] = 0
        for place, i in enumerate(by_pred):
            owner = self.indexes[i][0]
            if self.preds[owner, tables.N_INDEXES] == 0:
                self.preds[owner, tables.INDEXES] = place
            self.preds[owner, tables.N_INDEXES] += 1
        self._room(entries=self.size(pred))
        tables.index_all(pred, number, self.index_table, self.atoms, self.args, self.entries, self.keys, self.meta)
        return number

    def insert(self, pred: int, rows: Rows, code: Code | None = None, transient: bool = False) -> None:
        """Takes rows in; with plans, derives what follows from each as it comes."""
        batch = BATCH if code else LOAD_BATCH
        code = code or _nothing(len(self.preds))
        self.preds[pred, tables.TRANSIENT] = transient
        if not transient:
            self._room(atoms=min(len(rows), 1 << 20), args=min(len(rows), 1 << 20) * rows.args.shape[0])
        if len(rows) > BATCH and _crowded(rows):
            order = np.argsort(rows.lo, kind="stable")
            rows = Rows(rows.args[:, order], rows.lo[order], rows.hi[order])
        width = 3 + rows.args.shape[0]
        queue = np.empty(max(1, min(batch, len(rows))) * width, np.int64)
        columns = np.ascontiguousarray(rows.args, np.int32)
        for first in range(0, len(rows), batch):
            last = min(first + batch, len(rows))
            end = tables.pack(pred, columns, rows.lo, rows.hi, first, last, queue, 0)
            self.work(code, queue, end)
        self.preds[pred, tables.TRANSIENT] = False

    def evaluate(self, plans: list[int], code: Code, windows: list[tuple[int, int]] | None = None) -> None:
        """Evaluates whole plans, each at all times or in its window, and what their results trigger."""
        if plans:
            windows = windows or [(NEG_INF, POS_INF)] * len(plans)
            records = [word for plan, window in zip(plans, windows, strict=True) for word in (-1 - plan, *window, -1)]
            self.work(code, np.array(records, np.int64), len(records))

    def work(self, code: Code, queue: Int64s, end: int) -> None:
        """Works a queue off, with all that follows from it."""
        position, following, following_end = 0, np.empty(4096, np.int64), 0
        while True:
            status, queue, position, end, following, following_end, self.later, self.later_end = machine.run(
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
            if status == machine.DONE:
                return
            if status == machine.TIRED:
                raise Tired
            if status == machine.EVALUATED:
                self._work_by_batches(code, following, following_end)
                return
            self.grow()

    def _work_by_batches(self, code: Code, queue: Int64s, end: int) -> None:
        """Works a long queue off, each batch of it with all that follows, since what is near then stays near."""
        first = 0
        while first < end:
            last = tables.after_records(queue, first, end, BATCH, self.preds)
            self.work(code, queue[first:last], last - first)
            first = last

    def rows(self, pred: int) -> Rows:
        """All that is known of a predicate."""
        n_atoms = self.meta[tables.N_ATOMS]
        count = tables.count_intervals(pred, self.atoms, n_atoms)
        args = np.empty((int(self.preds[pred, tables.ARITY]), count), np.int32)
        lo, hi = np.empty(count, np.int64), np.empty(count, np.int64)
        tables.unpack(pred, self.atoms, n_atoms, self.args, self.iv, args, lo, hi)
        return Rows(args, lo, hi)

    def tables(self, code: Code) -> tables.Tables:
        """The arrays as they are now, with room for what the machine notes while it runs some plans."""
        if code.width >= self.scratch.shape[1]:
            self.scratch = np.zeros((7, code.width + 1), np.int64)
        return tables.Tables(
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
        )

    def copy(self) -> Store:
        """The same facts, free to change."""
        other = copy(self)
        for name in ("preds", "atoms", "args", "table", "entries", "keys", "iv", "meta", "later"):
            setattr(other, name, getattr(self, name).copy())
        other.agenda = agenda.Agenda(*(array.copy() for array in self.agenda))
        return other

    def watch(self, watched: Mapping[int, int]) -> None:
        """Watches predicates for matters of the agenda (bits); all that is known of them is to be looked at."""
        self.preds[:, tables.WATCHED] = [watched.get(pred, 0) for pred in range(len(self.preds))]
        self._look_at_everything()

    def _look_at_everything(self) -> None:
        if self.preds[:, tables.WATCHED].any():
            self.agenda = agenda.with_room(self.agenda, len(self.atoms))
            predicates = self.atoms[: self.meta[tables.N_ATOMS], tables.PRED]
            agenda.everything(self.agenda, self.preds[predicates, tables.WATCHED])

    def compact(self) -> None:
        """Leaves atoms behind that hold nowhere, and gives their room back."""
        meta = self.meta
        atoms, args, intervals = window.measure(self.atoms, self.iv, meta, self.preds)
        new_atoms = np.zeros((atoms + 64, self.atoms.shape[1]), np.int32)
        new_args = np.zeros(args + 256, np.int32)
        new_iv = np.zeros((intervals + 64, 2), np.int64)
        window.move(self.atoms, self.args, self.iv, meta, self.preds, new_atoms, new_args, new_iv)
        self.atoms, self.args, self.iv = new_atoms, new_args, new_iv
        meta[tables.N_ATOMS], meta[tables.N_ARGS], meta[tables.N_IV] = atoms, args, intervals
        meta[tables.FREE :] = -1
        self.preds[:, tables.SIZE] = np.bincount(new_atoms[:atoms, tables.PRED], minlength=len(self.preds))
        self._rehash()
        self._look_at_everything()

    def deferred(self) -> dict[int, Rows]:
        """The records that wait for their time, as rows by predicate."""
        places: dict[int, list[int]] = {}
        arities, at = self.preds[:, tables.ARITY], 0
        while at < self.later_end:
            pred = int(self.later[at])
            places.setdefault(pred, []).append(at)
            at += 3 + int(arities[pred])
        found = {}
        for pred, starts in places.items():
            where = np.array(starts)
            args = self.later[where + 3 + np.arange(arities[pred]).reshape(-1, 1)].astype(np.int32)
            found[pred] = Rows(args, self.later[where + 1], self.later[where + 2])
        return found

    def defer(self, waiting: Mapping[int, Rows]) -> None:
        """Makes these the records that wait for their time, those of one atom that meet as one."""
        merged = {pred: coalesced(rows) for pred, rows in waiting.items()}
        self.later = np.empty(sum((3 + len(rows.args)) * len(rows) for rows in merged.values()) + 64, np.int64)
        self.later_end = 0
        for pred, rows in merged.items():
            self.later_end = int(
                tables.pack(pred, rows.args, rows.lo, rows.hi, 0, len(rows), self.later, self.later_end)
            )

    def held(self) -> dict[str, NDArray[Any]]:
        """All facts and deferred records, from which `put` makes the same store."""
        meta = self.meta
        if meta[tables.N_IV] > 2 * meta[tables.HELD] + 1024:
            self.compact()
        return {
            "atoms": self.atoms[: meta[tables.N_ATOMS]],
            "args": self.args[: meta[tables.N_ARGS]],
            "iv": self.iv[: meta[tables.N_IV]],
            "meta": meta,
            "latest": self.preds[:, tables.LATEST],
            "indexes": np.array([[pred, *positions] for pred, positions in self._padded()], np.int64),
            "table": self.table,
            "entries": self.entries[: meta[tables.N_ENTRIES]],
            "keys": self.keys,
            "later": self.later[: self.later_end],
        }

    def _padded(self) -> list[tuple[int, list[int]]]:
        """The indexes, all of one length."""
        longest = max((len(positions) for _, positions in self.indexes), default=0)
        return [(pred, [len(p), *p, *([-1] * (longest - len(p)))]) for pred, p in self.indexes]

    def put(self, held: Mapping[str, NDArray[Any]], ids: Int32s | None) -> None:
        """Takes over what another store of the same predicates held, with other numbers for its constants, if any."""
        self.atoms, self.iv = (np.concatenate([held[name], room]) for name, room in (("atoms", _ATOMS), ("iv", _IV)))
        args = held["args"] if ids is None else ids[held["args"]]
        self.args = np.concatenate([args, np.zeros(256, np.int32)])
        self.meta = held["meta"].copy()
        atoms = held["atoms"]
        self.preds[:, tables.LATEST] = held["latest"]
        self.preds[:, tables.SIZE] = np.bincount(atoms[:, tables.PRED], minlength=len(self.preds))
        self.later, self.later_end = np.append(held["later"], 0), len(held["later"])
        mine = np.array([[pred, *positions] for pred, positions in self._padded()], np.int64)
        if ids is not None:
            window.renumber_waiting(self.later, self.later_end, self.preds, ids)
        if ids is None and np.array_equal(mine, held["indexes"]):
            self.table, self.keys = held["table"], held["keys"]
            self.entries = np.concatenate([held["entries"], np.zeros((64, 2), np.int32)])
        else:
            self._rehash()
        self._look_at_everything()

    def constants(self, count: int) -> NDArray[np.bool_]:
        """Which of so many constants there are in facts, and in records that wait."""
        used = np.zeros(count, np.bool_)
        used[self.args[: self.meta[tables.N_ARGS]]] = True
        window.mark_waiting(self.later, self.later_end, self.preds, used)
        return used

    def renumber(self, ids: Int32s) -> None:
        """Gives constants other numbers."""
        n_args = self.meta[tables.N_ARGS]
        self.args[:n_args] = ids[self.args[:n_args]]
        window.renumber_waiting(self.later, self.later_end, self.preds, ids)
        self._rehash()

    def _rehash(self) -> None:
        """Fills the hash tables anew."""
        meta = self.meta
        n_atoms = int(meta[tables.N_ATOMS])
        self.table = np.full(1 << ((n_atoms + 64) * 4 // 3).bit_length(), -1, np.int32)
        tables.rehash_atoms(self.atoms, self.args, self.preds, n_atoms, self.table)
        meta[[tables.N_ENTRIES, tables.N_KEYS]] = 0
        need = sum(self.size(pred) for pred, _ in self.indexes) + 64
        self.entries = np.zeros((need, 2), np.int32)
        self.keys = np.full((1 << (2 * need - 1).bit_length(), 2), -1, np.int32)
        for number, (pred, _) in enumerate(self.indexes):
            tables.index_all(pred, number, self.index_table, self.atoms, self.args, self.entries, self.keys, meta)

    def grow(self) -> None:
        """Makes what is full larger, so that there is room for what comes next, whatever it is."""
        meta = self.meta
        longest = int(self.atoms[: meta[tables.N_ATOMS], tables.LENGTH].max(initial=0))
        if longest + 1 > len(self.pieces):
            self.pieces = np.zeros((2 * longest + 16, 2), np.int64)
        self._room(iv=2 * longest + 2)

    def _room(self, atoms: int = 0, args: int = 0, iv: int = 0, entries: int = 0) -> None:
        """Makes room for so many more of each."""
        meta = self.meta
        n_atoms = int(meta[tables.N_ATOMS])
        self.atoms = _larger(self.atoms, n_atoms + atoms + 2)
        if len(self.agenda.flags):
            self.agenda = agenda.with_room(self.agenda, len(self.atoms))
        self.args = _larger(self.args, int(meta[tables.N_ARGS]) + args + len(self.index_table[0]))
        self.iv = _larger(self.iv, int(meta[tables.N_IV]) + max(iv, atoms) + 2)
        self.entries = _larger(self.entries, int(meta[tables.N_ENTRIES]) + entries + len(self.indexes))
        if 4 * (n_atoms + atoms + 2) > 3 * len(self.table):
            size = 1 << ((n_atoms + atoms + 2) * 4 // 3).bit_length()
            self.table = np.full(size, -1, np.int32)
            tables.rehash_atoms(self.atoms, self.args, self.preds, n_atoms, self.table)
        need = 2 * (int(meta[tables.N_KEYS]) + entries + len(self.indexes) + 2)
        if need > len(self.keys):
            old, self.keys = self.keys, np.full((1 << (need - 1).bit_length(), 2), -1, np.int32)
            tables.rehash_keys(old, self.atoms, self.args, self.entries, self.index_table, self.keys)


#: Rows of an array from which on it has room for three times as many, once it is full.
_LARGE = 1 << 14


def _larger(array: tables.Array, rows: int) -> tables.Array:
    """The array, or a larger copy of it with room for so many rows."""
    if rows <= len(array):
        return array
    # A large one is copied seldom: room that is not used yet is no memory yet.
    grown = len(array) * 3 if len(array) > _LARGE else len(array) * 3 // 2
    larger = np.empty((max(rows, grown), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def _crowded(rows: Rows) -> bool:
    """Whether few atoms have many intervals; these then have to come in time order, each behind the last."""
    sample = rows.args[:, : 1 << 13]
    atoms = len(np.unique(sample, axis=1)[0]) if len(sample) else 1
    return bool(16 * atoms < sample.shape[1])


def _nothing(n_preds: int) -> Code:
    zeros = np.zeros(n_preds + 1, np.int64)
    return Code(np.zeros(1, np.int64), np.zeros(1, np.int64), zeros, np.zeros(1, np.int64), np.zeros(1, np.int64), 64)


def coalesced(rows: Rows) -> Rows:
    """The same rows as maximal intervals."""
    store = Store([len(rows.args)], True, np.zeros(1, np.int64))
    store.insert(0, rows)
    return store.rows(0)
