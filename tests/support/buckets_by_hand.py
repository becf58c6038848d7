"""A cluster by hand: a program evaluated stage by stage and bucket by bucket, as its distribution says, without Spark.

Every bucket gets the facts that the plan sends there and no others. What it gives must be its own share, exactly; what
is copied must be the same in all buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from zlib import crc32

import tidelog as tl
from judge import Claim
from tidelog.analysis.distribution import Distribution, Stage, plan_distribution
from tidelog.analysis.stage_programs import belongs_to_bucket, build_stage_program, choose_stage_query, decode_output
from tidelog.language.syntax import Fact, Value
from tidelog.model import Repeat

#: Evaluates one bucket: a program, the facts that it gets, the predicate that is asked for.
Evaluate = Callable[[tl.Program, tuple[Fact, ...], str], Claim]


class MisplacedError(AssertionError):
    """A bucket derived what is not its own, or buckets differ on what all of them have."""


@dataclass(frozen=True)
class Outcome:
    """The answers of all buckets together, and the plan that they came by."""

    plan: Distribution
    claim: Claim


def find_bucket(value: Value, buckets: int, seed: int = 0) -> int:
    kind = "s" if isinstance(value, str) else "n"
    return crc32(f"{seed}{kind}{value}".encode()) % buckets


def evaluate_by_buckets(
    program: tl.Program,
    query: str,
    facts: Iterable[Fact],
    evaluate: Evaluate,
    *,
    buckets: int,
    seed: int = 0,
    background: Collection[str] = (),
) -> Outcome:
    """The answers to a query. What turns out to repeat for ever is not handed on: its readers join its stage."""
    facts = tuple(facts)
    endless: set[str] = set()
    while True:
        plan = plan_distribution(program, query, background=background, endless=endless)
        handed: dict[str, Claim] = {}
        for stage in plan.stages:
            coming: list[Fact] = []
            for name in stage.receives:
                source = stage.aliases.get(name, name)
                sent = facts if name in stage.inputs else handed[source].facts
                coming += [replace(fact, predicate=name) for fact in sent if fact.predicate == source]
            handed |= _stage(plan.program, stage, coming, evaluate, 1 if stage.single else buckets, seed)
        read = {
            stage.aliases.get(name, name)
            for stage in plan.stages
            for name in stage.receives
            if name not in stage.inputs
        }
        repeating = {name for name in read if handed[name].repeats}
        if not repeating:
            return Outcome(plan, handed[query])
        assert not repeating & endless, "what is endless was handed on"
        endless |= repeating


def _stage(
    program: tl.Program, stage: Stage, coming: list[Fact], evaluate: Evaluate, buckets: int, seed: int
) -> dict[str, Claim]:
    """What a stage gives, by predicate."""
    found: dict[str, list[Claim]] = {name: [] for name in stage.outputs}
    for bucket in range(buckets):

        def mine(value: Value, bucket: int = bucket) -> bool:
            return find_bucket(value, buckets, seed) == bucket

        own = tuple(fact for fact in coming if belongs_to_bucket(stage, fact.predicate, fact.args, mine))
        claim = evaluate(build_stage_program(program, stage, mine), own, choose_stage_query(stage))
        held = [decode_output(fact) for fact in claim.facts]
        again = [Repeat(decode_output(r.fact), r.every, r.start, r.before) for r in claim.repeats]
        for name in stage.outputs:
            part = Claim(
                tuple(fact for fact in held if fact.predicate == name),
                tuple(repeat for repeat in again if repeat.fact.predicate == name),
            )
            for fact in (*part.facts, *(repeat.fact for repeat in part.repeats)):
                if not belongs_to_bucket(stage, name, fact.args, mine):
                    raise MisplacedError(f"bucket {bucket} derives {fact}, which is not its own")
            found[name].append(part)
    together: dict[str, Claim] = {}
    for name, parts in found.items():
        if stage.key[name] is None:
            if any(set(part.facts) != set(parts[0].facts) for part in parts):
                raise MisplacedError(f"{name} is not the same in all buckets: {parts}")
            parts = parts[:1]
        together[name] = Claim(
            tuple(fact for part in parts for fact in part.facts),
            tuple(repeat for part in parts for repeat in part.repeats),
        )
    return together
