"""From answers to alerts: the same thing said once, starts and ends instead of intervals, and silence after an alert.

Answers of one atom that follow each other within `dedupe` are one incident, which is told once. `changes` tells when an
incident starts and when it ends, each as soon as that is certain. After an alert there is silence for `cooldown`, by
atom or by some arguments; a start that was not told has no end either. All times are those of the facts, never of the
wall clock, so that a run over the same facts gives the same alerts, however it was cut into steps.

There is no reasoner here: `Alerting` says what is wanted, `AlertState` remembers what that takes, and `take` goes from
the answers of a step to its alerts. What is remembered is forgotten once it can matter no more.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_fact, format_value
from tidelog.language.syntax import Fact, Value
from tidelog.language.times import format_iso
from tidelog.streaming.times import duration
from tidelog.timeline.interval import INF, Time, format_time, read_time

#: Up to when all is known, and whether that time is included.
Bound = tuple[Time, bool]
Args = tuple[Value, ...]
Length = Fraction | int | float | str

_CLOSED = {(True, True): "both", (True, False): "left", (False, True): "right", (False, False): "neither"}


@dataclass(frozen=True)
class Alerting:
    """Which answers are told, and how. `per` are the arguments, counted from 1, that share a silence; None: all."""

    changes: bool = False
    dedupe: Fraction | None = None
    cooldown: Fraction | None = None
    per: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """What is not usual, as JSON can say it."""
        told = {"changes": self.changes, "dedupe": self.dedupe, "cooldown": self.cooldown, "per": self.per}
        shown = {name: str(value) if isinstance(value, Fraction) else value for name, value in told.items() if value}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}


@dataclass(frozen=True)
class Change:
    """An incident starts or ends: at a time, right after it where a start is not closed, right before it for an end."""

    event: str
    predicate: str
    args: Args
    time: Time
    closed: bool

    def __str__(self) -> str:
        return change_text(self)


#: What is told: an answer as it is, or that one starts or ends.
Alert = Fact | Change


def alerting(
    *,
    changes: bool = False,
    dedupe: Length | None = None,
    cooldown: Length | None = None,
    per: Sequence[int] | None = None,
    arity: int | None = None,
    points: bool = False,
) -> Alerting | None:
    """What the options ask for, of answers with so many arguments; None for nothing. Raises what is wrong with them."""
    problems: list[Diagnostic] = []
    lengths: dict[str, Fraction | None] = {}
    for name, given in (("dedupe", dedupe), ("cooldown", cooldown)):
        lengths[name] = None if given is None else duration(given)
        if lengths[name] == 0:
            problems.append(Diagnostic("TL404", f"`{name}` is 0, which silences nothing", help="leave it out"))
    if changes and points:
        help = "leave `at` out, or use `dedupe` and `cooldown` on the points"
        problems.append(
            Diagnostic("TL404", "points neither start nor end", law="`changes` is about intervals", help=help)
        )
    if per is not None and cooldown is None:
        problems.append(Diagnostic("TL404", "`per` says for whom a `cooldown` is, and there is none", help="add one"))
    for position in per or ():
        if position < 1 or (arity is not None and position > arity):
            law = f"answers have {arity} arguments, counted from 1" if arity else "the answers have no arguments"
            problems.append(Diagnostic("TL404", f"`per`: there is no argument {position}", law=law))
    if problems:
        raise TidelogError(problems)
    if not changes and dedupe is None and cooldown is None:
        return None
    unique = None if per is None else tuple(sorted(set(per)))
    return Alerting(changes, lengths["dedupe"], lengths["cooldown"], unique)


@dataclass
class Incident:
    """An atom that holds, or held a short while ago: its latest interval, and whether its start was told."""

    start: tuple[Time, bool]
    #: None as long as it holds.
    end: tuple[Time, bool] | None = None
    #: Whether the latest interval is the only one so far.
    first: bool = True
    told: bool = True


@dataclass
class AlertState:
    """What has to be remembered from step to step."""

    config: Alerting
    #: The predicate of the answers.
    predicate: str
    #: How many answers were not told, so far.
    silenced: int = 0
    #: Up to when all starts are known.
    certain: Bound | None = None
    #: Incidents that hold; those that ended and may go on, in the order of their ends; when each silence began.
    holding: dict[Args, Incident] = field(default_factory=dict)
    waiting: OrderedDict[Args, Incident] = field(default_factory=OrderedDict)
    cooling: OrderedDict[Args, Time] = field(default_factory=OrderedDict)

    @property
    def needs_starts(self) -> bool:
        """Whether it has to know of intervals that have begun and not ended."""
        return self.config.changes or self.config.dedupe is not None

    def to_json(self) -> dict[str, Any]:
        """All of it, as JSON can say it."""
        certain = None if self.certain is None else [format_time(self.certain[0]), self.certain[1]]
        return {
            "config": self.config.to_json(),
            "predicate": self.predicate,
            "silenced": self.silenced,
            "certain": certain,
            "holding": [[_saved(args), *_incident(incident)] for args, incident in self.holding.items()],
            "waiting": [[_saved(args), *_incident(incident)] for args, incident in self.waiting.items()],
            "cooling": [[_saved(args), format_time(time)] for args, time in self.cooling.items()],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> AlertState:
        """What `to_json` said."""
        certain = data["certain"]
        return AlertState(
            config_of(data["config"]) or Alerting(),
            data["predicate"],
            data["silenced"],
            None if certain is None else (read_time(certain[0]), certain[1]),
            {_args(args): _restored(*rest) for args, *rest in data["holding"]},
            OrderedDict((_args(args), _restored(*rest)) for args, *rest in data["waiting"]),
            OrderedDict((_args(args), read_time(time)) for args, time in data["cooling"]),
        )


def take(
    state: AlertState, ended: Iterable[Fact], begun: Iterable[Fact] = (), certain: Bound | None = None
) -> list[Alert]:
    """The alerts of a step, and the state after it: `ended` are its answers, in the order in which they ended.

    `begun` are intervals that have begun since the step before, now that all is known up to `certain`, and that have
    not ended then. Where nothing is said of these (answers at points, say), time is that of the latest answer.
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
    found = [moment.alert for moment in sorted(moments, key=_order) if _is_told(state, moment)]
    while state.cooling and cooldown is not None and next(iter(state.cooling.values())) + cooldown <= latest:
        state.cooling.popitem(last=False)
    return found


@dataclass(frozen=True)
class _Moment:
    """Something that may be told: when, and of which incident. `side` is -1 right before the time, 1 right after it."""

    time: Time
    side: int
    args: Args
    rank: int
    incident: Incident
    alert: Alert


def _begin(state: AlertState, fact: Fact, moments: list[_Moment]) -> Incident:
    """The incident that an interval belongs to: a new one, unless the atom held a short while ago."""
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
    """By time; what happens at the same time comes in the order in which facts are printed."""
    return moment.time, moment.side, [(isinstance(value, str), value) for value in moment.args], moment.rank


def _is_told(state: AlertState, moment: _Moment) -> bool:
    """Whether there is no silence; it begins with an alert."""
    if isinstance(moment.alert, Change) and moment.alert.event == "end":
        return moment.incident.told
    config = state.config
    if config.cooldown is None:
        return True
    key = moment.args if config.per is None else tuple(moment.args[position - 1] for position in config.per)
    last = state.cooling.get(key)
    if last is not None and (moment.time == last or moment.time < last + config.cooldown):
        state.silenced += 1
        moment.incident.told = False
        return False
    state.cooling.pop(key, None)
    state.cooling[key] = moment.time
    return True


# As text


def change_text(change: Change, iso: bool = False) -> str:
    """One line: the half of an interval that is known.

    >>> change_text(Change("start", "Jam", ("r0",), Fraction(8), True))
    'start Jam(r0)@[8'
    >>> change_text(Change("end", "Jam", ("r0",), Fraction(12), False))
    'end Jam(r0)@12)'
    """
    at = _shown(change.time, iso)
    side = ("[" if change.closed else "(") + at if change.event == "start" else at + ("]" if change.closed else ")")
    return f"{change.event} {_atom(change.predicate, change.args)}@{side}"


def render(alerts: Iterable[Alert], form: str = "text", iso: bool = False) -> bytes:
    """Alerts as lines of text or of JSON; answers look as they always do."""
    lines = []
    for alert in alerts:
        if form == "text":
            lines.append(change_text(alert, iso) if isinstance(alert, Change) else format_fact(alert, iso))
        else:
            lines.append(json.dumps(_as_object(alert, iso), ensure_ascii=False))
    return "".join(line + "\n" for line in lines).encode()


def time_of(alert: Alert) -> Time:
    """The time that an alert is of: an answer's is its end."""
    return alert.time if isinstance(alert, Change) else alert.interval.hi


def _as_object(alert: Alert, iso: bool) -> dict[str, Any]:
    atom = _atom(alert.predicate, alert.args)
    if isinstance(alert, Change):
        return {"event": alert.event, "fact": atom, "time": _shown(alert.time, iso), "closed": alert.closed}
    held = alert.interval
    closed = _CLOSED[held.lo_closed, held.hi_closed]
    return {"fact": atom, "start": _shown(held.lo, iso), "end": _shown(held.hi, iso), "closed": closed}


def _atom(predicate: str, args: Args) -> str:
    return f"{predicate}({','.join(map(format_value, args))})" if args else predicate


def _shown(time: Time, iso: bool) -> str:
    return format_iso(time) if iso else format_time(time)


# As JSON


def _saved(args: Args) -> list[Any]:
    """Constants: a name as it is, a number in a list of its own."""
    return [value if isinstance(value, str) else [str(value)] for value in args]


def _args(saved: list[Any]) -> Args:
    return tuple(value if isinstance(value, str) else Fraction(value[0]) for value in saved)


def _incident(incident: Incident) -> list[Any]:
    end = None if incident.end is None else [format_time(incident.end[0]), incident.end[1]]
    return [[format_time(incident.start[0]), incident.start[1]], end, incident.first, incident.told]


def _restored(start: list[Any], end: list[Any] | None, first: bool, told: bool) -> Incident:
    ended = None if end is None else (read_time(end[0]), end[1])
    return Incident((read_time(start[0]), start[1]), ended, first, told)


def config_of(data: Mapping[str, Any]) -> Alerting | None:
    """What `Alerting.to_json` said, also among other things; None where it said nothing."""
    dedupe, cooldown = (None if data.get(name) is None else Fraction(data[name]) for name in ("dedupe", "cooldown"))
    found = Alerting(bool(data.get("changes")), dedupe, cooldown, tuple(data["per"]) if data.get("per") else None)
    return None if found == Alerting() else found
