"""Normal form for streams: no rule looks back for ever.

- `Diamondminus[a,inf) P` beside other literals gets a hidden predicate. Its rule pushes each P forward to the end of
  time when it arrives, so that P itself can be forgotten: the hidden predicate is the history of all P so far.
- `A Since[a,inf) B` becomes a recursion over bounded steps d. R holds where A holds and has held since some B:
  `R <- A, A Since(0,d] (B or R)`, and then `A Since[a,a+d] (B or R)` is equivalent to `A Since[a,inf) B`.
- For bounded memory, every diamond and box beside other literals gets a hidden predicate. Frequent facts leave
  overlapping intervals behind a diamond, which coalesce into one, and a box holds only for long facts. So the number
  of stored intervals depends on the ranges and not on the density of the stream. In the bounded-memory algorithm of
  the papers, "often enough", and forgetting intervals that are too short, play this part.
- In a rule with negation every operator gets a hidden predicate, so that the truth of the body changes only where a
  stored interval begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, variables_of
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.syntax import Variable
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid


def normalise_for_streams(compiled: CompiledProgram) -> CompiledProgram:
    """Pass, for streams only: name unbounded operators and, for bounded memory, all diamonds and boxes."""
    if compiled.target.engine != "stream":
        return compiled
    rules, grid = compiled.rules, compiled.grid
    work = _Naming(grid, compiled.target.bounded_memory, step=_recursion_step(rules, grid))
    for rule in rules:
        work.add(rule)
    return replace(compiled, rules=tuple(work.rules))


def is_about_any_time(literal: FlatLiteral) -> bool:
    """Return whether a literal asks for an atom at any time at all, past or future."""
    return literal.op is Op.DIAMOND and literal.range == (NEG_INF, POS_INF)


def find_timeless(rules: Iterable[FlatRule]) -> frozenset[str]:
    """Return the predicates that hold at all times for every atom that has held at any time."""
    return frozenset(rule.predicate for rule in rules if len(rule.body) == 1 and is_about_any_time(rule.body[0]))


def _recursion_step(rules: tuple[FlatRule, ...], grid: Grid) -> int:
    """Choose the distance for the recursion of an unbounded Since: the largest range, so that few steps suffice."""
    ends = [abs(end) for rule in rules for b in rule.body for end in b.range if 0 < abs(end) < LIMIT]
    largest = max(ends, default=grid.tick * grid.denominator)
    return largest + largest % grid.tick


class _Naming:
    """Rules so far, and the hidden predicates that stand for their operators."""

    def __init__(self, grid: Grid, bounded: bool, step: int) -> None:
        self.grid = grid
        self.bounded = bounded
        self.step = step
        self.rules: list[FlatRule] = []
        self.names: dict[object, str] = {}

    def add(self, rule: FlatRule) -> None:
        """Add a rule, with rules for the operators that it needs named."""
        if any(literal.op is Op.SINCE and literal.range[1] == POS_INF for literal in rule.body):
            self._unroll_since(rule)
            return
        negation = any(literal.negated for literal in rule.body)
        if len(rule.body) > 1 or negation:
            rule = replace(
                rule, body=tuple(self._name_operator(literal, rule.origin, negation) for literal in rule.body)
            )
        self.rules.append(rule)

    def _name_operator(self, literal: FlatLiteral, origin: int, negation: bool) -> FlatLiteral:
        if literal.op not in (Op.DIAMOND, Op.BOX):
            return literal
        if not (negation or self.bounded or (literal.op is Op.DIAMOND and POS_INF in literal.range)):
            return literal
        variables = variables_of([literal])
        shape = tuple(variables.index(arg) if isinstance(arg, Variable) else arg for arg in literal.args)
        name = self._name((literal.predicate, shape, literal.op, literal.range))
        if name not in {rule.predicate for rule in self.rules}:
            pushed = replace(literal, negated=False)
            self.rules.append(FlatRule(name, variables, (0, 0), (pushed,), (), origin))
        return FlatLiteral(name, variables, negated=literal.negated)

    def _name(self, key: object) -> str:
        return self.names.setdefault(key, hidden_name(f"s{len(self.names) + 1}"))

    def _unroll_since(self, rule: FlatRule) -> None:
        right, left = rule.body
        variables = variables_of(rule.body)
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
