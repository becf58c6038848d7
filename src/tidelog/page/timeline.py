"""What a timeline shows: for every atom its maximal intervals, and which parts of them were given.

Ends are positions on the doubled grid, whatever the timeline: time n (in ticks) is 2n, the open gap after it 2n+1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tidelog.data.columns import Relation, refined
from tidelog.language.facts import format_value
from tidelog.language.syntax import Value
from tidelog.page.packed import packed
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid

if TYPE_CHECKING:
    from tidelog.data.symbols import Symbols
    from tidelog.model import Repeat

Longs = npt.NDArray[np.int64]

#: How an interval came about: both where it has given and derived parts.
GIVEN, DERIVED, AWAITED = 1, 2, 4
#: Its ends are infinite.
FROM_EVER, FOR_EVER = 8, 16


@dataclass(frozen=True, eq=False)
class Spans:
    """Intervals, each of the row or atom with the number in `of`."""

    of: Longs
    lo: Longs
    hi: Longs

    def __len__(self) -> int:
        return len(self.of)


@dataclass(frozen=True, eq=False)
class Timeline:
    """Atoms and their intervals, sorted by predicate, arguments and time; `dates` where times are dates."""

    denominator: int
    dates: bool
    #: Name and number of arguments.
    predicates: list[tuple[str, int]]
    values: list[Value]
    #: For each atom its predicate, and the constants of all atoms one after the other.
    atoms: Longs
    args: Longs
    rows: Spans
    kinds: Longs
    #: The given parts of rows that are not given as a whole.
    given: Spans
    repeats: list[dict[str, Any]]

    def first_args(self) -> Longs:
        """Where the arguments of each atom begin in `args`."""
        arities = np.array([arity for _, arity in self.predicates], np.int64)
        return np.append(0, np.cumsum(arities[self.atoms]))

    def atom_texts(self) -> Iterator[str]:
        """Every atom as it is printed."""
        constants = [format_value(value) for value in self.values]
        firsts = self.first_args()
        for atom, predicate in enumerate(self.atoms):
            args = ",".join(constants[c] for c in self.args[firsts[atom] : firsts[atom + 1]])
            name = self.predicates[predicate][0]
            yield f"{name}({args})" if args else name

    def to_json(self) -> dict[str, Any]:
        """What the page reads."""
        return {
            "denominator": str(self.denominator),
            "dates": self.dates,
            "predicates": [{"name": name, "arity": arity} for name, arity in self.predicates],
            "constants": [format_value(value) for value in self.values],
            "atoms": {"predicate": packed(self.atoms), "args": packed(self.args)},
            "rows": packed_spans(self.rows, self.kinds),
            "given": packed_spans(self.given, np.zeros(len(self.given), np.int64)),
            "repeats": self.repeats,
        }


def packed_spans(spans: Spans, kinds: Longs) -> dict[str, Any]:
    """Intervals as the page reads them. Infinite ends are flags, so that finite ones need few bytes."""
    ever, forever = spans.lo == NEG_INF, spans.hi == POS_INF
    finite = np.concatenate([spans.lo[~ever], spans.hi[~forever]])
    filler = int(finite.min()) if len(finite) else 0
    return {
        "of": packed(spans.of),
        "lo": packed(np.where(ever, filler, spans.lo)),
        "hi": packed(np.where(forever, filler, spans.hi)),
        "flags": packed(kinds | np.where(ever, FROM_EVER, 0) | np.where(forever, FOR_EVER, 0)),
    }


@dataclass(frozen=True)
class Holds:
    """Facts as columns: relations, the denominator of each, and the dictionary of their constants."""

    relations: tuple[tuple[Relation, int], ...]
    symbols: Symbols


def timeline(holds: Holds, given: Holds, repeats: Iterable[Repeat], dates: bool, limit: int) -> tuple[Timeline, int]:
    """The timeline of what holds, of which some was given, and how many intervals were left out beyond `limit`.

    What holds is maximal intervals, and covers what was given, but for what repeats. The dictionaries agree on the
    constants of the facts that were given.
    """
    denominator = lcm(1, *(step for _, step in (*holds.relations, *given.relations)))
    mine, theirs = _by_name(holds, denominator), _by_name(given, denominator)
    again = _by_predicate(repeats)
    names = sorted({*mine, *theirs, *again})
    build = _Building(holds.symbols)
    for name in names:
        build.add(name, mine.get(name), theirs.get(name), again.get(name, []), denominator)
    return build.done(denominator, dates, limit)


def _by_name(facts: Holds, denominator: int) -> dict[str, Relation]:
    found = {}
    for relation, step in facts.relations:
        lo, hi = refined(relation.lo, relation.hi, denominator // step)
        if len(relation):
            found[relation.predicate] = replace(relation, lo=lo, hi=hi, order=None)
    return found


def _by_predicate(repeats: Iterable[Repeat]) -> dict[str, list[Repeat]]:
    found: dict[str, list[Repeat]] = {}
    for repeat in repeats:
        found.setdefault(repeat.fact.predicate, []).append(repeat)
    return found


class _Building:
    """A timeline in the making, predicate by predicate."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols, self.ranks = symbols, symbols.ranks()
        self.predicates: list[tuple[str, int]] = []
        self.ids: dict[int, int] = {}
        self.atoms: list[Longs] = []
        self.args: list[Longs] = []
        self.rows: list[Spans] = []
        self.kinds: list[Longs] = []
        self.given: list[Spans] = []
        self.repeats: list[dict[str, Any]] = []
        self.n_atoms = self.n_rows = 0

    def add(
        self, name: str, mine: Relation | None, theirs: Relation | None, again: list[Repeat], denominator: int
    ) -> None:
        arity = next(r.arity for r in (mine, theirs) if r) if mine or theirs else len(again[0].fact.args)
        none = Relation(name, arity, np.empty((arity, 0), np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
        mine, theirs = mine or none, theirs or none
        others = [[self.symbols.intern(value) for value in repeat.fact.args] for repeat in again]
        if others:
            self.ranks = self.symbols.ranks()
        repeated = np.array(others, np.int32).reshape(len(others), arity).T
        keys, args = _numbered(np.concatenate([mine.args, theirs.args, repeated], axis=1), self.ranks)
        n, m = len(mine), len(theirs)
        whole, parts, kinds = _classified(
            Spans(keys[:n], mine.lo, mine.hi), Spans(keys[n : n + m], theirs.lo, theirs.hi)
        )
        self.predicates.append((name, arity))
        self.atoms.append(np.full(args.shape[1], len(self.predicates) - 1))
        self.args.append(self._constants(args.T.ravel()))
        self.rows.append(replace(whole, of=whole.of + self.n_atoms))
        self.kinds.append(kinds)
        self.given.append(replace(parts, of=parts.of + self.n_rows))
        for repeat, atom in zip(again, keys[n + m :], strict=True):
            self.repeats.append({"atom": self.n_atoms + int(atom), **_shown(repeat, denominator)})
        self.n_atoms += args.shape[1]
        self.n_rows += len(whole)

    def _constants(self, ids: npt.NDArray[np.int32]) -> Longs:
        """Constants in numbers of their own: the dictionary may have many that are not shown."""
        own, places = np.unique(ids, return_inverse=True)
        numbers = np.array([self.ids.setdefault(int(id), len(self.ids)) for id in own], np.int64)
        found: Longs = numbers[places] if len(own) else np.empty(0, np.int64)
        return found

    def done(self, denominator: int, dates: bool, limit: int) -> tuple[Timeline, int]:
        rows, given = _joined(self.rows), _joined(self.given)
        kinds = np.concatenate([np.empty(0, np.int64), *self.kinds])
        more = len(rows) - limit
        if more > 0:
            keep = np.sort(np.argsort(rows.lo, kind="stable")[:limit])
            moved = np.full(len(rows), -1)
            moved[keep] = np.arange(limit)
            rows, kinds = Spans(rows.of[keep], rows.lo[keep], rows.hi[keep]), kinds[keep]
            left = moved[given.of] >= 0
            given = Spans(moved[given.of[left]], given.lo[left], given.hi[left])
        values = [self.symbols.value(id) for id in self.ids]
        atoms, args = (np.concatenate([np.empty(0, np.int64), *part]) for part in (self.atoms, self.args))
        made = Timeline(denominator, dates, self.predicates, values, atoms, args, rows, kinds, given, self.repeats)
        return made, max(0, more)


def _numbered(args: npt.NDArray[np.int32], ranks: Longs) -> tuple[Longs, npt.NDArray[np.int32]]:
    """The number of each column's atom, where atoms are numbered in their order, and the arguments of each atom."""
    count = args.shape[1]
    if not len(args):
        return np.zeros(count, np.int64), args[:, :1]
    order = np.lexsort([ranks[column] for column in args[::-1]])
    ordered = args[:, order]
    new = np.append(count > 0, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))[:count]
    keys = np.empty(count, np.int64)
    keys[order] = np.cumsum(new) - 1
    return keys, ordered[:, new]


def _classified(mine: Spans, theirs: Spans) -> tuple[Spans, Spans, Longs]:
    """All intervals in order, the given parts of those that are more than given, and the kinds of all.

    A given interval lies in one that holds, or is part of what repeats, and then stands for itself.
    """
    mine, theirs = _in_order(mine), _in_order(theirs)
    at = _last_before(mine, theirs)
    inside = at >= 0
    inside[inside] = (mine.of[at[inside]] == theirs.of[inside]) & (mine.hi[at[inside]] >= theirs.hi[inside])
    alone = Spans(theirs.of[~inside], theirs.lo[~inside], theirs.hi[~inside])
    host = at[inside]
    same = (mine.lo[host] == theirs.lo[inside]) & (mine.hi[host] == theirs.hi[inside])
    kinds = np.full(len(mine), DERIVED)
    kinds[host] |= GIVEN
    kinds[host[same]] = GIVEN
    parts = Spans(host[~same], theirs.lo[inside][~same], theirs.hi[inside][~same])
    every = _joined([mine, alone])
    order = np.lexsort((every.lo, every.of))
    places = np.empty(len(every), np.int64)
    places[order] = np.arange(len(every))
    kinds = np.append(kinds, np.full(len(alone), GIVEN))[order]
    return _taken(every, order), replace(parts, of=places[parts.of]), kinds


def _last_before(mine: Spans, theirs: Spans) -> Longs:
    """For each of theirs the last of mine, in order, that begins no later; -1 for none."""
    both = _joined([mine, theirs])
    second = np.append(np.zeros(len(mine), bool), np.ones(len(theirs), bool))
    order = np.lexsort((second, both.lo, both.of))
    seen = np.cumsum(~second[order]) - 1
    found = np.empty(len(both), np.int64)
    found[order] = seen
    last: Longs = found[len(mine) :]
    return last


def _in_order(spans: Spans) -> Spans:
    return _taken(spans, np.lexsort((spans.lo, spans.of)))


def _taken(spans: Spans, order: Longs) -> Spans:
    return Spans(spans.of[order], spans.lo[order], spans.hi[order])


def _joined(parts: list[Spans]) -> Spans:
    empty = np.empty(0, np.int64)
    return Spans(*(np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in ("of", "lo", "hi")))


def _shown(repeat: Repeat, denominator: int) -> dict[str, Any]:
    """Positions as text, since they may be larger than what a browser's numbers hold exactly."""
    lo, hi = Grid(True, denominator).pair(repeat.fact.interval) or (0, 0)
    return {
        "lo": str(lo),
        "hi": str(hi),
        "every": str(int(2 * repeat.every * denominator)),
        "start": str(int(2 * repeat.start * denominator)),
        "before": repeat.before,
    }
