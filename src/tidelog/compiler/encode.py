"""Encode plans as the table of numbers that the plan machine reads; its words are described in `opcodes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tidelog.compiler import opcodes
from tidelog.compiler.opcodes import Code
from tidelog.compiler.order_joins import Plan, PlanStep
from tidelog.language.comparisons import OPERATORS
from tidelog.language.syntax import Term, Value, Variable
from tidelog.timeline.grid import NEG_INF, POS_INF


@dataclass(frozen=True)
class Numbering:
    """The numbers that an engine uses for predicates, constants and indexes.

    `index_of` gives the number of an index of a predicate by some of its arguments, and makes the index if needed.
    """

    predicates: Mapping[str, int]
    arities: tuple[int, ...]
    constant_of: Callable[[Value], int]
    index_of: Callable[[int, tuple[int, ...]], int]


def encode_plans(plans: list[Plan], triggers: Mapping[int, list[int]], numbering: Numbering) -> Code:
    """Encode plans; `triggers` holds, by predicate, the numbers of the plans that its new facts drive."""
    words: list[int] = []
    starts: list[int] = []
    joins: list[list[list[int]]] = []
    width = 8
    for plan in plans:
        registers: dict[Variable, int] = {}
        levels = [_encode_level(plan, number, registers, numbering) for number in range(len(plan.steps))]
        joins.append(levels)
        starts.append(len(words))
        words += _encode_plan_header(plan, len(levels), registers, numbering)
        at = len(words) + len(levels)
        for level in levels:
            words.append(at)
            at += len(level)
        for level in levels:
            words += level
        arguments = (len(step.literal.args) + 2 for step in plan.steps)
        width = max(width, len(levels) + 2, len(registers) + 2, *arguments, 0)
    # Plans that share their first levels are adjacent, so that one that fails there rules out those after it.
    driven = [sorted(triggers.get(pred, ()), key=joins.__getitem__) for pred in range(len(numbering.arities))]
    rows = [
        [starts[plan], _count_equal_levels(joins[plan], joins[group[place - 1]]) if place else 0, *_await(joins[plan])]
        for group in driven
        for place, plan in enumerate(group)
    ]
    return Code(
        np.array(starts or [0], np.int64),
        np.array(words or [0], np.int64),
        np.cumsum([0, *map(len, driven)]),
        np.array(rows or [[0, 0, -1, 0]], np.int64),
        max(width, max(numbering.arities) + 2),
    )


def _encode_plan_header(
    plan: Plan, n_levels: int, registers: Mapping[Variable, int], numbering: Numbering
) -> list[int]:
    head = [_encode_term(term, registers, numbering) for term in plan.rule.args]
    predicate = numbering.predicates[plan.rule.predicate]
    work = 0
    return [n_levels, predicate, *plan.rule.range, plan.cut, plan.keeper, plan.stands, len(head), work, *head]


def _encode_level(plan: Plan, number: int, registers: dict[Variable, int], numbering: Numbering) -> list[int]:
    """Encode one step, and give registers to the variables that it binds."""
    step = plan.steps[number]
    literal = step.literal
    predicate = numbering.predicates[literal.predicate]
    key = [_encode_term(literal.args[position], registers, numbering) for position in step.key]
    binds: list[int] = []
    checks: list[int] = []
    for position, arg in enumerate(literal.args):
        if position in step.key:
            continue
        if isinstance(arg, Variable) and arg not in registers:
            registers[arg] = len(registers)
            binds += [position, registers[arg]]
        else:
            checks += [position, _encode_term(arg, registers, numbering)]
    compared: list[int] = []
    for comparison in step.comparisons:
        operands = (_encode_term(term, registers, numbering) for term in (comparison.left, comparison.right))
        compared += [list(OPERATORS).index(comparison.op), *operands]
    arrives = step.kind == opcodes.GIVEN or (number == 0 and plan.driven)
    is_whole_atom = len(step.key) == len(literal.args)
    return [
        step.kind,
        predicate,
        int(literal.op),
        *literal.range,
        -1 if arrives or is_whole_atom else numbering.index_of(predicate, step.key),
        _find_same_atom(plan.steps, number),
        len(key),
        len(binds) // 2,
        len(checks) // 2,
        len(compared) // 3,
        *key,
        *binds,
        *checks,
        *compared,
    ]


def _encode_term(term: Term, registers: Mapping[Variable, int], numbering: Numbering) -> int:
    return registers[term] if isinstance(term, Variable) else -1 - numbering.constant_of(term.value)


def _count_equal_levels(some: list[list[int]], others: list[list[int]]) -> int:
    """Return with how many equal levels two plans begin."""
    count = 0
    while count < min(len(some), len(others)) and some[count] == others[count]:
        count += 1
    return count


def _await(levels: list[list[int]]) -> tuple[int, int]:
    """Return the predicate that a driven plan waits for, and its lead (see `opcodes`): -1 where there is no test.

    Where the first level holds, from `lo` plus the left end of its range on, the second one holds up to where its facts
    have held plus the right end of its range, or of an earlier time. On dense time the sum of two open ends is half a
    tick off, so odd ends leave some room.
    """
    none = -1, 0
    if len(levels) < 2 or levels[1][opcodes.KIND] != opcodes.LOOKUP:
        return none
    first, second = levels[:2]
    if first[opcodes.OP] not in (opcodes.HOLDS, opcodes.DIAMOND):
        return none
    begins = first[opcodes.R_LO] if first[opcodes.OP] == opcodes.DIAMOND else 0
    reach = {
        opcodes.HOLDS: 0,
        opcodes.DIAMOND: second[opcodes.R_HI],
        opcodes.BOX: second[opcodes.R_LO],
    }.get(second[opcodes.OP], POS_INF)
    if not (NEG_INF < begins < POS_INF and NEG_INF < reach < POS_INF):
        return none
    return second[opcodes.PREDICATE], begins - (begins & 1) - reach - (reach & 1)


def _find_same_atom(steps: tuple[PlanStep, ...], number: int) -> int:
    """Return the first earlier step about the same atom, whatever its variables are bound to, or -1."""
    asked = steps[number].literal
    for before, step in enumerate(steps[:number]):
        if (step.literal.predicate, step.literal.args) == (asked.predicate, asked.args):
            return before
    return -1
