"""Sort rows by several keys at once: the order is that of `np.lexsort`."""

from __future__ import annotations

import numpy as np
import pytest

from tidelog.data.constant_order import Longs, sort_facts, sort_rows
from tidelog.data.relation import Ids
from tidelog.data.symbol_table import Symbols
from tidelog.timeline.grid import NEG_INF


@pytest.mark.parametrize("spans", [(3, 5), (10**6, 10**6), (10**6, 4, 10**6), (1 << 40, 1 << 40)])
@pytest.mark.parametrize("count", [1, 100, 5_000])
def test_the_order_is_that_of_lexsort(spans: tuple[int, ...], count: int) -> None:
    rng = np.random.default_rng(count)
    keys = [rng.integers(-span, span, count) for span in spans]
    assert sort_rows(keys).tolist() == np.lexsort(keys).tolist()


def test_rows_that_have_always_held() -> None:
    rng = np.random.default_rng(1)
    lo = np.where(rng.random(5_000) < 0.1, NEG_INF, rng.integers(0, 9, 5_000))
    keys = [lo, rng.integers(0, 99, 5_000)]
    assert sort_rows(keys).tolist() == np.lexsort(keys).tolist()


def make_facts(count: int, arity: int) -> tuple[Ids, Longs]:
    """Make facts of random atoms, those of each in one place and ordered by time, with a few intervals each."""
    rng = np.random.default_rng(count)
    atoms = rng.permutation(np.unique(rng.integers(0, 60, (count, arity), np.int32), axis=0))
    sizes = rng.integers(1, 9, len(atoms))
    lo = np.concatenate([np.sort(rng.choice(1_000, size, replace=False)) for size in sizes])
    return np.ascontiguousarray(np.repeat(atoms, sizes, axis=0).T), lo


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("count", [3, 4_000])
@pytest.mark.parametrize("change", ["none", "an atom in two places", "times in any order", "no order"])
def test_facts_are_sorted_by_arguments_and_time(arity: int, count: int, change: str) -> None:
    args, lo = make_facts(count, arity)
    rng = np.random.default_rng(2)
    if change == "an atom in two places":
        args, lo = np.append(args, args[:, :1], axis=1), np.append(lo, 2_000)
    elif change == "times in any order":
        lo = rng.permutation(lo)
    elif change == "no order":
        order = rng.permutation(len(lo))
        args, lo = args[:, order], lo[order]
    ranks = rng.permutation(60)
    expected = np.lexsort([lo, *(ranks[column] for column in args[::-1])])
    assert sort_facts(args, lo, ranks).tolist() == expected.tolist()


def test_facts_without_arguments_are_sorted_by_time() -> None:
    lo = np.random.default_rng(3).permutation(5_000)
    assert sort_facts(np.empty((0, 5_000), np.int32), lo, np.zeros(0, np.int64)).tolist() == np.argsort(lo).tolist()


@pytest.mark.parametrize("start", ["", "s", "sensor", "a name of 16 byte", "é"])
def test_names_are_ranked_by_their_bytes(start: str) -> None:
    rests = ["", "\0", "\0\0", "0", "00000000", "00000000\0", "000000001", "1234567890", "1234567891", "x", "é", "ü"]
    rests += [f"{number}" for number in range(700)]
    names = list(dict.fromkeys(start + rest for rest in rests))
    symbols = Symbols()
    ids = [symbols.intern(names[place]) for place in np.random.default_rng(4).permutation(len(names))]
    ranks = symbols.ranks()
    assert sorted(ids, key=lambda id: ranks[id]) == sorted(ids, key=lambda id: str(symbols.value(id)).encode())
