"""Initial windows: the windows that an infinite past may end with.

Before the data begins the given atoms do not change, so the past is a path without a beginning through a finite graph
of windows. Which of these paths are founded? Write T for such a path, and H for what can be derived along it from
nothing, with negation evaluated in T. T is founded if H, begun early enough, equals T. If H equals T at one window, it
does so from there on.

So a strongly connected component of the graph contains founded paths if some path inside it leads from one of its
windows, with H empty, to a window where H equals T: from there the path returns to its start and repeats for ever.
`Diamondminus[a,inf)` and `Since[a,inf)` are flags that H must derive like everything else, so a flag without a witness
on the loop is not accepted. A flag of `Boxminus[a,inf)` that is false needs a time on the loop at which its operand is
false.

A flag of `Boxminus[a,inf)` that is true, where a rule needs it, must be derived too, but no finite path does that: it
is true if its operand has been derived at all times, without using the flag. That takes stages: in stage k the first k
flags are assumed, and the operand of the next one must be derived at every time; in the last stage H must equal T. A
path without a beginning achieves this if it can be cut at infinitely many places such that what is derived from nothing
between one cut and the next suffices to satisfy each stage between the next cut and the one after it. Cuts that lead to
each other in a cycle form such a path. Conversely, if there is such a path, there is such a cycle, since there are
finitely many windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import TypeVar

from tidelog.analysis.predicate_graph import strongly_connected_components
from tidelog.stable.clingo_control import create_ground_control
from tidelog.stable.clingo_encoding import FALSE, TRUE, ClingoEncoding
from tidelog.stable.grounding import GroundLiteral, GroundRule
from tidelog.stable.normal_form import OperatorKind
from tidelog.stable.search_limits import SearchLimit
from tidelog.stable.slice_machine import ComponentShape, SliceMachine, SliceStep, Window
from tidelog.stable.slice_models import bit_positions
from tidelog.timeline.grid import POS_INF

#: Windows with more free bits than this are not enumerated directly; clingo finds them instead.
MOST_BITS = 16
#: The largest number of windows that clingo may find.
MOST_CLINGO_WINDOWS = 20_000

_Graph = dict[Window, tuple[SliceStep, ...]]
#: What is derived in each stage.
_Stages = tuple[Window, ...]
#: A window at which a path is cut, and what is derived there in each stage.
_Cut = tuple[Window, _Stages]
_Node = TypeVar("_Node")


@dataclass(frozen=True, slots=True)
class InitialWindows:
    """The windows that an infinite past may end with.

    `parents` says how each is reached (None for a window on a loop), and `loops` has the slices of the loop that each
    path begins with.
    """

    parents: dict[Window, tuple[Window, int] | None]
    loops: dict[Window, tuple[int, ...]]

    def history(self, window: Window) -> tuple[tuple[int, ...], list[int]]:
        """Return the slices of a loop that repeats for ever to the left, and the slices from there to the window."""
        slices = []
        while (step := self.parents[window]) is not None:
            window, slice = step
            slices.append(slice)
        return self.loops[window], slices[::-1]


def find_initial_windows(machine: SliceMachine, held: int, limit: SearchLimit) -> InitialWindows:
    """Find the initial windows if the atoms of `held` are facts at all times before the data."""
    graph = _build_graph(machine, held, limit)
    loops: dict[Window, tuple[int, ...]] = {}
    for members in strongly_connected_components({w: [after for after, _ in steps] for w, steps in graph.items()}):
        loop = _LoopSearch(machine, held, graph, frozenset(members), limit).find_founded_loop()
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
    return InitialWindows(parents, loops)


def _build_graph(machine: SliceMachine, held: int, limit: SearchLimit) -> _Graph:
    """Return the windows that have an infinite sequence of predecessors, with their steps."""
    windows = set(_enumerate_windows(machine, held, limit))
    while True:
        graph = {window: machine.find_steps(window, held) for window in windows}
        after = {step[0] for steps in graph.values() for step in steps}
        if after == windows:
            return graph
        windows = after


def _find_possible_atoms(shape: ComponentShape, held: int) -> int:
    """Return the atoms that could be derived before the data if negation were ignored."""
    possible = held
    while True:
        before = possible
        for _, head, body in shape.rules:
            if head >= 0 and all(
                possible >> atom & 1 and (left < 0 or possible >> left & 1)
                for _, atom, _, _, negated, left in body
                if not negated
            ):
                possible |= 1 << head
        if possible == before:
            return possible


def _enumerate_windows(machine: SliceMachine, held: int, limit: SearchLimit) -> Iterator[Window]:
    """Yield candidates for initial windows: every combination of the bits that are not determined by `held`."""
    possible = _find_possible_atoms(machine.shape, held)
    always = machine.constant_window(held)
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
        open_left = flag.kind is OperatorKind.SINCE and free >> flag.left & 1
        if free >> flag.atom & 1 or (open_left and possible >> flag.atom & 1):
            flags.append((0, 1 << i))
            size += 1
        else:
            flags.append((always[-1] & 1 << i,))
    if size > MOST_BITS:
        yield from _find_windows_with_clingo(machine, held, free, limit)
        return
    for histories in product(*choices):
        for chosen_flags in product(*flags):
            yield (*histories, sum(chosen_flags))


def _find_windows_with_clingo(machine: SliceMachine, held: int, free: int, limit: SearchLimit) -> Iterator[Window]:
    """Yield the windows that can arise after as many slices as a window spans, whatever came before."""
    length = max(machine.retention)
    end = 2 * length + 1

    timed: dict[tuple[int, int], int] = {}

    def at(atom: int, time: int) -> int:
        if held >> atom & 1:
            return TRUE
        if not free >> atom & 1:
            return FALSE
        return timed.get((atom, time)) or timed.setdefault((atom, time), encoding.create_atom())

    encoding = ClingoEncoding(at, 1, end, 0, 0)
    for atom in bit_positions(free):
        for time in range(1, length + 1):
            encoding.add_choice(at(atom, time))
    rules = [
        GroundRule(number, head, tuple(GroundLiteral(*literal) for literal in body))
        for number, head, body in machine.shape.rules
        if head < 0 or free >> head & 1
    ]
    encoding.add_rules((rule, range(length + 1, end)) for rule in rules)
    flags = [
        encoding.encode_literal(GroundLiteral(flag.kind, flag.atom, flag.distance, POS_INF, False, flag.left), end)
        for flag in machine.flags
    ]
    shown = [at(atom, time) for atom in bit_positions(free) for time in range(length + 1, end)]
    encoding.project([*shown, *(flag for flag in flags if flag not in (TRUE, FALSE))])
    solver = create_ground_control(["--models=0", "--project=project"], encoding.text())
    with solver.solve(yield_=True) as handle:
        for number, model in enumerate(handle):
            limit.count_windows(1)
            if number == MOST_CLINGO_WINDOWS:
                raise limit.build_undecided(f"more than {MOST_CLINGO_WINDOWS:,} windows are possible before the data")
            histories = [
                mask
                if held >> atom & 1
                else sum(
                    1 << d
                    for d in range(machine.retention[atom])
                    if free >> atom & 1 and model.is_true(at(atom, end - 1 - d))
                )
                for atom, mask in zip(machine.slots, machine.masks, strict=True)
            ]
            yield (*histories, sum(1 << i for i, flag in enumerate(flags) if flag != FALSE and model.is_true(flag)))


class _LoopSearch:
    """Searches a strongly connected component of the graph of windows for founded loops."""

    def __init__(
        self, machine: SliceMachine, held: int, graph: _Graph, members: frozenset[Window], limit: SearchLimit
    ) -> None:
        self.machine, self.held, self.limit = machine, held, limit
        self.steps = {w: [step for step in graph[w] if step[0] in members] for w in members}
        self.first = min(members)
        #: The flags of boxes are the same in all windows of a component.
        self.flags = self.first[-1]

    def find_founded_loop(self) -> tuple[Window, tuple[int, ...]] | None:
        """Return a loop that founded paths may begin with: a window, and the slices from it back to itself."""
        if not any(self.steps.values()) or not self._false_boxes_have_witnesses():
            return None
        boxes = [1 << i for i, flag in enumerate(self.machine.flags) if flag.kind is OperatorKind.BOX]
        assumed = sum(
            bit
            for bit in boxes
            if self.flags & bit and (not self.machine.wanted_boxes & bit or self.held >> self._operand(bit) & 1)
        )
        to_derive = [bit for bit in boxes if self.flags & bit and not assumed & bit]
        for order in permutations(to_derive):
            stages = [assumed]
            for bit in order:
                stages.append(stages[-1] | bit)
            if order:
                loop = self._find_staged_loop(stages, [1 << self._operand(bit) for bit in order])
            else:
                loop = self._find_plain_loop(assumed)
            if loop is not None:
                return loop
        return None

    def _operand(self, bit: int) -> int:
        """Return the operand of the box with this flag."""
        return self.machine.flags[bit.bit_length() - 1].atom

    def _false_boxes_have_witnesses(self) -> bool:
        """Tell whether for each false flag of a box its operand is false at some time of the component."""
        absent = 0
        for steps in self.steps.values():
            for _, slice in steps:
                absent |= ~slice
        return all(
            self.flags >> i & 1 or absent >> flag.atom & 1
            for i, flag in enumerate(self.machine.flags)
            if flag.kind is OperatorKind.BOX
        )

    def _empty_window(self, boxes: int) -> Window:
        return (*(0 for _ in self.machine.slots), boxes)

    def _derive(self, there: Window, slice: int, here: Window, boxes: int) -> tuple[Window, int]:
        """Return what H has after a slice of T, as its window and its slice."""
        least = self.machine.compute_founded_slice(there, slice, here, self.held)
        return self.machine.next_window(here, least, boxes), least

    def _find_plain_loop(self, boxes: int) -> tuple[Window, tuple[int, ...]] | None:
        """Find a loop where no box must be derived: follow paths from an empty H until H equals T."""
        start = self.first, self._empty_window(boxes)
        parents: dict[tuple[Window, Window], tuple[tuple[Window, Window], int]] = {}
        todo = deque([start])
        while todo:
            node = todo.popleft()
            there, here = node
            for after, slice in self.steps[there]:
                self.limit.count_windows(1)
                reached = after, self._derive(there, slice, here, boxes)[0]
                if reached in parents:
                    continue
                parents[reached] = node, slice
                if reached[0] == reached[1]:
                    return self.first, (*_slices_between(parents, start, reached), *self._return_to_first(after))
                todo.append(reached)
        return None

    def _return_to_first(self, window: Window) -> list[int]:
        """Return the slices of a shortest path inside the component from a window to the first one."""
        parents: dict[Window, tuple[Window, int]] = {}
        todo = deque([window])
        while todo and self.first != window and self.first not in parents:
            at = todo.popleft()
            for after, slice in self.steps[at]:
                if after not in parents:
                    parents[after] = at, slice
                    todo.append(after)
        return _slices_between(parents, window, self.first) if self.first != window else []

    def _find_staged_loop(self, stages: list[int], operands: list[int]) -> tuple[Window, tuple[int, ...]] | None:
        """Find cuts that lead to each other in a cycle."""
        empty = tuple(self._empty_window(boxes) for boxes in stages)
        cuts: dict[_Cut, dict[_Cut, list[int]]] = {}
        todo: deque[_Cut] = deque()
        for window in self.steps:
            for cut, _ in self._find_next_cuts(window, None, empty, stages, operands):
                if cut not in cuts:
                    cuts[cut] = {}
                    todo.append(cut)
        while todo:
            cut = todo.popleft()
            for after, slices in self._find_next_cuts(cut[0], cut[1], empty, stages, operands):
                if after not in cuts:
                    cuts[after] = {}
                    todo.append(after)
                cuts[cut].setdefault(after, slices)
        for members in strongly_connected_components(cuts):
            first, inside = members[0], set(members)
            if len(members) == 1 and first not in cuts[first]:
                continue
            parents = {}
            queue = deque([first])
            while first not in parents:
                at = queue.popleft()
                for after, slices in cuts[at].items():
                    if after in inside and after not in parents:
                        parents[after] = at, slices
                        queue.append(after)
            cycle: list[int] = []
            node = first
            while not cycle or node != first:
                node, slices = parents[node]
                cycle[:0] = slices
            return first[0], tuple(cycle)
        return None

    def _find_next_cuts(
        self, window: Window, derived: _Stages | None, empty: _Stages, stages: list[int], operands: list[int]
    ) -> Iterator[tuple[_Cut, list[int]]]:
        """Yield the places where a path from a cut at `window` may be cut next, with the slices up to there.

        `derived` is what is derived at this cut; all stages are checked along the path. Without it, nothing is checked.
        """
        start = window, derived, empty
        parents: dict[tuple[Window, _Stages | None, _Stages], tuple[tuple[Window, _Stages | None, _Stages], int]] = {}
        todo = deque([start])
        while todo:
            node = todo.popleft()
            there, old, new = node
            for after, slice in self.steps[there]:
                self.limit.count_windows(1)
                checked = None
                if old is not None:
                    results = [self._derive(there, slice, h, b) for h, b in zip(old, stages, strict=True)]
                    if not all(least & operand for (_, least), operand in zip(results[:-1], operands, strict=True)):
                        continue
                    checked = tuple(h for h, _ in results)
                fresh = tuple(self._derive(there, slice, h, b)[0] for h, b in zip(new, stages, strict=True))
                reached = after, checked, fresh
                if reached in parents:
                    continue
                parents[reached] = node, slice
                todo.append(reached)
                if fresh[-1] == after:
                    yield (after, fresh), _slices_between(parents, start, reached)


def _slices_between(parents: dict[_Node, tuple[_Node, int]], start: _Node, end: _Node) -> list[int]:
    """Return the slices from `start` to `end`, at least one."""
    slices: list[int] = []
    node = end
    while not slices or node != start:
        node, slice = parents[node]
        slices.append(slice)
    return slices[::-1]
