"""A session over stable models: at each time point of a stream, what holds in some and in all stable models so far.

The program must be forward-propagating, so that the facts up to a time decide what holds at it. `fact_stream` keeps the
facts and the windows that are possible; this module has the clock and the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Self

from tidelog.data.data_frames import DataLike, FactsLike, to_dataset
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Relation, to_facts
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.language.fact_text import format_fact
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact
from tidelog.language.time_like import TimeLike, to_dated_time, to_integer_time
from tidelog.session import Step
from tidelog.stable.fact_stream import FactStream
from tidelog.stable.grounding import GroundAtom
from tidelog.stable.search_limits import MOST_WINDOWS
from tidelog.stable.stream_components import Facts, NoWindowLeft
from tidelog.streaming.fact_input import read_fact
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import INF, Interval, Time

if TYPE_CHECKING:
    from tidelog.language.program import Program

_ORDER_LAW = "the facts of a stream arrive in the order in which they begin to hold"


@dataclass(frozen=True, slots=True)
class StableAnswers:
    """What holds at a time point, of the predicates in heads: in `all` stable models so far, and in `some` of them."""

    time: Fraction
    all: tuple[Fact, ...]
    some: tuple[Fact, ...]


class StableStep(list[StableAnswers], Step[StableAnswers]):
    """The time points that one call made known, as a list; `time` is that of the clock."""

    def __init__(self, answers: Iterable[StableAnswers], time: Time) -> None:
        super().__init__(answers)
        self._time = time

    @property
    def time(self) -> Time:
        return self._time


class StableReasoner:
    """The stable models of a forward-propagating program along a stream; a `Session` whose answers are time points.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Open :- Door, not Shut. Shut :- Door, not Open.")
    >>> reasoner = tl.stable.StableReasoner(program)
    >>> reasoner.push(0, ["Door"])
    []
    >>> (point,) = reasoner.advance(0)
    >>> [fact.predicate for fact in point.some], [fact.predicate for fact in point.all]
    (['Open', 'Shut'], [])
    """

    def __init__(self, program: Program, *, background: DataLike | None = None, most: int = MOST_WINDOWS) -> None:
        """Prepare a program with the facts in `background`, which hold at all times.

        A search with more than `most` windows at a time is given up.
        """
        self._stream = FactStream(program, to_dataset(background or {}), most)
        self._set_up(NEG_INF, [])
        self._add_points(self._stream.given)
        try:
            self._stream.begin()
        except NoWindowLeft as stuck:
            raise self._explain_inconsistency(stuck) from None

    def _set_up(self, clock: int, points: list[int]) -> None:
        """Set up everything but the stream."""
        self._components = self._stream.components
        heads = (head_atom(rule) for rule in self.program.rules)
        self._heads = {head.predicate for head in heads if head is not None}
        #: Facts begin at this time or later.
        self._clock = clock
        #: Time points that are still to be answered: a heap.
        self._points = points

    @property
    def program(self) -> Program:
        """The rules."""
        return self._stream.program

    @property
    def dates(self) -> bool:
        """Whether times were given as dates, so that answers are printed with dates."""
        return self._stream.dates

    def push(self, t: TimeLike, facts: FactsLike = ()) -> StableStep:
        """Advance the clock to t and add facts; facts without a time hold at t. More may follow at t.

        Returns what is known of the time points before t. These are the times of pushes and the ends of facts.
        """
        now = to_integer_time(t)
        self._stream.dates |= to_dated_time(t)[1]
        new_facts = self._stream.read(self._read_all(facts, now), max(now, self._clock))
        self._clock = max(now, self._clock)
        answers = list(self._answer_until(self._clock - 1))
        self._add_points(new_facts)
        self._components.add_facts(new_facts)
        self._add_point(now)
        return StableStep(answers, self._time)

    def advance(self, t: TimeLike) -> StableStep:
        """Advance the clock to t and close t: no more facts hold at or before t. Returns what is known up to t."""
        now = to_integer_time(t)
        self._clock = max(now + 1, self._clock)
        self._add_point(now)
        return StableStep(self._answer_until(now), Fraction(now))

    def finish(self, until: TimeLike | None = None) -> StableStep:
        """End the stream, at `until` or else at the last time seen, and return what is known up to then."""
        return StableStep(self.finish_points(until), self._time)

    def finish_points(self, until: TimeLike | None = None) -> Iterator[StableAnswers]:
        """End the stream as `finish` does, and yield each time point as soon as it is known."""
        last = max(self._points, default=NEG_INF) if until is None else to_integer_time(until)
        return self._answer_until(last)

    def feed(self, data: Dataset) -> Iterator[StableAnswers]:
        """Push facts in order of arrival (a `Dataset` read with `ordered`), each at the time at which it begins."""
        rows = [
            (int(order), fact)
            for relation in data.relations.values()
            for order, fact in zip(_order(relation), to_facts(data.symbols, data.denominator, relation), strict=True)
        ]
        rows.sort(key=lambda row: row[0])
        together: list[Fact] = []
        for _, fact in rows:
            if together and fact.interval.lo != together[0].interval.lo:
                yield from self._push_together(together, data.dates)
                together = []
            together.append(fact)
        if together:
            yield from self._push_together(together, data.dates)

    def _push_together(self, facts: list[Fact], dates: bool) -> StableStep:
        self._stream.dates |= dates
        begin = facts[0].interval.lo
        if isinstance(begin, float):
            raise TidelogError(
                Diagnostic(
                    "TL328",
                    f"the fact {format_fact(facts[0], self.dates)} has no beginning",
                    help="facts that always hold are background: give them as DATA",
                )
            )
        return self.push(begin, facts)

    @property
    def _time(self) -> Time:
        return -INF if self._clock == NEG_INF else Fraction(self._clock)

    # Saved states

    def save(self) -> bytes:
        """Return the whole state; `load` continues from it exactly."""
        from tidelog.streaming.state_format import pack

        return pack({**self._stream.to_json(), "clock": self._clock, "points": sorted(self._points)}, {})

    @classmethod
    def load(cls, state: bytes, program: Program | None = None) -> Self:
        """Return a reasoner that continues where the saved one stopped; `program` must be the same, if given."""
        from tidelog.streaming.state_format import unpack

        meta, _ = unpack(state)
        reasoner = cls.__new__(cls)
        reasoner._stream = FactStream.from_json(meta, program)
        reasoner._set_up(meta["clock"], meta["points"])
        return reasoner

    # Facts

    def _read_all(self, facts: FactsLike, now: int) -> Dataset:
        if isinstance(facts, Dataset):
            return facts
        if isinstance(facts, Mapping):
            return to_dataset(facts).with_background_at(Fraction(now))
        return Dataset.from_facts(self._read(fact, now) for fact in facts)

    def _read(self, fact: str | Fact, now: int) -> Fact:
        read, dated = read_fact(self.program, fact, Fraction(now))
        self._stream.dates |= dated
        if read.interval == Interval.always():
            return Fact(read.predicate, read.args, Interval.point(Fraction(now)))
        return read

    def _add_points(self, facts: Facts) -> None:
        for pairs in facts.values():
            for time in (end for pair in pairs for end in pair):
                if abs(time) != POS_INF:
                    self._add_point(time)

    def _add_point(self, time: int) -> None:
        if self._components.next_time is None or time >= self._components.next_time:
            heappush(self._points, time)

    # Answers

    def _answer_until(self, now: int) -> Iterator[StableAnswers]:
        """Evaluate everything up to a time, and yield what is known at the time points on the way."""
        components = self._components
        if components.next_time is None:
            if not self._points or self._points[0] > now:
                return  # facts that are earlier may follow
            components.start(self._points[0])
        assert components.next_time is not None
        try:
            while self._points and self._points[0] <= now:
                point = heappop(self._points)
                if point >= components.next_time:
                    components.evaluate_until(point)
                    yield self._answers_at(point)
            if components.next_time <= now:
                components.evaluate_until(now)
        except NoWindowLeft as stuck:
            raise self._explain_inconsistency(stuck) from None
        components.forget_facts()

    def _answers_at(self, time: int) -> StableAnswers:
        in_all, in_some = self._components.find_atoms_at(time, self._heads)
        return StableAnswers(Fraction(time), self._to_facts(in_all, time), self._to_facts(in_some, time))

    def _to_facts(self, atoms: list[GroundAtom], time: int) -> tuple[Fact, ...]:
        ranks = self._stream.symbols.ranks()
        atoms.sort(key=lambda atom: (atom[0], [int(ranks[a]) for a in atom[1]]))
        point = Interval.point(Fraction(time))
        return tuple(Fact(name, tuple(self._stream.symbols.value(a) for a in args), point) for name, args in atoms)

    def _explain_inconsistency(self, stuck: NoWindowLeft) -> TidelogError:
        """Build the error for a stream that leaves no stable model: since when, and which constraints are violated."""
        when = "before the stream begins" if stuck.time is None else f"from {stuck.time} on"
        problem = Diagnostic("TL326", f"no stable model is left {when}")
        return Inconsistent([problem, *self._stream.find_violations(stuck)])


def _order(relation: Relation) -> Iterable[int]:
    return range(len(relation)) if relation.order is None else relation.order.tolist()
