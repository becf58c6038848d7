"""The compiled part of calculations: arithmetic on columns of rationals, with 62 bits above and below the line.

A value is a numerator and a positive denominator without a common factor, as in `number_kernels`. Other denominators
say that there is no such value: names and larger numbers have those of `number_kernels`, and are known by their ids;
undefined values have `UNDEFINED`. A calculation with the former, or one that would leave 62 bits, gives `ELSEWHERE`,
and is done again with exact numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidelog.jit import inlined_kernel, kernel
from tidelog.numeric.number_kernels import LARGE, NOT_A_NUMBER, greatest_divisor
from tidelog.numeric.rows import Int64s

ELSEWHERE, UNDEFINED = NOT_A_NUMBER, -2

#: Instructions: take a column or a constant, or apply a function to the values taken last.
COLUMN, CONSTANT = 0, 1
OPCODES = {
    ("+", 2): 2,
    ("-", 2): 3,
    ("*", 2): 4,
    ("/", 2): 5,
    ("mod", 2): 6,
    ("min", 2): 7,
    ("max", 2): 8,
    ("-", 1): 9,
    ("abs", 1): 10,
    ("floor", 1): 11,
    ("ceil", 1): 12,
}
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MOD, _MIN, _MAX = range(2, 9)
_NEGATE, _ABS, _FLOOR, _CEIL = range(9, 13)

#: What `compare_columns` writes: 0 and 1 for false and true.
UNKNOWN = 2

#: Results beyond this are computed elsewhere. A float is off by less than the distance to 2**62.
_LIMIT = 4.6e18


@inlined_kernel
def _fits(left: int, right: int) -> bool:
    """Return whether a product fits."""
    return abs(float(left) * float(right)) < _LIMIT


@inlined_kernel
def _reduce(numerator: int, denominator: int) -> tuple[int, int]:
    """Divide by the common factor; the denominator is positive."""
    if denominator == 1:
        return numerator, 1
    common = greatest_divisor(numerator, denominator)
    return numerator // common, denominator // common


@inlined_kernel
def _multiply(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """Return a/b * c/d."""
    a, d = _reduce(a, d)
    c, b = _reduce(c, b)
    if _fits(a, c) and _fits(b, d):
        return a * c, b * d
    return 0, ELSEWHERE


@inlined_kernel
def _add(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """Return a/b + c/d."""
    if b == d:
        if abs(float(a) + float(c)) < _LIMIT:
            return _reduce(a + c, b)
        return 0, ELSEWHERE
    common = greatest_divisor(b, d)
    left, right = d // common, b // common
    if _fits(a, left) and _fits(c, right) and _fits(b, left) and abs(float(a) * left + float(c) * right) < _LIMIT:
        return _reduce(a * left + c * right, b * left)
    return 0, ELSEWHERE


@inlined_kernel
def _divide(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """Return a/b divided by c/d."""
    if c == 0:
        return 0, UNDEFINED
    if c < 0:
        return _multiply(-a, b, d, -c)
    return _multiply(a, b, d, c)


@inlined_kernel
def _remainder(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """Return a/b modulo c/d, with the sign of c/d."""
    if b == 1 and d == 1 and c != 0:
        return a % c, 1
    quotient, below = _divide(a, b, c, d)
    if below < 1:
        return 0, below
    product, under = _multiply(-(quotient // below), 1, c, d)
    if under < 1:
        return 0, under
    return _add(a, b, product, under)


@inlined_kernel
def _order(a: int, b: int, c: int, d: int) -> int:
    """Return -1, 0 or 1 as a/b is less than, equal to or greater than c/d, or UNKNOWN."""
    if b != d:
        if not (_fits(a, d) and _fits(c, b)):
            return UNKNOWN
        a, c = a * d, c * b
    return -1 if a < c else 0 if a == c else 1


@inlined_kernel
def _apply_two(code: int, a: int, b: int, c: int, d: int) -> tuple[int, int]:
    if code == _ADD:
        return _add(a, b, c, d)
    if code == _SUBTRACT:
        return _add(a, b, -c, d)
    if code == _MULTIPLY:
        return _multiply(a, b, c, d)
    if code == _DIVIDE:
        return _divide(a, b, c, d)
    if code == _MOD:
        return _remainder(a, b, c, d)
    order = _order(a, b, c, d)
    if order == UNKNOWN:
        return 0, ELSEWHERE
    return (a, b) if (order <= 0) == (code == _MIN) else (c, d)


@inlined_kernel
def _apply_one(code: int, a: int, b: int) -> tuple[int, int]:
    if code == _NEGATE:
        return -a, b
    if code == _ABS:
        return abs(a), b
    if code == _FLOOR:
        return a // b, 1
    return -((-a) // b), 1


@kernel
def calculate(
    code: Int64s, constants: Int64s, numerators: Int64s, denominators: Int64s, stack: Int64s, out: Int64s
) -> None:
    """Run instructions for every row; write numerators to `out[0]` and denominators to `out[1]`.

    `code[i]` is an instruction and its operand. `stack` has room for all values that wait at one time.
    """
    for row in range(out.shape[1]):
        top = -1
        denominator = 1
        for i in range(len(code)):
            what, operand = code[i, 0], code[i, 1]
            if what == CONSTANT:
                top += 1
                stack[top, 0], stack[top, 1] = constants[operand, 0], constants[operand, 1]
                continue
            if what == COLUMN:
                denominator = denominators[operand, row]
                top += 1
                stack[top, 0] = numerators[operand, row]
            elif what >= _NEGATE:
                stack[top, 0], denominator = _apply_one(what, stack[top, 0], stack[top, 1])
            else:
                top -= 1
                stack[top, 0], denominator = _apply_two(
                    what, stack[top, 0], stack[top, 1], stack[top + 1, 0], stack[top + 1, 1]
                )
            stack[top, 1] = denominator
            if denominator < 1:
                # Another operand may be undefined although this one is not: that is found elsewhere, too.
                break
        out[0, row] = stack[0, 0]
        out[1, row] = ELSEWHERE if denominator == LARGE else denominator if denominator < 1 else stack[0, 1]


@kernel
def compare_columns(op: int, left: Int64s, right: Int64s, out: npt.NDArray[np.int8]) -> None:
    """Compare row by row, with an operator's position among `OPERATORS`; write 0, 1 or UNKNOWN."""
    for row in range(len(out)):
        a, b, c, d = left[0, row], left[1, row], right[0, row], right[1, row]
        order = UNKNOWN if b < 1 or d < 1 else _order(a, b, c, d)
        if order == UNKNOWN:
            out[row] = UNKNOWN
        elif order < 0:
            out[row] = op in (0, 1, 3)
        elif order == 0:
            out[row] = op in (1, 2, 5)
        else:
            out[row] = op in (3, 4, 5)
