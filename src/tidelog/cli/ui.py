"""`--ui`: the option of commands that run for long, and the page that it opens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tidelog.page.board import Board

F = TypeVar("F", bound=Callable[..., Any])

#: What `--ui` without a port stands for.
_ANY = "any"


def _port(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None or value == _ANY:
        return value
    if not (value.isdecimal() and value.isascii() and int(value) < 65536):
        raise click.BadParameter(
            f"{value!r} is not a port, like 9000; --ui without one stands last, or before an option"
        )
    return value


def ui_options(command: F) -> F:
    """`--ui [PORT]` and `--ui-host HOST`."""
    command = click.option(
        "--ui-host", metavar="HOST", default="127.0.0.1", help="Where --ui listens. Default: this machine only."
    )(command)
    return click.option(
        "--ui",
        metavar="[PORT]",
        is_flag=False,
        flag_value=_ANY,
        callback=_port,
        help="Show a page of the running stream at PORT, or at 8787 or another that is free.",
    )(command)


@contextmanager
def watched(ui: str | None, host: str, title: str) -> Iterator[Board | None]:
    """The board that a running stream writes to, and that its page shows while this lasts; None where none is asked
    for."""
    if ui is None:
        yield None
        return
    from tidelog.page.board import Board
    from tidelog.page.server import serving

    board = Board()
    with serving(board, title, host=host, port=None if ui == _ANY else int(ui)) as address:
        click.echo(f"watch it at {address}", err=True)
        try:
            yield board
        finally:
            board.end()
