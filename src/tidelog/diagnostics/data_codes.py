"""TL2xx: facts, tables and data files."""

from __future__ import annotations

from tidelog.diagnostics.entry import DiagnosticEntry, Example

DATA_CODES = (
    DiagnosticEntry(
        "TL201",
        "an unreadable fact",
        Example("facts", "Smoke(hall@3", "Smoke(hall)@3"),
        law="a fact is P(a,b)@[0,3), P(a)@7, Alarm@(-inf,2], or without @ where it holds at all times",
    ),
    DiagnosticEntry(
        "TL202",
        "an unreadable time",
        Example("facts", "Smoke(hall)@noon", "Smoke(hall)@2026-01-31T12:00:00Z"),
        law=(
            "a time is a number (3, 0.5, 1/3), inf, -inf, a duration (500ms, 5s, 10min, 2h, 1d, 1w) "
            "or a date (2026-01-31T10:00:00Z)"
        ),
    ),
    DiagnosticEntry(
        "TL203",
        "an empty interval",
        Example("facts", "Smoke(hall)@[5,3]", "Smoke(hall)@[3,5]"),
        law="a fact holds at one time point at least",
    ),
    DiagnosticEntry(
        "TL204",
        "a time that does not fit into 63 bits",
        Example("facts", "Smoke(hall)@99999999999999999999", "Smoke(hall)@99999999"),
        law="times are whole numbers of ticks (the common denominator of program and data) below 2^60",
        help="use fewer decimal places, or times closer to 0",
    ),
    DiagnosticEntry(
        "TL205",
        "a table whose columns do not make facts",
        Example("csv", "room,time,start\nhall,3,2", "room,time\nhall,3"),
        law=(
            "the columns of a table are its arguments and `time`, or `start` and `end` (and `closed`), "
            "or no time at all"
        ),
    ),
    DiagnosticEntry(
        "TL206",
        "an unreadable cell of a table",
        Example("csv", "room,time\nhall,noon", "room,time\nhall,12"),
        help="correct the cell; --bad-rows FILE sets rows aside that cannot be read",
    ),
    DiagnosticEntry(
        "TL207",
        "an unreadable data file",
        Example(
            "command",
            "tidelog materialise rules.dmtl Smoke=data.facts",
            "tidelog materialise rules.dmtl data.facts",
        ),
        note="The file is not what its suffix says, or its name is not a predicate.",
    ),
    DiagnosticEntry(
        "TL208",
        "a join of numbers with text",
        Example(
            "situation",
            'a rule joins a column of a CSV file, in which 1001 is a number, with one of a JSON file that says "1001".',
            "declare the type of the columns in a schema.",
        ),
        law='the number 1001 and the text "1001" are different constants',
        help="declare the type of both columns in a schema: `tidelog infer DATA...` prints one for --schema FILE",
    ),
    DiagnosticEntry(
        "TL209",
        "times in different units",
        Example(
            "situation",
            "one file has the time 2026-01-31T10:00:00Z, and another one 1769853600000.",
            'name the unit of the numbers in a schema: unit = "ms".',
        ),
        law="dates count seconds since 1970-01-01 UTC, so that numbers next to dates are seconds too",
        help="write all times as dates, or all as numbers; for a table, name the unit of its times in a schema",
    ),
    DiagnosticEntry(
        "TL210",
        "a table whose time column has another name",
        Example(
            "situation",
            "a CSV file has the columns room and timestamp, so that its facts have two arguments and no time.",
            "rename the column to time, or name it in a schema.",
        ),
        law="the time of a table is in its column `time`, or in `start` and `end`, unless a schema says otherwise",
    ),
    DiagnosticEntry(
        "TL211",
        "durations over times that are not seconds",
        Example(
            "situation",
            "the times of a table are epoch milliseconds, and a rule looks back by 2h, which is 7200 time units.",
            'name the unit of the times in a schema: unit = "ms".',
        ),
        law="a duration is a number of seconds, and numbers without a unit are counted as they are",
        help="name the unit of the times in a schema (`tidelog infer` prints one), or write ranges without units",
    ),
    DiagnosticEntry(
        "TL212",
        "text with spaces at its ends",
        Example(
            "situation",
            'a row of a CSV file is `o2 ,3`, so that its order is "o2 ", which is not the order "o2" of another file.',
            "remove the space from the file.",
        ),
        law='spaces count: "o2 " and "o2" are different constants',
    ),
    DiagnosticEntry(
        "TL213",
        "times with and without a time zone",
        Example(
            "situation",
            "the times of orders.csv are local, like 2026-01-31T10:00:00, and those of paid.csv 2026-01-31T10:00:00Z.",
            'name the zone of the local times in a schema: zone = "Europe/Berlin".',
        ),
        law="a time without an offset from UTC is read as UTC",
        help="write all times with an offset (Z or +01:00), or name the zone of a table's times in a schema: "
        'zone = "Europe/Berlin", or "UTC" if they are that already',
        note="A warning. Dates without a time of day are not counted.",
    ),
    DiagnosticEntry(
        "TL214",
        "two columns of one name",
        Example(
            "situation",
            "the first line of a CSV file is `order,order,time`: its facts have two arguments `order`.",
            "rename the columns, or remove one of them.",
        ),
        law="every column of a table is an argument, whatever its name, but `time`, or `start`, `end` and `closed`",
        help="rename one of them, or choose columns with a schema",
        note="A warning. A column of times that is there twice is an error.",
    ),
)
