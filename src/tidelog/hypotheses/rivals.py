"""Where an answer can be had in more than one way: which ways are minimal, and which are shown.

A set of facts is outdone if some instance of a schema has the same answer and needs only some of these facts. Open
hypotheses are compared where they are shown: only those that await least count, and of these the ones whose evidence
is least.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidelog.hypotheses.compiled import Binding, Compiled, Inside
from tidelog.hypotheses.delays import Delays
from tidelog.hypotheses.schemas import Schema, applied
from tidelog.hypotheses.subsumption import PremiseIndex, instances, may_compete
from tidelog.language.syntax import TemporalAtom, TimeTerm


@dataclass(frozen=True, slots=True)
class View:
    """A hypothesis as atoms, split into what has come and what is awaited."""

    whole: Schema
    evidence: frozenset[TemporalAtom]
    hypotheses: tuple[TemporalAtom, ...]


class Rivals:
    """What is known before any data of how the schemas of a query compete."""

    def __init__(self, schemas: Sequence[Compiled], delays: Delays) -> None:
        self._schemas = schemas
        self._competing = may_compete([schema.schema for schema in schemas])
        #: Whether some answer can be had in more than one way.
        self.possible = len(schemas) > 1 or self._competing or any(_has_hidden(schema) for schema in schemas)
        self._index = PremiseIndex()
        for schema in schemas:
            self._index.add(schema.number, schema.schema)
        self._clock, self._reach = _reach(schemas, delays)

    def last_deadline(self, theta: Sequence[Inside | None]) -> int | None:
        """The last moment at which a fact for this answer may come; None where no time is known."""
        if self._clock is None:
            return None
        start = theta[self._clock]
        return start + self._reach if isinstance(start, int) else None

    def outdone(self, schema: Compiled, binding: Binding) -> bool:
        """Whether the facts of a hypothesis whose premises are all known are more than its answer needs."""
        if not self._competing or any(binding[i] is None for premise in schema.premises for i in premise.places):
            return False
        return self._needs_less(applied(schema.schema, schema.substitution(binding)))

    def _needs_less(self, whole: Schema) -> bool:
        return any(
            len(places) < len(whole.premises)
            for number in self._index.candidates(whole.premises)
            for _, places in instances(self._schemas[number].schema, whole)
        )

    def view(self, schema: Compiled, mask: int, binding: Binding) -> View:
        by = schema.substitution(binding)
        atoms = [applied(Schema((), (atom,)), by).premises[0] for atom in schema.schema.premises]
        evidence = frozenset(atom for place, atom in enumerate(atoms) if mask >> place & 1)
        awaited = dict.fromkeys(atom for place, atom in enumerate(atoms) if not mask >> place & 1)
        return View(applied(schema.schema, by), evidence, tuple(awaited))

    def shown(self, views: Sequence[View]) -> list[int]:
        """The places of the hypotheses that are minimal, each that differs once."""
        if not self.possible:
            return list(range(len(views)))
        groups: dict[object, list[int]] = {}
        general: list[int] = []
        for place, view in enumerate(views):
            if self._competing and self._needs_less(view.whole):
                continue
            if _is_ground(view):
                groups.setdefault(view.whole.answer, []).append(place)
            else:
                general.append(place)
        kept: list[int] = []
        for group in groups.values():
            kept += _least(views, group, [*group, *general])
        return sorted(kept + _least(views, general, general))


def _least(views: Sequence[View], places: Iterable[int], among: Sequence[int]) -> list[int]:
    """Those of the places that no other hypothesis makes needless."""
    by_awaited: dict[tuple[object, frozenset[TemporalAtom]], list[int]] = {}
    for place in among:
        view = views[place]
        by_awaited.setdefault((view.whole.answer, frozenset(view.hypotheses)), []).append(place)
    rivals: dict[tuple[object, frozenset[TemporalAtom]], tuple[bool, list[int]]] = {}
    kept: list[int] = []
    for place in places:
        view = views[place]
        key = (view.whole.answer, frozenset(view.hypotheses))
        if key not in rivals:
            rivals[key] = _rivals(views, view, by_awaited)
        outdone, same = rivals[key]
        if not outdone and not any(_precedes(views, other, place) for other in same):
            kept.append(place)
    return kept


def _rivals(
    views: Sequence[View], view: View, groups: dict[tuple[object, frozenset[TemporalAtom]], list[int]]
) -> tuple[bool, list[int]]:
    """Whether other hypotheses with the same answer await less, and those that await the same."""
    special = Schema(view.whole.answer, view.hypotheses, view.whole.comparisons)
    same: list[int] = []
    for members in groups.values():
        first = views[members[0]]
        general = Schema(first.whole.answer, first.hypotheses, first.whole.comparisons)
        sizes = {len(places) for _, places in instances(general, special)}
        if any(size < len(special.premises) for size in sizes):
            return True, []
        if sizes:
            same += members
    return False, same


def _precedes(views: Sequence[View], other: int, place: int) -> bool:
    """Whether another hypothesis that awaits no more is the one to show: it has less evidence, or the same and comes
    first or is more general."""
    if other == place:
        return False
    a, b = views[other], views[place]
    if a.evidence != b.evidence:
        return a.evidence < b.evidence
    if other < place:
        return True
    back = Schema(a.whole.answer, a.hypotheses, a.whole.comparisons)
    return not any(True for _ in instances(Schema(b.whole.answer, b.hypotheses, b.whole.comparisons), back))


def _is_ground(view: View) -> bool:
    return not any(
        term.variable is not None if isinstance(term, TimeTerm) else hasattr(term, "name") for term in view.whole.answer
    )


def _has_hidden(schema: Compiled) -> bool:
    """Whether some variable is not part of the answer."""
    asked = {part[0] for part in schema.answer if isinstance(part, tuple)}
    return any(place not in asked for premise in schema.premises for place in premise.places)


def _reach(schemas: Sequence[Compiled], delays: Delays) -> tuple[int | None, int]:
    """Which part of an answer is a time that all premises of all schemas are tied to, and how long after it the last
    fact may come; None if there is no such time."""
    width = len(schemas[0].answer) if schemas else 0
    for part in range(width):
        reach = 0
        for schema in schemas:
            asked = schema.answer[part]
            if not isinstance(asked, tuple) or any(premise.clock != asked[0] for premise in schema.premises):
                break
            for premise in schema.premises:
                open_args = tuple(None for _ in premise.slots)
                reach = max(reach, premise.offset - asked[1] + delays.of(premise.predicate, open_args))
        else:
            return part, reach
    return None, 0
