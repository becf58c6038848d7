"""Search for the cheapest split of a program into stages, each evaluated bucket by bucket.

The search has three steps. `rule_locality` defines the terms *hashed*, *copied*, *key* and *local*.

**Units.** Rules are grouped into units: the rules of one strongly connected component of the predicate graph, or one
constraint. A unit is evaluated within one stage. The predicates that it reads come from the input, from its own stage,
or from an earlier one.

**Choices.** For each unit, all choices of hashed arguments for the predicates that it derives (for a constraint: of its
key) are listed for which its rules can be local. A choice leaves a *domain* for each predicate that the unit reads: the
arguments that it may be hashed on, and whether it may be copied. A unit can be split if it has a choice in which every
rule that reads a stream reads a hashed predicate.

**Placements.** Units are placed in the order of their dependencies: into an existing stage whose domains agree with the
choice, or into a new one. The cheapest placement has, in this order,

1. the fewest predicates with arguments, other than background, that are copied to all buckets: every bucket has to hold
   and process all of their facts, so more buckets do not help there;
2. the fewest stages: each costs a shuffle, and waits for the one before it;
3. the fewest background predicates that are copied rather than hashed.

A unit that cannot be split has all its predicates copied. A stage of such units only has one bucket, and nothing has to
be copied. In a stage with other units, it is derived in every bucket alike.

Placements are tried by limited discrepancy search: first the one that takes the cheapest alternative for each unit in
turn, then those that differ from it in one unit, in two units, and so on, with at most `PLACEMENTS` steps in all.
Programs of usual size are searched completely.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from tidelog.analysis.predicate_graph import find_components, find_needed_rules
from tidelog.analysis.rule_locality import Key, RuleShape, describe_rule, find_guard, is_local, needs_guard
from tidelog.language.hidden_predicates import CLOCK, violation_name
from tidelog.language.program import Program
from tidelog.language.syntax import Term
from tidelog.language.validation import rule_atoms

#: Bounds of the search: steps in placing units (fewer for large programs, where each takes longer), choices for one
#: unit, and steps to find them. Beyond them a cheaper plan may be missed, but every plan that is found is sound.
PLACEMENTS = 4_000
CHOICES = 64
ASSIGNMENTS = 10_000

#: For each predicate, the arguments that it may be hashed on, and None if it may be copied.
Domains = Mapping[str, frozenset[int | None]]

_COPIED: frozenset[int | None] = frozenset({None})


@dataclass(frozen=True)
class RuleUnit:
    """Rules that stay in one stage, the predicates that they derive and read, and the choices to split them."""

    own: tuple[str, ...]
    shapes: tuple[RuleShape, ...]
    reads: frozenset[str]
    choices: tuple[Domains, ...]
    can_be_split: bool


@dataclass(frozen=True)
class StageDraft:
    """A stage under construction, with its units by number. If nothing is hashed, it needs only one bucket."""

    units: tuple[int, ...]
    domains: Domains
    key: Key
    #: The numbers of predicates with arguments that are copied to more than one bucket: streams, and background.
    copied: tuple[int, int]


@dataclass(frozen=True)
class SplitPlan:
    """The units of a program, and the stages that they were placed in."""

    units: tuple[RuleUnit, ...]
    stages: tuple[StageDraft, ...]
    finder: ChoiceFinder
    derived: frozenset[str]


def search_split(
    program: Program, wanted: Iterable[str], background: Collection[str], endless: Collection[str]
) -> SplitPlan:
    """Find the cheapest split of the rules that the wanted predicates and the constraints need.

    `background` and `endless` are as in `distribution.plan_distribution`.
    """
    names = tuple(wanted)
    shapes = [describe_rule(number, program.rules[number]) for number in find_needed_rules(program.rules, names)]
    derived = frozenset(shape.head.predicate for shape in shapes if shape.head)
    known = _find_background(program, background, derived, shapes)
    # Every bucket generates the whole calendar, so it counts as copied, not as hashed.
    finder = ChoiceFinder(collect_arities(program) | dict.fromkeys(program.calendars, 0), known)
    units = tuple(finder.build_unit(own, rules) for own, rules in _group_rules(names, shapes, derived, endless))
    return SplitPlan(units, _PlacementSearch(units, finder, derived).find_cheapest(), finder, derived)


def collect_arities(program: Program) -> dict[str, int]:
    """Return the arity of every predicate, like `Program.predicates` but with hidden ones."""
    used = {atom.predicate: len(atom.args) for rule in program.rules for atom in rule_atoms(rule)}
    return used | {fact.predicate: len(fact.args) for fact in program.facts}


def _find_background(
    program: Program, given: Collection[str], derived: frozenset[str], shapes: Iterable[RuleShape]
) -> frozenset[str]:
    """Find the background predicates: those given, calendars, rigid ones and the clock of temporal Datalog, and those
    derived from background only."""
    rigid = {name for name, _ in program.temporal.rigid} - derived if program.temporal else set()
    background = {*given, *rigid, *program.calendars, CLOCK}
    while True:
        streamed = {
            shape.head.predicate
            for shape in shapes
            if shape.head and any(a.predicate not in background for a in shape.body)
        }
        more = derived - streamed - background
        if not more:
            return frozenset(background)
        background |= more


def _group_rules(
    wanted: tuple[str, ...], shapes: Iterable[RuleShape], derived: frozenset[str], endless: Collection[str]
) -> Iterator[tuple[tuple[str, ...], tuple[RuleShape, ...]]]:
    """Yield the predicates and rules of each unit, after the units that it depends on."""
    nodes = {shape.number: shape.head.predicate if shape.head else violation_name(shape.number, 0) for shape in shapes}
    graph: dict[str, list[str]] = {name: [] for name in wanted}
    for shape in shapes:
        graph.setdefault(nodes[shape.number], []).extend(a.predicate for a in shape.body if a.predicate in derived)
    for shape in shapes:
        # An endless predicate must not leave its stage. An edge to its readers puts them into the same component.
        for atom in shape.body:
            if atom.predicate in endless and atom.predicate in derived:
                graph[atom.predicate].append(nodes[shape.number])
    for component in find_components(graph):
        inside = set(component.predicates)
        rules = tuple(shape for shape in shapes if nodes[shape.number] in inside)
        yield tuple(sorted(inside - {nodes[shape.number] for shape in rules if shape.head is None})), rules


def choose_key(domains: Domains) -> dict[str, int | None]:
    """Choose how each predicate is distributed: hashed on the first argument that it may be hashed on, else copied."""
    return {name: min((at for at in domain if at is not None), default=None) for name, domain in domains.items()}


# The choices of a unit


@dataclass(frozen=True)
class _RuleKey:
    """The key of a rule (None if its whole body is copied), and whether its negated atoms are copied."""

    term: Term | None
    positive_only: bool = False


@dataclass(frozen=True)
class ChoiceFinder:
    """Finds the choices of units. They depend on arities and background predicates besides the rules."""

    arities: Mapping[str, int]
    background: frozenset[str]

    def build_unit(self, own: tuple[str, ...], shapes: tuple[RuleShape, ...]) -> RuleUnit:
        """Build the unit of some rules, which derive the predicates `own`."""
        reads = frozenset(atom.predicate for shape in shapes for atom in shape.body) - set(own)
        choices = tuple(islice(self.find_choices(own, shapes), CHOICES))
        copied: Domains = dict.fromkeys((*own, *reads), _COPIED)
        if shapes and {*own, *reads} <= self.background:
            # Rules over background only can also be derived in every bucket; without a body they need no guard then.
            return RuleUnit(own, shapes, reads, (*choices, copied) if reads else (copied, *choices), True)
        return RuleUnit(own, shapes, reads, choices or (copied,), bool(choices))

    def find_choices(self, own: tuple[str, ...], shapes: tuple[RuleShape, ...]) -> Iterator[Domains]:
        """Yield the choices in which all rules are local and buckets share the facts of the streams that they read."""
        for assigned in self._assign_arguments(own, shapes):
            if not shapes and None in assigned.values():
                continue
            for keys in product(*(_possible_keys(shape, assigned) for shape in shapes)):
                domains = _compute_domains(assigned, shapes, keys)
                key = choose_key(domains)
                if all(self.is_split_by(shape, key, own) for shape in shapes):
                    yield domains

    def is_split_by(self, shape: RuleShape, key: Key, own: Collection[str]) -> bool:
        """Return whether a rule is local, and the buckets share its work if it reads a stream."""
        if not is_local(shape, key, own):
            return False
        names = {atom.predicate for atom in shape.body}
        if names <= self.background or any(key[name] is not None for name in names):
            return True
        guard = find_guard(shape, key, own) if needs_guard(shape, key) else None
        return guard is not None and guard.atom is not None

    def _assign_arguments(self, own: tuple[str, ...], shapes: tuple[RuleShape, ...]) -> Iterator[Key]:
        """Yield the assignments of hashed arguments (None: copied) to the own predicates that no rule rules out."""
        order, cycles = _order_predicates(own, shapes)
        mentions = {name: [shape for shape in shapes if name in shape.predicates] for name in own}
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
            # If a predicate of a cycle is copied, so is everything it depends on, which is the whole cycle.
            other = next((member for member in cycles[name] if member in so_far), None)
            if other is not None:
                positions = tuple(at for at in positions if (at is None) == (so_far[other] is None))
            for position in reversed(positions):
                key = {**so_far, name: position}
                if all(_may_be_local(shape, key) for shape in mentions[name]):
                    stack.append(key)


def _order_predicates(
    own: tuple[str, ...], shapes: tuple[RuleShape, ...]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the predicates, ordered such that a rule connects each to an earlier one if possible, and the cycle of
    each: predicates that depend on each other."""
    graph: dict[str, list[str]] = {name: [] for name in own}
    for shape in shapes:
        if shape.head is not None:
            graph[shape.head.predicate] += [atom.predicate for atom in shape.body if atom.predicate in graph]
    order: dict[str, None] = {}
    for root in own:
        pending = [root]
        while pending:
            name = pending.pop(0)
            if name not in order:
                order[name] = None
                pending += graph[name]
    cycles = {name: group.predicates for group in find_components(graph) for name in group.predicates}
    return list(order), cycles


def _may_be_local(shape: RuleShape, key: Key) -> bool:
    """Return whether a rule can be local, given the predicates that have an assignment so far."""
    chosen = [(atom, key[atom.predicate]) for atom in shape.body if atom.predicate in key]
    terms = {shape.term(atom, position) for atom, position in chosen if position is not None}
    if shape.head is not None and shape.head.predicate in key:
        position = key[shape.head.predicate]
        if position is None:
            return not terms
        if shape.part:
            return position == 0
        terms.add(shape.term(shape.head, position))
    return len(terms) <= 1


def _possible_keys(shape: RuleShape, assigned: Key) -> list[_RuleKey]:
    """Return the keys that a rule may have: that of its head, or for constraints and parts any term of its body."""
    position = None if shape.head is None else assigned[shape.head.predicate]
    if shape.head is not None and not (shape.part and position is not None):
        return [_RuleKey(None if position is None else shape.term(shape.head, position))]
    terms = dict.fromkeys(shape.term(atom, i) for atom in shape.body for i in range(len(atom.args)))
    return [_RuleKey(term, only) for term in terms for only in ((False, True) if shape.negated else (False,))]


def _compute_domains(assigned: Key, shapes: tuple[RuleShape, ...], keys: tuple[_RuleKey, ...]) -> Domains:
    """Compute the domains that a choice leaves, given the keys of the rules."""
    domains: dict[str, frozenset[int | None]] = {name: frozenset({at}) for name, at in assigned.items()}
    for shape, key in zip(shapes, keys, strict=True):
        for name in {atom.predicate for atom in shape.body} - set(assigned):
            allowed = _COPIED
            if key.term is not None and not (key.positive_only and name in {atom.predicate for atom in shape.negated}):
                allowed |= shape.positions(name, key.term)
            domains[name] = domains.get(name, allowed) & allowed
    return domains


# Placing the units

_Cost = tuple[int, int, int]
#: A placement of the first units: the stages so far, and the number of the stage of each unit.
_Placement = tuple[tuple[StageDraft, ...], tuple[int, ...]]


class _PlacementSearch:
    """The search for the cheapest placement of units into stages."""

    def __init__(self, units: tuple[RuleUnit, ...], finder: ChoiceFinder, derived: frozenset[str]) -> None:
        self.units, self.finder, self.derived = units, finder, derived
        home = {name: number for number, unit in enumerate(units) for name in unit.own if name in derived}
        #: For each unit, the units whose predicates it reads.
        self.below = [{home[name] for name in unit.reads if name in home} for unit in units]

    def find_cheapest(self) -> tuple[StageDraft, ...]:
        """Return the stages of the cheapest placement that is found, by limited discrepancy search."""
        steps = max(PLACEMENTS * 10 // max(10, len(self.units)), 2 * len(self.units))
        best: tuple[_Cost, tuple[StageDraft, ...]] | None = None
        for discrepancies in range(steps):
            incomplete = False
            pending: list[tuple[_Placement, int]] = [(((), ()), discrepancies)]
            while pending and (steps > 0 or best is None):
                (stages, places), left = pending.pop()
                steps -= 1
                if best is not None and _compute_cost(stages) >= best[0]:
                    continue
                if len(places) == len(self.units):
                    best = _compute_cost(stages), stages
                    continue
                ways = sorted(self._place_next(stages, places), key=lambda way: _compute_cost(way[0]))
                incomplete |= len(ways) > left + 1
                pending += [(way, left - rank) for rank, way in enumerate(ways[: left + 1])][::-1]
            if not incomplete or steps <= 0:
                break
        assert best is not None, "every unit can have a stage of its own"
        return best[1]

    def _place_next(self, stages: tuple[StageDraft, ...], places: tuple[int, ...]) -> Iterator[_Placement]:
        """Yield the ways to place the next unit, the earliest stage first."""
        number = len(places)
        for place in range(max((places[below] for below in self.below[number]), default=0), len(stages)):
            for extended in self._extend_stage(stages[place], number):
                yield (*stages[:place], extended, *stages[place + 1 :]), (*places, place)
        for choice in self.units[number].choices:
            yield (*stages, self._build_stage((number,), choice)), (*places, len(stages))

    def _extend_stage(self, stage: StageDraft, number: int) -> Iterator[StageDraft]:
        """Yield a stage with one more unit, in all ways in which that is sound."""
        for choice in self.units[number].choices:
            agreed = {name: stage.domains[name] & choice[name] for name in choice if name in stage.domains}
            if not all(agreed.values()):
                continue
            extended = self._build_stage((*stage.units, number), {**stage.domains, **choice, **agreed})
            changed = {name for name in choice if stage.key.get(name) != extended.key[name]}
            if all(self._is_sound(extended, other, changed) for other in stage.units) and self._is_sound(
                extended, number
            ):
                yield extended

    def _build_stage(self, units: tuple[int, ...], domains: Domains) -> StageDraft:
        own = self._find_derived(units)
        key = choose_key(domains)
        copied = [name for name, position in key.items() if position is None and name not in own]
        if all(position is None for position in key.values()):
            copied = []
        kinds = [name in self.finder.background for name in copied if self.finder.arities.get(name)]
        return StageDraft(units, domains, key, (kinds.count(False), kinds.count(True)))

    def _is_sound(self, stage: StageDraft, number: int, changed: Collection[str] | None = None) -> bool:
        """Return whether a unit's rules are local in a stage, and split if they can be.

        If `changed` is given, a unit with none of these predicates is known to be sound.
        """
        unit = self.units[number]
        if changed is not None and not any(name in unit.reads or name in unit.own for name in changed):
            return True
        own = self._find_derived(stage.units)
        suits = self.finder.is_split_by if unit.can_be_split else is_local
        return all(suits(shape, stage.key, own) for shape in unit.shapes)

    def _find_derived(self, units: Iterable[int]) -> set[str]:
        """Return the predicates that rules of some units derive."""
        return {name for number in units for name in self.units[number].own if name in self.derived}


def _compute_cost(stages: tuple[StageDraft, ...]) -> _Cost:
    """Return copied streams, stages and copied background, which are compared in this order."""
    return sum(stage.copied[0] for stage in stages), len(stages), sum(stage.copied[1] for stage in stages)
