"""What live inputs have in common: growing files, pipes and the partitions of Kafka topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tidelog.streaming.stream_reader import StreamPiece


@dataclass(frozen=True)
class Position:
    """Up to where an input was read: the file itself, as the system numbers it, the offset and the line.

    For a partition of a topic, the offset is that of the next record.
    """

    inode: int = 0
    offset: int = 0
    line: int = 0


class LiveInput(Protocol):
    """An input that gives what has arrived, and has an end only if it says so."""

    name: str
    position: Position

    @property
    def key(self) -> str:
        """The key under which a state keeps the position; empty if the position cannot be found again."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    @property
    def wait_fd(self) -> int | None:
        """A file descriptor that becomes readable when more has arrived; None if there is none."""

    def read(self) -> StreamPiece | None:
        """Return what has arrived; None if that is nothing."""

    def close(self) -> None:
        """Release what the input holds."""

    def describe_position(self) -> str:
        """Say up to where the input was read."""
