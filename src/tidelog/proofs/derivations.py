"""Well-founded derivations inside recursive components.

A fact of a recursive component may hold because of facts of the same component, and a proof must not be circular. So
facts get ranks: a fact is *known* once an instance of a rule derives it from facts that are known already, and its rank
is the number of facts known before it. Facts become known on demand. A goal demands the facts that instances of its
rules read, which a look at the model determines; these demand others, breadth first, and after each round everything
that follows from given facts becomes known. The search ends when the goal is known, so derivations are shallow, and it
never looks at facts that the goal cannot need. Known facts stay known for the next goal.

In a recursion through time, negated literals and aggregates read the whole model: what they read lies further back in
time, and its own proof never leads to later times.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidelog.proofs.encoded_rules import EncodedRule, find_atom_windows, shift_range
from tidelog.proofs.explained_model import ExplainedModel
from tidelog.proofs.fact_index import Ids
from tidelog.proofs.formula_evaluation import GroundAtom, Lookup, ground_atom
from tidelog.proofs.rule_instances import find_instances, restrict_to_body
from tidelog.timeline.grid import NEG_INF, POS_INF, negate
from tidelog.timeline.time_sets import Pair, Times, clip, coalesce, dilate, find_touching, insert, intersect, subtract

#: The number of a rule, and a binding of its variables.
_Key = tuple[int, tuple[tuple[str, int], ...]]

#: An atom, and a range of times in which it is wanted.
_Demand = tuple[GroundAtom, Pair]

#: How many demands a single goal may cause before its proof counts as too long.
MOST_DEMANDS = 20_000


@dataclass(frozen=True, slots=True)
class RuleApplication:
    """An instance of a rule that derives a range of an atom from facts that `lookup` finds.

    Without a rule, the range is given.
    """

    rule: EncodedRule | None
    binding: dict[str, int]
    lookup: Lookup


@dataclass(frozen=True, slots=True)
class _KnownRange:
    """A range of an atom's times with its rank, and the rule and binding that derived it; no rule if it is given."""

    lo: int
    hi: int
    rank: int
    rule: EncodedRule | None
    binding: dict[str, int]


@dataclass
class _KnownAtom:
    """When an atom is known to hold, as a set of times and as ranges by start."""

    times: Times = field(default_factory=list)
    ranges: list[_KnownRange] = field(default_factory=list)


@dataclass
class _PendingInstance:
    """An instance of a rule, and the ranges of its head that are demanded."""

    rule: EncodedRule
    binding: dict[str, int]
    head: GroundAtom
    demanded: Times = field(default_factory=list)


class Derivations:
    """The facts of recursive components that are known so far."""

    def __init__(self, model: ExplainedModel) -> None:
        self.index = model.index
        self.given_times = model.given_times
        self.rules = model.rules
        self.component = model.recursive
        self.through_time = model.through_time
        self.reachable = model.reachable
        self._known: dict[GroundAtom, _KnownAtom] = {}
        self._demanded: dict[GroundAtom, Times] = {}
        #: Demands that are postponed until a goal needs them.
        self._postponed: list[_Demand] = []
        self._pending: dict[_Key, _PendingInstance] = {}
        self._readers: dict[GroundAtom, set[_Key]] = {}
        #: The ranges of instances' heads that are to be tried again.
        self._retry: dict[_Key, list[Pair]] = {}
        self._influences: dict[tuple[int, str], Pair] = {}
        self._rank = 0

    def derive(self, atom: GroundAtom, goal: Pair) -> bool:
        """Make a range of an atom known that holds in the model; False if that takes too many demands."""
        wave: list[_Demand] = [(atom, goal)]
        demands = 0
        while subtract([goal], self._load(atom).times):
            if not wave:
                wave, self._postponed = self._postponed, []
            if not wave or demands > MOST_DEMANDS:
                return False
            demands += len(wave)
            following: list[_Demand] = []
            for wanted, times in wave:
                following += self._demand(wanted, times)
            self._saturate()
            wave = following
        self._postponed += wave
        return True

    def find_applications(self, atom: GroundAtom, goal: Pair) -> list[tuple[Pair, RuleApplication]]:
        """Return the known derivations that cover a range; a single one where one instance derives all of it.

        The rank of a range is the highest of its parts, so facts of lower rank may be used to derive all of it.
        """
        ranges = _find_overlapping(self._load(atom).ranges, goal)
        lookup = self._lookup_before(atom, max(known.rank for known in ranges))
        for known in ranges if len(ranges) > 1 else ():
            if known.rule is not None:
                instance = _PendingInstance(known.rule, known.binding, atom)
                if self._apply(instance, goal, lookup) == [goal]:
                    return [(goal, RuleApplication(known.rule, known.binding, lookup))]
        return [
            (
                (known.lo, known.hi),
                RuleApplication(known.rule, known.binding, self._lookup_before(atom, known.rank)),
            )
            for known in ranges
        ]

    def widen(self, atom: GroundAtom, part: Pair) -> Pair:
        """Return the whole range that a single derivation gives around a part, or else the part itself.

        Proofs that rest on whole derivations share their steps. In a recursion through time no step may rest on later
        times, since a negation or an aggregate there leads back to earlier ones only.
        """
        if atom[0] in self.component and atom[0] not in self.through_time:
            for known in _find_overlapping(self._load(atom).ranges, part):
                if known.rule is not None and known.lo <= part[0] and part[1] <= known.hi:
                    return known.lo, known.hi
        return part

    def _lookup_before(self, atom: GroundAtom, rank: int | None = None) -> Lookup:
        """Build a lookup of what is known of the atom's component (before a rank), and of all other predicates."""
        inside = self.component[atom[0]]

        def lookup(predicate: str, ids: Ids, window: Pair) -> Sequence[Pair]:
            if predicate not in inside:
                return self.index.lookup(predicate, ids, window)
            known_atom = self._load((predicate, ids))
            if rank is None:
                return find_touching(known_atom.times, window)
            near = _find_overlapping(known_atom.ranges, (window[0] - 1, window[1] + 1))
            return coalesce((known.lo, known.hi) for known in near if known.rank < rank)

        return lookup

    def _load(self, atom: GroundAtom) -> _KnownAtom:
        """Return the known ranges of an atom; at first, these are those of the given facts."""
        known = self._known.get(atom)
        if known is None:
            known = self._known[atom] = _KnownAtom()
            for pair in self.given_times(*atom):
                self._record(known, pair, None, {})
        return known

    def _record(self, atom: _KnownAtom, pair: Pair, rule: EncodedRule | None, binding: dict[str, int]) -> None:
        """Record that a range of an atom is known, with the next rank."""
        self._rank += 1
        insort(atom.ranges, _KnownRange(*pair, self._rank, rule, binding), key=lambda known: known.lo)
        insert(atom.times, pair)

    def _demand(self, atom: GroundAtom, wanted: Pair) -> list[_Demand]:
        """Find the instances that may derive a range; return what they read of their own component."""
        demanded = self._demanded.get(atom, [])
        fresh = subtract(subtract([wanted], demanded), self._load(atom).times)
        self._demanded[atom] = coalesce([*demanded, *fresh])
        demands: list[_Demand] = []
        for window in fresh:
            for rule in self.rules[atom[0]]:
                for binding, times in find_instances(rule, atom[1], window, self.index):
                    key = rule.number, tuple(sorted(binding.items()))
                    instance = self._pending.setdefault(key, _PendingInstance(rule, binding, atom))
                    head = clip(dilate(times, rule.shift, self.index.dense), window)
                    instance.demanded = coalesce([*instance.demanded, *head])
                    self._retry.setdefault(key, []).extend(head)
                    for pair in times:
                        demands += self._demand_premises(key, instance, pair)
        return demands

    def _demand_premises(self, key: _Key, instance: _PendingInstance, times: Pair) -> list[_Demand]:
        """Return what an instance reads of its own component; the instance is tried again when that grows."""
        inside = self.component[instance.head[0]]
        demands: list[_Demand] = []
        for literal in instance.rule.positive:
            for atom, window in find_atom_windows(literal.formula, times, self.index.dense):
                if atom.predicate in inside:
                    premise = ground_atom(atom, instance.binding)
                    self._readers.setdefault(premise, set()).add(key)
                    reachable = intersect([window], [self.reachable])
                    demands += [(premise, pair) for pair in intersect(self.index.times(*premise), reachable)]
        return demands

    def _saturate(self) -> None:
        """Make everything known that follows from known facts, inside of what is demanded."""
        while self._retry:
            key = next(iter(self._retry))
            ranges = coalesce(self._retry.pop(key))
            instance = self._pending[key]
            known = self._load(instance.head)
            for wanted in subtract(ranges, known.times):
                for pair in self._apply(instance, wanted, self._lookup_before(instance.head)):
                    for fresh in subtract([pair], known.times):
                        self._record(known, fresh, instance.rule, instance.binding)
                        self._wake_readers(instance.head, fresh)

    def _apply(self, instance: _PendingInstance, wanted: Pair, lookup: Lookup) -> Times:
        """Return the part of a range of an instance's head that follows from what a lookup finds."""
        rule, dense = instance.rule, self.index.dense
        times: Times = [shift_range(wanted, negate(rule.shift), dense)]
        times = restrict_to_body(rule.body, instance.binding, times, lookup, self.index)
        return clip(dilate(times, rule.shift, dense), wanted)

    def _wake_readers(self, atom: GroundAtom, grown: Pair) -> None:
        """Schedule the instances that read an atom where it has grown."""
        for key in self._readers.get(atom, ()):
            instance = self._pending[key]
            by = self._influence_range(instance.rule, atom[0])
            affected = clip(instance.demanded, shift_range(grown, by, self.index.dense))
            if affected:
                self._retry.setdefault(key, []).extend(affected)

    def _influence_range(self, rule: EncodedRule, predicate: str) -> Pair:
        """Return how far from a fact of a predicate a rule may derive something because of it."""
        key = rule.number, predicate
        if key not in self._influences:
            dense = self.index.dense
            windows = [
                window
                for literal in rule.positive
                for atom, window in find_atom_windows(literal.formula, (0, 0), dense)
                if atom.predicate == predicate
            ]
            reach = max(min(lo for lo, _ in windows) - 2, NEG_INF), min(max(hi for _, hi in windows) + 2, POS_INF)
            self._influences[key] = shift_range(negate(reach), rule.shift, dense)
        return self._influences[key]


def _find_overlapping(ranges: Sequence[_KnownRange], goal: Pair) -> list[_KnownRange]:
    """Return the ranges, sorted by start and disjoint, that overlap a goal."""
    first = max(bisect_left(ranges, goal[0], key=lambda known: known.lo) - 1, 0)
    last = bisect_right(ranges, goal[1], key=lambda known: known.lo)
    return [known for known in ranges[first:last] if known.hi >= goal[0]]
