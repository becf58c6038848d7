"""`tidelog window`: compute how much history a query needs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from tidelog.cli.options import UNDECIDED, json_option, rules_argument, strict_option, timeline_option
from tidelog.cli.signals import interruptible
from tidelog.cli.warning_output import show_warnings

if TYPE_CHECKING:
    from tidelog.language.program import Program
    from tidelog.timeline.interval import TimelineName
    from tidelog.windows.forward_query import ForwardRule
    from tidelog.windows.loss_search import ProgressCallback, SearchProgress
    from tidelog.windows.retention_search import RetentionReport
    from tidelog.windows.validity import WindowCheck, WindowReport
    from tidelog.windows.witness import Witness


class SearchLimits(TypedDict):
    """Options that say over which streams a search goes, and for how long."""

    objects: str | None
    timeline: TimelineName | None
    timeout: float | None


@click.command(short_help="Compute how much history a query needs.")
@rules_argument
@click.option("--query", metavar="Q", required=True, help="The predicate whose facts are the answers.")
@click.option("--objects", metavar="A,B,...", help="All objects that input facts mention; finds the smallest window.")
@click.option("--check", "asked", metavar="W", type=click.IntRange(min=0), help="Say whether the window W is valid.")
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop after S seconds and print what is proved so far.",
)
@click.option("--witness", "file", metavar="FILE", help="Write the stream that loses an answer to FILE.")
@timeline_option
@strict_option
@json_option
def window(
    rules: str,
    query: str,
    asked: int | None,
    file: str | None,
    strict: bool,
    as_json: bool,
    **limits: Unpack[SearchLimits],
) -> int:
    """Compute how many time points back a reasoner has to remember so that it loses no answer to Q: the radius, which
    is enough for any stream; the smallest window that follows from the rules alone (uniform); and, over known objects,
    the smallest possible window (exact), with a stream on which a smaller one loses an answer.

    These are for temporal Datalog (.tdl). For DatalogMTL (.dmtl), print for how long each predicate has to be kept,
    with a stream on which a little less loses an answer.

    With --check: exit code 0 for a valid window, 1 for one that loses answers, 3 if that is not known. Without
    --objects it is known for all queries that are not recursive and do not compare objects by order.

    \b
    Example:
      echo 'P(T) :- A(T).  P(T) :- A(T-1), A(T).  Q(T+2) :- P(T).' > rules.tdl
      tidelog window rules.tdl --query Q
      tidelog window rules.tdl --query Q --objects a,b
    """
    from tidelog.analysis.program_warnings import find_program_warnings
    from tidelog.language.program import Program
    from tidelog.windows.validity import window as analyse

    program = Program.load(rules)
    show_warnings(find_program_warnings(program), strict)
    if program.temporal is None:
        if asked is not None or file is not None:
            raise click.UsageError(
                "--check and --witness are for temporal Datalog (.tdl); without them, `window` prints how long to keep "
                "each predicate of these rules"
            )
        return _print_retention(program, query, limits, as_json)
    if limits["timeline"] == "rational":
        raise click.UsageError("temporal Datalog (.tdl) has the integer timeline")
    timeout = limits["timeout"]
    with show_search_progress(timeout) as progress, interruptible():
        report = analyse(program, query, limits["objects"], check=asked, timeout=timeout, progress=progress)
    witness = report.check.witness if report.check else report.witness
    if file is not None and witness is not None:
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in _format_witness(witness))
    click.echo(json.dumps(report.to_json(), ensure_ascii=False) if as_json else "\n".join(_format_report(report)))
    if report.check is None or report.check.valid:
        return 0
    return UNDECIDED if report.check.valid is None else 1


def _print_retention(program: Program, query: str, limits: SearchLimits, as_json: bool) -> int:
    from tidelog.windows.retention_search import retention

    with show_search_progress(limits["timeout"]) as progress, interruptible():
        report = retention(program, query, **limits, progress=progress)
    click.echo(json.dumps(report.to_json(), ensure_ascii=False) if as_json else "\n".join(_format_retention(report)))
    return 0


def _format_retention(report: RetentionReport) -> Iterator[str]:
    from tidelog.language.fact_text import format_fact
    from tidelog.timeline.interval import format_time

    if not report.predicates:
        yield f"{report.query} looks back at nothing."
    for found in report.predicates:
        enough, least = format_time(found.enough), format_time(found.least)
        read = "" if found.enough == found.read else f" of the {format_time(found.read)} that rules look back,"
        if found.least == found.enough:
            yield f"{found.predicate} has to be kept for {enough},{read} {report.describe_scope(found)}."
        else:
            known = f"at least {least} is needed" if found.least else "whether less is enough is not known"
            yield f"{found.predicate} kept for {enough},{read} {report.describe_scope(found)}, is enough; {known}."
        if found.witness:
            yield f"With {format_time(found.least - report.tick)} this stream loses {format_fact(found.witness.lost)}:"
            yield from map(format_fact, found.witness.stream)
    if report.reason:
        decided = "" if report.objects else "; with --objects it is decided for known objects"
        yield f"Less is not {f'proved: {report.reason}{decided}' if report.searched else f'tried: {report.reason}'}."


def _format_report(report: WindowReport) -> Iterator[str]:
    from tidelog.language.fact_text import format_value

    widest, kept = (_format_lines(rules) for rules in (report.widest, report.kept))
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
            yield f"With a window of {low - 1} this stream {_format_effect(report.witness)}:"
            yield from _format_witness(report.witness)
    if report.check:
        yield from _format_verdict(report.check)


def _format_effect(witness: Witness) -> str:
    from tidelog.windows.witness import format_timed_fact

    return f"{'gives the wrong answer' if witness.wrong else 'loses'} {format_timed_fact(witness.lost)}"


def _format_verdict(check: WindowCheck) -> Iterator[str]:
    if check.valid:
        yield f"A window of {check.window} is valid."
    elif check.witness:
        yield f"A window of {check.window} is not valid: this stream {_format_effect(check.witness)}:"
        yield from _format_witness(check.witness)
    else:
        why = check.reason if check.reason == "the time ran out" else f"{check.reason}; name all objects with --objects"
        yield f"Whether a window of {check.window} is valid is not known: {why}."


def _format_witness(witness: Witness) -> Iterator[str]:
    """Format a witness so that `tidelog stream` can replay it: facts without a time come first, as background."""
    from tidelog.windows.witness import format_timed_fact

    return map(format_timed_fact, (*witness.background, *witness.stream))


def _format_lines(rules: Sequence[ForwardRule]) -> str:
    """Format the line numbers of rules, as `line 3`, `lines 3 and 9`."""
    lines = list(dict.fromkeys(str(rule.source.place.line) for rule in rules if rule.source and rule.source.place))
    if len(lines) < 2:
        return "".join(f"line {line}" for line in lines)
    return f"lines {', '.join(lines[:-1])} and {lines[-1]}"


@contextmanager
def show_search_progress(timeout: float | None) -> Iterator[ProgressCallback]:
    """Show the progress of a search on a terminal, and warn before one that may not end."""
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

        def show(progress: SearchProgress) -> None:
            nonlocal warned
            if not warned and not progress.practical:
                warned = True
                click.echo(_format_warning(progress, timeout), err=True)
            words = f"window {progress.window}: no loss within {progress.steps} steps, {progress.cubes} states excluded"
            bar.update(task, description=words, completed=bar.tasks[0].elapsed or 0)

        yield show


def _format_warning(progress: SearchProgress, timeout: float | None) -> str:
    size = f"states of {progress.bits} bits" if progress.bits else f"up to {progress.instances} instances of rules"
    ends = f"it ends after {timeout:g} s" if timeout else "--timeout S gives what is proved by then"
    return f"tidelog: searching {size} may take very long; {ends}, and fewer --objects are quicker"
