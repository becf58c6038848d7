"""How long answers wait and facts are kept: bounds on time and memory for a standing query.

Let F be the frontier: all input up to F is known. A predicate with `delay` d is complete up to F - d. A body literal
over p that reads p at t - r, for r in its range, is complete up to F - d(p) + (least r), and a head at t + h follows.
Look-ahead is a negative r. It may not grow along a cycle.

A fact that ends at e can be forgotten as soon as no literal can read it any more. New parts of another literal's
predicate q lie beyond F - d(q), so bodies change only at t > F - d(q) + (least r of q), and read p back to t minus
(largest r of p). `retention` is the largest such distance, for each predicate over all its readers.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from tidelog.compiler.compiled_program import CompiledProgram, StreamBounds
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op, Pair
from tidelog.compiler.normalise_streams import find_timeless, is_about_any_time
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.core_rules import Aggregation
from tidelog.language.hidden_predicates import is_hidden, is_violation
from tidelog.language.printer import format_rule
from tidelog.language.syntax import AggregateFunction
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid

#: How many positions before the present an interval ends at most that new facts can touch.
TOUCH = 2


class LooksAhead(TidelogError):
    """A rule looks ahead without a bound, so that no answer would ever be certain."""


class _Unbounded(Exception):
    def __init__(self, rule: FlatRule, reason: str, help: str | None = None) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason
        self.help = help


def bound_memory(compiled: CompiledProgram) -> CompiledProgram:
    """Pass, for streams only: compute delays and retentions; raise where a rule looks ahead without a bound."""
    if compiled.target.engine != "stream":
        return compiled
    try:
        return replace(compiled, bounds=compute_bounds(compiled))
    except _Unbounded as problem:
        raise _looks_ahead(compiled, problem) from None


def read_range(rule: FlatRule, literal: FlatLiteral) -> Pair:
    """Return how far back from t a rule's body at t reads the literal's predicate: negative numbers are ahead."""
    since = next((b for b in rule.body if b.op in (Op.SINCE, Op.UNTIL)), None)
    if since is None:
        return literal.range
    lo, hi = since.range if literal is not since else (0, since.range[1])
    return (lo, hi) if since.op is Op.SINCE else (-hi, -lo)


def pushes_forward(rule: FlatRule) -> bool:
    """Return whether an interval of a rule's body gives, once it has ended, all that follows from it at once."""
    return len(rule.body) == 1 and not rule.body[0].negated


def window_of(aggregation: Aggregation, grid: Grid) -> Pair:
    """Return the window of an aggregation as distances on the grid; (0, 0) for one at a point in time."""
    return (0, 0) if aggregation.range is None else grid.to_pair(aggregation.range) or (0, 0)


def find_rows_window(aggregation: Aggregation, grid: Grid) -> Pair:
    """Return how far back an aggregation at t looks at its rows: without end if it needs to know where they start."""
    window = window_of(aggregation, grid)
    pointwise = aggregation.range is None and aggregation.function is not AggregateFunction.START
    return window if pointwise or aggregation.function is AggregateFunction.DURATION else (window[0], POS_INF)


def least_distance(aggregation: Aggregation, grid: Grid) -> int:
    """Return how far back in time, in whole ticks, the window of an aggregation lies at least."""
    back = window_of(aggregation, grid)[0]
    return back - back % grid.tick


def compute_bounds(
    compiled: CompiledProgram,
    more: AbstractSet[int] = frozenset(),
    standing: AbstractSet[str] = frozenset(),
    touch: int = TOUCH,
) -> StreamBounds:
    """Compute the delays and retentions of rules in the normal form for streams.

    The agenda evaluates rules with negation, and those whose positions are in `more`; facts of `standing` stand.
    `touch` is how long the operands of a Since are kept for, so that new facts touch them.
    """
    rules = compiled.rules
    agenda = {place for place, rule in enumerate(rules) if any(b.negated for b in rule.body)} | more
    delay = _compute_delays(compiled, agenda)
    waits = {place: _wait_of(rules[place], delay) for place in sorted(agenda)}
    retention = dict(delay)
    for step in compiled.aggregations:
        # Aggregations take each piece of a row once. Pieces that begin after the present are put off, though they may
        # overlap one that does not, so that one has to be there till then.
        retention[step.input.predicate] = max(retention[step.input.predicate], 0)
    for step, late in compiled.late_rows.items():
        if late.looks_back:
            # Rows that become known late are derived from the facts of the window.
            kept = max(0, delay[step.input.predicate]) + window_of(step, compiled.grid)[1] + compiled.grid.tick
            retention[step.input.predicate] = max(retention[step.input.predicate], kept)
    for calculation in reversed(compiled.calculations):
        head, source = calculation.head.predicate, calculation.input.predicate
        retention[source] = max(retention[source], retention[head])
    timeless = find_timeless(rules)
    for place, rule in enumerate(rules):
        for literal in rule.body:
            kept = _retention_for(rule, literal, delay, timeless, touch)
            if place in waits:
                pushes = rule.predicate in standing and pushes_forward(rule)
                kept = max(kept, waits[place] + (0 if pushes else read_range(rule, literal)[1]))
            retention[literal.predicate] = max(retention[literal.predicate], kept)
    _extend_for_timeless(rules, retention, timeless)
    return StreamBounds(delay, retention, waits, frozenset(standing))


def _compute_delays(compiled: CompiledProgram, agenda: AbstractSet[int]) -> dict[str, int]:
    # Facts of any predicate that the user wrote may be in the input, so none of them is complete before its time. Nor
    # is a recursive one: its facts that begin after the present are put off.
    rules = compiled.rules
    early = {name for name in compiled.arities if is_hidden(name) and not is_violation(name)} - compiled.recursive
    delay = {name: NEG_INF if name in early else 0 for name in compiled.arities}
    heads = {rule.predicate for rule in rules} | {head for head, _ in compiled.numeric_edges}
    delay |= {name: 0 for name in delay if name not in heads}
    for turn in range(len(delay) + 2):
        changed: FlatRule | None = None
        before = dict(delay)
        # Aggregations wait till the rows in their window are complete; calculations take each row as it comes.
        for step in compiled.aggregations:
            wait = delay[step.input.predicate] - least_distance(step, compiled.grid)
            delay[step.head.predicate] = max(delay[step.head.predicate], wait, 0)
        for calculation in compiled.calculations:
            head, source = calculation.head.predicate, calculation.input.predicate
            delay[head] = max(delay[head], delay[source])
        for place, rule in enumerate(rules):
            ahead = [_look_ahead_of(rule, literal) for literal in rule.body]
            if rule.range[0] == NEG_INF or any(a is None for a in ahead):
                help = "give the range that looks ahead an end, or reason over all data with `tidelog materialise`"
                raise _Unbounded(rule, "it looks ahead without a bound", help)
            wait = max(
                (delay[b.predicate] + a for b, a in zip(rule.body, ahead, strict=True) if a is not None), default=0
            )
            if place in agenda:
                wait = max(wait, 0)
            if wait > NEG_INF // 2 and wait - rule.range[0] > delay[rule.predicate]:
                delay[rule.predicate] = wait - rule.range[0]
                changed = rule
        if delay == before:
            return delay
        if changed is not None and turn > len(delay):
            raise _Unbounded(changed, "its look-ahead recurses, so that an answer would have to wait for ever")
    return delay


def _look_ahead_of(rule: FlatRule, literal: FlatLiteral) -> int | None:
    """Return how far ahead of t a body at t reads the literal; None without a bound."""
    if is_about_any_time(literal):
        return 0
    least = read_range(rule, literal)[0]
    return -least if least > -LIMIT else None


def _wait_of(rule: FlatRule, delay: dict[str, int]) -> int:
    return max(0, *(delay[b.predicate] + (_look_ahead_of(rule, b) or 0) for b in rule.body))


def _retention_for(
    rule: FlatRule, literal: FlatLiteral, delay: dict[str, int], timeless: frozenset[str], touch: int
) -> int:
    """Return how long a rule that new facts drive needs the literal's facts for its other literals."""
    others = [b for b in rule.body if b is not literal and b.predicate not in timeless]
    if not others:
        return NEG_INF
    if literal.op in (Op.SINCE, Op.UNTIL) or any(b.op is Op.SINCE and b.range[1] == POS_INF for b in others):
        # The left operand only has to touch the new facts. So does the right operand of a Since without an end: such a
        # Since is about runs that go on (`normalise_streams`).
        return max(delay[b.predicate] for b in others) + touch
    ahead = max(delay[b.predicate] + (_look_ahead_of(rule, b) or 0) for b in others)
    return ahead + read_range(rule, literal)[1]


def _extend_for_timeless(rules: tuple[FlatRule, ...], retention: dict[str, int], timeless: frozenset[str]) -> None:
    """Keep literals that wait for a timeless predicate, which may arrive later, for as long as the head is kept."""
    for _ in timeless:
        for rule in rules:
            if any(b.predicate in timeless for b in rule.body):
                for literal in rule.body:
                    kept = retention[rule.predicate] + max(literal.range[1], 0)
                    retention[literal.predicate] = max(retention[literal.predicate], kept)


def _looks_ahead(compiled: CompiledProgram, problem: _Unbounded) -> LooksAhead:
    rule = compiled.source.rules[problem.rule.origin]
    return LooksAhead(
        Diagnostic(
            "TL308",
            f"this program cannot run over a stream: {problem.reason}, in `{rule.text or format_rule(rule)}`",
            rule.place,
            help=problem.help,
        )
    )
