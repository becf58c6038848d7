"""The normal form of rules that stand over a stream: nothing in it looks back for ever.

- `Diamondminus[a,inf) P` beside other literals gets a name. Its rule pushes each P forward to the end of time when it
  comes, so that P itself can be forgotten: the named predicate is the history of what has ever happened.
- `A Since[a,inf) B` is a recursion over bounded steps d. R holds where A does and has done so since some B:
  `R <- A, A Since(0,d] (B or R)`, and then `A Since[a,a+d] (B or R)` is the same as `A Since[a,inf) B`.
- For bounded memory every diamond and box beside other literals gets a name. Facts that come often leave overlapping
  intervals behind a diamond, which are one interval, and a box holds only of facts that are long; so what is held
  depends on their ranges and not on how dense the stream is. This is what "often enough", and forgetting what is too
  short, stand for in the bounded-memory algorithm of stream reasoning.
- In a rule with negation every operator gets a name, so that the truth of its body changes only where an interval
  that is held begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidelog.analysis.flatten import FlatLiteral, FlatRule, Op
from tidelog.language.syntax import Variable
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid


def for_streams(rules: Iterable[FlatRule], grid: Grid, bounded: bool) -> tuple[FlatRule, ...]:
    """The rules with unbounded operators (and, for bounded memory, all diamonds and boxes) named."""
    rules = tuple(rules)
    work = _Naming(grid, bounded, step=_step(rules, grid))
    for rule in rules:
        work.add(rule)
    return tuple(work.rules)


def ever(literal: FlatLiteral) -> bool:
    """Whether a literal asks for an atom at any time at all, past or future."""
    return literal.op is Op.DIAMOND and literal.range == (NEG_INF, POS_INF)


def keys(rules: Iterable[FlatRule]) -> frozenset[str]:
    """The predicates that hold at all times for what has come at any time."""
    return frozenset(rule.predicate for rule in rules if len(rule.body) == 1 and ever(rule.body[0]))


def _step(rules: tuple[FlatRule, ...], grid: Grid) -> int:
    """A distance for the recursion of an unbounded Since: the largest range, so that it takes few steps."""
    ends = [abs(end) for rule in rules for b in rule.body for end in b.range if 0 < abs(end) < LIMIT]
    largest = max(ends, default=grid.tick * grid.denominator)
    return largest + largest % grid.tick


class _Naming:
    def __init__(self, grid: Grid, bounded: bool, step: int) -> None:
        self.grid = grid
        self.bounded = bounded
        self.step = step
        self.rules: list[FlatRule] = []
        self.names: dict[object, str] = {}

    def add(self, rule: FlatRule) -> None:
        if any(literal.op is Op.SINCE and literal.range[1] == POS_INF for literal in rule.body):
            self._unbounded_since(rule)
            return
        negation = any(literal.negated for literal in rule.body)
        if len(rule.body) > 1 or negation:
            rule = replace(rule, body=tuple(self._named(literal, rule.origin, negation) for literal in rule.body))
        self.rules.append(rule)

    def _named(self, literal: FlatLiteral, origin: int, negation: bool) -> FlatLiteral:
        if literal.op not in (Op.DIAMOND, Op.BOX):
            return literal
        if not (negation or self.bounded or (literal.op is Op.DIAMOND and POS_INF in literal.range)):
            return literal
        variables = tuple(dict.fromkeys(arg for arg in literal.args if isinstance(arg, Variable)))
        shape = tuple(variables.index(arg) if isinstance(arg, Variable) else arg for arg in literal.args)
        name = self._name((literal.predicate, shape, literal.op, literal.range))
        if name not in {rule.predicate for rule in self.rules}:
            pushed = replace(literal, negated=False)
            self.rules.append(FlatRule(name, variables, (0, 0), (pushed,), (), origin))
        return FlatLiteral(name, variables, negated=literal.negated)

    def _name(self, key: object) -> str:
        return self.names.setdefault(key, f"$s{len(self.names) + 1}")

    def _unbounded_since(self, rule: FlatRule) -> None:
        right, left = rule.body
        variables = tuple(dict.fromkeys(a for b in rule.body for a in b.args if isinstance(a, Variable)))
        run, reached = self._name(("run", rule)), self._name(("reached", rule))
        near = (1, self.step)
        far = (left.range[0], left.range[0] - left.range[0] % self.grid.tick + self.step)
        ongoing = FlatLiteral(run, variables)
        for begin in (right, ongoing):
            self.rules.append(replace(rule, body=(begin, replace(left, range=far))))
            body = (begin, replace(left, range=near))
            self.rules.append(FlatRule(reached, variables, (0, 0), body, (), rule.origin))
        both = (replace(left, op=Op.HOLDS, range=(0, 0)), FlatLiteral(reached, variables))
        self.rules.append(FlatRule(run, variables, (0, 0), both, (), rule.origin))
