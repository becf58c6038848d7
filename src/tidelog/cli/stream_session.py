"""Run a stream from files: feed a reasoner, save and resume it, and report how the stream ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidelog.analysis.program_warnings import find_data_warnings, make_strict, select_rules
from tidelog.analysis.value_columns import ValueColumn, find_padded_columns, find_repeated_columns
from tidelog.analysis.value_types import find_type_conflicts
from tidelog.cli.bad_rows import open_bad_rows
from tidelog.cli.stream_output import Printed, StreamOutput, render_answers
from tidelog.cli.stream_state import (
    LastOutput,
    QueryOptions,
    add_command_record,
    add_positions,
    build_mismatch,
    compute_digest,
    render_in_order,
    require_same_times,
)
from tidelog.cli.wall_clock import WallClock
from tidelog.cli.warning_output import show_warnings
from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import strip_mark
from tidelog.data.input_warnings import find_sort_warnings, find_untimed_tables
from tidelog.data.time_units import find_unit_warnings, find_zone_warnings
from tidelog.data.unknown_constants import UnknownConstants
from tidelog.errors import Diagnostic, Inconsistent, TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.language.wording import plural
from tidelog.streaming.alerts import Alert, AlertState
from tidelog.streaming.answer_changes import AnswerChange
from tidelog.streaming.answers import StreamStep
from tidelog.streaming.live_input import Position
from tidelog.streaming.observer import Observer
from tidelog.streaming.reasoner import Reasoner
from tidelog.streaming.state_format import unpack, write_atomically
from tidelog.streaming.stream_inputs import StreamInputs
from tidelog.streaming.stream_reader import cut_after, split_background
from tidelog.streaming.watch import compute_alerts, compute_last_alerts, restore_alert_state, save_with_alerts

if TYPE_CHECKING:
    from tidelog.cli.signals import StopRequest
    from tidelog.data.schema import Schema
    from tidelog.language.time_text import Zone
    from tidelog.windows.closed_domain import ClosedDomain


def run_stream(
    session: StreamSession, inputs: StreamInputs, state: str | None, continues: bool, stop: StopRequest | None
) -> int:
    """Read to the end, to a bad line, to `--until` or until a signal; save the state, and print open intervals.

    Return the exit code. An error is raised after everything before it has been answered and saved.
    """
    output = session.output
    session.note_input(session.background or Dataset())
    inputs.check_background(session.background or Dataset())
    if session.until is not None:
        inputs.check_until(session.until)
    inputs.inspect = session.inspect_table
    error, over = _feed_inputs(session, inputs, stop)
    signal = stop.signal if stop else 0
    saved = session.save() if state else b""
    if isinstance(error, Inconsistent) and state:
        at = session.start_reasoner().last_step.time
        click.echo(f"the state in {state} is that of the step at {at}; no later facts were taken", err=True)
    if not (error or signal or continues):
        try:
            session.finish()
        except Inconsistent as violated:
            error = violated
    undelivered = output.delivery.finish() if output.delivery else {}
    if state:
        held = "" if over else render_in_order(inputs.held_facts())
        record = add_command_record(saved, session.options, session.digest, session.last_output, held, undelivered)
        write_atomically(state, add_positions(record, inputs.positions()))
    output.flush()
    if undelivered and output.delivery and not error:
        error = output.delivery.describe_undelivered(state)
    _print_notes(session)
    session.columns += tuple(inputs.columns)
    if not error:  # A table without rows names its predicate all the same.
        session.predicates |= inputs.find_table_predicates()
    session.show_warnings(ended=not (error or signal or continues or over))
    if signal:
        where = f"; the state is in {state}" if state else ""
        click.echo(f"stopped after {inputs.describe_position()}{where}", err=True)
    if error:
        raise error
    return 128 + signal if signal else 0


def _feed_inputs(
    session: StreamSession, inputs: StreamInputs, stop: StopRequest | None
) -> tuple[TidelogError | None, bool]:
    """Feed all inputs to the reasoner.

    Return the error that ended the stream, if any, and whether `--until` did.
    """
    known: list[ValueColumn] = []
    for piece in inputs.read():
        session.note_input(piece.data)
        if session.strict and inputs.columns != known:
            known = inputs.columns
            make_strict(session.find_conflicts(known))
        if piece.note:
            click.echo(piece.note, err=True)
        try:
            more = session.feed(piece.data)
            if inputs.heartbeat is not None:
                more = session.run_clock(piece.idle, len(piece.data) > 0) and more
        except Inconsistent as violated:
            return violated, False
        if inputs.live:
            session.output.flush()
        if piece.error or not more or (stop and stop.requested):
            return piece.error, not more
    return None, False


def _say_where_late_facts_go(session: StreamSession) -> str:
    """Say where facts are that came too late, or which options keep and take such facts."""
    output = session.output
    if output.late:
        return f"{'it is' if output.late_facts == 1 else 'they are'} in {output.late.name}"
    if session.reasoner and session.reasoner.corrections:
        return "--late FILE keeps such facts, a longer --corrections H takes them"
    more = "" if session.options.delay else ", --delay D waits for facts that are late by up to D"
    return f"--late FILE keeps such facts{more}"


def _print_notes(session: StreamSession) -> None:
    """Say how many facts were late, how many rows had an undefined operation, and how many answers were silenced."""
    output = session.output
    if undefined := session.reasoner.count_undefined() if session.reasoner else 0:
        click.echo(
            f"{plural(undefined, 'row')} had an undefined operation, or text where a sum needs a number", err=True
        )
    if output.late_facts:
        click.echo(f"{plural(output.late_facts, 'fact')} came too late; {_say_where_late_facts_go(session)}", err=True)
    if unmatched := session.reasoner.unmatched_count if session.reasoner else 0:
        verb = "has" if unmatched == 1 else "have"
        click.echo(f"{plural(unmatched, 'deletion')} {verb} found no fact to delete", err=True)
    if session.silenced:
        verb = "was" if session.silenced == 1 else "were"
        click.echo(f"{plural(session.silenced, 'answer')} {verb} silenced", err=True)


@dataclass
class StreamSession:
    """A reasoner with its input and output."""

    program: Program
    options: QueryOptions
    step: Fraction | None
    until: Fraction | None
    output: StreamOutput
    #: The objects that the stream may mention, if the command names them.
    domain: ClosedDomain | None = None
    reasoner: Reasoner | None = None
    resumed: bool = False
    #: Whether only background facts have come so far; those facts; and the digest of the background facts in the state.
    before_stream: bool = True
    background: Dataset | None = None
    digest: str = ""
    last_output: LastOutput | None = None
    #: The types of the columns of background files.
    columns: tuple[ValueColumn, ...] = ()
    #: Facts that the previous run had read and not used, because they waited for other inputs.
    held: Dataset | None = None
    #: Up to where the previous run had read files that it followed.
    positions: dict[str, Position] = field(default_factory=dict)
    wall_clock: WallClock = field(default_factory=WallClock)
    #: What alerts need to remember, if any are asked for; and how many answers this run has silenced.
    alerts: AlertState | None = None
    silenced: int = 0
    observers: list[Observer] = field(default_factory=list)
    #: Whether warnings end the stream; the predicates of its facts; warnings about their sorts, by message.
    strict: bool = False
    predicates: set[str] = field(default_factory=set)
    sort_warnings: dict[str, Diagnostic] = field(default_factory=dict)
    #: The constants of rules that no fact of the stream has had so far; None before its first fact.
    unknown_constants: UnknownConstants | None = None
    #: Whether times of day had a time zone, with the first source of each kind.
    zones: dict[Zone, str] = field(default_factory=dict)
    #: The messages about tables that were shown already.
    table_warnings: set[str] = field(default_factory=set)
    #: Whether a warning about the unit of times has been shown.
    unit_warned: bool = False
    #: Whether statistics of a step have been written; the first ones also say what leaving out rules saves.
    stats_written: bool = False
    #: The answers that the end of the previous run closed, with corrections: they stand until the next step.
    closed: list[Fact] = field(default_factory=list)

    def begin(
        self, background: tuple[str, ...], state: str | None, changed: bool, schema: Schema | None = None
    ) -> None:
        """Load background facts, and continue from a state if there is one."""
        resumes = state is not None and Path(state).exists()
        if background:
            facts = Dataset.load(*background, schema=schema, bad_rows=open_bad_rows(resumes))
            self.columns = facts.sources
            self.zones = facts.zones
            padded = find_padded_columns(self.program.predicates, self.columns)
            show_warnings([*padded, *find_zone_warnings(self.zones)], self.strict)
            self.table_warnings |= {warning.message for warning in find_zone_warnings(self.zones)}
            self.background = self.read_times(facts)
        if state is not None and resumes:
            self._resume(Path(state).read_bytes(), state, changed)

    def note_input(self, data: Dataset) -> None:
        """Remember which predicates have facts; if strict, refuse facts that no rule reads as soon as they come."""
        new = {strip_mark(name) for name, _ in data.relations} - self.predicates
        self.predicates |= new
        found = {warning.message: warning for warning in find_sort_warnings(self.program, data)}
        self.sort_warnings |= found
        if self.unknown_constants is None:
            rules = select_rules(self.program.rules, [self.options.query])
            self.unknown_constants = UnknownConstants(self.program, rules)
        self.unknown_constants.note(data)
        if not self.unit_warned:
            units = list(find_unit_warnings(self.program.rules, data))
            self.unit_warned = bool(units)
            show_warnings(units, self.strict)
        if self.strict:
            unread = find_data_warnings(self.program, new, [self.options.query], complete=False)
            make_strict([*unread, *found.values()])

    def show_warnings(self, ended: bool) -> None:
        """Show the warnings about the facts of the stream; names without facts only if it was read as a whole.

        An empty stream gets no warning: no name in it can be misspelt.
        """
        complete = ended and not self.resumed and bool(self.predicates)
        found = find_data_warnings(self.program, self.predicates, [self.options.query], complete)
        unknown = self.unknown_constants.find() if complete and self.unknown_constants else ()
        conflicts = self.find_conflicts(())
        show_warnings([*found, *unknown, *self.sort_warnings.values(), *conflicts], self.strict and ended)

    def find_conflicts(self, columns: Iterable[ValueColumn]) -> list[Diagnostic]:
        """Find joins of numbers with text, in the background and these columns of the stream."""
        return find_type_conflicts(select_rules(self.program.rules, [self.options.query]), (*self.columns, *columns))

    def inspect_table(self, data: Dataset) -> None:
        """Warn at once of data that is read in a way that may not be meant.

        That is a table whose times seem to be in an argument or whose texts have spaces at their ends, and times with
        a time zone next to others without one.
        """
        self.zones = data.zones | self.zones
        columns = *find_padded_columns(self.program.predicates, data.sources), *find_repeated_columns(data.sources)
        found = (*find_untimed_tables(self.program, data), *columns, *find_zone_warnings(self.zones))
        new = [warning for warning in found if warning.message not in self.table_warnings]
        self.table_warnings |= {warning.message for warning in new}
        show_warnings(new, self.strict)

    def feed(self, data: Dataset) -> bool:
        """Feed facts to the reasoner and print the answers; return whether the stream goes on after them."""
        data = self.read_times(data)
        goes_on = True
        if self.until is not None:
            patience = self.options.corrections or max(self.options.delay.values(), default=Fraction(0))
            data, over = cut_after(data, self.until, patience)
            goes_on = not over
        if self.before_stream:
            early, data = split_background(data)
            if len(early):
                self.background = early if self.background is None else self.background | early
        if len(data):
            reasoner = self.start_reasoner()
            for observer in self.observers:
                observer.facts(data)
            for step in reasoner.feed(data, step=self.step, until=self.until):
                self._write_step(reasoner, step)
            for observer in self.observers:
                observer.pause(reasoner)
        return goes_on

    def run_clock(self, idle: bool, arrived: bool) -> bool:
        """Advance time to that of the wall clock while nothing arrives; return whether the stream goes on after it."""
        reasoner = self.reasoner
        if reasoner is None:
            return True
        if arrived:
            self.wall_clock.note_arrival(reasoner)
        now = self.wall_clock.read(reasoner) if idle else None
        if now is None or now <= reasoner.last_step.time:
            return True
        over = self.until is not None and now >= self.until
        if not over:
            reasoner.push(now)
            self._write_step(reasoner, reasoner.last_step)
            for observer in self.observers:
                observer.pause(reasoner)
        return not over

    def start_reasoner(self) -> Reasoner:
        """Return the reasoner; the first call creates it, once all background facts are known."""
        digest = compute_digest(self.background) if self.before_stream else self.digest
        self.before_stream = False
        if self.reasoner is None:
            options = self.options
            self.reasoner = Reasoner(
                self.program,
                options.query,
                timeline=options.timeline,
                background=self.background,
                delay=options.delay if None in options.delay else {**options.delay, None: Fraction(0)},
                memory=options.memory,
                at=options.at if options.times is None else options.times,
                corrections=options.corrections,
            )
            self.digest = digest
            for observer in self.observers:
                observer.facts(self.background or Dataset())
            if options.alerts:
                self.alerts = AlertState(options.alerts, options.query)
        elif digest not in ("", self.digest):
            raise build_mismatch(
                "the background facts are not those of the state",
                "leave them out or as they were, or start again with another --state",
            )
        self.background = None
        return self.reasoner

    def finish(self) -> None:
        """Stop time: print the last answers, and the intervals that are still open."""
        reasoner = self.start_reasoner()
        try:
            step = reasoner.finish_step(self.until)
        except Inconsistent as violated:
            if violated.step is not None:
                self._write_step(reasoner, violated.step, last=True)
            raise
        self.last_output = LastOutput(step.time, render_answers(self._write_step(reasoner, step, last=True)))

    def save(self) -> bytes:
        """Return the state of the reasoner and of its alerts."""
        return save_with_alerts(self.start_reasoner(), self.alerts)

    def _resume(self, data: bytes, state: str, changed: bool) -> None:
        meta, _ = unpack(data, state)
        record = meta.get("stream")
        given = self.options
        if record:
            self.options = self.options.resume(record["options"], state, changed)
            self.digest = record["background"]
            if self.options.corrections is None:
                self.output.already_printed = frozenset(line.encode() for line in record.get("printed", []))
            else:
                self.closed = [parse_fact(line[1:])[0] for line in record.get("printed", []) if line[0] == "+"]
            self.output.stopped_at = Fraction(record.get("stopped_at", 0))
            if self.output.delivery:
                self.output.delivery.resend(record.get("undelivered", {}))
            self.positions = {path: Position(*place) for path, place in record.get("positions", {}).items()}
            self.held = Dataset.parse(record.get("held", ""), source=state, ordered=True)
        self.reasoner = Reasoner.load(data, self.program, query=self.options.query, changed=changed)
        require_same_times(given, self.reasoner, state)
        if self.options.alerts:
            self.alerts = restore_alert_state(self.reasoner, meta, changed)
        reached = self.reasoner.last_step.time
        if self.until is not None and self.until < reached:
            raise build_mismatch(
                f"--until {self.until} is before {reached}, the time of {state}",
                "name a later time, or start again with another --state",
            )
        for note in self.reasoner.notes:
            click.echo(f"{state}: {note}", err=True)
        self.resumed = True

    def read_times(self, data: Dataset) -> Dataset:
        """Find the times of facts where these are arguments, and check their objects."""
        data = read_time_arguments(self.program, data)
        if self.domain:
            from tidelog.windows.closed_domain import require_domain_facts

            require_domain_facts(self.domain, data)
        return data

    def _write_step(self, reasoner: Reasoner, step: StreamStep, last: bool = False) -> Printed:
        """Write the answers, late facts and statistics of a step; return the answers as printed."""
        for observer in self.observers:
            observer.step(step)
        answers = self._compute_answers(reasoner, step, last)
        output, dates = self.output, reasoner.dates
        output.write_answers(answers, dates)
        if len(step.late):
            output.write_late(step.late, dates)
        if output.stats:
            output.write_stats(step, self._compute_more_stats(answers), dates)
        return answers

    def _compute_answers(self, reasoner: Reasoner, step: StreamStep, last: bool) -> Printed:
        """Return the answers of a step, or its alerts if alerts are asked for."""
        if self.alerts is None:
            return self._take_back_closed(step) if self.closed else step.answers
        before = self.alerts.silenced
        alerts = (
            compute_last_alerts(self.alerts, step.answers, reasoner.stopped_at, reasoner)
            if last
            else compute_alerts(reasoner, self.alerts, step.answers)
        )
        self.silenced += self.alerts.silenced - before
        return alerts

    def _take_back_closed(self, step: StreamStep) -> list[Alert]:
        """Return the changes of the first step after a run that had closed intervals, which may go on."""
        closed, self.closed = self.closed, []
        changes = [change for change in step.answers if isinstance(change, AnswerChange)]
        known = changes[0].known if changes else step.time
        again = {change.fact for change in changes if change.change == "+"}
        gone = [AnswerChange(f.predicate, f.args, f.interval, "-", known) for f in closed if f not in again]
        return [*gone, *(change for change in changes if change.fact not in closed)]

    def _compute_more_stats(self, answers: Printed) -> dict[str, Any]:
        """Compute statistics that a step does not know.

        They are about rows with undefined operations, about alerts, and once about the rules that are left out.
        """
        more: dict[str, Any] = {}
        if self.reasoner is not None and self.reasoner.evaluation.numbers is not None:
            more["undefined"] = self.reasoner.count_undefined()
        if self.alerts is not None:
            more |= {"alerts": len(answers), "silenced": self.alerts.silenced}
        if not self.stats_written:
            from tidelog.windows.memory_report import compute_savings

            self.stats_written = True
            original = self.domain.original if self.domain else self.program
            savings = compute_savings(original, self.program, self.options.query, self.options.timeline)
            if self.domain:
                windows = {"radius": self.domain.query.radius, "window": self.domain.window}
                savings = {**(savings or {"rules": [], "retention": {}}), **windows}
            if savings:
                more["saved"] = savings
        return more
