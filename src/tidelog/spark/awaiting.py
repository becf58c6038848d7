"""What is awaited as a part of a job: whether it can be said, how its facts are spread, and that in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction

from tidelog.analysis.components import head_atom
from tidelog.data import pieces
from tidelog.data.dataset import Dataset
from tidelog.errors import Diagnostic, TidelogError
from tidelog.hypothetical.delays import LAW as DELAY_LAW
from tidelog.hypothetical.splitting import Splitting, splitting
from tidelog.language.program import Program
from tidelog.spark.awaited_buckets import session_of
from tidelog.spark.awaited_rows import query_atom
from tidelog.spark.facts import Shape
from tidelog.spark.plan import AwaitedPart, Awaiting, Job, Route

_POINTS = "what is awaited are facts that come from outside, each at one time point"


def with_awaited(
    work: Job,
    asked: Awaiting,
    shapes: Mapping[str, Shape],
    background: Dataset,
    *,
    timeline: str | None,
    buckets: int,
    dates: bool,
) -> Job:
    """The job with what is awaited; raises for everything that stands in the way. `shapes` are those of the facts that
    come, without the background."""
    part = AwaitedPart(
        len(work.parts),
        1,
        query_of(work.program, work.query),
        asked,
        delay_texts(work.program, work.delays),
        timeline,
        dates,
        tuple(pieces.pieces_of(background)),
        Splitting({}),
    )
    session = session_of(work.program, part)
    awaited = {premise.predicate for schema in session.schemas for premise in schema.premises}
    errors = list(_obstacles(work, awaited, shapes))
    if errors:
        raise TidelogError(errors)
    split = splitting(session.query, session.schemas)
    part = replace(part, buckets=1 if split.single else buckets, splitting=split)
    routes = {
        name: (*work.routes.get(name, ()), Route(part.number, part.buckets, split.keys.get(name), name))
        for name in sorted(awaited)
    }
    return replace(work, awaited=part, routes={**work.routes, **routes})


def checked(
    program: Program, query: str, asked: Awaiting, timeline: str | None, delays: Mapping[str | None, Fraction]
) -> None:
    """Raises for everything in the rules, the delays and the options that stands in the way."""
    session_of(
        program,
        AwaitedPart(
            0, 1, query_of(program, query), asked, delay_texts(program, delays), timeline, False, (), Splitting({})
        ),
    )


def query_of(program: Program, predicate: str) -> str:
    """The query for all that is awaited of a predicate."""
    rigid = program.temporal is not None and predicate in dict(program.temporal.rigid)
    return query_atom(predicate, program.predicates[predicate], temporal=not rigid)


def delay_texts(program: Program, delays: Mapping[str | None, Fraction]) -> tuple[str, ...]:
    """Delays of a job as those of a session; one that is no whole number of time points is refused."""
    derived = _derived(program)
    for name, delay in delays.items():
        if delay.denominator != 1:
            message = f"the delay{f' of {name}' if name else ''} is {delay}"
            raise TidelogError(Diagnostic("TL703", message, law=DELAY_LAW, help="use whole seconds, or time points"))
    own = (f"{name}={delay}" for name, delay in delays.items() if name in program.predicates and name not in derived)
    return (str(delays[None]), *own)


def in_words(part: AwaitedPart) -> str:
    """How what is awaited is spread."""
    if part.splitting.single:
        return f"what is awaited is kept in one bucket, {part.splitting.reason}"
    by: dict[int, list[str]] = {}
    for name, position in part.splitting.keys.items():
        by.setdefault(position, []).append(name)
    moves = "; ".join(f"facts of {', '.join(names)} go by argument {at + 1}" for at, names in sorted(by.items()))
    return f"what is awaited: {moves} to {part.buckets} buckets"


def _derived(program: Program) -> set[str]:
    return {head.predicate for rule in program.rules if rule.body and (head := head_atom(rule)) is not None}


def _obstacles(work: Job, awaited: Collection[str], shapes: Mapping[str, Shape]) -> Iterator[Diagnostic]:
    derived = _derived(work.program)
    for name, shape in shapes.items():
        roles = {role for role, _ in shape.times}
        if name in derived and name in work.routes:
            yield _obstacle(name, "rules derive it, too", "give the facts that come a predicate of their own")
        elif name in awaited and not roles:
            yield _obstacle(name, "they hold at all times, and come in a stream", "read them once, as background")
        elif name in awaited and roles != {"time"}:
            yield _obstacle(name, "they hold over intervals", "give them a `time`")


def _obstacle(name: str, why: str, help: str) -> Diagnostic:
    return Diagnostic("TL702", f"facts of {name} stand in the way: {why}", law=_POINTS, help=help)
