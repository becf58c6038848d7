"""Sort rows by several keys at once: the order is that of `np.lexsort`."""

from __future__ import annotations

import numpy as np
import pytest

from tidelog.data.constant_order import sort_rows
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
