"""DatalogMTL over the integers, with bounded ranges and without negation, as temporal Datalog.

Every operator becomes the points that it speaks of: a diamond one rule for each point of its range, a box a literal for
each, `Since` both. Ranges are closed first, as the integers have no points in between. Operators that look ahead are no
harder than those that look back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import assert_never

from tidelog.analysis.components import dependencies, head_atom
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.hypothetical.resolution import MOST_SCHEMAS, NEGATION_LAW
from tidelog.language.program import Program
from tidelog.language.safety import rule_atoms
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Bottom,
    Comparison,
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
from tidelog.timeline.interval import Interval

#: One way to make a formula true: atoms, each with its distance from the formula's own time.
_Way = tuple[tuple[Atom, int], ...]

_PAST = (UnaryOp.DIAMOND_MINUS, UnaryOp.BOX_MINUS)
_RANGE_LAW = "awaited facts can be listed only for bounded ranges over the integer timeline"


def temporal_program(program: Program, timeline: str | None, query: str) -> TemporalProgram:
    """The program itself if it is temporal Datalog, else the translation of what the query (a predicate) needs of it;
    raises for everything that stands in the way."""
    if program.temporal is not None:
        return program.temporal
    if (timeline or program.timeline) != "integer":
        raise TidelogError(
            Diagnostic(
                "TL702",
                "the rational timeline stands in the way",
                law="hypothetical answers are at the time points 0, 1, 2, ...: the timeline is the integers",
                help="say --timeline integer, if the rules mean whole time points",
            )
        )
    errors: list[Diagnostic] = []
    rules: list[TemporalRule] = []
    for rule in _needed(program.rules, query):
        found = list(_obstacles(rule))
        errors += found
        if not found:
            rules += _translated(rule)
    if errors:
        raise TidelogError(errors)
    used = {(atom.predicate, len(atom.args)) for rule in program.rules for atom in rule_atoms(rule)}
    return TemporalProgram(tuple(rules), (), frozenset(used), frozenset())


def _needed(rules: Iterable[Rule], query: str) -> list[Rule]:
    """The rules that a predicate depends on."""
    rules = [rule for rule in rules if head_atom(rule)]
    needed, found = {query}, -1
    while len(needed) != found:
        found = len(needed)
        for rule in rules:
            head = head_atom(rule)
            if head and head.predicate in needed:
                needed.update(atom.predicate for atom, _ in dependencies(rule))
    return [rule for rule in rules if (head := head_atom(rule)) and head.predicate in needed]


def _obstacles(rule: Rule) -> Iterator[Diagnostic]:
    yield from _unbounded(rule.head)
    for literal in rule.body:
        if isinstance(literal, Literal):
            if literal.negated:
                yield Diagnostic("TL702", "`not` stands in the way", literal.place, NEGATION_LAW)
            yield from _unbounded(literal.formula)


def _unbounded(formula: Formula) -> Iterator[Diagnostic]:
    match formula:
        case Unary(op, range, arg):
            if isinstance(range.hi, float):
                yield _endless(op.value, range, formula.place)
            yield from _unbounded(arg)
        case Binary(op, range, left, right):
            if isinstance(range.hi, float):
                yield _endless(op.value, range, formula.place)
            yield from _unbounded(left)
            yield from _unbounded(right)
        case Atom() | Top() | Bottom():
            return
        case _:
            assert_never(formula)


def _endless(word: str, range: Interval, place: Place | None) -> Diagnostic:
    help = "give it a range with an end"
    return Diagnostic("TL702", f"{word}{range.bracketed()} stands in the way: it has no end", place, _RANGE_LAW, help)


def _translated(rule: Rule) -> Iterator[TemporalRule]:
    heads = list(_heads(rule.head, 0))
    if not heads:
        return
    clock = _clock(rule)
    comparisons = [part for part in rule.body if isinstance(part, Comparison)]
    formulas = [part.formula for part in rule.body if isinstance(part, Literal)]
    for ways in product(*(_ways(formula, 0, rule) for formula in formulas)):
        atoms = dict.fromkeys(pair for way in ways for pair in way)
        body = tuple(TemporalLiteral(_timed(atom, clock, at)) for atom, at in atoms)
        for atom, at in heads:
            yield TemporalRule(_timed(atom, clock, at), (*body, *comparisons), rule.text, rule.place)


def _clock(rule: Rule) -> str:
    """A name for time that the rule does not use."""
    used = {term.name for atom in rule_atoms(rule) for term in atom.args if isinstance(term, Variable)}
    return next(name for name in _clock_names() if name not in used)


def _clock_names() -> Iterator[str]:
    yield "T"
    number = 1
    while True:
        yield f"T{number}"
        number += 1


def _timed(atom: Atom, clock: str, at: int) -> TemporalAtom:
    return TemporalAtom(atom.predicate, atom.args, TimeTerm(clock, at), atom.place)


def _heads(head: Formula, at: int) -> Iterator[tuple[Atom, int]]:
    match head:
        case Atom():
            yield head, at
        case Unary(op, range, arg):
            for distance in _points(range):
                yield from _heads(arg, at - distance if op in _PAST else at + distance)
        case Top() | Bottom() | Binary():
            return
        case _:
            assert_never(head)


def _ways(formula: Formula, at: int, rule: Rule) -> list[_Way]:
    """Every way to make a formula true at a distance from the rule's time."""
    match formula:
        case Atom():
            return [((formula, at),)]
        case Top():
            return [()]
        case Bottom():
            return []
        case Unary(op, range, arg):
            sign = -1 if op in _PAST else 1
            parts = [_ways(arg, at + sign * distance, rule) for distance in _points(range)]
            if op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS):
                return _few([way for part in parts for way in part], rule)
            return _all(parts, rule)
        case Binary(op, range, left, right):
            sign = -1 if op is BinaryOp.SINCE else 1
            found: list[_Way] = []
            for distance in _points(range):
                between = [_ways(left, at + sign * d, rule) for d in _open_range(distance)]
                found += _all([_ways(right, at + sign * distance, rule), *between], rule)
            return _few(found, rule)
        case _:
            assert_never(formula)


def _open_range(distance: int) -> Iterable[int]:
    """The points strictly between now and so far away."""
    return range(1, distance)


def _all(parts: list[list[_Way]], rule: Rule) -> list[_Way]:
    found: list[_Way] = [()]
    for part in parts:
        if len(found) * len(part) > MOST_SCHEMAS:
            raise _too_many(rule)
        found = list(dict.fromkeys(tuple(dict.fromkeys(a + b)) for a in found for b in part))
    return found


def _few(ways: list[_Way], rule: Rule) -> list[_Way]:
    if len(ways) > MOST_SCHEMAS:
        raise _too_many(rule)
    return ways


def _points(range_: Interval) -> range:
    """The whole numbers of a bounded range."""
    lo, hi = range_.lo, range_.hi
    assert isinstance(lo, Fraction | int)
    assert isinstance(hi, Fraction | int)
    first = ceil(lo) if range_.lo_closed else floor(lo) + 1
    last = floor(hi) if range_.hi_closed else ceil(hi) - 1
    return range(first, last + 1)


def _too_many(rule: Rule) -> TidelogError:
    return TidelogError(
        Diagnostic(
            "TL705",
            "this rule can be fulfilled in too many ways",
            rule.place,
            law=f"a query resolves to at most {MOST_SCHEMAS:,} sets of awaited facts",
            help="use shorter ranges",
        )
    )
