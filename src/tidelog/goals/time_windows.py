"""The times at which each predicate can matter for what is asked about a range of time.

The range goes through the rules from heads to bodies: a body that reads `Diamondminus[0,5] P` for its own times in
[a,b] reads P in [a-5,b]. Where a recursion goes farther with every turn, its window has no end on that side. Most
aggregates count occurrences, which are known by where they start, so their windows have no beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.compiler.bound_memory import find_rows_window, read_range
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import Pair
from tidelog.language.core_rules import Aggregation
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, add_left, add_right, negate

ALL_TIME: Pair = (NEG_INF, POS_INF)


def find_windows(compiled: CompiledProgram, asked: Mapping[str, Pair]) -> dict[str, Pair]:
    """Return the window of each predicate that the asked ones depend on, themselves included."""
    windows = dict(asked)
    edges = list(_collect_reads(compiled))
    # Without a growing cycle, nothing changes after as many rounds as there are predicates.
    for turn in range(2 * len(compiled.arities) + 4):
        before = dict(windows)
        for head, body, back in edges:
            if head not in windows:
                continue
            lo, hi = _move(windows[head], negate(back), compiled.grid.dense)
            old = windows.get(body, (lo, hi))
            new = min(old[0], lo), max(old[1], hi)
            if turn > len(compiled.arities) and body in before:
                new = NEG_INF if new[0] < old[0] else new[0], POS_INF if new[1] > old[1] else new[1]
            windows[body] = new
        if windows == before:
            return windows
    return dict.fromkeys(windows, ALL_TIME)


def _collect_reads(compiled: CompiledProgram) -> Iterable[tuple[str, str, Pair]]:
    """Yield each head with a predicate that its body reads, and how far back from the head."""
    dense = compiled.grid.dense
    for rule in compiled.rules:
        for literal in rule.body:
            yield rule.predicate, literal.predicate, _move(rule.range, read_range(rule, literal), dense)
    for step in compiled.steps:
        back = find_rows_window(step, compiled.grid) if isinstance(step, Aggregation) else (0, 0)
        yield step.head.predicate, step.input.predicate, back


def _move(window: Pair, by: Pair, dense: bool) -> Pair:
    """Return the sum of a window and a range of distances; ends that are too far away are infinite."""
    lo, hi = add_left(window[0], by[0], dense), add_right(window[1], by[1], dense)
    return lo if lo > -LIMIT else NEG_INF, hi if hi < LIMIT else POS_INF
