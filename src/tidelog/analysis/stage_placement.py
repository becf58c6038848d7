"""The search for the cheapest placement of units into stages.

`split_search` says what makes a placement cheap. A step of the search puts one unit into a stage or takes it out again,
and looks only at the predicates of that unit: so a program with many rules costs no more per rule than a small one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidelog.analysis.rule_locality import Key, is_local
from tidelog.analysis.unit_choices import ChoiceFinder, Domains, RuleUnit, choose_argument

#: Steps in placing units, fewer for large programs. Beyond them a cheaper plan may be missed, but every plan that is
#: found is sound.
PLACEMENTS = 4_000


@dataclass(frozen=True)
class StageDraft:
    """A stage under construction, with its units by number. If nothing is hashed, it needs only one bucket."""

    units: tuple[int, ...]
    domains: Domains
    key: Key
    #: The numbers of predicates with arguments that are copied to more than one bucket: streams, and background.
    copied: tuple[int, int]


_Cost = tuple[int, int, int]


class _Stage:
    """A stage to which units are added, and from which the last ones are removed again."""

    def __init__(self) -> None:
        self.units: list[int] = []
        self.domains: dict[str, frozenset[int | None]] = {}
        self.key: dict[str, int | None] = {}
        #: The predicates that the rules of its units derive.
        self.own: set[str] = set()
        #: The units that derive or read each predicate.
        self.users: dict[str, list[int]] = {}
        #: How many predicates are hashed, and the numbers of predicates that are not, as in `StageDraft.copied`.
        self.hashed = 0
        self.unhashed = (0, 0)

    @property
    def copied(self) -> tuple[int, int]:
        """The numbers of predicates that are copied to more than one bucket."""
        return self.unhashed if self.hashed else (0, 0)


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to place the next unit: the number of its stage, which may be new, its choice, and the cost so far."""

    place: int
    choice: Domains
    cost: _Cost


@dataclass(frozen=True, slots=True)
class _Placed:
    """What has to be restored where a unit is removed again."""

    place: int
    is_new: bool
    domains: Mapping[str, frozenset[int | None] | None]
    own: tuple[str, ...]
    hashed: int
    unhashed: tuple[int, int]
    changed: tuple[str, ...]


class PlacementSearch:
    """The search for the cheapest placement of units into stages."""

    def __init__(self, units: tuple[RuleUnit, ...], finder: ChoiceFinder, derived: frozenset[str]) -> None:
        self.units, self.finder, self.derived = units, finder, derived
        home = {name: number for number, unit in enumerate(units) for name in unit.own if name in derived}
        #: For each unit, the units whose predicates it reads.
        self.below = [{home[name] for name in unit.reads if name in home} for unit in units]
        #: The stages so far, and how each of the units placed so far was placed.
        self.stages: list[_Stage] = []
        self.placed: list[_Placed] = []
        #: The sums of `copied` over all stages.
        self.copied = (0, 0)
        self.steps = max(PLACEMENTS * 10 // max(10, len(units)), 2 * len(units))
        self.best: tuple[_Cost, tuple[StageDraft, ...]] | None = None

    def find_cheapest(self) -> tuple[StageDraft, ...]:
        """Return the stages of the cheapest placement that is found, by limited discrepancy search."""
        for discrepancies in range(self.steps):
            complete = self._search(discrepancies)
            if complete or self.steps <= 0:
                break
        assert self.best is not None, "every unit can have a stage of its own"
        return self.best[1]

    def _search(self, discrepancies: int) -> bool:
        """Try the placements with at most as many discrepancies; return whether there are no others."""
        complete = True
        #: Ways to go on from where the search is, each with the discrepancies that are left; None goes back by a unit.
        pending: list[tuple[_Way | None, int]] = []
        way: _Way | None = None
        left = discrepancies
        while self.steps > 0 or self.best is None:
            if way is not None:
                self._place(way.place, way.choice)
                pending.append((None, 0))
            self.steps -= 1
            if self.best is None or self._compute_cost() < self.best[0]:
                if len(self.placed) == len(self.units):
                    self.best = self._compute_cost(), tuple(map(_to_draft, self.stages))
                else:
                    ways = sorted(self._find_ways(), key=lambda way: way.cost)
                    complete = complete and len(ways) <= left + 1
                    pending += [(way, left - rank) for rank, way in enumerate(ways[: left + 1])][::-1]
            while pending and pending[-1][0] is None:
                pending.pop()
                self._remove_last()
            if not pending:
                return complete
            way, left = pending.pop()
        while self.placed:
            self._remove_last()
        return complete

    def _find_ways(self) -> Iterator[_Way]:
        """Yield the ways to place the next unit, the earliest stage first."""
        number = len(self.placed)
        unit = self.units[number]
        for place in range(
            max((self.placed[below].place for below in self.below[number]), default=0), len(self.stages)
        ):
            stage = self.stages[place]
            for choice in unit.choices:
                if not all(stage.domains.get(name, domain) & domain for name, domain in choice.items()):
                    continue
                placed = self._place(place, choice)
                others = {other for name in placed.changed for other in stage.users[name]} - {number}
                if all(self._is_sound(stage, other) for other in (*others, number)):
                    yield _Way(place, choice, self._compute_cost())
                self._remove_last()
        for choice in unit.choices:
            self._place(len(self.stages), choice)
            yield _Way(len(self.stages) - 1, choice, self._compute_cost())
            self._remove_last()

    def _place(self, place: int, choice: Domains) -> _Placed:
        """Put the next unit into a stage, with one of its choices."""
        number = len(self.placed)
        is_new = place == len(self.stages)
        if is_new:
            self.stages.append(_Stage())
        stage = self.stages[place]
        own = tuple(name for name in self.units[number].own if name in self.derived)
        before = {name: stage.domains.get(name) for name in choice}
        hashed, unhashed = stage.hashed, stage.unhashed
        self._count(stage, before, -1)
        stage.own.update(own)
        changed = []
        for name, domain in choice.items():
            old = stage.domains.get(name)
            stage.domains[name] = domain = domain if old is None else old & domain
            position = choose_argument(domain)
            if stage.key.get(name) != position:
                changed.append(name)
            stage.key[name] = position
        for name in {*own, *self.units[number].reads, *self.units[number].own}:
            stage.users.setdefault(name, []).append(number)
        stage.units.append(number)
        copied = (0, 0) if is_new or not hashed else unhashed
        self._count(stage, choice, 1)
        self.copied = _add(_subtract(self.copied, copied), stage.copied)
        placed = _Placed(place, is_new, before, own, hashed, unhashed, tuple(changed))
        self.placed.append(placed)
        return placed

    def _remove_last(self) -> None:
        """Remove the unit that was placed last."""
        placed = self.placed.pop()
        number, stage = len(self.placed), self.stages[placed.place]
        copied = stage.copied
        for name, domain in placed.domains.items():
            if domain is None:
                del stage.domains[name], stage.key[name]
            else:
                stage.domains[name] = domain
                stage.key[name] = choose_argument(domain)
        for name in {*placed.own, *self.units[number].reads, *self.units[number].own}:
            stage.users[name].pop()
        stage.own.difference_update(placed.own)
        stage.units.pop()
        stage.hashed, stage.unhashed = placed.hashed, placed.unhashed
        self.copied = _add(_subtract(self.copied, copied), stage.copied)
        if placed.is_new:
            self.stages.pop()

    def _count(self, stage: _Stage, names: Iterable[str], sign: int) -> None:
        """Add some predicates of a stage to the numbers of those hashed and not, or take them off."""
        streams, background = stage.unhashed
        for name in names:
            if name not in stage.key:
                continue
            if stage.key[name] is not None:
                stage.hashed += sign
            elif name not in stage.own and self.finder.arities.get(name):
                if name in self.finder.background:
                    background += sign
                else:
                    streams += sign
        stage.unhashed = streams, background

    def _is_sound(self, stage: _Stage, number: int) -> bool:
        """Return whether a unit's rules are local in a stage, and split if they can be."""
        unit = self.units[number]
        suits = self.finder.is_split_by if unit.can_be_split else is_local
        return all(suits(shape, stage.key, stage.own) for shape in unit.shapes)

    def _compute_cost(self) -> _Cost:
        """Return copied streams, stages and copied background, which are compared in this order."""
        return self.copied[0], len(self.stages), self.copied[1]


def _to_draft(stage: _Stage) -> StageDraft:
    return StageDraft(tuple(stage.units), dict(stage.domains), dict(stage.key), stage.copied)


def _add(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


def _subtract(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] - other[0], one[1] - other[1]
