"""Read a source once for all facts that come from it, and for its rows that cannot be read.

Spark reads a source as often as it occurs in a plan: once per DataFrame over it. DataFrames that only filter and
project the rows of another one are combined here: one DataFrame with the columns of all, and a column per condition.
A worker takes the facts of each predicate out of its batches (`RowSelection`).

What Spark knows about a DataFrame is asked through its Java classes, which Spark Connect does not have. Anything else
than a chain of filters and projections over the same rows (joins, aggregates, generated rows) is read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from tidelog.spark.plan.fact_columns import FactColumns, RowSelection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The operators below the rows that facts share: those that keep no state and give each row by itself.
_STATELESS = {"Project", "Filter", "EventTimeWatermark", "MapInArrow", "PythonMapInArrow", "CollectMetrics"}


@dataclass(frozen=True)
class Scan:
    """A DataFrame that holds the facts of one or several predicates, and how each is selected from it."""

    frame: DataFrame
    selections: tuple[RowSelection, ...]


@dataclass(frozen=True)
class _Chain:
    """Filters and projections over rows: `fields` and `conditions` are expressions of Spark's, `rows` is a plan."""

    fields: list[Any]
    conditions: list[Any]
    rows: Any


#: A DataFrame of facts with their columns, or of rows that could not be read with None.
Input = tuple["DataFrame", FactColumns | None]


def share_scans(inputs: Sequence[Input], *, once: bool) -> list[Scan]:
    """Combine DataFrames over the same rows, if `once`; keep the order in which their sources occur first.

    The checkpoint of a stream has an entry for each time that a source is read.
    """
    groups: list[list[tuple[Input, _Chain | None]]] = []
    for given in inputs:
        chain = _find_chain(given[0]) if once and len(inputs) > 1 else None
        for group in groups:
            if chain and group[0][1] and group[0][1].rows.equals(chain.rows):
                group.append((given, chain))
                break
        else:
            groups.append([(given, chain)])
    return [_combine(group) for group in groups]


def _find_chain(frame: DataFrame) -> _Chain | None:
    """Return a DataFrame as filters and projections over rows that can be shared, or None."""
    java: Any = getattr(frame, "_jdf", None)
    if java is None:  # a DataFrame of Spark Connect
        return None
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        catalyst = _jvm(frame).org.apache.spark.sql.catalyst
        # What is cached stays cached. Spark looks for that in batch DataFrames only.
        plan = java.queryExecution().analyzed() if frame.isStreaming else java.queryExecution().withCachedData()
        plan = catalyst.analysis.EliminateView.apply(catalyst.analysis.EliminateSubqueryAliases.apply(plan))
        found = catalyst.planning.PhysicalOperation.unapply(plan)
        if found.isEmpty():
            return None
        fields, conditions, rows = found.get()._1(), found.get()._2(), found.get()._3()
        filters = list(_items(conditions))
        while rows.nodeName() == "Filter" and rows.condition().deterministic():
            # Spark leaves a filter where it is if the one below it depends on where it is evaluated.
            filters, rows = [rows.condition(), *filters], rows.child()
        chain = _Chain(list(_items(fields)), filters, rows)
        # A Python function, or a subquery, would run for rows that another condition of the query excludes.
        patterns = catalyst.trees.TreePattern
        unfit = (patterns.PYTHON_UDF(), patterns.PLAN_EXPRESSION())
        if any(one.containsPattern(kind) for one in chain.fields + chain.conditions for kind in unfit):
            return None
        return chain if _is_stateless(rows) else None
    except Py4JError:
        return None  # another Spark, with other classes: read by itself


def _is_stateless(plan: Any) -> bool:
    """Return whether a plan reads one source row by row: shared state would change the state of old checkpoints."""
    while not plan.children().isEmpty():
        if plan.nodeName() not in _STATELESS or plan.children().size() > 1:
            return False
        plan = plan.children().head()
    return True


def _combine(group: list[tuple[Input, _Chain | None]]) -> Scan:
    """Build the DataFrame that several DataFrames are selected from."""
    from pyspark.sql import DataFrame

    (first, shape), chain = group[0]
    if len(group) == 1 or chain is None:
        return Scan(first, (RowSelection(shape),))
    spark: Any = first.sparkSession
    columns: dict[str, Column] = {}
    selections: list[RowSelection] = []
    conditions: list[Column | None] = []
    for number, ((frame, shape), own) in enumerate(group):
        assert own is not None
        where = reduce(and_, (_column(frame, one) for one in own.conditions)) if own.conditions else None
        conditions.append(where)
        selections.append(_select(number, frame, shape, own, where, columns))
    shared = DataFrame(_jvm(first).org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, chain.rows), spark)
    wanted = [where for where in conditions if where is not None]
    if len(wanted) == len(conditions):
        shared = shared.where(reduce(or_, wanted))
    return Scan(shared.select(*(column.alias(name) for name, column in columns.items())), tuple(selections))


def _select(
    number: int,
    frame: DataFrame,
    shape: FactColumns | None,
    chain: _Chain,
    where: Column | None,
    columns: dict[str, Column],
) -> RowSelection:
    """Add the columns of one DataFrame to those of all, and return how its rows are selected from them."""
    from pyspark.sql import functions as F  # noqa: N812

    condition = None if where is None else f"is{number}"
    if where is not None:
        columns[f"is{number}"] = F.coalesce(where, F.lit(False))
    places: list[tuple[str, str]] = []
    for name, field in zip(frame.columns, chain.fields, strict=True):
        if field.nodeName() == "AttributeReference":
            place = f"c{field.exprId().id()}"
            columns[place] = _column(frame, field)
        else:
            # As in the query itself, an expression is not evaluated for rows that its condition excludes.
            place, value = f"c{number}_{name}", _column(frame, field.child())
            columns[place] = value if where is None else F.when(where, value)
        places.append((name, place))
    return RowSelection(shape, tuple(places), condition)


def _jvm(frame: DataFrame) -> Any:
    return frame.sparkSession._jvm


def _items(sequence: Any) -> Iterator[Any]:
    """Yield the items of a sequence of Scala's."""
    return (sequence.apply(i) for i in range(sequence.size()))


def _column(frame: DataFrame, expression: Any) -> Column:
    from pyspark.sql.classic.column import Column

    return Column(_jvm(frame).org.apache.spark.sql.classic.ExpressionUtils.column(expression))
