"""Build the answers that users see from hypotheses: their bindings, evidence, awaited facts and deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tidelog.hypothetical.answer_templates import build_template
from tidelog.hypothetical.compiled_schemas import CompiledSchema
from tidelog.hypothetical.confidence import Confidence
from tidelog.hypothetical.general_hypotheses import OpenHypothesis
from tidelog.hypothetical.ground_facts import AwaitedFact, Scalar, to_scalar
from tidelog.hypothetical.minimality import HypothesisView, MinimalityFilter
from tidelog.hypothetical.schemas import Query
from tidelog.hypothetical.supported_answers import SupportedAnswer, fact_sort_key, format_atom, format_conditions
from tidelog.hypothetical.unsupported_answers import find_earliest_times
from tidelog.language.syntax import Constant, TemporalAtom, TimeTerm


class AnswerBuilder:
    """Builds the answers of one session."""

    def __init__(
        self,
        query: Query,
        schemas: Sequence[CompiledSchema],
        minimality: MinimalityFilter,
        confidence: Confidence | None,
        show: Callable[[TemporalAtom], str],
    ) -> None:
        self._query, self._compiled, self._minimality, self._show = query, schemas, minimality, show
        self._delays, self._confidence = minimality.delays, confidence
        is_plain = show is format_atom and confidence is None and not minimality.can_compete
        #: By schema: how to build its answers quickly, if that is possible.
        self._templates = [
            build_template(schema, query.variables, self._delays) if is_plain else None for schema in schemas
        ]

    def build_minimal(self, states: Iterable[OpenHypothesis], tau: int) -> list[SupportedAnswer]:
        """Build the possible answers at `tau` of the hypotheses that are minimal among the given ones."""
        if not self._minimality.can_compete:
            return [self._build_possible(state, tau) for state in states]
        views = [self._minimality.build_view(self._compiled[n], mask, binding) for n, mask, binding in states]
        return [self._build_answer(view, tau) for view in self._minimality.select_minimal(views)]

    def build_certain(self, tau: int, state: OpenHypothesis) -> SupportedAnswer:
        """Build an answer that became certain at `tau`."""
        number, mask, binding = state
        template = self._templates[number]
        quick = template.build(mask, binding, certain_at=tau) if template else None
        if quick is not None:
            return quick
        view = self._minimality.build_view(self._compiled[number], mask, binding)
        return SupportedAnswer(self._bindings(view), self._evidence(view), (), tau)

    def _build_possible(self, state: OpenHypothesis, tau: int) -> SupportedAnswer:
        number, mask, binding = state
        template = self._templates[number]
        quick = template.build(mask, binding) if template else None
        return quick or self._build_answer(self._minimality.build_view(self._compiled[number], mask, binding), tau)

    def _build_answer(self, view: HypothesisView, tau: int) -> SupportedAnswer:
        awaited = [_to_awaited_fact(atom) for atom in view.hypotheses]
        deadlines = [None if time is None else time + self._delays.of(name, args) for name, args, time in awaited]
        known = [deadline for deadline in deadlines if deadline is not None]
        in_time = sorted(zip(deadlines, view.hypotheses, strict=True), key=lambda x: (_last(x[0]), fact_sort_key(x[1])))
        return SupportedAnswer(
            self._bindings(view),
            self._evidence(view),
            tuple(self._show(atom) for _, atom in in_time),
            max(known, default=tau) if len(known) == len(deadlines) else None,
            self._confidence.of(awaited, tau) if self._confidence else None,
            format_conditions(self._query.variables, view.whole)
            + (() if view.evidence else find_earliest_times(view.hypotheses, awaited, self._delays, tau)),
        )

    def _evidence(self, view: HypothesisView) -> tuple[str, ...]:
        return tuple(map(self._show, sorted(view.evidence, key=fact_sort_key)))

    def _bindings(self, view: HypothesisView) -> dict[str, Scalar]:
        found: dict[str, Scalar] = {}
        for name, term in zip(self._query.variables, view.whole.answer, strict=True):
            if isinstance(term, Constant):
                found[name] = to_scalar(term.value)
            elif isinstance(term, TimeTerm) and term.variable is None:
                found[name] = term.offset
        return found


def _to_awaited_fact(atom: TemporalAtom) -> AwaitedFact:
    args = tuple(to_scalar(term.value) if isinstance(term, Constant) else None for term in atom.args)
    time = atom.time or TimeTerm(None, 0)
    return atom.predicate, args, None if time.variable else time.offset


def _last(deadline: int | None) -> float:
    return float("inf") if deadline is None else deadline
