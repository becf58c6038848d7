"""Change logs as DataFrames: the answers that stand after all changes, or as they were known at some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame

#: The columns that a change has and an answer does not: `batch` is the folder of a sink of files.
_CHANGE_COLUMNS = ("change", "known", "batch")


def current(changes: DataFrame, at: int | float | str | datetime | None = None) -> DataFrame:
    """Return the answers that stand after the changes of a job with corrections, one row each.

    `changes` is a batch DataFrame with all changes so far, such as the folder of an answer sink, in any order. With
    `at`, the answers are those that stood when the clock was at that time, as with `tidelog as-of`: a number, or a
    timestamp. Columns are those of answers; `change`, `known` and the number of the batch are left out.
    """
    from pyspark.sql import functions as F  # noqa: N812

    missing = [name for name in ("change", "known") if name not in changes.columns]
    if missing or changes.isStreaming:
        problem = f"it has no column `{missing[0]}`" if missing else "it is a stream, which has no last change"
        raise TidelogError(
            Diagnostic(
                "TL409",
                f"this DataFrame is not a change log that can be folded: {problem}",
                help="read the answers that a job with `corrections` has written; in a stream, use foreachBatch",
            )
        )
    if at is not None:
        changes = changes.where(F.col("known") <= F.lit(at).cast(changes.schema["known"].dataType))
    columns = [f"`{name}`" for name in changes.columns if name not in _CHANGE_COLUMNS]
    count = F.sum(F.when(F.col("change") == "+", 1).otherwise(-1))
    return changes.groupBy(*columns).agg(count.alias("__count")).where("__count > 0").drop("__count")
