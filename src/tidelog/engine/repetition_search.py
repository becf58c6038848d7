"""The search for what repeats for ever: guess tails of a component, then prove them.

1. Guess: tails that seem to repeat before the horizon (`extent.guess_tails`).
2. Soundness: the contents of one window as long as the rules' reach, with atoms that hold from there back without end,
   derive the whole next period. Rules do not depend on absolute time, so each period follows from the one before, for
   ever.
3. Completeness: no rule derives anything new from the repeated extent, near enough to both ends that everything else
   is a repetition. Then it is a model, and since all of it is entailed, it is the least one.

Where a guess fails, the horizon is doubled. Facts that step 3 derives anew are entailed, too, and join the given
facts, which is how unbounded boxes inside a recursion get their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import lcm

import numpy as np

from tidelog.compiler.compiled_program import RuleComponent
from tidelog.compiler.flat_rules import FlatRule
from tidelog.engine.batch_problem import ComponentPlans, Problem, Unsettled, plan_component
from tidelog.engine.extent import Extent, Tail, guess_tails, mirror
from tidelog.engine.fact_store import AllowanceExceeded, Rows, Store
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF

#: Records that the search for what repeats may take before it gives up, and how often it may double the horizon: more
#: often as long as few records were taken.
SEARCH_ALLOWANCE = 20_000_000
SEARCH_ATTEMPTS, MOST_ATTEMPTS = 9, 40
FEW_RECORDS = 6_000_000


def find_span(rows: Iterable[Rows]) -> tuple[int, int]:
    """Return the first and the last finite end of rows; (0, 0) if there is none."""
    lows: list[int] = []
    highs: list[int] = []
    for part in rows:
        for ends in (part.lo, part.hi):
            finite = ends[(ends > NEG_INF) & (ends < POS_INF)]
            if len(finite):
                lows.append(int(finite.min()))
                highs.append(int(finite.max()))
    return (min(lows), max(highs)) if lows else (0, 0)


def find_repeating(
    problem: Problem, component: RuleComponent, inputs: dict[str, Extent], cut_of: Callable[[FlatRule], int]
) -> dict[str, Extent]:
    """Return the extents of a component that continues forever; raise `Unsettled` where none can be proved."""
    seeds = {name: problem.facts_of(name) for name in component.predicates}
    tails = [extent for extent in inputs.values() if extent.left or extent.right]
    step = lcm(problem.compiled.grid.tick, *(t.every for e in tails for t in (e.left, e.right) if t))
    first, last = find_span([*(extent.rows for extent in inputs.values()), *seeds.values()])
    first = min([first, *(e.left.at for e in tails if e.left)])
    last = max([last, *(e.right.at for e in tails if e.right)])
    room = 8 * (component.reach + step)
    known: dict[str, Rows] = {}
    spent = 0
    for attempt in range(MOST_ATTEMPTS):
        allowance = SEARCH_ALLOWANCE if attempt < SEARCH_ATTEMPTS else FEW_RECORDS
        if spent > allowance or max(room - first, last + room) + 8 * (component.reach + step) > LIMIT:
            break
        runs = TrialRuns(problem, component, inputs, step, SEARCH_ALLOWANCE - spent, cut_of)
        try:
            rows = known = runs.run(first - room, last + room, seeds)
            left = _find_tail(runs, rows, -first, room, leftwards=True)
            right = _find_tail(runs, rows, last, room, leftwards=False)
            if left is not None and right is not None:
                extents = {name: close_off(rows[name], left, right) for name in component.predicates}
                new = runs.derive_once_more(extents, left, right)
                if not new:
                    return extents
                seeds = {
                    name: Rows.concatenate([old, *new.get(name, [])], len(old.args)) for name, old in seeds.items()
                }
            spent += runs.taken
        except AllowanceExceeded:
            break
        room *= 2
    raise Unsettled(component.predicates, known)


def _find_tail(runs: TrialRuns, rows: dict[str, Rows], last: int, room: int, leftwards: bool) -> Tail | None:
    """Return a verified tail beyond `last`, where the data ends; for the left tail all times are mirrored."""
    start = last + runs.component.reach + runs.step
    end = last + room - max(room // 4, runs.component.reach + runs.step)
    turned = [mirror(r) if leftwards else r for r in rows.values()]
    for tail in guess_tails(turned, start, end, runs.step, runs.component.reach):
        if runs.is_repeating(rows, tail, room // 2, leftwards):
            return Tail(-tail.at, tail.every) if leftwards else tail
    return None


class TrialRuns:
    """Runs of one component on bounded spans of time, each in a store of its own; `taken` counts their records."""

    def __init__(
        self,
        problem: Problem,
        component: RuleComponent,
        inputs: Mapping[str, Extent],
        step: int,
        allowance: int,
        cut_of: Callable[[FlatRule], int],
    ) -> None:
        self.problem = problem
        self.component = component
        self.inputs = inputs
        self.step = step
        self.margin = component.reach + 2 * step
        self.allowance = allowance
        self.cut_of = cut_of
        self.taken = 0
        #: The plans with and without recursion, and the indexes that they read: each run uses the same.
        self.plans: dict[bool, tuple[ComponentPlans, list[tuple[int, tuple[int, ...]]]]] = {}

    def _fill_store(self, lo: int, hi: int, own: dict[str, Rows]) -> Store:
        store = self.problem.new_store()
        for name, extent in self.inputs.items():
            lo_read, hi_read = lo - self.margin, hi + self.margin
            if extent.size(lo_read, hi_read) > self.allowance:
                raise AllowanceExceeded
            store.insert(self.problem.numbers[name], extent.over(lo_read, hi_read))
        for name, rows in own.items():
            store.insert(self.problem.numbers[name], rows)
        store.horizon = (lo, hi)
        store.allowance = store.taken + self.allowance
        return store

    def run(self, lo: int, hi: int, own: dict[str, Rows], recursion: bool = True) -> dict[str, Rows]:
        """Return the facts that follow inside [lo,hi] from inputs and own facts; one round without recursion."""
        store = self._fill_store(lo, hi, own)
        before = store.taken
        part = self.component
        if recursion not in self.plans:
            planned = plan_component(self.problem, store, part, part.rules, self.cut_of, recursion=recursion)
            self.plans[recursion] = planned, store.indexes
        planned, indexes = self.plans[recursion]
        for index in indexes:
            store.index(*index)
        try:
            store.evaluate(list(range(planned.whole)), planned.code)
        finally:
            self.taken += store.taken - before
        return {name: store.rows(self.problem.numbers[name]) for name in part.predicates}

    def is_repeating(self, rows: dict[str, Rows], tail: Tail, room: int, leftwards: bool) -> bool:
        """Return whether the contents of one window derive all of the next period.

        Besides the window, atoms may be used that hold without end on the side that time moves away from: for a left
        tail, those that hold from the next period on for ever. They hold throughout the period that is derived, so the
        next period finds them holding from its own window on, too. Boxes over unbounded ranges need them.
        """
        reach, span = self.component.reach, tail.every + self.component.reach
        at = -tail.at if leftwards else tail.at
        own: dict[str, Rows] = {}
        for name, known in rows.items():
            if leftwards:
                endless = known.where(known.lo == NEG_INF).clip(NEG_INF, at)
                across = known.where((known.hi == POS_INF) & (known.lo <= at - span)).clip(at - reach, POS_INF)
                near = known.clip(at - reach, at)
            else:
                endless = known.where(known.hi == POS_INF).clip(at, POS_INF)
                across = known.where((known.lo == NEG_INF) & (known.hi >= at + span)).clip(NEG_INF, at + reach)
                near = known.clip(at, at + reach)
            own[name] = Rows.concatenate([endless, across, near], len(known.args))
        if leftwards:
            derived = self.run(at - span - room, at, own)
            window = at - span, at - reach - 1
        else:
            derived = self.run(at, at + span + room, own)
            window = at + reach + 1, at + span
        expected = {name: r.clip(*window) for name, r in rows.items()}
        return not self._find_additions(derived, expected, NEG_INF, POS_INF)

    def derive_once_more(self, extents: dict[str, Extent], left: Tail, right: Tail) -> dict[str, list[Rows]]:
        """Return the facts that one more round of the rules adds to the extents; none, if they are a model."""
        before, after = left.every + self.margin, right.every + self.margin
        lo, hi = left.at - 6 * before, right.at + 6 * after
        own = {name: extent.over(lo, hi) for name, extent in extents.items()}
        derived = self.run(lo, hi, own, recursion=False)
        new = self._find_additions(own, derived, left.at - 3 * before, right.at + 3 * after)
        return {name: [rows] for name, rows in new.items()}

    def _find_additions(self, known: dict[str, Rows], rows: dict[str, Rows], lo: int, hi: int) -> dict[str, Rows]:
        """Return the rows, clipped to [lo,hi], of those predicates that add something to the known ones."""
        store = self.problem.new_store()
        additions: dict[str, Rows] = {}
        for name, part in rows.items():
            number = self.problem.numbers[name]
            store.insert(number, known[name])
            before = store.rows(number)
            clipped = _clip_finite_ends(part, lo, hi)
            store.insert(number, clipped)
            after = store.rows(number)
            same = len(before) == len(after) and bool((before.lo == after.lo).all() and (before.hi == after.hi).all())
            if not same:
                additions[name] = clipped
        return additions


def _clip_finite_ends(rows: Rows, lo: int, hi: int) -> Rows:
    """Return rows clipped to [lo,hi], but infinite ends stay infinite."""
    rows = rows.where((rows.lo <= hi) & (rows.hi >= lo))
    new_lo = np.where(rows.lo == NEG_INF, NEG_INF, np.maximum(rows.lo, lo))
    new_hi = np.where(rows.hi == POS_INF, POS_INF, np.minimum(rows.hi, hi))
    return Rows(rows.args, new_lo, new_hi)


def close_off(rows: Rows, left: Tail, right: Tail) -> Extent:
    """Return the extent with tails. An atom that holds throughout a period holds for ever, and needs no tail."""
    rows = _clip_finite_ends(rows, left.at - left.every + 1, right.at + right.every - 1)
    hi = np.where((rows.lo <= right.at) & (rows.hi >= right.at + right.every - 1), POS_INF, rows.hi)
    lo = np.where((rows.hi >= left.at) & (rows.lo <= left.at - left.every + 1), NEG_INF, rows.lo)
    rows = Rows(rows.args, lo, hi)
    rest_right = bool(((hi >= right.at) & (hi != POS_INF)).any() or ((lo > right.at) & (hi == POS_INF)).any())
    rest_left = bool(((lo <= left.at) & (lo != NEG_INF)).any() or ((hi < left.at) & (lo == NEG_INF)).any())
    return Extent(rows, left if rest_left else None, right if rest_right else None)
