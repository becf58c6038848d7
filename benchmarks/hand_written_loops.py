"""Lower bounds for single queries: compiled loops, each written by hand for one query over one kind of text.

They know everything that a reasoner has to find out: the predicates and their first letters, that constants are
numbered, that times are whole numbers, how far the rules look back. Each query has a loop that reads text into columns,
and one that computes answers from columns.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]

NEWLINE, AT = 10, 64


@numba.njit(cache=True)
def _read_number(text: Bytes, at: int) -> tuple[int, int]:
    """Read the first number at or after a position; return it and the position of its end."""
    while text[at] < 48 or text[at] > 57:
        at += 1
    value = 0
    while 48 <= text[at] <= 57:
        value = value * 10 + text[at] - 48
        at += 1
    return value, at


@numba.njit(cache=True)
def read_stops(text: Bytes, vehicles: Ints, times: Ints, moves: npt.NDArray[np.bool_]) -> int:
    """Read `Pos`, `NotPos` and `NotOnMap` of numbered vehicles at whole times; skip other predicates."""
    at = count = 0
    size = len(text)
    while at < size:
        # Pos(, NotPos(, NotOnMap(: no other predicate has P at the first or the fourth, or M at the sixth place.
        positive = text[at] == 80
        if positive or (text[at] == 78 and (text[at + 3] == 80 or (text[at + 3] == 79 and text[at + 5] == 77))):
            vehicles[count], at = _read_number(text, at + 4)
            times[count], at = _read_number(text, at)
            moves[count] = positive
            count += 1
        elif text[at] != 79:
            # All that is skipped, but for On(, is at least as long as SlowDown(v1)@[1,1].
            at += 17
        while at < size and text[at] != NEWLINE:
            at += 1
        at += 1
    return count


@numba.njit(cache=True)
def find_stops(vehicles: Ints, times: Ints, moves: npt.NDArray[np.bool_], most: int, who: Ints, when: Ints) -> int:
    """Find short stops in facts in time order, with a register of the last 32 seconds per vehicle."""
    pos = np.zeros(most + 1, np.uint32)
    neg = np.zeros(most + 1, np.uint32)
    last = np.zeros(most + 1, np.int32)
    count = 0
    for i in range(len(vehicles)):
        v, t = vehicles[i], times[i]
        gap = t - last[v]
        if gap:
            pos[v] = pos[v] << gap if gap < 32 else 0
            neg[v] = neg[v] << gap if gap < 32 else 0
            last[v] = t
        if moves[i]:
            pos[v] |= 1
        elif not neg[v] & 1:
            neg[v] |= 1
            run, bit = np.uint32(2), np.uint32(4)
            for _ in range(4):
                if pos[v] & run != run:
                    break
                if neg[v] & bit:
                    who[count], when[count] = v, t
                    count += 1
                    break
                run, bit = run | bit, bit << 1
    return count


@numba.njit(cache=True)
def read_scientists(text: Bytes, people: Ints, times: Ints) -> tuple[int, int]:
    """Read the times from which people are scientists, in any order, and the last time of all.

    A doctoral degree makes somebody a scientist two time units later, a full professorship one later.
    """
    at = count = last = 0
    size = len(text)
    while at < size:
        # doctoralDegreeFrom(ID1,ID2)@3 and FullProfessor(ID1)@3: no other predicate begins with do, or with F.
        lead = 0
        if text[at] == 70:
            lead = 1
        elif text[at] == 100 and text[at + 1] == 111:
            lead = 2
        if lead:
            people[count], at = _read_number(text, at + 13)
        else:
            at += 13  # the shortest is Course(ID1000)@3
        while text[at] != AT:
            at += 1
        time, at = _read_number(text, at)
        if text[at] == 44:  # an interval
            time, at = _read_number(text, at)
        last = max(last, time)
        if lead:
            times[count] = time + lead
            count += 1
        while at < size and text[at] != NEWLINE:
            at += 1
        at += 1
    return count, last


@numba.njit(cache=True)
def find_scientists(people: Ints, times: Ints, last: int, most: int, answers: Ints) -> int:
    """Find the scientists at each time up to the last: somebody who is one is one again every second time unit.

    `answers` has room for the answers of a single time; the count is over all times.
    """
    first = np.full((2, most + 1), last + 1, np.int32)
    for i in range(len(people)):
        t = times[i]
        if t < first[t & 1, people[i]]:
            first[t & 1, people[i]] = t
    # The people who begin at each time, as one list with offsets.
    begins = np.zeros(last + 3, np.int32)
    for odd in range(2):
        for t in first[odd]:
            begins[t + 1] += 1
    begins = np.cumsum(begins)
    order = np.empty(begins[last + 1], np.int32)
    place = begins.copy()
    for odd in range(2):
        for person in range(most + 1):
            t = first[odd, person]
            if t <= last:
                order[place[t]] = person
                place[t] += 1
    standing = np.empty((2, len(order)), np.int32)
    sizes = np.zeros(2, np.int64)
    count = 0
    for t in range(last + 1):
        odd = t & 1
        for i in range(begins[t], begins[t + 1]):
            standing[odd, sizes[odd]] = order[i]
            sizes[odd] += 1
        for i in range(sizes[odd]):
            answers[i] = standing[odd, i]
        count += sizes[odd]
    return count


def to_bytes(text: str) -> Bytes:
    """Return the text as the loops read it: with a newline after the last fact, and some room to look ahead."""
    return np.frombuffer(text.rstrip("\n").encode() + b"\n" * 32, np.uint8)


class ShortStopLoop:
    """Short stops, from text in time order."""

    def __init__(self, text: str) -> None:
        self.text = to_bytes(text)[:-31]
        lines = text.count("\n") + 2
        self._columns = np.empty(lines, np.int32), np.empty(lines, np.int32), np.empty(lines, np.bool_)
        self._answers = np.empty(lines, np.int32), np.empty(lines, np.int32)
        self._count = 0

    def read(self) -> None:
        self._count = int(read_stops(self.text, *self._columns))

    def find_answers(self) -> int:
        vehicles, times, moves = self._columns
        vehicles, times, moves = vehicles[: self._count], times[: self._count], moves[: self._count]
        return int(find_stops(vehicles, times, moves, int(vehicles.max()), *self._answers))

    def run(self) -> int:
        self.read()
        return self.find_answers()


class ScientistLoop:
    """The recursive program, from text in any order."""

    def __init__(self, text: str) -> None:
        self.text = to_bytes(text)[:-31]
        lines = text.count("\n") + 2
        self._columns = np.empty(lines, np.int32), np.empty(lines, np.int32)
        self._answers = np.empty(lines, np.int32)
        self._count = self._last = 0

    def read(self) -> None:
        self._count, self._last = map(int, read_scientists(self.text, *self._columns))

    def find_answers(self) -> int:
        people, times = (column[: self._count] for column in self._columns)
        return int(find_scientists(people, times, self._last, int(people.max()), self._answers))

    def run(self) -> int:
        self.read()
        return self.find_answers()
