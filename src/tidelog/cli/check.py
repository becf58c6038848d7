"""`tidelog check`: parse and report."""

from __future__ import annotations

import json

import click

from tidelog.cli.options import rules_argument, timeline_option


@click.command(short_help="Parse rules and report what kind of program they are.")
@rules_argument
@click.option("--query", metavar="Q", help="Report only on what the predicate Q needs.")
@timeline_option
@click.option("--plan", is_flag=True, help="Print how the rules are joined instead, part by part.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(rules: str, query: str | None, timeline: str | None, plan: bool, as_json: bool) -> None:
    """Parse RULES and report: the fragments that they belong to, recursion, strata, how far back each predicate is
    looked at (retention), how far ahead (look-ahead), how it would be split over a cluster, and where the program
    cannot run, why.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' | tidelog check -
    """
    from tidelog.analysis.report import check as analyse
    from tidelog.language.program import Program

    if plan and as_json:
        raise click.UsageError("--plan is text; leave --json out")
    if plan:
        from tidelog.plans import plans

        click.echo(plans(Program.load(rules), query, timeline=timeline))
        return
    report = analyse(Program.load(rules), query, timeline=timeline)
    click.echo(json.dumps(report.to_json(), ensure_ascii=False) if as_json else str(report))
