"""Checks that make a program meaningful: heads that can be derived, safe temporal Datalog, one arity per predicate.

`rule_checks` puts them together for DatalogMTL.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from tidelog.errors import Diagnostic, Place
from tidelog.language.aggregate_checks import find_aggregates
from tidelog.language.syntax import (
    Atom,
    Binary,
    BodyLiteral,
    Bottom,
    Comparison,
    Condition,
    Formula,
    Literal,
    Rule,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.wording import plural

#: Terms whose variables need a binding, the words for the part of the rule they are in, and its place.
BindingNeed = tuple[tuple[Term, ...], str, Place | None]


def formula_atoms(formula: Formula, left: bool = True) -> Iterator[Atom]:
    """Yield the atoms of a formula in order, without those in left operands of Since and Until unless `left`."""
    match formula:
        case Atom():
            yield formula
        case Top() | Bottom():
            return
        case Unary(_, _, arg):
            yield from formula_atoms(arg, left)
        case Binary(_, _, first, second):
            if left:
                yield from formula_atoms(first, left)
            yield from formula_atoms(second, left)
        case _:
            assert_never(formula)


def rule_atoms(rule: Rule) -> Iterator[Atom]:
    """Yield the atoms of a rule, head first."""
    yield from formula_atoms(rule.head)
    yield from (atom for atom, _ in body_atoms(rule.body))


def body_atoms(body: Iterable[BodyLiteral]) -> Iterator[tuple[Atom, bool]]:
    """Yield the atoms of a body, each with whether a negation or an aggregate reads it."""
    for literal in body:
        match literal:
            case Literal(formula, negated):
                yield from ((atom, negated) for atom in formula_atoms(formula))
            case Condition(_, left, right):
                for aggregate in (*find_aggregates(left), *find_aggregates(right)):
                    yield from ((atom, True) for atom, _ in body_atoms(aggregate.body))
            case Comparison():
                pass
            case _:
                assert_never(literal)


def collect_variables(terms: Iterable[Term]) -> dict[Variable, None]:
    """Collect the variables among some terms, each once, in order; the dictionary serves as an ordered set."""
    return dict.fromkeys(term for term in terms if isinstance(term, Variable))


def diagnose_head(head: Formula) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each operator that a head may not carry."""
    match head:
        case Unary(op, _, arg):
            if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS):
                box = "Boxminus" if op is UnaryOp.DIAMOND_MINUS else "Boxplus"
                help = f"write {box} if it holds at every time of the range, or choose one time: {box}[a,a]"
                yield Diagnostic("TL103", f"{op.value} in a head", head.place, help=help)
            yield from diagnose_head(arg)
        case Binary(op):
            help = f"{op.value} belongs in a body"
            yield Diagnostic("TL103", f"{op.value} in a head", head.place, help=help)
        case Atom() | Top() | Bottom():
            return
        case _:
            assert_never(head)


def diagnose_unbound(
    needs: Iterable[BindingNeed], bound: Container[Variable], bodiless: bool, help: str | None = None
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable that needs a binding and has none."""
    reported: set[Variable] = set()
    for terms, where, place in needs:
        for variable in collect_variables(terms):
            if variable not in bound and variable not in reported:
                reported.add(variable)
                yield unsafe_variable(variable, where, place, bodiless, help)


def diagnose_temporal(program: TemporalProgram) -> list[Diagnostic]:
    """Return all safety problems of temporal Datalog. A head's time needs no binding: it ranges over all integers."""
    return [problem for rule in program.rules for problem in _diagnose_temporal_rule(rule)]


def _diagnose_temporal_rule(rule: TemporalRule) -> Iterator[Diagnostic]:
    literals = [literal for literal in rule.body if isinstance(literal, TemporalLiteral)]
    positive = [literal.atom for literal in literals if not literal.negated]
    bound = collect_variables(term for atom in positive for term in atom.args)
    needs: list[BindingNeed] = []
    if rule.head:
        needs.append((rule.head.args, "the head", rule.head.place))
    for literal in rule.body:
        if isinstance(literal, Comparison):
            needs.append(((literal.left, literal.right), "a comparison", literal.place))
        elif literal.negated:
            needs.append((literal.atom.args, "a negated literal", literal.atom.place))
    yield from diagnose_unbound(needs, bound, bodiless=not rule.body)
    times = {atom.time.variable for atom in (*positive, *([rule.head] if rule.head else [])) if atom.time}
    for literal in literals:
        time = literal.atom.time
        if literal.negated and time and time.variable and time.variable not in times:
            message = f"the negated {literal.atom.predicate} has a time variable of its own"
            help = "give it the time of another literal, or name `at some time` with a rule: Ever(X) :- P(X, T)."
            yield Diagnostic("TL109", message, locate(literal.atom.place, time.variable), help=help)


def unsafe_variable(
    variable: Variable, where: str, place: Place | None, bodiless: bool = False, help: str | None = None
) -> Diagnostic:
    """Build the diagnostic for a variable that nothing binds."""
    name = "_" if variable.anonymous else variable.name
    if help is not None:
        pass
    elif bodiless:
        help = f'write a constant: names that start upper-case are variables unless quoted ("{name}"), or add a body'
    elif variable.anonymous:
        help = "define a predicate without it, such as Some(X) :- P(X, _)., and use Some(X)"
    else:
        help = f"add a positive literal that mentions {name}"
    return Diagnostic("TL101", f"variable {name} of {where} is unsafe", locate(place, name), help=help)


def locate(place: Place | None, name: str) -> Place | None:
    """Return the place of a name in the line behind `place`, or `place` if the name is not on that line."""
    if place is None:
        return None
    match = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(place.text, place.column - 1)
    return replace(place, column=match.start() + 1, length=len(name)) if match else place


def diagnose_arities(uses: Iterable[tuple[str, int, Place | None]]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each use of a predicate with another number of arguments than at its first use."""
    first: dict[str, tuple[int, Place | None]] = {}
    for predicate, arity, place in uses:
        known, where = first.setdefault(predicate, (arity, place))
        if arity != known:
            here, there = plural(arity, "argument"), plural(known, "argument")
            message = f"{predicate} has {here} here but {there} at {where or 'its first use'}"
            yield Diagnostic("TL102", message, place)
