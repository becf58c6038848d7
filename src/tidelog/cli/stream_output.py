"""Write what a stream gives: answers or alerts to standard output, late facts and statistics of steps to files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from mmap import mmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tidelog.cli.fact_output import add_column_names
from tidelog.cli.standard_output import write_stdout
from tidelog.data.fact_sheet import render_csv, render_parquet
from tidelog.language.time_text import format_iso
from tidelog.streaming.alerts import Alert, WithdrawableChange, alert_time, build_alert_sheet, render_alerts
from tidelog.streaming.answer_changes import add_change_columns, build_change_sheet
from tidelog.streaming.answers import Answers, StreamStep
from tidelog.timeline.interval import format_time

if TYPE_CHECKING:
    from tidelog.cli.alert_delivery import AlertDelivery
    from tidelog.cli.fact_output import FactOutput
    from tidelog.data.fact_sheet import Sheet
    from tidelog.data.schema import Schema
    from tidelog.language.fact_text import LineFormat

#: What a step prints: its answers, or the alerts that are left of them.
Printed = Answers | list[Alert]


@dataclass
class StreamOutput:
    """Where output goes, and in which form. `iso` says how times print; None: as in the data (`dates`)."""

    target: FactOutput
    iso: bool | None
    #: The arity of the answers, and whether their starts and ends are printed.
    arity: int = 0
    changes: bool = False
    #: Whether answers are added and taken back.
    corrections: bool = False
    #: The positions of arguments that are times.
    times: tuple[int, ...] = ()
    #: What a schema says about the columns of the answers.
    schema: Schema | None = None
    names: tuple[str, ...] | None = None
    delivery: AlertDelivery | None = None
    late: IO[bytes] | None = None
    stats: IO[bytes] | None = None
    late_facts: int = 0
    #: The lines that the previous run printed when it ended, and the time where it stopped: they are not printed again.
    already_printed: frozenset[bytes] = frozenset()
    stopped_at: Fraction = Fraction(0)
    _file: IO[bytes] | None = None
    _needs_header: bool = True
    _collected: list[Alert] = field(default_factory=list)
    _dates: bool = False

    def write_answers(self, answers: Printed, dates: bool) -> None:
        """Write the answers of a step; Parquet is written at the end, by `close`."""
        if not len(answers):
            return
        answers = self._drop_already_printed(answers)
        iso = self._use_iso(dates)
        if self.delivery:
            for line in self._name_columns(render_alerts(answers, "jsonl", iso, self.times)).splitlines():
                self.delivery.send(json.loads(line))
        if self.target.form == "parquet":
            self._collected += answers
            self._dates = dates
        elif self.target.form == "csv":
            self._write(render_csv(self._build_sheet(answers), iso, header=self._needs_header))
            self._needs_header = False
        elif self.target.form == "jsonl":
            self._write(self._name_columns(render_answers(answers, "jsonl", iso, self.times)))
        else:
            self._write(render_answers(answers, self.target.form, iso, self.times))

    def open(self, resumed: bool) -> None:
        """Open the output file; a resumed stream appends to it."""
        if self.target.file is None or self.target.form == "parquet":
            if resumed and self.target.file and Path(self.target.file).exists():
                raise click.UsageError(
                    f"--output {self.target.file}: the answers of the earlier run would be overwritten; "
                    "name another file, or use --format csv or jsonl, which are appended to"
                )
            return
        if resumed:
            _cut_last_line(Path(self.target.file))
        self._file = open(self.target.file, "ab" if resumed else "wb")  # noqa: SIM115 (closed by `close`)
        self._needs_header = self._file.tell() == 0

    def close(self) -> None:
        """Write what is left: the header of a CSV file without answers, or all of a Parquet file."""
        if self.target.form == "parquet":
            self.target.write(render_parquet(self._build_sheet(self._collected), self._use_iso(self._dates)))
        elif self.target.form == "csv" and self._needs_header:
            self._write(render_csv(self._build_sheet([])))
        sys.stdout.flush()
        if self._file:
            self._file.close()

    def _build_sheet(self, answers: Iterable[Alert]) -> Sheet:
        if self.corrections and not self.changes:
            return build_change_sheet(answers, self.arity, self.names, self.times)
        alerts = list(answers)
        sheet = build_alert_sheet(alerts, self.arity, self.changes, self.names, self.times)
        if not self.corrections:
            return sheet
        changes = [(alert.change, alert.known) for alert in alerts if isinstance(alert, WithdrawableChange)]
        return add_change_columns(sheet, changes)

    def _name_columns(self, lines: bytes) -> bytes:
        """Add the names of the arguments to JSON, if a schema declares them."""
        return add_column_names(lines, self.schema) if self.schema and self.names else lines

    def _write(self, text: bytes) -> None:
        if self._file:
            self._file.write(text)
        else:
            write_stdout(text)

    def write_late(self, facts: Answers, dates: bool) -> None:
        self.late_facts += len(facts)
        if self.late:
            self.late.write(facts.render("text", self._use_iso(dates)))

    def write_stats(self, step: StreamStep, more: Mapping[str, Any], dates: bool) -> None:
        """Write the statistics of a step, with further ones that the step does not know."""
        stats = {
            "t": format_iso(step.time) if self._use_iso(dates) else format_time(step.time),
            "facts_in": step.facts_in,
            "window_facts": step.window_facts,
            "history_atoms": step.history_atoms,
            "answers": len(step.answers),
            "seconds": round(step.seconds, 9),
            **more,
        }
        if self.stats:
            self.stats.write(json.dumps(stats).encode() + b"\n")

    def flush(self) -> None:
        sys.stdout.flush()
        for file in (self.late, self.stats, self._file):
            if file:
                file.flush()

    def _use_iso(self, dates: bool) -> bool:
        return dates if self.iso is None else self.iso

    def _drop_already_printed(self, answers: Printed) -> Printed:
        """Return the answers without those that the previous run printed when it ended."""
        if not self.already_printed:
            return answers
        alerts = list(answers)
        pairs = zip(render_alerts(alerts).splitlines(), alerts, strict=True)
        new = [alert for text, alert in pairs if text not in self.already_printed]
        # Answers come in the order of time: after this one, none of those lines can come again.
        if max(alert_time(alert) for alert in alerts) > self.stopped_at:
            self.already_printed = frozenset()
        return new


def render_answers(
    answers: Printed, form: LineFormat = "text", iso: bool = False, times: tuple[int, ...] = ()
) -> bytes:
    return answers.render(form, iso) if isinstance(answers, Answers) else render_alerts(answers, form, iso, times)


def _cut_last_line(path: Path) -> None:
    """Remove a last line without an end: a run that was killed wrote only a part of it, and the next one repeats it."""
    if path.is_file() and path.stat().st_size:
        with path.open("rb+") as file:
            with mmap(file.fileno(), 0) as text:
                whole = text.rfind(b"\n") + 1
            file.truncate(whole)
