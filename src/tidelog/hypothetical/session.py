"""A session of hypothetical answers: a query over a stream whose facts arrive late.

The query is resolved once. Then arrivals are pushed batch by batch, and each batch returns the answers that it makes
certain. The answers that are still possible can be asked for at any time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, Self

from tidelog.data.data_frames import DataLike, to_dataset
from tidelog.data.dataset import Dataset
from tidelog.hypothetical.absence_answers import AbsenceAnswers
from tidelog.hypothetical.absence_checks import require_decidable_absence
from tidelog.hypothetical.absence_hypotheses import AbsenceHypotheses
from tidelog.hypothetical.answer_builder import AnswerBuilder
from tidelog.hypothetical.arrival_input import FactReader, invalid_fact_error, parse_arrival
from tidelog.hypothetical.background import add_background
from tidelog.hypothetical.compiled_schemas import compile_schema
from tidelog.hypothetical.confidence import Confidence
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.dmtl_translation import translate_to_temporal
from tidelog.hypothetical.general_hypotheses import AnswerValues, GeneralHypotheses, OpenHypothesis
from tidelog.hypothetical.ground_facts import GroundFact
from tidelog.hypothetical.minimality import MinimalityFilter
from tidelog.hypothetical.regular_hypotheses import RegularHypotheses, is_regular
from tidelog.hypothetical.resolution import Bounds, derived_predicates, resolve
from tidelog.hypothetical.schemas import Schema, build_query, list_awaited
from tidelog.hypothetical.session_options import HypothesisOptions, Rejected, RejectReason
from tidelog.hypothetical.session_origin import DelayByPattern, SessionOrigin, to_plain_delay
from tidelog.hypothetical.session_state import (
    dump_store,
    fingerprint,
    require_fingerprint,
    require_origin,
    restore_store,
)
from tidelog.hypothetical.supported_answers import (
    LazyAnswers,
    SupportedAnswer,
    format_atom,
    sort_answers,
)
from tidelog.hypothetical.unsupported_answers import find_unsupported
from tidelog.language.program import Program, require_program
from tidelog.language.program_json import program_from_json, program_to_json
from tidelog.language.syntax import Fact, TemporalAtom
from tidelog.language.syntax_json import facts_from_json
from tidelog.language.tdl_parser import parse_query
from tidelog.language.time_like import TimeLike, to_integer_time
from tidelog.session import Step
from tidelog.timeline.interval import Time, TimelineName

#: A fact as text, as a `Fact`, or as (predicate, arguments without the time, time).
AnyFact = str | Fact | GroundFact


class HypothesisStep(LazyAnswers, Step[SupportedAnswer]):
    """The answers that one call made certain, built on access; `time` is that of the clock."""

    def __init__(self, parts: Sequence[Any], make: Callable[[Any], SupportedAnswer], tau: int) -> None:
        super().__init__(parts, make)
        self._tau = tau

    @property
    def time(self) -> Time:
        return Fraction(self._tau)


class Hypotheses:
    """The certain and the possible answers to a query while facts arrive late; a `Session` of supported answers.

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
        delay: DelayByPattern = (),
        background: DataLike | None = None,
        timeline: TimelineName | None = None,
        options: HypothesisOptions | None = None,
    ) -> None:
        """Resolve `query`, an atom with variables, over the rules of `program`.

        `background` holds facts that are known before the stream begins. A fact of time t may arrive until t plus its
        `delay`.
        """
        require_program(program)
        options = options or HypothesisOptions()
        delay = to_plain_delay(delay)
        known_facts = () if background is None else tuple(to_dataset(background))
        self._origin = SessionOrigin(program, query, delay, known_facts, timeline, options)
        temporal = add_background(translate_to_temporal(program, timeline, query_predicate(query)), known_facts)
        self.query = build_query(parse_query(query, temporal))
        self.schemas: tuple[Schema, ...] = resolve(temporal, self.query, Bounds(options.depth, options.horizon))
        self._compiled = tuple(compile_schema(number, schema) for number, schema in enumerate(self.schemas))
        arities = dict(temporal.temporal)
        awaited = {atom.predicate: len(atom.args) for schema in self.schemas for atom in list_awaited(schema)}
        known = awaited | {name: arities[name] for name in arities if name not in derived_predicates(temporal)}
        self.delays = Delays.parse(delay, known)
        self._awaited = awaited
        self._derived = derived_predicates(temporal)
        self._temporal = frozenset(arities)
        self._reader = FactReader(arities, dict(temporal.rigid))
        #: Whether answers may wait for facts not to arrive.
        self.has_negation = any(schema.blockers for schema in self.schemas)
        if self.has_negation:
            require_decidable_absence(self.schemas, self.delays, options.has_confidence)
        self._minimality = MinimalityFilter(self._compiled, self.delays, compare=not self.has_negation)
        limits = (options.min_confidence, options.max_open)
        self.confidence = None
        if options.has_confidence:
            probability = () if options.probability is None else options.probability
            chances = () if options.chances is None else options.chances
            self.confidence = Confidence.parse(self.delays, known, probability, chances)
        self._min_confidence, self._max_open = limits
        self._store = self._create_store(options)
        self._early, self._unsupported = options.early, options.unsupported
        builder = AnswerBuilder(self.query, self._compiled, self._minimality, self.confidence, options.show)
        self._builder = (
            AbsenceAnswers(builder, self._store, self._compiled)
            if isinstance(self._store, AbsenceHypotheses)
            else builder
        )
        self._fingerprint = fingerprint(
            self.schemas,
            self.delays.patterns,
            limits,
            *(["early"] if options.early else []),
            *([schema.blockers for schema in self.schemas] if self.has_negation else []),
        )
        self._on_rejected = options.on_rejected
        #: The last time point that was pushed or advanced to.
        self.tau = -1
        #: The last time point at which absences were decided.
        self._settled = -2
        #: How many facts were rejected, by reason.
        self.rejected: dict[str, int] = {}
        self.arrivals = 0
        #: How many hypotheses were discarded because of their confidence, or because there were too many.
        self.discarded = 0

    def _create_store(self, options: HypothesisOptions) -> GeneralHypotheses | RegularHypotheses | AbsenceHypotheses:
        """Return a store that is as simple as the schemas allow."""
        if self.has_negation:
            return AbsenceHypotheses(self._compiled, self.delays, self._minimality, early=options.early)
        has_limits = options.min_confidence is not None or options.max_open is not None
        is_single = len(self._compiled) == 1 and not self._minimality.can_compete
        if is_single and not has_limits and is_regular(self._compiled[0]):
            return RegularHypotheses(self._compiled[0], self.delays)
        return GeneralHypotheses(self._compiled, self.delays, self._minimality, early=options.early)

    # Arrivals

    def read(self, text: str, source: str = "<text>", line: int = 1) -> GroundFact:
        """Parse a fact into the form that `push` takes fastest."""
        return self._reader.read(text, source, line)

    def read_arrival(self, text: str, source: str = "<text>", line: int = 1) -> tuple[int, GroundFact]:
        """Parse a line like `{"arrival": 0, "fact": "Temp(wt2,high,0)"}`; return the arrival time and the fact."""
        return parse_arrival(text, self._reader, source, line)

    def push(self, t: TimeLike, facts: Iterable[AnyFact] | DataLike = ()) -> HypothesisStep:
        """Add facts that arrive at the integer time t; return the answers that became certain.

        Several batches may have the same t; with negation, a fact whose delay ends at t must be in the first. Unlike in
        other sessions, facts carry their own times, which may be before t; those of rigid predicates have none. Facts
        that may not arrive now are counted in `rejected`.
        """
        tau = to_integer_time(t)
        if isinstance(facts, Mapping):
            facts = to_dataset(facts)
        elif isinstance(facts, str):
            facts = facts.splitlines()
        if tau < self.tau:
            for fact in facts:
                self.push_backwards(tau, fact)
            return self._step([])
        certain = self._advance(tau)
        # All facts are read before any is taken, so that one that cannot be read loses no answer of the others.
        allowed = list(self._select_allowed(facts))
        if isinstance(self._store, RegularHypotheses):
            full = self._compiled[0].full
            certain += [(0, full, binding) for binding in self._store.add_facts(fact for fact, _ in allowed)]
        elif isinstance(self._store, AbsenceHypotheses):
            for fact, deadline in allowed:
                self._store.add_fact(fact, deadline)
            certain += self._settle()
        else:
            for fact, deadline in allowed:
                certain += self._store.add_fact(fact, deadline)
            self._discard()
        return self._step(certain)

    def _settle(self) -> list[OpenHypothesis]:
        """Return the answers that absences make certain: no more facts arrive at this time point."""
        assert isinstance(self._store, AbsenceHypotheses)
        self._settled = self.tau
        return self._store.settle()

    def push_backwards(self, arrival: int, fact: AnyFact) -> None:
        """Count a fact whose arrival time is before that of an earlier fact, without taking it."""
        self.arrivals += 1
        self._reject("backwards", arrival, self._ground(fact))

    def advance(self, t: TimeLike) -> HypothesisStep:
        """Advance the clock to the integer time t without arrivals; return the answers that became certain.

        These can only be answers that need no facts, at the first time point, and those that waited for facts not to
        arrive.
        """
        tau = to_integer_time(t)
        if tau < self.tau:
            return self._step([])
        certain = self._advance(tau)
        if isinstance(self._store, AbsenceHypotheses):
            return self._step(certain + self._settle())
        self._discard()
        return self._step(certain)

    def finish(self, until: TimeLike | None = None) -> HypothesisStep:
        """End the stream, at `until` if given; return the answers that became certain."""
        return self._step([]) if until is None else self.advance(until)

    def _advance(self, tau: int) -> list[OpenHypothesis]:
        if tau == self.tau:
            return []
        self._store.advance(tau)
        first = self.tau < 0
        self.tau = tau
        given: list[OpenHypothesis] = []
        if first and isinstance(self._store, AbsenceHypotheses):
            for schema in self._compiled:
                if not schema.premises:
                    self._store.add_complete((schema.number, 0, schema.unbound))
        if first and isinstance(self._store, GeneralHypotheses):
            for schema in self._compiled:
                if not schema.premises:
                    self._store.record_answer(schema.answer_values(schema.unbound), tau)
                    given.append((schema.number, 0, schema.unbound))
        return given

    def _select_allowed(self, facts: Iterable[AnyFact]) -> Iterator[tuple[GroundFact, int]]:
        """Yield the facts that may arrive now and that the query needs, each with its deadline."""
        tau, awaited, delays, confidence = self.tau, self._awaited, self.delays, self.confidence
        plain = {name: (delays.uniform_delay(name), arity) for name, arity in awaited.items()}
        count = 0
        for given in facts:
            count += 1
            fact = given if type(given) is tuple else self._ground(given)
            predicate, args, time = fact
            if predicate not in awaited:
                if predicate in self._derived:
                    self._reject("derived", tau, fact)
                continue
            delay, arity = plain[predicate]
            if len(args) != arity or time < 0:
                raise invalid_fact_error(predicate, arity, args, time)
            deadline = time + (delays.of(predicate, args) if delay is None else delay)
            if time > tau and not self._early:
                self._reject("future", tau, fact)
            elif deadline < tau or (deadline == tau == self._settled):
                self._reject("late", tau, fact)
            else:
                if confidence:
                    confidence.record_delay(predicate, max(tau - time, 0))
                yield fact, deadline
        self.arrivals += count

    def _ground(self, fact: AnyFact) -> GroundFact:
        if isinstance(fact, str):
            return self._reader.read(fact)
        return self._reader.from_fact(fact) if isinstance(fact, Fact) else fact

    def _reject(self, why: RejectReason, tau: int, fact: GroundFact) -> None:
        self.rejected[why] = self.rejected.get(why, 0) + 1
        if self._on_rejected:
            self._on_rejected(Rejected(why, tau, fact, fact[0] not in self._temporal))

    def _discard(self) -> None:
        """Discard hypotheses below the least confidence, then the least likely ones above the allowed number."""
        store, confidence = self._store, self.confidence
        if self._min_confidence is None and self._max_open is None:
            return
        assert isinstance(store, GeneralHypotheses)
        assert confidence is not None
        rated = [(confidence.of(store.awaited_facts(state), self.tau), state) for state in store.open_hypotheses()]
        least = 0.0 if self._min_confidence is None else self._min_confidence
        gone = [state for rate, state in rated if rate < least]
        kept = [pair for pair in rated if pair[0] >= least]
        if self._max_open is not None and len(kept) > self._max_open:
            kept.sort(key=lambda pair: -pair[0])
            gone += [state for _, state in kept[self._max_open :]]
        for state in gone:
            store.remove_hypothesis(state)
        self.discarded += len(gone)

    # Saved states

    def save(self) -> bytes:
        """Return the whole state; `load` continues from it exactly."""
        return self._pack({"origin": self._origin.to_json()})

    @classmethod
    def load(
        cls,
        state: bytes,
        program: Program | None = None,
        *,
        show: Callable[[TemporalAtom], str] = format_atom,
        on_rejected: Callable[[Rejected], None] | None = None,
    ) -> Self:
        """Return a session that continues where the saved one stopped; `program` must be the same, if given.

        Functions are not saved, so pass `show` and `on_rejected` again.
        """
        from tidelog.streaming.state_format import unpack

        origin = require_origin(unpack(state)[0], None if program is None else program_to_json(program))
        options = HypothesisOptions(**origin["options"], show=show, on_rejected=on_rejected)
        session = cls(
            program_from_json(origin["program"]),
            origin["query"],
            delay=origin["delay"],
            background=Dataset.from_facts(facts_from_json(origin["background"])),
            timeline=origin["timeline"],
            options=options,
        )
        return session.resume(state)

    def save_progress(self) -> bytes:
        """Return the state without the program and the options; a session made with the same can `resume` it."""
        return self._pack({})

    def resume(self, state: bytes) -> Self:
        """Continue from a state of a session with the same program, query and options; return this session."""
        from tidelog.streaming.state_format import unpack

        meta, _ = unpack(state)
        require_fingerprint(meta.get("hypotheses"), self._fingerprint)
        self.tau, self.arrivals, self.discarded = meta["tau"], meta["arrivals"], meta["discarded"]
        self.rejected = meta["rejected"]
        self._settled = self.tau if self.has_negation else -2
        if self.confidence:
            self.confidence.counts = meta["counts"]
        restore_store(self._store, meta["store"])
        return self

    def _pack(self, more: dict[str, Any]) -> bytes:
        from tidelog.streaming.state_format import pack

        counts = self.confidence.counts if self.confidence else {}
        figures = {"arrivals": self.arrivals, "rejected": self.rejected, "discarded": self.discarded, "counts": counts}
        store = dump_store(self._store)
        return pack({"hypotheses": self._fingerprint, "tau": self.tau, **figures, "store": store, **more}, {})

    # Possible answers

    @property
    def open(self) -> int:
        """How many hypotheses are held that can still become true."""
        return sum(1 for _ in self.open_states())

    def hypothetical(self) -> list[SupportedAnswer]:
        """Return the answers that have evidence and may still become true after this moment, sorted.

        With the option `unsupported`, also those without evidence; their variables are open."""
        states = self.open_states()
        if self._unsupported:
            store = self._store
            unsupported = find_unsupported(self._compiled, self.delays, self.tau, store.has_arrived)
            states = chain(states, (state for state in unsupported if not store.is_answered(self.answer_of(state))))
        return sort_answers(self.select_minimal(states))

    def select_minimal(self, states: Iterable[OpenHypothesis]) -> list[SupportedAnswer]:
        """Return the hypotheses that are minimal among the given ones, as answers."""
        return self._builder.build_minimal(states, self.tau)

    def start_journal(self) -> bool:
        """Record changes for `take_changes` from now on; return whether this session can."""
        if isinstance(self._store, RegularHypotheses):
            self._store.start_journal()
        return isinstance(self._store, RegularHypotheses)

    def stop_journal(self) -> None:
        """Record changes no longer."""
        if isinstance(self._store, RegularHypotheses):
            self._store.stop_journal()

    def take_changes(self) -> tuple[list[OpenHypothesis], list[OpenHypothesis]]:
        """Return the hypotheses that were dropped since the last call, and those that are new or changed."""
        assert isinstance(self._store, RegularHypotheses)
        changes = list(self._store.take_changes())
        gone = [(0, before, binding) for before, now, binding in changes if before is not None and now is None]
        return gone, [(0, now, binding) for _, now, binding in changes if now is not None]

    @property
    def competing(self) -> bool:
        """Whether an answer can have several derivations, so that not every held hypothesis is minimal."""
        return self._minimality.can_compete

    def answer_of(self, state: OpenHypothesis) -> AnswerValues:
        """Return the values of the query's variables in a hypothesis; None for those that are open."""
        return self._compiled[state[0]].answer_values(state[2])

    def open_states(self) -> Iterator[OpenHypothesis]:
        """Return the held hypotheses that can still become true, minimal or not."""
        if isinstance(self._store, RegularHypotheses):
            return ((0, mask, binding) for mask, binding in self._store.open_hypotheses())
        return self._store.open_hypotheses()

    def _step(self, certain: list[OpenHypothesis]) -> HypothesisStep:
        return HypothesisStep(certain, partial(self._builder.build_certain, self.tau), self.tau)


def query_predicate(query: str) -> str:
    """Return the predicate of a query that is not parsed yet."""
    return re.split(r"[\s(]", query.strip(), maxsplit=1)[0]
