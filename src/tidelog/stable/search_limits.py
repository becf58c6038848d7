"""Limits: how many windows a search visits, with progress messages while it runs, and how much is listed."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from tidelog.errors import Diagnostic, TidelogError, Undecided

#: Default for the largest number of windows that a search visits.
MOST_WINDOWS = 500_000

#: How many choices a search time point by time point tries before another method takes over.
FEW_CHOICES = 200

#: The most time points for which atoms that repeat are listed.
MOST_LISTED = 10_000_000

#: Seconds between two progress messages.
_SECONDS_BETWEEN_MESSAGES = 2.0

#: Called with each progress message.
Progress = Callable[[str], None]


class SearchLimit:
    """Counts windows, reports progress, and raises `Undecided` once there are more than `most`."""

    def __init__(
        self, most: int = MOST_WINDOWS, progress: Progress | None = None, most_choices: int | None = None
    ) -> None:
        self.most, self.most_choices = most, most_choices
        #: How many slices were found at time points with more than one.
        self.choices = 0
        self.count = 0
        #: The current activity, as progress messages name it.
        self.activity = "searching"
        self._progress = progress
        self._last_message = monotonic()

    def restart(self) -> SearchLimit:
        """Return the same limit with the count at 0, for another method of search."""
        return SearchLimit(self.most, self._progress)

    def restart_with_few_choices(self) -> SearchLimit:
        """Return the same limit with the count at 0, which is also reached after `FEW_CHOICES` choices."""
        return SearchLimit(self.most, self._progress, FEW_CHOICES)

    def count_choices(self, choices: int) -> None:
        """Add to the number of slices at time points with more than one."""
        self.choices += choices
        if self.most_choices is not None and self.choices > self.most_choices:
            raise self.build_undecided(f"there are more than {self.most_choices:,} choices")

    def count_windows(self, windows: int) -> None:
        """Add to the number of windows visited."""
        self.count += windows
        if self.count > self.most:
            raise self.build_undecided(f"more than {self.most:,} windows were visited")
        if self._progress is not None and not self.count & 0xFF:
            self.report_progress()

    def report_progress(self) -> None:
        """Send a progress message, unless the last one is recent."""
        now = monotonic()
        if self._progress is not None and now - self._last_message > _SECONDS_BETWEEN_MESSAGES:
            self._last_message = now
            self._progress(f"{self.activity}: {self.count:,} windows so far")

    def build_undecided(self, reason: str) -> Undecided:
        """Build the error that says why the search gave up."""
        return Undecided(Diagnostic("TL323", f"the stable models could not be determined: {reason}"))


def require_listable(lo: int, hi: int) -> None:
    """Refuse to list what repeats in lo..hi where these are too many time points."""
    if hi - lo >= MOST_LISTED:
        raise TidelogError(Diagnostic("TL332", f"something repeats from {lo:,} to {hi:,}, too often to list it all"))
