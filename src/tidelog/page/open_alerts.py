"""The answers of a running stream that hold now: the newest of them, since when, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidelog.language.fact_text import format_atom
from tidelog.language.syntax import Fact, Value
from tidelog.page.live_board import OpenAlert, OpenAlerts
from tidelog.page.live_reasons import find_reasons
from tidelog.streaming.answer_changes import ChangeStep
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from tidelog.streaming.answers import Answers, StreamStep
    from tidelog.streaming.reasoner import Reasoner

#: The most answers that are shown, and the most of them for which a reason is looked for at once.
_SHOWN = 50
_REASONS = 10

#: An answer that holds: its arguments and its beginning.
_Key = tuple[tuple[Value, ...], Time, bool]


class OpenAlertTracker:
    """Follows the answers that hold. Reasons are looked for once per answer, soon after it began."""

    def __init__(self) -> None:
        self._reasons: dict[_Key, dict[str, Any] | None] = {}
        self._shown: dict[_Key, OpenAlert] = {}
        #: Where corrections are taken: the answers that ended since the last update.
        self._ended: set[_Key] = set()

    def note_step(self, step: StreamStep) -> None:
        """Note the answers of a step."""
        if isinstance(step, ChangeStep):
            self._ended |= {_to_key(fact) for fact in step.added}

    def update(self, reasoner: Reasoner, dates: bool) -> tuple[OpenAlerts, list[OpenAlert]]:
        """Return the answers that hold now, and those that were returned before and have been withdrawn since."""
        holding, known = reasoner.open_intervals()
        newest = {_to_key(fact): fact for fact in _select_newest(holding)}
        self._find_reasons(reasoner, newest, known, dates)
        before, self._shown = self._shown, {}
        for key, fact in newest.items():
            atom = format_atom(fact.predicate, fact.args, dates, reasoner.evaluation.times)
            self._shown[key] = OpenAlert(atom, key[1], key[2], self._reasons.get(key))
        withdrawn = [] if reasoner.corrections is None else self._find_withdrawn(before, holding)
        self._ended.clear()
        return OpenAlerts(tuple(self._shown.values()), len(holding), known[0]), withdrawn

    def _find_reasons(
        self, reasoner: Reasoner, newest: dict[_Key, Fact], known: tuple[Time, bool], dates: bool
    ) -> None:
        self._reasons = {key: reason for key, reason in self._reasons.items() if key in newest}
        new = [key for key in newest if key not in self._reasons][:_REASONS]
        found = find_reasons(reasoner, [newest[key] for key in new], known, dates)
        self._reasons |= dict(zip(new, found, strict=True))

    def _find_withdrawn(self, before: dict[_Key, OpenAlert], holding: Answers) -> list[OpenAlert]:
        """Find the alerts that neither hold nor have ended: a correction took them back."""
        gone = {key: alert for key, alert in before.items() if key not in self._shown and key not in self._ended}
        still = {fact.args for fact in holding} if gone else set()
        return [alert for key, alert in gone.items() if key[0] not in still]


def _to_key(fact: Fact) -> _Key:
    return fact.args, fact.interval.lo, fact.interval.lo_closed


def _select_newest(holding: Answers) -> list[Fact]:
    """Return the answers that began last, the newest first."""
    if not len(holding):
        return []
    rows, grid, symbols = holding.block()
    order = np.argsort(-rows.lo, kind="stable")[:_SHOWN]
    predicate = holding.predicate
    return [
        Fact(
            predicate,
            tuple(symbols.value(int(number)) for number in rows.args[:, place]),
            grid.to_interval(int(rows.lo[place]), int(rows.hi[place])),
        )
        for place in order
    ]
