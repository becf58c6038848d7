"""`tidelog report`: write a page with timelines and proofs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli.bad_rows import bad_rows_option, open_bad_rows
from tidelog.cli.options import (
    UNDECIDED,
    between_option,
    group_options,
    require_single_stdin,
    rules_argument,
    strict_option,
    timeline_option,
)
from tidelog.cli.program_input import find_fact_predicate
from tidelog.cli.schema_option import current_schema, schema_option
from tidelog.cli.signals import interruptible
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program
    from tidelog.page.awaited_timeline import ArrivalOutcome
    from tidelog.page.report_data import ReportTimeline
    from tidelog.timeline.interval import Time


@dataclass(frozen=True)
class ReportArguments:
    """The page: where it goes, its title, how much of the proofs it holds, and whether warnings are refused."""

    output: str
    title: str | None
    proof_steps: int
    strict: bool


@dataclass(frozen=True)
class ArrivalArguments:
    """Facts with the times of their arrival, and the query whose possible answers are shown."""

    hypothetical: str | None
    arrivals: str | None
    delay: tuple[str, ...]
    until: int | None


@click.command(short_help="Write a page with timelines and proofs.")
@rules_argument
@click.argument("data", metavar="DATA...", nargs=-1)
@click.option("-o", "--output", metavar="FILE", default="report.html", help="The file to write. Default: report.html.")
@click.option("--query", "queries", metavar="Q", multiple=True, help="Show only this predicate; may be repeated.")
@between_option
@click.option(
    "--proofs",
    "proof_steps",
    metavar="N",
    type=click.IntRange(min=0),
    default=10_000,
    help="Put at most N proof steps into the page. Default: 10000, which takes some seconds.",
)
@click.option(
    "--hypothetical", metavar="ATOM", help="With --arrivals: show what may still become true, like 'Malf(X,T)'."
)
@click.option(
    "--arrivals", metavar="FILE", help="Facts with their arrival times, as for hypothesise; they are data too."
)
@click.option("--delay", metavar="D", multiple=True, help="With --arrivals: how late facts may arrive: 5, Temp=5.")
@click.option("--until", metavar="TAU", type=click.IntRange(min=0), help="With --arrivals: the last time point.")
@click.option("--title", metavar="TEXT", help="The title of the page. Default: the names of rules and data.")
@timeline_option
@bad_rows_option
@strict_option
@schema_option
@group_options(ReportArguments, "page")
@group_options(ArrivalArguments, "arrivals")
def report(
    rules: str,
    data: tuple[str, ...],
    queries: tuple[str, ...],
    between: tuple[Time, Time] | None,
    timeline: TimelineName | None,
    page: ReportArguments,
    arrivals: ArrivalArguments,
) -> int:
    """Write a page that shows all facts that hold, given or derived, on a timeline, with the proof of each interval.
    The page is one file that opens in any browser and needs no network.

    \b
    Example:
      echo 'Hot(X) :- Diamondminus[0,5] High(X).' > rules.dmtl
      echo 'High(t1)@3' > data.facts
      tidelog report rules.dmtl data.facts -o report.html
    """
    from tidelog.data.dataset import Dataset
    from tidelog.data.input_warnings import find_warnings
    from tidelog.errors import Undecided
    from tidelog.language.program import Program
    from tidelog.page.awaited_timeline import add_awaited
    from tidelog.page.html_document import render_page
    from tidelog.page.predicate_roles import Question, find_query_predicates
    from tidelog.page.report_data import Heading, build_proofs, build_report, materialise_timeline

    inputs = _check_inputs(rules, data, page.output, arrivals)
    program = Program.load(rules)
    if arrivals.hypothetical is not None:
        program = program.with_temporal_query(find_fact_predicate(arrivals.hypothetical))
    program.require_times()
    schema = current_schema(rules)
    dataset = Dataset.load(*data, schema=schema, bad_rows=open_bad_rows()) if data else Dataset()
    outcome = _follow_arrivals(program, arrivals, dataset, timeline)
    if outcome is not None:
        dataset = dataset | outcome.data
    show_warnings(find_warnings(program, dataset, queries or None), page.strict)
    asked = (find_fact_predicate(arrivals.hypothetical),) if arrivals.hypothetical else ()
    question = Question(queries or (*asked, *find_query_predicates(program)), schema)
    try:
        with interruptible():
            facts = materialise_timeline(program, dataset, query=queries or None, between=between, timeline=timeline)
            proofs, facts = build_proofs(program, dataset, facts, page.proof_steps, timeline, query=question.query)
    except Undecided as problem:
        click.echo(str(problem), err=True)
        return UNDECIDED
    awaited: list[dict[str, Any]] = []
    if outcome is not None:
        with_awaited, awaited = add_awaited(facts.timeline, outcome)
        facts = replace(facts, timeline=with_awaited)
    columns = schema.describe_columns(program.predicates) if schema else ""
    about = (("Rules", rules), ("Data", ", ".join(inputs)), *((("Columns", columns),) if columns else ()))
    names = " + ".join(Path(file).name for file in inputs)
    command = None if outcome else format_explain_command(rules, data, timeline)
    heading = Heading(page.title or f"{Path(rules).name}: {names}", about, command)
    text = render_page(build_report(program, facts, heading, proofs=proofs, awaited=awaited, question=question))
    Path(page.output).write_text(text, encoding="utf-8")
    _print_summary(page.output, facts, outcome)
    return 0


def _check_inputs(rules: str, data: Sequence[str], output: str, arrivals: ArrivalArguments) -> list[str]:
    """Refuse options that do not fit together; return the files with facts."""
    if (arrivals.hypothetical is None) != (arrivals.arrivals is None):
        raise click.UsageError("--hypothetical ATOM and --arrivals FILE go together")
    if arrivals.arrivals is None and (arrivals.delay or arrivals.until is not None):
        raise click.UsageError("--delay and --until need --arrivals FILE")
    inputs = [*data, *([arrivals.arrivals] if arrivals.arrivals else [])]
    if not inputs:
        raise click.UsageError("name files with facts, or --arrivals FILE")
    require_single_stdin(rules, *inputs)
    read = {Path(file.partition("=")[2] or file).resolve() for file in (rules, *inputs) if file != "-"}
    if Path(output).resolve() in read:
        raise click.UsageError(f"-o {output}: this file is an input too, and would be overwritten")
    return inputs


def format_explain_command(rules: str, data: Sequence[str], timeline: TimelineName | None) -> str | None:
    """Format the command that explains a fact, without the fact; None if the input cannot be read again."""
    if "-" in (rules, *data):
        return None
    option = [f"--timeline {timeline}"] if timeline else []
    return " ".join(["tidelog explain", *option, *map(shlex.quote, [rules, *data])])


def _follow_arrivals(
    program: Program, arrivals: ArrivalArguments, background: Dataset, timeline: TimelineName | None
) -> ArrivalOutcome | None:
    """Find out which answers are possible after the last arrival; None without `--arrivals`."""
    if arrivals.arrivals is None or arrivals.hypothetical is None:
        return None
    from tidelog.cli.hypothesise import read_arrivals
    from tidelog.compiler.prepare_facts import read_time_arguments
    from tidelog.language.file_errors import open_input
    from tidelog.page.awaited_timeline import follow_arrivals

    facts = read_time_arguments(program, background)
    name = "<stdin>" if arrivals.arrivals == "-" else arrivals.arrivals
    with open_input(arrivals.arrivals) as lines:
        return follow_arrivals(
            program,
            arrivals.hypothetical,
            lambda session: read_arrivals(session, lines, name, open_bad_rows()),
            until=arrivals.until,
            delay=arrivals.delay,
            background=facts,
            timeline=timeline,
        )


def _print_summary(output: str, facts: ReportTimeline, outcome: ArrivalOutcome | None) -> None:
    from tidelog.language.wording import plural

    for note in facts.notes:
        click.echo(note, err=True)
    if outcome and outcome.rejected:
        rejected = plural(outcome.rejected, "arrival")
        verb = "was" if outcome.rejected == 1 else "were"
        click.echo(f"{rejected} {verb} not taken; `tidelog hypothesise --late FILE` says why", err=True)
    intervals, atoms = plural(len(facts.timeline.rows), "interval"), plural(len(facts.timeline.atoms), "atom")
    click.echo(f"{output}: {intervals} of {atoms}")
