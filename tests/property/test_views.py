"""Views: random programs with random histories of insertions and deletions, judged by computing from scratch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from keyed_programs import keyed_cases
from numeric_random import numeric_case
from strategies import Case, Features, cases
from test_batch import PARTS
from test_numbers import PARTS as NUMERIC_PARTS
from views_random import choose_history, examine_history

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.mark.parametrize("keyed", [False, True], ids=["as they are", "with keys"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_a_view_is_what_would_be_computed_from_scratch(part: Features, keyed: bool) -> None:
    seen = Counter[str]()

    @settings(max_examples=8)
    @given(keyed_cases(part) if keyed else cases(part), st.integers(0, 2**32))
    def agree(case: Case, seed: int) -> None:
        history = choose_history(case, seed, 4)
        complaint = next(examine_history(history, seen), None)
        if complaint:
            note(f"{history}\n{complaint}")
        assert not complaint

    agree()
    assert seen["changes"], seen
    assert seen["incremental"], seen


@pytest.mark.slow
def test_a_view_with_numbers_is_what_would_be_computed_from_scratch() -> None:
    seen = Counter[str]()
    for part in NUMERIC_PARTS.values():
        for seed in range(6):
            case = numeric_case(seed, replace(part.features, keyed=seed % 2 == 0))
            history = choose_history(case, seed, 4)
            complaint = next(examine_history(history, seen), None)
            assert not complaint, f"{history}\n{complaint}"
    assert seen["changes"] >= 30, seen
    assert seen["incremental"] >= 60, seen
