"""Random programs with random corrections: after every step, the changes so far give what a run from scratch gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrected_streams import describe_history, examine_corrections, examine_numeric_corrections
from keyed_corrections import describe_keyed_history, examine_keyed_corrections
from numeric_random import numeric_case
from strategies import BOTH, FORWARD, Case, Features, cases
from test_numbers import PARTS as NUMERIC_PARTS
from test_numbers import Part, stream_features

pytestmark = [pytest.mark.usefixtures("kernels"), pytest.mark.slow]

PARTS = {
    "forward": FORWARD,
    "unbounded": replace(FORWARD, unbounded=True, negation=True),
    "integers": replace(FORWARD, integer=True, denominators=(1,), unbounded=True, negation=True),
    "rationals": replace(FORWARD, denominators=(2, 3), negation=True),
    "look-ahead": replace(BOTH, recursive=False, negation=True),
    "everything": replace(BOTH, unbounded=True, negation=True),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_the_changes_so_far_are_the_answers_of_a_run_from_scratch(part: Features) -> None:
    @settings(max_examples=40)
    @given(cases(part), st.integers(0, 10**6))
    def check(case: Case, seed: int) -> None:
        found = next(examine_corrections(case, seed), None)
        assert found is None, describe_history(found or "", case, seed)

    check()


@pytest.mark.parametrize("numeric", [False, True], ids=["rules", "numbers"])
def test_keys_are_corrected_apart_from_each_other(numeric: bool) -> None:
    for seed in range(30):
        found = examine_keyed_corrections(seed, numeric=numeric)
        assert not found, describe_keyed_history(found, seed, numeric=numeric)


@pytest.mark.parametrize("part", NUMERIC_PARTS.values(), ids=NUMERIC_PARTS.keys())
def test_numbers_are_corrected_too(part: Part) -> None:
    for seed in range(12):
        case = numeric_case(seed, stream_features(part))
        found = examine_numeric_corrections(case, seed)
        assert not found, describe_history(found, case, seed)
