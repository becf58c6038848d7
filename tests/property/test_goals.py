"""Questions: what is computed for a question alone is what an evaluation of everything gives, filtered."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from examine import format_as_behaviour
from goals_random import examine_goals
from keyed_programs import keyed_cases
from numeric_examine import format_numeric_case
from numeric_random import numeric_case
from strategies import Case, cases
from test_batch import PARTS
from test_numbers import PARTS as NUMERIC_PARTS

pytestmark = pytest.mark.usefixtures("kernels")


def test_random_programs() -> None:
    seen = Counter[str]()
    for part in PARTS.values():
        for strategy in (cases(replace(part, endless_data=False)), keyed_cases(part)):

            @settings(max_examples=2)
            @given(strategy, st.integers(0, 10**6))
            def judge(case: Case, number: int) -> None:
                found = next(examine_goals(case, number, seen), None)
                if found:
                    note(format_as_behaviour(found, case))
                assert not found

            judge()
    assert seen["fewer facts"] > 100, seen
    assert min(seen[what] for what in ("guarded rules", "answers", "a fact: yes", "a fact: no")) > 20, seen
    assert seen["absences from facts asked for"] > 20, seen


def test_random_programs_with_numbers() -> None:
    seen = Counter[str]()
    for part in NUMERIC_PARTS.values():
        for number in range(3):
            case = numeric_case(number, replace(part.features, keyed=number % 2 == 0))
            found = next(examine_goals(case, number, seen), None)
            assert not found, format_numeric_case(found, case)
    assert seen["fewer facts"] > 100, seen
    assert min(seen[what] for what in ("guarded rules", "answers", "a fact: yes", "a fact: no")) > 20, seen
    assert seen["absences from facts asked for"] > 20, seen
