"""A reasoner whose answers come as alerts: what `alerts` makes of them, step by step, saved and loaded together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.reasoning import AnyTime, Inconsistent
from tidelog.streaming.alerts import Alert, AlertState, Length, alerting, take
from tidelog.streaming.reasoner import Reasoner
from tidelog.streaming.state import pack, unpack
from tidelog.streaming.times import Times
from tidelog.timeline.interval import Time


class Watch:
    """A standing query whose answers are told once, when they start and end, or with silence after each.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] Reading(X, C), C > 80.")
    >>> watch = tl.Watch(tl.Reasoner(program, "Hot"), changes=True)
    >>> watch.push(0, ["Reading(t1,85)"])
    []
    >>> [str(alert) for alert in watch.push(3, ["Reading(t1,70)"])]
    ['start Hot(t1)@[0']
    >>> [str(alert) for alert in watch.push(9)]
    ['end Hot(t1)@5]']
    """

    def __init__(
        self,
        reasoner: Reasoner,
        *,
        changes: bool = False,
        dedupe: Length | None = None,
        cooldown: Length | None = None,
        per: Sequence[int] | None = None,
    ) -> None:
        arity, points = reasoner.evaluation.task.arity, reasoner.evaluation.output is not None
        config = alerting(changes=changes, dedupe=dedupe, cooldown=cooldown, per=per, arity=arity, points=points)
        if config is None:
            help = "give `changes`, `dedupe` or `cooldown`, or use the reasoner as it is"
            raise TidelogError(Diagnostic("TL404", "nothing is asked for", help=help))
        self.reasoner = reasoner
        self.state = AlertState(config, reasoner.query)
        #: Alerts of a step that ended with a violated constraint; they come with those of the next.
        self._missed: list[Alert] = []

    @property
    def silenced(self) -> int:
        """How many answers were not told."""
        return self.state.silenced

    def push(self, t: AnyTime, facts: Iterable[str | Fact] | Dataset = ()) -> list[Alert]:
        """As the reasoner's `push`; returns the alerts that have become certain."""
        return self._told(lambda: self.reasoner.push(t, facts))

    def advance(self, t: AnyTime) -> list[Alert]:
        """As the reasoner's `advance`."""
        return self._told(lambda: self.reasoner.advance(t))

    def finish(self, until: AnyTime | None = None) -> list[Alert]:
        """The end of the stream: the last alerts. What holds there has not ended."""
        answers = self.reasoner.finish(until)
        return self._missed + last_alerts(self.state, answers, self.reasoner.stopped)

    def save(self) -> bytes:
        """The whole state, from which `load` goes on exactly."""
        return saved(self.reasoner, self.state)

    @staticmethod
    def load(state: bytes, program: Program | None = None, *, changed: bool = False, at: Times | None = None) -> Watch:
        """A watch that goes on where the saved one stopped; see `Reasoner.load`."""
        watch = object.__new__(Watch)
        watch.reasoner = Reasoner.load(state, program, changed=changed, at=at)
        watch.state = restored(watch.reasoner, unpack(state)[0], changed)
        watch._missed = []
        return watch

    def _told(self, step: Callable[[], list[Fact]]) -> list[Alert]:
        try:
            answers: Iterable[Fact] = step()
        except Inconsistent as violated:
            if violated.step:
                self._missed += alerts_of(self.reasoner, self.state, violated.step.answers)
            raise
        found, self._missed = self._missed + alerts_of(self.reasoner, self.state, answers), []
        return found


def saved(reasoner: Reasoner, state: AlertState | None) -> bytes:
    """A reasoner's state, with that of its alerts."""
    if state is None:
        return reasoner.save()
    meta, arrays = unpack(reasoner.save())
    return pack({**meta, "alerts": state.to_json()}, arrays)


def restored(reasoner: Reasoner, meta: Mapping[str, Any], changed: bool) -> AlertState:
    """The state of a reasoner's alerts, from what was saved with it; with `changed`, its rules may be others now."""
    if "alerts" not in meta:
        help = "load it with `Reasoner.load`, or start again with another state"
        raise TidelogError(Diagnostic("TL403", "the state is that of a reasoner without alerts", help=help))
    state = AlertState.from_json(meta["alerts"])
    if state.predicate != reasoner.query:
        config = alerting(**vars(state.config), arity=reasoner.evaluation.task.arity)
        return AlertState(config or state.config, reasoner.query)
    if changed and state.needs_starts and reasoner.evaluation.output is None:
        # Incidents that no longer hold by the new rules are dropped; what now holds will be told.
        now = {fact.args for fact in reasoner.begun()[0]}
        state.holding = {args: incident for args, incident in state.holding.items() if args in now}
        state.certain = None
    return state


def alerts_of(reasoner: Reasoner, state: AlertState, answers: Iterable[Fact]) -> list[Alert]:
    """The alerts of the step that a reasoner has just taken, and given these answers."""
    if reasoner.evaluation.output is not None or not state.needs_starts:
        return take(state, answers)
    begun, certain = reasoner.begun(state.certain)
    return take(state, answers, begun, certain)


def last_alerts(state: AlertState, answers: Iterable[Fact], stop: Time) -> list[Alert]:
    """The alerts of the last step, at whose end time stops. What holds there is no change yet, but an answer."""
    facts = list(answers)
    if not state.config.changes:
        return take(state, facts)
    holding = [fact for fact in facts if fact.interval.hi == stop and fact.interval.hi_closed]
    ended = [fact for fact in facts if not (fact.interval.hi == stop and fact.interval.hi_closed)]
    return take(state, ended, holding, (stop, True))
