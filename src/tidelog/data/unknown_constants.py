"""Find constants of rules that no fact has: variables that were written in lower case, and misspelt values.

Facts may come in parts, as those of a stream do: `UnknownConstants.note` looks at one part, `find` at what is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, Place
from tidelog.language.bindings import rule_aggregates
from tidelog.language.fact_text import format_value
from tidelog.language.program import Program
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Atom, Comparison, Constant, Rule, Variable
from tidelog.language.validation import body_atoms, formula_atoms, locate, rule_atoms
from tidelog.language.wording import suggest

#: How many different values of an argument are looked at, and in how many rows of each part of the data.
_MAX_VALUES, _MAX_ROWS = 1000, 1000
#: How similar a constant and a value of the data are if they were meant to be the same.
_SIMILAR = 0.85
_NAME = re.compile("[a-z][A-Za-z0-9_]*")
_SPELLING = "constants are equal only if they are spelt alike; capitals and spaces count"
#: A predicate and the number of one of its arguments, from 0.
_Position = tuple[str, int]


@dataclass(frozen=True)
class _Suspect:
    """A constant of a rule that should be in the data: where it stands, and the arguments that it is compared with.

    With `variable`, it may be a variable in lower case. `certain` constants are reported even if no value is like them.
    """

    value: str
    place: Place | None
    positions: tuple[_Position, ...] = ()
    variable: bool = False
    certain: bool = True


class UnknownConstants:
    """The constants of rules that no fact has had so far.

    >>> program = Program.parse("Up(x) :- Beat(x). Bad(X) :- State(X, S), S = fault. Off(X) :- State(X, stoped).")
    >>> unknown = UnknownConstants(program, program.rules)
    >>> unknown.note(Dataset.parse("Beat(n1)@3\\nState(n1,faulty)@4\\nState(n1,stopped)@5"))
    >>> for found in unknown.find():
    ...     print(found.message, "|", found.help)
    x is a constant, and occurs in no fact | write X if a variable is meant; otherwise correct the constant
    fault is a constant, and occurs in no fact | did you mean faulty?
    stoped is a constant, and occurs in no fact | did you mean stopped?
    """

    def __init__(self, program: Program, rules: Iterable[Rule]) -> None:
        rules = list(rules)
        derived = {head.predicate for rule in program.rules if (head := head_atom(rule))}
        known = {value for fact in program.facts for value in fact.args}
        suspects: dict[str, _Suspect] = {}
        for rule in rules:
            known |= _find_introduced(rule, program.calendars)
            given = [atom for atom, _ in body_atoms(rule.body) if atom.predicate not in derived | {*program.calendars}]
            for suspect in (*_find_shared(rule), *_find_equated(rule, given), *_find_arguments(given)):
                suspects.setdefault(suspect.value, suspect)
        self._suspects = {value: suspect for value, suspect in suspects.items() if value not in known}
        #: The values of the arguments that suspects are compared with.
        self._values: dict[_Position, set[str]] = {}

    def note(self, data: Dataset) -> None:
        """Look at some facts: constants that they have are no longer suspect."""
        if not self._suspects:
            return
        present = [value for value in self._suspects if value in data.symbols]
        for value in present:
            del self._suspects[value]
        wanted = {position for suspect in self._suspects.values() for position in suspect.positions}
        for (predicate, arity), relation in data.relations.items():
            for place in range(arity):
                if (predicate, place) in wanted:
                    values = self._values.setdefault((predicate, place), set())
                    ids = np.unique(relation.args[place][:_MAX_ROWS]) if len(values) < _MAX_VALUES else ()
                    values |= {text for id in ids if isinstance(text := data.symbols.value(int(id)), str)}

    def find(self) -> Iterator[Diagnostic]:
        """Yield a warning for each constant that no fact has had."""
        for value, suspect in self._suspects.items():
            values = {value for position in suspect.positions for value in self._values.get(position, ())}
            meant = _find_similar(value, values)
            law = None if suspect.variable else _SPELLING
            if suspect.variable:
                help = f"write {value[0].upper()}{value[1:]} if a variable is meant; otherwise correct the constant"
            elif meant:
                help = f"did you mean {format_value(meant)}?"
            elif suspect.certain and values:
                help = "correct the constant, or the data"
            else:
                continue
            message = f"{format_value(value)} is a constant, and occurs in no fact"
            yield Diagnostic("TL125", message, locate(suspect.place, value), law, help, severity="warning")


def _find_similar(value: str, values: Iterable[str]) -> str | None:
    """Find a value that the constant was probably meant to be; names with other digits are names of other things."""
    digits = re.findall("[0-9]+", value)
    return suggest(value, [other for other in values if re.findall("[0-9]+", other) == digits], _SIMILAR)


def _find_introduced(rule: Rule, calendars: Iterable[str]) -> set[str]:
    """Find the names that a rule introduces, because they are in its head alone; and those that calendars know."""
    counts = Counter(name for atom in rule_atoms(rule) for name in _list_names(atom))
    introduced = {name for atom in formula_atoms(rule.head) for name in _list_names(atom) if counts[name] == 1}
    known = {name for atom in rule_atoms(rule) if atom.predicate in set(calendars) for name in _list_names(atom)}
    bound = {term for atom, _ in body_atoms(rule.body) for term in atom.args if isinstance(term, Variable)}
    assigned = {value for variable, value, _ in _list_equations(rule) if variable not in bound}
    return introduced | known | assigned


def _find_shared(rule: Rule) -> Iterator[_Suspect]:
    """Yield the names that several atoms of a rule share, as if they were variables."""
    named = [(atom, name) for atom in rule_atoms(rule) for name in _list_names(atom)]
    counts = Counter(name for _, name in named)
    yield from (_Suspect(name, atom.place, variable=True) for atom, name in named if counts[name] > 1)


def _find_equated(rule: Rule, given: list[Atom]) -> Iterator[_Suspect]:
    """Yield the constants of equations such as `T = turbine1`, where T is an argument of facts."""
    for variable, value, place in _list_equations(rule):
        positions = [(atom.predicate, i) for atom in given for i, term in enumerate(atom.args) if term == variable]
        if positions:
            yield _Suspect(value, place, tuple(positions))


def _find_arguments(given: list[Atom]) -> Iterator[_Suspect]:
    """Yield the constants that are arguments of facts; misspelt ones are reported, since a value may be rare."""
    for atom in given:
        for i, term in enumerate(atom.args):
            if isinstance(term, Constant) and isinstance(term.value, str):
                yield _Suspect(term.value, atom.place, ((atom.predicate, i),), certain=False)


def _list_equations(rule: Rule) -> Iterator[tuple[Variable, str, Place | None]]:
    """Yield the equations of a rule between a variable and a text."""
    for body in (rule.body, *(aggregate.body for aggregate in rule_aggregates(rule))):
        for literal in body:
            if isinstance(literal, Comparison) and literal.op == "=":
                for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if isinstance(one, Variable) and isinstance(other, Constant) and isinstance(other.value, str):
                        yield one, other.value, literal.place


def _list_names(atom: Atom) -> set[str]:
    """List the constants of an atom that could be the name of a variable but for their first letter."""
    values = (term.value for term in atom.args if isinstance(term, Constant))
    return {value for value in values if isinstance(value, str) and _NAME.fullmatch(value)}
