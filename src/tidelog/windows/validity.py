"""Compute how much history a query needs (`window`), and whether one query contains another (`contained`).

A window is valid if the query is contained in itself without the rules of a larger radius (corollary 9 of the paper).
So every window larger than a valid one is valid, and the least valid window is 0 or the radius of a rule. These
candidates are tried from the uniform window downwards, until one loses an answer.

With negation, a window is valid if both queries have the same answers, and a larger one may be invalid: a rule that
makes an exception may come before the rule that makes an exception to it. The exact window is then the least one from
which on all windows are valid, which is what the search from above finds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.program import Program, require_program
from tidelog.language.syntax import Value
from tidelog.windows.forward_query import ForwardQuery, ForwardRule, build_forward_query
from tidelog.windows.incremental_solver import DeadlineExceeded
from tidelog.windows.loss_search import ProgressCallback, find_loss, find_window_loss, replay_window
from tidelog.windows.object_names import Objects, parse_objects
from tidelog.windows.open_containment import find_obstacle, find_open_loss
from tidelog.windows.uniform_validity import find_uniform_window, follows
from tidelog.windows.witness import Witness

#: The fraction of the time spent on proofs; the rest is for windows below an undecided one.
_PROOF_FRACTION = 0.8


@dataclass(frozen=True)
class WindowCheck:
    """Whether one window is valid; None if unknown, for a reason."""

    window: int
    valid: bool | None
    witness: Witness | None = None
    reason: str | None = None


@dataclass(frozen=True)
class WindowReport:
    """How much history a query needs.

    `radius` and `uniform` are valid windows for any objects. `exact` is the least valid window over the given objects
    (with negation, the least from which on all are valid): a number, or its lower and upper bound if time ran out.
    `witness` loses an answer, or gets a wrong one, with a window of one less.
    `widest` are the rules that determine the radius, `kept` those that determine the uniform window.
    """

    query: str
    radius: int
    uniform: int
    widest: tuple[ForwardRule, ...]
    kept: tuple[ForwardRule, ...]
    objects: tuple[Value, ...] | None = None
    exact: int | tuple[int, int] | None = None
    witness: Witness | None = None
    check: WindowCheck | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the object that `tidelog window --json` prints."""
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
    """Whether every answer of the first query is an answer of the second; if not, an input on which one is not.

    Its truth value is `holds`."""

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
    progress: ProgressCallback | None = None,
) -> WindowReport:
    """Compute how much history a forward-propagating query (`.tdl` rules) needs.

    The report has the radius, the least uniformly valid window and, if all `objects` are given, the least valid window
    with a stream on which one less loses an answer. Objects are names and numbers, or text that separates them by
    commas. With `check`, the report also says whether that window is valid; without objects this is decided for all
    data, unless the query is recursive or compares objects by order. After `timeout` seconds, `exact` is the
    lower and the upper bound proved so far. `progress` is called during the search.

    >>> import tidelog as tl
    >>> rules = "P(T) :- A(T). P(T) :- A(T-1), A(T). #temporal A/1."
    >>> report = tl.window(tl.Program.parse(rules, syntax="tdl"), "P", ["a"])
    >>> report.radius, report.uniform, report.exact
    (1, 0, 0)
    """
    require_program(program)
    forward_query = build_forward_query(program.with_temporal_query(query), query)
    known = None if objects is None else parse_objects(objects)
    if check is not None and check < 0:
        message = f"{check} is not a window"
        raise TidelogError(Diagnostic("TL603", message))
    uniform = find_uniform_window(forward_query)
    report = WindowReport(
        query,
        forward_query.radius,
        uniform,
        tuple(rule for rule in forward_query.rules if rule.radius == forward_query.radius > 0),
        tuple(_rules_that_force(forward_query, uniform)),
        known,
    )
    deadline = None if timeout is None else monotonic() + timeout
    if known is not None:
        exact, witness = _find_least_window(forward_query, uniform, known, deadline, progress)
        report = replace(report, exact=exact, witness=witness)
    if check is not None:
        report = replace(report, check=_check_window(forward_query, report, check, deadline, progress))
    return report


def contained(
    q1: tuple[Program, str],
    q2: tuple[Program, str],
    objects: Objects | None = None,
    *,
    timeout: float | None = None,
) -> Containment:
    """Decide whether all answers of the first query are answers of the second, on every input over the given objects.

    Without objects, the answer is about all inputs; the first query must then be without recursion, and both without
    comparisons by order. A query is a program and its output predicate. Raise `Undecided` if the time runs out.

    >>> import tidelog as tl
    >>> often = tl.Program.parse("P(T) :- A(T), A(T-1). #temporal A/1.", syntax="tdl")
    >>> once = tl.Program.parse("P(T) :- A(T). #temporal A/1.", syntax="tdl")
    >>> tl.windows.contained((often, "P"), (once, "P"), ["a"]).holds
    True
    >>> tl.windows.contained((once, "P"), (often, "P"), ["a"]).witness.to_json()
    {'background': [], 'stream': ['A(0)'], 'lost': 'P(0)'}
    """
    left, right = build_forward_query(*q1), build_forward_query(*q2)
    _require_comparable(left, right)
    deadline = None if timeout is None else monotonic() + timeout
    if objects is None and (obstacle := find_obstacle(left, right)):
        message = f"containment is not decided for all data: {obstacle.reason}"
        raise TidelogError(Diagnostic("TL608", message, obstacle.place))
    try:
        if objects is None:
            found = find_open_loss(left, right, deadline)
        else:
            found = find_loss(left, right, parse_objects(objects), deadline)
    except DeadlineExceeded:
        from tidelog.errors import Undecided

        raise Undecided(
            Diagnostic("TL304", f"containment was not decided within {timeout} s", help="allow more time")
        ) from None
    return Containment(found is None, found)


def _find_least_window(
    query: ForwardQuery,
    uniform: int,
    objects: tuple[Value, ...],
    deadline: float | None,
    progress: ProgressCallback | None,
) -> tuple[int | tuple[int, int], Witness | None]:
    """Return the least valid window, or its bounds if time ran out, and a witness for one less."""
    windows = sorted({0, *(rule.radius for rule in query.rules if rule.radius <= uniform)})
    best = uniform
    begun = monotonic()
    proving = None if deadline is None else begun + _PROOF_FRACTION * (deadline - begun)
    while lower := [w for w in windows if w < best]:
        try:
            witness = find_window_loss(query, lower[-1], objects, proving, progress)
        except DeadlineExceeded:
            return _bound_least_window(query, best, lower, objects, deadline, progress)
        if witness is not None:
            return best, witness
        best = lower[-1]
    return best, None


def _bound_least_window(
    query: ForwardQuery,
    best: int,
    lower: list[int],
    objects: tuple[Value, ...],
    deadline: float | None,
    progress: ProgressCallback | None,
) -> tuple[int | tuple[int, int], Witness | None]:
    """Return bounds on the least valid window after the largest window of `lower` remained undecided.

    A stream over a few of the objects is also a stream over all of them, and is found sooner."""
    low, found = 0, None
    free = [value for value in objects if value not in query.constants]
    try:
        for count in range(1, len(free)):
            few = [value for value in objects if value in free[:count] or value not in free]
            for window, above in reversed(list(zip(lower, [*lower[1:], best], strict=True))):
                if above <= low:
                    break
                witness = find_window_loss(query, window, few, deadline, progress)
                if witness is not None:
                    low, found = above, witness
            if low == best:
                return best, found
    except DeadlineExceeded:
        pass
    return (low, best), found


def _check_window(
    query: ForwardQuery, report: WindowReport, check: int, deadline: float | None, progress: ProgressCallback | None
) -> WindowCheck:
    low, high = report.exact if isinstance(report.exact, tuple) else (report.exact or 0, report.exact)
    if check >= report.uniform or (high is not None and check >= high):
        return WindowCheck(check, True)
    if report.objects is None:
        return _check_for_all_data(query, check, deadline)
    if report.witness is not None and check == low - 1:
        return WindowCheck(check, False, report.witness)
    try:
        witness = find_window_loss(query, check, report.objects, deadline, progress)
    except DeadlineExceeded:
        # Answers that are lost with a larger window are lost with this one, too, unless rules have exceptions.
        if check < low and not query.negates:
            return WindowCheck(check, False, report.witness)
        return WindowCheck(check, None, reason="the time ran out")
    return WindowCheck(check, witness is None, witness)


def _check_for_all_data(query: ForwardQuery, window: int, deadline: float | None) -> WindowCheck:
    """Decide whether a window is valid for any objects, if the query is not recursive."""
    part = query.restrict_to(window)
    if obstacle := find_obstacle(query, part):
        return WindowCheck(window, None, reason=obstacle.reason)
    try:
        witness = find_open_loss(query, part, deadline)
    except DeadlineExceeded:
        return WindowCheck(window, None, reason="the time ran out")
    if witness is not None:
        replay_window(query, window, witness)
    return WindowCheck(window, witness is None, witness)


def _rules_that_force(query: ForwardQuery, uniform: int) -> Iterable[ForwardRule]:
    """Yield the rules that do not follow from rules of a smaller radius than the uniform window."""
    for rule in query.rules:
        if rule.radius >= uniform > 0 and not follows(rule, query.restrict_to(uniform - 1).rules, query.facts):
            yield rule


def _require_comparable(left: ForwardQuery, right: ForwardQuery) -> None:
    """Raise if the two queries disagree on what their input is, or on the kind of their answers."""
    problems: list[str] = []
    kinds = [(q.arities[q.output], q.output in q.temporal) for q in (left, right)]
    if kinds[0] != kinds[1]:
        problems.append(f"the outputs {left.output} and {right.output} have different arguments")
    for name in left.arities.keys() & right.arities.keys():
        if (name in left.inputs) != (name in right.inputs):
            problems.append(f"{name} is input of one query and derived by the other")
        elif name in left.inputs and (
            left.arities[name] != right.arities[name] or (name in left.temporal) != (name in right.temporal)
        ):
            problems.append(f"the input {name} has different arguments in the two queries")
    if problems:
        raise TidelogError(Diagnostic("TL604", message) for message in sorted(problems))
