"""`--watch`: repeat some work whenever files change, until Ctrl-C.

Files are polled: that needs no further dependency, and works on network drives and for files that editors replace.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from time import sleep

import click

from tidelog.errors import TidelogError

_POLL_SECONDS = 0.3
#: How often a missing file is looked for again before it counts as gone: editors save by replacing files.
_ATTEMPTS = 5

#: Identifies a version of a file: modification time, size and inode. None: there is no such file.
FileVersion = tuple[int, int, int] | None


def repeat_on_change(files: Sequence[str], build_text: Callable[[], str]) -> None:
    """Print a text, and print it again after every change of a file; an error is printed too, and does not end this."""
    names = [name.rpartition("=")[2] for name in files]
    seen: list[FileVersion] | None = None
    while True:
        versions = _read_versions(names)
        if versions != seen:
            seen = versions
            _print_text(build_text, names[0])
        sleep(_POLL_SECONDS)


def _print_text(build_text: Callable[[], str], name: str) -> None:
    click.clear()
    try:
        click.echo(build_text())
        result = "checked"
    except TidelogError as problem:
        click.echo(str(problem))
        result = "checked, with errors"
    click.echo(f"\n{name}: {result} at {datetime.now():%H:%M:%S}; Ctrl-C ends this")


def _read_versions(names: Sequence[str]) -> list[FileVersion]:
    """Return the versions of files; wait a little for a file that is missing."""
    for _ in range(_ATTEMPTS):
        versions = [_read_version(name) for name in names]
        if None not in versions:
            return versions
        sleep(_POLL_SECONDS / _ATTEMPTS)
    return versions


def _read_version(name: str) -> FileVersion:
    try:
        status = os.stat(name)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
