"""Random programs that a cluster can usually split: those of `strategies` with one more argument, the key.

Most predicates get it, first or last, and most atoms of a rule have the same variable there. Some have another variable
or a constant, so some programs split into several stages, some need copies, and some do not split at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from hypothesis import strategies as st

from strategies import Case, Features, bound_variables, cases
from tidelog.language.parser import build_group
from tidelog.language.syntax import (
    Atom,
    Binary,
    BodyLiteral,
    Comparison,
    Constant,
    Formula,
    Group,
    Literal,
    Rule,
    Term,
    Unary,
    Value,
    Variable,
)

T = TypeVar("T")

KEYS: tuple[Value, ...] = ("k1", "k2", Fraction(1), "1")
_KEY, _OTHER = Variable("K"), Variable("J")


@dataclass(frozen=True)
class Lift:
    """The position of the new argument of each predicate: 0 first, 1 last; a missing predicate has none."""

    places: dict[str, int]

    def args(self, predicate: str, args: tuple[T, ...], key: T) -> tuple[T, ...]:
        match self.places.get(predicate):
            case 0:
                return key, *args
            case 1:
                return *args, key
        return args


@st.composite
def keyed_cases(draw: st.DrawFn, features: Features) -> Case:
    case = draw(cases(features))
    names = sorted({f.predicate for f in case.facts} | {a for r in case.rules for a in _names(r)})
    places = {name: draw(st.sampled_from((0, 0, 0, 1, 1, 1, None))) for name in names}
    lift = Lift({name: place for name, place in places.items() if place is not None})
    rules = tuple(draw(lift_case(rule, lift)) for rule in case.rules)
    keys = st.sampled_from(KEYS)
    facts = tuple(replace(f, args=lift.args(f.predicate, f.args, draw(keys))) for f in case.facts for _ in range(2))
    return Case(rules, facts, case.features)


@st.composite
def lift_case(draw: st.DrawFn, rule: Rule, lift: Lift) -> Rule:
    """A rule with the new arguments; it stays safe."""
    terms = st.sampled_from((_KEY,) * 12 + (_OTHER,) * 2 + (Constant(draw(st.sampled_from(KEYS))),))

    def widen(formula: Formula, allowed: set[str] | None) -> Formula:
        match formula:
            case Group(literals=literals, alternatives=alternatives):
                return build_group([widen_part(part, alternatives, allowed) for part in literals], None, alternatives)
            case Atom(predicate, args):
                term: Term = draw(terms)
                if isinstance(term, Variable) and allowed is not None and term.name not in allowed:
                    term = Variable(draw(st.sampled_from(sorted(allowed)))) if allowed else Constant(KEYS[0])
                return replace(formula, args=lift.args(predicate, args, term))
            case Unary():
                return replace(formula, arg=widen(formula.arg, allowed))
            case Binary():
                return replace(formula, left=widen(formula.left, allowed), right=widen(formula.right, allowed))
        return formula

    def widen_part(part: BodyLiteral, alternative: bool, allowed: set[str] | None) -> BodyLiteral:
        """A literal of a group: an alternative or a negated one gets a constant, so that the rule stays safe."""
        if not isinstance(part, Literal):
            return part
        return replace(part, formula=widen(part.formula, set() if alternative or part.negated else allowed))

    body: list[BodyLiteral] = [
        replace(part, formula=widen(part.formula, None)) if isinstance(part, Literal) and not part.negated else part
        for part in rule.body
    ]
    positive = [part.formula for part in body if isinstance(part, Literal) and not part.negated]
    bound = {name for formula in positive for name in bound_variables(formula)} & {_KEY.name, _OTHER.name}
    body = [
        replace(part, formula=widen(part.formula, bound)) if isinstance(part, Literal) and part.negated else part
        for part in body
    ]
    if len(bound) == 2 and draw(st.booleans()):
        body.append(Comparison("=", _KEY, _OTHER))
    return replace(rule, head=widen(rule.head, bound), body=tuple(body))


def _names(rule: Rule) -> set[str]:
    found: set[str] = set()
    todo = [rule.head, *(part.formula for part in rule.body if isinstance(part, Literal))]
    while todo:
        match todo.pop():
            case Group(literals=literals):
                todo += [part.formula for part in literals if isinstance(part, Literal)]
            case Atom(name):
                found.add(name)
            case Unary(_, _, arg):
                todo.append(arg)
            case Binary(_, _, left, right):
                todo += [left, right]
    return found
