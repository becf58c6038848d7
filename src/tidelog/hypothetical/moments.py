"""Follow a stream of arrivals: for every time point, the new certain answers and those that are still possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidelog.data.data_frames import DataLike
from tidelog.errors import TidelogError
from tidelog.hypothetical.answer_changes import AnswerChange, ChangeTracker
from tidelog.hypothetical.session import AnyFact, Hypotheses
from tidelog.hypothetical.session_options import HypothesisOptions
from tidelog.hypothetical.session_origin import DelayByPattern
from tidelog.hypothetical.supported_answers import Moment, sort_answers
from tidelog.language.program import Program
from tidelog.language.time_like import TimeLike, to_integer_time
from tidelog.timeline.interval import TimelineName

#: An arrival time and a fact: a pair, or an object as in JSON Lines.
AnyArrival = tuple[TimeLike, AnyFact] | Mapping[str, Any]


def hypotheses(
    program: Program,
    query: str,
    arrivals: Iterable[AnyArrival],
    *,
    until: TimeLike | None = None,
    delay: DelayByPattern = (),
    background: DataLike | None = None,
    timeline: TimelineName | None = None,
    options: HypothesisOptions | None = None,
) -> Iterator[Moment]:
    """Yield for every time point up to `until` (or the last arrival) the new certain and the possible answers.

    Arrivals are pairs of a time and a fact, or objects `{"arrival": ..., "fact": ...}`. The other parameters are those
    of `Hypotheses`.

    >>> program = Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    >>> for moment in hypotheses(program, "Alarm(X, T)", [(0, "Hot(a,0)"), (1, "Hot(a,1)")]):
    ...     print(moment.tau, [a.bindings for a in moment.answers], [h.hypotheses for h in moment.hypothetical])
    0 [] [('Hot(a,1)',)]
    1 [{'X': 'a', 'T': 0}] [('Hot(a,2)',)]
    """
    session = Hypotheses(program, query, delay=delay, background=background, timeline=timeline, options=options)
    return moments(session, arrivals, None if until is None else to_integer_time(until))


def moments(session: Hypotheses, arrivals: Iterable[AnyArrival], until: int | None) -> Iterator[Moment]:
    """Feed a session and yield every time point as soon as a later arrival is seen.

    If an arrival cannot be read, the time points before it are still yielded.
    """
    for tau, batch in group_by_moment(session, arrivals, until):
        answers = sort_answers(list(session.push(tau, batch)))
        yield Moment(tau, answers, session.hypothetical())


def changes(
    session: Hypotheses, arrivals: Iterable[AnyArrival], until: int | None
) -> Iterator[tuple[int, list[AnswerChange]]]:
    """Feed a session and yield every time point at which something changed, with the changes.

    >>> program = Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    >>> arrivals = [(0, "Hot(a,0)"), (1, "Hot(a,1)")]
    >>> for tau, found in changes(Hypotheses(program, "Alarm(X, T)"), arrivals, until=5):
    ...     print(tau, [(change.change, change.answer.bindings["T"]) for change in found])
    0 [('awaited', 0)]
    1 [('answered', 0), ('awaited', 1)]
    2 [('dropped', 1)]
    """
    tracker = ChangeTracker(session)
    for tau, batch in group_by_moment(session, arrivals, until):
        found = tracker.push(tau, batch)
        if found:
            yield tau, found


def group_by_moment(
    session: Hypotheses, arrivals: Iterable[AnyArrival], until: int | None
) -> Iterator[tuple[int, list[AnyFact]]]:
    """Yield every time point up to the last with the facts that arrive at it, which the caller pushes.

    Arrivals that go back in time are counted by the session. If an arrival cannot be read, the time points before it
    are still yielded.
    """
    batch: list[AnyFact] = []
    now: int | None = None
    coming = iter(arrivals)
    while True:
        try:
            arrival, fact = _read_arrival(next(coming))
        except StopIteration:
            break
        except TidelogError:
            if now is not None:
                yield now, batch
            raise
        if until is not None and arrival > until:
            break
        if now is None or arrival > now:
            yield from _fill_up_to(session, now, batch, arrival - 1)
            now, batch = arrival, []
        if arrival == now:
            batch.append(fact)
        else:
            session.push_backwards(arrival, fact)
    last = now if until is None else until
    if last is not None:
        yield from _fill_up_to(session, now, batch, last)


def _read_arrival(arrival: AnyArrival) -> tuple[int, AnyFact]:
    time, fact = (arrival["arrival"], arrival["fact"]) if isinstance(arrival, Mapping) else arrival
    return to_integer_time(time), fact


def _fill_up_to(
    session: Hypotheses, now: int | None, batch: list[AnyFact], last: int
) -> Iterator[tuple[int, list[AnyFact]]]:
    """Yield a batch, and the time points without arrivals up to the last."""
    if now is not None:
        yield now, batch
    for tau in range(session.tau + 1, last + 1):
        yield tau, []
