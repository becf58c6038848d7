"""How values flow through rules: which arguments of heads copy a value of a body atom, and which compute a new one.

For this, a rule is taken without its braces: the atoms and equations inside them are as good as those outside, with
names of their own for local variables. The greatest value of some rows is one of their values; a sum is a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidelog.analysis.predicate_graph import find_predicate_components
from tidelog.errors import Place
from tidelog.language.bindings import bound_outside, expression_variables, group_variables
from tidelog.language.rule_heads import head_atom
from tidelog.language.substitution import substitute_expression, substitute_literal
from tidelog.language.syntax import (
    Aggregate,
    AggregateFunction,
    Atom,
    BodyLiteral,
    Comparison,
    Condition,
    Expression,
    Literal,
    Operation,
    Rule,
    Variable,
)
from tidelog.language.validation import formula_atoms

#: A predicate and the number of one of its arguments, from 0.
Position = tuple[str, int]

#: Aggregates whose value is a value of one of the rows.
_SELECTS = (AggregateFunction.MIN, AggregateFunction.MAX, AggregateFunction.LAST, AggregateFunction.FIRST)
_TOTALS = (AggregateFunction.SUM, AggregateFunction.AVG)


@dataclass
class FlatRule:
    """A rule without braces: its positive atoms, how its other variables are computed, and its comparisons."""

    rule: Rule
    atoms: list[Atom] = field(default_factory=list)
    definitions: dict[Variable, Expression] = field(default_factory=dict)
    tests: list[tuple[str, Expression, Expression]] = field(default_factory=list)
    #: Where each computed variable gets its value.
    places: dict[Variable, Place | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Flow:
    """A value that reaches an argument of a head from body atoms of the same component.

    `sources` has the position of each variable of the body that the value depends on. It is computed if there is an
    `expression`, and a copy if not.
    """

    head: Position
    sources: dict[Variable, Position]
    variable: Variable
    expression: Expression | None
    flat: FlatRule


def find_flows(rules: Sequence[Rule]) -> Iterator[Flow]:
    """Yield how values flow inside the components of a program."""
    home = {name: part for part in find_predicate_components(rules) if part.recursive for name in part.predicates}
    for rule in rules:
        head = head_atom(rule)
        if head is None or head.predicate not in home:
            continue
        flat = flatten_braces(rule)
        inside = set(home[head.predicate].predicates)
        for place, term in enumerate(head.args):
            if isinstance(term, Variable):
                expression = flat.definitions.get(term)
                sources = _find_sources(term, flat, inside)
                if sources:
                    yield Flow((head.predicate, place), sources, term, expression, flat)


def _find_sources(variable: Variable, flat: FlatRule, inside: set[str]) -> dict[Variable, Position]:
    """Return the variables of body atoms that a variable depends on, and where in the component their values are from.

    A variable that also occurs in an atom of a lower component has only the values of that one.
    """
    if variable in flat.definitions:
        found: dict[Variable, Position] = {}
        for inner in expression_variables(flat.definitions[variable]):
            found |= _find_sources(inner, flat, inside)
        return found
    positions = [
        (atom.predicate, place) for atom in flat.atoms for place, term in enumerate(atom.args) if term == variable
    ]
    if not positions or any(predicate not in inside for predicate, _ in positions):
        return {}
    return {variable: positions[0]}


def flatten_braces(rule: Rule) -> FlatRule:
    """Return a rule without braces."""
    flat = FlatRule(rule)
    equations: list[tuple[Expression, Expression, Place | None]] = []
    outside = bound_outside(rule)

    def add(body: Sequence[BodyLiteral], inner: bool) -> None:
        for literal in body:
            match literal:
                case Literal(formula, False):
                    flat.atoms.extend(formula_atoms(formula, left=False))
                case Comparison(op, left, right) | Condition(op, left, right):
                    # A group may have no row, so what holds for its rows need not hold for the group.
                    if inner and op != "=" and any(v in outside for v in expression_variables(left)):
                        continue
                    left, right = open_braces(left), open_braces(right)
                    if op == "=":
                        equations.append((left, right, literal.place))
                    else:
                        flat.tests.append((op, left, right))

    def open_braces(expression: Expression) -> Expression:
        if isinstance(expression, Operation):
            return Operation(expression.name, tuple(map(open_braces, expression.args)), expression.place)
        if not isinstance(expression, Aggregate):
            return expression
        group = group_variables(expression, rule)
        own = f"#{len(flat.atoms)}.{len(equations)}"
        local = {v: Variable(v.name + own) for v in expression_variables(expression) if v not in group}
        add([substitute_literal(literal, local) for literal in expression.body], True)
        values = tuple(substitute_expression(value, local) for value in expression.values)
        if expression.function in _SELECTS:
            return values[0]
        name = expression.function.value
        return Operation(f"{name}{{}}", values if expression.function in _TOTALS else ())

    add(rule.body, False)
    _order_equations(equations, flat)
    return flat


def _order_equations(equations: list[tuple[Expression, Expression, Place | None]], flat: FlatRule) -> None:
    """Use each equation to define a variable, in an order in which the others are known; the rest are comparisons."""
    known = {term for atom in flat.atoms for term in atom.args if isinstance(term, Variable)}
    waiting = list(equations)
    while True:
        for equation in waiting:
            left, right, place = equation
            for variable, expression in ((left, right), (right, left)):
                if (
                    isinstance(variable, Variable)
                    and variable not in known
                    and all(v in known for v in expression_variables(expression))
                ):
                    known.add(variable)
                    flat.definitions[variable], flat.places[variable] = expression, place
                    break
            else:
                continue
            waiting.remove(equation)
            break
        else:
            flat.tests.extend(("=", left, right) for left, right, _ in waiting)
            return
