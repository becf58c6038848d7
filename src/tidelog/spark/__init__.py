"""The same rules on Apache Spark: batch and streaming DataFrames of facts in, a DataFrame of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.spark.reasoning import Tagged, reason, tagged

__all__ = ["Tagged", "reason", "tagged"]


def __getattr__(name: str) -> object:
    """PySpark is imported when it is needed."""
    if name in __all__:
        from tidelog.spark import reasoning

        return getattr(reasoning, name)
    raise AttributeError(f"module 'tidelog.spark' has no attribute {name!r}")
