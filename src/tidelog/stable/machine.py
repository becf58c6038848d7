"""One component of a ground program, slice by slice.

A window is what a component remembers: for each atom which of the last time points it held at (an integer whose bit
d - 1 says whether it held d ago), and one flag for each operator without an end. Over a window and the atoms given at
the next time point, the rules become a propositional program, whose stable models are the next slices.

Components that are alike share one machine, and what it has found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidelog.stable.grounding import Component
from tidelog.stable.normal import Kind
from tidelog.stable.slices import Residual, Slices
from tidelog.timeline.grid import POS_INF

#: How many steps a machine remembers.
_MOST_MEMORIES = 1 << 18

#: The history of each atom that is looked back at, and the flags.
Window = tuple[int, ...]

#: A next window and the slice that leads to it: a bit for each atom.
Step = tuple[Window, int]

#: A rule of a component with local numbers of atoms.
LocalLiteral = tuple[Kind, int, int, int, bool, int]
LocalRule = tuple[int, int, tuple[LocalLiteral, ...]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a component is but for the names of its atoms: how many are derived, how many there are, the rules."""

    derived: int
    atoms: int
    rules: tuple[LocalRule, ...]
    #: What else has to be remembered: operators over atoms, with their ranges.
    kept: tuple[tuple[Kind, int, int, int], ...] = ()


def shape_of(component: Component, kept: Callable[[int], Iterable[tuple[Kind, int, int]]] = lambda atom: ()) -> Shape:
    """`kept` names the operators for whose sake an atom is remembered, whether or not a rule has them now."""
    local = {atom: i for i, atom in enumerate((*component.derived, *component.read))}
    rules = tuple(
        (
            rule.rule,
            local.get(rule.head, -1),
            tuple((b.kind, local[b.atom], b.lo, b.hi, b.negated, local.get(b.left, -1)) for b in rule.body),
        )
        for rule in component.rules
    )
    more = tuple((kind, i, lo, hi) for atom, i in local.items() for kind, lo, hi in kept(atom))
    return Shape(len(component.derived), len(local), rules, more)


@dataclass(frozen=True, slots=True)
class Flag:
    """What is kept of the time before the window: whether the atom held at some time (Diamond), at every time (Box), or
    at some time since which `left` held, at least `distance` ago."""

    kind: Kind
    atom: int
    distance: int
    left: int


@dataclass(frozen=True, slots=True)
class _Check:
    """The part of a literal that the window decides: bits of a history, a flag, or a bounded Since."""

    kind: Kind
    atom: int
    mask: int
    flag: int
    left: int
    first: int


#: A literal inside of a rule: its check, whether it is a box, whether it is negated, and the bit of its atom if the
#: present slice counts, too.
_Part = tuple[int, bool, bool, int]


class Machine:
    """The steps of a component from window to window; `note` hears of every window that is looked at."""

    def __init__(self, shape: Shape, note: Callable[[int], None]) -> None:
        self.shape = shape
        self.note = note
        retention = [0] * shape.atoms
        self.flags: list[Flag] = []
        self._checks: list[_Check] = []
        self._numbers: dict[tuple[Kind, int, int, int, int], int] = {}
        #: Flags of boxes that some rule needs to be true.
        self.wanted_boxes = 0
        self._rules: list[tuple[int, tuple[_Part, ...]]] = []
        for _, head, body in shape.rules:
            parts = []
            for kind, atom, lo, hi, negated, left in body:
                number = self._check(kind, atom, lo, hi, left, retention)
                current = 1 << atom if lo == 0 and kind is not Kind.SINCE else 0
                parts.append((number, kind is Kind.BOX, negated, current))
                flag = self._checks[number].flag
                if kind is Kind.BOX and flag and not negated:
                    self.wanted_boxes |= flag
            self._rules.append((head, tuple(parts)))
        for kind, atom, lo, hi in shape.kept:
            self._check(kind, atom, lo, hi, -1, retention)
        self.slots = [atom for atom in range(shape.atoms) if retention[atom]]
        self.retention = retention
        # Windows of thousands of bits count as several, since it is memory that is bounded.
        self._weight = 1 + sum(retention) // 256
        self.masks = [(1 << retention[atom]) - 1 for atom in self.slots]
        self._slot = {atom: i for i, atom in enumerate(self.slots)}
        self._memo: dict[tuple[Window, int], tuple[Step, ...]] = {}
        self._slices = Slices(note)

    def _check(self, kind: Kind, atom: int, lo: int, hi: int, left: int, retention: list[int]) -> int:
        key = kind, atom, lo, hi, left
        if key in self._numbers:
            return self._numbers[key]
        first = max(lo, 1)
        flag = mask = 0
        if hi == POS_INF:
            flag = 1 << len(self.flags)
            self.flags.append(Flag(kind, atom, first, left))
            retention[atom] = max(retention[atom], first)
            if kind is Kind.SINCE:
                retention[left] = max(retention[left], first - 1, 1)
        elif hi >= first:
            mask = ((1 << (hi - first + 1)) - 1) << (first - 1)
            retention[atom] = max(retention[atom], hi)
            if kind is Kind.SINCE:
                retention[left] = max(retention[left], hi - 1)
        self._numbers[key] = len(self._checks)
        self._checks.append(_Check(kind, atom, mask, flag, left, first))
        return self._numbers[key]

    # Windows

    def window(self, histories: Iterable[int], flags: int) -> Window:
        """The window with these histories, one a slot."""
        return (*histories, flags)

    def constant(self, held: int) -> Window:
        """The window where the atoms of `held` have held since ever, and no other at any time."""
        histories = [mask if held >> atom & 1 else 0 for atom, mask in zip(self.slots, self.masks, strict=True)]
        flags = 0
        for i, flag in enumerate(self.flags):
            if held >> flag.atom & 1 and (flag.kind is not Kind.SINCE or flag.distance == 1 or held >> flag.left & 1):
                flags |= 1 << i
        return (*histories, flags)

    def after(self, window: Window, slice: int, boxes: int | None = None) -> Window:
        """The window one step on. `boxes` fixes the flags of boxes instead of following the slices."""
        histories = [(window[i] << 1 | slice >> atom & 1) & self.masks[i] for i, atom in enumerate(self.slots)]
        if not self.flags:
            return (*histories, 0)
        before, flags = window[-1], 0
        slot = self._slot
        for i, flag in enumerate(self.flags):
            bit = 1 << i
            held = histories[slot[flag.atom]] >> (flag.distance - 1) & 1
            if flag.kind is Kind.DIAMOND:
                on = held or before & bit
            elif flag.kind is Kind.BOX:
                on = (boxes & bit) if boxes is not None else held and before & bit
            else:
                left = histories[slot[flag.left]]
                between = (1 << (flag.distance - 1)) - 1
                on = (held and left & between == between) or (before & bit and left & 1)
            if on:
                flags |= bit
        return (*histories, flags)

    def _past(self, window: Window) -> list[bool]:
        """Which checks hold in a window."""
        flags = window[-1]
        slot = self._slot
        found = []
        for check in self._checks:
            if check.flag:
                found.append(bool(flags & check.flag))
            elif check.kind is Kind.SINCE:
                left = ~window[slot[check.left]] if check.left in slot else -1
                run = (left & -left).bit_length()  # the points right before now at which `left` held, and one more
                history = window[slot[check.atom]]
                found.append(bool(history & check.mask & ((1 << run) - 1)))
            elif not check.mask:
                found.append(check.kind is Kind.BOX)
            else:
                seen = window[slot[check.atom]] & check.mask
                found.append(seen == check.mask if check.kind is Kind.BOX else bool(seen))
        return found

    # Steps

    def steps(self, window: Window, given: int) -> tuple[Step, ...]:
        """The next slices over a window, where the atoms of `given` are facts, and the windows that they lead to."""
        key = window, given
        known = self._memo.get(key)
        if known is None:
            slices = self._slices.solve(self._residual(window), given)
            self.note(self._weight * max(1, len(slices)))
            known = tuple((self.after(window, slice), slice) for slice in slices)
            if len(self._memo) * self._weight >= _MOST_MEMORIES:
                self._memo.clear()
            self._memo[key] = known
        return known

    def violated(self, window: Window, given: int) -> list[int]:
        """Where there is no next slice: the constraints, by number of rule, that some slice without them violates."""
        residual = self._residual(window)
        slices = self._slices.solve([rule for rule in residual if rule.head >= 0], given)
        return [r.number for r in residual if r.head < 0 and any(r.pos & ~s == 0 and not r.neg & s for s in slices)]

    def _residual(self, window: Window) -> list[Residual]:
        """What is left of the rules once the window has decided what it can."""
        past = self._past(window)
        found = []
        for number, (head, parts) in enumerate(self._rules):
            pos = neg = 0
            for check, box, negated, current in parts:
                if past[check]:
                    if box:
                        if negated:
                            if not current:
                                break
                            neg |= current
                        else:
                            pos |= current
                    elif negated:
                        break
                elif box:
                    if not negated:
                        break
                elif negated:
                    neg |= current
                else:
                    if not current:
                        break
                    pos |= current
            else:
                found.append(Residual(number, head, pos, neg))
        return found

    def founded(self, there: Window, slice: int, here: Window, given: int) -> int:
        """The least slice over the window `here`, with negation read in the window `there` and in its next slice."""
        there_past, here_past = self._past(there), self._past(here)
        rules = []
        for number, (head, parts) in enumerate(self._rules):
            if head < 0:
                continue
            pos = 0
            for check, box, negated, current in parts:
                if negated:
                    if box:
                        holds = there_past[check] and (not current or bool(slice & current))
                    else:
                        holds = there_past[check] or bool(slice & current)
                    if holds:
                        break
                elif box:
                    if not here_past[check]:
                        break
                    pos |= current
                elif not here_past[check]:
                    if not current:
                        break
                    pos |= current
            else:
                rules.append(Residual(number, head, pos, 0))
        return self._slices.least(rules, given)
