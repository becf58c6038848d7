"""`tidelog fmt`: the printer."""

from __future__ import annotations

import click

from tidelog.cli.options import rules_argument


@click.command(short_help="Print rules in their standard form.")
@rules_argument
def fmt(rules: str) -> None:
    """Print RULES in their standard form, which reads as the same program; comments are not kept.

    \b
    Example:
      echo 'A(X):-SOMETIME[-2,0]B(X)' | tidelog fmt -
    """
    from tidelog.language.program import Program

    click.echo(str(Program.load(rules)).rstrip("\n"))
