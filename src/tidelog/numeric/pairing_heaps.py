"""Pairing heaps of contributions, one per group: the best constant comes first, and any contribution can be removed.

See Fredman, Sedgewick, Sleator and Tarjan, "The pairing heap: a new form of self-adjusting heap" (Algorithmica, 1986).
"""

from __future__ import annotations

from tidelog.jit import Array, Number, inlined_kernel, int64, kernel
from tidelog.numeric.number_kernels import Constants, compare_constants

#: Columns of `links`: the first child, the next sibling, and the sibling before or, for a first child, the parent.
_CHILD, _NEXT, _PREVIOUS, LINKS = range(4)


@inlined_kernel
def _merge(links: Array, values: Array, constants: Constants, sign: int, a: int, b: int) -> Number:
    """Merge two heaps; return the root. `sign` is 1 for a minimum at the root, -1 for a maximum."""
    if a < 0:
        return b
    if b < 0:
        return a
    if sign * compare_constants(constants, int64(values[b]), int64(values[a])) < 0:
        a, b = b, a
    child = links[a, _CHILD]
    links[b, _NEXT], links[b, _PREVIOUS] = child, a
    if child >= 0:
        links[child, _PREVIOUS] = b
    links[a, _CHILD] = b
    links[a, _NEXT], links[a, _PREVIOUS] = -1, -1
    return a


@inlined_kernel
def insert_node(links: Array, values: Array, constants: Constants, sign: int, root: int, node: int) -> Number:
    """Add a node to a heap; return the root."""
    links[node, _CHILD], links[node, _NEXT], links[node, _PREVIOUS] = -1, -1, -1
    return _merge(links, values, constants, sign, root, node)


@kernel
def _merge_siblings(links: Array, values: Array, constants: Constants, sign: int, first: int) -> Number:
    """Merge a list of siblings: in pairs from the left, then the pairs from the right. Return the root."""
    pairs = int64(-1)
    while first >= 0:
        second = links[first, _NEXT]
        following = links[second, _NEXT] if second >= 0 else int64(-1)
        root = _merge(links, values, constants, sign, first, second)
        links[root, _NEXT] = pairs
        pairs = root
        first = following
    root = int64(-1)
    while pairs >= 0:
        following = links[pairs, _NEXT]
        links[pairs, _NEXT] = -1
        root = _merge(links, values, constants, sign, root, pairs)
        pairs = following
    if root >= 0:
        links[root, _NEXT], links[root, _PREVIOUS] = -1, -1
    return root


@inlined_kernel
def remove_node(links: Array, values: Array, constants: Constants, sign: int, root: int, node: int) -> Number:
    """Remove a node from a heap; return the root, or -1 if the heap is empty now."""
    rest = _merge_siblings(links, values, constants, sign, links[node, _CHILD])
    if node == root:
        return rest
    previous, following = links[node, _PREVIOUS], links[node, _NEXT]
    if links[previous, _CHILD] == node:
        links[previous, _CHILD] = following
    else:
        links[previous, _NEXT] = following
    if following >= 0:
        links[following, _PREVIOUS] = previous
    return _merge(links, values, constants, sign, root, rest)
