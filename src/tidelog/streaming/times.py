"""The times at which a stream is asked: its own, multiples of a step, or any that increase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from math import ceil
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.times import read_number

#: A stream that begins later than so many multiples of its output step is not asked about the time before.
MANY = 100_000

#: "input", "every:S", or times in increasing order.
Times = str | Iterable[Fraction | int]


def duration(value: Fraction | int | float | str) -> Fraction:
    """A length of time: a number, or text like `5s` or `1/2`."""
    number = read_number(value, units=True) if isinstance(value, str) else Fraction(value)
    if number is None or number < 0:
        raise TidelogError(
            Diagnostic(
                "TL307", f"`{value}` is not a length of time", help="write a number or a duration: 5, 0.5, 10min"
            )
        )
    return number


class OutputTimes:
    """Output times that have not come yet; a heap of those of the input, and the next of the others."""

    def __init__(self, at: Times) -> None:
        self.own: list[Fraction] | None = [] if at == "input" else None
        self.every = duration(at.removeprefix("every:")) if isinstance(at, str) and at != "input" else None
        if self.every is not None and self.every == 0:
            raise TidelogError(Diagnostic("TL307", "output times need a distance greater than 0", help="write every:1"))
        #: Times that are all there are saved with a state; of a generator only where it stands.
        self._listed = [Fraction(t) for t in at] if isinstance(at, Sequence) and not isinstance(at, str) else None
        self._given: Iterator[Fraction | int] = iter(()) if isinstance(at, str) else iter(self._listed or at)
        self._last: Fraction | None = None
        self._ahead: Fraction | None = None

    def state(self) -> dict[str, object]:
        """What has to be kept; times that were given one by one have to be given again."""
        return {
            "own": None if self.own is None else [str(t) for t in sorted(self.own)],
            "every": None if self.every is None else str(self.every),
            "last": None if self._last is None else str(self._last),
            "ahead": None if self._ahead is None else str(self._ahead),
            "listed": None if self._listed is None else [str(t) for t in self._listed],
        }

    @staticmethod
    def restored(state: Mapping[str, Any], given: Times | None) -> OutputTimes:
        """Output times that go on where they stopped."""
        regular = f"every:{state['every']}" if state["every"] else None
        listed = [Fraction(t) for t in state["listed"] or ()]
        times = OutputTimes("input" if state["own"] is not None else regular or given or listed)
        if times.own is not None:
            times.own[:] = [Fraction(t) for t in state["own"]]
        times._last = Fraction(state["last"]) if state["last"] else None
        if times.every is not None:
            times._ahead = Fraction(state["ahead"]) if state["ahead"] else None
        return times

    def note(self, times: Iterable[Fraction]) -> None:
        """The stream's own time points, as they come."""
        if self.own is not None:
            for t in times:
                heappush(self.own, t)

    def start(self, first: Fraction) -> None:
        """Where multiples begin: at 0, or with the stream if it begins before 0 or long after."""
        if self.every is not None and self._ahead is None and self._last is None:
            near = 0 <= first < MANY * self.every
            self._ahead = Fraction(0) if near else ceil(first / self.every) * self.every

    def taken(self, come: Callable[[Fraction], bool]) -> list[Fraction]:
        """The times that have come, each once, in order."""
        found: list[Fraction] = []
        while (t := self._peek()) is not None and come(t):
            self._next()
            if self._last is None or t > self._last:
                found.append(t)
                self._last = t
        return found

    def pending(self, come: Callable[[Fraction], bool]) -> bool:
        """Whether there is a time that has come."""
        t = self._peek()
        return t is not None and come(t)

    def _peek(self) -> Fraction | None:
        if self.own is not None:
            return self.own[0] if self.own else None
        if self._ahead is None and self.every is None:
            following = next(self._given, None)
            self._ahead = None if following is None else Fraction(following)
        return self._ahead

    def _next(self) -> None:
        if self.own is not None:
            heappop(self.own)
        elif self.every is not None:
            assert self._ahead is not None
            self._ahead += self.every
        else:
            self._ahead = None
