"""Build supported answers of simple schemas straight from their slots, without going through atoms.

A schema is simple if all its premises share one time variable, it has no comparisons, and the order in which its facts
are shown depends on nothing but which of them have arrived. Most answers of most streams are of this kind, and building
and printing them would otherwise cost much more than finding them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.hypothetical.compiled_schemas import Binding, CompiledSchema, Premise, to_ground_args
from tidelog.hypothetical.delays import Delays
from tidelog.hypothetical.ground_facts import Scalar, to_value
from tidelog.hypothetical.supported_answers import SupportedAnswer
from tidelog.language.fact_text import format_value

#: The largest number of objects whose facts are cached.
_MAX_CACHED = 100_000


@dataclass(frozen=True, slots=True)
class _Layout:
    """The order of the facts that have arrived and of those that are awaited, and the distance of the last deadline."""

    evidence: tuple[int, ...]
    hypotheses: tuple[int, ...]
    last: int


class AnswerTemplate:
    """Builds the answers of one simple schema."""

    def __init__(self, schema: CompiledSchema, variables: Sequence[str], delays: Delays) -> None:
        self._schema, self._variables, self._delays = schema, tuple(variables), delays
        slot = schema.premises[0].time_slot
        assert slot is not None
        self._time_slot = slot
        #: By the objects of a binding: the facts of all premises up to their times, and the answer.
        self._known: dict[Binding, tuple[list[tuple[str, int]], list[tuple[str, Scalar]]]] = {}
        #: The variables of the query that are times, with their distance from the time of the binding.
        self._times = [
            (name, part[1])
            for name, part in zip(variables, schema.answer, strict=True)
            if isinstance(part, tuple) and part[0] == slot
        ]
        self._layouts: dict[int | tuple[int, tuple[int, ...]], _Layout] = {}
        premises = schema.premises
        self._is_uniform = all(delays.uniform_delay(premise.predicate) is not None for premise in premises)
        #: The premises in the order of their facts: by predicate, then by time, since arguments are the same.
        self._order = sorted(range(len(premises)), key=lambda i: (premises[i].predicate, premises[i].offset))

    def build(self, mask: int, binding: Binding, certain_at: int | None = None) -> SupportedAnswer | None:
        """Build the answer of a hypothesis, or of one that became certain; None if variables are still open."""
        if None in binding:
            return None
        start = binding[self._time_slot]
        assert isinstance(start, int)
        key = mask if self._is_uniform else (mask, self._ends(binding))
        layout = self._layouts.get(key) or self._lay_out(key, mask, binding)
        objects = binding[: self._time_slot]
        prefixes, values = self._known.get(objects) or self._format_objects(objects)
        texts = [f"{prefix}{start + at})" for prefix, at in prefixes]
        bindings = dict(values)
        for name, at in self._times:
            bindings[name] = start + at
        return SupportedAnswer(
            bindings,
            tuple([texts[i] for i in layout.evidence]),
            tuple([texts[i] for i in layout.hypotheses]),
            start + layout.last if certain_at is None else certain_at,
        )

    def _format_objects(self, objects: Binding) -> tuple[list[tuple[str, int]], list[tuple[str, Scalar]]]:
        """Format the facts of all premises up to their times; also return the answer, with 0 for its times."""
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        binding = (*objects, 0)
        prefixes = [(_format_up_to_time(premise, binding), premise.offset) for premise in self._schema.premises]
        values = zip(self._variables, self._schema.answer_values(binding), strict=True)
        found = self._known[objects] = prefixes, [(name, value) for name, value in values if value is not None]
        return found

    def _ends(self, binding: Binding) -> tuple[int, ...]:
        """Return how long after the time of the binding each fact may arrive."""
        premises = self._schema.premises
        return tuple(p.offset + self._delays.of(p.predicate, p.args(binding)) for p in premises)

    def _lay_out(self, key: int | tuple[int, tuple[int, ...]], mask: int, binding: Binding) -> _Layout:
        deadlines = self._ends(binding)
        awaited = [i for i in self._order if not mask >> i & 1]
        found = self._layouts[key] = _Layout(
            tuple(i for i in self._order if mask >> i & 1),
            tuple(sorted(awaited, key=lambda i: deadlines[i])),
            max((deadlines[i] for i in awaited), default=0),
        )
        return found


def build_template(schema: CompiledSchema, variables: Sequence[str], delays: Delays) -> AnswerTemplate | None:
    """Return a template for a schema, or None if it is not simple."""
    premises = schema.premises
    slots = {premise.time_slot for premise in premises}
    # The time comes after all objects (see `compile_schema`), and after it there is no other variable.
    if slots != {len(schema.names) - 1} or schema.schema.comparisons:
        return None
    shapes = {(premise.predicate, premise.arg_slots, premise.constants) for premise in premises}
    if len({predicate for predicate, _, _ in shapes}) != len(shapes):
        return None
    return AnswerTemplate(schema, variables, delays)


def _format_up_to_time(premise: Premise, binding: Binding) -> str:
    texts = [format_value(to_value(value)) + "," for value in to_ground_args(premise.args(binding))]
    return f"{premise.predicate}({''.join(texts)}"
