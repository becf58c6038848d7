"""The facts that a stage with corrections passes on: pieces of intervals, as far as they are certain.

A stage without corrections passes on the part of each interval that has become certain in a step. With corrections,
facts that were passed on may turn out to be wrong. The next stage takes deletions, but only of facts as they were
inserted, so a bucket remembers the pieces that it has passed on and that may still change. Where the truth of an atom
changes, the pieces there are deleted, and what is left of them is inserted again.

Changes reach back as far as corrections do, but pieces may begin before that. So pieces are cut: none that may still
change is longer than a part of the time that corrections reach back over, and no deletion goes farther back than that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tidelog.data import wire_format
from tidelog.data.relation import Relation, refine_pairs
from tidelog.data.symbol_table import Symbols
from tidelog.engine.fact_store import Int32s, Int64s, Rows
from tidelog.engine.stream_kernel import FRONTIER
from tidelog.model import relation_of
from tidelog.streaming.answer_changes import ChangeStep
from tidelog.streaming.answers import Answers
from tidelog.streaming.completeness import compute_bound_at
from tidelog.streaming.reasoner import Reasoner
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Bound

#: Intervals as pairs of positions, disjoint and in order.
Spans = list[tuple[int, int]]
#: Pieces that may still change are at most this part of what corrections reach back over.
PIECES = 4
#: Constants are dropped once there are this many more than twice those in use.
_MANY_NAMES = 1024


@dataclass(frozen=True)
class PassedChange:
    """The pieces that a step deletes and inserts, on a grid and with a dictionary of their own."""

    removed: Rows
    added: Rows
    grid: Grid
    symbols: Symbols


@dataclass
class PassedFacts:
    """The pieces that a bucket has passed on and that may still change.

    `open` are the intervals that held at `known`, the position up to which all facts were passed on.
    """

    grid: Grid
    pieces: Rows
    open: Rows
    known: int = NEG_INF
    symbols: Symbols = field(default_factory=Symbols)

    @staticmethod
    def new(reasoner: Reasoner) -> PassedFacts:
        """Return the record of a reasoner that has taken no step."""
        arity = reasoner.evaluation.task.arity
        return PassedFacts(reasoner.evaluation.grid, Rows.empty(arity), Rows.empty(arity))

    @property
    def bound(self) -> Bound:
        """The time up to which all facts were passed on, and whether it is included."""
        return compute_bound_at(self.grid, self.known)

    def update(self, reasoner: Reasoner, step: ChangeStep) -> PassedChange:
        """Note what a step of the reasoner has changed; return the pieces to delete and to insert."""
        evaluation, corrections = reasoner.evaluation, reasoner.corrections
        assert corrections is not None
        self._refine(evaluation.grid)
        before, first = self.known, self.known if self.known == NEG_INF else self.known + 1
        frontier = int(evaluation.at[FRONTIER])
        self.known = max(before, NEG_INF if frontier == NEG_INF else frontier - evaluation.task.ahead)
        # Where evaluation was put off nothing begins or ends: an interval that is open goes on up to `known`.
        holding = self._read(reasoner.open_intervals()[0])
        holding = Rows(holding.args, holding.lo, np.full(len(holding), self.known))
        now = Rows.concatenate([self._read(step.added), holding], len(holding.args))
        then = Rows.concatenate([self._read(step.removed), self.open], len(holding.args))
        cut = corrections.reach and max(1, corrections.reach // PIECES)
        added = [cut_pieces(now.clip(first, self.known), self.known, cut)]
        removed = Rows.empty(len(holding.args))
        again = now.clip(NEG_INF, before) if before > NEG_INF else then
        gone, fresh = find_differences(then, again)
        if gone.any() or fresh.any():
            removed, more = self._correct(then.where(gone), again.where(fresh))
            added.append(cut_pieces(more, self.known, cut))
        inserted = Rows.concatenate(added, len(holding.args))
        self.open = holding
        self._note(inserted, corrections.final_until)
        return PassedChange(removed, inserted, self.grid, self.symbols)

    def _correct(self, gone: Rows, fresh: Rows) -> tuple[Rows, Rows]:
        """Take back the pieces where intervals have gone; return them, and the pieces to insert instead."""
        lost: dict[bytes, Spans] = {}
        won: dict[bytes, Spans] = {}
        before, after = group_spans(gone), group_spans(fresh)
        for atom in before.keys() | after.keys():
            lost[atom] = subtract_spans(before.get(atom, []), after.get(atom, []))
            won[atom] = subtract_spans(after.get(atom, []), before.get(atom, []))
        wrong, rest = np.zeros(len(self.pieces), np.bool_), {atom: list(spans) for atom, spans in won.items()}
        for place, atom in enumerate(list_atoms(self.pieces.args)) if any(lost.values()) else ():
            if not lost.get(atom):
                continue
            piece = [(int(self.pieces.lo[place]), int(self.pieces.hi[place]))]
            left = subtract_spans(piece, lost[atom])
            if left != piece:
                wrong[place] = True
                rest[atom] += left
        removed, self.pieces = self.pieces.where(wrong), self.pieces.where(~wrong)
        return removed, ungroup_spans(rest, len(gone.args))

    def _note(self, inserted: Rows, final: int) -> None:
        """Remember pieces, and forget those that can no longer change."""
        whole = Rows.concatenate([self.pieces, inserted], len(self.pieces.args))
        self.pieces = whole.where(whole.hi >= final)
        if len(self.symbols) >= _MANY_NAMES:
            used = np.unique(np.concatenate([self.pieces.args.ravel(), self.open.args.ravel()]))
            if len(self.symbols) >= 2 * len(used) + _MANY_NAMES:
                old, self.symbols = self.symbols, Symbols()
                ids = self.symbols.merge(old, used.astype(np.int64))
                self.pieces = replace(self.pieces, args=ids[self.pieces.args])
                self.open = replace(self.open, args=ids[self.open.args])

    def _read(self, answers: Answers) -> Rows:
        """Return answers with the constants and on the grid of this record."""
        rows, grid, symbols = answers.block()
        if not len(rows):
            return Rows.empty(len(rows.args))
        ids = self.symbols.merge(symbols, np.unique(rows.args).astype(np.int64))
        return _move(Rows(ids[rows.args], rows.lo, rows.hi), grid, self.grid)

    def _refine(self, grid: Grid) -> None:
        """Change to a finer grid."""
        if grid == self.grid:
            return
        self.pieces, self.open = _move(self.pieces, self.grid, grid), _move(self.open, self.grid, grid)
        at = np.array([self.known], np.int64)
        # All time up to `known` is known, so it is the end of an interval.
        self.known = int(_move(Rows(np.empty((0, 1), np.int32), at, at), self.grid, grid).hi[0])
        self.grid = grid

    # Saved states

    def save(self) -> tuple[int, list[bytes]]:
        """Return `known` and the bytes of both relations."""
        relations = [relation_of("", rows, self.grid) for rows in (self.pieces, self.open)]
        return self.known, [wire_format.pack(self.symbols, self.grid.denominator, False, one) for one in relations]

    @staticmethod
    def load(reasoner: Reasoner, known: int, blocks: list[bytes]) -> PassedFacts:
        """Restore a record from its saved form; the reasoner may be on a finer grid."""
        parts = [wire_format.unpack(block) for block in blocks]
        dense, symbols = reasoner.evaluation.grid.dense, Symbols()
        pieces, opened = (_to_rows(part.to_relation(symbols), dense) for part in parts)
        return PassedFacts(Grid(dense, parts[0].denominator), pieces, opened, known, symbols)


def _to_rows(relation: Relation, dense: bool) -> Rows:
    """Return a relation as rows of an engine: the reverse of `relation_of`."""
    lo, hi = relation.lo, relation.hi
    if not dense:
        lo, hi = np.where(lo == NEG_INF, lo, lo >> 1), np.where(hi == POS_INF, hi, hi >> 1)
    return Rows(relation.args, lo, hi)


def _move(rows: Rows, old: Grid, new: Grid) -> Rows:
    """Return rows on a finer grid."""
    factor = new.denominator // old.denominator
    return rows if factor == 1 or not new.dense else Rows(rows.args, *refine_pairs(rows.lo, rows.hi, factor))


def cut_pieces(rows: Rows, known: int, length: int) -> Rows:
    """Cut intervals so that their parts shortly before `known` are not longer than `length`, if that is not 0."""
    for number in range(1, PIECES + 1 if length else 1):
        at = known - number * length
        over = (rows.lo < at) & (rows.hi >= at)
        if over.any():
            tail = rows.where(over)
            head = Rows(rows.args, rows.lo, np.where(over, at - 1, rows.hi))
            rows = Rows.concatenate([head, Rows(tail.args, np.full(len(tail), at), tail.hi)], len(rows.args))
    return rows


def find_differences(one: Rows, other: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find the rows of each that the other does not have, as masks."""
    if len(one) == len(other) and _is_same(one, other):
        return np.zeros(len(one), np.bool_), np.zeros(len(one), np.bool_)
    keys = [list_atoms(np.concatenate([rows.args.astype(np.int64), [rows.lo, rows.hi]])) for rows in (one, other)]
    known = [set(some) for some in keys]
    others = zip(keys, known[::-1], strict=True)
    first, second = (np.array([key not in there for key in some], np.bool_) for some, there in others)
    return first, second


def _is_same(one: Rows, other: Rows) -> bool:
    """Return whether rows are the same, in any order."""
    tables = [np.stack([rows.lo, rows.hi, *rows.args]) for rows in (one, other)]
    first, second = (table[:, np.lexsort(table)] for table in tables)
    return bool((first == second).all())


def list_atoms(args: Int32s | Int64s) -> list[bytes]:
    """Return the columns of an array, each as one value that can be compared."""
    table = np.ascontiguousarray(args.T)
    width = table.shape[1] * table.itemsize
    text = table.tobytes()
    return [text[place * width : (place + 1) * width] for place in range(table.shape[0])]


def group_spans(rows: Rows) -> dict[bytes, Spans]:
    """Return the intervals of each atom."""
    found: dict[bytes, Spans] = {}
    order = np.argsort(rows.lo, kind="stable")
    atoms = list_atoms(rows.args)
    for place in order.tolist():
        found.setdefault(atoms[place], []).append((int(rows.lo[place]), int(rows.hi[place])))
    return found


def ungroup_spans(spans: dict[bytes, Spans], arity: int) -> Rows:
    """Return the intervals of atoms as rows."""
    listed = [(atom, lo, hi) for atom, some in spans.items() for lo, hi in some]
    args = np.frombuffer(b"".join(atom for atom, _, _ in listed), np.int32).reshape(len(listed), arity).T
    times = np.array([[lo, hi] for _, lo, hi in listed], np.int64).reshape(len(listed), 2).T
    return Rows(args.copy(), times[0].copy(), times[1].copy())


def subtract_spans(spans: Spans, without: Spans) -> Spans:
    """Return intervals without the times that others cover.

    >>> subtract_spans([(0, 9), (12, 15)], [(3, 4), (8, 12)])
    [(0, 2), (5, 7), (13, 15)]
    """
    left: Spans = []
    for lo, hi in spans:
        for begin, end in without:
            if end < lo or begin > hi:
                continue
            if lo < begin:
                left.append((lo, begin - 1))
            lo = end + 1
        if lo <= hi:
            left.append((lo, hi))
    return left
