"""Encode a ground program over a range of times as numbers for clingo, past its grounder.

A literal is a number: that of an atom, or its negative under negation. `ClingoEncoding.at` says which number stands for
an atom at a time. An atom that no rule derives is `TRUE` or `FALSE`. Any other has a number of its own, with the time
folded into the range, or is `FALSE` where it cannot hold. Operators over ranges get auxiliary atoms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal_form import OperatorKind
from tidelog.timeline.grid import NEG_INF, POS_INF

#: The literals that hold and that fail in every model.
TRUE, FALSE = 1, -1
#: The head of a constraint.
NO_HEAD = 0

#: Farther away than any time in a range.
FAR = 1 << 40

#: Returns the literal for an atom at a time.
At = Callable[[int, int], int]


class ClingoEncoding:
    """The statements of a clingo program in aspif, which clingo reads without grounding; `text` has all of them.

    Beyond the times `oldest` and `newest` there is nothing new.
    """

    def __init__(self, at: At, oldest: int, newest: int, wrap_left: int, wrap_right: int) -> None:
        """Before `oldest`, a time is like the one `wrap_left` later; after `newest`, like the one `wrap_right` earlier.

        Where a wrap is 0, nothing is known on that side.
        """
        self.at = at
        self.oldest, self.newest = oldest, newest
        self.wrap_left, self.wrap_right = wrap_left, wrap_right
        self._atoms = TRUE
        self._statements = [f"1 0 1 {TRUE} 0 0"]
        self._defined: dict[tuple[object, ...], int] = {}
        #: For each atom the first time at which its literal has been asked for, and the literals from there on.
        self._rows: dict[int, tuple[int, list[int]]] = {}

    def text(self) -> str:
        """Return the program as clingo reads it."""
        return "\n".join(["asp 1 0 0", *self._statements, "0\n"])

    def create_atom(self) -> int:
        """Return an atom that is not used yet."""
        self._atoms += 1
        return self._atoms

    def add(self, head: int, body: Iterable[int]) -> None:
        """Add a rule over literals, or a constraint where the head is `NO_HEAD`."""
        statement = _build_rule(head, body)
        if statement:
            self._statements.append(statement)

    def add_choice(self, atom: int) -> None:
        """Leave open whether an atom holds."""
        self._statements.append(f"1 1 1 {atom} 0 0")

    def project(self, literals: Sequence[int]) -> None:
        """Let models count as different only if they differ on these literals."""
        self._statements.append(f"3 {len(literals)} {' '.join(map(str, literals))}")

    def show(self, literals: Mapping[int, Sequence[int]]) -> None:
        """Let models show each literal as the function `s` of its numbers."""
        for literal, numbers in literals.items():
            name = f"s({','.join(map(str, numbers))})"
            self._statements.append(f"4 {len(name)} {name} 1 {literal}")

    def minimise(self, costs: Mapping[int, int]) -> None:
        """Tell clingo what literals cost."""
        if costs:
            pairs = " ".join(f"{literal} {cost}" for literal, cost in costs.items())
            self._statements.append(f"2 0 {len(costs)} {pairs}")

    def add_rules(self, rules: Iterable[tuple[GroundRule, range]]) -> None:
        """Add the instances of rules at ranges of times, in order of time."""
        columns = [(times.start, self._list_instances(rule, times)) for rule, times in rules if times]
        if not columns:
            return
        first = min(start for start, _ in columns)
        last = max(start + len(column) for start, column in columns)
        aligned = [[""] * (start - first) + column + [""] * (last - start - len(column)) for start, column in columns]
        self._statements += filter(None, chain.from_iterable(zip(*aligned, strict=True)))

    def _list_instances(self, rule: GroundRule, times: range) -> list[str]:
        """Return the instance of a rule at each time; empty text where its body cannot hold."""
        body = []
        for literal in rule.body:
            row = self._encode_row(literal, times)
            body.append([-number for number in row] if literal.negated else row)
        heads = [] if rule.head < 0 else [self._find_row(rule.head, times)]
        instances = [""] * len(times)
        kept: Sequence[int] = range(len(times))
        if any(FALSE in row for row in body):
            kept = [i for i, literals in enumerate(zip(*body, strict=True)) if FALSE not in literals]
            heads, body = ([[row[i] for i in kept] for row in rows] for rows in (heads, body))
        body = [row for row in body if row.count(TRUE) < len(row)]
        form = f"1 0 {'1 %d' if heads else '0'} 0 {len(body)}{' %d' * len(body)}"
        if not heads and not body:
            statements: Iterable[str] = [form] * len(kept)
        elif any(TRUE in row for row in body):
            rows = heads or [[NO_HEAD] * len(kept)]
            statements = [_build_rule(head, literals) for head, *literals in zip(*rows, *body, strict=True)]
        else:
            statements = [form % numbers for numbers in zip(*heads, *body, strict=True)]
        for i, statement in zip(kept, statements, strict=True):
            instances[i] = statement
        return instances

    def _encode_row(self, literal: GroundLiteral, times: range) -> list[int]:
        """Return a literal, its negation aside, at each of the times."""
        if literal.kind in (OperatorKind.DIAMOND, OperatorKind.BOX) and literal.lo == literal.hi:
            return self._find_row(literal.atom, range(times.start - literal.lo, times.stop - literal.lo))
        return [self.encode_literal(literal, time) for time in times]

    def _find_row(self, atom: int, times: range) -> list[int]:
        """Return an atom at each of the times."""
        start, row = self._rows.get(atom, (times.start, []))
        if times.start < start or times.stop > start + len(row):
            before = [self.at(atom, time) for time in range(times.start, start)]
            row = before + row + [self.at(atom, time) for time in range(start + len(row), times.stop)]
            start = min(start, times.start)
            self._rows[atom] = start, row
        return row[times.start - start : times.stop - start]

    def encode_literal(self, literal: GroundLiteral, time: int) -> int:
        """Return one atom that means the literal, its negation aside."""
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

    def _any(self, literals: Sequence[int]) -> int:
        """Return an atom that holds if one of the literals does."""
        kept = _simplify(literals, neutral=FALSE, decisive=TRUE)
        return kept[0] if len(kept) == 1 else self._define_atom(("any", *kept), [[literal] for literal in kept])

    def _all(self, literals: Sequence[int]) -> int:
        """Return an atom that holds if all of the literals do."""
        kept = _simplify(literals, neutral=TRUE, decisive=FALSE)
        return kept[0] if len(kept) == 1 else self._define_atom(("all", *kept), [kept])

    def _define_atom(self, key: tuple[object, ...], bodies: Sequence[Sequence[int]]) -> int:
        atom = self._defined.get(key)
        if atom is None:
            atom = self._defined[key] = self.create_atom()
            for body in bodies:
                self.add(atom, body)
        return atom

    def _chain(
        self,
        key: tuple[object, ...],
        time: int,
        step: int,
        beyond: int | None,
        define: Callable[[int, int], list[list[int]]],
    ) -> int:
        """Return the atom of a chain at a time: each is defined by the next one in the direction of `step`.

        At the end of the range the chain goes round the part that repeats. Where nothing is known there, the last atom
        is `beyond` if that is a truth value, and a choice otherwise.
        """
        period, end = self._side(step)
        time = self._wrap(time, step, end, period)
        atom = self._defined.get((*key, time))
        if atom is not None:
            return atom
        todo = []
        while (*key, time) not in self._defined:
            self._defined[(*key, time)] = self.create_atom()
            todo.append(time)
            if time == end and not period:
                break
            time = self._wrap(time + step, step, end, period)
        for at in todo:
            atom = self._defined[(*key, at)]
            if at == end and not period:
                if beyond is None or beyond not in (TRUE, FALSE):
                    self.add_choice(atom)
                    continue
                before = beyond
            else:
                before = self._defined[(*key, self._wrap(at + step, step, end, period))]
            for body in define(at, before):
                self.add(atom, body)
        return self._defined[(*key, todo[0])]

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

    def _ever(self, atom: int, time: int, step: int) -> int:
        """Return an atom that says that `atom` holds at some time, in the direction of `step`."""
        beyond = self._beyond(atom, step)
        return self._chain(("ever", atom, step), time, step, beyond, lambda t, before: [[self.at(atom, t)], [before]])

    def _beyond(self, atom: int, step: int) -> int:
        """Return what an atom is beyond the end of the range, where it is the same at all times."""
        return self.at(atom, self.oldest - FAR if step < 0 else self.newest + FAR)

    def _unbroken(self, right: int, left: int, time: int, step: int) -> int:
        """Return an atom that says that `right` holds at some earlier time, and `left` at all times between."""
        return self._chain(
            ("unbroken", right, left, step),
            time,
            step,
            FALSE if self._beyond(right, step) == FALSE else None,
            lambda t, before: [[self.at(right, t + step)], [before, self.at(left, t + step)]],
        )

    def _always(self, atom: int, time: int, step: int) -> int:
        """Return an atom that says that `atom` holds at every time: up to the end, and in the repeating part."""
        period, end = self._side(step)
        if not period:
            beyond = self._beyond(atom, step)
            return self._chain(
                ("always", atom, step), time, step, beyond, lambda t, before: [[self.at(atom, t), before]]
            )
        loop = [self.at(atom, end - step * k) for k in range(period)]
        literals = (
            [*loop, *(self.at(atom, t) for t in range(time, end + step, step))] if (end - time) * step >= 0 else loop
        )
        return self._all(literals)


def _build_rule(head: int, body: Iterable[int]) -> str:
    """Return a rule in aspif; empty text where its body cannot hold."""
    literals = [literal for literal in body if literal != TRUE]
    if FALSE in literals:
        return ""
    numbers = "".join([f" {literal}" for literal in literals])
    return f"1 0 {'0' if head == NO_HEAD else f'1 {head}'} 0 {len(literals)}{numbers}"


def _simplify(literals: Sequence[int], *, neutral: int, decisive: int) -> list[int]:
    """Return the distinct operands of a conjunction or disjunction, in order; at least one."""
    kept = sorted(set(literals) - {neutral})
    return [decisive] if decisive in kept else kept or [neutral]
