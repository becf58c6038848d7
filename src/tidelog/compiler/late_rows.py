"""Aggregations whose rows may become known late: after their time, when a value arrives that their braces only test.

`E(X) :- A(X), count[0,9]{ B(Y), Y < X } > 0.` has rows for each value of X, whenever that value arrives. With A(5) at
time 7, the group of 5 has rows from before 7, which nothing has asked for until then. A stream keeps B for as long as
the window is, derives these rows when 5 arrives, and the aggregation is computed again from the rows in its window.

That takes a window with an end, and rows that new facts derive. Other aggregations cannot look back: for them, all such
values have to be known before the first fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.compiler.flat_rules import FlatRule
from tidelog.compiler.normalise_streams import find_timeless
from tidelog.language.core_rules import Aggregation, Calculation
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.syntax import AggregateFunction
from tidelog.timeline.interval import INF


@dataclass(frozen=True, slots=True)
class LateRows:
    """For an aggregation whose rows may become known late: the predicates whose facts bring them, and whether it can
    look back for these rows."""

    sources: frozenset[str]
    looks_back: bool


def find_late_rows(
    rules: tuple[FlatRule, ...], calculations: tuple[Calculation, ...], aggregations: tuple[Aggregation, ...]
) -> Mapping[Aggregation, LateRows]:
    """Return the aggregations over time whose rows may become known late."""
    timeless = find_timeless(rules)
    reads: dict[str, set[str]] = {}
    for rule in rules:
        reads.setdefault(rule.predicate, set()).update(literal.predicate for literal in rule.body)
    for calculation in calculations:
        reads.setdefault(calculation.head.predicate, set()).add(calculation.input.predicate)
    denying = {rule.predicate for rule in rules if any(literal.negated for literal in rule.body)}

    def find_path(predicate: str, above: frozenset[str] = frozenset()) -> tuple[set[str], set[str]]:
        """Return the timeless predicates that the rows of a body read, and the hidden predicates on the way to them."""
        if predicate in timeless:
            return {predicate}, set()
        sources, between = set[str](), set[str]()
        inside = above | {predicate}
        for below in reads.get(predicate, set()) - inside if is_hidden(predicate) else ():
            more, passed = find_path(below, inside)
            sources |= more
            between |= passed | {predicate} if more else set()
        return sources, between

    found: dict[Aggregation, LateRows] = {}
    for step in aggregations:
        if step.range is None and step.function is not AggregateFunction.START:
            continue
        sources, between = find_path(step.input.predicate)
        if sources:
            bounded = step.range is None or step.range.hi != INF
            found[step] = LateRows(frozenset(sources), bounded and not between & denying)
    return found
