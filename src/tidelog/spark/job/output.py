"""The output of a job: one DataFrame of packed rows, and how to take answers, late facts and figures out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.analysis.distribution import Distribution, describe_distribution
from tidelog.spark.awaiting import change_rows
from tidelog.spark.awaiting.awaited_plan import describe_awaited_stage
from tidelog.spark.job.struct_types import declare_columns, read_struct_type
from tidelog.spark.plan.job_plan import JobPlan
from tidelog.spark.worker import answer_columns, packed_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class JobOutput:
    """Everything that a job gives, as packed rows of several kinds.

    Each method selects one kind. Pass it a micro-batch of `frame` to read only that batch. A function of `foreachBatch`
    may use it over Spark Connect, too: a copy for another process leaves `frame` behind.
    """

    frame: DataFrame
    split: Distribution
    plan: JobPlan
    columns: answer_columns.AnswerColumns

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "frame": None}

    def answers(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the answers: `arg1`, `arg2`, ..., `start`, `end`, `closed`; with corrections their changes, which also
        have `change` and `known`."""
        packed = self._select(packed_rows.ANSWER, frame)
        return packed.mapInArrow(
            answer_columns.make_answer_unpacker(self.columns), read_struct_type(self.columns.schema)
        )

    def awaited(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the changes of hypothetical answers: `id`, `step`, `change`, `arg1`, ..., `time`, `watermark`,
        `evidence`, `hypotheses`, `decided_by`, `confidence`, `conditions`."""
        packed, columns = self._select(packed_rows.AWAITED, frame), self._awaited_columns()
        return packed.mapInArrow(change_rows.make_change_unpacker(columns), read_struct_type(columns.schema))

    def awaited_lines(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the same changes as text: `line`."""
        write = change_rows.make_line_writer(self.plan.query, self._awaited_columns())
        return self._select(packed_rows.AWAITED, frame).mapInArrow(write, read_struct_type("line string"))

    def late(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the facts that arrived later than their delay allows, as text: `fact`."""
        return self._select(packed_rows.LATE, frame).mapInArrow(
            answer_columns.unpack_fact_text, read_struct_type("fact string")
        )

    def set_aside(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the input rows that are not facts, as JSON: `row`."""
        return self._select(packed_rows.BAD, frame).mapInArrow(
            answer_columns.unpack_lines, read_struct_type("row string")
        )

    def saved(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the state of all buckets at the end of a backfill, in chunks: `bucket`, `stage`, `t`, `number`,
        `chunk`."""
        packed = self._select(packed_rows.STATE, frame)
        return packed.mapInArrow(answer_columns.unpack_saved_states, read_struct_type(packed_rows.SAVED_STATE_SCHEMA))

    def stats(self, frame: DataFrame | None = None) -> DataFrame:
        """Return the figures of every step of every bucket, as JSON: `step`."""
        return self._select(packed_rows.STATS, frame).selectExpr("cast(payload as string) as step")

    def collect(self, frame: DataFrame, *kinds: str) -> dict[str, list[bytes]]:
        """Read the packed rows of some kinds of a micro-batch, by kind."""
        found: dict[str, list[bytes]] = {kind: [] for kind in kinds}
        for kind, payload in frame.where(frame.kind.isin(*kinds)).select("kind", "payload").collect():
            found[kind].append(bytes(payload))
        return found

    def describe(self) -> list[str]:
        """Describe in sentences how the work is split."""
        lines = describe_distribution(self.split, self.plan.max_buckets)
        return lines if self.plan.awaited is None else [*lines, describe_awaited_stage(self.plan.awaited)]

    def _awaited_columns(self) -> change_rows.ChangeColumns:
        return change_rows.ChangeColumns(self.columns.args, self.columns.time)

    def _select(self, kind: str, frame: DataFrame | None) -> DataFrame:
        frame = self.frame if frame is None else frame
        selected = frame.where(frame.kind == kind).select("bucket", "payload")
        return declare_columns(selected, "bucket int, payload binary")
