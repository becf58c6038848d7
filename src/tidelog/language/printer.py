"""Print syntax trees in one canonical form that reads back as the same tree.

Operators are printed by their names and ranges as numbers, with durations in seconds. Constants are quoted where a bare
name would be read as a variable or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import assert_never

from tidelog.language.expression_tokens import TEXT_TESTS
from tidelog.language.fact_text import format_number, quote
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    Binary,
    BodyLiteral,
    Bottom,
    Comparison,
    Condition,
    Constant,
    Expression,
    Formula,
    Group,
    Literal,
    Operation,
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

_BARE = re.compile(r"[a-z][A-Za-z0-9_]*")


def format_term(term: Term) -> str:
    """Format a term as it appears in rules."""
    match term:
        case Variable(name, anonymous):
            return "_" if anonymous else name
        case Constant(value):
            if isinstance(value, Fraction):
                return format_number(value)
            return value if _BARE.fullmatch(value) and value not in ("not", "distinct") else quote(value)
        case _:
            assert_never(term)


#: How tightly binary operators bind; everything else binds tighter.
_PRECEDENCE = {"+": 1, "-": 1, "++": 1, "*": 2, "/": 2, "mod": 2}
_NOTHING: Mapping[Variable, Expression] = {}


def format_expression(expression: Expression) -> str:
    """Format an expression, with brackets only where they are needed.

    >>> from tidelog.language.syntax import Operation, Variable
    >>> x = Variable("X")
    >>> format_expression(Operation("*", (Operation("+", (x, x)), x)))
    '(X + X) * X'
    """
    match expression:
        case Operation(name, (left, right)) if name in _PRECEDENCE:
            return f"{_format_side(left, name, False)} {name} {_format_side(right, name, True)}"
        case Operation("-", (arg,)):
            text = format_expression(arg)
            return f"-({text})" if isinstance(arg, Operation | Constant) else f"-{text}"
        case Operation(name, args):
            return f"{name}({', '.join(map(format_expression, args))})"
        case Aggregate(function, values, body, range, distinct):
            listed = ", ".join(map(format_expression, values))
            value = f"{'distinct ' if distinct else ''}{listed} : " if values else ""
            rows = ", ".join(format_literal(literal) for literal in body)
            return f"{function.value}{range.with_brackets() if range else ''}{{ {value}{rows} }}"
        case Variable() | Constant():
            return format_term(expression)
        case _:
            assert_never(expression)


def _format_side(side: Expression, operator: str, right: bool) -> str:
    """Format an operand; operators associate to the left, and a fraction is a quotient."""
    text = format_expression(side)
    binding = 3
    if isinstance(side, Operation) and len(side.args) == 2 and side.name in _PRECEDENCE:
        binding = _PRECEDENCE[side.name]
    elif isinstance(side, Constant) and not isinstance(side.value, str) and "/" in text:
        binding = 2
    return f"({text})" if binding < _PRECEDENCE[operator] + right else text


def format_formula(formula: Formula, computed: Mapping[Variable, Expression] = _NOTHING) -> str:
    """Format a formula, with brackets only around groups and around an operand that is a Since or Until.

    `computed` are the expressions that some variables stand for.
    """
    match formula:
        case Group():
            return f"({_format_group(formula, computed)})"
        case Atom(predicate, args):
            terms = (format_expression(computed.get(a, a) if isinstance(a, Variable) else a) for a in args)
            return predicate + (f"({', '.join(terms)})" if args else "")
        case Top():
            return "Top"
        case Bottom():
            return "Bottom"
        case Unary(op, range, arg):
            return f"{op.value}{range.with_brackets()} {_format_operand(arg, computed)}"
        case Binary(op, range, left, right):
            return f"{_format_operand(left)} {op.value}{range.with_brackets()} {_format_operand(right)}"
        case _:
            assert_never(formula)


def _format_operand(formula: Formula, computed: Mapping[Variable, Expression] = _NOTHING) -> str:
    text = format_formula(formula, computed)
    return f"({text})" if isinstance(formula, Binary) else text


def _format_group(group: Group, computed: Mapping[Variable, Expression] = _NOTHING) -> str:
    """Format the literals of a group; alternatives that are groups themselves have brackets."""
    if not group.alternatives:
        return ", ".join(format_literal(literal, computed) for literal in group.literals)
    return " or ".join(
        format_formula(literal.formula, computed)
        if isinstance(literal, Literal) and not literal.negated
        else format_literal(literal, computed)
        for literal in group.literals
    )


def format_comparison(comparison: Comparison) -> str:
    """Format a comparison, such as `X < 5`."""
    return f"{format_term(comparison.left)} {comparison.op} {format_term(comparison.right)}"


def format_literal(literal: BodyLiteral, computed: Mapping[Variable, Expression] = _NOTHING) -> str:
    """Format a body literal or comparison."""
    match literal:
        case Comparison():
            return format_comparison(literal)
        case Condition(op, left, right):
            one, other = format_expression(left), format_expression(right)
            if op.split()[-1] in TEXT_TESTS:
                return f"{op}({one}, {other})"
            return f"{one} {op} {other}"
        case Literal(Group(alternatives=True) as group, False):
            return _format_group(group, computed)
        case Literal(formula, negated):
            return ("not " if negated else "") + format_formula(formula, computed)
        case _:
            assert_never(literal)


def format_rule(rule: Rule) -> str:
    """Format one rule, with its final dot.

    >>> from tidelog.language.syntax import Atom, Literal, Rule
    >>> format_rule(Rule(Atom("P"), (Literal(Atom("Q"), negated=True),)))
    'P :- not Q.'
    """
    computed: dict[Variable, Expression] = {}
    shown: list[BodyLiteral] = []
    for literal in rule.body:
        if isinstance(literal, Condition) and literal.in_head and isinstance(literal.left, Variable):
            computed[literal.left] = literal.right
        else:
            shown.append(literal)
    body = ", ".join(format_literal(literal) for literal in shown)
    head = rule.head
    several = isinstance(head, Group) and not head.alternatives and not head.predicate
    text = _format_group(head, computed) if isinstance(head, Group) and several else format_formula(head, computed)
    return text + (f" :- {body}." if body else ".")


def format_program(rules: Iterable[Rule]) -> str:
    """Format rules, one per line."""
    return "".join(format_rule(rule) + "\n" for rule in rules)


def format_temporal_atom(atom: TemporalAtom) -> str:
    """Format an atom of temporal Datalog, with its time as the last argument."""
    args = [format_term(arg) for arg in atom.args] + ([format_time_term(atom.time)] if atom.time else [])
    return atom.predicate + (f"({', '.join(args)})" if args else "")


def format_time_term(time: TimeTerm) -> str:
    """Format a time argument: `T+1` or `3`."""
    if time.variable is None:
        return str(time.offset)
    return time.variable + (f"{time.offset:+}" if time.offset else "")


def format_temporal_rule(rule: TemporalRule) -> str:
    """Format one rule or fact of temporal Datalog, with its final dot."""
    body = ", ".join(
        format_comparison(literal)
        if isinstance(literal, Comparison)
        else ("not " if literal.negated else "") + format_temporal_atom(literal.atom)
        for literal in rule.body
    )
    head = format_temporal_atom(rule.head) if rule.head else "Bottom"
    return head + (f" :- {body}." if body else ".")


def format_temporal(program: TemporalProgram) -> str:
    """Format a program of temporal Datalog: the directives that it needs, then rules and facts."""
    from tidelog.language.tdl_time_arguments import find_needed_directives

    lines = [*find_needed_directives(program), *map(format_temporal_rule, (*program.rules, *program.facts))]
    return "".join(line + "\n" for line in lines)
