"""Numbers and times as bytes, read and written by compiled code.

Every reader takes bytes and a range of them, and returns a numerator and a denominator (not reduced). If it does not
understand the text, it says so, and the slow, complete reader in `language.fact_text` gets it.
"""

from __future__ import annotations

from operator import getitem

import numpy as np
import numpy.typing as npt

from tidelog.jit import inlined_kernel, int64, interpret_as, kernel, uint64

Bytes = npt.NDArray[np.uint8]

#: The kinds of time that `read_time` returns. A date with a time of day is LOCAL or ZONED: without or with its offset
#: from UTC.
NOT_UNDERSTOOD, NUMBER, DATE, PLUS_INF, MINUS_INF, LOCAL, ZONED = 0, 1, 2, 3, 4, 5, 6

#: The most digits of a numerator or denominator that compiled code reads: 18 digits fit into 63 bits.
MAX_DIGITS = 18


@interpret_as(getitem)
@inlined_kernel
def byte(data: Bytes, i: int) -> int:
    """Return `data[i]` for i >= 0; an unsigned index avoids numba's test for negative indices."""
    return int64(data[uint64(i)])


@inlined_kernel
def load_backwards(data: Bytes, i: int) -> int:
    """Return the 8 bytes at i as one number, the first byte lowest; compiled code reads them all at once."""
    low = byte(data, i) | byte(data, i + 1) << 8 | byte(data, i + 2) << 16 | byte(data, i + 3) << 24
    high = byte(data, i + 4) | byte(data, i + 5) << 8 | byte(data, i + 6) << 16 | byte(data, i + 7) << 24
    return int64(low | high << 32)


@inlined_kernel
def load(data: Bytes, i: int) -> int:
    """Return the 8 bytes at i as one number, the first byte highest; compiled code reads them all at once."""
    high = byte(data, i) << 24 | byte(data, i + 1) << 16 | byte(data, i + 2) << 8 | byte(data, i + 3)
    low = byte(data, i + 4) << 24 | byte(data, i + 5) << 16 | byte(data, i + 6) << 8 | byte(data, i + 7)
    return int64(high << 32 | low)


@inlined_kernel
def is_digit(c: int) -> bool:
    return 48 <= c <= 57


@inlined_kernel
def days_from_civil(year: int, month: int, day: int) -> int:
    """Count the days from 1970-01-01 in the Gregorian calendar. The formulas use years that begin in March."""
    y = year - 1 if month <= 2 else year
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146097 + day_of_era - 719468


@inlined_kernel
def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@inlined_kernel
def two_digits(data: Bytes, i: int, end: int) -> int:
    """Read two digits at i as a number; return a large negative number if they are not digits."""
    if i + 1 < end and is_digit(byte(data, i)) and is_digit(byte(data, i + 1)):
        return (byte(data, i) - 48) * 10 + byte(data, i + 1) - 48
    return -1000000


@kernel
def read_date(data: Bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Read an ISO 8601 date or date-time at `start`; return (position after it, numerator, denominator, its kind), in
    seconds."""
    fail = (start, 0, 1, NOT_UNDERSTOOD)
    i = start
    year = two_digits(data, i, end) * 100 + two_digits(data, i + 2, end)
    if year < 1 or i + 9 >= end or byte(data, i + 4) != 45 or byte(data, i + 7) != 45:
        return fail
    month, day = two_digits(data, i + 5, end), two_digits(data, i + 8, end)
    if month < 1 or month > 12 or day < 1 or day > days_in_month(year, month):
        return fail
    seconds = days_from_civil(year, month, day) * 86400
    i += 10
    if i >= end or (byte(data, i) != 84 and (byte(data, i) != 32 or two_digits(data, i + 1, end) < 0)):
        return i, seconds, 1, DATE
    hour, minute = two_digits(data, i + 1, end), two_digits(data, i + 4, end)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or byte(data, i + 3) != 58:
        return fail
    seconds += hour * 3600 + minute * 60
    i += 6
    fraction = 0
    denominator = 1
    if i < end and byte(data, i) == 58:
        second = two_digits(data, i + 1, end)
        if second < 0 or second > 59:
            return fail
        seconds += second
        i += 3
        if i + 1 < end and byte(data, i) == 46 and is_digit(byte(data, i + 1)):
            i += 1
            while i < end and is_digit(byte(data, i)):
                if denominator == 1000000000:
                    return fail
                fraction = fraction * 10 + byte(data, i) - 48
                denominator *= 10
                i += 1
    kind = LOCAL
    if i < end and byte(data, i) == 90:
        kind = ZONED
        i += 1
    elif i < end and (byte(data, i) == 43 or byte(data, i) == 45):
        sign = 1 if byte(data, i) == 43 else -1
        offset_hour, offset_minute = two_digits(data, i + 1, end), two_digits(data, i + 4, end)
        if offset_hour < 0 or offset_hour > 23 or offset_minute < 0 or offset_minute > 59 or byte(data, i + 3) != 58:
            return fail
        seconds -= sign * (offset_hour * 3600 + offset_minute * 60)
        kind = ZONED
        i += 6
    if denominator > 1000000 and abs(seconds) > 9000000000:
        return fail
    return i, seconds * denominator + fraction, denominator, kind


@kernel
def read_number(data: Bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Read `3`, `-3`, `0.5` or `1/3` at `start`; return (position after it, numerator, denominator, NUMBER)."""
    fail = (start, 0, 1, NOT_UNDERSTOOD)
    i = start
    sign = 1
    if i < end and (byte(data, i) == 45 or byte(data, i) == 43):
        sign = -1 if byte(data, i) == 45 else 1
        i += 1
    first = i
    value = 0
    while i < end and is_digit(byte(data, i)):
        value = value * 10 + byte(data, i) - 48
        i += 1
    digits = i - first
    if digits == 0 or digits > MAX_DIGITS:
        return fail
    if i + 1 >= end or not is_digit(byte(data, i + 1)) or (byte(data, i) != 46 and byte(data, i) != 47):
        return i, sign * value, 1, NUMBER
    denominator = 1
    if byte(data, i) == 46:
        i += 1
        while i < end and is_digit(byte(data, i)):
            digits += 1
            if digits > MAX_DIGITS:
                return fail
            value = value * 10 + byte(data, i) - 48
            denominator *= 10
            i += 1
        return i, sign * value, denominator, NUMBER
    i += 1
    first = i
    denominator = 0
    while i < end and is_digit(byte(data, i)):
        denominator = denominator * 10 + byte(data, i) - 48
        i += 1
    if i - first > MAX_DIGITS or denominator == 0:
        return fail
    return i, sign * value, denominator, NUMBER


@kernel
def read_time(data: Bytes, start: int, end: int) -> tuple[int, int, int, int]:
    """Read a number, a date or an infinity at `start`; return (position after it, numerator, denominator, its kind)."""
    i = start
    if i < end and (byte(data, i) == 45 or byte(data, i) == 43):
        i += 1
    if i + 2 < end and byte(data, i) == 105 and byte(data, i + 1) == 110 and byte(data, i + 2) == 102:
        return i + 3, 0, 1, (MINUS_INF if byte(data, start) == 45 else PLUS_INF)
    if start + 4 < end and byte(data, start + 4) == 45 and is_digit(byte(data, start + 3)):
        return read_date(data, start, end)
    return read_number(data, start, end)


@inlined_kernel
def gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


@inlined_kernel
def write_natural(out: Bytes, at: int, value: int) -> int:
    """Write the decimal digits of a non-negative number from `at` on; return the position after them."""
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for j in range(at + digits - 1, at - 1, -1):
        out[j] = 48 + value % 10
        value //= 10
    return at + digits


#: The most that the digits of a decimal may be, read as a natural number.
LARGEST_DECIMAL = 10**18 - 1


@inlined_kernel
def write_rational(out: Bytes, at: int, numerator: int, denominator: int) -> int:
    """Write `3`, `-3` or the reduced fraction `-1/3` from `at` on; return the position after it."""
    if denominator != 1:
        common = gcd(numerator, denominator)
        numerator //= common
        denominator //= common
    if numerator < 0:
        out[at] = 45
        at += 1
        numerator = -numerator
    at = write_natural(out, at, numerator)
    if denominator != 1:
        out[at] = 47
        at = write_natural(out, at + 1, denominator)
    return at


@inlined_kernel
def write_decimal(out: Bytes, at: int, numerator: int, denominator: int) -> int:
    """Write a reduced fraction as a finite decimal from `at` on; return the position after it.

    Write nothing if it has no finite decimal, or one of more than 18 digits.
    """
    scale, decimals, value = denominator, 0, abs(numerator)
    while scale % 10 == 0:
        scale //= 10
        decimals += 1
    factor = 5 if scale % 2 == 0 else 2
    while scale % (7 - factor) == 0:
        if value > LARGEST_DECIMAL // factor:
            return at
        scale //= 7 - factor
        value *= factor
        decimals += 1
    if scale != 1 or value > LARGEST_DECIMAL or decimals > 18:
        return at
    if numerator < 0:
        out[at] = 45
        at += 1
    whole = 1
    for _ in range(decimals):
        whole *= 10
    at = write_natural(out, at, value // whole)
    out[at] = 46
    for i in range(at + decimals, at, -1):
        out[i] = 48 + value % 10
        value //= 10
    return at + decimals + 1
