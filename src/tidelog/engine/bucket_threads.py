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
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidelog.compiler.flat_rules import Pair
from tidelog.compiler.passes import compile_program
from tidelog.engine.batch_problem import Problem, Unsettled
from tidelog.engine.extent import Extent
from tidelog.engine.fact_store import Rows
from tidelog.engine.fixpoint import solve
from tidelog.local_threads import count_threads, run_in_threads

if TYPE_CHECKING:
    from tidelog.analysis.key_stages import KeyStage

#: Problems whose rules read fewer facts than this, without and with recursion, are solved as a whole: making buckets
#: takes some milliseconds. The search for a split takes time that grows with the square of the number of rules.
FEWEST_FACTS, FEWEST_IN_RECURSION, FACTS_PER_SQUARED_RULES = 20_000, 5_000, 150
#: The largest part of the facts that all buckets may need, and the largest bucket, relative to an even share.
MOST_COPIED, LARGEST_SHARE = 0.25, 1.5
#: The smallest part of the facts that has to be divided, if some stages of a program cannot be.
LEAST_DIVIDED = 0.5


@dataclass(frozen=True)
class _Task:
    """A bucket of a stage, or a stage as a whole, and the queries that it answers."""

    problem: Problem
    queries: tuple[str, ...]


def solve_in_buckets(problem: Problem, until: Pair | None) -> dict[str, tuple[Extent, ...]] | None:
    """Return the extents of the queries, of each bucket; None where the problem has to be solved as a whole.

    `until` is that of `fixpoint.solve`. Several extents of a predicate are about different atoms.
    """
    threads = count_threads()
    if threads == 1 or problem.compiled.numeric or _count_facts(problem) < _find_fewest(problem):
        return None
    tasks = _plan_tasks(problem, threads)
    if tasks is None:
        return None
    if any(rule.comparisons for rule in problem.compiled.rules):
        problem.symbols.ranks()
    try:
        solved = run_in_threads([partial(solve, task.problem, until) for task in tasks])
    except Unsettled:
        return None
    found: dict[str, list[Extent]] = {}
    for task, extents in zip(tasks, solved, strict=True):
        if any(len(extents[name].rows) for name in task.problem.violations):
            return None
        if any(extents[name].left and extents[name].right for name in task.queries):
            return None
        for name in task.queries:
            found.setdefault(name, []).append(extents[name])
    return {name: tuple(extents) for name, extents in found.items()}


def _count_facts(problem: Problem) -> int:
    """Count the given facts that rules read."""
    read = {literal.predicate for rule in problem.compiled.rules for literal in rule.body}
    return sum(len(rows) for name, rows in problem.given.items() if name in read)


def _find_fewest(problem: Problem) -> int:
    """Return how many facts have to be there for the search for a split to be worthwhile."""
    recursive = any(part.recursive for part in problem.compiled.components)
    fewest = FEWEST_IN_RECURSION if recursive else FEWEST_FACTS
    return max(fewest, FACTS_PER_SQUARED_RULES * len(problem.compiled.source.rules) ** 2)


def _plan_tasks(problem: Problem, threads: int) -> list[_Task] | None:
    """Divide the stages of a problem into tasks; return None where too little of it can be divided."""
    # Most problems are small, and need no split.
    from tidelog.analysis.key_stages import plan_stages

    grid = problem.compiled.grid
    tasks: list[_Task] = []
    divided = 0
    for stage in plan_stages(problem.compiled.source, problem.compiled.target.queries):
        target = replace(problem.compiled.target, queries=stage.queries, denominator=grid.denominator)
        compiled = compile_program(stage.program, target)
        if compiled.grid != grid:
            return None
        given = {name: rows for name, rows in problem.given.items() if name in stage.key}
        whole = Problem(compiled, given, problem.symbols, endless=problem.endless)
        buckets = _divide(given, stage, threads)
        if buckets is None:
            tasks.append(_Task(whole, stage.queries))
            continue
        divided += _count_facts(whole)
        for number, bucket in enumerate(buckets):
            # All buckets derive the same facts of copied predicates.
            own = tuple(name for name in stage.queries if number == 0 or stage.key[name] is not None)
            tasks.append(_Task(replace(whole, given=bucket, undefined={}), own))
    return tasks if divided > LEAST_DIVIDED * _count_facts(problem) else None


def _divide(given: Mapping[str, Rows], stage: KeyStage, count: int) -> list[dict[str, Rows]] | None:
    """Divide the facts of a stage over buckets; return None where most would be in one of them, or in all."""
    hashed = {name: at for name in given if (at := stage.key[name]) is not None and len(given[name])}
    total = sum(len(given[name]) for name in hashed)
    if not total or sum(map(len, given.values())) - total > MOST_COPIED * total:
        return None
    numbers = {name: find_buckets(given[name].args[at], count) for name, at in hashed.items()}
    sizes = sum(np.bincount(number, minlength=count) for number in numbers.values())
    if np.max(sizes) * count > LARGEST_SHARE * total:
        return None
    return [
        {name: rows.where(numbers[name] == bucket) if name in numbers else rows for name, rows in given.items()}
        for bucket in range(count)
    ]


def find_buckets(ids: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Return the buckets of constants."""
    mixed = ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(32)) % np.uint64(count)).astype(np.int64)
