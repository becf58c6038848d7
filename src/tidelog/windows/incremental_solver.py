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


#: Why a search was given up.
TIME_IS_UP, TOO_MANY_STEPS = "the time is up", "the search takes too many steps"


class DeadlineExceeded(Exception):
    """The deadline passed, or the effort was spent, before the result was found; the text says which."""


class Effort:
    """A limit of work instead of time, so that results are the same on every machine, however busy it is.

    Work is counted in steps: rules and items that are looked at, and conflicts of the solver. A million of them take
    some seconds.
    """

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Count steps; raise `DeadlineExceeded` if that is more than is left."""
        self.left -= steps
        if self.left < 0:
            raise DeadlineExceeded(TOO_MANY_STEPS)


#: When a search gives up: at a time of `monotonic`, after some effort, or never.
Deadline = float | Effort | None

#: A call of the solver, and each of its conflicts, counts as this many steps: it takes as long as adding 20 rules.
_STEPS_PER_CONFLICT = 20


def check_deadline(deadline: Deadline, steps: int = 1) -> None:
    """Count steps; raise `DeadlineExceeded` once the deadline has passed, or the effort is spent."""
    if isinstance(deadline, Effort):
        deadline.spend(steps)
    elif deadline is not None and monotonic() > deadline:
        raise DeadlineExceeded(TIME_IS_UP)


def until_deadline(items: Iterable[Item], deadline: Deadline) -> Iterator[Item]:
    """Yield the items; raise `DeadlineExceeded` once the deadline has passed."""
    for number, item in enumerate(items):
        if number % 1024 == 1023:
            check_deadline(deadline, 1024)
        yield item


class IncrementalSolver:
    """An incremental program. Atoms are positive integers; a negative integer is a negated atom.

    Use the solver in a `with` statement: with a deadline in time, a timer thread runs until it is left."""

    def __init__(self, deadline: Deadline = None) -> None:
        self._control = _control()
        self._deadline = deadline
        self._alarm: Timer | None = None
        self._released: list[int] = []

    def __enter__(self) -> IncrementalSolver:
        if isinstance(self._deadline, float):
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
            for head, body in until_deadline(rules, self._deadline):
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
        check_deadline(self._deadline, _STEPS_PER_CONFLICT)
        if isinstance(self._deadline, Effort):
            self._limit_conflicts(self._deadline.left // _STEPS_PER_CONFLICT + 1)
        found: list[int] | None = None
        with self._control.solve(assumptions, yield_=True) as handle:
            while (model := handle.model()) is not None:
                found = [atom if model.is_true(atom) else -atom for atom in watch]
                handle.resume()
            result = handle.get()
            if (result.interrupted or result.unknown) and found is None:
                raise DeadlineExceeded(TIME_IS_UP if result.interrupted else TOO_MANY_STEPS)
            core = [] if found is not None else list(handle.core())
        if isinstance(self._deadline, Effort):
            conflicts = int(self._control.statistics["solving"]["solvers"]["conflicts"])
            self._deadline.left -= min(_STEPS_PER_CONFLICT * conflicts, self._deadline.left)
        return found, core

    def _limit_conflicts(self, most: int) -> None:
        solving = self._control.configuration.solve
        assert not isinstance(solving, str | None)
        solving.solve_limit = str(most)


def _control() -> clingo.Control:
    try:
        import clingo
    except ImportError:
        message = "the exact window over known objects needs clingo, which is not installed"
        raise TidelogError(Diagnostic("TL605", message)) from None
    return clingo.Control(["--opt-mode=opt"], logger=lambda *_: None)
