"""The keys of a pipeline file for corrections: `corrections`, `op` of facts, and `envelope` of sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.toml_tables import TomlTable
from tidelog.spark.job.options import JobOptions, require_correctable
from tidelog.spark.pipeline.pipeline_config import OPERATION, FactQuery, Pipeline, Source
from tidelog.streaming.output_times import parse_corrections


def add_envelope_operations(facts: Sequence[FactQuery], sources: Sequence[Source]) -> tuple[FactQuery, ...]:
    """Return facts with the column `op` where they are read from a source in an envelope."""
    wrapped = {source.name.lower() for source in sources if source.envelope}
    return tuple(
        replace(fact, op=OPERATION) if fact.op is None and find_words(fact.sql) & wrapped else fact for fact in facts
    )


def find_words(sql: str) -> set[str]:
    """Return the words of a query, in lower case; the names of its sources are among them."""
    return set(re.findall(r"\w+", sql.lower()))


def check_corrections(pipeline: Pipeline, top: TomlTable) -> None:
    """Note what does not go together with corrections, and deletions that need them."""
    if pipeline.streaming and pipeline.corrections is None and "corrections" not in top.values:
        for fact in pipeline.facts:
            if fact.op is not None:
                message = f"the column `{fact.op}` of {fact.predicate} says which rows delete a fact"
                help = 'say for how long corrections are taken: corrections = "1h"'
                top.errors.append(Diagnostic("TL407", message, fact.place, help=help))
    if pipeline.corrections is None:
        return
    try:
        parse_corrections(pipeline.corrections, pipeline.delays, pipeline.memory)
        require_correctable(
            JobOptions(
                corrections=pipeline.corrections,
                at=pipeline.at,
                awaiting=pipeline.awaiting if pipeline.awaited else None,
                answer_until=pipeline.until,
            )
        )
    except TidelogError as problem:
        for found in problem.diagnostics:
            top.refuse(found.code, found.message, "corrections", found.law, found.help)
