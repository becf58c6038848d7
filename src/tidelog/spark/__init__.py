"""The same rules on Apache Spark: batch and streaming DataFrames of facts in, a DataFrame of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

# At once, since the module of the same name would take its place when somebody else imports it; it is light.
from tidelog.spark.session import session

if TYPE_CHECKING:
    from tidelog.spark.plan import Awaiting
    from tidelog.spark.reasoning import Tagged, awaited, reason, tagged

__all__ = ["Awaiting", "Tagged", "awaited", "reason", "session", "tagged"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from tidelog.spark import reasoning

        return getattr(reasoning, name)
    raise AttributeError(f"module 'tidelog.spark' has no attribute {name!r}")
