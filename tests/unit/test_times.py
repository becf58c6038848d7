"""Times and durations of every accepted type, at every entry point of the Python API."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tidelog as tl
from tidelog.language.time_like import to_duration, to_finite_time, to_integer_time, to_retention, to_time
from tidelog.testing import Arrival, Clock, Item, Pause, play
from tidelog.timeline.interval import INF
from tidelog.types import TimeLike

DAY = 86400

#: The second day of 1970, in every type.
TIMES: list[TimeLike] = [
    DAY,
    Fraction(DAY),
    float(DAY),
    Decimal(DAY),
    "86400",
    "1d",
    "1970-01-02",
    "1970-01-02T01:00:00+01:00",
    date(1970, 1, 2),
    datetime(1970, 1, 2),
    datetime(1970, 1, 2, tzinfo=UTC),
    datetime(1970, 1, 2, 2, tzinfo=timezone(timedelta(hours=2))),
    pd.Timestamp("1970-01-02"),
    pd.Timestamp("1970-01-02T01:00", tz="Europe/Berlin"),
    np.datetime64("1970-01-02"),
    np.datetime64("1970-01-02T00:00:00.000000000"),
]
EVERY_TIME = pytest.mark.parametrize("t", TIMES, ids=[f"{type(t).__name__}-{t}" for t in TIMES])


@EVERY_TIME
def test_every_type_is_the_same_time(t: TimeLike) -> None:
    assert to_time(t) == DAY
    assert type(to_time(t)) is Fraction
    assert to_integer_time(t) == DAY


def test_times_stay_exact() -> None:
    assert to_time(pd.Timestamp("1970-01-01T00:00:00.123456789")) == Fraction(123456789, 10**9)
    assert to_time(np.datetime64(3, "ps")) == Fraction(3, 10**12)
    assert to_time(np.datetime64("1970-02")) == 31 * DAY
    assert to_time(datetime(1969, 12, 31, 23, 59, 59, 500000)) == Fraction(-1, 2)
    assert type(to_finite_time(np.int64(3)).numerator) is int  # type: ignore[arg-type]


@pytest.mark.parametrize("infinity", [INF, np.float64("inf"), "inf"])
def test_infinities_are_times(infinity: TimeLike) -> None:
    assert to_time(infinity) == INF
    with pytest.raises(tl.TidelogError, match="finite"):
        to_finite_time(infinity)


@pytest.mark.parametrize(
    "value", [None, [], timedelta(1), np.timedelta64(3, "s"), pd.NaT, np.datetime64("NaT"), "soon"]
)
def test_other_values_are_refused_as_times(value: Any) -> None:
    with pytest.raises(tl.TidelogError, match="TL202"):
        to_time(value)


@pytest.mark.parametrize(
    "length",
    [
        90,
        Fraction(90),
        Decimal(90),
        "90",
        "1.5min",
        timedelta(seconds=90),
        pd.Timedelta("90s"),
        np.timedelta64(90, "s"),
    ],
)
def test_every_type_is_the_same_duration(length: Any) -> None:
    assert to_duration(length) == to_retention(length) == 90


def test_durations_stay_exact() -> None:
    assert to_duration(pd.Timedelta(5, "ns")) == Fraction(5, 10**9)
    assert to_retention("inf") == to_retention(INF) == INF


@pytest.mark.parametrize("value", [None, [], -1, timedelta(-1), date(2026, 1, 1), INF, pd.NaT, np.timedelta64(1, "M")])
def test_other_values_are_refused_as_durations(value: Any) -> None:
    with pytest.raises(tl.TidelogError, match="TL307"):
        to_duration(value)


# Entry points

RULES = tl.Program.parse("A(X) :- Diamondminus[0,60] B(X).")


@EVERY_TIME
def test_a_reasoner_takes_every_type(t: TimeLike) -> None:
    reasoner = tl.Reasoner(RULES, "A")
    reasoner.push(t, ["B(x)"])
    assert reasoner.advance(t).time == DAY
    assert [str(fact.interval) for fact in reasoner.finish(t)] == [str(DAY)]


@EVERY_TIME
def test_a_feed_and_output_times_take_every_type(t: TimeLike) -> None:
    data = tl.Dataset.parse("B(x)@0\nB(x)@86400\nB(x)@86500", ordered=True)
    assert [step.time for step in tl.Reasoner(RULES, "A").feed(data, until=t)] == [0, DAY]
    reasoner = tl.Reasoner(RULES, "A", at=[t])
    points = [fact for step in [*reasoner.feed(data), reasoner.finish_step()] for fact in step]
    assert [str(fact.interval) for fact in points] == [str(DAY)]


@EVERY_TIME
def test_a_watch_takes_every_type(t: TimeLike) -> None:
    watch = tl.streaming.Watch(tl.Reasoner(RULES, "A"), changes=True, dedupe=timedelta(seconds=1))
    assert watch.push(t, ["B(x)"]) == []
    assert [str(alert) for alert in watch.advance(t)] == ["start A(x)@[86400"]
    watch.finish(t)


@EVERY_TIME
def test_materialise_and_stable_models_take_every_type(t: TimeLike) -> None:
    data = tl.Dataset.parse("B(x)@86400")
    assert [str(fact.interval) for fact in tl.materialise(RULES, data, between=(t, t))] == [str(DAY)]
    (model,) = tl.stable_models(RULES, data, between=(t, t))
    assert [str(fact.interval) for fact in model.facts] == [str(DAY)] * 2


@EVERY_TIME
def test_hypotheses_take_every_type(t: TimeLike) -> None:
    program = tl.Program.parse("P(X, T) :- Q(X, T). #temporal Q/2.", syntax="tdl")
    session = tl.hypothetical.Hypotheses(program, "P(X, T)")
    assert [answer.bindings for answer in session.push(t, ["Q(a,86400)"])] == [{"X": "a", "T": DAY}]
    moments = tl.hypotheses(program, "P(X, T)", [(1, "Q(a,1)")], until="2")
    assert [moment.tau for moment in moments] == [0, 1, 2]


@EVERY_TIME
def test_testing_takes_every_type(t: TimeLike) -> None:
    assert Clock(t)() == DAY
    source: list[Item] = [Arrival(t, "B(x)"), Pause(timedelta(minutes=2))]
    answers = play(tl.Reasoner(RULES, "A"), source, until="1970-01-02T01:00Z")
    assert [str(fact.interval) for fact in answers] == ["[86400,86460]"]


@pytest.mark.parametrize("delay", [10, "10s", timedelta(seconds=10), pd.Timedelta("10s"), np.timedelta64(10, "s")])
def test_delays_and_retention_take_every_type(delay: Any) -> None:
    for given in (delay, {"B": delay}):
        reasoner = tl.Reasoner(RULES, "A", delay=given, remember=delay)
        reasoner.push(20, [])
        reasoner.push(20, ["B(x)@10", "B(y)@9"])
        assert reasoner.late_count == 1
    if isinstance(delay, int | timedelta):
        program = tl.Program.parse("P(X, T) :- Q(X, T). #temporal Q/2.", syntax="tdl")
        session = tl.hypothetical.Hypotheses(program, "P(X, T)", delay=delay)
        assert len(session.push(20, ["Q(a,10)", "Q(a,9)"])) == 1
