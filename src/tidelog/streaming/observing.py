"""Looking on while a stream is reasoned over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.streaming.answers import Step
    from tidelog.streaming.reasoner import Reasoner


class Observer(Protocol):
    """Somebody who is told what happens, in its order."""

    def facts(self, data: Dataset) -> None:
        """Facts come, and are taken next; background facts, too."""

    def step(self, step: Step) -> None:
        """A step was taken."""

    def pause(self, reasoner: Reasoner) -> None:
        """All facts that came are taken: now the reasoner may be asked how it stands."""
