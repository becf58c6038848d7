"""The proofs of the derived intervals of a timeline, as columns.

Proofs share their parts, so that they are one graph: its nodes are facts, each with the step that it follows by. Steps
are found level by level, those of the intervals themselves first; beyond a number of nodes a proof goes no deeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.language.facts import format_fact, format_value
from tidelog.language.syntax import Fact
from tidelog.page.packed import packed
from tidelog.page.timeline import DERIVED, Spans, Timeline, packed_spans
from tidelog.proofs.tree import shown, shown_time
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.language.syntax import Rule
    from tidelog.proofs.explainer import Explainer
    from tidelog.proofs.steps import Condition, Step

#: What the page knows of a fact: that it is given, a rule, or words; or nothing, where its proof is not shown.
_UNKNOWN, _GIVEN, _RULE, _WORDS = range(4)


@dataclass
class _Graph:
    """Facts in the order in which they were met; for each whether it is given, its rule, and its conditions."""

    numbers: dict[Fact, int] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    rules: list[int] = field(default_factory=list)
    words: dict[int, str] = field(default_factory=dict)
    #: For each fact: texts (or None) and the facts below them.
    conditions: list[list[tuple[str | None, list[int]]]] = field(default_factory=list)

    def number(self, fact: Fact) -> int:
        known = self.numbers.get(fact)
        if known is None:
            known = self.numbers[fact] = len(self.facts)
            self.facts.append(fact)
            self.kinds.append(_UNKNOWN)
            self.rules.append(-1)
            self.conditions.append([])
        return known


def proofs(program: Program, explainer: Explainer, timeline: Timeline, limit: int) -> dict[str, Any]:
    """The proofs of all derived intervals and of what repeats, with at most `limit` steps in all."""
    graph = _Graph()
    places = {rule: number for number, rule in enumerate(program.rules)}
    roots = {row: graph.number(fact) for row, fact in islice(derived(timeline), limit)}
    again = [graph.number(fact) for fact in repeated(timeline)]
    done = 0
    while done < min(len(graph.facts), limit):
        step = explainer.step(graph.facts[done])
        if step is not None:
            _add(graph, done, step, places, timeline.dates)
        done += 1
    return {**_columns(graph, roots, timeline), "repeats": packed(again)}


def derived(timeline: Timeline) -> Iterator[tuple[int, Fact]]:
    """The intervals that do not only come from the data, as facts, with their numbers."""
    rows = timeline.rows
    fact = _facts(timeline)
    for row in np.flatnonzero(timeline.kinds & DERIVED):
        yield int(row), fact(int(rows.of[row]), int(rows.lo[row]), int(rows.hi[row]))


def repeated(timeline: Timeline) -> Iterator[Fact]:
    """The first turn of everything that repeats."""
    fact = _facts(timeline)
    for repeat in timeline.repeats:
        yield fact(repeat["atom"], int(repeat["lo"]), int(repeat["hi"]))


def _facts(timeline: Timeline) -> Callable[[int, int, int], Fact]:
    """How an atom and its ends become a fact."""
    grid, firsts = Grid(True, timeline.denominator), timeline.first_args()

    def fact(atom: int, lo: int, hi: int) -> Fact:
        name, _ = timeline.predicates[timeline.atoms[atom]]
        args = tuple(timeline.values[c] for c in timeline.args[firsts[atom] : firsts[atom + 1]])
        return Fact(name, args, grid.interval(lo, hi))

    return fact


def _add(graph: _Graph, at: int, step: Step, places: dict[Rule, int], iso: bool) -> None:
    if step.kind == "given":
        graph.kinds[at] = _GIVEN
    elif step.rule is not None:
        graph.kinds[at], graph.rules[at] = _RULE, places[step.rule]
    else:
        graph.kinds[at], graph.words[at] = _WORDS, _in_words(step, iso)
    found: list[tuple[str | None, list[int]]] = []
    if step.parts:
        found.append((None, [graph.number(fact) for fact in step.parts]))
    for condition in step.conditions:
        text = None if condition.kind == "fact" else _condition(condition, iso)
        found.append((text, [graph.number(fact) for fact in condition.facts]))
    graph.conditions[at] = found


def _in_words(step: Step, iso: bool) -> str:
    if step.kind == "pieces":
        return f"in {len(step.parts)} pieces"
    if step.kind == "repeats" and step.anchor is not None:
        anchor = shown_time(step.anchor, iso)
        if step.every is None:
            return f"nothing changes any more beyond {anchor}: it is as here"
        return f"what holds beyond {anchor} comes again every {format_time(step.every)}: it is as here"
    return "step by step from earlier facts, in more steps than are shown"


def _condition(condition: Condition, iso: bool) -> str:
    if condition.kind == "comparison":
        return condition.text
    when = shown(condition.when, iso)
    return f"{condition.text} {'at' if condition.when.is_point() else 'throughout'} {when}"


def _columns(graph: _Graph, roots: dict[int, int], timeline: Timeline) -> dict[str, Any]:
    """Columns; where something may be missing, numbers are one higher, and 0 says so."""
    atoms = {text: number for number, text in enumerate(timeline.atom_texts())}
    grid = Grid(True, timeline.denominator)
    of, lo, hi = [], [], []
    others: dict[int, str] = {}
    for number, fact in enumerate(graph.facts):
        args = ",".join(map(format_value, fact.args))
        atom = atoms.get(f"{fact.predicate}({args})" if args else fact.predicate, -1)
        pair = grid.pair(fact.interval) if atom >= 0 and _on_grid(fact, grid) else None
        if pair is None:
            others[number] = format_fact(fact, timeline.dates)
        of.append(0 if pair is None else atom + 1)
        lo.append(pair[0] if pair else 0)
        hi.append(pair[1] if pair else 0)
    texts: dict[str, int] = {}
    conditions = [condition for some in graph.conditions for condition in some]
    return {
        "roots": {"row": packed(list(roots)), "node": packed(list(roots.values()))},
        "nodes": packed_spans(Spans(*(np.array(column, np.int64) for column in (of, lo, hi))), np.array(graph.kinds)),
        "rule": packed([rule + 1 for rule in graph.rules]),
        "words": graph.words,
        "others": others,
        "conditions": packed(_firsts(graph.conditions)),
        "text": packed([0 if t is None else 1 + texts.setdefault(t, len(texts)) for t, _ in conditions]),
        "below": packed(_firsts([facts for _, facts in conditions])),
        "facts": packed([fact for _, facts in conditions for fact in facts]),
        "texts": list(texts),
    }


def _firsts(parts: list[Any]) -> list[int]:
    """Where each part begins when all of them stand in one list, and where the last one ends."""
    firsts = [0]
    for part in parts:
        firsts.append(firsts[-1] + len(part))
    return firsts


def _on_grid(fact: Fact, grid: Grid) -> bool:
    ends = (fact.interval.lo, fact.interval.hi)
    return all(isinstance(end, float) or grid.denominator % end.denominator == 0 for end in ends)
