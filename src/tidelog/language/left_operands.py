"""Bind variables by left operands of Since and Until, where the range does not contain 0.

`A(X) Until[18,74] B` says that B holds at least 18 time units from now, and A at all times strictly between. So A holds
at some time less than 18 units from now, and `Diamondplus(0,18) A(X)` follows. A rule that takes the value of X from
there gets that literal: it changes nothing about when the body holds. With `(0,74]`, B is some time away, too, and
between two rationals there are others. Where the range contains 0, B may hold now, and A nowhere. Over the integers the
range must begin after 1, so that there is a time strictly between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from tidelog.language.bindings import atom_variables, bound_anywhere, literal_variables, outer_variables
from tidelog.language.syntax import Binary, BinaryOp, Comparison, Condition, Literal, Rule, Unary, UnaryOp, Variable
from tidelog.language.validation import formula_atoms
from tidelog.timeline.interval import Interval


def bind_left_operands(rule: Rule) -> Rule:
    """Return a rule with the literals that bind variables which only left operands of Since and Until mention."""
    added: tuple[Literal, ...] = ()
    for literal in rule.body:
        if isinstance(literal, Literal) and not literal.negated and isinstance(literal.formula, Binary):
            binary = literal.formula
            wanted = _find_needed(rule) - bound_anywhere(replace(rule, body=(*rule.body, *added))).keys()
            near = _find_implied(binary)
            if near is not None and wanted.intersection(atom_variables([Literal(near)])):
                added = (*added, Literal(near, False, binary.place))
    return replace(rule, body=(*rule.body, *added)) if added else rule


def find_dense_bindings(rule: Rule) -> Iterator[Unary]:
    """Yield the formulas of `bind_left_operands` that do not follow over the integers: none may be strictly between."""
    positive = [one for one in rule.body if isinstance(one, Literal) and not one.negated]
    for literal in positive:
        formula = literal.formula
        if isinstance(formula, Binary) and (formula.range.lo, not formula.range.lo_closed) < (1, True):
            added = (one.formula for one in positive if one.place == formula.place)
            near = _find_implied(formula)
            yield from (one for one in added if isinstance(one, Unary) and one == near)


def explain_left_operand(rule: Rule, name: str) -> str | None:
    """Say why a left operand does not bind a variable that it mentions, or None if no left operand mentions it."""
    for literal in rule.body:
        if isinstance(literal, Literal) and not literal.negated and isinstance(literal.formula, Binary):
            formula = literal.formula
            if _find_implied(formula) is None and name in {v.name for v in literal_variables(Literal(formula.left))}:
                operator = f"{formula.op.value}{formula.range.with_brackets()}"
                return (
                    f"the left operand of {operator} need not hold at any time, since the right one may hold "
                    f"now; begin the range after 0, or add a positive literal that mentions {name}"
                )
    return None


def _find_implied(formula: Binary) -> Unary | None:
    """Return the diamond over the left operand that follows from a Since or Until, if its range does not contain 0."""
    lo, hi, closed = formula.range.lo, formula.range.hi, formula.range.lo_closed
    if lo <= 0 and closed:
        return None
    op = UnaryOp.DIAMOND_MINUS if formula.op is BinaryOp.SINCE else UnaryOp.DIAMOND_PLUS
    # Over the integers, (1,5] begins at 2, and the time in between is 1.
    near = Interval(Fraction(0), lo, False, not closed) if lo > 0 else Interval(Fraction(0), hi, False, False)
    return Unary(op, near, formula.left)


def _find_needed(rule: Rule) -> set[Variable]:
    """Return the variables that need a binding: those of the head, of negated literals and of comparisons."""
    needed = {t for atom in formula_atoms(rule.head) for t in atom.args if isinstance(t, Variable)}
    for literal in rule.body:
        if isinstance(literal, Comparison | Condition) or literal.negated:
            needed.update(v for v in literal_variables(literal, braces=False) if v in outer_variables(rule))
    return needed
