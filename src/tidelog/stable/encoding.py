"""A ground program over a stretch of time as text for clingo.

`Stretch.at` says what an atom at a time is in the text: a fact or not if rules do not derive it; else `s(atom,time)`
with the time folded into the stretch, or nothing where it cannot hold. Operators over ranges get atoms of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal import Kind
from tidelog.timeline.grid import NEG_INF, POS_INF

TRUE, FALSE = "#true", "#false"

#: Farther away than anything in a stretch.
FAR = 1 << 40

#: What an atom at a time is in the text.
At = Callable[[int, int], str]


class Encoding:
    """Lines of a clingo program. `oldest` and `newest` are times beyond which nothing new is seen."""

    def __init__(self, at: At, oldest: int, newest: int, wrap_left: int, wrap_right: int) -> None:
        """Before `oldest`, what lies `wrap_left` later repeats; after `newest`, what lies `wrap_right` earlier. With 0,
        nothing is known there."""
        self.at = at
        self.oldest, self.newest = oldest, newest
        self.wrap_left, self.wrap_right = wrap_left, wrap_right
        self.lines: list[str] = []
        self._names: dict[tuple[object, ...], str] = {}

    def rule(self, rule: GroundRule, time: int, head: str) -> None:
        """An instance at a time; `head` is empty for a constraint."""
        body = []
        for literal in rule.body:
            text = self.literal(literal, time)
            if literal.negated:
                text = {TRUE: FALSE, FALSE: TRUE}.get(text, f"not {text}")
            if text == FALSE:
                return
            if text != TRUE:
                body.append(text)
        self.lines.append(f"{head} :- {', '.join(body)}." if body else f"{head}." if head else ":- .")

    def literal(self, literal: GroundLiteral, time: int) -> str:
        """One atom of the text that means the literal, its negation aside."""
        lo, hi = literal.lo, literal.hi
        if literal.kind is Kind.DIAMOND:
            if lo == NEG_INF and hi == POS_INF:
                return self._any([self._ever(literal.atom, time, -1), self._ever(literal.atom, time, 1)])
            if hi == POS_INF:
                return self._ever(literal.atom, time - lo, -1)
            if lo == NEG_INF:
                return self._ever(literal.atom, time - hi, 1)
            return self._any([self.at(literal.atom, t) for t in range(time - hi, time - lo + 1)])
        if literal.kind is Kind.BOX:
            if lo == NEG_INF and hi == POS_INF:
                return self._all([self._always(literal.atom, time, -1), self._always(literal.atom, time, 1)])
            if hi == POS_INF:
                return self._always(literal.atom, time - lo, -1)
            if lo == NEG_INF:
                return self._always(literal.atom, time - hi, 1)
            return self._all([self.at(literal.atom, t) for t in range(time - hi, time - lo + 1)])
        step = -1 if literal.kind is Kind.SINCE else 1
        if hi != POS_INF:
            ways = []
            for distance in range(lo, hi + 1):
                between = [self.at(literal.left, time + step * d) for d in range(1, distance)]
                ways.append(self._all([self.at(literal.atom, time + step * distance), *between]))
            return self._any(ways)
        between = [self.at(literal.left, time + step * d) for d in range(1, lo)]
        return self._all([self._unbroken(literal.atom, literal.left, time + step * (lo - 1), step), *between])

    def _any(self, texts: Sequence[str]) -> str:
        texts = sorted({text for text in texts if text != FALSE})
        if TRUE in texts:
            return TRUE
        if len(texts) <= 1:
            return texts[0] if texts else FALSE
        return self._named(("any", *texts), [[text] for text in texts])

    def _all(self, texts: Sequence[str]) -> str:
        texts = sorted({text for text in texts if text != TRUE})
        if FALSE in texts:
            return FALSE
        if len(texts) <= 1:
            return texts[0] if texts else TRUE
        return self._named(("all", *texts), [texts])

    def _named(self, key: tuple[object, ...], bodies: Sequence[Sequence[str]]) -> str:
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
        """An atom for each time that is defined by the one before it, in the direction of `step`; at the end of the
        stretch round the part that repeats. If nothing is known there, it is what is `beyond`, or anything."""
        period = self.wrap_left if step < 0 else self.wrap_right
        end = self.oldest if step < 0 else self.newest
        time = self._round(time, step, end, period)
        name = self._names.get((*key, time))
        if name is not None:
            return name
        todo = []
        while (*key, time) not in self._names:
            self._names[(*key, time)] = f"x({len(self._names)})"
            todo.append(time)
            if time == end and not period:
                break
            time = self._round(time + step, step, end, period)
        for at in todo:
            mine = self._names[(*key, at)]
            if at == end and not period:
                if beyond not in (TRUE, FALSE):
                    self.lines.append(f"{{ {mine} }}.")
                    continue
                before = beyond
            else:
                before = self._names[(*key, self._round(at + step, step, end, period))]
            for body in define(at, before):
                texts = [text for text in body if text != TRUE]
                if FALSE not in texts:
                    self.lines.append(f"{mine} :- {', '.join(texts)}." if texts else f"{mine}.")
        return self._names[(*key, todo[0])]

    def _round(self, time: int, step: int, end: int, period: int) -> int:
        """A time, or the one that it is like, not beyond the end."""
        beyond = (end - time) * -step
        if beyond <= 0:
            return time
        if not period:
            return end
        return end - step * (period - 1 - (beyond - 1) % period)

    def _ever(self, atom: int, time: int, step: int) -> str:
        beyond = self._beyond(atom, step)
        return self._chain(("ever", atom, step), time, step, beyond, lambda t, before: [[self.at(atom, t)], [before]])

    def _beyond(self, atom: int, step: int) -> str:
        """What an atom is beyond the end of the stretch, where it is the same at all times."""
        return self.at(atom, self.oldest - FAR if step < 0 else self.newest + FAR)

    def _unbroken(self, right: int, left: int, time: int, step: int) -> str:
        """`right` at some time before, and `left` at all times between."""
        return self._chain(
            ("unbroken", right, left, step),
            time,
            step,
            FALSE if self._beyond(right, step) == FALSE else "",
            lambda t, before: [[self.at(right, t + step)], [before, self.at(left, t + step)]],
        )

    def _always(self, atom: int, time: int, step: int) -> str:
        """At all times: up to the end one by one, and beyond it all round."""
        period = self.wrap_left if step < 0 else self.wrap_right
        end = self.oldest if step < 0 else self.newest
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
