"""Temporal Datalog in the DatalogMTL core.

Times become relative to the head: an atom at T+j in the body of a rule whose head is at T+k comes under
`Diamondminus[k-j,k-j]` (`Diamondplus` where j > k). Rigid predicates hold at all times. What speaks of another time
than the head's, be it another variable or a number, is true or false once and for all: such a group of literals
becomes an auxiliary predicate that holds where the group does, and a second one that holds at all times if the first
holds at some time. Auxiliary predicates start with `$`, which no user can write; `$at(n)` holds exactly at time n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

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

#: A time variable, or a number of `$at`.
_Clock = str | int

_EVER = Interval(Fraction(0), INF, True, False)


def to_mtl(program: TemporalProgram) -> tuple[tuple[Rule, ...], tuple[Fact, ...]]:
    """The rules of the core and the facts, those of `$at` included."""
    translation = _Translation()
    for rule in program.rules:
        translation.add(rule)
    facts = [_fact(rule) for rule in program.facts]
    clocks = [Fact("$at", (Fraction(n),), Interval.point(Fraction(n))) for n in sorted(translation.numbers)]
    return tuple(translation.rules), tuple(facts + clocks)


def _fact(rule: TemporalRule) -> Fact:
    assert rule.head is not None
    values = tuple(term.value for term in rule.head.args if isinstance(term, Constant))
    time = rule.head.time
    return Fact(rule.head.predicate, values, Interval.point(Fraction(time.offset)) if time else Interval.always())


class _Translation:
    """The rules made so far, and the names and numbers that they use."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.numbers: set[int] = set()
        self._count = 0

    def add(self, rule: TemporalRule) -> None:
        """Append the core rules of one rule; its auxiliary rules come first and keep its text and place."""
        clock, offset = _anchor(rule)
        literals = [literal for literal in rule.body if isinstance(literal, TemporalLiteral)]
        body: list[BodyLiteral] = []
        if isinstance(clock, int):
            body.append(Literal(self._at(clock)))
        apart: dict[_Clock, list[TemporalLiteral]] = {}
        for literal in rule.body:
            if isinstance(literal, Comparison):
                body.append(literal)
            elif (own := _clock(literal.atom)) is None:
                body.append(Literal(_plain(literal.atom), literal.negated, literal.atom.place))
            elif isinstance(own, str) and own == clock:
                body.append(_relative(literal, offset))
            elif isinstance(own, int) and literal.negated:
                body.append(Literal(self._sometime(rule, own, [literal], denied=True), True, literal.atom.place))
            else:
                apart.setdefault(own, []).append(literal)
        for own, group in apart.items():
            guards = self._guards(rule, own, group, literals)
            body.append(Literal(self._sometime(rule, own, group, guards), False, group[0].atom.place))
        head: Formula = Bottom(rule.place) if rule.head is None else _plain(rule.head)
        self.rules.append(Rule(head, tuple(body), rule.text, rule.place))

    def _guards(
        self, rule: TemporalRule, own: _Clock, group: Sequence[TemporalLiteral], literals: Sequence[TemporalLiteral]
    ) -> list[Literal]:
        """Positive literals that bind what a negated literal of the group leaves open. They follow from the rest of the
        body, so adding them changes nothing but makes the group's rule safe."""
        bound = _variables(literal.atom for literal in group if not literal.negated)
        open_ = [v for v in _variables(literal.atom for literal in group) if v not in bound]
        others: dict[_Clock | None, list[TemporalLiteral]] = {}
        for literal in literals:
            if not literal.negated and (clock := _clock(literal.atom)) != own:
                others.setdefault(clock, []).append(literal)
        guards: list[Literal] = []
        for clock, part in others.items():
            if not any(v in _variables(literal.atom for literal in part) for v in open_):
                continue
            if clock is None:
                guards += [Literal(_plain(literal.atom), False, literal.atom.place) for literal in part]
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
        """An atom that holds at all times if the group holds at some time; `denied`: of a negated literal, the atom."""
        self._count += 1
        args = _shared(rule, group)
        here, ever = Atom(f"$g{self._count}", args, rule.place), Atom(f"$s{self._count}", args, rule.place)
        body: list[BodyLiteral] = list(guards)
        if isinstance(clock, int):
            body += [Literal(_plain(literal.atom), literal.negated and not denied) for literal in group]
            body.append(Literal(self._at(clock)))
        else:
            body += [_relative(literal, 0) for literal in group]
        self.rules.append(Rule(here, tuple(body), rule.text, rule.place))
        for op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS):
            self.rules.append(Rule(ever, (Literal(Unary(op, _EVER, here)),), rule.text, rule.place))
        return ever

    def _at(self, number: int) -> Atom:
        self.numbers.add(number)
        return Atom("$at", (Constant(Fraction(number)),))


def _anchor(rule: TemporalRule) -> tuple[_Clock | None, int]:
    """The time that a rule's head is at. A constraint has none of its own, and takes the first that its body offers."""
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


def _plain(atom: TemporalAtom) -> Atom:
    return Atom(atom.predicate, atom.args, atom.place)


def _relative(literal: TemporalLiteral, offset: int) -> Literal:
    """The literal as seen from `offset` on its own time variable."""
    atom = literal.atom
    assert atom.time is not None
    formula: Formula = _plain(atom)
    distance = Fraction(offset - atom.time.offset)
    if distance:
        op = UnaryOp.DIAMOND_MINUS if distance > 0 else UnaryOp.DIAMOND_PLUS
        formula = Unary(op, Interval.point(abs(distance)), formula, atom.place)
    return Literal(formula, literal.negated, atom.place)


def _variables(atoms: Iterable[TemporalAtom]) -> dict[Variable, None]:
    return dict.fromkeys(term for atom in atoms for term in atom.args if isinstance(term, Variable))


def _shared(rule: TemporalRule, group: Sequence[TemporalLiteral]) -> tuple[Term, ...]:
    """The variables of a group that the rest of the rule speaks of, too."""
    rest: set[Term] = set(rule.head.args) if rule.head else set()
    for literal in rule.body:
        if isinstance(literal, Comparison):
            rest |= {literal.left, literal.right}
        elif not any(literal is member for member in group):
            rest |= set(literal.atom.args)
    return tuple(variable for variable in _variables(literal.atom for literal in group) if variable in rest)
