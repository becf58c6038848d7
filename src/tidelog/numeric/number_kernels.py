"""The compiled part of `numbers`: decode canonical texts, intern computed numbers, compare constants.

A number is a numerator and a positive denominator, both below 2**62. The denominator says what is not: NOT_A_NUMBER for
a name, LARGE for a number that does not fit.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.data.number_scanner import Bytes, byte, write_natural
from tidelog.data.symbol_kernels import (
    NUMBER_KIND,
    SymbolTable,
    check_slot,
    first_word,
    intern_words,
    read_slot,
    second_word,
)
from tidelog.jit import Array, Number, inlined_kernel, int64, kernel, uint64

#: Denominators of constants that have no value in 62 bits.
NOT_A_NUMBER, LARGE = 0, -1
#: Numerators and denominators stay below this.
BOUND = 1 << 62
_MINUS, _SLASH, _ZERO = 45, 47, 48
_HALF = (1 << 32) - 1


class Constants(NamedTuple):
    """The values of all constants, as arrays for compiled code."""

    numerators: Array
    denominators: Array
    pool: Bytes
    offsets: Array
    #: The rank of every constant; empty unless some number is LARGE, since values say enough then.
    ranks: Array


class Interning(NamedTuple):
    """Rationals to intern: `denominators` has one for each, or is empty if all have `denominator`."""

    numerators: Array
    denominators: Array
    denominator: int
    #: With one denominator for all: the ids of the first numerators from 0 on, as far as they are known, else -1.
    remembered: Array
    ids: Array


class Scratch(NamedTuple):
    """Room for a block of numbers that are interned together."""

    text: Bytes
    starts: Array
    places: Array
    first: Array
    second: Array
    known: Array


@kernel
def decode_numbers(pool: Bytes, offsets: Array, first: int, numerators: Array, denominators: Array) -> Number:
    """Write the values of all constants from `first` on; return how many of them are LARGE."""
    large = 0
    for id in range(first, len(offsets) - 1):
        at, end = offsets[id], offsets[id + 1]
        numerators[id] = 0
        if byte(pool, at) != NUMBER_KIND:
            denominators[id] = NOT_A_NUMBER
            continue
        at += 1
        negative = byte(pool, at) == _MINUS
        if negative:
            at += 1
        top, fits = 0, True
        while at < end and byte(pool, at) != _SLASH:
            fits = fits and top <= BOUND // 10
            top = top * 10 + byte(pool, at) - _ZERO
            at += 1
        bottom = 1
        if at < end:
            at += 1
            bottom = 0
            while at < end:
                fits = fits and bottom <= BOUND // 10
                bottom = bottom * 10 + byte(pool, at) - _ZERO
                at += 1
        if fits and top < BOUND and bottom < BOUND:
            numerators[id], denominators[id] = -top if negative else top, bottom
        else:
            denominators[id] = LARGE
            large += 1
    return large


@inlined_kernel
def greatest_divisor(a: int, b: int) -> Number:
    """Return the greatest common divisor of two numbers, not both 0."""
    x, y = uint64(abs(a)), uint64(abs(b))
    while y != uint64(0):
        x, y = y, x % y
    return int64(x)


@inlined_kernel
def _write_texts(request: Interning, first: int, last: int, scratch: Scratch) -> Number:
    """Write the texts of numbers whose id is not remembered, and the words of these texts; return how many there are.

    The places of these numbers are in `scratch.places`; those of remembered numbers get their ids.
    """
    shared = len(request.denominators) == 0
    count, at = 0, 0
    for i in range(first, last):
        top, bottom = request.numerators[i], request.denominator
        if shared:
            if 0 <= top < len(request.remembered) and request.remembered[top] >= 0:
                request.ids[i] = request.remembered[top]
                continue
        else:
            bottom = request.denominators[i]
        if bottom != 1:
            common = greatest_divisor(top, bottom)
            top //= common
            bottom //= common
        start = at
        if top < 0:
            scratch.text[at] = _MINUS
            at += 1
        at = write_natural(scratch.text, at, abs(top))
        if bottom != 1:
            scratch.text[at] = _SLASH
            at = write_natural(scratch.text, at + 1, bottom)
        h, rest = first_word(scratch.text, start, at)
        scratch.first[count], scratch.second[count] = h, second_word(h, rest, at - start, NUMBER_KIND)
        scratch.starts[count], scratch.starts[count + 1], scratch.places[count] = start, at, i
        count += 1
    return count


@kernel
def intern_rationals(table: SymbolTable, request: Interning, first: int, last: int, scratch: Scratch) -> None:
    """Write the ids of rationals, reduced; the table must have room for all of them.

    Each loop does one step for a block of numbers, without branches that depend on what the table holds: so the
    processor looks up many at a time instead of waiting for memory at each.
    """
    size = len(scratch.places)
    for block in range(first, last, size):
        count = _write_texts(request, block, min(block + size, last), scratch)
        for k in range(count):
            scratch.known[k] = read_slot(table, scratch.first[k], scratch.second[k])
        for k in range(count):
            scratch.known[k] = check_slot(table, scratch.known[k], scratch.first[k], scratch.second[k])
        for k in range(count):
            id = scratch.known[k] - 1
            if id < 0:
                start, end = scratch.starts[k], scratch.starts[k + 1]
                id = intern_words(table, scratch.text, start, end, NUMBER_KIND, scratch.first[k], scratch.second[k])
            request.ids[scratch.places[k]] = id
            if len(request.denominators) == 0:
                top = request.numerators[scratch.places[k]]
                if 0 <= top < len(request.remembered):
                    request.remembered[top] = id


@inlined_kernel
def _compare_wide(a: int, b: int, c: int, d: int) -> Number:
    """Compare |a| * |b| with |c| * |d|, in 128 bits."""
    half, shift = uint64(_HALF), uint64(32)
    high_low = (uint64(0), uint64(0))
    other = (uint64(0), uint64(0))
    for which in range(2):
        x, y = (uint64(abs(a)), uint64(abs(b))) if which == 0 else (uint64(abs(c)), uint64(abs(d)))
        low = (x & half) * (y & half)
        first = (x >> shift) * (y & half) + (low >> shift)
        second = (x & half) * (y >> shift) + (first & half)
        high = (x >> shift) * (y >> shift) + (first >> shift) + (second >> shift)
        if which == 0:
            high_low = (high, uint64(second << shift) | (low & half))
        else:
            other = (high, uint64(second << shift) | (low & half))
    if high_low[0] != other[0]:
        return 1 if high_low[0] > other[0] else -1
    if high_low[1] != other[1]:
        return 1 if high_low[1] > other[1] else -1
    return 0


@kernel
def compare_products(a: int, b: int, c: int, d: int) -> Number:
    """Return the sign of a * b - c * d, exactly; b and d are positive."""
    near = int64(1) << 31
    if abs(a) < near and b < near and abs(c) < near and d < near:
        left, right = a * b, c * d
        return 1 if left > right else (-1 if left < right else 0)
    if (a < 0) != (c < 0) or a == 0 or c == 0:
        return 1 if a > c else (-1 if a < c else 0)
    return _compare_wide(a, b, c, d) if a > 0 else -_compare_wide(a, b, c, d)


@kernel
def compare_constants(constants: Constants, a: int, b: int) -> Number:
    """Return whether constant a is before (negative), equal to (0) or after (positive) constant b in their order."""
    if a == b:
        return 0
    if len(constants.ranks) > 0:
        return constants.ranks[a] - constants.ranks[b]
    bottom_a, bottom_b = constants.denominators[a], constants.denominators[b]
    if bottom_a != NOT_A_NUMBER and bottom_b != NOT_A_NUMBER:
        if bottom_a == bottom_b:
            return 1 if constants.numerators[a] > constants.numerators[b] else -1
        return compare_products(constants.numerators[a], bottom_b, constants.numerators[b], bottom_a)
    if bottom_a != NOT_A_NUMBER or bottom_b != NOT_A_NUMBER:
        return -1 if bottom_a != NOT_A_NUMBER else 1
    at_a, at_b = constants.offsets[a] + 1, constants.offsets[b] + 1
    end_a, end_b = constants.offsets[a + 1], constants.offsets[b + 1]
    while at_a < end_a and at_b < end_b:
        difference = byte(constants.pool, at_a) - byte(constants.pool, at_b)
        if difference != 0:
            return difference
        at_a += 1
        at_b += 1
    return (end_a - at_a) - (end_b - at_b)
