"""Recursion through time: negation and aggregates in a cycle that goes back in time.

`Alert(X) :- Bad(X), not Diamondminus[1s,1h] Alert(X).` has exactly one model, computed forward in time: what a rule
denies lies at least a second back, where everything is known. A cycle is of this kind if it goes back in time by some
e > 0 in all, and none of its rules looks ahead. To check this, consider only the reads at distance 0: if no cycle of
these runs through a negation or an aggregate, every cycle that does goes back in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from tidelog.analysis.predicate_graph import (
    Component,
    body_atoms,
    describe_negative_cycle,
    find_components,
    find_predicate_components,
)
from tidelog.analysis.time_reach import find_reads, head_distance
from tidelog.errors import Diagnostic
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Rule
from tidelog.timeline.interval import Time, TimelineName


@dataclass(frozen=True, slots=True)
class _Read:
    """A rule for `head` reads `body`, at least `back` before the time of the head."""

    head: str
    body: str
    back: Time
    denied: bool
    rule: Rule


def find_unordered_negation(rules: tuple[Rule, ...], timeline: TimelineName) -> Iterator[Diagnostic]:
    """Yield a diagnostic for every recursion through negation or an aggregate that does not go back in time."""
    if not any(denied for rule in rules for _, denied in body_atoms(rule)):
        return
    components = find_predicate_components(rules)
    home = {name: number for number, component in enumerate(components) for name in component.predicates}
    inside: list[list[_Read]] = [[] for _ in components]
    for read in _reads(rules, timeline):
        if home.get(read.head, -1) == home.get(read.body, -2):
            inside[home[read.head]].append(read)
    for component, reads in zip(components, inside, strict=True):
        if not any(read.denied for read in reads):
            continue
        ahead = next((read for read in reads if read.back < 0), None)
        looping = _find_denied_loop(reads)
        if ahead is not None or looping is not None:
            yield describe_negative_cycle(rules, component, _reason(ahead, looping, timeline))


def _find_denied_loop(reads: Iterable[_Read]) -> _Read | None:
    """Return a denied read that lies on a cycle of reads at distance 0."""
    near = [read for read in reads if read.back <= 0]
    graph: dict[str, list[str]] = {}
    for read in near:
        graph.setdefault(read.head, []).append(read.body)
        graph.setdefault(read.body, [])
    home: dict[str, Component] = {name: part for part in find_components(graph) for name in part.predicates}
    return next((read for read in near if read.denied and home[read.head] is home[read.body]), None)


def _reads(rules: Iterable[Rule], timeline: TimelineName) -> Iterator[_Read]:
    for rule in rules:
        head = head_atom(rule)
        if head is None:
            continue
        written = head_distance(rule, timeline)
        for read in find_reads(rule, timeline):
            yield _Read(head.predicate, read.predicate, written - read.hi, read.denied, rule)


def _reason(ahead: _Read | None, looping: _Read | None, timeline: TimelineName) -> str | None:
    """Say why a cycle is not a recursion through time, if one of its operators has a range at all."""
    if ahead is not None:
        return f"{ahead.rule.text or ahead.head} looks ahead"
    if looping is not None and timeline == "rational" and _is_open_at_zero(looping):
        return "a range that is open at 0, such as (0,1h], comes arbitrarily close to the present"
    if looping is not None and _begins_now(looping, timeline):
        return "a range that begins with 0, such as [0,1h], reaches the present"
    return None


def _begins_now(read: _Read, timeline: TimelineName) -> bool:
    same = (r for r in find_reads(read.rule, timeline) if r.predicate == read.body and r.denied)
    return any(r.lo < r.hi == 0 for r in same)


def _is_open_at_zero(read: _Read) -> bool:
    integer = [r for r in find_reads(read.rule, "integer") if r.predicate == read.body and r.denied]
    return any(r.hi < Fraction(0) for r in integer)
