"""Open hypotheses of any shape, updated one arrival at a time (definition 6 of the paper).

A hypothesis is a schema with a mask of the premises that have come and a binding of the variables in those. A fact
turns it into others, one for each set of premises that the fact can be at once: the local most general unifiers.
Facts are taken in the order in which they come, so each set of facts leads to an answer in one way only.

Hypotheses wait in an index, by the premise and the values that are known of its variables: an arrival touches those
that wait for it, however many there are. They lie in buckets by the first deadline of their premises, so that what can
no longer be is found without a search.

Without delays, all premises of one time come at once if they are tied to a single time variable. Then premises are
resolved in the order of their times, and those of one time in a fixed order, each with all facts of the moment: there
is no need for every set of premises that the moment's facts could be (proposition 10).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from tidelog.hypothetical.compiled import Awaited, Binding, Compiled, Dispatch, GroundFact, Inside, Known, known
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.rivals import Rivals

#: The number of a schema, the premises that have come, the binding.
State = tuple[int, int, Binding]
#: What the variables of the query stand for.
Theta = tuple[Inside | None, ...]


class General:
    """All open hypotheses of a query."""

    def __init__(self, schemas: tuple[Compiled, ...], delays: Delays, rivals: Rivals, *, early: bool = False) -> None:
        self.schemas = schemas
        self.delays = delays
        self.rivals = rivals
        self.tau = -1
        #: Of every schema, its premises in the order in which they are resolved, if there is one.
        in_order = not early and _comes_in_order(schemas, delays)
        self._orders = [_order(schema) for schema in schemas] if in_order else None
        #: The facts of this moment that can be a premise, by the values of some of its variables; made when needed.
        self._now: dict[tuple[int, int, tuple[int, ...]], dict[Known, list[GroundFact]]] = {}
        #: Every open hypothesis with evidence, and its first deadline, if one is known.
        self.states: dict[State, int | None] = {}
        #: Facts that may still be asked for, by their deadlines.
        self.seen: dict[int, set[GroundFact]] = {}
        #: Answers that were given, and when.
        self.answered: dict[Theta, int] = {}
        self._dispatch = Dispatch((p, (s.number, i)) for s in schemas for i, p in enumerate(s.premises))
        self._waiting: dict[tuple[int, int], dict[tuple[int, ...], dict[Known, dict[State, None]]]] = {}
        self._buckets: dict[int, list[State]] = {}
        self._deadlines: list[int] = []
        self._by_answer: dict[Theta, dict[State, None]] = {}
        #: What was given at this moment, with its evidence.
        self.given: set[tuple[Theta, frozenset[GroundFact]]] = set()
        self._given_until: dict[int, list[Theta]] = {}
        #: Answers that hold at all times, which no premise binds.
        self._general_answers: list[Theta] = []

    def move(self, tau: int) -> None:
        """Time goes on to `tau`: drop what could only come before it."""
        self._now.clear()
        if self.rivals.possible and self.given:
            for theta in {theta for theta, _ in self.given}:
                for state in list(self._by_answer.get(theta, ())):
                    self.remove(state)
            self.given.clear()
        while self._deadlines and self._deadlines[0] < tau:
            deadline = heappop(self._deadlines)
            self.seen.pop(deadline, None)
            for theta in self._given_until.pop(deadline, ()):
                self.answered.pop(theta, None)
            for state in self._buckets.pop(deadline, ()):
                if state in self.states:
                    self.remove(state)
        self.tau = tau

    def arrive(self, fact: GroundFact, deadline: int) -> list[State]:
        """Take a fact that may come now; gives the answers that it completes."""
        predicate, args, time = fact
        premises = self._dispatch.find(predicate, args)
        if not premises or fact in self.seen.get(deadline, ()):
            return []
        self.note_fact(fact, deadline)
        by_schema: dict[int, list[int]] = {}
        for number, place in premises:
            by_schema.setdefault(number, []).append(place)
        answers: list[State] = []
        for number, places in by_schema.items():
            schema = self.schemas[number]
            for place in places if self._orders else ():
                self._add_to_moment(schema, place, fact)
            touched: dict[State, None] = {(number, 0, schema.unbound): None}
            for place in places:
                touched.update(dict.fromkeys(self._awaiting(number, place, args, time)))
            for state in touched:
                self._resolve(schema, state, places, fact, answers)
        return answers

    def note_fact(self, fact: GroundFact, deadline: int) -> None:
        """Remember that a fact has come, for as long as it may be asked for."""
        self._note(deadline)
        self.seen.setdefault(deadline, set()).add(fact)

    def _note(self, deadline: int) -> None:
        """See to it that `move` looks at this deadline."""
        if deadline not in self._buckets:
            self._buckets[deadline] = []
            heappush(self._deadlines, deadline)

    def _awaiting(self, number: int, place: int, args: Known, time: int) -> Iterator[State]:
        """The open hypotheses in which a premise can be this fact."""
        tables = self._waiting.get((number, place))
        if not tables:
            return
        schema = self.schemas[number]
        values = schema.premises[place].extended(schema.unbound, args, time)
        if values is None:
            return
        for places, table in tables.items():
            yield from table.get(known(values[i] for i in places), ())

    def _resolve(
        self, schema: Compiled, state: State, places: list[int], fact: GroundFact, answers: list[State]
    ) -> None:
        """Add what becomes of a hypothesis when some of its premises are the fact, and drop it if one must be."""
        _, args, time = fact
        if self._orders:
            for place in set(places).intersection(self._next(state)):
                extended = schema.premises[place].extended(state[2], args, time)
                if extended is not None:
                    if extended == state[2] and state[1]:
                        self.remove(state)
                    self._resolve_in_order(schema, (state[0], state[1] | 1 << place, extended), answers)
            return
        found = [state]
        replaced = False
        for place in places:
            for number, mask, binding in list(found):
                if mask >> place & 1:
                    continue
                extended = schema.premises[place].extended(binding, args, time)
                if extended is not None:
                    found.append((number, mask | 1 << place, extended))
                    replaced |= binding is state[2] and mask == state[1] and extended == binding
        if replaced and state[1]:
            self.remove(state)
        for new in found[1:]:
            self._admit(schema, new, answers)

    def _resolve_in_order(self, schema: Compiled, state: State, answers: list[State]) -> None:
        """Add a hypothesis, and what becomes of it by facts of this moment that have come before."""
        waiting = [state]
        while waiting:
            state = waiting.pop()
            if self._admit(schema, state, answers):
                number, mask, binding = state
                (place,) = self._next(state)
                for _, args, time in self._come(schema, place, binding):
                    extended = schema.premises[place].extended(binding, args, time)
                    if extended is not None:
                        waiting.append((number, mask | 1 << place, extended))
                        if extended == binding:
                            self.remove(state)

    def _next(self, state: State) -> list[int]:
        """The premises that a hypothesis waits for: all that are missing, or the next one in order."""
        missing = [i for i in range(len(self.schemas[state[0]].premises)) if not state[1] >> i & 1]
        if self._orders is None or not missing:
            return missing
        return [next(place for place in self._orders[state[0]] if place in missing)]

    def _come(self, schema: Compiled, place: int, binding: Binding) -> list[GroundFact]:
        """The facts of this moment that a premise can be."""
        premise = schema.premises[place]
        places = tuple(i for i in sorted(premise.places) if binding[i] is not None)
        key = (schema.number, place, places)
        if key not in self._now:
            self._now[key] = {}
            for fact in self.seen.get(self.tau, ()):
                if (schema.number, place) in self._dispatch.find(fact[0], fact[1]):
                    self._add_to_table(schema, key, fact)
        return self._now[key].get(known(binding[i] for i in places), [])

    def _add_to_moment(self, schema: Compiled, place: int, fact: GroundFact) -> None:
        for key in self._now:
            if key[:2] == (schema.number, place):
                self._add_to_table(schema, key, fact)

    def _add_to_table(self, schema: Compiled, key: tuple[int, int, tuple[int, ...]], fact: GroundFact) -> None:
        values = schema.premises[key[1]].extended(schema.unbound, fact[1], fact[2])
        if values is not None:
            self._now[key].setdefault(known(values[i] for i in key[2]), []).append(fact)

    def _admit(self, schema: Compiled, state: State, answers: list[State]) -> bool:
        """Keep a new hypothesis if its premises can still come, or give it as an answer if all have; whether it waits
        for more."""
        _, mask, binding = state
        if not schema.allows(binding):
            return False
        first: int | None = None
        for place, premise in enumerate(schema.premises):
            if mask >> place & 1:
                continue
            time = premise.time(binding)
            if time is None:
                continue
            args = premise.args(binding)
            deadline = time + self.delays.of(premise.predicate, args)
            if time < 0 or deadline < self.tau:
                return False
            # A premise that has come already was taken when it came: that is another hypothesis.
            if self._orders is None and (premise.predicate, args, time) in self.seen.get(deadline, ()):
                return False
            first = deadline if first is None else min(first, deadline)
        theta = schema.answered(binding)
        if self.rivals.possible and not self._is_due(schema, theta, mask, binding):
            return False
        if mask == schema.full:
            answers.append(state)
            return False
        self.add(state, theta, first)
        return True

    def _is_due(self, schema: Compiled, theta: Theta, mask: int, binding: Binding) -> bool:
        """Whether an answer was not given before this moment, and needs all of its facts."""
        if self.answered.get(theta, self.tau) < self.tau or self.rivals.outdone(schema, binding):
            return False
        if self._general_answers and None not in theta and self.is_answered(theta):
            return False
        return mask != schema.full or self._is_new(schema, theta, binding)

    def _is_new(self, schema: Compiled, theta: Theta, binding: Binding) -> bool:
        """Notes an answer with its evidence; false if it was given with the same evidence."""
        if theta not in self.answered:
            self.give(theta, self.tau)
        evidence = frozenset(schema.evidence(schema.full, binding))
        if (theta, evidence) in self.given:
            return False
        self.given.add((theta, evidence))
        return True

    def give(self, theta: Theta, tau: int) -> None:
        """Remember that an answer was given, for as long as it could be found again."""
        self.answered[theta] = tau
        if None in theta:
            self._general_answers.append(theta)
        last = self.rivals.last_deadline(theta)
        if last is not None:
            self._note(last)
            self._given_until.setdefault(last, []).append(theta)

    def is_answered(self, theta: Theta) -> bool:
        """Whether an answer, or one for all times, was given before."""
        return theta in self.answered or any(
            all(a is None or a == b for a, b in zip(general, theta, strict=True)) for general in self._general_answers
        )

    def add(self, state: State, theta: Theta, first: int | None) -> None:
        """Make a hypothesis wait for its premises, until its first deadline."""
        self.states[state] = first
        if first is not None:
            self._note(first)
            self._buckets[first].append(state)
        for key, places, values in self._places(state):
            self._waiting.setdefault(key, {}).setdefault(places, {}).setdefault(values, {})[state] = None
        if self.rivals.possible:
            self._by_answer.setdefault(theta, {})[state] = None

    def remove(self, state: State) -> None:
        del self.states[state]
        for key, places, values in self._places(state):
            table = self._waiting[key][places]
            waiting = table[values]
            del waiting[state]
            if not waiting:
                del table[values]
        if self.rivals.possible:
            theta = self.schemas[state[0]].answered(state[2])
            same = self._by_answer[theta]
            del same[state]
            if not same:
                del self._by_answer[theta]

    def _places(self, state: State) -> Iterator[tuple[tuple[int, int], tuple[int, ...], Known]]:
        """Where a hypothesis stands in the index: for each premise, the variables that are known, and their values."""
        number, _, binding = state
        for place in self._next(state):
            places = tuple(i for i in sorted(self.schemas[number].premises[place].places) if binding[i] is not None)
            yield (number, place), places, known(binding[i] for i in places)

    def awaited(self, state: State) -> set[Awaited]:
        number, mask, binding = state
        return {
            (premise.predicate, premise.args(binding), premise.time(binding))
            for place, premise in enumerate(self.schemas[number].premises)
            if not mask >> place & 1
        }

    def open(self) -> Iterator[State]:
        """The hypotheses that can still come true after this moment."""
        for state, first in self.states.items():
            if first is None or first > self.tau:
                if self.rivals.possible and self.is_answered(self.schemas[state[0]].answered(state[2])):
                    continue
                yield state


def _comes_in_order(schemas: tuple[Compiled, ...], delays: Delays) -> bool:
    """Whether no fact may be late, and all premises of a schema are tied to one time variable."""
    return all(
        len({premise.clock for premise in schema.premises}) <= 1
        and all(premise.clock is not None and delays.plain(premise.predicate) == 0 for premise in schema.premises)
        for schema in schemas
    )


def _order(schema: Compiled) -> list[int]:
    """Premises by time; those of one time such that each shares variables with those before it where it can."""
    order: list[int] = []
    bound: set[int] = set()
    while len(order) < len(schema.premises):
        rest = [i for i in range(len(schema.premises)) if i not in order]
        best = min(rest, key=lambda i: (schema.premises[i].offset, -len(schema.premises[i].places & bound), i))
        order.append(best)
        bound |= schema.premises[best].places
    return order
