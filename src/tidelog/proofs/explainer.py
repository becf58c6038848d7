"""Why facts hold: steps of proofs, found on demand in the model of a program and its data.

The engine computes the model once. A step looks only at the rules and atoms that can matter for its fact. Outside of
recursion, any instance of a rule whose body holds is a step. In recursive components, steps follow the order in which
facts can be derived (`derivations`), so that no proof is circular.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from tidelog.engine.repetition import Repetition, split_repetitions
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.calendar_predicates import is_calendar
from tidelog.language.fact_text import FactStyle
from tidelog.language.groups import collect_groups
from tidelog.language.hidden_predicates import CLOCK, is_hidden
from tidelog.language.program import Program
from tidelog.language.syntax import Comparison, Fact, Literal
from tidelog.proofs.derivations import Derivations, RuleApplication
from tidelog.proofs.encoded_rules import EncodedAtom, EncodedRule, shift_range
from tidelog.proofs.explained_model import build_asked_model, build_explained_model, describe_absence
from tidelog.proofs.fact_index import Ids
from tidelog.proofs.formula_evaluation import GroundAtom, Lookup, find_support, merge_facts
from tidelog.proofs.numeric_conditions import describe_condition
from tidelog.proofs.proof_step import Condition, ProofStep
from tidelog.proofs.proof_tree import Proof
from tidelog.proofs.rule_instances import find_instances, restrict_to_body
from tidelog.timeline.grid import NEG_INF, POS_INF, Grid, negate
from tidelog.timeline.interval import INF, Interval, TimelineName
from tidelog.timeline.time_sets import Pair, Times, choose_cover, choose_least_part, clip, dilate, intersect, subtract

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


class Explainer:
    """Finds proofs of the facts of one model.

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
        timeline: TimelineName | None = None,
        denominator: int = 1,
        sources: Sequence[tuple[str, Dataset]] = (),
        goal: Fact | None = None,
        asking: bool = False,
    ) -> None:
        """`query` restricts the model to what these predicates depend on. Times may be multiples of `1/denominator`.

        `goal` restricts it to what can matter for one fact: proofs of that fact are then the only ones to ask for.
        An explainer that is `asking` has no model, and finds out about facts when they are looked at: it is for facts
        of `query` that do not hold, and raises `TooManyFacts` where the whole model is needed.

        `sources` are the files that the data came from, so that proofs can name the file of a given fact.
        """
        self.program = program
        self.data = data
        self._timeline = timeline
        self._query = query
        self._sources = sources
        #: How facts of this program and data are written.
        self.style = FactStyle(data.dates, program.time_arguments)
        #: The facts asked for so far lie in this range, if that matters: if rules read a calendar.
        self._near: Interval | None = None
        self._goal, self._asking = goal, asking
        self._rebuild(denominator)

    def _rebuild(self, denominator: int) -> None:
        if self._asking:
            self.model = build_asked_model(self.program, self.data, self._query or (), self._timeline, denominator)
        else:
            self.model = build_explained_model(
                self.program, self.data, self._query, self._timeline, denominator, self._near, self._goal
            )
        self._derivations = Derivations(self.model)
        self._steps: dict[tuple[GroundAtom, Pair], ProofStep] = {}
        self._repeating: dict[str, dict[tuple[Ids, bool], list[Repetition]]] = {}

    def encode_fact(self, fact: Fact | str) -> tuple[GroundAtom, Pair]:
        """Return a fact as an atom and a pair on the grid, which is made finer if the fact requires it."""
        fact = self.program.to_fact(fact)
        grid = self.model.grid
        ends = [Fraction(end).denominator for end in (fact.interval.lo, fact.interval.hi) if abs(end) != INF]
        if grid.dense and any(grid.denominator % end for end in ends):
            self._rebuild(lcm(grid.denominator, *ends))
        self._extend_calendar(fact)
        pair = self.model.grid.to_pair(fact.interval)
        return (fact.predicate, tuple(map(self.model.decoder.symbols.intern, fact.args))), pair or (0, -1)

    def _extend_calendar(self, fact: Fact) -> None:
        """Generate more of the calendar if a fact follows from it without data, and lies outside of what is known."""
        calendar, grid = self.model.calendar, self.model.grid
        pair = grid.to_pair(fact.interval)
        if calendar is None or fact.predicate not in calendar.endless or pair is None:
            return
        if pair[0] < calendar.cut[0] or pair[1] > calendar.cut[1]:
            if NEG_INF in pair or POS_INF in pair:
                message = f"{fact.predicate} follows from a calendar, which is not known for all times"
                raise TidelogError(Diagnostic("TL315", message, help="ask about a finite range of time"))
            known = grid.to_interval(*calendar.cut)
            self._near = Interval(min(known.lo, fact.interval.lo), max(known.hi, fact.interval.hi))
            self._rebuild(grid.denominator)

    def holds(self, fact: Fact | str) -> bool:
        """Tell whether a fact holds at every point of its interval."""
        atom, pair = self.encode_fact(fact)
        return pair[0] > pair[1] or not self.model.missing_times(atom, pair)

    def step(self, fact: Fact | str) -> ProofStep | None:
        """Return the step that shows why a fact holds; None where it does not."""
        atom, pair = self.encode_fact(fact)
        if pair[0] > pair[1] or self.model.missing_times(atom, pair):
            return None
        key = atom, pair
        if key not in self._steps:
            self._steps[key] = self._find_step(atom, pair)
        return self._steps[key]

    def proof(self, fact: Fact | str, depth: int | None = None) -> Proof | None:
        """Return the steps from a fact down to given facts, or to a depth; None where the fact does not hold."""
        step = self.step(fact)
        if step is None:
            return None
        steps: dict[Fact, ProofStep] = {}
        wave, level = [step.fact], 0
        while wave and (depth is None or level < depth):
            following: list[Fact] = []
            for wanted in wave:
                if wanted not in steps and (found := self.step(wanted)) is not None:
                    steps[wanted] = found
                    following += found.premises
            wave, level = following, level + 1
        return Proof(step.fact, steps, self.style, collect_groups(self.program.rules))

    # Steps

    def _find_step(self, atom: GroundAtom, pair: Pair) -> ProofStep:
        """Find the step of a range in which an atom holds."""
        given = clip(self.model.given_times(*atom), pair)
        if given == [pair]:
            fact = self.model.decoder.fact(atom, pair)
            return ProofStep(fact, "given", source=self._find_source(fact))
        recursive = atom[0] in self.model.recursive
        outside = subtract([pair], [self.model.core])
        if outside and (recursive or self.model.repeating):
            inside = intersect([pair], [self.model.core])
            if inside:
                return self._split(atom, pair, sorted([*outside, *inside]))
            return self._repeat(atom, pair)
        if not recursive:
            parts = choose_cover(pair, self._find_applications(atom, pair, given))
        elif self._derivations.derive(atom, pair):
            parts = choose_cover(pair, self._derivations.find_applications(atom, pair))
        else:
            parts = []
        if not parts or parts[-1][0][1] < pair[1]:
            # Too many steps, or a condition that needs infinitely many facts, like an infinite box over what repeats.
            return ProofStep(self.model.decoder.fact(atom, pair), "continues")
        if len(parts) > 1:
            return self._split(atom, pair, [part for part, _ in parts])
        return self._apply(atom, pair, parts[0][1])

    def _find_applications(self, atom: GroundAtom, pair: Pair, given: Times) -> list[tuple[Pair, RuleApplication]]:
        """Return the applications that give parts of a range, up to the first that derives all of it."""
        applications = [(part, RuleApplication(None, {}, self.model.index.lookup)) for part in given]
        for rule in self.model.rules.get(atom[0], ()):
            for binding, times in find_instances(rule, atom[1], pair, self.model.index):
                application = RuleApplication(rule, binding, self.model.index.lookup)
                for head in dilate(times, rule.shift, self.model.grid.dense):
                    if head[0] <= pair[0] and head[1] >= pair[1]:
                        return [(head, application)]
                    applications.append((head, application))
        return applications

    def _split(self, atom: GroundAtom, pair: Pair, parts: Sequence[Pair]) -> ProofStep:
        """Return the step of a fact whose interval falls into parts."""
        facts = tuple(self.model.decoder.fact(atom, part) for part in parts)
        return ProofStep(self.model.decoder.fact(atom, pair), "pieces", parts=facts)

    def _repeat(self, atom: GroundAtom, pair: Pair) -> ProofStep:
        """Return the step of a range outside the core, which holds because an equivalent range near the data does."""
        model, right = self.model, pair[0] > self.model.core[1]
        fact = model.decoder.fact(atom, pair)
        for repetition in self._repetitions(atom[0]).get((atom[1], not right), ()):
            first, last = repetition.part
            lo = first + (pair[0] - first) % repetition.every
            near = lo, lo + pair[1] - pair[0]
            if near[1] <= last:
                every, start = model.grid.to_time(repetition.every), model.grid.to_time(repetition.at)
                return ProofStep(fact, "repeats", parts=(model.decoder.fact(atom, near),), every=every, anchor=start)
        # An atom that does not repeat out there does not change, so one tick stands for all of it.
        at = model.changes[right]
        near = (at + 1, at + model.grid.tick) if right else (at - model.grid.tick, at - 1)
        return ProofStep(fact, "repeats", parts=(model.decoder.fact(atom, near),), anchor=model.grid.to_time(at))

    def _repetitions(self, predicate: str) -> dict[tuple[Ids, bool], list[Repetition]]:
        """Return the repetitions of a predicate, by arguments and by whether they lie before the data."""
        if predicate not in self._repeating:
            repetitions: dict[tuple[Ids, bool], list[Repetition]] = {}
            for one in split_repetitions(self.model.extents[predicate], self.model.grid.tick)[1]:
                repetitions.setdefault((one.args, one.before), []).append(one)
            self._repeating[predicate] = repetitions
        return self._repeating[predicate]

    def _apply(self, atom: GroundAtom, pair: Pair, application: RuleApplication) -> ProofStep:
        """Return the step of one instance of a rule, or a split where its body must hold at times that lie apart."""
        rule, binding, lookup = application.rule, application.binding, application.lookup
        assert rule is not None, "a range that is given as a whole is not derived"
        dense = self.model.grid.dense
        times: Times = [shift_range(pair, negate(rule.shift), dense)]
        times = restrict_to_body(rule.body, binding, times, lookup, self.model.index)
        heads = [(shift_range(body, rule.shift, dense), body) for body in times]
        parts = choose_cover(pair, heads)
        if len(parts) > 1:
            return self._split(atom, pair, [part for part, _ in parts])
        when = choose_least_part(parts[0][1], rule.shift, pair, dense)
        return ProofStep(
            self.model.decoder.fact(atom, pair),
            "derived",
            rule.source,
            self.model.decoder.binding(binding),
            self.model.grid.to_interval(*when),
            tuple(self._conditions(rule, binding, when, lookup)),
        )

    def _conditions(
        self, rule: EncodedRule, binding: dict[str, int], when: Pair, lookup: Lookup
    ) -> Iterator[Condition]:
        """Yield the conditions of a rule's body, each with the facts that make it hold throughout `when`."""
        encoded = {id(literal.source): literal for literal in (*rule.positive, *rule.negative)}
        numeric = {id(condition.source): condition for condition in rule.body.conditions}
        model, interval = self.model.write_as(rule), self.model.grid.to_interval(*when)
        decoder = model.decoder
        for literal in rule.source.body:
            if not isinstance(literal, Literal):
                if id(literal) in numeric:
                    yield from describe_condition(model, rule, numeric[id(literal)], binding, when)
                    continue
                assert isinstance(literal, Comparison)
                yield Condition("comparison", decoder.format_literal(literal, binding), interval)
                continue
            formula = encoded[id(literal)].formula
            if literal.negated:
                yield Condition("absent", *describe_absence(model, encoded[id(literal)], binding, when))
                continue
            needed = merge_facts(find_support(formula, binding, when, lookup, self.model.grid.dense))
            facts = merge_facts([(atom, self._derivations.widen(atom, pair)) for atom, pair in needed])
            hidden = [(atom, pair) for atom, pair in facts if is_hidden(atom[0])]
            text = decoder.format_formula(literal.formula, binding)
            if hidden:
                if self.program.temporal is None:
                    seen = tuple(decoder.fact(*fact) for fact in facts if fact not in hidden)
                    yield Condition("operator", text, interval, seen)
                for atom, pair in hidden:
                    yield from self._conditions_behind(atom, pair)
                continue
            plain = isinstance(formula, EncodedAtom) or self.program.temporal is not None
            yield Condition("fact" if plain else "operator", text, interval, tuple(decoder.fact(*f) for f in facts))

    def _conditions_behind(self, atom: GroundAtom, pair: Pair) -> Iterator[Condition]:
        """Yield the conditions that an atom stands for that is a group, or an auxiliary one of temporal Datalog."""
        if atom[0] == CLOCK:
            return
        step = self._find_step(atom, pair)
        yield from step.conditions
        for part in step.parts:
            yield from self._conditions_behind(*self.encode_fact(part))

    def _find_source(self, fact: Fact) -> str | None:
        """Return the file that contains a given fact, or its beginning."""
        if is_calendar(fact.predicate):
            return "the calendar"
        for name, data in self._sources:
            relation = data.relations.get((fact.predicate, len(fact.args)))
            if relation is None:
                continue
            matches = np.ones(len(relation), bool)
            for column, value in zip(relation.args, fact.args, strict=True):
                matches &= column == data.symbols.intern(value)
            grid = Grid(True, lcm(data.denominator, self.model.grid.denominator))
            scale = grid.denominator // data.denominator
            start = grid.to_pair(fact.interval)
            assert start is not None
            for lo, hi in zip(relation.lo[matches].tolist(), relation.hi[matches].tolist(), strict=True):
                lo, hi = (end if abs(end) == POS_INF else _rescale(end, scale) for end in (lo, hi))
                if lo <= start[0] <= hi:
                    return name
        return None


def _rescale(end: int, scale: int) -> int:
    """Return an end of the doubled grid on a grid whose ticks are `scale` times as fine."""
    return end * scale if end % 2 == 0 else (end - 1) * scale + 1
