"""The edges of what can be said: huge and tiny times, long distances, arities that disagree, empty files."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tidelog as tl
from tidelog.errors import Undecided


def ask(rules: str, facts: str, question: str | None) -> object:
    program, data = tl.Program.parse(rules), tl.Dataset.parse(facts)
    return tl.entails(program, data, question) if question else tl.materialise(program, data)


def refused(rules: str, facts: str, question: str | None = None) -> list[tuple[str, str | None]]:
    with pytest.raises(tl.TidelogError) as caught:
        ask(rules, facts, question)
    return [(found.code, str(found.place) if found.place else None) for found in caught.value.diagnostics]


@pytest.mark.parametrize("time", ["99999999999999999999", "1/99999999999999999999", "1152921504606846976"])
def test_a_time_that_leaves_63_bits(time: str) -> None:
    assert refused("P :- Q.", f"Q@{time}") == [("TL204", "<text>:1:3")]
    assert refused(f"P :- Diamondminus[0,{time}] Q.", "Q@0") == [("TL204", "<text>:1:18")]
    assert refused("P :- Q.", "Q@0", f"P@{time}")[0][0] == "TL204"


def test_an_offset_that_leaves_63_bits() -> None:
    with pytest.raises(tl.TidelogError, match="TL204"):
        tl.Program.parse("P(T+99999999999999999999) :- Q(T).", syntax="tdl")


def test_a_recursion_over_a_distance_near_the_limit_is_undecided() -> None:
    far = (1 << 60) - 1
    program, data = tl.Program.parse(f"P :- Diamondminus[{far},{far}] P."), tl.Dataset.parse("P@1")
    with pytest.raises(Undecided):
        tl.materialise(program, data)
    assert tl.entails(program, data, "P@5") is tl.types.Answer.NO


def test_long_periods_end_at_once() -> None:
    rules = """
    A :- Diamondminus[997,997] A.  B :- Diamondminus[1009,1009] B.  D :- Diamondminus[1013,1013] D.
    E :- A, B, D.
    """
    program, data = tl.Program.parse(rules), tl.Dataset.parse("A@0\nB@0\nD@0")
    assert tl.entails(program, data, "E@0") is tl.types.Answer.YES
    assert tl.entails(program, data, "A@997000") is tl.types.Answer.YES


def test_arities_that_disagree_inside_the_data() -> None:
    assert refused("P(X) :- Q(X).", "W(a,b)@1\nW(c)@2\nQ(a)@1", "W(c)@2")[0][0] == "TL102"
    with pytest.raises(tl.TidelogError, match="W has 1 argument in the data, but 2 arguments elsewhere in the data"):
        tl.materialise(tl.Program.parse("P(X) :- Q(X)."), tl.Dataset.parse("W(a,b)@1\nW(c)@2"))


def test_an_empty_json_lines_file_has_no_facts(tmp_path: Path) -> None:
    path = tmp_path / "Q.jsonl"
    path.write_text("\n")
    assert len(tl.Dataset.load(path)) == 0


def test_every_negation_of_a_cycle_is_named() -> None:
    with pytest.raises(tl.TidelogError, match="P -> not R -> S -> not P"):
        tl.materialise(tl.Program.parse("P :- Q, not R. R :- S. S :- not P."), tl.Dataset.parse(""))


@pytest.mark.slow
def test_an_interrupt_ends_a_long_run_without_a_traceback(tmp_path: Path) -> None:
    rules, facts = tmp_path / "long.dmtl", tmp_path / "long.facts"
    rules.write_text("A :- Diamondminus[1000001,1000001] A.  A :- Diamondminus[1000003,1000003] A.\n")
    facts.write_text("A@0\n")
    code = f"from tidelog.cli.main import main; main(['materialise', {str(rules)!r}, {str(facts)!r}])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130, 3)
    assert "Traceback" not in err


def test_sums_of_ranges_and_derived_times_beyond_63_bits_are_refused() -> None:
    far = 2**58
    nested = "P :- " + f"Diamondminus[0,{far}] " * 8 + "Q."
    with pytest.raises(tl.TidelogError, match="63 bits"):
        tl.materialise(tl.Program.parse(nested), tl.Dataset.parse("Q@0"))
    derived = f"P :- Diamondminus[{far},{far}] Q. R :- Diamondminus[{far},{far}] P. S :- Diamondminus[{far},{far}] R."
    with pytest.raises(tl.TidelogError, match="63 bits"):
        tl.materialise(tl.Program.parse(derived), tl.Dataset.parse(f"Q@{far}"))


def test_many_intervals_of_one_atom_may_come_in_any_order() -> None:
    times = random.Random(0).sample(range(200_000), 60_000)
    data = tl.Dataset.parse("".join(f"Q@{2 * t}\n" for t in times))
    assert len(tl.materialise(tl.Program.parse("P :- Q."), data)) == len(times)


def test_a_period_too_long_to_write_out_is_looked_at_where_it_is_asked_for() -> None:
    rules = (
        "A :- Diamondminus[1999,1999] A. B :- Diamondminus[2003,2003] B. C :- Diamondminus[2011,2011] C.\n"
        "D :- A, B, C. E :- Diamondminus[0,1] D, not Diamondminus[5,5] A. F :- not D."
    )
    program, data = tl.Program.parse(rules), tl.Dataset.parse("A@0\nB@0\nC@0\n")
    # So long that the search for what repeats does not even begin: with 997, 1009 and 1013 it tries for seconds.
    period = 1999 * 2003 * 2011
    with pytest.raises(Undecided):
        tl.materialise(program, data)
    for fact, answer in {
        f"D@{7 * period}": "yes",
        f"D@{7 * period + 1999}": "no",
        f"E@[{7 * period},{7 * period + 1}]": "yes",
        f"E@[{7 * period},{7 * period + 2}]": "no",
        f"F@({period},{period + 400})": "yes",
        f"F@[{period},{period + 400})": "no",
    }.items():
        assert tl.entails(program, data, fact).value == answer, fact
    near = tl.materialise(program, data, query=["D", "E"], between=(period - 10, period + 10))
    assert near.render().decode() == f"D@{period}\nE@[{period},{period + 1}]\n"


@pytest.mark.parametrize("between", [5, "0,10", (1, 2, 3), {0, 10}])
def test_a_range_of_time_that_is_no_pair_is_refused(between: object) -> None:
    program, data = tl.Program.parse("P :- Q."), tl.Dataset.parse("Q@0")
    with pytest.raises(tl.TidelogError, match=r"TL305.*is not a range of time"):
        tl.materialise(program, data, between=between)  # type: ignore[arg-type]
