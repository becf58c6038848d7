"""Keys of buckets that Spark spreads evenly over its partitions."""

from __future__ import annotations


def choose_bucket_keys(count: int, partitions: int) -> tuple[int, ...]:
    """Choose keys for `count` buckets that Spark's hash partitioning spreads evenly; they never change.

    >>> choose_bucket_keys(4, 2)
    (2, 0, 4, 1)
    """
    keys: list[int] = []
    for bucket in range(count):
        key = 0
        while key in keys or _murmur3(key) % partitions != bucket % partitions:
            key += 1
        keys.append(key)
    return tuple(keys)


def _murmur3(key: int, seed: int = 42) -> int:
    """Return the hash by which Spark chooses the partition of an integer key; its remainder is Spark's `pmod`."""
    mask = 0xFFFFFFFF
    k = (key * 0xCC9E2D51) & mask
    k = ((k << 15) | (k >> 17)) & mask
    h = seed ^ ((k * 0x1B873593) & mask)
    h = ((h << 13) | (h >> 19)) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & mask
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h
