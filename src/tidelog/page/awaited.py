"""Possible answers on a timeline: what may still become true, and what it waits for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.hypothetical.compiled import GroundFact, outside
from tidelog.hypothetical.online import Hypotheses, Rejected, moments
from tidelog.language.facts import format_fact
from tidelog.language.syntax import Constant, Fact, TemporalAtom, Value, Variable
from tidelog.page.timeline import AWAITED, Spans, Timeline
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.hypothetical.entries import Moment, SupportedAnswer
    from tidelog.language.program import Program


@dataclass(frozen=True)
class Arrived:
    """What came in time, and what is possible after the last of it."""

    data: Dataset
    query: TemporalAtom
    possible: Sequence[SupportedAnswer]
    tau: int
    rejected: int


def arrived(
    program: Program,
    query: str,
    arrivals: Callable[[Hypotheses], Iterable[tuple[int, GroundFact]]],
    *,
    until: int | None = None,
    **options: Any,
) -> Arrived:
    """Follow arrivals, which are read with the session that they are for; `options` go to `Hypotheses`."""
    rejected: Counter[GroundFact] = Counter()
    came: Counter[GroundFact] = Counter()

    def note(found: Rejected) -> None:
        rejected[found.fact] += 1

    session = Hypotheses(program, query, on_rejected=note, **options)

    def noted() -> Iterator[tuple[int, GroundFact]]:
        for arrival, fact in arrivals(session):
            if until is None or arrival <= until:
                came[fact] += 1
            yield arrival, fact

    moment: deque[Moment] = deque(moments(session, noted(), until), maxlen=1)
    last = moment[0] if moment else None
    rigid = frozenset(dict(program.temporal.rigid)) if program.temporal else frozenset()
    facts = [_fact(fact, rigid) for fact in came - rejected]
    possible = last.hypothetical if last else ()
    return Arrived(Dataset.from_facts(facts), session.query.atom, possible, last.tau if last else 0, rejected.total())


def _fact(fact: GroundFact, rigid: frozenset[str]) -> Fact:
    predicate, args, time = fact
    interval = Interval.always() if predicate in rigid else Interval.point(Fraction(time))
    return Fact(predicate, tuple(map(outside, args)), interval)


def with_awaited(timeline: Timeline, found: Arrived) -> tuple[Timeline, list[dict[str, Any]]]:
    """The timeline with a row for every possible answer whose time is known; and all answers with what they await."""
    entries = [(entry, *_placed(found.query, entry)) for entry in found.possible]
    build = _Adding(timeline)
    rows: dict[tuple[int, int], None] = {}
    places: list[tuple[int, int] | None] = []
    for _, predicate, args, time in entries:
        place = None
        if time is not None:
            place = build.atom(predicate, args), 2 * time * timeline.denominator
            rows[place] = None
        places.append(place)
    made, numbers = build.done(list(rows))
    shown = [
        {
            "row": None if place is None else numbers[place],
            "text": _text(predicate, args, time),
            "evidence": list(entry.evidence),
            "hypotheses": list(entry.hypotheses),
            "decided_by": None if entry.decided_by is None else str(entry.decided_by),
            "confidence": entry.confidence,
            "conditions": list(entry.conditions),
        }
        for (entry, predicate, args, time), place in zip(entries, places, strict=True)
    ]
    return made, shown


def _text(predicate: str, args: tuple[Value, ...], time: int | None) -> str:
    fact = format_fact(Fact(predicate, args, Interval.point(Fraction(time or 0))))
    return fact if time is not None else f"{fact.rpartition('@')[0]}, at a time that is open"


def _placed(query: TemporalAtom, entry: SupportedAnswer) -> tuple[str, tuple[Value, ...], int | None]:
    """The query's atom with what is known of it; open variables stay as they are called."""

    def value(term: Constant | Variable) -> Value:
        if isinstance(term, Constant):
            return term.value
        bound = entry.bindings.get(term.name, term.name)
        return Fraction(bound) if isinstance(bound, int) else bound

    time = query.time
    at: int | None = None
    if time is not None:
        known = 0 if time.variable is None else entry.bindings.get(time.variable)
        at = known + time.offset if isinstance(known, int) else None
    return query.predicate, tuple(value(term) for term in query.args), at


class _Adding:
    """Atoms and rows that are added to a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.old = timeline
        self.predicates = list(timeline.predicates)
        self.values = list(timeline.values)
        self.atoms = timeline.atoms.tolist()
        firsts = timeline.first_args()
        self.args = [timeline.args[a:b].tolist() for a, b in pairwise(firsts)]
        self.numbers = {value: number for number, value in enumerate(self.values)}
        self.known = {(p, *args): number for number, (p, args) in enumerate(zip(self.atoms, self.args, strict=True))}

    def atom(self, predicate: str, args: tuple[Value, ...]) -> int:
        name = (predicate, len(args))
        if name not in self.predicates:
            self.predicates.append(name)
        ids = []
        for value in args:
            if value not in self.numbers:
                self.numbers[value] = len(self.values)
                self.values.append(value)
            ids.append(self.numbers[value])
        key = (self.predicates.index(name), *ids)
        if key not in self.known:
            self.known[key] = len(self.atoms)
            self.atoms.append(key[0])
            self.args.append(ids)
        return self.known[key]

    def done(self, rows: list[tuple[int, int]]) -> tuple[Timeline, dict[tuple[int, int], int]]:
        """The new timeline, atoms of a predicate side by side, and the number of every row that was added."""
        old = self.old
        order = sorted(range(len(self.atoms)), key=lambda atom: self.atoms[atom])
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        of = np.append(place[old.rows.of], place[[atom for atom, _ in rows]] if rows else [])
        at = np.array([position for _, position in rows], np.int64)
        lo, hi = np.append(old.rows.lo, at), np.append(old.rows.hi, at)
        kinds = np.append(old.kinds, np.full(len(rows), AWAITED))
        sorting = np.lexsort((lo, of))
        moved = np.empty(len(of), np.int64)
        moved[sorting] = np.arange(len(of))
        of = of.astype(np.int64)
        made = replace(
            old,
            predicates=self.predicates,
            values=self.values,
            atoms=np.array([self.atoms[atom] for atom in order], np.int64),
            args=np.array([id for atom in order for id in self.args[atom]], np.int64),
            rows=Spans(of[sorting], lo[sorting], hi[sorting]),
            kinds=kinds[sorting],
            given=replace(old.given, of=moved[old.given.of]),
            repeats=[{**repeat, "atom": int(place[repeat["atom"]])} for repeat in old.repeats],
        )
        first = len(old.rows)
        return made, {row: int(moved[first + number]) for number, row in enumerate(rows)}
