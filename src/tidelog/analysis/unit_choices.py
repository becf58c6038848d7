"""The choices of hashed arguments with which the rules of one unit can be evaluated bucket by bucket.

`split_search` says what units and choices are for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from tidelog.analysis.predicate_graph import find_components
from tidelog.analysis.rule_locality import Key, RuleShape, find_guard, is_local, needs_guard
from tidelog.language.syntax import Term

#: Bounds of the search: choices for one unit, and steps to find them. Beyond them a cheaper plan may be missed, but
#: every plan that is found is sound.
CHOICES = 64
ASSIGNMENTS = 10_000

#: For each predicate, the arguments that it may be hashed on, and None if it may be copied.
Domains = Mapping[str, frozenset[int | None]]

_COPIED: frozenset[int | None] = frozenset({None})


@dataclass(frozen=True)
class RuleUnit:
    """Rules that stay in one stage, the predicates that they derive and read, and the choices to split them."""

    own: tuple[str, ...]
    shapes: tuple[RuleShape, ...]
    reads: frozenset[str]
    choices: tuple[Domains, ...]
    can_be_split: bool


@dataclass(frozen=True)
class _RuleKey:
    """The key of a rule (None if its whole body is copied), and whether its negated atoms are copied."""

    term: Term | None
    positive_only: bool = False


@dataclass(frozen=True)
class ChoiceFinder:
    """Finds the choices of units. They depend on arities and background predicates besides the rules."""

    arities: Mapping[str, int]
    background: frozenset[str]

    def build_unit(self, own: tuple[str, ...], shapes: tuple[RuleShape, ...]) -> RuleUnit:
        """Build the unit of some rules, which derive the predicates `own`."""
        reads = frozenset(atom.predicate for shape in shapes for atom in shape.body) - set(own)
        choices = tuple(islice(self.find_choices(own, shapes), CHOICES))
        copied: Domains = dict.fromkeys((*own, *reads), _COPIED)
        if shapes and {*own, *reads} <= self.background:
            # Rules over background only can also be derived in every bucket; without a body they need no guard then.
            return RuleUnit(own, shapes, reads, (*choices, copied) if reads else (copied, *choices), True)
        return RuleUnit(own, shapes, reads, choices or (copied,), bool(choices))

    def find_choices(self, own: tuple[str, ...], shapes: tuple[RuleShape, ...]) -> Iterator[Domains]:
        """Yield the choices in which all rules are local and buckets share the facts of the streams that they read."""
        for assigned in self._assign_arguments(own, shapes):
            if not shapes and None in assigned.values():
                continue
            for keys in product(*(_possible_keys(shape, assigned) for shape in shapes)):
                domains = _compute_domains(assigned, shapes, keys)
                key = choose_key(domains)
                if all(self.is_split_by(shape, key, own) for shape in shapes):
                    yield domains

    def is_split_by(self, shape: RuleShape, key: Key, own: Collection[str]) -> bool:
        """Return whether a rule is local, and the buckets share its work if it reads a stream."""
        if not is_local(shape, key, own):
            return False
        names = {atom.predicate for atom in shape.body}
        if names <= self.background or any(key[name] is not None for name in names):
            return True
        guard = find_guard(shape, key, own) if needs_guard(shape, key) else None
        return guard is not None and guard.atom is not None

    def _assign_arguments(self, own: tuple[str, ...], shapes: tuple[RuleShape, ...]) -> Iterator[Key]:
        """Yield the assignments of hashed arguments (None: copied) to the own predicates that no rule rules out."""
        order, cycles = _order_predicates(own, shapes)
        mentions = {name: [shape for shape in shapes if name in shape.predicates] for name in own}
        stack: list[dict[str, int | None]] = [{}]
        for _ in range(ASSIGNMENTS):
            if not stack:
                return
            so_far = stack.pop()
            if len(so_far) == len(order):
                yield so_far
                continue
            name = order[len(so_far)]
            positions: tuple[int | None, ...] = (*range(self.arities.get(name, 0)), None)
            # If a predicate of a cycle is copied, so is everything it depends on, which is the whole cycle.
            other = next((member for member in cycles[name] if member in so_far), None)
            if other is not None:
                positions = tuple(at for at in positions if (at is None) == (so_far[other] is None))
            for position in reversed(positions):
                key = {**so_far, name: position}
                if all(_may_be_local(shape, key) for shape in mentions[name]):
                    stack.append(key)


def _order_predicates(
    own: tuple[str, ...], shapes: tuple[RuleShape, ...]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Return the predicates, ordered such that a rule connects each to an earlier one if possible, and the cycle of
    each: predicates that depend on each other."""
    graph: dict[str, list[str]] = {name: [] for name in own}
    for shape in shapes:
        if shape.head is not None:
            graph[shape.head.predicate] += [atom.predicate for atom in shape.body if atom.predicate in graph]
    order: dict[str, None] = {}
    for root in own:
        pending = [root]
        while pending:
            name = pending.pop(0)
            if name not in order:
                order[name] = None
                pending += graph[name]
    cycles = {name: group.predicates for group in find_components(graph) for name in group.predicates}
    return list(order), cycles


def _may_be_local(shape: RuleShape, key: Key) -> bool:
    """Return whether a rule can be local, given the predicates that have an assignment so far."""
    chosen = [(atom, key[atom.predicate]) for atom in shape.body if atom.predicate in key]
    terms = {shape.term(atom, position) for atom, position in chosen if position is not None}
    if shape.head is not None and shape.head.predicate in key:
        position = key[shape.head.predicate]
        if position is None:
            return not terms
        if shape.part:
            return position == 0
        terms.add(shape.term(shape.head, position))
    return len(terms) <= 1


def _possible_keys(shape: RuleShape, assigned: Key) -> list[_RuleKey]:
    """Return the keys that a rule may have: that of its head, or for constraints and parts any term of its body."""
    position = None if shape.head is None else assigned[shape.head.predicate]
    if shape.head is not None and not (shape.part and position is not None):
        return [_RuleKey(None if position is None else shape.term(shape.head, position))]
    terms = dict.fromkeys(shape.term(atom, i) for atom in shape.body for i in range(len(atom.args)))
    return [_RuleKey(term, only) for term in terms for only in ((False, True) if shape.negated else (False,))]


def _compute_domains(assigned: Key, shapes: tuple[RuleShape, ...], keys: tuple[_RuleKey, ...]) -> Domains:
    """Compute the domains that a choice leaves, given the keys of the rules."""
    domains: dict[str, frozenset[int | None]] = {name: frozenset({at}) for name, at in assigned.items()}
    for shape, key in zip(shapes, keys, strict=True):
        for name in {atom.predicate for atom in shape.body} - set(assigned):
            allowed = _COPIED
            if key.term is not None and not (key.positive_only and name in {atom.predicate for atom in shape.negated}):
                allowed |= shape.positions(name, key.term)
            domains[name] = domains.get(name, allowed) & allowed
    return domains


def choose_key(domains: Domains) -> dict[str, int | None]:
    """Choose how each predicate is distributed."""
    return {name: choose_argument(domain) for name, domain in domains.items()}


def choose_argument(domain: frozenset[int | None]) -> int | None:
    """Choose the first argument that a predicate may be hashed on; None, for a copy, where there is none."""
    return min((at for at in domain if at is not None), default=None)
