"""What data are like: the constants that they mention, and how fine their times are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tidelog.data.dataset import Dataset
from tidelog.language.syntax import Value
from tidelog.timeline.grid import NEG_INF, POS_INF


def constants_of(data: Dataset) -> set[Value]:
    """The constants that some fact mentions.

    >>> sorted(constants_of(Dataset.parse("P(a,b)@1\\nQ(a)")))
    ['a', 'b']
    """
    ids = {int(number) for relation in data.relations.values() for number in np.unique(relation.args)}
    return {data.symbols.value(number) for number in ids}


def times_divisor(data: Dataset) -> Fraction:
    """The greatest number of which all times are multiples; 0 where there are none but 0.

    >>> times_divisor(Dataset.parse("P@[1/2,5)\\nP@2\\nQ"))
    Fraction(1, 2)
    """
    divisor = 0
    for relation in data.relations.values():
        # On the doubled grid an open end is beside the even number that stands for its time.
        ends = [(relation.lo[relation.lo > NEG_INF]) // 2, (relation.hi[relation.hi < POS_INF] + 1) // 2]
        divisor = int(np.gcd.reduce(np.concatenate([[divisor], *ends])))
    return Fraction(divisor, data.denominator)
