"""Statistics of a dataset: the constants that it mentions, the types of its columns, and how fine its times are."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tidelog.analysis.value_columns import ValueColumn, ValueType
from tidelog.data.dataset import Dataset
from tidelog.data.relation import Columns
from tidelog.data.symbol_kernels import NAME_KIND
from tidelog.data.symbol_table import Symbols
from tidelog.language.syntax import Value
from tidelog.language.time_text import read_number
from tidelog.timeline.grid import NEG_INF, POS_INF

#: How many texts that begin and end with a digit are looked at.
_MOST_NUMERIC_TEXTS = 1000
#: Blanks are these bytes: the space, and those from the tab to the carriage return.
_SPACE, _TAB, _RETURN = ord(" "), ord("\t"), ord("\r")


def find_constants(data: Dataset) -> set[Value]:
    """Find all constants that facts mention.

    >>> sorted(find_constants(Dataset.parse("P(a,b)@1\\nQ(a)")))
    ['a', 'b']
    """
    ids = {int(number) for relation in data.relations.values() for number in np.unique(relation.args)}
    return {data.symbols.value(number) for number in ids}


def describe_columns(symbols: Symbols, columns: Columns, source: str) -> Iterator[ValueColumn]:
    """Describe each argument of the facts of a source: whether its values are numbers, text or both."""
    pool, offsets = symbols.texts()
    is_text = pool[offsets[:-1]] == NAME_KIND
    numeric = _find_numeric_texts(symbols, is_text)
    padded = _find_padded_texts(symbols, is_text)
    looks_numeric = np.zeros(len(is_text), np.bool_)
    looks_numeric[numeric] = True
    only_text = bool(is_text.all())
    for key, relation in columns.relations.items():
        names, types = columns.names.get(key, ()), columns.types.get(key, ())
        for position in range(relation.arity if len(relation) else 0):
            ids = relation.args[position]
            known = "text" if only_text else types[position] if types else None
            text = is_text[:0] if known is not None else is_text[ids]
            has_text = known == "text" or bool(text.any())
            has_numbers = known == "number" or not (known == "text" or bool(text.all()))
            type: ValueType = "number" if not has_text else "mixed" if has_numbers else "text"
            looks = bool(len(numeric)) and has_text and bool(looks_numeric[ids].any())
            example = _find_one(symbols, ids, padded) if has_text else None
            yield ValueColumn(key[0], position, type, source, names[position] if names else None, looks, example)


def _find_numeric_texts(symbols: Symbols, is_text: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Find constants that are text but look like numbers, such as `"1001"`: some of them, if there are many."""
    pool, offsets = symbols.texts()
    if not len(offsets) or not len(pool):
        return np.empty(0, np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    first, last = pool[np.minimum(starts + 1, len(pool) - 1)], pool[ends - 1]
    digits = (
        (last >= ord("0")) & (last <= ord("9")) & (((first >= ord("0")) & (first <= ord("9"))) | (first == ord("-")))
    )
    candidates = np.flatnonzero(is_text & digits & (ends - starts > 1))[:_MOST_NUMERIC_TEXTS]
    found = [id for id in candidates if read_number(str(symbols.value(int(id)))) is not None]
    return np.array(found, np.int64)


def _find_padded_texts(symbols: Symbols, is_text: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Find texts that begin or end with a space, or another blank."""
    pool, offsets = symbols.texts()
    if not len(pool):
        return np.empty(0, np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    first, last = pool[np.minimum(starts + 1, len(pool) - 1)], pool[ends - 1]
    blank = ((last == _SPACE) | ((last >= _TAB) & (last <= _RETURN))) | (
        (first == _SPACE) | ((first >= _TAB) & (first <= _RETURN))
    )
    return np.flatnonzero(is_text & blank & (ends - starts > 1))


def _find_one(symbols: Symbols, ids: npt.NDArray[np.int32], wanted: npt.NDArray[np.int64]) -> str | None:
    """Return the text of the first of the wanted constants in a column."""
    found = np.isin(ids, wanted) if len(wanted) else np.zeros(0, np.bool_)
    return str(symbols.value(int(ids[np.argmax(found)]))) if found.any() else None


def compute_time_divisor(data: Dataset) -> Fraction:
    """Compute the greatest number that all times are multiples of; 0 if there are no times but 0.

    >>> compute_time_divisor(Dataset.parse("P@[1/2,5)\\nP@2\\nQ"))
    Fraction(1, 2)
    """
    divisor = 0
    for relation in data.relations.values():
        # On the doubled grid an open end is next to the even number of its time.
        ends = [(relation.lo[relation.lo > NEG_INF]) // 2, (relation.hi[relation.hi < POS_INF] + 1) // 2]
        divisor = int(np.gcd.reduce(np.concatenate([[divisor], *ends])))
    return Fraction(divisor, data.denominator)
