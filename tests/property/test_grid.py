"""Interval operations on the grid, judged by their pointwise definitions on a finer sampling of the line.

Ends are whole ticks and ranges at most a few ticks long, so a sampling inside a window that is larger than all of
them decides every operation.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.errors import TidelogError
from tidelog.timeline import grid
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid
from tidelog.timeline.interval import INF, Interval

DENSE, WHOLE = Grid(True), Grid(False)
SIZE = 3


@st.composite
def intervals(draw: st.DrawFn, low: int = -SIZE, infinite: bool = True) -> Interval:
    lo, hi = sorted((draw(st.integers(low, SIZE)), draw(st.integers(low, SIZE))))
    left, right = draw(st.booleans()) or lo == hi, draw(st.booleans()) or lo == hi
    ends: list[Fraction | float] = [Fraction(lo), Fraction(hi)]
    if infinite and low < 0 and draw(st.integers(0, 9)) == 0:
        ends[0], left = -INF, False
    if infinite and draw(st.integers(0, 9)) == 0:
        ends[1], right = INF, False
    return Interval(ends[0], ends[1], left, right)


def holds(interval: Interval, t: Fraction) -> bool:
    above = interval.lo < t or (interval.lo == t and interval.lo_closed)
    below = t < interval.hi or (t == interval.hi and interval.hi_closed)
    return above and below


def samples(timeline: Grid, reach: int = 3 * SIZE, step: int = 4) -> list[Fraction]:
    """Points all over a window around the intervals. Ends are whole, so halves stand for all times, quarters for
    what may happen between them, and eighths for what may happen between these."""
    step = step if timeline.dense else 1
    return [Fraction(n, step) for n in range(-reach * step, reach * step + 1)]


def result(timeline: Grid, lo: int, hi: int) -> Interval | None:
    return timeline.to_interval(lo, hi) if lo <= hi else None


@pytest.mark.parametrize("timeline", [DENSE, WHOLE])
@given(interval=intervals())
def test_an_interval_on_the_grid_has_the_same_points(timeline: Grid, interval: Interval) -> None:
    pair = timeline.to_pair(interval)
    back = timeline.to_interval(*pair) if pair else None
    for t in samples(timeline):
        assert holds(interval, t) == (back is not None and holds(back, t))


@pytest.mark.parametrize("timeline", [DENSE, WHOLE])
@given(interval=intervals(), back=intervals(low=0), future=st.booleans())
def test_a_diamond_is_the_sum(timeline: Grid, interval: Interval, back: Interval, future: bool) -> None:
    a, r = timeline.to_pair(interval), timeline.to_pair(back)
    if a is None or r is None:
        return
    r = grid.negate(r) if future else r
    found = result(timeline, *grid.add_pairs(a, r, timeline.dense))
    points = samples(timeline, 8 * SIZE)
    true = [p for p in points if holds(interval, p)]
    sign = -1 if future else 1
    for t in samples(timeline, 2 * SIZE, 2):
        expected = any(holds(back, sign * (t - p)) for p in true)
        assert expected == (found is not None and holds(found, t)), t


@pytest.mark.parametrize("timeline", [DENSE, WHOLE])
@given(interval=intervals(), back=intervals(low=0), future=st.booleans())
def test_a_box_is_the_erosion(timeline: Grid, interval: Interval, back: Interval, future: bool) -> None:
    a, r = timeline.to_pair(interval), timeline.to_pair(back)
    if a is None or r is None:
        return
    r = grid.negate(r) if future else r
    lo = grid.erode_left(a[0], r[1], timeline.dense)
    hi = grid.erode_right(a[1], r[0], timeline.dense)
    found = result(timeline, lo, hi)
    sign = -1 if future else 1
    distances = [d for d in samples(timeline, 8 * SIZE) if holds(back, d)]
    for t in samples(timeline, 2 * SIZE, 2):
        expected = all(holds(interval, t - sign * d) for d in distances)
        assert expected == (found is not None and holds(found, t)), t


@pytest.mark.parametrize("timeline", [DENSE, WHOLE])
@given(a=intervals(), b=intervals(), back=intervals(low=0), future=st.booleans())
def test_since_and_until_follow_their_definition(
    timeline: Grid, a: Interval, b: Interval, back: Interval, future: bool
) -> None:
    pairs = [timeline.to_pair(a), timeline.to_pair(b), timeline.to_pair(back)]
    if None in pairs:
        return
    (a_lo, a_hi), (b_lo, b_hi), (r_lo, r_hi) = (pair for pair in pairs if pair is not None)
    operation = grid.until if future else grid.since
    found = result(timeline, *operation(a_lo, a_hi, b_lo, b_hi, r_lo, r_hi, timeline.dense))
    points = samples(timeline, 4 * SIZE)
    gaps = [p for p in samples(timeline, 4 * SIZE, 8) if not holds(a, p)]
    rights = [p for p in points if holds(b, p)]
    for t in samples(timeline, 2 * SIZE, 2):
        expected = False
        for other in rights:
            distance = other - t if future else t - other
            if distance <= 0 or not holds(back, distance):
                continue
            if bisect_right(gaps, min(t, other)) == bisect_left(gaps, max(t, other)):
                expected = True
                break
        # On the integers nothing lies between neighbours, so there the right operand is enough.
        alone = not timeline.dense and holds(back, Fraction(1)) and holds(b, t + 1 if future else t - 1)
        assert expected == (alone or (found is not None and holds(found, t))), t


@pytest.mark.parametrize(
    ("interval", "by", "expected"),
    [("(0,10)", "(2,4)", "[4,12]"), ("[0,10]", "(2,4)", "[4,12]"), ("(0,10]", "[2,4]", "(4,12]")],
)
def test_brackets_of_erosion(interval: str, by: str, expected: str) -> None:
    def read(text: str) -> Interval:
        lo, hi = text[1:-1].split(",")
        return Interval(Fraction(lo), Fraction(hi), text[0] == "[", text[-1] == "]")

    (lo, hi), (r_lo, r_hi) = DENSE.to_pair(read(interval)), DENSE.to_pair(read(by))  # type: ignore[misc]
    found = DENSE.to_interval(grid.erode_left(lo, r_hi, True), grid.erode_right(hi, r_lo, True))
    assert str(found) == expected


def test_a_box_over_all_the_past_needs_all_the_past() -> None:
    assert grid.erode_left(0, POS_INF, True) > POS_INF
    assert grid.erode_left(NEG_INF, POS_INF, True) == NEG_INF


def test_a_time_beyond_63_bits_is_refused() -> None:
    with pytest.raises(TidelogError, match="63 bits"):
        DENSE.to_pair(Interval.point(Fraction(1 << 61)))
