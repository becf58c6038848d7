"""The components of a ground program along a stream: which windows of each are possible before the present time.

A window is what a component remembers of the past (see `slice_machine`). Constants that appear for the first time make
new instances of rules. The atoms that these need have never held, so the past does not change, but components may
merge. Therefore every atom is remembered for as long as any rule could look back at it, whether or not one does so now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tidelog.compiler.flat_rules import Pair
from tidelog.data.symbol_table import Symbols
from tidelog.language.hidden_predicates import is_hidden
from tidelog.stable.given_atoms import build_given_atoms
from tidelog.stable.grounding import (
    GroundAtom,
    GroundComponent,
    Grounding,
    atoms_of_rule,
    split_components,
)
from tidelog.stable.held_intervals import HeldIntervals
from tidelog.stable.initial_windows import find_initial_windows
from tidelog.stable.normal_form import NormalRule, OperatorKind
from tidelog.stable.search_limits import SearchLimit
from tidelog.stable.slice_machine import ComponentShape, PastFlag, SliceMachine, Window, compute_shape
from tidelog.timeline.grid import NEG_INF, POS_INF

Facts = dict[GroundAtom, tuple[Pair, ...]]


@dataclass(slots=True)
class ComponentWindows:
    """A component, the machine that steps it, and the windows that are possible before the present time."""

    component: GroundComponent
    atoms: tuple[int, ...]
    machine: SliceMachine
    windows: frozenset[Window]
    #: The slices that led to the windows.
    slices: frozenset[int] = frozenset()
    #: The atoms whose intervals are asked for, each with its bit.
    asked: tuple[tuple[int, int], ...] = ()


class NoWindowLeft(Exception):
    """No stable model continues: at `time` (None: before the stream), from `windows`, with the atoms in `given`."""

    def __init__(self, time: int | None, part: ComponentWindows, windows: Iterable[Window], given: int) -> None:
        super().__init__(time)
        self.time = time
        self.part = part
        self.windows = frozenset(windows)
        self.given = given


class StreamComponents:
    """All components of a forward-propagating program, advanced together in time."""

    def __init__(
        self, rules: Sequence[NormalRule], symbols: Symbols, max_windows: int, held: HeldIntervals | None = None
    ) -> None:
        self.grounding = Grounding(rules, symbols)
        self.max_windows = max_windows
        #: The intervals of a predicate, if they are asked for.
        self.held = held
        #: The first time that has not been evaluated, once there is one.
        self.next_time: int | None = None
        self._operators, self._reach = find_operators(rules)
        self._facts: dict[int, list[Pair]] = {}
        #: When each atom of the data first held.
        self._first: dict[int, int] = {}
        self._machines: dict[ComponentShape, SliceMachine] = {}
        self._parts: dict[int, ComponentWindows] = {}
        #: The component that derives an atom, and those that only read it.
        self._home: dict[int, int] = {}
        self._readers: dict[int, set[int]] = {}
        #: How many instances of rules are in components.
        self._joined = 0

    # Facts

    def add_facts(self, facts: Facts) -> None:
        """Add facts and the instances of rules that they make possible."""
        self.grounding.add(facts)
        for atom, pairs in facts.items():
            number = self.grounding.number(atom)
            for lo, hi in pairs:
                self._facts.setdefault(number, []).append((lo, hi))
                self._first[number] = min(lo, self._first.get(number, lo))
        if self.next_time is not None:
            self._join_instances()

    def start(self, time: int) -> None:
        """Begin to evaluate at a time, or at that of the first fact, if it is earlier."""
        self.next_time = min([time, *(first for first in self._first.values() if first != NEG_INF)])
        self._note_past()
        self._join_instances()

    def forget_facts(self) -> None:
        """Drop facts that no rule can look back at any more; the time at which each atom first held is kept."""
        assert self.next_time is not None
        oldest = self.next_time - self._reach
        for atom, pairs in list(self._facts.items()):
            recent = [pair for pair in pairs if pair[1] >= oldest]
            if len(recent) < len(pairs):
                self._facts[atom] = recent

    def count_facts(self) -> dict[str, int]:
        """Count the facts that rules may still look back at, by predicate."""
        found: dict[str, int] = {}
        for atom, pairs in self._facts.items():
            name = self.grounding.atoms[atom][0]
            if pairs and not is_hidden(name):
                found[name] = found.get(name, 0) + len(pairs)
        return found

    def _pairs_to_come(self, atom: int) -> tuple[Pair, ...]:
        assert self.next_time is not None
        pairs = self._facts.get(atom)
        return tuple(sorted(pair for pair in pairs if pair[1] >= self.next_time)) if pairs else ()

    # Components

    def find_initial_windows(self) -> None:
        """Build the components before any fact with a time, each with the windows of its possible infinite pasts."""
        rules = self.grounding.instances
        self._joined = len(rules)
        limit = SearchLimit(self.max_windows)
        for component in split_components(rules):
            part = self._build_part(component)
            pairs = [tuple(self._facts.get(atom, ())) for atom in part.atoms]
            held = build_given_atoms(pairs).before
            past = find_initial_windows(part.machine, held, limit)
            if not past.parents:
                raise NoWindowLeft(None, part, [part.machine.constant_window(held)], held)
            part.windows = frozenset(past.parents)
            self._add_part(part)

    def _build_part(self, component: GroundComponent) -> ComponentWindows:
        atoms = (*component.derived, *component.read)
        shape = compute_shape(component, lambda atom: self._operators.get(self.grounding.atoms[atom][0], ()))
        machine = self._machines.get(shape)
        if machine is None:
            machine = self._machines[shape] = SliceMachine(shape, lambda windows: None)
        part = ComponentWindows(component, atoms, machine, frozenset())
        if self.held is not None:
            names = (self.grounding.atoms[atom][0] for atom in component.derived)
            asked = self.held.predicate
            part.asked = tuple((1 << i, component.derived[i]) for i, name in enumerate(names) if name == asked)
        return part

    def _add_part(self, part: ComponentWindows) -> None:
        key = min(part.component.derived, default=-1 - len(self._parts))
        while key in self._parts:
            key -= len(self._parts) + 1
        self._put_part(key, part)

    def _put_part(self, key: int, part: ComponentWindows) -> None:
        self._parts[key] = part
        for atom in part.component.derived:
            self._home[atom] = key
        for atom in part.component.read:
            self._readers.setdefault(atom, set()).add(key)

    def _join_instances(self) -> None:
        """Put new instances into components, and merge the components that they connect."""
        new = self.grounding.instances[self._joined :]
        if not new:
            return
        self._joined += len(new)
        affected: set[int] = set()
        for rule in new:
            affected |= {self._home[atom] for atom in atoms_of_rule(rule) if atom in self._home}
            affected |= self._readers.get(rule.head, set())
        old = [self._parts.pop(key) for key in sorted(affected)]
        for part in old:
            for atom in part.component.read:
                self._readers[atom] -= affected
        rules = [rule for part in old for rule in part.component.rules] + new
        for component in split_components(rules):
            part = self._build_part(component)
            atoms = set(part.atoms)
            inside = [other for other in old if other.component.derived and other.component.derived[0] in atoms]
            if not component.derived:
                inside = [other for other in old if other.component.rules == component.rules]
            part.windows = frozenset(
                self._merge_windows(part, list(zip(inside, choice, strict=True)))
                for choice in product(*(other.windows for other in inside))
            )
            self._add_part(part)

    def _merge_windows(self, part: ComponentWindows, before: list[tuple[ComponentWindows, Window]]) -> Window:
        """Build a window of a component from windows of the components that it was made of, and from the data."""
        histories: dict[int, int] = {}
        flags: dict[tuple[OperatorKind, int, int, int], bool] = {}
        for other, window in before:
            for i, local in enumerate(other.machine.slots):
                histories[other.atoms[local]] = window[i]
            for i, flag in enumerate(other.machine.flags):
                flags[_flag_key(flag, other.atoms)] = bool(window[-1] >> i & 1)
        machine, atoms = part.machine, part.atoms
        for local in machine.slots:
            if atoms[local] not in histories:
                histories[atoms[local]] = self._compute_history(atoms[local], machine.retention[local])
        on = 0
        for i, flag in enumerate(machine.flags):
            known = flags.get(_flag_key(flag, atoms))
            atom = atoms[flag.atom]
            if known is None and atom not in self._home:
                known = self._compute_flag(flag, atom)
            if known is None:
                # An operand has never held before, so only the right one of Since may have, right before now.
                known = flag.kind is OperatorKind.SINCE and flag.distance == 1 and bool(histories[atom] & 1)
            if known:
                on |= 1 << i
        return (*(histories[atoms[local]] for local in machine.slots), on)

    def _compute_history(self, atom: int, length: int) -> int:
        """Compute the bits of the last `length` times at which an atom of the data held."""
        assert self.next_time is not None
        history = 0
        for lo, hi in self._facts.get(atom, ()):
            near, far = max(1, self.next_time - hi), min(length, self.next_time - lo)
            if near <= far:
                history |= (1 << far) - (1 << (near - 1))
        return history

    def _compute_flag(self, flag: PastFlag, atom: int) -> bool | None:
        """Compute a flag of an atom of the data; None for Since, whose flag begins with its operands."""
        assert self.next_time is not None
        first = self._first.get(atom, POS_INF)
        if flag.kind is OperatorKind.DIAMOND:
            return first <= self.next_time - flag.distance
        return first == NEG_INF if flag.kind is OperatorKind.BOX else None

    # Time

    def evaluate_until(self, until: int) -> None:
        """Advance every component, slice by slice, up to and including a time."""
        assert self.next_time is not None
        for part in self._parts.values():
            given = build_given_atoms([self._pairs_to_come(atom) for atom in part.atoms])
            for begin, end, atoms in given.constant_spans(self.next_time, until):
                self._evaluate_span(part, begin, end, atoms)
        self._note_given(until)
        self.next_time = until + 1

    def _evaluate_span(self, part: ComponentWindows, begin: int, end: int, given: int) -> None:
        """Advance a component over a span in which the same atoms are given.

        What is possible depends on the windows before, so once these are as at an earlier time, all of it repeats, and
        whole periods are left out. The earlier times to compare with are those after 1, 2, 4, 8, ... steps (Brent), and
        the one right before. Where intervals are asked for, no period is left out in which one begins or ends.
        """
        earlier, since, doubled = (part.windows, self._count_changes()), begin - 1, 1
        time = begin
        while time <= end:
            before = part.windows
            self._evaluate_time(part, time, given)
            now = part.windows, self._count_changes()
            if now[0] == before:
                return
            if now == earlier:
                time += (end - time) // (time - since) * (time - since)
            elif time - since == doubled:
                earlier, since, doubled = now, time, 2 * doubled
            time += 1

    def _count_changes(self) -> int:
        return 0 if self.held is None else self.held.changes

    def _evaluate_time(self, part: ComponentWindows, time: int, given: int) -> None:
        """Advance a component by one time point."""
        before = part.windows
        steps = [step for window in before for step in part.machine.find_steps(window, given)]
        part.windows = frozenset(step[0] for step in steps)
        part.slices = frozenset(step[1] for step in steps)
        if not steps:
            raise NoWindowLeft(time, part, before, given)
        if len(part.windows) > self.max_windows:
            raise SearchLimit(self.max_windows).build_undecided(
                f"more than {self.max_windows:,} windows are possible at {time}"
            )
        if self.held is not None and part.asked:
            self.held.note_slices(part.asked, part.slices, time)

    def _note_past(self) -> None:
        """Note which atoms hold before the stream begins; a step from all windows of the past leads to the same."""
        if self.held is None:
            return
        for part in self._parts.values():
            given = build_given_atoms([tuple(self._facts.get(atom, ())) for atom in part.atoms]).before
            steps = (step for window in part.windows for step in part.machine.find_steps(window, given))
            self.held.note_slices(part.asked, {slice for _, slice in steps}, NEG_INF)
        for atom, pairs in self._facts.items():
            if self._is_asked_and_given(atom):
                self.held.note(atom, any(lo == NEG_INF for lo, _ in pairs), NEG_INF)

    def _note_given(self, until: int) -> None:
        """Note when atoms that no rule derives hold, up to a time."""
        if self.held is None:
            return
        assert self.next_time is not None
        for atom, pairs in self._facts.items():
            if (pairs or atom in self.held.since) and self._is_asked_and_given(atom):
                given = build_given_atoms([self._pairs_to_come(atom)])
                for begin, _, bit in given.constant_spans(self.next_time, until):
                    self.held.note(atom, bool(bit), begin)

    def _is_asked_and_given(self, atom: int) -> bool:
        assert self.held is not None
        return atom not in self._home and self.grounding.atoms[atom][0] == self.held.predicate

    def find_atoms_at(self, time: int, heads: set[str]) -> tuple[list[GroundAtom], list[GroundAtom]]:
        """Find the atoms that hold at the last evaluated time: in all stable models so far, and in some."""
        in_all: list[GroundAtom] = []
        in_some: list[GroundAtom] = []
        for part in self._parts.values():
            brave, cautious = 0, -1
            for slice in part.slices:
                brave |= slice
                cautious &= slice
            for i in range(len(part.component.derived)):
                atom = self.grounding.atoms[part.atoms[i]]
                if brave >> i & 1 and not is_hidden(atom[0]):
                    in_some.append(atom)
                    if cautious >> i & 1:
                        in_all.append(atom)
        for number, pairs in self._facts.items():
            atom = self.grounding.atoms[number]
            if number not in self._home and atom[0] in heads and any(lo <= time <= hi for lo, hi in pairs):
                in_all.append(atom)
                in_some.append(atom)
        return in_all, in_some

    # Saved states

    def to_json(self) -> dict[str, Any]:
        """Return the whole state as JSON values; constants are numbers of the symbol table."""
        instance_numbers = {rule: number for number, rule in enumerate(self.grounding.instances)}
        return {
            "next": self.next_time,
            "grounding": self.grounding.to_json(),
            "facts": [[atom, pairs] for atom, pairs in self._facts.items()],
            "first": list(self._first.items()),
            "joined": self._joined,
            "since": [] if self.held is None else list(self.held.since.items()),
            "parts": [
                [
                    key,
                    part.component.derived,
                    part.component.read,
                    [instance_numbers[rule] for rule in part.component.rules],
                    sorted(part.windows),
                    sorted(part.slices),
                ]
                for key, part in self._parts.items()
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replace the state of new components by a saved one."""
        self.next_time = state["next"]
        self.grounding.restore(state["grounding"])
        self._facts = {atom: [(lo, hi) for lo, hi in pairs] for atom, pairs in state["facts"]}
        self._first = dict(state["first"])
        self._joined = state["joined"]
        if self.held is not None:
            self.held.since = dict(state["since"])
        for key, derived, read, rules, windows, slices in state["parts"]:
            instances = tuple(self.grounding.instances[number] for number in rules)
            part = self._build_part(GroundComponent(tuple(derived), tuple(read), instances))
            part.windows = frozenset(tuple(window) for window in windows)
            part.slices = frozenset(slices)
            self._put_part(key, part)


def _flag_key(flag: PastFlag, atoms: tuple[int, ...]) -> tuple[OperatorKind, int, int, int]:
    return flag.kind, atoms[flag.atom], flag.distance, atoms[flag.left] if flag.left >= 0 else -1


def find_operators(rules: Iterable[NormalRule]) -> tuple[dict[str, tuple[tuple[OperatorKind, int, int], ...]], int]:
    """Find the operators that rules apply to each predicate, and how far back any of them looks."""
    operators: dict[str, dict[tuple[OperatorKind, int, int], None]] = {}
    reach = 1
    for rule in rules:
        for literal in rule.body:
            far = literal.lo if literal.hi == POS_INF else literal.hi
            reach = max(reach, far + 1)
            if literal.kind is not OperatorKind.SINCE:
                operators.setdefault(literal.atom.predicate, {})[literal.kind, literal.lo, literal.hi] = None
                continue
            # Of Since, what its operands were in the window; a flag comes to be with both of them.
            for atom in (literal.atom, literal.left):
                assert atom is not None
                operators.setdefault(atom.predicate, {})[OperatorKind.DIAMOND, 1, max(far, 1)] = None
    return {name: tuple(some) for name, some in operators.items()}, reach
