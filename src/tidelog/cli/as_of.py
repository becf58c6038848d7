"""`tidelog as-of`: the answers of a stream with corrections as they stood at some clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidelog.cli.options import iso_option, output_format_options, parse_finite_time

if TYPE_CHECKING:
    from fractions import Fraction

    from tidelog.cli.fact_output import FactOutput


@click.command("as-of", short_help="Print the answers as they stood at some clock.")
@click.argument("log", metavar="LOG")
@click.argument("time", metavar="T", callback=parse_finite_time)
@output_format_options
@iso_option
def as_of(log: str, time: Fraction, output: FactOutput, iso: bool | None) -> None:
    """Print the answers of LOG as they stood when the clock was at T.

    LOG is the output of `tidelog stream --corrections H` in a format that says when changes were known: jsonl, csv or
    parquet.

    \b
    Example:
      printf 'P(a)@1\\nP(b)@9\\nP(a)@2\\n' > data.facts
      echo 'Q(X) :- Diamondminus[0,2] P(X).' > rules.dmtl
      tidelog stream rules.dmtl --query Q --input data.facts --corrections 10 --json > log.jsonl
      tidelog as-of log.jsonl 9
    """
    from tidelog.data.fact_sheet import build_fact_sheet, render_csv, render_parquet
    from tidelog.data.time_units import require_same_unit
    from tidelog.streaming.alerts import render_alerts
    from tidelog.streaming.change_log import fold_changes, read_log, sort_answers

    changes, dates = read_log(log)
    for change in changes[:1]:
        require_same_unit(time, change.known, dates_before=dates)
    standing = sort_answers(fold_changes(changes, time))
    as_dates = dates if iso is None else iso
    if output.form == "csv":
        output.write(render_csv(build_fact_sheet(standing), as_dates))
    elif output.form == "parquet":
        output.write(render_parquet(build_fact_sheet(standing), as_dates))
    else:
        output.write(render_alerts(standing, output.form, as_dates))
