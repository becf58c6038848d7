"""`tidelog check`: parse rules and report what kind of program they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from tidelog.cli.bad_rows import bad_rows_option, open_bad_rows
from tidelog.cli.options import (
    group_options,
    json_option,
    parse_positive_length,
    require_single_stdin,
    rules_argument,
    strict_option,
    timeline_option,
)
from tidelog.cli.schema_option import current_schema, schema_option
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.analysis.memory_bounds import StreamProfile
    from tidelog.check_report import CheckReport
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program


@dataclass(frozen=True)
class StreamArguments:
    """What the command line says about the stream that the query will run over."""

    objects: int | None
    every: Fraction | None
    step: Fraction | None
    corrections: Fraction | None
    data: tuple[str, ...]

    @property
    def is_given(self) -> bool:
        return self.objects is not None or bool(self.every or self.step or self.corrections or self.data)


@click.command(short_help="Parse rules and report what kind of program they are.")
@rules_argument
@click.option("--query", metavar="Q", help="Report only on the rules that the predicate Q needs.")
@timeline_option
@bad_rows_option
@click.option("--objects", metavar="N", type=click.IntRange(min=0), help="Stream and rules mention N constants.")
@click.option(
    "--every", metavar="G", callback=parse_positive_length, help="All times of the stream are multiples of G."
)
@click.option("--step", metavar="S", callback=parse_positive_length, help="The step of the stream. Default: G, or 1.")
@click.option(
    "--corrections", metavar="H", callback=parse_positive_length, help="Say what corrections for H keep in memory."
)
@click.option(
    "--data", metavar="FILE", multiple=True, help="Count the constants of FILE, and compute G from its times."
)
@click.option(
    "--plan", "plan", flag_value="batch", help="Print instead how a batch run joins the rules; with --data, over FILE."
)
@click.option(
    "--stream-plan", "plan", flag_value="stream", help="Print instead how a stream of --query joins the rules."
)
@click.option("--watch", is_flag=True, help="Check again whenever the file changes, until Ctrl-C.")
@strict_option
@json_option
@schema_option
@group_options(StreamArguments, "stream")
def check(
    rules: str,
    query: str | None,
    timeline: TimelineName | None,
    stream: StreamArguments,
    plan: str | None,
    watch: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Parse RULES and report: the fragments that they belong to; recursion and strata; how far back each predicate is
    needed (retention), and because of which rules; which rules follow from others; how far rules look ahead; how the
    program would be split over a cluster; and why it cannot run, if so. With --query, also report how many facts a
    stream reasoner holds at most, as a number if --objects and --every, or --data, are given.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' > rules.dmtl
      tidelog check rules.dmtl
      tidelog check rules.dmtl --query A --objects 20 --every 1
    """
    if plan and as_json:
        raise click.UsageError("--plan prints text; leave --json out")
    if plan == "stream" and query is None:
        raise click.UsageError("--stream-plan needs --query: a stream answers one query")
    if plan is None and query is None and stream.is_given:
        raise click.UsageError(
            "--objects, --every, --step, --corrections and --data need --query: they describe its stream"
        )
    require_single_stdin(rules, *stream.data)
    if watch and "-" in (rules, *stream.data):
        raise click.UsageError("--watch needs files; standard input does not change")

    from tidelog.language.program import Program
    from tidelog.windows.memory_report import describe_corrections

    def build_text() -> str:
        program = Program.load(rules)
        if plan:
            return _format_plan(program, query, timeline, stream.data if plan == "batch" else None)
        facts = _load_facts(program, stream.data) if stream.data else None
        report = _build_report(program, query, timeline, _describe_stream(program, stream, facts))
        if stream.corrections is not None:
            kept = describe_corrections(stream.corrections, facts)
            report = replace(report, keeps=(*(report.keeps or ()), kept))
        if facts is not None and not report.problems:
            from tidelog.data.input_warnings import find_warnings

            report = replace(report, warnings=find_warnings(program, facts, query and [query]))
        show_warnings(report.warnings, strict)
        return json.dumps(report.to_json(), ensure_ascii=False) if as_json else str(report)

    if watch:
        from tidelog.cli.file_watch import repeat_on_change

        repeat_on_change([rules, *stream.data], build_text)
    else:
        click.echo(build_text())


def _format_plan(
    program: Program, query: str | None, timeline: TimelineName | None, data: tuple[str, ...] | None
) -> str:
    """Format the plan of a batch run over data files or, without any, of a stream."""
    from tidelog.data.dataset import Dataset
    from tidelog.run_plans import batch_plans, stream_plans

    if data is not None:
        facts = Dataset.load(*data, schema=current_schema(program.source), bad_rows=open_bad_rows())
        return batch_plans(program, query, data=facts, timeline=timeline)
    assert query is not None
    return stream_plans(program, query, timeline=timeline)


def _build_report(
    program: Program, query: str | None, timeline: TimelineName | None, stream: StreamProfile
) -> CheckReport:
    from tidelog.check_report import check as analyse
    from tidelog.windows.memory_report import compute_retention, explain_memory

    report = analyse(program, query, timeline=timeline, stream=stream)
    if report.memory and query is not None:
        from tidelog.streaming.capacity import add_capacity

        report = replace(report, memory=add_capacity(report.memory, program, query, timeline))
    if not report.problems:
        retention = compute_retention(program, query, timeline)
        report = replace(report, keeps=explain_memory(program, query, timeline), retention=retention)
    return report


def _load_facts(program: Program, data: tuple[str, ...]) -> Dataset:
    from tidelog.compiler.prepare_facts import read_time_arguments
    from tidelog.data.dataset import Dataset

    facts = Dataset.load(*data, schema=current_schema(program.source), bad_rows=open_bad_rows())
    return read_time_arguments(program, facts)


def _describe_stream(program: Program, arguments: StreamArguments, facts: Dataset | None) -> StreamProfile:
    """Take what the options say about the stream, and compute the rest from the facts of `--data`."""
    from tidelog.analysis.memory_bounds import StreamProfile, find_program_constants

    objects, every = arguments.objects, arguments.every
    if facts is not None:
        from tidelog.data.statistics import compute_time_divisor, find_constants

        objects = len(find_constants(facts) | find_program_constants(program)) if objects is None else objects
        every = (compute_time_divisor(facts) or Fraction(1)) if every is None else every
    return StreamProfile(objects, every, arguments.step or every or Fraction(1))
