"""The options of `tidelog stream`, grouped by purpose, and the checks that come before any work."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tidelog.cli.bad_rows import bad_rows_option
from tidelog.cli.live_page import ui_options
from tidelog.cli.metrics_options import metrics_options
from tidelog.cli.options import (
    group_options,
    iso_option,
    output_format_options,
    parse_finite_time,
    parse_length,
    parse_positive_length,
    require_single_stdin,
    rules_argument,
    strict_option,
    threads_option,
    timeline_option,
)
from tidelog.cli.schema_option import schema_option
from tidelog.compiler.compiled_program import Memory
from tidelog.language.file_errors import is_standard_input
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from tidelog.cli.fact_output import FactOutput
    from tidelog.language.program import Program


@dataclass(frozen=True)
class StreamFiles:
    """The files that a stream reads (`rules`, `sources`, `background`) and writes (the others)."""

    rules: str
    sources: tuple[str, ...]
    background: tuple[str, ...]
    late: str | None
    stats: str | None
    state: str | None
    report: str | None

    @property
    def inputs(self) -> list[tuple[str, str]]:
        """The files that are read, each with the option that names it."""
        sources = (("--input", file) for file in self.sources)
        return [("RULES", self.rules), *sources, *(("--background", file) for file in self.background)]

    @property
    def outputs(self) -> list[tuple[str, str]]:
        """The files that are written, each with the option that names it."""
        written = (("--late", self.late), ("--stats", self.stats), ("--state", self.state), ("--report", self.report))
        return [(option, file) for option, file in written if file]


@dataclass(frozen=True)
class QueryArguments:
    """The standing query, as the command line states it."""

    query: str
    timeline: TimelineName | None
    memory: Memory | None
    at: str | None
    #: How late facts may arrive, by predicate; None stands for all others.
    delay: dict[str | None, Fraction]
    #: For how long late facts and deletions are taken, if at all.
    corrections: Fraction | None
    objects: str | None
    #: How many time points are remembered, if the user chooses.
    window: int | None


@dataclass(frozen=True)
class RunArguments:
    """How far and in which steps the stream runs, and how it continues from a state."""

    step: Fraction | None
    until: Fraction | None
    continues: bool
    changed: bool
    follow: bool
    heartbeat: Fraction | None
    #: A file of settings for the Kafka client.
    kafka_config: str | None
    strict: bool


@dataclass(frozen=True)
class AlertArguments:
    """Which answers are worth printing."""

    changes: bool | Literal["start"]
    dedupe: Fraction | None
    cooldown: Fraction | None
    per: tuple[int, ...] | None
    #: Where alerts are delivered: addresses of web hooks, and commands.
    notify: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True)
class DisplayArguments:
    """How answers are printed, and where the page and the metrics of the running stream are served."""

    output: FactOutput
    iso: bool | None
    ui: str | None
    ui_host: str
    metrics: tuple[str, int] | None
    otlp: str | None


#: The value of a plain `--changes`.
STARTS_AND_ENDS = "both"


def _parse_delays(
    context: click.Context, option: click.Parameter, value: tuple[str, ...]
) -> dict[str | None, Fraction]:
    """Parse `5s` for all predicates, `Temp=5s` for one; the key None stands for all others."""
    delays: dict[str | None, Fraction] = {}
    for text in value:
        name, equals, length = text.rpartition("=")
        predicate = name.strip() if equals else None
        if predicate in delays or predicate == "":
            raise click.BadParameter(
                f"{text!r}: give at most one delay for all predicates and one for each, like 5s and Temp=10s"
            )
        delays[predicate] = parse_length(length)
    return delays


def _parse_corrections(context: click.Context, option: click.Parameter, value: str | None) -> Fraction | None:
    return None if value is None else parse_length(value)


def _check_output_times(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None or value == "input":
        return value
    from tidelog.errors import TidelogError
    from tidelog.streaming.output_time_text import parse_multiples

    kind, _, rest = value.partition(":")
    if kind not in ("every", "file") or not rest:
        raise click.BadParameter(f"{value!r} is none of input, every:S (every:5, every:10min+3min) and file:PATH")
    if kind == "every":
        try:
            parse_multiples(value)
        except TidelogError as problem:
            found = problem.diagnostics[0]
            raise click.BadParameter(f"{value!r}: {found.message}; {found.help}") from None
    return value


def _parse_positions(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Parse `1,3`: positions of arguments, counted from 1."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isdecimal() and part.isascii() for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of argument positions, counted from 1, like 1 or 1,2")
    return tuple(map(int, parts))


class StreamCommand(click.Command):
    """A command whose `--changes` takes a value only if one of its values follows it, not any other argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        following = [*args[1:], ""][: len(args)]
        plain = f"--changes={STARTS_AND_ENDS}"
        args = [
            plain if arg == "--changes" and after not in (STARTS_AND_ENDS, "start") else arg
            for arg, after in zip(args, following, strict=True)
        ]
        return super().parse_args(ctx, args)


def _check_addresses(context: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    from urllib.parse import urlsplit

    for address in value:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise click.BadParameter(f"{address!r} is not an address like https://example.org/alerts")
    return value


def _read_changes(context: click.Context, option: click.Parameter, value: str | None) -> bool | Literal["start"]:
    return "start" if value == "start" else value is not None


#: A decorator that adds one option.
Option = Callable[[Callable[..., Any]], Callable[..., Any]]

_FILE_OPTIONS: tuple[Option, ...] = (
    rules_argument,
    click.option("--query", metavar="Q", required=True, help="The predicate whose facts are the answers."),
    click.option(
        "--input",
        "sources",
        metavar="FILE",
        required=True,
        multiple=True,
        help="The stream, in order of arrival: a file, - (or a table, P=-.csv) for standard input, or a topic, "
        "kafka://broker:9092/topic. May be repeated: inputs are merged by time.",
    ),
)
_QUERY_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--step",
        metavar="S",
        callback=parse_positive_length,
        help="Reason in steps of length S. Default: a step at every new time.",
    ),
    click.option(
        "--at",
        metavar="input|every:S[+O]|file:PATH",
        callback=_check_output_times,
        help="Answers at the stream's own time points, at multiples of S (plus an offset O), or at the times in a "
        "file, one per line. Default: maximal intervals once they end.",
    ),
    click.option(
        "--memory",
        type=click.Choice(["generic", "bounded"]),
        help="How the past is kept. Default: bounded if it applies and keeps less.",
    ),
    click.option("--background", metavar="FILE", multiple=True, help="Facts that hold before the stream begins."),
    click.option(
        "--delay",
        metavar="D",
        multiple=True,
        callback=_parse_delays,
        help="Facts may arrive up to D late, in any order, like 5s; for one predicate: Temp=5s. May be repeated.",
    ),
    click.option(
        "--corrections",
        metavar="H",
        callback=_parse_corrections,
        help="Take late facts and deletions (-P(a)@3) for H, like 1h, and print how they change the answers: + and -.",
    ),
    click.option(
        "--objects",
        metavar="A,B,...",
        help="All objects that facts mention (.tdl): keep no more than the smallest window proved for them.",
    ),
    click.option(
        "--window",
        metavar="W",
        type=click.IntRange(min=0),
        help="Remember W time points (.tdl): drop rules that look back further, with a warning unless none is needed.",
    ),
)
_RUN_OPTIONS: tuple[Option, ...] = (
    click.option("--follow", is_flag=True, help="Keep reading files that grow, pipes and topics, until Ctrl-C."),
    click.option(
        "--heartbeat",
        metavar="D",
        callback=parse_positive_length,
        help="With --follow: let the clock run on every D while nothing arrives, so that absence is noticed.",
    ),
    click.option("--kafka-config", metavar="FILE", help="Settings of the Kafka client, one key=value per line."),
    click.option("--late", metavar="FILE", help="Write facts that arrive too late to FILE."),
    bad_rows_option,
    click.option(
        "--until",
        metavar="T",
        callback=parse_finite_time,
        help="Stop the clock at T. Default: at the last time in the input.",
    ),
    click.option(
        "--state", metavar="FILE", help="Continue from FILE if it exists, and save the state to it at the end."
    ),
    click.option(
        "--continues", is_flag=True, help="With --state: more input will follow, so do not print open intervals."
    ),
    click.option(
        "--changed-rules",
        "changed",
        is_flag=True,
        help="With --state: the rules have changed; keep as much of the state as possible.",
    ),
    strict_option,
    threads_option,
)
_ALERT_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--changes",
        metavar="[start]",
        is_flag=False,
        flag_value=STARTS_AND_ENDS,
        type=click.Choice([STARTS_AND_ENDS, "start"]),
        callback=_read_changes,
        help="Print when answers start and end, each as soon as it is certain; with `start`, only when they start.",
    ),
    click.option(
        "--dedupe",
        metavar="D",
        callback=parse_positive_length,
        help="Do not print an answer again if it comes back within D.",
    ),
    click.option("--cooldown", metavar="D", callback=parse_positive_length, help="After an answer, stay silent for D."),
    click.option(
        "--per",
        metavar="N,...",
        callback=_parse_positions,
        help="With --cooldown: silence only answers with the same Nth arguments.",
    ),
)
_DELIVERY_OPTIONS: tuple[Option, ...] = (
    click.option(
        "--notify",
        metavar="URL",
        multiple=True,
        callback=_check_addresses,
        help="POST each answer to URL as JSON, until it is accepted. May be repeated.",
    ),
    click.option(
        "--exec",
        "commands",
        metavar="CMD",
        multiple=True,
        help="Run CMD for each answer, with JSON on its standard input, until it succeeds. May be repeated.",
    ),
)
_REPORT_OPTIONS: tuple[Option, ...] = (
    click.option("--stats", metavar="FILE", help="Write one JSON object per step to FILE."),
    click.option(
        "--report", metavar="FILE", help="At the end, write a page with timelines, proofs and charts to FILE."
    ),
    ui_options,
    metrics_options,
    timeline_option,
    schema_option,
    output_format_options,
    iso_option,
)


def stream_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all options of `tidelog stream`; the command gets them in groups, as dataclasses of this module."""
    for group, parameter in (
        (StreamFiles, "files"),
        (QueryArguments, "query"),
        (RunArguments, "run"),
        (AlertArguments, "alerts"),
        (DisplayArguments, "display"),
    ):
        command = group_options(group, parameter)(command)
    alert_options = (*_ALERT_OPTIONS, *_DELIVERY_OPTIONS)
    for option in reversed((*_FILE_OPTIONS, *_QUERY_OPTIONS, *_RUN_OPTIONS, *alert_options, *_REPORT_OPTIONS)):
        command = option(command)
    return command


def check_files(files: StreamFiles, continues: bool, at: str | None = None) -> None:
    """Refuse files that cannot be used together, or not be written at the end, before any work is done."""
    from tidelog.streaming.output_time_text import find_times_file

    times = find_times_file(at)
    inputs = [*files.inputs, *([("--at", times)] if times else [])]
    require_single_stdin(*(file for _, file in inputs))
    if continues and files.state is None:
        raise click.UsageError("--continues needs --state FILE, which keeps the open intervals")
    _require_distinct_outputs(inputs, files.outputs)
    for option, file in files.outputs:
        if option in ("--state", "--report"):
            _require_writable(option, file)


def _require_distinct_outputs(inputs: list[tuple[str, str]], outputs: list[tuple[str, str]]) -> None:
    """Refuse an output file that is also used for something else."""
    seen = {
        Path(path).resolve(): option
        for option, file in inputs
        if not is_standard_input(path := file.partition("=")[2] or file)
    }
    for option, file in outputs:
        other = seen.setdefault(Path(file).resolve(), option)
        if other != option:
            raise click.UsageError(f"{option} {file}: {other} uses this file too, and it would be overwritten")


def _require_writable(option: str, file: str) -> None:
    """Refuse a file that could not be written at the end, before hours of work rather than after them."""
    folder = Path(file).resolve().parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        reason = "there is no such folder" if not folder.is_dir() else f"cannot write there: {problem.strerror}"
        raise click.UsageError(f"{option} {file}: {reason}") from None


def require_known_predicates(delay: dict[str | None, Fraction], program: Program) -> None:
    """Refuse a delay of a misspelt predicate: its facts would be late although the user allowed for that."""
    from tidelog.analysis.query_names import known_predicates
    from tidelog.errors import Diagnostic, TidelogError
    from tidelog.language.wording import suggest

    known = known_predicates(program)
    unknown = [name for name in delay if name is not None and name not in known]
    if unknown:
        raise TidelogError(
            Diagnostic(
                "TL302",
                f"--delay {name}={delay[name]}: no rule mentions {name}",
                help=f"did you mean {close}?" if (close := suggest(name, known)) else "name a predicate of the rules",
            )
            for name in unknown
        )
