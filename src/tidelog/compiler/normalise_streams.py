"""Normal form for streams: no rule looks back for ever.

- `Diamondminus[a,inf) P` beside other literals gets a hidden predicate. Its rule pushes each P forward to the end of
  time when it arrives, so that P itself can be forgotten: the hidden predicate is the history of all P so far.
- `A Since[a,inf) B` becomes a recursion over bounded steps d. R holds where A holds and has held since some B:
  `R <- A, A Since(0,d] (B or R)`, and then `A Since[a,a+d] (B or R)` is equivalent to `A Since[a,inf) B`.
- For bounded memory, every diamond and box beside other literals gets a hidden predicate. Frequent facts leave
  overlapping intervals behind a diamond, which coalesce into one, and a box holds only for long facts. So the number
  of stored intervals depends on the ranges and not on the density of the stream. In the bounded-memory algorithm of
  the papers, "often enough", and forgetting intervals that are too short, play this part.
- For bounded memory, `A Since[a,b] B` becomes diamonds, boxes and one recursion that looks back at nothing; see below.
- In a rule with negation every operator gets a hidden predicate, so that the truth of the body changes only where a
  stored interval begins or ends.

Since in bounded memory
-----------------------

Frequent facts of B would coalesce behind a diamond, but a Since needs to know whether A has held since each of them. It
does not, for two reasons.

1. `A Since[a,b] B` is `A Since[a,inf) B` and `Diamondminus[a,b] B`. Proof, at time t: one direction is obvious. For the
   other let B hold at t1, a or more before t, with A everywhere between t1 and t, and let B hold at t2, between a and b
   before t. At the later one of t1 and t2, B holds too. It is a or more before t, because both are; at most b before t,
   because t2 is; and A holds everywhere between it and t, because it is not before t1. The same holds for ranges with
   open ends. So only the first B of a run of A matters beside the diamond, and not how far back it is.
2. Let S hold where B holds, and where A holds and has held since some B (strictly between them). Within one run of A,
   S is one interval from the first B to the end of the run. Let R be `A Since(0,inf) B`. Then, for a > 0,
   `A Since[a,inf) B` is `Boxminus(0,a] S` and `Boxminus(0,a) A`. Proof: if B holds at t1, a or more before t, and A
   everywhere between, then S holds from t1 until right before t. For the other direction S at t - a means that B holds
   there, or that A does and has held since some B; and A holds between t - a and t. Likewise `A Since(a,inf) B` is
   `Boxminus[0,a] R` and `Boxminus(0,a] A`. With a = 0, `A Since(0,inf) B` is R itself.

R follows from S where A goes on, and S from R where A holds: `R <- A Since(0,inf) S`, `S <- A, R`, `S <- B`. An
interval of S that ended before the present can never matter again. If A held right after it, the interval would be
longer; and facts that arrive from now on cannot change that. So S, R, A and B are forgotten as soon as they do not
touch the present: one interval of each is held, the run that reaches it. An interval that does reach the present is
held with its beginning, which is all that the boxes need. On the integers the distances 0 and 1 need no A; `flatten`
has rules for them, so that the rest begins at 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair, variables_of
from tidelog.language.hidden_predicates import hidden_name
from tidelog.language.syntax import Variable
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid

#: How the names of parts of a Since begin, after the mark of hidden predicates.
SINCE_PART = "since"


def normalise_for_streams(compiled: CompiledProgram) -> CompiledProgram:
    """Pass, for streams only: name unbounded operators and, for bounded memory, all diamonds and boxes."""
    if compiled.target.engine != "stream":
        return compiled
    rules, grid = compiled.rules, compiled.grid
    work = _Naming(grid, compiled.target.bounded_memory, step=_recursion_step(rules, grid))
    if work.bounded and not grid.dense:
        work.since = {rule.predicate for rule in rules if any(literal.op is Op.SINCE for literal in rule.body)}
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
        #: The predicates of a Since on the integers, for bounded memory.
        self.since: set[str] = set()

    def add(self, rule: FlatRule) -> None:
        """Add a rule, with rules for the operators that it needs named."""
        since = next((literal for literal in rule.body if literal.op is Op.SINCE), None)
        if since is not None and self.bounded:
            self._bound_since(rule)
            return
        if since is not None and since.range[1] == POS_INF:
            self._unroll_since(rule)
            return
        if rule.predicate in self.since:
            rule = replace(rule, body=tuple(self._name_step(literal, rule.origin) for literal in rule.body))
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

    def _bound_since(self, rule: FlatRule) -> None:
        """Add rules for a Since that keep no more of its operands than touches the present."""
        right, left = rule.body
        lo, hi = left.range
        begun, reached = self._begin_runs(rule)
        holds = replace(left, op=Op.HOLDS, range=(0, 0))
        least = max(lo, 1 if self.grid.dense else 2)
        if self.grid.dense and least % 2:
            body = [self._name_box(reached, (0, least - 1), rule.origin)] if least > 1 else [reached]
        else:
            body = [self._name_box(begun, (1, least), rule.origin)]
        if least > 1:
            body.append(self._name_box(holds, (1, least - 1), rule.origin))
        if hi != POS_INF:
            body.append(self._name_operator(replace(right, op=Op.DIAMOND, range=(lo, hi)), rule.origin, negation=False))
        self.rules.append(replace(rule, body=tuple(body)))

    def _begin_runs(self, rule: FlatRule) -> tuple[FlatLiteral, FlatLiteral]:
        """Return S and R of the docstring above, for the operands of a Since."""
        right, left = rule.body
        holds = replace(left, op=Op.HOLDS, range=(0, 0))
        variables = variables_of(rule.body)
        is_new = ("begun", right, holds) not in self.names
        begun = FlatLiteral(self._name(("begun", right, holds)), variables)
        reached = FlatLiteral(self._name(("reached", right, holds)), variables)
        if is_new:
            first = [right]
            if not set(variables_of([left])) <= set(variables_of([right])):
                ever = replace(left, op=Op.DIAMOND, range=(NEG_INF, POS_INF))
                first.append(self._name_operator(ever, rule.origin, negation=False))
            touching = (begun, replace(left, range=(1, POS_INF)))
            self.rules += [
                FlatRule(begun.predicate, variables, (0, 0), tuple(first), (), rule.origin),
                FlatRule(reached.predicate, variables, (0, 0), touching, (), rule.origin),
                FlatRule(begun.predicate, variables, (0, 0), (holds, reached), (), rule.origin),
            ]
        return begun, reached

    def _name_box(self, literal: FlatLiteral, pair: Pair, origin: int) -> FlatLiteral:
        """Return a predicate for a box over an operand of Since."""
        return self._name_part(replace(literal, op=Op.BOX, range=pair), origin)

    def _name_step(self, literal: FlatLiteral, origin: int) -> FlatLiteral:
        """Return a predicate for the right operand one step back, which is enough for a Since on the integers."""
        return self._name_part(literal, origin) if literal.op is Op.DIAMOND and literal.range == (1, 1) else literal

    def _name_part(self, literal: FlatLiteral, origin: int) -> FlatLiteral:
        """Return a predicate for a part of a Since.

        On the integers its range may be a single point. That is no reason to keep more than the next time point.
        """
        variables = variables_of([literal])
        if ("part", literal) not in self.names:
            name = self.names["part", literal] = hidden_name(f"{SINCE_PART}{len(self.names) + 1}")
            self.rules.append(FlatRule(name, variables, (0, 0), (literal,), (), origin))
        return FlatLiteral(self.names["part", literal], variables)

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
