"""Evaluate a formula under a binding: when it holds, and a few facts that make it hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from tidelog.proofs.encoded_rules import (
    Box,
    Diamond,
    EncodedAtom,
    EncodedFormula,
    SinceOrUntil,
    TruthConstant,
    shift_range,
)
from tidelog.proofs.fact_index import Ids
from tidelog.timeline.grid import NEG_INF, POS_INF, negate, since
from tidelog.timeline.time_sets import (
    ALWAYS,
    Pair,
    adjacent_distances,
    choose_cover,
    choose_least_part,
    coalesce,
    dilate,
    erode,
    evaluate_since,
    find_touching,
    mirror,
)

Binding = Mapping[str, int]
#: Returns when a ground atom holds: correct at least in a window, in uncut pairs.
Lookup = Callable[[str, Ids, Pair], Sequence[Pair]]
#: A ground atom.
GroundAtom = tuple[str, Ids]

#: Stands for a constant that no fact mentions, as the value of a variable that no condition restricts.
ANY = -1


def ground_atom(atom: EncodedAtom, binding: Binding) -> GroundAtom:
    """Replace the variables of an atom by their values."""
    return atom.predicate, tuple(binding[arg] if isinstance(arg, str) else arg for arg in atom.args)


def find_times(formula: EncodedFormula, binding: Binding, window: Pair, lookup: Lookup, dense: bool) -> Sequence[Pair]:
    """Return when a formula holds; the result is correct at least inside the window."""
    match formula:
        case EncodedAtom():
            return lookup(*ground_atom(formula, binding), window)
        case TruthConstant(value):
            return [ALWAYS] if value else []
        case Diamond(by, arg):
            return dilate(find_times(arg, binding, shift_range(window, negate(by), dense), lookup, dense), by, dense)
        case Box(by, arg):
            return erode(find_times(arg, binding, shift_range(window, negate(by), dense), lookup, dense), by, dense)
        case SinceOrUntil(by, left, right, is_until):
            far = shift_range(window, by if is_until else negate(by), dense)
            whole = min(far[0], window[0]), max(far[1], window[1])
            a = find_times(left, binding, whole, lookup, dense)
            b = find_times(right, binding, far, lookup, dense)
            if is_until:
                return mirror(evaluate_since(mirror(a), mirror(b), by, dense))
            return evaluate_since(a, b, by, dense)
        case _:
            assert_never(formula)


def find_support(
    formula: EncodedFormula, binding: Binding, target: Pair, lookup: Lookup, dense: bool
) -> list[tuple[GroundAtom, Pair]]:
    """Return a few facts that suffice to make a formula hold throughout the target, given that it does hold there."""
    match formula:
        case EncodedAtom():
            return [(ground_atom(formula, binding), target)]
        case TruthConstant():
            return []
        case Diamond(by, arg):
            window = shift_range(target, negate(by), dense)
            there = find_times(arg, binding, window, lookup, dense)
            found = []
            for part, source in choose_cover(target, [(shift_range(pair, by, dense), pair) for pair in there]):
                found += find_support(arg, binding, choose_least_part(source, by, part, dense), lookup, dense)
            return found
        case Box(by, arg):
            return find_support(arg, binding, shift_range(target, negate(by), dense), lookup, dense)
        case SinceOrUntil():
            found = []
            for operand, part in _find_operand_parts(formula, binding, target, lookup, dense):
                found += find_support(operand, binding, part, lookup, dense)
            return found
        case _:
            assert_never(formula)


def _find_operand_parts(
    formula: SinceOrUntil, binding: Binding, target: Pair, lookup: Lookup, dense: bool
) -> list[tuple[EncodedFormula, Pair]]:
    """Return where the operands of Since or Until must hold so that it holds throughout the target."""
    by = formula.by
    far = shift_range(target, by if formula.mirrored else negate(by), dense)
    whole = min(far[0], target[0]), max(far[1], target[1])
    a = find_times(formula.left, binding, whole, lookup, dense)
    b = find_times(formula.right, binding, far, lookup, dense)
    if formula.mirrored:
        a, b, target = mirror(a), mirror(b), negate(target)
    near = adjacent_distances(by, dense)
    # Each way to cover a part of the target: a pair of the right operand, distances from it, and a pair of the left.
    ways: list[tuple[Pair, tuple[Pair, Pair, Pair | None]]] = []
    if near:
        ways += [(shift_range(pair, near, dense), (pair, near, None)) for pair in b]
    for left in a:
        for right in find_touching(b, (left[0] - 1, left[1] + 1)):
            reached = since(*left, *right, *by, dense)
            if reached[0] <= reached[1]:
                ways.append((reached, (_intersect_closure(left, right, dense), (max(by[0], 1), by[1]), left)))
    found: list[tuple[EncodedFormula, Pair]] = []
    for part, (source, distance, between) in choose_cover(target, ways):
        start = choose_least_part(source, distance, part, dense)
        found.append((formula.right, start))
        if between is not None:
            lo = start[0] if start[0] == NEG_INF or (dense and start[0] & 1) else start[0] + 1
            hi = part[1] if part[1] == POS_INF or (dense and part[1] & 1) else part[1] - 1
            if lo <= hi:
                found.append((formula.left, (max(lo, between[0]), min(hi, between[1]))))
    return [(operand, negate(part)) for operand, part in found] if formula.mirrored else found


def _intersect_closure(left: Pair, right: Pair, dense: bool) -> Pair:
    """Return the part of a right operand's pair that the closure of a left operand's pair contains."""
    if dense:
        lo, hi = left[0] - (left[0] & 1), left[1] + (left[1] & 1)
    else:
        lo, hi = left[0] - 1, left[1] + 1
    return max(lo, right[0]), min(hi, right[1])


def merge_facts(facts: list[tuple[GroundAtom, Pair]]) -> list[tuple[GroundAtom, Pair]]:
    """Merge the facts of each atom; atoms stay in the order of their first mention."""
    by_atom: dict[GroundAtom, list[Pair]] = {}
    for atom, pair in facts:
        by_atom.setdefault(atom, []).append(pair)
    return [(atom, pair) for atom, pairs in by_atom.items() for pair in coalesce(pairs)]
