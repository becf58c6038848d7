"""Lay out facts as steps: the rows of all relations in one order of arrival, as records for the engine.

Facts later than their delay allows are separated here (`_lay_out`) and counted by the reasoner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tidelog.compiler.prepare_facts import to_timeline
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Relation
from tidelog.data.symbol_table import Symbols
from tidelog.engine.fact_store import Int32s, Int64s, Rows
from tidelog.engine.store_tables import Array, Number
from tidelog.engine.stream_kernel import Todo
from tidelog.jit import inlined_kernel, kernel
from tidelog.streaming.answers import FactGroup
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid

#: A step with at most this many facts takes them in the order of arrival.
_FEW = 64


class Clock(NamedTuple):
    """The clock, up to where the input was complete, and the last time seen at all."""

    now: int
    closed: int
    seen: int


class Reading(NamedTuple):
    """How facts are read: the engine's numbers of predicates, the grid, the allowed delay by predicate (on the grid),
    the length of a step (0: every time is one), the last position, whether the stream's own times matter, and whether
    the clock stands still."""

    numbers: Mapping[str, int]
    grid: Grid
    delay: Callable[[str], int]
    step: int = 0
    until: int = POS_INF
    own_times: bool = False
    fixed: bool = False


@dataclass(frozen=True)
class Batch:
    """Facts as steps, `counts` of them in each, and `before` that hold before time begins, up to `first_record`.

    `late` holds the facts that arrived too late, by step; they do not count. `seen` is the last time any began.
    """

    todo: Todo
    counts: Int64s
    before: int
    first_record: int
    late: Mapping[int, list[FactGroup]]
    symbols: Symbols
    seen: int


def merge_steps(batch: Batch, words: int) -> Batch:
    """Return the same facts in fewer steps, each of about as many words of records, or of one time if it has more."""
    return batch if len(batch.counts) < 2 else join_steps(batch, find_last_steps(batch.todo.record_ends, words))


def find_last_steps(record_ends: Int64s, words: int) -> Int64s:
    """Return the steps with which groups end that have about as many words of records, or one step if it has more."""
    group = record_ends // words
    return np.flatnonzero(np.append(group[1:] != group[:-1], True))


def join_steps(batch: Batch, last: Int64s) -> Batch:
    """Return the same facts in fewer steps; `last` are the present steps with which the new ones end.

    Steps after the last of these are left out.
    """
    todo, end = batch.todo, last[-1] + 1
    first = np.append(0, last[:-1] + 1)
    late: dict[int, list[FactGroup]] = {}
    for step, facts in batch.late.items():
        late.setdefault(int(np.searchsorted(last, step)), []).extend(facts)
    merged = todo._replace(
        clocks=todo.clocks[last],
        lasts=np.maximum.reduceat(todo.lasts[:end], first),
        over=todo.over[last],
        record_ends=todo.record_ends[last],
        time_ends=todo.time_ends[last],
    )
    return replace(batch, todo=merged, counts=np.add.reduceat(batch.counts[:end], first), late=late)


@kernel
def first_start(todo: Todo, preds: Array) -> Number:
    """Return the first position at which a fact of these steps begins."""
    first, at, end = POS_INF, 0, todo.record_ends[len(todo.record_ends) - 1]
    while at < end:
        if todo.records[at + 1] > NEG_INF:
            first = min(first, todo.records[at + 1])
        at += 3 + preds[todo.records[at], 0]
    return first


class Facts(NamedTuple):
    """Facts, one relation after the other. By relation: its predicate's number in the engine (-1 if no rule reads it),
    its arity, size, first row, where its arguments begin, column by column, and its delay.

    Ends are on the doubled grid. `weight` is the number of facts that a row stands for; without weights, each is one.
    """

    relation: Array
    lo: Array
    hi: Array
    weight: Array
    args: Array
    numbers: Array
    arities: Array
    sizes: Array
    first: Array
    starts: Array
    delays: Array


def arrange(data: Dataset, reading: Reading, clock: Clock, symbols: Symbols) -> Batch:
    """Lay out the facts of a dataset on the grid as steps. Constants that a rule may see go into `symbols`."""
    relations = [relation for relation in data.relations.values() if len(relation)]
    ordered = all(relation.order is not None for relation in relations)
    weight = np.empty(0, np.int64)
    if not ordered and not reading.own_times and not reading.fixed:
        relations, weight = _tally_unread(relations, reading, max(clock))
    read = [relation.predicate in reading.numbers for relation in relations]
    arguments = [r.args for r, is_read in zip(relations, read, strict=True) if is_read]
    ids = _intern_constants(symbols, data.symbols_so_far, arguments)
    sizes = np.array([len(relation) for relation in relations] or [0], np.int64)
    lo = _concatenate([relation.lo for relation in relations], np.int64)
    points = all(relation.hi is relation.lo for relation in relations)
    arities = np.array([r.arity if is_read else 0 for r, is_read in zip(relations, read, strict=True)] or [0], np.int64)
    widths = sizes * arities
    facts = Facts(
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        lo,
        lo if points else _concatenate([relation.hi for relation in relations], np.int64),
        weight,
        _concatenate([ids[args].ravel() for args in arguments], np.int32),
        np.array([reading.numbers.get(relation.predicate, -1) for relation in relations] or [-1], np.int64),
        arities,
        sizes,
        np.cumsum(sizes) - sizes,
        np.cumsum(widths) - widths,
        np.array([reading.delay(relation.predicate) for relation in relations] or [0], np.int64),
    )
    order = _arrival_order(relations, lo, ordered)
    together = reading.fixed and not reading.own_times and len(order) > max(_FEW, len(symbols) // 4)
    places = np.zeros(len(symbols) + 1 if together else 0, np.int64)
    _group_by_first_argument(facts, places)
    return _build_batch(data, relations, facts, order, reading, clock, places)


def _concatenate(parts: list[Array], kind: type[np.generic]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, kind), *parts])


def _intern_constants(symbols: Symbols, others: Symbols, arguments: Sequence[Int32s]) -> Int32s:
    """Return new numbers for the constants of relations, by old ones."""
    if others is symbols:
        return np.arange(len(symbols), dtype=np.int32)
    used = np.zeros(len(others), np.bool_)
    for args in arguments:
        used[args] = True
    return symbols.merge(others, np.flatnonzero(used))


def _tally_unread(relations: list[Relation], reading: Reading, after: int) -> tuple[list[Relation], Int64s]:
    """Return relations with the number of facts per row: points of predicates that no rule reads are only counted.

    This applies only if all of them come after a position, so that none is late, and are close together.
    """
    unread = [relation for relation in relations if relation.predicate not in reading.numbers]
    least, most, points = POS_INF, NEG_INF, 0
    for relation in unread:
        least, most, points = _points(relation.lo, relation.hi, least, most, points)
    if points < 1024 or most - least > 4 * points or (least >> 1) * reading.grid.tick <= after:
        return relations, np.empty(0, np.int64)
    counts = np.zeros(most - least + 1, np.int64)
    kept = [relation for relation in relations if relation.predicate in reading.numbers]
    for relation in unread:
        if _tally(relation.lo, relation.hi, least, counts) < len(relation):
            longer = relation.lo != relation.hi
            kept.append(relation.select(longer))
    times = np.flatnonzero(counts)
    ones = np.ones(sum(map(len, kept)), np.int64)
    nothing = np.empty((0, len(times)), np.int32)
    return [*kept, Relation("", 0, nothing, times + least, times + least)], np.concatenate([ones, counts[times]])


def _arrival_order(relations: Sequence[Relation], lo: Int64s, ordered: bool) -> Int64s:
    """Return the order of arrival, or of time where that is not known."""
    if not ordered:
        least, most = (int(lo.min()), int(lo.max())) if len(lo) else (0, 0)
        if most - least > 4 * len(lo) + 1024:
            return np.argsort(lo, kind="stable")
        order, counts = np.empty(len(lo), np.int64), np.zeros(most - least + 2, np.int64)
        _sort_close(lo, least, counts, order)
        return order
    places = _concatenate([relation.order for relation in relations if relation.order is not None], np.int64)
    order = np.full(len(places), -1, np.int64)
    # Positions are 0, 1, 2, ... if the facts are all that was read; a part of them keeps its order.
    return order if _invert(places, order) else np.argsort(places, kind="stable")


def _build_batch(
    data: Dataset,
    relations: Sequence[Relation],
    facts: Facts,
    order: Int64s,
    reading: Reading,
    clock: Clock,
    places: Int64s,
) -> Batch:
    grid = reading.grid
    words = int((facts.sizes * (3 + facts.arities))[facts.numbers >= 0].sum())
    most = min(len(order), 1) if reading.fixed else len(order)
    todo = Todo(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.zeros(most, np.bool_),
        np.empty(words, np.int64),
        np.empty(most, np.int64),
        np.empty(2 * len(order) if reading.own_times else 0, np.int64),
        np.zeros(most, np.int64),
    )
    counts, late = np.zeros(most, np.int64), np.empty((len(order), 2), np.int64)
    steps, first_record, before, n_late, seen = _lay_out(
        facts,
        order,
        grid.dense,
        reading.step,
        reading.until,
        reading.own_times,
        reading.fixed,
        *clock,
        places,
        todo,
        counts,
        late,
    )
    if len(places) and (todo.record_ends[0] if steps else first_record) < words:
        return _build_batch(data, relations, facts, order, reading, clock, places[:0])
    late_facts: dict[int, list[FactGroup]] = {}
    for step, row in late[:n_late].tolist():
        relation = int(facts.relation[row])
        late_facts.setdefault(step, []).append(_fact(relations[relation], row - int(facts.first[relation]), grid))
    return Batch(
        todo._replace(
            clocks=todo.clocks[:steps],
            lasts=todo.lasts[:steps],
            over=todo.over[:steps],
            record_ends=todo.record_ends[:steps],
            time_ends=todo.time_ends[:steps],
        ),
        counts[:steps],
        before,
        first_record,
        late_facts,
        data.symbols_so_far,
        seen,
    )


def _fact(relation: Relation, row: int, grid: Grid) -> FactGroup:
    some = slice(row, row + 1)
    rows = Rows(relation.args[:, some], *to_timeline(relation.lo[some], relation.hi[some], grid.dense))
    return FactGroup(relation.predicate, rows, grid)


@kernel
def _points(lo: Array, hi: Array, least: int, most: int, points: int) -> tuple[Number, Number, Number]:
    """Return the least and the greatest time of points, and their number, together with those found before."""
    for i in range(len(lo)):
        if lo[i] == hi[i]:
            least, most = min(least, lo[i]), max(most, lo[i])
            points += 1
    return least, most, points


@kernel
def _tally(lo: Array, hi: Array, least: int, counts: Array) -> Number:
    """Count points by time; return how many there were."""
    points = 0
    for i in range(len(lo)):
        if lo[i] == hi[i]:
            counts[lo[i] - least] += 1
            points += 1
    return points


@kernel
def _sort_close(keys: Array, least: int, counts: Array, order: Array) -> None:
    """Write the stable order of keys that are close together, by counting."""
    for key in keys:
        counts[key - least + 1] += 1
    for i in range(1, len(counts)):
        counts[i] += counts[i - 1]
    for row in range(len(keys)):
        order[counts[keys[row] - least]] = row
        counts[keys[row] - least] += 1


@kernel
def _group_by_first_argument(facts: Facts, places: Array) -> None:
    """Write where the records of facts begin, grouped by their first constant; those without arguments come first."""
    if not len(places):
        return
    for row in range(len(facts.relation)):
        r = facts.relation[row]
        if facts.numbers[r] >= 0:
            places[_first_argument(facts, r, row) + 1] += 3 + facts.arities[r]
    at = 0
    for i in range(len(places)):
        at, places[i] = at + places[i], at


@inlined_kernel
def _first_argument(facts: Facts, r: int, row: int) -> Number:
    return facts.args[facts.starts[r] + row - facts.first[r]] if facts.arities[r] else -1


@kernel
def _invert(places: Array, order: Array) -> bool:
    """Write the inverse of a permutation into an array of -1; return False if it is not a permutation."""
    for row in range(len(places)):
        place = places[row]
        if place < 0 or place >= len(order) or order[place] >= 0:
            return False
        order[place] = row
    return True


@kernel
def _lay_out(
    facts: Facts,
    order: Array,
    dense: bool,
    length: int,
    until: int,
    own_times: bool,
    fixed: bool,
    now: int,
    closed: int,
    seen: int,
    places: Array,
    todo: Todo,
    counts: Array,
    late: Array,
) -> tuple[Number, Number, Number, Number, Number]:
    """Write the steps of facts in order; `now`, `closed` and `seen` are those of a `Clock`.

    A step has no order. But facts about one constant lie together in memory and are best looked at together: with
    `places`, the records of a single step go there, by first arguments; a fact that is left out leaves a gap.

    Facts that begin after `until` are left out, though facts behind them may be late because of them. Return the number
    of steps, where the records of the first one begin, how many facts come before it, the number of late facts, and the
    last time seen.
    """
    tick = 2 if dense else 1
    step, at, before, first_record, n_late, n_times = -1, 0, 0, 0, 0, 0
    clock, turn = now, 0
    if not fixed:
        seen = max(seen, now)
    for place in range(len(order)):
        row = order[place]
        r = facts.relation[row]
        # The ends as they were written, in ticks: on the integers (0,3) holds from 1 to 2, but its times are 0 and 3.
        lo, hi = facts.lo[row], facts.hi[row]
        begin = NEG_INF if lo == NEG_INF else lo >> 1
        stop = POS_INF if hi == POS_INF else (hi + 1) >> 1
        if not dense:
            lo = NEG_INF if lo == NEG_INF else (lo + 1) >> 1
            hi = POS_INF if hi == POS_INF else hi >> 1
        moment = NEG_INF if begin == NEG_INF or fixed else begin * tick
        seen = max(seen, moment)
        if lo > until:
            continue
        weight = facts.weight[row] if len(facts.weight) else 1
        clock = max(clock, moment)
        if clock > NEG_INF:
            if step < 0 or (clock if length == 0 else -(-clock // length)) != turn:
                step += 1
                turn = clock if length == 0 else -(-clock // length)
                todo.lasts[step] = NEG_INF
                if step == 0:
                    first_record = at
            todo.clocks[step] = clock
            if lo <= max(seen - 1, closed) - facts.delays[r]:
                late[n_late, 0], late[n_late, 1] = step, row
                n_late += 1
                todo.record_ends[step], todo.time_ends[step] = at, n_times
                continue
            counts[step] += weight
            end = begin if stop == POS_INF else stop
            if end > NEG_INF:
                todo.lasts[step] = max(todo.lasts[step], end * tick)
            if own_times:
                fresh = n_times == 0 or (step > 0 and todo.time_ends[step - 1] == n_times)
                if begin > NEG_INF and (fresh or todo.times[n_times - 1] != begin):
                    todo.times[n_times] = begin
                    n_times += 1
                if stop < POS_INF and stop != begin:
                    todo.times[n_times] = stop
                    n_times += 1
        else:
            before += weight
        pred = facts.numbers[r]
        if pred >= 0 and lo <= hi:
            to = at
            if len(places):
                first = _first_argument(facts, r, row) + 1
                to = places[first]
                places[first] += 3 + facts.arities[r]
            todo.records[to], todo.records[to + 1], todo.records[to + 2] = pred, lo, hi
            arity, size = facts.arities[r], facts.sizes[r]
            source = facts.starts[r] + row - facts.first[r]
            for k in range(arity):
                todo.records[to + 3 + k] = facts.args[source + k * size]
            at += 3 + arity
        if step >= 0:
            todo.record_ends[step], todo.time_ends[step] = at, n_times
    if step < 0:
        first_record = at
    return step + 1, first_record, before, n_late, seen
