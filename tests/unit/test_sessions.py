"""The three sessions share one protocol: push, advance, finish, save and load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

import tidelog as tl
from tidelog.hypothetical import Hypotheses, HypothesisOptions
from tidelog.stable import StableReasoner
from tidelog.types import Session, TimeLike

HOT = "Twice(X) :- Hot(X), Diamondminus[1,2] Hot(X)."
CHOICE = """
Open(X) :- Door(X), not Shut(X), Known(X).
Shut(X) :- Door(X), not Open(X), Known(X).
Alarm(X) :- Boxminus[0,1] Open(X).
Since(X) :- Open(X) Since[0,inf) Hot(X).
Bottom :- Open(X), Cold(X).
"""
ALARM = "Alarm(X, T) :- Hot(X, T), Hot(X, T+1), Known(X)."


def reasoner() -> Session[Any]:
    return tl.Reasoner(tl.Program.parse(HOT), "Twice", background=tl.Dataset.parse("Known(a)"))


def stable() -> Session[Any]:
    return StableReasoner(tl.Program.parse(CHOICE), background=tl.Dataset.parse("Known(a)\nKnown(1/2)"))


def hypothetical() -> Session[Any]:
    program = tl.Program.parse(ALARM, syntax="tdl")
    options = HypothesisOptions(probability={"Hot": 0.5}, max_open=100)
    return Hypotheses(
        program, "Alarm(X, T)", delay={"Hot": 1}, background=tl.Dataset.parse("Known(a)"), options=options
    )


SESSIONS = pytest.mark.parametrize("create", [reasoner, stable, hypothetical])

#: The facts of each time point, in a form that every session reads.
STREAM: Sequence[tuple[int, list[str]]] = [
    (0, ["Hot(a)@0"]),
    (1, ["Hot(a)@1", "Door(a)@1"]),
    (2, ["Door(a)@2", "Door(1/2)@[2,4]"]),
    (3, ["Hot(a)@3", "Cold(a)@3", "Hot(b)@3"]),
    (5, ["Hot(a)@5", "Door(a)@5", "Hot(1/2)@5"]),
    (6, ["Door(c)@6", "Hot(1/2)@6"]),
]


def readable(session: Session[Any], facts: list[str]) -> list[str]:
    """The facts that a session reads: hypothetical answers know facts at single times only."""
    return [fact for fact in facts if "[" not in fact] if isinstance(session, Hypotheses) else facts


def run(session: Session[Any], stream: Sequence[tuple[int, list[str]]]) -> list[Any]:
    answers: list[Any] = []
    for t, facts in stream:
        answers += session.push(t, readable(session, facts))
        answers += session.advance(t)
    return answers


@SESSIONS
def test_every_call_gives_a_step_with_the_time_of_the_clock(create: Callable[[], Session[Any]]) -> None:
    session = create()
    for t, facts in STREAM:
        step = session.push(t, readable(session, facts))
        assert isinstance(step, tl.Step)
        assert step.time == t
        assert list(step.answers) == list(step)
        assert session.advance(t).time == t
    assert isinstance(session.finish(10), tl.Step)


@SESSIONS
def test_sessions_have_answers_to_this_stream(create: Callable[[], Session[Any]]) -> None:
    assert run(create(), STREAM)


@SESSIONS
@pytest.mark.parametrize("saved_after", range(len(STREAM) + 1))
def test_a_loaded_session_continues_as_if_never_stopped(create: Callable[[], Session[Any]], saved_after: int) -> None:
    unbroken = create()
    run(unbroken, STREAM[:saved_after])
    state = unbroken.save()
    loaded = type(unbroken).load(state)
    assert loaded.save() == state
    assert run(loaded, STREAM[saved_after:]) == run(unbroken, STREAM[saved_after:])
    assert list(loaded.finish(12)) == list(unbroken.finish(12))
    assert loaded.save() == unbroken.save()


@pytest.mark.parametrize("create", [reasoner, stable])
@pytest.mark.parametrize("read", [lambda text: [text], tl.Dataset.parse], ids=["text", "dataset"])
def test_dates_in_facts_are_noted_in_either_form(
    create: Callable[[], tl.Reasoner | StableReasoner], read: Callable[[str], list[str] | tl.Dataset]
) -> None:
    session = create()
    session.push(5, read("Hot(a)@5"))
    assert not session.dates
    session.push(6, read("Hot(a)@1970-01-01T00:00:06Z"))
    assert session.dates


@SESSIONS
def test_a_damaged_state_is_refused(create: Callable[[], Session[Any]]) -> None:
    session = create()
    state = bytearray(session.save())
    state[-1] ^= 1
    with pytest.raises(tl.TidelogError, match="TL401"):
        type(session).load(bytes(state))
    with pytest.raises(tl.TidelogError, match="TL401"):
        type(session).load(session.save()[:-5])


@pytest.mark.parametrize(("create", "other"), [(stable, hypothetical), (hypothetical, stable)])
def test_the_state_of_another_session_is_refused(
    create: Callable[[], Session[Any]], other: Callable[[], Session[Any]]
) -> None:
    with pytest.raises(tl.TidelogError, match="TL403"):
        type(create()).load(other().save())


def test_a_state_of_other_rules_is_refused() -> None:
    state = stable().save()
    with pytest.raises(tl.TidelogError, match="TL403"):
        StableReasoner.load(state, tl.Program.parse("P :- Q."))
    assert StableReasoner.load(state, tl.Program.parse(CHOICE)).save() == state


@SESSIONS
@pytest.mark.parametrize("t", [7, Fraction(7), "7", "7s", datetime(1970, 1, 1, 0, 0, 7), "1970-01-01T00:00:07Z"])
def test_times_may_be_of_any_type(create: Callable[[], Session[Any]], t: TimeLike) -> None:
    session = create()
    assert session.push(t, []).time == 7
    assert session.advance(t).time == 7
    session.finish(t)


@SESSIONS
@pytest.mark.parametrize("t", [None, object(), [1], float("nan")])
def test_what_is_no_time_is_a_clear_error(create: Callable[[], Session[Any]], t: Any) -> None:
    for call in (create().push, create().advance):
        with pytest.raises(tl.TidelogError, match="TL202"):
            call(t)


def test_facts_pushed_at_a_date_are_printed_with_dates() -> None:
    session = tl.Reasoner(tl.Program.parse("A(X) :- B(X)."), "A")
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    session.push(noon, ["B(x)"])
    assert session.dates
    (answer,) = session.finish()
    assert answer.interval == tl.Interval.point(Fraction(int(noon.timestamp())))
