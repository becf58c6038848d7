"""Normal form: rules whose literals carry one operator each, on the grid.

Future operators become past ones with negative ranges: `Diamondplus[a,b]` is a diamond over `[-b,-a]`. Operators
nested in operators get names: a hidden predicate (its name starts with `$`) with a rule of its own, shared by all
rules that mention the same subformula. Diamonds of diamonds and boxes of boxes are merged by adding their ranges.
Boxes in heads become one range that is added to what the body derives.

`A Since B` becomes a rule with two literals, B and then A under `Op.SINCE`. Where B alone is enough (0 in the range;
on the integers also 1) no A is needed, and a variable that only A mentions may then be anything. So, where A has
variables that B has not, a formula has two alternatives: one over the bindings that A has, one without A. For each
binding one of them is exactly the truth and the other no more than it, so rules may be split by alternatives under
any operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import product

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair, variables_of
from tidelog.language.comparisons import may_hold
from tidelog.language.hidden_predicates import ALWAYS, hidden_name, violation_name
from tidelog.language.syntax import (
    Atom,
    Binary,
    BinaryOp,
    Bottom,
    Comparison,
    Constant,
    Formula,
    Literal,
    Rule,
    Term,
    Top,
    Unary,
    UnaryOp,
    Variable,
)
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid, add_pairs, negate


class _Truth(IntEnum):
    BOTTOM = 0
    TOP = 1


_Alternative = FlatLiteral | _Truth


def flatten(compiled: CompiledProgram) -> CompiledProgram:
    """Pass: bring the rules into normal form, on a grid that is fine enough for their ranges."""
    core = compiled.source.core
    if compiled.target.rules is not None:
        return replace(compiled, rules=flatten_rules(compiled.target.rules, compiled.grid))
    rules = flatten_rules(core.rules, compiled.grid, core.origins)
    return replace(compiled, rules=rules, calculations=core.calculations, aggregations=core.aggregations)


def flatten_rules(rules: Sequence[Rule], grid: Grid, origins: Iterable[int] | None = None) -> tuple[FlatRule, ...]:
    """Return rules in normal form; `origins` are the numbers of the user's rules, if there are others."""
    work = _Flattening(grid)
    for number, rule in zip(range(len(rules)) if origins is None else origins, rules, strict=True):
        work.add(number, rule)
    return tuple(work.rules)


class _Flattening:
    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.rules: list[FlatRule] = []
        self.names: dict[object, str] = {}
        self.origin = 0
        #: In how many ways each constraint can be violated, by the number of its rule.
        self.ways: Counter[int] = Counter()

    def add(self, number: int, rule: Rule) -> None:
        self.origin = number
        head, shift = self._head(rule.head)
        if shift is None or isinstance(head, Top):
            return
        comparisons = tuple(literal for literal in rule.body if isinstance(literal, Comparison))
        if not all(may_hold(comparison) for comparison in comparisons):
            return
        comparisons = tuple(c for c in comparisons if isinstance(c.left, Variable) or isinstance(c.right, Variable))
        choices = [list(self._literal(literal)) for literal in rule.body if isinstance(literal, Literal)]
        for choice in product(*choices):
            body = tuple(literal for part in choice for literal in part)
            if isinstance(head, Atom):
                self._rule(head.predicate, head.args, shift, body, comparisons)
            else:
                self._rule(violation_name(number, self.ways[number]), variables_of(body), shift, body, comparisons)
                self.ways[number] += 1

    def _rule(
        self,
        predicate: str,
        args: tuple[Term, ...],
        shift: Pair,
        body: tuple[FlatLiteral, ...],
        comparisons: tuple[Comparison, ...] = (),
    ) -> None:
        # What follows from nothing holds at all times, wherever the head is.
        rule = FlatRule(predicate, args, shift if body else (0, 0), body, comparisons, self.origin)
        self.rules.append(_derive_at_once(rule, self.grid))

    def _head(self, head: Formula) -> tuple[Formula, Pair | None]:
        shift: Pair | None = (0, 0)
        while isinstance(head, Unary):
            pair = self.grid.to_pair(head.range)
            if pair is None or shift is None:
                shift = None
            else:
                step = pair if head.op is UnaryOp.BOX_PLUS else negate(pair)
                shift = add_pairs(shift, step, self.grid.dense)
            head = head.arg
        return head, (0, 0) if isinstance(head, Bottom) and shift is not None else shift

    def _literal(self, literal: Literal) -> Iterator[tuple[FlatLiteral, ...]]:
        """Return the ways to satisfy a literal, each a conjunction."""
        alternatives = self._lower(literal.formula)
        if not literal.negated:
            for alternative in alternatives:
                if isinstance(alternative, FlatLiteral):
                    yield (alternative,)
                elif alternative is _Truth.TOP:
                    yield ()
        elif _Truth.TOP not in alternatives:
            yield tuple(replace(a, negated=True) for a in alternatives if isinstance(a, FlatLiteral))

    def _lower(self, formula: Formula) -> list[_Alternative]:
        match formula:
            case Atom():
                return [FlatLiteral(formula.predicate, formula.args)]
            case Top():
                return [_Truth.TOP]
            case Bottom():
                return []
            case Unary():
                return self._unary(formula)
            case Binary():
                return self._binary(formula)

    def _unary(self, formula: Unary) -> list[_Alternative]:
        op = Op.DIAMOND if formula.op in (UnaryOp.DIAMOND_MINUS, UnaryOp.DIAMOND_PLUS) else Op.BOX
        pair = self.grid.to_pair(formula.range)
        if pair is None:
            return [] if op is Op.DIAMOND else [_Truth.TOP]
        if formula.op in (UnaryOp.DIAMOND_PLUS, UnaryOp.BOX_PLUS):
            pair = negate(pair)
        inner = self._lower(formula.arg)
        if _Truth.TOP in inner:
            return [_Truth.TOP]
        return [self._under(op, pair, literal) for literal in inner if isinstance(literal, FlatLiteral)]

    def _under(self, op: Op, pair: Pair, literal: FlatLiteral) -> FlatLiteral:
        if literal.op is op:
            return replace(literal, range=add_pairs(pair, literal.range, self.grid.dense))
        named = self._name_literal(literal)
        return FlatLiteral(named.predicate, named.args, op, pair)

    def _name_literal(self, literal: FlatLiteral) -> FlatLiteral:
        """Return a plain atom that means the same as the literal."""
        if literal.op is Op.HOLDS:
            return literal
        variables = variables_of((literal,))
        key = (literal.predicate, _shape(literal.args, variables), literal.op, literal.range)
        if key not in self.names:
            self.names[key] = hidden_name(str(len(self.names) + 1))
            self._rule(self.names[key], variables, (0, 0), (literal,))
        return FlatLiteral(self.names[key], variables)

    def _binary(self, formula: Binary) -> list[_Alternative]:
        pair = self.grid.to_pair(formula.range)
        if pair is None:
            return []
        op = Op.SINCE if formula.op is BinaryOp.SINCE else Op.UNTIL
        lefts, rights = self._lower(formula.left), self._lower(formula.right)
        if _Truth.TOP in rights:
            if pair[0] == 0 or _Truth.TOP in lefts:
                return [_Truth.TOP]
            rights = [FlatLiteral(ALWAYS, ())]
        found: list[_Alternative] = []
        for right in rights:
            assert isinstance(right, FlatLiteral)
            if _Truth.TOP in lefts:
                found.append(self._under(Op.DIAMOND, pair if op is Op.SINCE else negate(pair), right))
                continue
            right = self._name_literal(right)
            if pair[1] <= (0 if self.grid.dense else 1):
                found += self._alone(op, pair, right)
                continue
            free = False
            for left in lefts:
                assert isinstance(left, FlatLiteral)
                left = self._name_literal(left)
                free = free or not set(variables_of((left,))) <= set(variables_of((right,)))
                found.append(self._since(op, pair, left, right))
            if free or not lefts:
                found += self._alone(op, pair, right)
        return found

    def _since(self, op: Op, pair: Pair, left: FlatLiteral, right: FlatLiteral) -> FlatLiteral:
        """Return a named `left Since right` over the bindings of both, with what holds without `left` joined in."""
        variables = variables_of((right, left))
        key = (op, pair, left.predicate, _shape(left.args, variables), right.predicate, _shape(right.args, variables))
        if key not in self.names:
            name = self.names[key] = hidden_name(str(len(self.names) + 1))
            self._rule(name, variables, (0, 0), (right, replace(left, op=op, range=pair)))
            for alone in self._alone(op, pair, right):
                covered = set(variables_of((left,))) <= set(variables_of((right,)))
                ever = FlatLiteral(left.predicate, left.args, Op.DIAMOND, (NEG_INF, POS_INF))
                self._rule(name, variables, (0, 0), (alone,) if covered else (alone, self._name_literal(ever)))
        return FlatLiteral(self.names[key], variables)

    def _alone(self, op: Op, pair: Pair, right: FlatLiteral) -> list[FlatLiteral]:
        """Return where the right operand alone is enough: now and, on the integers, one step away."""
        near = pair[0], min(pair[1], 0 if self.grid.dense else 1)
        if near[0] > near[1]:
            return []
        if near == (0, 0):
            return [right]
        return [FlatLiteral(right.predicate, right.args, Op.DIAMOND, near if op is Op.SINCE else negate(near))]


def _derive_at_once(rule: FlatRule, grid: Grid) -> FlatRule:
    """`P :- Diamondminus[0,b] P` spreads P step by step for ever; say so in one step."""
    if len(rule.body) != 1 or rule.comparisons:
        return rule
    (literal,) = rule.body
    if (literal.predicate, literal.args, literal.negated) != (rule.predicate, rule.args, False):
        return rule
    if len(set(rule.args)) != len(rule.args) or literal.op not in (Op.HOLDS, Op.DIAMOND):
        return rule
    lo, hi = add_pairs(rule.range, literal.range, grid.dense)
    if not (lo <= 1 and hi >= -1) or lo == hi == 0:
        return rule
    spread = (NEG_INF if lo < 0 else 0, POS_INF if hi > 0 else 0)
    return replace(rule, range=(0, 0), body=(replace(literal, op=Op.DIAMOND, range=spread),))


def _shape(args: tuple[Term, ...], variables: tuple[Variable, ...]) -> tuple[object, ...]:
    """Return arguments with variables replaced by numbers: formulas that differ only in names share one predicate."""
    return tuple(variables.index(a) if isinstance(a, Variable) else Constant(a.value) for a in args)
