"""Run a batch pipeline: read its sources once, and write all answers."""

from __future__ import annotations

import json

from tidelog.errors import TidelogError
from tidelog.spark.job.failures import to_tidelog_error
from tidelog.spark.job.session import query_settings
from tidelog.spark.pipeline.preparation import PreparedPipeline
from tidelog.spark.pipeline.progress import Progress
from tidelog.spark.pipeline.sinks import select_awaited


def run_batch(prepared: PreparedPipeline) -> Progress:
    """Run a whole batch job; files appear once all answers are written."""
    p = prepared.pipeline
    progress = Progress()
    for sink in (p.answers, p.aside, p.awaited):
        if sink:
            prepared.open_sink(sink).require_absent()
    with query_settings(prepared.spark, prepared.partition_settings):
        job = prepared.build_job()
        frame = job.frame.persist()
        try:
            if not job.columns.time.startswith("timestamp"):
                warnings = (json.loads(row[0]).get("unit_warnings", ()) for row in job.stats(frame).collect())
                progress.unit_warning = next((message for found in warnings for message in found), None)
            progress.answers = prepared.open_sink(p.answers).write_all(job.answers(frame))
            if p.aside:
                progress.aside = prepared.open_sink(p.aside).write_all(job.set_aside(frame))
            if p.awaited:
                prepared.open_sink(p.awaited).write_all(select_awaited(job, p.awaited, frame))
        except TidelogError:
            raise
        except Exception as problem:
            raise to_tidelog_error(problem, p.log) from None
        finally:
            frame.unpersist()
    return progress
