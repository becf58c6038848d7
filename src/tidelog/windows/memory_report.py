"""Explain what a program makes a reasoner remember: how long facts of each predicate are kept, because of which rules,
and which rules are left out because they follow from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidelog.analysis.predicate_graph import find_needed_rules, restrict_to_query
from tidelog.analysis.time_reach import find_reads
from tidelog.errors import TidelogError
from tidelog.language.aggregate_checks import map_aggregates
from tidelog.language.bindings import rule_aggregates
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Aggregate, AggregateFunction, Condition, Rule
from tidelog.language.wording import join_words
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import INF, Time, TimelineName, format_time
from tidelog.windows.forward_query import build_forward_query
from tidelog.windows.redundant_rules import drop_redundant_rules, explain_redundancy
from tidelog.windows.uniform_validity import find_uniform_window

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


def explain_memory(program: Program, query: str | None = None, timeline: TimelineName | None = None) -> tuple[str, ...]:
    """Return sentences on what is remembered for a program, or for the part of it that a query needs."""
    line = timeline or program.timeline
    numbers = _number_rules(program.rules)
    if query is not None:
        numbers = [numbers[position] for position in find_needed_rules(program.rules, [query])]
        program = restrict_to_query(program, query)
    redundant = explain_redundancy(program, line)
    kept = [pair for place, pair in enumerate(zip(numbers, program.rules, strict=True)) if place not in redundant]
    left_out = (
        f"{_format_rule_numbers([numbers[place]])} follows from"
        f" {_format_rule_numbers(sorted({numbers[other] for other in others}))} and is left out"
        for place, others in redundant.items()
    )
    aggregates = (sentence for number, rule in kept for sentence in _explain_aggregates(number, rule))
    return *_explain_retention(kept, line), *aggregates, *left_out, *_explain_windows(program, query)


def compute_retention(
    program: Program, query: str | None = None, timeline: TimelineName | None = None
) -> dict[str, Time]:
    """Return how far back each predicate is read at most, by rules that are not left out."""
    line = timeline or program.timeline
    part = program if query is None else restrict_to_query(program, query)
    return dict(sorted(_longest_lookback(drop_redundant_rules(part, line), line).items()))


def compute_savings(
    program: Program, used: Program, query: str, timeline: TimelineName | None = None
) -> dict[str, Any] | None:
    """Return what a query saves by using the program `used` and leaving out redundant rules, or None for nothing.

    The result has the rules that are left out, and the predicates that are kept for less time, before and after."""
    line = timeline or program.timeline
    every = restrict_to_query(program, query).rules
    kept = [rule for rule in drop_redundant_rules(used, line) if rule in set(every)]
    less = [rule for rule in every if rule not in set(kept)]
    if not less:
        return None
    before, after = _longest_lookback(every, line), _longest_lookback(kept, line)
    pairs = {name: [back, after.get(name, Fraction(0))] for name, back in before.items()}
    return {
        "rules": list(map(_format_rule_line, less)),
        "retention": {name: list(map(format_time, pair)) for name, pair in pairs.items() if pair[0] != pair[1]},
    }


def _number_rules(rules: Iterable[Rule]) -> list[int]:
    """Return each rule's number in the source; rules translated from one source rule share its number."""
    places: dict[object, int] = {}
    return [places.setdefault(rule.place or number, len(places) + 1) for number, rule in enumerate(rules)]


def _longest_lookback(rules: Iterable[Rule], timeline: TimelineName) -> dict[str, Time]:
    """Return how far back each predicate is read; hidden predicates are skipped."""
    back: dict[str, Time] = {}
    for rule in rules:
        for read in find_reads(rule, timeline):
            if not is_hidden(read.predicate):
                back[read.predicate] = max(back.get(read.predicate, Fraction(0)), -read.lo)
    return back


#: For each function over an unbounded window, what it keeps for a group.
_UNBOUNDED = {AggregateFunction.COUNT: "a number", AggregateFunction.AVG: "a sum and a number"}


def _explain_aggregates(number: int, rule: Rule) -> Iterator[str]:
    """Yield what each aggregate of a rule keeps, and for how long."""
    for aggregate in rule_aggregates(rule):
        name, range = aggregate.function.value, aggregate.range
        if range is None:
            kept = "the start of what holds, per group" if name == "start" else "the rows that hold, per group"
        elif range.hi == INF and aggregate.distinct:
            kept = "all distinct values, per group"
        elif range.hi == INF:
            kept = f"{_UNBOUNDED.get(aggregate.function, 'one value')} per group"
        elif aggregate.function is AggregateFunction.DURATION:
            kept = f"the intervals of the last {format_time(range.hi)}, per group"
        else:
            kept = f"the occurrences of the last {format_time(range.hi)}, per group"
        yield f"{name}{range.with_brackets() if range else ''} of rule {number} keeps {kept}"


def _without_unbounded_windows(rule: Rule) -> Rule:
    """Return a rule whose aggregates over unbounded windows have none: they keep values instead of facts."""

    def close(aggregate: Aggregate) -> Aggregate:
        unbounded = aggregate.range is not None and aggregate.range.hi == INF
        return replace(aggregate, range=None) if unbounded else aggregate

    body = (
        replace(literal, left=map_aggregates(literal.left, close), right=map_aggregates(literal.right, close))
        if isinstance(literal, Condition)
        else literal
        for literal in rule.body
    )
    return replace(rule, body=tuple(body))


def _explain_retention(rules: Sequence[tuple[int, Rule]], timeline: TimelineName) -> Iterator[str]:
    """Yield why each predicate is kept, and how much shorter it would be kept without the responsible rules."""
    lookbacks: dict[str, dict[int, Time]] = {}
    for number, rule in rules:
        for predicate, back in _longest_lookback([_without_unbounded_windows(rule)], timeline).items():
            by_rule = lookbacks.setdefault(predicate, {})
            by_rule[number] = max(back, by_rule.get(number, back))
    for predicate, by_rule in sorted(lookbacks.items()):
        most = max(by_rule.values())
        if most <= 0:
            continue
        forcing = {number for number, back in by_rule.items() if back == most}
        less = max((back for back in by_rule.values() if back != most), default=Fraction(0))
        sentence = f"{predicate} is kept for {format_time(most)} because of {_format_rule_numbers(sorted(forcing))}"
        if less > 0:
            sentence += f"; {format_time(less)} would be enough without {'it' if len(forcing) == 1 else 'them'}"
        yield sentence


def _explain_windows(program: Program, query: str | None) -> Iterator[str]:
    """Yield the windows of a query, if it is forward-propagating temporal Datalog."""
    if program.temporal is None or query is None:
        return
    try:
        forward_query = build_forward_query(program, query)
    except TidelogError:
        return
    radius, window = forward_query.radius, find_uniform_window(forward_query)
    if window < radius:
        yield f"{query} looks back {radius}, but a window of {window} is enough for any data"
    elif window:
        yield f"{query} needs a window of {window}, or less if all objects are known: see tidelog window --objects"


def _format_rule_numbers(numbers: Sequence[int]) -> str:
    """Return `rule 2`, `rules 3 and 9`."""
    return f"{'rule' if len(numbers) == 1 else 'rules'} {join_words(map(str, numbers))}"


def _format_rule_line(rule: Rule) -> str:
    line = f"line {rule.place.line}: " if rule.place else ""
    return line + (" ".join(rule.text.split()) or format_rule(rule))


def describe_corrections(length: Fraction, facts: Dataset | None) -> str:
    """Say what a stream keeps so that facts can be corrected for a length of time; `facts` are data of the stream."""
    import numpy as np

    most = ""
    if facts is not None:
        starts = np.sort(np.concatenate([np.zeros(0), *(r.lo[r.lo > NEG_INF] // 2 for r in facts.relations.values())]))
        ends = np.searchsorted(starts, starts + float(length * facts.denominator), "right")
        most = f" (at most {int((ends - np.arange(len(starts))).max(initial=0))} in the data)"
    return (
        f"for corrections: the facts{most} and answers of the last {format_time(length)}, or half as long again, "
        "and a few copies of what the rules keep"
    )
