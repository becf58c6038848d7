"""Minimal support: where an answer has several sets of supporting facts, decide which are minimal, and which to show.

A set of facts is not minimal if some instance of a schema has the same answer and needs only some of these facts. Open
hypotheses are compared when they are shown: those that await fewest facts win, and among these, those with the least
evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidelog.hypothetical.comparison_constraints import is_satisfiable
from tidelog.hypothetical.compiled_schemas import Binding, CompiledSchema
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.ground_facts import Scalar
from tidelog.hypothetical.schemas import (
    Schema,
    apply_to_atom,
    apply_to_comparison,
    apply_to_schema,
    apply_to_term,
    term_variables,
)
from tidelog.hypothetical.subsumption import PremiseIndex, find_instances, may_compete, subsumes
from tidelog.hypothetical.unification import compose_unifier, unify
from tidelog.language.syntax import TemporalAtom


@dataclass(frozen=True, slots=True)
class HypothesisView:
    """A hypothesis as atoms, split into those that have arrived and those that are awaited."""

    whole: Schema
    evidence: frozenset[TemporalAtom]
    hypotheses: tuple[TemporalAtom, ...]


class MinimalityFilter:
    """Selects minimal hypotheses, using what is known of the schemas before any data."""

    def __init__(self, schemas: Sequence[CompiledSchema], delays: Delays, *, compare: bool = True) -> None:
        """Without `compare`, no hypotheses are compared."""
        self._schemas = schemas
        self.delays = delays
        self._schemas_compete = compare and may_compete([schema.schema for schema in schemas])
        #: Whether some answer may have more than one support.
        self.can_compete = compare and (
            len(schemas) > 1 or self._schemas_compete or any(_has_unasked_variable(schema) for schema in schemas)
        )
        self._index = PremiseIndex()
        for schema in schemas:
            self._index.add(schema.number, schema.schema)
        self._time_position, self._reach = _find_reach(schemas, delays)

    def last_deadline(self, values: Sequence[Scalar | None]) -> int | None:
        """Return the last moment at which a fact for an answer may arrive, or None if no time is known."""
        if self._time_position is None:
            return None
        start = values[self._time_position]
        return start + self._reach if isinstance(start, int) else None

    def has_smaller_support(self, schema: CompiledSchema, binding: Binding) -> bool:
        """Return whether fewer facts than those of a hypothesis are enough for its answer.

        Return False while a premise has open variables."""
        if not self._schemas_compete or any(binding[i] is None for premise in schema.premises for i in premise.slots):
            return False
        return self._has_smaller_instance(apply_to_schema(schema.schema, schema.substitution(binding)))

    def _has_smaller_instance(self, whole: Schema) -> bool:
        return any(
            len(indices) < len(whole.premises)
            for number in self._index.candidates(whole.premises)
            for _, indices in find_instances(self._schemas[number].schema, whole)
        )

    def build_view(self, schema: CompiledSchema, mask: int, binding: Binding) -> HypothesisView:
        """Return a hypothesis as atoms."""
        by = schema.substitution(binding)
        atoms = [apply_to_atom(atom, by) for atom in schema.schema.premises]
        evidence = frozenset(atom for place, atom in enumerate(atoms) if mask >> place & 1)
        awaited = dict.fromkeys(atom for place, atom in enumerate(atoms) if not mask >> place & 1)
        answer = tuple(apply_to_term(term, by) for term in schema.schema.answer)
        comparisons = tuple(apply_to_comparison(comparison, by) for comparison in schema.schema.comparisons)
        return HypothesisView(Schema(answer, tuple(dict.fromkeys(atoms)), comparisons), evidence, tuple(awaited))

    def select_minimal(self, views: Sequence[HypothesisView]) -> Sequence[HypothesisView]:
        """Return the minimal hypotheses, one of those that differ only in names."""
        if not self.can_compete:
            return views
        views = [
            view
            for view in _add_factors(views)
            if not (self._schemas_compete and self._has_smaller_instance(view.whole))
        ]
        groups: dict[object, list[HypothesisView]] = {}
        general: list[HypothesisView] = []
        for view in views:
            (groups.setdefault(view.whole.answer, []) if _is_ground(view) else general).append(view)
        # A hypothesis that is dropped because others await less must not displace its own special cases.
        least = _keep_fewest_awaited(general, general)
        kept = {id(view) for view in _keep_least_evidence(least, least)}
        for group in groups.values():
            among = _keep_fewest_awaited(group, [*group, *general])
            kept |= {id(view) for view in _keep_least_evidence(among, [*among, *least])}
        return [view for view in views if id(view) in kept]


def _add_factors(views: Iterable[HypothesisView]) -> list[HypothesisView]:
    """Return all hypotheses and their factors: those that arise when awaited atoms are unified.

    A factor may be minimal although the general hypothesis is not."""
    found = dict.fromkeys(views)
    pending = list(found)
    while pending:
        view = pending.pop()
        for i, a in enumerate(view.hypotheses):
            for b in view.hypotheses[:i]:
                steps = unify(a, b)
                if steps is not None:
                    by = compose_unifier(steps)
                    whole = apply_to_schema(view.whole, by)
                    awaited = apply_to_schema(Schema((), view.hypotheses), by).premises
                    factor = HypothesisView(whole, view.evidence, awaited)
                    if factor not in found and is_satisfiable(whole.comparisons):
                        found[factor] = None
                        pending.append(factor)
    return list(found)


def _keep_fewest_awaited(views: Iterable[HypothesisView], among: Iterable[HypothesisView]) -> list[HypothesisView]:
    """Return the hypotheses that do not await more facts than others with the same answer."""
    competitors = list({(view.whole.answer, frozenset(view.hypotheses)): _open_part(view) for view in among}.values())
    has_smaller: dict[Schema, bool] = {}
    kept: list[HypothesisView] = []
    for view in views:
        part = _open_part(view)
        if part not in has_smaller:
            has_smaller[part] = any(
                len(indices) < len(part.premises) for other in competitors for _, indices in find_instances(other, part)
            )
        if not has_smaller[part]:
            kept.append(view)
    return kept


def _keep_least_evidence(views: Iterable[HypothesisView], among: Sequence[HypothesisView]) -> Iterator[HypothesisView]:
    """Yield the hypotheses that have no more evidence than others that await the same facts.

    Of those that differ only in names the first is kept, and of special cases the most general."""
    order = {id(view): place for place, view in enumerate(among)}
    by_part: dict[Schema, list[HypothesisView]] = {}
    for view in among:
        by_part.setdefault(_open_part(view), []).append(view)
    competitors: dict[Schema, list[tuple[bool, HypothesisView]]] = {}
    for view in views:
        part = _open_part(view)
        if part not in competitors:
            competitors[part] = [
                (subsumes(part, other), member)
                for other, members in by_part.items()
                if subsumes(other, part)
                for member in members
            ]
        if not any(
            other.evidence < view.evidence
            or (other.evidence == view.evidence and (not mutual or order[id(other)] < order[id(view)]))
            for mutual, other in competitors[part]
        ):
            yield view


def _open_part(view: HypothesisView) -> Schema:
    """Return the awaited atoms of a hypothesis as a schema."""
    return Schema(view.whole.answer, view.hypotheses, view.whole.comparisons)


def _is_ground(view: HypothesisView) -> bool:
    return not any(name for term in view.whole.answer for name in term_variables(term))


def _has_unasked_variable(schema: CompiledSchema) -> bool:
    """Return whether some variable is not part of the answer."""
    asked = {part[0] for part in schema.answer if isinstance(part, tuple)}
    return any(slot not in asked for premise in schema.premises for slot in premise.slots)


def _find_reach(schemas: Sequence[CompiledSchema], delays: Delays) -> tuple[int | None, int]:
    """Return the position in answers of a time that all premises are tied to, and how long after it the last fact may
    arrive; the position is None if there is no such time."""
    width = len(schemas[0].answer) if schemas else 0
    for position in range(width):
        reach = 0
        for schema in schemas:
            asked = schema.answer[position]
            if not isinstance(asked, tuple) or any(premise.time_slot != asked[0] for premise in schema.premises):
                break
            for premise in schema.premises:
                open_args = tuple(None for _ in premise.arg_slots)
                reach = max(reach, premise.offset - asked[1] + delays.of(premise.predicate, open_args))
        else:
            return position, reach
    return None, 0
