"""Evaluate each fact by itself, where rules never combine two of them.

If every rule reads one fact that changes, under an operator that distributes over unions, everything that holds follows
from single facts. Then facts get numbers in place of the constants by which they are found, and each is a constant of
its own for `time_shift`: what repeats for ever is derived up to its first repetition for each fact, not up to the last
fact of its constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.language.hidden_predicates import ALWAYS
from tidelog.language.syntax import Variable

Int64s = NDArray[np.int64]

#: The argument by which facts are found, by predicate; None for predicates that are copied.
Key = Mapping[str, int | None]


def combines_no_facts(compiled: CompiledProgram, key: Key) -> bool:
    """Return whether everything that holds follows from single facts and copied ones, whatever their constants are.

    Copied predicates are taken to hold at all times, or never.
    """
    derived = {rule.predicate for rule in compiled.rules}
    still = {ALWAYS} | {name for name, position in key.items() if position is None and name not in derived}
    places = {name: position for name, position in key.items() if position is not None}
    todo = list(compiled.rules)
    while todo:
        rest: list[FlatRule] = []
        for rule in todo:
            moving = [literal for literal in rule.body if literal.predicate not in still]
            if len(moving) != 1 or not _distributes(moving[0], compiled.grid.tick):
                return False
            if moving[0].predicate not in places:
                rest.append(rule)
                continue
            place = _follow_key(rule, moving[0], places[moving[0].predicate])
            if place is None or places.setdefault(rule.predicate, place) != place:
                return False
        if len(rest) == len(todo):
            return False
        todo = rest
    return True


def _distributes(literal: FlatLiteral, tick: int) -> bool:
    """Return whether a literal holds over a union of facts exactly where it holds over one of them."""
    if literal.negated or literal.op in (Op.SINCE, Op.UNTIL):
        return False
    first, last = literal.range
    return literal.op is not Op.BOX or (first == last and first % tick == 0)


def _follow_key(rule: FlatRule, literal: FlatLiteral, place: int) -> int | None:
    """Return where the head has the key of a literal; None if the rule uses it for anything else."""
    variable = literal.args[place]
    uses = sum(term == variable for term in rule.terms())
    if not isinstance(variable, Variable) or uses != 2 or variable not in rule.args:
        return None
    return rule.args.index(variable)


@dataclass(frozen=True)
class SingleFacts:
    """Facts with numbers in place of their constants; `constants` are those that the numbers stand for."""

    given: Mapping[str, Rows]
    constants: Int64s

    @staticmethod
    def of(given: Mapping[str, Rows], key: Key) -> SingleFacts:
        """Number all facts of predicates that are not copied."""
        numbered = dict(given)
        constants: list[Int64s] = [np.empty(0, np.int64)]
        count = 0
        for name, rows in given.items():
            position = key[name]
            if position is not None:
                args = rows.args.copy()
                args[position] = np.arange(count, count + len(rows))
                numbered[name] = Rows(args, rows.lo, rows.hi)
                constants.append(rows.args[position].astype(np.int64))
                count += len(rows)
        return SingleFacts(numbered, np.concatenate(constants))

    @property
    def numbers(self) -> Int64s:
        """The numbers of all facts."""
        return np.arange(len(self.constants))

    def restore(self, extent: Extent, position: int) -> Extent:
        """Return results with the constants back at an argument position."""
        args = extent.rows.args.copy()
        args[position] = self.constants[args[position]]
        return Extent(Rows(args, extent.rows.lo, extent.rows.hi), extent.left, extent.right)
