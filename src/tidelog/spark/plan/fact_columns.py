"""The columns of a fact DataFrame: which are arguments, which are times, and their Spark types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FactColumns:
    """The columns of a fact DataFrame as (name, Spark type); `times` is empty for facts that hold always."""

    predicate: str
    args: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...]

    @property
    def time_types(self) -> frozenset[str]:
        return frozenset(kind for name, kind in self.times if name != "closed")
