"""Where an answer can be had in more than one way: which ways are minimal, and which are shown.

A set of facts is outdone if some instance of a schema has the same answer and needs only some of these facts. Open
hypotheses are compared where they are shown: only those that await least count, and of these the ones whose evidence
is least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidelog.hypothetical.comparisons import satisfiable
from tidelog.hypothetical.compiled import Binding, Compiled, Inside
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.schemas import Schema, applied, apply, apply_atom, apply_comparison, term_names
from tidelog.hypothetical.subsumption import PremiseIndex, instances, may_compete, subsumes
from tidelog.hypothetical.unification import solved, unify
from tidelog.language.syntax import TemporalAtom


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
        atoms = [apply_atom(atom, by) for atom in schema.schema.premises]
        evidence = frozenset(atom for place, atom in enumerate(atoms) if mask >> place & 1)
        awaited = dict.fromkeys(atom for place, atom in enumerate(atoms) if not mask >> place & 1)
        answer = tuple(apply(term, by) for term in schema.schema.answer)
        comparisons = tuple(apply_comparison(comparison, by) for comparison in schema.schema.comparisons)
        return View(Schema(answer, tuple(dict.fromkeys(atoms)), comparisons), evidence, tuple(awaited))

    def shown(self, views: Sequence[View]) -> Sequence[View]:
        """The hypotheses that are minimal, each that differs once."""
        if not self.possible:
            return views
        views = [view for view in _with_factors(views) if not (self._competing and self._needs_less(view.whole))]
        groups: dict[object, list[View]] = {}
        general: list[View] = []
        for view in views:
            (groups.setdefault(view.whole.answer, []) if _is_ground(view) else general).append(view)
        # What is hidden since others await less must not hide what is a special case of it.
        least = _least(general, general)
        kept = {id(view) for view in _first(least, least)}
        for group in groups.values():
            among = _least(group, [*group, *general])
            kept |= {id(view) for view in _first(among, [*among, *least])}
        return [view for view in views if id(view) in kept]


def _with_factors(views: Iterable[View]) -> list[View]:
    """All hypotheses, and those that they become where awaited atoms are one and the same. Such a special case may be
    minimal where the general one is not."""
    found = dict.fromkeys(views)
    waiting = list(found)
    while waiting:
        view = waiting.pop()
        for i, a in enumerate(view.hypotheses):
            for b in view.hypotheses[:i]:
                steps = unify(a, b)
                if steps is not None:
                    by = solved(steps)
                    whole = applied(view.whole, by)
                    awaited = applied(Schema((), view.hypotheses), by).premises
                    factor = View(whole, view.evidence, awaited)
                    if factor not in found and satisfiable(whole.comparisons):
                        found[factor] = None
                        waiting.append(factor)
    return list(found)


def _least(views: Iterable[View], among: Iterable[View]) -> list[View]:
    """Those of the hypotheses that await no more than others with the same answer."""
    rivals = list({(view.whole.answer, frozenset(view.hypotheses)): _open_part(view) for view in among}.values())
    outdone: dict[Schema, bool] = {}
    kept: list[View] = []
    for view in views:
        part = _open_part(view)
        if part not in outdone:
            outdone[part] = any(
                len(places) < len(part.premises) for rival in rivals for _, places in instances(rival, part)
            )
        if not outdone[part]:
            kept.append(view)
    return kept


def _first(views: Iterable[View], among: Sequence[View]) -> Iterator[View]:
    """Those of the hypotheses that have no more evidence than others that await the same, the first of those that are
    the same but for names, and the most general."""
    order = {id(view): place for place, view in enumerate(among)}
    by_part: dict[Schema, list[View]] = {}
    for view in among:
        by_part.setdefault(_open_part(view), []).append(view)
    rivals: dict[Schema, list[tuple[bool, View]]] = {}
    for view in views:
        part = _open_part(view)
        if part not in rivals:
            rivals[part] = [
                (subsumes(part, other), member)
                for other, members in by_part.items()
                if subsumes(other, part)
                for member in members
            ]
        if not any(
            other.evidence < view.evidence
            or (other.evidence == view.evidence and (not mutual or order[id(other)] < order[id(view)]))
            for mutual, other in rivals[part]
        ):
            yield view


def _open_part(view: View) -> Schema:
    return Schema(view.whole.answer, view.hypotheses, view.whole.comparisons)


def _is_ground(view: View) -> bool:
    return not any(name for term in view.whole.answer for name in term_names(term))


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
