"""Schemas of tables: which file or topic holds a predicate, what its columns mean, and how their times are written.

A schema file is TOML, with one section for each predicate:

    [schema.Reading]
    file = "readings.csv"
    columns = { sensor = "text", value = "number", at = "time" }
    time = "at"
    unit = "ms"

`tidelog infer` prints a first version. `table_reader` reads tables with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tidelog.errors import Place, TidelogError
from tidelog.language.file_errors import check_utf8, read_input
from tidelog.language.wording import suggest
from tidelog.timeline.interval import CLOSED_ENDS

if TYPE_CHECKING:
    from tidelog.language.toml_tables import TomlTable

#: The name of a schema file that is found next to the rules.
SCHEMA_FILE = "tidelog.toml"

ColumnType = Literal["text", "number", "time"]
TYPES: tuple[ColumnType, ...] = ("text", "number", "time")
#: Ticks per second of the units of numeric times.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIME_ROLES = ("time", "start", "end")


@dataclass(frozen=True)
class Column:
    """A column of a table: its name and the type of its values."""

    name: str
    type: ColumnType


@dataclass(frozen=True)
class TableSchema:
    """The columns of one predicate, and how its times are written.

    `time`, or `start` and `end`, name the columns that say when a fact holds; none of them means background knowledge.
    All other columns are the arguments, in the order of `columns`. `closed` is a column, or a word for all rows.
    """

    predicate: str
    columns: tuple[Column, ...]
    file: str | None = None
    topic: str | None = None
    time: str | None = None
    start: str | None = None
    end: str | None = None
    closed: str | None = None
    #: The column that says whether a row is inserted or deleted.
    op: str | None = None
    #: The unit of numeric times since 1970-01-01 UTC; None if numbers are plain numbers.
    unit: str | None = None
    #: The zone of dates without an offset, as an IANA name; None means UTC.
    zone: str | None = None
    #: Which of two local times is meant when clocks are set back: `earlier` or `later`; None refuses them.
    ambiguous: str | None = None

    @cached_property
    def arguments(self) -> tuple[Column, ...]:
        """The columns that are arguments, in order."""
        times = {self.time, self.start, self.end, self.closed, self.op}
        return tuple(column for column in self.columns if column.name not in times)


@dataclass(frozen=True)
class Schema:
    """The schemas of several predicates.

    >>> schema = parse_schema('[schema.Paid]\\ncolumns = { order = "text", time = "time" }')
    >>> schema.column_names("Paid"), schema.column_names("Sent")
    (('order',), None)
    """

    tables: Mapping[str, TableSchema] = field(default_factory=dict)
    #: The file that the schema was read from; files of tables are relative to its folder.
    source: str | None = None
    #: Whether a column `op` of any table says if a row is inserted or deleted, as in a stream that takes corrections.
    takes_changes: bool = False

    def column_names(self, predicate: str, arity: int | None = None) -> tuple[str, ...] | None:
        """Return the names of a predicate's arguments; None if they are not declared, or are not `arity` many."""
        table = self.tables.get(predicate)
        if table is None or (arity is not None and len(table.arguments) != arity):
            return None
        return tuple(column.name for column in table.arguments)

    def describe_columns(self, predicates: Collection[str]) -> str:
        """Describe the declared columns of predicates: `Ordered(order), Paid(order)`; empty if there are none."""
        named = ((name, self.column_names(name)) for name in sorted(predicates))
        return ", ".join(f"{name}({', '.join(columns)})" for name, columns in named if columns)

    def find_tables(self, path: str, predicate: str | None) -> list[TableSchema]:
        """Find the schemas that a file is read with: that of its predicate, or all that name the file.

        `predicate` is the one in front of the path, as in `Paid=orders.csv`; None if there is none.
        """
        if predicate is not None:
            return [self.tables[predicate]] if predicate in self.tables else []
        return [table for table in self.tables.values() if table.file and self._is_file(table.file, path)]

    def find_topic(self, topic: str) -> list[TableSchema]:
        """Find the schemas of all predicates that are read from a topic."""
        return [table for table in self.tables.values() if table.topic == topic]

    def _is_file(self, file: str, path: str) -> bool:
        folder = Path(self.source).parent if self.source else Path()
        return (folder / file).resolve() == Path(path).resolve()


def load_schema(path: str | Path) -> Schema:
    """Load a schema file; raise a TidelogError that lists every mistake with its place."""
    data = read_input(str(path))
    check_utf8(data, str(path))
    return parse_schema(data.decode("utf-8-sig"), str(path))


def find_schema_file(rules: str) -> str | None:
    """Find the schema file next to the rules, which is used unless a command names another."""
    if rules == "-":
        return None
    beside = Path(rules).parent / SCHEMA_FILE
    return str(beside) if beside.is_file() else None


def parse_schema(text: str, source: str | None = None) -> Schema:
    """Parse the text of a schema file."""
    # Without a schema, nothing of TOML is needed.
    from tidelog.language.toml_places import read_toml
    from tidelog.language.toml_tables import TomlTable

    values, places = read_toml(text, source or "<schema>")
    file = TomlTable(values, places, [], file_kind="a schema file")
    tables: dict[str, TableSchema] = {}
    for predicate, table in file.table("schema", required=True).tables():
        if isinstance(table, str):
            file.refuse("TL805", f"`schema.{predicate}` must be a table", help=f"write [schema.{predicate}]")
        else:
            tables[predicate] = read_table_schema(predicate, table)
    file.finish()
    if file.errors:
        raise TidelogError(sorted(file.errors, key=lambda error: (error.place or Place("", 0, 0)).line))
    return Schema(tables, source)


def read_table_schema(predicate: str, table: TomlTable) -> TableSchema:
    """Read the section of one predicate; mistakes are noted in the errors of `table`."""
    schema = replace(read_column_schema(predicate, table), file=table.text("file"), topic=table.text("topic"))
    table.finish()
    return schema


def read_column_schema(predicate: str, table: TomlTable) -> TableSchema:
    """Read the keys that say what the columns of a predicate mean; mistakes are noted in the errors of `table`."""
    columns = _read_columns(table)
    known = [column.name for column in columns]
    named = {role: _read_column_name(table, role, known) for role in _TIME_ROLES}
    if not any(named.values()):
        # A column that has the name of its role need not be named again.
        named = {role: role if role in known else None for role in _TIME_ROLES}
    schema = TableSchema(
        predicate,
        columns,
        time=named["time"],
        start=named["start"],
        end=named["end"],
        closed=_read_closed(table, known),
        op=_read_column_name(table, "op", known),
        unit=table.choice("unit", tuple(UNITS)),
        zone=_read_zone(table),
        ambiguous=table.choice("ambiguous", ("earlier", "later")),
    )
    _check_times(schema, table)
    return schema


def _read_columns(table: TomlTable) -> tuple[Column, ...]:
    kinds = table.table("columns", required=True)
    columns: list[Column] = []
    for name in kinds.values:
        kind = kinds.choice(name, TYPES)
        columns.extend(Column(name, known) for known in TYPES if known == kind)
    return tuple(columns)


def _read_column_name(table: TomlTable, key: str, known: list[str]) -> str | None:
    name = table.text(key)
    if name is None or name in known:
        return name
    close = suggest(name, known)
    kind = "text" if key == "op" else "time"
    help = f"did you mean {close}?" if close else f'add {name} = "{kind}" to `columns`'
    table.refuse("TL805", f"there is no column `{name}`", key, f"the columns are {', '.join(known)}", help)
    return None


def _read_closed(table: TomlTable, known: list[str]) -> str | None:
    closed = table.text("closed")
    if closed is None:
        return "closed" if "closed" in known else None
    if closed in CLOSED_ENDS or closed in known:
        return closed
    law = f"`closed` is one of {', '.join(CLOSED_ENDS)}, or a column that holds these words"
    table.refuse("TL805", f"`closed` cannot be `{closed}`", "closed", law)
    return None


def _read_zone(table: TomlTable) -> str | None:
    from zoneinfo import ZoneInfo, available_timezones

    zone = table.text("zone")
    if zone is None:
        return None
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        close = suggest(zone, available_timezones())
        help = f"did you mean {close}?" if close else 'write a name like "Europe/Berlin" or "UTC"'
        table.refuse("TL805", f"there is no time zone `{zone}`", "zone", "zones have IANA names", help)
        return None
    return zone


def _check_times(schema: TableSchema, table: TomlTable) -> None:
    """Note an error if the time columns do not fit together."""
    if schema.time and (schema.start or schema.end):
        table.refuse("TL805", "a fact has a `time`, or a `start` and an `end`, but not both")
    elif bool(schema.start) != bool(schema.end):
        given, missing = ("start", "end") if schema.start else ("end", "start")
        table.refuse("TL804", f"there is a column for `{given}`, but none for `{missing}`")
    for role in _TIME_ROLES:
        name = getattr(schema, role)
        column = next((column for column in schema.columns if column.name == name), None)
        if column is not None and column.type != "time":
            help = f'write {name} = "time" in `columns`'
            problem = f"the column `{name}` says when a fact holds, but its type is {column.type}"
            table.refuse("TL805", problem, help=help)
