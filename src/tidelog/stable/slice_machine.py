"""One component of a ground program, slice by slice.

A slice is the set of atoms that hold at one time point. A window is what a component remembers: for each atom, at which
of the last time points it held (an integer whose bit d - 1 says whether it held d ago), and one flag for each operator
with an infinite range. Given a window and the facts of the next time point, the rules become a propositional program,
and its stable models are the possible next slices.

Components of the same shape share one machine, along with the steps that it has computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tidelog.stable.grounding import GroundComponent
from tidelog.stable.normal_form import OperatorKind
from tidelog.stable.slice_models import ResidualRule, SliceSolver
from tidelog.timeline.grid import POS_INF

#: Number of windows whose steps a machine caches.
_MOST_CACHED = 1 << 18

#: The recent history of each atom that some operator reads, and the flags.
Window = tuple[int, ...]
Windows = frozenset[Window]

#: A next window and the slice that leads to it, with one bit per atom.
SliceStep = tuple[Window, int]

#: A literal: kind, atom, lo, hi, negated, left.
LocalLiteral = tuple[OperatorKind, int, int, int, bool, int]
#: A rule of a component, with numbers of atoms local to it: number of the rule, head, body.
LocalRule = tuple[int, int, tuple[LocalLiteral, ...]]


@dataclass(frozen=True, slots=True)
class ComponentShape:
    """A component without the names of its atoms: how many are derived, how many there are, and the rules."""

    derived: int
    atoms: int
    rules: tuple[LocalRule, ...]
    #: Operators over atoms, with their ranges, whose operands must be remembered in addition.
    kept: tuple[tuple[OperatorKind, int, int, int], ...] = ()


def compute_shape(
    component: GroundComponent, kept: Callable[[int], Iterable[tuple[OperatorKind, int, int]]] = lambda atom: ()
) -> ComponentShape:
    """Return the shape of a component.

    `kept` names the operators for which an atom must be remembered, whether or not a rule of the component has them.
    """
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
    return ComponentShape(len(component.derived), len(local), rules, more)


@dataclass(frozen=True, slots=True)
class PastFlag:
    """The part of a window about all times at least `distance` ago.

    The flag says whether the atom held at some time (Diamond), at every time (Box), or at some time since which `left`
    has held (Since).
    """

    kind: OperatorKind
    atom: int
    distance: int
    left: int


@dataclass(frozen=True, slots=True)
class _PastCheck:
    """The condition of a literal that the window decides: bits of a history, a flag, or a bounded Since."""

    kind: OperatorKind
    atom: int
    mask: int
    flag: int
    left: int
    first: int


#: A literal inside a rule: the number of its check, whether it is a box, whether it is negated, and the bit of its atom
#: if the literal also reads the current slice.
_MachineLiteral = tuple[int, bool, bool, int]


class SliceMachine:
    """Computes the steps of a component from window to window.

    Reports every visited window to `count_windows`, and slices that are not the only ones to `count_choices`."""

    def __init__(
        self,
        shape: ComponentShape,
        count_windows: Callable[[int], None],
        count_choices: Callable[[int], None] = lambda choices: None,
    ) -> None:
        self.shape = shape
        self.count_windows, self._count_choices = count_windows, count_choices
        retention = [0] * shape.atoms
        self.flags: list[PastFlag] = []
        self._checks: list[_PastCheck] = []
        self._numbers: dict[tuple[OperatorKind, int, int, int, int], int] = {}
        #: Flags of boxes that some rule needs to be true.
        self.wanted_boxes = 0
        self._rules: list[tuple[int, tuple[_MachineLiteral, ...]]] = []
        for _, head, body in shape.rules:
            literals = []
            for kind, atom, lo, hi, negated, left in body:
                number = self._add_check(kind, atom, lo, hi, left, retention)
                current = 1 << atom if lo == 0 and kind is not OperatorKind.SINCE else 0
                literals.append((number, kind is OperatorKind.BOX, negated, current))
                flag = self._checks[number].flag
                if kind is OperatorKind.BOX and flag and not negated:
                    self.wanted_boxes |= flag
            self._rules.append((head, tuple(literals)))
        for kind, atom, lo, hi in shape.kept:
            self._add_check(kind, atom, lo, hi, -1, retention)
        self.slots = [atom for atom in range(shape.atoms) if retention[atom]]
        self.retention = retention
        # Windows of thousands of bits count as several, since the limit is there to bound memory.
        self._weight = 1 + sum(retention) // 256
        self.masks = [(1 << retention[atom]) - 1 for atom in self.slots]
        self._slot = {atom: i for i, atom in enumerate(self.slots)}
        self._cache: dict[tuple[Window, int], tuple[SliceStep, ...]] = {}
        self._solver = SliceSolver(count_windows, count_choices)

    def _add_check(self, kind: OperatorKind, atom: int, lo: int, hi: int, left: int, retention: list[int]) -> int:
        """Return the number of the check for an operator, which is added along with its retention if it is new."""
        key = kind, atom, lo, hi, left
        if key in self._numbers:
            return self._numbers[key]
        first = max(lo, 1)
        flag = mask = 0
        if hi == POS_INF:
            flag = 1 << len(self.flags)
            self.flags.append(PastFlag(kind, atom, first, left))
            retention[atom] = max(retention[atom], first)
            if kind is OperatorKind.SINCE:
                retention[left] = max(retention[left], first - 1, 1)
        elif hi >= first:
            mask = ((1 << (hi - first + 1)) - 1) << (first - 1)
            retention[atom] = max(retention[atom], hi)
            if kind is OperatorKind.SINCE:
                retention[left] = max(retention[left], hi - 1)
        self._numbers[key] = len(self._checks)
        self._checks.append(_PastCheck(kind, atom, mask, flag, left, first))
        return self._numbers[key]

    # Windows

    def constant_window(self, held: int) -> Window:
        """Return the window where the atoms of `held` have held from the beginning of time, and no others ever."""
        histories = [mask if held >> atom & 1 else 0 for atom, mask in zip(self.slots, self.masks, strict=True)]
        flags = 0
        for i, flag in enumerate(self.flags):
            if held >> flag.atom & 1 and (
                flag.kind is not OperatorKind.SINCE or flag.distance == 1 or held >> flag.left & 1
            ):
                flags |= 1 << i
        return (*histories, flags)

    def next_window(self, window: Window, slice: int, boxes: int | None = None) -> Window:
        """Return the window after a slice. `boxes` sets the flags of boxes instead of deriving them from the slice."""
        histories = [(window[i] << 1 | slice >> atom & 1) & self.masks[i] for i, atom in enumerate(self.slots)]
        if not self.flags:
            return (*histories, 0)
        before, flags = window[-1], 0
        slot = self._slot
        for i, flag in enumerate(self.flags):
            bit = 1 << i
            held = histories[slot[flag.atom]] >> (flag.distance - 1) & 1
            if flag.kind is OperatorKind.DIAMOND:
                on = held or before & bit
            elif flag.kind is OperatorKind.BOX:
                on = (boxes & bit) if boxes is not None else held and before & bit
            else:
                left = histories[slot[flag.left]]
                between = (1 << (flag.distance - 1)) - 1
                on = (held and left & between == between) or (before & bit and left & 1)
            if on:
                flags |= bit
        return (*histories, flags)

    def _evaluate_checks(self, window: Window) -> list[bool]:
        """Return for each check whether it holds in a window."""
        flags = window[-1]
        slot = self._slot
        results = []
        for check in self._checks:
            if check.flag:
                results.append(bool(flags & check.flag))
            elif check.kind is OperatorKind.SINCE:
                left = ~window[slot[check.left]] if check.left in slot else -1
                run = (left & -left).bit_length()  # 1 + the number of points right before now at which `left` held
                history = window[slot[check.atom]]
                results.append(bool(history & check.mask & ((1 << run) - 1)))
            elif not check.mask:
                results.append(check.kind is OperatorKind.BOX)
            else:
                seen = window[slot[check.atom]] & check.mask
                results.append(seen == check.mask if check.kind is OperatorKind.BOX else bool(seen))
        return results

    # Steps

    def find_steps(self, window: Window, given: int) -> tuple[SliceStep, ...]:
        """Return the possible next slices after a window, with the atoms of `given` as facts, and their windows."""
        key = window, given
        steps = self._cache.get(key)
        if steps is None:
            slices = self._solver.solve(self._build_residual(window), given)
            self.count_windows(self._weight * max(1, len(slices)))
            if len(slices) > 1:
                self._count_choices(len(slices))
            steps = tuple((self.next_window(window, slice), slice) for slice in slices)
            if len(self._cache) * self._weight >= _MOST_CACHED:
                self._cache.clear()
            self._cache[key] = steps
        return steps

    def find_violated(self, window: Window, given: int) -> list[int]:
        """Return the constraints, by number of rule, that exclude a next slice where there is none."""
        residual = self._build_residual(window)
        slices = self._solver.solve([rule for rule in residual if rule.head >= 0], given)
        return [r.number for r in residual if r.head < 0 and any(r.pos & ~s == 0 and not r.neg & s for s in slices)]

    def _build_residual(self, window: Window) -> list[ResidualRule]:
        """Return the rules without the conditions that the window has decided."""
        past = self._evaluate_checks(window)
        residual = []
        for number, (head, literals) in enumerate(self._rules):
            pos = neg = 0
            for check, box, negated, current in literals:
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
                residual.append(ResidualRule(number, head, pos, neg))
        return residual

    def compute_founded_slice(self, there: Window, slice: int, here: Window, given: int) -> int:
        """Return the least slice after the window `here`, with negation evaluated in the window `there` and its next
        slice (the worlds H and T of here-and-there logic)."""
        there_past, here_past = self._evaluate_checks(there), self._evaluate_checks(here)
        rules = []
        for number, (head, literals) in enumerate(self._rules):
            if head < 0:
                continue
            pos = 0
            for check, box, negated, current in literals:
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
                rules.append(ResidualRule(number, head, pos, 0))
        return self._solver.compute_least_model(rules, given)
