"""Show warnings on standard error, or refuse them with `--strict`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidelog.errors import Diagnostic


def show_warnings(warnings: Iterable[Diagnostic], strict: bool) -> None:
    """Print warnings on standard error; if `strict`, raise them as errors."""
    from tidelog.analysis.program_warnings import make_strict
    from tidelog.errors import render_diagnostics

    found = list(warnings)
    if strict:
        make_strict(found)
    if found:
        click.echo(render_diagnostics(found), err=True)
