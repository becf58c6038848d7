"""Move a saved state onto changed rules: which facts still mean the same, and from when answers are complete again.

The facts held of a predicate mean the same under changed rules if its definition, the rules that it depends on, is the
same. So facts of the input and of predicates with an unchanged definition are kept, and all others are derived again
from them. For `Diamondminus[0,b]` with another b, the last time at which its argument held is known, and with it the
value of the operator from now on.

A state knows all facts of a predicate back to some time: as far as the old rules looked back at it. A rule is correct
at t if all its literals are correct where it reads them, so the new rules are correct from a time on that follows from
these times. If they look back for ever, or recurse, there may be no such time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tidelog.analysis.predicate_graph import find_defining_rules, reachable
from tidelog.compiler.bound_memory import read_range
from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule, Op
from tidelog.compiler.normalise_streams import is_about_any_time
from tidelog.engine.fact_store import Rows
from tidelog.language.hidden_predicates import ALWAYS, is_hidden, is_internal, is_violation
from tidelog.language.printer import format_rule
from tidelog.language.program import Program
from tidelog.language.syntax import Term
from tidelog.language.time_text import format_iso
from tidelog.timeline.grid import LIMIT, NEG_INF, POS_INF
from tidelog.timeline.interval import format_time


@dataclass(frozen=True)
class SavedState:
    """A saved state: its rules, the facts it holds, and its position in the stream.

    Forgetting counts from `base`; `seen` is the last position from which facts may have arrived.
    """

    program: Program
    form: CompiledProgram
    query: str
    held: Mapping[str, Rows]
    base: int
    seen: int


@dataclass(frozen=True)
class MigratedState:
    """The facts kept under the names of the new rules, and how far they are known.

    `given` is the position from which on the input of a predicate is known, and `known` that of all its facts, where
    the old state continues it as before. `lost` names predicates whose facts are lost, `background` those given again.
    """

    rows: dict[str, Rows]
    given: dict[str, int]
    known: dict[str, int]
    lost: tuple[str, ...]
    background: frozenset[str]


def select_kept_facts(
    old: SavedState, new: Program, form: CompiledProgram, background: frozenset[str]
) -> MigratedState:
    """Select the facts of an old state that can be kept under new rules."""
    found = MigratedState({}, {}, {}, tuple(name for name, held in old.held.items() if len(held)), background)
    meanings = {_find_meaning(form, name): name for name in form.names if is_hidden(name)}
    passing = set(old.form.transient)
    for name in old.form.names:
        if not _is_unchanged(old, new, name):
            continue
        held = old.held.get(name, Rows.empty(old.form.arities[name]))
        now = meanings.get(_find_meaning(old.form, name)) if is_hidden(name) else name
        if now is not None and now in form.arities:
            kept_for = old.form.bounds.retention[name]
            looked_up = name not in passing and kept_for > -LIMIT
            found.given[now] = old.base - kept_for if looked_up else old.seen + 1
            if _rules_below(old.form, name) == _rules_below(form, now):
                found.known[now] = found.given[now]
        elif (other := _find_changed_range(old.form, name, form)) is not None:
            now, before, after = other
            held = Rows(held.args, np.maximum(held.lo, held.hi - before), held.hi - before + after)
            found.known[now] = old.base + max(0, after - before)
        else:
            continue
        if len(held):
            found.rows[now] = held
            found = replace(found, lost=tuple(other for other in found.lost if other != name))
    return found


def _is_unchanged(old: SavedState, new: Program, name: str) -> bool:
    """Return whether a predicate and all predicates it depends on are defined as before."""
    below = [other for other in _find_dependencies(old.form, name) if not is_hidden(other)]
    return all(_format_definition(old.program, other) == _format_definition(new, other) for other in below)


def _find_changed_range(before: CompiledProgram, name: str, after: CompiledProgram) -> tuple[str, int, int] | None:
    """For `Diamondminus[0,b]`, find the same operator with another b: its new name, and both b."""
    mine = _range_from_now(before, name)
    exact = {_find_meaning(before, other) for other in before.names}
    for other in after.names:
        if _find_meaning(after, other) in exact:
            continue
        theirs = _range_from_now(after, other)
        if mine and theirs and mine[0] == theirs[0] and _find_inputs(before, name) == _find_inputs(after, other):
            return other, mine[1], theirs[1]
    return None


def _find_inputs(form: CompiledProgram, name: str) -> set[tuple[str, str]]:
    """Return the rules below the literal of a hidden predicate that has only one."""
    return next(_rules_below(form, rule.body[0].predicate) for rule in form.rules if rule.predicate == name)


def _rules_below(form: CompiledProgram, name: str) -> set[tuple[str, str]]:
    """Return the evaluated form of the rules of a predicate and of all predicates it depends on.

    If they are the same, an old state holds everything that is needed to continue with the predicate.
    """
    below = _find_dependencies(form, name)
    return {(_find_meaning(form, r.predicate), _spell_out(form, r)) for r in form.rules if r.predicate in below}


def _range_from_now(form: CompiledProgram, name: str) -> tuple[str, int] | None:
    """For a hidden predicate that is `Diamondminus[0,b]` of a formula, return the formula's meaning and b."""
    rules = [rule for rule in form.rules if rule.predicate == name]
    if not is_hidden(name) or len(rules) != 1 or len(rules[0].body) != 1:
        return None
    rule, literal = rules[0], rules[0].body[0]
    # An open end is not the sum of two positions, so it cannot be subtracted again.
    plain = literal.op is Op.DIAMOND and literal.range[0] == 0 and literal.range[1] % form.grid.tick == 0
    if not plain or literal.range[1] == POS_INF or rule.range != (0, 0) or rule.comparisons:
        return None
    return repr((_find_meaning(form, literal.predicate), _number_args(literal.args, rule.args))), literal.range[1]


def _find_meaning(form: CompiledProgram, name: str, above: frozenset[str] = frozenset()) -> str:
    """Return the meaning of a hidden predicate, whatever its name: its rules, with hidden predicates spelled out."""
    if not is_hidden(name) or name in above:
        return name if name not in above else "itself"
    rules = [_spell_out(form, rule, above | {name}) for rule in form.rules if rule.predicate == name]
    # A name that no text can have, and that no rule derives, stands for input facts.
    return "{" + ";".join(sorted(rules)) + "}" if rules else name


def _spell_out(form: CompiledProgram, rule: FlatRule, above: frozenset[str] = frozenset()) -> str:
    body = [
        (_find_meaning(form, b.predicate, above), _number_args(b.args, rule.args), b.op, b.range, b.negated)
        for b in rule.body
    ]
    return repr((rule.range, body, rule.comparisons))


def _number_args(args: tuple[Term, ...], head: tuple[Term, ...]) -> tuple[object, ...]:
    return tuple(head.index(a) if a in head else a for a in args)


def _find_dependencies(form: CompiledProgram, name: str) -> set[str]:
    """Find a predicate and all predicates that it depends on."""
    return reachable([name], lambda above: (b.predicate for r in form.rules if r.predicate == above for b in r.body))


def _format_definition(program: Program, name: str) -> frozenset[str]:
    """Return the rules that a predicate depends on, as text."""
    return frozenset(format_rule(rule) for rule in find_defining_rules(program.rules, name))


# The time from which answers are complete


def find_complete_from(old: SavedState, form: CompiledProgram, kept: MigratedState, query: str) -> int:
    """Find the position from which the new rules give exactly the answers of a run from the beginning.

    Return POS_INF if there may be none.
    """
    if old.seen == NEG_INF:
        return NEG_INF
    hidden = {rule.predicate for rule in form.rules if is_hidden(rule.predicate)} | {ALWAYS}
    found = {name: NEG_INF if name in hidden else kept.given.get(name, old.seen + 1) for name in form.names}
    found |= kept.known
    for turn in range(2 * len(found) + 2):
        changed = False
        for place, rule in enumerate(form.rules):
            name = rule.predicate
            if name in kept.known:
                continue
            right = max((_find_correct_from(rule, literal, found) for literal in rule.body), default=NEG_INF)
            if place in form.bounds.waits:
                right = max(right, old.seen + 1)  # negation is evaluated from now on only
            if abs(right) < LIMIT:
                right += rule.range[1]
            if right > found[name]:
                # What still grows after that many turns grows without end, along a recursion.
                found[name], changed = (POS_INF if turn > len(found) else right), True
        if not changed:
            break
    return max(found[name] for name in [query, *(name for name in form.names if is_violation(name))])


def _find_correct_from(rule: FlatRule, literal: FlatLiteral, found: Mapping[str, int]) -> int:
    """Find the position from which one literal of a rule is correct."""
    known = found[literal.predicate]
    back = read_range(rule, literal)[1]
    if known == NEG_INF:
        return NEG_INF
    return POS_INF if known >= LIMIT or back >= LIMIT or is_about_any_time(literal) else known + back


# In words


def describe_migration(
    old: SavedState, form: CompiledProgram, kept: MigratedState, query: str, dates: bool
) -> Iterator[str]:
    """Yield notes on what could not be kept, and from which time answers are complete."""
    anew = sorted(name for name in kept.lost if not is_internal(name) and name in form.arities)
    if anew:
        yield f"derived again from now on, since their rules have changed: {', '.join(anew)}"
    hidden = [name for name in kept.lost if is_hidden(name)]
    forgotten = {other for name in hidden for other in _find_dependencies(old.form, name) if not is_hidden(other)}
    unsure = sorted(name for name in forgotten if name in form.arities and name not in kept.rows)
    if unsure:
        yield (
            f"the memory of operators over {', '.join(unsure)} is lost: until answers are complete, some may be "
            "missing, or given under `not` although they do not hold"
        )
    for name in sorted(set(kept.rows) & set(old.form.arities)):
        longer, shorter = form.bounds.retention[name], max(old.form.bounds.retention[name], 0)
        if longer > shorter and not is_hidden(name):
            scale = form.grid.tick * form.grid.denominator
            yield (
                f"{name} was kept for {format_time(Fraction(shorter, scale))}, the new rules look back "
                f"{format_time(Fraction(longer, scale))}: answers that need forgotten facts are missed"
            )
    before = kept.background | old.form.arities.keys()
    new = sorted(name for name in form.names if name not in before and not is_hidden(name))
    if new:
        yield f"seen from now on only: {', '.join(new)}"
    position = find_complete_from(old, form, kept, query)
    if position <= old.base:
        yield "answers are complete"
    elif position >= LIMIT:
        yield "answers may stay incomplete: the new rules depend on all earlier facts, which the state does not have"
    else:
        yield _describe_completeness(form, position, dates) + _describe_unseen(old, form, kept, query)


def _describe_unseen(old: SavedState, form: CompiledProgram, kept: MigratedState, query: str) -> str:
    """Name the predicates of earlier facts that were not held: how long they hold is unknown."""
    heads = {rule.predicate for rule in form.rules}
    needed = reachable(
        [query],
        lambda above: (
            b.predicate for r in form.rules if r.predicate == above and above not in kept.known for b in r.body
        ),
    )
    unseen = [name for name in needed - heads - kept.background if kept.given.get(name, old.seen + 1) > old.seen]
    names = ", ".join(sorted(name for name in unseen if not is_hidden(name)))
    return f", unless earlier facts of {names} hold longer" if names else ""


def _describe_completeness(form: CompiledProgram, position: int, dates: bool) -> str:
    tick = form.grid.tick
    time = form.grid.to_time(position - position % tick)
    shown = format_iso(time) if dates else format_time(time)
    return f"answers are complete {'after' if position % tick else 'from'} {shown}{'' if position % tick else ' on'}"
