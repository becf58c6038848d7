"""Find the arguments of derived predicates that are times: the results of `start`, and values that come from them.

Times are numbers to the engine. Where the data has dates, these arguments print as dates, as the ends of intervals do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from tidelog.errors import TidelogError
from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import find_equations, literal_variables, outer_variables, rule_aggregates
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    BodyLiteral,
    Expression,
    Fact,
    Operation,
    Rule,
    Value,
    Variable,
)
from tidelog.language.time_text import parse_time
from tidelog.language.validation import body_atoms

#: Aggregates whose value is a value of one of the rows.
_OF_A_ROW = (AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.LAST, AggregateFunction.FIRST)

_Places = set[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class TimeTerms:
    """The variables and the aggregates of a rule whose values are times."""

    variables: frozenset[str] = frozenset()
    aggregates: frozenset[Aggregate] = frozenset()


NO_TIMES = TimeTerms()


def find_time_arguments(rules: Iterable[Rule]) -> dict[str, tuple[int, ...]]:
    """Return the positions of the arguments that are times, by predicate.

    >>> from tidelog.language.parser import parse_rules
    >>> rules, _ = parse_rules("Since(X, S) :- S = start{ Hot(X) }. Old(S + 60) :- Since(_, S).", "<text>")
    >>> find_time_arguments(rules)
    {'Since': (1,), 'Old': (0,)}
    """
    rules = [rule for rule in rules if head_atom(rule) is not None]
    if not any(a.function is AggregateFunction.START for rule in rules for a in body_aggregates(rule.body)):
        return {}
    times: _Places = set()
    while more := {place for rule in rules for place in _derive_times(rule, times)} - times:
        times |= more
    # An argument that some rule derives as another number is no time, and neither is anything that comes from it.
    while wrong := {place for place in times if not _is_always_time(place, rules, times)}:
        times -= wrong
    found: dict[str, list[int]] = {}
    for rule in rules:
        for predicate, position in _head_places(rule):
            if (predicate, position) in times and position not in found.setdefault(predicate, []):
                found[predicate].append(position)
    return {predicate: tuple(positions) for predicate, positions in found.items() if positions}


def find_time_terms(rule: Rule, arguments: Mapping[str, tuple[int, ...]]) -> TimeTerms:
    """Return the variables and aggregates of a rule that are times, given the arguments of predicates that are.

    >>> from tidelog.language.parser import parse_rules
    >>> rules, _ = parse_rules("Old(S, N) :- Since(X, S), N = max{ R : Since(_, R) } - S.", "<text>")
    >>> sorted(find_time_terms(rules[0], {"Since": (1,)}).variables)
    ['R', 'S']
    """
    times = {(predicate, position) for predicate, positions in arguments.items() for position in positions}
    outer = outer_variables(rule)
    scopes = [(tuple(outer), rule.body)]
    for aggregate in rule_aggregates(rule):
        inside = (*aggregate.body, *rule.body)
        local = (v for literal in aggregate.body for v in literal_variables(literal) if v not in outer)
        scopes.append((tuple(local), inside))
    found = {(variable.name, _is_time(variable, body, times)) for variables, body in scopes for variable in variables}
    return TimeTerms(
        # A name that is local to several braces may be a time in one of them only.
        frozenset(name for name, is_time in found if is_time and (name, False) not in found),
        frozenset(aggregate for aggregate in rule_aggregates(rule) if _is_time(aggregate, rule.body, times)),
    )


def read_dates(fact: Fact, positions: Iterable[int]) -> Fact:
    """Return a fact whose arguments at some positions are numbers where they were dates."""
    args = tuple(_read_date(value) if place in positions else value for place, value in enumerate(fact.args))
    return replace(fact, args=args)


def _read_date(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    try:
        time, dated = parse_time(value)
    except TidelogError:
        return value
    return time if dated and isinstance(time, Fraction) else value


def _is_always_time(place: tuple[str, int], rules: Iterable[Rule], times: _Places) -> bool:
    deriving = (rule for rule in rules if place in _head_places(rule))
    return all(place in _derive_times(rule, times) for rule in deriving)


def _head_places(rule: Rule) -> Iterator[tuple[str, int]]:
    head = head_atom(rule)
    assert head is not None
    return ((head.predicate, position) for position in range(len(head.args)))


def _derive_times(rule: Rule, times: _Places) -> Iterator[tuple[str, int]]:
    """Yield the places of a rule's head that get a time."""
    head = head_atom(rule)
    assert head is not None
    for position, term in enumerate(head.args):
        if _is_time(term, rule.body, times):
            yield head.predicate, position


def _is_time(
    expression: Expression, body: tuple[BodyLiteral, ...], times: _Places, open: tuple[Variable, ...] = ()
) -> bool:
    match expression:
        case Aggregate(AggregateFunction.START):
            return True
        case Aggregate(function, (value,), inner) if function in _OF_A_ROW:
            return _is_time(value, (*inner, *body), times, open)
        case Operation("+", (left, right)):
            return _is_time(left, body, times, open) != _is_time(right, body, times, open)
        case Operation("-", (left, right)):
            return _is_time(left, body, times, open) and not _is_time(right, body, times, open)
        case Operation(name, args) if name in ("min", "max", "floor", "ceil"):
            return all(_is_time(arg, body, times, open) for arg in args)
        case Variable() if expression not in open:
            places = [
                (atom.predicate, position)
                for atom, denied in body_atoms(body)
                if not denied
                for position, term in enumerate(atom.args)
                if term == expression
            ]
            if places:
                return any(place in times for place in places)
            values = (value for variable, value in find_equations(body) if variable == expression)
            return any(_is_time(value, body, times, (*open, expression)) for value in values)
    return False
