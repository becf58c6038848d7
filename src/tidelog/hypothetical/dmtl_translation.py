"""Translate DatalogMTL over the integers, with bounded ranges and without negation, into temporal Datalog.

Every operator is expanded over the points of its range: a diamond into one rule per point, a box into one literal per
point, `Since` into both. Operators that look ahead are no harder than those that look back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import assert_never

from tidelog.analysis.predicate_graph import find_defining_rules
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.background import integer_points
from tidelog.hypothetical.resolution import MAX_SCHEMAS, NEGATION_LAW, too_many_ways
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Bottom,
    Comparison,
    Condition,
    Formula,
    Literal,
    Rule,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    TimeTerm,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.validation import rule_atoms
from tidelog.timeline.interval import Interval, TimelineName

#: One way to make a formula true: atoms, each with its distance from the time of the formula.
_Way = tuple[tuple[Atom, int], ...]

_PAST = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
_NUMBERS_LAW = "a query is resolved into the facts that it awaits, which must not depend on computed values"
_RANGE_LAW = "awaited facts can be listed only for bounded ranges over the integer timeline"


def translate_to_temporal(program: Program, timeline: TimelineName | None, query: str) -> TemporalProgram:
    """Return the program itself if it is temporal Datalog, with the query (a predicate) as a temporal one, else a
    translation of the rules that the query needs.

    Raise for everything in these rules that hypothetical answers do not support."""
    if program.temporal is not None:
        return program.with_temporal_query(query).temporal or program.temporal
    if (timeline or program.timeline) != "integer":
        raise TidelogError(
            Diagnostic(
                "TL702",
                "the rational timeline is not supported by hypothetical answers",
                law="hypothetical answers have integer time points: 0, 1, 2, ...",
                help="add --timeline integer, if the rules mean whole time points",
            )
        )
    errors: list[Diagnostic] = []
    rules: list[TemporalRule] = []
    for rule in find_defining_rules(program.rules, query):
        unsupported = list(_find_unsupported(rule))
        errors += unsupported
        if not unsupported:
            rules += _translate_rule(rule)
    if errors:
        raise TidelogError(errors)
    used = {(atom.predicate, len(atom.args)) for rule in program.rules for atom in rule_atoms(rule)}
    return TemporalProgram(tuple(rules), (), frozenset(used), frozenset())


def _find_unsupported(rule: Rule) -> Iterator[Diagnostic]:
    yield from _find_unbounded(rule.head)
    for literal in rule.body:
        if isinstance(literal, Literal):
            if literal.negated:
                yield Diagnostic("TL702", "`not` is not supported by hypothetical answers", literal.place, NEGATION_LAW)
            yield from _find_unbounded(literal.formula)
        elif isinstance(literal, Condition):
            message = "arithmetic, aggregates and tests of text are not supported by hypothetical answers"
            yield Diagnostic("TL702", message, literal.place or rule.place, _NUMBERS_LAW)


def _find_unbounded(formula: Formula) -> Iterator[Diagnostic]:
    match formula:
        case Unary(op, range, arg):
            if isinstance(range.hi, float):
                yield _unbounded_range(op.value, range, formula.place)
            yield from _find_unbounded(arg)
        case Binary(op, range, left, right):
            if isinstance(range.hi, float):
                yield _unbounded_range(op.value, range, formula.place)
            yield from _find_unbounded(left)
            yield from _find_unbounded(right)
        case Atom() | Top() | Bottom():
            return
        case _:
            assert_never(formula)


def _unbounded_range(word: str, range: Interval, place: Place | None) -> Diagnostic:
    help = "give the range an end"
    message = f"{word}{range.with_brackets()} is not supported by hypothetical answers: its range has no end"
    return Diagnostic("TL702", message, place, _RANGE_LAW, help)


def _translate_rule(rule: Rule) -> Iterator[TemporalRule]:
    heads = list(_expand_head(rule.head, 0))
    if not heads:
        return
    time_name = _choose_time_name(rule)
    comparisons = [part for part in rule.body if isinstance(part, Comparison)]
    formulas = [part.formula for part in rule.body if isinstance(part, Literal)]
    for ways in product(*(_expand_body(formula, 0, rule) for formula in formulas)):
        atoms = dict.fromkeys(pair for way in ways for pair in way)
        body = tuple(TemporalLiteral(_add_time(atom, time_name, at)) for atom, at in atoms)
        for atom, at in heads:
            yield TemporalRule(_add_time(atom, time_name, at), (*body, *comparisons), rule.text, rule.place)


def _choose_time_name(rule: Rule) -> str:
    """Return a name for the time variable that the rule does not use."""
    used = {term.name for atom in rule_atoms(rule) for term in atom.args if isinstance(term, Variable)}
    return next(name for name in _time_names() if name not in used)


def _time_names() -> Iterator[str]:
    yield "T"
    number = 1
    while True:
        yield f"T{number}"
        number += 1


def _add_time(atom: Atom, time_name: str, at: int) -> TemporalAtom:
    return TemporalAtom(atom.predicate, atom.args, TimeTerm(time_name, at), atom.place)


def _expand_head(head: Formula, at: int) -> Iterator[tuple[Atom, int]]:
    match head:
        case Atom():
            yield head, at
        case Unary(op, range, arg):
            for distance in integer_points(range):
                yield from _expand_head(arg, at - distance if op in _PAST else at + distance)
        case Top() | Bottom() | Binary():
            return
        case _:
            assert_never(head)


def _expand_body(formula: Formula, at: int, rule: Rule) -> list[_Way]:
    """Return every way to make a formula true at a distance from the time of the rule."""
    match formula:
        case Atom():
            return [((formula, at),)]
        case Top():
            return [()]
        case Bottom():
            return []
        case Unary(op, range, arg):
            sign = -1 if op in _PAST else 1
            parts = [_expand_body(arg, at + sign * distance, rule) for distance in integer_points(range)]
            if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS):
                return _require_few([way for part in parts for way in part], rule)
            return _combine(parts, rule)
        case Binary(op, range, left, right):
            sign = -1 if op is BinaryOp.SINCE else 1
            found: list[_Way] = []
            for distance in integer_points(range):
                between = [_expand_body(left, at + sign * d, rule) for d in _open_range(distance)]
                found += _combine([_expand_body(right, at + sign * distance, rule), *between], rule)
            return _require_few(found, rule)
        case _:
            assert_never(formula)


def _open_range(distance: int) -> Iterable[int]:
    """Return the points strictly between now and a distance."""
    return range(1, distance)


def _combine(parts: list[list[_Way]], rule: Rule) -> list[_Way]:
    found: list[_Way] = [()]
    for part in parts:
        if len(found) * len(part) > MAX_SCHEMAS:
            raise too_many_ways("this rule can be satisfied in too many ways", "use shorter ranges", rule.place)
        found = list(dict.fromkeys(tuple(dict.fromkeys(a + b)) for a in found for b in part))
    return found


def _require_few(ways: list[_Way], rule: Rule) -> list[_Way]:
    if len(ways) > MAX_SCHEMAS:
        raise too_many_ways("this rule can be satisfied in too many ways", "use shorter ranges", rule.place)
    return ways
