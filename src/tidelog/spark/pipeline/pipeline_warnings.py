"""Decide what a pipeline refuses: warnings about predicates by default, all with `strict = true`, none with `false`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from tidelog.analysis.program_warnings import find_data_warnings, find_program_warnings, make_strict, select_rules
from tidelog.analysis.value_columns import ValueColumn
from tidelog.analysis.value_types import find_type_conflicts
from tidelog.data.dataset import Dataset
from tidelog.data.input_warnings import find_sort_warnings
from tidelog.errors import Diagnostic
from tidelog.spark.pipeline.pipeline_config import Pipeline

_CAST = "give both the same type in the SQL of their facts, like CAST(id AS STRING) or CAST(id AS BIGINT)"


def find_pipeline_warnings(pipeline: Pipeline) -> tuple[Diagnostic, ...]:
    """Find the warnings of a pipeline before its background is loaded; those that it refuses are errors."""
    style = find_program_warnings(pipeline.program)
    names = () if pipeline.background else _find_name_warnings(pipeline, ())
    return (*_judge(style, bool(pipeline.strict)), *_judge(names, pipeline.strict is not False))


def check_facts(
    pipeline: Pipeline, background: Dataset | None, columns: Iterable[ValueColumn]
) -> tuple[Diagnostic, ...]:
    """Return the warnings that need the background and the types of columns; raise those that the pipeline refuses."""
    known = (*columns, *(background.sources if background else ()))
    conflicts = find_type_conflicts(select_rules(pipeline.program.rules, [pipeline.query]), known)
    found = [replace(conflict, help=_CAST) for conflict in conflicts]
    if background is not None:
        found += _find_name_warnings(pipeline, {name for name, _ in background.relations})
        found += find_sort_warnings(pipeline.program, background)
    if pipeline.strict is not False:
        make_strict(found)
    return tuple(found)


def _find_name_warnings(pipeline: Pipeline, background: Collection[str]) -> tuple[Diagnostic, ...]:
    given = {*background, *(fact.predicate for fact in pipeline.facts)}
    return find_data_warnings(pipeline.program, given, [pipeline.query])


def _judge(warnings: tuple[Diagnostic, ...], refused: bool) -> tuple[Diagnostic, ...]:
    return tuple(replace(warning, severity="error") for warning in warnings) if refused else warnings
