"""What a program must keep to before it means anything: safety, one arity a predicate, heads that can be made true."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from tidelog.errors import Diagnostic, Place
from tidelog.language.syntax import (
    Atom,
    Binary,
    Bottom,
    Comparison,
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

#: Terms whose variables need a binding, what they stand in, and where that is.
_Demand = tuple[tuple[Term, ...], str, Place | None]

SAFETY_LAW = (
    "each variable of the head, of a negated literal and of a comparison occurs in a positive body atom, "
    "elsewhere than in a left operand of Since or Until"
)
_TIME_LAW = "the time variable of a negated literal is that of the head or occurs in a positive body atom"
_HEAD_LAW = "a head may carry only Boxminus and Boxplus: what is true at some unknown time cannot be derived"


def check_rules(rules: Iterable[Rule]) -> list[Diagnostic]:
    """Everything that is wrong with the meaning of these rules."""
    found: list[Diagnostic] = []
    rules = tuple(rules)
    for rule in rules:
        found += check_head(rule.head)
        found += check_safety(rule)
    found += check_arities((atom.predicate, len(atom.args), atom.place) for rule in rules for atom in rule_atoms(rule))
    return found


def atoms(formula: Formula, left: bool = True) -> Iterator[Atom]:
    """All atoms of a formula, in order; if `left` is false, without those in left operands of Since and Until."""
    match formula:
        case Atom():
            yield formula
        case Top() | Bottom():
            return
        case Unary(_, _, arg):
            yield from atoms(arg, left)
        case Binary(_, _, first, second):
            if left:
                yield from atoms(first, left)
            yield from atoms(second, left)
        case _:
            assert_never(formula)


def rule_atoms(rule: Rule) -> Iterator[Atom]:
    """All atoms of a rule, head first."""
    yield from atoms(rule.head)
    for literal in rule.body:
        if isinstance(literal, Literal):
            yield from atoms(literal.formula)


def variables(terms: Iterable[Term]) -> dict[Variable, None]:
    """The variables among some terms, each once, in order."""
    return dict.fromkeys(term for term in terms if isinstance(term, Variable))


def check_head(head: Formula) -> Iterator[Diagnostic]:
    match head:
        case Unary(op, _, arg):
            if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS):
                box = "Boxminus" if op is UnaryOp.DIAMOND_MINUS else "Boxplus"
                help = f"write {box} if it holds at every time of the range, or choose one time: {box}[a,a]"
                yield Diagnostic("TL103", f"{op.value} in a head", head.place, _HEAD_LAW, help)
            yield from check_head(arg)
        case Binary(op):
            help = f"{op.value} belongs into a body"
            yield Diagnostic("TL103", f"{op.value} in a head", head.place, _HEAD_LAW, help)
        case Atom() | Top() | Bottom():
            return
        case _:
            assert_never(head)


def check_safety(rule: Rule) -> Iterator[Diagnostic]:
    """One diagnostic for each variable that nothing binds."""
    positive = [lit.formula for lit in rule.body if isinstance(lit, Literal) and not lit.negated]
    bound = variables(term for formula in positive for atom in atoms(formula, left=False) for term in atom.args)
    yield from _unbound(_demands(rule), bound, bodiless=not rule.body)


def _unbound(demands: Iterable[_Demand], bound: Container[Variable], bodiless: bool) -> Iterator[Diagnostic]:
    reported: set[Variable] = set()
    for terms, where, place in demands:
        for variable in variables(terms):
            if variable not in bound and variable not in reported:
                reported.add(variable)
                yield unsafe(variable, where, place, bodiless)


def _demands(rule: Rule) -> Iterator[_Demand]:
    for atom in atoms(rule.head):
        yield atom.args, "the head", atom.place
    for literal in rule.body:
        if isinstance(literal, Comparison):
            yield (literal.left, literal.right), "a comparison", literal.place
        elif literal.negated:
            for atom in atoms(literal.formula):
                yield atom.args, "a negated literal", atom.place


def check_temporal(program: TemporalProgram) -> list[Diagnostic]:
    """Safety of temporal Datalog. A head's time needs no binding: it ranges over all integers."""
    return [found for rule in program.rules for found in _check_temporal_rule(rule)]


def _check_temporal_rule(rule: TemporalRule) -> Iterator[Diagnostic]:
    literals = [literal for literal in rule.body if isinstance(literal, TemporalLiteral)]
    positive = [literal.atom for literal in literals if not literal.negated]
    bound = variables(term for atom in positive for term in atom.args)
    demands: list[_Demand] = []
    if rule.head:
        demands.append((rule.head.args, "the head", rule.head.place))
    for literal in rule.body:
        if isinstance(literal, Comparison):
            demands.append(((literal.left, literal.right), "a comparison", literal.place))
        elif literal.negated:
            demands.append((literal.atom.args, "a negated literal", literal.atom.place))
    yield from _unbound(demands, bound, bodiless=not rule.body)
    times = {atom.time.variable for atom in (*positive, *([rule.head] if rule.head else [])) if atom.time}
    for literal in literals:
        time = literal.atom.time
        if literal.negated and time and time.variable and time.variable not in times:
            message = f"the negated {literal.atom.predicate} has a time variable of its own"
            help = "give it the time of another literal, or name `at some time` with a rule: Ever(X) :- P(X, T)."
            yield Diagnostic("TL109", message, locate(literal.atom.place, time.variable), _TIME_LAW, help)


def unsafe(variable: Variable, where: str, place: Place | None, bodiless: bool = False) -> Diagnostic:
    """The diagnostic for a variable that no positive atom binds."""
    name = "_" if variable.anonymous else variable.name
    if bodiless:
        help = f'write a constant: names that start upper-case are variables unless quoted ("{name}"), or add a body'
    elif variable.anonymous:
        help = "name the rest with a rule of its own, such as Some(X) :- P(X, _)., and use Some(X)"
    else:
        help = f"add a positive literal that mentions {name}"
    return Diagnostic("TL101", f"variable {name} of {where} is unsafe", locate(place, name), SAFETY_LAW, help)


def locate(place: Place | None, name: str) -> Place | None:
    """The place of a name in the text behind `place`, if it stands on the same line."""
    if place is None:
        return None
    found = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(place.text, place.column - 1)
    return replace(place, column=found.start() + 1, length=len(name)) if found else place


def check_arities(uses: Iterable[tuple[str, int, Place | None]]) -> Iterator[Diagnostic]:
    """A predicate has as many arguments everywhere as where it occurs first."""
    first: dict[str, tuple[int, Place | None]] = {}
    for predicate, arity, place in uses:
        known, where = first.setdefault(predicate, (arity, place))
        if arity != known:
            message = f"{predicate} has {_count(arity)} here but {_count(known)} at {where or 'its first use'}"
            yield Diagnostic("TL102", message, place, "a predicate has the same number of arguments everywhere")


def _count(arity: int) -> str:
    return f"{arity} argument" + ("" if arity == 1 else "s")
