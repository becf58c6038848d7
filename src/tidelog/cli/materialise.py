"""`tidelog materialise`: print all facts that hold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import click

from tidelog.cli.bad_rows import bad_rows_option
from tidelog.cli.fact_output import FactOutput, render_model
from tidelog.cli.options import (
    UNDECIDED,
    between_option,
    data_argument,
    group_options,
    iso_option,
    output_format_options,
    parse_finite_time,
    rules_argument,
    strict_option,
    threads_option,
    timeline_option,
)
from tidelog.cli.program_input import find_fact_predicate, load_program_and_data
from tidelog.cli.schema_option import current_schema, schema_option
from tidelog.cli.signals import interruptible
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.timeline.interval import Time


@dataclass(frozen=True)
class TimeLimits:
    """The part of time that is printed: a range, or all up to the time where time stops."""

    between: tuple[Time, Time] | None
    until: Fraction | None


@click.command(short_help="Print all facts that hold (also spelt materialize).")
@rules_argument
@data_argument
@click.option(
    "--query",
    "queries",
    metavar="Q",
    multiple=True,
    help="Print only this predicate, or only the facts that fit an atom such as 'Hot(t1,X)'; may be repeated.",
)
@between_option
@click.option(
    "--until",
    metavar="T",
    callback=parse_finite_time,
    help="Stop time at T, as a stream does: ignore facts that begin later, and end at T what still holds.",
)
@timeline_option
@bad_rows_option
@schema_option
@output_format_options
@iso_option
@strict_option
@threads_option
@group_options(TimeLimits, "limits")
def materialise(
    rules: str,
    data: tuple[str, ...],
    queries: tuple[str, ...],
    limits: TimeLimits,
    timeline: TimelineName | None,
    output: FactOutput,
    iso: bool | None,
    strict: bool,
) -> int:
    """Print all facts that hold, given or derived, of every predicate that occurs in a head (or of each Q), one per
    line. Facts that repeat for ever follow as comments, like `% repeats every 3 from 17: A(a)@[17,18]`.

    Q is a predicate, or an atom as in rules: `Hot(t1, X)` asks for the facts of t1 alone, and only what can matter for
    them is computed. A constant that begins with a capital letter needs quotes there: `Hot("T1", X)`.

    Answers go beyond the last fact in the data, where a stream stops; --until T gives those of `stream --until T`.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' > rules.dmtl
      echo 'B(a)@5' | tidelog materialise rules.dmtl -
    """
    from tidelog.batch import materialise as compute_model
    from tidelog.data.time_units import check_asked_times
    from tidelog.errors import Undecided

    if limits.between and limits.until is not None:
        raise click.UsageError("--between and --until exclude each other: --between -inf,T cuts answers at T")
    names = [find_fact_predicate(query) for query in queries]
    program, dataset = load_program_and_data(rules, data, names or None, strict)
    if limits.until is not None:
        check_asked_times(dataset, f"--until {limits.until}", limits.until)
    elif limits.between:
        check_asked_times(dataset, f"--between {','.join(map(str, limits.between))}", *limits.between)
    try:
        with interruptible():
            model = compute_model(
                program, dataset, query=queries or None, between=limits.between, until=limits.until, timeline=timeline
            )
    except Undecided as problem:
        click.echo(str(problem), err=True)
        return UNDECIDED
    show_warnings(model.warnings, strict)
    output.write(render_model(model, output.form, iso, current_schema(rules)))
    return 0
