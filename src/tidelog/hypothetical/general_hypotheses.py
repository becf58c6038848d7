"""Open hypotheses of any shape, updated one arrival at a time (definition 6 of the paper).

A hypothesis is a schema with a mask of the premises that have arrived and a binding of their variables. A fact turns it
into others, one for each set of premises that the fact matches at once: the local most general unifiers. Facts are
processed in the order of their arrival, so each set of facts leads to an answer in one way only.

Hypotheses wait in an index, by premise and by the known values of its variables. So an arrival touches only those that
wait for it, however many there are. They also lie in buckets by the first deadline of their premises, so expired
hypotheses are found without a search.

Without delays, all premises of one time arrive at once if they share a single time variable. Then premises are resolved
in the order of their times, and those of one time in a fixed order, each with all facts of the moment. This avoids one
hypothesis for every set of premises that the facts of the moment match (proposition 10).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from tidelog.hypothetical.compiled_schemas import Binding, CompiledSchema, PremiseDispatch, to_ground_args
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.ground_facts import AwaitedFact, GroundArgs, GroundFact, Scalar
from tidelog.hypothetical.minimality import MinimalityFilter

#: The number of a schema, the mask of the premises that have arrived, and the binding.
OpenHypothesis = tuple[int, int, Binding]
#: The values of the query's variables; None for an open one.
AnswerValues = tuple[Scalar | None, ...]


class GeneralHypotheses:
    """All open hypotheses of a query.

    `early` says that facts may arrive before their own time."""

    def __init__(
        self, schemas: tuple[CompiledSchema, ...], delays: Delays, minimality: MinimalityFilter, *, early: bool = False
    ) -> None:
        self.schemas = schemas
        self.delays = delays
        self.minimality = minimality
        self.tau = -1
        #: For each schema, the order in which its premises are resolved; None if they may arrive in any order.
        arrive_in_order = not early and _arrive_in_order(schemas, delays)
        self._orders = [_order_premises(schema) for schema in schemas] if arrive_in_order else None
        #: The facts of this moment that match a premise, by the values of some of its slots; built when needed.
        self._facts_now: dict[tuple[int, int, tuple[int, ...]], dict[GroundArgs, list[GroundFact]]] = {}
        #: Every open hypothesis with evidence, and its first deadline, if one is known.
        self.first_deadlines: dict[OpenHypothesis, int | None] = {}
        #: Facts that have arrived and may arrive again, by deadline.
        self.arrived: dict[int, set[GroundFact]] = {}
        #: Answers that were given, and when.
        self.answer_times: dict[AnswerValues, int] = {}
        self._dispatch = PremiseDispatch((p, (s.number, i)) for s in schemas for i, p in enumerate(s.premises))
        #: Open hypotheses by schema and premise, then by the known slots of the premise, then by their values.
        self._waiting: dict[tuple[int, int], dict[tuple[int, ...], dict[GroundArgs, dict[OpenHypothesis, None]]]] = {}
        self._buckets: dict[int, list[OpenHypothesis]] = {}
        self._deadlines: list[int] = []
        self._by_answer: dict[AnswerValues, dict[OpenHypothesis, None]] = {}
        #: The answers given at this moment, with their evidence.
        self.given_now: set[tuple[AnswerValues, frozenset[GroundFact]]] = set()
        self._given_until: dict[int, list[AnswerValues]] = {}
        #: Answers that hold for any value of a variable, which no premise binds.
        self._general_answers: list[AnswerValues] = []

    def advance(self, tau: int) -> None:
        """Advance time to `tau`: drop hypotheses and facts whose deadline has passed."""
        self._facts_now.clear()
        if self.minimality.can_compete and self.given_now:
            for values in {values for values, _ in self.given_now}:
                for hypothesis in list(self._by_answer.get(values, ())):
                    self.remove_hypothesis(hypothesis)
            self.given_now.clear()
        while self._deadlines and self._deadlines[0] < tau:
            deadline = heappop(self._deadlines)
            self.arrived.pop(deadline, None)
            for values in self._given_until.pop(deadline, ()):
                self.answer_times.pop(values, None)
            for hypothesis in self._buckets.pop(deadline, ()):
                if hypothesis in self.first_deadlines:
                    self.remove_hypothesis(hypothesis)
        self.tau = tau

    def add_fact(self, fact: GroundFact, deadline: int) -> list[OpenHypothesis]:
        """Add a fact that may arrive now; return the answers that it completes."""
        predicate, args, time = fact
        matches = self._dispatch.find(predicate, args)
        if not matches or fact in self.arrived.get(deadline, ()):
            return []
        self.record_fact(fact, deadline)
        by_schema: dict[int, list[int]] = {}
        for number, index in matches:
            by_schema.setdefault(number, []).append(index)
        answers: list[OpenHypothesis] = []
        for number, indices in by_schema.items():
            schema = self.schemas[number]
            for index in indices if self._orders else ():
                self._add_to_moment(schema, index, fact)
            touched: dict[OpenHypothesis, None] = {(number, 0, schema.unbound): None}
            for index in indices:
                touched.update(dict.fromkeys(self._find_waiting(number, index, args, time)))
            for hypothesis in touched:
                self._resolve(schema, hypothesis, indices, fact, answers)
        return answers

    def record_fact(self, fact: GroundFact, deadline: int) -> None:
        """Remember that a fact has arrived, until its deadline."""
        self._schedule(deadline)
        self.arrived.setdefault(deadline, set()).add(fact)

    def has_arrived(self, fact: GroundFact, deadline: int) -> bool:
        """Return whether a fact that could arrive until now has arrived."""
        return fact in self.arrived.get(deadline, ())

    def _schedule(self, deadline: int) -> None:
        """Make `advance` process a deadline."""
        if deadline not in self._buckets:
            self._buckets[deadline] = []
            heappush(self._deadlines, deadline)

    def _find_waiting(self, number: int, index: int, args: GroundArgs, time: int) -> Iterator[OpenHypothesis]:
        """Yield the open hypotheses that wait for a fact as a premise."""
        tables = self._waiting.get((number, index))
        if not tables:
            return
        schema = self.schemas[number]
        values = schema.premises[index].extend_binding(schema.unbound, args, time)
        if values is None:
            return
        for slots, table in tables.items():
            yield from table.get(to_ground_args(values[i] for i in slots), ())

    def _resolve(
        self,
        schema: CompiledSchema,
        hypothesis: OpenHypothesis,
        indices: list[int],
        fact: GroundFact,
        answers: list[OpenHypothesis],
    ) -> None:
        """Add the hypotheses that arise when a fact matches some premises; drop this one if a premise must match."""
        _, args, time = fact
        if self._orders:
            for index in set(indices).intersection(self._next_premises(hypothesis)):
                extended = schema.premises[index].extend_binding(hypothesis[2], args, time)
                if extended is not None:
                    if extended == hypothesis[2] and hypothesis[1]:
                        self.remove_hypothesis(hypothesis)
                    resolved = (hypothesis[0], hypothesis[1] | 1 << index, extended)
                    self._resolve_in_order(schema, resolved, answers)
            return
        found = [hypothesis]
        replaced = False
        for index in indices:
            for number, mask, binding in list(found):
                if mask >> index & 1:
                    continue
                extended = schema.premises[index].extend_binding(binding, args, time)
                if extended is not None:
                    found.append((number, mask | 1 << index, extended))
                    replaced |= binding is hypothesis[2] and mask == hypothesis[1] and extended == binding
        if replaced and hypothesis[1]:
            self.remove_hypothesis(hypothesis)
        for new in found[1:]:
            self._admit(schema, new, answers)

    def _resolve_in_order(
        self, schema: CompiledSchema, hypothesis: OpenHypothesis, answers: list[OpenHypothesis]
    ) -> None:
        """Add a hypothesis, and those that it becomes through facts of this moment that arrived before."""
        pending = [hypothesis]
        while pending:
            hypothesis = pending.pop()
            if self._admit(schema, hypothesis, answers):
                number, mask, binding = hypothesis
                (index,) = self._next_premises(hypothesis)
                for _, args, time in self._find_facts_now(schema, index, binding):
                    extended = schema.premises[index].extend_binding(binding, args, time)
                    if extended is not None:
                        pending.append((number, mask | 1 << index, extended))
                        if extended == binding:
                            self.remove_hypothesis(hypothesis)

    def _next_premises(self, hypothesis: OpenHypothesis) -> list[int]:
        """Return the premises that a hypothesis waits for: all missing ones, or the next one in order."""
        missing = [i for i in range(len(self.schemas[hypothesis[0]].premises)) if not hypothesis[1] >> i & 1]
        if self._orders is None or not missing:
            return missing
        return [next(index for index in self._orders[hypothesis[0]] if index in missing)]

    def _find_facts_now(self, schema: CompiledSchema, index: int, binding: Binding) -> list[GroundFact]:
        """Return the facts of this moment that match a premise."""
        slots = tuple(i for i in sorted(schema.premises[index].slots) if binding[i] is not None)
        key = (schema.number, index, slots)
        if key not in self._facts_now:
            self._facts_now[key] = {}
            for fact in self.arrived.get(self.tau, ()):
                if (schema.number, index) in self._dispatch.find(fact[0], fact[1]):
                    self._add_to_table(schema, key, fact)
        return self._facts_now[key].get(to_ground_args(binding[i] for i in slots), [])

    def _add_to_moment(self, schema: CompiledSchema, index: int, fact: GroundFact) -> None:
        for key in self._facts_now:
            if key[:2] == (schema.number, index):
                self._add_to_table(schema, key, fact)

    def _add_to_table(self, schema: CompiledSchema, key: tuple[int, int, tuple[int, ...]], fact: GroundFact) -> None:
        _, index, slots = key
        values = schema.premises[index].extend_binding(schema.unbound, fact[1], fact[2])
        if values is not None:
            self._facts_now[key].setdefault(to_ground_args(values[i] for i in slots), []).append(fact)

    def _admit(self, schema: CompiledSchema, hypothesis: OpenHypothesis, answers: list[OpenHypothesis]) -> bool:
        """Keep a new hypothesis if its premises can still arrive, or add it to the answers if all have arrived.

        Return whether it waits for more premises."""
        _, mask, binding = hypothesis
        if not schema.allows(binding):
            return False
        first: int | None = None
        for index, premise in enumerate(schema.premises):
            if mask >> index & 1:
                continue
            time = premise.time(binding)
            if time is None:
                continue
            args = premise.args(binding)
            deadline = time + self.delays.of(premise.predicate, args)
            if time < 0 or deadline < self.tau:
                return False
            # A premise that has arrived was resolved when it arrived: that is another hypothesis.
            if self._orders is None and (premise.predicate, args, time) in self.arrived.get(deadline, ()):
                return False
            first = deadline if first is None else min(first, deadline)
        values = schema.answer_values(binding)
        if self.minimality.can_compete and not self._is_due(schema, values, mask, binding):
            return False
        if mask == schema.full:
            answers.append(hypothesis)
            return False
        self.add_hypothesis(hypothesis, values, first)
        return True

    def _is_due(self, schema: CompiledSchema, values: AnswerValues, mask: int, binding: Binding) -> bool:
        """Return whether an answer was not given before this moment and needs all of its facts."""
        if self.answer_times.get(values, self.tau) < self.tau or self.minimality.has_smaller_support(schema, binding):
            return False
        if self._general_answers and None not in values and self.is_answered(values):
            return False
        return mask != schema.full or self._record_evidence(schema, values, binding)

    def _record_evidence(self, schema: CompiledSchema, values: AnswerValues, binding: Binding) -> bool:
        """Record an answer with its evidence; return whether this evidence is new."""
        if values not in self.answer_times:
            self.record_answer(values, self.tau)
        evidence = frozenset(schema.evidence(schema.full, binding))
        if (values, evidence) in self.given_now:
            return False
        self.given_now.add((values, evidence))
        return True

    def record_answer(self, values: AnswerValues, tau: int) -> None:
        """Remember that an answer was given, for as long as it could be found again."""
        self.answer_times[values] = tau
        if None in values:
            self._general_answers.append(values)
        last = self.minimality.last_deadline(values)
        if last is not None:
            self._schedule(last)
            self._given_until.setdefault(last, []).append(values)

    def is_answered(self, values: AnswerValues) -> bool:
        """Return whether an answer, or a more general one, was given before."""
        return values in self.answer_times or any(
            all(a is None or a == b for a, b in zip(general, values, strict=True)) for general in self._general_answers
        )

    def add_hypothesis(self, hypothesis: OpenHypothesis, values: AnswerValues, first: int | None) -> None:
        """Make a hypothesis wait for its premises, until its first deadline."""
        self.first_deadlines[hypothesis] = first
        if first is not None:
            self._schedule(first)
            self._buckets[first].append(hypothesis)
        for key, slots, known in self._index_keys(hypothesis):
            self._waiting.setdefault(key, {}).setdefault(slots, {}).setdefault(known, {})[hypothesis] = None
        if self.minimality.can_compete:
            self._by_answer.setdefault(values, {})[hypothesis] = None

    def remove_hypothesis(self, hypothesis: OpenHypothesis) -> None:
        """Remove an open hypothesis from all indexes."""
        del self.first_deadlines[hypothesis]
        for key, slots, known in self._index_keys(hypothesis):
            table = self._waiting[key][slots]
            waiting = table[known]
            del waiting[hypothesis]
            if not waiting:
                del table[known]
        if self.minimality.can_compete:
            values = self.schemas[hypothesis[0]].answer_values(hypothesis[2])
            same = self._by_answer[values]
            del same[hypothesis]
            if not same:
                del self._by_answer[values]

    def _index_keys(self, hypothesis: OpenHypothesis) -> Iterator[tuple[tuple[int, int], tuple[int, ...], GroundArgs]]:
        """Yield the keys of a hypothesis in `_waiting`: for each premise, its known slots and their values."""
        number, _, binding = hypothesis
        for index in self._next_premises(hypothesis):
            slots = tuple(i for i in sorted(self.schemas[number].premises[index].slots) if binding[i] is not None)
            yield (number, index), slots, to_ground_args(binding[i] for i in slots)

    def awaited_facts(self, hypothesis: OpenHypothesis) -> set[AwaitedFact]:
        """Return the facts that a hypothesis still waits for."""
        number, mask, binding = hypothesis
        return {
            (premise.predicate, premise.args(binding), premise.time(binding))
            for index, premise in enumerate(self.schemas[number].premises)
            if not mask >> index & 1
        }

    def open_hypotheses(self) -> Iterator[OpenHypothesis]:
        """Yield the hypotheses that can still become answers after this moment."""
        for hypothesis, first in self.first_deadlines.items():
            if first is None or first > self.tau:
                if self.minimality.can_compete:
                    number, _, binding = hypothesis
                    if self.is_answered(self.schemas[number].answer_values(binding)):
                        continue
                yield hypothesis


def _arrive_in_order(schemas: tuple[CompiledSchema, ...], delays: Delays) -> bool:
    """Return whether no fact may be late, and all premises of each schema share one time variable."""
    return all(
        len({premise.time_slot for premise in schema.premises}) <= 1
        and all(p.time_slot is not None and delays.uniform_delay(p.predicate) == 0 for p in schema.premises)
        for schema in schemas
    )


def _order_premises(schema: CompiledSchema) -> list[int]:
    """Return the premises by time; among those of one time, prefer one that shares variables with earlier ones."""
    order: list[int] = []
    bound: set[int] = set()
    while len(order) < len(schema.premises):
        rest = [i for i in range(len(schema.premises)) if i not in order]
        best = min(rest, key=lambda i: (schema.premises[i].offset, -len(schema.premises[i].slots & bound), i))
        order.append(best)
        bound |= schema.premises[best].slots
    return order
