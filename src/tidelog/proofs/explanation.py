"""`explain`: why a fact holds, or why it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.analysis.queries import known_predicates, require_known
from tidelog.language.facts import parse_fact
from tidelog.language.program import Program
from tidelog.language.syntax import Fact
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.tree import Proof
from tidelog.reasoning import Answer

if TYPE_CHECKING:
    from tidelog.data.dataset import Dataset


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`."""

    fact: Fact
    answer: Answer
    proof: Proof | None = None

    def __str__(self) -> str:
        return str(self.proof)


def explain(
    program: Program,
    data: Dataset,
    fact: str | Fact,
    *,
    timeline: str | None = None,
    depth: int | None = None,
    sources: Sequence[tuple[str, Dataset]] = (),
) -> Explanation:
    """Why a fact holds at every point of its interval, or why it does not."""
    if isinstance(fact, str):
        temporal = program.temporal.temporal if program.temporal else frozenset()
        fact, _ = parse_fact(fact, "<fact>", temporal=temporal)
    require_known((fact.predicate,), known_predicates(program, (name for name, _ in data.relations)))
    explainer = Explainer(program, data, query=(fact.predicate,), timeline=timeline, sources=sources)
    proof = explainer.proof(fact, depth)
    return Explanation(fact, Answer.YES if proof else Answer.NO, proof)
