"""The protocol that all sessions over a stream share: `Reasoner`, `StableReasoner` and `Hypotheses`.

Push facts as they arrive, advance the clock when nothing arrives, finish at the end of the stream, and save the state
in between. `load` continues from a saved state exactly where the saved session stopped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from tidelog.data.data_frames import FactsLike
    from tidelog.language.time_like import TimeLike
    from tidelog.timeline.interval import Time

AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class Step(Sequence[AnswerT_co]):
    """The answers that one call of a session made certain, as a sequence, with the time of the session's clock."""

    __slots__ = ()

    @property
    @abstractmethod
    def time(self) -> Time:
        """The time of the clock after the call."""

    @property
    def answers(self) -> Sequence[AnswerT_co]:
        """The new answers; the step itself is the same sequence."""
        return self


class Session(Protocol[AnswerT_co]):
    """A query over a stream that can be fed, finished, saved and loaded."""

    def push(self, t: TimeLike, facts: FactsLike = ()) -> Step[AnswerT_co]:
        """Advance the clock to t and add facts; return the answers that became certain. More facts may follow at t."""

    def advance(self, t: TimeLike) -> Step[AnswerT_co]:
        """Advance the clock to t, at which no more facts arrive; return the answers that became certain."""

    def finish(self, until: TimeLike | None = None) -> Step[AnswerT_co]:
        """End the stream, at `until` if given; return the last answers."""

    def save(self) -> bytes:
        """Return the whole state."""

    @classmethod
    def load(cls, state: bytes) -> Self:
        """Return a session that continues from a saved state."""
