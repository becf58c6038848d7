"""Batch evaluation: component by component, each to its fixpoint, for all time.

A component without recursion ends by itself. A recursive one is first run up to a horizon somewhat beyond the data:
if nothing was cut there, the fixpoint is exact. Otherwise what goes on may go on for ever, and is found and proved:

1. guess: tails that seem to repeat before the horizon (`extent.candidates`);
2. soundness: the contents of one stretch as long as the rules' reach, alone, derive the whole next period. Rules do
   not care when they are applied, so the period follows from the one before, for ever;
3. completeness: no rule derives anything new from the repeated extent, near enough to both ends that all else is a
   repetition. Then it is a model, and since all of it is entailed, it is the least one.

Where a guess fails, the horizon is doubled; what step 3 derives anew is entailed, too, and joins the given facts,
which is how unbounded boxes inside a recursion get their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import lcm

import numpy as np

from tidelog.analysis.components import connected
from tidelog.analysis.flatten import ALWAYS, VIOLATION, FlatLiteral, FlatRule, Op
from tidelog.engine import machine
from tidelog.engine.extent import Extent, Tail, candidates, mirrored
from tidelog.engine.machine import Code
from tidelog.engine.plan import Plan, encoded, planned
from tidelog.engine.store import Int64s, Rows, Store, Tired
from tidelog.language.syntax import Constant, Term, Value
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF, Grid, leaves_63_bits

#: Records that the search for what repeats may take before it gives up, and how often it may double the horizon.
SEARCH_ALLOWANCE = 20_000_000
SEARCH_ATTEMPTS = 9


class Unsettled(Exception):
    """A component for which no repeating extent was found; `known` are facts of it that hold in any case."""

    def __init__(self, predicates: tuple[str, ...], known: dict[str, Rows]) -> None:
        super().__init__(", ".join(predicates))
        self.predicates = predicates
        self.known = known


@dataclass(frozen=True, slots=True)
class Part:
    """A component of the predicate graph with its rules and what they read from below."""

    predicates: tuple[str, ...]
    recursive: bool
    rules: tuple[FlatRule, ...]
    inputs: tuple[str, ...]
    reach: int


@dataclass
class Problem:
    """Everything that evaluation needs: rules in normal form, facts by predicate, and a dictionary of constants."""

    rules: tuple[FlatRule, ...]
    grid: Grid
    given: dict[str, Rows]
    arities: dict[str, int]
    wanted: tuple[str, ...]
    intern: Callable[[Value], int]
    ranks: Callable[[], Int64s]
    parts: tuple[Part, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.given[ALWAYS] = Rows(np.empty((0, 1), np.int32), np.array([NEG_INF]), np.array([POS_INF]))
        self.rules = relevant(self.rules, self.wanted)
        self.parts = parts(self.rules, self.grid)
        for rule in self.rules:
            for term in terms(rule):
                if isinstance(term, Constant):
                    self.intern(term.value)


def terms(rule: FlatRule) -> Iterator[Term]:
    """All terms of a rule."""
    yield from rule.args
    for literal in rule.body:
        yield from literal.args
    for comparison in rule.comparisons:
        yield comparison.left
        yield comparison.right


def relevant(rules: Iterable[FlatRule], wanted: Iterable[str]) -> tuple[FlatRule, ...]:
    """The rules that the wanted predicates and the constraints need."""
    rules = tuple(rules)
    needed = {*wanted, *(rule.predicate for rule in rules if rule.predicate.startswith(VIOLATION))}
    frontier = set(needed)
    while frontier:
        below = {literal.predicate for rule in rules if rule.predicate in frontier for literal in rule.body}
        frontier = below - needed
        needed |= frontier
    return tuple(rule for rule in rules if rule.predicate in needed)


def parts(rules: tuple[FlatRule, ...], grid: Grid) -> tuple[Part, ...]:
    """The components of the rules' predicates, each after those that it reads."""
    graph: dict[str, list[str]] = {}
    for rule in rules:
        graph.setdefault(rule.predicate, []).extend(literal.predicate for literal in rule.body)
    found = []
    for component in connected(graph):
        inside = set(component.predicates)
        own = tuple(rule for rule in rules if rule.predicate in inside)
        below = sorted({literal.predicate for rule in own for literal in rule.body} - inside)
        reach = max((_reach(rule) for rule in own), default=0)
        reach += -reach % grid.tick + grid.tick
        found.append(Part(component.predicates, component.recursive, own, tuple(below), reach))
    return tuple(found)


def _reach(rule: FlatRule) -> int:
    """How far a rule's body and head are apart at most, leaving infinite ranges out."""
    body = max((_width(literal.range) for literal in rule.body), default=0)
    return body + _width(rule.range)


def _is_bounded(rule: FlatRule) -> bool:
    return all(abs(end) < LIMIT for pair in (rule.range, *(b.range for b in rule.body)) for end in pair)


def _width(pair: tuple[int, int]) -> int:
    return max(abs(end) if abs(end) < LIMIT else abs(other) % LIMIT for end, other in (pair, pair[::-1]))


def solve(problem: Problem, until: tuple[int, int] | None = None) -> dict[str, Extent]:
    """The extents of the wanted predicates and of violated constraints; `until` is the stretch that is asked for.

    Outside of that stretch the extents may be incomplete where nothing that is asked for depends on it. Constraints
    are about all time, so with them the stretch alone is looked at only where all time cannot be settled.
    """
    sweep = _sweep(problem, until)
    constraints = any(rule.predicate.startswith(VIOLATION) for rule in problem.rules)
    if sweep is not None and _near(problem, sweep) and not constraints:
        return _Evaluation(problem, sweep).solve()
    try:
        return _Evaluation(problem, until=until).solve()
    except Unsettled:
        if sweep is None:
            raise
        return _Evaluation(problem, sweep).solve()


def _sweep(problem: Problem, until: tuple[int, int] | None) -> tuple[int, int] | None:
    """The horizon for programs that propagate in one direction only, if that direction is bounded by the question."""
    if until is None:
        return None
    ranges = [r for rule in problem.rules for r in (rule.range, *(_signed(b) for b in rule.body))]
    if until[1] != POS_INF and all(lo >= 0 for lo, _ in ranges):
        return NEG_INF, until[1]
    if until[0] != NEG_INF and all(hi <= 0 for _, hi in ranges):
        return until[0], POS_INF
    return None


def _signed(literal: FlatLiteral) -> tuple[int, int]:
    lo, hi = literal.range
    return (-hi, -lo) if literal.op is Op.UNTIL else (lo, hi)


def _near(problem: Problem, sweep: tuple[int, int]) -> bool:
    """Whether the data reaches about as far as the question, so that sweeping there is no detour."""
    span = _span(problem.given.values())
    reach = 64 * max((part.reach for part in problem.parts), default=1)
    return (sweep[1] == POS_INF or sweep[1] <= span[1] + reach) and (sweep[0] == NEG_INF or sweep[0] >= span[0] - reach)


def _span(rows: Iterable[Rows]) -> tuple[int, int]:
    """The first and the last finite end of the rows; (0, 0) if there is none."""
    lows: list[int] = []
    highs: list[int] = []
    for part in rows:
        for ends in (part.lo, part.hi):
            finite = ends[(ends > NEG_INF) & (ends < POS_INF)]
            if len(finite):
                lows.append(int(finite.min()))
                highs.append(int(finite.max()))
    return (min(lows), max(highs)) if lows else (0, 0)


class _Evaluation:
    def __init__(
        self, problem: Problem, sweep: tuple[int, int] | None = None, until: tuple[int, int] | None = None
    ) -> None:
        self.problem = problem
        self.sweep = sweep
        self.until = until
        self.names = list(problem.arities)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.store = self._new_store()
        self.loaded: set[str] = set()
        #: Extents of predicates that repeat for ever; all others are in the store.
        self.repeating: dict[str, Extent] = {}
        #: Predicates among these that are only known around the stretch that is asked for.
        self.partial: set[str] = set()

    def solve(self) -> dict[str, Extent]:
        for place, part in enumerate(self.problem.parts):
            if any(name in self.partial for name in part.inputs):
                self._around(place)
            elif any(name in self.repeating for name in part.inputs) or not self._direct(part):
                try:
                    self._search(part)
                except Unsettled:
                    self._around(place)
        wanted = [*self.problem.wanted, *(n for n in self.names if n.startswith(VIOLATION))]
        extents = {name: self._extent(name) for name in wanted}
        return {name: e.within(*self.sweep) for name, e in extents.items()} if self.sweep else extents

    def _new_store(self) -> Store:
        arities = [self.problem.arities[name] for name in self.names]
        compares = any(rule.comparisons for rule in self.problem.rules)
        ranks = np.asarray(self.problem.ranks() if compares else [0], np.int64)
        return Store(arities, self.problem.grid.dense, ranks)

    def _given(self, name: str) -> Rows:
        return self.problem.given.get(name) or Rows.empty(self.problem.arities[name])

    def _extent(self, name: str) -> Extent:
        if name in self.repeating:
            return self.repeating[name]
        self._load(name)
        return Extent(self.store.rows(self.numbers[name]))

    def _load(self, name: str) -> None:
        """Brings the given facts of a predicate into the store, once."""
        if name not in self.loaded:
            self.loaded.add(name)
            self.store.insert(self.numbers[name], self._given(name))

    # The direct way

    def _direct(self, part: Part) -> bool:
        """Runs a component in the common store; False if something went beyond the horizon."""
        store = self.store
        drivers = self._drivers(part)
        for name in (*part.inputs, *part.predicates):
            if name not in drivers:
                self._load(name)
        store.horizon = (1 - LIMIT, LIMIT - 1)
        if part.recursive:
            store.horizon = self.sweep or self._first_horizon(part)
            store.allowance = store.taken + (10 * SEARCH_ALLOWANCE if self.sweep else SEARCH_ALLOWANCE)
        store.unclip()
        whole = [rule for rule in part.rules if not any(rule is driven for driven, _ in drivers.values())]
        plans, code = self._code(store, part, whole, drivers)
        try:
            for name in drivers:
                store.insert(self.numbers[name], self._given(name), code, transient=True)
            store.evaluate(list(range(plans)), code)
        except Tired:
            if self.sweep:
                raise Unsettled(part.predicates, {}) from None
            return False
        finally:
            store.allowance = 1 << 62
        if any(store.clipped) and not part.recursive:
            raise leaves_63_bits("a time that the rules derive")
        return self.sweep is not None or not any(store.clipped)

    def _drivers(self, part: Part) -> dict[str, tuple[FlatRule, int]]:
        """Given relations that are read by one rule of one literal's worth and need not be stored: they pass through.

        The rule must not be recursive, the literal must not need maximal intervals, and nobody else may need it.
        """
        inside = set(part.predicates)
        uses: dict[str, list[tuple[FlatRule, int]]] = {}
        for rule in self.problem.rules:
            for place, literal in enumerate(rule.body):
                uses.setdefault(literal.predicate, []).append((rule, place))
        found: dict[str, tuple[FlatRule, int]] = {}
        derived = {rule.predicate for rule in self.problem.rules}
        for rule in part.rules:
            if any(literal.predicate in inside for literal in rule.body):
                continue
            best: tuple[int, str, int] | None = None
            for place, literal in enumerate(rule.body):
                name = literal.predicate
                if name in derived or name in self.problem.wanted or name in self.loaded or len(uses[name]) > 1:
                    continue
                if literal.negated or literal.op not in (Op.HOLDS, Op.DIAMOND):
                    continue
                if any(other.op in (Op.SINCE, Op.UNTIL) for other in rule.body):
                    continue
                size = len(self._given(name))
                if best is None or size > best[0]:
                    best = size, name, place
            if best is not None:
                found[best[1]] = rule, best[2]
        return found

    def _first_horizon(self, part: Part) -> tuple[int, int]:
        rows = [self.store.rows(self.numbers[name]) for name in (*part.inputs, *part.predicates)]
        lo, hi = _span(rows)
        return max(lo - 16 * part.reach, -LIMIT), min(hi + 16 * part.reach, LIMIT)

    def _code(
        self,
        store: Store,
        part: Part,
        whole: Iterable[FlatRule],
        drivers: dict[str, tuple[FlatRule, int]] | None = None,
        recursion: bool = True,
    ) -> tuple[int, Code]:
        """Plans for rules as a whole (these come first: their number), for drivers and for the recursion."""

        def size(name: str) -> int:
            return store.size(self.numbers[name])

        inside = set(part.predicates)
        plans: list[Plan] = [planned(rule, None, size, self._cut(rule)) for rule in whole]
        count = len(plans)
        triggers: dict[int, list[int]] = {}
        driven = [(name, rule, place) for name, (rule, place) in (drivers or {}).items()]
        if recursion:
            driven += [
                (literal.predicate, rule, place)
                for rule in part.rules
                for place, literal in enumerate(rule.body)
                if literal.predicate in inside and not literal.negated
            ]
        for name, rule, place in driven:
            triggers.setdefault(self.numbers[name], []).append(len(plans))
            plans.append(planned(rule, place, size, self._cut(rule)))
        return count, encoded(plans, triggers, store, self.numbers, self.problem.intern)

    def _cut(self, rule: FlatRule) -> int:
        """The ends at which a rule's negated predicates are only known up to the horizon."""
        cut = 0
        for literal in rule.body:
            if literal.negated and literal.predicate in self.partial:
                cut = machine.CUT_LEFT | machine.CUT_RIGHT
            elif literal.negated and literal.predicate in self.repeating:
                extent = self.repeating[literal.predicate]
                cut |= (extent.left is not None) | (extent.right is not None) << 1
        return cut

    # The search for what repeats

    def _search(self, part: Part) -> None:
        """Finds the extents of a component that goes on for ever."""
        inputs = {name: self._extent(name) for name in part.inputs}
        seeds = {name: self._given(name) for name in part.predicates}
        tails = [extent for extent in inputs.values() if extent.left or extent.right]
        step = lcm(self.problem.grid.tick, *(t.every for e in tails for t in (e.left, e.right) if t))
        first, last = _span([*(extent.rows for extent in inputs.values()), *seeds.values()])
        first = min([first, *(e.left.at for e in tails if e.left)])
        last = max([last, *(e.right.at for e in tails if e.right)])
        room = 8 * (part.reach + step)
        known: dict[str, Rows] = {}
        spent = 0
        for _ in range(SEARCH_ATTEMPTS):
            if spent > SEARCH_ALLOWANCE or max(room - first, last + room) + 8 * (part.reach + step) > LIMIT:
                break
            lab = _Laboratory(self, part, inputs, step, SEARCH_ALLOWANCE - spent)
            try:
                rows = known = lab.run(first - room, last + room, seeds)
                left = self._tail(lab, rows, first, last, room, leftwards=True)
                right = self._tail(lab, rows, first, last, room, leftwards=False)
                if left is not None and right is not None:
                    extents = {name: _closed_off(rows[name], left, right) for name in part.predicates}
                    new = lab.derived_anew(extents, left, right)
                    if not new:
                        self._settle(extents)
                        return
                    seeds = {name: Rows.joined([old, *new.get(name, [])], len(old.args)) for name, old in seeds.items()}
                spent += lab.taken
            except Tired:
                break
            room *= 2
        raise Unsettled(part.predicates, known)

    def _around(self, place: int) -> None:
        """Evaluates a component around the stretch that is asked for only.

        What repeats may do so with a period too long to be written out. But without recursion and with bounded ranges
        a stretch of time depends on what is near it alone: no farther than this component and those after it reach.
        """
        part = self.problem.parts[place]
        until = self.until or (NEG_INF, POS_INF)
        near = until[0] > NEG_INF and until[1] < POS_INF and all(_is_bounded(rule) for rule in part.rules)
        if part.recursive or not near or any(name.startswith(VIOLATION) for name in part.predicates):
            raise Unsettled(part.predicates, {})
        reach = 2 * sum(after.reach for after in self.problem.parts[place:])
        lab = _Laboratory(
            self, part, {n: self._extent(n) for n in part.inputs}, self.problem.grid.tick, SEARCH_ALLOWANCE
        )
        try:
            rows = lab.run(until[0] - reach, until[1] + reach, {name: self._given(name) for name in part.predicates})
        except Tired:
            raise Unsettled(part.predicates, {}) from None
        self.repeating |= {name: Extent(found) for name, found in rows.items()}
        self.partial |= set(part.predicates)

    def _tail(
        self,
        lab: _Laboratory,
        rows: dict[str, Rows],
        first: int,
        last: int,
        room: int,
        leftwards: bool,
    ) -> Tail | None:
        """A verified tail of the component, in mirrored time for the left one."""
        start = (-first if leftwards else last) + lab.part.reach + lab.step
        end = (-first if leftwards else last) + room - max(room // 4, lab.part.reach + lab.step)
        turned = [mirrored(r) if leftwards else r for r in rows.values()]
        for tail in candidates(turned, start, end, lab.step, lab.part.reach):
            if lab.repeats(rows, tail, room // 2, leftwards):
                return Tail(-tail.at, tail.every) if leftwards else tail
        return None

    def _settle(self, extents: dict[str, Extent]) -> None:
        """Keeps the extents of a component: in the store if nothing finite repeats, beside it otherwise."""
        if any(e.left or e.right for e in extents.values()):
            self.repeating |= extents
            return
        for name, extent in extents.items():
            self.loaded.add(name)
            self.store.insert(self.numbers[name], extent.rows)


class _Laboratory:
    """Runs of one component in stores of their own, on stretches of time."""

    def __init__(
        self, evaluation: _Evaluation, part: Part, inputs: dict[str, Extent], step: int, allowance: int
    ) -> None:
        self.evaluation = evaluation
        self.part = part
        self.inputs = inputs
        self.step = step
        self.margin = part.reach + 2 * step
        self.allowance = allowance
        self.taken = 0

    def _store(self, lo: int, hi: int, own: dict[str, Rows]) -> Store:
        store = self.evaluation._new_store()
        for name, extent in self.inputs.items():
            lo_read, hi_read = lo - self.margin, hi + self.margin
            if extent.size(lo_read, hi_read) > self.allowance:
                raise Tired
            store.insert(self.evaluation.numbers[name], extent.over(lo_read, hi_read))
        for name, rows in own.items():
            store.insert(self.evaluation.numbers[name], rows)
        store.horizon = (lo, hi)
        store.allowance = store.taken + self.allowance
        return store

    def run(self, lo: int, hi: int, own: dict[str, Rows], recursion: bool = True) -> dict[str, Rows]:
        """What the component derives inside [lo,hi] from its inputs and its own facts; one round without recursion."""
        store = self._store(lo, hi, own)
        before = store.taken
        plans, code = self.evaluation._code(store, self.part, self.part.rules, recursion=recursion)
        try:
            store.evaluate(list(range(plans)), code)
        finally:
            self.taken += store.taken - before
        return {name: store.rows(self.evaluation.numbers[name]) for name in self.part.predicates}

    def repeats(self, rows: dict[str, Rows], tail: Tail, room: int, leftwards: bool) -> bool:
        """Whether the contents of one stretch derive all of the next period."""
        reach = self.part.reach
        at = -tail.at if leftwards else tail.at
        own: dict[str, Rows] = {}
        for name, known in rows.items():
            if leftwards:
                endless = known.where(known.lo == NEG_INF).clipped(NEG_INF, at)
                near = known.clipped(at - reach, at)
            else:
                endless = known.where(known.hi == POS_INF).clipped(at, POS_INF)
                near = known.clipped(at, at + reach)
            own[name] = Rows.joined([endless, near], len(known.args))
        span = tail.every + reach
        if leftwards:
            derived = self.run(at - span - room, at, own)
            window = at - span, at - reach - 1
        else:
            derived = self.run(at, at + span + room, own)
            window = at + reach + 1, at + span
        return not self._beyond(derived, {name: r.clipped(*window) for name, r in rows.items()}, NEG_INF, POS_INF)

    def derived_anew(self, extents: dict[str, Extent], left: Tail, right: Tail) -> dict[str, list[Rows]]:
        """What one more round of the rules derives from the extents; nothing, if they are a model."""
        before, after = left.every + self.margin, right.every + self.margin
        lo, hi = left.at - 6 * before, right.at + 6 * after
        own = {name: extent.over(lo, hi) for name, extent in extents.items()}
        derived = self.run(lo, hi, own, recursion=False)
        new = self._beyond(own, derived, left.at - 3 * before, right.at + 3 * after)
        return {name: [rows] for name, rows in new.items()}

    def _beyond(self, known: dict[str, Rows], rows: dict[str, Rows], lo: int, hi: int) -> dict[str, Rows]:
        """The rows, clipped to [lo,hi], of those predicates that say more than is known."""
        store = self.evaluation._new_store()
        found: dict[str, Rows] = {}
        for name, part in rows.items():
            number = self.evaluation.numbers[name]
            store.insert(number, known[name])
            before = store.rows(number)
            clipped = _kept_infinite(part, lo, hi)
            store.insert(number, clipped)
            after = store.rows(number)
            same = len(before) == len(after) and bool((before.lo == after.lo).all() and (before.hi == after.hi).all())
            if not same:
                found[name] = clipped
        return found


def _kept_infinite(rows: Rows, lo: int, hi: int) -> Rows:
    """Clipped to [lo,hi], but infinite ends stay infinite."""
    keep = (rows.lo <= hi) & (rows.hi >= lo)
    rows = rows.where(keep)
    new_lo = np.where(rows.lo == NEG_INF, NEG_INF, np.maximum(rows.lo, lo))
    new_hi = np.where(rows.hi == POS_INF, POS_INF, np.minimum(rows.hi, hi))
    return Rows(rows.args, new_lo, new_hi)


def _closed_off(rows: Rows, left: Tail, right: Tail) -> Extent:
    """The extent with tails; what holds throughout a period holds for ever, and without a rest there is no tail."""
    rows = _kept_infinite(rows, left.at - left.every + 1, right.at + right.every - 1)
    hi = np.where((rows.lo <= right.at) & (rows.hi >= right.at + right.every - 1), POS_INF, rows.hi)
    lo = np.where((rows.hi >= left.at) & (rows.lo <= left.at - left.every + 1), NEG_INF, rows.lo)
    rows = Rows(rows.args, lo, hi)
    rest_right = bool(((hi >= right.at) & (hi != POS_INF)).any() or ((lo > right.at) & (hi == POS_INF)).any())
    rest_left = bool(((lo <= left.at) & (lo != NEG_INF)).any() or ((hi < left.at) & (lo == NEG_INF)).any())
    return Extent(rows, left if rest_left else None, right if rest_right else None)
