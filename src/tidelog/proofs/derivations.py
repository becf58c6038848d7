"""Well-founded derivations inside of recursive components.

A fact of a recursive component holds because of facts of the same component, and a proof must not run in a circle. So
facts get ranks: a fact is *known* once an instance of a rule derives it from facts that are known already, and its rank
is the number of facts known before. What is known is found on demand: a goal demands the facts that instances of rules
for it read (a look at the model says which), these demand others, breadth first, and after each round everything that
follows from given facts becomes known. The search ends when the goal is known, so that derivations are shallow, and it
never looks at what the goal cannot need. Everything known stays known for the next goal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidelog.proofs.clauses import Clause, added_to, leaves
from tidelog.proofs.evaluation import Ground, Lookup, ground
from tidelog.proofs.facts import Ids
from tidelog.proofs.instances import instances, satisfied
from tidelog.proofs.sets import Pair, Times, add, coalesced, difference, intersection, meeting, spread, within
from tidelog.proofs.world import World
from tidelog.timeline.grid import NEG_INF, POS_INF, negated

#: The number of a clause, and a binding of its variables.
_Key = tuple[int, tuple[tuple[str, int], ...]]

#: How many stretches of atoms a single goal may demand before its proof counts as too long.
PATIENCE = 20_000


@dataclass(frozen=True, slots=True)
class Way:
    """An instance of a clause that derives a stretch from what a lookup knows; without a clause it is given."""

    clause: Clause | None
    binding: dict[str, int]
    lookup: Lookup


@dataclass(frozen=True, slots=True)
class Derived:
    """A stretch of an atom, with the clause and the binding that derived it; neither for a given fact."""

    lo: int
    hi: int
    rank: int
    clause: Clause | None
    binding: dict[str, int]


@dataclass
class _Known:
    times: Times = field(default_factory=list)
    pieces: list[Derived] = field(default_factory=list)


@dataclass
class _Waiting:
    """An instance of a clause, and the stretches of its head that are demanded."""

    clause: Clause
    binding: dict[str, int]
    head: Ground
    wanted: Times = field(default_factory=list)


class Derivations:
    """What is known of recursive components so far."""

    def __init__(self, world: World) -> None:
        self.model = world.model
        self.given = world.given
        self.clauses = world.clauses
        self.component = world.recursive
        self.within = world.reachable
        self._known: dict[Ground, _Known] = {}
        self._demanded: dict[Ground, Times] = {}
        #: What is to be demanded once a goal needs it.
        self._unasked: list[tuple[Ground, Pair]] = []
        self._waiting: dict[_Key, _Waiting] = {}
        self._readers: dict[Ground, set[_Key]] = {}
        #: The stretches of instances' heads that are to be tried.
        self._again: dict[_Key, list[Pair]] = {}
        self._influences: dict[tuple[int, str], Pair] = {}
        self._rank = 0

    def find(self, atom: Ground, goal: Pair) -> bool:
        """Make a stretch of an atom known that holds in the model; False if the patience for it ends."""
        wave: list[tuple[Ground, Pair]] = [(atom, goal)]
        demanded = 0
        while difference([goal], self._load(atom).times):
            if not wave:
                wave, self._unasked = self._unasked, []
            if not wave or demanded > PATIENCE:
                return False
            demanded += len(wave)
            following: list[tuple[Ground, Pair]] = []
            for wanted, stretch in wave:
                following += self._demand(wanted, stretch)
            self._settle()
            wave = following
        self._unasked += wave
        return True

    def ways(self, atom: Ground, goal: Pair) -> list[tuple[Pair, Way]]:
        """The known derivations that a stretch falls into; one alone where one instance gives all of it.

        The rank of a stretch is the highest of its pieces, and what is of lower rank may serve to derive all of it.
        """
        pieces = _meeting(self._load(atom).pieces, goal)
        lookup = self._before(atom, max(piece.rank for piece in pieces))
        for piece in pieces if len(pieces) > 1 else ():
            if piece.clause is not None:
                waiting = _Waiting(piece.clause, piece.binding, atom)
                if self._applied(waiting, goal, lookup) == [goal]:
                    return [(goal, Way(piece.clause, piece.binding, lookup))]
        return [
            ((piece.lo, piece.hi), Way(piece.clause, piece.binding, self._before(atom, piece.rank))) for piece in pieces
        ]

    def whole(self, atom: Ground, part: Pair) -> Pair:
        """The derivation that a part of it belongs to, where one does all of it: proofs that rest on whole derivations
        share their steps."""
        if atom[0] in self.component:
            for piece in _meeting(self._load(atom).pieces, part):
                if piece.clause is not None and piece.lo <= part[0] and part[1] <= piece.hi:
                    return piece.lo, piece.hi
        return part

    def _before(self, atom: Ground, rank: int | None = None) -> Lookup:
        """What is known of an atom's component, or was so before a rank, and everything of all others."""
        inside = self.component[atom[0]]

        def lookup(predicate: str, ids: Ids, window: Pair) -> Sequence[Pair]:
            if predicate not in inside:
                return self.model.lookup(predicate, ids, window)
            known = self._load((predicate, ids))
            if rank is None:
                return meeting(known.times, window)
            near = _meeting(known.pieces, (window[0] - 1, window[1] + 1))
            return coalesced((piece.lo, piece.hi) for piece in near if piece.rank < rank)

        return lookup

    def _load(self, atom: Ground) -> _Known:
        """What is known of an atom: what is given, at first."""
        known = self._known.get(atom)
        if known is None:
            known = self._known[atom] = _Known()
            for pair in self.given(*atom):
                self._learn(known, pair, None, {})
        return known

    def _learn(self, known: _Known, pair: Pair, clause: Clause | None, binding: dict[str, int]) -> None:
        self._rank += 1
        insort(known.pieces, Derived(*pair, self._rank, clause, binding), key=lambda piece: piece.lo)
        add(known.times, pair)

    def _demand(self, atom: Ground, stretch: Pair) -> list[tuple[Ground, Pair]]:
        """Finds the instances that may derive a stretch; what they read of their component is demanded next."""
        asked = self._demanded.get(atom, [])
        fresh = difference(difference([stretch], asked), self._load(atom).times)
        self._demanded[atom] = coalesced([*asked, *fresh])
        reads: list[tuple[Ground, Pair]] = []
        for window in fresh:
            for clause in self.clauses[atom[0]]:
                for binding, times in instances(clause, atom[1], window, self.model):
                    key = clause.number, tuple(sorted(binding.items()))
                    waiting = self._waiting.setdefault(key, _Waiting(clause, binding, atom))
                    head = within(spread(times, clause.shift, self.model.dense), window)
                    waiting.wanted = coalesced([*waiting.wanted, *head])
                    self._again.setdefault(key, []).extend(head)
                    for pair in times:
                        reads += self._reads(key, waiting, pair)
        return reads

    def _reads(self, key: _Key, waiting: _Waiting, times: Pair) -> list[tuple[Ground, Pair]]:
        """What an instance reads of its own component at some times; it is tried again when that grows."""
        inside = self.component[waiting.head[0]]
        found = []
        for part in waiting.clause.positive:
            for leaf, window in leaves(part.reading, times, self.model.dense):
                if leaf.predicate in inside:
                    read = ground(leaf, waiting.binding)
                    self._readers.setdefault(read, set()).add(key)
                    reachable = intersection([window], [self.within])
                    found += [(read, pair) for pair in intersection(self.model.times(*read), reachable)]
        return found

    def _settle(self) -> None:
        """Makes everything known that follows from what is known, inside of what is demanded."""
        while self._again:
            key = next(iter(self._again))
            stretches = coalesced(self._again.pop(key))
            waiting = self._waiting[key]
            known = self._load(waiting.head)
            for stretch in difference(stretches, known.times):
                for pair in self._applied(waiting, stretch, self._before(waiting.head)):
                    for fresh in difference([pair], known.times):
                        self._learn(known, fresh, waiting.clause, waiting.binding)
                        self._wake(waiting.head, fresh)

    def _applied(self, waiting: _Waiting, stretch: Pair, lookup: Lookup) -> Times:
        """The part of a stretch of an instance's head that follows from what a lookup knows."""
        clause, dense = waiting.clause, self.model.dense
        times: Times = [added_to(stretch, negated(clause.shift), dense)]
        for part in (*clause.positive, *clause.negative):
            times = satisfied(part, waiting.binding, times, lookup, dense)
            if not times:
                return []
        return within(spread(times, clause.shift, dense), stretch)

    def _wake(self, atom: Ground, grown: Pair) -> None:
        """Instances that read an atom where it has grown are tried again."""
        for key in self._readers.get(atom, ()):
            waiting = self._waiting[key]
            by = self._influence(waiting.clause, atom[0])
            affected = within(waiting.wanted, added_to(grown, by, self.model.dense))
            if affected:
                self._again.setdefault(key, []).extend(affected)

    def _influence(self, clause: Clause, predicate: str) -> Pair:
        """How far at most from a fact of a predicate a clause derives something because of it."""
        key = clause.number, predicate
        if key not in self._influences:
            dense = self.model.dense
            reads = [
                window
                for part in clause.positive
                for leaf, window in leaves(part.reading, (0, 0), dense)
                if leaf.predicate == predicate
            ]
            hull = max(min(lo for lo, _ in reads) - 2, NEG_INF), min(max(hi for _, hi in reads) + 2, POS_INF)
            self._influences[key] = added_to(negated(hull), clause.shift, dense)
        return self._influences[key]


def _meeting(pieces: Sequence[Derived], goal: Pair) -> list[Derived]:
    first = max(bisect_left(pieces, goal[0], key=lambda piece: piece.lo) - 1, 0)
    last = bisect_right(pieces, goal[1], key=lambda piece: piece.lo)
    return [piece for piece in pieces[first:last] if piece.hi >= goal[0]]
