"""A program and its data on the integer timeline, ready for the search for stable models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np

from tidelog.analysis.flatten import ALWAYS, FlatRule, flatten
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.reasoning import arities_of, on_timeline, refuse_arities, rule_ranges
from tidelog.stable.grounding import Ground
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import Interval, Time

Pair = tuple[int, int]

GRID = Grid(dense=False)

_INTEGERS = "stable models are over the integer timeline: all times and ranges are integers"


@dataclass(frozen=True, slots=True)
class Problem:
    """Flat rules, and when each atom of the data holds: maximal intervals in order of time."""

    program: Program
    data: Dataset
    rules: tuple[FlatRule, ...]
    facts: dict[Ground, tuple[Pair, ...]]

    def range(self) -> Pair:
        """From the least to the greatest time in the data; 0 to 0 where there is none."""
        ends = [end for pairs in self.facts.values() for pair in pairs for end in pair if end not in (NEG_INF, POS_INF)]
        return (min(ends), max(ends)) if ends else (0, 0)


def prepared(program: Program, data: Dataset, fact: Fact | None = None) -> Problem:
    """The problem, if all of it is on the integers."""
    if program.facts:
        data = data | Dataset.from_facts(program.facts)
    data = checked(program, data, fact)
    return Problem(program, data, flatten(program.rules, GRID), facts_of(data))


def checked(program: Program, data: Dataset, fact: Fact | None = None) -> Dataset:
    """The data as the program reads it, if it fits, and all of both is on the integers."""
    if program.temporal is not None:
        data = data.timed(program.temporal.temporal)
    refuse_arities(dict(arities_of(program)), data, fact)
    _refuse_fractions(program, data)
    return data


def refuse_rationals(timeline: str | None) -> None:
    if timeline not in (None, "integer"):
        raise TidelogError(
            Diagnostic(
                "TL321",
                "stable models cannot be computed over the rational timeline",
                law="over the rationals it is undecidable whether a program with negation has a stable model, "
                "even if its rules only look back",
                help="use the integers: leave --timeline out, and choose a unit of time that makes all times integers",
            )
        )


def facts_of(data: Dataset) -> dict[Ground, tuple[Pair, ...]]:
    """When each atom of the data holds, on the integers."""
    found: dict[Ground, list[Pair]] = {(ALWAYS, ()): [(NEG_INF, POS_INF)]}
    for (predicate, _), relation in data.relations.items():
        lo, hi = on_timeline(relation.lo, relation.hi, dense=False)
        kept = lo <= hi
        order = np.argsort(lo[kept], kind="stable")
        columns = [column[kept][order].tolist() for column in relation.args]
        rows = zip(*columns, strict=True) if columns else ((),) * len(order)
        pairs = zip(lo[kept][order].tolist(), hi[kept][order].tolist(), strict=True)
        for args, pair in zip(rows, pairs, strict=True):
            found.setdefault((predicate, args), []).append(pair)
    return {atom: coalesced(pairs) for atom, pairs in found.items()}


def coalesced(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Maximal intervals of sorted ones; neighbours on the integers touch."""
    found: list[Pair] = []
    for lo, hi in pairs:
        if found and lo <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], hi)
        else:
            found.append((lo, hi))
    return tuple(found)


def refuse_endless(problem: Problem, mirrored: bool) -> None:
    """Timed facts begin at some time (for a program that only looks ahead: they end)."""
    wrong = []
    for (predicate, args), pairs in problem.facts.items():
        for lo, hi in pairs:
            if (hi == POS_INF and lo != NEG_INF) if mirrored else (lo == NEG_INF and hi != POS_INF):
                values = tuple(problem.data.symbols.value(a) for a in args)
                shown = format_fact(Fact(predicate, values, GRID.interval(lo, hi)), problem.data.dates)
                wrong.append(_endless(shown, mirrored))
    if wrong:
        raise TidelogError(wrong[:20])


def _endless(shown: str, mirrored: bool) -> Diagnostic:
    if mirrored:
        return Diagnostic(
            "TL322",
            f"the timed fact {shown} goes on to inf",
            law="where rules only look ahead, timed facts must end at some time",
            help="give it an end, or leave out the time of a fact that always holds",
        )
    return Diagnostic(
        "TL322",
        f"the timed fact {shown} holds from -inf on",
        law="stable models need timed facts that begin at some time; facts without a time hold always",
        help="give it a beginning, or leave out the time of a fact that always holds",
    )


def _refuse_fractions(program: Program, data: Dataset) -> None:
    wrong = [
        Diagnostic(
            "TL325",
            f"the range {interval.bracketed()} has an end that is no integer",
            rule.place,
            law=_INTEGERS,
            help="choose a smaller unit of time",
        )
        for rule in program.rules
        for interval in rule_ranges(rule)
        if any(_broken(end) for end in (interval.lo, interval.hi))
    ]
    if data.denominator != 1:
        broken = next(fact for fact in data if _broken(fact.interval.lo) or _broken(fact.interval.hi))
        wrong.append(
            Diagnostic(
                "TL325",
                f"the fact {format_fact(broken)} has a time that is no integer",
                law=_INTEGERS,
                help="choose a smaller unit of time",
            )
        )
    if wrong:
        raise TidelogError(wrong)


def _broken(end: Time) -> bool:
    return isinstance(end, Fraction) and end.denominator != 1


def stretch(lo: Time, hi: Time) -> Pair:
    """A stretch of time, closed, on the integers."""
    if isinstance(lo, float) or isinstance(hi, float):
        raise TidelogError(
            Diagnostic(
                "TL305",
                "models are shown on a stretch of time that has a beginning and an end",
                help="give --between two finite times; what comes before and after is told by what repeats",
            )
        )
    if ceil(lo) > floor(hi):
        raise TidelogError(Diagnostic("TL305", "the stretch asked for is empty", help="write the earlier time first"))
    return ceil(lo), floor(hi)


def pair_of(interval: Interval) -> Pair | None:
    """An interval on the integers; None where there is no integer in it."""
    return GRID.pair(interval)
