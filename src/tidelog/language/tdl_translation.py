"""Translate temporal Datalog into the DatalogMTL core.

Times become relative to the head: an atom at T+j in the body of a rule whose head is at T+k comes under
`Diamondminus[k-j,k-j]` (`Diamondplus` where j > k). Rigid predicates hold at all times.

Literals at another time than the head's, be it another variable or a number, are true or false once and for all. Such a
group of literals becomes a hidden predicate `$g` that holds where the group does, and a second one, `$s`, that holds at
all times if the first holds at some time. The hidden predicate `$at(n)` holds exactly at time n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from tidelog.language.hidden_predicates import CLOCK, hidden_name
from tidelog.language.syntax import (
    Atom,
    BodyLiteral,
    Bottom,
    Comparison,
    Constant,
    Fact,
    Formula,
    Literal,
    Rule,
    TemporalAtom,
    TemporalLiteral,
    TemporalProgram,
    TemporalRule,
    Term,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.timeline.interval import INF, Interval

#: The time of an atom without its offset: a variable, or a number.
_Clock = str | int

_EVER = Interval(Fraction(0), INF, True, False)


def translate_to_mtl(program: TemporalProgram) -> tuple[tuple[Rule, ...], tuple[Fact, ...]]:
    """Translate a program; return the rules of the core, and the facts, including those of `$at`."""
    translation = _Translation()
    for rule in program.rules:
        translation.add(rule)
    facts = [_translate_fact(rule) for rule in program.facts]
    clocks = [Fact(CLOCK, (Fraction(n),), Interval.point(Fraction(n))) for n in sorted(translation.numbers)]
    return tuple(translation.rules), tuple(facts + clocks)


def _translate_fact(rule: TemporalRule) -> Fact:
    assert rule.head is not None
    values = tuple(term.value for term in rule.head.args if isinstance(term, Constant))
    time = rule.head.time
    return Fact(rule.head.predicate, values, Interval.point(Fraction(time.offset)) if time else Interval.always())


class _Translation:
    """The rules translated so far, and the numbers that they use as times."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.numbers: set[int] = set()
        self._count = 0

    def add(self, rule: TemporalRule) -> None:
        """Append the core rules of one rule; the rules of its hidden predicates come first, with its text and place."""
        clock, offset = _find_anchor(rule)
        literals = [literal for literal in rule.body if isinstance(literal, TemporalLiteral)]
        body: list[BodyLiteral] = []
        if isinstance(clock, int):
            body.append(Literal(self._clock_atom(clock)))
        apart: dict[_Clock, list[TemporalLiteral]] = {}
        for literal in rule.body:
            if isinstance(literal, Comparison):
                body.append(literal)
            elif (own := _clock(literal.atom)) is None:
                body.append(Literal(_without_time(literal.atom), literal.negated, literal.atom.place))
            elif isinstance(own, str) and own == clock:
                body.append(_shift_literal(literal, offset))
            elif isinstance(own, int) and literal.negated:
                body.append(Literal(self._sometime(rule, own, [literal], denied=True), True, literal.atom.place))
            else:
                apart.setdefault(own, []).append(literal)
        for own, group in apart.items():
            guards = self._guards(rule, own, group, literals)
            body.append(Literal(self._sometime(rule, own, group, guards), False, group[0].atom.place))
        head: Formula = Bottom(rule.place) if rule.head is None else _without_time(rule.head)
        self.rules.append(Rule(head, tuple(body), rule.text, rule.place))

    def _guards(
        self, rule: TemporalRule, own: _Clock, group: Sequence[TemporalLiteral], literals: Sequence[TemporalLiteral]
    ) -> list[Literal]:
        """Return positive literals that bind the variables that negated literals of the group leave unbound.

        They follow from the rest of the body, so adding them to the group's rule only makes it safe.
        """
        bound = _variables(literal.atom for literal in group if not literal.negated)
        unbound = [v for v in _variables(literal.atom for literal in group) if v not in bound]
        others: dict[_Clock | None, list[TemporalLiteral]] = {}
        for literal in literals:
            if not literal.negated and (clock := _clock(literal.atom)) != own:
                others.setdefault(clock, []).append(literal)
        guards: list[Literal] = []
        for clock, part in others.items():
            if not any(v in _variables(literal.atom for literal in part) for v in unbound):
                continue
            if clock is None:
                guards += [Literal(_without_time(literal.atom), False, literal.atom.place) for literal in part]
            else:
                guards.append(Literal(self._sometime(rule, clock, part), False, part[0].atom.place))
        return guards

    def _sometime(
        self,
        rule: TemporalRule,
        clock: _Clock | None,
        group: Sequence[TemporalLiteral],
        guards: Sequence[Literal] = (),
        denied: bool = False,
    ) -> Atom:
        """Add the rules of an atom that holds at all times if the group holds at some time, and return the atom.

        With `denied`, the group is a negated literal whose atom is meant.
        """
        self._count += 1
        args = _shared_variables(rule, group)
        here, ever = (Atom(hidden_name(f"{kind}{self._count}"), args, rule.place) for kind in "gs")
        body: list[BodyLiteral] = list(guards)
        if isinstance(clock, int):
            body += [Literal(_without_time(literal.atom), literal.negated and not denied) for literal in group]
            body.append(Literal(self._clock_atom(clock)))
        else:
            body += [_shift_literal(literal, 0) for literal in group]
        self.rules.append(Rule(here, tuple(body), rule.text, rule.place))
        for op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS):
            self.rules.append(Rule(ever, (Literal(Unary(op, _EVER, here)),), rule.text, rule.place))
        return ever

    def _clock_atom(self, number: int) -> Atom:
        self.numbers.add(number)
        return Atom(CLOCK, (Constant(Fraction(number)),))


def _find_anchor(rule: TemporalRule) -> tuple[_Clock | None, int]:
    """Return the time of a rule's head and its offset. A constraint takes the first time variable of its body."""
    if rule.head is not None:
        time = rule.head.time
        return (None, 0) if time is None else (_clock(rule.head), time.offset)
    for literal in rule.body:
        if isinstance(literal, TemporalLiteral) and not literal.negated:
            time = literal.atom.time
            if time and time.variable:
                return time.variable, 0
    return None, 0


def _clock(atom: TemporalAtom) -> _Clock | None:
    if atom.time is None:
        return None
    return atom.time.offset if atom.time.variable is None else atom.time.variable


def _without_time(atom: TemporalAtom) -> Atom:
    return Atom(atom.predicate, atom.args, atom.place)


def _shift_literal(literal: TemporalLiteral, offset: int) -> Literal:
    """Return the literal relative to the time `offset` of its own time variable."""
    atom = literal.atom
    assert atom.time is not None
    formula: Formula = _without_time(atom)
    distance = Fraction(offset - atom.time.offset)
    if distance:
        op = UnaryOp.DIAMOND_MINUS if distance > 0 else UnaryOp.DIAMOND_PLUS
        formula = Unary(op, Interval.point(abs(distance)), formula, atom.place)
    return Literal(formula, literal.negated, atom.place)


def _variables(atoms: Iterable[TemporalAtom]) -> dict[Variable, None]:
    return dict.fromkeys(term for atom in atoms for term in atom.args if isinstance(term, Variable))


def _shared_variables(rule: TemporalRule, group: Sequence[TemporalLiteral]) -> tuple[Term, ...]:
    """Return the variables that a group shares with the rest of the rule."""
    rest: set[Term] = set(rule.head.args) if rule.head else set()
    for literal in rule.body:
        if isinstance(literal, Comparison):
            rest |= {literal.left, literal.right}
        elif not any(literal is member for member in group):
            rest |= set(literal.atom.args)
    return tuple(variable for variable in _variables(literal.atom for literal in group) if variable in rest)
