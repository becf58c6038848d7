"""A reasoner that keeps each predicate for some time, by the definition, and small random programs for it.

At each time t it sees, of every predicate that it keeps for r, what held from t - r to t. It derives what follows at t
from what it sees, and remembers it. Over the rationals, facts hold throughout multiples of a tick and the open gaps
between them, and so does what is derived: what holds in the middle of a gap holds in all of it. The bodies of rules are
evaluated by `oracle`, over facts that are cut to what is visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from oracle import evaluate
from tidelog.language.syntax import Atom, Fact, Rule, Value
from tidelog.timeline.interval import Interval
from truth_cells import Scope

#: Predicates with their arguments, each at the time of a cell: a point, or the middle of a gap.
Held = set[tuple[str, tuple[Value, ...], Fraction]]


def run_reasoner(
    rules: Sequence[Rule], stream: Held, kept: Mapping[str, Fraction], cells: Sequence[Fraction], tick: Fraction
) -> Held:
    """Return what was given or derived, in cells that are listed in the order of time; heads must be atoms."""
    integer = all(time.denominator == 1 for time in cells) and tick == 1
    scope = Scope.between(int(cells[0]), int(cells[-1]) + 1, 2 * tick.denominator, integer=integer)
    # Heads have names of their own, so that only the present is derived.
    fresh = [replace(rule, head=Atom(head_of(rule).predicate + "'", head_of(rule).args)) for rule in rules]
    held: Held = set()
    for now in cells:
        held |= {fact for fact in stream if fact[2] == now}
        place = int(now if integer else 2 * scope.denominator * now)
        new: Held = held
        while new:
            facts = [
                Fact(name, args, shown)
                for name, args, time in sorted(held)
                if (shown := cut(cell_interval(time, tick), now - kept.get(name, now - cells[0]), now)) is not None
            ]
            truth = evaluate(fresh, facts, scope)
            names = [
                (name, args) for name, args in truth.definite if name.endswith("'") and truth.at((name, args), place)
            ]
            new = {(name[:-1], args, now) for name, args in names} - held
            held |= new
    return held


def head_of(rule: Rule) -> Atom:
    assert isinstance(rule.head, Atom)
    return rule.head


def cell_interval(time: Fraction, tick: Fraction) -> Interval:
    """The cell of a time: the point itself, or the gap that it is the middle of."""
    if (time / tick).denominator == 1:
        return Interval.point(time)
    return Interval(time - tick / 2, time + tick / 2, False, False)


def cut(interval: Interval, low: Fraction, high: Fraction) -> Interval | None:
    """The part of an interval between two times, both included."""
    lo, lo_closed = (interval.lo, interval.lo_closed) if interval.lo >= low else (low, True)
    hi, hi_closed = (interval.hi, interval.hi_closed) if interval.hi <= high else (high, True)
    found = Interval(lo, hi, lo_closed, hi_closed)
    return None if found.is_empty() else found


def random_rules(random: Random, recursive: bool) -> str:
    """Return a small query for G; A and B are input, P is derived."""
    below = {"P": ["A", "B"], "G": ["A", "B", "P", "P"]}
    if recursive:
        below = {"P": ["A", "B", "P"], "G": ["A", "P", "P", "G"]}

    def random_range() -> str:
        low = random.choice([0, 0, 0, 1])
        high = random.choice([1, 2, 2, 3])
        if low >= high:
            return f"[{high},{high}]"
        return random.choice("[[[(") + f"{low},{high}" + random.choice("]]])")

    def random_formula(names: list[str], depth: int) -> str:
        kind = random.random()
        if depth == 0 or kind < 0.25:
            return random.choice(names)
        if kind < 0.55:
            return f"Diamondminus{random_range()} {random_formula(names, depth - 1)}"
        if kind < 0.85:
            return f"Boxminus{random_range()} {random_formula(names, depth - 1)}"
        return f"{random.choice(names)} Since{random_range()} {random.choice(names)}"

    lines = []
    for head in ["P", "G", *random.choices(["P", "G"], k=random.choice([0, 1, 2]))]:
        body = [random_formula(below[head], 2) for _ in range(random.choice([1, 1, 2]))]
        lines.append(f"{head} :- {', '.join(body)}.")
    return "\n".join(lines)
