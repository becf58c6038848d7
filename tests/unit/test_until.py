"""`materialise --until T` gives the answers of `stream --until T`."""

from __future__ import annotations

from fractions import Fraction

import pytest

import tidelog as tl
from behaviour import Behaviour, load_cases
from shell import Shell
from tidelog.language.fact_text import format_fact
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact


def _choose_stop(data: tl.Dataset) -> Fraction:
    """Choose a time between the first and the last of the data."""
    ends = [end for fact in data for end in (fact.interval.lo, fact.interval.hi) if isinstance(end, Fraction)]
    return Fraction(0) if not ends else sorted(ends)[len(ends) // 2]


def _arrive(fact: Fact) -> tuple[bool, Fraction | float, bool]:
    """Return a key that sorts facts by their begin, background facts first."""
    lo, hi = fact.interval.lo, fact.interval.hi
    return isinstance(lo, Fraction) or isinstance(hi, Fraction), lo, not fact.interval.lo_closed


@pytest.mark.slow
@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_batch_and_stream_agree_on_every_case_up_to_a_time(sh: Shell, case: Behaviour) -> None:
    program = tl.Program.parse(case.rules, syntax=case.syntax)
    data = tl.Dataset.parse(case.facts)
    rules = sh.write(f"rules.{case.syntax}", case.rules)
    facts = sh.write("data.facts", "".join(format_fact(fact) + "\n" for fact in sorted(data, key=_arrive)))
    options = ["--until", str(_choose_stop(data))]
    options += ["--timeline", case.timeline] if case.timeline else []
    heads = {head.predicate for rule in program.rules if (head := head_atom(rule))}
    for query in sorted(heads):
        streamed = sh("stream", rules, "--query", query, "--input", facts, *options)
        if streamed.code:
            continue  # a program that streams refuse, or a violated constraint
        found = sh("materialise", rules, facts, "--query", query, *options)
        assert sorted(found.out.splitlines()) == sorted(streamed.out.splitlines()), query
