"""Streaming: the behaviour suite and random programs, fed in many ways, against batch reasoning and the oracle."""

from __future__ import annotations

import faulthandler
import itertools
import random
import resource
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases
from formula_parts import head_predicates
from locations import TRAFFIC_DATA, TRAFFIC_MISSING
from slow_reasoner import SlowReasoner
from strategies import BOTH, FORWARD, Case, Features, cases
from streams import Plan, Setup, complaints, plans, set_up
from streams_random import describe, examine_stream, memory_complaints
from tidelog.compiler.compiled_program import Memory
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.testing import Arrival, Clock, Crash, Item, Pause, expect, play, same_answers
from tidelog.timeline.interval import Interval, TimelineName

pytestmark = pytest.mark.usefixtures("kernels", "little_memory")

#: Ways to feed a stream that every case of the behaviour suite goes through; more are drawn.
WAYS = {
    "one by one": Plan(),
    "in bulk": Plan(bulk=True),
    "in bulk, by steps": Plan(1, bulk=True, step=Fraction(1), interrupted=True),
    "generic, interrupted": Plan(2, memory="generic", interrupted=True, beyond=Fraction(3)),
    "bounded": Plan(3, memory="bounded", interrupted=True),
    "at the input's times": Plan(4, at="input", beyond=None),
    "at multiples, delayed": Plan(5, at="every:1", delays=((None, Fraction(2)),), interrupted=True),
    "at given times": Plan(6, bulk=True, at=tuple(Fraction(n) for n in range(-3, 20, 2))),
    "delayed": Plan(7, delays=((None, Fraction(3)),)),
    "delayed, in bulk": Plan(8, bulk=True, delays=((None, Fraction(1)),), step=Fraction(4), interrupted=True),
    "early": Plan(9, early=True, beyond=Fraction(1)),
}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A run that derives without end shall fail, and not take the machine with it."""
    used = Path("/proc/self/statm")
    if not used.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(used.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 2 * 2**30, hard))
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# The behaviour suite


def setups(case: Behaviour) -> list[Setup]:
    """One setup for each predicate that the case asks for."""
    program, data = tl.Program.parse(case.rules, syntax=case.syntax), tl.Dataset.parse(case.facts)
    if program.temporal is not None:
        data = data.with_time_arguments(program.temporal.temporal)
    heads = sorted(name for name in head_predicates(program.rules) if not name.startswith("$"))
    queries = list(case.queries) or heads
    return [set_up(program, query, data, case.timeline) for query in queries]


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_behaviour(case: Behaviour) -> None:
    for setup in setups(case):
        for name, way in WAYS.items():
            if str(way.at).startswith("every") and setup.last > 1000:
                way = replace(way, at=None)
            assert next(complaints(tl.Reasoner, setup, way, strict=True), None) is None, f"query {setup.query}, {name}"


@pytest.mark.parametrize(
    "rule",
    [
        "Q(X) :- Diamondplus[0,inf) P(X).",
        "Q(X) :- P(X), not R(X) Until[1,inf) P(X).",
        "Boxminus[0,inf) Q(X) :- P(X).",
        "Q(X) :- Diamondplus[1,2] Q(X).",
        "Q(X) :- P(X), Boxplus[0,1] R(X), Diamondplus[0,1] Q(X).",
    ],
)
def test_what_looks_ahead_for_ever_is_refused_and_the_rule_is_named(rule: str) -> None:
    program = tl.Program.parse(f"Z(X) :- P(X).\nQ(X) :- S(X).\n{rule}")
    with pytest.raises(tl.TidelogError) as raised:
        tl.Reasoner(program, "Q")
    assert rule.removesuffix(".") in str(raised.value)
    assert tl.Reasoner(program, "Z").finish(1) == []  # which does not depend on it


# Random programs

PARTS = {
    "forward": FORWARD,
    "negation and constraints": replace(FORWARD, negation=True, constraints=True),
    "unbounded": replace(FORWARD, unbounded=True, negation=True),
    "integers": replace(FORWARD, integer=True, denominators=(1,), unbounded=True, negation=True, constraints=True),
    "rationals": replace(FORWARD, denominators=(2, 3), negation=True),
    "look-ahead": replace(BOTH, recursive=False, negation=True, constraints=True),
    "look-ahead over integers": replace(BOTH, recursive=False, negation=True, integer=True, denominators=(1,)),
    "everything": replace(BOTH, unbounded=True, negation=True, constraints=True),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_random_programs(part: Features) -> None:
    @settings(max_examples=40, phases=[Phase.generate])  # `make fuzz` makes failures smaller
    @given(cases(part), st.data())
    def agree(case: Case, data: st.DataObject) -> None:
        plan = data.draw(plans(("A", "B"), integer=part.integer))
        found = next(examine_stream(tl.Reasoner, case, plan), None)
        if found:
            note(describe(found, case, plan))
        assert not found

    agree()


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_the_judge_agrees_with_a_reasoner_that_keeps_everything(part: Features) -> None:
    @settings(max_examples=4, phases=[Phase.generate])  # `make fuzz` makes failures smaller
    @given(cases(part), st.data())
    def agree(case: Case, data: st.DataObject) -> None:
        plan = data.draw(plans(("A", "B"), integer=part.integer))
        found = next(examine_stream(SlowReasoner, case, plan), None)
        if found:
            note(describe(found, case, plan))
        assert not found

    agree()


# What is held


@pytest.mark.parametrize("memory", ["generic", None])
def test_what_is_held_is_what_rules_can_look_back_at(memory: Memory | None) -> None:
    @settings(max_examples=25, phases=[Phase.generate])  # `make fuzz` makes failures smaller
    @given(cases(replace(FORWARD, negation=True, endless_data=False)), st.integers(0, 99))
    def bounded(case: Case, seed: int) -> None:
        found = next(memory_complaints(tl.Reasoner, case, seed, memory), None)
        if found:
            note(describe(found, case, Plan(seed, memory=memory)))
        assert not found

    bounded()


def test_irrelevant_predicates_are_never_held() -> None:
    reasoner = tl.Reasoner(tl.Program.parse("A :- Diamondminus[0,100] B.  C :- Diamondminus[0,100] D."), "A")
    for t in range(50):
        reasoner.push(t, ["D", "E(1)"])
    reasoner.advance(50)
    assert reasoner.last_step.window_facts == 0
    assert reasoner.last_step.history_atoms == 0


def test_a_dense_stream_needs_no_more_when_memory_is_bounded() -> None:
    program = tl.Program.parse("Hot(X) :- Boxminus[0,4] Diamondminus[0,2] Temp(X).")
    held = {}
    for each in (1, 10, 100):
        reasoner = tl.Reasoner(program, "Hot", memory="bounded")
        most = 0
        for n in range(30 * each):
            reasoner.push(Fraction(n, each), ["Temp(a)"])
            most = max(most, reasoner.last_step.window_facts)
        held[each] = most
        assert answers_of(reasoner.finish()) == [f"Hot(a)@[4,{Fraction(30 * each - 1, each)}]"]
    assert held[100] <= max(2 * held[10], 20)


def test_flat_memory_over_a_long_stream() -> None:
    program = tl.Program.parse(
        """
        Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z).
        Boxplus[0,3] Monit(X, Z) :- Flag(Y, Z), Connect(X, Y).
        """
    )
    background = tl.Dataset.parse("Connect(a,b)\nConnect(b,a)\nConnect(c,a)")
    reasoner = tl.Reasoner(program, "Flag", background=background)
    choose, held = random.Random(5), []
    for t in range(400):
        reasoner.push(t, [f"Signal(s{choose.randint(1, 4)})", f"Monit(b,s{choose.randint(1, 4)})"])
        held.append(reasoner.last_step.window_facts)
    # Signal, what follows from it, Monit, Flag and what they hand on, within 2 + 4 + 3 time units and for 4 signals.
    assert max(held) <= 200
    assert max(held[200:]) <= 1.5 * max(held[20:200])


# The literature's examples

MONITOR = "Flag(X, Z) :- Monit(X, Z), Boxminus[0,4] Diamondminus[0,2] Signal(Z)."


def test_paper_2_examples_8_and_9() -> None:
    reasoner = tl.Reasoner(tl.Program.parse(MONITOR), "Flag", memory="generic", at="input")
    for t in ("96.3", "98", "100"):
        assert reasoner.push(Fraction(t), ["Signal(s1)"]) == []
    assert reasoner.advance(100) == []
    # The window holds three signals and P(s1)@[97,100] before the step, where the history is empty.
    assert reasoner.last_step.window_facts <= 4
    answers = reasoner.push(101, ["Monit(n,s1)"]) + reasoner.advance(101)
    assert answers_of(answers) == ["Flag(n,s1)@101"]
    # Afterwards: Signal at 98 and 100, P on [97,101], P', Monit and Flag at 101; the history holds Signal(s1).
    assert reasoner.last_step.window_facts <= 6
    assert reasoner.last_step.history_atoms <= 1
    assert reasoner.finish() == []


NORMAL_FORM = """
    P(Z) :- Diamondminus[0,2] Signal(Z).
    P2(Z) :- Boxminus[0,4] P(Z).
    Flag(X, Z) :- Monit(X, Z), P2(Z).
"""


def held_between(reasoner: tl.Reasoner, lo: str, hi: str) -> set[str]:
    """All facts that a reasoner holds, clipped to a window."""
    window = Fraction(lo), Fraction(hi)
    evaluation = reasoner.evaluation
    form, store, symbols = evaluation.form, evaluation.store, evaluation.symbols
    found = set()
    for number, name in enumerate(form.names):
        rows = store.rows(number)
        for place in range(len(rows)):
            held = evaluation.grid.to_interval(int(rows.lo[place]), int(rows.hi[place]))
            clipped = Interval(max(held.lo, window[0]), min(held.hi, window[1]))
            if not clipped.is_empty():
                found.add(format_fact(Fact(name, tuple(symbols.value(int(a)) for a in rows.args[:, place]), clipped)))
    return found


@pytest.mark.parametrize("memory", ["generic", "bounded"])
def test_paper_2_examples_8_and_9_fact_by_fact(memory: Memory) -> None:
    reasoner = tl.Reasoner(tl.Program.parse(NORMAL_FORM), "Flag", memory=memory, at="input")
    for t in ("96.3", "98", "100"):
        reasoner.push(Fraction(t), ["Signal(s1)"])
    reasoner.advance(100)
    signals = {"Signal(s1)@98", "Signal(s1)@100"}
    assert held_between(reasoner, "97", "100") <= signals | {"P(s1)@[97,100]"}
    answers = answers_of(reasoner.push(101, ["Monit(n,s1)"]) + reasoner.advance(101))
    assert answers == ["Flag(n,s1)@101"]
    # The example begins with P from 97 on, so that P' holds at 101; with the signal at 96.3 it does from 100.3 on.
    window = signals | {"P(s1)@[97,101]", "P2(s1)@[1003/10,101]", "Monit(n,s1)@101", "Flag(n,s1)@101"}
    assert held_between(reasoner, "97", "101") <= window
    assert held_between(reasoner, "97", "101") >= {"P(s1)@[97,101]"}, "which later steps need"
    assert reasoner.last_step.history_atoms == 0, "no rule looks back for ever, so not even Signal(s1) is kept"


# Real streams

SHORT_STOP = "NotPos(V) :- NotOnMap(V).\n" + "\n".join(
    "ShortStop(V) :- NotPos(V), "
    + ", ".join(f"Diamondminus[{i},{i}] Pos(V)" for i in range(1, k + 1))
    + f", Diamondminus[{k + 1},{k + 1}] NotPos(V)."
    for k in range(1, 5)
)


@pytest.mark.parametrize(("name", "count", "most"), [("S1", 1263, 430), ("S2", 5350, 1325)])
def test_short_stops_in_traffic(name: str, count: int, most: int) -> None:
    path = TRAFFIC_DATA / f"traffic-{name}.txt"
    if not path.exists():
        pytest.skip(TRAFFIC_MISSING)
    reasoner = tl.Reasoner(tl.Program.parse(SHORT_STOP), "ShortStop", at="input")
    steps = list(reasoner.feed(tl.Dataset.load(path, ordered=True)))
    last = reasoner.finish_step()
    assert sum(len(step.answers) for step in (*steps, last)) == count
    held = [step.window_facts for step in steps]
    assert max(held) <= most
    assert reasoner.late_count == 0


# Time, lateness, and what else may happen to a stream


def answers_of(answers: Iterable[tl.Fact]) -> list[str]:
    return list(map(format_fact, answers))


def stream(rules: str, query: str, **options: Any) -> tl.Reasoner:
    return tl.Reasoner(tl.Program.parse(rules), query, **options)


COPY = "Q(X) :- P(X)."


def test_late_facts_are_counted_and_never_taken() -> None:
    reasoner = stream(COPY, "Q", delay=2)
    answers = reasoner.push(10, ["P(a)"])
    answers += reasoner.push(10, ["P(b)@8", "P(c)@7", "P(d)@[7,12]", "P(e)@(7,9]"])
    assert reasoner.late_count == 3
    answers += reasoner.push(11, ["P(f)"]) + reasoner.finish()
    assert answers_of(answers) == ["Q(b)@8", "Q(a)@10", "Q(f)@11"]
    assert reasoner.late_count == 3


def test_late_facts_are_shown_by_the_step_in_bulk() -> None:
    reasoner = stream(COPY, "Q", delay=1)
    data = tl.Dataset.parse("P(a)@5\nP(b)@4\nP(c)@3\nP(d)@6", ordered=True)
    steps = list(reasoner.feed(data))
    assert [fact for step in steps for fact in answers_of(step.late)] == ["P(c)@3"]
    answers = [fact for step in [*steps, reasoner.finish_step()] for fact in answers_of(step.answers)]
    assert answers == ["Q(b)@4", "Q(a)@5", "Q(d)@6"]
    assert reasoner.late_count == 1


def test_delays_by_predicate() -> None:
    reasoner = stream("Q(X) :- P(X), not R(X).", "Q", delay={"R": 3, None: 0})
    assert reasoner.push(0, ["P(a)", "P(b)"]) == []
    assert reasoner.advance(2) == []
    assert reasoner.push(2, ["R(a)@0"]) == []
    assert answers_of(reasoner.advance(4)) == ["Q(b)@0"]
    assert reasoner.push(5, ["P(c)@4"]) == []
    assert reasoner.late_count == 1


def test_a_delay_may_be_a_duration() -> None:
    reasoner = stream(COPY, "Q", delay="1min")
    assert reasoner.push(100, ["P(a)"]) + reasoner.push(100, ["P(b)@40"]) == []
    assert reasoner.late_count == 0
    assert answers_of(reasoner.push(101)) == ["Q(b)@40"]


def test_times_of_the_stream_may_be_finer_than_those_of_its_facts() -> None:
    """As in a bucket that gets none of the facts at some of the times."""
    reasoner = tl.Reasoner(tl.Program.parse("Q(X) :- Diamondminus[0,2] P(X)."), "Q", at="input")
    found: list[Fact] = []
    for clock, facts, times in [
        (1, ["P(a)@1"], ["1"]),
        (5, [], ["7/3", "10/3"]),
        (6, ["P(a)@6"], ["5", "6"]),
        (7, [], []),
    ]:
        step = reasoner.take_step(Fraction(clock), tl.Dataset.from_facts(facts), times=map(Fraction, times))
        found += step.answers
    assert [format_fact(fact) for fact in found] == ["Q(a)@1", "Q(a)@7/3", "Q(a)@6"]


def test_late_facts_among_many_of_one_step_leave_no_gap() -> None:
    """Many facts of a step are sorted by what they are about; those that are late are left out."""
    program = tl.Program.parse("Q(X) :- P(X), Diamondminus(0,10] P(X).")
    facts = [[f"P(c{i % 30})@{t}" for i in range(300)] for t in (1, 9)]
    facts.append([f"P(c{i % 30})@{12 if i % 3 else 3 + i % 2}" for i in range(300)])
    reasoner = tl.Reasoner(program, "Q")
    found = [fact for t, some in zip((1, 9, 12), facts, strict=True) for fact in reasoner.push(t, some)]
    assert reasoner.late_count == 100
    timely = [f"Q(c{i})@{t}" for i in range(30) for t in (9, 12) if t == 9 or i % 3]
    assert same_answers(found + reasoner.finish(), timely)


def test_time_that_goes_back_makes_late_facts() -> None:
    reasoner = stream(COPY, "Q")
    answers = reasoner.push(5, ["P(a)"])
    answers += reasoner.push(3, ["P(b)"]) + reasoner.advance(4)
    assert reasoner.late_count == 1
    answers += reasoner.push(5, ["P(c)"]) + reasoner.push(6, ["P(d)"]) + reasoner.finish()
    assert answers_of(answers) == ["Q(a)@5", "Q(c)@5", "Q(d)@6"]
    assert reasoner.late_count == 1


def test_time_that_goes_back_within_the_delay() -> None:
    reasoner = stream(COPY, "Q", delay=2)
    answers = reasoner.push(5, ["P(a)"]) + reasoner.push(3, ["P(b)"]) + reasoner.push(4, ["P(c)"]) + reasoner.finish()
    assert answers_of(answers) == ["Q(b)@3", "Q(c)@4", "Q(a)@5"]
    assert reasoner.late_count == 0


def test_absence_fires_when_its_time_is_over() -> None:
    reasoner = stream(
        "Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).",
        "Down",
        at="every:1",
        background=tl.Dataset.parse("Node(n)\nBeat(n)@(-inf,0]"),
    )
    assert reasoner.push(2, ["Beat(n)"]) == []
    assert reasoner.advance(7) == []
    assert answers_of(reasoner.advance(8)) == ["Down(n)@8"]
    assert answers_of(reasoner.advance(Fraction(19, 2))) == ["Down(n)@9"]
    assert reasoner.push(10, ["Beat(n)"]) + reasoner.advance(10) == []
    assert reasoner.finish(12) == []


def test_absence_as_intervals() -> None:
    reasoner = stream("Down :- not Diamondminus[0,5] Beat.", "Down", background=tl.Dataset.parse("Beat@(-inf,0]"))
    assert reasoner.push(2, ["Beat"]) + reasoner.advance(9) == []
    assert reasoner.push(10, ["Beat"]) == []  # more beats may come at 10, but none before: it ended there or goes on
    assert answers_of(reasoner.advance(10)) == ["Down@(7,10)"]
    assert answers_of(reasoner.finish(20)) == ["Down@(15,20]"]


def test_a_clock_that_stands_still() -> None:
    reasoner = stream(COPY, "Q")
    for name in "abc":
        assert reasoner.push(4, [f"P({name})"]) == []
        assert reasoner.push(4) == []
    assert reasoner.advance(4) == []
    assert reasoner.advance(4) == []
    assert reasoner.push(4, ["P(d)"]) == []  # 4 is over
    assert reasoner.late_count == 1
    assert sorted(answers_of(reasoner.advance(5))) == ["Q(a)@4", "Q(b)@4", "Q(c)@4"]
    assert reasoner.advance(5) + reasoner.finish() == []


@pytest.mark.parametrize("at", [None, "input", "every:1"])
def test_many_pushes_at_one_time(at: str | None) -> None:
    reasoner = stream("Q(X) :- P(X), R(X).  Q(X) :- Diamondminus[1,1] Q(X).", "Q", at=at)
    answers = reasoner.push(1, ["P(a)"]) + reasoner.push(1, ["P(b)"]) + reasoner.push(1, ["R(b)"])
    answers += reasoner.push(1, ["P(a)"]) + reasoner.push(1, ["R(a)", "P(a)"]) + reasoner.push(2, ["P(z)"])
    answers += reasoner.finish()
    assert sorted(answers_of(answers)) == ["Q(a)@1", "Q(a)@2", "Q(b)@1", "Q(b)@2"]


def test_facts_that_reach_into_the_future() -> None:
    reasoner = stream("Q(X) :- Boxminus[0,2] P(X).", "Q")
    assert reasoner.push(0, ["P(a)@[0,10]", "P(b)@[0,inf)"]) == []
    assert reasoner.push(5, ["P(a)@[5,12)"]) == []
    assert reasoner.advance(11) == []
    assert answers_of(reasoner.advance(13)) == ["Q(a)@[2,12)"]
    assert answers_of(reasoner.finish(14)) == ["Q(b)@[2,14]"]


def test_facts_that_begin_in_the_future() -> None:
    reasoner = stream(COPY, "Q")
    assert reasoner.push(0, ["P(a)@[7,8]"]) + reasoner.advance(7) == []
    assert reasoner.push(8, ["P(b)@9"]) == []
    assert answers_of(reasoner.advance(9)) == ["Q(a)@[7,8]"]
    assert answers_of(reasoner.finish(9)) == ["Q(b)@9"]


@pytest.mark.parametrize("saved", [False, True])
def test_times_that_are_finer_than_all_before(saved: bool) -> None:
    reasoner = stream("Q :- Diamondminus[0,1] P, not Diamondminus[2,2] P.", "Q")
    answers = reasoner.push(0, ["P"]) + reasoner.push(1, ["P"])
    if saved:
        reasoner = tl.Reasoner.load(reasoner.save())
    answers += (
        reasoner.push(Fraction(4, 3), ["P"]) + reasoner.advance(Fraction(13, 6)) + reasoner.push(5, ["P@[5,26/5]"])
    )
    answers += reasoner.finish(8)
    data = tl.Dataset.parse("P@0\nP@1\nP@4/3\nP@[5,26/5]")
    program = tl.Program.parse("Q :- Diamondminus[0,1] P, not Diamondminus[2,2] P.")
    assert answers_of(answers) == answers_of(tl.materialise(program, data, query="Q", between=(0, 8)))


def test_look_ahead_delays_answers_by_what_is_needed() -> None:
    reasoner = stream("Q(X) :- P(X), Diamondplus[0,3] R(X).  W(X) :- P(X), not Diamondplus[0,3] R(X).", "Q", at="input")
    assert reasoner.push(0, ["P(a)", "P(b)"]) == []
    assert reasoner.push(2, ["R(a)"]) == []
    assert answers_of(reasoner.advance(3) + reasoner.finish(3)) == ["Q(a)@0"]
    waiting = stream("W(X) :- P(X), not Diamondplus[0,3] R(X).", "W", at="input")
    assert waiting.push(0, ["P(a)", "P(b)"]) + waiting.push(2, ["R(a)"]) + waiting.push(3) == []
    assert answers_of(waiting.advance(3)) == ["W(b)@0"]


def test_a_constraint_is_reported_when_it_is_violated() -> None:
    reasoner = stream("Bottom :- P(X), R(X).  Q(X) :- P(X).", "Q")
    assert reasoner.push(0, ["P(a)"]) == []
    assert answers_of(reasoner.push(1, ["R(b)"])) == ["Q(a)@0"]
    with pytest.raises(tl.errors.Inconsistent, match="X = b"):
        reasoner.push(1, ["P(b)"]) + reasoner.advance(2)


LATER_VIOLATION = "Bottom :- Diamondminus[1,1] P(X).  Q(X) :- P(X)."
VIOLATION_AND_LOOK_AHEAD = "Bottom :- Diamondminus[1,1] P(X).  Q(X) :- P(X), Diamondplus[0,3] P(X)."


@pytest.mark.parametrize("at", [None, "input"])
@pytest.mark.parametrize("rules", [LATER_VIOLATION, VIOLATION_AND_LOOK_AHEAD])
def test_a_constraint_that_is_violated_after_the_end_of_a_stream_is_not_reported(rules: str, at: str | None) -> None:
    reasoner = stream(rules, "Q", at=at)
    assert answers_of(reasoner.push(9, ["P(a)"]) + reasoner.finish()) == ["Q(a)@9"]
    model = tl.materialise(tl.Program.parse(rules), tl.Dataset.parse("P(a)@9"), query="Q", until=9)
    assert str(model) == "Q(a)@9\n"


@pytest.mark.parametrize("rules", [LATER_VIOLATION, VIOLATION_AND_LOOK_AHEAD])
def test_a_violation_is_reported_when_the_clock_reaches_it_once_for_each_binding(rules: str) -> None:
    reasoner = stream(rules, "Q")
    reasoner.push(9, ["P(a)"])
    reasoner.push("9.5", ["P(b)"])
    with pytest.raises(tl.errors.Inconsistent, match="X = a"):
        reasoner.advance(10)
    reasoner.advance("10.25")
    with pytest.raises(tl.errors.Inconsistent, match="X = b"):
        reasoner.finish(11)


def test_constants_that_come_later_and_in_other_order() -> None:
    reasoner = stream("Q(X, Y) :- P(X), Diamondminus[0,9] P(Y), X < Y.", "Q", at="input")
    answers = reasoner.push(0, ["P(b)"]) + reasoner.push(1, ["P(2)"]) + reasoner.push(2, ["P(1)", "P(a)"])
    answers += reasoner.push(3, ["P(10)"]) + reasoner.finish()
    assert sorted(answers_of(answers)) == [
        "Q(1,2)@2",
        "Q(1,a)@2",
        "Q(1,b)@2",
        "Q(10,a)@3",
        "Q(10,b)@3",
        "Q(2,b)@1",
        "Q(a,b)@2",
    ]


def test_facts_of_a_temporal_datalog_program_and_stream() -> None:
    program = tl.Program.parse("Tick(X, T+3) :- Tick(X, T).\nTick(x, 2).", syntax="tdl")
    reasoner = tl.Reasoner(program, "Tick", at="every:1")
    answers = reasoner.push(0) + reasoner.push(4, ["Tick(y,4)"]) + reasoner.finish(8)
    assert sorted(answers_of(answers)) == ["Tick(x)@2", "Tick(x)@5", "Tick(x)@8", "Tick(y)@4", "Tick(y)@7"]


def test_a_program_with_facts_and_nothing_else() -> None:
    program = tl.Program.parse("Tick(X, T+3) :- Tick(X, T).\nTick(x, 2).", syntax="tdl")
    assert answers_of(tl.Reasoner(program, "Tick").finish(6)) == ["Tick(x)@2", "Tick(x)@5"]


def test_an_output_set_without_end() -> None:
    reasoner = stream(COPY, "Q", at=(Fraction(n * n) for n in itertools.count()))
    answers = reasoner.push(0, ["P(a)@[0,10]"]) + reasoner.push(20) + reasoner.finish()
    assert answers_of(answers) == ["Q(a)@0", "Q(a)@1", "Q(a)@4", "Q(a)@9"]


def test_background_that_is_handed_on_for_ever() -> None:
    background = tl.Dataset.parse("B@(-inf,1]")
    reasoner = stream("B :- Diamondminus[3,3] B.  B :- Diamondminus[2,2] C.", "B", background=background)
    assert answers_of(reasoner.push(8, ["C"]) + reasoner.finish(9)) == ["B@(-inf,9]"]
    reasoner = stream("B :- Diamondminus[3,3] B.", "B", background=tl.Dataset.parse("B@[0,1]"), timeline="rational")
    assert answers_of(reasoner.finish(7)) == ["B@[0,1]", "B@[3,4]", "B@[6,7]"]


def test_facts_within_the_delay_that_begin_before_all_others() -> None:
    reasoner = stream(COPY, "Q", delay=1)
    assert reasoner.push(2, ["P(a)"]) + reasoner.push(2, ["P(b)@1"]) == []
    assert answers_of(reasoner.push(3)) == ["Q(b)@1"]
    assert answers_of(reasoner.finish(4)) == ["Q(a)@2"]
    assert reasoner.late_count == 0


def test_a_delay_that_is_finer_than_all_times() -> None:
    reasoner = stream(COPY, "Q", delay=Fraction(1, 2))
    assert reasoner.push(1, ["P(a)"]) + reasoner.push(Fraction(5, 4), ["P(b)@1"]) == []
    assert reasoner.late_count == 0
    answers = reasoner.push(Fraction(9, 4), ["P(c)@2"]) + reasoner.finish(3)
    assert reasoner.late_count == 0
    assert sorted(answers_of(answers)) == ["Q(a)@1", "Q(b)@1", "Q(c)@2"]


@pytest.mark.parametrize("delay", [0, 1])
def test_multiples_without_any_facts_but_background(delay: int) -> None:
    reasoner = stream(COPY, "Q", at="every:1", background=tl.Dataset.parse("P(a)"), delay=delay)
    assert [fact for fact in answers_of(reasoner.finish(2)) if "-" not in fact] == ["Q(a)@0", "Q(a)@1", "Q(a)@2"]


@pytest.mark.parametrize("saves", [0, 1, 2])
def test_given_times_are_kept_in_a_saved_state(saves: int) -> None:
    times = tuple(map(Fraction, (0, 1, 7, 18)))
    reasoner = stream("Q :- P.", "Q", at=times, delay=5, background=tl.Dataset.parse("P@(-inf,2]"))
    answers = reasoner.push(4, ["P@7"])
    for t in range(6, 6 + saves):
        reasoner = tl.Reasoner.load(reasoner.save())
        answers += reasoner.push(t)
    assert answers_of(answers + reasoner.finish(9)) == ["Q@0", "Q@1", "Q@7"]


def test_a_stream_without_facts() -> None:
    assert answers_of(stream("Q :- not P.", "Q").finish(5)) == ["Q@(-inf,5]"]
    reasoner = stream(COPY, "Q")
    assert reasoner.advance(3) + reasoner.push(4) + reasoner.finish() == []


def test_far_apart_facts_take_no_time_between() -> None:
    reasoner = stream("Q :- Diamondminus[1,1] Q.  Q :- P.  R :- P, not Q.", "R")
    assert reasoner.push(0, ["P@[0,1)"]) + reasoner.push(10**5) + reasoner.finish() == []


@pytest.mark.parametrize("timeline", ["rational", "integer"])
@pytest.mark.parametrize(
    "rules", ["D :- B.  Boxplus[1,1] B :- B.", "D :- B.  B :- C.  C :- Diamondminus[0,1] B.  E :- D."]
)
def test_a_recursion_that_nobody_looks_at_ends(rules: str, timeline: TimelineName) -> None:
    reasoner = stream(rules, "D", timeline=timeline)
    answers = reasoner.push(1, ["B"]) + reasoner.push(4, ["B"]) + reasoner.finish(9)
    data, program = tl.Dataset.parse("B@1\nB@4"), tl.Program.parse(rules)
    expected = tl.materialise(program, data, query="D", between=(1, 9), timeline=timeline)
    assert same_answers(answers, expected, timeline=timeline)


# The public test tools


def test_play_goes_on_after_crashes() -> None:
    rules, facts = (
        tl.Program.parse("Q(X) :- Boxminus[0,2] P(X), not Diamondminus[0,1] R."),
        ["P(a)@[0,4]", "R@3", "P(a)@(4,9]"],
    )
    whole = play(tl.Reasoner(rules, "Q"), facts, until=12)
    for marks in itertools.product((0, 1, 2), repeat=2):
        source: list[Item] = [
            facts[0],
            facts[1],
            Crash(min(marks[0], 2)),
            Pause(Fraction(1, 2)),
            Crash(marks[1]),
            facts[2],
            Crash(1),
        ]
        assert same_answers(whole, play(tl.Reasoner(rules, "Q"), source, until=12))


def test_play_sets_the_clock() -> None:
    clock = Clock()
    source: list[Item] = ["P(a)@3", Arrival(5, "P(b)", "P(c)@4"), Pause("1/2")]
    assert answers_of(play(stream(COPY, "Q", delay=1), source, clock=clock)) == ["Q(a)@3", "Q(c)@4", "Q(b)@5"]
    assert clock() == Fraction(11, 2)


@pytest.mark.parametrize("timeline", ["rational", "integer"])
def test_same_answers_in_any_pieces(timeline: TimelineName) -> None:
    pieces = ["P(a)@(0,1]", "P(a)@(1,2)", "P(a)@[2,5]", "P(b)@[0,inf)"]
    assert same_answers(pieces, ["P(b)@[0,4]", "P(b)@[3,inf)", "P(a)@(0,5]"], timeline=timeline)
    assert bool(same_answers(["P@[0,1]", "P@[2,3]"], ["P@[0,3]"], timeline=timeline)) == (timeline == "integer")
    assert not same_answers(["P@(0,2)"], ["P@[1,2]"], timeline=timeline)


def test_expect_says_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match=r"Q in batch: .*\n\+ Q\(a\)@3"):
        expect(COPY, "P(a)@3", "Q", "")
    expect("Q(X) :- Diamondplus[0,inf) P(X).", "P(a)@3", "Q", "Q(a)@(-inf,3]", stream=False)
    with pytest.raises(tl.TidelogError):
        expect("Q(X) :- Diamondplus[0,inf) P(X).", "P(a)@3", "Q", "Q(a)@(-inf,3]")


@pytest.mark.parametrize("timeline", ["integer", "rational"])
def test_what_persists_while_nothing_happens_is_not_taken_for_ended(timeline: TimelineName) -> None:
    reasoner = tl.Reasoner(tl.Program.parse("Boxminus[1,1] B :- not A."), "B", timeline=timeline)
    assert reasoner.push(-3, ["A@1"]) + reasoner.advance(-3) + reasoner.advance(-2) == []
    ended = "(-inf,-2]" if timeline == "integer" else "(-inf,-1)"
    assert [str(fact.interval) for fact in reasoner.push(0, ["A"]) + reasoner.advance(1)][:1] == [ended]
    reasoner = tl.Reasoner(tl.Program.parse("Q :- not P."), "Q", timeline=timeline)
    assert reasoner.push(0, ["P"]) + reasoner.advance(1) + reasoner.advance(2) + reasoner.advance(9) != []
    assert str(reasoner.finish(20)[0].interval) == ("[1,20]" if timeline == "integer" else "(0,20]")


def test_recursion_beside_negation_goes_on_within_one_stretch() -> None:
    program = tl.Program.parse("C :- not B(a). B(a) :- not A. C :- Diamondminus[1,1] C, not A.")
    reasoner = tl.Reasoner(program, "C", timeline="integer")
    assert reasoner.push(0, ["A"]) == []
    assert [str(fact.interval) for fact in reasoner.finish(5)] == ["[0,5]"]


def test_many_facts_in_one_step_are_answered_as_in_a_batch() -> None:
    rules = """
    Twice(X) :- Hot(X), Diamondminus(0,4] Hot(X).
    Near(Y) :- Link(X,Y), Twice(X), not Diamondminus[0,9] Quiet.
    """
    chance = random.Random(5)
    lines = [f"Quiet@{t}" for t in range(0, 2000, 40)]
    for _ in range(4000):
        machine, start, length = chance.randint(0, 30), chance.randint(0, 2000), chance.choice([0, 0, 3])
        atom = chance.choice([f"Hot(m{machine})", f"Link(m{machine},k{start % 7})"])
        lines.append(f"{atom}@[{start},{start + length}]")
    data = tl.Dataset.parse("\n".join(lines))
    program = tl.Program.parse(rules)
    reasoner = tl.Reasoner(program, "Near")
    steps = [reasoner.take_step(Fraction(1000), data), reasoner.take_step(Fraction(2100), tl.Dataset())]
    found = [fact for step in steps for fact in step.answers]
    expected = sorted(format_fact(fact) for fact in tl.materialise(program, data, query="Near"))
    assert sorted(map(format_fact, found)) == expected
    assert len(expected) > 50


def test_facts_whose_arguments_are_left_unread_count_and_are_late_as_others() -> None:
    program = tl.Program.parse("Again(X) :- Hot(X), Diamondminus[1,4] Hot(X), not Off(X).")
    chance = random.Random(7)
    lines = [f"Room(m{n},k{n % 3})" for n in range(20)]
    for t in range(400):
        when = t // 4 - chance.choice([0, 0, 0, 6])
        kind = chance.choice(["Hot(m{})", "Off(m{})", "Seen(m{},0.5)"])
        lines.append(f"{kind.format(chance.randint(0, 20))}@[{when},{when + chance.choice([0, 0, 2])}]")

    def run(ordered: bool, reads: Iterable[str] | None) -> list[tuple[object, ...]]:
        reasoner = tl.Reasoner(program, "Again", delay=2)
        found: list[tuple[object, ...]] = []
        for some in (lines[:250], lines[250:]):
            hint = None if reads is None else list(reads)
            data = tl.Dataset.parse("\n".join(some), ordered=ordered, reads=hint)
            assert hint is None or not data.relations["Seen", 2].is_read
            for step in reasoner.feed(data):
                answers = sorted(map(format_fact, step.answers))
                found.append((step.time, step.facts_in, answers, [format_fact(fact) for fact in step.late]))
            reasoner = tl.Reasoner.load(reasoner.save())
        return [*found, (sorted(map(format_fact, reasoner.finish())), reasoner.facts_taken)]

    for ordered in (False, True):
        plain = run(ordered, None)
        assert run(ordered, program.predicates) == plain
        # A hint that leaves out what rules read costs time only.
        assert run(ordered, ["Off"]) == plain
    assert any("Seen" in fact for step in plain[:-1] for fact in step[3])  # type: ignore[attr-defined]
