"""`tidelog run`: a pipeline on Spark."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

import click

from tidelog.cli.ui import ui_options, watched

if TYPE_CHECKING:
    from tidelog.cli.stopping import Stopping
    from tidelog.page.board import Board
    from tidelog.spark.run import Progress, Ready, Stream
    from tidelog.timeline.interval import Time

_Result = TypeVar("_Result")

#: Seconds between looks at a running job, and between lines about it where they are kept.
_LOOK = 0.5
_LINE = 10.0
#: A stop waits so many seconds for the batch under way.
_PATIENCE = 30.0


def _until(context: click.Context, option: click.Parameter, value: str | None) -> Time | None:
    from tidelog.errors import TidelogError
    from tidelog.language.times import parse_time

    if value is None:
        return None
    try:
        return parse_time(value)[0]
    except TidelogError as problem:
        raise click.BadParameter(problem.diagnostics[0].message) from None


@click.command(short_help="Run a pipeline on Spark: sources, rules, sinks.")
@click.argument("pipeline", metavar="PIPELINE.toml")
@click.option("--master", metavar="URL", help="Where Spark runs. Default: local[*], or what Spark is configured for.")
@click.option("--explain", is_flag=True, help="Check everything, print how the work is split, and start nothing.")
@click.option(
    "--until", metavar="T", callback=_until, help="The stream ends at T. Default: as the file says, or never."
)
@click.option(
    "--changed-rules",
    "changed",
    is_flag=True,
    help="The rules are others than the checkpoint's; keep what can be kept.",
)
@click.option("--quiet", is_flag=True, help="Say nothing while it runs.")
@ui_options
def run(
    pipeline: str,
    master: str | None,
    explain: bool,
    until: Time | None,
    changed: bool,
    quiet: bool,
    ui: str | None,
    ui_host: str,
) -> int:
    """Read facts from the sources of PIPELINE.toml, reason over them by its rules, and write the answers to its sinks.

    The file is checked as a whole, against its rules and its sources, before anything starts. Ctrl-C stops after the
    batch under way; the next run goes on where this one stopped.

    \b
    Example:
      echo 'Alarm(X) :- Boxminus[0,1] Hot(X).' > rules.dmtl
      printf 'turbine,time\nt1,0\nt1,1\n' > readings.csv
      echo 'rules = "rules.dmtl"' > job.toml
      echo 'query = "Alarm"' >> job.toml
      echo 'mode = "batch"' >> job.toml
      echo 'timeline = "integer"' >> job.toml
      echo '[sources.readings]' >> job.toml
      echo 'format = "csv"' >> job.toml
      echo 'path = "readings.csv"' >> job.toml
      echo 'schema = "turbine STRING, time BIGINT"' >> job.toml
      echo 'options = { header = "true" }' >> job.toml
      echo '[facts]' >> job.toml
      echo 'Hot = "SELECT turbine, time FROM readings"' >> job.toml
      echo '[sinks.answers]' >> job.toml
      echo 'format = "console"' >> job.toml
      tidelog run job.toml --quiet
    """
    return run_file(
        pipeline, master, explain=explain, until=until, changed=changed, quiet=quiet, ui=ui, ui_host=ui_host
    )


def run_file(
    path: str,
    master: str | None = None,
    *,
    explain: bool = False,
    plan: bool = False,
    until: Time | None = None,
    changed: bool = False,
    quiet: bool = False,
    ui: str | None = None,
    ui_host: str = "",
) -> int:
    """Run a pipeline file; with `plan`, say how the work is split before it starts, with `explain` only that."""
    from tidelog.cli.stopping import stopping
    from tidelog.spark.pipeline import load_pipeline
    from tidelog.spark.run import ready
    from tidelog.spark.session import session

    loaded = load_pipeline(path)
    if ui is not None and not loaded.streaming:
        raise click.UsageError(f'--ui shows a running stream, and {path} has mode = "batch"')
    if changed:
        loaded = replace(loaded, changed_rules=True)
    spark = session(master or loaded.master, name=loaded.name, settings=loaded.settings, log=loaded.log)
    try:
        job = ready(spark, loaded)
        if explain or plan:
            click.echo("\n".join(job.in_words()))
        if explain:
            return 0
        if not quiet:
            address = spark.sparkContext.uiWebUrl
            page = f"Spark's UI is at {address}" if address else "Spark's UI is off"
            where = f"on {spark.sparkContext.master}, {_counted(job.buckets, 'bucket')}"
            click.echo(f"{loaded.name}: {where}; {page}", err=True)
        # Spark has its own way with Ctrl-C, which it brings with the session; ours comes after it.
        with stopping() as stop, watched(ui, ui_host, loaded.name) as board:
            return _work(job, loaded.until if until is None else until, quiet, stop, board)
    finally:
        spark.stop()


def _work(job: Ready, until: Time | None, quiet: bool, stop: Stopping, board: Board | None) -> int:
    from tidelog.spark.run import run_batch

    if job.pipeline.streaming:
        return _stream(job, until, quiet, stop, board)
    progress = _unless_stopped(job, stop, lambda: run_batch(job))
    if progress is None:
        click.echo("stopped; there are no answers", err=True)
        return 128 + stop.signal
    if not quiet:
        click.echo(f"{_counted(progress.answers, 'answer')}{_set_aside(progress)}", err=True)
    return 0


def _unless_stopped(job: Ready, stop: Stopping, work: Callable[[], _Result]) -> _Result | None:
    """What some work gives that cannot be stopped between two batches; None if it was stopped, with all its jobs."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        while not running.done():
            if stop.asked:
                job.spark.sparkContext.cancelAllJobs()
                sleep(_LOOK)
            else:
                select.select([stop.wake], [], [], _LOOK)
    if stop.asked and running.exception() is not None:
        return None
    return running.result()


def _stream(job: Ready, until: Time | None, quiet: bool, stop: Stopping, board: Board | None) -> int:
    from tidelog.spark.run import Stream

    stream = Stream(job, board=board)
    lines = _Lines(quiet)

    def start() -> Stream:
        stream.start()  # which may begin with a long history
        return stream

    try:
        if _unless_stopped(job, stop, start):
            _watch(stream, until, lines, stop)
        if until is not None and not stop.asked and not _reached(stream.progress, until):
            stream.start(until=until, drain=True)  # all that was there is read, and time goes on to its end
            _watch(stream, None, lines, stop)
        lines.note(_restart(stream))
    finally:
        stream.close()
        lines.end()
    progress = stream.progress
    for note in progress.notes:
        click.echo(f"{job.pipeline.checkpoint}: {note}", err=True)
    if progress.late and not job.pipeline.late:
        click.echo(f"{_counted(progress.late, 'fact')} came too late; [sinks.late] keeps such facts", err=True)
    if not quiet:
        click.echo(_line(progress), err=True)
    if stop.asked:
        click.echo(f"stopped; the next run goes on from {job.pipeline.checkpoint}", err=True)
        return 128 + stop.signal
    return 0


def _watch(stream: Stream, until: Time | None, lines: _Lines, stop: Stopping) -> None:
    """Until the query ends, time has come to `until`, or a stop is asked for and the batch under way is done."""
    deadline, batch = None, -1
    while stream.running:
        if deadline is None:
            select.select([stop.wake], [], [], _LOOK)
        else:
            stream.wait(_LOOK)
        lines.note(_restart(stream))
        lines.show(_line(stream.progress))
        if stop.asked and deadline is None:
            deadline, batch = monotonic() + _PATIENCE, stream.progress.batch
        done = deadline is not None and (stream.progress.batch > batch or stream.idle or monotonic() > deadline)
        if done or (until is not None and _reached(stream.progress, until)):
            stream.stop()
            return


def _reached(progress: Progress, until: Time) -> bool:
    return progress.at is not None and progress.at >= until


class _Lines:
    """A line about the run, which replaces itself on a terminal, and comes now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._shown, self._at = "", monotonic()
        self._noted: set[str] = set()

    def note(self, line: str) -> None:
        """A line that stays, and is said once."""
        if self._quiet or not line or line in self._noted:
            return
        self._noted.add(line)
        self.end()
        click.echo(line, err=True)

    def show(self, line: str) -> None:
        if self._quiet or line == self._shown:
            return
        if self._terminal:
            click.echo(f"\r{line.ljust(len(self._shown))}", nl=False, err=True)
        elif monotonic() - self._at >= _LINE:
            click.echo(line, err=True)
            self._at = monotonic()
        else:
            return
        self._shown = line

    def end(self) -> None:
        if self._terminal and self._shown and not self._quiet:
            click.echo("\r" + " " * len(self._shown) + "\r", nl=False, err=True)


def _restart(stream: Stream) -> str:
    """What it took to go on from a checkpoint, once that is known."""
    progress = stream.progress
    if not progress.restored:
        return ""
    engines, size, seconds = (progress.restored[key] for key in ("buckets", "bytes", "seconds"))
    return (
        f"went on from {stream.ready.pipeline.checkpoint}: {size / 1e6:,.1f} MB of state back in "
        f"{_counted(engines, 'bucket')}, {seconds:.1f} s for the slowest; first batch {progress.first_seconds:.1f} s "
        "after the start"
    )


def _line(progress: Progress) -> str:
    if progress.batch < 0:
        return "starting"
    parts = [
        f"batch {progress.batch}",
        f"{_counted(progress.facts, 'fact')} in",
        _counted(progress.answers, "answer"),
        f"{progress.silenced:,} silenced" if progress.silenced else "",
        f"{progress.late:,} late" if progress.late else "",
        f"{progress.aside:,} set aside" if progress.aside else "",
        f"{progress.held:,} held",
        f"answered up to {progress.watermark}" if progress.watermark else "",
    ]
    return ", ".join(part for part in parts if part)


def _set_aside(progress: Progress) -> str:
    return f", {_counted(progress.aside, 'row')} set aside" if progress.aside else ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
