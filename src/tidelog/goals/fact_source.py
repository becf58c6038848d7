"""Facts on request: those of a predicate in a box and a range of time, found as the answers to a question are.

Each request is answered exactly, from the given facts that can matter for it. So whoever asks for everything that it
looks at sees the same facts as in the whole model, whatever it asks for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidelog.compiler.collect_arities import collect_arities
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import Pair
from tidelog.compiler.group_components import group_components
from tidelog.compiler.prune import prune_to_query
from tidelog.engine.batch_problem import Problem, Unsettled
from tidelog.engine.fixpoint import solve
from tidelog.errors import TidelogError
from tidelog.goals.demand import Box, collect_clauses
from tidelog.goals.focused_problem import focus_on
from tidelog.goals.given_columns import GivenColumns
from tidelog.goals.time_windows import ALL_TIME
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.syntax import Constant
from tidelog.numeric.refinement import FinerGridNeeded
from tidelog.numeric.rows import Rows

#: How much all requests together may evaluate: this share of the given facts, and this many facts in any case.
MOST_FACTS = 0.05
FACTS_IN_ANY_CASE = 1_000


class TooManyFacts(Exception):
    """The requests need more facts than they may evaluate: computing the whole model costs no more."""


class FactSource:
    """Finds facts of a problem whose facts do not repeat for ever and whose constraints hold."""

    def __init__(self, problem: Problem) -> None:
        self._problem = replace(problem, compiled=_without_constraints(problem.compiled))
        self._queries = problem.compiled.target.queries
        self._derived = {rule.predicate for rule in problem.compiled.rules}
        self._derived |= {step.head.predicate for step in problem.compiled.steps}
        self._left = FACTS_IN_ANY_CASE + MOST_FACTS * sum(map(len, problem.given.values()))
        self._pruned: dict[str, Problem] = {}

    def find(self, name: str, box: Box, span: Pair) -> Rows:
        """Return the facts of a predicate in a box, complete within a span of time; raise `TooManyFacts`."""
        if name not in self._problem.compiled.arities:
            return Rows.empty(0)
        if name not in self._derived:
            return self._find_given(name, box, span)
        pruned = self._prune(name)
        focused = focus_on(pruned, [(name, box)], None if span == ALL_TIME else span)
        self._spend(sum(len(rows) for given, rows in focused.given.items() if given in pruned.given))
        try:
            extent = solve(focused, None if span == ALL_TIME else span)[name]
        except (Unsettled, FinerGridNeeded, TidelogError):
            raise TooManyFacts from None
        rows = extent.within(*span).rows
        return _select(rows, box, len(focused.symbols))

    def mentions(self, constant: int) -> bool:
        """Return whether a fact of the queries mentions a constant; raise `TooManyFacts` where only a rule may tell."""
        if any(bool((self._problem.facts_of(name).args == constant).any()) for name in self._queries):
            return True
        if constant in self._find_added():
            raise TooManyFacts
        return False

    def find_constants(self) -> list[int]:
        """Return the constants of the facts of the queries; raise `TooManyFacts` where rules may add some."""
        seen = np.zeros(len(self._problem.symbols), bool)
        for name in self._queries:
            seen[self._problem.facts_of(name).args.ravel()] = True
        if not all(seen[constant] for constant in self._find_added()):
            raise TooManyFacts
        found: list[int] = np.flatnonzero(seen).tolist()
        return found

    def _find_added(self) -> set[int]:
        """Return the constants in heads of rules."""
        terms = (term for rule in self._problem.compiled.rules for term in rule.args)
        return {self._problem.symbols.intern(term.value) for term in terms if isinstance(term, Constant)}

    def _find_given(self, name: str, box: Box, span: Pair) -> Rows:
        rows = self._problem.facts_of(name)
        if span != ALL_TIME:
            rows = rows.where((rows.lo <= span[1]) & (rows.hi >= span[0]))
        rows = _select(rows, box, len(self._problem.symbols))
        self._spend(len(rows))
        return rows

    def _prune(self, name: str) -> Problem:
        if name not in self._pruned:
            compiled = self._problem.compiled
            compiled = prune_to_query(replace(compiled, target=replace(compiled.target, queries=(name,))))
            compiled = group_components(collect_arities(compiled))
            read = {literal.predicate for rule in collect_clauses(compiled) for literal in rule.body} | {name}
            given = {name: rows for name, rows in self._problem.given.items() if name in read}
            self._pruned[name] = replace(self._problem, compiled=compiled, given=given, undefined={})
        return self._pruned[name]

    def _spend(self, count: int) -> None:
        if count > self._left:
            raise TooManyFacts
        self._left -= count


def _without_constraints(compiled: CompiledProgram) -> CompiledProgram:
    return replace(compiled, rules=tuple(rule for rule in compiled.rules if not is_violation(rule.predicate)))


def _select(rows: Rows, box: Box, constants: int) -> Rows:
    """Return the rows in a box."""
    if not box:
        return rows
    columns = GivenColumns({"": rows}, constants)
    return rows.where(np.sort(columns.select("", box)))
