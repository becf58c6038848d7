"""Refuse recursion that creates values for ever: a computed value that flows back into its own rule must be bounded.

`Level(N) :- Level(M), N = M + 1, N <= 10.` comes to an end: N grows upwards and has an upper bound. The bound is a
comparison with a constant in the same rule, or follows from one: `M < 10` bounds M + 1, and `mod 7` bounds itself.

Bounds on both sides leave finitely many values only if these do not come closer and closer to each other, as in
`N = M / 2`. So a recursion may take fractions of its values only by a single rule, `N = a * M + b`, with a bound that
keeps the values away from the point that they run towards. Rounded values are always far enough apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from tidelog.analysis.predicate_graph import find_path, strongly_connected_components
from tidelog.analysis.value_flow import FlatRule, Flow, Position, find_flows
from tidelog.errors import Diagnostic
from tidelog.language.bindings import expression_variables
from tidelog.language.comparisons import FLIPPED
from tidelog.language.printer import format_expression
from tidelog.language.syntax import Condition, Constant, Expression, Operation, Rule, Variable
from tidelog.timeline.interval import INF

_Number = Fraction | float
#: The least and the greatest value that an expression may have.
_Bounds = tuple[_Number, _Number]
_ANY: _Bounds = (-INF, INF)
_Sum = tuple[dict[Expression, Fraction], Fraction]

#: Operations that give finitely many values for finitely many, however often they are repeated.
_KEEPING = ("abs", "floor", "ceil", "min", "max", "lower", "upper", "length")


def find_endless_values(rules: Sequence[Rule]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each computed value that may grow for ever in a recursion."""
    if not any(isinstance(literal, Condition) for rule in rules for literal in rule.body):
        return
    flows = list(find_flows(rules))
    graph: dict[Position, list[Position]] = {}
    for flow in flows:
        graph.setdefault(flow.head, []).extend(flow.sources.values())
        for source in flow.sources.values():
            graph.setdefault(source, [])
    home = {node: number for number, nodes in enumerate(strongly_connected_components(graph)) for node in nodes}
    steps = [step for flow in flows if (step := _as_step(flow, home))]
    for step in steps:
        alone = sum(home[other.flow.head] == home[step.flow.head] for other in steps) == 1
        problem = _find_problem(step, alone)
        if problem is not None:
            inside = {node for node in graph if home[node] == home[step.flow.head]}
            source = next(iter(step.recursive.values()))
            path = find_path(graph, source, step.flow.head, inside)
            cycle = " -> ".join(predicate for predicate, _ in (step.flow.head, *path))
            place = step.flow.flat.places.get(step.flow.variable) or step.flow.flat.rule.place
            message = f"a recursion creates values without end: {cycle}"
            yield Diagnostic("TL119", message, place, help=problem)


@dataclass(frozen=True)
class _Step:
    """A flow that computes a value which flows back into it; `recursive` are the variables whose values do."""

    flow: Flow
    expression: Expression
    recursive: Mapping[Variable, Position]


def _as_step(flow: Flow, home: Mapping[Position, int]) -> _Step | None:
    recursive = {v: source for v, source in flow.sources.items() if home[source] == home[flow.head]}
    if flow.expression is None or not recursive:
        return None
    expression = _expand(flow.expression, flow.flat)
    return None if _keeps(expression) else _Step(flow, expression, recursive)


def _expand(expression: Expression, flat: FlatRule) -> Expression:
    """Replace computed variables by their expressions."""
    if isinstance(expression, Variable) and expression in flat.definitions:
        return _expand(flat.definitions[expression], flat)
    if isinstance(expression, Operation):
        return Operation(expression.name, tuple(_expand(arg, flat) for arg in expression.args))
    return expression


def _keeps(expression: Expression) -> bool:
    """Return whether repeating an expression gives finitely many values."""
    if isinstance(expression, Operation):
        negates = expression.name == "-" and len(expression.args) == 1
        return (negates or expression.name in _KEEPING) and all(map(_keeps, expression.args))
    return True


def _format_written(expression: Expression) -> str:
    """Format an expression with the names of variables as written, without the marks of `value_flow`."""
    return re.sub(r"#[0-9.]+", "", format_expression(expression))


def _find_problem(step: _Step, alone: bool) -> str | None:
    """Return how to bound a value that may grow for ever; None if it is bounded."""
    variable, expression = step.flow.variable, step.expression
    ranges = _Ranges(step.flow.flat)
    name, definition = variable.name, ""
    if name.startswith("$"):
        written = _format_written(expression)
        name = "W" if "V" in written else "V"
        definition = f"{name} = {written}, "
    if _contains_join(expression):
        length = ranges.of(Operation("length", (variable,)))[1]
        length = min(length, ranges.of(Operation("length", (expression,)))[1])
        return None if length < INF else f"bound its length in the same rule: {definition}length({name}) <= 100"
    lo, hi = ranges.of(variable)
    rounded = f"round it: floor({_format_written(expression)})"
    if _takes_fractions(expression, step.recursive):
        factor, rest = _as_scaling(expression, step.recursive)
        if factor is None or rest is None or not alone:
            return f"values that are fractions of others come ever closer to each other; {rounded}"
        if abs(factor) < 1:
            limit = rest / (1 - factor)
            if lo > limit or hi < limit:
                return None
            return f"the values come ever closer to {limit}: keep them away from it, or {rounded}"
        up = down = True
    else:
        up, down = _grows(expression, step.recursive, ranges)
    missing = [f"{name} >= 0"] * (down and lo == -INF) + [f"{name} <= 1000"] * (up and hi == INF)
    if not missing:
        return None
    help = f"bound it in the same rule: {definition}{', '.join(missing)}"
    steps = _find_free_steps(expression, step.recursive, ranges)
    if steps and len(missing) == 1 and (down and lo == -INF):
        help += f"; or {', '.join(f'{v.name} >= 0' for v in steps)} if that always holds"
    return help


def _contains_join(expression: Expression) -> bool:
    return isinstance(expression, Operation) and (expression.name == "++" or any(map(_contains_join, expression.args)))


def _mentions(expression: Expression, variables: Mapping[Variable, Position]) -> bool:
    return any(variable in variables for variable in expression_variables(expression))


def _takes_fractions(expression: Expression, recursive: Mapping[Variable, Position]) -> bool:
    """Return whether a value may be a fraction of another, and is not rounded."""
    if not isinstance(expression, Operation) or expression.name in ("floor", "ceil"):
        return False
    if expression.name in ("/", "avg{}") and _mentions(expression, recursive):
        return True
    if expression.name == "*" and _mentions(expression, recursive):
        factors = [arg.value for arg in expression.args if isinstance(arg, Constant)]
        if any(isinstance(value, Fraction) and value.denominator != 1 for value in factors):
            return True
    return any(_takes_fractions(arg, recursive) for arg in expression.args)


def _as_scaling(
    expression: Expression, recursive: Mapping[Variable, Position]
) -> tuple[Fraction | None, Fraction | None]:
    """Return a and b for an expression a * M + b, where M is a variable and the others are numbers."""
    factors, rest = _as_sum(expression)
    if len(factors) != 1 or not factors.keys() <= recursive.keys():
        return None, None
    return next(iter(factors.values())), rest


def _grows(expression: Expression, recursive: Mapping[Variable, Position], ranges: _Ranges) -> tuple[bool, bool]:
    """Return whether a value may become greater than those that it is computed from, and whether less."""
    if _keeps(expression) or not _mentions(expression, recursive):
        return False, False
    if isinstance(expression, Operation) and expression.name in ("min", "max"):
        one, other = (_grows(arg, recursive, ranges) for arg in expression.args)
        return one[0] or other[0], one[1] or other[1]
    if isinstance(expression, Operation) and expression.name == "abs":
        return any(_grows(expression.args[0], recursive, ranges)), False
    is_rounded = isinstance(expression, Operation) and expression.name in ("floor", "ceil")
    inner = expression.args[0] if isinstance(expression, Operation) and is_rounded else expression
    factors, rest = _as_sum(inner)
    if any(part not in recursive and _mentions(part, recursive) for part in factors):
        return True, True
    own = [factor for part, factor in factors.items() if part in recursive]
    if len(own) == 1 and is_rounded and abs(own[0]) < 1:
        # The values shrink towards a few integers.
        return False, False
    if own != [1]:
        return True, True
    lo: _Number = rest
    hi: _Number = rest
    for part, factor in factors.items():
        if part not in recursive:
            least, greatest = _scale(ranges.of(part), factor)
            lo, hi = lo + least, hi + greatest
    return hi > 0, lo < 0


def _find_free_steps(expression: Expression, recursive: Mapping[Variable, Position], ranges: _Ranges) -> list[Variable]:
    """Return the variables with values from elsewhere that are added to a value, and that have no lower bound."""
    factors, rest = _as_sum(expression)
    if rest < 0 or [factor for part, factor in factors.items() if part in recursive] != [1]:
        return []
    others = [(part, factor) for part, factor in factors.items() if part not in recursive]
    free = [part for part, factor in others if factor > 0 and ranges.of(part)[0] == -INF]
    return [part for part in free if isinstance(part, Variable)] if len(free) == len(others) else []


def _as_sum(expression: Expression) -> _Sum:
    """Return the factor of each part of a sum, and the number that is added; parts are all that is not a sum itself."""
    match expression:
        case Constant(Fraction() as value):
            return {}, value
        case Operation("-", (arg,)):
            return _scale_sum(_as_sum(arg), Fraction(-1))
        case Operation("+" | "-" as name, (left, right)):
            one, other = _as_sum(left), _scale_sum(_as_sum(right), Fraction(1 if name == "+" else -1))
            factors = {v: one[0].get(v, Fraction(0)) + other[0].get(v, Fraction(0)) for v in {**one[0], **other[0]}}
            return {v: factor for v, factor in factors.items() if factor}, one[1] + other[1]
        case Operation("*", (left, right)):
            one, other = _as_sum(left), _as_sum(right)
            if not one[0]:
                return _scale_sum(other, one[1])
            return _scale_sum(one, other[1]) if not other[0] else ({expression: Fraction(1)}, Fraction(0))
        case Operation("/", (left, right)):
            divisor = _as_sum(right)
            if not divisor[0] and divisor[1]:
                return _scale_sum(_as_sum(left), 1 / divisor[1])
    return {expression: Fraction(1)}, Fraction(0)


def _scale_sum(linear: _Sum, factor: Fraction) -> _Sum:
    return {v: f * factor for v, f in linear[0].items() if factor}, linear[1] * factor


def _scale(bounds: _Bounds, factor: Fraction) -> _Bounds:
    if not factor:
        return Fraction(0), Fraction(0)
    ends = [end if isinstance(end, Fraction) else end * (1 if factor > 0 else -1) for end in bounds]
    lo, hi = (end * factor if isinstance(end, Fraction) else end for end in ends)
    return (lo, hi) if factor > 0 else (hi, lo)


class _Ranges:
    """The ranges of the expressions of a rule, as far as its comparisons with constants tell."""

    def __init__(self, flat: FlatRule) -> None:
        self.definitions = flat.definitions
        self.known: dict[Expression, _Bounds] = {}
        for op, left, right in flat.tests:
            self._add(op, left, right)
            if op in FLIPPED:
                self._add(FLIPPED[op], right, left)

    def _add(self, op: str, expression: Expression, bound: Expression) -> None:
        parts, number = _as_sum(bound)
        if parts or op not in ("<", "<=", "=", ">", ">="):
            return
        self._narrow(op, expression, number)
        factors, rest = _as_sum(expression)
        if len(factors) == 1:
            (part, factor), *_ = factors.items()
            self._narrow(op if factor > 0 else FLIPPED[op], part, (number - rest) / factor)

    def _narrow(self, op: str, expression: Expression, bound: Fraction) -> None:
        lo, hi = self.known.get(expression, _ANY)
        self.known[expression] = (
            max(lo, bound) if op in (">", ">=", "=") else lo,
            min(hi, bound) if op in ("<", "<=", "=") else hi,
        )

    def of(self, expression: Expression) -> _Bounds:
        """Return the range of an expression."""
        lo, hi = self.known.get(expression, _ANY)
        least, greatest = self._compute(expression)
        return max(lo, least), min(hi, greatest)

    def _compute(self, expression: Expression) -> _Bounds:
        match expression:
            case Variable() if expression in self.definitions:
                return self.of(self.definitions[expression])
            case Constant(Fraction() as value):
                return value, value
            case Operation("-", (arg,)):
                return _scale(self.of(arg), Fraction(-1))
            case Operation("+" | "-" as name, (left, right)):
                one, other = self.of(left), self.of(right)
                least, greatest = other if name == "+" else _scale(other, Fraction(-1))
                return one[0] + least, one[1] + greatest
            case Operation("*" | "/" as name, (left, Constant(Fraction() as factor))) if factor:
                return _scale(self.of(left), factor if name == "*" else 1 / factor)
            case Operation("*", (Constant(Fraction() as factor), right)):
                return _scale(self.of(right), factor)
            case Operation("abs", (arg,)):
                lo, hi = self.of(arg)
                return Fraction(0), max(hi, -lo)
            case Operation("floor" | "ceil" as name, (arg,)):
                lo, hi = self.of(arg)
                towards = floor if name == "floor" else ceil
                return (
                    Fraction(towards(lo)) if isinstance(lo, Fraction) else lo,
                    Fraction(towards(hi)) if isinstance(hi, Fraction) else hi,
                )
            case Operation("min" | "max" as name, (left, right)):
                (lo, hi), (least, greatest) = self.of(left), self.of(right)
                return (min(lo, least), min(hi, greatest)) if name == "min" else (max(lo, least), max(hi, greatest))
            case Operation("mod", (_, Constant(Fraction() as divisor))):
                return min(divisor, Fraction(0)), max(divisor, Fraction(0))
            case Operation("length" | "count{}" | "duration{}"):
                return Fraction(0), INF
            case _:
                return _ANY
