"""Rows are sorted as numbers where they fit into one, coalesced in their order, and printed from sorted texts."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest

import tidelog as tl
from kernel_ways import run_kernels
from tidelog.data.packed_rows import Columns, sort_columns
from tidelog.engine.bulk_load import load
from tidelog.engine.fact_store import Store
from tidelog.engine.maximal_intervals import coalesce
from tidelog.language.fact_text import format_fact
from tidelog.numeric.rows import Rows
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF

Row = tuple[tuple[int, ...], int, int]


def make_rows(count: int, arity: int, constants: int, times: int, seed: int) -> list[Row]:
    """Make rows, some without a beginning or without an end."""
    dice = Random(seed)
    rows: list[Row] = []
    for _ in range(count):
        lo = dice.randrange(-times, times)
        hi = lo + dice.randrange(max(2, times // 4))
        args = tuple(dice.randrange(constants) for _ in range(arity))
        kind = dice.randrange(12)
        rows.append((args, NEG_INF if kind < 2 else lo, POS_INF if kind in (1, 2) else hi))
    return rows


def to_columns(rows: list[Row], arity: int) -> Columns:
    args = np.array([args for args, _, _ in rows], np.int32).reshape(len(rows), arity).T
    lo, hi = (np.array([row[end] for row in rows], np.int64) for end in (1, 2))
    return Columns(args, lo, hi)


def to_list(columns: Columns | Rows) -> list[Row]:
    args = columns.args.T.tolist() if len(columns.args) else [[]] * len(columns.lo)
    return [(tuple(a), lo, hi) for a, lo, hi in zip(args, columns.lo.tolist(), columns.hi.tolist(), strict=True)]


def join_by_definition(rows: list[Row]) -> list[Row]:
    found: list[Row] = []
    for args, lo, hi in sorted(rows):
        if found and found[-1][0] == args and lo <= found[-1][2] + 1:
            found[-1] = (args, found[-1][1], max(found[-1][2], hi))
        else:
            found.append((args, lo, hi))
    return found


@pytest.mark.parametrize("arity", [0, 1, 3])
@pytest.mark.parametrize(
    ("constants", "times"), [(4, 20), (1 << 20, 1000), (1 << 20, 1 << 40), (9, LIMIT // 2), ((1 << 31) - 1, 50)]
)
def test_rows_are_sorted_by_arguments_and_beginning(arity: int, constants: int, times: int) -> None:
    for count in (0, 1, 2, 700):
        rows = make_rows(count, arity, constants, times, count)
        found = to_list(sort_columns(to_columns(rows, arity)))
        assert [row[:2] for row in found] == sorted(row[:2] for row in rows)
        assert sorted(found) == sorted(rows)


@pytest.mark.parametrize("ends", [(NEG_INF, POS_INF), (NEG_INF, 3), (3, POS_INF), (3, 3)])
def test_rows_may_all_have_the_same_ends(ends: tuple[int, int]) -> None:
    rows: list[Row] = [((place % 3,), *ends) for place in range(7)]
    assert to_list(sort_columns(to_columns(rows, 1))) == sorted(rows)


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_intervals_that_overlap_or_touch_are_joined(way: str) -> None:
    with run_kernels(way):
        for seed in range(30):
            arity = seed % 3
            rows = make_rows(seed * 3, arity, 4, 40, seed)
            columns = to_columns(rows, arity)
            assert to_list(coalesce(Rows(*columns))) == join_by_definition(rows)


@pytest.mark.parametrize("way", ["interpreted", "compiled"])
def test_a_store_holds_the_same_facts_whether_they_come_at_once_or_row_by_row(way: str) -> None:
    with run_kernels(way):
        one, other = (Store([1, 2], True, np.zeros(1, np.int64)) for _ in range(2))
        for pred in (0, 1):
            rows = coalesce(Rows(*to_columns(make_rows(900, pred + 1, 60, 300, pred), pred + 1)))
            load(one, pred, rows)
            other.insert(pred, rows)
            assert to_list(one.rows(pred)) == to_list(rows)
        # Those that come afterwards find their atoms, and room for more intervals.
        for pred in (0, 1):
            more = Rows(*to_columns(make_rows(400, pred + 1, 80, 600, 7), pred + 1))
            one.insert(pred, more)
            other.insert(pred, more)
            assert sorted(to_list(one.rows(pred))) == sorted(to_list(other.rows(pred)))
        assert one.preds.tolist() == other.preds.tolist()
        assert one.nbytes() == other.nbytes()


def test_a_constant_may_be_longer_than_what_is_printed_at_once() -> None:
    long = "x" * 700_000
    data = tl.Dataset.parse(f"P({long})@1\nP({long})@3\nP(b)@2\nP(b)@4")
    model = tl.materialise(tl.Program.parse("Q(X) :- P(X)."), data)
    assert model.render().decode().splitlines() == ["Q(b)@2", "Q(b)@4", f"Q({long})@1", f"Q({long})@3"]


def test_many_rows_print_in_the_order_of_facts_as_each_is_written_alone() -> None:
    dice = Random(3)
    names = [f'"n {n}"' if n % 3 else f"{n}/7" for n in range(300)]
    lines = [f"P({dice.choice(names)},{dice.choice(names)})@{dice.randrange(900)}" for _ in range(30_000)]
    model = tl.materialise(tl.Program.parse("Q(X, Y) :- P(X, Y)."), tl.Dataset.parse("\n".join(lines)))
    expected = [format_fact(fact) for fact in model]
    assert len(expected) > 29_000
    assert model.render().decode().splitlines() == expected
    objects = map(json.loads, model.render("jsonl").decode().splitlines())
    assert [f"{found['fact']}@{found['start']}" for found in objects] == expected
