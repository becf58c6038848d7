"""Uniform validity: windows that are valid for any data, found without a search over data.

A window w is uniformly valid if every rule of radius larger than w follows from the rules of radius at most w
(definition 21 of the paper). To decide whether a rule follows, it is frozen: its variables become objects that occur
nowhere else, its body becomes facts (of derived predicates, too), and its head must be derived from them.

A negated atom counts as an atom of its own: rules may use that `not A(x)` holds if the frozen body says so, and not
otherwise. If all rules of radius larger than w follow in this sense, a stable model of the others is a stable model of
all, and stratified rules have only one.

Frozen objects compare only as the comparisons of the rule itself say. So with comparisons, a uniformly valid window may
go unrecognised, but never the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidelog.language.comparisons import compare
from tidelog.language.syntax import Term, Value
from tidelog.windows.forward_query import ForwardQuery, ForwardRule
from tidelog.windows.frozen_terms import freeze_term, is_frozen, weaken_comparison
from tidelog.windows.pointwise_evaluation import Facts, add_fact, evaluate_stream


def find_uniform_window(query: ForwardQuery) -> int:
    """Return the least uniformly valid window, which is at most the radius."""
    windows = sorted({0, *(rule.radius for rule in query.rules)})
    return next(w for w in windows if is_uniformly_valid(query, w))


def is_uniformly_valid(query: ForwardQuery, window: int) -> bool:
    """Return whether a window is uniformly valid for a query."""
    kept = query.restrict_to(window).rules
    return all(follows(rule, kept, query.facts) for rule in query.rules if rule.radius > window)


def follows(
    rule: ForwardRule, rules: Sequence[ForwardRule], facts: Iterable[tuple[str, tuple[Value, ...]]] = ()
) -> bool:
    """Return whether a rule is entailed by other rules and rigid facts."""
    longest = rule.radius
    rigid: Facts = {}
    stream: dict[int, Facts] = {}
    for predicate, values in facts:
        add_fact(rigid, predicate, values)
    rules = list(map(_name_negations, rules))
    for atom in _name_negations(rule).body:
        facts_then = rigid if atom.lag is None else stream.setdefault(longest - atom.lag, {})
        add_fact(facts_then, atom.predicate, _freeze_args(atom.args))
    known = {
        (op, *_freeze_args(terms)) for comparison in rule.comparisons for op, terms in weaken_comparison(comparison)
    }

    def is_known_to_hold(op: str, left: Value, right: Value) -> bool:
        if (op, left, right) in known:
            return True
        if left == right:
            return op in ("=", "<=", ">=")
        return not (is_frozen(left) or is_frozen(right)) and compare(op, left, right)

    held = evaluate_stream(rules, rigid, stream, longest, is_known_to_hold)
    derived = held[longest] if rule.temporal else rigid
    return _freeze_args(rule.args) in derived.get(rule.predicate, ())


def _name_negations(rule: ForwardRule) -> ForwardRule:
    """Return a rule with an atom of another predicate in place of each negated one."""
    named = (replace(atom, predicate=f"not {atom.predicate}") for atom in rule.negated)
    return replace(rule, body=(*rule.body, *named), negated=())


def _freeze_args(args: Iterable[Term]) -> tuple[Value, ...]:
    return tuple(map(freeze_term, args))
