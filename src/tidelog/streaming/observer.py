"""The protocol of observers of a running stream, such as the live page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset
    from tidelog.streaming.answers import StreamStep
    from tidelog.streaming.reasoner import Reasoner


class Observer(Protocol):
    """A watcher that is called with everything that happens, in order."""

    def facts(self, data: Dataset) -> None:
        """Note facts that have arrived and are taken next; background facts, too."""

    def step(self, step: StreamStep) -> None:
        """Note that a step was evaluated."""

    def pause(self, reasoner: Reasoner) -> None:
        """Note that all facts that arrived are taken: the reasoner may be inspected now."""
