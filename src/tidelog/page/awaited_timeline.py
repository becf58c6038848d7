"""Possible answers on a timeline: those that may still become true, and the facts that each awaits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.hypothetical.ground_facts import GroundFact, to_value
from tidelog.hypothetical.moments import moments
from tidelog.hypothetical.session import Hypotheses
from tidelog.hypothetical.session_options import HypothesisOptions, Rejected
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Constant, Fact, TemporalAtom, Value, Variable
from tidelog.page.timeline_data import AWAITED, Spans, Timeline
from tidelog.timeline.interval import Interval, TimelineName

if TYPE_CHECKING:
    from tidelog.hypothetical.supported_answers import Moment, SupportedAnswer
    from tidelog.language.program import Program


@dataclass(frozen=True)
class ArrivalOutcome:
    """The facts that arrived in time, and the answers that are possible after the last arrival."""

    data: Dataset
    query: TemporalAtom
    possible: Sequence[SupportedAnswer]
    tau: int
    rejected: int


def follow_arrivals(
    program: Program,
    query: str,
    arrivals: Callable[[Hypotheses], Iterable[tuple[int, GroundFact]]],
    *,
    until: int | None = None,
    delay: Iterable[str] = (),
    background: Dataset | None = None,
    timeline: TimelineName | None = None,
) -> ArrivalOutcome:
    """Follow arrivals to the end, or `until` a time; `arrivals` reads them for the session."""
    rejected: Counter[GroundFact] = Counter()
    received: Counter[GroundFact] = Counter()

    def count_rejected(rejection: Rejected) -> None:
        rejected[rejection.fact] += 1

    options = HypothesisOptions(on_rejected=count_rejected)
    session = Hypotheses(program, query, delay=delay, background=background, timeline=timeline, options=options)

    def count_received() -> Iterator[tuple[int, GroundFact]]:
        for arrival, fact in arrivals(session):
            if until is None or arrival <= until:
                received[fact] += 1
            yield arrival, fact

    moment: deque[Moment] = deque(moments(session, count_received(), until), maxlen=1)
    last = moment[0] if moment else None
    rigid = frozenset(dict(program.temporal.rigid)) if program.temporal else frozenset()
    facts = [_to_fact(fact, rigid) for fact in received - rejected]
    possible = last.hypothetical if last else ()
    return ArrivalOutcome(
        Dataset.from_facts(facts), session.query.atom, possible, last.tau if last else 0, rejected.total()
    )


def _to_fact(fact: GroundFact, rigid: frozenset[str]) -> Fact:
    predicate, args, time = fact
    interval = Interval.always() if predicate in rigid else Interval.point(Fraction(time))
    return Fact(predicate, tuple(map(to_value, args)), interval)


def add_awaited(timeline: Timeline, found: ArrivalOutcome) -> tuple[Timeline, list[dict[str, Any]]]:
    """Add a row for every possible answer whose time is known; also return all possible answers as JSON objects."""
    entries = [(entry, *_bind_query(found.query, entry)) for entry in found.possible]
    extension = _TimelineExtension(timeline)
    rows: dict[tuple[int, int], None] = {}
    places: list[tuple[int, int] | None] = []
    for _, predicate, args, time in entries:
        place = None
        if time is not None:
            place = extension.add_atom(predicate, args), 2 * time * timeline.denominator
            rows[place] = None
        places.append(place)
    extended, numbers = extension.finish(list(rows))
    awaited = [
        {
            "row": None if place is None else numbers[place],
            "text": _format_answer(predicate, args, time),
            "evidence": list(entry.evidence),
            "hypotheses": list(entry.hypotheses),
            "decided_by": None if entry.decided_by is None else str(entry.decided_by),
            "confidence": entry.confidence,
            "conditions": list(entry.conditions),
        }
        for (entry, predicate, args, time), place in zip(entries, places, strict=True)
    ]
    return extended, awaited


def _format_answer(predicate: str, args: tuple[Value, ...], time: int | None) -> str:
    fact = format_fact(Fact(predicate, args, Interval.point(Fraction(time or 0))))
    return fact if time is not None else f"{fact.rpartition('@')[0]}, at a time that is open"


def _bind_query(query: TemporalAtom, entry: SupportedAnswer) -> tuple[str, tuple[Value, ...], int | None]:
    """Bind the query's atom: return predicate, arguments and time.

    Open variables stay as names, an open time is None.
    """

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


class _TimelineExtension:
    """Adds atoms and rows to a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self.old = timeline
        self.predicates = list(timeline.predicates)
        self.values = list(timeline.values)
        self.atoms = timeline.atoms.tolist()
        firsts = timeline.first_args()
        self.args = [timeline.args[a:b].tolist() for a, b in pairwise(firsts)]
        self.numbers = {value: number for number, value in enumerate(self.values)}
        self.known = {(p, *args): number for number, (p, args) in enumerate(zip(self.atoms, self.args, strict=True))}

    def add_atom(self, predicate: str, args: tuple[Value, ...]) -> int:
        """Return the number of an atom; add the atom if it is new."""
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

    def finish(self, rows: list[tuple[int, int]]) -> tuple[Timeline, dict[tuple[int, int], int]]:
        """Build the new timeline, sorted like any other; also return the number of every row that was added."""
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
        timeline = replace(
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
        return timeline, {row: int(moved[first + number]) for number, row in enumerate(rows)}
