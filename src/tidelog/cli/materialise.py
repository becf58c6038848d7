"""`tidelog materialise`: print all facts that hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidelog.cli.options import (
    UNDECIDED,
    data_argument,
    killable,
    load,
    rules_argument,
    time_range,
    timeline_option,
    write_out,
)

if TYPE_CHECKING:
    from tidelog.timeline.interval import Time


@click.command(short_help="Print all facts that hold (also spelt materialize).")
@rules_argument
@data_argument
@click.option("--query", "queries", metavar="Q", multiple=True, help="Print only this predicate; may be repeated.")
@click.option(
    "--between",
    metavar="LO,HI",
    callback=time_range,
    help="Only what holds from LO to HI, both included; -inf and inf too.",
)
@timeline_option
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", help="Default: text.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format jsonl.")
@click.option("--time", "times", type=click.Choice(["number", "iso"]), help="How times print. Default: as in the data.")
def materialise(
    rules: str,
    data: tuple[str, ...],
    queries: tuple[str, ...],
    between: tuple[Time, Time] | None,
    timeline: str | None,
    form: str,
    as_json: bool,
    times: str | None,
) -> int:
    """Print all facts that hold, given or derived, of every predicate that occurs in a head (or of each Q), one a
    line. What repeats for ever follows as comments, like `% repeats every 3 from 17: A(a)@[17,18]`.

    \b
    Example:
      echo 'A(X) :- Diamondminus[0,2] B(X).' > rules.dmtl
      echo 'B(a)@5' | tidelog materialise rules.dmtl -
    """
    from tidelog.reasoning import Undecided
    from tidelog.reasoning import materialise as reason

    program, dataset = load(rules, data)
    try:
        with killable():
            model = reason(program, dataset, query=queries or None, between=between, timeline=timeline)
    except Undecided as problem:
        click.echo(str(problem), err=True)
        return UNDECIDED
    write_out(model.render("jsonl" if as_json else form, iso=None if times is None else times == "iso"))
    return 0
