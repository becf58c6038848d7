"""Batch evaluation: component by component, each to its fixpoint, for all time.

A component without recursion ends by itself. A recursive one is first run up to a horizon somewhat beyond the data: if
nothing was cut there, the fixpoint is exact. Otherwise it may go on for ever, and `repetition_search` finds and proves
what repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tidelog.compiler import opcodes
from tidelog.compiler.bound_memory import window_of
from tidelog.compiler.compiled_program import RuleComponent
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair
from tidelog.compiler.opcodes import Code
from tidelog.compiler.order_joins import Plan, order_joins
from tidelog.engine.batch_problem import Drivers, Problem, Unsettled, plan_component
from tidelog.engine.bulk_load import load, reserve
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import AllowanceExceeded, Rows
from tidelog.engine.gap_jumps import (
    FEW_RECORDS,
    find_groups,
    follow_groups,
    is_spread_out,
    join_segments,
    looks_back_only,
)
from tidelog.engine.horizons import choose_sweep, has_long_shifts, is_near
from tidelog.engine.maximal_intervals import coalesce
from tidelog.engine.repetition_search import SEARCH_ALLOWANCE, TrialRuns, find_repeating, find_span
from tidelog.engine.shift_recursion import find_shift_recursion, solve_shifts
from tidelog.engine.single_literals import evaluate_single_literals, has_single_literal
from tidelog.language.core_rules import Aggregation
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.syntax import AggregateFunction
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, time_overflow

if TYPE_CHECKING:
    from tidelog.engine.numeric_steps import NumericSteps


def solve(problem: Problem, until: Pair | None = None) -> dict[str, Extent]:
    """Return the extents of the queries and of violated constraints; `until` is the span that is asked for.

    Outside of that span the extents may be incomplete where nothing that is asked for depends on it. Constraints are
    about all time, so with them the span alone is looked at only where all time cannot be settled.
    """
    sweep = choose_sweep(problem, until)
    near, shifting = sweep is not None and is_near(problem, sweep), has_long_shifts(problem)
    if near and not problem.violations and not shifting:
        return Evaluation(problem, sweep, until).solve()
    try:
        return Evaluation(problem, until=until).solve()
    except Unsettled:
        if sweep is None or (shifting and not near):
            raise
        return Evaluation(problem, sweep, until).solve()


def executed_plans(problem: Problem) -> list[Plan]:
    """Evaluate a problem for all time and return the plans, as they were run."""
    evaluation = Evaluation(problem)
    evaluation.solve()
    return [plan for plans in evaluation.plans for plan in plans]


def _is_bounded(rule: FlatRule) -> bool:
    return all(abs(end) < LIMIT for pair in (rule.range, *(b.range for b in rule.body)) for end in pair)


def _build_steps(problem: Problem) -> NumericSteps | None:
    """Make the calculators and aggregators of a program; their kernels are loaded only if there are any."""
    if not problem.compiled.numeric:
        return None
    from tidelog.engine.numeric_steps import NumericSteps

    return NumericSteps.of(problem.compiled, problem.symbols)


class Evaluation:
    """One evaluation of a problem; `plans` are those that were run, by component."""

    def __init__(self, problem: Problem, sweep: Pair | None = None, until: Pair | None = None) -> None:
        self.problem = problem
        self.compiled = problem.compiled
        self.sweep = sweep
        self.until = until
        self.store = problem.new_store()
        reserve(self.store, sum(map(len, problem.given.values())))
        self.loaded: set[str] = set()
        self.plans: list[tuple[Plan, ...]] = []
        #: The maximal intervals of predicates that are complete. They come into the store once a join reads them.
        self.columns: dict[str, Rows] = {}
        #: Extents of predicates that repeat for ever; all others are in the store.
        self.repeating: dict[str, Extent] = {}
        #: Predicates among these that are only known around the span that is asked for.
        self.partial: set[str] = set()
        self.steps = _build_steps(problem)
        #: How many rows had an undefined operation in recursions through time, by the number of the rule.
        self.undefined: Counter[int] = Counter()
        #: The results of aggregations that nothing reads.
        self.final: dict[str, Rows] = {}

    def solve(self) -> dict[str, Extent]:
        """Evaluate all components and return the extents of the queries and of violated constraints."""
        for place, part in enumerate(self.compiled.components):
            if any(name in self.partial for name in part.inputs):
                self._evaluate_around(place)
            elif part.slice:
                self._evaluate_in_slices(part)
            elif part.calculations or part.aggregations:
                if any(name in self.repeating for name in part.inputs) or not self._evaluate_directly(part):
                    self._evaluate_around(place)
            elif not (self._solve_shifts(place) or self._jump_gaps(place)) and (
                any(name in self.repeating for name in part.inputs)
                or (part.recursive and self.problem.endless and self.sweep is None)
                or not self._evaluate_directly(part)
            ):
                try:
                    inputs = {name: self._extent_of(name) for name in part.inputs}
                    self._settle(find_repeating(self.problem, part, inputs, self._cut_of))
                except Unsettled:
                    self._evaluate_around(place)
        if self.steps is not None:
            self.undefined += self.steps.undefined_by_rule()
        self.problem.undefined.clear()
        self.problem.undefined.update(self.undefined)
        extents = self._extents_of((*self.compiled.target.queries, *self.problem.violations))
        return {name: e.within(*self.sweep) for name, e in extents.items()} if self.sweep else extents

    def _extent_of(self, name: str) -> Extent:
        if name in self.repeating:
            return self.repeating[name]
        if name in self.final:
            return Extent(self.final[name])
        return Extent(self._rows_of(name))

    def _extents_of(self, names: Sequence[str]) -> dict[str, Extent]:
        known = {*self.repeating, *self.final, *self.columns}
        stored = [name for name in names if name in self.loaded and name not in known]
        rows = self.store.rows_by_predicate(self.problem.numbers[name] for name in stored)
        found = dict(zip(stored, map(Extent, rows), strict=True))
        return {name: found[name] if name in found else self._extent_of(name) for name in names}

    def _load(self, name: str) -> None:
        """Bring what is known of a predicate besides the store into it, once."""
        if name not in self.loaded:
            self.loaded.add(name)
            rows = self.columns[name] if name in self.columns else coalesce(self.problem.facts_of(name))
            load(self.store, self.problem.numbers[name], rows)

    def _rows_of(self, name: str) -> Rows:
        """Return the maximal intervals of a predicate that is complete."""
        if name not in self.columns:
            stored = name in self.loaded
            facts = self.problem.facts_of(name)
            self.columns[name] = self.store.rows(self.problem.numbers[name]) if stored else coalesce(facts)
        return self.columns[name]

    def _solve_shifts(self, place: int) -> bool:
        """Evaluate a recursion that only moves facts over long distances; return False if it does anything else."""
        part, tick = self.compiled.components[place], self.compiled.grid.tick
        found = find_shift_recursion(part, tick) if part.recursive and self.sweep is None else None
        if found is None or any(name in self.repeating for name in part.inputs):
            return False
        inputs = {name: self._extent_of(name) for name in part.inputs}
        entering = replace(part, rules=found.entries, recursive=False)
        runs = TrialRuns(self.problem, entering, inputs, tick, SEARCH_ALLOWANCE, self._cut_of)
        # What repeats only after too many intervals is looked at around the span that is asked for.
        spans = [(NEG_INF, POS_INF)]
        if self.until is not None:
            reach = 2 * sum(after.reach + 2 * tick for after in self.compiled.components[place + 1 :])
            spans.append((max(self.until[0] - reach, NEG_INF), min(self.until[1] + reach, POS_INF)))
        solved = solve_shifts(runs, found, spans)
        if solved is None:
            return False
        if solved[0] == (NEG_INF, POS_INF):
            self._settle(solved[1])
        else:
            self.repeating |= solved[1]
            self.partial |= set(part.predicates)
        return True

    def _jump_gaps(self, place: int) -> bool:
        """Evaluate a recursion over groups of facts that lie far apart; return False if there are none."""
        components, given = self.compiled.components, self.problem.given
        part = components[place]
        if not (part.recursive and looks_back_only(part) and is_spread_out(components, place, given.values())):
            return False
        if any(name in self.repeating for name in part.inputs):
            return False
        # A recursion that ends by itself needs no jumps.
        if self._evaluate_directly(part, FEW_RECORDS + 4 * sum(map(len, self.problem.given.values()))):
            return True
        self.plans.pop()
        inputs = {name: self._extent_of(name).rows for name in part.inputs}
        groups = find_groups([*inputs.values(), *map(self.problem.facts_of, part.predicates)], part)
        if len(groups) < 2:
            return False
        try:
            segments = follow_groups(self.problem, part, inputs, groups, self.sweep[1] if self.sweep else POS_INF)
        except Unsettled:
            return False
        joined = join_segments(segments)
        if joined is not None:
            self._settle(joined)
            return True
        # What repeats in a gap is too much to be written out: look at the span that is asked for.
        until = self.until or (NEG_INF, POS_INF)
        reach = 2 * sum(after.reach for after in self.compiled.components[place:])
        near = None
        if until[0] > NEG_INF and until[1] < POS_INF:
            near = join_segments(segments, (until[0] - reach, until[1] + reach))
        if near is None:
            raise Unsettled(part.predicates, {})
        self.repeating |= near
        self.partial |= set(near)
        return True

    def _evaluate_directly(self, part: RuleComponent, allowance: int = 0) -> bool:
        """Evaluate a component; return False if something went beyond the horizon, or the allowance."""
        store, drivers = self.store, self._choose_drivers(part)
        store.reset_clipped()
        store.horizon = (1 - LIMIT, LIMIT - 1)
        single = [] if part.recursive else [rule for rule in part.rules if has_single_literal(rule)]
        self.columns |= evaluate_single_literals(self.problem, store, single, self._read)
        places = [next((place for driven, place in drivers.values() if driven is rule), None) for rule in single]
        ordered = zip(single, places, strict=True)
        self.plans.append(tuple(order_joins(rule, place, lambda _: 0, self._cut_of(rule)) for rule, place in ordered))
        rest = replace(part, rules=tuple(rule for rule in part.rules if rule not in single))
        done = not (rest.rules or part.calculations or part.aggregations) or self._run_machine(rest, allowance, drivers)
        if any(store.clipped) and not part.recursive:
            raise time_overflow("a time that the rules derive")
        return done

    def _read(self, literal: FlatLiteral) -> Rows:
        """Return the rows that a literal reads: its operator tells whether they have to be maximal intervals."""
        name = literal.predicate
        if literal.op is Op.BOX or name in self.columns or name in self.loaded:
            return self._rows_of(name)
        return self.problem.facts_of(name)

    def _run_machine(self, part: RuleComponent, allowance: int, chosen: Drivers) -> bool:
        """Run a component in the common store; return False if something went beyond the horizon, or the allowance."""
        store = self.store
        drivers = {name: chosen[name] for name in chosen if chosen[name][0] in part.rules}
        read = {literal.predicate for rule in part.rules for literal in rule.body}
        read |= {step.input.predicate for step in part.calculations}
        read |= {step.input.predicate for step in part.aggregations}
        for name in (*part.inputs, *part.predicates):
            if name not in drivers and (name in read or name in part.predicates):
                self._load(name)
        for name in part.predicates:
            self.columns.pop(name, None)
        if part.recursive:
            # Calculations in a recursion have bounded values, so their times are bounded, too, or never end.
            if not part.calculations:
                store.horizon = self.sweep or self._first_horizon(part)
            elif self.sweep:
                store.horizon = self.sweep
            usual = 10 * SEARCH_ALLOWANCE if self.sweep else SEARCH_ALLOWANCE
            store.allowance = store.taken + (allowance or usual)
        whole = [rule for rule in part.rules if not any(rule is driven for driven, _ in drivers.values())]
        planned = plan_component(self.problem, store, part, whole, self._cut_of, drivers=drivers)
        self.plans[-1] += planned.plans
        try:
            for name in drivers:
                store.insert(self.problem.numbers[name], self.problem.facts_of(name), planned.code, transient=True)
            store.evaluate(list(range(planned.whole)), planned.code)
            if self.steps is not None:
                self._run_steps(part, planned.code, self.steps)
        except AllowanceExceeded:
            if self.sweep and not allowance:
                raise Unsettled(part.predicates, {}) from None
            return False
        finally:
            store.allowance = 1 << 62
        return self.sweep is not None or not any(store.clipped)

    def _evaluate_in_slices(self, part: RuleComponent) -> None:
        """Evaluate a recursion through time, as far as its inputs are known and the question reaches."""
        end = self.sweep[1] if self.sweep else POS_INF
        for name in part.inputs:
            if name in self.repeating:
                if end == POS_INF or self.repeating[name].left is not None:
                    raise Unsettled(part.predicates, {})
                known = self.repeating[name].over(NEG_INF, end).clip(NEG_INF, end)
                self.store.insert(self.problem.numbers[name], known)
            self._load(name)
        for name in part.predicates:
            self._load(name)
        from tidelog.engine.temporal_recursion import evaluate_in_slices

        self.undefined += evaluate_in_slices(self.problem, self.store, part, end)

    def _run_steps(self, part: RuleComponent, code: Code, steps: NumericSteps) -> None:
        """Run the calculations and aggregations of a component; in a recursion, until nothing is new."""
        from tidelog.engine.numeric_steps import order_columns, order_results

        store, numbers = self.store, self.problem.numbers
        while part.calculations or part.aggregations:
            before = store.news
            for calculation in part.calculations:
                rows = store.rows(numbers[calculation.input.predicate])
                steps.calculators[calculation].undefined = 0
                self._add_computed(calculation.head.predicate, steps.calculators[calculation].apply(rows), code)
            for aggregation in part.aggregations:
                rows = order_columns(aggregation, store.rows(numbers[aggregation.input.predicate]))
                found = order_results(aggregation, steps.advance(aggregation, rows, POS_INF))
                if self._is_final(aggregation):
                    self.final[aggregation.head.predicate] = found.clip(*self.sweep) if self.sweep else found
                else:
                    self._add_computed(aggregation.head.predicate, found, code)
            if not part.recursive or store.news == before:
                return

    def _is_final(self, step: Aggregation) -> bool:
        """Return whether an aggregation alone derives its predicate, and nothing reads it: it need not be stored."""
        name, compiled = step.head.predicate, self.compiled
        derived = [rule.predicate for rule in compiled.rules] + [head for head, _ in compiled.numeric_edges]
        read = {b.predicate for rule in compiled.rules for b in rule.body} | {b for _, b in compiled.numeric_edges}
        return derived.count(name) == 1 and name not in read and not len(self.problem.facts_of(name))

    def _add_computed(self, name: str, rows: Rows, code: Code) -> None:
        self.problem.rank(self.store)
        self._load(name)
        self.store.insert(self.problem.numbers[name], rows.clip(*self.sweep) if self.sweep else rows, code)

    def _choose_drivers(self, part: RuleComponent) -> dict[str, tuple[FlatRule, int]]:
        """Choose given relations that pass through one rule and need not be stored, with the position of the literal.

        The rule must not be recursive, the literal must not need maximal intervals, and no other rule may read it.
        """
        rules = self.compiled.rules
        readers: dict[str, int] = {}
        for rule in rules:
            for literal in rule.body:
                readers[literal.predicate] = readers.get(literal.predicate, 0) + 1
        stored = {rule.predicate for rule in rules} | set(self.compiled.target.queries) | self.loaded
        stored |= {name for edge in self.compiled.numeric_edges for name in edge}
        drivers: dict[str, tuple[FlatRule, int]] = {}
        for rule in part.rules:
            if any(b.predicate in part.predicates or b.op in (Op.SINCE, Op.UNTIL) for b in rule.body):
                continue
            passing = [
                (len(self.problem.facts_of(literal.predicate)), -place, literal.predicate)
                for place, literal in enumerate(rule.body)
                if literal.predicate not in stored
                and readers[literal.predicate] == 1
                and not literal.negated
                and literal.op in (Op.HOLDS, Op.DIAMOND)
            ]
            if passing:
                _, place, name = max(passing)
                drivers[name] = rule, -place
        return drivers

    def _first_horizon(self, part: RuleComponent) -> Pair:
        rows: Iterable[Rows] = (self.store.rows(self.problem.numbers[n]) for n in (*part.inputs, *part.predicates))
        lo, hi = find_span(rows)
        return max(lo - 16 * part.reach, -LIMIT), min(hi + 16 * part.reach, LIMIT)

    def _cut_of(self, rule: FlatRule) -> int:
        """Return the ends at which a rule's negated predicates are only known up to the horizon."""
        cut = 0
        for literal in rule.body:
            if literal.negated and literal.predicate in self.partial:
                cut = opcodes.CUT_LEFT | opcodes.CUT_RIGHT
            elif literal.negated and literal.predicate in self.repeating:
                extent = self.repeating[literal.predicate]
                cut |= (extent.left is not None) | (extent.right is not None) << 1
        return cut

    def _evaluate_around(self, place: int) -> None:
        """Evaluate a component around the span that is asked for only.

        It may repeat with a period too long to be written out. But without recursion and with bounded ranges a span of
        time depends on what is near it alone: no farther than this component and those after it reach.
        """
        components = self.compiled.components
        part = components[place]
        until = self.until or (NEG_INF, POS_INF)
        windows = [window_of(step, self.compiled.grid)[1] for step in part.aggregations]
        near = until[0] > NEG_INF and until[1] < POS_INF and all(_is_bounded(rule) for rule in part.rules)
        near = near and all(width < LIMIT for width in windows)
        if part.recursive or not near or any(map(is_violation, part.predicates)):
            raise Unsettled(part.predicates, {})
        reach = 2 * sum(after.reach for after in components[place:])
        inputs = {name: self._extent_of(name) for name in part.inputs}
        if part.calculations or part.aggregations:
            self._run_steps_around(part, inputs, (until[0] - reach, until[1] + reach))
            return
        runs = TrialRuns(self.problem, part, inputs, self.compiled.grid.tick, SEARCH_ALLOWANCE, self._cut_of)
        own = {name: self.problem.facts_of(name) for name in part.predicates}
        try:
            rows = runs.run(until[0] - reach, until[1] + reach, own)
        except AllowanceExceeded:
            raise Unsettled(part.predicates, {}) from None
        self.repeating |= {name: Extent(found) for name, found in rows.items()}
        self.partial |= set(part.predicates)

    def _run_steps_around(self, part: RuleComponent, inputs: dict[str, Extent], span: Pair) -> None:
        """Run calculations and aggregations over the part of their inputs in a span.

        An interval that is cut at the left end seems to begin there, but the span reaches farther back than windows.
        """
        if part.rules or any(step.function is AggregateFunction.START for step in part.aggregations):
            raise Unsettled(part.predicates, {})
        from tidelog.engine.numeric_steps import order_columns, order_results

        steps = _build_steps(self.problem)
        assert steps is not None
        for name in part.predicates:
            parts = [self.problem.facts_of(name)]
            for calculation in part.calculations:
                if calculation.head.predicate == name:
                    rows = inputs[calculation.input.predicate].over(*span).clip(*span)
                    parts.append(steps.calculators[calculation].apply(rows))
            for aggregation in part.aggregations:
                if aggregation.head.predicate == name:
                    rows = order_columns(aggregation, inputs[aggregation.input.predicate].over(*span).clip(*span))
                    found = steps.advance(aggregation, rows, span[1]).clip(*span)
                    parts.append(order_results(aggregation, found))
            self.repeating[name] = Extent(coalesce(Rows.concatenate(parts, self.compiled.arities[name])))
        self.problem.rank(self.store)
        self.partial |= set(part.predicates)

    def _settle(self, extents: dict[str, Extent]) -> None:
        """Keep the extents of a component: in the store if nothing finite repeats, beside it otherwise."""
        if any(e.left or e.right for e in extents.values()):
            self.repeating |= extents
            return
        for name, extent in extents.items():
            self.loaded.add(name)
            self.store.insert(self.problem.numbers[name], extent.rows)
