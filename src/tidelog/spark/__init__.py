"""The same rules on Apache Spark: batch and streaming DataFrames of facts in, a DataFrame of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.spark.reasoning import Tagged, reason, tagged
    from tidelog.spark.session import session

__all__ = ["Tagged", "reason", "session", "tagged"]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in __all__:
        home = "session" if name == "session" else "reasoning"
        return getattr(import_module(f"tidelog.spark.{home}"), name)
    raise AttributeError(f"module 'tidelog.spark' has no attribute {name!r}")
