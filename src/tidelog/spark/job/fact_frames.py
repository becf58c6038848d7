"""Fact DataFrames on the driver: check their columns, select them for the workers, and collect background facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.compiler.validate import program_arities, require_arities
from tidelog.corrections.ledger import apply_deletions
from tidelog.data.dataset import Dataset
from tidelog.data.deletions import OPERATIONS, mark_deletions, read_operations
from tidelog.data.symbol_table import Symbols
from tidelog.data.table_reader import read_arrow_columns
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program
from tidelog.language.wording import suggest
from tidelog.spark.job.fact_schemas import FactFrame
from tidelog.spark.job.struct_types import declare_columns
from tidelog.spark.plan.fact_columns import FactColumns
from tidelog.spark.worker.fact_packer import describe_operation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME_COLUMNS = ("time", "start", "end", "closed")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TIMESTAMPS = ("timestamp", "timestamp_ntz", "date")
_LAW = (
    "a fact DataFrame has the arguments in order, then `time`, or `start`, `end` and optionally `closed`, "
    "or no time at all; and optionally `op`"
)


def find_all_columns(program: Program, facts: Mapping[str, FactFrame]) -> dict[str, FactColumns]:
    """Find the columns of all fact DataFrames; raise all errors at once."""
    arities = program.predicates
    columns: dict[str, FactColumns] = {}
    problems: list[Diagnostic] = []
    for name, frame in facts.items():
        if name not in arities:
            close = suggest(name, arities)
            help = f"did you mean {close}?" if close else "leave it out, or correct its name"
            problems.append(Diagnostic("TL302", f"there are facts of {name}, but no rule has it", help=help))
            continue
        try:
            columns[name] = find_fact_columns(name, frame.fields, arities[name])
        except TidelogError as error:
            problems += error.diagnostics
    if problems:
        raise TidelogError(problems)
    return columns


def find_fact_columns(predicate: str, fields: Sequence[tuple[str, str]], arity: int | None) -> FactColumns:
    """Find the arguments and times among (name, type). `arity` is that of the rules, if they have the predicate."""
    times = {name.lower(): (name, kind) for name, kind in fields if name.lower() in _TIME_COLUMNS}
    args = tuple((name, kind) for name, kind in fields if name.lower() not in _TIME_COLUMNS)
    # A column `op` is an argument if the rules have one more argument than there are other columns.
    op = next((name for name, _ in args if name.lower() == "op"), None) if len(args) != arity else None
    args = tuple((name, kind) for name, kind in args if name != op)
    problems: list[Diagnostic] = []

    def problem(message: str, help: str | None = None) -> None:
        problems.append(Diagnostic("TL205", f"facts of {predicate}: {message}", law=_LAW, help=help))

    present = times.keys()
    if present and present != {"time"} and not {"start", "end"} <= present <= {"start", "end", "closed"}:
        problem(f"the columns {', '.join(sorted(present))} do not say when a fact holds", "rename or drop some of them")
    if arity is not None and len(args) != arity:
        problem(
            f"there are {len(args)} columns for arguments ({', '.join(name for name, _ in args) or 'none'}), "
            f"but {predicate} has {arity} in the rules",
            "select the arguments in order, then the time",
        )
    for name, kind in args:
        if _base(kind) in ("array", "map", "struct", "binary", "variant", "interval"):
            problem(f"the column `{name}` of type {kind} cannot be an argument", "cast it to a string or a number")
    if op is not None and dict(fields)[op] != "string":
        problem(f"the column `{op}` cannot say whether a row is deleted", f"use strings: {', '.join(OPERATIONS)}")
    for role, (name, kind) in times.items():
        if role == "closed" and kind != "string":
            problem(
                f"the column `{name}` of type {kind} cannot say which ends are closed",
                "use both, left, right or neither",
            )
        if role != "closed" and not _is_number(kind) and kind not in _TIMESTAMPS:
            problem(f"the column `{name}` of type {kind} cannot be a time", "cast it to a timestamp or a number")
    if problems:
        raise TidelogError(problems)
    return FactColumns(predicate, args, tuple((role, times[role][1]) for role in _TIME_COLUMNS if role in times), op)


def require_no_operations(columns: Iterable[FactColumns]) -> None:
    """Raise TL407 if rows may delete facts of a job that takes no deletions."""
    problems = [
        Diagnostic(
            "TL407",
            f"facts of {one.predicate}: the column `{one.op}` says which rows delete a fact",
            help='say for how long corrections are taken: corrections = "1h" in the pipeline, or corrections="1h"',
        )
        for one in columns
        if one.op is not None
    ]
    if problems:
        raise TidelogError(problems)


def select_fact_columns(given: FactFrame, columns: FactColumns) -> DataFrame:
    """Select the columns of a fact DataFrame under the names that workers expect; cast to types that were declared."""
    frame, names = given.frame, {name.lower(): name for name, _ in given.fields}
    renamed = {f"arg{i + 1}": column for i, column in enumerate(columns.args)}
    renamed |= {role: (names[role], kind) for role, kind in columns.times}
    if columns.op is not None:
        renamed["op"] = columns.op, dict(given.fields)[columns.op]
    if not given.declared:
        return frame.select(*(frame[f"`{name}`"].alias(new) for new, (name, _) in renamed.items()))
    selected = frame.select(*(frame[f"`{name}`"].cast(kind).alias(new) for new, (name, kind) in renamed.items()))
    return declare_columns(selected, ", ".join(f"{new} {kind}" for new, (_, kind) in renamed.items()))


def find_time_type(columns: Mapping[str, FactColumns], whole: bool) -> str:
    """Return the type of the times in answers; `whole` if all numbers in the rules are whole."""
    types = {kind for one in columns.values() for kind in one.time_types}
    stamps = {kind for kind in types if kind in _TIMESTAMPS}
    if stamps and stamps != types:
        raise TidelogError(
            Diagnostic(
                "TL205",
                f"some times are timestamps and others are numbers ({', '.join(sorted(types))})",
                law="all times of a job are timestamps, or all are numbers",
                help="cast the numbers: timestamp_seconds(time)",
            )
        )
    if stamps:
        return "timestamp_ntz" if stamps == {"timestamp_ntz"} else "timestamp"
    return "bigint" if whole and all(kind in _INTEGERS for kind in types) else "double"


def collect_background(
    program: Program, given: Dataset | None, facts: Mapping[str, FactFrame], columns: Mapping[str, FactColumns]
) -> Dataset:
    """Collect the facts that every bucket knows from the start: `given`, and DataFrames that are not streaming."""
    data = read_time_arguments(program, given or Dataset())
    for name, frame in facts.items():
        data = data | _collect_facts(select_fact_columns(frame, columns[name]), columns[name])
    require_arities(program_arities(program), data)
    return data


def _collect_facts(frame: DataFrame, shape: FactColumns) -> Dataset:
    """Collect the facts of a batch DataFrame into this process."""
    symbols = Symbols()
    table = frame.toArrow().combine_chunks()
    arrays = {name: table[name].combine_chunks() for name in table.column_names}
    words = arrays.pop("op").to_pylist() if shape.op is not None else []
    deleted = read_operations(words)
    if None in deleted:
        message = describe_operation(shape.op or "op", words[deleted.index(None)])
        raise TidelogError(Diagnostic("TL206", f"facts of {shape.predicate}: {message}", help="correct the rows"))
    found = read_arrow_columns(
        list(arrays), list(arrays.values()), table.num_rows, shape.predicate, f"facts of {shape.predicate}", symbols
    )
    return apply_deletions(Dataset(symbols, mark_deletions(found, [bool(one) for one in deleted])))


def find_last_time(inputs: Mapping[str, tuple[DataFrame, FactColumns]]) -> Fraction:
    """Return the largest start of a fact of the input, on the clock of a stream, which counts milliseconds.

    Deletions do not move the clock.
    """
    deleting = ", ".join(f"'{word}'" for word, deletes in OPERATIONS.items() if deletes)
    found: list[Fraction] = []
    for frame, shape in inputs.values():
        name, kind = next((n, k) for n, k in shape.times if n != "closed")
        stamped = kind in ("timestamp", "timestamp_ntz", "date")
        largest = f"unix_micros(cast(max(`{name}`) as timestamp))" if stamped else f"cast(max(`{name}`) as string)"
        if shape.op is not None:
            frame = frame.where(f"op IS NULL OR lower(trim(op)) NOT IN ({deleting})")
        (value,) = frame.selectExpr(f"{largest} as t").first() or (None,)
        if value is not None:
            found.append(Fraction(value, 10**6) if stamped else Fraction(value))
    if not found:
        raise TidelogError(
            Diagnostic("TL307", "there are no facts to backfill from", help="set `until`, or pass facts")
        )
    return Fraction(floor(max(found) * 1000), 1000)


def _base(kind: str) -> str:
    return kind.split("<")[0].split("(")[0].split(" ")[0]


def _is_number(kind: str) -> bool:
    return kind in (*_INTEGERS, "float", "double") or _base(kind) == "decimal"
