"""A reasoner that keeps everything and asks batch reasoning at every step: slow, and right by what the words mean.

It judges the judges: a test of streaming that it fails is a wrong test. Where the contract leaves room (how a step is
measured, what is held) it says nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import tidelog as tl
from tidelog.compiler.compiled_program import Memory
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import INF, Interval, TimelineName


@dataclass(frozen=True)
class SlowStep:
    """One step of a bulk run."""

    t: Fraction
    facts_in: int
    answers: list[Fact]


class SlowReasoner:
    def __init__(
        self,
        program: tl.Program,
        query: str,
        *,
        timeline: TimelineName | None = None,
        background: tl.Dataset | None = None,
        delay: Any = 0,
        memory: Memory | None = None,
        at: Any = None,
    ) -> None:
        ahead = tl.check(program, query, timeline=timeline).look_ahead
        if ahead.distance == INF:
            raise tl.TidelogError(_refusal(ahead.rule))
        self.program, self.query, self.timeline, self.memory, self.at = program, query, timeline, memory, at
        self.ahead = Fraction(ahead.distance)
        delays = delay if isinstance(delay, Mapping) else {None: delay}
        self.delays = {name: Fraction(value) for name, value in delays.items()}
        self.facts: list[Fact] = list(background) if background else []
        self.points: set[Fraction] = set()
        self.clock: Fraction | None = None
        self.over = False  # whether nothing more comes at the clock's time
        self.sent: set[Fact] = set()
        self.late_count = 0

    def push(self, t: Any, facts: Iterable[str | Fact] | tl.Dataset = ()) -> list[Fact]:
        t = Fraction(t)
        given = [self._read(fact, t) for fact in facts]
        if self.clock is None or t > self.clock:
            self.clock, self.over = t, False
        self._take(given)
        return self._certain()

    def advance(self, t: Any) -> list[Fact]:
        t = Fraction(t)
        if self.clock is None or t >= self.clock:
            self.clock, self.over = t, True
        return self._certain()

    def feed(self, data: tl.Dataset, *, step: Fraction | None = None) -> Iterator[SlowStep]:
        for fact in arrivals(data):
            start = fact.interval.lo
            if start == -INF:
                self.facts.append(fact)
            else:
                answers = self.push(max(self.clock if self.clock is not None else start, Fraction(start)), [fact])
                yield SlowStep(Fraction(start), 1, answers)

    def finish(self, until: Any = None) -> list[Fact]:
        times = [*self.points, *([] if self.clock is None else [self.clock])]
        end = Fraction(until) if until is not None else max(times)
        return self._give(self._model(end), end, last=True)

    def finish_step(self, until: Any = None) -> SlowStep:
        return SlowStep(Fraction(0), 0, self.finish(until))

    def save(self) -> bytes:
        return pickle.dumps(self)

    @staticmethod
    def load(state: bytes, program: tl.Program | None = None) -> SlowReasoner:
        found = pickle.loads(state)
        assert isinstance(found, SlowReasoner)
        return found

    def _read(self, fact: str | Fact, t: Fraction) -> Fact:
        if isinstance(fact, Fact):
            return fact
        read, _ = parse_fact(fact)
        return read if "@" in fact else Fact(read.predicate, read.args, Interval.point(t))

    def _take(self, facts: Iterable[Fact]) -> None:
        assert self.clock is not None
        for fact in facts:
            delay = self.delays.get(fact.predicate, self.delays.get(None, Fraction(0)))
            start, latest = fact.interval.lo, self.clock - delay
            if start < latest or (start == latest and self.over and fact.interval.lo_closed):
                self.late_count += 1
            else:
                self.facts.append(fact)
                self.points |= {Fraction(t) for t in (start, fact.interval.hi) if abs(t) != INF}

    def _model(self, end: Fraction) -> list[Fact]:
        data = tl.Dataset.from_facts(self.facts)
        if self.query not in {*self.program.predicates, *(name for name, _ in data.relations)}:
            return []
        return list(tl.materialise(self.program, data, query=self.query, between=(-INF, end), timeline=self.timeline))

    def _certain(self) -> list[Fact]:
        if self.clock is None:
            return []
        frontier = self.clock - max(self.delays.values(), default=Fraction(0)) - self.ahead
        return self._give(self._model(frontier), frontier, last=False)

    def _give(self, model: list[Fact], frontier: Fraction, *, last: bool) -> list[Fact]:
        integer = (self.timeline or self.program.timeline) == "integer"
        found = []
        for fact in model:
            if self.at is None:
                known = last or (
                    fact.interval.hi < frontier - (integer and not self.over)
                    if self.ahead or fact.interval.hi_closed
                    else fact.interval.hi < frontier or (self.over and fact.interval.hi == frontier)
                )
                found += [fact] if known else []
            else:
                found += [
                    Fact(fact.predicate, fact.args, Interval.point(t))
                    for t in self._times(frontier)
                    if contains(fact.interval, t) and (last or t < frontier)
                ]
        new = sorted(set(found) - self.sent, key=end_key)
        self.sent |= set(new)
        return new

    def _times(self, frontier: Fraction) -> Iterable[Fraction]:
        if self.at == "input":
            return sorted(t for t in self.points if t <= frontier)
        if isinstance(self.at, str):
            return multiples_up_to(self.at, frontier)
        return [t for t in self.at if t <= frontier]


def multiples_up_to(at: str, end: Fraction) -> list[Fraction]:
    """The times from 0 to the end that are a multiple, plus the offset if there is one: `every:2+1/2`."""
    every, _, offset = at.removeprefix("every:").partition("+")
    step, first = Fraction(every), Fraction(offset or 0)
    found = [first + step * n for n in range(-int(first // step) - 1, int(abs(end) // step) + 2)]
    return [t for t in found if 0 <= t <= end]


def end_key(fact: Fact) -> tuple[Any, ...]:
    """The order in which answers come: by when they end."""
    return fact.interval.hi, fact.interval.hi_closed


def contains(interval: Interval, t: Fraction) -> bool:
    after = interval.lo < t or (interval.lo == t and interval.lo_closed)
    return after and (t < interval.hi or (t == interval.hi and interval.hi_closed))


def arrivals(data: tl.Dataset) -> list[Fact]:
    """The facts in the order of arrival, or of time where none is known."""
    facts = list(data)
    orders = [relation.order for relation in data.relations.values() if relation.order is not None]
    if len(orders) == len(data.relations):
        numbers = [int(n) for order in orders for n in order]
        return [fact for _, fact in sorted(zip(numbers, facts, strict=True), key=lambda pair: pair[0])]
    return sorted(facts, key=lambda fact: fact.interval.lo)


def _refusal(rule: Any) -> Any:
    from tidelog.errors import Diagnostic

    return Diagnostic("TL400", f"looks ahead for ever: {rule.text if rule else ''}", rule.place if rule else None)
