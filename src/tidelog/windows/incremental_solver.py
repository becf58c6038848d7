"""A ground answer-set program that grows between calls, solved by clingo.

Answer sets make derived atoms least fixpoints, even with recursion within one time point; a plain SAT encoding would
have to spell this out. Every call takes assumptions; without a model, it returns an unsatisfiable core of them.
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


class DeadlineExceeded(Exception):
    """The deadline passed before the result was found."""


def until_deadline(items: Iterable[Item], deadline: float | None) -> Iterator[Item]:
    """Yield the items; raise `DeadlineExceeded` once the deadline has passed."""
    for number, item in enumerate(items):
        if deadline is not None and number % 1024 == 1023 and monotonic() > deadline:
            raise DeadlineExceeded
        yield item


class IncrementalSolver:
    """An incremental program. Atoms are positive integers; a negative integer is a negated atom.

    `deadline` is a time of `monotonic`. Use the solver in a `with` statement: a timer thread runs until it is left."""

    def __init__(self, deadline: float | None = None) -> None:
        self._control = _control()
        self._deadline = deadline
        self._alarm: Timer | None = None
        self._released: list[int] = []

    def __enter__(self) -> IncrementalSolver:
        if self._deadline is not None:
            self._alarm = Timer(max(0.0, self._deadline - monotonic()), self._control.interrupt)
            self._alarm.daemon = True
            self._alarm.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._alarm:
            self._alarm.cancel()

    def add_atoms(self, count: int, choice: bool = False) -> list[int]:
        """Add atoms, which are false unless chosen (with `choice`) or derived."""
        with self._control.backend() as backend:
            atoms = [backend.add_atom() for _ in range(count)]
            if choice and atoms:
                backend.add_rule(atoms, [], choice=True)
            return atoms

    def add_rules(self, rules: Iterable[tuple[int, Sequence[int]]]) -> None:
        """Add rules as heads with bodies; the head 0 makes a constraint."""
        with self._control.backend() as backend:
            for head, body in rules:
                backend.add_rule([head] if head else [], body)

    def add_switch(self, body: Sequence[int]) -> int:
        """Return a literal that excludes the body when assumed, until `release_switch`."""
        with self._control.backend() as backend:
            for switch in self._released:
                backend.add_rule([], [switch])
            self._released.clear()
            new: int = backend.add_atom()
            backend.add_rule([new], [], choice=True)
            backend.add_rule([], [new, *body])
            return new

    def release_switch(self, switch: int) -> None:
        """Declare a switch unused, so that the solver may simplify it away."""
        self._released.append(switch)

    def minimise(self, weights: Iterable[tuple[int, int]], priority: int) -> None:
        """Minimise the sum of the weights of true literals; higher priorities come first."""
        with self._control.backend() as backend:
            backend.add_minimize(priority, list(weights))

    def solve(self, assumptions: Sequence[int], watch: Sequence[int] = ()) -> tuple[list[int] | None, list[int]]:
        """Return the literals of `watch` as they hold in a model, or None with assumptions that exclude every model.

        With `minimise` the model is a best one, or the best one found before the deadline."""
        if self._deadline is not None and monotonic() >= self._deadline:
            raise DeadlineExceeded
        found: list[int] | None = None
        with self._control.solve(assumptions, yield_=True) as handle:
            while (model := handle.model()) is not None:
                found = [atom if model.is_true(atom) else -atom for atom in watch]
                handle.resume()
            if handle.get().interrupted and found is None:
                raise DeadlineExceeded
            return found, [] if found is not None else list(handle.core())


def _control() -> clingo.Control:
    try:
        import clingo
    except ImportError:
        message = "the exact window over known objects needs clingo, which is not installed"
        raise TidelogError(Diagnostic("TL605", message)) from None
    return clingo.Control(["--opt-mode=opt"], logger=lambda *_: None)
