"""The times at which a stream is asked (its own, multiples of a step, or any increasing times), delays, corrections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import ceil, lcm
from typing import Any, TypedDict

import numpy as np

from tidelog.compiler.compiled_program import Memory
from tidelog.engine.fact_store import Int64s
from tidelog.engine.stream_kernel import LAST_TIME, N_TIMES, NEXT_TIME
from tidelog.engine.time_heap import push_time
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.time_like import DurationLike, TimeLike, to_duration, to_finite_time
from tidelog.streaming.output_time_text import find_times_file, parse_multiples, read_times_file
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, time_overflow

#: A stream that begins later than this many multiples of its output step is not asked about the time before.
MANY = 100_000

#: "input", "every:S" or "every:S+O", "file:PATH", or times in increasing order.
OutputTimesLike = str | Iterable[TimeLike]
#: How late facts may arrive: for all predicates, or by predicate (None: all others).
DelayLike = DurationLike | Mapping[str, DurationLike] | Mapping[str | None, DurationLike]


class PastLengths(TypedDict, total=False):
    """For how long a reasoner looks back: facts that it remembers for `explain`, and corrections that it takes."""

    remember: DurationLike | None
    corrections: DurationLike | None


def read_past_lengths(lengths: PastLengths) -> tuple[DurationLike | None, DurationLike | None]:
    """Return what to remember and for how long to take corrections; raise a TypeError for other names."""
    if unknown := lengths.keys() - PastLengths.__annotations__.keys():
        raise TypeError(f"Reasoner() got an unexpected keyword argument {min(unknown)!r}")
    return lengths.get("remember"), lengths.get("corrections")


def parse_delays(delay: DelayLike) -> dict[str | None, Fraction]:
    """Return the delay of each predicate that has its own, and under None that of all others."""
    if isinstance(delay, Mapping):
        return {None: Fraction(0)} | {name: to_duration(value) for name, value in delay.items()}
    return {None: to_duration(delay)}


def parse_corrections(
    corrections: DurationLike | None, delays: Mapping[str | None, Fraction], memory: Memory | None
) -> Fraction | None:
    """Return for how long corrections are taken, if at all; raise if that does not go together with other options."""
    if corrections is None:
        return None
    length = to_duration(corrections)
    if length < max(delays.values()):
        message = f"corrections are taken for {length}, which is shorter than the delay of {max(delays.values())}"
        raise TidelogError(
            Diagnostic("TL408", message, help="choose a longer time for corrections, or a shorter delay")
        )
    if memory == "bounded":
        law = "bounded memory forgets single facts at once, and a correction needs them"
        help = "leave the memory mode out, or take no corrections"
        raise TidelogError(Diagnostic("TL408", "corrections do not work with bounded memory", law=law, help=help))
    return length


class OutputTimes:
    """Output times that are still to come, in ticks of `1/denominator`: a heap, or the next multiple.

    The size of the heap, the next multiple and the last time that was answered are in the array `at` of an evaluation,
    where compiled code changes them.
    """

    def __init__(self, times: OutputTimesLike, at: Int64s, denominator: int) -> None:
        self._at = at
        at[[NEXT_TIME, LAST_TIME, N_TIMES]] = POS_INF, NEG_INF, 0
        self.own = times == "input"
        if isinstance(times, str) and (path := find_times_file(times)) is not None:
            times = read_times_file(path)
        #: Times are the multiples of `every`, each plus `offset`.
        self.every: Fraction | None = None
        self.offset = Fraction(0)
        if isinstance(times, str) and not self.own:
            self.every, self.offset = parse_multiples(times)
        #: A list of times is saved with a state; of a generator, only the position is.
        listed = isinstance(times, Sequence) and not isinstance(times, str)
        self.listed = [to_finite_time(t) for t in times] if listed else None
        self._given: Iterator[TimeLike] | None = None if isinstance(times, str) else iter(self.listed or times)
        #: The last times that were taken, and how many were taken before them.
        self._pulled: list[Fraction] = []
        self._pulled_before = 0
        self.heap = np.empty(64, np.int64)
        self.denominator = 1
        self.fit(lcm(denominator, self.every.denominator if self.every else 1, self.offset.denominator))

    def state(self) -> dict[str, object]:
        """Return the saved form. Times from a generator have to be given again."""
        waiting = self.heap[: self._at[N_TIMES]].tolist()
        return {
            "own": [str(self._time(t)) for t in sorted(waiting)] if self.own else None,
            "every": None if self.every is None else str(self.every),
            "offset": str(self.offset),
            "last": None if self._at[LAST_TIME] == NEG_INF else str(self._time(self._at[LAST_TIME])),
            "ahead": None if self._at[NEXT_TIME] == POS_INF else str(self._time(self._at[NEXT_TIME])),
            "listed": None if self.listed is None else [str(t) for t in self.listed],
        }

    @staticmethod
    def restore(state: Mapping[str, Any], given: OutputTimesLike | None, at: Int64s, denominator: int) -> OutputTimes:
        """Return output times that continue where the saved ones stopped."""
        regular = f"every:{state['every']}+{state.get('offset', 0)}" if state["every"] else None
        listed = [Fraction(t) for t in state["listed"] or ()]
        times = OutputTimes("input" if state["own"] is not None else regular or given or listed, at, denominator)
        for t in state["own"] or ():
            times._push(Fraction(t))
        if state["last"]:
            at[LAST_TIME] = times._ticks(Fraction(state["last"]))
        if state["ahead"]:
            at[NEXT_TIME] = times._ticks(Fraction(state["ahead"]))
        return times

    def fit(self, denominator: int) -> None:
        """Refine the ticks so that `denominator` of them, or a multiple of that, are one unit of time."""
        factor = lcm(denominator, self.denominator) // self.denominator
        if factor == 1:
            return
        self.denominator *= factor
        if self.denominator >= LIMIT // 2:
            raise time_overflow(f"a step of 1/{self.denominator}")
        self.heap[: self._at[N_TIMES]] *= factor
        for place, never in ((NEXT_TIME, POS_INF), (LAST_TIME, NEG_INF)):
            if self._at[place] != never:
                self._at[place] *= factor

    @property
    def ticks_between(self) -> int:
        """The number of ticks between two multiples; 0 where times are in the heap."""
        return 0 if self.every is None else int(self.every * self.denominator)

    @property
    def begun(self) -> bool:
        """Whether it is known where multiples begin."""
        return self.every is None or bool(self._at[NEXT_TIME] < POS_INF)

    def start(self, first: Fraction) -> None:
        """Begin multiples with a stream that begins at a time."""
        if self.every is not None and not self.begun:
            self._at[NEXT_TIME] = self._ticks(self.find_first(first))

    def find_first(self, first: Fraction) -> Fraction:
        """Return the first multiple, from 0 on, or with the stream if it begins before 0 or long after."""
        if self.every is None or 0 <= first < MANY * self.every:
            return self.offset
        return self.offset + ceil((first - self.offset) / self.every) * self.every

    @property
    def given(self) -> bool:
        """Whether times are given one by one, and may be more than have been taken."""
        return self._given is not None

    def pull(self, last: Fraction) -> None:
        """Take the given times up to a time, and one more."""
        while self._given is not None and (not self._pulled or self._pulled[-1] <= last):
            following = next(self._given, None)
            if following is None:
                self._given = None
                return
            self._pulled.append(to_finite_time(following))
            self._push(self._pulled[-1])

    @property
    def count_pulled(self) -> int:
        """The number of given times that were taken so far."""
        return self._pulled_before + len(self._pulled)

    def return_to(self, count: int) -> None:
        """Give the times back that were taken after the first `count`, so that they are taken again."""
        again = self._pulled[count - self._pulled_before :]
        if again:
            del self._pulled[count - self._pulled_before :]
            self._given = chain(again, self._given or ())

    def keep_from(self, count: int) -> None:
        """Forget the given times before the first `count` except the last of them; they are not returned to."""
        dropped = max(count - self._pulled_before - 1, 0)
        del self._pulled[:dropped]
        self._pulled_before += dropped

    def note(self, times: Iterable[Fraction]) -> None:
        """Add the stream's own time points, where they are not the times of its facts."""
        if self.own:
            for t in times:
                self._push(t)

    def _push(self, t: Fraction) -> None:
        count = int(self._at[N_TIMES])
        push_time(self.with_room(count + 1), count, self._ticks(t))
        self._at[N_TIMES] += 1

    def with_room(self, count: int) -> Int64s:
        """Return the heap with room for `count` times."""
        if count > len(self.heap):
            larger = np.empty(max(count, 2 * len(self.heap)), np.int64)
            larger[: len(self.heap)] = self.heap
            self.heap = larger
        return self.heap

    def _ticks(self, t: Fraction) -> int:
        self.fit(t.denominator)
        ticks = int(t * self.denominator)
        if abs(ticks) >= LIMIT // 2:
            raise time_overflow(f"the time {t}")
        return ticks

    def _time(self, ticks: int) -> Fraction:
        return Fraction(int(ticks), self.denominator)
