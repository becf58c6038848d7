"""Read the facts that users pass to a session: with each push, or as background."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tidelog.data.dataset import Dataset
from tidelog.errors import TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import Interval, Time


def load_background(program: Program, background: Dataset | None) -> Dataset:
    """Return the facts that are known before the stream begins: the background and the program's own facts."""
    data = background or Dataset()
    if program.facts:
        data = data | Dataset.from_facts(program.facts)
    return read_time_arguments(program, data)


def read_time_arguments(program: Program, data: Dataset) -> Dataset:
    """Read the time of facts from where the program has it: in temporal Datalog, from the last argument."""
    return data.with_time_arguments(program.temporal.temporal) if program.temporal else data


def read_facts(program: Program, facts: Sequence[str | Fact], clock: Time) -> Dataset:
    """Read facts given as text or objects; texts without a time hold at the time of the clock."""
    texts = [fact for fact in facts if isinstance(fact, str)]
    if len(texts) == len(facts) and program.temporal is None and not isinstance(clock, float):
        text = "\n".join(texts)
        with suppress(TidelogError):  # errors are raised below, with the fact that they are in
            data = Dataset.parse(text)
            if len(data) == len(texts) and text.count("\n") == max(len(texts) - 1, 0):
                return data.with_background_at(clock)
    read = [_read(program, fact, clock) for fact in facts]
    data = Dataset.from_facts(fact for fact, _ in read)
    data.dates = any(dated for _, dated in read)
    return data


def _read(program: Program, fact: str | Fact, clock: Time) -> tuple[Fact, bool]:
    """Return a fact, and whether its time was written as a date."""
    if isinstance(fact, Fact):
        return fact, False
    temporal = program.temporal.temporal if program.temporal else frozenset()
    read, dated = parse_fact(fact, "<fact>", temporal=temporal)
    if read.interval == Interval.always() and not isinstance(clock, float):
        return Fact(read.predicate, read.args, Interval.point(clock)), dated
    return read, dated
