"""Arguments and options that several commands share, and the parsers of their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tidelog.errors import TidelogError
    from tidelog.timeline.interval import Time

#: The exit code for a question that could not be decided.
UNDECIDED = 3
#: The exit codes of commands that answer yes or no.
ANSWER_EXIT_CODES = {"yes": 0, "no": 1, "unknown": UNDECIDED}

rules_argument = click.argument("rules", metavar="RULES")
data_argument = click.argument("data", metavar="DATA...", nargs=-1, required=True)
timeline_option = click.option(
    "--timeline",
    type=click.Choice(["rational", "integer"]),
    help="The time domain. Default: rational; integer for .tdl files.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
iso_option = click.option(
    "--time",
    "iso",
    type=click.Choice(["number", "iso"]),
    callback=lambda context, option, value: None if value is None else value == "iso",
    help="How times are printed. Default: as in the data.",
)


def _choose_threads(context: click.Context, option: click.Parameter, count: int | None) -> None:
    if count is not None:
        from tidelog.local_threads import choose_threads, restore_threads

        before = choose_threads(count)
        context.call_on_close(lambda: restore_threads(before))


threads_option = click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(1),
    expose_value=False,
    callback=_choose_threads,
    help="Use N threads for large inputs. Default: one per core.",
)
strict_option = click.option("--strict", is_flag=True, help="Treat warnings as errors.")


def refuse_repeated_options(context: click.Context, args: Sequence[str]) -> None:
    """Refuse an option that is given twice and takes one value: keeping only the last would lose what the user said."""
    try:
        _, _, order = context.command.make_parser(context).parse_args(args=list(args))
    except click.UsageError:
        return  # The command reports it, with its own help.
    seen: set[click.Parameter] = set()
    for option in order:
        if not isinstance(option, click.Option) or option.multiple or option.count or option.is_flag:
            continue
        if option in seen:
            raise click.UsageError(f"{option.opts[-1]} is given twice, but takes one value", context)
        seen.add(option)


def group_options(group: type[Any], parameter: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Pass the options that are named like the fields of a dataclass to a command as one object of that class."""
    names = [field.name for field in fields(group)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def call(**values: Any) -> Any:
            grouped = group(**{name: values.pop(name) for name in names if name in values})
            return command(**values, **{parameter: grouped})

        return call

    return decorate


#: `text` is the former name of `facts`.
_FORMATS = click.Choice(["facts", "jsonl", "csv", "parquet", "text"])
format_option = click.option(
    "--format",
    "form",
    type=_FORMATS,
    metavar="facts|jsonl|csv|parquet",
    help="The output format. Default: that of the suffix of --output, or facts.",
)
output_option = click.option("-o", "--output", "file", metavar="FILE", help="Write to FILE instead of standard output.")


def output_format_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--format`, `--json` as a short form of it, and `--output`; the command gets the choices as `output`."""

    @wraps(command)
    def call(form: str | None, as_json: bool, file: str | None, **values: Any) -> Any:
        from tidelog.cli.fact_output import choose_output

        return command(output=choose_output(form, as_json, file), **values)

    short = click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl.")
    for option in (output_option, short, format_option):
        call = option(call)
    return call


def require_single_stdin(*files: str | None) -> None:
    """Refuse to read standard input for more than one file."""
    from tidelog.language.file_errors import is_standard_input

    paths = [file.partition("=")[2] or file for file in files if file]
    if sum(map(is_standard_input, paths)) > 1:
        raise click.UsageError("standard input (-) can be read only once")


def parse_length(value: str) -> Fraction:
    """Parse a length of time: a number or a duration."""
    from tidelog.language.foreign_words import suggest_duration
    from tidelog.language.time_text import read_number

    length = read_number(value.strip(), units=True)
    if length is None or length < 0:
        meant = suggest_duration(value.strip())
        hint = f"; did you mean {meant}?" if meant else ""
        raise click.BadParameter(f"{value!r} is not a length of time, like 5, 1/2, 500ms, 10min or 2h{hint}")
    return length


def parse_positive_length(context: click.Context, option: click.Parameter, value: str | None) -> Fraction | None:
    """Parse an option whose value is a length of time greater than 0."""
    length = None if value is None else parse_length(value)
    if length == 0:
        raise click.BadParameter(f"the {option.name} must be greater than 0")
    return length


def parse_time_range(context: click.Context, option: click.Parameter, value: str | None) -> tuple[Time, Time] | None:
    """Parse `LO,HI`: two times as in facts (numbers, fractions, dates), or -inf and inf."""
    from tidelog.errors import TidelogError
    from tidelog.language.fact_text import parse_time

    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if len(parts) != 2:
        raise click.BadParameter(f"{value!r} is not two times separated by a comma, like 0,10 or -inf,5")
    try:
        lo, hi = (parse_time(part)[0] for part in parts)
    except TidelogError as problem:
        raise click.BadParameter(f"{value!r}: {describe_time_error(problem)}") from None
    if lo > hi:
        raise click.BadParameter(f"{value!r} ends before it begins")
    return lo, hi


between_option = click.option(
    "--between",
    metavar="LO,HI",
    callback=parse_time_range,
    help="Only what holds from LO to HI, both included; either may be -inf or inf.",
)


def parse_time_option(context: click.Context, option: click.Parameter, value: str | None) -> Time | None:
    """Parse an option whose value is one time, as in facts."""
    from tidelog.errors import TidelogError
    from tidelog.language.time_text import parse_time

    if value is None:
        return None
    try:
        return parse_time(value)[0]
    except TidelogError as problem:
        raise click.BadParameter(describe_time_error(problem)) from None


def parse_finite_time(context: click.Context, option: click.Parameter, value: str | None) -> Time | None:
    """Parse an option whose value is one time, and not infinity."""
    time = parse_time_option(context, option, value)
    if isinstance(time, float):
        raise click.BadParameter("time cannot stop at infinity: name a finite time")
    return time


def describe_time_error(problem: TidelogError) -> str:
    """Say why a text is not a time, and which forms times have."""
    diagnostic = problem.diagnostics[0]
    return f"{diagnostic.message}; {diagnostic.law}" if diagnostic.law else diagnostic.message
