"""Where a formula holds under a binding, and the few facts that make it hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from tidelog.proofs.clauses import Every, Joined, Leaf, Plain, Reading, Some, added_to
from tidelog.proofs.facts import Ids
from tidelog.proofs.sets import (
    ALWAYS,
    Pair,
    coalesced,
    cover,
    eroded,
    least_part,
    meeting,
    mirrored,
    nearby,
    since_times,
    spread,
)
from tidelog.timeline.grid import NEG_INF, POS_INF, add_left, add_right, negated, since

Binding = Mapping[str, int]
#: When a ground atom holds, right at least in a window and uncut there.
Lookup = Callable[[str, Ids, Pair], Sequence[Pair]]
#: A ground atom.
Ground = tuple[str, Ids]

#: Stands for a constant that no fact mentions: what a variable may be where nothing asks for its value.
ANY = -1


def ground(leaf: Leaf, binding: Binding) -> Ground:
    return leaf.predicate, tuple(binding[arg] if isinstance(arg, str) else arg for arg in leaf.args)


def holds(reading: Reading, binding: Binding, window: Pair, lookup: Lookup, dense: bool) -> Sequence[Pair]:
    """When a formula holds, right at least inside of a window."""
    match reading:
        case Leaf():
            return lookup(*ground(reading, binding), window)
        case Plain(value):
            return [ALWAYS] if value else []
        case Some(by, arg):
            return spread(holds(arg, binding, added_to(window, negated(by), dense), lookup, dense), by, dense)
        case Every(by, arg):
            return eroded(holds(arg, binding, added_to(window, negated(by), dense), lookup, dense), by, dense)
        case Joined(by, left, right, is_until):
            far = added_to(window, by if is_until else negated(by), dense)
            whole = min(far[0], window[0]), max(far[1], window[1])
            a = holds(left, binding, whole, lookup, dense)
            b = holds(right, binding, far, lookup, dense)
            if is_until:
                return mirrored(since_times(mirrored(a), mirrored(b), by, dense))
            return since_times(a, b, by, dense)
        case _:
            assert_never(reading)


def support(reading: Reading, binding: Binding, target: Pair, lookup: Lookup, dense: bool) -> list[tuple[Ground, Pair]]:
    """Facts that alone make a formula hold throughout the target, where it does hold; as few as are easily found."""
    match reading:
        case Leaf():
            return [(ground(reading, binding), target)]
        case Plain():
            return []
        case Some(by, arg):
            window = added_to(target, negated(by), dense)
            there = holds(arg, binding, window, lookup, dense)
            found = []
            for part, source in cover(target, [(_moved(pair, by, dense), pair) for pair in there]):
                found += support(arg, binding, least_part(source, by, part, dense), lookup, dense)
            return found
        case Every(by, arg):
            return support(arg, binding, added_to(target, negated(by), dense), lookup, dense)
        case Joined():
            found = []
            for operand, part in _joined_parts(reading, binding, target, lookup, dense):
                found += support(operand, binding, part, lookup, dense)
            return found
        case _:
            assert_never(reading)


def _joined_parts(
    reading: Joined, binding: Binding, target: Pair, lookup: Lookup, dense: bool
) -> list[tuple[Reading, Pair]]:
    """Where the operands of Since or Until must hold so that it holds throughout the target."""
    by = reading.by
    far = added_to(target, by if reading.mirrored else negated(by), dense)
    whole = min(far[0], target[0]), max(far[1], target[1])
    a = holds(reading.left, binding, whole, lookup, dense)
    b = holds(reading.right, binding, far, lookup, dense)
    if reading.mirrored:
        a, b, target = mirrored(a), mirrored(b), negated(target)
    near = nearby(by, dense)
    # Each way to cover a part of the target: what the right operand gives, within which distances, and the left's pair.
    ways: list[tuple[Pair, tuple[Pair, Pair, Pair | None]]] = []
    if near:
        ways += [(_moved(pair, near, dense), (pair, near, None)) for pair in b]
    for left in a:
        for right in meeting(b, (left[0] - 1, left[1] + 1)):
            reached = since(*left, *right, *by, dense)
            if reached[0] <= reached[1]:
                ways.append((reached, (_joint(left, right, dense), (max(by[0], 1), by[1]), left)))
    found: list[tuple[Reading, Pair]] = []
    for part, (source, distance, between) in cover(target, ways):
        start = least_part(source, distance, part, dense)
        found.append((reading.right, start))
        if between is not None:
            lo = start[0] if start[0] == NEG_INF or (dense and start[0] & 1) else start[0] + 1
            hi = part[1] if part[1] == POS_INF or (dense and part[1] & 1) else part[1] - 1
            if lo <= hi:
                found.append((reading.left, (max(lo, between[0]), min(hi, between[1]))))
    return [(operand, negated(part)) for operand, part in found] if reading.mirrored else found


def _joint(left: Pair, right: Pair, dense: bool) -> Pair:
    """The part of a right operand's pair from which the left one's leads on: inside of its closure."""
    if dense:
        lo, hi = left[0] - (left[0] & 1), left[1] + (left[1] & 1)
    else:
        lo, hi = left[0] - 1, left[1] + 1
    return max(lo, right[0]), min(hi, right[1])


def _moved(pair: Pair, by: Pair, dense: bool) -> Pair:
    return add_left(pair[0], by[0], dense), add_right(pair[1], by[1], dense)


def gathered(facts: list[tuple[Ground, Pair]]) -> list[tuple[Ground, Pair]]:
    """The facts with those of one atom joined, in order of first mention."""
    by_atom: dict[Ground, list[Pair]] = {}
    for atom, pair in facts:
        by_atom.setdefault(atom, []).append(pair)
    return [(atom, pair) for atom, pairs in by_atom.items() for pair in coalesced(pairs)]
