"""Random histories of insertions and deletions, and what must hold for a view after each of them.

The assertions that stand are kept in a plain counter of facts. After every update the view's model must be the one that
is computed from scratch over them, and the change must be the difference in truth, point by point in a window that
reaches beyond the last fact and over rounds of what repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import TypedDict

import tidelog as tl
from examine import parse_case
from formula_parts import denominator_of, head_predicates
from judge import Claim, choose_scope, claimed_truth, find_form_complaints, format_key
from strategies import Case
from tidelog.language.fact_text import format_fact
from tidelog.language.syntax import Fact
from tidelog.timeline.interval import Interval


class Options(TypedDict, total=False):
    """Options of views and of `materialise`."""

    query: str
    between: tuple[Fraction, Fraction]
    until: Fraction


@dataclass(frozen=True)
class Update:
    """Facts that are inserted and deleted at once."""

    insert: tuple[Fact, ...]
    delete: tuple[Fact, ...]


@dataclass(frozen=True)
class History:
    """A program with its first facts and the updates that follow."""

    case: Case
    first: tuple[Fact, ...]
    updates: tuple[Update, ...]
    options: Options = field(default_factory=Options)

    def __str__(self) -> str:
        lines = [str(tl.Program(self.case.rules, self.case.features.timeline)), f"% options {dict(self.options)}"]
        lines += ["% first", *map(format_fact, self.first)]
        for update in self.updates:
            lines += ["% update", *(f"+{format_fact(fact)}" for fact in update.insert)]
            lines += [f"-{format_fact(fact)}" for fact in update.delete]
        return "\n".join(lines)


def choose_history(case: Case, seed: int, updates: int) -> History:
    """Choose first facts and updates around the facts of a case."""
    random = Random(seed)
    pool = list(case.facts)
    whole = case.features.integer or case.features.denominators == (1,)
    for fact in case.facts:
        pool.append(replace(fact, interval=move(fact.interval, random, whole=whole)))
        other = random.choice([other for other in case.facts if other.predicate == fact.predicate])
        pool.append(replace(fact, args=other.args))
    first = [fact for fact in pool if random.randrange(2)]
    standing, chosen = Counter(first), []
    for _ in range(updates):
        insert = [random.choice(pool) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        present = sorted((standing + Counter(insert)).elements(), key=str)
        delete = [
            random.choice(present if present and random.randrange(6) else pool)
            for _ in range(random.choice((0, 1, 1, 2, 4)))
        ]
        for fact in insert:
            standing[fact] += 1
        for fact in delete:
            standing[fact] -= 1
        chosen.append(Update(tuple(insert), tuple(delete)))
    return History(case, tuple(first), tuple(chosen), choose_options(case, random))


def choose_options(case: Case, random: Random) -> Options:
    """Choose a query, or a part of time, or neither."""
    heads = sorted(name for name in head_predicates(case.rules) if not name.startswith("$"))
    kind = random.choice(("all", "all", "query", "between", "until"))
    if kind == "query" and heads:
        return {"query": random.choice(heads)}
    if kind == "between":
        return {"between": (Fraction(random.randint(-2, 3)), Fraction(random.randint(4, 12)))}
    return {"until": Fraction(random.randint(2, 9))} if kind == "until" else {}


def move(interval: Interval, random: Random, *, whole: bool) -> Interval:
    """Move an interval, or one of its ends; unless by `whole` units, sometimes to where the grid becomes finer."""
    by = Fraction(random.randint(-2, 2)) if whole or random.randrange(3) else Fraction(1, random.choice((2, 3, 4)))
    moved = replace(interval, lo=interval.lo + by, hi=interval.hi + by)
    longer = replace(interval, hi=interval.hi + abs(by))
    return moved if random.randrange(2) or (longer.lo == longer.hi and not longer.hi_closed) else longer


def examine_history(history: History, seen: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with a view that lives through a history; count what it did in `seen`."""
    case, options = history.case, history.options
    program, timeline = parse_case(case).program, case.features.timeline

    def compute(counter: Counter[Fact]) -> tl.Model:
        data = tl.Dataset.from_facts(fact for fact, count in counter.items() if count > 0)
        if "query" in options and options["query"] not in {r.predicate for r in data.relations.values()}:
            data.relations.setdefault(("Unrelated", 0), tl.Dataset.parse("Unrelated@0").relations["Unrelated", 0])
        return tl.materialise(program, data, timeline=timeline, **options)

    standing = Counter(history.first)
    try:
        view = tl.View(program, tl.Dataset.from_facts(history.first), timeline=timeline, **options)
    except tl.TidelogError as error:
        seen[type(error).__name__] += 1
        try:
            compute(standing)
        except tl.TidelogError as right:
            if str(right) != str(error):
                yield f"the first data should be refused with\n{right}\nnot with\n{error}"
            return
        yield f"the first data should not be refused: {error}"
        return
    before: tl.Model | None = compute(standing)
    if str(view.model()) != str(before):
        yield f"the first model should be\n{before}but is\n{view.model()}"
        return
    for number, update in enumerate(history.updates, 1):
        after = standing.copy()
        after.update(update.insert)
        after.subtract(update.delete)
        expected: tl.Model | tl.TidelogError
        try:
            expected = compute(after)
        except tl.TidelogError as error:
            expected = error
        old_text = str(view.model())
        try:
            change = view.update(tl.Dataset.from_facts(update.insert), tl.Dataset.from_facts(update.delete))
        except tl.TidelogError as error:
            seen[type(error).__name__] += 1
            if str(error) != str(expected):
                yield f"update {number} should give\n{expected}\nbut is refused: {error}"
            if str(view.model()) != old_text:
                yield f"update {number} was refused, but changed the model to\n{view.model()}"
            continue
        standing = after
        seen["recomputed" if change.recomputed else "incremental"] += 1
        if isinstance(expected, tl.TidelogError):
            # The constants that are touched may be decided where all of them together are not.
            if not isinstance(expected, tl.errors.Undecided) or change.recomputed:
                yield f"update {number} should be refused: {expected}"
                return
            before = None
            continue
        seen["changes"] += bool(change)
        seen["changes that repeat"] += bool(change.added.repeats or change.removed.repeats)
        if Counter(change.unmatched) != -standing:
            yield f"update {number}: {-standing} wait, not\n{change.unmatched}"
        if str(view.model()) != str(expected):
            yield f"update {number} should give\n{expected}but gives\n{view.model()}"
            return
        if before is not None:
            complaint = next(find_change_complaints(history, before, expected, change), None)
            if complaint:
                yield f"update {number}, change\n{change}{complaint}"
                return
        before = expected


def find_change_complaints(
    history: History, before: tl.Model, after: tl.Model, change: tl.types.Change
) -> Iterator[str]:
    """Yield where a change is not the difference in truth, or is not coalesced."""
    case, integer = history.case, history.case.features.integer
    old, new, added, removed = (
        Claim(tuple(model), tuple(model.repeats)) for model in (before, after, change.added, change.removed)
    )
    facts = [fact for update in history.updates for fact in (*update.insert, *update.delete)]
    facts += [*history.first, *old.facts, *new.facts, *added.facts, *removed.facts]
    together = Claim((), (*old.repeats, *new.repeats, *added.repeats, *removed.repeats))
    scope = choose_scope(case.rules, facts, together, pad=9, integer=integer)
    truths = [claimed_truth(claim, scope).possible for claim in (old, new, added, removed)]
    for key in sorted({key for truth in truths for key in truth}, key=str):
        was, is_now, more, less = (truth.get(key, scope.constant(False)) for truth in truths)
        for cell in scope.cells:
            i = scope.index(cell)
            if (more[i], less[i]) != (is_now[i] and not was[i], was[i] and not is_now[i]):
                yield f"{format_key(key)} at {scope.interval(cell, cell)}: {was[i]} became {is_now[i]}"
                return
    denominator = 1 if integer else denominator_of(case.rules, facts)
    for claim in (added, removed):
        yield from find_form_complaints(claim, denominator, integer=integer)
