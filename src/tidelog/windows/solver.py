"""A ground answer-set program that grows between questions, solved by clingo.

Derived atoms are least fixpoints, recursion within one time point included, which plain satisfiability would need to
have spelt out. Every question is asked under assumptions, and where there is no answer the assumptions that are to
blame come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Timer
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    import clingo


Item = TypeVar("Item")


class OutOfTime(Exception):
    """The deadline came before the answer."""


def in_time(items: Iterable[Item], deadline: float | None) -> Iterator[Item]:
    """The items, as long as the deadline has not come."""
    for number, item in enumerate(items):
        if deadline is not None and number % 1024 == 1023 and monotonic() > deadline:
            raise OutOfTime
        yield item


class Solver:
    """Atoms are positive numbers, literals are atoms or their negatives. `deadline` is a time of `monotonic`; leave
    the solver with `with`, since until then a thread waits for it."""

    def __init__(self, deadline: float | None = None) -> None:
        self._control = _control()
        self._deadline = deadline
        self._alarm: Timer | None = None
        self._released: list[int] = []

    def __enter__(self) -> Solver:
        if self._deadline is not None:
            self._alarm = Timer(max(0.0, self._deadline - monotonic()), self._control.interrupt)
            self._alarm.daemon = True
            self._alarm.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._alarm:
            self._alarm.cancel()

    def atoms(self, count: int, choice: bool = False) -> list[int]:
        """New atoms, which are false unless they are chosen or derived."""
        with self._control.backend() as backend:
            made = [backend.add_atom() for _ in range(count)]
            if choice and made:
                backend.add_rule(made, [], choice=True)
            return made

    def rules(self, rules: Iterable[tuple[int, Sequence[int]]]) -> None:
        """Heads with their bodies; a head of 0 makes a constraint."""
        with self._control.backend() as backend:
            for head, body in rules:
                backend.add_rule([head] if head else [], body)

    def switch(self, body: Sequence[int]) -> int:
        """A literal under which the body is excluded, until `release`."""
        with self._control.backend() as backend:
            for switch in self._released:
                backend.add_rule([], [switch])
            self._released.clear()
            made: int = backend.add_atom()
            backend.add_rule([made], [], choice=True)
            backend.add_rule([], [made, *body])
            return made

    def release(self, switch: int) -> None:
        """A switch that is not used any more; the solver may forget it."""
        self._released.append(switch)

    def minimise(self, weights: Iterable[tuple[int, int]], priority: int) -> None:
        with self._control.backend() as backend:
            backend.add_minimize(priority, list(weights))

    def solve(self, assumptions: Sequence[int], watch: Sequence[int] = ()) -> tuple[list[int] | None, list[int]]:
        """The literals of `watch` as they hold in a model (where something is minimised the best one, or the best that
        was found in time), or None with the assumptions that exclude any model."""
        if self._deadline is not None and monotonic() >= self._deadline:
            raise OutOfTime
        found: list[int] | None = None
        with self._control.solve(assumptions, yield_=True) as handle:
            while (model := handle.model()) is not None:
                found = [atom if model.is_true(atom) else -atom for atom in watch]
                handle.resume()
            if handle.get().interrupted and found is None:
                raise OutOfTime
            return found, [] if found is not None else list(handle.core())


def _control() -> clingo.Control:
    try:
        import clingo
    except ImportError:
        message = "windows over known objects need clingo, which is not installed"
        help = "pip install 'tidelog[stable]'; radius and uniform window need no --objects and no clingo"
        raise TidelogError(Diagnostic("TL605", message, help=help)) from None
    return clingo.Control(["--opt-mode=opt"], logger=lambda *_: None)
