"""Aggregators: one behaviour at a time. `tests/property/test_aggregation.py` compares them with the definitions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tidelog.data.symbol_table import Symbols
from tidelog.errors import TidelogError
from tidelog.language.fact_text import parse_fact
from tidelog.language.syntax import AggregateFunction as Function
from tidelog.language.syntax import Value
from tidelog.numeric.aggregation import AggregationPlan, Aggregator
from tidelog.numeric.durations import DurationAggregator, DurationPlan
from tidelog.numeric.number_kernels import compare_constants, compare_products
from tidelog.numeric.numbers import LARGE, Numbers
from tidelog.numeric.refinement import FinerGridNeeded
from tidelog.numeric.rows import Rows
from tidelog.timeline.grid import POS_INF, Grid

RATIONAL, INTEGER = Grid(True), Grid(False)


def read_rows(symbols: Symbols, facts: str, arity: int, grid: Grid = RATIONAL) -> Rows:
    """Read facts, one per word, as rows; the predicate does not matter."""
    args, ends = [], []
    for text in facts.split():
        fact, _ = parse_fact(text)
        pair = grid.to_pair(fact.interval)
        assert pair is not None
        args.append([symbols.intern(value) for value in fact.args])
        ends.append(pair)
    columns = np.array(args, np.int32).reshape(-1, arity).T
    lo, hi = np.array(ends, np.int64).reshape(-1, 2).T
    return Rows(columns.copy(), lo.copy(), hi.copy())


def write_rows(symbols: Symbols, rows: Rows, grid: Grid = RATIONAL) -> list[str]:
    """Write rows as facts of R, sorted by their arguments and by time."""
    found = []
    for i in range(len(rows)):
        values = ",".join(str(symbols.value(int(id))) for id in rows.args[:, i])
        found.append((values, int(rows.lo[i]), int(rows.hi[i])))
    return [f"R({values})@{grid.to_interval(lo, hi)}" for values, lo, hi in sorted(found)]


def window(text: str, grid: Grid = RATIONAL) -> tuple[int, int]:
    """Read a range as a pair on the grid."""
    pair = grid.to_pair(parse_fact(f"P@{text}")[0].interval)
    assert pair is not None
    return pair


def aggregate(plan: AggregationPlan, facts: str, grid: Grid = RATIONAL) -> list[str]:
    """Aggregate all facts at once."""
    numbers = Numbers(Symbols())
    found = Aggregator(plan, numbers).advance(read_rows(numbers.symbols, facts, plan.arity, grid), POS_INF)
    return write_rows(numbers.symbols, found, grid)


# Numbers


def test_numbers_are_decoded_when_the_dictionary_grows() -> None:
    symbols = Symbols()
    ids = [symbols.intern(value) for value in ("a", Fraction(5), Fraction(-7, 3))]
    numbers = Numbers(symbols)
    assert numbers.numerators(np.array(ids)).tolist() == [0, 5, -7]
    more = symbols.intern(Fraction(1, 8))
    assert numbers.denominators(np.array([*ids, more])).tolist() == [0, 1, 3, 8]


def test_numbers_beyond_62_bits_are_marked() -> None:
    symbols = Symbols()
    numbers = Numbers(symbols)
    ids = np.array([symbols.intern(value) for value in (Fraction(10**20), Fraction(1, 10**20), Fraction(10**18))])
    assert numbers.denominators(ids).tolist() == [LARGE, LARGE, 1]
    assert numbers.is_number(ids).all()
    assert numbers.numerators(ids)[2] == 10**18


def test_interned_numbers_have_canonical_texts() -> None:
    symbols = Symbols()
    numbers = Numbers(symbols)
    known = symbols.intern(Fraction(-1, 2))
    tops = np.array([3, -3, 0, 2**62 - 1, -(2**62) + 1, 10**6])
    bottoms = np.array([6, 6, 7, 2, 2**61, 10**6])
    ids = numbers.intern(tops, bottoms)
    assert ids[1] == known
    assert [symbols.value(int(id)) for id in ids] == [
        Fraction(int(top), int(bottom)) for top, bottom in zip(tops, bottoms, strict=True)
    ]
    for shared in (1, 4, 100):
        cents = numbers.intern(tops, shared)
        assert [symbols.value(int(id)) for id in cents] == [Fraction(int(top), shared) for top in tops]
        assert numbers.intern(tops, shared).tolist() == cents.tolist()


def test_products_are_compared_in_128_bits() -> None:
    big = 2**62 - 1
    for a, b, c, d in ((big, big, big, big - 1), (big, big - 1, big - 1, big), (-big, big, -big, 3), (-1, 1, 1, big)):
        product = a * b - c * d
        assert compare_products(a, b, c, d) == (product > 0) - (product < 0)


def test_constants_are_ordered_as_comparisons_order_them() -> None:
    values: list[Value] = [Fraction(-1), Fraction(1, 3), Fraction(34, 100), Fraction(2), "", "B", "a", "ab", "é"]
    symbols = Symbols()
    ids = [symbols.intern(value) for value in values]
    numbers = Numbers(symbols)
    for larger in ((), (Fraction(10**30),)):
        ids += [symbols.intern(value) for value in larger]
        constants, ranks = numbers.constants(), symbols.ranks()
        for a in ids:
            for b in ids:
                found = int(compare_constants(constants, a, b))
                assert (found > 0) - (found < 0) == np.sign(ranks[a] - ranks[b])


# At a point in time


def test_a_count_is_a_step_function_with_exact_ends() -> None:
    plan = AggregationPlan(Function.COUNT, 2, 1)
    assert aggregate(plan, "P(r,a)@[0,5) P(r,b)@(3,7] P(r,c)@5 P(s,a)@[1,2]") == [
        "R(r,1)@[0,3]",
        "R(r,1)@(5,7]",
        "R(r,2)@(3,5]",
        "R(s,1)@[1,2]",
    ]


def test_facts_without_beginning_or_end_count() -> None:
    plan = AggregationPlan(Function.COUNT, 1, 0)
    assert aggregate(plan, "P(a)@(-inf,2] P(b)@[0,inf)") == ["R(1)@(-inf,0)", "R(1)@(2,inf)", "R(2)@[0,2]"]


def test_sums_are_exact_and_skip_what_is_no_number() -> None:
    plan = AggregationPlan(Function.SUM, 2, 1, (1,))
    assert aggregate(plan, "P(g,0.1)@[0,2] P(g,0.2)@[1,3] P(g,x)@[0,9] P(h,y)@0") == [
        "R(g,0)@(3,9]",
        "R(g,1/10)@[0,1)",
        "R(g,1/5)@(2,3]",
        "R(g,3/10)@[1,2]",
        "R(h,0)@0",
    ]
    averages = AggregationPlan(Function.AVG, 2, 1, (1,))
    assert aggregate(averages, "P(g,1)@[0,2] P(g,2)@[1,3] P(g,x)@[0,9] P(h,y)@0") == [
        "R(g,1)@[0,1)",
        "R(g,2)@(2,3]",
        "R(g,3/2)@[1,2]",
    ]


def test_skipped_rows_are_counted_once_however_they_are_cut() -> None:
    numbers = Numbers(Symbols())
    aggregator = Aggregator(AggregationPlan(Function.SUM, 2, 1, (1,)), numbers)
    aggregator.advance(read_rows(numbers.symbols, "P(g,x)@[0,2] P(g,y)@1 P(g,3)@1", 2), 4)
    aggregator.advance(read_rows(numbers.symbols, "P(g,x)@(2,5]", 2), 20)
    assert aggregator.skipped == 2


def test_distinct_values_are_united_before_they_are_added() -> None:
    plan = AggregationPlan(Function.SUM, 2, 0, (1,), distinct=True)
    assert aggregate(plan, "P(a,5)@[0,3] P(b,5)@(3,6] P(c,2)@[2,4]") == ["R(5)@[0,2)", "R(5)@(4,6]", "R(7)@[2,4]"]


def test_the_least_value_returns_when_a_smaller_one_ends() -> None:
    least, greatest = (AggregationPlan(function, 1, 0, (0,)) for function in (Function.MIN, Function.MAX))
    facts = "P(3)@[0,9] P(1)@[2,4] P(2)@[3,5] P(x)@[8,10]"
    assert aggregate(least, facts) == ["R(1)@[2,4]", "R(2)@(4,5]", "R(3)@[0,2)", "R(3)@(5,9]", "R(x)@(9,10]"]
    assert aggregate(greatest, facts) == ["R(3)@[0,8)", "R(x)@[8,10]"]


def test_a_start_is_that_of_the_group_and_needs_a_beginning() -> None:
    plan = AggregationPlan(Function.START, 2, 1)
    assert aggregate(plan, "P(g,a)@[1,3] P(g,b)@(3,5) P(g,a)@(7,8] P(h,a)@(-inf,2]") == ["R(g,1)@[1,5)", "R(g,7)@(7,8]"]


# Over a window


def test_both_ends_of_a_closed_window_count() -> None:
    facts = "P(g,1)@0 P(g,2)@5"
    closed, half_open = (AggregationPlan(Function.COUNT, 2, 1, range=window(text)) for text in ("[0,5]", "(0,5]"))
    assert aggregate(closed, facts) == ["R(g,1)@[0,5)", "R(g,1)@(5,10]", "R(g,2)@5"]
    assert aggregate(half_open, facts) == ["R(g,1)@(0,10]"]


def test_an_open_start_counts_right_after_it_whatever_the_brackets() -> None:
    for text in ("[0,2]", "(0,2]", "[0,2)", "(0,2)"):
        plan = AggregationPlan(Function.COUNT, 1, 0, range=window(text))
        assert aggregate(plan, "P(a)@(3,4]") == ["R(1)@(3,5]"]


def test_equal_events_at_different_times_are_two_and_touching_pieces_are_one() -> None:
    plan = AggregationPlan(Function.COUNT, 1, 1, range=window("[0,10]"))
    assert aggregate(plan, "P(d)@0 P(d)@2") == ["R(d,1)@[0,2)", "R(d,1)@(10,12]", "R(d,2)@[2,10]"]
    assert aggregate(plan, "P(d)@(0,2) P(d)@2 P(d)@0") == ["R(d,1)@[0,10]"]
    integer = AggregationPlan(Function.COUNT, 1, 1, range=window("[0,10]", INTEGER), dense=False)
    assert aggregate(integer, "P(d)@0 P(d)@1 P(d)@3", INTEGER) == ["R(d,1)@[0,2]", "R(d,1)@[11,13]", "R(d,2)@[3,10]"]


def test_what_has_always_held_is_in_no_window() -> None:
    plan = AggregationPlan(Function.COUNT, 1, 1, range=window("[0,inf)"))
    assert aggregate(plan, "P(d)@(-inf,3]") == []


def test_a_range_without_points_of_the_timeline_sees_nothing() -> None:
    plan = AggregationPlan(Function.COUNT, 1, 1, range=(1, 0), dense=False)
    assert aggregate(plan, "P(d)@3", INTEGER) == []


def test_the_last_value_is_held_and_the_previous_one_is_remembered() -> None:
    facts = "P(t,20)@1 P(t,21)@4 P(t,19)@4"
    current, previous = (
        AggregationPlan(Function.LAST, 2, 1, (1,), range=window(text)) for text in ("[0,inf)", "(0,inf)")
    )
    assert aggregate(current, facts) == ["R(t,20)@[1,4)", "R(t,21)@[4,inf)"]
    assert aggregate(previous, facts) == ["R(t,20)@(1,4]", "R(t,21)@(4,inf)"]


def test_an_open_start_is_later_than_a_closed_one() -> None:
    facts = "P(1)@[3,9] P(2)@(3,9] P(0)@[3,9]"
    first, last = (
        AggregationPlan(function, 1, 0, (0,), range=window("[0,4]")) for function in (Function.FIRST, Function.LAST)
    )
    assert aggregate(first, facts) == ["R(1)@[3,7]"]
    assert aggregate(last, facts) == ["R(1)@3", "R(2)@(3,7]"]


def test_comparisons_with_a_result_give_groups_only() -> None:
    plan = AggregationPlan(Function.COUNT, 2, 1, range=window("[0,2]"), thresholds=((">=", Fraction(5, 2)),))
    assert aggregate(plan, "P(u,1)@0 P(u,2)@1 P(u,3)@2 P(v,1)@0 P(v,2)@3") == ["R(u)@2"]
    names = AggregationPlan(Function.MAX, 1, 0, (0,), thresholds=((">", "a"),))
    assert aggregate(names, "P(b)@[0,1] P(7)@[0,5]") == ["R()@[0,1]"]


# Step by step


def test_results_change_between_arrivals() -> None:
    numbers = Numbers(Symbols())
    aggregator = Aggregator(AggregationPlan(Function.COUNT, 1, 1, range=window("[0,5]")), numbers)
    nothing = Rows.empty(1)
    assert write_rows(numbers.symbols, aggregator.advance(read_rows(numbers.symbols, "P(a)@1", 1), 6)) == [
        "R(a,1)@[1,3]"
    ]
    assert aggregator.next_change() == 2 * 6 + 1
    assert write_rows(numbers.symbols, aggregator.advance(nothing, 12)) == ["R(a,1)@(3,6]"]
    assert len(aggregator.advance(nothing, 100)) == 0
    assert aggregator.next_change() == POS_INF


def test_a_piece_may_reach_beyond_the_position_and_come_early() -> None:
    numbers = Numbers(Symbols())
    aggregator = Aggregator(AggregationPlan(Function.COUNT, 1, 0), numbers)
    rows = read_rows(numbers.symbols, "P(a)@[0,9] P(b)@[7,8]", 1)
    assert write_rows(numbers.symbols, aggregator.advance(rows, 10)) == ["R(1)@[0,5]"]
    assert aggregator.next_change() == 14
    assert write_rows(numbers.symbols, aggregator.advance(Rows.empty(1), POS_INF)) == [
        "R(1)@(5,7)",
        "R(1)@(8,9]",
        "R(2)@[7,8]",
    ]


def test_groups_without_rows_are_forgotten() -> None:
    numbers = Numbers(Symbols())
    names = numbers.intern(np.arange(50_000))
    for plan in (
        AggregationPlan(Function.SUM, 2, 1, (1,), range=(0, 20)),
        AggregationPlan(Function.COUNT, 2, 1, (1,), distinct=True, range=(0, 20)),
        AggregationPlan(Function.MAX, 2, 1, (1,)),
    ):
        aggregator = Aggregator(plan, numbers)
        for first in range(0, 50_000, 1_000):
            lo = 2 * np.arange(first, first + 1_000)
            aggregator.advance(Rows(np.array([names[first : first + 1_000]] * 2), lo, lo.copy()), int(lo[-1]))
        state = aggregator.state()
        assert sum(array.nbytes for array in state.values()) < 40_000
        assert len(aggregator._held.state.cells) < 5_000


def test_an_unbounded_last_value_keeps_one_value_per_group() -> None:
    numbers = Numbers(Symbols())
    names = numbers.intern(np.arange(10_000))
    for function in (Function.LAST, Function.FIRST, Function.MIN, Function.SUM):
        aggregator = Aggregator(AggregationPlan(function, 2, 1, (1,), range=(0, POS_INF)), numbers)
        for first in range(0, 10_000, 1_000):
            lo = 2 * np.arange(first, first + 1_000)
            args = np.array([names[np.arange(1_000) % 10], names[first : first + 1_000]])
            aggregator.advance(Rows(args, lo, lo.copy()), int(lo[-1]))
        state = aggregator.state()
        assert len(state["times"]) == 0
        assert len(state["groups"]) == 10


# Limits


def test_a_sum_beyond_63_bits_is_refused() -> None:
    big = 4 * 10**18
    plan = AggregationPlan(Function.SUM, 2, 0, (1,))
    for facts in (
        f"P(a,{big})@0 P(b,{big})@0",
        "P(a,100000000000000000000)@0",
        "P(a,1/4000000007)@0 P(b,1/4000000009)@0",
        f"P(a,1/3)@0 P(b,{big})@0",
    ):
        for function in (Function.SUM, Function.AVG):
            for range in (None, (0, 10)):
                question = AggregationPlan(function, 2, 0, (1,), range=range)
                with pytest.raises(TidelogError) as raised:
                    aggregate(question, facts)
                assert raised.value.diagnostics[0].code == "TL312"
                assert "does not fit into 63 bits" in raised.value.diagnostics[0].message
    assert aggregate(plan, f"P(a,{big})@0 P(b,-{big})@0 P(b,{big})@1") == ["R(0)@0", f"R({big})@1"]


def test_large_numbers_have_an_order() -> None:
    plan = AggregationPlan(Function.MAX, 1, 0, (0,))
    assert aggregate(plan, "P(100000000000000000000)@[0,2] P(99999999999999999999)@[1,3] P(5)@0") == [
        "R(100000000000000000000)@[0,2]",
        "R(99999999999999999999)@(2,3]",
    ]


# Durations


def compare_durations(plan: DurationPlan, facts: str, arity: int) -> list[str]:
    numbers = Numbers(Symbols())
    found = DurationAggregator(plan, numbers).advance(read_rows(numbers.symbols, facts, arity, plan.grid), POS_INF)
    return write_rows(numbers.symbols, found, plan.grid)


def test_a_duration_is_compared_at_exact_times() -> None:
    facts = "P(a)@[0,2] P(a)@(4,9) P(b)@3"
    for op, expected in (
        (">=", ["R(a)@[5,16]"]),
        (">", ["R(a)@(5,16)"]),
        ("=", ["R(a)@5", "R(a)@16"]),
        ("<", ["R(a)@[0,5)", "R(a)@(16,19)", "R(b)@[3,13]"]),
        ("!=", ["R(a)@[0,5)", "R(a)@(5,16)", "R(a)@(16,19)", "R(b)@[3,13]"]),
    ):
        assert compare_durations(DurationPlan(1, window("[0,10]"), op, Fraction(3), RATIONAL), facts, 1) == expected


def test_points_are_counted_on_the_integers() -> None:
    facts = "P(a)@[0,2] P(a)@5"
    plan = DurationPlan(1, window("[0,4]", INTEGER), ">=", Fraction(5, 2), INTEGER)
    assert compare_durations(plan, facts, 1) == ["R(a)@[2,5]"]


def test_local_variables_of_a_duration_mean_for_some_value() -> None:
    plan = DurationPlan(1, window("[0,5]"), ">=", Fraction(4), RATIONAL)
    assert compare_durations(plan, "P(a,x)@[0,3] P(a,y)@[2,4]", 2) == ["R(a)@[4,5]"]


def test_a_limit_may_differ_by_group() -> None:
    plan = DurationPlan(2, window("[0,5]"), ">=", None, RATIONAL)
    assert compare_durations(plan, "P(a,1)@[0,3] P(a,2)@[0,3] P(a,x)@[0,3]", 2) == ["R(a,1)@[1,7]", "R(a,2)@[2,6]"]


def test_a_limit_says_which_denominator_the_grid_must_have() -> None:
    numbers = Numbers(Symbols())
    rows = read_rows(numbers.symbols, "P(a,1/3)@0 P(a,3/4)@0 P(a,x)@0", 2, Grid(True, 2))
    by_group = DurationAggregator(DurationPlan(2, (0, 10), ">", None, Grid(True, 2)), numbers)
    assert by_group.find_denominator(rows) == 12
    constant = DurationAggregator(DurationPlan(2, (0, 10), ">", Fraction(1, 6), Grid(True, 4)), numbers)
    assert constant.find_denominator(rows) == 12


def test_a_duration_goes_on_once_the_grid_is_fine_enough() -> None:
    numbers = Numbers(Symbols())
    aggregator = DurationAggregator(DurationPlan(2, window("[0,5]"), ">=", None, RATIONAL), numbers)
    facts, fine = "P(a,1/3)@[0,3]", Grid(True, 3)
    with pytest.raises(FinerGridNeeded) as raised:
        aggregator.advance(read_rows(numbers.symbols, facts, 2), 2)
    assert raised.value.denominator == 3
    aggregator.refine(3)
    found = aggregator.advance(read_rows(numbers.symbols, facts, 2, fine), POS_INF)
    assert write_rows(numbers.symbols, found, fine) == ["R(a,1/3)@[1/3,23/3]"]


def test_a_duration_crosses_its_limit_when_nothing_arrives() -> None:
    numbers = Numbers(Symbols())
    aggregator = DurationAggregator(DurationPlan(1, window("[0,10]"), ">=", Fraction(3), RATIONAL), numbers)
    found = aggregator.advance(read_rows(numbers.symbols, "P(a)@[0,4]", 1), 2 * 6)
    assert write_rows(numbers.symbols, found) == ["R(a)@[3,6]"]
    assert 2 * 6 < aggregator.next_change() <= 2 * 11 + 1
    found = aggregator.advance(Rows.empty(1), POS_INF)
    assert write_rows(numbers.symbols, found) == ["R(a)@(6,11]"]


def test_what_has_always_held_fills_the_window() -> None:
    plan = DurationPlan(1, window("[1,5]"), ">=", Fraction(4), RATIONAL)
    assert compare_durations(plan, "P(a)@(-inf,3]", 1) == ["R(a)@(-inf,4]"]
