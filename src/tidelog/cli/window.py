"""`tidelog window`: how much history a query needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import UNDECIDED, killable, rules_argument

if TYPE_CHECKING:
    from tidelog.windows.query import PastRule
    from tidelog.windows.validity import Check, Progress, Report, WindowReport
    from tidelog.windows.witness import Witness


@click.command(short_help="How much history a query over temporal Datalog needs.")
@rules_argument
@click.option("--query", metavar="Q", required=True, help="The predicate whose facts are the answers.")
@click.option("--objects", metavar="A,B,...", help="All objects that input facts mention; finds the least window.")
@click.option("--check", "asked", metavar="W", type=click.IntRange(min=0), help="Say whether the window W is valid.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="Seconds, after which what is proved so far is the answer.",
)
@click.option("--witness", "file", metavar="FILE", help="Write the stream that loses an answer to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def window(
    rules: str,
    query: str,
    objects: str | None,
    asked: int | None,
    timeout: float | None,
    file: str | None,
    as_json: bool,
) -> int:
    """How many time points back a reasoner has to remember so that it loses no answer to Q: the radius, which any
    stream can do with; the least window that follows from the rules alone (uniform); and, over known objects, the least
    window at all (exact), with a stream on which one less loses an answer. RULES are temporal Datalog (.tdl).

    With --check: exit code 0 for a valid window, 1 for one that loses answers, 3 if that is not known.

    \b
    Example:
      echo 'P(T) :- A(T).  P(T) :- A(T-1), A(T).  Q(T+2) :- P(T).' > rules.tdl
      tidelog window rules.tdl --query Q
      tidelog window rules.tdl --query Q --objects a,b
    """
    from tidelog.language.program import Program
    from tidelog.windows.validity import window as analyse

    program = Program.load(rules)
    with progress_bar(timeout) as progress, killable():
        report = analyse(program, query, objects, check=asked, timeout=timeout, progress=progress)
    shown = report.check.witness if report.check else report.witness
    if file is not None and shown is not None:
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in _facts(shown))
    click.echo(json.dumps(report.to_json(), ensure_ascii=False) if as_json else "\n".join(_lines(report)))
    if report.check is None or report.check.valid:
        return 0
    return UNDECIDED if report.check.valid is None else 1


def _lines(report: WindowReport) -> Iterator[str]:
    from tidelog.language.facts import format_value
    from tidelog.windows.witness import format_timed

    widest, kept = (_named(rules) for rules in (report.widest, report.kept))
    yield f"radius   {report.radius}" + (f"  because of {widest}" if widest else "")
    give = "give" if kept.startswith("lines") else "gives"
    yield f"uniform  {report.uniform}" + (f"  since no rules of less radius give what {kept} {give}" if kept else "")
    if report.exact is not None and report.objects is not None:
        over = "over " + ", ".join(map(format_value, report.objects))
        if isinstance(report.exact, tuple):
            low, high = report.exact
            yield f"exact    {low} to {high}  {over}; the time ran out before more was proved"
        else:
            low = report.exact
            yield f"exact    {low}  {over}"
        if report.witness and not report.check:
            yield f"With a window of {low - 1} this stream loses {format_timed(report.witness.lost)}:"
            yield from _facts(report.witness)
    if report.check:
        yield from _verdict(report.check, report.objects is not None)


def _verdict(check: Check, searched: bool) -> Iterator[str]:
    from tidelog.windows.witness import format_timed

    if check.valid:
        yield f"A window of {check.window} is valid."
    elif check.witness:
        yield f"A window of {check.window} is not valid: this stream loses {format_timed(check.witness.lost)}:"
        yield from _facts(check.witness)
    else:
        why = "the time ran out" if searched else "that depends on the objects; name all of them with --objects"
        yield f"Whether a window of {check.window} is valid is not known: {why}."


def _facts(witness: Witness) -> Iterator[str]:
    """What `tidelog stream` can replay: facts without a time first, which makes them background."""
    from tidelog.windows.witness import format_timed

    return map(format_timed, (*witness.background, *witness.stream))


def _named(rules: Sequence[PastRule]) -> str:
    """The lines on which rules stand, as `line 3`, `lines 3 and 9`."""
    lines = list(dict.fromkeys(str(rule.source.place.line) for rule in rules if rule.source and rule.source.place))
    if len(lines) < 2:
        return "".join(f"line {line}" for line in lines)
    return f"lines {', '.join(lines[:-1])} and {lines[-1]}"


@contextmanager
def progress_bar(timeout: float | None) -> Iterator[Report]:
    """Shows how far the search is on a terminal, and says before it begins where it may not end."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    warned = False
    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("", total=timeout)

        def show(progress: Progress) -> None:
            nonlocal warned
            if not warned and not progress.practical:
                warned = True
                click.echo(_warning(progress, timeout), err=True)
            words = f"window {progress.window}: no loss within {progress.steps} steps, {progress.cubes} states excluded"
            bar.update(task, description=words, completed=bar.tasks[0].elapsed or 0)

        yield show


def _warning(progress: Progress, timeout: float | None) -> str:
    size = f"states of {progress.bits} bits" if progress.bits else f"up to {progress.instances} instances of rules"
    ends = f"it ends after {timeout:g} s" if timeout else "--timeout S gives what is proved by then"
    return f"tidelog: searching {size} may take very long; {ends}, and fewer --objects are quicker"
