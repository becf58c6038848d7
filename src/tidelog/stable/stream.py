"""Along a stream: at each time point, what holds in some and in all stable models so far.

The windows that are possible before the present time are kept for each component. Constants that come for the first
time make new instances of rules; whatever these need has never held, so they change nothing in the past, but they may
join components. So every atom is remembered for as long as any rule could ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import product
from typing import TYPE_CHECKING

from tidelog.analysis.components import head_atom
from tidelog.data.columns import Relation
from tidelog.data.columns import facts_of as facts_in
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import format_fact, parse_fact
from tidelog.language.syntax import Fact
from tidelog.reasoning import AnyTime, Inconsistent, time_of, violation
from tidelog.stable.forward import given_by, possible_atoms
from tidelog.stable.grounding import Component, Ground, Grounding, components, mentioned
from tidelog.stable.limits import MOST_WINDOWS, Limit
from tidelog.stable.machine import Flag, Machine, Shape, Window, shape_of
from tidelog.stable.normal import Kind, NormalRule, directed
from tidelog.stable.past import eternal
from tidelog.stable.problem import GRID, Pair, checked, facts_of, prepared, refuse_endless
from tidelog.stable.solver import control
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.language.program import Program


@dataclass(frozen=True, slots=True)
class StableStep:
    """What holds at time `t`, of the predicates in heads: in `all` stable models so far, and in `some` (those of `all`
    too)."""

    t: Fraction
    all: tuple[Fact, ...]
    some: tuple[Fact, ...]


@dataclass(slots=True)
class _Part:
    component: Component
    atoms: tuple[int, ...]
    machine: Machine
    windows: frozenset[Window]
    #: The slices that led to the windows.
    slices: frozenset[int] = frozenset()


class StableReasoner:
    """Goes along a stream with a forward-propagating program.

    >>> import tidelog as tl
    >>> reasoner = tl.StableReasoner(tl.Program.parse("Open :- Door, not Shut. Shut :- Door, not Open."))
    >>> reasoner.push(0, ["Door"])
    []
    >>> (step,) = reasoner.advance(0)
    >>> [fact.predicate for fact in step.some], [fact.predicate for fact in step.all]
    (['Open', 'Shut'], [])
    """

    def __init__(self, program: Program, *, background: Dataset | None = None, most: int = MOST_WINDOWS) -> None:
        """`background` are facts that hold at all times. More than `most` windows at a time are given up."""
        control()
        self.program = program
        self._problem = prepared(program, background or Dataset())
        self._most = most
        chosen = directed(self._problem.rules)
        _refuse(program, chosen is None or chosen.mirrored or any(chosen.offsets[p] for p in _users(chosen.offsets)))
        assert chosen is not None
        self._rules = chosen.rules
        _refuse_binders(program, chosen.rules)
        refuse_endless(self._problem, mirrored=False)
        self._symbols = self._problem.data.symbols
        self._heads = {head.predicate for rule in program.rules if (head := head_atom(rule)) is not None}
        self._kept, self._reach = _operators(chosen.rules)
        self._grounding = Grounding(chosen.rules, self._symbols)
        self._facts: dict[int, list[Pair]] = {}
        self._first: dict[int, int] = {}
        self._machines: dict[Shape, Machine] = {}
        self._parts: dict[int, _Part] = {}
        self._home: dict[int, int] = {}
        self._readers: dict[int, set[int]] = {}
        self._known = 0
        #: The first time that has not been worked out, once there is one, and times that are to be told.
        self._next: int | None = None
        #: Facts begin then or later.
        self._clock = NEG_INF
        self._points: list[int] = []
        self.dates = self._problem.data.dates
        self._take(self._problem.facts)
        self._begin()

    def push(self, t: AnyTime, facts: Iterable[str | Fact] | Dataset = ()) -> list[StableStep]:
        """The clock is at t, and facts come; those without a time hold at t. More may come at t.

        Returns what is known of the time points before t: times at which facts came, begin or end.
        """
        now = _integer(t)
        data = facts if isinstance(facts, Dataset) else Dataset.from_facts(self._read(fact, now) for fact in facts)
        data = checked(self.program, data)
        self.dates = self.dates or data.dates
        new = self._on_time(data, now)
        self._clock = max(now, self._clock)
        steps = list(self._advanced(self._clock - 1))
        self._take(new)
        self._point(now)
        return steps

    def advance(self, t: AnyTime) -> list[StableStep]:
        """Nothing more comes that holds at or before t: what is known up to t, and at t."""
        now = _integer(t)
        self._clock = max(now + 1, self._clock)
        self._point(now)
        return list(self._advanced(now))

    def feed(self, data: Dataset) -> Iterator[StableStep]:
        """Facts in the order in which they come (`Dataset` read with `ordered`), pushed at the times at which they
        begin."""
        rows = [
            (int(order), fact)
            for relation in data.relations.values()
            for order, fact in zip(_order(relation), facts_in(data.symbols, data.denominator, relation), strict=True)
        ]
        rows.sort(key=lambda row: row[0])
        together: list[Fact] = []
        for _, fact in rows:
            if together and fact.interval.lo != together[0].interval.lo:
                yield from self._fed(together, data.dates)
                together = []
            together.append(fact)
        if together:
            yield from self._fed(together, data.dates)

    def _fed(self, facts: list[Fact], dates: bool) -> list[StableStep]:
        self.dates = self.dates or dates
        begin = facts[0].interval.lo
        if isinstance(begin, float):
            raise TidelogError(
                Diagnostic(
                    "TL328",
                    f"the fact {format_fact(facts[0], self.dates)} has no beginning",
                    law="the facts of a stream come in the order in which they begin to hold",
                    help="facts that always hold are background: give them as DATA",
                )
            )
        return self.push(begin, facts)

    def finish(self) -> Iterator[StableStep]:
        """The end of the stream: time goes on to the last time in the input, and stops."""
        return self._advanced(max(self._points, default=NEG_INF))

    # Facts

    def _read(self, fact: str | Fact, now: int) -> Fact:
        if isinstance(fact, str):
            temporal = self.program.temporal.temporal if self.program.temporal else frozenset()
            fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
        if fact.interval == Interval.always():
            return Fact(fact.predicate, fact.args, Interval.point(Fraction(now)))
        return fact

    def _on_time(self, data: Dataset, now: int) -> dict[Ground, tuple[Pair, ...]]:
        """The facts in numbers of this reasoner, if none of them begins too early."""
        found: dict[Ground, tuple[Pair, ...]] = {}
        clock = max(now, self._clock)
        values = data.symbols
        always = ((NEG_INF, POS_INF),)
        for (predicate, args), pairs in facts_of(data).items():
            atom = predicate, tuple(self._symbols.intern(values.value(a)) for a in args)
            if self._problem.facts.get(atom) == always:
                continue
            for lo, hi in pairs:
                if lo < clock:
                    shown = Fact(predicate, tuple(values.value(a) for a in args), GRID.interval(lo, hi))
                    raise TidelogError(
                        Diagnostic(
                            "TL328",
                            f"the fact {format_fact(shown, self.dates)} comes when it is {clock} already",
                            law="the facts of a stream come in the order in which they begin to hold",
                            help="sort the stream by time; facts that always hold are background",
                        )
                    )
            found[atom] = pairs
        return found

    def _take(self, facts: dict[Ground, tuple[Pair, ...]]) -> None:
        """New facts, and the instances of rules that they make."""
        self._grounding.add(facts)
        for atom, pairs in facts.items():
            number = self._grounding.number(atom)
            for lo, hi in pairs:
                self._facts.setdefault(number, []).append((lo, hi))
                self._first[number] = min(lo, self._first.get(number, lo))
                for time in (lo, hi):
                    if abs(time) != POS_INF:
                        self._point(time)
        if self._next is not None:
            self._join()

    def _point(self, time: int) -> None:
        if self._next is None or time >= self._next:
            heappush(self._points, time)

    # Components

    def _begin(self) -> None:
        """The components before any fact with a time, each with its eternal pasts."""
        rules = self._grounding.instances
        self._known = len(rules)
        limit = Limit(self._most)
        for component in components(rules):
            part = self._part(component)
            pairs = [tuple(self._facts.get(atom, ())) for atom in part.atoms]
            held = given_by(pairs).before
            past = eternal(part.machine, held, possible_atoms(part.machine.shape, held), limit)
            if not past.parents:
                raise self._none_left(None, part, frozenset([part.machine.constant(held)]), held)
            part.windows = frozenset(past.parents)
            self._put(part)

    def _part(self, component: Component) -> _Part:
        atoms = (*component.derived, *component.read)
        shape = shape_of(component, lambda atom: self._kept.get(self._grounding.atoms[atom][0], ()))
        machine = self._machines.get(shape)
        if machine is None:
            machine = self._machines[shape] = Machine(shape, lambda windows: None)
        return _Part(component, atoms, machine, frozenset())

    def _put(self, part: _Part) -> None:
        key = min(part.component.derived, default=-1 - len(self._parts))
        while key in self._parts:
            key -= len(self._parts) + 1
        self._parts[key] = part
        for atom in part.component.derived:
            self._home[atom] = key
        for atom in part.component.read:
            self._readers.setdefault(atom, set()).add(key)

    def _join(self) -> None:
        """Put new instances into components, joining those that they connect."""
        new = self._grounding.instances[self._known :]
        if not new:
            return
        self._known += len(new)
        affected: set[int] = set()
        for rule in new:
            affected |= {self._home[atom] for atom in mentioned(rule) if atom in self._home}
            affected |= self._readers.get(rule.head, set())
        old = [self._parts.pop(key) for key in sorted(affected)]
        for part in old:
            for atom in part.component.read:
                self._readers[atom] -= affected
        rules = [rule for part in old for rule in part.component.rules] + new
        for component in components(rules):
            part = self._part(component)
            mine = set(part.atoms)
            inside = [other for other in old if other.component.derived and other.component.derived[0] in mine]
            if not component.derived:
                inside = [other for other in old if other.component.rules == component.rules]
            part.windows = frozenset(
                self._joined(part, list(zip(inside, choice, strict=True)))
                for choice in product(*(other.windows for other in inside))
            )
            self._put(part)

    def _joined(self, part: _Part, before: list[tuple[_Part, Window]]) -> Window:
        """A window of a component from windows of those that it was made of, and from the data."""
        histories: dict[int, int] = {}
        flags: dict[tuple[Kind, int, int, int], bool] = {}
        for other, window in before:
            for i, local in enumerate(other.machine.slots):
                histories[other.atoms[local]] = window[i]
            for i, flag in enumerate(other.machine.flags):
                flags[_key(flag, other.atoms)] = bool(window[-1] >> i & 1)
        machine, atoms = part.machine, part.atoms
        for local in machine.slots:
            if atoms[local] not in histories:
                histories[atoms[local]] = self._history(atoms[local], machine.retention[local])
        on = 0
        for i, flag in enumerate(machine.flags):
            known = flags.get(_key(flag, atoms))
            atom = atoms[flag.atom]
            if known is None and atom not in self._home:
                known = self._flag(flag, atom)
            if known is None:
                # An operand has never held before; so only the right one of Since may have, right before now.
                known = flag.kind is Kind.SINCE and flag.distance == 1 and bool(histories[atom] & 1)
            if known:
                on |= 1 << i
        return (*(histories[atoms[local]] for local in machine.slots), on)

    def _history(self, atom: int, length: int) -> int:
        """When an atom of the data held, before now."""
        assert self._next is not None
        found = 0
        for lo, hi in self._facts.get(atom, ()):
            near, far = max(1, self._next - hi), min(length, self._next - lo)
            if near <= far:
                found |= (1 << far) - (1 << (near - 1))
        return found

    def _flag(self, flag: Flag, atom: int) -> bool | None:
        """A flag of an atom of the data; None for Since, which came to be with its operands."""
        assert self._next is not None
        first = self._first.get(atom, POS_INF)
        if flag.kind is Kind.DIAMOND:
            return first <= self._next - flag.distance
        return first == NEG_INF if flag.kind is Kind.BOX else None

    # Time

    def _advanced(self, now: int) -> Iterator[StableStep]:
        """Work out everything up to a time; what is known at the points to be told."""
        if self._next is None:
            if not self._points:
                return
            self._next = min(self._points)
            self._join()
        while self._points and self._points[0] <= now:
            point = heappop(self._points)
            if point >= self._next:
                self._work(point)
                yield self._told(point)
        if self._next <= now:
            self._work(now)
        self._forget()

    def _work(self, until: int) -> None:
        """Every component, slice by slice, up to a time."""
        assert self._next is not None
        for part in self._parts.values():
            given = given_by([self._recent(atom) for atom in part.atoms])
            for begin, end, atoms in given.stretches(self._next, until):
                time = begin
                while time <= end:
                    before = part.windows
                    steps = [step for window in before for step in part.machine.steps(window, atoms)]
                    part.windows = frozenset(step[0] for step in steps)
                    part.slices = frozenset(step[1] for step in steps)
                    if not steps:
                        raise self._none_left(time, part, before, atoms)
                    if len(part.windows) > self._most:
                        raise Limit(self._most).exceeded(f"more than {self._most:,} windows are possible at {time}")
                    if part.windows == before:
                        break
                    time += 1
        self._next = until + 1

    def _recent(self, atom: int) -> tuple[Pair, ...]:
        assert self._next is not None
        pairs = self._facts.get(atom)
        return tuple(sorted(pair for pair in pairs if pair[1] >= self._next)) if pairs else ()

    def _forget(self) -> None:
        """Drop facts that no rule can ask for any more; when each first held is kept."""
        assert self._next is not None
        oldest = self._next - self._reach
        for atom, pairs in list(self._facts.items()):
            kept = [pair for pair in pairs if pair[1] >= oldest]
            if len(kept) < len(pairs):
                self._facts[atom] = kept

    def _told(self, time: int) -> StableStep:
        every: list[Ground] = []
        some: list[Ground] = []
        for part in self._parts.values():
            brave, cautious = 0, -1
            for slice in part.slices:
                brave |= slice
                cautious &= slice
            for i in range(len(part.component.derived)):
                atom = self._grounding.atoms[part.atoms[i]]
                if brave >> i & 1 and not atom[0].startswith("$"):
                    some.append(atom)
                    if cautious >> i & 1:
                        every.append(atom)
        for number, pairs in self._facts.items():
            atom = self._grounding.atoms[number]
            if number not in self._home and atom[0] in self._heads and any(lo <= time <= hi for lo, hi in pairs):
                every.append(atom)
                some.append(atom)
        return StableStep(Fraction(time), self._shown(every, time), self._shown(some, time))

    def _shown(self, atoms: list[Ground], time: int) -> tuple[Fact, ...]:
        ranks = self._symbols.ranks()
        atoms.sort(key=lambda atom: (atom[0], [int(ranks[a]) for a in atom[1]]))
        point = Interval.point(Fraction(time))
        return tuple(Fact(name, tuple(self._symbols.value(a) for a in args), point) for name, args in atoms)

    def _none_left(self, time: int | None, part: _Part, windows: Iterable[Window], given: int) -> TidelogError:
        """No stable model goes on: say when, and which constraints are in the way."""
        when = "before the stream begins" if time is None else f"from {time} on"
        found = [
            Diagnostic(
                "TL326",
                f"no stable model is left {when}",
                law="a stable model satisfies every rule and every constraint at all times",
                help="correct the facts, or the rules",
            )
        ]
        numbers = {n for window in windows for n in part.machine.violated(window, given)}
        for rule in (part.component.rules[n] for n in sorted(numbers)[:3]):
            origin = self._rules[rule.rule].origin
            flat = next(r for r in self._problem.rules if r.origin == origin and r.predicate.startswith("$bottom"))
            values = [self._symbols.value(a) for a in rule.told]
            at = Interval.point(Fraction(time)) if time is not None else Interval.always()
            found.append(violation(self.program.rules[origin], flat, values, at))
        return Inconsistent(found)


def _order(relation: Relation) -> Iterable[int]:
    return range(len(relation)) if relation.order is None else relation.order.tolist()


def _key(flag: Flag, atoms: tuple[int, ...]) -> tuple[Kind, int, int, int]:
    return flag.kind, atoms[flag.atom], flag.distance, atoms[flag.left] if flag.left >= 0 else -1


def _integer(t: AnyTime) -> int:
    time = time_of(t)
    if isinstance(time, float) or time.denominator != 1:
        raise TidelogError(
            Diagnostic("TL325", f"the clock of a stream of stable models is an integer, not {time}", help="round it")
        )
    return int(time)


def _users(offsets: dict[str, int]) -> Iterator[str]:
    return (name for name in offsets if not name.startswith("$"))


def _operators(rules: Iterable[NormalRule]) -> tuple[dict[str, tuple[tuple[Kind, int, int], ...]], int]:
    """For each predicate the operators that rules have over it, and how far back any of them looks."""
    found: dict[str, dict[tuple[Kind, int, int], None]] = {}
    reach = 1
    for rule in rules:
        for literal in rule.body:
            far = literal.lo if literal.hi == POS_INF else literal.hi
            reach = max(reach, far + 1)
            if literal.kind is not Kind.SINCE:
                found.setdefault(literal.atom.predicate, {})[literal.kind, literal.lo, literal.hi] = None
                continue
            # Of Since, what its operands were in the window; a flag comes to be with both of them.
            for atom in (literal.atom, literal.left):
                assert atom is not None
                found.setdefault(atom.predicate, {})[Kind.DIAMOND, 1, max(far, 1)] = None
    return {name: tuple(some) for name, some in found.items()}, reach


def _refuse(program: Program, wrong: bool) -> None:
    if wrong:
        raise TidelogError(
            Diagnostic(
                "TL327",
                "these rules look ahead, so that a stream of facts does not decide them as it comes",
                law="along a stream, stable models are those of forward-propagating programs",
                help="use past operators only, or ask for the stable models of a file",
            )
        )


def _refuse_binders(program: Program, rules: Iterable[NormalRule]) -> None:
    wrong = {rule.origin for rule in rules if rule.binders}
    if wrong:
        raise TidelogError(
            Diagnostic(
                "TL327",
                "a variable occurs only in the left operand of Since, which a stream of stable models cannot follow",
                program.rules[origin].place,
                law="along a stream, the constants that a variable stands for must have occurred",
                help="give the variable to another literal of the body",
            )
            for origin in sorted(wrong)
        )
