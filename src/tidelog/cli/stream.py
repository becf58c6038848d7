"""`tidelog stream`: answer a standing query over a stream of facts."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidelog.cli.bad_rows import open_bad_rows
from tidelog.cli.live_page import serve_live_page
from tidelog.cli.metrics_options import serve_figures
from tidelog.cli.schema_option import current_schema
from tidelog.cli.stream_options import (
    AlertArguments,
    DisplayArguments,
    QueryArguments,
    RunArguments,
    StreamCommand,
    StreamFiles,
    check_files,
    require_known_predicates,
    stream_options,
)
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import INF

if TYPE_CHECKING:
    from tidelog.cli.stream_session import StreamSession
    from tidelog.cli.stream_state import QueryOptions
    from tidelog.language.program import Program
    from tidelog.metrics.stream_observer import MetricsObserver
    from tidelog.page.live_observer import BoardObserver
    from tidelog.page.report_data import Heading
    from tidelog.page.stream_report import StreamReport
    from tidelog.windows.closed_domain import ClosedDomain

#: Seconds that a live pipe may be behind the clock.
_LIVE_PIPE = 86_400.0


@click.command(cls=StreamCommand, short_help="Answer a standing query over a stream of facts.")
@stream_options
def stream(
    files: StreamFiles, query: QueryArguments, run: RunArguments, alerts: AlertArguments, display: DisplayArguments
) -> int:
    """Read a stream of facts and print the facts of Q as they become certain, in the order of time.

    An answer is printed once its interval has ended. Time stops at the last time in the input (or at --until), where
    open intervals are printed with a closed end. Facts without a time before the first fact with one are background.

    \b
    Example:
      echo 'Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).' > rules.dmtl
      printf 'Node(a)\\nBeat(a)@0\\nBeat(a)@3\\nBeat(a)@12\\n' > beats.facts
      tidelog stream rules.dmtl --query Down --input beats.facts
      tidelog stream rules.dmtl --query Down --input - --at every:2 < beats.facts
      tidelog stream rules.dmtl --query Down --input beats.facts --changes
    """
    from tidelog.analysis.program_warnings import find_program_warnings
    from tidelog.cli.signals import stop_on_signal
    from tidelog.data.schema import Schema
    from tidelog.errors import TidelogError
    from tidelog.language.program import Program

    check_files(files, run.continues, query.at)
    if run.heartbeat is not None and not run.follow:
        raise click.UsageError("--heartbeat needs --follow: an input that is not followed has a last time")
    _check_output_file(files, display.output.file)
    program = Program.load(files.rules)
    if query.objects is None and query.window is None:
        program.require_times()
    show_warnings(find_program_warnings(program), run.strict)
    require_known_predicates(query.delay, program)
    options = _build_query_options(program, query, alerts)
    schema = current_schema(files.rules)
    domain = _choose_window(program, query, run.strict)
    # These load the engine: a mistake in an option should be reported before.
    from tidelog.cli.stream_output import StreamOutput
    from tidelog.cli.stream_session import StreamSession, run_stream
    from tidelog.streaming.kafka_input import is_topic, read_settings
    from tidelog.streaming.stream_inputs import Following, StreamInputs

    with ExitStack() as stack:
        output = StreamOutput(display.output, display.iso, program.predicates.get(query.query, 0))
        output.times = program.time_arguments.get(query.query, ())
        output.schema, output.names = schema, schema.column_names(query.query, output.arity) if schema else None
        if alerts.notify or alerts.commands:
            from tidelog.cli.alert_delivery import deliver_alerts

            output.delivery = stack.enter_context(deliver_alerts(alerts.notify, alerts.commands))
        session = StreamSession(domain.program if domain else program, options, run.step, run.until, output, domain)
        session.strict = run.strict
        session.begin(files.background, files.state, run.changed, schema)
        if session.options.corrections is not None:
            schema = replace(schema or Schema(), takes_changes=True)
            output.corrections = True
        output.changes = session.options.alerts is not None and bool(session.options.alerts.changes)
        output.open(session.resumed)
        mode = "ab" if session.resumed else "wb"
        output.late = stack.enter_context(open(files.late, mode)) if files.late else None
        output.stats = stack.enter_context(open(files.stats, mode)) if files.stats else None
        stack.callback(output.close)  # before the files above are closed
        stop = stack.enter_context(
            stop_on_signal() if files.state or run.follow or any(map(is_topic, files.sources)) else nullcontext()
        )
        _add_observers(session, stack, files, display, run.follow)
        try:
            kafka = read_settings(run.kafka_config) if run.kafka_config else {}
            following = Following(session.positions, run.follow, run.heartbeat, kafka)
            bad_rows = open_bad_rows(session.resumed)
            inputs = StreamInputs(files.sources, session.read_times, stop, session.held, bad_rows, following, schema)
            stack.callback(inputs.close)
            return run_stream(session, inputs, files.state, run.continues, stop)
        except TidelogError:
            output.flush()  # answers come before the error
            raise


def _check_output_file(files: StreamFiles, output: str | None) -> None:
    """Refuse an output file that is also used for something else."""
    for option, file in (*files.inputs, *files.outputs):
        if output and Path(file).resolve() == Path(output).resolve():
            raise click.UsageError(f"--output {output}: {option} uses this file too, and it would be overwritten")


def _build_query_options(program: Program, query: QueryArguments, alerts: AlertArguments) -> QueryOptions:
    from tidelog.cli.stream_state import QueryOptions
    from tidelog.streaming.alerts import parse_alert_options
    from tidelog.streaming.output_time_text import find_times_file, read_times_file
    from tidelog.streaming.output_times import parse_corrections, parse_delays

    alert_options = parse_alert_options(
        changes=alerts.changes,
        dedupe=alerts.dedupe,
        cooldown=alerts.cooldown,
        per=alerts.per,
        arity=program.predicates.get(query.query),
        points=query.at is not None,
    )
    parse_corrections(query.corrections, parse_delays(query.delay), query.memory)
    path = find_times_file(query.at)
    times = None if path is None else read_times_file(path)
    kept = query.timeline, query.memory, query.at
    return QueryOptions(query.query, *kept, query.delay, alert_options, query.corrections, times)


def _choose_window(program: Program, query: QueryArguments, strict: bool) -> ClosedDomain | None:
    """Take the window that the user chooses, or find the smallest one for a stream that mentions no other objects."""
    if query.objects is None and query.window is None:
        return None
    from tidelog.cli.window import show_search_progress
    from tidelog.windows.closed_domain import PROOF_SECONDS, assume_objects, assume_window

    with show_search_progress(PROOF_SECONDS) as progress:
        if query.window is None:
            assert query.objects is not None
            return assume_objects(program, query.query, query.objects, progress)
        domain, warning = assume_window(program, query.query, query.window, query.objects, progress)
    show_warnings([warning] if warning else [], strict)
    return domain


def _find_largest_lag(files: StreamFiles, follow: bool) -> float:
    """Return how many seconds a stream may be behind the clock; one that is further behind is a replay.

    Files that are not followed are always a replay. What a pipe brings may be either.
    """
    from tidelog.data.data_files import strip_predicate
    from tidelog.streaming.kafka_input import is_topic
    from tidelog.streaming.stream_reader import is_live

    if follow or any(map(is_topic, files.sources)):
        return INF
    return _LIVE_PIPE if any(is_live(strip_predicate(source)) for source in files.sources) else -INF


def _add_observers(
    session: StreamSession, stack: ExitStack, files: StreamFiles, display: DisplayArguments, follow: bool
) -> None:
    """Add the report that is written at the end, and the page and metrics of the running stream, if asked for."""
    options = session.options
    title = f"{Path(files.rules).name}: {options.query}"
    if files.report:
        from tidelog.page.report_data import Heading
        from tidelog.page.stream_report import StreamReport

        points, whole = options.at is not None, not session.resumed
        report = StreamReport(session.program, options.query, options.timeline, points=points, whole=whole)
        session.observers.append(report)
        stack.callback(_write_report, report, Heading(title), files, session)
    board = stack.enter_context(serve_live_page(display.ui, display.ui_host, title, _find_largest_lag(files, follow)))
    if board is not None:
        from tidelog.page.live_observer import BoardObserver

        observer = BoardObserver(board, session.output.iso, _count_bad_rows)
        session.observers.append(observer)
        stack.callback(_update_board, session, observer)
    figures = stack.enter_context(serve_figures(display.metrics, display.otlp))
    if figures is not None:
        from tidelog.metrics.stream_observer import MetricsObserver

        watcher = MetricsObserver(figures, options.query, _count_bad_rows)
        session.observers.append(watcher)
        stack.callback(_update_board, session, watcher)


def _count_bad_rows() -> int:
    bad_rows = open_bad_rows()
    return bad_rows.count if bad_rows else 0


def _update_board(session: StreamSession, observer: BoardObserver | MetricsObserver) -> None:
    """Show the final state of the reasoner on the page or in the metrics."""
    if session.reasoner is not None:
        observer.report_now(session.reasoner)


def _write_report(report: StreamReport, heading: Heading, files: StreamFiles, session: StreamSession) -> None:
    """Write the report, also for a stream that an error or a signal ended early: it covers the stream up to then."""
    from tidelog.cli.report import format_explain_command
    from tidelog.page.html_document import render_page
    from tidelog.page.report_data import PROOFS

    assert files.report is not None
    read = [*files.background, *files.sources]
    command = format_explain_command(files.rules, read, session.options.timeline)
    schema = session.output.schema
    columns = schema.describe_columns(session.program.predicates) if schema else ""
    about = (("Rules", files.rules), ("Input", ", ".join(read)), *((("Columns", columns),) if columns else ()))
    page = render_page(report.build_report(replace(heading, about=about, command=command), PROOFS, schema))
    Path(files.report).write_text(page, encoding="utf-8")
