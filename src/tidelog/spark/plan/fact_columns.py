"""The columns of a fact DataFrame: which are arguments, which are times, their Spark types, and the operation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FactColumns:
    """The columns of a fact DataFrame as (name, Spark type); `times` is empty for facts that hold always.

    `op` is the column that says whether a row inserts or deletes a fact, if there is one.
    """

    predicate: str
    args: tuple[tuple[str, str], ...]
    times: tuple[tuple[str, str], ...]
    op: str | None = None

    @property
    def time_types(self) -> frozenset[str]:
        return frozenset(kind for name, kind in self.times if name != "closed")
