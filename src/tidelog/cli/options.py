"""Arguments and options that several commands share."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.errors import TidelogError
    from tidelog.language.program import Program
    from tidelog.timeline.interval import Time

#: The exit code where an answer exists that could not be found.
UNDECIDED = 3

rules_argument = click.argument("rules", metavar="RULES")
data_argument = click.argument("data", metavar="DATA...", nargs=-1, required=True)
timeline_option = click.option(
    "--timeline",
    type=click.Choice(["rational", "integer"]),
    help="The time points. Default: rational; integer for .tdl files.",
)


def load(rules: str, data: Sequence[str]) -> tuple[Program, Dataset]:
    """The program and the data of a reasoning command; at most one of all files may be standard input."""
    from tidelog.data.dataset import Dataset
    from tidelog.language.program import Program

    if [rules, *data].count("-") > 1:
        raise click.UsageError("standard input (-) can be read only once")
    program, dataset = Program.load(rules), Dataset.load(*data)
    for note in mistaken(program, {name for name, _ in dataset.relations}):
        click.echo(note, err=True)
    return program, dataset


def mistaken(program: Program, given: set[str]) -> Iterator[str]:
    """Predicates of data that no rule reads, and whose name is almost that of one that rules read in vain."""
    from tidelog.analysis.components import head_atom
    from tidelog.language.codes import suggest
    from tidelog.language.safety import rule_atoms

    derived = {head.predicate for rule in program.rules if (head := head_atom(rule))}
    read = {atom.predicate for rule in program.rules for atom in rule_atoms(rule)} - derived
    lacking = read - given - {fact.predicate for fact in program.facts}
    for name in sorted(given - read - derived):
        meant = suggest(name, lacking)
        if meant:
            yield f"note: no rule reads {name}, and there are no facts of {meant}; did you mean {meant}?"


def length(value: str) -> Fraction:
    """A length of time: a number or a duration."""
    from tidelog.language.times import read_number

    found = read_number(value.strip(), units=True)
    if found is None or found < 0:
        raise click.BadParameter(f"{value!r} is not a length of time, like 5, 1/2, 500ms, 10min or 2h")
    return found


def length_option(context: click.Context, option: click.Parameter, value: str | None) -> Fraction | None:
    """A length of time greater than 0."""
    found = None if value is None else length(value)
    if found == 0:
        raise click.BadParameter(f"0 is no {option.name}")
    return found


def not_a_time(problem: TidelogError) -> str:
    """What is wrong with a time, and the forms that times have."""
    found = problem.diagnostics[0]
    return f"{found.message}; {found.law}" if found.law else found.message


def time_range(context: click.Context, option: click.Parameter, value: str | None) -> tuple[Time, Time] | None:
    """`LO,HI`: two times as facts have them (numbers, fractions, dates), or -inf and inf."""
    from tidelog.errors import TidelogError
    from tidelog.language.facts import parse_time

    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if len(parts) != 2:
        raise click.BadParameter(f"{value!r} is not two times with a comma between them, like 0,10 or -inf,5")
    try:
        lo, hi = (parse_time(part)[0] for part in parts)
    except TidelogError as problem:
        raise click.BadParameter(f"{value!r}: {not_a_time(problem)}") from None
    if lo > hi:
        raise click.BadParameter(f"{value!r} ends before it begins")
    return lo, hi


def write_out(text: bytes) -> None:
    """All of it to standard output, which may write less than it is given where it is unbuffered (python -u)."""
    rest = memoryview(text)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]


@contextmanager
def killable() -> Iterator[None]:
    """Lets Ctrl-C end the process at once inside: compiled code would not notice an exception before its end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
