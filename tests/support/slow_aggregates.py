"""Aggregates by their definitions: at one position at a time, from all rows. Shares nothing with the aggregators.

Times are in ticks. On the dense grid position p stands for time p/2: odd positions are the middle of a gap, in which
nothing begins or ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import Interval

Value = str | Fraction
Row = tuple[Value, ...]
#: The maximal intervals of rows, as closed pairs of positions.
Intervals = dict[Row, list[tuple[int, int]]]


@dataclass(frozen=True)
class Question:
    """An aggregate; the range is in ticks."""

    function: str
    group: int
    values: tuple[int, ...] = ()
    distinct: bool = False
    range: Interval | None = None
    dense: bool = True
    denominator: int = 1
    thresholds: tuple[tuple[str, Value], ...] = ()


def merge(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the maximal intervals of a union."""
    result: list[tuple[int, int]] = []
    for lo, hi in sorted(pairs):
        if result and lo <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(hi, result[-1][1]))
        else:
            result.append((lo, hi))
    return result


def order_key(value: Value) -> tuple[int, Fraction, str]:
    return (0, value, "") if isinstance(value, Fraction) else (1, Fraction(0), value)


def holds(op: str, left: Value, right: Value) -> bool:
    a, b = order_key(left), order_key(right)
    return {"<": a < b, "<=": a <= b, "=": a == b, "!=": a != b, ">=": a >= b, ">": a > b}[op]


def evaluate(question: Question, rows: Intervals, at: int) -> dict[Row, Value | None]:
    """Return the value of each group that has one at a position; None stands for `some` and for comparisons."""
    members: dict[Row, list[Row]] = {}
    for row in rows:
        members.setdefault(row[: question.group], []).append(row)
    found: dict[Row, Value | None] = {}
    for group, mine in members.items():
        value = _evaluate_group(question, {row: rows[row] for row in mine}, at)
        if value is None or not all(holds(op, value, bound) for op, bound in question.thresholds):
            continue
        found[group] = None if question.thresholds or question.function == "some" else value
    return found


def _evaluate_group(question: Question, rows: Intervals, at: int) -> Value | None:
    function = question.function
    if function == "start":
        return _start(question, rows, at)
    if question.range is None:
        present = [(row, (0, 0)) for row in rows if any(lo <= at <= hi for lo, hi in rows[row])]
    else:
        present = _occurrences(question, rows, at)
    if not present:
        return None
    if function == "some":
        return Fraction(1)
    if function == "count" and not question.distinct:
        return Fraction(len(present))
    values = [tuple(row[column] for column in question.values) for row, _ in present]
    if question.distinct:
        values = list(dict.fromkeys(values))
    if function == "count":
        return Fraction(len(values))
    if function in ("sum", "avg"):
        numbers = [value[0] for value in values if isinstance(value[0], Fraction)]
        if function == "sum":
            return sum(numbers, Fraction(0))
        return sum(numbers, Fraction(0)) / len(numbers) if numbers else None
    if function in ("min", "max"):
        return (min if function == "min" else max)((value[0] for value in values), key=order_key)
    starts = [(start, row[question.values[0]]) for row, start in present]
    chosen = (max if function == "last" else min)(start for start, _ in starts)
    return max((value for start, value in starts if start == chosen), key=order_key)


def to_time(question: Question, at: int) -> Fraction:
    return Fraction(at, 2) if question.dense else Fraction(at)


def _occurrences(question: Question, rows: Intervals, at: int) -> list[tuple[Row, tuple[int, int]]]:
    """Return the occurrences in the window, each with its row and its start: the time, and 1 if it is open."""
    window, t = question.range, to_time(question, at)
    assert window is not None
    found = []
    for row, intervals in rows.items():
        for lo, _ in intervals:
            if lo == NEG_INF:
                continue
            start = lo // 2 if question.dense else lo
            is_open = question.dense and lo % 2 == 1
            if start + window.lo < t <= start + window.hi if is_open else _contains(window, t - start):
                found.append((row, (start, int(is_open))))
    return found


def _contains(window: Interval, distance: Fraction) -> bool:
    after = distance >= window.lo if window.lo_closed else distance > window.lo
    return after and (distance <= window.hi if window.hi_closed else distance < window.hi)


def _start(question: Question, rows: Intervals, at: int) -> Value | None:
    for lo, hi in merge(pair for pairs in rows.values() for pair in pairs):
        if lo <= at <= hi:
            return None if lo == NEG_INF else Fraction(lo // 2 if question.dense else lo, question.denominator)
    return None


def measure(question: Question, rows: Intervals, at: int) -> dict[Row, Fraction]:
    """Return how long each group holds in the window (in ticks), for groups that hold anywhere in it."""
    groups: dict[Row, list[tuple[int, int]]] = {}
    for row, pairs in rows.items():
        groups.setdefault(row[: question.group], []).extend(pairs)
    window, t = question.range, to_time(question, at)
    assert window is not None
    assert not isinstance(window.lo, float)
    assert not isinstance(window.hi, float)
    found = {}
    for group, pairs in groups.items():
        total, exists = Fraction(0), False
        for lo, hi in merge(pairs):
            if question.dense:
                left = max(_left_end(lo), (t - window.hi, not window.hi_closed))
                right = min(_right_end(hi), (t - window.lo, window.lo_closed))
                exists = exists or left[0] < right[0] or (left[0] == right[0] and not left[1] and right[1])
                total += max(Fraction(0), right[0] - left[0])
            else:
                points = [p for p in _points(window, t) if lo <= p <= hi]
                total, exists = total + len(points), exists or bool(points)
        if exists:
            found[group] = total
    return found


def _left_end(lo: int) -> tuple[Fraction, bool]:
    """Return a left end as its time and whether it is open, so that the later one is greater."""
    return Fraction(max(lo, -(10**9)) // 2), lo % 2 == 1


def _right_end(hi: int) -> tuple[Fraction, bool]:
    """Return a right end as its time and whether it is closed, so that the earlier one is smaller."""
    return Fraction((min(hi, 10**9) + 1) // 2), hi % 2 == 0


def _points(window: Interval, t: Fraction) -> Iterable[int]:
    assert not isinstance(window.lo, float)
    assert not isinstance(window.hi, float)
    return [p for p in range(int(t - window.hi) - 2, int(t - window.lo) + 3) if _contains(window, t - p)]
