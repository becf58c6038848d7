"""Find what is allowed in rules and data but probably a mistake: variables that occur once, patterns that lose a
backslash, predicates without facts, facts that no rule reads.

A warning is a `Diagnostic` whose severity is `warning`. `make_strict` turns warnings into an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import assert_never

from tidelog.analysis.predicate_graph import body_atoms, find_needed_rules
from tidelog.errors import Diagnostic, Place, TidelogError
from tidelog.language.aggregate_checks import body_aggregates
from tidelog.language.bindings import expression_variables, literal_variables, outer_variables
from tidelog.language.expression_tokens import FUNCTIONS, TEXT_TESTS
from tidelog.language.fact_text import unquote
from tidelog.language.hidden_predicates import is_internal
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    BodyLiteral,
    Comparison,
    Condition,
    Formula,
    Group,
    Literal,
    Rule,
    TemporalAtom,
    TemporalRule,
    Term,
    Variable,
)
from tidelog.language.validation import formula_atoms, locate, rule_atoms
from tidelog.language.wording import suggest

#: How similar the names of a predicate without facts and of unread facts are if they were meant to be the same.
_SIMILAR = 0.6
#: The characters that a backslash inside quotes is written before; before any other it is lost.
_ESCAPED = 'nrt"\\'
#: Where a variable occurs: its name, and the place of the atom or comparison.
_Occurrence = tuple[str, Place | None]


def make_strict(warnings: Iterable[Diagnostic]) -> None:
    """Raise a TidelogError with the warnings as errors, if there are any."""
    errors = [replace(warning, severity="error") for warning in warnings]
    if errors:
        raise TidelogError(errors)


def find_program_warnings(program: Program) -> tuple[Diagnostic, ...]:
    """Find the warnings that need no data: variables that occur once in their rule, patterns that lose a backslash.

    >>> [found.message for found in find_program_warnings(Program.parse("A(X) :- Paid(X, Card)."))]
    ['the variable Card occurs only once in its rule']
    """
    if program.temporal is not None:
        occurrences = [list(_occurrences_in_temporal_rule(rule)) for rule in program.temporal.rules]
    else:
        occurrences = [_occurrences_in_rule(rule) for rule in program.written_rules]
    single = (_warn_of_single_variable(name, place) for scope in occurrences for name, place in _find_single(scope))
    patterns = dict.fromkeys(place for rule in program.rules for place in _find_patterns(rule.body))
    return (*single, *(found for place in patterns for found in _warn_of_lost_backslash(place)))


def find_data_warnings(
    program: Program, data: Collection[str], queries: Iterable[str] | None = None, complete: bool = True
) -> tuple[Diagnostic, ...]:
    """Find predicates that rules read and that have neither rules nor facts, and facts that no rule reads.

    `data` holds the predicates of the facts. With queries, only the rules that they need count as readers of predicates
    without facts. While more facts may follow (`complete` is false), only facts that no rule reads are found.

    >>> for found in find_data_warnings(Program.parse("Done(X) :- Payed(X)."), {"Paid"}):
    ...     print(found.message)
    Payed has neither rules nor facts, and no rule reads the facts of Paid
    """
    derived = {head.predicate for rule in program.rules if (head := head_atom(rule))}
    given = {*data, *(fact.predicate for fact in program.facts), *program.calendars}
    asked = None if queries is None else set(queries)
    rules = select_rules(program.rules, asked)
    read = {atom.predicate for rule in program.rules for atom in rule_atoms(rule)} | (asked or set())
    unread = {name for name in data if name not in read and not is_internal(name)}
    warnings: list[Diagnostic] = []
    if complete:
        warnings += _warn_of_missing_facts(rules, derived, given, unread)
        empty = sorted((asked or set()) - derived - given)
        warnings += (_warn_of_empty_query(name, derived | given) for name in empty if name in program.predicates)
    return (*warnings, *(_warn_of_unread_facts(name, read - {name}) for name in sorted(unread)))


def find_negated_predicates(program: Program) -> set[str]:
    """Find the predicates that rules read only under negation.

    >>> find_negated_predicates(Program.parse("Hot(X) :- High(X), not Off(X)."))
    {'Off'}
    """
    atoms = [found for rule in program.rules for found in body_atoms(rule)]
    return {atom.predicate for atom, _ in atoms} - {atom.predicate for atom, negated in atoms if not negated}


def select_rules(rules: Sequence[Rule], queries: Collection[str] | None) -> list[Rule]:
    """Return the rules that some queries need; all of them without queries."""
    return list(rules) if queries is None else [rules[i] for i in find_needed_rules(rules, queries)]


def _warn_of_missing_facts(
    rules: Iterable[Rule], derived: set[str], given: set[str], unread: set[str]
) -> Iterator[Diagnostic]:
    """Yield a warning for each predicate without rules and facts; remove those that it suggests from `unread`."""
    reported: set[str] = set()
    for rule in rules:
        denied = {
            atom.predicate
            for literal in rule.body
            if isinstance(literal, Literal) and literal.negated
            for atom in formula_atoms(literal.formula)
        }
        for atom, _ in body_atoms(rule):
            name = atom.predicate
            if name in derived | given | reported or is_internal(name):
                continue
            reported.add(name)
            place = replace(atom.place, length=len(name)) if atom.place else rule.place
            if meant := suggest(name, unread, _SIMILAR):
                unread.discard(meant)
                message = f"{name} has neither rules nor facts, and no rule reads the facts of {meant}"
                help = f"did you mean {meant}? Use one name in rules and data"
            else:
                message = f"{name} has neither rules nor facts" + (
                    ", so that its negation always holds" * (name in denied)
                )
                help = _help_with_missing(atom, rule, derived | given)
            yield Diagnostic("TL112", message, place, help=help, severity="warning")


def _help_with_missing(atom: Atom, rule: Rule, known: Collection[str]) -> str:
    """Say what was probably meant by an atom without rules and facts."""
    name, place = atom.predicate, atom.place
    behind = place.text[place.column - 1 + len(name) :].lstrip() if place else ""
    if behind.startswith("%") and name in {variable.name for variable in outer_variables(rule)}:
        return f"`%` begins a comment; for the remainder of a division write {name} mod 2"
    if meant := suggest(name, [*known, *TEXT_TESTS] if len(atom.args) == 2 else known):
        return f"did you mean {meant}?"
    if name in FUNCTIONS:
        return f"{name} is a function, so it stands in comparisons: V = {name}({', '.join('XY'[: FUNCTIONS[name]])})"
    return f"add facts of {name}, or correct the name"


def _warn_of_empty_query(name: str, known: Collection[str]) -> Diagnostic:
    meant = suggest(name, [other for other in known if not is_internal(other)])
    help = f"did you mean {meant}?" if meant else f"add facts of {name}, or correct the name"
    message = f"the query {name} has neither rules nor facts, so that it has no answers"
    return Diagnostic("TL112", message, help=help, severity="warning")


def _warn_of_unread_facts(name: str, read: Collection[str]) -> Diagnostic:
    meant = suggest(name, [other for other in read if not is_internal(other)])
    help = f"rules read {meant}; use one name in rules and data" if meant else None
    return Diagnostic("TL113", f"no rule reads the facts of {name}", help=help, severity="warning")


def _find_single(occurrences: Sequence[_Occurrence]) -> Iterator[_Occurrence]:
    counts = Counter(name for name, _ in occurrences)
    return ((name, place) for name, place in occurrences if counts[name] == 1 and not name.startswith("_"))


def _warn_of_single_variable(name: str, place: Place | None) -> Diagnostic:
    message = f"the variable {name} occurs only once in its rule"
    constant = name[0].lower() + name[1:]
    help = f"write _{name} or _ if any value will do, and {constant} if a constant is meant"
    return Diagnostic("TL111", message, locate(place, name), help=help, severity="warning")


def _find_patterns(body: Iterable[BodyLiteral]) -> Iterator[Place]:
    """Yield the places of conditions with a pattern, also inside braces."""
    for literal in body:
        if isinstance(literal, Condition) and literal.op.endswith("matches") and literal.place is not None:
            yield literal.place
    for aggregate in body_aggregates(body):
        yield from _find_patterns(aggregate.body)


def _warn_of_lost_backslash(place: Place) -> Iterator[Diagnostic]:
    r"""Yield a warning for the first backslash that stands for nothing in a pattern: `"\d"` is the text `d`."""
    start = place.column - 1
    for quoted in re.finditer(r'"(?:\\.|[^"\\])*"', place.text[start : start + place.length]):
        lost = [found for found in re.finditer(r"\\(.)", quoted[0]) if found[1] not in _ESCAPED]
        if lost:
            message = f"the pattern loses its backslash before {lost[0][1]}: it is {unquote(quoted[0])}"
            written = re.sub(r"\\(.)", lambda found: "\\" * (found[1] not in _ESCAPED) + found[0], quoted[0])
            where = replace(place, column=start + quoted.start() + lost[0].start() + 1, length=2)
            yield Diagnostic("TL126", message, where, help=f"write {written}", severity="warning")


def _occurrences_in_rule(rule: Rule) -> list[_Occurrence]:
    """List the occurrences of the rule's variables, without the local variables of braces.

    A local variable that occurs once is no mistake: it tells rows apart.
    """
    occurrences = list(_occurrences_in_formula(rule.head))
    occurrences += _occurrences_in_body(rule.body)
    outer = {name for name, _ in occurrences}
    for aggregate in _written_aggregates(rule.body):
        values = (v for value in aggregate.values for v in expression_variables(value))
        inside = [*_occurrences_in_terms(values, aggregate.place), *_occurrences_in_body(aggregate.body)]
        occurrences += [found for found in inside if found[0] in outer]
    return occurrences


def _written_aggregates(body: Iterable[BodyLiteral]) -> Iterator[Aggregate]:
    """Yield the aggregates of a body as written, also those inside groups."""
    for literal in body:
        if isinstance(literal, Literal):
            groups = (atom for atom in formula_atoms(literal.formula) if isinstance(atom, Group))
            yield from chain.from_iterable(_written_aggregates(group.literals) for group in groups)
    yield from body_aggregates(body)


def _occurrences_in_body(body: Iterable[BodyLiteral]) -> Iterator[_Occurrence]:
    """Yield the occurrences of variables in a body, without those inside braces."""
    for literal in body:
        match literal:
            case Literal(formula):
                yield from _occurrences_in_formula(formula)
            case Comparison() | Condition():
                yield from _occurrences_in_terms(literal_variables(literal, braces=False), literal.place)
            case _:
                assert_never(literal)


def _occurrences_in_formula(formula: Formula) -> Iterator[_Occurrence]:
    for atom in formula_atoms(formula):
        if isinstance(atom, Group):
            yield from _occurrences_in_body(atom.literals)
        else:
            yield from _occurrences_in_terms(atom.args, atom.place)


def _occurrences_in_temporal_rule(rule: TemporalRule) -> Iterator[_Occurrence]:
    if rule.head:
        yield from _occurrences_in_temporal_atom(rule.head)
    for literal in rule.body:
        if isinstance(literal, Comparison):
            yield from _occurrences_in_terms((literal.left, literal.right), literal.place)
        else:
            yield from _occurrences_in_temporal_atom(literal.atom)


def _occurrences_in_temporal_atom(atom: TemporalAtom) -> Iterator[_Occurrence]:
    yield from _occurrences_in_terms(atom.args, atom.place)
    if atom.time and atom.time.variable:
        yield atom.time.variable, atom.place


def _occurrences_in_terms(terms: Iterable[Term], place: Place | None) -> Iterator[_Occurrence]:
    return ((term.name, place) for term in terms if isinstance(term, Variable) and not term.anonymous)
