"""Alerts of a stream with corrections: those that no longer follow are withdrawn, and others are added.

Alerts do not depend on how a stream was cut into steps. So the alerts since some final state are computed anew from the
answers that stand, and compared with those that were given. What is final is folded into that state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.language.syntax import Fact
from tidelog.streaming.alerts import Alert, AlertHistory, AlertState, Change, WithdrawableChange, update_alerts
from tidelog.streaming.answer_changes import AnswerChange, Sign
from tidelog.streaming.completeness import compute_bound_at
from tidelog.timeline.interval import Bound, Time

if TYPE_CHECKING:
    from tidelog.streaming.reasoner import Reasoner


@dataclass(frozen=True)
class _Known:
    """What is known after a step: intervals that ended and that have begun, up to a bound (None for points)."""

    ended: list[Fact]
    begun: list[Fact]
    certain: Bound | None


def correct_alerts(
    reasoner: Reasoner, state: AlertState, changes: Iterable[Fact], *, stop: Time | None = None
) -> list[Alert]:
    """Return how the alerts change with the answers of the last step; `stop` is where time stops, if it does.

    The first alerts are withdrawn (`-`), the others are added (`+`).
    """
    history = state.history or AlertHistory(state.copy(), [], [])
    known = reasoner.last_step.time
    for change in changes:
        if isinstance(change, AnswerChange):
            known = change.known
            (history.answers.append if change.change == "+" else history.answers.remove)(change.fact)
    history.answers.sort(key=_end_of)
    _fold_final(reasoner, state, history)
    now = _find_known(reasoner, state, history.answers, stop)
    current = history.base.copy()
    alerts = update_alerts(current, now.ended, now.begun, now.certain)
    before, after = Counter(history.alerts), Counter(alerts)
    withdrawn, added = list((before - after).elements()), after - before
    history.alerts = alerts
    state.replace_by(current, history)
    return [*_sign(withdrawn, "-", known), *_sign(_pick(alerts, added), "+", known)]


def _find_known(reasoner: Reasoner, state: AlertState, answers: list[Fact], stop: Time | None) -> _Known:
    if reasoner.evaluation.output is not None or not state.needs_starts:
        return _Known(answers, [], None)
    if stop is None:
        begun, certain = reasoner.open_intervals()
        return _Known(answers, list(begun), certain)
    # An answer that holds where time stops has not ended.
    holding = [fact for fact in answers if fact.interval.hi == stop and fact.interval.hi_closed]
    ended = [fact for fact in answers if not (fact.interval.hi == stop and fact.interval.hi_closed)]
    return _Known(ended, holding, (stop, True)) if state.config.changes else _Known(answers, [], None)


def _fold_final(reasoner: Reasoner, state: AlertState, history: AlertHistory) -> None:
    """Move what can no longer be corrected from the history to its first state."""
    assert reasoner.corrections is not None
    bound = compute_bound_at(reasoner.evaluation.grid, reasoner.corrections.final_until)
    final = [fact for fact in history.answers if _has_ended(fact, bound)]
    if not final:
        return
    later = history.answers[len(final) :]
    if reasoner.evaluation.output is not None or not state.needs_starts:
        alerts = update_alerts(history.base, final)
    else:
        holding = [*later, *reasoner.open_intervals()[0]]
        alerts = update_alerts(history.base, final, [fact for fact in holding if _has_begun(fact, bound)], bound)
    history.answers = later
    history.alerts = list((Counter(history.alerts) - Counter(alerts)).elements())


def _end_of(fact: Fact) -> tuple[Time, bool]:
    return fact.interval.hi, fact.interval.hi_closed


def _has_ended(fact: Fact, bound: Bound) -> bool:
    end, closed = _end_of(fact)
    return end < bound[0] or (end == bound[0] and bound[1] and not closed)


def _has_begun(fact: Fact, bound: Bound) -> bool:
    interval = fact.interval
    return interval.lo < bound[0] or (interval.lo == bound[0] and bound[1] and interval.lo_closed)


def _pick(alerts: list[Alert], wanted: Counter[Alert]) -> Iterator[Alert]:
    """Yield the wanted alerts in order."""
    for alert in alerts:
        if wanted[alert]:
            wanted[alert] -= 1
            yield alert


def _sign(alerts: Iterable[Alert], sign: Sign, known: Time) -> Iterator[Alert]:
    for alert in alerts:
        if isinstance(alert, Change):
            yield WithdrawableChange(
                alert.event, alert.predicate, alert.args, alert.time, alert.closed, change=sign, known=known
            )
        else:
            yield AnswerChange(alert.predicate, alert.args, alert.interval, sign, known)
