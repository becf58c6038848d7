"""Encode a ground program over a range of times as text for clingo.

`ClingoEncoding.at` says how the text names an atom at a time. An atom that no rule derives is `TRUE` or `FALSE`. Any
other is `s(atom,time)`, with the time folded into the range, or `FALSE` where it cannot hold. Operators over ranges get
auxiliary atoms `x(number)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal_form import OperatorKind
from tidelog.timeline.grid import NEG_INF, POS_INF

TRUE, FALSE = "#true", "#false"

#: Farther away than any time in a range.
FAR = 1 << 40

#: Returns the text for an atom at a time.
At = Callable[[int, int], str]


class ClingoEncoding:
    """The lines of a clingo program; beyond the times `oldest` and `newest` there is nothing new."""

    def __init__(self, at: At, oldest: int, newest: int, wrap_left: int, wrap_right: int) -> None:
        """Before `oldest`, a time is like the one `wrap_left` later; after `newest`, like the one `wrap_right` earlier.

        Where a wrap is 0, nothing is known on that side.
        """
        self.at = at
        self.oldest, self.newest = oldest, newest
        self.wrap_left, self.wrap_right = wrap_left, wrap_right
        self.lines: list[str] = []
        self._names: dict[tuple[object, ...], str] = {}

    def add_rule(self, rule: GroundRule, time: int, head: str) -> None:
        """Add an instance of a rule at a time; `head` is empty for a constraint."""
        body = []
        for literal in rule.body:
            text = self.encode_literal(literal, time)
            if literal.negated:
                text = TRUE if text == FALSE else FALSE if text == TRUE else f"not {text}"
            if text == FALSE:
                return
            if text != TRUE:
                body.append(text)
        self.lines.append(f"{head} :- {', '.join(body)}." if body else f"{head}." if head else ":- .")

    def encode_literal(self, literal: GroundLiteral, time: int) -> str:
        """Return one atom of the text that means the literal, its negation aside."""
        lo, hi = literal.lo, literal.hi
        if literal.kind in (OperatorKind.DIAMOND, OperatorKind.BOX):
            if lo == hi:
                return self.at(literal.atom, time - lo)
            is_diamond = literal.kind is OperatorKind.DIAMOND
            combine = self._any if is_diamond else self._all
            without_end = self._ever if is_diamond else self._always
            if lo == NEG_INF and hi == POS_INF:
                return combine([without_end(literal.atom, time, -1), without_end(literal.atom, time, 1)])
            if hi == POS_INF:
                return without_end(literal.atom, time - lo, -1)
            if lo == NEG_INF:
                return without_end(literal.atom, time - hi, 1)
            return combine([self.at(literal.atom, t) for t in range(time - hi, time - lo + 1)])
        step = -1 if literal.kind is OperatorKind.SINCE else 1
        if hi != POS_INF:
            alternatives = []
            for distance in range(lo, hi + 1):
                between = [self.at(literal.left, time + step * d) for d in range(1, distance)]
                alternatives.append(self._all([self.at(literal.atom, time + step * distance), *between]))
            return self._any(alternatives)
        between = [self.at(literal.left, time + step * d) for d in range(1, lo)]
        return self._all([self._unbroken(literal.atom, literal.left, time + step * (lo - 1), step), *between])

    def _any(self, texts: Sequence[str]) -> str:
        """Return an atom that holds if one of the texts does."""
        kept = _simplify(texts, neutral=FALSE, decisive=TRUE)
        return kept[0] if len(kept) == 1 else self._define_atom(("any", *kept), [[text] for text in kept])

    def _all(self, texts: Sequence[str]) -> str:
        """Return an atom that holds if all of the texts do."""
        kept = _simplify(texts, neutral=TRUE, decisive=FALSE)
        return kept[0] if len(kept) == 1 else self._define_atom(("all", *kept), [kept])

    def _define_atom(self, key: tuple[object, ...], bodies: Sequence[Sequence[str]]) -> str:
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"x({len(self._names)})"
            self.lines += [f"{name} :- {', '.join(body)}." for body in bodies]
        return name

    def _chain(
        self,
        key: tuple[object, ...],
        time: int,
        step: int,
        beyond: str,
        define: Callable[[int, str], list[list[str]]],
    ) -> str:
        """Return the atom of a chain at a time: each is defined by the next one in the direction of `step`.

        At the end of the range the chain goes round the part that repeats. Where nothing is known there, the last atom
        is `beyond` if that is a truth value, and a choice otherwise.
        """
        period, end = self._side(step)
        time = self._wrap(time, step, end, period)
        name = self._names.get((*key, time))
        if name is not None:
            return name
        todo = []
        while (*key, time) not in self._names:
            self._names[(*key, time)] = f"x({len(self._names)})"
            todo.append(time)
            if time == end and not period:
                break
            time = self._wrap(time + step, step, end, period)
        for at in todo:
            name = self._names[(*key, at)]
            if at == end and not period:
                if beyond not in (TRUE, FALSE):
                    self.lines.append(f"{{ {name} }}.")
                    continue
                before = beyond
            else:
                before = self._names[(*key, self._wrap(at + step, step, end, period))]
            for body in define(at, before):
                texts = [text for text in body if text != TRUE]
                if FALSE not in texts:
                    self.lines.append(f"{name} :- {', '.join(texts)}." if texts else f"{name}.")
        return self._names[(*key, todo[0])]

    def _side(self, step: int) -> tuple[int, int]:
        """Return the period and the end of the range in the direction of `step`."""
        return (self.wrap_left, self.oldest) if step < 0 else (self.wrap_right, self.newest)

    def _wrap(self, time: int, step: int, end: int, period: int) -> int:
        """Return a time or, if it is beyond the end, the time that it is like."""
        beyond = (end - time) * -step
        if beyond <= 0:
            return time
        if not period:
            return end
        return end - step * (period - 1 - (beyond - 1) % period)

    def _ever(self, atom: int, time: int, step: int) -> str:
        """Return an atom that says that `atom` holds at some time, in the direction of `step`."""
        beyond = self._beyond(atom, step)
        return self._chain(("ever", atom, step), time, step, beyond, lambda t, before: [[self.at(atom, t)], [before]])

    def _beyond(self, atom: int, step: int) -> str:
        """Return what an atom is beyond the end of the range, where it is the same at all times."""
        return self.at(atom, self.oldest - FAR if step < 0 else self.newest + FAR)

    def _unbroken(self, right: int, left: int, time: int, step: int) -> str:
        """Return an atom that says that `right` holds at some earlier time, and `left` at all times between."""
        return self._chain(
            ("unbroken", right, left, step),
            time,
            step,
            FALSE if self._beyond(right, step) == FALSE else "",
            lambda t, before: [[self.at(right, t + step)], [before, self.at(left, t + step)]],
        )

    def _always(self, atom: int, time: int, step: int) -> str:
        """Return an atom that says that `atom` holds at every time: up to the end, and in the repeating part."""
        period, end = self._side(step)
        if not period:
            beyond = self._beyond(atom, step)
            return self._chain(
                ("always", atom, step), time, step, beyond, lambda t, before: [[self.at(atom, t), before]]
            )
        loop = [self.at(atom, end - step * k) for k in range(period)]
        texts = (
            [*loop, *(self.at(atom, t) for t in range(time, end + step, step))] if (end - time) * step >= 0 else loop
        )
        return self._all(texts)


def _simplify(texts: Sequence[str], *, neutral: str, decisive: str) -> list[str]:
    """Return the distinct operands of a conjunction or disjunction, in order; at least one."""
    kept = sorted(set(texts) - {neutral})
    return [decisive] if decisive in kept else kept or [neutral]
