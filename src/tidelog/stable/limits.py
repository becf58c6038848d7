"""How much is looked at before a question is given up, and word of it while it lasts."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from tidelog.errors import Diagnostic
from tidelog.reasoning import Undecided

#: The most windows that are looked at unless told.
MOST_WINDOWS = 500_000

#: Seconds between two words of progress.
_EVERY = 2.0


class Limit:
    """Counts windows, tells of it, and stops at the limit."""

    def __init__(self, most: int = MOST_WINDOWS, progress: Callable[[str], None] | None = None) -> None:
        self.most = most
        self.count = 0
        self.doing = "searching"
        self._progress = progress
        self._said = monotonic()

    def again(self) -> Limit:
        """The same limit, for another way."""
        return Limit(self.most, self._progress)

    def note(self, windows: int) -> None:
        self.count += windows
        if self.count > self.most:
            raise self.exceeded(f"more than {self.most:,} windows were looked at")
        if self._progress is not None and not self.count & 0xFF:
            self.tell()

    def tell(self) -> None:
        """A word, if the last one was some time ago."""
        now = monotonic()
        if self._progress is not None and now - self._said > _EVERY:
            self._said = now
            self._progress(f"{self.doing}: {self.count:,} windows so far")

    def exceeded(self, reason: str) -> Undecided:
        return Undecided(
            Diagnostic(
                "TL323",
                f"it could not be decided which stable models there are: {reason}",
                law="the search for stable models is bounded",
                help="choose a larger unit of time, use operators with shorter ranges, or ask about fewer constants "
                "that depend on each other",
            )
        )
