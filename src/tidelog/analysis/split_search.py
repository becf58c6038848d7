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

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tidelog.analysis.predicate_graph import find_components, find_needed_rules
from tidelog.analysis.rule_locality import RuleShape, describe_rule
from tidelog.analysis.stage_placement import PlacementSearch, StageDraft
from tidelog.analysis.unit_choices import ChoiceFinder, RuleUnit
from tidelog.language.hidden_predicates import CLOCK, violation_name
from tidelog.language.program import Program
from tidelog.language.validation import rule_atoms


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
    return SplitPlan(units, PlacementSearch(units, finder, derived).find_cheapest(), finder, derived)


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
    shapes = tuple(shapes)
    nodes = {shape.number: shape.head.predicate if shape.head else violation_name(shape.number, 0) for shape in shapes}
    graph: dict[str, list[str]] = {name: [] for name in wanted}
    for shape in shapes:
        graph.setdefault(nodes[shape.number], []).extend(a.predicate for a in shape.body if a.predicate in derived)
    for shape in shapes:
        # An endless predicate must not leave its stage. An edge to its readers puts them into the same component.
        for atom in shape.body:
            if atom.predicate in endless and atom.predicate in derived:
                graph[atom.predicate].append(nodes[shape.number])
    of_node: dict[str, list[RuleShape]] = {}
    for shape in shapes:
        of_node.setdefault(nodes[shape.number], []).append(shape)
    for component in find_components(graph):
        inside = set(component.predicates)
        found = [shape for name in inside for shape in of_node.get(name, ())]
        rules = tuple(sorted(found, key=lambda shape: shape.number))
        yield tuple(sorted(inside - {nodes[shape.number] for shape in rules if shape.head is None})), rules
