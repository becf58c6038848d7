"""Read the facts that users push into a session."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.data.data_frames import FactsLike, read_frames
from tidelog.data.dataset import Dataset, list_facts
from tidelog.errors import TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import Interval, Time


def read_facts(program: Program, pushed: FactsLike, clock: Time) -> Dataset:
    """Read facts given as text, as objects, as a dataset or as dataframes. A single text has a fact per line.

    Texts and dataframes without a time hold at the time of the clock.
    """
    if isinstance(pushed, Dataset):
        return read_time_arguments(program, pushed)
    if isinstance(pushed, Mapping):
        data = read_time_arguments(program, read_frames(pushed))
        return data if isinstance(clock, float) else data.with_background_at(clock)
    facts = pushed.splitlines() if isinstance(pushed, str) else list_facts(pushed)
    texts = [fact for fact in facts if isinstance(fact, str)]
    if len(texts) == len(facts) and program.temporal is None and not isinstance(clock, float):
        text = "\n".join(texts)
        with suppress(TidelogError):  # errors are raised below, with the fact that they are in
            data = Dataset.parse(text)
            if len(data) == len(texts) and text.count("\n") == max(len(texts) - 1, 0):
                return data.with_background_at(clock)
    read = [read_fact(program, fact, clock) for fact in facts]
    data = Dataset.from_facts(fact for fact, _ in read)
    data.dates = any(dated for _, dated in read)
    return data


def read_fact(program: Program, fact: str | Fact, clock: Time) -> tuple[Fact, bool]:
    """Return a fact, and whether its time was written as a date; a text without a time holds at that of the clock."""
    if isinstance(fact, Fact):
        return fact, False
    temporal = program.temporal.temporal if program.temporal else frozenset()
    read, dated = parse_fact(fact, "<fact>", temporal=temporal, deletions=True)
    if read.interval == Interval.always() and not isinstance(clock, float):
        return Fact(read.predicate, read.args, Interval.point(clock)), dated
    return read, dated
