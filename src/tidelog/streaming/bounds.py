"""How far rules look: how long an answer has to wait, and how long a fact has to be kept.

Let F be the frontier: all input up to F is known. A predicate's `delay` d means that it is complete up to F - d. A
body literal over p that reads p at t - r, for r in its range, is complete up to F - d(p) + (least r), and a head at
t + h follows. Look-ahead is a negative r. It may not grow along a cycle.

A fact that ends at e can be forgotten as soon as no literal can read it any more. New parts of another literal's
predicate q lie beyond F - d(q), so bodies change only at t > F - d(q) + (least r of q), and read p back to t minus
(largest r of p). `retention` is the largest such distance, for each predicate over all its readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.analysis.flatten import VIOLATION, FlatLiteral, FlatRule, Op
from tidelog.streaming.normal import ever, keys
from tidelog.timeline.grid import LIMIT, NEG_INF


@dataclass(frozen=True, slots=True)
class Bounds:
    """Grid distances by predicate; `waits` are how long rules with negation wait, by their place."""

    delay: dict[str, int]
    retention: dict[str, int]
    waits: dict[int, int]


class LooksAhead(Exception):
    """A rule that looks ahead without a bound."""

    def __init__(self, rule: FlatRule, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


def reads(rule: FlatRule, literal: FlatLiteral) -> tuple[int, int]:
    """How far back from t a rule's body at t reads the literal's predicate: negative numbers are ahead."""
    since = next((b for b in rule.body if b.op in (Op.SINCE, Op.UNTIL)), None)
    if since is None:
        return literal.range
    lo, hi = since.range if literal is not since else (0, since.range[1])
    return (lo, hi) if since.op is Op.SINCE else (-hi, -lo)


def bounds(rules: tuple[FlatRule, ...], predicates: Iterable[str]) -> Bounds:
    """The delays and retentions of a program in the normal form for streams."""
    delay = _delays(rules, predicates)
    waits = {place: _wait(rule, delay) for place, rule in enumerate(rules) if any(b.negated for b in rule.body)}
    retention = dict(delay)
    timeless = keys(rules)
    for place, rule in enumerate(rules):
        for literal in rule.body:
            kept = _kept(rule, literal, delay, timeless)
            if place in waits:
                kept = max(kept, waits[place] + reads(rule, literal)[1])
            retention[literal.predicate] = max(retention[literal.predicate], kept)
    _keep_for_keys(rules, retention, timeless)
    return Bounds(delay, retention, waits)


def _delays(rules: tuple[FlatRule, ...], predicates: Iterable[str]) -> dict[str, int]:
    # Facts of any predicate of the user's may be in the input, so none of them is complete before its time.
    delay = {name: NEG_INF if name.startswith("$") and not name.startswith(VIOLATION) else 0 for name in predicates}
    heads = {rule.predicate for rule in rules}
    delay |= {name: 0 for name in delay if name not in heads}
    for turn in range(len(delay) + 2):
        changed: FlatRule | None = None
        for rule in rules:
            ahead = [_ahead(rule, literal) for literal in rule.body]
            if rule.range[0] == NEG_INF or any(a is None for a in ahead):
                raise LooksAhead(rule, "it looks ahead without a bound")
            wait = max(
                (delay[b.predicate] + a for b, a in zip(rule.body, ahead, strict=True) if a is not None), default=0
            )
            if any(b.negated for b in rule.body):
                wait = max(wait, 0)
            if wait > NEG_INF // 2 and wait - rule.range[0] > delay[rule.predicate]:
                delay[rule.predicate] = wait - rule.range[0]
                changed = rule
        if changed is None:
            return delay
        if turn > len(delay):
            raise LooksAhead(changed, "its look-ahead recurses, so that an answer would have to wait for ever")
    return delay


def _ahead(rule: FlatRule, literal: FlatLiteral) -> int | None:
    """How far ahead of t a body at t reads the literal; None without a bound."""
    if ever(literal):
        return 0
    least = reads(rule, literal)[0]
    return -least if least > -LIMIT else None


def _wait(rule: FlatRule, delay: dict[str, int]) -> int:
    return max(0, *(delay[b.predicate] + (_ahead(rule, b) or 0) for b in rule.body))


def _kept(rule: FlatRule, literal: FlatLiteral, delay: dict[str, int], timeless: frozenset[str]) -> int:
    """How long a rule that new facts drive needs the literal's facts for its other literals."""
    others = [b for b in rule.body if b is not literal and b.predicate not in timeless]
    if not others:
        return NEG_INF
    if literal.op in (Op.SINCE, Op.UNTIL):
        # The left operand only has to touch what comes.
        return max(delay[b.predicate] for b in others) + 2
    return max(delay[b.predicate] + (_ahead(rule, b) or 0) for b in others) + reads(rule, literal)[1]


def _keep_for_keys(rules: tuple[FlatRule, ...], retention: dict[str, int], timeless: frozenset[str]) -> None:
    """Where a literal waits for a key that may come later, it is kept as long as the rule's head would be."""
    for _ in timeless:
        for rule in rules:
            if any(b.predicate in timeless for b in rule.body):
                for literal in rule.body:
                    kept = retention[rule.predicate] + max(literal.range[1], 0)
                    retention[literal.predicate] = max(retention[literal.predicate], kept)
