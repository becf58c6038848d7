"""The atoms that can matter for a question, found by following its constants through rules and facts.

This is the idea of magic sets, with two simplifications that keep it small and cheap. Time is left out: a fact counts
if it holds at some time. And sets of atoms are boxes: a set of constants for some of the positions, anything at the
others. So everything is done with whole columns, and takes time that is linear in the facts that matter.

A rule whose head is in a box is followed from literal to literal. Each literal that shares a constant or a variable
with what is known is asked for with the constants known so far (its *box*), and the constants of its facts (its
*values*) restrict the variables further. Negated literals come last. Of an aggregate, the constants of the group are
asked for, so that groups are complete. Where an expression computes a value, anything may come out.

Why this is sound: let *Pos* be the program without times and without negated literals. Everything that the program
derives, from all facts or from some of them, is an atom of Pos over all facts. By induction over derivations in Pos,
the values of a box contain the constants of all atoms of Pos inside the box, because every rule is followed with them.
So let a rule derive an atom in a box, with positive atoms that are all atoms of Pos: each of them, and each negated
atom, is in a box that was asked for. If one of them is no atom of Pos, the rule derives nothing, over all facts or over
some. So the atoms in boxes depend on atoms in boxes alone, and the given facts outside can be left out. That some rules
then derive other atoms outside, where facts are missing, does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidelog.compiler.compiled_program import CompiledProgram
from tidelog.compiler.flat_rules import FlatLiteral, FlatRule
from tidelog.engine.batch_problem import Problem
from tidelog.goals.given_columns import NOTHING, Constants, GivenColumns, contains, join_sets
from tidelog.language.core_rules import Aggregation
from tidelog.language.syntax import Constant, Term, Variable

#: Sets of constants by position; anything is at the other positions.
Box = Mapping[int, Constants]
#: A predicate, and the positions at which its constants are known.
Node = tuple[str, tuple[int, ...]]

#: How much work may be done before the search is given up, in rows that are looked at: for each fact at most a few
#: hundredths of what evaluating it takes. To follow a rule takes as long as looking at many rows, and each rule may be
#: followed some times in any case.
WORK_PER_FACT, WORK_PER_RULE, TIMES_PER_RULE, WORK_IN_ANY_CASE = 100, 20_000, 16, 2_000_000


class _TooMuch(Exception):
    """The question is not selective enough for the search to pay."""


class _Values:
    """The constants at each position of the facts in a box, None for anything; `some` says whether there are facts."""

    def __init__(self, arity: int) -> None:
        self.columns: list[Constants | None] = [NOTHING] * arity
        self.some = False


def find_demand(problem: Problem, goals: Iterable[tuple[str, Box]]) -> dict[str, list[Box]] | None:
    """Return the boxes of all atoms that can matter for the goals, by predicate; those without a box cannot matter.

    Return None where there is too much to follow.
    """
    search = _Search(problem)
    try:
        for name, box in goals:
            search.ask((name, tuple(box)), list(box.values()))
        search.run()
    except _TooMuch:
        return None
    found: dict[str, list[Box]] = {}
    for (name, positions), sets in search.boxes.items():
        found.setdefault(name, []).append(dict(zip(positions, sets, strict=True)))
    return {name: _drop_covered(search.columns, boxes) for name, boxes in found.items()}


def _drop_covered(columns: GivenColumns, boxes: Sequence[Box]) -> list[Box]:
    """Leave out boxes that lie within others."""
    kept: list[Box] = []
    for box in sorted(boxes, key=len):
        if not any(all(at in box and columns.is_subset(box[at], ids) for at, ids in wide.items()) for wide in kept):
            kept.append(box)
    return kept


def collect_clauses(compiled: CompiledProgram) -> Iterator[FlatRule]:
    """Yield all rules, and each calculation and aggregation as the rule between its input and its head."""
    yield from compiled.rules
    for step in compiled.steps:
        args, inputs = step.head.args, step.input.args
        if isinstance(step, Aggregation):
            # Positions count, not names: the head has the group, in some order, and perhaps a value.
            inputs = tuple(Variable(f"$in{position}") for position in range(len(inputs)))
            group = [inputs[position] for position in step.group]
            args = tuple(group[k] if k < len(group) else Variable("$value") for k in step.output)
        body = (FlatLiteral(step.input.predicate, inputs),)
        yield FlatRule(step.head.predicate, args, (0, 0), body, (), step.origin)


@dataclass
class _Binding:
    """The constants that the variables of a rule may have; variables without a set may have any."""

    columns: GivenColumns
    ids: Mapping[object, int]
    sets: dict[Variable, Constants]

    def restrict(self, term: Term, constants: Constants) -> bool:
        """Restrict a term to some constants; return False if nothing is left."""
        if isinstance(term, Constant):
            return contains(constants, self.ids[term.value])
        known = self.sets.get(term)
        self.sets[term] = constants if known is None else self.columns.intersect(known, constants)
        return len(self.sets[term]) > 0

    def find(self, term: Term) -> Constants | None:
        """Return the constants that a term may have, None for any."""
        if isinstance(term, Constant):
            return np.array([self.ids[term.value]], np.int32)
        return self.sets.get(term)


class _Search:
    def __init__(self, problem: Problem) -> None:
        self.columns = GivenColumns(problem.given, len(problem.symbols))
        self.arities = problem.compiled.arities
        self.rules: dict[str, list[FlatRule]] = {}
        self.ids: dict[object, int] = {}
        for rule in collect_clauses(problem.compiled):
            self.rules.setdefault(rule.predicate, []).append(rule)
            for term in rule.terms():
                if isinstance(term, Constant):
                    self.ids[term.value] = problem.symbols.intern(term.value)
        facts, rules = sum(map(len, problem.given.values())), sum(map(len, self.rules.values()))
        self.limit = WORK_IN_ANY_CASE + WORK_PER_FACT * facts + TIMES_PER_RULE * WORK_PER_RULE * rules
        self.boxes: dict[Node, list[Constants]] = {}
        self.values: dict[Node, _Values] = {}
        #: The constants of boxes that rules have not been followed with.
        self.fresh: dict[Node, list[Constants]] = {}
        #: Nodes whose rules have to be followed again, since they read others whose values have grown.
        self.stale: set[Node] = set()
        self.readers: dict[Node, set[Node]] = {}
        self.agenda: list[Node] = []

    def ask(self, node: Node, sets: Sequence[Constants]) -> None:
        """Ask for more atoms of a node."""
        box = self.boxes.get(node)
        if box is None:
            self.boxes[node], more = list(sets), list(sets)
        else:
            more = [self.columns.subtract(new, old) for old, new in zip(box, sets, strict=True)]
            if not any(map(len, more)):
                return
            self.boxes[node] = [join_sets(old, new) for old, new in zip(box, more, strict=True)]
        if node[0] in self.rules:
            waiting = self.fresh.get(node)
            self.fresh[node] = more if waiting is None else list(map(join_sets, waiting, more))
            self.agenda.append(node)

    def run(self) -> None:
        """Follow rules until nothing more is asked for."""
        while self.agenda:
            node = self.agenda.pop()
            fresh, stale = self.fresh.pop(node, None), node in self.stale
            self.stale.discard(node)
            if fresh is None and not stale:
                continue
            box = self.boxes[node]
            if fresh is not None and self.columns.size(node[0]):
                self._add_values(node, self._find_given(node[0], dict(zip(node[1], box, strict=True))))
            if fresh is None or stale or not node[1] or all(map(np.array_equal, fresh, box)):
                self._follow(node, box)
                continue
            # Every new atom of the box has a new constant at one of the positions at least.
            for place, new in enumerate(fresh):
                if len(new):
                    self._follow(node, [*box[:place], new, *box[place + 1 :]])

    def _follow(self, node: Node, sets: Sequence[Constants]) -> None:
        """Follow the rules of a node for a part of its box."""
        name, positions = node
        for rule in self.rules[name]:
            self.columns.work += WORK_PER_RULE
            if self.columns.work > self.limit:
                raise _TooMuch
            binding = _Binding(self.columns, self.ids, {})
            heads = (rule.args[position] for position in positions)
            if all(map(binding.restrict, heads, sets)) and self._follow_body(node, rule, binding):
                self._add_values(node, [binding.find(term) for term in rule.args])

    def _follow_body(self, node: Node, rule: FlatRule, binding: _Binding) -> bool:
        """Ask for what a body reads; return whether it may hold."""
        for comparison in rule.comparisons:
            for term, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
                if comparison.op == "=" and isinstance(term, Variable) and isinstance(other, Constant):
                    known = binding.find(other)
                    if known is not None and not binding.restrict(term, known):
                        return False
        waiting = [literal for literal in rule.body if not literal.negated]
        while waiting:
            literal = max(waiting, key=lambda literal: self._rate(literal, binding))
            waiting.remove(literal)
            columns = self._read(node, literal, binding)
            if columns is None:
                return False
            for term, column in zip(literal.args, columns, strict=True):
                if column is not None and not binding.restrict(term, column):
                    return False
        for literal in rule.body:
            if literal.negated:
                self._read(node, literal, binding)
        return True

    def _rate(self, literal: FlatLiteral, binding: _Binding) -> tuple[bool, int, bool, int]:
        """Rate how good a literal is to go on with: it should be close to what is known, given, and small."""
        variables = [term for term in literal.args if isinstance(term, Variable)]
        known = [term for term in variables if term in binding.sets]
        bound = bool(known) or len(variables) < len(literal.args)
        given = literal.predicate not in self.rules
        return bound, len(known) - len(variables) + bool(known), given, -self.columns.size(literal.predicate)

    def _read(self, node: Node, literal: FlatLiteral, binding: _Binding) -> Sequence[Constants | None] | None:
        """Ask for the atoms of a literal; return the constants of its facts by position, None if there are none."""
        box = {at: known for at, term in enumerate(literal.args) if (known := binding.find(term)) is not None}
        name = literal.predicate
        asked = name, tuple(box)
        self.ask(asked, list(box.values()))
        if name not in self.rules:
            return self._find_given(name, box) if self.columns.size(name) else None
        self.readers.setdefault(asked, set()).add(node)
        values = self.values.get(asked)
        return values.columns if values is not None and values.some else None

    def _find_given(self, name: str, box: Box) -> Sequence[Constants | None] | None:
        """Return the constants of the given facts in a box, by position; None if there are no such facts."""
        arity = self.arities[name]
        if not box:
            return [None] * arity
        places = self.columns.select(name, box)
        return [self.columns.column(name, at, places) for at in range(arity)] if len(places) else None

    def _add_values(self, node: Node, columns: Sequence[Constants | None] | None) -> None:
        """Add to the values of a node; those who read it are followed again if they are new."""
        if columns is None:
            return
        values = self.values.setdefault(node, _Values(len(columns)))
        grown = not values.some
        values.some = True
        for at, (old, new) in enumerate(zip(values.columns, columns, strict=True)):
            if old is None:
                continue
            if new is None:
                values.columns[at], grown = None, True
            elif len(more := self.columns.subtract(new, old)):
                values.columns[at], grown = join_sets(old, more), True
        if grown:
            for reader in self.readers.get(node, ()):
                self.stale.add(reader)
                self.agenda.append(reader)
