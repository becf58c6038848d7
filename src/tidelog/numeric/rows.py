"""Rows of one predicate as columns: the form in which engines and numeric steps hand facts to each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Rows:
    """Intervals of one predicate's atoms: `args[k, i]` is argument k of row i, which holds on `[lo[i], hi[i]]`."""

    args: Int32s
    lo: Int64s
    hi: Int64s

    def __len__(self) -> int:
        return len(self.lo)

    @staticmethod
    def empty(arity: int) -> Rows:
        return Rows(np.empty((arity, 0), np.int32), np.empty(0, np.int64), np.empty(0, np.int64))

    @staticmethod
    def concatenate(parts: list[Rows], arity: int) -> Rows:
        if not parts:
            return Rows.empty(arity)
        if len(parts) == 1:
            return parts[0]
        return Rows(
            np.concatenate([p.args for p in parts], axis=1),
            np.concatenate([p.lo for p in parts]),
            np.concatenate([p.hi for p in parts]),
        )

    def clip(self, lo: int, hi: int) -> Rows:
        """Return the part inside [lo,hi]; ends that were cut are now at the border."""
        if not len(self) or (self.lo.min() >= lo and self.hi.max() <= hi):
            return self
        new_lo, new_hi = np.maximum(self.lo, lo), np.minimum(self.hi, hi)
        keep = new_lo <= new_hi
        return Rows(self.args[:, keep], new_lo[keep], new_hi[keep])

    def where(self, keep: NDArray[np.bool_]) -> Rows:
        return Rows(self.args[:, keep], self.lo[keep], self.hi[keep])


def has_few_atoms(rows: Rows) -> bool:
    """Return whether few atoms have many intervals; these are inserted in time order, each behind the last."""
    sample = rows.args[:, : 1 << 13]
    if len(sample) == 2:
        # Sorting pairs as one number is many times as fast.
        sample = sample[:1].astype(np.int64) << 32 | sample[1:]
    atoms = len(np.unique(sample, axis=1)[0]) if len(sample) > 1 else len(np.unique(sample)) or 1
    return bool(16 * atoms < sample.shape[1])
