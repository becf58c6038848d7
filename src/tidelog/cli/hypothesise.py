"""`tidelog hypothesise`: print what is certain and what is still possible while facts are late."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, BinaryIO

import click

from tidelog.cli.bad_rows import bad_rows_option, open_bad_rows
from tidelog.cli.options import (
    format_option,
    group_options,
    output_option,
    require_single_stdin,
    rules_argument,
    strict_option,
    timeline_option,
)
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.data.bad_rows import BadRows
    from tidelog.hypothetical.ground_facts import GroundFact
    from tidelog.hypothetical.session import Hypotheses
    from tidelog.hypothetical.session_options import Rejected
    from tidelog.language.syntax import Fact

_REASONS = {
    "late": "later than the delay allows",
    "future": "before their own time",
    "backwards": "with an arrival that goes back in time",
    "derived": "of predicates that rules derive",
}


@dataclass(frozen=True)
class ArrivalArguments:
    """The arrivals, how late they may be, and where they end."""

    source: str | None
    delay: tuple[str, ...]
    until: int | None
    late: str | None
    strict: bool


@dataclass(frozen=True)
class SearchLimits:
    """Limits on the proofs that are considered, for rules with recursion."""

    depth: int | None
    horizon: int | None


@dataclass(frozen=True)
class ConfidenceArguments:
    """How likely facts and delays are, and which possible answers are worth keeping."""

    probability: tuple[str, ...]
    chances: tuple[str, ...]
    min_confidence: float | None
    max_open: int | None


@dataclass(frozen=True)
class DisplayArguments:
    """How answers are printed."""

    as_json: bool
    form: str | None
    file: str | None
    changes: bool
    unsupported: bool
    schemas: bool


@click.command(short_help="What may still become true while facts are late (also spelt hypothesize).")
@rules_argument
@click.option("--query", metavar="ATOM", required=True, help="The query, with the time last, like 'Malf(X,T)'.")
@click.option("--input", "source", metavar="FILE", help="Arrivals, one JSON object per line; - reads live.")
@click.option(
    "--delay",
    metavar="D",
    multiple=True,
    help="How late facts may arrive: 5, Temp=5 for a predicate, 'Temp(wt4,_)=5' for some facts. Default: 0.",
)
@click.option("--until", metavar="TAU", type=click.IntRange(min=0), help="The last time point. Default: last arrival.")
@click.option("--depth", metavar="N", type=click.IntRange(min=1), help="With recursion: proofs at most N rules deep.")
@click.option(
    "--horizon", metavar="H", type=click.IntRange(min=0), help="With recursion: facts at most H away from the answer."
)
@click.option("--background", metavar="FILE", multiple=True, help="Facts that hold before the stream begins.")
@click.option(
    "--probability",
    metavar="P",
    multiple=True,
    help="How likely facts are to come true: 0.5, Temp=0.9, 'Temp(wt4,_)=0.2'. May be repeated. Default: 0.5.",
)
@click.option(
    "--chances",
    metavar="P=C",
    multiple=True,
    help="How likely delays of 0, 1, 2, ... are: Temp=0.7:0.2:0.05. Default: as in the stream so far.",
)
@click.option("--min-confidence", metavar="C", type=click.FloatRange(0, 1), help="Discard answers less likely than C.")
@click.option("--max-open", metavar="N", type=click.IntRange(min=0), help="Keep only the N most likely open answers.")
@click.option("--late", metavar="FILE", help="Write rejected arrivals to FILE.")
@click.option("--changes", is_flag=True, help="Print what changes: answers awaited, answered or dropped.")
@click.option("--unsupported", is_flag=True, help="Also print possible answers without any evidence yet.")
@click.option("--schemas", is_flag=True, help="Print the facts that make an answer, as rules, and read no arrivals.")
@strict_option
@timeline_option
@bad_rows_option
@click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl: one JSON object per time point.")
@format_option
@output_option
@group_options(ArrivalArguments, "arrivals")
@group_options(SearchLimits, "limits")
@group_options(ConfidenceArguments, "confidence")
@group_options(DisplayArguments, "display")
def hypothesise(
    rules: str,
    query: str,
    arrivals: ArrivalArguments,
    background: tuple[str, ...],
    limits: SearchLimits,
    confidence: ConfidenceArguments,
    timeline: TimelineName | None,
    display: DisplayArguments,
) -> int:
    """Print for every time point the answers that become certain, and those that are still possible: with the facts
    that support them, the facts that they wait for, and the time by which they are decided.

    An arrival is {"arrival": 0, "fact": "Temp(wt2,high,0)"}; a fact of time t may arrive until t plus its delay.

    \b
    Example:
      echo 'Alarm(X, T) :- Hot(X, T), Hot(X, T+1).' > alarm.tdl
      echo '{"arrival": 0, "fact": "Hot(a,0)"}' > hot.jsonl
      tidelog hypothesise alarm.tdl --query 'Alarm(X,T)' --input hot.jsonl --delay Hot=1
    """
    from tidelog.analysis.program_warnings import find_program_warnings
    from tidelog.cli.arrival_warnings import ArrivalWarnings
    from tidelog.cli.fact_output import choose_output
    from tidelog.cli.moment_output import open_moment_output, write_schemas
    from tidelog.data.dataset import Dataset
    from tidelog.hypothetical.moments import changes, moments
    from tidelog.hypothetical.session import Hypotheses, query_predicate
    from tidelog.hypothetical.session_options import HypothesisOptions
    from tidelog.language.file_errors import open_input
    from tidelog.language.program import Program

    _require_options(arrivals, display)
    require_single_stdin(rules, *([arrivals.source] if arrivals.source else ()), *background)
    program = Program.load(rules).with_temporal_query(query_predicate(query))
    show_warnings(find_program_warnings(program), arrivals.strict)
    known = list(_load_background(background, program.temporal.temporal if program.temporal else frozenset()))
    checked = ArrivalWarnings(program, query_predicate(query), arrivals.strict, {fact.predicate for fact in known})
    with ExitStack() as files:
        rejected = files.enter_context(open(arrivals.late, "w", encoding="utf-8")) if arrivals.late else None
        session = Hypotheses(
            program,
            query,
            delay=arrivals.delay,
            background=Dataset.from_facts(known),
            timeline=timeline,
            options=HypothesisOptions(
                depth=limits.depth,
                horizon=limits.horizon,
                probability=confidence.probability or None,
                chances=confidence.chances or None,
                min_confidence=confidence.min_confidence,
                max_open=confidence.max_open,
                unsupported=display.unsupported,
                on_rejected=(lambda fact: _write_rejected(rejected, fact)) if rejected else None,
            ),
        )
        target = choose_output(display.form, display.as_json, display.file)
        if display.schemas or arrivals.source is None:
            write_schemas(session.query, session.schemas, target)
            return 0
        lines = files.enter_context(open_input(arrivals.source))
        name = "<stdin>" if arrivals.source == "-" else arrivals.source
        output = files.enter_context(open_moment_output(target, session.query))
        try:
            read = checked.watch(read_arrivals(session, lines, name, open_bad_rows()))
            if display.changes:
                for tau, found in changes(session, read, arrivals.until):
                    output.add_changes(tau, found)
            else:
                for moment in moments(session, read, arrivals.until):
                    output.add(moment)
        finally:
            sys.stdout.flush()
            _print_rejections(session, arrivals.late)
    checked.show()
    return 0


def _require_options(arrivals: ArrivalArguments, display: DisplayArguments) -> None:
    """Refuse options that do not fit together."""
    if arrivals.source is None and not display.schemas:
        raise click.UsageError("Missing option '--input'.")
    if display.changes and display.unsupported:
        raise click.UsageError("--changes reports answers that gain evidence: leave out --unsupported")


def _load_background(paths: tuple[str, ...], temporal: frozenset[tuple[str, int]]) -> Iterator[Fact]:
    if paths:
        from tidelog.data.dataset import Dataset

        yield from Dataset.load(*paths, bad_rows=open_bad_rows()).with_time_arguments(temporal)


def read_arrivals(
    session: Hypotheses, lines: BinaryIO, source: str, bad_rows: BadRows | None = None
) -> Iterator[tuple[int, GroundFact]]:
    """Read arrivals from lines of JSON; those that cannot be read go to `bad_rows`, if given."""
    from tidelog.data.bad_rows import BadRow
    from tidelog.errors import Diagnostic, TidelogError

    try:
        for number, line in enumerate(lines, 1):
            try:
                arrival = _read_arrival(session, line, source, number)
            except TidelogError as problem:
                if bad_rows is None:
                    raise
                text = line.decode(errors="replace").rstrip("\r\n")
                bad_rows.add(BadRow(source, number, problem.diagnostics[0].message, text))
                continue
            if arrival is not None:
                yield arrival
    except (gzip.BadGzipFile, EOFError) as error:
        raise TidelogError(Diagnostic("TL010", f"cannot unpack {source}: {error}")) from None


def _read_arrival(session: Hypotheses, line: bytes, source: str, number: int) -> tuple[int, GroundFact] | None:
    """Read one line; None if it is blank."""
    from tidelog.errors import Diagnostic, Place, TidelogError

    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
    except UnicodeDecodeError:
        place = Place(source, number, 1)
        raise TidelogError(Diagnostic("TL010", "this file is not UTF-8 text", place, help="save it as UTF-8")) from None
    return session.read_arrival(text, source, number) if text else None


def _write_rejected(file: IO[str], rejected: Rejected) -> None:
    line = {"arrival": rejected.arrival, "fact": rejected.text, "why": rejected.why}
    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _print_rejections(session: Hypotheses, late: str | None) -> None:
    """Say how many facts were rejected and how many possible answers were discarded."""
    from tidelog.language.wording import plural

    if session.rejected:
        total = sum(session.rejected.values())
        counts = [(session.rejected[why], reason) for why, reason in _REASONS.items() if why in session.rejected]
        parts = ", ".join(f"{count:,} {reason}" for count, reason in counts)
        where = f"see {late}" if late else "--late FILE keeps such facts"
        click.echo(f"{plural(total, 'fact')} not taken: {parts}; {where}", err=True)
    if session.discarded:
        some = "it" if session.discarded == 1 else "some"
        click.echo(f"{plural(session.discarded, 'possible answer')} discarded; {some} might have come true", err=True)
