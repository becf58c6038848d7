"""Eternal pasts: what may have been going on since ever.

Before the data begins nothing changes from outside, so the past is a walk through a finite graph of windows that has no
beginning. Which of them are founded? Write T for such a walk, and H for what can be derived along it from nothing, with
negation read in T. T is founded if H, begun early enough, is T. If H is T at one window, it is T from there on.

So a strongly connected component of the graph has founded walks if, from one of its windows and with H empty, one can
walk inside of it to where H is T: from there one returns to the beginning, and goes round for ever.
`Diamondminus[a,inf)` and `Since[a,inf)` are flags that H has to earn like everything else, so that a flag without a
witness on the loop is not believed. A flag of `Boxminus[a,inf)` that is false needs a time on the loop at which its
operand is false.

A flag of `Boxminus[a,inf)` that is true, where a rule needs it so, has to be earned, too, but no finite walk does
that: it is true if its operand has been derived at all times, without the flag. That takes stages: in stage k the
first k flags are believed, and the operand of the next one must be derived at every time; in the last stage H must be
T. A walk without a beginning does so if it can be cut at infinitely many places such that what is derived from nothing
between one cut and the next is enough, from then on, to satisfy each stage up to the cut thereafter. Cuts that lead to
each other in a circle are such a walk, and if there is a walk, there is such a circle, since there are finitely many
windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeVar

from tidelog.analysis.components import strongly_connected
from tidelog.stable.encoding import FALSE, TRUE, Encoding
from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.limits import Limit
from tidelog.stable.machine import Machine, Step, Window
from tidelog.stable.normal import Kind
from tidelog.stable.slices import bits
from tidelog.stable.solver import control
from tidelog.timeline.grid import POS_INF

#: Windows over more bits than this are not all listed.
MOST_BITS = 16
#: Of those that are found by clingo, at most so many are looked at.
MOST_LATE_WINDOWS = 20_000

_Graph = dict[Window, tuple[Step, ...]]
#: What is derived in each stage.
_Stages = tuple[Window, ...]
_Node = TypeVar("_Node")


@dataclass(frozen=True, slots=True)
class Past:
    """The windows with which an eternal past may end; how each is reached; and the loop that each way begins with."""

    parents: dict[Window, tuple[Window, int] | None]
    loops: dict[Window, tuple[int, ...]]

    def history(self, window: Window) -> tuple[tuple[int, ...], list[int]]:
        """The slices of a loop that goes on for ever to the left, and those from there to the window."""
        slices = []
        while (step := self.parents[window]) is not None:
            window, slice = step
            slices.append(slice)
        return self.loops[window], slices[::-1]


def eternal(machine: Machine, held: int, possible: int, limit: Limit) -> Past:
    """The pasts where the atoms of `held` are facts at all times, and none but those of `possible` can hold."""
    graph = _graph(machine, held, possible, limit)
    loops: dict[Window, tuple[int, ...]] = {}
    for members in strongly_connected({w: [after for after, _ in steps] for w, steps in graph.items()}):
        loop = _Loop(machine, held, graph, frozenset(members), limit).founded()
        if loop is not None:
            loops[loop[0]] = loop[1]
    parents: dict[Window, tuple[Window, int] | None] = dict.fromkeys(loops)
    todo = deque(parents)
    while todo:
        window = todo.popleft()
        for after, slice in graph[window]:
            if after not in parents:
                parents[after] = window, slice
                todo.append(after)
    return Past(parents, loops)


def _graph(machine: Machine, held: int, possible: int, limit: Limit) -> _Graph:
    """The windows that have predecessors without end, with their steps."""
    windows = set(_windows(machine, held, possible, limit))
    while True:
        graph = {window: machine.steps(window, held) for window in windows}
        after = {step[0] for steps in graph.values() for step in steps}
        if after == windows:
            return graph
        windows = after


def _windows(machine: Machine, held: int, possible: int, limit: Limit) -> Iterator[Window]:
    always = machine.constant(held)
    free = possible & ~held
    choices: list[range | tuple[int, ...]] = []
    size = 0
    for i, atom in enumerate(machine.slots):
        if free >> atom & 1:
            choices.append(range(machine.masks[i] + 1))
            size += machine.retention[atom]
        else:
            choices.append((always[i],))
    flags: list[tuple[int, ...]] = []
    for i, flag in enumerate(machine.flags):
        open_left = flag.kind is Kind.SINCE and free >> flag.left & 1
        if free >> flag.atom & 1 or (open_left and possible >> flag.atom & 1):
            flags.append((0, 1 << i))
            size += 1
        else:
            flags.append((always[-1] & 1 << i,))
    if size > MOST_BITS:
        yield from _late_windows(machine, held, free, limit)
        return
    for histories in product(*choices):
        for some in product(*flags):
            yield (*histories, sum(some))


def _late_windows(machine: Machine, held: int, free: int, limit: Limit) -> Iterator[Window]:
    """The windows that come about after as many slices as a window has, whatever was before: found by clingo, where the
    windows that could be written down are too many."""
    length = max(machine.retention)
    end = 2 * length + 1

    def at(atom: int, time: int) -> str:
        if held >> atom & 1:
            return TRUE
        return f"s({atom},{time})" if free >> atom & 1 else FALSE

    text = Encoding(at, 1, end, 0, 0)
    text.lines += [f"{{ s({atom},1..{length}) }}." for atom in bits(free)]
    for number, head, body in machine.shape.rules:
        if head >= 0 and not free >> head & 1:
            continue
        rule = GroundRule(number, head, tuple(GroundLiteral(*literal) for literal in body))
        for time in range(length + 1, end):
            text.rule(rule, time, at(head, time) if head >= 0 else "")
    flags = [
        text.literal(GroundLiteral(flag.kind, flag.atom, flag.distance, POS_INF, False, flag.left), end)
        for flag in machine.flags
    ]
    text.lines += [f"flag({i}) :- {name}." for i, name in enumerate(flags) if name != FALSE]
    text.lines += [f"#project s({atom},{t}) : s({atom},{t})." for atom in bits(free) for t in range(length + 1, end)]
    solver = control(["--models=0", "--project=project"])
    solver.add("base", [], "\n".join([*text.lines, "#project flag/1.", "#show s/2.", "#show flag/1."]))
    solver.ground([("base", [])])
    with solver.solve(yield_=True) as handle:
        for number, model in enumerate(handle):
            limit.note(1)
            if number == MOST_LATE_WINDOWS:
                raise limit.exceeded(f"before the data more than {MOST_LATE_WINDOWS:,} windows are possible")
            found = {(s.name, *(a.number for a in s.arguments)) for s in model.symbols(shown=True)}
            histories = [
                mask
                if held >> atom & 1
                else sum(1 << d for d in range(machine.retention[atom]) if ("s", atom, end - 1 - d) in found)
                for atom, mask in zip(machine.slots, machine.masks, strict=True)
            ]
            yield (*histories, sum(1 << i for i in range(len(flags)) if ("flag", i) in found))


class _Loop:
    """A strongly connected component of the graph of windows."""

    def __init__(self, machine: Machine, held: int, graph: _Graph, members: frozenset[Window], limit: Limit) -> None:
        self.machine, self.held, self.limit = machine, held, limit
        self.steps = {w: [step for step in graph[w] if step[0] in members] for w in members}
        self.first = min(members)
        #: The flags of boxes do not change inside of a component.
        self.flags = self.first[-1]

    def founded(self) -> tuple[Window, tuple[int, ...]] | None:
        """A loop that founded walks may begin with: a window, and the slices from it back to it."""
        if not any(self.steps.values()) or not self._false_boxes_have_witnesses():
            return None
        boxes = [1 << i for i, flag in enumerate(self.machine.flags) if flag.kind is Kind.BOX]
        believed = sum(
            bit
            for bit in boxes
            if self.flags & bit and (not self.machine.wanted_boxes & bit or self.held >> self._operand(bit) & 1)
        )
        earned = [bit for bit in boxes if self.flags & bit and not believed & bit]
        for order in permutations(earned):
            stages = [believed]
            for bit in order:
                stages.append(stages[-1] | bit)
            found = self._staged(stages, [1 << self._operand(bit) for bit in order]) if order else self._plain(believed)
            if found is not None:
                return found
        return None

    def _operand(self, bit: int) -> int:
        return self.machine.flags[bit.bit_length() - 1].atom

    def _false_boxes_have_witnesses(self) -> bool:
        absent = 0
        for steps in self.steps.values():
            for _, slice in steps:
                absent |= ~slice
        return all(
            self.flags >> i & 1 or absent >> flag.atom & 1
            for i, flag in enumerate(self.machine.flags)
            if flag.kind is Kind.BOX
        )

    def _nothing(self, boxes: int) -> Window:
        return (*(0 for _ in self.machine.slots), boxes)

    def _derived(self, there: Window, slice: int, here: Window, boxes: int) -> tuple[Window, int]:
        least = self.machine.founded(there, slice, here, self.held)
        return self.machine.after(here, least, boxes), least

    def _plain(self, boxes: int) -> tuple[Window, tuple[int, ...]] | None:
        """No box has to be earned: walk until what is derived from nothing is all there is."""
        start = self.first, self._nothing(boxes)
        parents: dict[tuple[Window, Window], tuple[tuple[Window, Window], int]] = {}
        todo = deque([start])
        while todo:
            node = todo.popleft()
            there, here = node
            for after, slice in self.steps[there]:
                self.limit.note(1)
                reached = after, self._derived(there, slice, here, boxes)[0]
                if reached in parents:
                    continue
                parents[reached] = node, slice
                if reached[0] == reached[1]:
                    return self.first, (*_way(parents, start, reached), *self._back(after))
                todo.append(reached)
        return None

    def _back(self, window: Window) -> list[int]:
        """The slices of a shortest walk inside from a window to the first one."""
        parents: dict[Window, tuple[Window, int]] = {}
        todo = deque([window])
        while todo and self.first != window and self.first not in parents:
            at = todo.popleft()
            for after, slice in self.steps[at]:
                if after not in parents:
                    parents[after] = at, slice
                    todo.append(after)
        return _way(parents, window, self.first) if self.first != window else []

    def _staged(self, stages: list[int], operands: list[int]) -> tuple[Window, tuple[int, ...]] | None:
        """Cuts that lead to each other in a circle."""
        nothing = tuple(self._nothing(boxes) for boxes in stages)
        cuts: dict[tuple[Window, _Stages], dict[tuple[Window, _Stages], list[int]]] = {}
        todo: deque[tuple[Window, _Stages]] = deque()
        for window in self.steps:
            for cut, _ in self._cuts(window, None, nothing, stages, operands):
                if cut not in cuts:
                    cuts[cut] = {}
                    todo.append(cut)
        while todo:
            cut = todo.popleft()
            for after, way in self._cuts(cut[0], cut[1], nothing, stages, operands):
                if after not in cuts:
                    cuts[after] = {}
                    todo.append(after)
                cuts[cut].setdefault(after, way)
        for members in strongly_connected(cuts):
            first, inside = members[0], set(members)
            if len(members) == 1 and first not in cuts[first]:
                continue
            parents = {}
            queue = deque([first])
            while first not in parents:
                at = queue.popleft()
                for after, way in cuts[at].items():
                    if after in inside and after not in parents:
                        parents[after] = at, way
                        queue.append(after)
            circle: list[int] = []
            node = first
            while not circle or node != first:
                node, way = parents[node]
                circle[:0] = way
            return first[0], tuple(circle)
        return None

    def _cuts(
        self, window: Window, known: _Stages | None, nothing: _Stages, stages: list[int], operands: list[int]
    ) -> Iterator[tuple[tuple[Window, _Stages], list[int]]]:
        """Where one may cut next, walking from a cut at `window`, with the slices on the way there.

        `known` is what is derived at this cut; all stages are checked along the way. Without it, nothing is checked.
        """
        start = window, known, nothing
        parents: dict[tuple[Window, _Stages | None, _Stages], tuple[tuple[Window, _Stages | None, _Stages], int]] = {}
        todo = deque([start])
        while todo:
            node = todo.popleft()
            there, old, new = node
            for after, slice in self.steps[there]:
                self.limit.note(1)
                checked = None
                if old is not None:
                    derived = [self._derived(there, slice, h, b) for h, b in zip(old, stages, strict=True)]
                    if not all(least & operand for (_, least), operand in zip(derived[:-1], operands, strict=True)):
                        continue
                    checked = tuple(h for h, _ in derived)
                fresh = tuple(self._derived(there, slice, h, b)[0] for h, b in zip(new, stages, strict=True))
                reached = after, checked, fresh
                if reached in parents:
                    continue
                parents[reached] = node, slice
                todo.append(reached)
                if fresh[-1] == after:
                    yield (after, fresh), _way(parents, start, reached)


def _way(parents: dict[_Node, tuple[_Node, int]], start: _Node, end: _Node) -> list[int]:
    """The slices from `start` to `end`, at least one."""
    slices: list[int] = []
    node = end
    while not slices or node != start:
        node, slice = parents[node]
        slices.append(slice)
    return slices[::-1]
