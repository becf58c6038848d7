"""`tidelog stable`: stable models over the integer timeline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tidelog.cli.options import UNDECIDED, load, rules_argument, time_range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program
    from tidelog.stable.stream import StableStep
    from tidelog.timeline.interval import Time

_EXIT = {"yes": 0, "no": 1, "unknown": UNDECIDED}


@click.command(short_help="Print stable models: rules with exceptions, over the integers.")
@rules_argument
@click.argument("data", metavar="DATA...", nargs=-1)
@click.option("--models", metavar="N", type=click.IntRange(min=0), default=1, help="How many; 0 is all. Default: 1.")
@click.option(
    "--between",
    metavar="LO,HI",
    callback=time_range,
    help="Show models from LO to HI, both included, and tell them apart there. Default: the data's range.",
)
@click.option("--brave", metavar="FACT", help="Say whether FACT holds in some stable model.")
@click.option("--cautious", metavar="FACT", help="Say whether FACT holds in all stable models.")
@click.option("--input", "source", metavar="STREAM", help="Go along a stream: what holds in some and in all models.")
@click.option("--timeline", type=click.Choice(["rational", "integer"]), help="Always integer.")
@click.option("--most", metavar="W", type=click.IntRange(min=1), help="Give up after so many windows. Default: 500000.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (with --input, one a line).")
@click.option("--time", "times", type=click.Choice(["number", "iso"]), help="How times print. Default: as in the data.")
def stable(
    rules: str,
    data: tuple[str, ...],
    models: int,
    between: tuple[Time, Time] | None,
    brave: str | None,
    cautious: str | None,
    source: str | None,
    timeline: str | None,
    most: int | None,
    as_json: bool,
    times: str | None,
) -> int:
    """Print stable models of RULES and DATA over the integer timeline: the facts of each in LO..HI, and as comments
    what repeats for ever. Exit code 0 if there is a model (or yes), 1 if there is none (or no), 3 if that could not be
    decided.

    \b
    Example:
      echo 'Open :- not Shut.  Shut :- not Open.  Bottom :- Open, Storm.' > rules.dmtl
      echo 'Storm@1' | tidelog stable rules.dmtl - --models 0 --between 0,1
      echo 'Storm@1' | tidelog stable rules.dmtl - --cautious Shut@1
    """
    from tidelog.reasoning import Undecided
    from tidelog.stable.limits import MOST_WINDOWS
    from tidelog.stable.problem import refuse_rationals

    refuse_rationals(timeline)
    if sum(part is not None for part in (brave, cautious, source)) > 1:
        raise click.UsageError("give one of --brave, --cautious and --input")
    if [rules, *data, source].count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    program, dataset = load(rules, data)
    try:
        if source is not None:
            return _follow(program, dataset, source, most or MOST_WINDOWS, as_json, times)
        if brave is not None or cautious is not None:
            return _ask(program, dataset, brave, cautious, most or MOST_WINDOWS, as_json)
        return _print_models(program, dataset, models, between, most or MOST_WINDOWS, as_json, times)
    except Undecided as problem:
        click.echo(str(problem), err=True)
        if as_json:
            click.echo(json.dumps({"satisfiable": None, "models": []}))
        return UNDECIDED


def _tell(message: str) -> None:
    click.echo(f"tidelog: {message} ...", err=True)


def _ask(program: Program, data: Dataset, brave: str | None, cautious: str | None, most: int, as_json: bool) -> int:
    from tidelog.stable.answers import stable_entails

    mode, fact = ("brave", brave) if brave is not None else ("cautious", cautious)
    assert fact is not None
    answer = stable_entails(program, data, fact, mode=mode, most=most, progress=_tell).value
    click.echo(json.dumps({"fact": fact, "mode": mode, "answer": answer}, ensure_ascii=False) if as_json else answer)
    return _EXIT[answer]


def _follow(program: Program, background: Dataset, source: str, most: int, as_json: bool, times: str | None) -> int:
    """Print what is known at each time point of a stream as it comes."""
    from tidelog.stable.stream import StableReasoner
    from tidelog.streaming.reading import pieces

    reasoner = StableReasoner(program, background=background, most=most)

    def show(steps: Iterable[StableStep]) -> None:
        for step in steps:
            iso = reasoner.dates if times is None else times == "iso"
            click.echo(_step_line(step, iso) if as_json else _step_text(step, iso), nl=False)

    for piece in pieces(source):
        show(reasoner.feed(piece.data))
        if piece.error is not None:
            raise piece.error
    show(reasoner.finish())
    return 0


def _step_line(step: StableStep, iso: bool) -> str:
    from tidelog.language.facts import format_fact
    from tidelog.language.times import format_iso

    found = {
        "t": format_iso(step.t) if iso else int(step.t),
        "all": [format_fact(fact, iso) for fact in step.all],
        "some": [format_fact(fact, iso) for fact in step.some],
    }
    return json.dumps(found, ensure_ascii=False) + "\n"


def _step_text(step: StableStep, iso: bool) -> str:
    from tidelog.language.facts import format_fact

    every = set(step.all)
    return "".join(f"{'all' if fact in every else 'some'} {format_fact(fact, iso)}\n" for fact in step.some)


def _print_models(
    program: Program,
    data: Dataset,
    models: int,
    between: tuple[Time, Time] | None,
    most: int,
    as_json: bool,
    times: str | None,
) -> int:
    from tidelog.stable.answers import stable_models

    found = stable_models(program, data, models=models, between=between, most=most, progress=_tell)
    iso = None if times is None else times == "iso"
    if as_json:
        shown = [model.to_json(iso) for model in found]
        click.echo(json.dumps({"satisfiable": found.satisfiable, "models": shown}, ensure_ascii=False))
    elif found.satisfiable:
        for number, model in enumerate(found, 1):
            click.echo(f"% model {number}\n{model.text(iso)}", nl=False)
    else:
        click.echo("no stable model")
    return 0 if found.satisfiable else 1
