"""Plans of a standing query over a store, and the tables that the stream kernel reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from tidelog.compiler import opcodes
from tidelog.compiler.bound_memory import pushes_forward
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.encode import Numbering, encode_plans
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, variables_of
from tidelog.compiler.opcodes import Code
from tidelog.compiler.order_joins import Plan, SizeOf, order_joins
from tidelog.engine import agenda, store_tables
from tidelog.engine.fact_store import Int64s, Store
from tidelog.engine.generated_tier import JoinTier
from tidelog.engine.stream_kernel import Task
from tidelog.language.hidden_predicates import is_violation
from tidelog.language.syntax import Constant, Value
from tidelog.streaming.output_times import OutputTimes


@dataclass(frozen=True)
class NegationPlans:
    """How the agenda evaluates rules; see `stream_kernel.Task` for the meaning of the numbers."""

    #: By predicate: the component, the plan for an atom of it, how long the rule waits, and how its facts stand.
    visits: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=dict)
    #: By predicate whose facts may stand: the same for the plans that derive an atom of it again.
    remakes: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=dict)
    #: By predicate: operator and range with which rules read it, and how long they wait.
    readers: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=dict)
    #: For rules of negations only: the component, the plan, and how long the rule waits.
    plans: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class StreamPlans:
    """The plans of a standing query: all of them, those that new facts trigger, and those of rules without a body."""

    plans: tuple[Plan, ...]
    triggers: dict[int, list[int]]
    negations: NegationPlans
    axioms: tuple[int, ...]


@dataclass(frozen=True)
class StreamEngine:
    """A store with the encoded plans of a standing query."""

    store: Store
    plans: StreamPlans
    code: Code
    tier: JoinTier

    def count_work(self, rules: int) -> Int64s:
        """Count the work of each rule of the program since the plans were made; see `opcodes.WORK`."""
        origins = np.array([plan.rule.origin for plan in self.plans.plans], np.int64)
        places = self.code.plans[: len(origins)] + opcodes.WORK
        return np.bincount(origins, self.code.words[places], rules).astype(np.int64)


def plan_stream(compiled: CompiledProgram, size_of: SizeOf) -> StreamPlans:
    """Choose the join orders of a standing query: one plan for each literal whose new facts drive a rule.

    Rules with negation, and those about facts that stand, are not driven by new facts. They are evaluated for the atoms
    on the agenda, so each has one plan for each of its literals' atoms, and one for an atom of a head that stands.
    """
    numbers = {name: number for number, name in enumerate(compiled.names)}
    plans: list[Plan] = []
    triggers: dict[int, list[int]] = {}
    negations = NegationPlans()
    axioms: list[int] = []
    component = {place: number for number, group in enumerate(compiled.waiting) for place in group.rules}

    def add(rule: FlatRule, driver: int | None, given: FlatLiteral | None = None, stands: int = 0) -> int:
        cut = opcodes.STREAM
        if rule.predicate in compiled.recursive:
            cut |= opcodes.DEFER | (opcodes.MERGE if _joins_away(rule) else 0)
        plan = order_joins(rule, driver, size_of, cut, given)
        plans.append(replace(plan, keeper=-1, stands=stands) if stands else plan)
        return len(plans) - 1

    for place, rule in enumerate(compiled.rules):
        if not rule.body:
            axioms.append(add(rule, None))
        elif place not in component:
            for driver, literal in enumerate(rule.body):
                triggers.setdefault(numbers[literal.predicate], []).append(add(rule, driver))
        else:
            wait = compiled.bounds.waits[place]
            for reader in rule.body:
                how = (int(reader.op), *reader.range, wait)
                negations.readers.setdefault(numbers[reader.predicate], []).append(how)
            if all(b.negated for b in rule.body):
                negations.plans.append((component[place], add(rule, None), wait))
                continue
            stands = _how_facts_stand(compiled, rule)
            visits = stands | opcodes.VISITS if stands else stands
            for given in {(b.predicate, b.args): b for b in rule.body}.values():
                visit = (component[place], add(rule, None, given, visits), wait, visits)
                negations.visits.setdefault(numbers[given.predicate], []).append(visit)
            if stands:
                remake = (
                    component[place],
                    add(rule, None, FlatLiteral(rule.predicate, rule.args), stands),
                    wait,
                    stands,
                )
                negations.remakes.setdefault(numbers[rule.predicate], []).append(remake)
    return StreamPlans(tuple(plans), triggers, negations, tuple(axioms))


def _joins_away(rule: FlatRule) -> bool:
    """Return whether a join leaves out variables, so that it may derive the same fact many times."""
    return len(rule.body) > 1 and not set(variables_of(rule.body)) <= set(rule.args)


def _how_facts_stand(compiled: CompiledProgram, rule: FlatRule) -> int:
    """Return how the facts of a rule stand, as bits of `opcodes`."""
    if rule.predicate not in compiled.bounds.standing:
        return opcodes.NOT_STANDING
    return opcodes.STANDING | (opcodes.PUSHES if pushes_forward(rule) else 0)


def build_engine(
    compiled: CompiledProgram, intern: Callable[[Value], int], ranks: Callable[[], Int64s], store: Store
) -> StreamEngine:
    """Plan a standing query over a store that was made for it, and encode the plans."""
    constants = dict.fromkeys(
        term.value for rule in compiled.rules for term in rule.terms() if isinstance(term, Constant)
    )
    ids = tuple(intern(value) for value in constants)
    numbers = {name: number for number, name in enumerate(compiled.names)}
    if any(rule.comparisons for rule in compiled.rules):
        store.ranks = np.asarray(ranks(), np.int64)
    store.preds[[numbers[name] for name in compiled.transient], store_tables.TRANSIENT] = 1
    late = {name for found in compiled.late_rows.values() for name in found.sources}
    logged = {source for _, source in compiled.numeric_edges} | late
    store.preds[[numbers[name] for name in logged], store_tables.LOGGED] = 1
    store.preds[[numbers[name] for name in compiled.bounds.standing], store_tables.MAY_STAND] = 1
    if store.meta[store_tables.N_ATOMS] or store.indexes:
        plans = plan_stream(compiled, lambda name: store.size(numbers[name]))
        numbering = Numbering(numbers, tuple(compiled.arities.values()), intern, store.index)
        code, tier = encode_plans(list(plans.plans), plans.triggers, numbering), JoinTier()
    else:
        plans, code, indexes, tier = _plan_empty_store(compiled, tuple(zip(constants, ids, strict=True)))
        code = code._replace(words=code.words.copy())  # which count the work of a run
        for pred, positions in indexes:
            store.index(pred, positions)
    watched = dict.fromkeys(plans.negations.readers, 1 << agenda.RULES)
    for name in (name for component in compiled.components if component.slice for name in component.predicates):
        watched[numbers[name]] = watched.get(numbers[name], 0) | agenda.RECURSION
    query = numbers[compiled.query]
    store.watch(watched | {query: watched.get(query, 0) | 1 << agenda.ANSWERS})
    return StreamEngine(store, plans, code, tier)


@lru_cache(maxsize=16)
def _plan_empty_store(
    compiled: CompiledProgram, constants: tuple[tuple[Value, int], ...]
) -> tuple[StreamPlans, Code, tuple[tuple[int, tuple[int, ...]], ...], JoinTier]:
    """Plan a query over no facts, as most streams begin: the plans, their code, the indexes that it uses, in order, and
    the kernel for it.

    `constants` are those of the rules, with their numbers.
    """
    plans = plan_stream(compiled, lambda name: 0)
    numbers = {name: number for number, name in enumerate(compiled.names)}
    indexes: dict[tuple[int, tuple[int, ...]], int] = {}

    def number_index(pred: int, positions: tuple[int, ...]) -> int:
        return indexes.setdefault((pred, positions), len(indexes))

    numbering = Numbering(numbers, tuple(compiled.arities.values()), dict(constants).__getitem__, number_index)
    return plans, encode_plans(list(plans.plans), plans.triggers, numbering), tuple(indexes), JoinTier()


def build_task(compiled: CompiledProgram, engine: StreamEngine, delay: int, output: OutputTimes | None) -> Task:
    """Build the tables that the stream kernel reads; facts may be late by at most `delay`."""
    names, query = compiled.names, compiled.names.index(compiled.query)
    negations, predicates = engine.plans.negations, range(len(names))
    recursive = [
        any(compiled.rules[place].predicate in compiled.recursive for place in group.rules)
        for group in compiled.waiting
    ]
    return Task(
        query,
        engine.store.index(query, ()),
        compiled.arities[compiled.query],
        compiled.slice,
        delay,
        compiled.bounds.delay[compiled.query],
        compiled.grid.dense,
        bool(compiled.aggregations) or _joins_what_persists(compiled),
        output is not None,
        output.denominator // compiled.grid.denominator if output else 1,
        output.ticks_between if output else 0,
        np.array([compiled.bounds.retention[name] for name in names], np.int64),
        np.array([name in compiled.persisting for name in names], np.bool_),
        np.array([i for i, name in enumerate(names) if is_violation(name)], np.int64),
        np.array(recursive, np.bool_),
        np.array([bool(group.aggregations) for group in compiled.waiting], np.bool_),
        *_concatenate([negations.visits.get(pred, []) for pred in predicates], 4),
        *_concatenate([negations.readers.get(pred, []) for pred in predicates], 4),
        *_concatenate([negations.remakes.get(pred, []) for pred in predicates], 4),
        np.array(negations.plans, np.int64).reshape(-1, 3),
        np.array([(pred, remakes[0][2]) for pred, remakes in negations.remakes.items()], np.int64).reshape(-1, 2),
    )


def _joins_what_persists(compiled: CompiledProgram) -> bool:
    """Return whether new facts drive a rule that joins them with facts of a negation, which grow with the frontier."""
    waiting = {place for group in compiled.waiting for place in group.rules}
    return any(
        len({literal.predicate in compiled.persisting for literal in rule.body}) == 2
        for place, rule in enumerate(compiled.rules)
        if place not in waiting
    )


def _concatenate(groups: Sequence[Sequence[tuple[int, ...]]], width: int) -> tuple[Int64s, Int64s]:
    """Return where each group begins, and the words of all groups one after the other."""
    words = [item for group in groups for item in group]
    return np.cumsum([0, *map(len, groups)]), np.array(words, np.int64).reshape(-1, width)
