"""`tidelog stream`: a standing query over a stream of facts."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import length, length_option, not_a_time, rules_argument, timeline_option
from tidelog.cli.ui import ui_options, watched

if TYPE_CHECKING:
    from tidelog.cli.session import Session
    from tidelog.language.program import Program
    from tidelog.page.stream_report import StreamReport
    from tidelog.page.watching import Watching


def _delays(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> dict[str | None, Fraction]:
    """`5s` for all predicates, `Temp=5s` for one; None stands for all others."""
    found: dict[str | None, Fraction] = {}
    for text in value:
        name, equals, rest = text.rpartition("=")
        predicate = name.strip() if equals else None
        if predicate in found or predicate == "":
            raise click.BadParameter(f"{text!r}: give one delay for all predicates, and one for each: 5s, Temp=10s")
        found[predicate] = length(rest)
    return found


def _output_times(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "input":
        return value
    kind, _, step = value.partition(":")
    if kind != "every" or not step:
        raise click.BadParameter(f"{value!r} is neither input nor every:S, like every:5 or every:10min")
    if length(step) == 0:
        raise click.BadParameter(f"{value!r}: 0 is no distance")
    return value


def _positions(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """`1,3`: arguments, counted from 1."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of arguments, counted from 1, like 1 or 1,2")
    return tuple(map(int, parts))


def _until(context: click.Context, option: click.Parameter, value: str | None) -> Fraction | None:
    from tidelog.errors import TidelogError
    from tidelog.language.times import parse_time

    if value is None:
        return None
    try:
        time, _ = parse_time(value)
    except TidelogError as problem:
        raise click.BadParameter(not_a_time(problem)) from None
    if isinstance(time, float):
        raise click.BadParameter("a stream cannot be awaited for ever: name a time")
    return time


@click.command(short_help="Answer a standing query over a stream of facts.")
@rules_argument
@click.option("--query", metavar="Q", required=True, help="The predicate whose facts are the answers.")
@click.option("--input", "source", metavar="FILE", required=True, help="The stream, in order of arrival; - is live.")
@click.option("--step", metavar="S", callback=length_option, help="Reason in steps of S. Default: at every new time.")
@click.option(
    "--at",
    metavar="input|every:S",
    callback=_output_times,
    help="Answers at the stream's own time points, or at multiples of S. Default: maximal intervals, once they ended.",
)
@click.option(
    "--memory",
    type=click.Choice(["generic", "bounded"]),
    help="How the past is kept. Default: bounded where it applies and holds less.",
)
@click.option("--background", metavar="FILE", multiple=True, help="Facts that are there before the stream begins.")
@click.option(
    "--delay",
    metavar="D",
    multiple=True,
    callback=_delays,
    help="Facts may come so late and in any order, like 5s; of one predicate: Temp=5s. May be repeated.",
)
@click.option(
    "--objects",
    metavar="A,B,...",
    help="All objects that facts mention (.tdl): remember no more than the least window that is proved for them.",
)
@click.option("--late", metavar="FILE", help="Write the facts that came too late to FILE.")
@click.option("--until", metavar="T", callback=_until, help="Time stops at T. Default: at the last time in the input.")
@click.option("--state", metavar="FILE", help="Go on from FILE if it exists, and save the state to it at the end.")
@click.option("--continues", is_flag=True, help="With --state: more will come, so print nothing that is still open.")
@click.option(
    "--changed-rules", "changed", is_flag=True, help="With --state: the rules are others now; keep what can be kept."
)
@click.option("--changes", is_flag=True, help="Print when answers start and end, each as soon as it is certain.")
@click.option(
    "--dedupe", metavar="D", callback=length_option, help="An answer that comes again within D is not printed again."
)
@click.option("--cooldown", metavar="D", callback=length_option, help="After an answer, be silent for D.")
@click.option(
    "--per", metavar="N,...", callback=_positions, help="With --cooldown: silent for all with the same Nth argument."
)
@click.option("--stats", metavar="FILE", help="Write one JSON object a step to FILE.")
@click.option("--report", metavar="FILE", help="Write a page with timelines, proofs and charts to FILE at the end.")
@ui_options
@timeline_option
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", help="Default: text.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
@click.option("--time", "times", type=click.Choice(["number", "iso"]), help="How times print. Default: as in the data.")
def stream(
    rules: str,
    query: str,
    source: str,
    step: Fraction | None,
    at: str | None,
    memory: str | None,
    background: tuple[str, ...],
    delay: dict[str | None, Fraction],
    objects: str | None,
    late: str | None,
    until: Fraction | None,
    state: str | None,
    continues: bool,
    changed: bool,
    changes: bool,
    dedupe: Fraction | None,
    cooldown: Fraction | None,
    per: tuple[int, ...] | None,
    stats: str | None,
    report: str | None,
    ui: str | None,
    ui_host: str,
    timeline: str | None,
    form: str,
    as_json: bool,
    times: str | None,
) -> int:
    """Read a stream of facts and print the facts of Q as they become certain, in the order of time.

    An answer is printed once its interval has ended. Time stops at the last time in the input (or at --until), where
    what is still open is printed with a closed end. Facts without a time before the first fact with one are background.

    \b
    Example:
      echo 'Down(X) :- Node(X), not Diamondminus[0,5] Beat(X).' > rules.dmtl
      printf 'Node(a)\\nBeat(a)@0\\nBeat(a)@3\\nBeat(a)@12\\n' > beats.facts
      tidelog stream rules.dmtl --query Down --input beats.facts
      tidelog stream rules.dmtl --query Down --input - --at every:2 < beats.facts
      tidelog stream rules.dmtl --query Down --input beats.facts --changes
    """
    from tidelog.cli.resuming import Options
    from tidelog.cli.stopping import stopping
    from tidelog.errors import TidelogError
    from tidelog.language.program import Program
    from tidelog.streaming.alerts import alerting

    if [rules, source, *background].count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    if continues and state is None:
        raise click.UsageError("--continues needs --state FILE, which keeps what is open")
    inputs = [("RULES", rules), ("--input", source), *(("--background", file) for file in background)]
    _refuse_shared(inputs, late, stats, state, report)
    for option, written in (("--state", state), ("--report", report)):
        if written:
            _refuse_unwritable(option, written)
    program = Program.load(rules)
    _refuse_unknown(delay, program)
    alerts = alerting(
        changes=changes,
        dedupe=dedupe,
        cooldown=cooldown,
        per=per,
        arity=program.predicates.get(query),
        points=at is not None,
    )
    options = Options(query, timeline, memory, at, delay, alerts)
    assumed = None
    if objects is not None:
        from tidelog.cli.window import progress_bar
        from tidelog.windows.assumed import PROOF, assuming

        with progress_bar(PROOF) as progress:
            assumed = assuming(program, query, objects, progress)
        program = assumed.program
    from tidelog.cli.output import Output
    from tidelog.cli.session import Session, run  # loads the engine, which no wrong option should wait for

    with ExitStack() as files:
        output = Output("jsonl" if as_json else form, None if times is None else times == "iso")
        session = Session(program, options, step, until, output, assumed)
        session.begin(background, state, changed)
        mode = "ab" if session.resumed else "wb"
        output.late = files.enter_context(open(late, mode)) if late else None
        output.stats = files.enter_context(open(stats, mode)) if stats else None
        stop = files.enter_context(stopping() if state else nullcontext())
        _observe(session, files, report, rules, source, background, ui, ui_host)
        try:
            return run(session, source, state, continues, stop)
        except TidelogError:
            output.flush()  # what was answered comes before what is wrong
            raise


def _observe(
    session: Session,
    files: ExitStack,
    report: str | None,
    rules: str,
    source: str,
    background: tuple[str, ...],
    ui: str | None,
    ui_host: str,
) -> None:
    """Who looks on: a report that is written at the end, and a page of the running stream."""
    o = session.options
    title = f"{Path(rules).name}: {o.query}"
    if report:
        from tidelog.page.stream_report import StreamReport

        points, whole = o.at is not None, not session.resumed
        looking = StreamReport(session.program, o.query, o.timeline, points=points, whole=whole)
        session.observers.append(looking)
        files.callback(_write_report, report, looking, title, rules, [*background, source], o.timeline)
    board = files.enter_context(watched(ui, ui_host, title))
    if board is not None:
        from tidelog.page.watching import Watching

        watching = Watching(board, session.output.iso)
        session.observers.append(watching)
        files.callback(_last_look, session, watching)


def _last_look(session: Session, watching: Watching) -> None:
    if session.reasoner is not None:
        watching.look(session.reasoner)


def _write_report(
    file: str, looking: StreamReport, title: str, rules: str, read: list[str], timeline: str | None
) -> None:
    """Also of a stream that ended early, by an error or a signal: what there is up to then."""
    from tidelog.cli.report import explaining
    from tidelog.page.document import page
    from tidelog.page.report import PROOFS, Heading

    heading = Heading(title, (("Rules", rules), ("Input", ", ".join(read))), explaining(rules, read, timeline))
    Path(file).write_text(page(looking.data(heading, PROOFS)), encoding="utf-8")


def _refuse_unknown(delay: dict[str | None, Fraction], program: Program) -> None:
    """A delay of a predicate that is misspelt would make facts late that are not."""
    from tidelog.analysis.queries import known_predicates
    from tidelog.errors import Diagnostic, TidelogError
    from tidelog.language.codes import suggest

    known = known_predicates(program)
    unknown = [name for name in delay if name is not None and name not in known]
    if unknown:
        raise TidelogError(
            Diagnostic(
                "TL302",
                f"--delay {name}={delay[name]}: no rule mentions {name}",
                help=f"did you mean {close}?" if (close := suggest(name, known)) else "name a predicate of the rules",
            )
            for name in unknown
        )


def _refuse_shared(
    read: list[tuple[str, str]], late: str | None, stats: str | None, state: str | None, report: str | None
) -> None:
    """A file that is written to is used for nothing else."""
    written = [("--late", late), ("--stats", stats), ("--state", state), ("--report", report)]
    seen = {Path(file.partition("=")[2] or file).resolve(): option for option, file in read if file != "-"}
    for option, file in written:
        if file:
            other = seen.setdefault(Path(file).resolve(), option)
            if other != option:
                raise click.UsageError(f"{option} {file}: this is the file of {other}, too, and would be overwritten")


def _refuse_unwritable(option: str, file: str) -> None:
    """Whether something can be written at the end is better known before hours of work than after them."""
    folder = Path(file).resolve().parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        reason = "there is no such folder" if not folder.is_dir() else f"cannot write there: {problem.strerror}"
        raise click.UsageError(f"{option} {file}: {reason}") from None
