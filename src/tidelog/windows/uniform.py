"""Uniform validity: windows that are right whatever the data, found without searching for data.

A window w is uniformly valid if every rule of radius greater than w follows from the rules of radius at most w
(definition 21). Whether a rule follows is decided by freezing it: its variables become objects that occur nowhere
else, its body becomes facts (of derived predicates, too), and its head must be derived from them.

With comparisons, frozen objects are known to compare only as the rule itself says, so that a window may be called not
uniformly valid although it is; never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidelog.language.syntax import Term, Value
from tidelog.windows.evaluate import Facts, add, run
from tidelog.windows.query import PastRule, Query
from tidelog.windows.terms import compare, frozen_term, implied, is_frozen


def uniform_window(query: Query) -> int:
    """The least uniformly valid window; at most the radius."""
    windows = sorted({0, *(rule.radius for rule in query.rules)})
    return next(w for w in windows if uniformly_valid(query, w))


def uniformly_valid(query: Query, window: int) -> bool:
    kept = query.cut(window).rules
    return all(follows(rule, kept, query.facts) for rule in query.rules if rule.radius > window)


def follows(rule: PastRule, rules: Sequence[PastRule], facts: Iterable[tuple[str, tuple[Value, ...]]] = ()) -> bool:
    """Whether a rule is entailed by others, and by rigid facts."""
    longest = rule.radius
    rigid: Facts = {}
    stream: dict[int, Facts] = {}
    for predicate, values in facts:
        add(rigid, predicate, values)
    for atom in rule.body:
        facts_then = rigid if atom.lag is None else stream.setdefault(longest - atom.lag, {})
        add(facts_then, atom.predicate, _frozen(atom.args))
    known = {(op, *_frozen(terms)) for comparison in rule.comparisons for op, terms in implied(comparison)}

    def as_known(op: str, left: Value, right: Value) -> bool:
        if (op, left, right) in known:
            return True
        if left == right:
            return op in ("=", "<=", ">=")
        return not (is_frozen(left) or is_frozen(right)) and compare(op, left, right)

    held = run(rules, rigid, stream, longest, as_known)
    derived = held[longest] if rule.temporal else rigid
    return _frozen(rule.args) in derived.get(rule.predicate, ())


def _frozen(args: Iterable[Term]) -> tuple[Value, ...]:
    return tuple(map(frozen_term, args))
