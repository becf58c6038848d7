"""`explain`: why a fact holds, or why it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tidelog.analysis.query_names import known_predicates, require_known_predicates
from tidelog.batch import decide
from tidelog.compiler.prepare_facts import read_time_arguments
from tidelog.compiler.validate import program_arities, require_arities
from tidelog.errors import Undecided
from tidelog.goals.fact_source import TooManyFacts
from tidelog.language.fact_text import FactStyle, format_value
from tidelog.language.program import Program, require_program
from tidelog.language.syntax import Fact
from tidelog.language.wording import plural, suggest
from tidelog.model import Answer
from tidelog.proofs.explained_model import ExplainedModel
from tidelog.proofs.explainer import Explainer
from tidelog.proofs.fact_index import Ids
from tidelog.proofs.proof_tree import Proof, format_source_rule
from tidelog.proofs.why_not import WhyNot, explain_absence
from tidelog.proofs.why_not_text import format_intervals, format_why_not, why_not_to_json
from tidelog.timeline.grid import NEG_INF
from tidelog.timeline.interval import Interval, TimelineName

if TYPE_CHECKING:
    from tidelog.data.data_frames import DataLike, SchemaLike
    from tidelog.data.dataset import Dataset


@dataclass(frozen=True)
class Explanation:
    """The answer of `explain`: a proof, or why the fact does not hold, or why the answer is unknown.

    `holds` are the parts of the requested interval in which the fact does hold.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> explanation = tl.explain(program, tl.Dataset.parse("High(t1)@3"), "Hot(t1)@9")
    >>> print(explanation, end="")
    Hot(t1)@9 does not hold; it holds on [3,8]
    └─ not by Hot(X) :- Diamondminus[0,5] High(X). (line 1): Diamondminus[0,5] High(t1) fails at 9
       └─ it holds on [3,8]
    """

    fact: Fact
    answer: Answer
    proof: Proof | None = None
    why_not: WhyNot | None = None
    holds: tuple[Interval, ...] = ()
    notes: tuple[str, ...] = ()
    style: FactStyle = field(default_factory=FactStyle)

    def __str__(self) -> str:
        if self.proof is not None:
            return str(self.proof) + "".join(f"{note}\n" for note in self.notes)
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        asked = self.style.fact(self.fact)
        if self.answer is Answer.UNKNOWN:
            yield f"it is not known whether {asked} holds"
        elif self.holds:
            yield f"{asked} holds only on {format_intervals(self.holds, self.style)}"
        if self.why_not is not None:
            yield from format_why_not(self.why_not, self.style)
        yield from self.notes

    def as_json(self) -> dict[str, object]:
        """Return one object; see docs/howto/explain.md."""
        result: dict[str, object] = {"fact": self.style.fact(self.fact), "answer": self.answer.value}
        if self.proof is not None:
            result["proof"] = self.proof.as_json()
        if self.holds:
            result["holds"] = [self.style.interval(interval) for interval in self.holds]
        if self.why_not is not None:
            result["why_not"] = why_not_to_json(self.why_not, self.style)
        return result | ({"notes": list(self.notes)} if self.notes else {})


def explain(
    program: Program,
    data: DataLike,
    fact: str | Fact,
    *,
    timeline: TimelineName | None = None,
    depth: int | None = None,
    sources: Sequence[tuple[str, Dataset]] = (),
    schema: SchemaLike | None = None,
) -> Explanation:
    """Explain why a fact holds at every point of its interval, or why it does not.

    `depth` limits the depth of the proof. `sources` are the files that the data came from, for proofs to name them.
    `data` and `schema` are those of `materialise`.

    >>> import tidelog as tl
    >>> program = tl.Program.parse("Hot(X) :- Diamondminus[0,5] High(X).")
    >>> print(tl.explain(program, tl.Dataset.parse("High(t1)@3"), "Hot(t1)@7"), end="")
    Hot(t1)@7  by Hot(X) :- Diamondminus[0,5] High(X). (line 1)
    └─ Diamondminus[0,5] High(t1) at 7
       └─ High(t1)@3  given
    """
    require_program(program)
    fact = program.to_fact(fact)
    from tidelog.data.data_frames import to_dataset
    from tidelog.data.input_warnings import warn_of_tables

    given = data
    data = to_dataset(data, schema)
    if data is not given:
        warn_of_tables(program, data, [fact.predicate])
    timed = read_time_arguments(program, data)
    require_arities(program_arities(program), timed, (fact,))
    require_known_predicates((fact.predicate,), known_predicates(program, (name for name, _ in data.relations)))
    style = FactStyle(data.dates, program.time_arguments)

    def build_explainer(goal: Fact | None, asking: bool = False) -> Explainer:
        names = (fact.predicate,)
        return Explainer(program, data, query=names, timeline=timeline, sources=sources, goal=goal, asking=asking)

    try:
        explainer = build_explainer(fact)
        if explainer.model.focused and not explainer.holds(fact):
            # When else and for which other constants conditions hold takes other facts.
            try:
                return explain_fact(build_explainer(None, asking=True), fact)
            except TooManyFacts:
                explainer = build_explainer(None)
        return explain_fact(explainer, fact, depth)
    except Undecided as problem:
        # A proof refers to the model for all time; whether the fact holds may be decided without.
        reason = problem.diagnostics[0].message
        answer, _ = decide(program, data, fact, timeline=timeline)
        if answer is not Answer.UNKNOWN:
            holds = "holds" if answer is Answer.YES else "does not hold"
            reason = f"{style.fact(fact)} {holds}; why cannot be shown, since {reason}"
        return Explanation(fact, answer, notes=(reason,), style=style)


def explain_fact(explainer: Explainer, fact: Fact, depth: int | None = None) -> Explanation:
    """Explain a fact of an explainer's model, or why a fact is not in it."""
    explanation = _explain(explainer, fact, depth)
    notes = tuple(_report_undefined(explainer))
    return replace(explanation, notes=(*explanation.notes, *notes)) if notes else explanation


def _report_undefined(explainer: Explainer) -> Iterator[str]:
    """Yield how many rows had an undefined operation, for each rule in which there are any."""
    for number, count in sorted(explainer.model.undefined.items()):
        rule = explainer.program.rules[number]
        numbered = f" (line {rule.place.line})" if rule.place else ""
        rows = plural(count, "row")
        named = f"{rows} of {format_source_rule(rule)}{numbered}"
        yield f"{named} had an undefined operation, or text where a sum needs a number"


def _explain(explainer: Explainer, fact: Fact, depth: int | None) -> Explanation:
    style = explainer.style
    proof = explainer.proof(fact, depth)
    if proof is not None:
        return Explanation(fact, Answer.YES, proof, style=style)
    atom, pair = explainer.encode_fact(fact)
    model = explainer.model
    if pair[0] > pair[1]:
        return Explanation(fact, Answer.YES, notes=("the interval contains no time",), style=style)
    missing = model.missing_times(atom, pair)
    held = tuple(model.grid.to_interval(*part) for part in model.holding_times(atom, pair))
    first = missing[0][0] if missing[0][0] > NEG_INF else min(missing[0][1], model.early_time)
    moment = model.find_equivalent_moment((first, first))
    notes = tuple(_find_hints(model, fact, atom[1]))
    if moment[0] != first:
        far, near = (style.interval(model.grid.to_interval(at, at)) for at in (first, moment[0]))
        notes = (f"it is the same at {far} as at {near}: this far from the data everything repeats", *notes)
    return Explanation(fact, Answer.NO, None, explain_absence(model, atom, moment), held, notes, style)


def _find_hints(model: ExplainedModel, fact: Fact, ids: Ids) -> Iterator[str]:
    """Yield hints at what the user may have meant instead."""
    if fact.predicate not in model.rules:
        yield f"no rule derives {fact.predicate}: it holds only where the data says so"
    computed = any(rule.body.conditions for rule in model.rules.get(fact.predicate, ()))
    for number, value in zip(ids, fact.args, strict=True):
        if not (computed and isinstance(value, Fraction)) and not model.index.mentions(number):
            close = suggest(str(value), model.decoder.symbols.format(model.index.constants()))
            help = f"; did you mean {format_value(close)}?" if close else ""
            yield f"no fact mentions {format_value(value)}{help}"
