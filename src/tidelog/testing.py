"""Tools for testing rules and programs that reason over streams.

`expect` tests rules in one line, in batch and as a stream. `play` drives a reasoner through a source with marks, among
them `Crash`, after which the reasoner is loaded from its last saved state. `Clock` is a clock that you set.
`same_answers` compares streams of answers: a stream can be cut into pieces in many ways, so two streams are equal here
when their coalesced answers are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tidelog.language.fact_text import format_fact, parse_fact
from tidelog.language.syntax import Fact
from tidelog.language.time_like import DurationLike, TimeLike, to_duration, to_finite_time
from tidelog.timeline.interval import INF, Interval, Time, TimelineName

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program
    from tidelog.streaming.reasoner import Reasoner

__all__ = [
    "Arrival",
    "Clock",
    "Comparison",
    "Crash",
    "Item",
    "Pause",
    "coalesce_facts",
    "expect",
    "play",
    "same_answers",
]


class Clock:
    """A clock that stands still until it is set; call it for the time.

    >>> clock = Clock(5)
    >>> clock.forward("1/2")
    >>> clock()
    Fraction(11, 2)
    """

    def __init__(self, now: TimeLike = 0) -> None:
        self.now = to_finite_time(now)

    def __call__(self) -> Fraction:
        return self.now

    def set(self, t: TimeLike) -> None:
        """Set the clock to any time, also to an earlier one, as the clocks of machines do."""
        self.now = to_finite_time(t)

    def forward(self, by: DurationLike) -> None:
        self.now += to_duration(by)


# Sources


@dataclass(frozen=True)
class Arrival:
    """Facts that arrive when the clock shows `at`. A fact without `@` holds at that time."""

    at: TimeLike
    facts: tuple[str | Fact, ...]

    def __init__(self, at: TimeLike, *facts: str | Fact) -> None:
        object.__setattr__(self, "at", at)
        object.__setattr__(self, "facts", facts)


@dataclass(frozen=True)
class Pause:
    """A time without arrivals; at its end the clock of the reasoner is advanced."""

    length: DurationLike = 0


@dataclass(frozen=True)
class Crash:
    """The loss of the reasoner. Its state was last saved `unsaved` items earlier, and these arrive again."""

    unsaved: int = 0


#: An item of a source: a fact (which arrives when it begins), an arrival or a mark.
Item = str | Fact | Arrival | Pause | Crash


def play(
    reasoner: Reasoner,
    source: Iterable[Item],
    *,
    clock: Clock | None = None,
    finish: bool = True,
    until: TimeLike | None = None,
) -> list[Fact]:
    """Drive a reasoner through a source and return its answers, each once, in order.

    Answers given after the last save and before a crash must be given again, since their reader may have seen them. If
    they are not, an AssertionError is raised. `clock` shows the time of the source as it proceeds. With `finish` the
    stream ends after the last item, at time `until` if given.

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
    crashes = {
        number: _resume_item(steps, number, item) for number, item in enumerate(items) if isinstance(item, Crash)
    }
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
            assert found, f"after a crash, item {again} of the source has other answers:\n{found}"
    given = [answer for number in steps for answer in answers[number]]
    return given + reasoner.finish(None if until is None else to_finite_time(until)) if finish else given


def _resume_item(steps: Sequence[int], crash: int, mark: Crash) -> int:
    """Find the first item that arrives again after a crash; the crash itself if none does."""
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
    raise TypeError(f"{item} is not an item of a source")


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


def same_answers(
    a: Iterable[Fact | str], b: Iterable[Fact | str], *, timeline: TimelineName = "rational"
) -> Comparison:
    """Compare answers by their meaning: in any order, cut into any pieces.

    >>> bool(same_answers(["P(a)@[0,1)", "P(a)@[1,3]"], ["P(a)@[0,3]"]))
    True
    >>> same_answers(["P(a)@[0,3]"], ["P(a)@[0,2]", "P(b)@7"])
    answers differ (- only in the first, + only in the second):
    - P(a)@(2,3]
    + P(b)@7
    """
    first, second = _group_by_atom(a), _group_by_atom(b)
    missing: list[Fact] = []
    unexpected: list[Fact] = []
    for key in sorted({*first, *second}, key=str):
        mine, theirs = (_merge(side.get(key, []), timeline) for side in (first, second))
        missing += [Fact(*key, interval) for interval in _subtract(mine, theirs, timeline)]
        unexpected += [Fact(*key, interval) for interval in _subtract(theirs, mine, timeline)]
    return Comparison(tuple(missing), tuple(unexpected))


def coalesce_facts(facts: Iterable[Fact | str], *, timeline: TimelineName = "rational") -> list[Fact]:
    """Return the facts with maximal intervals, sorted by atom and time.

    >>> [str(fact.interval) for fact in coalesce_facts(["P@[0,1]", "P@[2,3]"], timeline="integer")]
    ['[0,3]']
    """
    found = _group_by_atom(facts)
    return [Fact(*key, interval) for key in sorted(found, key=str) for interval in _merge(found[key], timeline)]


_Atom = tuple[str, tuple[str | Fraction, ...]]
#: An end on a line where each time has a place before it (-1), its own (0) and one after it (1).
_End = tuple[Time, int]


def _group_by_atom(facts: Iterable[Fact | str]) -> dict[_Atom, list[Interval]]:
    found: dict[_Atom, list[Interval]] = {}
    for given in facts:
        fact = parse_fact(given)[0] if isinstance(given, str) else given
        found.setdefault((fact.predicate, fact.args), []).append(fact.interval)
    return found


def _find_ends(interval: Interval, timeline: TimelineName) -> tuple[_End, _End]:
    """Return the first and the last place of an interval; over the integers both are times of their own."""
    lo, hi = (interval.lo, 0 if interval.lo_closed else 1), (interval.hi, 0 if interval.hi_closed else -1)
    if timeline == "integer":
        lo = (lo[0] if lo[0] == -INF else (lo[0] // 1 + 1 if lo[1] or lo[0] % 1 else lo[0]), 0)
        hi = (hi[0] if hi[0] == INF else (-(-hi[0] // 1) - 1 if hi[1] or hi[0] % 1 else hi[0]), 0)
    return lo, hi


def _find_next(end: _End, timeline: TimelineName) -> _End:
    """Return the place after an end, which is no gap on the integers."""
    t, side = end
    if timeline == "integer":
        return t + 1, 0
    return (t, side + 1)


def _merge(intervals: Iterable[Interval], timeline: TimelineName) -> list[Interval]:
    merged: list[tuple[_End, _End]] = []
    for lo, hi in sorted(_find_ends(interval, timeline) for interval in intervals):
        if merged and lo <= _find_next(merged[-1][1], timeline):
            merged[-1] = merged[-1][0], max(hi, merged[-1][1])
        elif lo <= hi:
            merged.append((lo, hi))
    return [_interval(lo, hi) for lo, hi in merged]


def _interval(lo: _End, hi: _End) -> Interval:
    return Interval(lo[0], hi[0], lo[1] == 0 and lo[0] != -INF, hi[1] == 0 and hi[0] != INF)


def _subtract(mine: Iterable[Interval], theirs: Sequence[Interval], timeline: TimelineName) -> Iterator[Interval]:
    """Yield the parts of maximal intervals that others do not cover."""
    taken = [_find_ends(interval, timeline) for interval in theirs]
    for interval in mine:
        lo, hi = _find_ends(interval, timeline)
        for first, last in taken:
            if last < lo or first > hi:
                continue
            before = (first[0] - 1, 0) if timeline == "integer" else (first[0], first[1] - 1)
            if lo <= before:
                yield _interval(lo, before)
            if last >= hi:
                break
            lo = _find_next(last, timeline)
        else:
            yield _interval(lo, hi)


# Rules


def expect(
    rules: str | Program,
    facts: str,
    query: str,
    answers: str,
    *,
    until: TimeLike | None = None,
    stream: bool = True,
    timeline: TimelineName | None = None,
    delay: DurationLike = 0,
) -> None:
    """Assert the answers that rules give to facts, all as text: in batch, and as a stream that ends at `until`.

    Rules as text are DatalogMTL; for temporal Datalog, pass a program.

    Only times up to `until` count. By default that is one time unit after the last time in the facts or answers.
    `stream=False` is for rules that no stream can run, because they look ahead without bound.

    >>> expect("Hot(X) :- Boxminus[0,2] High(X).", "High(t1)@[0,9]", "Hot", "Hot(t1)@[2,9]")
    >>> expect("Hot(X) :- Boxminus[0,2] High(X).", "High(t1)@[0,9]", "Hot", "Hot(t1)@[2,10]")
    Traceback (most recent call last):
    ...
    AssertionError: Hot in batch: answers differ (- only in the first, + only in the second):
    - Hot(t1)@(9,10]
    """
    import tidelog as tl
    from tidelog.compiler.prepare_facts import read_time_arguments

    program = tl.Program.parse(rules) if isinstance(rules, str) else rules
    line = timeline or program.timeline
    data, expected = read_time_arguments(program, tl.Dataset.parse(facts)), list(tl.Dataset.parse(answers))
    end = last_time([*data, *expected]) + 1 if until is None else to_finite_time(until)
    expected = list(clip_facts(expected, end))
    found = list(tl.materialise(program, data, query=query, between=(-INF, end), timeline=timeline))
    difference = same_answers(expected, found, timeline=line)
    if not difference:
        raise AssertionError(f"{query} in batch: {difference}")
    if stream:
        given = list(stream_answers(program, data, query, end, timeline, delay))
        difference = same_answers(expected, given, timeline=line)
        if not difference:
            raise AssertionError(f"{query} as a stream: {difference}")


def stream_answers(
    program: Program,
    data: Dataset,
    query: str,
    end: Fraction,
    timeline: TimelineName | None,
    delay: DurationLike,
) -> Iterator[Fact]:
    """Yield the answers over facts that arrive when they begin; facts without a beginning are background."""
    import tidelog as tl

    facts = list(data)
    background = tl.Dataset.from_facts(fact for fact in facts if fact.interval.lo == -INF)
    reasoner = tl.Reasoner(program, query, timeline=timeline, background=background, delay=delay)
    reasoner.note_dates(data.dates)
    streamed = [fact for fact in facts if fact.interval.lo != -INF and fact.interval.lo <= end]
    streamed.sort(key=lambda fact: fact.interval.lo)
    yield from play(reasoner, streamed, until=end)


def last_time(facts: Iterable[Fact]) -> Fraction:
    ends = (end for fact in facts for end in (fact.interval.lo, fact.interval.hi))
    return max((end for end in ends if isinstance(end, Fraction)), default=Fraction(0))


def clip_facts(facts: Iterable[Fact], end: Fraction) -> Iterator[Fact]:
    for fact in facts:
        interval = fact.interval
        if interval.hi > end:
            interval = Interval(interval.lo, end, interval.lo_closed, True)
        if not interval.is_empty():
            yield Fact(fact.predicate, fact.args, interval)
