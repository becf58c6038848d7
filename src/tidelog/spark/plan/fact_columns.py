"""The columns of a fact DataFrame: which are arguments, which are times, their Spark types, and the operation.

A DataFrame may hold the facts of several predicates, if they come from one source (`tidelog.spark.job.shared_scans`).
"""

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


@dataclass(frozen=True)
class RowSelection:
    """The rows of a DataFrame that are facts of one predicate, or descriptions of rows that could not be read.

    The DataFrame may hold others, too. `places` has for each column of the rows the column of the DataFrame; empty if
    they are the same. `condition` is the column that says which rows are meant, if not all are.
    """

    #: The columns of the facts; None for rows that could not be read.
    shape: FactColumns | None
    places: tuple[tuple[str, str], ...] = ()
    condition: str | None = None
