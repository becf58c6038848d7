"""What newcomers get wrong, and that they are told what to do about it."""

from __future__ import annotations

import pytest

from shell import Shell

pytestmark = pytest.mark.usefixtures("kernels")

RULES = "Hot(T) :- Reading(T, C), C > 80.\nOverheated(T) :- Boxminus[0,30s] Diamondminus[0,10s] Hot(T).\n"
READINGS = "turbine,celsius,time\nt1,90,0\nt1,91,10\n"


@pytest.fixture
def project(sh: Shell) -> Shell:
    sh.write("rules.dmtl", RULES)
    sh.write("Reading.csv", READINGS)
    return sh


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("check", "rule.dmtl"), "did you mean rules.dmtl?"),
        (("materialise", "rules.dmtl", "reading.csv"), "did you mean Reading.csv?"),
        (("stream", "rules.dmtl", "--query", "Hot", "--input", "Readin.csv"), "did you mean Reading.csv?"),
        (("materialise", "rules.dmtl", "nowhere.facts"), "paths start from"),
        (("materialise", "rules.dmtl", "nowhere/Reading.csv"), "there is no folder nowhere"),
        (("run", "pipelin.toml"), "paths start from"),
        (("hypothesise", "rules.dmtl", "--query", "Hot(X,T)", "--input", "Readig.csv"), "integer"),
        (("materialise", "Reading.csv", "rules.dmtl"), "rules come first, then data"),
        (("check", "Reading.csv"), "a table of facts, where rules are expected"),
        (
            ("stream", "rules.dmtl", "--query", "Hot", "--input", "Reading.csv", "--until", "noon"),
            "2026-01-31T10:00:00Z",
        ),
        (("materialise", "rules.dmtl", "Reading.csv", "--between", "10:00,11:00"), "2026-01-31T10:00:00Z"),
        (("stream", "rules.dmtl", "--query", "Hot", "--input", "Reading.csv", "--at", "every"), "every:10min"),
        (("materialise", "rules.dmtl", "Reading.csv", "--query", "overheatd"), "did you mean Overheated?"),
        (("window", "rules.dmtl", "--query", "Hot"), "a .tdl file can be analysed"),
    ],
)
def test_a_mistake_is_met_with_a_way_out(command: tuple[str, ...], said: str, project: Shell) -> None:
    ran = project(*command)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("turbine,celsius,at\nt1,90,0\n", "every column is an argument but `time`"),
        ("turbine;celsius;time\nt1;90;0\n", "every column is an argument but `time`"),
        ("turbine,celsius,start\nt1,90,0\n", "one `time` for points in time, or `start` and `end` for intervals"),
        ("t1,90,0\n", "put a line with the names of the columns first"),
    ],
)
def test_columns_that_are_no_facts_are_met_with_a_way_out(table: str, said: str, project: Shell) -> None:
    project.write("Reading.csv", table)
    ran = project("materialise", "rules.dmtl", "Reading.csv")
    assert ran.code == 2
    assert said in ran.err


def test_facts_that_no_rule_reads_are_mentioned_if_their_name_is_almost_one_that_rules_read(project: Shell) -> None:
    note = "note: no rule reads Readings, and there are no facts of Reading; did you mean Reading?\n"
    batch = project("materialise", "rules.dmtl", "Readings=Reading.csv")
    assert (batch.code, batch.out, batch.err) == (0, "", note)
    stream = project("stream", "rules.dmtl", "--query", "Hot", "--input", "Readings=Reading.csv")
    assert (stream.code, stream.out, stream.err) == (0, "", note)


def test_facts_that_no_rule_reads_are_not_mentioned_otherwise(project: Shell) -> None:
    project.write("other.facts", "Pressure(t1,3)@0\nReadings(t1)@0\n")
    ran = project("materialise", "rules.dmtl", "Reading.csv", "other.facts", "--query", "Hot")
    assert (ran.code, ran.out, ran.err) == (0, "Hot(t1)@0\nHot(t1)@10\n", "")
