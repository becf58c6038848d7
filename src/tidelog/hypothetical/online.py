"""A standing query over a stream whose facts come late: what is certain, and what may still become so.

The query is resolved once; then arrivals are pushed, batch by batch, and each batch gives the answers that it makes
certain. What is still possible can be asked for at any moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidelog.errors import TidelogError
from tidelog.hypothetical.background import with_background
from tidelog.hypothetical.compiled import Awaited, GroundFact, compiled, inside, outside
from tidelog.hypothetical.confidence import Confidence
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.entries import (
    Entries,
    Moment,
    Shown,
    SupportedAnswer,
    conditions,
    fact_key,
    format_atom,
    in_order,
)
from tidelog.hypothetical.from_mtl import temporal_program
from tidelog.hypothetical.general import General, State, Theta
from tidelog.hypothetical.reading import FactReader, not_a_fact, read_arrival
from tidelog.hypothetical.regular import Regular, is_regular
from tidelog.hypothetical.resolution import Bounds, derived_predicates, resolve
from tidelog.hypothetical.rivals import Rivals, View
from tidelog.hypothetical.saving import check, dump, fingerprint, restore
from tidelog.hypothetical.schemas import Schema, query_of
from tidelog.language.facts import format_value
from tidelog.language.program import Program
from tidelog.language.syntax import Constant, Fact, TemporalAtom, TimeTerm
from tidelog.language.temporal import parse_query

#: A fact as text, as the language's own, or as (predicate, arguments without the time, time).
AnyFact = str | Fact | GroundFact

#: A fact and when it came: a pair, or an object as in JSON Lines.
AnyArrival = tuple[int, AnyFact] | Mapping[str, Any]

#: Why a fact was not taken.
LATE, FUTURE, BACKWARDS, DERIVED = "late", "future", "backwards", "derived"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A fact that was not taken, and why: it came later than its delay allows (`late`), before its own time (`future`),
    with an arrival before the last one (`backwards`), or is what rules derive (`derived`)."""

    why: str
    arrival: int
    fact: GroundFact
    rigid: bool = False

    @property
    def text(self) -> str:
        """The fact as it is printed."""
        predicate, args, time = self.fact
        shown = [format_value(outside(arg)) for arg in args] + ([] if self.rigid else [str(time)])
        return f"{predicate}({','.join(shown)})" if shown else predicate


class Hypotheses:
    """The answers to a query that are certain, and those that are still possible, while facts come late.

    >>> program = Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    >>> session = Hypotheses(program, "Alarm(X, T)", delay={"Hot": 1})
    >>> list(session.push(0, ["Hot(a,0)"]))
    []
    >>> session.hypothetical()[0].hypotheses
    ('Hot(a,1)',)
    >>> session.push(2, ["Hot(a,1)"])[0].bindings
    {'X': 'a', 'T': 0}
    """

    def __init__(
        self,
        program: Program,
        query: str,
        *,
        delay: int | str | Iterable[str] | Mapping[str, int] = (),
        depth: int | None = None,
        horizon: int | None = None,
        background: Iterable[Fact] = (),
        timeline: str | None = None,
        probability: float | str | Iterable[str] | Mapping[str, float] | None = None,
        chances: str | Iterable[str] | Mapping[str, str] | None = None,
        min_confidence: float | None = None,
        max_open: int | None = None,
        early: bool = False,
        show: Callable[[TemporalAtom], str] = format_atom,
        on_rejected: Callable[[Rejected], None] | None = None,
    ) -> None:
        """With `early`, facts may come before their own time, as they do where `tau` is not when they came but up to
        when all has come: a watermark. `show` is how facts are written in entries."""
        temporal = with_background(temporal_program(program, timeline, _predicate(query)), background)
        self.query = query_of(parse_query(query, temporal))
        self.schemas: tuple[Schema, ...] = resolve(temporal, self.query, Bounds(depth, horizon))
        self._compiled = tuple(compiled(number, schema) for number, schema in enumerate(self.schemas))
        arities = dict(temporal.temporal)
        awaited = {p.predicate: len(p.args) for schema in self.schemas for p in schema.premises}
        known = awaited | {name: arities[name] for name in arities if name not in derived_predicates(temporal)}
        self.delays = Delays.parse(delay, known)
        self._awaited = awaited
        self._derived = derived_predicates(temporal)
        self._temporal = frozenset(arities)
        self._reader = FactReader(arities, dict(temporal.rigid))
        self._rivals = Rivals(self._compiled, self.delays)
        limits = (min_confidence, max_open)
        rated = any(part is not None for part in (probability, chances, *limits))
        self.confidence = (
            Confidence.parse(
                self.delays, known, () if probability is None else probability, () if chances is None else chances
            )
            if rated
            else None
        )
        self._min_confidence, self._max_open = limits
        self._store: General | Regular = (
            Regular(self._compiled[0], self.delays)
            if limits == (None, None)
            and len(self._compiled) == 1
            and not self._rivals.possible
            and is_regular(self._compiled[0])
            else General(self._compiled, self.delays, self._rivals, early=early)
        )
        self._early, self._show = early, show
        self._fingerprint = fingerprint(self.schemas, self.delays.patterns, limits, *(["early"] if early else []))
        self._on_rejected = on_rejected
        self.tau = -1
        #: How many facts were not taken, by the reason.
        self.rejected: dict[str, int] = {}
        self.arrivals = 0
        #: How many hypotheses were discarded for their confidence, or since there were too many.
        self.discarded = 0

    # Arrivals

    def read(self, text: str, source: str = "<text>", line: int = 1) -> GroundFact:
        """A fact as `push` takes it quickest."""
        return self._reader.read(text, source, line)

    def read_arrival(self, text: str, source: str = "<text>", line: int = 1) -> tuple[int, GroundFact]:
        """When a fact came, and the fact, of a line like `{"arrival": 0, "fact": "Temp(wt2,high,0)"}`."""
        return read_arrival(text, self._reader, source, line)

    def push(self, tau: int, facts: Iterable[AnyFact]) -> Entries:
        """Facts that arrive at `tau`; gives the answers that become certain by them.

        Several batches may have the same `tau`. Facts that may not come now are counted in `rejected`.
        """
        if tau < self.tau:
            for fact in facts:
                self.push_backwards(tau, fact)
            return self._entries([])
        given = self._advance(tau)
        # All are read before any is taken, so that one that cannot be read loses no answer of the others.
        allowed = list(self._allowed(facts))
        if isinstance(self._store, Regular):
            full = self._compiled[0].full
            given += [(0, full, binding) for binding in self._store.arrive(fact for fact, _ in allowed)]
        else:
            for fact, deadline in allowed:
                given += self._store.arrive(fact, deadline)
            self._discard()
        return self._entries(given)

    def push_backwards(self, arrival: int, fact: AnyFact) -> None:
        """A fact whose arrival is before that of a fact that came before it: it is only counted."""
        self.arrivals += 1
        self._reject(BACKWARDS, arrival, self._ground(fact))

    def advance(self, tau: int) -> Entries:
        """Time goes on to `tau` without arrivals; gives the answers that become certain by that, which are those that
        need no facts, at time 0."""
        if tau < self.tau:
            return self._entries([])
        given = self._advance(tau)
        self._discard()
        return self._entries(given)

    def _advance(self, tau: int) -> list[State]:
        if tau == self.tau:
            return []
        self._store.move(tau)
        first = self.tau < 0
        self.tau = tau
        given: list[State] = []
        if first and isinstance(self._store, General):
            for schema in self._compiled:
                if not schema.premises:
                    self._store.give(schema.answered(schema.unbound), tau)
                    given.append((schema.number, 0, schema.unbound))
        return given

    def _allowed(self, facts: Iterable[AnyFact]) -> Iterator[tuple[GroundFact, int]]:
        """The facts that may come now and that the query is interested in, each with its deadline."""
        tau, awaited, delays, confidence = self.tau, self._awaited, self.delays, self.confidence
        plain = {name: (delays.plain(name), arity) for name, arity in awaited.items()}
        count = 0
        for given in facts:
            count += 1
            fact = given if type(given) is tuple else self._ground(given)
            predicate, args, time = fact
            if predicate not in awaited:
                if predicate in self._derived:
                    self._reject(DERIVED, tau, fact)
                continue
            delay, arity = plain[predicate]
            if len(args) != arity or time < 0:
                raise not_a_fact(predicate, arity, args, time)
            deadline = time + (delays.of(predicate, args) if delay is None else delay)
            if time > tau and not self._early:
                self._reject(FUTURE, tau, fact)
            elif deadline < tau:
                self._reject(LATE, tau, fact)
            else:
                if confidence:
                    confidence.note(predicate, max(tau - time, 0))
                yield fact, deadline
        self.arrivals += count

    def _ground(self, fact: AnyFact) -> GroundFact:
        if isinstance(fact, str):
            return self._reader.read(fact)
        return self._reader.of(fact) if isinstance(fact, Fact) else fact

    def _reject(self, why: str, tau: int, fact: GroundFact) -> None:
        self.rejected[why] = self.rejected.get(why, 0) + 1
        if self._on_rejected:
            self._on_rejected(Rejected(why, tau, fact, fact[0] not in self._temporal))

    def _discard(self) -> None:
        """Drop what is less likely than it must be, and the least likely of what is too much."""
        store, confidence = self._store, self.confidence
        if self._min_confidence is None and self._max_open is None:
            return
        assert isinstance(store, General)
        assert confidence is not None
        rated = [(confidence.of(store.awaited(state), self.tau), state) for state in store.open()]
        least = 0.0 if self._min_confidence is None else self._min_confidence
        gone = [state for rate, state in rated if rate < least]
        kept = [pair for pair in rated if pair[0] >= least]
        if self._max_open is not None and len(kept) > self._max_open:
            kept.sort(key=lambda pair: -pair[0])
            gone += [state for _, state in kept[self._max_open :]]
        for state in gone:
            store.remove(state)
        self.discarded += len(gone)

    # What there is

    def save(self) -> bytes:
        """The state, to go on from with `load`."""
        from tidelog.streaming.state import pack

        counts = self.confidence.counts if self.confidence else {}
        figures = {"arrivals": self.arrivals, "rejected": self.rejected, "discarded": self.discarded, "counts": counts}
        return pack({"hypotheses": self._fingerprint, "tau": self.tau, **figures, "store": dump(self._store)}, {})

    def load(self, state: bytes) -> Hypotheses:
        """Go on from a state that was saved with the same program, query and options; gives this object."""
        from tidelog.streaming.state import unpack

        meta, _ = unpack(state)
        check(meta.get("hypotheses"), self._fingerprint)
        self.tau, self.arrivals, self.discarded = meta["tau"], meta["arrivals"], meta["discarded"]
        self.rejected = meta["rejected"]
        if self.confidence:
            self.confidence.counts = meta["counts"]
        restore(self._store, meta["store"])
        return self

    @property
    def open(self) -> int:
        """How many hypotheses are held that can still come true."""
        return sum(1 for _ in self.open_states())

    def hypothetical(self) -> list[SupportedAnswer]:
        """What may still become true after this moment, and has evidence; sorted."""
        return in_order(self.shown(self.open_states()))

    def shown(self, states: Iterable[State]) -> list[SupportedAnswer]:
        """Those of some hypotheses that are minimal among them, as entries."""
        views = [self._rivals.view(self._compiled[n], mask, binding) for n, mask, binding in states]
        return [self._possible(view) for view in self._rivals.shown(views)]

    @property
    def competing(self) -> bool:
        """Whether an answer can be had in several ways, so that not every hypothesis that is held is shown."""
        return self._rivals.possible

    def answer_of(self, state: State) -> Theta:
        """What the variables of the query stand for in a hypothesis; None for those that are open."""
        return self._compiled[state[0]].answered(state[2])

    def open_states(self) -> Iterator[State]:
        """The hypotheses that are held and can still come true, shown or not."""
        if isinstance(self._store, Regular):
            return ((0, mask, binding) for mask, binding in self._store.open())
        return self._store.open()

    def _entries(self, given: list[State]) -> Entries:
        return Entries(given, partial(self._answer, self.tau))

    def _answer(self, tau: int, state: State) -> SupportedAnswer:
        number, mask, binding = state
        view = self._rivals.view(self._compiled[number], mask, binding)
        return SupportedAnswer(self._bindings(view), self._evidence(view), (), tau)

    def _possible(self, view: View) -> SupportedAnswer:
        awaited = [_awaited(atom) for atom in view.hypotheses]
        deadlines = [None if time is None else time + self.delays.of(name, args) for name, args, time in awaited]
        known = [deadline for deadline in deadlines if deadline is not None]
        in_time = sorted(zip(deadlines, view.hypotheses, strict=True), key=lambda x: (_last(x[0]), fact_key(x[1])))
        return SupportedAnswer(
            self._bindings(view),
            self._evidence(view),
            tuple(self._show(atom) for _, atom in in_time),
            max(known) if len(known) == len(deadlines) else None,
            self.confidence.of(awaited, self.tau) if self.confidence else None,
            conditions(self.query.variables, view.whole),
        )

    def _evidence(self, view: View) -> tuple[str, ...]:
        return tuple(map(self._show, sorted(view.evidence, key=fact_key)))

    def _bindings(self, view: View) -> dict[str, Shown]:
        found: dict[str, Shown] = {}
        for name, term in zip(self.query.variables, view.whole.answer, strict=True):
            if isinstance(term, Constant):
                found[name] = inside(term.value)
            elif isinstance(term, TimeTerm) and term.variable is None:
                found[name] = term.offset
        return found


def hypotheses(
    program: Program,
    query: str,
    arrivals: Iterable[AnyArrival],
    *,
    until: int | None = None,
    **options: Any,
) -> Iterator[Moment]:
    """For every time point up to `until` (the last arrival unless given): the answers that become certain at it, and
    those that are still possible after it. Arrivals are pairs of a time and a fact, or `{"arrival": ..., "fact": ...}`;
    `options` go to `Hypotheses`.

    >>> program = Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    >>> for moment in hypotheses(program, "Alarm(X, T)", [(0, "Hot(a,0)"), (1, "Hot(a,1)")]):
    ...     print(moment.tau, [a.bindings for a in moment.answers], [h.hypotheses for h in moment.hypothetical])
    0 [] [('Hot(a,1)',)]
    1 [{'X': 'a', 'T': 0}] [('Hot(a,2)',)]
    """
    return moments(Hypotheses(program, query, **options), arrivals, until)


def moments(session: Hypotheses, arrivals: Iterable[AnyArrival], until: int | None) -> Iterator[Moment]:
    """What a session says at every time point while it is fed; each as soon as an arrival is later than it. If an
    arrival cannot be read, what came before it is still said."""
    batch: list[AnyFact] = []
    now: int | None = None
    coming = iter(arrivals)
    while True:
        try:
            arrival, fact = _pair(next(coming))
        except StopIteration:
            break
        except TidelogError:
            yield from _up_to(session, now, batch, -1)
            raise
        if until is not None and arrival > until:
            break
        if now is None or arrival > now:
            yield from _up_to(session, now, batch, arrival - 1)
            now, batch = arrival, []
        if arrival == now:
            batch.append(fact)
        else:
            session.push_backwards(arrival, fact)
    last = now if until is None else until
    if last is not None:
        yield from _up_to(session, now, batch, last)


def _pair(arrival: AnyArrival) -> tuple[int, AnyFact]:
    return (arrival["arrival"], arrival["fact"]) if isinstance(arrival, Mapping) else arrival


def _up_to(session: Hypotheses, now: int | None, batch: list[AnyFact], last: int) -> Iterator[Moment]:
    """The moment of a batch, and those without arrivals up to the last."""
    if now is not None:
        answers = in_order(list(session.push(now, batch)))
        yield Moment(now, answers, session.hypothetical())
    for tau in range(session.tau + 1, last + 1):
        answers = in_order(list(session.advance(tau)))
        yield Moment(tau, answers, session.hypothetical())


def _predicate(query: str) -> str:
    """The predicate of a query that is not read yet."""
    return re.split(r"[\s(]", query.strip(), maxsplit=1)[0]


def _awaited(atom: TemporalAtom) -> Awaited:
    args = tuple(inside(term.value) if isinstance(term, Constant) else None for term in atom.args)
    time = atom.time or TimeTerm(None, 0)
    return atom.predicate, args, None if time.variable else time.offset


def _last(deadline: int | None) -> float:
    return float("inf") if deadline is None else deadline
