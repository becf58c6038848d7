"""Divide a large batch problem into buckets, and solve each in a thread of its own.

The theory is that of a cluster (`analysis.rule_locality`): facts of hashed predicates go to the bucket of one of their
arguments, those of copied predicates to every bucket, and every bucket then derives exactly its share. All buckets run
the same compiled program and share one dictionary of constants, which only grows while programs are prepared.

A problem is solved as a whole where that is simpler or cheaper: few facts, one thread, most facts in one bucket or in
all of them, computed values (these are new constants), and answers whose form depends on all facts: atoms that repeat
at both ends of time, and violated constraints, which are listed in the order of the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidelog.analysis.key_stages import KeyStage, plan_stages
from tidelog.compiler.flat_rules import Pair
from tidelog.compiler.passes import compile_program
from tidelog.engine.batch_problem import Problem, Unsettled
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.engine.fixpoint import solve
from tidelog.local_threads import count_threads, run_in_threads

#: Problems with fewer facts than this, without and with recursion, are solved as a whole: making buckets takes some
#: milliseconds.
FEWEST_FACTS, FEWEST_IN_RECURSION = 20_000, 5_000
#: The largest part of the facts that all buckets may need, and the largest bucket, relative to an even share.
MOST_COPIED, LARGEST_SHARE = 0.25, 1.5


def solve_in_buckets(problem: Problem, until: Pair | None) -> dict[str, tuple[Extent, ...]] | None:
    """Return the extents of the queries, of each bucket; None where the problem has to be solved as a whole.

    `until` is that of `fixpoint.solve`. Several extents of a predicate are about different atoms.
    """
    threads = count_threads()
    fewest = FEWEST_IN_RECURSION if any(part.recursive for part in problem.compiled.components) else FEWEST_FACTS
    if threads == 1 or problem.compiled.numeric or _count_facts(problem.given) < fewest:
        return None
    tasks: list[tuple[Problem, tuple[str, ...]]] = []
    for stage in plan_stages(problem.compiled.source, problem.compiled.target.queries):
        grid = problem.compiled.grid
        target = replace(problem.compiled.target, queries=stage.queries, denominator=grid.denominator)
        compiled = compile_program(stage.program, target)
        if compiled.grid != grid:
            return None
        whole = Problem(compiled, problem.given, problem.symbols, endless=problem.endless)
        buckets = _divide(whole, stage, threads, fewest)
        if buckets is None:
            return None
        for number, bucket in enumerate(buckets):
            # All buckets derive the same facts of copied predicates.
            own = tuple(name for name in stage.queries if number == 0 or stage.key[name] is not None)
            tasks.append((bucket, (*own, *bucket.violations)))
    problem.symbols.ranks()
    try:
        solved = run_in_threads([partial(solve, bucket, until) for bucket, _ in tasks])
    except Unsettled:
        return None
    found: dict[str, list[Extent]] = {}
    for (bucket, names), extents in zip(tasks, solved, strict=True):
        if any(len(extents[name].rows) for name in bucket.violations):
            return None
        if any(extents[name].left and extents[name].right for name in names):
            return None
        for name in names:
            found.setdefault(name, []).append(extents[name])
    return {name: tuple(extents) for name, extents in found.items()}


def _count_facts(given: Mapping[str, Rows]) -> int:
    return sum(len(rows) for rows in given.values())


def _divide(whole: Problem, stage: KeyStage, count: int, fewest: int) -> list[Problem] | None:
    """Divide the problem of a stage into buckets; return None where most facts would be in one of them, or in all."""
    given = {name: rows for name, rows in whole.given.items() if name in stage.key}
    hashed = {name: at for name in given if (at := stage.key[name]) is not None and len(given[name])}
    total = sum(len(given[name]) for name in hashed)
    if total < fewest or _count_facts(given) - total > MOST_COPIED * total:
        return None
    numbers = {name: find_buckets(given[name].args[at], count) for name, at in hashed.items()}
    sizes = sum(np.bincount(number, minlength=count) for number in numbers.values())
    if np.max(sizes) * count > LARGEST_SHARE * total:
        return None
    return [
        replace(
            whole,
            given={
                name: rows.where(numbers[name] == bucket) if name in numbers else rows for name, rows in given.items()
            },
            undefined={},
        )
        for bucket in range(count)
    ]


def find_buckets(ids: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Return the buckets of constants."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(count)).astype(np.int64)
