"""Facts as users give them: one by one while a stream goes on, or before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tidelog.data.dataset import Dataset
from tidelog.errors import TidelogError
from tidelog.language.facts import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import Interval, Time


def known(program: Program, background: Dataset | None) -> Dataset:
    """What is known before the stream begins: the background, and the facts of the program itself."""
    data = background or Dataset()
    if program.facts:
        data = data | Dataset.from_facts(program.facts)
    return timed(program, data)


def timed(program: Program, data: Dataset) -> Dataset:
    """Facts whose time is where the program has it: in temporal Datalog, in the last argument."""
    return data.timed(program.temporal.temporal) if program.temporal else data


def gathered(program: Program, facts: Sequence[str | Fact], clock: Time) -> Dataset:
    """Facts that were given one by one; those without a time hold at the clock's."""
    texts = [fact for fact in facts if isinstance(fact, str)]
    if len(texts) == len(facts) and program.temporal is None and not isinstance(clock, float):
        text = "\n".join(texts)
        with suppress(TidelogError):  # what is wrong is said below, of the fact that it is wrong with
            data = Dataset.parse(text)
            if len(data) == len(texts) and text.count("\n") == max(len(texts) - 1, 0):
                return data.at(clock)
    read = [_read(program, fact, clock) for fact in facts]
    data = Dataset.from_facts(fact for fact, _ in read)
    data.dates = any(dated for _, dated in read)
    return data


def _read(program: Program, fact: str | Fact, clock: Time) -> tuple[Fact, bool]:
    """A fact, and whether its time was written as a date."""
    if isinstance(fact, Fact):
        return fact, False
    temporal = program.temporal.temporal if program.temporal else frozenset()
    read, dated = parse_fact(fact, "<fact>", temporal=temporal)
    if read.interval == Interval.always() and not isinstance(clock, float):
        return Fact(read.predicate, read.args, Interval.point(clock)), dated
    return read, dated
