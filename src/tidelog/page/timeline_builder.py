"""Build a timeline from the facts that hold and the facts that were given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tidelog.data.relation import Relation, refine_pairs
from tidelog.page.timeline_data import DERIVED, GIVEN, Longs, Spans, Timeline
from tidelog.timeline.grid import Grid

if TYPE_CHECKING:
    from tidelog.data.symbol_table import Symbols
    from tidelog.model import Repeat


@dataclass(frozen=True)
class FactColumns:
    """Facts as columns: relations, each with the denominator of its time step, and the dictionary of their
    constants."""

    relations: tuple[tuple[Relation, int], ...]
    symbols: Symbols


def build_timeline(
    holds: FactColumns, given: FactColumns, repeats: Iterable[Repeat], dates: bool, limit: int
) -> tuple[Timeline, int]:
    """Build the timeline of the facts that hold, some of which were given.

    Returns the timeline and how many intervals beyond `limit` were left out. `holds` has maximal intervals, which cover
    the given ones except where facts repeat for ever. Both dictionaries agree on the constants of the given facts.
    """
    denominator = lcm(1, *(step for _, step in (*holds.relations, *given.relations)))
    all_facts, given_facts = _by_predicate(holds, denominator), _by_predicate(given, denominator)
    repeats_of = _repeats_by_predicate(repeats)
    builder = _TimelineBuilder(holds.symbols)
    for name in sorted({*all_facts, *given_facts, *repeats_of}):
        builder.add(name, all_facts.get(name), given_facts.get(name), repeats_of.get(name, []), denominator)
    return builder.finish(denominator, dates, limit)


def _by_predicate(facts: FactColumns, denominator: int) -> dict[str, Relation]:
    by_predicate = {}
    for relation, step in facts.relations:
        lo, hi = refine_pairs(relation.lo, relation.hi, denominator // step)
        if len(relation):
            by_predicate[relation.predicate] = replace(relation, lo=lo, hi=hi, order=None)
    return by_predicate


def _repeats_by_predicate(repeats: Iterable[Repeat]) -> dict[str, list[Repeat]]:
    by_predicate: dict[str, list[Repeat]] = {}
    for repeat in repeats:
        by_predicate.setdefault(repeat.fact.predicate, []).append(repeat)
    return by_predicate


class _TimelineBuilder:
    """Collects a timeline, predicate by predicate."""

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
        self, name: str, holds: Relation | None, given: Relation | None, repeats: list[Repeat], denominator: int
    ) -> None:
        """Add the facts of one predicate."""
        arity = next(r.arity for r in (holds, given) if r) if holds or given else len(repeats[0].fact.args)
        none = Relation(name, arity, np.empty((arity, 0), np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
        holds, given = holds or none, given or none
        repeated_args = [[self.symbols.intern(value) for value in repeat.fact.args] for repeat in repeats]
        if repeated_args:
            self.ranks = self.symbols.ranks()
        repeated = np.array(repeated_args, np.int32).reshape(len(repeats), arity).T
        keys, args = _number_atoms(np.concatenate([holds.args, given.args, repeated], axis=1), self.ranks)
        n, m = len(holds), len(given)
        whole, parts, kinds = _classify(Spans(keys[:n], holds.lo, holds.hi), Spans(keys[n : n + m], given.lo, given.hi))
        self.predicates.append((name, arity))
        self.atoms.append(np.full(args.shape[1], len(self.predicates) - 1))
        self.args.append(self._number_constants(args.T.ravel()))
        self.rows.append(replace(whole, of=whole.of + self.n_atoms))
        self.kinds.append(kinds)
        self.given.append(replace(parts, of=parts.of + self.n_rows))
        for repeat, atom in zip(repeats, keys[n + m :], strict=True):
            self.repeats.append({"atom": self.n_atoms + int(atom), **_repeat_to_json(repeat, denominator)})
        self.n_atoms += args.shape[1]
        self.n_rows += len(whole)

    def _number_constants(self, ids: npt.NDArray[np.int32]) -> Longs:
        """Number the constants that the timeline shows: the dictionary may have many others."""
        own, places = np.unique(ids, return_inverse=True)
        numbers = np.array([self.ids.setdefault(int(id), len(self.ids)) for id in own], np.int64)
        result: Longs = numbers[places] if len(own) else np.empty(0, np.int64)
        return result

    def finish(self, denominator: int, dates: bool, limit: int) -> tuple[Timeline, int]:
        """Return the timeline, with the `limit` intervals that begin first, and the number of those left out."""
        rows, given = _concatenate(self.rows), _concatenate(self.given)
        kinds = np.concatenate([np.empty(0, np.int64), *self.kinds])
        more = len(rows) - limit
        if more > 0:
            keep = np.sort(np.argsort(rows.lo, kind="stable")[:limit])
            moved = np.full(len(rows), -1)
            moved[keep] = np.arange(limit)
            rows, kinds = Spans(rows.of[keep], rows.lo[keep], rows.hi[keep]), kinds[keep]
            shown = moved[given.of] >= 0
            given = Spans(moved[given.of[shown]], given.lo[shown], given.hi[shown])
        values = [self.symbols.value(id) for id in self.ids]
        atoms, args = (np.concatenate([np.empty(0, np.int64), *part]) for part in (self.atoms, self.args))
        timeline = Timeline(denominator, dates, self.predicates, values, atoms, args, rows, kinds, given, self.repeats)
        return timeline, max(0, more)


def _number_atoms(args: npt.NDArray[np.int32], ranks: Longs) -> tuple[Longs, npt.NDArray[np.int32]]:
    """Number the atoms of columns in their order; return the number of each column's atom, and each atom's
    arguments."""
    count = args.shape[1]
    if not len(args):
        return np.zeros(count, np.int64), args[:, :1]
    order = np.lexsort([ranks[column] for column in args[::-1]])
    ordered = args[:, order]
    new = np.append(count > 0, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))[:count]
    keys = np.empty(count, np.int64)
    keys[order] = np.cumsum(new) - 1
    return keys, ordered[:, new]


def _classify(holds: Spans, given: Spans) -> tuple[Spans, Spans, Longs]:
    """Return all intervals in order, the given parts of those that are only partly given, and the kind of each
    interval.

    A given interval lies within one that holds, or belongs to facts that repeat, and then is an interval of its own.
    """
    holds, given = _sort_spans(holds), _sort_spans(given)
    at = _find_last_before(holds, given)
    inside = at >= 0
    inside[inside] = (holds.of[at[inside]] == given.of[inside]) & (holds.hi[at[inside]] >= given.hi[inside])
    alone = Spans(given.of[~inside], given.lo[~inside], given.hi[~inside])
    host = at[inside]
    same = (holds.lo[host] == given.lo[inside]) & (holds.hi[host] == given.hi[inside])
    kinds = np.full(len(holds), DERIVED)
    kinds[host] |= GIVEN
    kinds[host[same]] = GIVEN
    parts = Spans(host[~same], given.lo[inside][~same], given.hi[inside][~same])
    every = _concatenate([holds, alone])
    order = np.lexsort((every.lo, every.of))
    places = np.empty(len(every), np.int64)
    places[order] = np.arange(len(every))
    kinds = np.append(kinds, np.full(len(alone), GIVEN))[order]
    return _select(every, order), replace(parts, of=places[parts.of]), kinds


def _find_last_before(holds: Spans, given: Spans) -> Longs:
    """Find, for each given interval, the last of `holds` in order that begins no later; -1 if there is none."""
    both = _concatenate([holds, given])
    is_given = np.append(np.zeros(len(holds), bool), np.ones(len(given), bool))
    order = np.lexsort((is_given, both.lo, both.of))
    last = np.empty(len(both), np.int64)
    last[order] = np.cumsum(~is_given[order]) - 1
    result: Longs = last[len(holds) :]
    return result


def _sort_spans(spans: Spans) -> Spans:
    return _select(spans, np.lexsort((spans.lo, spans.of)))


def _select(spans: Spans, order: Longs) -> Spans:
    return Spans(spans.of[order], spans.lo[order], spans.hi[order])


def _concatenate(parts: list[Spans]) -> Spans:
    empty = np.empty(0, np.int64)
    return Spans(*(np.concatenate([empty, *(getattr(part, name) for part in parts)]) for name in ("of", "lo", "hi")))


def _repeat_to_json(repeat: Repeat, denominator: int) -> dict[str, Any]:
    """Build the JSON object of a repetition. Positions are text: a browser's numbers may not hold them exactly."""
    lo, hi = Grid(True, denominator).to_pair(repeat.fact.interval) or (0, 0)
    return {
        "lo": str(lo),
        "hi": str(hi),
        "every": str(int(2 * repeat.every * denominator)),
        "start": str(int(2 * repeat.start * denominator)),
        "before": repeat.before,
    }
