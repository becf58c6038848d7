"""Facts that are made in Python: arguments and times of all types mean what they mean in a dataframe."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidelog as tl
from tidelog.errors import TidelogError
from tidelog.language.fact_text import format_fact

#: A rule that reads arguments as they are, and one that computes.
PROGRAM = tl.Program.parse("A(X) :- P(X).\nB(V) :- P(X), V = X + 0.2.")
ONE = tl.Interval.point(Fraction(1))


def make_fact(value: Any, interval: tl.Interval = ONE) -> tl.Fact:
    return tl.Fact("P", (value,), interval)


def push(facts: Iterable[tl.Fact]) -> list[tl.Fact]:
    reasoner = tl.Reasoner(PROGRAM, "A")
    return [*reasoner.push(0), *reasoner.push(1, list(facts)), *reasoner.finish(9)]


NUMBERS = [
    (1, "1"),
    (0.1, "0.1"),
    (1e-7, "0.0000001"),
    (Decimal("2.50"), "2.5"),
    (Fraction(1, 3), "1/3"),
    (np.int8(3), "3"),
    (np.uint64(2**63), "9223372036854775808"),
    (np.float32(0.1), "0.1"),
    (np.float64(0.1), "0.1"),
    (10**30, "1" + 30 * "0"),
]
NAMES = [
    (True, "true"),
    (np.bool_(False), "false"),
    (np.str_("abc"), "abc"),
    (date(2026, 1, 31), '"2026-01-31"'),
    (datetime(2026, 1, 31, 10, tzinfo=UTC), '"2026-01-31T10:00:00Z"'),
    (datetime(2026, 1, 31, 10), '"2026-01-31T10:00:00Z"'),
    (np.datetime64("2026-01-31"), '"2026-01-31"'),
    (np.datetime64("2026-01-31T10:00:00.5"), '"2026-01-31T10:00:00.5Z"'),
]


@pytest.mark.parametrize(("value", "printed"), NUMBERS + NAMES, ids=repr)
def test_an_argument_of_any_type_is_a_constant(value: Any, printed: str) -> None:
    data = tl.Dataset.from_facts([make_fact(value)])
    assert tl.materialise(PROGRAM, data, query="A").render() == f"A({printed})@1\n".encode()
    assert [format_fact(answer) for answer in push([make_fact(value)])] == [f"A({printed})@1"]
    given = tl.Dataset.parse(f"P({printed})@1")
    assert tl.entails(PROGRAM, given, tl.Fact("A", (value,), ONE)) is tl.types.Answer.YES
    assert "given" in str(tl.explain(PROGRAM, given, tl.Fact("A", (value,), ONE)))
    assert len(tl.View(PROGRAM, given, query="A").update(delete=[make_fact(value)]).removed) == 1


@pytest.mark.filterwarnings("ignore:.*TL208")
@pytest.mark.parametrize("value", [1, 0.1, Decimal("2.50"), True, date(2026, 1, 31), datetime(2026, 1, 31)], ids=repr)
def test_an_argument_is_what_it_is_in_a_dataframe(value: Any) -> None:
    frame = pa.table({"x": [value], "time": [1]})
    expected = tl.materialise(PROGRAM, {"P": frame}).render()
    assert tl.materialise(PROGRAM, tl.Dataset.from_facts([make_fact(value)])).render() == expected


@pytest.mark.parametrize(
    "value",
    [None, b"x", float("nan"), float("inf"), Decimal("NaN"), (1,), time(1), timedelta(1), np.timedelta64(1, "s")],
    ids=repr,
)
@pytest.mark.parametrize(
    "use",
    [
        lambda fact: tl.Dataset.from_facts([fact]),
        lambda fact: push([fact]),
        lambda fact: tl.entails(PROGRAM, tl.Dataset.parse("P(a)@1"), fact),
    ],
    ids=["data", "stream", "question"],
)
def test_any_other_argument_is_refused(value: Any, use: Callable[[tl.Fact], object]) -> None:
    with pytest.raises(TidelogError, match=r"TL201.*cannot be an argument of P"):
        use(make_fact(value))


@pytest.mark.parametrize(
    ("interval", "printed"),
    [
        (tl.Interval.point(0.5), "1/2"),  # type: ignore[arg-type]
        (tl.Interval(0.5, 3.0, True, False), "[1/2,3)"),
        (tl.Interval(Decimal("0.5"), "10min"), "[1/2,600]"),  # type: ignore[arg-type]
        (tl.Interval.point(datetime(2026, 1, 31)), "2026-01-31T00:00:00Z"),  # type: ignore[arg-type]
        (tl.Interval.point(np.int64(3)), "3"),  # type: ignore[arg-type]
        (tl.Interval(float("-inf"), 3, False), "(-inf,3]"),
    ],
    ids=str,
)
def test_times_of_a_fact_have_the_types_of_other_times(interval: tl.Interval, printed: str) -> None:
    data = tl.Dataset.from_facts([make_fact("a", interval)])
    assert tl.materialise(PROGRAM, data, query="A").render() == f"A(a)@{printed}\n".encode()


def test_a_time_of_another_type_is_refused() -> None:
    with pytest.raises(TidelogError, match=r"TL202.*is not a time"):
        tl.Dataset.from_facts([make_fact("a", tl.Interval.point(None))])  # type: ignore[arg-type]
