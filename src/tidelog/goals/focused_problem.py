"""A problem without what a question does not need: fewer facts, and rules that derive fewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.collect_arities import collect_arities
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Pair
from tidelog.compiler.group_components import group_components
from tidelog.data.symbol_table import Symbols
from tidelog.engine.batch_problem import Problem
from tidelog.engine.extent import Extent
from tidelog.goals.demand import Box, collect_clauses, find_demand
from tidelog.goals.given_columns import Constants, GivenColumns, contains, join_sets
from tidelog.goals.time_windows import ALL_TIME, find_windows
from tidelog.language.hidden_predicates import ALWAYS, hidden_name
from tidelog.language.queries import Query
from tidelog.language.syntax import Constant, Variable
from tidelog.numeric.rows import Rows
from tidelog.timeline.grid import NEG_INF, POS_INF

#: Rules are guarded only if at most this part of the facts is kept: a guard is one more literal to join.
MOST_KEPT = 0.5


def focus(problem: Problem, queries: Sequence[Query], span: Pair | None) -> Problem:
    """Return a problem with the same answers to the queries in a span of time, all time for None.

    It is the same problem if nothing can be left out. Atoms that the queries do not ask for may be missing or wrong.
    Violated constraints are found in any case: they are goals of their own, for all time.
    """
    return focus_on(problem, [(query.predicate, _to_box(query, problem.symbols)) for query in queries], span)


def focus_on(problem: Problem, goals: Sequence[tuple[str, Box]], span: Pair | None) -> Problem:
    """Do what `focus` does, for the atoms of predicates in boxes."""
    windows = _find_windows(problem, goals, span)
    boxes = (
        find_demand(problem, [*goals, *((name, {}) for name in problem.violations)])
        if any(box for _, box in goals)
        else None
    )
    if boxes is None and all(windows.get(name, ALL_TIME) == ALL_TIME for name in problem.given):
        return problem
    columns = GivenColumns(problem.given, len(problem.symbols))
    given = {
        name: _select(columns, name, rows, None if boxes is None else boxes.get(name, ()), windows.get(name, ALL_TIME))
        for name, rows in problem.given.items()
        if name in windows
    }
    focused = replace(problem, given=given, undefined={})
    if boxes is None or sum(map(len, given.values())) > MOST_KEPT * _count_read(problem):
        return focused
    return _guard(focused, boxes, columns)


def select_answers(extent: Extent, queries: Iterable[Query], symbols: Symbols) -> Extent:
    """Return the part of an extent that one of the queries asks for."""
    rows = extent.rows
    keep = np.zeros(len(rows), bool)
    for query in queries:
        fits = np.ones(len(rows), bool)
        first: dict[Variable, NDArray[np.int32]] = {}
        for term, column in zip(query.terms or (), rows.args, strict=query.terms is not None):
            if isinstance(term, Constant):
                fits &= column == symbols.intern(term.value)
            else:
                fits &= column == first.setdefault(term, column)
        keep |= fits
    return extent if keep.all() else replace(extent, rows=rows.where(keep))


def _to_box(query: Query, symbols: Symbols) -> Box:
    return {
        at: np.array([symbols.intern(term.value)], np.int32)
        for at, term in enumerate(query.terms or ())
        if isinstance(term, Constant)
    }


def _find_windows(problem: Problem, goals: Iterable[tuple[str, Box]], span: Pair | None) -> dict[str, Pair]:
    """Return the windows of all predicates that the goals and the constraints depend on."""
    asked = {name: span or ALL_TIME for name, _ in goals} | dict.fromkeys(problem.violations, ALL_TIME)
    windows = find_windows(problem.compiled, asked)
    return {**windows, ALWAYS: ALL_TIME}


def _count_read(problem: Problem) -> int:
    """Count the given facts of predicates that rules read."""
    read = {literal.predicate for rule in collect_clauses(problem.compiled) for literal in rule.body}
    return sum(len(rows) for name, rows in problem.given.items() if name in read)


def _select(columns: GivenColumns, name: str, rows: Rows, boxes: Sequence[Box] | None, window: Pair) -> Rows:
    """Return the rows in one of the boxes, None for all, that hold at some time of a window."""
    if boxes is not None and not any(not box for box in boxes):
        keep = np.zeros(len(rows), bool)
        for box in boxes:
            keep[columns.select(name, box)] = True
        rows = rows.where(keep)
    if window == ALL_TIME:
        return rows
    near = (rows.lo <= window[1]) & (rows.hi >= window[0])
    return rows if near.all() else rows.where(near)


def _guard(problem: Problem, boxes: Mapping[str, Sequence[Box]], columns: GivenColumns) -> Problem:
    """Return the problem with rules that derive atoms in boxes only."""
    guards = _Guards(problem, boxes, columns)
    rules = tuple(guarded for rule in problem.compiled.rules for guarded in guards.add_to(rule))
    compiled = problem.compiled
    compiled = replace(
        compiled,
        rules=rules,
        calculations=tuple(step for step in compiled.calculations if step.head.predicate in boxes),
        aggregations=tuple(step for step in compiled.aggregations if step.head.predicate in boxes),
    )
    compiled = group_components(collect_arities(compiled))
    return replace(problem, compiled=compiled, given={**problem.given, **guards.facts}, undefined={})


class _Guards:
    """Literals that keep rules to the boxes of their heads, where their bodies do not do so anyway."""

    def __init__(self, problem: Problem, boxes: Mapping[str, Sequence[Box]], columns: GivenColumns) -> None:
        self.problem = problem
        self.boxes = boxes
        self.columns = columns
        #: The facts of the guards: they hold at all times.
        self.facts: dict[str, Rows] = {}
        self._names: dict[tuple[str, int, int], str] = {}
        self._confined: dict[tuple[str, int], Constants | None] = {}
        self._derived = {rule.predicate for rule in problem.compiled.rules}
        self._computed = {step.head.predicate for step in problem.compiled.steps}

    def add_to(self, rule: FlatRule) -> Iterator[FlatRule]:
        """Yield a rule with guards: once for each box of its head, or once without any where one box needs none."""
        copies: list[FlatRule] = []
        for number, box in enumerate(self.boxes.get(rule.predicate, ())):
            guards = self._find_guards(rule, number, box)
            if guards is None:
                continue
            if not guards:
                yield rule
                return
            copies.append(replace(rule, body=(*rule.body, *guards)))
        yield from copies

    def _find_guards(self, rule: FlatRule, number: int, box: Box) -> list[FlatLiteral] | None:
        """Return the guards that keep a rule to a box of its head; None if it never derives an atom there."""
        guards: list[FlatLiteral] = []
        for position, wanted in box.items():
            term = rule.args[position]
            if isinstance(term, Constant):
                if not contains(wanted, self.problem.symbols.intern(term.value)):
                    return None
            elif not self._is_implied(rule, term, wanted):
                guards.append(FlatLiteral(self._name(rule.predicate, number, position, wanted), (term,)))
        return guards

    def _is_implied(self, rule: FlatRule, variable: Variable, wanted: Constants) -> bool:
        """Return whether a body binds a variable to wanted constants only."""
        for literal in rule.body:
            for position, term in enumerate(literal.args):
                if term == variable and not literal.negated:
                    confined = self._find_confined(literal.predicate, position)
                    if confined is not None and self.columns.is_subset(confined, wanted):
                        return True
        return False

    def _find_confined(self, name: str, position: int) -> Constants | None:
        """Return a set that contains the constants of all facts at a position; None for any.

        Facts that rules derive are in the boxes, since each of these rules is guarded where it has to be.
        """
        key = name, position
        if key not in self._confined:
            boxes = self.boxes.get(name, ())
            if name in self._computed or any(position not in box for box in boxes if name in self._derived):
                self._confined[key] = None
            elif name in self._derived:
                found = np.empty(0, np.int32)
                for box in boxes:
                    found = join_sets(found, box[position])
                self._confined[key] = found
            else:
                self._confined[key] = self.columns.collect(self.problem.facts_of(name).args[position])
        return self._confined[key]

    def _name(self, predicate: str, number: int, position: int, wanted: Constants) -> str:
        """Return the predicate of a guard, which holds of the wanted constants."""
        key = predicate, number, position
        if key not in self._names:
            self._names[key] = name = hidden_name(f"goal{len(self._names)}")
            count = len(wanted)
            self.facts[name] = Rows(wanted[np.newaxis], np.full(count, NEG_INF), np.full(count, POS_INF))
        return self._names[key]
