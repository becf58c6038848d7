"""The option `--bad-rows FILE` of all commands that read data: set unreadable rows aside, count them, and go on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidelog.data.bad_rows import BadRows

_PATH, _OPENED = "tidelog.bad_rows.path", "tidelog.bad_rows"


def _keep_path(context: click.Context, option: click.Parameter, path: str | None) -> None:
    context.meta[_PATH] = path


def _close(bad_rows: BadRows) -> None:
    """Close the file, and say how many rows of which files were set aside."""
    from tidelog.language.wording import plural

    bad_rows.file.close()
    for source, count in bad_rows.counts.items():
        verb = "was" if count == 1 else "were"
        with suppress(OSError):
            place = f"set aside in {bad_rows.file.name}"
            click.echo(f"{source}: {plural(count, 'row')} could not be read and {verb} {place}", err=True)


def open_bad_rows(append: bool = False) -> BadRows | None:
    """Return the place for bad rows that the running command was given; the first call opens the file."""
    context = click.get_current_context(silent=True)
    path: str | None = context.meta.get(_PATH) if context else None
    if context is None or path is None:
        return None
    if _OPENED not in context.meta:
        from tidelog.data.bad_rows import BadRows

        try:
            bad_rows = BadRows(open(path, "a" if append else "w", encoding="utf-8"))  # noqa: SIM115
        except OSError as problem:
            raise click.UsageError(f"--bad-rows {path}: cannot write it: {problem.strerror}") from None
        context.meta[_OPENED] = bad_rows
        context.call_on_close(lambda: _close(bad_rows))
    found: BadRows = context.meta[_OPENED]
    return found


bad_rows_option = click.option(
    "--bad-rows",
    metavar="FILE",
    expose_value=False,
    callback=_keep_path,
    help="Write rows that cannot be read to FILE, with place and reason, and continue. Default: stop at them.",
)
