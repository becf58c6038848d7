"""Hypothetical answers in a streaming job: the stateful operator with buckets that hold hypothetical answers."""

from __future__ import annotations

from tidelog.spark.awaiting.awaited_bucket import AwaitedBucket
from tidelog.spark.worker.stateful_operator import BucketEngine, BucketProcessor


class AwaitedProcessor(BucketProcessor):
    """The operator of the stage for hypothetical answers."""

    def _choose_engine(self) -> type[BucketEngine]:
        return AwaitedBucket
