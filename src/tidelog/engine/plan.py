"""Plans: in which order a rule's body is joined, and the table that the machine reads.

A plan begins with a driver (a literal whose new facts are being looked at, or none: then the first step lists all
facts of its literal) and goes on with one look-up a literal, each by the arguments that are bound by then: by the atom
itself where all are bound, by an index otherwise. Comparisons and negations stand at the first place where their
variables are bound. `str` of a plan shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tidelog.analysis.flatten import COMPARISONS, FlatLiteral, FlatRule, Op
from tidelog.engine import machine, tables
from tidelog.engine.machine import Code
from tidelog.engine.store import Store
from tidelog.language.facts import format_value
from tidelog.language.syntax import Comparison, Constant, Term, Value, Variable


@dataclass(frozen=True, slots=True)
class Step:
    """One look-up; `key` are the positions of its arguments that are bound before it."""

    literal: FlatLiteral
    kind: int
    key: tuple[int, ...]
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A join order for a rule; `driven` where the first step is the literal whose new facts come in.

    `cut` tells at which ends of the horizon even infinite intervals are cut, since the facts that the rule negates
    are not known beyond: 1 left, 2 right, 3 both. `keeper` is the step whose atom is noted while the body goes on to
    hold.
    """

    rule: FlatRule
    driven: bool
    steps: tuple[Step, ...]
    cut: int = 0
    keeper: int = -1

    def __str__(self) -> str:
        head = f"{_atom(self.rule.predicate, self.rule.args)} {_range(self.rule.range)}".rstrip()
        return "\n".join([head, *self.outline(_plain)])

    def outline(self, shown: Callable[[Step], str]) -> list[str]:
        """One line a step, and one a comparison: how the literal is looked up (new facts, each of them, the one that
        is known by now, by some of its arguments, or none), and the literal as `shown` has it."""
        lines: list[str] = []
        for number, step in enumerate(self.steps):
            args = step.literal.args
            if step.kind == machine.NEGATION:
                how = "without"
            elif step.kind == machine.GIVEN:
                how = "for"
            elif number == 0 and self.driven:
                how = "new"
            elif not step.key and args:
                how = "each"
            elif len(step.key) == len(args):
                how = "the"
            else:
                how = "by " + ",".join(str(position + 1) for position in step.key)
            lines.append(f"  {how} {shown(step)}")
            lines += [f"    {_term(c.left)} {c.op} {_term(c.right)}" for c in step.comparisons]
        return lines


def _plain(step: Step) -> str:
    literal = step.literal
    word = literal.op.name.lower() + _range(literal.range, always=True) + " " if literal.op else ""
    return word + _atom(literal.predicate, literal.args)


def planned(
    rule: FlatRule, driver: int | None, size: Callable[[str], int], cut: int = 0, given: FlatLiteral | None = None
) -> Plan:
    """The plan of a rule, driven by the new facts of one of its literals or, without one, by listing a literal; or for
    an atom that is given for a literal, without a word on when it holds."""
    positive = [literal for literal in rule.body if not literal.negated]
    negative = [literal for literal in rule.body if literal.negated]
    comparisons = list(rule.comparisons)
    bound: set[Variable] = set()
    steps: list[Step] = []

    def place(literal: FlatLiteral, kind: int, key: tuple[int, ...]) -> None:
        bound.update(_variables(literal))
        ready = tuple(c for c in comparisons if _variables_of((c.left, c.right)) <= bound)
        for comparison in ready:
            comparisons.remove(comparison)
        steps.append(Step(literal, kind, key, ready))
        without()

    def without() -> None:
        for left_out in [n for n in negative if set(_variables(n)) <= bound]:
            negative.remove(left_out)
            steps.append(Step(left_out, machine.NEGATION, tuple(range(len(left_out.args)))))

    if given is not None:
        bound.update(_variables(given))
        steps.append(Step(given, machine.GIVEN, ()))
        without()
    elif driver is not None:
        first = rule.body[driver]
        positive.remove(first)
        place(first, machine.LOOKUP, ())
    elif positive:
        first = positive[0] if _is_since(positive) else min(positive, key=lambda c: _start_cost(c, positive, size))
        positive.remove(first)
        place(first, machine.LOOKUP, _bound_positions(first, bound))
    while positive:
        best = min(positive, key=lambda literal: _next_cost(literal, bound, size))
        positive.remove(best)
        kind, first = machine.LOOKUP, steps[0].literal
        if best.op in (Op.SINCE, Op.UNTIL):
            kind = machine.LEFT_OPERAND
        elif first.op in (Op.SINCE, Op.UNTIL):
            kind, best = machine.RIGHT_OPERAND, replace(best, op=first.op, range=first.range)
        place(best, kind, _bound_positions(best, bound))
    for literal in negative:
        steps.append(Step(literal, machine.NEGATION, tuple(range(len(literal.args)))))
    if given is None:
        return Plan(rule, driver is not None, tuple(steps), cut)
    widest = max((s for s in steps if s.kind == machine.LOOKUP), key=lambda s: len(set(_variables(s.literal))))
    return Plan(rule, False, tuple(steps), cut, steps.index(widest))


def _is_since(literals: list[FlatLiteral]) -> bool:
    return any(literal.op in (Op.SINCE, Op.UNTIL) for literal in literals)


def _start_cost(literal: FlatLiteral, others: list[FlatLiteral], size: Callable[[str], int]) -> tuple[bool, int]:
    """Best is a literal that binds all others, since these are then found without an index; then a small one."""
    covered = all(set(_variables(other)) <= set(_variables(literal)) for other in others)
    return not covered, size(literal.predicate)


def _next_cost(literal: FlatLiteral, bound: set[Variable], size: Callable[[str], int]) -> tuple[bool, int, int, int]:
    """Best is what is found without an index, then what is known best, then what is small, then what is most recent:
    on a stream that is what comes last, so that one sees at once where it has not come yet."""
    known = len(_bound_positions(literal, bound))
    return known < len(literal.args), -known, size(literal.predicate), literal.range[1]


def _bound_positions(literal: FlatLiteral, bound: set[Variable]) -> tuple[int, ...]:
    return tuple(i for i, arg in enumerate(literal.args) if isinstance(arg, Constant) or arg in bound)


def _variables(literal: FlatLiteral) -> list[Variable]:
    return [arg for arg in literal.args if isinstance(arg, Variable)]


def _variables_of(terms: Iterable[Term]) -> set[Variable]:
    return {term for term in terms if isinstance(term, Variable)}


def encoded(
    plans: list[Plan],
    triggers: Mapping[int, list[int]],
    store: Store,
    numbers: Mapping[str, int],
    intern: Callable[[Value], int],
) -> Code:
    """The table of plans; `triggers` are the numbers of the plans that new facts of a predicate drive."""
    words: list[int] = []
    starts: list[int] = []
    joins: list[list[list[int]]] = []
    width = 8
    for plan in plans:
        registers: dict[Variable, int] = {}

        def source(term: Term, registers: dict[Variable, int] = registers) -> int:
            return registers[term] if isinstance(term, Variable) else -1 - intern(term.value)

        levels: list[list[int]] = []
        for number, step in enumerate(plan.steps):
            same = _same_atom(plan.steps, number)
            driver = step.kind == machine.GIVEN or (number == 0 and plan.driven)
            levels.append(_level(step, driver, same, registers, source, store, numbers))
        joins.append(levels)
        start = len(words)
        starts.append(start)
        head = [source(term) for term in plan.rule.args]
        words += [
            len(levels),
            numbers[plan.rule.predicate],
            *plan.rule.range,
            plan.cut,
            plan.keeper,
            len(head),
            0,
            *head,
        ]
        at = len(words) + len(levels)
        for level in levels:
            words.append(at)
            at += len(level)
        for level in levels:
            words += level
        width = max(width, len(levels) + 2, len(registers) + 2, *(len(s.literal.args) + 2 for s in plan.steps), 0)
    # Plans that begin alike stand side by side, so that one that fails speaks for those behind it.
    driven = [sorted(triggers.get(pred, ()), key=joins.__getitem__) for pred in range(len(store.preds))]
    ordered = [plan for some in driven for plan in some]
    shared = [
        _common(joins[plan], joins[some[place - 1]]) if place else 0
        for some in driven
        for place, plan in enumerate(some)
    ]
    return Code(
        np.array(starts or [0], np.int64),
        np.array(words or [0], np.int64),
        np.cumsum([0, *map(len, driven)]),
        np.array(ordered or [0], np.int64),
        np.array(shared or [0], np.int64),
        max(width, int(store.preds[:, tables.ARITY].max()) + 2),
    )


def _level(
    step: Step,
    driver: bool,
    same: int,
    registers: dict[Variable, int],
    source: Callable[[Term], int],
    store: Store,
    numbers: Mapping[str, int],
) -> list[int]:
    literal = step.literal
    pred = numbers[literal.predicate]
    key = [source(literal.args[position]) for position in step.key]
    binds: list[int] = []
    checks: list[int] = []
    for position, arg in enumerate(literal.args):
        if position in step.key:
            continue
        if isinstance(arg, Variable) and arg not in registers:
            registers[arg] = len(registers)
            binds += [position, registers[arg]]
        else:
            checks += [position, source(arg)]
    compared: list[int] = []
    for comparison in step.comparisons:
        compared += [list(COMPARISONS).index(comparison.op), source(comparison.left), source(comparison.right)]
    whole = len(step.key) == len(literal.args)
    index = -1 if driver or whole else store.index(pred, step.key)
    return [
        step.kind,
        pred,
        int(literal.op),
        *literal.range,
        index,
        same,
        len(key),
        len(binds) // 2,
        len(checks) // 2,
        len(compared) // 3,
        *key,
        *binds,
        *checks,
        *compared,
    ]


def _common(some: list[list[int]], others: list[list[int]]) -> int:
    """With how many equal levels two plans begin."""
    count = 0
    while count < min(len(some), len(others)) and some[count] == others[count]:
        count += 1
    return count


def _same_atom(steps: tuple[Step, ...], number: int) -> int:
    """The first step before a step that is about the same atom, whatever its variables are bound to; -1 without one."""
    asked = steps[number].literal
    for before, step in enumerate(steps[:number]):
        if (step.literal.predicate, step.literal.args) == (asked.predicate, asked.args):
            return before
    return -1


def _atom(predicate: str, args: tuple[Term, ...]) -> str:
    return predicate + (f"({','.join(_term(arg) for arg in args)})" if args else "")


def _term(term: Term) -> str:
    return term.name if isinstance(term, Variable) else format_value(term.value)


def _range(pair: tuple[int, int], always: bool = False) -> str:
    return f"+[{pair[0]},{pair[1]}]" if always or pair != (0, 0) else ""
