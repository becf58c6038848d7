"""Build the answers of queries with negation: they also await that facts do not arrive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidelog.hypothetical.absence_hypotheses import AbsenceHypotheses, CompiledBlocker
from tidelog.hypothetical.answer_builder import AnswerBuilder
from tidelog.hypothetical.compiled_schemas import CompiledSchema
from tidelog.hypothetical.general_hypotheses import OpenHypothesis
from tidelog.hypothetical.schemas import apply_to_blocker
from tidelog.hypothetical.supported_answers import SupportedAnswer, format_blocker


class AbsenceAnswers:
    """Adds to answers what must not arrive; what can no longer arrive is evidence."""

    def __init__(self, builder: AnswerBuilder, store: AbsenceHypotheses, schemas: Sequence[CompiledSchema]) -> None:
        self._builder, self._store, self._schemas = builder, store, schemas

    def build_certain(self, tau: int, state: OpenHypothesis) -> SupportedAnswer:
        """Build an answer that became certain at `tau`."""
        answer = self._builder.build_certain(tau, state)
        texts = sorted({self._format(blocker, state) for blocker in self._effective_blockers(state)})
        return replace(answer, evidence=(*answer.evidence, *texts))

    def build_minimal(self, states: Iterable[OpenHypothesis], tau: int) -> list[SupportedAnswer]:
        """Build the possible answers at `tau` of the hypotheses that are minimal among the given ones."""
        found = list(dict.fromkeys(_Key(self._build_possible(state, tau)) for state in states))
        by_answer: dict[object, list[_Key]] = {}
        for key in found:
            by_answer.setdefault(key.bindings, []).append(key)
        return [key.answer for key in found if not any(other.displaces(key) for other in by_answer[key.bindings])]

    def _build_possible(self, state: OpenHypothesis, tau: int) -> SupportedAnswer:
        (answer,) = self._builder.build_minimal([state], tau)
        blockers = self._effective_blockers(state)
        awaited = [blocker for blocker in blockers if self._store.can_block(blocker, state)]
        deadlines = {self._format(blocker, state): self._deadline(blocker, state) for blocker in awaited}
        absent = sorted({self._format(blocker, state) for blocker in blockers} - deadlines.keys())
        in_time = sorted(deadlines, key=lambda text: (deadlines[text] is None, deadlines[text] or 0, text))
        last = [answer.decided_by] if answer.hypotheses else []
        last += deadlines.values()
        known = [deadline for deadline in last if deadline is not None]
        return replace(
            answer,
            evidence=(*answer.evidence, *absent),
            hypotheses=(*answer.hypotheses, *in_time),
            decided_by=max(known) if len(known) == len(last) else None,
        )

    def _effective_blockers(self, state: OpenHypothesis) -> list[CompiledBlocker]:
        """Return the blockers whose constants fit the values of a hypothesis, as far as they are known."""
        return [blocker for blocker in self._store.blockers_of(state) if blocker.fits(state[2])]

    def _format(self, blocker: CompiledBlocker, state: OpenHypothesis) -> str:
        return format_blocker(apply_to_blocker(blocker.blocker, self._schemas[state[0]].substitution(state[2])))

    def _deadline(self, blocker: CompiledBlocker, state: OpenHypothesis) -> int | None:
        """Return when it is known at the latest that a blocker did not come true; None if a time is open."""
        start = blocker.start(state[2])
        if start is None:
            return None
        delays = self._store.delays
        times = [
            (premise.time(start), delays.of(premise.predicate, premise.args(start))) for premise in blocker.premises
        ]
        return max((0 if time is None else time + delay for time, delay in times), default=0)


class _Key:
    """A possible answer that is compared by what it awaits and by its evidence."""

    def __init__(self, answer: SupportedAnswer) -> None:
        self.answer = answer
        self.bindings = frozenset(answer.bindings.items())
        self.hypotheses = frozenset(answer.hypotheses)
        self.evidence = frozenset(answer.evidence)

    def displaces(self, other: _Key) -> bool:
        """Return whether another answer awaits more, or the same with more evidence."""
        if self.hypotheses == other.hypotheses:
            return self.evidence < other.evidence
        return self.hypotheses < other.hypotheses

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[object, ...]:
        return self.bindings, self.hypotheses, self.evidence, self.answer.conditions
