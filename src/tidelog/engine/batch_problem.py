"""A compiled program with its facts: what batch evaluation starts from, and the plans and stores made for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tidelog.compiler.compiled_program import CompiledProgram, RuleComponent
from tidelog.compiler.encode import Numbering, encode_plans
from tidelog.compiler.flat_rules import FlatRule
from tidelog.compiler.opcodes import Code
from tidelog.compiler.order_joins import Plan, order_joins
from tidelog.data.symbol_table import Symbols
from tidelog.engine.fact_store import Rows, Store
from tidelog.language.hidden_predicates import ALWAYS, is_violation
from tidelog.language.syntax import Constant
from tidelog.timeline.grid import NEG_INF, POS_INF

#: A given relation that passes through one rule, by its predicate: the rule, and the position of its literal.
Drivers = Mapping[str, tuple[FlatRule, int]]


class Unsettled(Exception):
    """No repeating extent was found for a component; `known` holds facts of it that hold in any case."""

    def __init__(self, predicates: tuple[str, ...], known: dict[str, Rows]) -> None:
        super().__init__(", ".join(predicates))
        self.predicates = predicates
        self.known = known


@dataclass(frozen=True)
class Problem:
    """A compiled program, its facts by predicate, and a dictionary of constants. Top always holds."""

    compiled: CompiledProgram
    given: Mapping[str, Rows]
    symbols: Symbols
    #: How many rows had an undefined operation in the last evaluation, by the number of the user's rule.
    undefined: dict[int, int] = field(default_factory=dict)
    #: Whether recursions are expected to continue for ever: the search for what repeats then begins at once.
    endless: bool = False

    def __post_init__(self) -> None:
        top = Rows(np.empty((0, 1), np.int32), np.array([NEG_INF]), np.array([POS_INF]))
        object.__setattr__(self, "given", {**self.given, ALWAYS: top})
        for rule in self.compiled.rules:
            for term in rule.terms():
                if isinstance(term, Constant):
                    self.symbols.intern(term.value)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The engine's numbers of all predicates."""
        return {name: number for number, name in enumerate(self.compiled.names)}

    @cached_property
    def violations(self) -> tuple[str, ...]:
        """The predicates that hold where a constraint is violated."""
        return tuple(name for name in self.compiled.names if is_violation(name))

    def facts_of(self, name: str) -> Rows:
        """Return the given facts of a predicate."""
        return self.given.get(name) or Rows.empty(self.compiled.arities[name])

    def new_store(self) -> Store:
        """Make an empty store for the predicates of the program."""
        store = Store(list(self.compiled.arities.values()), self.compiled.grid.dense, np.zeros(1, np.int64))
        self.rank(store)
        return store

    def rank(self, store: Store) -> None:
        """Tell a store the order of all constants, if rules compare them."""
        if any(rule.comparisons for rule in self.compiled.rules):
            store.ranks = np.asarray(self.symbols.ranks(), np.int64)


@dataclass(frozen=True)
class ComponentPlans:
    """The plans of a component: those of whole rules come first, then those that new facts drive."""

    component: RuleComponent
    plans: tuple[Plan, ...]
    whole: int
    code: Code


def plan_component(
    problem: Problem,
    store: Store,
    component: RuleComponent,
    whole: Iterable[FlatRule],
    cut_of: Callable[[FlatRule], int],
    *,
    drivers: Drivers | None = None,
    recursion: bool = True,
) -> ComponentPlans:
    """Choose join orders by the sizes in the store, and encode them: whole rules, drivers, and the recursion."""
    numbers = problem.numbers

    def size_of(name: str) -> int:
        return store.size(numbers[name])

    plans = [order_joins(rule, None, size_of, cut_of(rule)) for rule in whole]
    count = len(plans)
    driven = [(name, rule, place) for name, (rule, place) in (drivers or {}).items()]
    if recursion:
        driven += [
            (literal.predicate, rule, place)
            for rule in component.rules
            for place, literal in enumerate(rule.body)
            if literal.predicate in component.predicates and not literal.negated
        ]
    triggers: dict[int, list[int]] = {}
    for name, rule, place in driven:
        triggers.setdefault(numbers[name], []).append(len(plans))
        plans.append(order_joins(rule, place, size_of, cut_of(rule)))
    numbering = Numbering(numbers, tuple(problem.compiled.arities.values()), problem.symbols.intern, store.index)
    return ComponentPlans(component, tuple(plans), count, encode_plans(plans, triggers, numbering))
