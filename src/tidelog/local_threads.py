"""Divide work over the threads of this process: how many there are, and how they are given parts of it.

Kernels run without the interpreter's lock, so threads that spend their time in kernels use all cores. There is one
thread per core, unless the user chooses another number: `--threads`, or the environment variable `TIDELOG_THREADS`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
Item = TypeVar("Item")

_chosen: ContextVar[int | None] = ContextVar("threads", default=None)


def count_threads() -> int:
    """Return the number of threads to use: as chosen, or one per core; one in a worker of Spark, which has its own."""
    chosen = _chosen.get() or _read_number(os.environ.get("TIDELOG_THREADS", ""))
    if chosen:
        return chosen
    if any(name.startswith("PYTHON_WORKER_FACTORY") for name in os.environ):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def choose_threads(count: int) -> Token[int | None]:
    """Use this many threads from now on, in this thread of control; `restore_threads` takes the choice back."""
    return _chosen.set(count)


def restore_threads(before: Token[int | None]) -> None:
    """Use as many threads as before a choice."""
    _chosen.reset(before)


def _make_pool(count: int) -> ThreadPoolExecutor:
    """Make a pool of threads; its module is imported only here, because small inputs need none."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count)


def run_in_threads(parts: Sequence[Callable[[], T]]) -> list[T]:
    """Run all parts at once and return their results in order; raise the first error, once all parts have ended.

    >>> run_in_threads([lambda: 1, lambda: 2])
    [1, 2]
    """
    if len(parts) <= 1:
        return [part() for part in parts]
    with _make_pool(len(parts) - 1) as pool:
        others = [pool.submit(part) for part in parts[1:]]
        first = parts[0]()
        return [first, *(other.result() for other in others)]


def map_ahead(function: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
    """Yield the results of a function in order, computed in threads before they are asked for.

    At most as many items as there are threads are taken ahead.

    >>> list(map_ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    threads = count_threads()
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[T]] = deque()
    with _make_pool(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def iterate_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items of an iterator; another thread computes the next one while the caller works.

    >>> list(iterate_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    if count_threads() == 1:
        yield from items
        return
    with _make_pool(1) as pool:
        coming = pool.submit(_take, items)
        while found := coming.result():
            coming = pool.submit(_take, items)
            yield found[0]


def _take(items: Iterator[T]) -> tuple[T] | tuple[()]:
    """Take the next item; return nothing at the end."""
    for item in items:
        return (item,)
    return ()
