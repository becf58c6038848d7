"""For tests of rules and of programs that reason over streams: a clock that you set, a source that pauses and crashes,
and streams of answers compared by what they mean.

A stream of answers may be cut into pieces in many ways and mean the same, so streams are equal here when their
coalesced answers are. `expect` tests rules in one line, in batch and as a stream; `play` drives a reasoner through a
source with marks, among them `Crash`, after which the reasoner is loaded from its last saved state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tidelog.language.facts import format_fact, parse_fact
from tidelog.language.syntax import Fact
from tidelog.language.times import parse_time
from tidelog.timeline.interval import INF, Interval, Time

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.streaming.reasoner import Reasoner

__all__ = ["Arrival", "Clock", "Comparison", "Crash", "Item", "Pause", "coalesced", "expect", "play", "same_answers"]

#: A time as tests write it; text may be a number, a fraction, a duration or a date.
AnyTime = Fraction | int | str


class Clock:
    """A clock that stands still until it is set; call it for the time.

    >>> clock = Clock(5)
    >>> clock.forward("1/2")
    >>> clock()
    Fraction(11, 2)
    """

    def __init__(self, now: AnyTime = 0) -> None:
        self.now = _time(now)

    def __call__(self) -> Fraction:
        return self.now

    def set(self, t: AnyTime) -> None:
        """Any time, also an earlier one: clocks of machines do that."""
        self.now = _time(t)

    def forward(self, by: AnyTime) -> None:
        self.now += _time(by)


# Sources


@dataclass(frozen=True)
class Arrival:
    """Facts that come when the clock shows `at`. A fact without `@` holds at that time."""

    at: AnyTime
    facts: tuple[str | Fact, ...]

    def __init__(self, at: AnyTime, *facts: str | Fact) -> None:
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "facts", facts)


@dataclass(frozen=True)
class Pause:
    """Nothing comes for a while; at its end the reasoner is told how late it is (`advance`)."""

    length: AnyTime = 0


@dataclass(frozen=True)
class Crash:
    """The reasoner is lost. Its state was last saved `unsaved` items earlier, and these come again."""

    unsaved: int = 0


#: What a source holds: facts (which come when they begin), arrivals and marks.
Item = str | Fact | Arrival | Pause | Crash


def play(
    reasoner: Reasoner,
    source: Iterable[Item],
    *,
    clock: Clock | None = None,
    finish: bool = True,
    until: AnyTime | None = None,
) -> list[Fact]:
    """The answers of a reasoner that is driven through a source, each once, in the order in which they are given.

    What was answered after the last save and before a crash must be answered again, since whoever reads the answers
    may have seen it: an AssertionError says so if it is not. `clock` shows the time of the source as it goes on;
    with `finish` the stream ends after the last item, at time `until` if given.

    >>> import tidelog as tl
    >>> rules = tl.Program.parse("Down :- not Diamondminus[0,5] Beat.")
    >>> reasoner = tl.Reasoner(rules, "Down", background=tl.Dataset.parse("Beat@(-inf,0]"))
    >>> for answer in play(reasoner, ["Beat@1", "Beat@4", Crash(unsaved=1), Pause(8), "Beat@13"], until=14):
    ...     print(answer.predicate, answer.interval)
    Down (9,13)
    """
    items = list(source)
    clock = clock or Clock()
    steps = [number for number, item in enumerate(items) if not isinstance(item, Crash)]
    crashes = {number: _resumed_at(steps, number, item) for number, item in enumerate(items) if isinstance(item, Crash)}
    states: dict[int, tuple[bytes, Fraction]] = {}
    answers: dict[int, list[Fact]] = {}
    for number, item in enumerate(items):
        if number in crashes.values():
            states[number] = reasoner.save(), clock.now
        if not isinstance(item, Crash):
            answers[number] = _step(reasoner, item, clock)
            continue
        state, clock.now = states.get(crashes[number]) or (reasoner.save(), clock.now)
        reasoner = type(reasoner).load(state)
        for again in (step for step in steps if crashes[number] <= step < number):
            found = same_answers(answers[again], _step(reasoner, items[again], clock))
            assert found, f"after a crash, item {again} of the source is answered otherwise:\n{found}"
    given = [answer for number in steps for answer in answers[number]]
    return given + reasoner.finish(None if until is None else _time(until)) if finish else given


def _resumed_at(steps: Sequence[int], crash: int, mark: Crash) -> int:
    """The first item that comes again after a crash; the crash itself if none does."""
    before = [number for number in steps if number < crash]
    assert mark.unsaved <= len(before), f"{mark} has only {len(before)} items before it"
    return before[-mark.unsaved] if mark.unsaved else crash


def _step(reasoner: Reasoner, item: Item, clock: Clock) -> list[Fact]:
    match item:
        case Pause(length):
            clock.forward(length)
            return reasoner.advance(clock.now)
        case Arrival(at, facts):
            clock.set(at)
            return reasoner.push(clock.now, facts)
        case str() | Fact():
            fact = parse_fact(item)[0] if isinstance(item, str) else item
            start = fact.interval.lo
            assert isinstance(start, Fraction), f"{format_fact(fact)} has no beginning: give it as background"
            clock.now = max(clock.now, start)
            return reasoner.push(clock.now, [fact])
    raise TypeError(f"{item} is no item of a source")


# Answers


@dataclass(frozen=True)
class Comparison:
    """Whether two streams of answers are the same (its truth), and where they differ (its text)."""

    missing: tuple[Fact, ...]
    unexpected: tuple[Fact, ...]

    def __bool__(self) -> bool:
        return not self.missing and not self.unexpected

    def __repr__(self) -> str:
        if self:
            return "the same answers"
        lines = [f"- {format_fact(fact)}" for fact in self.missing]
        lines += [f"+ {format_fact(fact)}" for fact in self.unexpected]
        lines.sort(key=lambda line: line[2:])
        return "\n".join(["answers differ (- only in the first, + only in the second):", *lines])


def same_answers(a: Iterable[Fact | str], b: Iterable[Fact | str], *, timeline: str = "rational") -> Comparison:
    """Compares answers by what they mean: in any order, in any pieces.

    >>> bool(same_answers(["P(a)@[0,1)", "P(a)@[1,3]"], ["P(a)@[0,3]"]))
    True
    >>> same_answers(["P(a)@[0,3]"], ["P(a)@[0,2]", "P(b)@7"])
    answers differ (- only in the first, + only in the second):
    - P(a)@(2,3]
    + P(b)@7
    """
    first, second = _by_atom(a), _by_atom(b)
    missing: list[Fact] = []
    unexpected: list[Fact] = []
    for key in sorted({*first, *second}, key=str):
        mine, theirs = (_merged(side.get(key, []), timeline) for side in (first, second))
        missing += [Fact(*key, interval) for interval in _without(mine, theirs, timeline)]
        unexpected += [Fact(*key, interval) for interval in _without(theirs, mine, timeline)]
    return Comparison(tuple(missing), tuple(unexpected))


def coalesced(facts: Iterable[Fact | str], *, timeline: str = "rational") -> list[Fact]:
    """The facts with maximal intervals, sorted by atom and time.

    >>> [str(fact.interval) for fact in coalesced(["P@[0,1]", "P@[2,3]"], timeline="integer")]
    ['[0,3]']
    """
    found = _by_atom(facts)
    return [Fact(*key, interval) for key in sorted(found, key=str) for interval in _merged(found[key], timeline)]


_Atom = tuple[str, tuple[str | Fraction, ...]]
#: An end on a line where each time has a place before it (-1), its own (0) and one after it (1).
_End = tuple[Time, int]


def _by_atom(facts: Iterable[Fact | str]) -> dict[_Atom, list[Interval]]:
    found: dict[_Atom, list[Interval]] = {}
    for given in facts:
        fact = parse_fact(given)[0] if isinstance(given, str) else given
        found.setdefault((fact.predicate, fact.args), []).append(fact.interval)
    return found


def _ends(interval: Interval, timeline: str) -> tuple[_End, _End]:
    """The first and the last place of an interval; over the integers both are times of their own."""
    lo, hi = (interval.lo, 0 if interval.lo_closed else 1), (interval.hi, 0 if interval.hi_closed else -1)
    if timeline == "integer":
        lo = (lo[0] if lo[0] == -INF else (lo[0] // 1 + 1 if lo[1] or lo[0] % 1 else lo[0]), 0)
        hi = (hi[0] if hi[0] == INF else (-(-hi[0] // 1) - 1 if hi[1] or hi[0] % 1 else hi[0]), 0)
    return lo, hi


def _next(end: _End, timeline: str) -> _End:
    """The place after an end, which is no gap on the integers."""
    t, side = end
    if timeline == "integer":
        return t + 1, 0
    return (t, side + 1)


def _merged(intervals: Iterable[Interval], timeline: str) -> list[Interval]:
    merged: list[tuple[_End, _End]] = []
    for lo, hi in sorted(_ends(interval, timeline) for interval in intervals):
        if merged and lo <= _next(merged[-1][1], timeline):
            merged[-1] = merged[-1][0], max(hi, merged[-1][1])
        elif lo <= hi:
            merged.append((lo, hi))
    return [_interval(lo, hi) for lo, hi in merged]


def _interval(lo: _End, hi: _End) -> Interval:
    return Interval(lo[0], hi[0], lo[1] == 0 and lo[0] != -INF, hi[1] == 0 and hi[0] != INF)


def _without(mine: Iterable[Interval], theirs: Sequence[Interval], timeline: str) -> Iterator[Interval]:
    """The parts of maximal intervals that others do not cover."""
    taken = [_ends(interval, timeline) for interval in theirs]
    for interval in mine:
        lo, hi = _ends(interval, timeline)
        for first, last in taken:
            if last < lo or first > hi:
                continue
            before = (first[0] - 1, 0) if timeline == "integer" else (first[0], first[1] - 1)
            if lo <= before:
                yield _interval(lo, before)
            if last >= hi:
                break
            lo = _next(last, timeline)
        else:
            yield _interval(lo, hi)


# Rules


def expect(
    rules: str,
    facts: str,
    query: str,
    answers: str,
    *,
    until: AnyTime | None = None,
    stream: bool = True,
    syntax: str = "dmtl",
    timeline: str | None = None,
    delay: AnyTime = 0,
    memory: str | None = None,
) -> None:
    """Asserts what rules make of facts, as text: in batch, and as a stream that ends at `until`.

    Only what happens up to `until` counts; unless given, that is one time unit after the last time that facts or
    answers mention. `stream=False` is for rules that no stream can run, since they look ahead for ever.

    >>> expect("Hot(X) :- Boxminus[0,2] High(X).", "High(t1)@[0,9]", "Hot", "Hot(t1)@[2,9]")
    >>> expect("Hot(X) :- Boxminus[0,2] High(X).", "High(t1)@[0,9]", "Hot", "Hot(t1)@[2,10]")
    Traceback (most recent call last):
    ...
    AssertionError: Hot in batch: answers differ (- only in the first, + only in the second):
    - Hot(t1)@(9,10]
    """
    import tidelog as tl

    program = tl.Program.parse(rules, syntax=syntax)
    line = timeline or program.timeline
    data, expected = tl.Dataset.parse(facts), list(tl.Dataset.parse(answers))
    if program.temporal is not None:
        data = data.timed(program.temporal.temporal)
    end = last_time([*data, *expected]) + 1 if until is None else _time(until)
    expected = list(clipped(expected, end))
    found = list(tl.materialise(program, data, query=query, between=(-INF, end), timeline=timeline))
    difference = same_answers(expected, found, timeline=line)
    if not difference:
        raise AssertionError(f"{query} in batch: {difference}")
    if stream:
        given = list(streamed(program, data, query, end, timeline, delay, memory))
        difference = same_answers(expected, given, timeline=line)
        if not difference:
            raise AssertionError(f"{query} as a stream: {difference}")


def streamed(
    program: object, data: Dataset, query: str, end: Fraction, timeline: str | None, delay: AnyTime, memory: str | None
) -> Iterator[Fact]:
    """The answers over facts that come when they begin; what has always been is background."""
    import tidelog as tl

    assert isinstance(program, tl.Program)
    facts = list(data)
    background = tl.Dataset.from_facts(fact for fact in facts if fact.interval.lo == -INF)
    reasoner = tl.Reasoner(program, query, timeline=timeline, background=background, delay=delay, memory=memory)
    streamed = [fact for fact in facts if fact.interval.lo != -INF and fact.interval.lo <= end]
    streamed.sort(key=lambda fact: fact.interval.lo)
    yield from play(reasoner, streamed, until=end)


def last_time(facts: Iterable[Fact]) -> Fraction:
    ends = (end for fact in facts for end in (fact.interval.lo, fact.interval.hi))
    return max((end for end in ends if isinstance(end, Fraction)), default=Fraction(0))


def clipped(facts: Iterable[Fact], end: Fraction) -> Iterator[Fact]:
    for fact in facts:
        interval = fact.interval
        if interval.hi > end:
            interval = Interval(interval.lo, end, interval.lo_closed, True)
        if not interval.is_empty():
            yield Fact(fact.predicate, fact.args, interval)


def _time(t: AnyTime) -> Fraction:
    found = parse_time(t)[0] if isinstance(t, str) else Fraction(t)
    assert isinstance(found, Fraction), f"{t} is no time point"
    return found
