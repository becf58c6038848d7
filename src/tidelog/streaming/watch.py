"""A reasoner with alerts: its answers pass through `alerts` step by step, and both are saved and loaded together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from tidelog.data.arrow_output import ArrowExport
from tidelog.data.data_frames import FactsLike
from tidelog.data.fact_sheet import build_arrow_table
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.language.time_like import DurationLike, TimeLike
from tidelog.streaming.alert_corrections import correct_alerts
from tidelog.streaming.alerts import Alert, AlertState, build_alert_sheet, parse_alert_options, update_alerts
from tidelog.streaming.output_times import OutputTimesLike
from tidelog.streaming.reasoner import Reasoner
from tidelog.streaming.state_format import pack, unpack
from tidelog.timeline.interval import Time


class AlertList(list[Alert], ArrowExport):
    """The alerts of a step as a list that exports tables: one row per answer, or per start and end."""

    def __init__(
        self, alerts: Iterable[Alert], arity: int, changes: bool, times: tuple[int, ...] = (), iso: bool = False
    ) -> None:
        super().__init__(alerts)
        self._arity, self._changes, self._times, self._iso = arity, changes, times, iso

    def to_arrow(self, *, names: Sequence[str] | None = None) -> Any:
        """Return the alerts as a `pyarrow.Table`; `names` are the columns of the arguments.

        Starts and ends have the columns `event`, `predicate`, the arguments, `time` and `closed`; answers those of
        facts.
        """
        return build_arrow_table(build_alert_sheet(self, self._arity, self._changes, names, self._times), self._iso)


class Watch:
    """A standing query that reports alerts: answers once, their starts and ends, or with silence after each.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] Reading(X, C), C > 80.")
    >>> watch = tl.streaming.Watch(tl.Reasoner(program, "Hot"), changes=True)
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
        changes: bool | Literal["start"] = False,
        dedupe: DurationLike | None = None,
        cooldown: DurationLike | None = None,
        per: Sequence[int] | None = None,
    ) -> None:
        arity, points = reasoner.evaluation.task.arity, reasoner.evaluation.output is not None
        config = parse_alert_options(
            changes=changes, dedupe=dedupe, cooldown=cooldown, per=per, arity=arity, points=points
        )
        if config is None:
            help = "give `changes`, `dedupe` or `cooldown`, or use the reasoner as it is"
            raise TidelogError(Diagnostic("TL404", "no alerts are asked for", help=help))
        self.reasoner = reasoner
        self.state = AlertState(config, reasoner.query)
        #: Alerts of a step that ended with a violated constraint; they are returned with those of the next step.
        self._missed: list[Alert] = []

    @property
    def silenced(self) -> int:
        """How many answers were silenced."""
        return self.state.silenced

    def push(self, t: TimeLike, facts: FactsLike = ()) -> AlertList:
        """Advance the clock and add facts as `Reasoner.push` does; return the alerts that became certain."""
        return self._alert(lambda: self.reasoner.push(t, facts))

    def advance(self, t: TimeLike) -> AlertList:
        """Advance the clock as `Reasoner.advance` does; return the alerts that became certain."""
        return self._alert(lambda: self.reasoner.advance(t))

    def finish(self, until: TimeLike | None = None) -> AlertList:
        """End the stream and return the last alerts. Incidents that hold at the end have not ended."""
        answers = self.reasoner.finish(until)
        last = compute_last_alerts(self.state, answers, self.reasoner.stopped_at, self.reasoner)
        return self._list(self._missed + last)

    def save(self) -> bytes:
        """Return the whole state; `load` continues from it exactly."""
        return save_with_alerts(self.reasoner, self.state)

    @staticmethod
    def load(
        state: bytes, program: Program | None = None, *, changed: bool = False, at: OutputTimesLike | None = None
    ) -> Watch:
        """Return a watch that continues where the saved one stopped; see `Reasoner.load`."""
        watch = object.__new__(Watch)
        watch.reasoner = Reasoner.load(state, program, changed=changed, at=at)
        watch.state = restore_alert_state(watch.reasoner, unpack(state)[0], changed)
        watch._missed = []
        return watch

    def _alert(self, step: Callable[[], list[Fact]]) -> AlertList:
        try:
            answers: Iterable[Fact] = step()
        except Inconsistent as violated:
            if violated.step is not None:
                self._missed += compute_alerts(self.reasoner, self.state, violated.step.answers)
            raise
        found, self._missed = self._missed + compute_alerts(self.reasoner, self.state, answers), []
        return self._list(found)

    def _list(self, alerts: Iterable[Alert]) -> AlertList:
        evaluation = self.reasoner.evaluation
        changes = bool(self.state.config.changes)
        return AlertList(alerts, evaluation.task.arity, changes, evaluation.times, self.reasoner.dates)


def save_with_alerts(reasoner: Reasoner, state: AlertState | None) -> bytes:
    """Return the state of a reasoner together with that of its alerts."""
    if state is None:
        return reasoner.save()
    meta, arrays = unpack(reasoner.save())
    return pack({**meta, "alerts": state.to_json()}, arrays)


def restore_alert_state(reasoner: Reasoner, meta: Mapping[str, Any], changed: bool) -> AlertState:
    """Restore the alert state that was saved with a reasoner; with `changed`, its rules may be others now."""
    if "alerts" not in meta:
        help = "load it with `Reasoner.load`, or start again with another state"
        raise TidelogError(Diagnostic("TL403", "the state is that of a reasoner without alerts", help=help))
    state = AlertState.from_json(meta["alerts"])
    if state.predicate != reasoner.query:
        config = parse_alert_options(**vars(state.config), arity=reasoner.evaluation.task.arity)
        return AlertState(config or state.config, reasoner.query)
    if changed and state.needs_starts and reasoner.evaluation.output is None:
        # Incidents that no longer hold under the new rules are dropped; those that hold now will be reported.
        now = {fact.args for fact in reasoner.open_intervals()[0]}
        state.holding = {args: incident for args, incident in state.holding.items() if args in now}
        state.certain = None
    return state


def compute_alerts(reasoner: Reasoner, state: AlertState, answers: Iterable[Fact]) -> list[Alert]:
    """Compute the alerts of the step that a reasoner has just taken, from its answers."""
    if reasoner.corrections is not None:
        return correct_alerts(reasoner, state, answers)
    if reasoner.evaluation.output is not None or not state.needs_starts:
        return update_alerts(state, answers)
    begun, certain = reasoner.open_intervals(state.certain)
    return update_alerts(state, answers, begun, certain)


def compute_last_alerts(
    state: AlertState, answers: Iterable[Fact], stop: Time, reasoner: Reasoner | None = None
) -> list[Alert]:
    """Compute the alerts of the last step, at whose end time stops. An answer that holds there has not ended.

    The reasoner is needed if it takes corrections.
    """
    if reasoner is not None and reasoner.corrections is not None:
        return correct_alerts(reasoner, state, answers, stop=stop)
    facts = list(answers)
    if not state.config.changes:
        return update_alerts(state, facts)
    holding = [fact for fact in facts if fact.interval.hi == stop and fact.interval.hi_closed]
    ended = [fact for fact in facts if not (fact.interval.hi == stop and fact.interval.hi_closed)]
    return update_alerts(state, ended, holding, (stop, True))
