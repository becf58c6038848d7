"""`--ui`: the options of commands that run for long, and the page that shows their progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidelog.timeline.interval import INF

if TYPE_CHECKING:
    from tidelog.page.live_board import LiveBoard

Command = TypeVar("Command", bound=Callable[..., Any])

#: The value of `--ui` without a port.
_ANY_PORT = "any"


def _parse_port(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None or value == _ANY_PORT:
        return value
    if not (value.isdecimal() and value.isascii() and int(value) < 65536):
        raise click.BadParameter(
            f"{value!r} is not a port, like 9000; without a port, put --ui last or before another option"
        )
    return value


def ui_options(command: Command) -> Command:
    """Add `--ui [PORT]` and `--ui-host HOST` to a command."""
    command = click.option(
        "--ui-host", metavar="HOST", default="127.0.0.1", help="Where --ui listens. Default: this machine only."
    )(command)
    return click.option(
        "--ui",
        metavar="[PORT]",
        is_flag=False,
        flag_value=_ANY_PORT,
        callback=_parse_port,
        help="Serve a page that shows the running stream, at PORT. Default: 8787, or another free port.",
    )(command)


@contextmanager
def serve_live_page(ui: str | None, host: str, title: str, largest_lag: float = INF) -> Iterator[LiveBoard | None]:
    """Serve a page and yield the board that a running stream writes to; yield None without `--ui`.

    A stream that is further than `largest_lag` seconds behind the clock is a replay, whose lag is not shown.
    """
    if ui is None:
        yield None
        return
    from tidelog.page.live_board import LiveBoard
    from tidelog.page.live_server import serve_board

    board = LiveBoard(largest_lag)
    with serve_board(board, title, host=host, port=None if ui == _ANY_PORT else int(ui)) as address:
        click.echo(f"watch it at {address}", err=True)
        try:
            yield board
        finally:
            board.end()
