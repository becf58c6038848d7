"""Recursion over groups of facts that lie far apart: what happens between them is found once, not step by step.

A component whose rules look back a bounded distance, and never ahead, is determined from some time on by what holds in
one window as long as its rules' reach, and by its inputs. In a gap between two groups of facts the inputs do not
change. So as soon as two windows in it are the same, one shifted, everything between them repeats until the next group
begins: evaluation jumps there, and continues from the window before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidelog.compiler import opcodes
from tidelog.compiler.compiled_program import RuleComponent
from tidelog.compiler.flat_rules import FlatRule, Op, Pair
from tidelog.engine.batch_problem import Problem, Unsettled
from tidelog.engine.extent import Extent, Tail, guess_tails
from tidelog.engine.fact_store import AllowanceExceeded, Int64s, Rows
from tidelog.engine.maximal_intervals import coalesce
from tidelog.engine.repetition_search import SEARCH_ALLOWANCE, SEARCH_ATTEMPTS, TrialRuns, find_span
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF

#: A gap is worth a jump if it is this many times as long as the rules reach; the most jumps that are made.
LONG_GAP, MOST_JUMPS = 1 << 12, 63
#: Records that a recursion may take before jumps are tried, and four more for each fact.
FEW_RECORDS = 100_000
#: What repeats in a gap is written out if that makes no more rows than this.
MOST_ROWS = 1 << 22


@dataclass(frozen=True)
class Segment:
    """What holds from `start` to `stop`, both included; `extent` is right there."""

    start: int
    stop: int
    extents: Mapping[str, Extent]


def looks_back_only(component: RuleComponent) -> bool:
    """Return whether no rule of a component looks ahead, and none looks back without a bound."""
    return all(
        lo >= 0 and hi < LIMIT
        for rule in component.rules
        for lo, hi in (rule.range, *((-b.range[1], -b.range[0]) if b.op is Op.UNTIL else b.range for b in rule.body))
    )


def is_spread_out(components: Sequence[RuleComponent], place: int, given: Iterable[Rows]) -> bool:
    """Return whether given facts and all that the components before a place derive may have a long gap."""
    first, last = find_span(given)
    return last - first + sum(before.reach for before in components[:place]) > LONG_GAP * components[place].reach


def find_groups(rows: Iterable[Rows], component: RuleComponent) -> list[Pair]:
    """Return the first and last position of each group of ends, where long gaps lie between the groups."""
    ends = [end[(end > NEG_INF) & (end < POS_INF)] for part in rows for end in (part.lo, part.hi)]
    times: Int64s = np.unique(np.concatenate([np.empty(0, np.int64), *ends]))
    if not len(times):
        return []
    gaps = np.diff(times)
    long = np.flatnonzero(gaps > LONG_GAP * component.reach)
    last = np.sort(long[np.argsort(gaps[long], kind="stable")[-MOST_JUMPS:]])
    starts, stops = np.append(0, last + 1), np.append(last, len(times) - 1)
    return [(int(times[a]), int(times[b])) for a, b in zip(starts, stops, strict=True)]


def follow_groups(
    problem: Problem, component: RuleComponent, inputs: Mapping[str, Rows], groups: list[Pair], end: int
) -> list[Segment]:
    """Evaluate a component group by group up to `end`; raise `Unsettled` where no repetition is found in time."""
    reach, tick = component.reach, problem.compiled.grid.tick
    seeds = {name: problem.facts_of(name) for name in component.predicates}
    groups = [group for group in groups if group[0] <= end]
    found: list[Segment] = []
    allowance = SEARCH_ALLOWANCE
    for number, (first, last) in enumerate(groups):
        start = first if number else NEG_INF
        stop = groups[number + 1][0] - 1 if number + 1 < len(groups) else end
        back = start - reach - 4 * tick if number else NEG_INF
        own = {name: _near(rows, back, stop) for name, rows in seeds.items()}
        if found:
            for name, extent in found[-1].extents.items():
                before = extent.over(back, start - 1).clip(back, start - 1)
                own[name] = Rows.concatenate([own[name], before], len(before.args))
        near = {name: Extent(_near(rows, back, stop)) for name, rows in inputs.items()}
        runs = TrialRuns(problem, component, near, tick, allowance, _cut_both_ends)
        found.append(Segment(start, stop, _follow(runs, own, start, last, stop)))
        allowance -= runs.taken
    return found


def _cut_both_ends(_rule: FlatRule) -> int:
    return opcodes.CUT_LEFT | opcodes.CUT_RIGHT


def _near(rows: Rows, back: int, stop: int) -> Rows:
    """Return the rows that matter between two positions."""
    return rows.where((rows.hi >= back) & (rows.lo <= stop))


def _follow(runs: TrialRuns, own: dict[str, Rows], start: int, last: int, stop: int) -> dict[str, Extent]:
    """Return what holds from `start` to `stop`, where inputs change only up to `last`."""
    reach, tick = runs.component.reach, runs.step
    room = 16 * (reach + tick)
    known: dict[str, Rows] = {}
    try:
        for _ in range(SEARCH_ATTEMPTS):
            end = min(stop, last + room)
            if end > LIMIT or runs.taken > runs.allowance:
                break
            known = runs.run(start, end, own)
            if end == stop:
                return {name: Extent(rows) for name, rows in known.items()}
            first = last + reach + tick
            for tail in guess_tails(list(known.values()), first, end, tick, reach):
                if all(_repeats(rows, tail, reach) for rows in known.values()):
                    return {name: _continue(rows, tail) for name, rows in known.items()}
            room *= 4
    except AllowanceExceeded:
        pass
    raise Unsettled(runs.component.predicates, known)


def _repeats(rows: Rows, tail: Tail, reach: int) -> bool:
    """Return whether a window as long as the rules' reach is the same one period later."""
    one = rows.clip(tail.at, tail.at + reach)
    other = rows.clip(tail.at + tail.every, tail.at + tail.every + reach)
    return len(one) == len(other) and bool(
        (one.args == other.args).all()
        and (one.lo + tail.every == other.lo).all()
        and (one.hi + tail.every == other.hi).all()
    )


def _continue(rows: Rows, tail: Tail) -> Extent:
    """Return the extent of rows that repeat; an atom that holds throughout a period holds for ever."""
    last = tail.at + tail.every - 1
    rows = rows.clip(NEG_INF, last)
    endless = (rows.lo <= tail.at) & (rows.hi == last)
    repeating = bool(((rows.hi >= tail.at) & ~endless).any())
    return Extent(Rows(rows.args, rows.lo, np.where(endless, POS_INF, rows.hi)), None, tail if repeating else None)


def join_segments(segments: list[Segment], span: Pair = (NEG_INF, POS_INF)) -> dict[str, Extent] | None:
    """Return what holds within a span as one extent for each predicate; None if that would be too many rows."""
    lo, hi = span
    near = [segment for segment in segments if segment.start <= hi and segment.stop >= lo]
    joined: dict[str, Extent] = {}
    count = 0
    for name in segments[0].extents:
        parts: list[Rows] = []
        right: Tail | None = None
        for segment in near:
            extent, first, last = segment.extents[name], max(lo, segment.start), min(hi, segment.stop)
            right = extent.right if last == POS_INF else None
            if last < POS_INF:
                count += extent.size(first, last)
                if count > MOST_ROWS:
                    return None
            parts.append((extent.over(first, last) if last < POS_INF else extent.rows).clip(first, last))
        arity = len(segments[0].extents[name].rows.args)
        joined[name] = Extent(coalesce(Rows.concatenate(parts, arity)) if parts else Rows.empty(arity), None, right)
    return joined
