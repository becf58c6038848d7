"""The option `--schema`, and the schema file next to the rules that replaces it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidelog.data.schema import Schema

_KEY = "tidelog.schema"


def _note_schema(context: click.Context, option: click.Parameter, path: str | None) -> None:
    context.meta[_KEY] = path


schema_option = click.option(
    "--schema",
    metavar="FILE",
    expose_value=False,
    callback=_note_schema,
    help="What the columns of tables mean. Default: tidelog.toml next to RULES, if there is one.",
)


def current_schema(rules: str) -> Schema | None:
    """Load the schema that the command names or that is next to its rules; None if there is none."""
    from tidelog.data.schema import find_schema_file, load_schema

    context = click.get_current_context(silent=True)
    path = (context.meta.get(_KEY) if context else None) or find_schema_file(rules)
    return load_schema(path) if path else None
