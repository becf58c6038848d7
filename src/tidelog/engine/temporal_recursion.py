"""Batch evaluation of a recursion through time: forward, slice by slice.

Within a slice, everything that the rules of the recursion deny lies before it and is known. Between slices, jump to the
next time at which anything can change: where an interval begins or ends, moved by the ranges of the rules. While the
same atoms go on holding, and nothing else has happened for longer than the rules look back, everything stays as it is
until the next such time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush

import numpy as np

from tidelog.compiler.bound_memory import read_range, window_of
from tidelog.compiler.compiled_program import CompiledProgram, RuleComponent
from tidelog.compiler.flat_rules import Pair
from tidelog.engine import store_tables
from tidelog.engine.batch_problem import ComponentPlans, Problem, Unsettled, plan_component
from tidelog.engine.fact_store import Rows, Store
from tidelog.engine.running_numbers import RunningNumbers
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.wording import join_words
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF

#: How many slices may be evaluated after the last change of the inputs before the search for an end is given up.
MOST_SLICES = 500


def evaluate_in_slices(problem: Problem, store: Store, component: RuleComponent, until: int) -> Counter[int]:
    """Evaluate a recursion through time in a store that has its inputs, up to a position.

    Return how many rows had an undefined operation, by the number of the rule.
    """
    slices = _Slices(problem, store, component)
    slices.run(until)
    return Counter() if slices.numbers is None else slices.numbers.steps.undefined_by_rule()


def require_beginning(compiled: CompiledProgram, rows_of: Callable[[str], Rows]) -> None:
    """Raise TL311 if an atom of a recursion through time has no beginning.

    What a calculation starts from may have none: `B(Y), not Diamondminus[1,5] Alert` before `Y > 3` is tested.
    """
    tested = {name for step in compiled.calculations if is_hidden(name := step.input.predicate)}
    for component in compiled.components:
        for name in set(component.predicates) - tested if component.slice else ():
            if (rows_of(name).lo == NEG_INF).any():
                endless = [read for read in component.inputs if (rows_of(read).lo == NEG_INF).any()]
                raise _no_beginning(compiled, component, "it" if is_hidden(name) else name, endless)


def _no_beginning(
    compiled: CompiledProgram, component: RuleComponent, name: str, endless: Iterable[str]
) -> TidelogError:
    rule = compiled.source.rules[component.rules[0].origin]
    message = f"this recursion reaches back without end: {name} already holds before the first fact"
    causes = [read for read in endless if not is_hidden(read)]
    help = f"give the facts of {join_words(causes)}, or those that they follow from, a beginning" if causes else None
    return TidelogError(Diagnostic("TL311", message, rule.place, help=help))


class _Slices:
    def __init__(self, problem: Problem, store: Store, component: RuleComponent) -> None:
        self.problem, self.store, self.component = problem, store, component
        compiled = problem.compiled
        self.numbers = RunningNumbers(compiled, problem.symbols) if compiled.numeric else None
        store.horizon = (1 - LIMIT, LIMIT - 1)
        # New facts drive rules at any time, so only those that deny nothing of the recursion.
        driven = tuple(rule for rule in component.rules if not any(b.negated for b in rule.body))
        self.plans: list[ComponentPlans] = [
            plan_component(problem, store, replace(component, rules=driven), part.rules, lambda rule: 0)
            for part in component.parts
        ]
        self.shifts, self.lookback = _ranges(compiled, component)
        #: Positions at which something may change.
        self.due: list[int] = []
        #: The atoms that held throughout the last slice, and since when the same ones do.
        self.lasting: frozenset[tuple[int, int]] = frozenset()
        self.lasting_since = NEG_INF
        #: The atoms that held at the end of the last slice.
        self.reaching: frozenset[int] = frozenset()

    def run(self, until: int) -> None:
        numbers = self.problem.numbers
        watched = [numbers[name] for name in self.component.predicates]
        known = {number: self.store.rows(number) for number in map(numbers.__getitem__, self._predicates())}
        for rows in known.values():
            for position in np.unique(np.concatenate([rows.lo, rows.hi + 1])).tolist():
                self._expect(position)
        self.store.preds[[*watched, *(numbers[name] for name in self._sources())], store_tables.LOGGED] = 1
        if self.numbers is not None:
            self._take(self.numbers.compute(known), self.plans[0])
        first = self.due[0] if self.due else POS_INF
        last = max(self.due, default=NEG_INF)
        self._slice(NEG_INF, min(first - 1, until))
        require_beginning(self.problem.compiled, lambda name: self.store.rows(numbers[name]))
        at, left = first, MOST_SLICES
        while left:
            while self.due and self.due[0] < at:
                heappop(self.due)
            if not self.lasting:
                at = self.due[0] if self.due else POS_INF
            if at > until or at >= POS_INF:
                break
            left -= at > last
            at = self._advance(at, until) + 1
        else:
            raise Unsettled(self.component.predicates, {})
        self.store.preds[:, store_tables.LOGGED] = 0

    def _advance(self, at: int, until: int) -> int:
        """Evaluate the slice that begins at a position; return where it ends."""
        end = min(at + self.component.slice - 1, until)
        if self.lasting and at - self.lasting_since > self.lookback:
            later = next((t for t in sorted(self.due) if t > at), POS_INF)
            settled = min(POS_INF if later >= POS_INF else later - 1, until)
            if settled > end:
                self._extend(at, settled)
                return settled
        lasting = self._slice(at, end)
        if lasting != self.lasting:
            self.lasting, self.lasting_since = lasting, at
        return end

    def _slice(self, lo: int, hi: int) -> frozenset[tuple[int, int]]:
        """Evaluate all parts on a slice; return the atoms that hold throughout and may go on."""
        lasting: set[tuple[int, int]] = set()
        reaching: set[int] = set()
        if lo > hi:
            return frozenset()
        for part, planned in zip(self.component.parts, self.plans, strict=True):
            if part.aggregations and self.numbers is not None:
                records, change = self.numbers.aggregate(part.aggregations, hi, self.store.rows)
                heappush(self.due, change)
                self._take(records, planned)
            windows = [(lo, hi)] * planned.whole
            self.store.evaluate(list(range(planned.whole)), planned.code, windows)
            while self.store.log[0, 0]:
                logged = self.store.log[1 : int(self.store.log[0, 0]) + 1].copy()
                pieces = self.store.take_log()
                for atom, first, last in logged.tolist():
                    if first > lo or atom not in self.reaching:
                        self._expect(first, hi)
                    if last != hi:
                        self._expect(last + 1, hi)
                    if last >= hi:
                        reaching.add(atom)
                    if first <= lo and last >= hi:
                        lasting.add((atom, 0))
                    elif first <= hi:
                        lasting.add((atom, first))
                if self.numbers is not None:
                    self._take(self.numbers.compute(pieces), planned)
        if self.reaching - reaching:
            # Some of these atoms may have ended where the slice begins: an end at the end of a slice may go on.
            self._expect(lo, hi)
        self.reaching = frozenset(reaching)
        return frozenset(lasting)

    def _extend(self, lo: int, hi: int) -> None:
        """Let the atoms that last go on, over times at which nothing changes."""
        store, records = self.store, []
        for atom, _ in sorted(self.lasting):
            number, first = (int(store.atoms[atom, column]) for column in (store_tables.PRED, store_tables.ARGS))
            arity = int(store.preds[number, store_tables.ARITY])
            records += [number, lo, hi, *store.args[first : first + arity].tolist()]
        self._take(np.array(records, np.int64), self.plans[0])
        while store.log[0, 0]:
            pieces = store.take_log()
            if self.numbers is not None:
                self._take(self.numbers.compute(pieces), self.plans[0])

    def _take(self, records: np.ndarray[tuple[int], np.dtype[np.int64]], planned: ComponentPlans) -> None:
        self.problem.rank(self.store)
        self.store.work(planned.code, records, len(records))

    def _expect(self, change: int, after: int = NEG_INF) -> None:
        """Note the positions after another at which a change may change something else."""
        if -LIMIT < change < LIMIT:
            for shift in self.shifts:
                if change + shift > after:
                    heappush(self.due, change + shift)

    def _predicates(self) -> tuple[str, ...]:
        return (*self.component.inputs, *self.component.predicates)

    def _sources(self) -> list[str]:
        return [source for head, source in self.problem.compiled.numeric_edges if head in self.component.predicates]


def _ranges(compiled: CompiledProgram, component: RuleComponent) -> tuple[tuple[int, ...], int]:
    """Return by how much changes may be moved in time, and how far back all rules together look."""
    pairs: list[Pair] = [(0, 0)]
    for rule in component.rules:
        pairs += [rule.range, *(read_range(rule, literal) for literal in rule.body)]
    pairs += [window_of(step, compiled.grid) for step in component.aggregations]
    ends = {end for pair in pairs for end in pair if abs(end) < LIMIT}
    # Open and closed ends are next to each other on the grid.
    shifts = {end + near for end in ends for near in (-1, 0, 1)}
    return tuple(sorted(shifts)), sum(max((end for end in pair if abs(end) < LIMIT), default=0) for pair in pairs)
