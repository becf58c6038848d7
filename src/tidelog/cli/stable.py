"""`tidelog stable`: print stable models over the integer timeline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import click

from tidelog.cli.bad_rows import bad_rows_option, open_bad_rows
from tidelog.cli.options import (
    ANSWER_EXIT_CODES,
    UNDECIDED,
    format_option,
    group_options,
    iso_option,
    output_option,
    parse_time_range,
    require_single_stdin,
    rules_argument,
    strict_option,
)
from tidelog.cli.program_input import load_program_and_data
from tidelog.cli.schema_option import current_schema, schema_option
from tidelog.cli.warning_output import show_warnings
from tidelog.timeline.interval import TimelineName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidelog.cli.fact_output import FactOutput
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program
    from tidelog.stable.consequences import Consequences
    from tidelog.stable.models import StableModels
    from tidelog.stable.session import StableAnswers
    from tidelog.timeline.interval import Time


@dataclass(frozen=True)
class StableQuestion:
    """What is asked: stable models, a fact or a predicate in some or in all of them, or answers along a stream."""

    models: int
    between: tuple[Time, Time] | None
    brave: str | None
    cautious: str | None
    source: str | None
    weights: tuple[str, ...]


@dataclass(frozen=True)
class DisplayArguments:
    """How answers are printed."""

    as_json: bool
    iso: bool | None
    form: str | None
    file: str | None

    @property
    def is_table(self) -> bool:
        """Whether facts are printed as rows, instead of models as text or as one JSON object."""
        return not self.as_json and self.output.form != "text"

    @property
    def output(self) -> FactOutput:
        from tidelog.cli.fact_output import choose_output

        return choose_output(self.form, False, self.file)


@click.command(short_help="Print stable models: rules with exceptions, over the integers.")
@rules_argument
@click.argument("data", metavar="DATA...", nargs=-1)
@click.option("--models", metavar="N", type=click.IntRange(min=0), default=1, help="How many; 0 means all. Default: 1.")
@click.option(
    "--between",
    metavar="LO,HI",
    callback=parse_time_range,
    help="Print and distinguish models from LO to HI, both included. Default: the data's range.",
)
@click.option(
    "--brave",
    metavar="FACT|P",
    help="Say whether FACT holds in some stable model; for a predicate, print its facts that do.",
)
@click.option(
    "--cautious",
    metavar="FACT|P",
    help="Say whether FACT holds in all stable models; for a predicate, print its facts that do.",
)
@click.option(
    "--optimise",
    "weights",
    metavar="P[=W]",
    multiple=True,
    help="Find models of least cost: P, or the facts that match P, cost W (default 1) at every time. May be repeated.",
)
@click.option("--input", "source", metavar="STREAM", help="Follow a stream: what holds in some and in all models.")
@click.option("--timeline", type=click.Choice(["rational", "integer"]), help="Always integer.")
@click.option("--most", metavar="W", type=click.IntRange(min=1), help="Give up after W windows. Default: 500000.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (with --input, one per line).")
@format_option
@output_option
@iso_option
@bad_rows_option
@strict_option
@schema_option
@group_options(StableQuestion, "question")
@group_options(DisplayArguments, "display")
def stable(
    rules: str,
    data: tuple[str, ...],
    question: StableQuestion,
    timeline: TimelineName | None,
    most: int | None,
    display: DisplayArguments,
    strict: bool,
) -> int:
    """Print stable models of RULES and DATA over the integer timeline: the facts of each in LO..HI, and as comments
    the facts that repeat for ever. Exit code 0 if there is a model (or yes), 1 if there is none (or no), 3 if that
    could not be decided.

    \b
    Example:
      echo 'Open :- not Shut.  Shut :- not Open.  Bottom :- Open, Storm.' > rules.dmtl
      echo 'Storm@1' | tidelog stable rules.dmtl - --models 0 --between 0,1
      echo 'Storm@1' | tidelog stable rules.dmtl - --cautious Shut@1
    """
    from tidelog.analysis.program_warnings import find_data_warnings
    from tidelog.errors import Undecided
    from tidelog.stable.problem import require_integer_timeline
    from tidelog.stable.search_limits import MOST_WINDOWS

    require_integer_timeline(timeline)
    if sum(part is not None for part in (question.brave, question.cautious, question.source)) > 1:
        raise click.UsageError("give only one of --brave, --cautious and --input")
    if question.weights and (question.brave or question.cautious or question.source):
        raise click.UsageError("--optimise compares models, and has no --brave, --cautious and --input")
    if display.as_json and (display.form or display.file):
        raise click.UsageError("--json prints one object, and has no --format and no --output")
    require_single_stdin(rules, *data, question.source)
    program, dataset = load_program_and_data(rules, data, strict=strict, complete=question.source is None)
    try:
        if question.source is not None:
            predicates = {name for name, _ in dataset.relations}
            shown = set(find_data_warnings(program, predicates, complete=False))
            code = _follow_stream(program, dataset, question.source, most or MOST_WINDOWS, display, predicates)
            show_warnings((w for w in find_data_warnings(program, predicates) if w not in shown), strict)
            return code
        if question.brave is not None or question.cautious is not None:
            return _print_answer(program, dataset, question, most or MOST_WINDOWS, display)
        return _print_models(program, dataset, question, most or MOST_WINDOWS, display)
    except Undecided as problem:
        click.echo(str(problem), err=True)
        if display.as_json:
            click.echo(json.dumps({"satisfiable": None, "models": []}))
        return UNDECIDED


def _print_progress(message: str) -> None:
    click.echo(f"tidelog: {message} ...", err=True)


def _print_answer(
    program: Program, data: Dataset, question: StableQuestion, most: int, display: DisplayArguments
) -> int:
    from tidelog.stable.consequences import is_fact_pattern
    from tidelog.stable.entailment import stable_entails

    brave = question.brave is not None
    mode, fact = ("brave", question.brave) if brave else ("cautious", question.cautious)
    assert fact is not None
    if is_fact_pattern(program, fact, question.between is not None):
        return _print_consequences(program, data, question, most, display)
    if display.form or display.file:
        raise click.UsageError(
            "--brave and --cautious print yes or no for a fact, and have no --format and no --output"
        )
    show_warnings(program.find_question_warnings(fact), strict=False)
    answer = stable_entails(program, data, fact, mode=mode, most=most, progress=_print_progress).value
    click.echo(
        json.dumps({"fact": fact, "mode": mode, "answer": answer}, ensure_ascii=False) if display.as_json else answer
    )
    return ANSWER_EXIT_CODES[answer]


def _print_consequences(
    program: Program, data: Dataset, question: StableQuestion, most: int, display: DisplayArguments
) -> int:
    """Print the facts of a predicate that hold in some or in all models."""
    from tidelog.cli.labelled_facts import LabelledFact, render_labelled
    from tidelog.language.fact_text import format_fact
    from tidelog.stable.consequences import stable_consequences

    mode: Literal["brave", "cautious"] = "brave" if question.brave is not None else "cautious"
    pattern = question.brave or question.cautious or ""
    found = stable_consequences(
        program, data, pattern, mode=mode, between=question.between, most=most, progress=_print_progress
    )
    iso = data.dates if display.iso is None else display.iso
    if display.as_json:
        facts = [format_fact(fact, iso) for fact in found.facts]
        shown = {"pattern": pattern, "mode": mode, "satisfiable": found.satisfiable, "facts": facts}
        click.echo(json.dumps(shown, ensure_ascii=False))
    elif not found.satisfiable:
        click.echo("no stable model", err=True)
    elif display.is_table:
        rows = [LabelledFact("some" if mode == "brave" else "all", fact) for fact in found.facts]
        display.output.write(render_labelled(rows, "models", display.output.form, iso))
    else:
        display.output.write("".join(format_fact(fact, iso) + "\n" for fact in found.facts).encode())
    if question.between is None and found.satisfiable and not display.as_json:
        _print_default_range(found, iso)
    return 0 if found.facts else 1


def _follow_stream(
    program: Program, background: Dataset, source: str, most: int, display: DisplayArguments, predicates: set[str]
) -> int:
    """Read a stream, and print for each time point what holds in all and in some models.

    The predicates of its facts are added to `predicates`.
    """
    from tidelog.cli.labelled_facts import LabelledFact, render_labelled
    from tidelog.language.fact_text import format_fact
    from tidelog.stable.session import StableReasoner
    from tidelog.streaming.stream_reader import read_pieces

    reasoner = StableReasoner(program, background=background, most=most)
    rows: list[LabelledFact] = []

    def show(steps: Iterable[StableAnswers]) -> None:
        for step in steps:
            iso = reasoner.dates if display.iso is None else display.iso
            if display.is_table or display.file:
                every = set(step.all)
                rows.extend(LabelledFact("all" if fact in every else "some", fact) for fact in step.some)
                continue
            click.echo(_format_json(step, iso) if display.as_json else _format_text(step, iso), nl=False)

    for piece in read_pieces(source, None, open_bad_rows(), current_schema(program.source)):
        predicates |= {name for name, _ in piece.data.relations}
        show(reasoner.feed(piece.data))
        if piece.error is not None:
            raise piece.error
    show(reasoner.finish_points())
    iso = reasoner.dates if display.iso is None else display.iso
    if display.is_table:
        display.output.write(render_labelled(rows, "models", display.output.form, iso))
    elif display.file:
        display.output.write("".join(f"{row.label} {format_fact(row.fact, iso)}\n" for row in rows).encode())
    return 0


def _format_json(step: StableAnswers, iso: bool) -> str:
    from tidelog.language.fact_text import format_fact
    from tidelog.language.time_text import format_iso

    point = {
        "t": format_iso(step.time) if iso else int(step.time),
        "all": [format_fact(fact, iso) for fact in step.all],
        "some": [format_fact(fact, iso) for fact in step.some],
    }
    return json.dumps(point, ensure_ascii=False) + "\n"


def _format_text(step: StableAnswers, iso: bool) -> str:
    from tidelog.language.fact_text import format_fact

    every = set(step.all)
    return "".join(f"{'all' if fact in every else 'some'} {format_fact(fact, iso)}\n" for fact in step.some)


def _print_models(
    program: Program, data: Dataset, question: StableQuestion, most: int, display: DisplayArguments
) -> int:
    from tidelog.cli.labelled_facts import LabelledFact, render_labelled
    from tidelog.language.fact_text import format_value
    from tidelog.stable.models import stable_models

    models = stable_models(
        program,
        data,
        models=question.models,
        between=question.between,
        most=most,
        progress=_print_progress,
        weights=question.weights or None,
    )
    if display.as_json:
        objects = [model.to_json(display.iso) for model in models]
        default_range = {"between": [models.lo, models.hi]} if question.between is None else {}
        shown = {"satisfiable": models.satisfiable, "models": objects, **default_range}
        click.echo(json.dumps(shown, ensure_ascii=False))
    elif display.is_table:
        iso = data.dates if display.iso is None else display.iso
        rows = [LabelledFact(n, fact) for n, model in enumerate(models, 1) for fact in model.facts]
        rows += [LabelledFact(n, r.fact, r) for n, model in enumerate(models, 1) for r in model.repeats]
        rows.sort(key=lambda row: row.label)
        display.output.write(render_labelled(rows, "model", display.output.form, iso))
        if question.between is None and models.satisfiable:
            _print_default_range(models, iso)
    elif models.satisfiable:
        texts = (
            f"% model {number}{'' if model.cost is None else f', cost {format_value(model.cost)}'}\n"
            f"{model.text(display.iso)}"
            for number, model in enumerate(models, 1)
        )
        display.output.write("".join(texts).encode())
        if question.between is None:
            _print_default_range(models, data.dates if display.iso is None else display.iso)
    else:
        click.echo("no stable model")
    return 0 if models.satisfiable else 1


def _print_default_range(models: StableModels | Consequences, iso: bool) -> None:
    """Say on standard error that models are printed only in the range of the data, since a model has no end."""
    from tidelog.language.time_text import format_iso

    lo, hi = (format_iso(Fraction(end)) if iso else str(end) for end in (models.lo, models.hi))
    click.echo(f"% facts from {lo} to {hi}, the range of the data; --between LO,HI prints another range", err=True)
