"""Translate DatalogMTL over the integers, with bounded ranges, into temporal Datalog.

Every operator is expanded over the points of its range: a diamond into one rule per point, a box into one literal per
point, `Since` into both. Operators that look ahead are no harder than those that look back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import assert_never

from tidelog.analysis.predicate_graph import find_defining_rules
from tidelog.compiler.validate import find_fractional_ranges
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.background import integer_points
from tidelog.hypothetical.resolution import MAX_SCHEMAS, too_many_ways
from tidelog.hypothetical.threshold_translation import Choice, Row, UnsupportedCondition, Way, translate_condition
from tidelog.language.calendar_predicates import require_no_calendar
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.program import Program
from tidelog.language.syntax import (
    Aggregate,
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
from tidelog.language.validation import formula_atoms, rule_atoms
from tidelog.timeline.interval import Interval, TimelineName

_PAST = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
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
    needed = find_defining_rules(program.rules, query)
    require_no_calendar(needed, "`hypothesise`")
    smaller = "use integers: choose a smaller unit of time"
    errors = [replace(found, help=smaller) for found in find_fractional_ranges(needed, "batch")]
    rules: list[TemporalRule] = []
    for rule in needed:
        unsupported = list(_find_unsupported(rule))
        errors += unsupported
        if not unsupported:
            try:
                rules += _translate_rule(rule)
            except UnsupportedCondition as refused:
                errors.append(refused.diagnostic)
    if errors:
        raise TidelogError(errors)
    used = {(atom.predicate, len(atom.args)) for rule in program.rules for atom in rule_atoms(rule)}
    return TemporalProgram(tuple(rules), (), frozenset(used), frozenset())


def _find_unsupported(rule: Rule) -> Iterator[Diagnostic]:
    yield from _find_unbounded(rule.head)
    for literal in rule.body:
        if isinstance(literal, Literal):
            yield from _find_unbounded(literal.formula)
        elif isinstance(literal, Condition):
            yield from _find_unbounded_in_braces(literal)


def _find_unbounded_in_braces(condition: Condition) -> Iterator[Diagnostic]:
    for side in (condition.left, condition.right):
        if isinstance(side, Aggregate):
            for part in side.body:
                if isinstance(part, Literal):
                    yield from _find_unbounded(part.formula)


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
    parts = [_find_choices(rule, part) for part in rule.body if not isinstance(part, Comparison)]
    # What must not hold becomes a predicate of its own, with a rule for each way to make it true.
    absent: dict[object, TemporalLiteral] = {}
    for thing in (thing for choices in parts for choice in choices for thing in choice.absent):
        if thing not in absent:
            names, rows = thing
            hidden = Atom(hidden_name(f"not {rule.text} {len(absent)}"), tuple(map(Variable, names)), rule.place)
            head = _add_time(hidden, time_name, 0)
            absent[thing] = TemporalLiteral(head, True)
            for row in rows:
                literals = tuple(TemporalLiteral(_add_time(atom, time_name, at)) for atom, at in row.atoms)
                yield TemporalRule(head, (*literals, *row.comparisons), rule.text, rule.place)
    for choices in _require_few_choices(parts, rule):
        atoms = dict.fromkeys(pair for choice in choices for pair in choice.row.atoms)
        body = tuple(TemporalLiteral(_add_time(atom, time_name, at)) for atom, at in atoms)
        negated = dict.fromkeys(absent[thing] for choice in choices for thing in choice.absent)
        others = [comparison for choice in choices for comparison in choice.row.comparisons]
        for atom, at in heads:
            whole: tuple[TemporalLiteral | Comparison, ...] = (*body, *negated, *comparisons, *others)
            yield TemporalRule(_add_time(atom, time_name, at), whole, rule.text, rule.place)


def _find_choices(rule: Rule, part: Literal | Condition) -> list[Choice]:
    """Return every way to make a part of a body true."""

    def expand(formula: Formula) -> list[Way]:
        return _expand_body(formula, 0, rule)

    if isinstance(part, Condition):
        return translate_condition(rule, part, expand)
    rows = [Row(way) for way in expand(part.formula)]
    if not part.negated:
        return [Choice(row) for row in rows]
    names = dict.fromkeys(t.name for a in formula_atoms(part.formula) for t in a.args if isinstance(t, Variable))
    return [Choice(Row(()), ((tuple(names), tuple(rows)),))]


def _require_few_choices(parts: list[list[Choice]], rule: Rule) -> Iterator[tuple[Choice, ...]]:
    if prod(map(len, parts)) > MAX_SCHEMAS:
        raise too_many_ways("this rule can be satisfied in too many ways", "use shorter ranges", rule.place)
    return product(*parts)


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


def _expand_body(formula: Formula, at: int, rule: Rule) -> list[Way]:
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
            found: list[Way] = []
            for distance in integer_points(range):
                between = [_expand_body(left, at + sign * d, rule) for d in _open_range(distance)]
                found += _combine([_expand_body(right, at + sign * distance, rule), *between], rule)
            return _require_few(found, rule)
        case _:
            assert_never(formula)


def _open_range(distance: int) -> Iterable[int]:
    """Return the points strictly between now and a distance."""
    return range(1, distance)


def _combine(parts: list[list[Way]], rule: Rule) -> list[Way]:
    found: list[Way] = [()]
    for part in parts:
        if len(found) * len(part) > MAX_SCHEMAS:
            raise too_many_ways("this rule can be satisfied in too many ways", "use shorter ranges", rule.place)
        found = list(dict.fromkeys(tuple(dict.fromkeys(a + b)) for a in found for b in part))
    return found


def _require_few(ways: list[Way], rule: Rule) -> list[Way]:
    if len(ways) > MAX_SCHEMAS:
        raise too_many_ways("this rule can be satisfied in too many ways", "use shorter ranges", rule.place)
    return ways
