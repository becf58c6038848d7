"""Changed rules on an old state: what of it still means the same, and from when on answers are complete again.

What is held of a predicate means the same under changed rules if its definition, the rules that it depends on, is the
same. So facts of the input and of predicates with an unchanged definition are kept, all others are derived anew from
them. Of `Diamondminus[0,b]` with another b, the last time at which its argument held is known, and so what it says from
now on.

A state knows all facts of a predicate back to some time: as far as the old rules looked back at it. A rule is right at
t if all its literals are where it reads them, so the new rules are right from a time on that follows from these; where
they look back for ever, or recurse, there may be no such time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tidelog.analysis.components import dependencies, head_atom
from tidelog.analysis.flatten import ALWAYS, VIOLATION, FlatLiteral, FlatRule, Op
from tidelog.engine.store import Rows
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Term
from tidelog.language.times import format_iso
from tidelog.streaming.bounds import reads
from tidelog.streaming.normal import ever
from tidelog.streaming.standing import Standing
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF
from tidelog.timeline.interval import format_time


@dataclass(frozen=True)
class Old:
    """A saved state: its rules, what it holds, and where it stands.

    `base` is what forgetting counts from, and `seen` the last position of which facts may have come.
    """

    program: Program
    form: Standing
    query: str
    held: Mapping[str, Rows]
    base: int
    seen: int


@dataclass(frozen=True)
class Kept:
    """What is held, under the names of the new rules; from where on each is known, in the input or altogether, since
    the old state goes on with it as before; the names of what is lost; and of the background, which is there again."""

    rows: dict[str, Rows]
    given: dict[str, int]
    known: dict[str, int]
    lost: tuple[str, ...]
    background: frozenset[str]


def sorted_out(old: Old, new: Program, form: Standing, background: frozenset[str]) -> Kept:
    """What of an old state can be kept under new rules."""
    found = Kept({}, {}, {}, tuple(name for name, held in old.held.items() if len(held)), background)
    meanings = {_meaning(form, name): name for name in form.names if name.startswith("$")}
    passing = set(old.form.transient(old.query))
    for name in old.form.names:
        if not _same(old, new, name):
            continue
        held = old.held.get(name, Rows.empty(old.form.arities[name]))
        now = meanings.get(_meaning(old.form, name)) if name.startswith("$") else name
        if now is not None and now in form.arities:
            kept_for = old.form.bounds.retention[name]
            looked_up = name not in passing and kept_for > -LIMIT
            found.given[now] = old.base - kept_for if looked_up else old.seen + 1
            if _rules_below(old.form, name) == _rules_below(form, now):
                found.known[now] = found.given[now]
        elif (other := _other_range(old.form, name, form)) is not None:
            now, before, after = other
            held = Rows(held.args, np.maximum(held.lo, held.hi - before), held.hi - before + after)
            found.known[now] = old.base + max(0, after - before)
        else:
            continue
        if len(held):
            found.rows[now] = held
            found = replace(found, lost=tuple(other for other in found.lost if other != name))
    return found


def _same(old: Old, new: Program, name: str) -> bool:
    """Whether all that a predicate depends on is defined as before."""
    below = [other for other in _below(old.form, name) if not other.startswith("$")]
    return all(_definition(old.program, other) == _definition(new, other) for other in below)


def _other_range(before: Standing, name: str, after: Standing) -> tuple[str, int, int] | None:
    """For `Diamondminus[0,b]`: the new name of the same with another b, and both b."""
    mine = _range_from_now(before, name)
    exact = {_meaning(before, other) for other in before.names}
    for other in after.names:
        if _meaning(after, other) in exact:
            continue
        theirs = _range_from_now(after, other)
        if mine and theirs and mine[0] == theirs[0] and _inputs(before, name) == _inputs(after, other):
            return other, mine[1], theirs[1]
    return None


def _inputs(form: Standing, name: str) -> set[tuple[str, str]]:
    """The rules of what a hidden predicate with one literal reads."""
    return next(_rules_below(form, rule.body[0].predicate) for rule in form.rules if rule.predicate == name)


def _rules_below(form: Standing, name: str) -> set[tuple[str, str]]:
    """The rules of a predicate and of all that it depends on, in the form in which they are evaluated. If they are the
    same, an old state holds all that is needed to go on with the predicate."""
    below = _below(form, name)
    return {(_meaning(form, r.predicate), _spelt(form, r)) for r in form.rules if r.predicate in below}


def _range_from_now(form: Standing, name: str) -> tuple[str, int] | None:
    """Of a hidden predicate that is `Diamondminus[0,b]` of something: what of, and b."""
    rules = [rule for rule in form.rules if rule.predicate == name]
    if not name.startswith("$") or len(rules) != 1 or len(rules[0].body) != 1:
        return None
    rule, literal = rules[0], rules[0].body[0]
    # An open end is not the sum of two positions, so that it cannot be taken off again.
    plain = literal.op is Op.DIAMOND and literal.range[0] == 0 and literal.range[1] % form.grid.tick == 0
    if not plain or literal.range[1] == POS_INF or rule.range != (0, 0) or rule.comparisons:
        return None
    return repr((_meaning(form, literal.predicate), _shape(literal.args, rule.args))), literal.range[1]


def _meaning(form: Standing, name: str, above: frozenset[str] = frozenset()) -> str:
    """What a hidden predicate stands for, whatever its name: its rules, with hidden predicates spelt out."""
    if not name.startswith("$") or name in above:
        return name if name not in above else "itself"
    rules = [_spelt(form, rule, above | {name}) for rule in form.rules if rule.predicate == name]
    # A name that no text can have, and that no rule derives, stands for facts that come in.
    return "{" + ";".join(sorted(rules)) + "}" if rules else name


def _spelt(form: Standing, rule: FlatRule, above: frozenset[str] = frozenset()) -> str:
    body = [
        (_meaning(form, b.predicate, above), _shape(b.args, rule.args), b.op, b.range, b.negated) for b in rule.body
    ]
    return repr((rule.range, body, rule.comparisons))


def _shape(args: tuple[Term, ...], head: tuple[Term, ...]) -> tuple[object, ...]:
    return tuple(head.index(a) if a in head else a for a in args)


def _below(form: Standing, name: str) -> set[str]:
    """A predicate and all that it depends on."""
    found, frontier = {name}, {name}
    while frontier:
        frontier = {b.predicate for r in form.rules if r.predicate in frontier for b in r.body} - found
        found |= frontier
    return found


def _definition(program: Program, name: str) -> frozenset[str]:
    """The rules that a predicate depends on, as text."""
    needed, frontier, found = {name}, {name}, set()
    while frontier:
        below: set[str] = set()
        for rule in program.rules:
            head = head_atom(rule)
            if head is not None and head.predicate in frontier:
                found.add(format_rule(rule))
                below |= {atom.predicate for atom, _ in dependencies(rule)}
        frontier = below - needed
        needed |= frontier
    return frozenset(found)


# From when on answers are complete


def complete_from(old: Old, form: Standing, kept: Kept, query: str) -> int:
    """The position from which on the new rules give exactly what they would have given from the beginning; POS_INF
    where there may be none."""
    if old.seen == NEG_INF:
        return NEG_INF
    hidden = {rule.predicate for rule in form.rules if rule.predicate.startswith("$")} | {ALWAYS}
    found = {name: NEG_INF if name in hidden else kept.given.get(name, old.seen + 1) for name in form.names}
    found |= kept.known
    for turn in range(2 * len(found) + 2):
        changed = False
        for place, rule in enumerate(form.rules):
            name = rule.predicate
            if name in kept.known:
                continue
            right = max((_right(rule, literal, found) for literal in rule.body), default=NEG_INF)
            if place in form.bounds.waits:
                right = max(right, old.seen + 1)  # negation is evaluated from now on only
            if abs(right) < LIMIT:
                right += rule.range[1]
            if right > found[name]:
                # What still grows after so many turns does so for ever, along a recursion.
                found[name], changed = (POS_INF if turn > len(found) else right), True
        if not changed:
            break
    return max(found[name] for name in [query, *(name for name in form.names if name.startswith(VIOLATION))])


def _right(rule: FlatRule, literal: FlatLiteral, found: Mapping[str, int]) -> int:
    """From where on a rule's body is right as far as one of its literals goes."""
    known = found[literal.predicate]
    back = reads(rule, literal)[1]
    if known == NEG_INF:
        return NEG_INF
    return POS_INF if known >= LIMIT or back >= LIMIT or ever(literal) else known + back


# In words


def notes(old: Old, form: Standing, kept: Kept, query: str, dates: bool) -> Iterator[str]:
    """What could not be kept, and from when on answers are complete."""
    anew = sorted(name for name in kept.lost if not name.startswith(("$", "#")) and name in form.arities)
    if anew:
        yield f"derived anew from now on, since their rules have changed: {', '.join(anew)}"
    hidden = [name for name in kept.lost if name.startswith("$")]
    forgotten = {other for name in hidden for other in _below(old.form, name) if not other.startswith("$")}
    unsure = sorted(name for name in forgotten if name in form.arities and name not in kept.rows)
    if unsure:
        yield (
            f"what operators remembered of {', '.join(unsure)} is lost: until answers are complete, some may be "
            "missing, or given under `not` although they do not hold"
        )
    for name in sorted(set(kept.rows) & set(old.form.arities)):
        longer, shorter = form.bounds.retention[name], max(old.form.bounds.retention[name], 0)
        if longer > shorter and not name.startswith("$"):
            scale = form.grid.tick * form.grid.denominator
            yield (
                f"{name} was kept for {format_time(Fraction(shorter, scale))}, the new rules look back "
                f"{format_time(Fraction(longer, scale))}: answers that need what is forgotten already are missed"
            )
    before = kept.background | old.form.arities.keys()
    new = sorted(name for name in form.names if name not in before and not name.startswith("$"))
    if new:
        yield f"seen from now on only: {', '.join(new)}"
    position = complete_from(old, form, kept, query)
    if position <= old.base:
        yield "answers are complete"
    elif position >= LIMIT:
        yield "answers may stay incomplete: the new rules depend on all that ever came, which the state does not have"
    else:
        yield _completeness(form, position, dates) + _unless(old, form, kept, query)


def _unless(old: Old, form: Standing, kept: Kept, query: str) -> str:
    """Of facts that were not held nobody knows how long they hold."""
    heads = {rule.predicate for rule in form.rules}
    needed, frontier = set(), {query}
    while frontier:
        needed |= frontier
        unknown = frontier - set(kept.known)
        frontier = {b.predicate for r in form.rules if r.predicate in unknown for b in r.body} - needed
    unseen = [name for name in needed - heads - kept.background if kept.given.get(name, old.seen + 1) > old.seen]
    names = ", ".join(sorted(name for name in unseen if not name.startswith("$")))
    return f", unless facts of {names} that came before hold longer" if names else ""


def _completeness(form: Standing, position: int, dates: bool) -> str:
    tick = form.grid.tick
    time = form.grid.time(position - position % tick)
    shown = format_iso(time) if dates else format_time(time)
    return f"answers are complete {'after' if position % tick else 'from'} {shown}{'' if position % tick else ' on'}"
