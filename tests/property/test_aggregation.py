"""Aggregators against the definitions: random rows in random pieces, moving forward in random steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from random import Random

import numpy as np
import pytest

from slow_aggregates import Intervals, Question, Row, Value, evaluate, holds, measure, merge
from tidelog.data.symbol_table import Symbols
from tidelog.language.syntax import AggregateFunction
from tidelog.numeric import aggregation, contributions, durations
from tidelog.numeric.aggregation import AggregationPlan, Aggregator
from tidelog.numeric.durations import DurationAggregator, DurationPlan
from tidelog.numeric.numbers import Numbers
from tidelog.numeric.refinement import refine_left, refine_right
from tidelog.numeric.rows import Rows
from tidelog.numeric.sorted_runs import MAX_RUNS, find_first_run, pop_first, push_sorted
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Interval

NUMBERS: list[Value] = [Fraction(n) for n in (-3, 0, 1, 2, 5)]
FRACTIONS: list[Value] = [Fraction(1, 2), Fraction(-1, 3), Fraction(7, 6), Fraction(9, 100)]
GROUPS: list[Value] = ["g", "h", Fraction(7)]
TEXTS: list[Value] = ["", "a", "ab", "b", "é", "abcdefghijklmnopqrst"]
LARGE: list[Value] = [Fraction(10**30), Fraction(-(10**30), 7), Fraction(1, 10**25)]
FUNCTIONS = ["count", "sum", "avg", "min", "max", "last", "first", "start", "some"]
#: Positions that stand for the beginning and the end of time.
FAR = 10**7


@dataclass
class Scene:
    """Rows as pieces, each with the call in which it arrives, and the position that each call moves to."""

    question: Question
    rows: Intervals
    pieces: list[tuple[int, Row, int, int]]
    untils: list[int]

    def refine(self, factor: int) -> Scene:
        question = self.question
        window = question.range
        if window is not None:
            window = replace(window, lo=window.lo * factor, hi=window.hi * factor)
        return Scene(
            replace(question, range=window, denominator=question.denominator * factor),
            {
                row: [(refine_left(lo, factor), refine_right(hi, factor)) for lo, hi in pairs]
                for row, pairs in self.rows.items()
            },
            [(call, row, refine_left(lo, factor), refine_right(hi, factor)) for call, row, lo, hi in self.pieces],
            [refine_right(until, factor) for until in self.untils],
        )


def draw_range(random: Random, dense: bool, bounded: bool = False) -> Interval:
    a = random.choice([0, 0, 0, 1, 2, 5])
    if not bounded and random.random() < 0.3:
        return Interval(Fraction(a), INF, random.random() < 0.6, False)
    b = a + random.choice([0, 1, 2, 3, 8, 20])
    lo_closed, hi_closed = random.random() < 0.6, random.random() < 0.6
    if a == b or (not dense and b - a == 1):
        lo_closed = hi_closed = True
    return Interval(Fraction(a), Fraction(b), lo_closed, hi_closed)


def draw_values(random: Random) -> list[Value]:
    values = list(NUMBERS)
    if random.random() < 0.5:
        values += FRACTIONS
    if random.random() < 0.3:
        values += TEXTS
    return values


def draw_rows(random: Random, width: int, dense: bool, values: list[Value]) -> Intervals:
    """Draw rows of group, local and value columns; times are short, so that much happens at the same time."""
    span = random.choice([6, 20, 60])
    rows: Intervals = {}
    for _ in range(random.choice([1, 3, 10, 30])):
        names = [random.choice(GROUPS) for _ in range(width)]
        row = (*names, Fraction(random.randrange(random.choice([1, 2, 40]))), random.choice(values))
        pairs = rows.setdefault(row, [])
        for _ in range(random.choice([1, 1, 2, 5])):
            lo = random.randrange(-4, span)
            hi = lo + random.choice([0, 0, 0, 1, 2, 3, 10])
            if dense and random.random() < 0.5:
                lo, hi = 2 * (lo // 2), 2 * (hi // 2)
            if random.random() < 0.05:
                lo = NEG_INF
            if random.random() < 0.05:
                hi = POS_INF
            pairs.append((lo, hi))
        rows[row] = merge(pairs)
    return rows


def draw_scene(random: Random, question: Question, rows: Intervals) -> Scene:
    """Cut the rows into pieces, which arrive when they begin or earlier."""
    untils = sorted(random.randrange(-6, 70) for _ in range(random.choice([0, 1, 3, 10])))
    if random.random() < 0.2:
        untils.insert(0, NEG_INF)
    untils.append(random.choice([70, POS_INF]))
    pieces = []
    for row, pairs in rows.items():
        for lo, hi in pairs:
            cuts = sorted(random.randrange(-5, 70) for _ in range(random.choice([0, 0, 1, 4])))
            cuts += untils if random.random() < 0.3 else []
            begin = lo
            for cut in (*sorted(set(cuts)), POS_INF + 1):
                if begin <= min(cut, hi):
                    call = next(number for number, until in enumerate(untils) if until >= min(begin, untils[-1]))
                    if random.random() < 0.1:
                        call = random.randrange(call + 1)
                    pieces.append((call, row, begin, min(cut, hi)))
                    begin = cut + 1
    random.shuffle(pieces)
    return Scene(question, rows, pieces, untils)


def draw_question(random: Random, function: str, dense: bool, values: list[Value]) -> tuple[Question, int]:
    """Draw a question and the number of columns of its group."""
    width = random.choice([0, 1, 1, 2])
    window = None
    if function in ("last", "first") or (function != "start" and random.random() < 0.6):
        window = draw_range(random, dense)
    distinct = function in ("count", "sum", "avg") and random.random() < 0.4
    columns: tuple[int, ...] = (width + 1,)
    if function == "count":
        columns = random.choice([(width + 1,), (width, width + 1)]) if distinct else ()
    if function in ("some", "start"):
        columns = ()
    thresholds: list[tuple[str, Value]] = []
    if function != "some" and random.random() < 0.3:
        ops = ["<", "<=", "=", "!=", ">=", ">"]
        bounds = [*values, Fraction(5, 2), "a"]
        thresholds = [(random.choice(ops), random.choice(bounds)) for _ in range(random.choice([1, 1, 2]))]
    return Question(function, width, columns, distinct, window, dense, 1, tuple(thresholds)), width


def make_plan(question: Question, arity: int) -> AggregationPlan:
    function = question.function
    grid = Grid(question.dense)
    return AggregationPlan(
        "some" if function == "some" else AggregateFunction(function),
        arity,
        question.group,
        question.values,
        question.distinct,
        grid.to_pair(question.range) if question.range is not None else None,
        question.dense,
        question.denominator,
        question.thresholds,
    )


def to_rows(symbols: Symbols, pieces: list[tuple[int, Row, int, int]], arity: int) -> Rows:
    if not pieces:
        return Rows.empty(arity)
    args = np.array([[symbols.intern(value) for value in row] for _, row, _, _ in pieces], np.int32).T
    return Rows(args, np.array([lo for *_, lo, _ in pieces], np.int64), np.array([hi for *_, hi in pieces], np.int64))


Results = list[tuple[Row, int, int]]


Make = Callable[[Scene, Numbers], Aggregator | DurationAggregator]


def make_aggregator(scene: Scene, numbers: Numbers) -> Aggregator:
    return Aggregator(make_plan(scene.question, scene.question.group + 2), numbers)


def run(random: Random, scene: Scene, make: Make = make_aggregator) -> tuple[Scene, Results, int]:
    """Run an aggregator over a scene, saved, renumbered and refined at random moments.

    Return the scene on its final grid, the results, and how many rows were left out.
    """
    with pytest.MonkeyPatch.context() as patch:
        if random.random() < 0.7:  # small data come to the limits of small tables
            for module in (contributions, durations):
                patch.setattr(module, "_FEW", random.choice([2, 4, 16]))
                patch.setattr(module, "_MANY_GROUPS", random.choice([0, 3]))
            for operator in (aggregation, durations):
                patch.setattr(operator, "_MORE_RESULTS", 4)
        return _run(random, scene, make)


def _run(random: Random, scene: Scene, make: Make) -> tuple[Scene, Results, int]:
    arity = scene.question.group + 2
    numbers = Numbers(Symbols())
    aggregator = make(scene, numbers)
    results: Results = []
    previous = NEG_INF - 1
    for call in range(len(scene.untils)):
        until = scene.untils[call]
        mine = [piece for piece in scene.pieces if piece[0] == call]
        due = aggregator.next_change()
        rows = aggregator.advance(to_rows(numbers.symbols, mine, arity), until)
        found = read_results(numbers.symbols, rows)
        check_range(found, previous, until)
        if not mine and due > until:
            assert all(lo == previous + 1 and hi == until for _, lo, hi in found), "nothing changes before it is due"
        results += found
        previous = until
        action = random.choice(["", "", "save", "renumber", "refine"])
        if action == "save":
            numbers.constants()
            other = make(scene, numbers)
            other.restore(aggregator.state())
            aggregator = other
        elif action == "renumber":
            forget_names(random, numbers, aggregator)
        elif action == "refine" and scene.question.dense and scene.question.denominator < 7:
            factor = random.choice([2, 3])
            aggregator.refine(factor)
            scene = scene.refine(factor)
            results = [(row, refine_left(lo, factor), refine_right(hi, factor)) for row, lo, hi in results]
            previous = refine_right(previous, factor)
    return scene, results, aggregator.skipped


def forget_names(random: Random, numbers: Numbers, aggregator: Aggregator | DurationAggregator) -> None:
    """Keep only the constants that are in use, in another order."""
    used = np.zeros(len(numbers.symbols), np.bool_)
    aggregator.mark_constants(used)
    kept = np.flatnonzero(used)
    symbols = Symbols()
    symbols.intern(f"new {random.random()}")
    ids = symbols.merge(numbers.symbols, kept[::-1].copy())
    ids[~used] = np.iinfo(np.int32).max
    numbers.replace(symbols)
    aggregator.renumber(ids)


def read_results(symbols: Symbols, rows: Rows) -> Results:
    columns = [tuple(symbols.value(int(id)) for id in rows.args[:, i]) for i in range(len(rows))]
    return list(zip(columns, rows.lo.tolist(), rows.hi.tolist(), strict=True))


def check_range(found: Results, previous: int, until: int) -> None:
    """Results lie between the last two positions, and are maximal there."""
    by_row: dict[Row, list[tuple[int, int]]] = {}
    for row, lo, hi in found:
        assert previous < lo <= hi <= until
        by_row.setdefault(row, []).append((lo, hi))
    for row, pairs in by_row.items():
        assert merge(pairs) == sorted(pairs), row


def check(scene: Scene, results: Results) -> None:
    """Compare results with the definitions, at every position."""
    last = scene.untils[-1]
    ends = [end for pairs in scene.rows.values() for pair in pairs for end in pair if abs(end) < POS_INF]
    reach = 60 * scene.question.denominator
    positions = [-FAR * 2, *range(min(ends, default=0) - 3, max(ends, default=0) + reach), FAR * 2]
    for at in (at for at in positions if at <= last):
        expected = [
            (*group, value) if value is not None else group
            for group, value in evaluate(scene.question, scene.rows, at).items()
        ]
        found = [row for row, lo, hi in results if lo <= at <= hi]
        assert Counter(found) == Counter(expected), at


@pytest.mark.slow
@pytest.mark.parametrize("dense", [True, False], ids=["rational", "integer"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_aggregates_are_those_of_the_definition(function: str, dense: bool) -> None:
    for seed in range(30):
        random = Random(f"{function} {dense} {seed}")
        values = draw_values(random)
        question, width = draw_question(random, function, dense, values)
        if function in ("min", "max", "last", "first") and random.random() < 0.2:
            values = values + LARGE
        scene = draw_scene(random, question, draw_rows(random, width, dense, values))
        try:
            check(*run(random, scene)[:2])
        except BaseException:
            print("seed", seed, question)
            raise


def test_all_rows_at_once_give_the_same_as_many_steps() -> None:
    for seed in range(40):
        random = Random(f"at once {seed}")
        function = random.choice(FUNCTIONS)
        values = draw_values(random)
        question, width = draw_question(random, function, True, values)
        rows = draw_rows(random, width, True, values)
        scene = draw_scene(random, question, rows)
        whole = Scene(question, rows, [(0, row, lo, hi) for _, row, lo, hi in scene.pieces], [POS_INF])
        check(*run(random, whole)[:2])


def test_rows_that_are_left_out_of_a_sum_are_counted_once_each() -> None:
    for seed in range(40):
        random = Random(f"skipped {seed}")
        dense = random.random() < 0.5
        function = random.choice(["sum", "avg"])
        values = NUMBERS[:2] + TEXTS
        question, width = draw_question(random, function, dense, values)
        scene = draw_scene(random, question, draw_rows(random, width, dense, values))
        scene, _, skipped = run(random, scene)
        intervals = [pair for row, pairs in scene.rows.items() if isinstance(row[-1], str) for pair in pairs]
        begun = [lo for lo, _ in intervals if lo <= scene.untils[-1]]
        if question.range is not None:
            begun = [lo for lo in begun if lo != NEG_INF]
        assert skipped == len(begun)


def test_rows_leave_the_queue_in_the_order_of_their_ends() -> None:
    for seed in range(200):
        random = Random(f"queue {seed}")
        held: list[tuple[int, int]] = []
        entries, scratch = np.empty((64, 2), np.int64), np.empty((64, 2), np.int64)
        runs, count = np.zeros((MAX_RUNS, 2), np.int64), 0
        times = np.empty(1000, np.int64)
        for place in range(0, 1000, 10):
            new = [place + i for i in range(random.choice([1, 1, 2, 5, 9])) if len(held) + i < 60]
            times[new] = sorted(random.choice([place, 0]) + random.randrange(1000) for _ in new)
            if random.random() < 0.1 and new:
                times[new[-1]] = POS_INF
            count = int(push_sorted(entries, runs, count, times, np.array(new, np.int64), 0, scratch))
            held += [(int(times[i]), i) for i in new if times[i] < POS_INF]
            assert int((runs[:count, 1] - runs[:count, 0]).sum()) == len(held)
            for _ in range(random.randrange(10) if held else 0):
                first = int(find_first_run(entries, runs, count))
                if first < 0:
                    break
                end, chosen = entries[runs[first, 0]].tolist()
                assert end == min(held)[0]
                held.remove((end, chosen))
                count = int(pop_first(runs, count, first))
        assert count <= 8


# Durations


def draw_duration(random: Random, dense: bool) -> tuple[Scene, DurationPlan]:
    """Draw a comparison; with a limit per group, that is the last column of the group."""
    width = random.choice([0, 1, 2])
    window = draw_range(random, dense, bounded=True)
    question = Question("duration", width, range=window, dense=dense)
    limits = [Fraction(n) for n in (-1, 0, 0, 1, 2, 3, 5, 8, 21)] + ([] if dense else [Fraction(5, 2)])
    op = random.choice([None, "<", "<=", "=", "!=", ">=", ">"])
    rows = draw_rows(random, width, dense, NUMBERS)
    limit = None if width and random.random() < 0.4 else random.choice(limits)
    if limit is None:
        bounds: list[Value] = [*limits, "a"]
        rows = {(*row[: width - 1], random.choice(bounds), *row[width:]): rows[row] for row in rows}
    pair = Grid(dense).to_pair(window)
    assert pair is not None
    return draw_scene(random, question, rows), DurationPlan(width, pair, op, limit, Grid(dense))


def check_durations(scene: Scene, plan: DurationPlan, results: Results) -> None:
    last = scene.untils[-1]
    ends = [end for pairs in scene.rows.values() for pair in pairs for end in pair if abs(end) < POS_INF]
    reach = 60 * scene.question.denominator
    positions = [-FAR, *range(min(ends, default=0) - 3, max(ends, default=0) + reach), FAR]
    for at in (at for at in positions if at <= last):
        expected = []
        for group, ticks in measure(scene.question, scene.rows, at).items():
            limit = plan.limit if plan.limit is not None else group[-1] if plan.op else ticks
            if plan.op is None or holds(plan.op, ticks / scene.question.denominator, limit):
                expected.append(group)
        found = [row for row, lo, hi in results if lo <= at <= hi]
        assert Counter(found) == Counter(expected), at


@pytest.mark.slow
@pytest.mark.parametrize("dense", [True, False], ids=["rational", "integer"])
def test_durations_are_those_of_the_definition(dense: bool) -> None:
    for seed in range(80):
        random = Random(f"duration {dense} {seed}")
        scene, plan = draw_duration(random, dense)
        try:
            final, results, _ = run(random, scene, partial(make_durations, plan))
            check_durations(final, plan, results)
        except BaseException:
            print("seed", seed, plan)
            raise


def make_durations(plan: DurationPlan, scene: Scene, numbers: Numbers) -> DurationAggregator:
    window = scene.question.range
    assert window is not None
    pair = Grid(plan.grid.dense).to_pair(window)
    assert pair is not None
    return DurationAggregator(
        replace(plan, range=pair, grid=Grid(plan.grid.dense, scene.question.denominator)), numbers
    )
