"""`tidelog run`: a pipeline on Spark."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, TypeVar

import click

from tidelog.cli.live_page import serve_live_page, ui_options
from tidelog.cli.metrics_options import metrics_options, serve_figures
from tidelog.cli.options import group_options, parse_time_option
from tidelog.cli.warning_output import show_warnings
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.wording import plural
from tidelog.timeline.interval import INF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelog.cli.signals import StopRequest
    from tidelog.metrics.figures import StreamFigures
    from tidelog.page.live_board import Board, LiveBoard
    from tidelog.spark.pipeline.pipeline_config import Pipeline
    from tidelog.spark.pipeline.preparation import PreparedPipeline
    from tidelog.spark.pipeline.progress import Progress
    from tidelog.spark.pipeline.stream_run import StreamRun
    from tidelog.timeline.interval import Time

_Result = TypeVar("_Result")

#: Seconds between looks at a running job, and between progress lines outside a terminal.
_LOOK = 0.5
_LINE = 10.0
#: Seconds that a stop waits for the current batch.
_PATIENCE = 30.0


@dataclass(frozen=True)
class RunOptions:
    """How to run a pipeline file: the options of `tidelog run`."""

    master: str | None = None
    #: Only describe how the work is split.
    explain: bool = False
    #: Describe how the work is split, then run.
    plan: bool = False
    until: Time | None = None
    changed_rules: bool = False
    strict: bool | None = None
    quiet: bool = False
    ui: str | None = None
    ui_host: str = ""
    remote: str | None = None
    metrics: tuple[str, int] | None = None
    otlp: str | None = None


@click.command(short_help="Run a pipeline on Spark: sources, rules, sinks.")
@click.argument("pipeline", metavar="PIPELINE.toml")
@click.option("--master", metavar="URL", help="Where Spark runs. Default: what Spark is configured for, or local[*].")
@click.option("--remote", metavar="URL", help="A server of Spark Connect, sc://host:15002; for batch pipelines.")
@click.option("--explain", is_flag=True, help="Check everything and print how the work is split, without running it.")
@click.option(
    "--until",
    metavar="T",
    callback=parse_time_option,
    help="End the stream at time T. Default: `until` of the file, or never.",
)
@click.option(
    "--changed-rules",
    is_flag=True,
    help="Allow rules other than those of the checkpoint, and keep as much state as possible.",
)
@click.option(
    "--strict/--no-strict",
    default=None,
    help="Refuse all warnings, or none. Default: `strict` of the file, or all but variables that occur once.",
)
@click.option("--quiet", is_flag=True, help="Print no progress.")
@ui_options
@metrics_options
@group_options(RunOptions, "options")
def run(pipeline: str, options: RunOptions) -> int:
    """Read facts from the sources of PIPELINE.toml, reason over them with its rules, and write answers to its sinks.

    The whole file is checked against its rules and its sources before anything starts. Ctrl-C stops after the current
    batch; the next run continues from there.

    \b
    Example:
      echo 'Alarm(X) :- Boxminus[0,1] Hot(X).' > rules.dmtl
      printf 'turbine,time\\nt1,0\\nt1,1\\n' > readings.csv
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
    return run_file(pipeline, options)


def run_file(path: str, options: RunOptions) -> int:
    """Run a pipeline file; return the exit code."""
    from tidelog.spark.job.connect import is_connect_address
    from tidelog.spark.job.java_process import explain_lost_java
    from tidelog.spark.job.session import require_pyspark, session
    from tidelog.spark.pipeline.pipeline_file import load_pipeline

    loaded = load_pipeline(path, options.strict)
    show_warnings(loaded.warnings, strict=False)
    if options.ui is not None and not loaded.streaming:
        raise click.UsageError(f'--ui shows a running stream, and {path} has mode = "batch"')
    if (options.metrics or options.otlp) and not loaded.streaming:
        raise click.UsageError(f'--metrics and --otlp are about a running stream, and {path} has mode = "batch"')
    if options.changed_rules:
        loaded = replace(loaded, changed_rules=True)
    if options.remote and options.master:
        raise click.UsageError("--remote names a server of Spark Connect, and --master another Spark: give one of them")
    master = options.remote or options.master or loaded.master
    if options.remote and not is_connect_address(master):
        raise click.UsageError(f"--remote {options.remote} is not an address like sc://host:15002")
    if is_connect_address(master):
        _require_batch(loaded)
    require_pyspark()
    _announce(options, f"starting Spark on {master or 'its configured master'} ...")
    spark = session(master, name=loaded.name, settings=loaded.settings, log=loaded.log)
    with explain_lost_java(spark, loaded.log):
        try:
            return _run_loaded(spark, loaded, options)
        finally:
            spark.stop()


def _run_loaded(spark: SparkSession, loaded: Pipeline, options: RunOptions) -> int:
    from tidelog.cli.signals import stop_on_signal
    from tidelog.spark.pipeline.preparation import prepare_pipeline

    _announce(options, f"reading {plural(len(loaded.sources), 'source')} and checking the SQL of facts ...")
    job = prepare_pipeline(spark, loaded)
    show_warnings(job.pipeline.warnings[len(loaded.warnings) :], strict=False)
    if options.explain or options.plan:
        _announce(options, "planning how the work is split ...")
        click.echo("\n".join(job.describe()))
    if options.explain:
        return 0
    if not options.quiet:
        click.echo(f"{loaded.name}: {_describe_place(spark, plural(job.buckets, 'bucket'))}", err=True)
    _announce(options, "waiting for the first batch ..." if loaded.streaming else "waiting for all answers ...")
    # Spark installs a handler of Ctrl-C with its session; ours must replace it.
    with (
        stop_on_signal() as stop,
        serve_live_page(options.ui, options.ui_host, loaded.name, _find_largest_lag(loaded)) as live,
        serve_figures(options.metrics, options.otlp) as figures,
    ):
        until = loaded.until if options.until is None else options.until
        return _run_prepared(job, until, options.quiet, stop, _join_boards(live, figures, loaded.query))


def _find_largest_lag(loaded: Pipeline) -> float:
    """Return how many seconds a job may be behind the clock; one that takes only what is there is a replay."""
    return -INF if loaded.trigger == "available-now" else INF


def _require_batch(loaded: Pipeline) -> None:
    if loaded.streaming:
        help = 'use --master, or mode = "batch"; tidelog.spark.reason takes streaming DataFrames of Spark Connect'
        message = f"{loaded.file} is a stream, which cannot run on Spark Connect"
        raise TidelogError(Diagnostic("TL814", message, help=help))


def _describe_place(spark: SparkSession, buckets: str) -> str:
    from tidelog.spark.job.connect import is_connect_session

    if is_connect_session(spark):
        return f"on a Connect server with Spark {spark.version}, {buckets}"
    address = spark.sparkContext.uiWebUrl
    page = f"Spark's UI is at {address}" if address else "Spark's UI is off"
    return f"on {spark.sparkContext.master}, {buckets}; {page}"


def _join_boards(page: LiveBoard | None, figures: StreamFigures | None, query: str) -> Board | None:
    """Return the board that a job writes to: of the page, of the metrics, or of both."""
    if figures is None:
        return page
    from tidelog.metrics.job_board import BoardGroup, MetricsBoard

    board = MetricsBoard(figures, query)
    return board if page is None else BoardGroup([page, board])


def _announce(options: RunOptions, line: str) -> None:
    """Say on standard error what is being waited for."""
    if not options.quiet:
        click.echo(line, err=True)


def _run_prepared(
    job: PreparedPipeline, until: Time | None, quiet: bool, stop: StopRequest, board: Board | None
) -> int:
    from tidelog.spark.pipeline.batch_run import run_batch

    if job.pipeline.streaming:
        return _run_stream(job, until, quiet, stop, board)
    progress = _run_unless_stopped(job, stop, lambda: run_batch(job))
    if progress is None:
        click.echo("stopped; there are no answers", err=True)
        return 128 + stop.signal
    _Lines(quiet).warn(progress)
    if not quiet:
        click.echo(f"{plural(progress.answers, 'answer')}{_format_aside(progress)}", err=True)
    return 0


def _run_unless_stopped(job: PreparedPipeline, stop: StopRequest, work: Callable[[], _Result]) -> _Result | None:
    """Run work that has no batches to stop between; return its result, or None if it was cancelled."""
    from tidelog.spark.job.connect import cancel_all

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        while not running.done():
            if stop.requested:
                cancel_all(job.spark)
                sleep(_LOOK)
            else:
                select.select([stop.wake_fd], [], [], _LOOK)
    if stop.requested and running.exception() is not None:
        return None
    return running.result()


def _run_stream(job: PreparedPipeline, until: Time | None, quiet: bool, stop: StopRequest, board: Board | None) -> int:
    from tidelog.spark.pipeline.stream_run import StreamRun

    stream = StreamRun(job, board=board)
    lines = _Lines(quiet)

    def start() -> StreamRun:
        stream.start(until=until)  # may begin with a long history
        return stream

    try:
        if _run_unless_stopped(job, stop, start):
            _watch(stream, until, lines, stop)
        if until is not None and not stop.requested:
            # All input up to then is read. Advance time to the end, where open answers are given.
            stream.start(until=until, drain=True)
            _watch(stream, None, lines, stop)
        lines.note(_format_restart(stream))
        lines.warn(stream.progress)
    finally:
        stream.close()
        lines.end()
    progress = stream.progress
    for note in progress.notes:
        click.echo(f"{job.pipeline.checkpoint}: {note}", err=True)
    if progress.late and not job.pipeline.late:
        click.echo(f"{plural(progress.late, 'fact')} arrived too late; [sinks.late] keeps such facts", err=True)
    if progress.unmatched:
        verb = "has" if progress.unmatched == 1 else "have"
        click.echo(f"{plural(progress.unmatched, 'deletion')} {verb} found no fact to delete so far", err=True)
    lines.show_last(_format_progress(progress))
    if stop.requested:
        click.echo(f"stopped; the next run continues from {job.pipeline.checkpoint}", err=True)
        return 128 + stop.signal
    return 0


def _watch(stream: StreamRun, until: Time | None, lines: _Lines, stop: StopRequest) -> None:
    """Wait until the query ends, time reaches `until`, or a stop is requested and the current batch is done."""
    deadline, batch = None, -1
    while stream.running:
        if deadline is None:
            select.select([stop.wake_fd], [], [], _LOOK)
        else:
            stream.wait(_LOOK)
        lines.note(_format_restart(stream))
        lines.warn(stream.progress)
        lines.show(_format_progress(stream.progress))
        if stop.requested and deadline is None:
            deadline, batch = monotonic() + _PATIENCE, stream.progress.batch
        done = deadline is not None and (stream.progress.batch > batch or stream.idle or monotonic() > deadline)
        if done or (until is not None and _has_reached(stream.progress, until)):
            stream.stop()
            return


def _has_reached(progress: Progress, until: Time) -> bool:
    return progress.at is not None and progress.at >= until


class _Lines:
    """A progress line that overwrites itself on a terminal, and is printed now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._shown, self._at = "", monotonic()
        self._noted: set[str] = set()
        self._warned = False

    def note(self, line: str) -> None:
        """Print a line that stays, once."""
        if self._quiet or not line or line in self._noted:
            return
        self._noted.add(line)
        self.end()
        click.echo(line, err=True)

    def warn(self, progress: Progress) -> None:
        """Show a warning about the facts, once."""
        if progress.unit_warning and not self._warned:
            self._warned = True
            self.end()
            help = 'set unit = "ms" in the source or the fact, or write ranges without units'
            show_warnings([Diagnostic("TL211", progress.unit_warning, help=help, severity="warning")], strict=False)

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

    def show_last(self, line: str) -> None:
        """Print the line at the end of a run, unless it is there already."""
        if not self._quiet and (self._terminal or line != self._shown):
            click.echo(line, err=True)

    def end(self) -> None:
        if self._terminal and self._shown and not self._quiet:
            click.echo("\r" + " " * len(self._shown) + "\r", nl=False, err=True)


def _format_restart(stream: StreamRun) -> str:
    """Describe what it took to continue from a checkpoint, once that is known."""
    progress = stream.progress
    if not progress.restored:
        return ""
    engines, size, seconds = (progress.restored[key] for key in ("buckets", "bytes", "seconds"))
    return (
        f"continued from {stream.prepared.pipeline.checkpoint}: {size / 1e6:,.1f} MB of state restored in "
        f"{plural(engines, 'bucket')}, {seconds:.1f} s for the slowest; first batch {progress.first_seconds:.1f} s "
        "after the start"
    )


def _format_progress(progress: Progress) -> str:
    if progress.batch < 0:
        return "starting"
    parts = [
        f"batch {progress.batch}",
        f"{plural(progress.facts, 'fact')} in",
        plural(progress.answers, "answer"),
        f"{progress.silenced:,} silenced" if progress.silenced else "",
        f"{progress.late:,} late" if progress.late else "",
        f"{progress.aside:,} set aside" if progress.aside else "",
        f"{progress.held:,} held",
        f"answered up to {progress.watermark}" if progress.watermark else "",
    ]
    return ", ".join(part for part in parts if part)


def _format_aside(progress: Progress) -> str:
    return f", {plural(progress.aside, 'row')} set aside" if progress.aside else ""
