"""Why a fact does not hold: for each rule that could derive it, the first condition that fails.

Conditions are taken in the order in which the user wrote them, negated ones and comparisons as soon as their variables
are bound. Those before the failing one hold together for the binding that is told; the failing one holds at none of the
times at which the rule would need it. When it holds instead, and for which other constants it holds then, is looked up
in the model; where it is a derived fact, the same question is asked of it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tidelog.language.syntax import BodyLiteral, Comparison, Fact, Literal, Rule, Unary, Value
from tidelog.proofs.clauses import Clause, Part, Some, added_to
from tidelog.proofs.evaluation import ANY, Ground, gathered, holds, support
from tidelog.proofs.instances import bindings, compared, matched, satisfied
from tidelog.proofs.sets import Pair, Times, coalesced, complement, spread, within
from tidelog.proofs.world import World, seen_through
from tidelog.timeline.grid import negated
from tidelog.timeline.interval import Interval

#: How many bindings are looked at for one condition, and how many examples are told.
_BINDINGS = 2_000
_EXAMPLES = 3
#: How far down failing conditions are explained in turn.
DEPTH = 2


@dataclass(frozen=True, slots=True)
class Blocked:
    """A rule, and its first condition that fails.

    Under `binding` the conditions in `satisfied` hold, and `failing` holds at no time of `when`. It holds at the times
    `nearest`, and then and there with the values of `others` instead. `blockers` are the facts that make a negated
    condition fail; `because` says why a derived one does.
    """

    rule: Rule
    failing: BodyLiteral
    text: str
    binding: Mapping[str, Value]
    when: tuple[Interval, ...]
    satisfied: tuple[str, ...] = ()
    nearest: tuple[Interval, ...] = ()
    others: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    #: How many other bindings come as far, and fail here, too.
    ways: int = 0
    blockers: tuple[Fact, ...] = ()
    because: WhyNot | None = None


@dataclass(frozen=True, slots=True)
class WhyNot:
    """A fact of one moment that does not hold, and the rules that could have derived it."""

    fact: Fact
    blocked: tuple[Blocked, ...] = ()
    #: The times before and after at which it holds.
    nearest: tuple[Interval, ...] = ()


def why_not(world: World, atom: Ground, moment: Pair, depth: int = DEPTH) -> WhyNot:
    """Why a ground atom does not hold at one moment of the core."""
    blocked = [
        found
        for clause in world.clauses.get(atom[0], ())
        if (binding := matched(clause.head, atom[1], {})) is not None
        for found in _blocked(world, clause, binding, moment, depth)
    ]
    nearest = _nearest(world, world.model.times(*atom), moment)
    return WhyNot(world.wording.fact(atom, moment), tuple(blocked), nearest)


def _blocked(world: World, clause: Clause, binding: dict[str, int], moment: Pair, depth: int) -> Iterator[Blocked]:
    """The first condition that fails, for the first binding that comes so far."""
    parts = {id(part.literal): part for part in (*clause.positive, *clause.negative)}
    window = added_to(moment, negated(clause.shift), world.grid.dense)
    reached: list[tuple[dict[str, int], Times]] = [(binding, [window])]
    met: list[BodyLiteral] = []
    for literal in _ordered(clause, binding):
        further = list(islice(_further(world, literal, parts, reached), _BINDINGS))
        if not further:
            found = _failure(world, clause, literal, parts.get(id(literal)), reached[0], tuple(met), depth)
            yield replace(found, ways=len(reached) - 1)
            return
        reached = further
        met.append(literal)


def _ordered(clause: Clause, binding: dict[str, int]) -> Iterator[BodyLiteral]:
    """The body as written, but nothing before its variables are bound."""
    bound = set(binding)
    binders = {id(part.literal): part for part in clause.positive}
    waiting = list(clause.rule.body)
    while waiting:
        ready = (one for one in waiting if id(one) in binders or _needs(clause, one) <= bound)
        literal = next(ready, waiting[0])
        waiting.remove(literal)
        if id(literal) in binders:
            bound.update(binders[id(literal)].variables)
        yield literal


def _needs(clause: Clause, literal: BodyLiteral) -> set[str]:
    if isinstance(literal, Comparison):
        return {name for term in (literal.left, literal.right) if (name := getattr(term, "name", None))}
    return {name for part in clause.negative if part.literal is literal for name in part.variables}


def _further(
    world: World, literal: BodyLiteral, parts: Mapping[int, Part], reached: Sequence[tuple[dict[str, int], Times]]
) -> Iterator[tuple[dict[str, int], Times]]:
    """The bindings that satisfy one more condition, with the times that are left."""
    model = world.model
    for binding, times in reached:
        if isinstance(literal, Comparison):
            if compared(literal, binding, model.value):
                yield binding, times
            continue
        part = parts[id(literal)]
        hull = times[0][0], times[-1][1]
        for extended in [binding] if literal.negated else bindings(part, binding, hull, model):
            left = satisfied(part, extended, times, model.lookup, model.dense)
            if left:
                yield extended, left


def _failure(
    world: World,
    clause: Clause,
    literal: BodyLiteral,
    part: Part | None,
    reached: tuple[dict[str, int], Times],
    met: tuple[BodyLiteral, ...],
    depth: int,
) -> Blocked:
    binding, times = reached
    wording, when = world.wording, (times[0][0], times[-1][1])
    told = tuple(text for one in met if "$" not in (text := _text(world, one, binding)))
    values, needed = wording.binding(binding), tuple(world.grid.interval(*pair) for pair in times)
    text = _text(world, literal, binding)
    if part is not None and world.temporal:
        text, shifted = _without_operators(world, part, binding, when)
        needed = (shifted,)
    if part is None or isinstance(literal, Comparison):
        return Blocked(clause.rule, literal, text, values, needed, told)
    if literal.negated:
        held = within(holds(part.reading, binding, when, world.model.lookup, world.grid.dense), times[0])
        facts = gathered(support(part.reading, binding, (held[0][0], held[0][0]), world.model.lookup, world.grid.dense))
        free = complement(holds(part.reading, binding, world.core, world.model.lookup, world.grid.dense))
        blockers = tuple(wording.fact(*fact) for fact in facts)
        nearest = _nearest(world, within(free, world.core) if world.repeating else free, when)
        return Blocked(clause.rule, literal, text, values, needed, told, nearest, blockers=blockers)
    ever = [
        pair
        for extended in islice(bindings(part, binding, world.core, world.model), _BINDINGS)
        for pair in holds(part.reading, extended, world.core, world.model.lookup, world.grid.dense)
    ]
    if world.temporal and isinstance(part.reading, Some):
        # Temporal Datalog tells the time of the atom, not that of the head.
        back = negated(part.reading.by)
        ever, when = spread(ever, back, world.grid.dense), added_to(when, back, world.grid.dense)
    nearest = _nearest(world, coalesced(ever), when)
    others = tuple(_others(world, literal, part, binding, times))
    because = _because(world, part, binding, times, depth)
    return Blocked(clause.rule, literal, text, values, needed, told, nearest, others, because=because)


def _without_operators(world: World, part: Part, binding: dict[str, int], when: Pair) -> tuple[str, Interval]:
    """A condition as temporal Datalog has it: an atom, and at which time."""
    deny = "not " if part.literal.negated else ""
    seen = seen_through(world, part, binding, when)
    if seen is not None:
        return deny + world.wording.atom(seen[0]), world.grid.interval(*seen[1])
    formula, reading = part.literal.formula, part.reading
    if isinstance(formula, Unary) and isinstance(reading, Some):
        formula, when = formula.arg, added_to(when, negated(reading.by), world.grid.dense)
    text = world.wording.formula(formula, binding)
    return deny + ("what the rule asks for at another time" if "$" in text else text), world.grid.interval(*when)


def _others(
    world: World, literal: Literal, part: Part, binding: dict[str, int], times: Times
) -> Iterator[tuple[str, Mapping[str, Value]]]:
    """Bindings with other constants under which a condition holds at one of the times."""
    hull = times[0][0], times[-1][1]
    found = (
        extended
        for extended in bindings(part, {}, hull, world.model)
        if ANY not in extended.values() and satisfied(part, extended, times, world.model.lookup, world.grid.dense)
    )
    if any(name in binding for name in part.variables):
        for other in islice(found, _EXAMPLES):
            seen = seen_through(world, part, other, hull) if world.temporal else None
            text = world.wording.atom(seen[0]) if seen else world.wording.formula(literal.formula, other)
            yield text, world.wording.binding(other)


def _because(world: World, part: Part, binding: dict[str, int], times: Times, depth: int) -> WhyNot | None:
    """The same question for a condition that is a derived fact, at the last time at which it would serve."""
    seen = seen_through(world, part, binding, times[-1])
    if depth == 0 or seen is None or seen[0][0] not in world.clauses:
        return None
    atom, window = seen
    if min(atom[1], default=0) < 0:
        return None  # of a constant that only rules name there is nothing to say
    last = min(window[1], world.core[1])
    return why_not(world, atom, (last, last), depth - 1) if last >= max(window[0], world.core[0]) else None


def _nearest(world: World, times: Sequence[Pair], when: Pair) -> tuple[Interval, ...]:
    """The last of the times before and the first after."""
    before = [pair for pair in times if pair[1] < when[0]][-1:]
    after = [pair for pair in times if pair[0] > when[1]][:1]
    return tuple(world.grid.interval(*pair) for pair in before + after)


def _text(world: World, literal: BodyLiteral, binding: dict[str, int]) -> str:
    if isinstance(literal, Comparison):
        return world.wording.comparison(literal, binding)
    return ("not " if literal.negated else "") + world.wording.formula(literal.formula, binding)
