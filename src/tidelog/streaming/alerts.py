"""Turn answers into alerts: one alert per incident, starts and ends instead of intervals, and silence after an alert.

Answers of one atom that follow each other within `dedupe` are one incident, which is reported once. With `changes`, the
start and the end of an incident are reported, each as soon as it is certain. After an alert there is silence for
`cooldown`, per atom or per some of its arguments; a start that was silenced has no end either. All times are those of
the facts, never of the wall clock, so a run over the same facts gives the same alerts, however it was cut into steps.

This module knows no reasoner: `AlertOptions` says which alerts are wanted, `AlertState` is the memory that they need,
and `update_alerts` turns the answers of a step into its alerts. Entries of the memory are dropped once they can no
longer matter.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from tidelog.data.fact_sheet import Sheet, argument_kinds, argument_names, build_fact_sheet, fill_arguments
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_atom, format_fact, json_value, parse_fact
from tidelog.language.syntax import Fact, Value
from tidelog.language.syntax_json import value_from_json, value_to_json
from tidelog.language.time_like import DurationLike, to_duration
from tidelog.language.time_text import format_iso
from tidelog.streaming.answer_changes import AnswerChange, Sign
from tidelog.timeline.interval import INF, Bound, Time, format_time, read_time

Args = tuple[Value, ...]


@dataclass(frozen=True)
class AlertOptions:
    """Which answers become alerts. `per` are the arguments, counted from 1, that share a silence; None means all.

    `changes` is True for starts and ends, `"start"` for starts only.
    """

    changes: bool | Literal["start"] = False
    dedupe: Fraction | None = None
    cooldown: Fraction | None = None
    per: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, as JSON values."""
        options = {"changes": self.changes, "dedupe": self.dedupe, "cooldown": self.cooldown, "per": self.per}
        texts = {name: str(value) if isinstance(value, Fraction) else value for name, value in options.items() if value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in texts.items()}


@dataclass(frozen=True)
class Change:
    """The start or end of an incident: at a time, right after it for an open start, right before it for an open end."""

    event: Literal["start", "end"]
    predicate: str
    args: Args
    time: Time
    closed: bool

    def __str__(self) -> str:
        return format_change(self)


@dataclass(frozen=True)
class WithdrawableChange(Change):
    """A start or end that was added (`+`) or withdrawn (`-`), and the clock at which that was reported."""

    change: Sign
    known: Time

    def __str__(self) -> str:
        return self.change + format_change(self)


#: An answer as it is, or the start or end of one.
Alert = Fact | Change


def parse_alert_options(
    *,
    changes: bool | Literal["start"] = False,
    dedupe: DurationLike | None = None,
    cooldown: DurationLike | None = None,
    per: Sequence[int] | None = None,
    arity: int | None = None,
    points: bool = False,
) -> AlertOptions | None:
    """Check the options and return them; None if no alerts are asked for. `arity` is that of the answers."""
    problems: list[Diagnostic] = []
    lengths: dict[str, Fraction | None] = {}
    for name, length in (("dedupe", dedupe), ("cooldown", cooldown)):
        lengths[name] = None if length is None else to_duration(length)
        if lengths[name] == 0:
            problems.append(Diagnostic("TL404", f"`{name}` is 0, which silences nothing", help="leave it out"))
    if changes and points:
        help = "leave `at` out, or use `dedupe` and `cooldown` on the points"
        problems.append(
            Diagnostic(
                "TL404",
                "points neither start nor end",
                law="`changes` reports starts and ends of intervals",
                help=help,
            )
        )
    if per is not None and cooldown is None:
        problems.append(Diagnostic("TL404", "`per` needs a `cooldown`", help="add one"))
    for position in per or ():
        if position < 1 or (arity is not None and position > arity):
            law = f"answers have {arity} arguments, counted from 1" if arity else "the answers have no arguments"
            problems.append(Diagnostic("TL404", f"`per`: there is no argument {position}", law=law))
    if problems:
        raise TidelogError(problems)
    if not changes and dedupe is None and cooldown is None:
        return None
    unique = None if per is None else tuple(sorted(set(per)))
    return AlertOptions(changes, lengths["dedupe"], lengths["cooldown"], unique)


@dataclass
class Incident:
    """An atom that holds, or held a short while ago: its latest interval, and whether its start was reported."""

    start: tuple[Time, bool]
    #: None while it holds.
    end: tuple[Time, bool] | None = None
    #: Whether the latest interval is the only one so far.
    first: bool = True
    reported: bool = True


@dataclass
class AlertState:
    """The memory of alerts from step to step."""

    config: AlertOptions
    #: The predicate of the answers.
    predicate: str
    #: How many answers were silenced so far.
    silenced: int = 0
    #: Up to when all starts are known.
    certain: Bound | None = None
    #: Incidents that hold; incidents that ended and may continue, in order of their ends; when each silence began.
    holding: dict[Args, Incident] = field(default_factory=dict)
    waiting: OrderedDict[Args, Incident] = field(default_factory=OrderedDict)
    cooling: OrderedDict[Args, Time] = field(default_factory=OrderedDict)
    #: With corrections: what the alerts that can still be withdrawn follow from.
    history: AlertHistory | None = None

    def copy(self) -> AlertState:
        """Return an independent copy, without the history."""
        return AlertState.from_json({**self.to_json(), "history": None})

    def replace_by(self, other: AlertState, history: AlertHistory) -> None:
        """Take over the memory of another state, and a history."""
        self.silenced, self.certain = other.silenced, other.certain
        self.holding, self.waiting, self.cooling = other.holding, other.waiting, other.cooling
        self.history = history

    @property
    def needs_starts(self) -> bool:
        """Whether intervals are needed that have begun and not ended."""
        return bool(self.config.changes) or self.config.dedupe is not None

    def to_json(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        certain = None if self.certain is None else [format_time(self.certain[0]), self.certain[1]]
        return {
            "config": self.config.to_json(),
            "predicate": self.predicate,
            "silenced": self.silenced,
            "certain": certain,
            "holding": [[_args_to_json(args), *_incident_to_json(incident)] for args, incident in self.holding.items()],
            "waiting": [[_args_to_json(args), *_incident_to_json(incident)] for args, incident in self.waiting.items()],
            "cooling": [[_args_to_json(args), format_time(time)] for args, time in self.cooling.items()],
            "history": None if self.history is None else self.history.to_json(),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> AlertState:
        """Restore a state from `to_json`."""
        certain = data["certain"]
        return AlertState(
            alert_options_from_json(data["config"]) or AlertOptions(),
            data["predicate"],
            data["silenced"],
            None if certain is None else (read_time(certain[0]), certain[1]),
            {_args_from_json(args): _incident_from_json(*rest) for args, *rest in data["holding"]},
            OrderedDict((_args_from_json(args), _incident_from_json(*rest)) for args, *rest in data["waiting"]),
            OrderedDict((_args_from_json(args), read_time(time)) for args, time in data["cooling"]),
            AlertHistory.from_json(data["history"]) if data.get("history") else None,
        )


@dataclass
class AlertHistory:
    """The answers of a stream with corrections since a state that is final, and the alerts since then."""

    base: AlertState
    answers: list[Fact]
    alerts: list[Alert]

    def to_json(self) -> dict[str, Any]:
        """Return the history as JSON values."""
        alerts = [
            ["fact", format_fact(alert)]
            if isinstance(alert, Fact)
            else [alert.event, alert.predicate, _args_to_json(alert.args), format_time(alert.time), alert.closed]
            for alert in self.alerts
        ]
        return {"base": self.base.to_json(), "answers": [format_fact(fact) for fact in self.answers], "alerts": alerts}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> AlertHistory:
        """Restore a history from `to_json`."""
        alerts: list[Alert] = []
        for kind, *rest in data["alerts"]:
            if kind == "fact":
                alerts.append(parse_fact(rest[0])[0])
            else:
                predicate, args, time, closed = rest
                alerts.append(Change(kind, predicate, _args_from_json(args), read_time(time), closed))
        answers = [parse_fact(text)[0] for text in data["answers"]]
        return AlertHistory(AlertState.from_json(data["base"]), answers, alerts)


def update_alerts(
    state: AlertState, ended: Iterable[Fact], begun: Iterable[Fact] = (), certain: Bound | None = None
) -> list[Alert]:
    """Update the state with the answers of a step, in the order in which they ended, and return the step's alerts.

    `begun` are intervals that have begun since the previous step and not ended, now that all is known up to `certain`.
    Without `certain` (for answers at points), the time is that of the latest answer.
    """
    dedupe, cooldown = state.config.dedupe, state.config.cooldown
    moments: list[_Moment] = []
    latest: Time = -INF
    for fact in ended:
        interval = fact.interval
        latest = max(latest, interval.hi)
        incident = state.holding.pop(fact.args, None) or _begin(state, fact, moments)
        incident.end = interval.hi, interval.hi_closed
        if dedupe is not None:
            state.waiting[fact.args] = incident
        elif state.config.changes:
            moments.append(_end(state, fact.args, incident))
        if incident.first and not state.config.changes:
            moments.append(_Moment(interval.hi, int(interval.hi_closed) - 1, fact.args, 0, incident, fact))
    for fact in begun:
        if fact.args not in state.holding:
            state.holding[fact.args] = _begin(state, fact, moments)
    if certain is not None:
        state.certain = certain
        latest = certain[0]
    while state.waiting and dedupe is not None:
        args, incident = next(iter(state.waiting.items()))
        assert incident.end is not None
        if not latest > incident.end[0] + dedupe:
            break
        state.waiting.popitem(last=False)
        if state.config.changes:
            moments.append(_end(state, args, incident))
    alerts = [moment.alert for moment in sorted(moments, key=_order) if _is_reported(state, moment)]
    while state.cooling and cooldown is not None and next(iter(state.cooling.values())) + cooldown <= latest:
        state.cooling.popitem(last=False)
    return alerts


@dataclass(frozen=True)
class _Moment:
    """A possible alert: its time and its incident. `side` is -1 right before the time, 1 right after it."""

    time: Time
    side: int
    args: Args
    rank: int
    incident: Incident
    alert: Alert


def _begin(state: AlertState, fact: Fact, moments: list[_Moment]) -> Incident:
    """Find the incident that an interval belongs to: a new one, unless the atom held a short while ago."""
    before = state.waiting.pop(fact.args, None)
    start = fact.interval.lo, fact.interval.lo_closed
    if before is not None:
        assert before.end is not None
        assert state.config.dedupe is not None
        if start[0] - before.end[0] <= state.config.dedupe:
            state.silenced += 1
            before.start, before.end, before.first = start, None, False
            return before
        if state.config.changes:
            moments.append(_end(state, fact.args, before))
    incident = Incident(start)
    if state.config.changes:
        change = Change("start", state.predicate, fact.args, *start)
        moments.append(_Moment(start[0], int(not start[1]), fact.args, 0, incident, change))
    return incident


def _end(state: AlertState, args: Args, incident: Incident) -> _Moment:
    assert incident.end is not None
    time, closed = incident.end
    change = Change("end", state.predicate, args, time, closed)
    return _Moment(time, int(closed) - 1, args, 1, incident, change)


def _order(moment: _Moment) -> tuple[Any, ...]:
    """Sort by time; at the same time, in the order in which facts are printed."""
    return moment.time, moment.side, [(isinstance(value, str), value) for value in moment.args], moment.rank


def _is_reported(state: AlertState, moment: _Moment) -> bool:
    """Return whether an alert is outside every silence; if so, begin a new silence."""
    if isinstance(moment.alert, Change) and moment.alert.event == "end":
        return moment.incident.reported and state.config.changes != "start"
    config = state.config
    if config.cooldown is None:
        return True
    key = moment.args if config.per is None else tuple(moment.args[position - 1] for position in config.per)
    last = state.cooling.get(key)
    if last is not None and (moment.time == last or moment.time < last + config.cooldown):
        state.silenced += 1
        moment.incident.reported = False
        return False
    state.cooling.pop(key, None)
    state.cooling[key] = moment.time
    return True


# As text


def format_change(change: Change, iso: bool = False, times: Collection[int] = ()) -> str:
    """Format a change as one line: the half of an interval that is known. Arguments at the positions `times` are times.

    >>> format_change(Change("start", "Jam", ("r0",), Fraction(8), True))
    'start Jam(r0)@[8'
    >>> format_change(Change("end", "Jam", ("r0",), Fraction(12), False))
    'end Jam(r0)@12)'
    """
    at = _format_time(change.time, iso)
    side = ("[" if change.closed else "(") + at if change.event == "start" else at + ("]" if change.closed else ")")
    return f"{change.event} {format_atom(change.predicate, change.args, iso, times)}@{side}"


def render_alerts(alerts: Iterable[Alert], form: str = "text", iso: bool = False, times: Collection[int] = ()) -> bytes:
    """Format alerts as lines of text or JSON; answers look the same as without alerts.

    If `iso`, times are dates, and so are the arguments at the positions `times`.
    """
    lines = []
    for alert in alerts:
        if form == "text":
            if isinstance(alert, Change):
                text = format_change(alert, iso, times)
            else:
                text = format_fact(alert, iso, times)
            lines.append((alert.change if isinstance(alert, AnswerChange | WithdrawableChange) else "") + text)
        else:
            lines.append(json.dumps(_to_json(alert, iso, times), ensure_ascii=False))
    return "".join(line + "\n" for line in lines).encode()


def build_alert_sheet(
    alerts: Iterable[Alert],
    arity: int,
    changes: bool,
    names: Sequence[str] | None = None,
    times: tuple[int, ...] = (),
) -> Sheet:
    """Build the table of alerts: of answers, or with `changes` of their starts and ends.

    The arguments at the positions `times` are times.
    """
    if not changes:
        return build_fact_sheet((alert for alert in alerts if isinstance(alert, Fact)), arity, names, times)
    rows: list[tuple[Any, ...]] = [
        (alert.event, alert.predicate, *fill_arguments(alert.args, arity), alert.time, alert.closed)
        for alert in alerts
        if isinstance(alert, Change)
    ]
    columns = ("event", "predicate", *argument_names(arity, names), "time", "closed")
    return Sheet(columns, ("text", "text", *argument_kinds(arity, times), "time", "text"), rows)


def alert_time(alert: Alert) -> Time:
    """Return the time of an alert; for an answer, its end."""
    return alert.time if isinstance(alert, Change) else alert.interval.hi


def _to_json(alert: Alert, iso: bool, times: Collection[int]) -> dict[str, Any]:
    found: dict[str, Any] = {"fact": format_atom(alert.predicate, alert.args, iso, times)}
    if isinstance(alert, Change):
        found = {"event": alert.event, **found, "time": _format_time(alert.time, iso), "closed": alert.closed}
    else:
        held = alert.interval
        ends = {"start": _format_time(held.lo, iso), "end": _format_time(held.hi, iso), "closed": held.closed}
        found |= ends
    if isinstance(alert, AnswerChange | WithdrawableChange):
        found = {"change": alert.change, "known": _format_time(alert.known, iso), **found}
    args = [
        format_iso(value) if iso and place in times and isinstance(value, Fraction) else json_value(value)
        for place, value in enumerate(alert.args)
    ]
    return {**found, "predicate": alert.predicate, "args": args}


def _format_time(time: Time, iso: bool) -> str:
    return format_iso(time) if iso else format_time(time)


# As JSON


def _args_to_json(args: Args) -> list[Any]:
    return [value_to_json(value) for value in args]


def _args_from_json(saved: list[Any]) -> Args:
    return tuple(value_from_json(value) for value in saved)


def _incident_to_json(incident: Incident) -> list[Any]:
    end = None if incident.end is None else [format_time(incident.end[0]), incident.end[1]]
    return [[format_time(incident.start[0]), incident.start[1]], end, incident.first, incident.reported]


def _incident_from_json(start: list[Any], end: list[Any] | None, first: bool, reported: bool) -> Incident:
    ended = None if end is None else (read_time(end[0]), end[1])
    return Incident((read_time(start[0]), start[1]), ended, first, reported)


def alert_options_from_json(data: Mapping[str, Any]) -> AlertOptions | None:
    """Restore options from `AlertOptions.to_json`, possibly among other keys; None if there are none."""
    dedupe, cooldown = (None if data.get(name) is None else Fraction(data[name]) for name in ("dedupe", "cooldown"))
    changes: bool | Literal["start"] = "start" if data.get("changes") == "start" else bool(data.get("changes"))
    found = AlertOptions(changes, dedupe, cooldown, tuple(data["per"]) if data.get("per") else None)
    return None if found == AlertOptions() else found
