"""Translate groups, alternatives and several heads into rules without them, with hidden predicates where needed.

A rule whose body holds in several ways becomes a rule for each: `P :- A, (B or C)` is `P :- A, B` and `P :- A, C`. So
does a disjunction under a diamond or as the right operand of Since and Until, since "at some time" and "for some value"
can be exchanged with `or`. Everywhere else a group gets a predicate of its own, `$group(X, Y) :- A(X, Y), B(Y)`. Its
arguments are all of the group's variables, because a variable under an operator is bound outside of it. Only under
diamonds, which look for some time and some value, may a variable stay inside that occurs nowhere else.

Each rule that comes out has the text and the place of the rule as written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, product
from math import prod

from tidelog.errors import Diagnostic, Place
from tidelog.language.aggregate_checks import body_aggregates, map_aggregates
from tidelog.language.bindings import atom_variables, expression_variables, literal_variables
from tidelog.language.comparisons import opposite
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.left_operands import bind_left_operands
from tidelog.language.syntax import (
    Aggregate,
    Atom,
    Binary,
    BinaryOp,
    BodyLiteral,
    Comparison,
    Condition,
    Formula,
    Group,
    Literal,
    Rule,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.language.validation import formula_atoms
from tidelog.timeline.interval import INF, Interval

#: The largest number of rules that the alternatives of one rule may become.
MOST_ALTERNATIVES = 64

_DIAMONDS = (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS)
#: The operators that a negation turns into each other as it moves across them.
_DUAL = {
    UnaryOp.DIAMOND_MINUS: UnaryOp.BOX_MINUS,
    UnaryOp.BOX_MINUS: UnaryOp.DIAMOND_MINUS,
    UnaryOp.DIAMOND_PLUS: UnaryOp.BOX_PLUS,
    UnaryOp.BOX_PLUS: UnaryOp.DIAMOND_PLUS,
}
#: A conjunction of literals without groups.
_Body = tuple[BodyLiteral, ...]


@dataclass(frozen=True)
class ExpandedRule:
    """The rules that a rule as written stands for; `chosen` says whether they are alternatives of each other."""

    rules: tuple[Rule, ...]
    chosen: bool = False
    problems: tuple[Diagnostic, ...] = ()


def expand_groups(rules: Iterable[Rule]) -> list[ExpandedRule]:
    """Return what each rule stands for; a rule without groups stands for itself."""
    return [
        _expand(number, rule) if _has_groups(rule) else ExpandedRule((bind_left_operands(rule),))
        for number, rule in enumerate(rules)
    ]


def collect_groups(rules: Iterable[Rule]) -> dict[str, Group]:
    """Return the groups in bodies that have a predicate of their own, by predicate."""
    atoms = (atom for rule in rules for atom in _written_atoms(rule.body))
    return {atom.predicate: atom for atom in atoms if isinstance(atom, Group)}


def _has_groups(rule: Rule) -> bool:
    return any(isinstance(atom, Group) for atom in chain(formula_atoms(rule.head), _written_atoms(rule.body)))


def _written_atoms(body: Iterable[BodyLiteral]) -> Iterator[Atom]:
    for literal in body:
        if isinstance(literal, Literal):
            yield from formula_atoms(literal.formula)
        elif isinstance(literal, Condition):
            for aggregate in body_aggregates([literal]):
                yield from _written_atoms(aggregate.body)


def _expand(number: int, rule: Rule) -> ExpandedRule:
    work = _Expansion(number, rule)
    try:
        heads = list(_split_head(rule.head))
        bodies = work.alternatives(rule.body)
    except _Refusal as refusal:
        return ExpandedRule((), problems=(refusal.diagnostic,))
    found = [replace(rule, head=head, body=_for_head(head, body)) for head in heads for body in bodies]
    return ExpandedRule(tuple(map(bind_left_operands, (*found, *work.rules))), len(bodies) > 1)


class _Refusal(Exception):
    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


def _split_head(head: Formula) -> Iterator[Formula]:
    """Yield the heads that a head stands for: boxes over several heads are boxes over each of them."""
    match head:
        case Group(literals=literals):
            for literal in literals:
                if head.alternatives or not isinstance(literal, Literal) or literal.negated:
                    raise _Refusal(_explain_head(head))
                yield from _split_head(literal.formula)
        case Unary(arg=arg):
            yield from (replace(head, arg=inner) for inner in _split_head(arg))
        case _:
            yield head


def _explain_head(head: Group) -> Diagnostic:
    if head.alternatives:
        help = "for a choice write A(X) :- C(X), not B(X).  B(X) :- C(X), not A(X). and ask `tidelog stable`"
        return Diagnostic("TL122", "`or` in a head", head.place, help=help)
    return Diagnostic("TL122", "a condition in a head", head.place, help="conditions stand in bodies, after `:-`")


def _for_head(head: Formula, body: _Body) -> _Body:
    """Leave out what computes arguments of other heads."""
    used = {term for atom in formula_atoms(head) for term in atom.args}
    return tuple(
        literal for literal in body if not isinstance(literal, Condition) or not literal.in_head or literal.left in used
    )


class _Expansion:
    """The expansion of one rule; `rules` are those of its hidden predicates."""

    def __init__(self, number: int, rule: Rule) -> None:
        self.number, self.rule = number, rule
        self.rules: list[Rule] = []
        self.names = 0
        #: The variables outside all braces; all others are local to the braces in which they occur.
        self.outer = frozenset(chain(_formula_uses(rule.head), _body_uses(rule.body)))
        #: How often each variable occurs in the rule, also inside braces if it is one of these.
        self.uses = Counter(chain(_formula_uses(rule.head), _body_uses(rule.body, self.outer)))

    def alternatives(self, body: Sequence[BodyLiteral], keep: bool = False) -> list[_Body]:
        """Return the ways in which a body can hold, each as literals without groups."""
        return self._combine([self._literal_ways(literal, keep) for literal in body])

    def _combine(self, ways: Sequence[list[_Body]]) -> list[_Body]:
        if prod(map(len, ways)) > MOST_ALTERNATIVES:
            message = f"the alternatives of this rule can be combined in {prod(map(len, ways))} ways"
            raise _Refusal(Diagnostic("TL123", message, self.rule.place))
        return [tuple(chain.from_iterable(way)) for way in product(*ways)]

    def _literal_ways(self, literal: BodyLiteral, keep: bool) -> list[_Body]:
        if isinstance(literal, Condition):
            return [(self._expand_braces(literal),)]
        if not isinstance(literal, Literal):
            return [(literal,)]
        if not literal.negated:
            return self._formula_ways(literal.formula, keep)
        # None of the ways holds. All variables of a negated literal are bound outside of it.
        ways = self._formula_ways(literal.formula, True)
        return [tuple(self._deny(way, literal.place) for way in ways)]

    def _deny(self, way: _Body, place: Place | None) -> BodyLiteral:
        """Return the literal that holds where a conjunction does not."""
        if len(way) == 1 and isinstance(way[0], Comparison | Condition):
            return replace(way[0], op=opposite(way[0].op))
        return Literal(self._as_formula(way, True), True, place)

    def _formula_ways(self, formula: Formula, keep: bool) -> list[_Body]:
        """Return the ways in which a formula can hold; with `keep`, all of its variables are bound outside of it."""
        match formula:
            case Group(literals=literals, alternatives=True):
                return [way for literal in literals for way in self._literal_ways(literal, keep)]
            case Group(literals=literals):
                return self.alternatives(literals, keep)
            case Unary(op, arg=arg) if op in _DIAMONDS:
                return [self._sometime(formula, way, keep) for way in self._formula_ways(arg, keep)]
            case Unary(arg=Group(literals=literals, alternatives=False)) if all(map(_is_formula, literals)):
                # A box over a conjunction is a box over each of its literals, and "always not" is "not sometime".
                boxes = [replace(one, formula=_under(formula, one)) for one in map(_literal, literals)]
                return self.alternatives(boxes, keep)
            case Unary(arg=arg):
                return [_single(replace(formula, arg=self._lasting(arg)))]
            case Binary(left=left, right=right):
                later = [self._as_formula(way, keep) for way in self._formula_ways(right, keep)]
                return [
                    _single(replace(formula, left=self._lasting(left, _binder(formula, right)), right=right))
                    for right in later
                ]
            case _:
                return [_single(formula)]

    def _sometime(self, diamond: Unary, way: _Body, keep: bool) -> _Body:
        """Return a diamond over one way in which its operand can hold."""
        if len(way) == 1 and isinstance(way[0], Literal) and way[0].negated:
            return (replace(way[0], formula=_under(diamond, way[0])),)
        return _single(replace(diamond, arg=self._as_formula(way, keep)))

    def _as_formula(self, way: _Body, keep: bool) -> Formula:
        """Return a conjunction as a formula; unless `keep`, variables that occur nowhere else stay inside."""
        if len(way) == 1 and _is_positive(way[0]):
            return _literal(way[0]).formula
        inside = Counter(_body_uses(way, self.outer))
        variables = tuple(v for v in inside if keep or inside[v] < self.uses[v])
        return self._hide(Group("", variables, way[0].place, way), [way])

    def _lasting(self, formula: Formula, binder: Literal | None = None) -> Formula:
        """Return a formula that must hold at several times, with the same values at all of them.

        At each of these times the binder holds, so it may bind variables that occur in negated literals only.
        """
        ways = self._formula_ways(formula, True)
        if not isinstance(formula, Group):
            if len(ways) == 1 and len(ways[0]) == 1 and _is_positive(ways[0][0]):
                return _literal(ways[0][0]).formula
            variables = tuple(dict.fromkeys(_formula_uses(formula, self.outer)))
            formula = Group("", variables, formula.place, _single(formula))
        if binder is not None:
            ways = [way if self._binds_all(way) else (*way, binder) for way in ways]
        return self._hide(formula, ways)

    def _hide(self, group: Group, ways: Sequence[_Body]) -> Group:
        """Give a group a predicate of its own, with a rule for each way in which it can hold."""
        self.names += 1
        name = hidden_name(f"group{self.number}.{self.names}")
        inside = set(_body_uses(group.literals, self.outer))
        head = Atom(name, tuple(term for term in group.args if term in inside), group.place)
        self.rules += [replace(self.rule, head=head, body=way) for way in ways]
        return replace(group, predicate=name, args=head.args)

    def _binds_all(self, way: _Body) -> bool:
        return set(_body_uses(way, self.outer)) <= atom_variables(way).keys()

    def _expand_braces(self, condition: Condition) -> Condition:
        def expand(aggregate: Aggregate) -> Aggregate:
            ways = [self._literal_ways(literal, True) for literal in aggregate.body]
            combined = self._combine(ways)
            if len(combined) == 1:
                return replace(aggregate, body=combined[0])
            # What only tests may read variables that are bound outside the braces, so it stays outside the group.
            tests = [len(way) == 1 and not any(map(_is_positive, way[0])) for way in ways]
            body = tuple(literal for literal, test in zip(aggregate.body, tests, strict=True) if not test)
            # A row is a binding of all variables, so each alternative binds all of them.
            variables = tuple(dict.fromkeys(v for literal in body for v in literal_variables(literal)))
            first = body[0]
            group = Group("", variables, aggregate.place, body)
            if len(body) == 1 and isinstance(first, Literal) and isinstance(first.formula, Group):
                group = first.formula
            grouped = self._combine([way for way, test in zip(ways, tests, strict=True) if not test])
            beside = chain.from_iterable(way[0] for way, test in zip(ways, tests, strict=True) if test)
            return replace(aggregate, body=(*_single(self._hide(group, grouped)), *beside))

        left, right = map_aggregates(condition.left, expand), map_aggregates(condition.right, expand)
        return replace(condition, left=left, right=right)


def _single(formula: Formula) -> _Body:
    return (Literal(formula, False, formula.place),)


def _is_formula(literal: BodyLiteral) -> bool:
    return isinstance(literal, Literal)


def _is_positive(literal: BodyLiteral) -> bool:
    return isinstance(literal, Literal) and not literal.negated


def _literal(literal: BodyLiteral) -> Literal:
    assert isinstance(literal, Literal)
    return literal


def _under(operator: Unary, literal: Literal) -> Unary:
    """Return a formula under an operator; of a negated literal, under the operator that its negation moves across."""
    return replace(operator, op=_DUAL[operator.op] if literal.negated else operator.op, arg=literal.formula)


def _binder(formula: Binary, right: Formula) -> Literal:
    """Return a literal that holds wherever the left operand of a Since or Until has to."""
    op = UnaryOp.DIAMOND_MINUS if formula.op is BinaryOp.SINCE else UnaryOp.DIAMOND_PLUS
    far = Interval(Fraction(0), formula.range.hi, True, formula.range.hi != INF)
    return Literal(Unary(op, far, right, formula.place), False, formula.place)


def _formula_uses(formula: Formula, in_braces: Collection[Variable] = ()) -> Iterator[Variable]:
    """Yield every occurrence of a variable in a formula; inside the braces of aggregates, only of these."""
    for atom in formula_atoms(formula):
        if isinstance(atom, Group):
            yield from _body_uses(atom.literals, in_braces)
        else:
            yield from (term for term in atom.args if isinstance(term, Variable))


def _body_uses(body: Iterable[BodyLiteral], in_braces: Collection[Variable] = ()) -> Iterator[Variable]:
    """Yield every occurrence of a variable in a body; inside the braces of aggregates, only of these."""
    for literal in body:
        if isinstance(literal, Literal):
            yield from _formula_uses(literal.formula, in_braces)
            continue
        yield from literal_variables(literal, braces=False)
        for aggregate in body_aggregates([literal]):
            values = chain.from_iterable(map(expression_variables, aggregate.values))
            yield from (v for v in chain(values, _body_uses(aggregate.body)) if v in in_braces)
