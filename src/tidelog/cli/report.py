"""`tidelog report`: a page with timelines and proofs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import UNDECIDED, data_argument, killable, load, rules_argument, time_range, timeline_option

if TYPE_CHECKING:
    from tidelog.timeline.interval import Time


@click.command(short_help="Write a page with timelines and proofs.")
@rules_argument
@data_argument
@click.option("-o", "--output", metavar="FILE", default="report.html", help="Where to. Default: report.html.")
@click.option("--query", "queries", metavar="Q", multiple=True, help="Show only this predicate; may be repeated.")
@click.option(
    "--between",
    metavar="LO,HI",
    callback=time_range,
    help="Only what holds from LO to HI, both included; -inf and inf too.",
)
@click.option("--title", metavar="TEXT", help="What stands above the page. Default: the names of rules and data.")
@timeline_option
def report(
    rules: str,
    data: tuple[str, ...],
    output: str,
    queries: tuple[str, ...],
    between: tuple[Time, Time] | None,
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
    from tidelog.page.document import page
    from tidelog.page.report import Heading, holding
    from tidelog.page.report import report as report_of
    from tidelog.reasoning import Undecided

    program, dataset = load(rules, data)
    try:
        with killable():
            found = holding(program, dataset, query=queries or None, between=between, timeline=timeline)
    except Undecided as problem:
        click.echo(str(problem), err=True)
        return UNDECIDED
    names = " + ".join(Path(file).name for file in data)
    command = " ".join(["tidelog explain", shlex.quote(rules), *map(shlex.quote, data)])
    about = (("Rules", rules), ("Data", ", ".join(data)))
    heading = Heading(title or f"{Path(rules).name}: {names}", about, command)
    text = page(report_of(program, found, heading))
    Path(output).write_text(text, encoding="utf-8")
    for note in found.notes:
        click.echo(note, err=True)
    click.echo(f"{output}: {len(found.timeline.rows):,} intervals of {len(found.timeline.atoms):,} atoms")
    return 0
