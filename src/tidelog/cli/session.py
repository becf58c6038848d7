"""A stream that is run from files: a reasoner that is fed, saved and resumed, and what is said when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.options import mistaken
from tidelog.cli.output import Output, lines_of
from tidelog.cli.resuming import Options, another, digest_of, with_notes
from tidelog.data.dataset import Dataset
from tidelog.errors import TidelogError
from tidelog.language.program import Program
from tidelog.reasoning import Inconsistent
from tidelog.streaming.alerts import Alert, AlertState
from tidelog.streaming.answers import Answers, Step
from tidelog.streaming.given import timed
from tidelog.streaming.observing import Observer
from tidelog.streaming.reading import background_first, is_live, pieces, up_to
from tidelog.streaming.reasoner import Reasoner
from tidelog.streaming.state import unpack, write_atomically
from tidelog.streaming.watch import alerts_of, last_alerts, restored, saved
from tidelog.timeline.interval import Time

if TYPE_CHECKING:
    from tidelog.cli.stopping import Stopping
    from tidelog.windows.assumed import Assumed


def run(session: Session, source: str, state: str | None, continues: bool, stop: Stopping | None) -> int:
    """Read to the end, to a bad line, to `--until`, or until a signal comes; then save, and end what is open."""
    output = session.output
    error: TidelogError | None = None
    line = 0
    given: set[str] = {name for name, _ in session.background.relations} if session.background else set()
    live = is_live(source)
    for piece in pieces(source, stop):
        given |= {name for name, _ in piece.data.relations}
        try:
            more = session.take(piece.data)
        except Inconsistent as violated:
            error = violated
            break
        if live:
            output.flush()
        line, error = piece.line, piece.error
        if not more or (stop and stop.asked):
            break
    stopped = stop.signal if stop else 0
    kept = session.save() if state else b""
    if isinstance(error, Inconsistent) and state:
        click.echo(
            f"the state in {state} is that of the step at {session.ready().stats.t}; no more was taken", err=True
        )
    if not (error or stopped or continues):
        try:
            session.end()
        except Inconsistent as violated:
            error = violated
    if state:
        write_atomically(state, with_notes(kept, session.options, session.digest, session.last_words))
    output.flush()
    if output.late_facts:
        are = "it is" if output.late_facts == 1 else "they are"
        where = f"{are} in {output.late.name}" if output.late else "--late FILE keeps such facts"
        click.echo(f"{_counted(output.late_facts, 'fact')} came too late; {where}", err=True)
    if session.silenced:
        were = "was" if session.silenced == 1 else "were"
        click.echo(f"{_counted(session.silenced, 'answer')} {were} silenced", err=True)
    if not session.resumed:
        for note in mistaken(session.program, given):
            click.echo(note, err=True)
    if stopped:
        name = "<stdin>" if source == "-" else source
        click.echo(f"stopped after line {line} of {name}; the state is in {state}", err=True)
    if error:
        raise error
    return 128 + stopped if stopped else 0


@dataclass
class Session:
    """A reasoner at work: what it is fed, and who is told what follows."""

    program: Program
    options: Options
    step: Fraction | None
    until: Fraction | None
    output: Output
    #: What is known of the objects of the stream.
    assumed: Assumed | None = None
    reasoner: Reasoner | None = None
    resumed: bool = False
    #: Background facts, as long as no fact with a time has come; and what identifies those of the state.
    heading: bool = True
    background: Dataset | None = None
    digest: str = ""
    #: Where time stopped, and what was printed then.
    last_words: tuple[Time, bytes] | None = None
    #: What is remembered for the sake of alerts, where they are asked for; and how many answers this run has silenced.
    alerts: AlertState | None = None
    silenced: int = 0
    observers: list[Observer] = field(default_factory=list)
    #: Whether figures of a step have been written; the first ones also say what leaving rules out saves.
    counted: bool = False

    def begin(self, background: tuple[str, ...], state: str | None, changed: bool) -> None:
        """Load background facts, and go on from a state if there is one."""
        if background:
            self.background = self._timed(Dataset.load(*background))
        if state is not None and Path(state).exists():
            self._resume(Path(state).read_bytes(), state, changed)

    def take(self, data: Dataset) -> bool:
        """Feed facts, and print what follows; whether more are wanted."""
        data = self._timed(data)
        wanted = True
        if self.until is not None:
            data, over = up_to(data, self.until, max(self.options.delay.values(), default=Fraction(0)))
            wanted = not over
        if self.heading:
            early, data = background_first(data)
            if len(early):
                self.background = early if self.background is None else self.background | early
        if len(data):
            reasoner = self.ready()
            for observer in self.observers:
                observer.facts(data)
            for step in reasoner.feed(data, step=self.step, until=self.until):
                self._note(reasoner, step)
            for observer in self.observers:
                observer.pause(reasoner)
        return wanted

    def ready(self) -> Reasoner:
        """The reasoner, which exists once all background facts are there."""
        digest = digest_of(self.background) if self.heading else self.digest
        self.heading = False
        if self.reasoner is None:
            o = self.options
            self.reasoner = Reasoner(
                self.program,
                o.query,
                timeline=o.timeline,
                background=self.background,
                delay=o.delay if None in o.delay else {**o.delay, None: Fraction(0)},
                memory=o.memory,
                at=o.at,
            )
            self.digest = digest
            for observer in self.observers:
                observer.facts(self.background or Dataset())
            if o.alerts:
                self.alerts = AlertState(o.alerts, o.query)
        elif digest not in ("", self.digest):
            raise another(
                "the background facts are not those of the state",
                "leave them out or as they were, or start again with another --state",
            )
        self.background = None
        return self.reasoner

    def end(self) -> None:
        """Time stops: print the last answers, and what is still open."""
        reasoner = self.ready()
        try:
            step = reasoner.end(self.until)
        except Inconsistent as violated:
            if violated.step:
                self._note(reasoner, violated.step, last=True)
            raise
        self.last_words = step.t, lines_of(self._note(reasoner, step, last=True))

    def save(self) -> bytes:
        """The state of the reasoner, and of its alerts."""
        return saved(self.ready(), self.alerts)

    def _resume(self, data: bytes, state: str, changed: bool) -> None:
        meta, _ = unpack(data, state)
        notes = meta.get("stream")
        if notes:
            self.options = self.options.on(notes["options"], state, changed)
            self.digest = notes["background"]
            self.output.printed = frozenset(line.encode() for line in notes.get("printed", []))
            self.output.stopped_at = Fraction(notes.get("stopped_at", 0))
        self.reasoner = Reasoner.load(data, self.program, query=self.options.query, changed=changed)
        if self.options.alerts:
            self.alerts = restored(self.reasoner, meta, changed)
        came = self.reasoner.stats.t
        if self.until is not None and self.until < came:
            raise another(
                f"--until {self.until} is before the time of {state}, which has come to {came}",
                "name a later time, or start again with another --state",
            )
        for note in self.reasoner.notes:
            click.echo(f"{state}: {note}", err=True)
        self.resumed = True

    def _timed(self, data: Dataset) -> Dataset:
        data = timed(self.program, data)
        if self.assumed:
            from tidelog.windows.assumed import refuse_others

            refuse_others(self.assumed, data)
        return data

    def _note(self, reasoner: Reasoner, step: Step, last: bool = False) -> Answers | list[Alert]:
        """Write what a step gave; what was told of it."""
        for observer in self.observers:
            observer.step(step)
        told = self._told(reasoner, step, last)
        output, dates = self.output, reasoner.dates
        output.answer(told, dates)
        if len(step.late):
            output.came_late(step.late, dates)
        if output.stats:
            output.count(step, self._more(told), dates)
        return told

    def _told(self, reasoner: Reasoner, step: Step, last: bool) -> Answers | list[Alert]:
        """The answers of a step, or its alerts."""
        if self.alerts is None:
            return step.answers
        before = self.alerts.silenced
        found = (
            last_alerts(self.alerts, step.answers, reasoner.stopped)
            if last
            else alerts_of(reasoner, self.alerts, step.answers)
        )
        self.silenced += self.alerts.silenced - before
        return found

    def _more(self, told: Answers | list[Alert]) -> dict[str, Any]:
        """Figures that a step does not know: of alerts, and once what leaving rules out saves."""
        more: dict[str, Any] = {}
        if self.alerts is not None:
            more |= {"alerts": len(told), "silenced": self.alerts.silenced}
        if not self.counted:
            from tidelog.windows.memory import saved

            self.counted = True
            o, original = self.options, self.assumed.original if self.assumed else self.program
            less = saved(original, self.program, o.query, o.timeline)
            if self.assumed:
                windows = {"radius": self.assumed.query.radius, "window": self.assumed.window}
                less = {**(less or {"rules": [], "retention": {}}), **windows}
            if less:
                more["saved"] = less
        return more


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
