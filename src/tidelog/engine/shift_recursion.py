"""Recursions that only move facts in time: arithmetic decides when they hold, however long the distances are.

Let every rule that reads its own component copy one literal of it, moved by a fixed distance, and let one predicate,
the hub, lie on every cycle. Then the hub holds at s + n for each s at which it holds without going round, and each n
that is 0 or a sum of the distances of cycles. These sums tell everything:

- With cycles in both directions, they are all multiples of the greatest common divisor g of the distances: if a > 0 and
  -b < 0 are sums, then -a = (b - 1) a + a (-b) is one, too, so they are a group.
- Otherwise they are a numerical semigroup (up to its direction and a factor g). With m one of the distances it is
  closed under adding m, so the least sum in each residue class modulo m says which others there are. The least sums are
  shortest paths over the residues, and are found one distance after the other (Böcker and Lipták, 2007).

From some sum on, all multiples of g are sums, so what holds repeats with period g. If too many intervals come before
that to be written out, a span of time can still be decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from tidelog.analysis.predicate_graph import strongly_connected_components
from tidelog.compiler.compiled_program import RuleComponent
from tidelog.compiler.flat_rules import FlatRule, Op, Pair
from tidelog.engine.batch_problem import Unsettled
from tidelog.engine.extent import Extent, Tail, mirror, sort_by_time
from tidelog.engine.fact_store import AllowanceExceeded, Int64s, Rows
from tidelog.engine.maximal_intervals import coalesce
from tidelog.engine.repetition_search import TrialRuns, close_off
from tidelog.language.syntax import Variable
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF

#: Shorter distances, in multiples of their greatest common divisor, are left to the search for what repeats.
LONG_DISTANCE = 1 << 12
#: Limits: distances of cycles, residues, candidates for sums that are looked at, and rows that are written out.
MOST_DISTANCES, MOST_RESIDUES, MOST_CANDIDATES, MOST_ROWS = 64, 1 << 22, 1 << 24, 1 << 20
_UNREACHED = 1 << 61

#: The distances of moves, by the predicate that is moved and the one that it is moved to.
Moves = Mapping[tuple[str, str], frozenset[int]]


@dataclass(frozen=True, slots=True)
class ShiftRecursion:
    """A component whose recursive rules are moves; `order` are its predicates without the hub, sources first.

    `cycles` are the distances of the cycles through the hub, `detours` those of the ways from the hub to the others.
    """

    hub: str
    order: tuple[str, ...]
    moves: Moves
    cycles: tuple[int, ...]
    detours: Mapping[str, frozenset[int]]
    entries: tuple[FlatRule, ...]


def find_shift_recursion(part: RuleComponent, tick: int) -> ShiftRecursion | None:
    """Return the moves of a component with several cycles over long distances; None if it is not of this kind."""
    if part.calculations or part.aggregations or part.slice:
        return None
    moves: dict[tuple[str, str], frozenset[int]] = {}
    entries: list[FlatRule] = []
    for rule in part.rules:
        if not any(literal.predicate in part.predicates for literal in rule.body):
            entries.append(rule)
            continue
        distance = _find_distance(rule, tick)
        if distance is None:
            return None
        edge = rule.body[0].predicate, rule.predicate
        moves[edge] = moves.get(edge, frozenset()) | {distance}
    for hub in part.predicates:
        order = _order_without(hub, part.predicates, moves)
        if order is not None:
            detours = _add_up(hub, order, moves)
            if detours is None:
                return None
            cycles = tuple(sorted(_arrive(hub, detours, moves) - {0}, key=abs))
            worthwhile = len(cycles) > 1 and abs(cycles[-1]) >= LONG_DISTANCE * gcd(*cycles)
            found = ShiftRecursion(hub, order, moves, cycles, detours, tuple(entries))
            return found if worthwhile and len(cycles) <= MOST_DISTANCES else None
    return None


def _find_distance(rule: FlatRule, tick: int) -> int | None:
    """Return by how much a rule moves its only literal; None if it does anything else."""
    literal = rule.body[0]
    plain = len(rule.body) == 1 and not literal.negated and literal.op in (Op.HOLDS, Op.DIAMOND, Op.BOX)
    same = rule.args == literal.args and len(set(rule.args)) == len(rule.args) and not rule.comparisons
    if not plain or not same or not all(isinstance(term, Variable) for term in rule.args):
        return None
    points = [lo for lo, hi in (rule.range, literal.range) if lo == hi and lo % tick == 0]
    return sum(points) if len(points) == 2 else None


def _order_without(hub: str, predicates: Iterable[str], moves: Moves) -> tuple[str, ...] | None:
    """Order the other predicates so that moves go forwards; None if there are cycles without the hub."""
    others = [name for name in predicates if name != hub]
    graph = {name: [body for body, head in moves if head == name and body != hub] for name in others}
    found = list(strongly_connected_components(graph))
    if any(len(members) > 1 or members[0] in graph[members[0]] for members in found):
        return None
    return tuple(members[0] for members in found)


def _add_up(hub: str, order: Iterable[str], moves: Moves) -> dict[str, frozenset[int]] | None:
    """Return the distances of all ways from the hub to each other predicate; None if there are too many."""
    detours = {hub: frozenset({0})}
    for name in order:
        detours[name] = _arrive(name, detours, moves)
        if len(detours[name]) > MOST_DISTANCES:
            return None
    return detours


def _arrive(name: str, detours: Mapping[str, frozenset[int]], moves: Moves) -> frozenset[int]:
    return frozenset(
        before + distance
        for (body, head), distances in moves.items()
        if head == name and body in detours
        for distance in distances
        for before in detours[body]
    )


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of distances, 0 among them: multiples of `step`, all of them if there is no `least`.

    Otherwise `least` is the least sum in each residue class, and all multiples from `settled` on are sums.
    """

    step: int
    least: Int64s | None
    settled: int

    def between(self, lo: int, hi: int) -> Int64s:
        """Return the sums in [lo,hi]."""
        first = -(-lo // self.step)
        if self.least is None:
            return np.arange(first, hi // self.step + 1, dtype=np.int64) * self.step
        numbers = np.arange(max(0, first), hi // self.step + 1, dtype=np.int64)
        return numbers[self.least[numbers % len(self.least)] <= numbers] * self.step


def find_sums(distances: tuple[int, ...]) -> Sums | None:
    """Return the sums of distances that are all positive, or go in both directions; None if they are too long.

    >>> find_sums((4, 6, 9)).between(0, 15).tolist(), find_sums((4, -6)).between(-5, 5).tolist()
    ([0, 4, 6, 8, 9, 10, 12, 13, 14, 15], [-4, -2, 0, 2, 4])
    """
    step = gcd(*distances)
    if min(distances) < 0:
        return Sums(step, None, 0)
    modulus, *others = sorted({distance // step for distance in distances})
    if modulus > MOST_RESIDUES or 2 * modulus * max(others, default=1) >= _UNREACHED // 2:
        return None
    least = np.full(modulus, _UNREACHED)
    least[0] = 0
    for distance in others:
        # Adding a distance again and again visits residues in cycles: twice around, each takes its best predecessor.
        count = gcd(distance, modulus)
        length = modulus // count
        cycle = np.arange(length, dtype=np.int64) * (distance % modulus) % modulus
        places = np.arange(count, dtype=np.int64)[:, None] + cycle
        added = np.arange(2 * length, dtype=np.int64) * distance
        best = np.minimum.accumulate(np.tile(least[places], 2) - added, axis=1) + added
        least[places] = np.minimum(best[:, length:], _UNREACHED)
    return Sums(step, least, max(0, int(least.max()) - modulus + 1) * step)


def solve_shifts(
    runs: TrialRuns, found: ShiftRecursion, spans: Iterable[Pair]
) -> tuple[Pair, dict[str, Extent]] | None:
    """Return the first of the spans for which the extents of a recursion of moves can be written out, with these.

    The runs evaluate the rules by which facts enter the recursion. Raise `Unsettled` if no search could do better.
    """
    own = {name: runs.problem.facts_of(name) for name in runs.component.predicates}
    try:
        entered = runs.run(1 - LIMIT, LIMIT - 1, own, recursion=False)
    except AllowanceExceeded:
        return None
    backwards = max(found.cycles) < 0
    if backwards:
        found, entered = _turn(found), {name: mirror(rows) for name, rows in entered.items()}
    sums = find_sums(found.cycles)
    if sums is None:
        return None
    expansion = Expansion(found, sums, entered)
    for lo, hi in spans:
        extents = expansion.over(*((-hi, -lo) if backwards else (lo, hi)))
        if extents is not None:
            return (lo, hi), {name: _mirror_extent(e) for name, e in extents.items()} if backwards else extents
    if expansion.has_points_only:
        # Longer intervals may fill the gaps between sums early, which the search for what repeats finds.
        raise Unsettled(runs.component.predicates, {})
    return None


def _turn(found: ShiftRecursion) -> ShiftRecursion:
    """Return a recursion with time reversed."""

    def negate(distances: Iterable[int]) -> frozenset[int]:
        return frozenset(-distance for distance in distances)

    moves = {edge: negate(distances) for edge, distances in found.moves.items()}
    detours = {name: negate(distances) for name, distances in found.detours.items()}
    return replace(found, moves=moves, detours=detours, cycles=tuple(-distance for distance in found.cycles))


def _mirror_extent(extent: Extent) -> Extent:
    left, right = (Tail(-tail.at, tail.every) if tail else None for tail in (extent.right, extent.left))
    return Extent(mirror(extent.rows), left, right)


class Expansion:
    """The extents of a recursion of moves, given the rows that hold without it."""

    def __init__(self, found: ShiftRecursion, sums: Sums, entered: Mapping[str, Rows]) -> None:
        self.found = found
        self.sums = sums
        #: What holds without going round: after moves that do not begin at the hub.
        self.before: dict[str, Rows] = {}
        for name in (*found.order, found.hub):
            parts = [entered[name]]
            for (body, head), distances in found.moves.items():
                if head == name and body in self.before:
                    parts += [_move(self.before[body], distance) for distance in distances]
            self.before[name] = _join(parts, len(entered[name].args))
        self.arity = len(entered[found.hub].args)

    @property
    def has_points_only(self) -> bool:
        """Whether no interval is longer than the distance between two sums."""
        return all(bool((rows.hi - rows.lo < self.sums.step).all()) for rows in self.before.values())

    def over(self, lo: int, hi: int) -> dict[str, Extent] | None:
        """Return the extents within [lo,hi], for all time if that is infinite; None if they are too large."""
        step = self.sums.step
        ends = np.concatenate([e for rows in self.before.values() for e in (rows.lo, rows.hi)])
        ends = ends[(ends > NEG_INF) & (ends < POS_INF)]
        first, last = (int(ends.min()), int(ends.max())) if len(ends) else (0, 0)
        detours = [distance for distances in self.found.detours.values() for distance in distances]
        left = min(first + min(detours) - step, hi)
        right = max(last + max(detours) + self.sums.settled + step, lo)
        if max(-left, right) + 4 * step + max(map(abs, detours)) > LIMIT:
            return None
        window = (left - 2 * step if lo == NEG_INF else lo, right + 2 * step if hi == POS_INF else hi)
        around = self._go_round(window[0] - max(detours), window[1] - min(detours))
        if around is None:
            return None
        tails = Tail(left if lo == NEG_INF else lo - 1, step), Tail(right if hi == POS_INF else hi + 1, step)
        extents: dict[str, Extent] = {}
        for name, distances in self.found.detours.items():
            parts = [self.before[name], *(_move(around, distance) for distance in distances)]
            rows = _join(parts, self.arity).clip(lo, hi)
            if len(rows) > MOST_ROWS:
                return None
            extents[name] = close_off(rows, *tails)
        return extents

    def _go_round(self, lo: int, hi: int) -> Rows | None:
        """Return rows that are right within [lo,hi] for the hub, with infinite ends; None if there are too many."""
        rows = self.before[self.found.hub]
        both = self.sums.least is None
        endless = (rows.lo == NEG_INF) | ((rows.hi == POS_INF) & both)
        always = rows.where(endless)
        always = Rows(always.args, np.full(len(always), NEG_INF), np.full(len(always), POS_INF))
        halves = rows.where(~endless & (rows.hi == POS_INF))
        rows = rows.where(~endless & (rows.hi < POS_INF))
        looked_at = (len(rows) * (hi - lo) + int((rows.hi - rows.lo).astype(object).sum())) // self.sums.step
        if looked_at > MOST_CANDIDATES:
            return None
        ends = zip(rows.lo.tolist(), rows.hi.tolist(), strict=True)
        found = [self.sums.between(lo - last, hi - first) for first, last in ends]
        counts = np.array([len(sums) for sums in found], np.int64)
        added = np.concatenate([np.empty(0, np.int64), *found])
        each = np.repeat(np.arange(len(rows)), counts)
        moved = Rows(rows.args[:, each], rows.lo[each] + added, rows.hi[each] + added)
        return Rows.concatenate([always, halves, moved], self.arity)


def _move(rows: Rows, distance: int) -> Rows:
    """Return rows moved in time; infinite ends stay."""
    lo = np.where(rows.lo == NEG_INF, NEG_INF, rows.lo + distance)
    return Rows(rows.args, lo, np.where(rows.hi == POS_INF, POS_INF, rows.hi + distance))


def _join(parts: list[Rows], arity: int) -> Rows:
    """Return the rows of all parts as maximal intervals."""
    return coalesce(sort_by_time(Rows.concatenate(parts, arity)))
