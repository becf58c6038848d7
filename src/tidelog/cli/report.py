"""`tidelog report`: a page with timelines and proofs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.options import UNDECIDED, killable, rules_argument, time_range, timeline_option

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program
    from tidelog.page.awaited import Arrived
    from tidelog.page.report import Shown
    from tidelog.timeline.interval import Time


@click.command(short_help="Write a page with timelines and proofs.")
@rules_argument
@click.argument("data", metavar="DATA...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", default="report.html", help="Where to. Default: report.html.")
@click.option("--query", "queries", metavar="Q", multiple=True, help="Show only this predicate; may be repeated.")
@click.option(
    "--between",
    metavar="LO,HI",
    callback=time_range,
    help="Only what holds from LO to HI, both included; -inf and inf too.",
)
@click.option(
    "--proofs",
    "steps",
    metavar="N",
    type=click.IntRange(min=0),
    default=10_000,
    help="At most so many steps of proofs in the page. Default: 10000, some seconds of work.",
)
@click.option(
    "--hypothetical", metavar="ATOM", help="With --arrivals: show what may still become true, like 'Malf(X,T)'."
)
@click.option("--arrivals", metavar="FILE", help="Facts with when they came, as for hypothesise; they are data, too.")
@click.option("--delay", metavar="D", multiple=True, help="With --arrivals: how late facts may come: 5, Temp=5.")
@click.option("--until", metavar="TAU", type=click.IntRange(min=0), help="With --arrivals: the last time point.")
@click.option("--title", metavar="TEXT", help="What stands above the page. Default: the names of rules and data.")
@timeline_option
def report(
    rules: str,
    data: tuple[str, ...],
    output: str,
    queries: tuple[str, ...],
    between: tuple[Time, Time] | None,
    steps: int,
    hypothetical: str | None,
    arrivals: str | None,
    delay: tuple[str, ...],
    until: int | None,
    title: str | None,
    timeline: str | None,
) -> int:
    """Write a page that shows what holds, given or derived, on a timeline, with the proof of each interval. The page is
    one file that opens in any browser, and asks the network for nothing.

    \b
    Example:
      echo 'Hot(X) :- Diamondminus[0,5] High(X).' > rules.dmtl
      echo 'High(t1)@3' > data.facts
      tidelog report rules.dmtl data.facts -o report.html
    """
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program
    from tidelog.page.awaited import with_awaited
    from tidelog.page.document import page
    from tidelog.page.report import Heading, holding, proved
    from tidelog.page.report import report as report_of
    from tidelog.reasoning import Undecided

    if (hypothetical is None) != (arrivals is None):
        raise click.UsageError("--hypothetical ATOM and --arrivals FILE go together")
    if arrivals is None and (delay or until is not None):
        raise click.UsageError("--delay and --until are for --arrivals FILE")
    read = [rules, *data, *([arrivals] if arrivals else [])]
    if len(read) == 1:
        raise click.UsageError("name files with facts, or --arrivals FILE")
    if read.count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    _refuse_overwriting(output, read)
    program = Program.load(rules)
    dataset = Dataset.load(*data) if data else Dataset()
    came = None
    if arrivals is not None and hypothetical is not None:
        came = _arrived(program, hypothetical, arrivals, dataset, delay, until, timeline)
        dataset = dataset | came.data
    try:
        with killable():
            found = holding(program, dataset, query=queries or None, between=between, timeline=timeline)
            proofs, found = proved(program, dataset, found, steps, timeline)
    except Undecided as problem:
        click.echo(str(problem), err=True)
        return UNDECIDED
    awaited: list[dict[str, Any]] = []
    if came is not None:
        shown, awaited = with_awaited(found.timeline, came)
        found = replace(found, timeline=shown)
    about = (("Rules", rules), ("Data", ", ".join(read[1:])))
    names = " + ".join(Path(file).name for file in read[1:])
    command = None if arrivals else explaining(rules, data, timeline)
    heading = Heading(title or f"{Path(rules).name}: {names}", about, command)
    text = page(report_of(program, found, heading, proofs=proofs, awaited=awaited))
    Path(output).write_text(text, encoding="utf-8")
    _say(output, found, came)
    return 0


def explaining(rules: str, data: Sequence[str], timeline: str | None) -> str | None:
    """The command that explains a fact, but for the fact; none where files cannot be read again."""
    if "-" in (rules, *data):
        return None
    option = [f"--timeline {timeline}"] if timeline else []
    return " ".join(["tidelog explain", *option, *map(shlex.quote, [rules, *data])])


def _refuse_overwriting(output: str, read: list[str]) -> None:
    if Path(output).resolve() in {Path(file.partition("=")[2] or file).resolve() for file in read if file != "-"}:
        raise click.UsageError(f"-o {output}: this file is read, too, and would be overwritten")


def _arrived(
    program: Program,
    query: str,
    source: str,
    background: Dataset,
    delay: tuple[str, ...],
    until: int | None,
    timeline: str | None,
) -> Arrived:
    from tidelog.cli.hypothesise import arrivals_of, opened
    from tidelog.page.awaited import arrived

    facts = background.timed(program.temporal.temporal) if program.temporal else background
    name = "<stdin>" if source == "-" else source
    with opened(source) as lines:
        return arrived(
            program,
            query,
            lambda session: arrivals_of(session, lines, name),
            until=until,
            delay=delay,
            background=facts,
            timeline=timeline,
        )


def _say(output: str, found: Shown, came: Arrived | None) -> None:
    for note in found.notes:
        click.echo(note, err=True)
    if came and came.rejected:
        click.echo(f"{came.rejected:,} arrivals were not taken; `tidelog hypothesise --late FILE` says why", err=True)
    intervals, atoms = len(found.timeline.rows), len(found.timeline.atoms)
    click.echo(f"{output}: {_counted(intervals, 'interval')} of {_counted(atoms, 'atom')}")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
