"""Why facts hold: steps of proofs, found on demand in the model of a program and its data.

The model is computed once, by the engine. A step looks only at the rules and atoms that can matter for its fact.
Outside of recursion any instance of a rule whose body holds is a step. In recursive components steps follow the order
in which facts can be derived (`derivations`), so that no proof runs in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tidelog.engine.repeats import Repetition, divided
from tidelog.language.facts import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Comparison, Fact
from tidelog.proofs.clauses import Clause, Leaf, added_to
from tidelog.proofs.derivations import Derivations, Way
from tidelog.proofs.evaluation import Ground, Lookup, gathered, support
from tidelog.proofs.facts import Ids
from tidelog.proofs.instances import instances, satisfied
from tidelog.proofs.sets import Pair, Times, cover, difference, intersection, least_part, spread, within
from tidelog.proofs.steps import Condition, Step
from tidelog.proofs.tree import Proof
from tidelog.proofs.wording import CLOCK, is_hidden
from tidelog.proofs.world import absence, world_of
from tidelog.timeline.grid import POS_INF, Grid, negated
from tidelog.timeline.interval import INF

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


class Explainer:
    """Proofs of the facts of one model.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> explainer = Explainer(program, tl.Dataset.parse("High(t1)@3"))
    >>> step = explainer.step("Hot(t1)@[4,6]")
    >>> step.kind, step.rule.text
    ('derived', 'Hot(X) :- Diamondminus[0,5] High(X).')
    >>> [f"{fact.predicate} at {fact.interval}" for fact in step.premises]
    ['High at 3']
    """

    def __init__(
        self,
        program: Program,
        data: Dataset,
        *,
        query: Sequence[str] | None = None,
        timeline: str | None = None,
        denominator: int = 1,
        sources: Sequence[tuple[str, Dataset]] = (),
    ) -> None:
        """`query` restricts the model to what these predicates depend on. Times are multiples of `1/denominator`, too.
        `sources` are the files that the data came from, so that given facts can be told by them."""
        self.program = program
        self.data = data
        self._timeline = timeline
        self._query = query
        self._sources = sources
        self._rebuild(denominator)

    def _rebuild(self, denominator: int) -> None:
        self.world = world_of(self.program, self.data, self._query, self._timeline, denominator)
        self._derivations = Derivations(self.world)
        self._steps: dict[tuple[Ground, Pair], Step] = {}
        self._repeating: dict[str, dict[tuple[Ids, bool], list[Repetition]]] = {}

    def grounded(self, fact: Fact | str) -> tuple[Ground, Pair]:
        """A fact on the grid, which is made finer where the fact needs it."""
        if isinstance(fact, str):
            temporal = self.program.temporal.temporal if self.program.temporal else frozenset()
            fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
        grid = self.world.grid
        ends = [Fraction(end).denominator for end in (fact.interval.lo, fact.interval.hi) if abs(end) != INF]
        if grid.dense and any(grid.denominator % end for end in ends):
            self._rebuild(lcm(grid.denominator, *ends))
        pair = self.world.grid.pair(fact.interval)
        return (fact.predicate, tuple(map(self.world.wording.symbols.intern, fact.args))), pair or (0, -1)

    def holds(self, fact: Fact | str) -> bool:
        """Whether a fact holds at every point of its interval."""
        atom, pair = self.grounded(fact)
        return pair[0] > pair[1] or not self.world.missing(atom, pair)

    def step(self, fact: Fact | str) -> Step | None:
        """Why a fact holds; None where it does not."""
        atom, pair = self.grounded(fact)
        if pair[0] > pair[1] or self.world.missing(atom, pair):
            return None
        key = atom, pair
        if key not in self._steps:
            self._steps[key] = self._found(atom, pair)
        return self._steps[key]

    def proof(self, fact: Fact | str, depth: int | None = None) -> Proof | None:
        """The steps from a fact down to given facts, or to a depth; None where the fact does not hold."""
        step = self.step(fact)
        if step is None:
            return None
        steps: dict[Fact, Step] = {}
        wave, level = [step.fact], 0
        while wave and (depth is None or level < depth):
            following: list[Fact] = []
            for wanted in wave:
                if wanted not in steps and (found := self.step(wanted)) is not None:
                    steps[wanted] = found
                    following += found.premises
            wave, level = following, level + 1
        return Proof(step.fact, steps, self.data.dates)

    # Steps

    def _found(self, atom: Ground, pair: Pair) -> Step:
        given = within(self.world.given(*atom), pair)
        if given == [pair]:
            fact = self.world.wording.fact(atom, pair)
            return Step(fact, "given", source=self._source(fact))
        recursive = atom[0] in self.world.recursive
        outside = difference([pair], [self.world.core])
        if outside and (recursive or self.world.repeating):
            inside = intersection([pair], [self.world.core])
            return self._pieces(atom, pair, sorted([*outside, *inside])) if inside else self._repeated(atom, pair)
        if not recursive:
            parts = cover(pair, self._ways(atom, pair, given))
        elif self._derivations.find(atom, pair):
            parts = cover(pair, self._derivations.ways(atom, pair))
        else:
            parts = []
        if not parts or parts[-1][0][1] < pair[1]:
            # Too many steps, or a condition that needs facts without end, like a box for ever over what repeats.
            return Step(self.world.wording.fact(atom, pair), "continues")
        if len(parts) > 1:
            return self._pieces(atom, pair, [part for part, _ in parts])
        return self._derived(atom, pair, parts[0][1])

    def _ways(self, atom: Ground, pair: Pair, given: Times) -> list[tuple[Pair, Way]]:
        """Ways to get parts of a stretch, up to the first that derives all of it."""
        ways = [(part, Way(None, {}, self.world.model.lookup)) for part in given]
        for clause in self.world.clauses.get(atom[0], ()):
            for binding, times in instances(clause, atom[1], pair, self.world.model):
                way = Way(clause, binding, self.world.model.lookup)
                for head in spread(times, clause.shift, self.world.grid.dense):
                    if head[0] <= pair[0] and head[1] >= pair[1]:
                        return [(head, way)]
                    ways.append((head, way))
        return ways

    def _pieces(self, atom: Ground, pair: Pair, parts: Sequence[Pair]) -> Step:
        facts = tuple(self.world.wording.fact(atom, part) for part in parts)
        return Step(self.world.wording.fact(atom, pair), "pieces", parts=facts)

    def _repeated(self, atom: Ground, pair: Pair) -> Step:
        """A stretch outside of the core holds as one near to the data does: everything repeats out there."""
        world, right = self.world, pair[0] > self.world.core[1]
        fact = world.wording.fact(atom, pair)
        for found in self._repetitions(atom[0]).get((atom[1], not right), ()):
            lo = found.part[0] + (pair[0] - found.part[0]) % found.every
            near = lo, lo + pair[1] - pair[0]
            if near[1] <= found.part[1]:
                every, start = world.grid.time(found.every), world.grid.time(found.at)
                return Step(fact, "repeats", parts=(world.wording.fact(atom, near),), every=every, anchor=start)
        # What does not repeat out there does not change: one tick is as good as all of it.
        at = world.changes[right]
        near = (at + 1, at + world.grid.tick) if right else (at - world.grid.tick, at - 1)
        return Step(fact, "repeats", parts=(world.wording.fact(atom, near),), anchor=world.grid.time(at))

    def _repetitions(self, predicate: str) -> dict[tuple[Ids, bool], list[Repetition]]:
        """What repeats of a predicate, by atom and by whether it does so before a time or after one."""
        if predicate not in self._repeating:
            found: dict[tuple[Ids, bool], list[Repetition]] = {}
            for one in divided(self.world.extents[predicate], self.world.grid.tick)[1]:
                found.setdefault((one.args, one.before), []).append(one)
            self._repeating[predicate] = found
        return self._repeating[predicate]

    def _derived(self, atom: Ground, pair: Pair, way: Way) -> Step:
        """The step of one instance of a rule, or of several where its body has to hold at times that lie apart."""
        clause, binding, lookup = way.clause, way.binding, way.lookup
        assert clause is not None, "what is given altogether is no part of a derivation"
        dense = self.world.grid.dense
        times: Times = [added_to(pair, negated(clause.shift), dense)]
        for part in (*clause.positive, *clause.negative):
            times = satisfied(part, binding, times, lookup, dense)
        heads = [(added_to(body, clause.shift, dense), body) for body in times]
        parts = cover(pair, heads)
        if len(parts) > 1:
            return self._pieces(atom, pair, [part for part, _ in parts])
        when = least_part(parts[0][1], clause.shift, pair, dense)
        return Step(
            self.world.wording.fact(atom, pair),
            "derived",
            clause.rule,
            self.world.wording.binding(binding),
            self.world.grid.interval(*when),
            tuple(self._conditions(clause, binding, when, lookup)),
        )

    def _conditions(self, clause: Clause, binding: dict[str, int], when: Pair, lookup: Lookup) -> Iterator[Condition]:
        parts = {id(part.literal): part for part in (*clause.positive, *clause.negative)}
        wording, interval = self.world.wording, self.world.grid.interval(*when)
        for literal in clause.rule.body:
            if isinstance(literal, Comparison):
                yield Condition("comparison", wording.comparison(literal, binding), interval)
                continue
            part = parts[id(literal)]
            if literal.negated:
                yield Condition("absent", *absence(self.world, part, binding, when))
                continue
            needed = gathered(support(part.reading, binding, when, lookup, self.world.grid.dense))
            facts = gathered([(atom, self._derivations.whole(atom, pair)) for atom, pair in needed])
            if any(is_hidden(atom[0]) for atom, _ in facts):
                for atom, pair in facts:
                    yield from self._hidden(atom, pair)
                continue
            plain = isinstance(part.reading, Leaf) or self.program.temporal is not None
            text = wording.formula(literal.formula, binding)
            yield Condition("fact" if plain else "operator", text, interval, tuple(wording.fact(*f) for f in facts))

    def _hidden(self, atom: Ground, pair: Pair) -> Iterator[Condition]:
        """What stands behind an auxiliary atom of temporal Datalog: the conditions that it was made from."""
        if atom[0] == CLOCK:
            return
        step = self._found(atom, pair)
        yield from step.conditions
        for part in step.parts:
            yield from self._hidden(*self.grounded(part))

    def _source(self, fact: Fact) -> str | None:
        """The file in which a given fact stands, or begins."""
        for name, data in self._sources:
            relation = data.relations.get((fact.predicate, len(fact.args)))
            if relation is None:
                continue
            here = np.ones(len(relation), bool)
            for column, value in zip(relation.args, fact.args, strict=True):
                here &= column == data.symbols.intern(value)
            grid = Grid(True, lcm(data.denominator, self.world.grid.denominator))
            scale = grid.denominator // data.denominator
            start = grid.pair(fact.interval)
            assert start is not None
            for lo, hi in zip(relation.lo[here].tolist(), relation.hi[here].tolist(), strict=True):
                lo, hi = (end if abs(end) == POS_INF else _scaled(end, scale) for end in (lo, hi))
                if lo <= start[0] <= hi:
                    return name
        return None


def _scaled(end: int, scale: int) -> int:
    """An end on the doubled grid on one whose ticks are so many times as fine."""
    return end * scale if end % 2 == 0 else (end - 1) * scale + 1
