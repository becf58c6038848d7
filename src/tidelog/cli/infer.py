"""`tidelog infer`: print a first schema of tables."""

from __future__ import annotations

import click

from tidelog.cli.options import data_argument


@click.command(short_help="Print a first schema of tables.")
@data_argument
def infer(data: tuple[str, ...]) -> None:
    """Print a schema of the tables DATA (CSV, JSON Lines, Parquet), found by looking at their values: the types of the
    columns, the column that holds the time, and the unit of numeric times. Read it, correct it, and save it as
    tidelog.toml next to the rules.

    \b
    Example:
      printf 'sensor,value,at\\n007,20.5,2026-01-31T10:00:00Z\\n' > Reading.csv
      tidelog infer Reading.csv
    """
    from tidelog.data.schema_inference import infer_schema

    click.echo(infer_schema(data), nl=False)
