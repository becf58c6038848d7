"""Random histories of insertions and deletions over a stream, judged by the law of corrections.

After every step the changes so far, folded, are the answers that a reasoner without corrections gives by the same
clock, fed with the assertions that stand in the order of their times. What stands is counted here, from the definition.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import tidelog as tl
from examine import parse_case
from formula_parts import head_predicates
from strategies import Case
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.streaming import joined_steps, query_evaluation
from tidelog.timeline.interval import INF, Interval, Time, TimelineName


@dataclass(frozen=True)
class Operation:
    """The insertion or deletion of a fact."""

    fact: Fact
    deletes: bool = False

    def __str__(self) -> str:
        return ("-" if self.deletes else "") + format_fact(self.fact)

    @property
    def start(self) -> Fraction:
        return Fraction(self.fact.interval.lo)


@dataclass(frozen=True)
class Arrival:
    """One call: the clock moves (None: operations are fed in order and move it), and operations arrive."""

    clock: Fraction | None
    operations: tuple[Operation, ...]
    over: bool = False
    interrupted: bool = False


@dataclass(frozen=True)
class History:
    """Options, and the calls that follow each other."""

    query: str
    timeline: TimelineName
    length: Fraction
    delay: Fraction
    at: str | None
    step: Fraction | None
    background: tuple[Fact, ...]
    arrivals: tuple[Arrival, ...]
    #: Whether the reasoner is saved between the steps of a feed, so that steps evaluated ahead are rolled back.
    saves: bool = False

    def options(self) -> dict[str, Any]:
        background = tl.Dataset.from_facts(self.background)
        return {"timeline": self.timeline, "delay": self.delay, "at": self.at, "background": background}


def draw_history(case: Case, seed: int) -> History | None:
    """Draw a history with the facts of a case: some come in time, some late or too late, some are taken back."""
    choices = random.Random(seed)
    heads = sorted(head_predicates(case.rules))
    if not heads:
        return None
    tick = Fraction(1) if case.features.integer else Fraction(1, choices.choice(case.features.denominators))
    background = tuple(fact for fact in case.facts if fact.interval.lo == -INF)
    facts = [fact for fact in case.facts if fact.interval.lo != -INF]
    if not facts:
        return None
    delay = choices.choice([Fraction(0), Fraction(0), tick, 3 * tick])
    length = delay + choices.choice([Fraction(0), tick, 3 * tick, Fraction(6), Fraction(30)])
    pool = [shift(fact, n * choices.choice([tick, Fraction(2), Fraction(5)])) for fact in facts for n in range(3)]
    at = choices.choice([None, None, None, "input", f"every:{choices.choice([tick, Fraction(3)])}", "every:3+1"])
    history: list[Arrival] = []
    inserted: list[Fact] = []
    clock = min(Fraction(fact.interval.lo) for fact in pool)
    for _ in range(choices.randint(3, 9)):
        bulk = choices.random() < 0.4
        clock += choices.choice([Fraction(0), tick, tick, Fraction(2), Fraction(4)])
        operations = [
            draw_operation(choices, pool, inserted, clock, length) for _ in range(choices.choice([0, 1, 1, 2, 3, 5]))
        ]
        if bulk:
            clock = max([clock, *(op.start for op in operations if not op.deletes)])
        over = not operations and choices.random() < 0.5
        history.append(Arrival(None if bulk else clock, tuple(operations), over, choices.random() < 0.25))
    step = choices.choice([None, None, Fraction(2)])
    query = choices.choice(heads)
    return History(query, case.features.timeline, length, delay, at, step, background, tuple(history))


def draw_operation(
    choices: random.Random, pool: list[Fact], inserted: list[Fact], clock: Fraction, length: Fraction
) -> Operation:
    """Draw an insertion near the clock, a deletion of something inserted, or a deletion before its insertion."""
    kind = choices.random()
    if inserted and kind < 0.35:
        return Operation(choices.choice(inserted), deletes=True)
    fact = choices.choice(pool)
    if kind < 0.85:  # in time, late, or too late
        span = [Fraction(0), Fraction(0), Fraction(1), length / 2, length, length + 1, Fraction(-2)]
        by = clock - choices.choice(span) - Fraction(fact.interval.lo)
        fact = shift(fact, Fraction(round(by)))
    inserted.append(fact)
    return Operation(fact, deletes=kind > 0.95)


def shift(fact: Fact, by: Fraction) -> Fact:
    held = fact.interval
    return Fact(fact.predicate, fact.args, Interval(held.lo + by, held.hi + by, held.lo_closed, held.hi_closed))


# Judging


class Standing:
    """The assertions that stand, counted from the definition, and how many operations were too late."""

    def __init__(self, length: Fraction) -> None:
        self.length = length
        self.counts: Counter[Fact] = Counter()
        self.late = 0
        #: The first clock that a call has set.
        self.first_clock: Fraction | None = None

    def take(self, operation: Operation, clock: Time) -> None:
        if operation.start < clock - self.length:
            self.late += 1
        else:
            self.counts[operation.fact] += -1 if operation.deletes else 1

    def facts(self) -> list[Fact]:
        return sorted((f for f, count in self.counts.items() if count > 0), key=lambda f: f.interval.lo)


def expected_answers(
    program: tl.Program, history: History, standing: Standing, clock: Fraction, over: bool, *, finished: bool = False
) -> set[Fact]:
    """The answers that a reasoner without corrections gives by a clock, if what stands comes in time order.

    Facts that were withdrawn have not moved its clock, but calls that set the clock have.
    """
    fresh = tl.Reasoner(program, history.query, **history.options())
    found: list[Fact] = []
    facts = standing.facts()
    set_to = [] if standing.first_clock is None else [standing.first_clock]
    for start in sorted({*set_to, *(fact.interval.lo for fact in facts)}):
        if start <= clock:
            found += fresh.push(start, [fact for fact in facts if fact.interval.lo == start])
    found += fresh.advance(clock) if over else fresh.push(clock)
    if finished:
        found += fresh.push(clock, [fact for fact in facts if fact.interval.lo > clock])
        found += fresh.finish()
    assert len(set(found)) == len(found)
    return set(found)


def complaints(program: tl.Program, history: History) -> Iterator[str]:
    """What is wrong with the changes of a history."""
    options = history.options()
    try:
        tl.Reasoner(program, history.query, **options)
    except tl.TidelogError:
        return
    reasoner = tl.Reasoner(program, history.query, corrections=history.length, **options)
    standing, folded = Standing(history.length), set[Fact]()
    clock, over, before = None, False, None
    for number, arrival in enumerate(history.arrivals):
        if arrival.interrupted:
            reasoner = tl.Reasoner.load(reasoner.save())
        for now, changes, taken in run_arrival(reasoner, history, arrival, clock):
            for operation in taken:
                standing.take(operation[0], operation[1])
            if arrival.clock is not None and standing.first_clock is None:
                standing.first_clock = now
            over = arrival.over and now == arrival.clock if clock != now else over or arrival.over
            clock = now
            yield from fold(folded, changes, clock, f"call {number} at {clock}")
            expected = expected_answers(program, history, standing, clock, over)
            if folded != expected:
                yield describe(f"after call {number} at {clock}", expected, folded)
                return
            if reasoner.late_count < standing.late:
                yield f"after call {number}: {reasoner.late_count} were late, not {standing.late}"
        before = clock
    if before is None:
        return
    if reasoner.late_count != standing.late:
        yield f"{reasoner.late_count} were late, not {standing.late}"
    yield from fold(folded, reasoner.finish(), before, "at the end")
    expected = expected_answers(program, history, standing, before, over, finished=True)
    if folded != expected:
        yield describe("at the end", expected, folded)


Taken = list[tuple[Operation, Fraction]]


def run_arrival(
    reasoner: tl.Reasoner, history: History, arrival: Arrival, clock: Fraction | None
) -> Iterator[tuple[Fraction, list[Any], Taken]]:
    """Make a call; yield the clock, the changes and the operations of each of its steps."""
    if arrival.clock is not None:
        now = max(arrival.clock, clock) if clock is not None else arrival.clock
        taken = [(operation, now) for operation in arrival.operations]
        changes = reasoner.advance(now) if arrival.over else reasoner.push(now, map(str, arrival.operations))
        yield now, list(changes), taken
        return
    text = "".join(f"{operation}\n" for operation in arrival.operations)
    waiting: Taken = []
    for operation in arrival.operations:
        if not operation.deletes:
            clock = operation.start if clock is None else max(clock, operation.start)
        waiting.append((operation, clock if clock is not None else Fraction(-(10**9))))
    for step in reasoner.feed(tl.Dataset.parse(text, ordered=True), step=history.step):
        taken = [one for one in waiting if one[1] <= step.time]
        waiting = waiting[len(taken) :]
        if history.saves:
            reasoner.save()
        yield Fraction(step.time), list(step), taken
    assert not waiting or clock is None, f"no step for {waiting}"


def fold(folded: set[Fact], changes: Iterable[Any], clock: Fraction, where: str) -> Iterator[str]:
    """Apply changes to the answers; a change has to be one, and known at the clock."""
    for change in changes:
        if change.known != clock:
            yield f"{where}: {change} is known at {change.known}"
        if (change.fact in folded) == (change.change == "+"):
            yield f"{where}: {change} changes nothing"
        (folded.add if change.change == "+" else folded.discard)(change.fact)


def describe(where: str, expected: set[Fact], found: set[Fact]) -> str:
    missing, more = (sorted(map(format_fact, some)) for some in (expected - found, found - expected))
    return f"{where}: missing {missing}, too many {more}"


def examine_corrections(case: Case, seed: int) -> Iterator[str]:
    """What is wrong with the corrections of a random history over a program."""
    history = draw_history(case, seed)
    words = 16 if seed % 2 else query_evaluation.WORDS_PER_STEP
    if history is not None:
        with patch.object(joined_steps, "WORDS_PER_STEP", words):
            yield from complaints(parse_case(case).program, history)


def describe_history(found: str, case: Case, seed: int) -> str:
    """Show a failing history."""
    history = draw_history(case, seed)
    assert history is not None
    return format_history(found, case, history, seed)


def format_history(found: str, case: Case, history: History, seed: int) -> str:
    """Write a history as text, with what is wrong with it."""
    lines = [f"% {found}", f"% query {history.query}, timeline {history.timeline}, corrections {history.length}"]
    lines += [f"% delay {history.delay}, at {history.at}, step {history.step}, seed {seed}", "--- rules"]
    lines += [str(tl.Program(case.rules, case.features.timeline)).rstrip()]
    lines += ["--- background", *map(format_fact, history.background), "--- history"]
    for arrival in history.arrivals:
        load = "load, " if arrival.interrupted else ""
        call = "feed" if arrival.clock is None else f"{'advance' if arrival.over else 'push'} {arrival.clock}"
        lines.append(f"{load}{call}: {' '.join(map(str, arrival.operations))}")
    return "\n".join(lines)


def examine_numeric_corrections(case: Case, seed: int) -> str:
    """What is wrong with the corrections of a program with numbers; an empty text if nothing is.

    A program may be refused while it runs: where an aggregate cannot look back for a new value, or a sum overflows.
    """
    try:
        return next(examine_corrections(case, seed), "")
    except tl.TidelogError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} <= {"TL311", "TL312", "TL313"}:
            return ""
        raise
