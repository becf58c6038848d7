"""The proofs of the derived intervals of a timeline, as columns.

Proofs share parts, so together they are one graph. Its nodes are facts, each with the proof step that derives it. Steps
are found level by level, those of the timeline's intervals first; beyond a limit of nodes proofs go no deeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.language.fact_text import format_fact, format_value
from tidelog.language.syntax import Fact
from tidelog.page.packed_columns import pack_column
from tidelog.page.timeline_data import DERIVED, Spans, Timeline, pack_spans
from tidelog.page.written_durations import find_written_durations, write_durations
from tidelog.page.written_rules import list_written_rules
from tidelog.proofs.proof_tree import format_interval, format_point
from tidelog.timeline.grid import Grid
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.language.syntax import Rule
    from tidelog.proofs.explainer import Explainer
    from tidelog.proofs.proof_step import Condition, ProofStep

#: How a fact is proved: not shown, given, by a rule, or explained in words.
_UNKNOWN, _GIVEN, _RULE, _WORDS = range(4)


@dataclass
class _Graph:
    """The proof graph: facts in the order in which they were found, each with its kind, rule and conditions."""

    numbers: dict[Fact, int] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    kinds: list[int] = field(default_factory=list)
    rules: list[int] = field(default_factory=list)
    words: dict[int, str] = field(default_factory=dict)
    #: The conditions of each fact: a text (or None) and the facts that prove it.
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


def collect_proofs(program: Program, explainer: Explainer, timeline: Timeline, limit: int) -> dict[str, Any]:
    """Collect the proofs of all derived intervals and repetitions, with at most `limit` steps in total."""
    graph = _Graph()
    places = list_written_rules(program).numbers
    roots = {row: graph.number(fact) for row, fact in islice(find_derived(timeline), limit)}
    repeats = [graph.number(fact) for fact in find_repeated(timeline)]
    done = 0
    while done < min(len(graph.facts), limit):
        step = explainer.step(graph.facts[done])
        if step is not None:
            _add_step(graph, done, step, places, timeline.dates)
        done += 1
    return {**_build_columns(graph, roots, timeline, program.time_arguments), "repeats": pack_column(repeats)}


def find_derived(timeline: Timeline) -> Iterator[tuple[int, Fact]]:
    """Find the intervals that are at least partly derived, as facts, with their row numbers."""
    rows = timeline.rows
    to_fact = _fact_reader(timeline)
    for row in np.flatnonzero(timeline.kinds & DERIVED):
        yield int(row), to_fact(int(rows.of[row]), int(rows.lo[row]), int(rows.hi[row]))


def find_repeated(timeline: Timeline) -> Iterator[Fact]:
    """Find the first occurrence of every repetition."""
    to_fact = _fact_reader(timeline)
    for repeat in timeline.repeats:
        yield to_fact(repeat["atom"], int(repeat["lo"]), int(repeat["hi"]))


def _fact_reader(timeline: Timeline) -> Callable[[int, int, int], Fact]:
    """Return the function that makes a fact of an atom's number and two grid positions."""
    grid, firsts = Grid(True, timeline.denominator), timeline.first_args()

    def to_fact(atom: int, lo: int, hi: int) -> Fact:
        name, _ = timeline.predicates[timeline.atoms[atom]]
        args = tuple(timeline.values[c] for c in timeline.args[firsts[atom] : firsts[atom + 1]])
        return Fact(name, args, grid.to_interval(lo, hi))

    return to_fact


def _add_step(graph: _Graph, at: int, step: ProofStep, places: dict[Rule, int], iso: bool) -> None:
    if step.kind == "given":
        graph.kinds[at] = _GIVEN
    elif step.rule is not None:
        graph.kinds[at], graph.rules[at] = _RULE, places[step.rule]
    else:
        graph.kinds[at], graph.words[at] = _WORDS, _describe_step(step, iso)
    written = find_written_durations(step.rule.text or "") if step.rule else {}
    conditions: list[tuple[str | None, list[int]]] = []
    if step.parts:
        conditions.append((None, [graph.number(fact) for fact in step.parts]))
    for condition in step.conditions:
        text = None if condition.kind == "fact" else write_durations(_format_condition(condition, iso), written)
        conditions.append((text, [graph.number(fact) for fact in condition.facts]))
    graph.conditions[at] = conditions


def _describe_step(step: ProofStep, iso: bool) -> str:
    if step.kind == "pieces":
        return f"in {len(step.parts)} pieces"
    if step.kind == "repeats" and step.anchor is not None:
        anchor = format_point(step.anchor, iso)
        if step.every is None:
            return f"nothing changes beyond {anchor}, so this holds as it does here"
        return f"the facts beyond {anchor} repeat every {format_time(step.every)}, so this holds as it does here"
    return "step by step from earlier facts, in more steps than are shown"


def _format_condition(condition: Condition, iso: bool) -> str:
    if condition.kind == "comparison":
        return condition.text
    when = format_interval(condition.when, iso)
    return f"{condition.text} {'at' if condition.when.is_point() else 'throughout'} {when}"


def _build_columns(
    graph: _Graph, roots: dict[int, int], timeline: Timeline, times: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """Build the columns that the page reads. In columns with optional numbers 0 means none, and n + 1 stands for n."""
    atoms = {text: number for number, text in enumerate(timeline.atom_texts())}
    grid = Grid(True, timeline.denominator)
    of, lo, hi = [], [], []
    others: dict[int, str] = {}
    for number, fact in enumerate(graph.facts):
        args = ",".join(map(format_value, fact.args))
        atom = atoms.get(f"{fact.predicate}({args})" if args else fact.predicate, -1)
        pair = grid.to_pair(fact.interval) if atom >= 0 and _is_on_grid(fact, grid) else None
        if pair is None:
            others[number] = format_fact(fact, timeline.dates, times.get(fact.predicate, ()))
        of.append(0 if pair is None else atom + 1)
        lo.append(pair[0] if pair else 0)
        hi.append(pair[1] if pair else 0)
    texts: dict[str, int] = {}
    conditions = [condition for some in graph.conditions for condition in some]
    return {
        "roots": {"row": pack_column(list(roots)), "node": pack_column(list(roots.values()))},
        "nodes": pack_spans(Spans(*(np.array(column, np.int64) for column in (of, lo, hi))), np.array(graph.kinds)),
        "rule": pack_column([rule + 1 for rule in graph.rules]),
        "words": graph.words,
        "others": others,
        "conditions": pack_column(_find_starts(graph.conditions)),
        "text": pack_column([0 if t is None else 1 + texts.setdefault(t, len(texts)) for t, _ in conditions]),
        "below": pack_column(_find_starts([facts for _, facts in conditions])),
        "facts": pack_column([fact for _, facts in conditions for fact in facts]),
        "texts": list(texts),
    }


def _find_starts(parts: list[Any]) -> list[int]:
    """Return where each part begins in the concatenation of all, and where the last one ends."""
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    return starts


def _is_on_grid(fact: Fact, grid: Grid) -> bool:
    ends = (fact.interval.lo, fact.interval.hi)
    return all(isinstance(end, float) or grid.denominator % end.denominator == 0 for end in ends)
