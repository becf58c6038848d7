"""Why a fact does not hold: for each rule that could derive it, the first condition that fails.

Conditions are tried in the order in which the user wrote them, negated ones and comparisons as soon as their variables
are bound. The conditions before the failing one hold together under the reported binding; the failing one holds at none
of the times at which the rule needs it. When it holds instead, and for which other constants it holds at those times,
is looked up in the model. Where the failing condition is a derived fact, the same question is asked about it in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from tidelog.language.bindings import literal_variables
from tidelog.language.hidden_predicates import is_hidden
from tidelog.language.syntax import BodyLiteral, Comparison, Fact, Literal, Rule, Unary, Value
from tidelog.proofs.encoded_rules import (
    Diamond,
    EncodedCondition,
    EncodedLiteral,
    EncodedRule,
    find_atom_windows,
    shift_range,
)
from tidelog.proofs.explained_model import ExplainedModel, resolve_atom
from tidelog.proofs.fact_index import match_atom
from tidelog.proofs.formula_evaluation import ANY, GroundAtom, find_support, find_times, merge_facts
from tidelog.proofs.numeric_conditions import FailingValue, describe_failure
from tidelog.proofs.rule_instances import (
    apply_condition,
    comparison_holds,
    find_bindings,
    is_ready,
    restrict_times,
)
from tidelog.timeline.grid import negate
from tidelog.timeline.interval import Interval
from tidelog.timeline.time_sets import Pair, Times, clip, coalesce, complement, dilate

#: The largest number of bindings that are tried for one condition.
_MOST_BINDINGS = 2_000
#: The largest number of other values that are reported.
_MOST_EXAMPLES = 3
#: The encoded literals and conditions of a rule by the identity of their source, without comparisons of bound terms.
_Encoded = Mapping[int, EncodedLiteral | EncodedCondition]
#: How many levels of failing conditions are explained in turn.
DEPTH = 2


@dataclass(frozen=True, slots=True)
class BlockedRule:
    """A rule, and its first condition that fails.

    Under `binding` the conditions in `satisfied` hold, and `failing` holds at no time of `when`. It does hold at the
    times `nearest`, and at some time of `when` with the values of `others`. `blockers` are the facts that make a
    negated condition fail; `because` says why a derived one fails.
    """

    rule: Rule
    failing: BodyLiteral
    text: str
    binding: Mapping[str, Value]
    when: tuple[Interval, ...]
    satisfied: tuple[str, ...] = ()
    nearest: tuple[Interval, ...] = ()
    others: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    #: How many other bindings satisfy the same conditions and fail at this one too.
    other_bindings: int = 0
    blockers: tuple[Fact, ...] = ()
    because: WhyNot | None = None
    #: The values with which a condition with numbers fails.
    values: tuple[FailingValue, ...] = ()


@dataclass(frozen=True, slots=True)
class WhyNot:
    """A fact at one moment that does not hold, and the rules that could have derived it."""

    fact: Fact
    blocked: tuple[BlockedRule, ...] = ()
    #: The last times before and the first times after at which it holds.
    nearest: tuple[Interval, ...] = ()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A binding that satisfies the conditions so far, and the times at which it does."""

    binding: dict[str, int]
    times: Times

    @property
    def window(self) -> Pair:
        """The times from the first to the last."""
        return self.times[0][0], self.times[-1][1]


def explain_absence(model: ExplainedModel, atom: GroundAtom, moment: Pair, depth: int = DEPTH) -> WhyNot:
    """Explain why a ground atom does not hold at one moment of the core."""
    blocked = [
        blocked_rule
        for rule in model.rules.get(atom[0], ())
        if (binding := match_atom(rule.head, atom[1], {})) is not None
        for blocked_rule in _find_blocked(model, rule, binding, moment, depth)
    ]
    # Rules that are alternatives of one as written often fail at the same condition.
    blocked = list({(one.rule.text, one.text, one.when, one.satisfied): one for one in reversed(blocked)}.values())[
        ::-1
    ]
    nearest = _find_nearest(model, model.index.times(*atom), moment)
    return WhyNot(model.decoder.fact(atom, moment), tuple(blocked), nearest)


def split_absence(model: ExplainedModel, atom: GroundAtom, gap: Pair) -> list[Pair]:
    """Cut a range in which a ground atom does not hold into parts with one explanation each.

    Throughout a part, every rule fails at the same condition, and the same bindings satisfy the conditions before it.
    """
    cuts = {gap[0], gap[1] + 1}
    for rule in model.rules.get(atom[0], ()):
        binding = match_atom(rule.head, atom[1], {})
        for _, _, further in _narrow(model, rule, binding, gap) if binding is not None else ():
            for candidate in further:
                for lo, hi in dilate(candidate.times, rule.shift, model.grid.dense):
                    cuts |= {lo, hi + 1}
    ordered = sorted(cut for cut in cuts if gap[0] <= cut <= gap[1] + 1)
    return [(lo, after - 1) for lo, after in pairwise(ordered)]


def _find_blocked(
    model: ExplainedModel, rule: EncodedRule, binding: dict[str, int], moment: Pair, depth: int
) -> Iterator[BlockedRule]:
    """Yield the first condition that fails for every binding, if there is one."""
    satisfied: list[BodyLiteral] = []
    for literal, candidates, further in _narrow(model, rule, binding, moment):
        if not further:
            written = model.write_as(rule)
            failure = _Failure(written, rule, _encode_conditions(rule), candidates[0], tuple(satisfied), depth)
            yield replace(failure.describe(literal), other_bindings=len(candidates) - 1)
        satisfied.append(literal)


def _narrow(
    model: ExplainedModel, rule: EncodedRule, binding: dict[str, int], moment: Pair
) -> Iterator[tuple[BodyLiteral, list[_Candidate], list[_Candidate]]]:
    """Yield the conditions of a rule with the candidates before and after each, until none is left."""
    encoded = _encode_conditions(rule)
    candidates = [_Candidate(binding, [shift_range(moment, negate(rule.shift), model.grid.dense)])]
    for literal in _order_conditions(rule, binding, encoded):
        further = list(islice(_satisfy(model, literal, encoded, candidates), _MOST_BINDINGS))
        yield literal, candidates, further
        if not further:
            return
        candidates = further


def _encode_conditions(rule: EncodedRule) -> _Encoded:
    encoded: _Encoded = {id(literal.source): literal for literal in (*rule.positive, *rule.negative)}
    return {**encoded, **{id(condition.source): condition for condition in rule.body.conditions}}


def _order_conditions(rule: EncodedRule, binding: dict[str, int], encoded: _Encoded) -> Iterator[BodyLiteral]:
    """Yield the body in the order of the source, but no condition before its variables are bound."""
    bound = set(binding)
    waiting = list(rule.source.body)
    while waiting:
        literal = next((one for one in waiting if _is_ready(one, encoded, bound)), waiting[0])
        waiting.remove(literal)
        found = encoded.get(id(literal))
        if found is not None:
            bound.update(found.variables)
        yield literal


def _is_ready(literal: BodyLiteral, encoded: _Encoded, bound: set[str]) -> bool:
    if isinstance(literal, Literal) and not literal.negated:
        return True
    found = encoded.get(id(literal))
    if found is not None:
        return is_ready(found, bound)
    assert not isinstance(literal, Literal)
    return all(variable.name in bound for variable in literal_variables(literal))


def _satisfy(
    model: ExplainedModel, condition: BodyLiteral, encoded: _Encoded, candidates: Sequence[_Candidate]
) -> Iterator[_Candidate]:
    """Yield the candidates that satisfy one more condition, with the times that remain."""
    index = model.index
    found = encoded.get(id(condition))
    if isinstance(found, EncodedLiteral) and len(candidates) > 1:
        bindings_so_far = [candidate.binding for candidate in candidates]
        within = min(one.window[0] for one in candidates), max(one.window[1] for one in candidates)
        for atom, window in find_atom_windows(found.formula, within, index.dense):
            index.expect(atom, bindings_so_far, window)
    for candidate in candidates:
        if found is None:
            assert isinstance(condition, Comparison)
            if comparison_holds(condition, candidate.binding, index.value):
                yield candidate
        elif isinstance(found, EncodedCondition):
            for binding, times in apply_condition(found, candidate.binding, candidate.times, index):
                yield _Candidate(binding, times)
        else:
            bindings = (
                [candidate.binding]
                if found.source.negated
                else find_bindings(found, candidate.binding, candidate.window, index)
            )
            for binding in bindings:
                times = restrict_times(found, binding, candidate.times, index.lookup_cut, index.dense)
                if times:
                    yield _Candidate(binding, times)


@dataclass(frozen=True, slots=True)
class _Failure:
    """The place where a rule is blocked: the first candidate that satisfies all conditions before the failing one."""

    model: ExplainedModel
    rule: EncodedRule
    #: The encoded literals by the identity of their source.
    encoded: _Encoded
    candidate: _Candidate
    satisfied: tuple[BodyLiteral, ...]
    depth: int

    def describe(self, condition: BodyLiteral) -> BlockedRule:
        """Describe how a condition fails."""
        encoded = self.encoded.get(id(condition))
        if isinstance(encoded, EncodedCondition):
            return self._describe_numeric(condition, encoded)
        if not isinstance(condition, Literal) or encoded is None:
            return self._describe_any(condition)
        if condition.negated:
            return self._describe_negated(condition, encoded)
        return self._describe_positive(condition, encoded)

    def _describe_numeric(self, condition: BodyLiteral, encoded: EncodedCondition) -> BlockedRule:
        """Give the values with which a condition fails, and the nearest times at which it holds."""
        model, candidate = self.model, self.candidate
        values = tuple(describe_failure(model, self.rule, encoded, candidate.binding, candidate.window))
        nearest: tuple[Interval, ...] = ()
        if encoded.aggregates:
            times = [model.known_times]
            found = apply_condition(encoded, candidate.binding, times, model.index)
            held = coalesce(pair for _, pairs in islice(found, _MOST_BINDINGS) for pair in pairs)
            nearest = _find_nearest(model, held, candidate.window)
        return replace(self._describe_any(condition), values=values, nearest=nearest)

    def _describe_negated(self, literal: Literal, encoded: EncodedLiteral) -> BlockedRule:
        """Name the facts that make a negated condition fail, and the nearest times at which it holds."""
        model, binding, window = self.model, self.candidate.binding, self.candidate.window
        lookup, dense = model.index.lookup, model.grid.dense
        held = clip(find_times(encoded.formula, binding, window, lookup, dense), self.candidate.times[0])
        facts = merge_facts(find_support(encoded.formula, binding, (held[0][0], held[0][0]), lookup, dense))
        free = complement(find_times(encoded.formula, binding, model.known_times, lookup, dense))
        return replace(
            self._describe_any(literal, encoded),
            nearest=_find_nearest(model, clip(free, model.known_times), window),
            blockers=tuple(model.decoder.fact(*fact) for fact in facts),
        )

    def _describe_positive(self, literal: Literal, encoded: EncodedLiteral) -> BlockedRule:
        """Name the nearest times and other values for which a condition holds, and why it fails if it is derived."""
        model, window = self.model, self.candidate.window
        times_held = [
            pair
            for binding in islice(
                find_bindings(encoded, self.candidate.binding, model.known_times, model.index), _MOST_BINDINGS
            )
            for pair in find_times(encoded.formula, binding, model.known_times, model.index.lookup, model.grid.dense)
        ]
        if model.temporal and isinstance(encoded.formula, Diamond):
            # Temporal Datalog reports the time of the atom, not that of the head.
            back = negate(encoded.formula.by)
            times_held = dilate(times_held, back, model.grid.dense)
            window = shift_range(window, back, model.grid.dense)
        return replace(
            self._describe_any(literal, encoded),
            nearest=_find_nearest(model, coalesce(times_held), window),
            others=tuple(self._find_other_values(literal, encoded)),
            because=self._explain_condition(encoded),
        )

    def _describe_any(self, condition: BodyLiteral, encoded: EncodedLiteral | None = None) -> BlockedRule:
        """Describe what failing conditions of all kinds have in common."""
        model, candidate = self.model, self.candidate
        satisfied = tuple(
            _format_condition(model, one, candidate.binding)
            for one in self.satisfied
            if not _mentions_hidden(self.encoded.get(id(one)))
        )
        text = _format_condition(model, condition, candidate.binding)
        when = tuple(model.grid.to_interval(*pair) for pair in candidate.times)
        if encoded is not None and model.temporal:
            text, interval = _format_temporal(model, encoded, candidate.binding, candidate.window)
            when = (interval,)
        binding = model.decoder.binding(candidate.binding)
        return BlockedRule(self.rule.source, condition, text, binding, when, satisfied)

    def _find_other_values(
        self, literal: Literal, encoded: EncodedLiteral
    ) -> Iterator[tuple[str, Mapping[str, Value]]]:
        """Yield bindings to other constants under which a condition holds at one of the times."""
        model, candidate = self.model, self.candidate
        if not any(name in candidate.binding for name in encoded.variables):
            return
        bindings = (
            binding
            for binding in find_bindings(encoded, {}, candidate.window, model.index)
            if ANY not in binding.values()
            and restrict_times(encoded, binding, candidate.times, model.index.lookup_cut, model.grid.dense)
        )
        for binding in islice(bindings, _MOST_EXAMPLES):
            resolved = resolve_atom(model, encoded, binding, candidate.window) if model.temporal else None
            if resolved is not None:
                text = model.decoder.format_atom(resolved[0])
            else:
                text = model.decoder.format_formula(literal.formula, binding)
            yield text, model.decoder.binding(binding)

    def _explain_condition(self, encoded: EncodedLiteral) -> WhyNot | None:
        """Explain why a condition that is a derived fact fails, at the last time at which it would be of use."""
        model, candidate = self.model, self.candidate
        resolved = resolve_atom(model, encoded, candidate.binding, candidate.times[-1])
        if self.depth == 0 or resolved is None or resolved[0][0] not in model.rules:
            return None
        atom, window = resolved
        if min(atom[1], default=0) < 0:
            return None  # there is nothing to say about a constant that only rules mention
        last = model.find_last_moment(window)
        return None if last is None else explain_absence(model, atom, (last, last), self.depth - 1)


def _find_nearest(model: ExplainedModel, times: Sequence[Pair], window: Pair) -> tuple[Interval, ...]:
    """Return the last of the times before a window and the first after it."""
    before = [pair for pair in times if pair[1] < window[0]][-1:]
    after = [pair for pair in times if pair[0] > window[1]][:1]
    return tuple(model.grid.to_interval(*pair) for pair in before + after)


def _format_condition(model: ExplainedModel, condition: BodyLiteral, binding: dict[str, int]) -> str:
    return model.decoder.format_literal(condition, binding)


def _format_temporal(
    model: ExplainedModel, literal: EncodedLiteral, binding: dict[str, int], window: Pair
) -> tuple[str, Interval]:
    """Write a condition as temporal Datalog has it: an atom, and the times at which it is read."""
    prefix = "not " if literal.source.negated else ""
    resolved = resolve_atom(model, literal, binding, window)
    if resolved is not None:
        atom, window = resolved
        return prefix + model.decoder.format_atom(atom), model.grid.to_interval(*window)
    formula = literal.source.formula
    if isinstance(formula, Unary) and isinstance(literal.formula, Diamond):
        formula, window = formula.arg, shift_range(window, negate(literal.formula.by), model.grid.dense)
    if _mentions_hidden(literal):
        text = "what the rule requires at another time"
    else:
        text = model.decoder.format_formula(formula, binding)
    return prefix + text, model.grid.to_interval(*window)


def _mentions_hidden(literal: EncodedLiteral | EncodedCondition | None) -> bool:
    """Tell whether a literal mentions an auxiliary predicate that the user did not write."""
    if not isinstance(literal, EncodedLiteral):
        return False
    return any(is_hidden(atom.predicate) for atom, _ in find_atom_windows(literal.formula, (0, 0), True))
