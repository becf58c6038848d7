"""How much history a query needs: `window`, and which of two queries has more answers: `contained`.

A window is valid if the query is contained in itself without the rules of a larger radius (corollary 9). So a larger
window than a valid one is valid, too, and only 0 and the radii of rules can be the least one. They are tried from the
uniform window downwards, until one loses an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from time import monotonic
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.facts import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Value
from tidelog.windows import search
from tidelog.windows.algorithm import streamed
from tidelog.windows.ground import instances, pair
from tidelog.windows.query import PastRule, Query, forward_query
from tidelog.windows.solver import OutOfTime
from tidelog.windows.uniform import follows, uniform_window
from tidelog.windows.unrolled import shortest_loss
from tidelog.windows.witness import Witness, shortest

#: Seconds for what is left to do once the search itself has ended in time.
_GRACE = 10.0
#: The part of the time that goes into proofs; the rest is for windows below one that was not decided.
_PROVING = 0.8
#: States of more bits than this, or more instances of rules, have taken minutes and more (see `make bench-window`).
PRACTICAL_BITS = 150
PRACTICAL_INSTANCES = 50_000


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the search for one window is: there is no loss within `steps` time points. Before it begins, `steps` is
    0, and `bits` is 0 until the rules are instantiated (`instances` at most)."""

    window: int
    instances: int
    bits: int = 0
    steps: int = 0
    cubes: int = 0

    @property
    def practical(self) -> bool:
        """Whether searches of this size have ended within minutes."""
        return self.bits <= PRACTICAL_BITS and self.instances <= PRACTICAL_INSTANCES


Report = Callable[[Progress], None]
#: Names and numbers; or text with commas between them, as in a fact.
Objects = str | Iterable[str | Fraction | int]

_OBJECTS_LAW = "input facts mention only the objects that are given, so there must be some, like a,b,c"


@dataclass(frozen=True)
class Check:
    """Whether one window is valid; None where that is not known."""

    window: int
    valid: bool | None
    witness: Witness | None = None


@dataclass(frozen=True)
class WindowReport:
    """How much history a query needs.

    `radius` and `uniform` are valid windows whatever the objects. `exact` is the least valid window over the objects
    that were given: a number, or the least and greatest number that it can be where the time ran out. `witness` loses
    an answer with one less. `widest` are the rules that make the radius, `kept` those that make the uniform window.
    """

    query: str
    radius: int
    uniform: int
    widest: tuple[PastRule, ...]
    kept: tuple[PastRule, ...]
    objects: tuple[Value, ...] | None = None
    exact: int | tuple[int, int] | None = None
    witness: Witness | None = None
    check: Check | None = None

    def to_json(self) -> dict[str, Any]:
        """The object that `tidelog window --json` prints."""
        found: dict[str, Any] = {"radius": self.radius, "uniform": self.uniform}
        if self.exact is not None:
            found["exact"] = list(self.exact) if isinstance(self.exact, tuple) else self.exact
            found["witness"] = self.witness.to_json() if self.witness else None
        if self.check is not None:
            witness = self.check.witness.to_json() if self.check.witness else None
            found["check"] = {"window": self.check.window, "valid": self.check.valid, "witness": witness}
        return found


@dataclass(frozen=True)
class Containment:
    """Whether every answer of the first query is one of the second; if not, an input on which one is not. True and
    False as `holds` is."""

    holds: bool
    witness: Witness | None

    def __bool__(self) -> bool:
        return self.holds


def window(
    program: Program,
    query: str,
    objects: Objects | None = None,
    *,
    check: int | None = None,
    timeout: float | None = None,
    progress: Report | None = None,
) -> WindowReport:
    """How much history a forward-propagating query needs (`.tdl` rules): radius, least uniformly valid window and, if
    all objects are known, the least valid window, with a stream on which one less loses an answer.

    Objects are names and numbers, or text with commas between them, as in a fact. After `timeout` seconds `exact` is
    the least and the greatest that it can be, as far as was proved.

    >>> import tidelog as tl
    >>> rules = "P(T) :- A(T). P(T) :- A(T-1), A(T). #temporal A/1."
    >>> report = tl.window(tl.Program.parse(rules, syntax="tdl"), "P", ["a"])
    >>> report.radius, report.uniform, report.exact
    (1, 0, 0)
    """
    asked = forward_query(program, query)
    known = None if objects is None else _objects(objects)
    if check is not None and check < 0:
        raise TidelogError(Diagnostic("TL603", f"{check} is no window", law="a window is 0, 1, 2, ..."))
    uniform = uniform_window(asked)
    report = WindowReport(
        query,
        asked.radius,
        uniform,
        tuple(rule for rule in asked.rules if rule.radius == asked.radius > 0),
        tuple(_needed_for(asked, uniform)),
        known,
    )
    deadline = None if timeout is None else monotonic() + timeout
    if known is not None:
        exact, witness = _least(asked, uniform, known, deadline, progress)
        report = replace(report, exact=exact, witness=witness)
    if check is not None:
        report = replace(report, check=_checked(asked, report, check, deadline, progress))
    return report


def contained(
    q1: tuple[Program, str],
    q2: tuple[Program, str],
    objects: Objects,
    *,
    timeout: float | None = None,
) -> Containment:
    """Whether all answers of the first query are answers of the second, on every input over some objects; a query is a
    program and its output predicate. Raises `Undecided` if the time runs out.

    >>> import tidelog as tl
    >>> often = tl.Program.parse("P(T) :- A(T), A(T-1). #temporal A/1.", syntax="tdl")
    >>> once = tl.Program.parse("P(T) :- A(T). #temporal A/1.", syntax="tdl")
    >>> tl.contained((often, "P"), (once, "P"), ["a"]).holds
    True
    >>> tl.contained((once, "P"), (often, "P"), ["a"]).witness.to_json()
    {'background': [], 'stream': ['A(0)'], 'lost': 'P(0)'}
    """
    left, right = forward_query(*q1), forward_query(*q2)
    _comparable(left, right)
    try:
        found = _lost(left, right, _objects(objects), None if timeout is None else monotonic() + timeout)
    except OutOfTime:
        from tidelog.reasoning import Undecided

        raise Undecided(
            Diagnostic("TL304", f"containment was not decided within {timeout} s", help="give it more time")
        ) from None
    return Containment(found is None, found)


def _least(
    query: Query, uniform: int, objects: tuple[Value, ...], deadline: float | None, progress: Report | None
) -> tuple[int | tuple[int, int], Witness | None]:
    """The least valid window and a witness for one less; an interval where the time ran out."""
    windows = sorted({0, *(rule.radius for rule in query.rules if rule.radius <= uniform)})
    best = uniform
    begun = monotonic()
    proving = None if deadline is None else begun + _PROVING * (deadline - begun)
    while lower := [w for w in windows if w < best]:
        try:
            witness = _lossy(query, lower[-1], objects, proving, progress)
        except OutOfTime:
            return _bounds(query, best, lower, objects, deadline, progress)
        if witness is not None:
            return best, witness
        best = lower[-1]
    return best, None


def _bounds(
    query: Query,
    best: int,
    lower: list[int],
    objects: tuple[Value, ...],
    deadline: float | None,
    progress: Report | None,
) -> tuple[int | tuple[int, int], Witness | None]:
    """What can be said where the greatest window of `lower` was not decided. A stream over few of the objects is one
    over all of them, and is found sooner."""
    low, found = 0, None
    free = [value for value in objects if value not in query.constants]
    try:
        for count in range(1, len(free)):
            few = [value for value in objects if value in free[:count] or value not in free]
            for window, above in reversed(list(zip(lower, [*lower[1:], best], strict=True))):
                if above <= low:
                    break
                witness = _lossy(query, window, few, deadline, progress)
                if witness is not None:
                    low, found = above, witness
            if low == best:
                return best, found
    except OutOfTime:
        pass
    return (low, best), found


def _lossy(
    query: Query, window: int, objects: Sequence[Value], deadline: float | None, progress: Report | None
) -> Witness | None:
    """A witness that a window loses an answer, which was replayed; None if it was proved that it loses none."""
    witness = _lost(query, query.cut(window), objects, deadline, progress, window)
    if witness is not None:
        _replay((query, query.radius), (query, window), witness)
    return witness


def _lost(
    left: Query,
    right: Query,
    objects: Sequence[Value],
    deadline: float | None,
    progress: Report | None = None,
    window: int = 0,
) -> Witness | None:
    """A shortest input on which the right query lacks an answer of the left; None if it was proved that there is none.

    The proof is checked by a solver of its own, a witness by the streaming algorithm."""
    tell = progress or (lambda _: None)
    so_far = Progress(window, instances(left, objects) + instances(right, objects))
    tell(so_far)
    product = pair(left, right, objects, deadline)
    so_far = replace(so_far, bits=product.bits)
    tell(so_far)
    length, certain = shortest_loss(product, deadline)
    if length is None and not certain:
        found = search.search(product, deadline, lambda steps, cubes: tell(replace(so_far, steps=steps, cubes=cubes)))
        if isinstance(found, int):
            length = found
        elif not search.holds(product, found, _with_grace(deadline)):
            raise AssertionError("the search ended with an invariant that is none")
    if length is None:
        return None
    witness = shortest(product, length, _with_grace(deadline))
    _replay((left, left.radius), (right, right.radius), witness)
    return witness


def _with_grace(deadline: float | None) -> float | None:
    return None if deadline is None else monotonic() + _GRACE


def _replay(whole: tuple[Query, int], part: tuple[Query, int], witness: Witness) -> None:
    """Makes sure that the streaming algorithm, run for each query with its window, loses what the witness says."""
    _, args, time = witness.lost
    background = [(name, values) for name, values, _ in witness.background]
    full, cut = (streamed(query, window, background, witness.steps) for query, window in (whole, part))
    if args not in full[time or 0] or args in cut[time or 0]:
        raise AssertionError(f"this witness loses nothing: {witness}")


def _checked(query: Query, report: WindowReport, check: int, deadline: float | None, progress: Report | None) -> Check:
    low, high = report.exact if isinstance(report.exact, tuple) else (report.exact or 0, report.exact)
    if check >= report.uniform or (high is not None and check >= high):
        return Check(check, True)
    if report.objects is None:
        return Check(check, None)
    if report.witness is not None and check == low - 1:
        return Check(check, False, report.witness)
    try:
        witness = _lossy(query, check, report.objects, deadline, progress)
    except OutOfTime:
        # Facts that are lost with a larger window are lost with this one.
        return Check(check, False, report.witness) if check < low else Check(check, None)
    return Check(check, witness is None, witness)


def _needed_for(query: Query, uniform: int) -> Iterable[PastRule]:
    """The rules that do not follow with less than the uniform window."""
    for rule in query.rules:
        if rule.radius >= uniform > 0 and not follows(rule, query.cut(uniform - 1).rules, query.facts):
            yield rule


def _objects(objects: Objects) -> tuple[Value, ...]:
    """Distinct constants; text is read like the arguments of a fact."""
    if isinstance(objects, str):
        try:
            objects = parse_fact(f"O({objects})", "<objects>")[0].args
        except TidelogError as problem:
            message = f"these are no objects: {problem.diagnostics[0].message}"
            raise TidelogError(Diagnostic("TL602", message, problem.diagnostics[0].place, _OBJECTS_LAW)) from None
    found = dict.fromkeys(value if isinstance(value, str) else Fraction(value) for value in objects)
    if not found:
        raise TidelogError(Diagnostic("TL602", "there are no objects", law=_OBJECTS_LAW))
    return tuple(found)


def _comparable(left: Query, right: Query) -> None:
    """Raises where it is not clear what an input of both queries is."""
    law = "both queries read the same input, and give answers of the same kind"
    wrong: list[str] = []
    kinds = [(q.arities[q.output], q.output in q.temporal) for q in (left, right)]
    if kinds[0] != kinds[1]:
        wrong.append(f"the outputs {left.output} and {right.output} have different arguments")
    for name in left.arities.keys() & right.arities.keys():
        if (name in left.inputs) != (name in right.inputs):
            wrong.append(f"{name} is input of one query and derived by the other")
        elif name in left.inputs and (
            left.arities[name] != right.arities[name] or (name in left.temporal) != (name in right.temporal)
        ):
            wrong.append(f"the input {name} has different arguments in the two queries")
    if wrong:
        raise TidelogError(
            Diagnostic("TL604", message, law=law, help="rename one of them") for message in sorted(wrong)
        )
