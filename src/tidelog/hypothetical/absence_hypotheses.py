"""Hypotheses that also wait for facts not to arrive.

The premises of a schema are filled in as always, by `GeneralHypotheses`. A hypothesis with all its facts waits until no
blocker of it can come true any more: then it is an answer. One with a blocker that has come true is dropped. Blockers
are evaluated over the facts of negated predicates, which are kept for as long as a hypothesis may need them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tidelog.hypothetical.comparison_constraints import is_satisfiable
from tidelog.hypothetical.compiled_schemas import Binding, CompiledSchema, Premise, compile_schema, to_ground_args
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.general_hypotheses import AnswerValues, GeneralHypotheses, OpenHypothesis
from tidelog.hypothetical.ground_facts import GroundArgs, GroundFact, Scalar, to_scalar
from tidelog.hypothetical.minimality import MinimalityFilter
from tidelog.hypothetical.schemas import Blocker, apply_to_comparison
from tidelog.language.syntax import Term, TimeTerm, Variable


@dataclass(frozen=True, slots=True)
class CompiledBlocker:
    """A blocker with slots. `outer` has a slot of the blocked schema and an offset, or a constant, for each value."""

    blocker: Blocker
    compiled: CompiledSchema
    outer: tuple[tuple[int, int] | Scalar, ...]

    @property
    def premises(self) -> tuple[Premise, ...]:
        """What must arrive for the blocker to come true."""
        return self.compiled.premises

    def fits(self, binding: Binding) -> bool:
        """Return whether the blocker applies to the values that are known."""
        pairs = ((_read(binding, part), inner) for part, inner in zip(self.outer, self.compiled.answer, strict=True))
        return all(value is None or isinstance(inner, tuple) or value == inner for value, inner in pairs)

    def start(self, binding: Binding) -> Binding | None:
        """Return the binding of the blocker's variables; None if it cannot block, or if a value is still open."""
        found: list[Scalar | None] = list(self.compiled.unbound)
        for part, inner in zip(self.outer, self.compiled.answer, strict=True):
            value = _read(binding, part)
            if value is None:
                return None
            if not isinstance(inner, tuple):
                if inner != value:
                    return None
                continue
            slot, offset = inner
            value = value - offset if offset and isinstance(value, int) else value
            if found[slot] not in (None, value):
                return None
            found[slot] = value
        return tuple(found)


def compile_blockers(schema: CompiledSchema) -> tuple[CompiledBlocker, ...]:
    """Return the blockers of a schema with slots."""
    slots = {name: slot for slot, name in enumerate(schema.names)}

    def compile_term(term: Term | TimeTerm) -> tuple[int, int] | Scalar:
        if isinstance(term, TimeTerm):
            return term.offset if term.variable is None else (slots[term.variable], term.offset)
        return (slots[term.name], 0) if isinstance(term, Variable) else to_scalar(term.value)

    return tuple(
        CompiledBlocker(blocker, compile_schema(0, blocker.schema), tuple(map(compile_term, blocker.outer)))
        for blocker in schema.schema.blockers
    )


class AbsenceHypotheses:
    """The open hypotheses of a query whose rules have negation."""

    def __init__(
        self, schemas: tuple[CompiledSchema, ...], delays: Delays, minimality: MinimalityFilter, *, early: bool = False
    ) -> None:
        self.schemas, self.delays = schemas, delays
        self.blockers = [compile_blockers(schema) for schema in schemas]
        self.tau = -1
        self.premises = GeneralHypotheses(schemas, delays, minimality, early=early)
        #: Hypotheses with all their facts, which wait only for facts not to arrive.
        self.complete: dict[OpenHypothesis, None] = {}
        #: The facts of negated predicates by predicate and time.
        self.facts: dict[str, dict[int, set[GroundArgs]]] = {}
        #: Answers that were given.
        self.answered: dict[AnswerValues, int] = {}
        self._kept_for = _find_retention(schemas, self.blockers, delays)
        self._reach = _find_reach(schemas, self.blockers, delays)
        self._answer_time, self._least_offset = _find_answer_time(schemas)

    # Arrivals

    def advance(self, tau: int) -> None:
        """Advance time to `tau`: forget what can no longer matter."""
        self.tau = tau
        self.premises.advance(tau)
        for predicate, kept_for in self._kept_for.items():
            if kept_for is not None:
                times = self.facts.get(predicate, {})
                for time in [time for time in times if time + kept_for < tau]:
                    del times[time]
        for values in [values for values, last in self.answered.items() if last < tau]:
            del self.answered[values]

    def add_fact(self, fact: GroundFact, deadline: int) -> None:
        """Add a fact that may arrive now."""
        predicate, args, time = fact
        if predicate in self._kept_for:
            self.facts.setdefault(predicate, {}).setdefault(time, set()).add(args)
        self.complete.update(dict.fromkeys(self.premises.add_fact(fact, deadline)))

    def add_complete(self, hypothesis: OpenHypothesis) -> None:
        """Add a hypothesis that has all its facts."""
        self.complete[hypothesis] = None

    def has_arrived(self, fact: GroundFact, deadline: int) -> bool:
        """Return whether a fact that could arrive until now has arrived."""
        return self.premises.has_arrived(fact, deadline)

    def settle(self) -> list[OpenHypothesis]:
        """Return the hypotheses that became answers: nothing can block them after this moment."""
        found: list[OpenHypothesis] = []
        for hypothesis in list(self.complete):
            blockers = self.blockers_of(hypothesis)
            if any(self._matches(blocker, hypothesis[2], awaited=False) for blocker in blockers):
                del self.complete[hypothesis]
            elif not any(self._matches(blocker, hypothesis[2], awaited=True) for blocker in blockers):
                found.append(hypothesis)
        given = self._select_least([h for h in found if self.answer_of(h) not in self.answered])
        for hypothesis in found:
            del self.complete[hypothesis]
        for hypothesis in given:
            self.answered[self.answer_of(hypothesis)] = self._last_moment(hypothesis)
        self.complete = {h: None for h in self.complete if self.answer_of(h) not in self.answered}
        return given

    def _select_least(self, hypotheses: list[OpenHypothesis]) -> list[OpenHypothesis]:
        """Return the hypotheses that do not have more facts than others with the same answer."""
        evidence: dict[AnswerValues, set[frozenset[GroundFact]]] = {}
        for hypothesis in hypotheses:
            evidence.setdefault(self.answer_of(hypothesis), set()).add(self._evidence(hypothesis))
        return [h for h in hypotheses if not any(e < self._evidence(h) for e in evidence[self.answer_of(h)])]

    def _evidence(self, hypothesis: OpenHypothesis) -> frozenset[GroundFact]:
        return frozenset(self.schemas[hypothesis[0]].evidence(hypothesis[1], hypothesis[2]))

    def _last_moment(self, hypothesis: OpenHypothesis) -> int:
        """Return until when the same answer may be found again."""
        number, _, binding = hypothesis
        if self._reach is None or self._answer_time is None:
            return 1 << 62
        time = self.schemas[number].answer_values(binding)[self._answer_time]
        assert isinstance(time, int)
        return time + self._reach - self._least_offset

    # What is open

    def answer_of(self, hypothesis: OpenHypothesis) -> AnswerValues:
        """Return the values of the query's variables."""
        return self.schemas[hypothesis[0]].answer_values(hypothesis[2])

    def is_answered(self, values: AnswerValues) -> bool:
        """Return whether an answer was given before."""
        return values in self.answered

    def open_hypotheses(self) -> Iterator[OpenHypothesis]:
        """Yield the hypotheses that can still become answers after this moment."""
        for hypothesis in (*self.premises.open_hypotheses(), *self.complete):
            if self.answer_of(hypothesis) not in self.answered and not self.is_blocked(hypothesis):
                yield hypothesis

    def blockers_of(self, hypothesis: OpenHypothesis) -> tuple[CompiledBlocker, ...]:
        """Return the blockers of the schema of a hypothesis."""
        return self.blockers[hypothesis[0]]

    def is_blocked(self, hypothesis: OpenHypothesis) -> bool:
        """Return whether facts that have arrived block a hypothesis."""
        return any(self._matches(b, hypothesis[2], awaited=False) for b in self.blockers_of(hypothesis))

    def can_block(self, blocker: CompiledBlocker, hypothesis: OpenHypothesis) -> bool:
        """Return whether a blocker may still come true; it may if a value of it is open."""
        parts = [_read(hypothesis[2], part) for part in blocker.outer]
        return None in parts or self._matches(blocker, hypothesis[2], awaited=True)

    def _matches(self, blocker: CompiledBlocker, binding: Binding, *, awaited: bool) -> bool:
        """Return whether facts that have arrived (or, with `awaited`, that may still arrive) make a blocker true."""
        start = blocker.start(binding)
        compiled = blocker.compiled
        return start is not None and self._match_rest(compiled, compiled.premises, start, awaited)

    def _match_rest(self, schema: CompiledSchema, premises: Sequence[Premise], binding: Binding, awaited: bool) -> bool:
        if not schema.allows(binding):
            return False
        if not premises:
            by = schema.substitution(binding)
            return is_satisfiable(apply_to_comparison(c, by) for c in schema.schema.comparisons)
        first, rest = premises[0], premises[1:]
        time = first.time(binding)
        assert time is not None, "the times of blockers are known"
        for args in self._find_facts(first, time, binding):
            if all(constant in (None, arg) for constant, arg in zip(first.constants, args, strict=True)):
                extended = first.extend_binding(binding, args, time)
                if extended is not None and self._match_rest(schema, rest, extended, awaited):
                    return True
        if not awaited or time < 0 or self.tau >= time + self.delays.of(first.predicate, first.args(binding)):
            return False
        return self._match_rest(schema, rest, binding, awaited)

    def _find_facts(self, premise: Premise, time: int, binding: Binding) -> Collection[GroundArgs]:
        """Return the facts that may match a premise: all of its time, or the only one if all arguments are known."""
        facts = self.facts.get(premise.predicate, {}).get(time, set())
        known = premise.args(binding)
        if not facts or None in known:
            return facts
        args = to_ground_args(known)
        return (args,) if args in facts else ()


def _read(binding: Binding, part: tuple[int, int] | Scalar) -> Scalar | None:
    if not isinstance(part, tuple):
        return part
    value = binding[part[0]]
    return value + part[1] if part[1] and isinstance(value, int) else value


def _longest(premise: Premise, delays: Delays) -> int:
    return delays.of(premise.predicate, tuple(None for _ in premise.arg_slots))


def _find_reach(
    schemas: Sequence[CompiledSchema], blockers: Sequence[tuple[CompiledBlocker, ...]], delays: Delays
) -> int | None:
    """Return how long after its time a hypothesis is decided at the latest; None if some time is fixed."""
    reach = 0
    for schema, some in zip(schemas, blockers, strict=True):
        for premise in schema.premises:
            if premise.time_slot is None:
                return None
            reach = max(reach, premise.offset + _longest(premise, delays))
        for blocker in some:
            shift = _time_shift(blocker)
            for premise in blocker.compiled.premises:
                if shift is None or premise.time_slot is None:
                    return None
                reach = max(reach, shift + premise.offset + _longest(premise, delays))
    return reach


def _find_answer_time(schemas: Sequence[CompiledSchema]) -> tuple[int | None, int]:
    """Return which value of an answer is its time in all schemas, and the least distance from the facts' time to it."""
    for position in range(len(schemas[0].answer)):
        parts = [schema.answer[position] for schema in schemas]
        offsets = [
            part[1]
            for part, schema in zip(parts, schemas, strict=True)
            if isinstance(part, tuple) and part[0] in {premise.time_slot for premise in schema.premises}
        ]
        if len(offsets) == len(schemas):
            return position, min(offsets)
    return None, 0


def _find_retention(
    schemas: Sequence[CompiledSchema], blockers: Sequence[tuple[CompiledBlocker, ...]], delays: Delays
) -> dict[str, int | None]:
    """Return for each negated predicate how long after their time facts are needed; None if for ever."""
    reach = _find_reach(schemas, blockers, delays)
    found: dict[str, int | None] = {}
    for some in blockers:
        for blocker in some:
            shift = _time_shift(blocker)
            for premise in blocker.compiled.premises:
                before = found.get(premise.predicate, 0)
                if reach is None or shift is None or before is None:
                    found[premise.predicate] = None
                else:
                    found[premise.predicate] = max(before, reach - shift - premise.offset)
    return found


def _time_shift(blocker: CompiledBlocker) -> int | None:
    """Return what is added to the time of the blocked schema to get the time of the blocker's variable."""
    if not blocker.blocker.atom.time:
        return None
    outer, inner = blocker.outer[-1], blocker.compiled.answer[-1]
    return outer[1] - inner[1] if isinstance(outer, tuple) and isinstance(inner, tuple) else None
