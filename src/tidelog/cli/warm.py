"""`tidelog warm`: compile the engine ahead of time."""

from __future__ import annotations

import click


@click.command(short_help="Compile the engine ahead of time.")
def warm() -> None:
    """Compile all parts of the engine for this machine, which takes a minute or two, and store them in its cache.

    Without it, the first command that evaluates rules starts a process that does so in the background, and small tasks
    run on interpreted code meanwhile. Run it once after an installation, for example while a container image is built.
    NUMBA_CACHE_DIR chooses the folder of the cache.

    \b
    Example:
      tidelog warm
    """
    from tidelog.warm import compile_engine

    for part in compile_engine():
        click.echo(f"compiled: {part}")
