"""Syntax to text, in one canonical form that reads back as the same tree.

Operators are printed by their words, ranges as numbers (durations are seconds), constants in quotes where a bare name
would read as a variable or as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from tidelog.language.facts import quote
from tidelog.language.syntax import (
    Atom,
    Binary,
    BodyLiteral,
    Bottom,
    Comparison,
    Constant,
    Formula,
    Literal,
    Rule,
    TemporalAtom,
    TemporalProgram,
    TemporalRule,
    Term,
    TimeTerm,
    Top,
    Unary,
    Variable,
)
from tidelog.language.temporal import undeclared

_BARE = re.compile(r"[a-z][A-Za-z0-9_]*")


def format_term(term: Term) -> str:
    """A term as rules show it."""
    match term:
        case Variable(name, anonymous):
            return "_" if anonymous else name
        case Constant(str() as value):
            return value if _BARE.fullmatch(value) and value != "not" else quote(value)
        case Constant(value):
            return str(value)
        case _:
            assert_never(term)


def format_formula(formula: Formula) -> str:
    """A formula; brackets stand only where Since or Until is an operand."""
    match formula:
        case Atom(predicate, args):
            return predicate + (f"({', '.join(map(format_term, args))})" if args else "")
        case Top():
            return "Top"
        case Bottom():
            return "Bottom"
        case Unary(op, range, arg):
            return f"{op.value}{range.bracketed()} {_operand(arg)}"
        case Binary(op, range, left, right):
            return f"{_operand(left)} {op.value}{range.bracketed()} {_operand(right)}"
        case _:
            assert_never(formula)


def _operand(formula: Formula) -> str:
    text = format_formula(formula)
    return f"({text})" if isinstance(formula, Binary) else text


def format_comparison(comparison: Comparison) -> str:
    return f"{format_term(comparison.left)} {comparison.op} {format_term(comparison.right)}"


def format_literal(literal: BodyLiteral) -> str:
    match literal:
        case Comparison():
            return format_comparison(literal)
        case Literal(formula, negated):
            return ("not " if negated else "") + format_formula(formula)
        case _:
            assert_never(literal)


def format_rule(rule: Rule) -> str:
    """One rule with its final dot.

    >>> from tidelog.language.syntax import Atom, Literal, Rule
    >>> format_rule(Rule(Atom("P"), (Literal(Atom("Q"), negated=True),)))
    'P :- not Q.'
    """
    body = ", ".join(map(format_literal, rule.body))
    return format_formula(rule.head) + (f" :- {body}." if body else ".")


def format_program(rules: Iterable[Rule]) -> str:
    """All rules, one a line."""
    return "".join(format_rule(rule) + "\n" for rule in rules)


def format_temporal_atom(atom: TemporalAtom) -> str:
    """An atom of temporal Datalog: its time is the last argument."""
    args = [format_term(arg) for arg in atom.args] + ([format_time_term(atom.time)] if atom.time else [])
    return atom.predicate + (f"({', '.join(args)})" if args else "")


def format_time_term(time: TimeTerm) -> str:
    if time.variable is None:
        return str(time.offset)
    return time.variable + (f"{time.offset:+}" if time.offset else "")


def format_temporal_rule(rule: TemporalRule) -> str:
    """One rule or fact of temporal Datalog with its final dot."""
    body = ", ".join(
        format_comparison(literal)
        if isinstance(literal, Comparison)
        else ("not " if literal.negated else "") + format_temporal_atom(literal.atom)
        for literal in rule.body
    )
    head = format_temporal_atom(rule.head) if rule.head else "Bottom"
    return head + (f" :- {body}." if body else ".")


def format_temporal(program: TemporalProgram) -> str:
    """A program of temporal Datalog: the directives that its use of predicates does not make needless, rules, facts."""
    lines = [*undeclared(program), *map(format_temporal_rule, (*program.rules, *program.facts))]
    return "".join(line + "\n" for line in lines)
