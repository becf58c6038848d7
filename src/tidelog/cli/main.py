"""The `tidelog` command: its subcommands, and how it ends.

Exit codes: 0 success (or yes), 1 no, 2 bad input, 3 undecided. A mistake of the user ends with one message on standard
error, never with a traceback; a traceback is a bug in tidelog.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

import click

from tidelog.cli.options import refuse_repeated_options
from tidelog.errors import TidelogError

BAD_INPUT = 2
#: What a shell reports for a process that SIGINT or SIGPIPE ended.
INTERRUPTED = 130
PIPE_CLOSED = 141

#: The commands; each is in the module of its name.
_COMMANDS = (
    "as-of",
    "check",
    "demo",
    "entails",
    "explain",
    "explain-code",
    "fmt",
    "generate",
    "hypothesise",
    "infer",
    "lsp",
    "materialise",
    "mcp",
    "report",
    "run",
    "stable",
    "state",
    "stream",
    "test",
    "warm",
    "window",
)
_ALIASES = {"materialize": "materialise", "hypothesize": "hypothesise"}


class _Commands(click.Group):
    """The subcommands, also by their American spelling, with a suggestion for misspelt ones.

    Only the module of the command that is called is imported: all of them take longer than a small task.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = _ALIASES.get(cmd_name, cmd_name)
        if name not in _COMMANDS:
            return None
        module = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"tidelog.cli.{module}"), module)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"did you mean {close[0]}?" if close else "`tidelog --help` lists the commands"
            ctx.fail(f"no such command: {args[0]}; {hint}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            refuse_repeated_options(click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tidelog", message="%(prog)s %(version)s")
def cli() -> None:
    """Rules over time, with guarantees: a reasoner for DatalogMTL.

    \b
    tidelog materialise rules.dmtl data.facts     print all facts that hold
    tidelog entails rules.dmtl data.facts 'P@5'   ask about one fact
    tidelog explain rules.dmtl data.facts 'P@5'   say why it holds, or why not
    tidelog stable rules.dmtl data.facts          rules with exceptions: stable models
    tidelog stream rules.dmtl --query P --input - answer as facts arrive
    tidelog run pipeline.toml                     run a job on Spark
    tidelog hypothesise rules.tdl ...             what may still become true
    tidelog check rules.dmtl                      what kind of program is this?
    tidelog window rules.tdl --query P            how much history does P need?
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    # numpy's linear algebra, which nothing here calls, starts a thread for each further core; each takes 0.1 s of CPU
    # time before it sleeps.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run(args)
    # At its end, the interpreter would look through all objects for garbage; the system takes all memory anyway.
    gc.freeze()
    sys.exit(code)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    # Not `cli.main`: its exit codes for a closed pipe and an interrupt differ between versions of click.
    try:
        with cli.make_context("tidelog", list(sys.argv[1:] if args is None else args)) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as problem:
        problem.show()
        return BAD_INPUT
    except TidelogError as problem:
        click.echo(str(problem), err=True)
        return BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes standard output once more at exit: give it something to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as problem:
        name = f"{problem.filename}: " if problem.filename else ""
        click.echo(f"tidelog: {name}{problem.strerror or problem}", err=True)
        return BAD_INPUT
