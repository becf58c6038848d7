"""Doing something again whenever files change: by looking at them now and then, until Ctrl-C."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from time import sleep

import click

from tidelog.errors import TidelogError

#: Seconds between two looks; and how many looks a file that is gone is waited for, as editors save by replacing it.
_LOOK = 0.3
_PATIENCE = 5

#: What tells that a file is another: when it was changed, how long it is, and which file it is. None: there is none.
Stamp = tuple[int, int, int] | None


def watching(files: Sequence[str], work: Callable[[], str]) -> None:
    """Does the work, and does it again after every change of a file; what is wrong with one is said, and it goes on."""
    names = [name.rpartition("=")[2] for name in files]
    seen: list[Stamp] | None = None
    while True:
        now = _settled(names)
        if now != seen:
            seen = now
            _do(work, names[0])
        sleep(_LOOK)


def _do(work: Callable[[], str], name: str) -> None:
    click.clear()
    try:
        click.echo(work())
        said = "checked"
    except TidelogError as problem:
        click.echo(str(problem))
        said = "checked, with errors"
    click.echo(f"\n{name}: {said} at {datetime.now():%H:%M:%S}; Ctrl-C ends this")


def _settled(names: Sequence[str]) -> list[Stamp]:
    """The stamps of files; one that is missing is looked for some more, unless it stays away."""
    for _ in range(_PATIENCE):
        found = [_stamp(name) for name in names]
        if None not in found:
            return found
        sleep(_LOOK / _PATIENCE)
    return found


def _stamp(name: str) -> Stamp:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
