"""The search for the cheapest way to split a program into stages and their buckets; see `analysis.distribution`.

Rules come in units: the rules of one strongly connected component of the predicate graph, or one constraint. A unit
stays within one stage; what a unit reads comes from the input, from its own stage, or from an earlier one.

For each unit all choices of hashed arguments for its own predicates (of a constraint: of its key) are listed for which
its rules can be local; a choice leaves for each predicate that the unit reads some arguments to hash it on, and the
way to copy it. A unit without a choice in which every rule that reads a stream reads something hashed cannot be split.
Units are then placed in the order of their dependencies, into stages that are there, if the choices agree, or into new
ones. Of all placements the cheapest is taken, by

1. how many predicates with arguments, other than background, are copied to all buckets: each bucket has to hold and
   work on all of their facts, so more buckets do not help there;
2. how many stages there are: each costs a shuffle, and waits for the one before it;
3. how many background predicates are copied rather than hashed.

A unit that cannot be split has all its predicates copied. A stage of such units alone has one bucket, where nothing has
to be copied; in a stage with others, it is derived in every bucket alike.

Placements are tried by limited discrepancy: first the one that takes what is cheapest for each unit in turn, then those
that differ from it in one unit, in two, and so on, at most `PLACEMENTS` steps in all; programs of the usual size are
searched to the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from tidelog.analysis.components import connected, needed
from tidelog.analysis.locality import Key, Shape, guard, is_local, needs_guard, shape
from tidelog.language.program import Program
from tidelog.language.safety import rule_atoms
from tidelog.language.syntax import Term

#: Bounds of the search: steps in placing units (fewer for large programs, where each takes longer), choices for one
#: unit, and steps to find them. Past them a cheaper plan may be missed, never a sound one made wrong.
PLACEMENTS = 4_000
CHOICES = 64
ASSIGNMENTS = 10_000

#: For each predicate the arguments that it may be hashed on, and None if it may be copied.
Domains = Mapping[str, frozenset[int | None]]

_COPIED: frozenset[int | None] = frozenset({None})


@dataclass(frozen=True)
class Unit:
    """Rules that stay together, the predicates that they derive, and the ways to split them."""

    own: tuple[str, ...]
    shapes: tuple[Shape, ...]
    reads: frozenset[str]
    choices: tuple[Domains, ...]
    #: Whether it can be split at all.
    splits: bool


@dataclass(frozen=True)
class Part:
    """A stage while it is being put together: its units by number. With nothing hashed it needs one bucket only."""

    units: tuple[int, ...]
    domains: Domains
    key: Key
    #: How many predicates with arguments are copied to more than one bucket: streams, and background.
    copied: tuple[int, int]


@dataclass(frozen=True)
class Split:
    """The units of a program, and the stages that they were placed into."""

    units: tuple[Unit, ...]
    parts: tuple[Part, ...]
    choosing: Choosing
    derived: frozenset[str]


def split(program: Program, wanted: Iterable[str], background: Collection[str], endless: Collection[str]) -> Split:
    """The cheapest way to split the rules that the wanted predicates need, and the constraints."""
    names = tuple(wanted)
    shapes = [shape(number, program.rules[number]) for number in needed(program.rules, names)]
    derived = frozenset(s.head.predicate for s in shapes if s.head)
    known = _background(program, background, derived, shapes)
    choosing = Choosing(arities_of(program), known)
    units = tuple(choosing.unit(own, rules) for own, rules in _groups(names, shapes, derived, endless))
    return Split(units, _Placing(units, choosing, derived).best(), choosing, derived)


def arities_of(program: Program) -> dict[str, int]:
    """As `Program.predicates`, with those that the translation of temporal Datalog made up."""
    used = {atom.predicate: len(atom.args) for rule in program.rules for atom in rule_atoms(rule)}
    return used | {fact.predicate: len(fact.args) for fact in program.facts}


def _background(
    program: Program, given: Collection[str], derived: frozenset[str], shapes: Iterable[Shape]
) -> frozenset[str]:
    """Background predicates: those named, rigid ones and clocks of temporal Datalog, what follows from nothing else."""
    rigid = {name for name, _ in program.temporal.rigid} - derived if program.temporal else set()
    found = {*given, *rigid, "$at"}
    while True:
        streamed = {s.head.predicate for s in shapes if s.head and any(a.predicate not in found for a in s.body)}
        more = derived - streamed - found
        if not more:
            return frozenset(found)
        found |= more


def _groups(
    wanted: tuple[str, ...], shapes: Iterable[Shape], derived: frozenset[str], endless: Collection[str]
) -> Iterator[tuple[tuple[str, ...], tuple[Shape, ...]]]:
    """The predicates and rules of each unit, after those that it depends on."""
    nodes = {s.number: s.head.predicate if s.head else f"$bottom{s.number}" for s in shapes}
    graph: dict[str, list[str]] = {name: [] for name in wanted}
    for s in shapes:
        graph.setdefault(nodes[s.number], []).extend(a.predicate for a in s.body if a.predicate in derived)
    for s in shapes:
        # What cannot leave a stage depends, so to say, on those who read it: they come into one component.
        for atom in s.body:
            if atom.predicate in endless and atom.predicate in derived:
                graph[atom.predicate].append(nodes[s.number])
    for component in connected(graph):
        inside = set(component.predicates)
        rules = tuple(s for s in shapes if nodes[s.number] in inside)
        yield tuple(sorted(inside - {nodes[s.number] for s in rules if s.head is None})), rules


def final(domains: Domains) -> dict[str, int | None]:
    """Each predicate hashed if it may be, on its first such argument."""
    return {name: min((at for at in domain if at is not None), default=None) for name, domain in domains.items()}


# The choices of a unit


@dataclass(frozen=True)
class _RuleKey:
    """The key of a rule (None: its whole body is copied), and whether its negated atoms are copied."""

    term: Term | None
    positive_only: bool = False


@dataclass(frozen=True)
class Choosing:
    """What choices depend on besides the rules."""

    arities: Mapping[str, int]
    background: frozenset[str]

    def unit(self, own: tuple[str, ...], shapes: tuple[Shape, ...]) -> Unit:
        reads = frozenset(atom.predicate for s in shapes for atom in s.body) - set(own)
        choices = tuple(islice(self.choices(own, shapes), CHOICES))
        copied: Domains = dict.fromkeys((*own, *reads), _COPIED)
        if shapes and {*own, *reads} <= self.background:
            # Rules that read nothing need no guard where their heads are copied.
            return Unit(own, shapes, reads, (*choices, copied) if reads else (copied, *choices), True)
        return Unit(own, shapes, reads, choices or (copied,), bool(choices))

    def choices(self, own: tuple[str, ...], shapes: tuple[Shape, ...]) -> Iterator[Domains]:
        """The ways in which rules can be local and share out what they read from streams."""
        for assigned in self._assigned(own, shapes):
            if not shapes and None in assigned.values():
                continue
            for keys in product(*(_rule_keys(s, assigned) for s in shapes)):
                domains = _domains(assigned, shapes, keys)
                key = final(domains)
                if all(self.suits(s, key, own) for s in shapes):
                    yield domains

    def suits(self, s: Shape, key: Key, own: Collection[str]) -> bool:
        """Whether a rule is local, and the buckets share its work if it reads a stream."""
        if not is_local(s, key, own):
            return False
        names = {atom.predicate for atom in s.body}
        if names <= self.background or any(key[name] is not None for name in names):
            return True
        found = guard(s, key, own) if needs_guard(s, key) else None
        return found is not None and found.atom is not None

    def _assigned(self, own: tuple[str, ...], shapes: tuple[Shape, ...]) -> Iterator[Key]:
        """Hashed arguments for the own predicates (None: copied) that no rule rules out."""
        order, cycles = _order(own, shapes)
        mentions = {name: [s for s in shapes if name in s.predicates] for name in own}
        stack: list[dict[str, int | None]] = [{}]
        for _ in range(ASSIGNMENTS):
            if not stack:
                return
            so_far = stack.pop()
            if len(so_far) == len(order):
                yield so_far
                continue
            name = order[len(so_far)]
            positions: tuple[int | None, ...] = (*range(self.arities.get(name, 0)), None)
            # If one of a cycle is copied then all that it depends on is, which is the whole cycle.
            kin = next((other for other in cycles[name] if other in so_far), None)
            if kin is not None:
                positions = tuple(at for at in positions if (at is None) == (so_far[kin] is None))
            for position in reversed(positions):
                key = {**so_far, name: position}
                if all(_agrees(s, key) for s in mentions[name]):
                    stack.append(key)


def _order(own: tuple[str, ...], shapes: tuple[Shape, ...]) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """The predicates in an order in which each, if possible, stands below one before it; and the cycle of each."""
    graph: dict[str, list[str]] = {name: [] for name in own}
    for s in shapes:
        if s.head is not None:
            graph[s.head.predicate] += [atom.predicate for atom in s.body if atom.predicate in graph]
    order: dict[str, None] = {}
    for root in own:
        todo = [root]
        while todo:
            name = todo.pop(0)
            if name not in order:
                order[name] = None
                todo += graph[name]
    cycles = {name: part.predicates for part in connected(graph) for name in part.predicates}
    return list(order), cycles


def _agrees(s: Shape, key: Key) -> bool:
    """Whether a rule can be local, as far as its predicates have been chosen for."""
    chosen = [(atom, key[atom.predicate]) for atom in s.body if atom.predicate in key]
    terms = {s.term(atom, position) for atom, position in chosen if position is not None}
    if s.head is not None and s.head.predicate in key:
        position = key[s.head.predicate]
        if position is None:
            return not terms
        terms.add(s.term(s.head, position))
    return len(terms) <= 1


def _rule_keys(s: Shape, assigned: Key) -> list[_RuleKey]:
    """The keys that a rule may have. A head decides; a constraint may have any term of its body."""
    if s.head is not None:
        position = assigned[s.head.predicate]
        return [_RuleKey(None if position is None else s.term(s.head, position))]
    terms = dict.fromkeys(s.term(atom, i) for atom in s.body for i in range(len(atom.args)))
    return [_RuleKey(term, only) for term in terms for only in ((False, True) if s.negated else (False,))]


def _domains(assigned: Key, shapes: tuple[Shape, ...], keys: tuple[_RuleKey, ...]) -> Domains:
    domains: dict[str, frozenset[int | None]] = {name: frozenset({at}) for name, at in assigned.items()}
    for s, key in zip(shapes, keys, strict=True):
        for name in {atom.predicate for atom in s.body} - set(assigned):
            allowed = _COPIED
            if key.term is not None and not (key.positive_only and name in {atom.predicate for atom in s.negated}):
                allowed |= s.positions(name, key.term)
            domains[name] = domains.get(name, allowed) & allowed
    return domains


# Placing the units

_Cost = tuple[int, int, int]
#: A placement of the first units: the stages, and the number of the stage of each unit.
_Way = tuple[tuple[Part, ...], tuple[int, ...]]


class _Placing:
    def __init__(self, units: tuple[Unit, ...], choosing: Choosing, derived: frozenset[str]) -> None:
        self.units, self.choosing, self.derived = units, choosing, derived
        home = {name: number for number, unit in enumerate(units) for name in unit.own if name in derived}
        self.below = [{home[name] for name in unit.reads if name in home} for unit in units]

    def best(self) -> tuple[Part, ...]:
        """The cheapest placement that is found."""
        steps = max(PLACEMENTS * 10 // max(10, len(self.units)), 2 * len(self.units))
        found: tuple[_Cost, tuple[Part, ...]] | None = None
        for discrepancies in range(steps):
            cut = False
            todo: list[tuple[_Way, int]] = [(((), ()), discrepancies)]
            while todo and (steps > 0 or found is None):
                (parts, places), left = todo.pop()
                steps -= 1
                if found is not None and _cost(parts) >= found[0]:
                    continue
                if len(places) == len(self.units):
                    found = _cost(parts), parts
                    continue
                ways = sorted(self._ways(parts, places), key=lambda way: _cost(way[0]))
                cut |= len(ways) > left + 1
                todo += [(way, left - rank) for rank, way in enumerate(ways[: left + 1])][::-1]
            if not cut or steps <= 0:
                break
        assert found is not None, "every unit can have a stage of its own"
        return found[1]

    def _ways(self, parts: tuple[Part, ...], places: tuple[int, ...]) -> Iterator[_Way]:
        """The ways to place the next unit, the earliest stage first."""
        number = len(places)
        for place in range(max((places[below] for below in self.below[number]), default=0), len(parts)):
            for joined in self._joined(parts[place], number):
                yield (*parts[:place], joined, *parts[place + 1 :]), (*places, place)
        for choice in self.units[number].choices:
            yield (*parts, self._part((number,), choice)), (*places, len(parts))

    def _joined(self, part: Part, number: int) -> Iterator[Part]:
        """A stage with one more unit, in all ways in which that is sound."""
        for choice in self.units[number].choices:
            agreed = {name: part.domains[name] & choice[name] for name in choice if name in part.domains}
            if not all(agreed.values()):
                continue
            joined = self._part((*part.units, number), {**part.domains, **choice, **agreed})
            changed = {name for name in choice if part.key.get(name) != joined.key[name]}
            if all(self._sound(joined, other, changed) for other in part.units) and self._sound(joined, number):
                yield joined

    def _part(self, units: tuple[int, ...], domains: Domains) -> Part:
        own = self._own(units)
        key = final(domains)
        copied = [name for name, position in key.items() if position is None and name not in own]
        if all(position is None for position in key.values()):
            copied = []
        kinds = [name in self.choosing.background for name in copied if self.choosing.arities.get(name)]
        return Part(units, domains, key, (kinds.count(False), kinds.count(True)))

    def _sound(self, part: Part, number: int, changed: Collection[str] | None = None) -> bool:
        """Whether a unit's rules (those that read what has changed) are local, and still split if they can be."""
        unit = self.units[number]
        if changed is not None and not any(name in unit.reads or name in unit.own for name in changed):
            return True
        own = self._own(part.units)
        return all(
            self.choosing.suits(s, part.key, own) if unit.splits else is_local(s, part.key, own) for s in unit.shapes
        )

    def _own(self, units: Iterable[int]) -> set[str]:
        return {name for number in units for name in self.units[number].own if name in self.derived}


def _cost(parts: tuple[Part, ...]) -> _Cost:
    return sum(part.copied[0] for part in parts), len(parts), sum(part.copied[1] for part in parts)
