"""Interpreted kernels do what compiled ones do, and compiled ones can take over from them at any time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import tidelog as tl
from behaviour import Behaviour, load_cases, sort_repeats
from checked_arrays import OutsideOfArray, check_arrays
from examine import examine, format_as_behaviour
from formula_parts import head_predicates
from kernel_ways import change_after, run_kernels
from numeric_examine import format_numeric_case, judge_batch
from numeric_random import Numbers, numeric_case
from strategies import BOTH, FORWARD, Case, Features, cases
from tidelog.data.symbol_table import Symbols
from tidelog.data.wire_format import compute_buckets
from tidelog.jit import Array, kernel

FEATURES = {
    "everything": replace(BOTH, unbounded=True, negation=True, constraints=True),
    "integers": replace(BOTH, integer=True, denominators=(1,), negation=True),
    "rationals": replace(FORWARD, denominators=(2, 3), negation=True),
}


def materialise(case: Behaviour) -> list[str]:
    """Return what `materialise` prints for a case, or its error."""
    program, data = tl.Program.parse(case.rules, syntax=case.syntax), tl.Dataset.parse(case.facts)
    try:
        model = tl.materialise(
            program, data, query=list(case.queries) or None, between=case.between, timeline=case.timeline
        )
    except tl.TidelogError as error:
        return [str(error)]
    return sort_repeats(model.render().decode().splitlines())


def follow_stream(case: Behaviour, resumed: str) -> list[object]:
    """Return the answers to a case as a stream; another way of running kernels goes on with its saved states."""
    program = tl.Program.parse(case.rules, syntax=case.syntax)
    found: list[object] = []
    for query in sorted(name for name in head_predicates(program.rules) if not name.startswith("$")):
        try:
            reasoner = tl.Reasoner(program, query, timeline=case.timeline)
            for step in reasoner.feed(tl.Dataset.parse(case.facts, ordered=True)):
                found.append(step.answers.render())
            with run_kernels(resumed):
                again = tl.Reasoner.load(reasoner.save())
                again.feed(tl.Dataset.parse(f"{case.facts}\nQ(new,1)@10000\n", ordered=True))
                found.append([str(fact) for fact in again.finish()])
        except tl.TidelogError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_behaviour(case: Behaviour) -> None:
    with run_kernels("compiled"):
        expected = materialise(case)
    for tight in (False, True):
        with check_arrays(tight=tight):
            assert materialise(case) == expected
    for turns in (3, 40):
        with change_after(turns):
            assert materialise(case) == expected, f"compiled kernels took over after {turns} turns"


@pytest.mark.parametrize("case", load_cases()[::5], ids=lambda case: case.name)
def test_streams_and_their_states(case: Behaviour) -> None:
    with run_kernels("compiled"):
        expected = follow_stream(case, "compiled")
        assert follow_stream(case, "interpreted") == expected
    with run_kernels("interpreted"):
        assert follow_stream(case, "compiled") == expected
    for tight in (False, True):
        with check_arrays(tight=tight):
            assert follow_stream(case, "interpreted") == expected
    for turns in (5, 50):
        with change_after(turns):
            assert follow_stream(case, "compiled") == expected, f"compiled kernels took over after {turns} turns"


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES.keys())
def test_random_programs_agree_with_the_oracle(features: Features) -> None:
    @settings(max_examples=15)
    @given(cases(features))
    def agree(case: Case) -> None:
        with run_kernels("interpreted"):
            found = next(examine(case), None)
        if found:
            note(format_as_behaviour(found, case))
        assert not found

    agree()


@pytest.mark.parametrize("features", [Numbers(), Numbers(windows=False, always=True), Numbers(now=False, always=True)])
def test_random_numbers_agree_with_the_oracle(features: Numbers) -> None:
    for seed in range(12):
        case = numeric_case(seed, features)
        with run_kernels("interpreted"):
            outcome = judge_batch(case)
        assert not outcome.complaint, format_numeric_case(outcome.complaint, case)


def test_requests_for_many_atoms_stay_within_the_queues() -> None:
    """The second component has more requests than the first one has answers, and the queues change places between."""
    program = tl.Program.parse("Down(X) :- Few(X), not Diamondminus[0,2] Beat(X).\nCalm(X) :- Node(X), not Down(X).")
    known = tl.Dataset.parse("Few(n1)\nFew(n2)\n" + "".join(f"Node(n{i})\n" for i in range(100)))
    beats = tl.Dataset.parse("Beat(n1)@0\nBeat(n2)@1\nBeat(n1)@2\n", ordered=True)

    def follow() -> list[str]:
        reasoner = tl.Reasoner(program, "Calm", background=known)
        found = [str(fact) for step in reasoner.feed(beats) for fact in step.answers]
        return found + [str(fact) for fact in reasoner.finish()]

    expected = follow()
    for tight in (False, True):
        with check_arrays(tight=tight):
            assert follow() == expected


CONSTANTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.sampled_from(["", "ÿ" * 4, "12345678", "a" * 16, "\U0010ffff" * 5, "é" * 8]),
)


@given(st.lists(CONSTANTS, max_size=20))
def test_constants_get_the_same_words_slots_ranks_and_buckets(texts: list[str]) -> None:
    def intern() -> list[object]:
        symbols = Symbols()
        ids = [symbols.intern(text) for text in texts]
        table = symbols.reserve(0, 0)
        count = len(symbols)
        arrays = (ids, table.slots, table.words[: 2 * count], symbols.ranks(), compute_buckets(symbols, 7))
        return [np.asarray(array).tolist() for array in arrays]

    with run_kernels("compiled"):
        expected = intern()
    with run_kernels("interpreted"):
        assert intern() == expected


def test_a_stream_that_grows_goes_on_with_compiled_kernels() -> None:
    program = tl.Program.parse("Hot(T) :- Boxminus[0,3] High(T).\nCool(T) :- Seen(T), not Diamondminus[0,3] High(T).")

    def follow(stop: int) -> tuple[list[str], list[str]]:
        reasoner, answers = tl.Reasoner(program, "Hot"), []
        for t in range(stop):
            answers += [str(fact) for fact in reasoner.push(t, [f"High(t{t % 3})", "High(t9)", f"Seen(t{t})"])]
        return answers, [str(fact) for fact in reasoner.finish()]

    with run_kernels("compiled"):
        expected = follow(40)
    with change_after(300) as turns:
        assert follow(40) == expected
        seen = turns[0]
        follow(40)
    assert seen > 300
    assert turns[0] == seen, "kernels are interpreted again"


@kernel
def double(numbers: Array) -> None:
    for i in range(len(numbers)):
        numbers[i] = 2 * numbers[i]


@kernel
def read(numbers: Array, place: int) -> int:
    return int(numbers[place])


def test_checked_arrays_refuse_places_outside_of_them() -> None:
    numbers = np.array([1, 2, 3])
    with check_arrays():
        assert read(numbers, 2) == 3
        for place in (3, -1):
            with pytest.raises(OutsideOfArray):
                read(numbers, place)


def test_a_number_that_leaves_its_array_is_left_to_compiled_kernels() -> None:
    """Compiled code wraps around; interpreted code notices, also in the middle of its work."""
    numbers = np.array([1, 1 << 62, 3])
    with run_kernels("interpreted"), pytest.raises(ValueError, match="invalid value"):
        double(numbers.copy())
    with change_after(10**9):
        double(numbers)
    assert numbers.tolist() == [2, -(1 << 63), 6]
