"""`tidelog hypothesise`: what is certain and what is still possible while facts come late."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

import click

from tidelog.cli.options import rules_argument, timeline_option

if TYPE_CHECKING:
    from tidelog.hypothetical.compiled import GroundFact
    from tidelog.hypothetical.online import Hypotheses, Rejected
    from tidelog.language.syntax import Fact

_REASONS = {
    "late": "later than the delay allows",
    "future": "before their own time",
    "backwards": "with an arrival that goes back in time",
    "derived": "of predicates that rules derive",
}


@click.command(short_help="What may still become true while facts are late (also spelt hypothesize).")
@rules_argument
@click.option("--query", metavar="ATOM", required=True, help="What is asked, with the time last, like 'Malf(X,T)'.")
@click.option("--input", "source", metavar="FILE", required=True, help="Arrivals, one JSON object a line; - is live.")
@click.option(
    "--delay",
    metavar="D",
    multiple=True,
    help="How late facts may come: 5, Temp=5 for a predicate, 'Temp(wt4,_)=5' for some facts. Default: 0.",
)
@click.option("--until", metavar="TAU", type=click.IntRange(min=0), help="The last time point. Default: last arrival.")
@click.option("--depth", metavar="N", type=click.IntRange(min=1), help="With recursion: proofs at most N rules deep.")
@click.option(
    "--horizon", metavar="H", type=click.IntRange(min=0), help="With recursion: facts at most H away from the answer."
)
@click.option("--background", metavar="FILE", multiple=True, help="Facts that are there before the stream begins.")
@click.option(
    "--probability",
    metavar="P",
    multiple=True,
    help="How likely facts come true: 0.5, Temp=0.9, 'Temp(wt4,_)=0.2'. May be repeated; default 0.5.",
)
@click.option(
    "--chances",
    metavar="P=C",
    multiple=True,
    help="How likely delays of 0, 1, 2, ... are: Temp=0.7:0.2:0.05. Default: as seen in the stream so far.",
)
@click.option(
    "--min-confidence", metavar="C", type=click.FloatRange(0, 1), help="Discard what is less likely than this."
)
@click.option("--max-open", metavar="N", type=click.IntRange(min=0), help="Keep only the N most likely.")
@click.option("--late", metavar="FILE", help="Write the arrivals that were not taken to FILE.")
@timeline_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object for every time point.")
def hypothesise(
    rules: str,
    query: str,
    source: str,
    delay: tuple[str, ...],
    until: int | None,
    depth: int | None,
    horizon: int | None,
    background: tuple[str, ...],
    probability: tuple[str, ...],
    chances: tuple[str, ...],
    min_confidence: float | None,
    max_open: int | None,
    late: str | None,
    timeline: str | None,
    as_json: bool,
) -> int:
    """For every time point: the answers that become certain, and those that are still possible, with the facts that
    speak for them, the facts that they wait for, and the time by which they are decided.

    An arrival is {"arrival": 0, "fact": "Temp(wt2,high,0)"}; a fact of time t may come until t plus its delay.

    \b
    Example:
      echo 'Alarm(X, T) :- Hot(X, T), Hot(X, T+1).' > alarm.tdl
      echo '{"arrival": 0, "fact": "Hot(a,0)"}' > hot.jsonl
      tidelog hypothesise alarm.tdl --query 'Alarm(X,T)' --input hot.jsonl --delay Hot=1
    """
    from tidelog.hypothetical.online import Hypotheses, moments
    from tidelog.language.program import Program

    if [rules, source, *background].count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    program = Program.load(rules)
    with ExitStack() as files:
        rejected = files.enter_context(open(late, "w", encoding="utf-8")) if late else None
        session = Hypotheses(
            program,
            query,
            delay=delay,
            depth=depth,
            horizon=horizon,
            background=_facts(background, program.temporal.temporal if program.temporal else frozenset()),
            timeline=timeline,
            probability=probability or None,
            chances=chances or None,
            min_confidence=min_confidence,
            max_open=max_open,
            on_rejected=(lambda found: _write(rejected, found)) if rejected else None,
        )
        show = session.query
        arrivals = files.enter_context(opened(source))
        try:
            for moment in moments(
                session, arrivals_of(session, arrivals, "<stdin>" if source == "-" else source), until
            ):
                click.echo(moment.to_json() if as_json else moment.to_text(show), nl=as_json)
        finally:
            sys.stdout.flush()
            _report(session, late)
    return 0


def _facts(paths: tuple[str, ...], temporal: frozenset[tuple[str, int]]) -> Iterator[Fact]:
    if paths:
        from tidelog.data.dataset import Dataset

        yield from Dataset.load(*paths).timed(temporal)


def opened(path: str) -> AbstractContextManager[BinaryIO]:
    """A file of arrivals, unpacked, or standard input."""
    from tidelog.errors import TidelogError
    from tidelog.language.opening import unreadable

    if path == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return cast(BinaryIO, gzip.open(path)) if path.lower().endswith(".gz") else Path(path).open("rb")
    except OSError as error:
        raise TidelogError(unreadable(path, error)) from None


def arrivals_of(session: Hypotheses, lines: BinaryIO, source: str) -> Iterator[tuple[int, GroundFact]]:
    """Lines of JSON as arrivals."""
    from tidelog.errors import Diagnostic, Place, TidelogError

    number = 0
    try:
        for number, line in enumerate(lines, 1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            if text:
                yield session.read_arrival(text, source, number)
    except UnicodeDecodeError:
        place = Place(source, number, 1)
        raise TidelogError(Diagnostic("TL010", "this file is not UTF-8 text", place, help="save it as UTF-8")) from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise TidelogError(Diagnostic("TL010", f"cannot unpack {source}: {error}")) from None


def _write(file: IO[str], found: Rejected) -> None:
    file.write(json.dumps({"arrival": found.arrival, "fact": found.text, "why": found.why}, ensure_ascii=False) + "\n")


def _report(session: Hypotheses, late: str | None) -> None:
    """Say what was not taken and what was discarded."""
    if session.rejected:
        total = sum(session.rejected.values())
        found = [(session.rejected[why], words) for why, words in _REASONS.items() if why in session.rejected]
        parts = ", ".join(f"{count:,} {words}" for count, words in found)
        where = f"see {late}" if late else "--late FILE keeps such facts"
        click.echo(f"{total:,} fact{'' if total == 1 else 's'} not taken: {parts}; {where}", err=True)
    if session.discarded:
        one = session.discarded == 1
        said = "1 possible answer discarded; it" if one else f"{session.discarded:,} possible answers discarded; some"
        click.echo(f"{said} might have come true", err=True)
