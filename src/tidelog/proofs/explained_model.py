"""The model that proofs refer to: all facts, the given facts among them, and the rules, all on one grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from tidelog.analysis.predicate_graph import body_atoms, find_needed_rules, find_predicate_components
from tidelog.batch import BatchRun, prepare_run, solve_run
from tidelog.engine.extent import Extent, Tail
from tidelog.goals.endless_recursion import may_repeat
from tidelog.goals.fact_source import FactSource, TooManyFacts
from tidelog.language.core_rules import compares_with_value
from tidelog.language.hidden_predicates import CLOCK, is_hidden
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import AggregateFunction, Fact
from tidelog.language.time_arguments import NO_TIMES, find_time_terms
from tidelog.language.validation import rule_atoms
from tidelog.proofs.asked_facts import AskedFacts
from tidelog.proofs.decoder import Decoder
from tidelog.proofs.encoded_rules import (
    Diamond,
    EncodedAtom,
    EncodedFormula,
    EncodedLiteral,
    EncodedRule,
    encode_rule,
    find_body_windows,
    shift_range,
    variable_names,
)
from tidelog.proofs.fact_index import FactIndex, Ids, PredicateIndex, match_atom
from tidelog.proofs.formula_evaluation import GroundAtom, ground_atom
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid, negate
from tidelog.timeline.interval import Interval, TimelineName
from tidelog.timeline.time_sets import ALWAYS, Pair, Times, clip, subtract

if TYPE_CHECKING:
    from tidelog.compiler.calendar_input import CalendarInput
    from tidelog.data.dataset import Dataset

#: How far beyond the last change of a model proofs go step by step, in multiples of the rules' reach.
MARGIN = 4
#: Among fewer facts, the whole model is computed sooner than what a proof looks at.
FEWEST_FACTS = 10_000


@dataclass(frozen=True)
class ExplainedModel:
    """A model, and the rules and facts that it follows from.

    In the `core`, a finite range of times, proofs go step by step. Before the first and after the last of the
    `changes` everything repeats.
    """

    grid: Grid
    decoder: Decoder
    extents: Mapping[str, Extent]
    #: All that holds, far enough beyond the core.
    index: FactIndex
    given_facts: Mapping[str, PredicateIndex]
    #: The rules that can derive each predicate.
    rules: Mapping[str, Sequence[EncodedRule]]
    #: For each predicate of a recursive component, the predicates of that component.
    recursive: Mapping[str, frozenset[str]]
    #: The predicates of recursions through time: those in which negation or an aggregate runs through a cycle.
    through_time: frozenset[str]
    changes: Pair
    core: Pair
    #: The core, and how far beyond it proofs may look for premises.
    reachable: Pair
    #: Whether something repeats for ever, so that the model beyond the core cannot be written down.
    repeating: bool
    #: The periods with which everything repeats before the first of the changes and after the last.
    periods: Pair
    #: Whether the rules are temporal Datalog.
    temporal: bool
    #: How many rows of a rule had an undefined operation, by the number of the rule.
    undefined: Mapping[int, int]
    #: The calendar that was generated, if rules read one: what follows from it without data is known in a range.
    calendar: CalendarInput | None = None
    #: Whether facts that do not matter for the goal are left out.
    focused: bool = False

    def write_as(self, rule: EncodedRule) -> ExplainedModel:
        """Return the model with a decoder that writes the times of a rule as dates, if the data has dates."""
        return (
            self if rule.dates == self.decoder.dates else replace(self, decoder=replace(self.decoder, dates=rule.dates))
        )

    def given_times(self, predicate: str, ids: Ids) -> Times:
        """Return when an atom is given."""
        table = self.given_facts.get(predicate)
        return table.times(ids) if table else []

    def missing_times(self, atom: GroundAtom, pair: Pair) -> Times:
        """Return the part of a range in which an atom does not hold."""
        return subtract([pair], self.holding_times(atom, pair))

    def holding_times(self, atom: GroundAtom, pair: Pair) -> Times:
        """Return the part of a range in which an atom holds."""
        extent = self.extents.get(atom[0])
        if extent is None or not subtract([pair], [self.core]):
            return clip(self.index.times(*atom), pair)
        return clip(PredicateIndex(extent.within(*extent.widen(*pair)).rows).times(atom[1]), pair)

    @property
    def known_times(self) -> Pair:
        """The times whose facts the index has: the core, or all times where nothing repeats for ever."""
        return self.core if self.repeating else ALWAYS

    @property
    def early_time(self) -> int:
        """The time that stands for the beginning of time: before all changes, or 0 where nothing repeats for ever."""
        return self.core[0] if self.repeating else 0

    def find_last_moment(self, window: Pair) -> int | None:
        """Return the last moment of a window that the index has; None if there is none."""
        if not self.repeating and window[1] < POS_INF:
            return window[1]
        last = min(window[1], self.core[1])
        return last if last >= max(window[0], self.core[0]) else None

    def find_equivalent_moment(self, moment: Pair) -> Pair:
        """Return a moment at which the same holds: of the core, if everything repeats outside of it."""
        if not self.repeating:
            return moment
        before, after = self.periods
        (at, _), (first, last) = moment, self.changes
        if at > self.core[1]:
            at = last + 1 + (at - last - 1) % after
        elif at < self.core[0]:
            at = first - 1 - (first - 1 - at) % before
        return at, at


def build_explained_model(
    program: Program,
    data: Dataset,
    query: Sequence[str] | None,
    timeline: TimelineName | None,
    denominator: int,
    near: Interval | None = None,
    goal: Fact | None = None,
) -> ExplainedModel:
    """Compute the model of a program and its data; with a query, only what its predicates depend on.

    Times are multiples of `1/denominator`, or finer. `near` is a range of interest besides that of the data. With a
    goal, compute what can matter for whether this fact holds, at any time.
    """
    names = _collect_predicates(program, data, query)
    goals = () if goal is None or _may_be_undefined(program, goal.predicate) else (goal,)
    run, extents = solve_run(
        lambda finer: prepare_run(
            program, data, names, timeline=timeline, goals=goals, denominator=lcm(denominator, finer), near=near
        ),
        BatchRun.solve,
    )
    return _describe_model(program, data.dates, run, extents)


def build_asked_model(
    program: Program, data: Dataset, query: Sequence[str], timeline: TimelineName | None, denominator: int
) -> ExplainedModel:
    """Return a model whose facts are found when its index is asked for them; raise `TooManyFacts` where it may differ.

    It has nothing but its rules and its index. Nothing repeats for ever in it, and its constraints must be known to
    hold.
    """
    names = _collect_predicates(program, data, query)
    if program.calendars or program.temporal is not None or any(_may_be_undefined(program, name) for name in query):
        raise TooManyFacts
    run = prepare_run(program, data, names, timeline=timeline, denominator=denominator)
    compiled, symbols = run.compiled, run.data.symbols
    facts = sum(map(len, run.problem.given.values()))
    # Values that rules compute have numbers in the order in which they are computed.
    computed = any(step.compared is None and step.function is not None for step in compiled.aggregations)
    compared = any(map(compares_with_value, compiled.aggregations))
    if facts < FEWEST_FACTS or computed or compared or compiled.calculations or may_repeat(run.problem):
        raise TooManyFacts
    model = _describe_model(program, data.dates, run, {})
    for rule in (rule for name in names for rule in model.rules.get(name, ())):
        # How far such a rule looks ahead depends on the last change in the whole model.
        if any(window[1] == POS_INF for _, window in find_body_windows(rule.body, (0, 0), compiled.grid.dense)):
            raise TooManyFacts
    return replace(model, index=AskedFacts(FactSource(run.problem), model.index, len(symbols)))


def _describe_model(program: Program, has_dates: bool, run: BatchRun, extents: Mapping[str, Extent]) -> ExplainedModel:
    """Describe the model of a run, given its extents."""
    grid, symbols = run.compiled.grid, run.data.symbols
    rules: dict[str, list[EncodedRule]] = {}
    reach = 0
    for number, source in enumerate(program.rules):
        dates = find_time_terms(source, program.time_arguments) if has_dates else NO_TIMES
        rule = encode_rule(number, source, grid, symbols.intern, dates)
        if rule is not None:
            rules.setdefault(rule.head.predicate, []).append(rule)
            reach = max(reach, _compute_reach(rule, grid.dense))
    reach += grid.tick
    changes = _find_changes(extents)
    before = _find_common_period(extent.left for extent in extents.values())
    after = _find_common_period(extent.right for extent in extents.values())
    core = changes[0] - 2 * before - MARGIN * reach, changes[1] + 2 * after + MARGIN * reach
    reachable = core[0] - before - 4 * MARGIN * reach, core[1] + after + 4 * MARGIN * reach
    indexed = reachable[0] - 2 * before - reach, reachable[1] + 2 * after + reach
    decoder = Decoder(grid, symbols)
    recursive = {
        name: frozenset(component.predicates)
        for component in find_predicate_components(program.rules)
        if component.recursive
        for name in component.predicates
    }
    tables = {name: PredicateIndex(extent.over(*indexed)) for name, extent in extents.items()}
    return ExplainedModel(
        grid=grid,
        decoder=decoder,
        extents=extents,
        index=FactIndex(tables, decoder.value, symbols.intern, grid),
        given_facts={name: PredicateIndex(rows) for name, rows in run.problem.given.items()},
        rules=rules,
        recursive=recursive,
        through_time=frozenset(
            name
            for rule in program.rules
            if (head := head_atom(rule)) is not None
            for atom, denied in body_atoms(rule)
            if denied and atom.predicate in recursive.get(head.predicate, ())
            for name in recursive[head.predicate]
        ),
        changes=changes,
        core=core,
        reachable=reachable,
        repeating=any(extent.left or extent.right for extent in extents.values()),
        periods=(before or grid.tick, after or grid.tick),
        temporal=program.temporal is not None,
        undefined=run.problem.undefined,
        calendar=run.calendar,
        focused=run.whole is not None,
    )


def resolve_atom(
    model: ExplainedModel, literal: EncodedLiteral, binding: dict[str, int], when: Pair
) -> tuple[GroundAtom, Pair] | None:
    """Return the one atom that a literal reads in a window, with the window in which it reads it; None for more.

    An auxiliary atom of temporal Datalog that stands for one atom at one time is replaced by that atom.
    """
    formula = literal.formula
    if isinstance(formula, Diamond):
        when, formula = shift_range(when, negate(formula.by), model.grid.dense), formula.arg
    if not isinstance(formula, EncodedAtom) or any(name not in binding for name in variable_names(formula)):
        return None
    atom = ground_atom(formula, binding)
    for rule in model.rules.get(atom[0], ()) if is_hidden(atom[0]) else ():
        inner = match_atom(rule.head, atom[1], {})
        plain = [literal for literal in rule.positive if not is_clock(literal.formula)]
        clocks = [literal.formula for literal in rule.positive if is_clock(literal.formula)]
        if inner is None or len(plain) != 1 or rule.negative:
            return None
        for clock in clocks:
            assert isinstance(clock, EncodedAtom)
            number = model.decoder.value(ground_atom(clock, inner)[1][0])
            assert isinstance(number, Fraction)
            when = int(number), int(number)
        return resolve_atom(model, plain[0], inner, when)
    return atom, when


def is_clock(formula: EncodedFormula) -> bool:
    """Tell whether a formula is the auxiliary atom of temporal Datalog that holds at one time only."""
    return isinstance(formula, EncodedAtom) and formula.predicate == CLOCK


def describe_absence(
    model: ExplainedModel, literal: EncodedLiteral, binding: dict[str, int], when: Pair
) -> tuple[str, Interval]:
    """Say what does not hold if a negated literal holds, and throughout which times."""
    resolved = resolve_atom(model, literal, binding, when)
    if resolved is None:
        text = model.decoder.format_formula(literal.source.formula, binding)
        return f"not {text}", model.grid.to_interval(*when)
    atom, window = resolved
    return f"no {model.decoder.format_atom(atom)}", model.grid.to_interval(*window)


def _may_be_undefined(program: Program, predicate: str) -> bool:
    """Return whether a predicate depends on operations that may be undefined: explanations count all such rows."""
    needed = set(find_needed_rules(program.rules, (predicate,)))
    sums = (AggregateFunction.SUM, AggregateFunction.AVG)
    calculated = {step.origin for step in program.core.calculations}
    summed = {step.origin for step in program.core.aggregations if step.function in sums}
    return not needed.isdisjoint(calculated | summed)


def _collect_predicates(program: Program, data: Dataset, query: Sequence[str] | None) -> tuple[str, ...]:
    """Return the predicates that proofs may mention."""
    rules = program.rules
    if query is not None:
        rules = tuple(rules[number] for number in find_needed_rules(rules, query))
    used = {atom.predicate for rule in rules for atom in rule_atoms(rule)}
    if query is None:
        used |= {name for name, _ in data.relations} | {fact.predicate for fact in program.facts}
    return tuple(sorted(used.union(query or ())))


def _find_common_period(tails: Iterable[Tail | None]) -> int:
    """Return a common period of tails, or 0 where nothing repeats.

    Where the least common multiple is out of proportion, return the longest period instead.
    """
    periods = [tail.every for tail in tails if tail]
    if not periods:
        return 0
    common = lcm(*periods)
    return common if common <= 64 * max(periods) else max(periods)


def _find_changes(extents: Mapping[str, Extent]) -> Pair:
    """Return the first and the last time at which something changes or begins to repeat."""
    times = [0]
    for extent in extents.values():
        for ends in (extent.rows.lo, extent.rows.hi):
            finite = ends[(ends > NEG_INF) & (ends < POS_INF)]
            times += [int(finite.min()), int(finite.max())] if len(finite) else []
    return min(times), max(times)


def _compute_reach(rule: EncodedRule, dense: bool) -> int:
    """Return how far apart a rule's head and the facts that it reads can be, infinite ranges aside."""
    windows = [window for _, window in find_body_windows(rule.body, (0, 0), dense)]
    finite = [abs(end) for window in (*windows, rule.shift) for end in window if abs(end) < LIMIT]
    return 2 * max(finite, default=0)
