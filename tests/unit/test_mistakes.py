"""A table of what newcomers get wrong, and the message that each mistake gets."""

from __future__ import annotations

import gzip
import re
import shlex
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import tidelog as tl
from shell import Shell

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "Hot(T) :- Reading(T, C), C > 80.\nOverheated(T) :- Boxminus[0,30s] Diamondminus[0,10s] Hot(T).\n"
READINGS = "turbine,celsius,time\nt1,90,0\nt1,91,10\n"
ARRIVALS = '{"arrival": 0, "fact": "Hot(a,0)"}\n'

BATCH = "materialise rules.dmtl Reading.csv"
STREAM = "stream rules.dmtl --query Hot --input Reading.csv"
BATCH_OF_R = "materialise r.dmtl Reading.csv"
STREAM_OF_R = "stream r.dmtl --query A --input Reading.csv"


class Mistake(NamedTuple):
    """A command over files that replace or join those of the project, and words of the message it gets."""

    command: str
    said: str
    files: dict[str, str] = {}  # noqa: RUF012
    code: int = 2


def rule(text: str, said: str, command: str = "check r.dmtl", code: int = 2) -> Mistake:
    return Mistake(command, said, {"r.dmtl": text}, code)


def table(text: str, said: str, code: int = 2) -> Mistake:
    return Mistake(BATCH, said, {"Reading.csv": text}, code)


def facts(text: str, said: str, code: int = 2) -> Mistake:
    return Mistake("materialise rules.dmtl d.facts", said, {"d.facts": text}, code)


FILES = [
    Mistake("check rule.dmtl", "did you mean rules.dmtl?"),
    Mistake("materialise rules.dmtl reading.csv", "did you mean Reading.csv?"),
    Mistake("stream rules.dmtl --query Hot --input Readin.csv", "did you mean Reading.csv?"),
    Mistake("materialise rules.dmtl nowhere.facts", "paths start from"),
    Mistake("materialise rules.dmtl nowhere/Reading.csv", "there is no folder nowhere"),
    Mistake("run pipelin.toml", "paths start from"),
    Mistake("materialise Reading.csv rules.dmtl", "rules come first, then data"),
    Mistake("check Reading.csv", "a table of facts, where rules are expected"),
    Mistake(
        "materialise rules.dmtl Reading=d.facts",
        "d.facts is not a table, so Reading cannot be its predicate",
        {"d.facts": "Reading(t1,90)@0\n"},
    ),
    Mistake("materialise - -", "standard input (-) can be read only once"),
    Mistake("materialise rules.dmtl Reading.xlsx", "save the sheet as CSV: Reading.csv", {"Reading.xlsx": "PK"}),
    Mistake(STREAM.replace("csv", "ods"), "save the sheet as CSV: Reading.csv", {"Reading.ods": "PK"}),
    Mistake("infer Reading.xls", "save the sheet as CSV: Reading.csv", {"Reading.xls": "PK"}),
    Mistake(
        "materialise rules.dmtl Reading.txt",
        "the name of a table ends with .csv, .tsv, .jsonl, .ndjson, .json or .parquet",
        {"Reading.txt": READINGS},
    ),
    Mistake("test", "there are no tests in this folder"),
]
OPTIONS = [
    Mistake(f"{STREAM} --until noon", "2026-01-31T10:00:00Z"),
    Mistake(f"{BATCH} --between 10:00,11:00", "2026-01-31T10:00:00Z"),
    Mistake(f"{BATCH} --between 5", "two times separated by a comma"),
    Mistake(f"{BATCH} --between 5,0", "ends before it begins"),
    Mistake(f"{STREAM} --at every", "every:10min"),
    Mistake(f"{STREAM} --step 5m", "did you mean 5min?"),
    Mistake(f"{STREAM} --delay Redding=5s", "did you mean Reading?"),
    Mistake(f"{STREAM} --query Overheated", "--query is given twice, but takes one value"),
    Mistake(f"{STREAM} --until 5 --until 9", "--until is given twice, but takes one value"),
    Mistake(f"{BATCH} --between 0,1 --between 2,3", "--between is given twice"),
    Mistake(f"{BATCH} --query overheatd", "did you mean Overheated?"),
    Mistake("materialize rules.dmtl", "Missing argument 'DATA...'"),
    Mistake("materialyse rules.dmtl Reading.csv", "did you mean materialise?"),
    Mistake(
        "hypothesise rules.dmtl --query Hot(X,T) --input Readig.csv",
        "add --timeline integer, if the rules mean whole time points",
    ),
    Mistake("window rules.dmtl --query Hot --check 3", "--check and --witness are for temporal Datalog (.tdl)"),
]
TABLES = [
    table("turbine,celsius,at\nt1,90,0\n", 'write time = "at" into a schema'),
    table("turbine;celsius;time\nt1;90;0\n", "columns are separated by commas in .csv"),
    table("turbine,celsius,time,Time\nt1,90,0,1\n", "names two columns `Time`"),
    Mistake(
        f"{BATCH} --schema s.toml",
        "names two columns `celsius`",
        {
            "Reading.csv": "turbine,celsius,celsius,time\nt1,90,91,0\n",
            "s.toml": '[schema.Reading]\ncolumns = { turbine = "text", celsius = "number", time = "time" }\n',
        },
    ),
    Mistake(
        f"{BATCH} --schema s.toml",
        "columns are separated by commas in .csv",
        {
            "Reading.csv": "turbine;celsius;time\nt1;90;0\n",
            "s.toml": '[schema.Reading]\ncolumns = { turbine = "text", celsius = "number", time = "time" }\n',
        },
    ),
    Mistake("infer Reading.csv", "columns are separated by commas in .csv", {"Reading.csv": "a;b;time\nt1;9,5;0\n"}),
    table("turbine,celsius,limit,time\nt1,90,80,0\n", "every column is an argument but `time`"),
    table("turbine,celsius,when\nt1,90,2026-01-31\n", 'write time = "when" into a schema'),
    table("turbine,celsius,time\nt1,90,0\nt2,90,2026-01-31\n", "some times are dates, like Reading(t2,90)@2026-01-31"),
    table("turbine,celsius,start\nt1,90,0\n", "one `time` for points in time, or `start` and `end` for intervals"),
    table("turbine;celsius;time\nt1;90,5;0\n", "columns are separated by commas in .csv"),
    table("", "the first line of a table names its columns"),
    table("turbine,turbine,time\nt1,90,0\n", "Reading.csv has 2 columns `turbine`", code=0),
    table("turbine,celsius,time\nt1,,0\n", "--bad-rows FILE sets rows aside that cannot be read"),
    table("turbine,celsius,minute,time\nt1,90,3,0\n", "its arguments are the columns turbine, celsius and minute"),
    table("t1,90,0\n", "put a line with the names of the columns first"),
    table("turbine,celsius,time\nt1,90,noon\n", "column `time`: `noon` is not a time"),
    table("turbine,celsius,start,end\nt1,90,5,3\n", "column `start`: the interval is empty"),
]
FACTS = [
    facts("Reading(t1,90@0\n", "a fact is P(a,b)@[0,3)"),
    facts("Reading(t1,90)@noon\n", "2026-01-31T10:00:00Z"),
    facts("Reading(t1,90)@[5,3]\n", "the first end comes before the second"),
    facts("Reading(t1,90)@99999999999999999999\n", "use fewer decimal places, or times closer to 0"),
    facts("Reading(t1)@0\n", "Reading has 1 argument in the data, but 2 arguments in the rules"),
    facts("Readings(t1,90)@0\n", "did you mean Readings? Use one name in rules and data", 0),
    facts("Reading(t1,90)@0\nPressure(t1,3)@0\n", "no rule reads the facts of Pressure", 0),
    facts("Temperature(t1,90)@0\n", "Reading has neither rules nor facts", 0),
]
RULE_TEXT = [
    rule("Hot(T) :- Reading(T, C) C > 80.", "a `,` is missing before it"),
    rule("Hot(T) :- Reading(T, C), C => 80.", "write `>=`"),
    rule("Hot(T) <- Reading(T, C).", "between head and body write `:-`"),
    rule("Hot(T) :- Reading(T, 'high').", "strings take double quotes"),
    rule('Hot(T) :- Reading(T, "high).', "this quote is not closed"),
    rule("Hot(T) :- Reading(T) & Wet(T).", "for `and` write `,`"),
    rule("Hot(T) :- Reading(T, high or low).", "Hot(T) :- Reading(T, high).  Hot(T) :- Reading(T, low)."),
    rule("Hot(T) :- Reading(T), or Wet(T).", "`or` stands between two literals"),
    rule("Hot(T) :- Reading(T), and Wet(T).", "`and` stands between two literals"),
    rule("Hot(T) :- Reading(T) | Wet(T).", "write `or`: A(X) or B(X)"),
    rule("Hot(T) :- Reading(T); Wet(T).", "write `or`: A(X) or B(X); for `and` write `,`"),
    rule("Hot(T) or Cold(T) :- Reading(T).", "a head has no `or`"),
    rule("Hot(T) :- Reading(T, S), S in (high, low).", "a set of values is a predicate of its own"),
    rule("Hot(T) :- !Reading(T).", "for a negation write `not`"),
    rule("Hot(T) :- Diamondminus[0,5m] Reading(T).", "did you mean 5min?"),
    rule("Hot(T) :- Diamondminus[0,2hours] Reading(T).", "did you mean 2h?"),
    rule("Hot(T) :- Diamondminus[0,5 min] Reading(T).", "write the unit next to the number: 5min"),
    rule("Hot(T) :- Diamondminus Reading(T).", "Diamondminus needs a range"),
    rule("Hot(T) :- Diamonminus[0,5] Reading(T).", "did you mean Diamondminus?"),
    rule("Hot(T) :- Diamondminus[5,0] Reading(T).", "the range [5,0] is empty"),
    rule("Hot(T) :- Diamondminus[-5,0] Reading(T).", "write Diamondminus[0,5]: Diamondminus has a fixed direction"),
    rule("Diamondplus[0,5] Hot(T) :- Reading(T).", "write Boxplus"),
    rule("Hot(T, C) :- Reading(T).", "variable C of the head is unsafe"),
    rule("Hot(T) :- On(T), not Reading(T, C).", "variable C of a negated literal is unsafe"),
    rule("Hot(T) :- Reading(T), not Reading(T, low).", "Reading has 2 arguments here but 1"),
    rule("A(X) :- B(X), not A(X).", "negation runs through a cycle", "materialise r.dmtl Reading.csv"),
    rule("Hot(T) :- Reading(T, Celsius).", "write _Celsius or _ if any value will do", code=0),
    rule("Hot(T) :- Reading(T, Celsius).", "error[TL111]", "check r.dmtl --strict"),
    rule("Hot(T) :- Reeding(T, _).", "did you mean Reading?", "materialise r.dmtl Reading.csv", 0),
    rule("Hot(T) :- Reeding(T, _).", "error[TL112]", "entails r.dmtl Reading.csv Hot(t1)@0 --strict"),
    rule("Hot(t) :- Reading(t, _).", "write T if a variable is meant", BATCH.replace("rules", "r"), 0),
    rule("Hot(t) :- Reading(t, _).", "error[TL125]", f"{BATCH} --strict".replace("rules", "r")),
    rule("Hot(t) :- Reading(t, _).", "write T if a variable is meant", STREAM.replace("rules", "r"), 0),
    rule("Hot(t) :- Reading(t, _).", "error[TL125]", f"{STREAM} --strict".replace("rules", "r")),
    rule("Hot(X) :- Reading(X, _), X = turbine1.", "correct the constant, or the data", BATCH.replace("rules", "r"), 0),
    rule("Hot(X) :- Reading(X, _), turbine1 = X.", "occurs in no fact", STREAM.replace("rules", "r"), 0),
    rule('Hot(X) :- Reading(X, _), X = "T1".', "did you mean t1?", STREAM.replace("rules", "r"), 0),
    rule('Hot(C) :- Reading("T1", C).', "did you mean t1?", BATCH.replace("rules", "r"), 0),
    rule('Hot(C) :- Reading("T1", C).', "did you mean t1?", STREAM.replace("rules", "r"), 0),
    rule("Hot(X) :- Reading(X, c).", "write C if a variable is meant", BATCH.replace("rules", "r"), 0),
    rule('Hot(X) :- Reading(X, C), C > "80".', "write 80 if a number is meant", BATCH.replace("rules", "r"), 0),
    rule(
        "Hot(T) :- Reading(T, _), not Cold(T).", "its negation always holds", f"{BATCH} --strict".replace("rules", "r")
    ),
    rule("Hot(T) :- Reading(T, _), not Cold(T).", "error[TL112]", f"{STREAM} --strict".replace("rules", "r")),
    rule("\n".join(["Hot(T) :- Reading(T)."] + ["Hot(T, x) :- Reading(T)."] * 20), "and 19 more times"),
]
TEMPORAL = [
    Mistake("check a.tdl", "`#temporal Alarm/2.`", {"a.tdl": "Alarm(X,T) :- Hot(X,T), Wet(X,T).\n"}),
    Mistake(
        "materialise a.tdl d.facts",
        "`#temporal Alarm/2.`",
        {"a.tdl": "Alarm(X,T) :- Hot(X,T).\n", "d.facts": "Hot(a,3)\n"},
    ),
    Mistake(
        "materialise a.tdl d.facts",
        "write `#temporal Wet/2.` if these numbers are times, and `#rigid Wet/2.` if not",
        {"a.tdl": "Alarm(X,T+1) :- Hot(X,T), Wet(X,_).\n", "d.facts": "Hot(a,3)\nWet(a,3)\n"},
        0,
    ),
    Mistake("check a.tdl", "did you mean #temporal?", {"a.tdl": "#temporl P/2.\nP(X, T+1) :- Q(X, T).\n"}),
    Mistake("check a.tdl", "rules with operators belong in a .dmtl file", {"a.tdl": "P(X) :- Boxminus[0,1] Q(X).\n"}),
]
MIXED = [
    Mistake(BATCH, "holds numbers and text", {"Reading.csv": "turbine,celsius,time\nt1,90,0\nt1,n/a,1\n"}, 0),
    Mistake(
        "materialise r.dmtl Order.csv Paid.jsonl",
        "column `id` of Order.csv holds only numbers, and column `id` of Paid.jsonl only text",
        {
            "r.dmtl": "Late(X) :- Order(X), not Diamondplus[0,9] Paid(X).\n",
            "Order.csv": "id,time\n1001,0\n",
            "Paid.jsonl": '{"id": "1001", "time": 3}\n',
        },
        0,
    ),
    Mistake(
        "materialise rules.dmtl Reading.csv more.facts",
        "and others numbers, like Reading(t1,90)@0 in Reading.csv",
        {"more.facts": "Reading(t1,90)@2026-01-31T10:00:00Z\n"},
    ),
    Mistake("entails rules.dmtl Reading.csv Hot(t1)", "it is read as Hot(t1)@(-inf,inf): does it always hold?", {}, 1),
]
HYPOTHESISE = "hypothesise {} --query Hot(X,T) --delay 2 --input arrivals.jsonl"
REFUSALS = [
    rule("P(X) :- Q(X), count[0,5]{ P(Y) } < 3.", "depends on an aggregate over itself at the same time", BATCH_OF_R),
    Mistake(
        "materialise r.dmtl d.facts",
        "`D :- A, B, C.` computes with A, B and C, and what follows from that did not repeat within the search",
        {
            "r.dmtl": "".join(
                f"{p} :- Diamondminus[{d},{d}] {p}.\n" for p, d in zip("ABC", (1999, 2003, 2011), strict=True)
            )
            + "D :- A, B, C.\n",
            "d.facts": "A@0\nB@0\nC@0\n",
        },
        3,
    ),
    Mistake(
        "materialise rules.dmtl d.facts --timeline integer",
        "the fact Reading(t1,90)@1/2 has a time that is not an integer",
        {"d.facts": "Reading(t1,90)@1\nReading(t1,90)@0.5\n"},
    ),
    rule("A(X) :- Diamondplus[0,inf) B(X).", "give the range that looks ahead an end", STREAM_OF_R),
    rule("A(X) :- Diamondplus[1,1] A(X). A(X) :- B(X).", "use operators of the past in recursive rules", STREAM_OF_R),
    rule("A(X) :- B(X), count[0,5]{ C(X) } > 2.", "it calculates or aggregates", f"{STREAM_OF_R} --memory bounded"),
    Mistake(
        "materialise r.dmtl d.facts",
        "give the facts of Bad, or those that they follow from, a beginning",
        {"r.dmtl": "Alert(X) :- Bad(X), not Diamondminus[1,3] Alert(X).", "d.facts": "Bad(a)\n"},
    ),
    rule(
        'A(X) :- Reading(X, _), calendar:weekday("UTC", sunday).',
        "r.dmtl:1:24: error[TL315]: rules read a calendar",
        BATCH_OF_R,
    ),
    rule(
        'A(X) :- Reading(X, _), calendar:weekday("UTC", sunday).',
        "r.dmtl:1:24: error[TL315]: rules read a calendar",
        STREAM_OF_R,
    ),
    Mistake(
        "explain r.dmtl d.facts Rest@[2026-01-01,inf)",
        "ask about a finite range of time",
        {"r.dmtl": 'Rest :- calendar:weekday("UTC", sunday). A :- B.', "d.facts": "B@2026-01-01\n"},
    ),
    Mistake(
        "window a.tdl --query Hot",
        "write T here, too",
        {"a.tdl": "Hot(X,T) :- Wet(X,T), On(X,S).\nOn(X,S+1) :- On(X,S).\n"},
    ),
    Mistake(
        "stream a.tdl --query Hot --input d.facts --window 1",
        "a.tdl:1:1: warning[TL607]: a window of 1 is not proved valid: the query is recursive",
        {"a.tdl": "Hot(X,T+1) :- Hot(X,T).\nHot(X,T+3) :- Wet(X,T), On(X,T+3).\n", "d.facts": "Wet(a)@1\nOn(a)@4\n"},
        0,
    ),
    Mistake("window rules.dmtl --query Hot --check 2", "`window` prints how long to keep each predicate"),
    Mistake(
        HYPOTHESISE.format("a.tdl"),
        "`not Melt` is not supported by hypothetical answers: Cold is negated itself",
        {
            "a.tdl": "Hot(X,T) :- Wet(X,T), not Cold(X,T). Cold(X,T) :- Ice(X,T), not Melt(X,T).\n",
            "arrivals.jsonl": ARRIVALS,
        },
    ),
    Mistake(
        HYPOTHESISE.format("r.dmtl --timeline integer"),
        "compute these values beforehand and give them as facts",
        {"r.dmtl": 'Hot(X) :- Wet(X), starts_with(X, "w").', "arrivals.jsonl": ARRIVALS},
    ),
    Mistake(
        HYPOTHESISE.format("r.dmtl --timeline integer"),
        "the range [0,1/2] has an end that is not an integer",
        {"r.dmtl": "Hot(X) :- Diamondminus[0,0.5] Wet(X).", "arrivals.jsonl": ARRIVALS},
    ),
    Mistake(
        HYPOTHESISE.format("a.tdl").replace("2", "soon"),
        "`soon` is not a whole number of time points",
        {"a.tdl": "Hot(X,T+1) :- Wet(X,T).\n", "arrivals.jsonl": ARRIVALS},
    ),
    Mistake(
        HYPOTHESISE.format("a.tdl").replace("X,T", "X"),
        "write Hot(X, T)",
        {"a.tdl": "Hot(X,T+1) :- Wet(X,T).\n", "arrivals.jsonl": ARRIVALS},
    ),
    Mistake(
        HYPOTHESISE.format("a.tdl"),
        "arrivals.jsonl:1:1: error[TL704]: this is not JSON: expecting value",
        {"a.tdl": "Hot(X,T+1) :- Wet(X,T).\n", "arrivals.jsonl": "Wet(a,3)\n"},
    ),
    Mistake(
        "materialise rules.dmtl Reading.jsonl",
        "this is fact text, not JSON: give the file a name that ends with .facts",
        {"Reading.jsonl": "Reading(t1,90)@0\n"},
    ),
]
MISTAKES = [*REFUSALS, *FILES, *OPTIONS, *TABLES, *FACTS, *RULE_TEXT, *TEMPORAL, *MIXED]


@pytest.fixture
def project(sh: Shell) -> Shell:
    sh.write("rules.dmtl", RULES)
    sh.write("Reading.csv", READINGS)
    return sh


def test_the_table_is_long_enough_and_quotes_messages() -> None:
    assert len({(mistake.command, *mistake.files.items()) for mistake in MISTAKES}) == len(MISTAKES) >= 60
    assert not [mistake.said for mistake in MISTAKES if re.fullmatch(r"TL\d*", mistake.said)]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake.command[:30]}: {mistake.said[:30]}")
def test_a_mistake_is_met_with_a_way_out(mistake: Mistake, project: Shell) -> None:
    for name, text in mistake.files.items():
        project.write(name, text)
    ran = project(*shlex.split(mistake.command))
    assert ran.code == mistake.code
    assert mistake.said in ran.err
    assert "Traceback" not in ran.err
    if mistake.code == 0:
        assert re.search(r"warning\[TL\d+\]", ran.err)
        assert "warning[" not in ran.out


def test_misspelt_facts_are_mentioned_by_batch_and_stream(project: Shell) -> None:
    said = "Reading has neither rules nor facts, and no rule reads the facts of Readings\n"
    for command in (("materialise", "rules.dmtl"), ("stream", "rules.dmtl", "--query", "Hot", "--input")):
        ran = project(*command, "Readings=Reading.csv")
        assert (ran.code, ran.out, ran.err.count("warning")) == (0, "", 1)
        assert said in ran.err


def test_facts_that_are_read_or_asked_for_are_not_mentioned(project: Shell) -> None:
    ran = project("materialise", "rules.dmtl", "Reading.csv", "--query", "Hot")
    assert (ran.code, ran.out, ran.err) == (0, "Hot(t1)@0\nHot(t1)@10\n", "")
    ran = project("materialise", "rules.dmtl", "Reading.csv", "Pressure=Reading.csv", "--query", "Pressure")
    assert (ran.code, ran.err) == (0, "")


def test_predicates_of_rules_that_the_query_does_not_need_are_not_mentioned(project: Shell) -> None:
    project.write("rules.dmtl", RULES + "Cold(T) :- Frost(T).\n")
    assert project("materialise", "rules.dmtl", "Reading.csv", "--query", "Hot").err == ""
    assert "Frost has neither rules nor facts" in project("materialise", "rules.dmtl", "Reading.csv").err


@pytest.mark.parametrize(
    "rules",
    [
        "Hot(t1) :- Reading(t1, _).",  # a constant of the data
        "Hot(X, high) :- Reading(X, C), C > 80. Alarm(high) :- Hot(X, high).",  # a constant that rules derive
        "Hot(X) :- Reading(X, C), X != t9.",  # a constant that occurs once
        'Hot("T 9") :- Reading("T 9", _).',  # no name
        "Hot(C) :- Reading(t9, C).",  # a value that is missing today, and like no other
        "Hot(C) :- Reading(t2, C).",  # another number is another thing
        "Hot(X, L) :- Reading(X, C), C > 80, L = high. Alarm(X) :- Hot(X, L), L = high.",  # a constant that rules set
        "Hot(X) :- Reading(X, _), X = t1.",
    ],
)
def test_constants_that_are_meant_are_not_mentioned(project: Shell, rules: str) -> None:
    project.write("rules.dmtl", rules)
    assert "TL125" not in project("materialise", "rules.dmtl", "Reading.csv").err
    assert "TL125" not in project("stream", "rules.dmtl", "--query", "Hot", "--input", "Reading.csv").err


def test_a_constant_that_comes_late_in_a_stream_is_not_mentioned(project: Shell) -> None:
    project.write("rules.dmtl", "Hot(X) :- Reading(X, _), X = t2.\n")
    project.write("more.facts", "Reading(t2,90)@20\n")
    command = ("stream", "rules.dmtl", "--query", "Hot", "--input", "Reading.csv")
    assert "TL125" in project(*command).err
    assert project(*command, "--input", "more.facts").err == ""
    assert project(*command, "--until", "5").err == ""  # more facts may follow


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        (
            "Reading.csv.gz",
            READINGS.encode(),
            "Reading.csv.gz is not compressed with gzip\n  help: rename it to Reading.csv",
        ),
        ("Reading.csv", gzip.compress(READINGS.encode(), mtime=0), "compressed with gzip: rename it to Reading.csv.gz"),
        ("Reading.csv", READINGS.encode("utf-16"), "it is UTF-16 text: save it as UTF-8"),
        ("d.facts", gzip.compress(b"Reading(t1,90)@0", mtime=0), "compressed with gzip: rename it to d.facts.gz"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_recognised(project: Shell, name: str, data: bytes, said: str) -> None:
    (project.folder / name).write_bytes(data)
    for command in (["materialise", "rules.dmtl"], ["stream", "rules.dmtl", "--query", "Hot", "--input"]):
        ran = project(*command, name)
        assert (ran.code, said in ran.err) == (2, True)


def test_a_table_in_another_encoding_is_named_as_such(project: Shell) -> None:
    (project.folder / "Reading.csv").write_bytes("turbine,celsius,time\ntür,90,0\n".encode("latin-1"))
    ran = project("materialise", "rules.dmtl", "Reading.csv")
    assert ran.code == 2
    assert "Reading.csv:2:1: error[TL207]: this row is not UTF-8 text" in ran.err
    assert "law: tables are UTF-8 text" in ran.err


def test_a_strict_stream_ends_at_facts_that_no_rule_reads(project: Shell) -> None:
    project.write("d.facts", "Reading(t1,90)@0\nReading(t1,10)@1\nPressure(t1,3)@2\n")
    ran = project("stream", "rules.dmtl", "--query", "Hot", "--input", "d.facts", "--strict")
    assert ran.code == 2
    assert "error[TL113]: no rule reads the facts of Pressure" in ran.err


def test_a_stream_that_stops_early_does_not_complain_of_facts_that_may_come(project: Shell) -> None:
    project.write("rules.dmtl", "Hot(T) :- Reading(T, _), not Cold(T).\n")
    ran = project("stream", "rules.dmtl", "--query", "Hot", "--input", "Reading.csv", "--until", "5")
    assert (ran.code, ran.err) == (0, "")


def test_the_query_of_hypothesise_and_window_is_temporal(project: Shell) -> None:
    project.write("alarm.tdl", "Alarm(X,T) :- Hot(X,T), Wet(X,T).\n")
    project.write("arrivals.jsonl", ARRIVALS + ARRIVALS.replace("Hot", "Wet"))
    ran = project("hypothesise", "alarm.tdl", "--query", "Alarm(X,T)", "--input", "arrivals.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, "0: certain Alarm(a,0) since Hot(a,0), Wet(a,0)\n", "")
    ran = project("window", "alarm.tdl", "--query", "Alarm")
    assert (ran.code, ran.out) == (0, "radius   0\nuniform  0\n")


def test_hypothesise_mentions_names_that_look_misspelt_and_facts_that_no_rule_reads(project: Shell) -> None:
    project.write("alarm.tdl", "Alarm(X,T) :- Hott(X,T), Wet(X,T).\n")
    project.write("arrivals.jsonl", ARRIVALS + ARRIVALS.replace("Hot", "Off"))
    command = ("hypothesise", "alarm.tdl", "--query", "Alarm(X,T)", "--input", "arrivals.jsonl")
    ran = project(*command)
    assert ran.code == 0
    assert "Hott has neither rules nor facts, and no rule reads the facts of Hot\n" in ran.err
    assert "warning[TL113]: no rule reads the facts of Off\n" in ran.err
    assert "Wet has" not in ran.err  # It may still come.
    assert project(*command, "--until", "0").err.count("TL112") == 1
    strict = project(*command, "--strict")
    assert strict.code == 2
    assert "error[TL113]: no rule reads the facts of Hot\n" in strict.err


def test_hypothesise_mentions_rigid_facts_that_end_with_numbers(project: Shell) -> None:
    project.write("alarm.tdl", "Alarm(X,T+1) :- Hot(X,T), Wet(X,_).\n")
    project.write("arrivals.jsonl", ARRIVALS + ARRIVALS.replace("Hot", "Wet"))
    ran = project("hypothesise", "alarm.tdl", "--query", "Alarm(X,T)", "--input", "arrivals.jsonl")
    assert "warning[TL114]: the facts of Wet end with numbers" in ran.err


def test_window_mentions_variables_that_occur_once(project: Shell) -> None:
    project.write("alarm.tdl", "Alarm(X,T+1) :- Hot(X,Y,T).\n")
    assert "warning[TL111]: the variable Y occurs only once" in project("window", "alarm.tdl", "--query", "Alarm").err
    assert project("window", "alarm.tdl", "--query", "Alarm", "--strict").code == 2


def test_check_with_data_mentions_names_that_look_misspelt(project: Shell) -> None:
    project.write("r.dmtl", "Hot(T) :- Reeding(T, _).\n")
    command = ("check", "r.dmtl", "--query", "Hot", "--data", "Reading.csv")
    assert "Reeding has neither rules nor facts, and no rule reads the facts of Reading" in project(*command).err
    assert project(*command, "--strict").code == 2


def test_rule_tests_refuse_predicates_that_look_misspelt(project: Shell) -> None:
    project.write("hot.dmtl", "Hot(X) :- High(X), not Hihg(X), not Cold(X).\n")
    project.write("hot.test", "test: one\ngiven:\n  High(a)@1\nexpect only:\n  Hot(a)@1\n")
    ran = project("test", "hot.test")
    assert (ran.code, ran.out) == (2, "")
    assert "error[TL112]: Hihg has neither rules nor facts" in ran.err
    relaxed = project("test", "hot.test", "--no-strict")
    assert relaxed.code == 0
    assert "warning[TL112]" in relaxed.err
    assert "Cold has" not in ran.err  # That there are no facts of a negated predicate may be the point of a test.
    project.write("hot.dmtl", "Hot(X) :- High(X), not Cold(X).\n")
    assert project("test", "hot.test").err == ""


# Python


@pytest.mark.parametrize("rules", ["Hot(X) :- High(X).", "rules.dmtl", Path("rules.dmtl"), tl.Dataset()])
@pytest.mark.parametrize(
    "call",
    [
        lambda rules, data: tl.materialise(rules, data),
        lambda rules, data: tl.entails(rules, data, "Hot(a)@3"),
        lambda rules, data: tl.explain(rules, data, "Hot(a)@3"),
        lambda rules, data: tl.check(rules),
        lambda rules, data: tl.View(rules, data),
        lambda rules, data: tl.Reasoner(rules, "Hot"),
        lambda rules, data: tl.stable_models(rules, data),
        lambda rules, data: tl.stable.StableReasoner(rules),
        lambda rules, data: tl.hypotheses(rules, "Hot(X,T)", []),
        lambda rules, data: tl.window(rules, "Hot"),
    ],
)
def test_rules_that_are_no_program_are_refused(call: Callable[[Any, Any], object], rules: object) -> None:
    with pytest.raises(
        tl.TidelogError, match=r"TL127.*the rules are an object of type .*, which is no program"
    ) as error:
        call(rules, tl.Dataset.parse("High(a)@3"))
    assert "read text with tl.Program.parse(text), and a file with tl.Program.load(path)" in str(error.value)


FRAME = pa.table({"turbine": ["t1"], "celsius": [90], "time": [3]})
#: The functions without their types, so that they take arguments of any.
PYTHON: Any = tl
HOT = tl.Program.parse("Hot(T) :- Reading(T, C), C > 80.")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: PYTHON.materialise(HOT, FRAME), '{"Reading": table}'),
        (lambda: PYTHON.materialise(HOT, "Reading(t1,90)@3"), "read fact text with tl.Dataset.parse(text)"),
        (lambda: PYTHON.materialise(HOT, Path("Reading.csv")), "files with tl.Dataset.load(path)"),
        (lambda: PYTHON.materialise(HOT, ["Reading(t1,90)@3"]), 'tl.Dataset.from_facts(["Reading(t1,90)@3"])'),
        (lambda: PYTHON.materialise(HOT, {"Reading": FRAME}, between="0,5"), "pass a pair: (0, 10)"),
        (lambda: PYTHON.materialise(HOT, {"Reading": FRAME}, between=(0,)), "(0,) is not a range of time"),
        (lambda: PYTHON.materialise(HOT, {"Reading": FRAME}, schema={}), "the schema is an object of type dict"),
        (lambda: PYTHON.materialise(HOT, {"Reading": FRAME}).to_pandas("hot"), "did you mean Hot?"),
        (lambda: PYTHON.explain(HOT, "Hot(t1)@3", {"Reading": FRAME}), "the fact is an object of type dict"),
        (lambda: PYTHON.Reasoner(HOT, "Hot").push(3, [("Reading", "t1", 90)]), "the fact is an object of type tuple"),
        (lambda: PYTHON.Dataset.from_facts([("Reading", "t1", 90)]), "the fact is an object of type tuple"),
        (lambda: PYTHON.Dataset.load(FRAME), 'tl.Dataset.from_arrow({"Reading": frame})'),
        (lambda: PYTHON.Dataset.from_arrow(FRAME), '{"Reading": table}'),
        (lambda: PYTHON.Program.parse("rules.dmtl"), "tl.Program.load(path) reads a file"),
    ],
)
def test_a_wrong_argument_is_met_with_a_way_out(call: Callable[[], object], said: str) -> None:
    with pytest.raises(tl.TidelogError, match=re.escape(said)):
        call()


def test_a_single_text_is_its_facts() -> None:
    text = "Reading(t1,90)\nReading(t2,91)"
    assert len(tl.Dataset.from_facts(text)) == 2
    reasoner = tl.Reasoner(HOT, "Hot")
    reasoner.push(3, text)
    assert [fact.args for fact in reasoner.finish()] == [("t1",), ("t2",)]
    session = tl.hypothetical.Hypotheses(tl.Program.parse("A(X, T+1) :- B(X, T).", syntax="tdl"), "A(X, T)")
    assert len(session.push(0, "B(a,0)\nB(b,0)")) == 2


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"reading": FRAME}, "TL112.*Reading has neither rules nor facts, and no rule reads the facts of reading"),
        ({"Reading": FRAME.set_column(1, "celsius", pa.array(["90"]))}, "TL208.*holds only text"),
        ({"Reading": FRAME.drop_columns("time")}, None),
        ({"Reading": FRAME}, None),
    ],
)
def test_tables_that_look_like_a_mistake_get_a_python_warning(tables: dict[str, Any], said: str | None) -> None:
    calls: list[Callable[[], object]] = [
        lambda: tl.materialise(HOT, tables),
        lambda: tl.materialise(HOT, tables, query="Hot(X)"),
        lambda: tl.entails(HOT, tables, "Hot(t1)@3"),
        lambda: tl.explain(HOT, tables, "Hot(t1)@3"),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        found = [(str(one.message), one.filename) for one in caught if one.category is tl.errors.TidelogWarning]
        assert len(found) == (said is not None)
        assert all(said and re.search(said, message) and filename == __file__ for message, filename in found)
