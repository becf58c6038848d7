"""`tidelog check`: parse and report."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import length_option, rules_argument, timeline_option

if TYPE_CHECKING:
    from tidelog.analysis.memory import Stream
    from tidelog.analysis.report import Report
    from tidelog.language.program import Program


@click.command(short_help="Parse rules and report what kind of program they are.")
@rules_argument
@click.option("--query", metavar="Q", help="Report only on what the predicate Q needs.")
@timeline_option
@click.option(
    "--objects", metavar="N", type=click.IntRange(min=0), help="The stream and the rules mention N constants."
)
@click.option("--every", metavar="G", callback=length_option, help="All times of the stream are multiples of G.")
@click.option("--step", metavar="S", callback=length_option, help="The step of the stream. Default: G, or 1.")
@click.option("--data", metavar="FILE", multiple=True, help="Count the constants of FILE, and find G from its times.")
@click.option("--plan", is_flag=True, help="Print how the rules are joined instead, part by part.")
@click.option("--watch", is_flag=True, help="Check again whenever the file changes, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    rules: str,
    query: str | None,
    timeline: str | None,
    objects: int | None,
    every: Fraction | None,
    step: Fraction | None,
    data: tuple[str, ...],
    plan: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Parse RULES and report: the fragments that they belong to, recursion, strata, how far back each predicate is
    looked at (retention) and because of which rules, which rules follow from others, how far ahead (look-ahead), how it
    would be split over a cluster, and where the program cannot run, why. With --query, also how many facts a stream
    reasoner holds at most, as a number if --objects and --every, or --data, are given.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' > rules.dmtl
      tidelog check rules.dmtl
      tidelog check rules.dmtl --query A --objects 20 --every 1
    """
    if plan and as_json:
        raise click.UsageError("--plan is text; leave --json out")
    if query is None and (objects is not None or every or step or data):
        raise click.UsageError("--objects, --every, --step and --data are about a --query over a stream")
    if [rules, *data].count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    if watch and "-" in (rules, *data):
        raise click.UsageError("--watch looks at files; standard input does not change")

    from tidelog.language.program import Program
    from tidelog.plans import plans

    def checked() -> str:
        program = Program.load(rules)
        if plan:
            return plans(program, query, timeline=timeline)
        report = _report(program, query, timeline, _stream(program, objects, every, step, data))
        return json.dumps(report.to_json(), ensure_ascii=False) if as_json else str(report)

    if watch:
        from tidelog.cli.watching import watching

        watching([rules, *data], checked)
    else:
        click.echo(checked())


def _report(program: Program, query: str | None, timeline: str | None, stream: Stream) -> Report:
    from tidelog.analysis.report import check as analyse
    from tidelog.windows.memory import memory, retained

    report = analyse(program, query, timeline=timeline, stream=stream)
    if report.memory and query is not None:
        from tidelog.streaming.capacity import with_capacity

        report = replace(report, memory=with_capacity(report.memory, program, query, timeline))
    if not report.problems:
        kept = retained(program, query, timeline)
        report = replace(report, keeps=memory(program, query, timeline), retention=kept)
    return report


def _stream(
    program: Program, objects: int | None, every: Fraction | None, step: Fraction | None, data: tuple[str, ...]
) -> Stream:
    """What is said of the stream, and what data tell of the rest."""
    from tidelog.analysis.memory import Stream, constants

    if data:
        from tidelog.data.dataset import Dataset
        from tidelog.data.measure import constants_of, times_divisor

        found = Dataset.load(*data)
        if program.temporal:
            found = found.timed(program.temporal.temporal)
        objects = len(constants_of(found) | constants(program)) if objects is None else objects
        every = (times_divisor(found) or Fraction(1)) if every is None else every
    return Stream(objects, every, step or every or Fraction(1))
