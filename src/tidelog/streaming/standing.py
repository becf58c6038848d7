"""A program made ready to stand over a stream: rules in normal form, bounds, and the plans for the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidelog.analysis.flatten import VIOLATION, FlatLiteral, FlatRule, Op, flatten
from tidelog.engine import agenda, machine, tables
from tidelog.engine.fixpoint import parts, relevant, terms
from tidelog.engine.machine import Code
from tidelog.engine.plan import Plan, encoded, planned
from tidelog.engine.steps import Task
from tidelog.engine.store import Int64s, Store
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Constant, Value
from tidelog.streaming.bounds import Bounds, LooksAhead, bounds
from tidelog.streaming.normal import for_streams
from tidelog.streaming.times import OutputTimes
from tidelog.timeline.grid import Grid
from tidelog.windows.redundant import kept_rules


@dataclass(frozen=True)
class Standing:
    """The rules that a query needs, with everything that follows from them alone. Distances are the grid's."""

    grid: Grid
    rules: tuple[FlatRule, ...]
    arities: dict[str, int]
    bounds: Bounds
    recursive: frozenset[str]
    #: The places of rules with negation, by component, lowest first.
    negations: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.arities)

    @property
    def persisting(self) -> frozenset[str]:
        """The predicates that depend on a negation, whose facts grow with the frontier while nothing changes."""
        found = {self.rules[place].predicate for group in self.negations for place in group}
        while more := {r.predicate for r in self.rules for b in r.body if b.predicate in found} - found:
            found |= more
        return frozenset(found)

    def transient(self, query: str) -> list[str]:
        """Predicates that pass through: each fact drives its rules when it comes, and nobody looks it up. On every
        cycle of a recursion one is kept, or facts that are not new would go round for ever."""
        kept = {query, *(name for name in self.arities if name.startswith(VIOLATION))}
        for rule in self.rules:
            for literal in rule.body:
                if len(rule.body) > 1 or literal.negated or literal.op not in (Op.HOLDS, Op.DIAMOND):
                    kept.add(literal.predicate)
        kept |= self._cycles(set(self.recursive) - kept)
        return [name for name in self.arities if name not in kept]

    def _cycles(self, among: set[str]) -> set[str]:
        """The predicates on cycles within a set, or between two of them."""
        edges = {(b.predicate, r.predicate) for r in self.rules for b in r.body}
        while True:
            edges = {(one, other) for one, other in edges if one in among and other in among}
            inner = {one for one, _ in edges} & {other for _, other in edges}
            if inner == among:
                return among
            among = inner


def standing(program: Program, query: str, grid: Grid, bounded: bool) -> Standing:
    """The standing form of a query; raises where it cannot stand over a stream. Rules that follow from others are left
    out: they would be looked back for, and give nothing."""
    rules = for_streams(relevant(flatten(kept_rules(program, grid.timeline), grid), (query,)), grid, bounded)
    known: dict[str, int] = {}
    for rule in rules:
        for name, args in ((rule.predicate, rule.args), *((b.predicate, b.args) for b in rule.body)):
            known.setdefault(name, len(args))
    known.setdefault(query, program.predicates.get(query, 0))
    try:
        found = bounds(rules, known)
    except LooksAhead as problem:
        raise _refused(program, problem) from None
    components = parts(rules, grid)
    recursive = frozenset(name for part in components if part.recursive for name in part.predicates)
    place = {id(rule): number for number, rule in enumerate(rules)}
    negations = tuple(
        group
        for part in components
        if (group := tuple(place[id(rule)] for rule in part.rules if place[id(rule)] in found.waits))
    )
    return Standing(grid, rules, known, found, recursive, negations)


def chosen_memory(program: Program, query: str, grid: Grid, memory: str | None) -> bool:
    """Whether memory is bounded whatever the density of the stream: as asked, or where it applies and stores less."""
    if memory not in (None, "generic", "bounded"):
        way_out = "choose generic or bounded, or leave it to the program"
        raise TidelogError(Diagnostic("TL309", f"there is no memory `{memory}`", help=way_out))
    if memory == "generic":
        return False
    form = standing(program, query, grid, True)
    dense = _dense(form, query)
    if dense is not None and memory == "bounded":
        rule, reason = dense
        text = program.rules[rule.origin]
        raise TidelogError(
            Diagnostic(
                "TL309",
                f"memory cannot be bounded for every stream: {reason}, in `{text.text or format_rule(text)}`",
                text.place,
                law="bounded memory needs Diamondminus and Boxminus over ranges that are longer than a point: of all "
                "else each fact has to be kept, however many there are",
                help="write the rule with such ranges, or use --memory generic",
            )
        )
    if memory == "bounded":
        return True
    if any(_point(rule, grid) for rule in form.rules):
        return False
    return len(_looked_up(form, query)) < len(_looked_up(standing(program, query, grid, False), query))


def _dense(form: Standing, query: str) -> tuple[FlatRule, str] | None:
    """A rule because of which what is held grows with the density of a stream, and why."""
    for rule in form.rules:
        if _point(rule, form.grid):
            return rule, "a range is a single point"
    # All else is pushed forward when it comes. What is looked back at, or waits for what comes later, is kept as it is.
    kept = {name for name in form.names if form.bounds.retention[name] > 0} - set(form.transient(query))
    for rule in form.rules:
        if any(b.op in (Op.SINCE, Op.UNTIL) for b in rule.body):
            return rule, "what begins a Since is kept for as long as it looks back"
    for rule in form.rules:
        if rule.predicate in kept or any(b.predicate in kept for b in rule.body):
            return rule, "it looks ahead, and what waits for an answer is kept till then"
    return None


def _point(rule: FlatRule, grid: Grid) -> bool:
    """Whether a rule has a range that is a single time point."""
    ranges = [b.range for b in rule.body if b.op in (Op.DIAMOND, Op.BOX)]
    return any(_is_point(pair, grid) for pair in [*ranges, *([rule.range] if rule.range != (0, 0) else [])])


def _is_point(pair: tuple[int, int], grid: Grid) -> bool:
    """Whether a range is a single time point; on the rationals a single odd position is a whole gap."""
    return pair[0] == pair[1] and pair[0] % grid.tick == 0


def _looked_up(form: Standing, query: str) -> set[str]:
    """The predicates of the user's that are kept to be looked back at."""
    passing = set(form.transient(query))
    return {n for n in form.names if not n.startswith("$") and n not in passing and form.bounds.retention[n] > 0}


def _refused(program: Program, problem: LooksAhead) -> TidelogError:
    rule = program.rules[problem.rule.origin]
    return TidelogError(
        Diagnostic(
            "TL308",
            f"this program cannot stand over a stream: {problem.reason}, in `{rule.text or format_rule(rule)}`",
            rule.place,
            law="on a stream, rules may look ahead by bounded ranges that do not add up along a recursion",
            help="use operators of the past in recursive rules, or reason over all data with `tidelog materialise`",
        )
    )


@dataclass(frozen=True)
class Negations:
    """How rules with negation are evaluated, as the words that `engine.steps.Task` has for it."""

    #: By predicate: the component, the plan for an atom of it, and how long the rule waits.
    visits: dict[int, list[tuple[int, int, int]]]
    #: By predicate: operator and range with which rules read it, and how long they wait.
    readers: dict[int, list[tuple[int, int, int, int]]]
    #: Of rules of nothing but negations: the component, the plan, and how long the rule waits.
    plans: list[tuple[int, int, int]]


@dataclass(frozen=True)
class Engine:
    """A store with the plans of a standing program."""

    store: Store
    code: Code
    negations: Negations
    #: Whole plans of rules without a body.
    axioms: tuple[int, ...]
    #: The rule of the program that each plan is of.
    origins: Int64s

    def work(self, rules: int) -> Int64s:
        """What the plans of each of so many rules have done since they were made: see `machine.WORK`."""
        places = self.code.plans[: len(self.origins)] + machine.WORK
        return np.bincount(self.origins, self.code.words[places], rules).astype(np.int64)


def engine(
    form: Standing, query: str, intern: Callable[[Value], int], ranks: Callable[[], Int64s], store: Store
) -> Engine:
    """Plans for a standing program over a store that was made for it."""
    for rule in form.rules:
        for term in terms(rule):
            if isinstance(term, Constant):
                intern(term.value)
    numbers = {name: number for number, name in enumerate(form.names)}
    if any(rule.comparisons for rule in form.rules):
        store.ranks = np.asarray(ranks(), np.int64)
    store.preds[[numbers[name] for name in form.transient(query)], tables.TRANSIENT] = 1
    plans: list[Plan] = []
    triggers: dict[int, list[int]] = {}
    negations = Negations({}, {}, [])
    axioms: list[int] = []
    component = {place: number for number, group in enumerate(form.negations) for place in group}

    def add(rule: FlatRule, driver: int | None, given: FlatLiteral | None = None) -> int:
        cut = machine.STREAM | (machine.DEFER if rule.predicate in form.recursive else 0)
        plans.append(planned(rule, driver, lambda name: store.size(numbers[name]), cut, given))
        return len(plans) - 1

    for place, rule in enumerate(form.rules):
        if not rule.body:
            axioms.append(add(rule, None))
        elif place not in component:
            for driver, literal in enumerate(rule.body):
                triggers.setdefault(numbers[literal.predicate], []).append(add(rule, driver))
        else:
            wait = form.bounds.waits[place]
            for reader in rule.body:
                how = (int(reader.op), *reader.range, wait)
                negations.readers.setdefault(numbers[reader.predicate], []).append(how)
            if all(b.negated for b in rule.body):
                negations.plans.append((component[place], add(rule, None), wait))
                continue
            for given in {(b.predicate, b.args): b for b in rule.body}.values():
                visit = (component[place], add(rule, None, given), wait)
                negations.visits.setdefault(numbers[given.predicate], []).append(visit)
    code = encoded(plans, triggers, store, numbers, intern)
    watched = dict.fromkeys(negations.readers, 1 << agenda.RULES)
    asked = numbers[query]
    store.watch(watched | {asked: watched.get(asked, 0) | 1 << agenda.ANSWERS})
    return Engine(store, code, negations, tuple(axioms), np.array([plan.rule.origin for plan in plans], np.int64))


def task(form: Standing, made: Engine, query: str, longest: int, output: OutputTimes | None) -> Task:
    """What compiled code has to know of a query and its rules; facts may be late by `longest` at most."""
    number, preds, negations = form.names.index(query), range(len(form.names)), made.negations
    recursive = [any(form.rules[place].predicate in form.recursive for place in group) for group in form.negations]
    return Task(
        number,
        made.store.index(number, ()),
        form.arities[query],
        longest,
        form.bounds.delay[query],
        form.grid.dense,
        output is not None,
        output.denominator // form.grid.denominator if output else 1,
        output.ticks_between if output else 0,
        np.array([form.bounds.retention[name] for name in form.names], np.int64),
        np.array([name in form.persisting for name in form.names], np.bool_),
        np.array([i for i, name in enumerate(form.names) if name.startswith(VIOLATION)], np.int64),
        np.array(recursive, np.bool_),
        *_listed([negations.visits.get(pred, []) for pred in preds], 3),
        *_listed([negations.readers.get(pred, []) for pred in preds], 4),
        np.array(negations.plans, np.int64).reshape(-1, 3),
    )


def _listed(groups: Sequence[Sequence[tuple[int, ...]]], width: int) -> tuple[Int64s, Int64s]:
    """Groups of words one after the other: where each begins, and the words."""
    words = [item for group in groups for item in group]
    return np.cumsum([0, *map(len, groups)]), np.array(words, np.int64).reshape(-1, width)
