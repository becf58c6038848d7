"""Extents: when the atoms of a predicate hold, for all time.

A finite list of intervals is enough until something repeats for ever. Then the rows cover the time up to one period
beyond `right.at`, and from there on everything repeats; likewise to the left. Positions are grid positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidelog.engine.fact_store import Rows
from tidelog.engine.maximal_intervals import coalesce
from tidelog.timeline.grid import NEG_INF, POS_INF


@dataclass(frozen=True, slots=True)
class Tail:
    """To the right: an atom holds at t >= at exactly if it holds at t + every. To the left, mirrored."""

    at: int
    every: int


@dataclass(frozen=True, slots=True)
class Extent:
    """Rows (maximal intervals) and the tails that repeat; where there is a tail, the rows reach one period into it."""

    rows: Rows
    left: Tail | None = None
    right: Tail | None = None

    def over(self, lo: int, hi: int) -> Rows:
        """Return rows that are right on [lo,hi]: tails unrolled as far as needed, infinite ends left infinite."""
        parts = [self.rows]
        if self.right is not None:
            at, every = self.right.at, self.right.every
            window = _drop_endless(self.rows).clip(at, at + every - 1)
            parts += _make_copies(window, every, (lo - at) // every, (hi - at) // every)
        if self.left is not None:
            at, every = self.left.at, self.left.every
            window = _drop_endless(self.rows).clip(at - every + 1, at)
            parts += _make_copies(window, -every, (at - hi) // every, (at - lo) // every)
        return sort_by_time(Rows.concatenate(parts, self.rows.args.shape[0])) if len(parts) > 1 else self.rows

    def size(self, lo: int, hi: int) -> int:
        """Return a bound on the number of rows that `over` gives, without making them."""
        count = len(self.rows)
        if self.right is not None:
            at, every = self.right.at, self.right.every
            copies = (hi - at) // every - max(0, (lo - at) // every - 1)
            count += max(0, copies) * len(self.rows.clip(at, at + every - 1))
        if self.left is not None:
            at, every = self.left.at, self.left.every
            copies = (at - lo) // every - max(0, (at - hi) // every - 1)
            count += max(0, copies) * len(self.rows.clip(at - every + 1, at))
        return count

    def widen(self, lo: int, hi: int) -> tuple[int, int]:
        """Return a range with which to ask whether an atom holds throughout it: infinite where it covers a period.

        An atom that holds throughout a period of a tail holds for ever.
        """
        if self.right and hi - max(lo, self.right.at) >= self.right.every:
            hi = POS_INF
        if self.left and min(hi, self.left.at) - lo >= self.left.every:
            lo = NEG_INF
        return lo, hi

    def within(self, lo: int, hi: int) -> Extent:
        """Return the part in [lo,hi]; tails towards an infinite end stay."""
        if self.left is None and self.right is None:
            return Extent(self.rows.clip(lo, hi))
        left = _move_tail(self.left, hi, -1) if lo == NEG_INF else None
        right = _move_tail(self.right, lo, 1) if hi == POS_INF else None
        rows = self.over(left.at - left.every if left else lo, right.at + right.every if right else hi)
        return Extent(coalesce(rows.clip(lo, hi)), left, right)


def sort_by_time(rows: Rows) -> Rows:
    """Sort rows by time: a store takes the intervals of an atom fastest in that order."""
    order = np.argsort(rows.lo, kind="stable")
    return Rows(rows.args[:, order], rows.lo[order], rows.hi[order])


def _move_tail(tail: Tail | None, beyond: int, direction: int) -> Tail | None:
    """Move a tail on by whole periods until it begins at or beyond a position."""
    if tail is None:
        return None
    periods = max(0, -((tail.at - beyond) * direction // tail.every))
    return Tail(tail.at + direction * periods * tail.every, tail.every)


def _drop_endless(rows: Rows) -> Rows:
    """Leave out rows that hold for all time, which need no copies."""
    return rows.where((rows.lo != NEG_INF) | (rows.hi != POS_INF))


def _make_copies(rows: Rows, shift: int, first: int, last: int) -> list[Rows]:
    """Return copies of the rows, shifted by each multiple of `shift` from `first` to `last`."""
    numbers = np.arange(max(1, first), last + 1, dtype=np.int64)
    if len(numbers) == 0 or len(rows) == 0:
        return []
    shifts = np.repeat(numbers * shift, len(rows))
    count = len(numbers)
    return [Rows(np.tile(rows.args, (1, count)), np.tile(rows.lo, count) + shifts, np.tile(rows.hi, count) + shifts)]


def mirror(rows: Rows) -> Rows:
    """Return the rows with time reversed."""
    return Rows(rows.args, -rows.hi, -rows.lo)


def guess_tails(rows: list[Rows], start: int, end: int, step: int, reach: int) -> list[Tail]:
    """Guess tails that the rows of a component may have between `start` and `end`, the shortest period first.

    Each moment at which something begins or ends gives a token: the state until then (a hash of the atoms that hold)
    and how long it lasted. A period is a shift under which the tokens before the end match for at least the period and
    the rules' reach. Periods are multiples of `step`. A guess has to be verified.
    """
    moments, states = _find_changes(rows, start, end)
    found: list[Tail] = []
    last = int(moments[-1])
    if end - last >= 2 * (reach + step):
        found.append(Tail(last, step))
    lasted = np.diff(moments)
    # Tokens from the last complete one backwards; the state after `last` may go on beyond the end.
    tokens = [(int(lasted[i]), int(states[i])) for i in range(len(lasted) - 1, -1, -1)]
    matches = _count_matches(tokens)
    for shift in range(1, len(tokens)):
        period = last - int(moments[-1 - shift])
        if period % step or states[-1] != states[-1 - shift] or end - last > lasted[-shift]:
            continue
        first = int(moments[-1 - shift - matches[shift]])
        if last - first >= period + reach:
            found.append(Tail(first, period))
            if len(found) >= 4:
                break
    return found


def _find_changes(rows: list[Rows], start: int, end: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the positions in (start, end] at which the atoms that hold changes, `start` first, and its hashes."""
    at: list[NDArray[Any]] = [np.array([start])]
    marks: list[NDArray[Any]] = [np.zeros(1, np.uint64)]
    for number, part in enumerate(rows):
        part = part.clip(start, end)
        with np.errstate(over="ignore"):
            mark = np.full(len(part), (number + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1, np.uint64)
            for column in part.args:
                mark = (mark ^ column.astype(np.uint64)) * np.uint64(0xD6E8FEB86659FD93)
                mark ^= mark >> np.uint64(32)
        at += [part.lo, part.hi[part.hi < end] + 1]
        marks += [mark, mark[part.hi < end]]
    positions, mark = np.concatenate(at), np.concatenate(marks)
    order = np.argsort(positions, kind="stable")
    positions, states = positions[order], np.bitwise_xor.accumulate(mark[order])
    final = np.append(positions[1:] != positions[:-1], True)
    positions, states = positions[final], states[final]
    changed = np.append(True, states[1:] != states[:-1])
    return positions[changed], states[changed]


def _count_matches(tokens: list[tuple[int, int]]) -> list[int]:
    """Return for each shift how many tokens from there on equal those from the beginning on (the Z function)."""
    n = len(tokens)
    z = [0] * n
    left = right = 0
    for i in range(1, n):
        k = min(right - i, z[i - left]) if i < right else 0
        while i + k < n and tokens[k] == tokens[i + k]:
            k += 1
        z[i] = k
        if i + k > right:
            left, right = i, i + k
    return z
