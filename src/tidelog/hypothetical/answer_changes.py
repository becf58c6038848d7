"""Changes between moments: supported answers that are awaited, that became certain, or that were dropped.

A table that stores every change under its `id`, replacing the previous one, always shows what is awaited: the supported
answers whose last change is `awaited`. A supported answer is one set of facts that makes one answer. Which of these
facts have arrived changes over time; the id does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

from tidelog.hypothetical.general_hypotheses import OpenHypothesis
from tidelog.hypothetical.session import AnyFact, Hypotheses
from tidelog.hypothetical.supported_answers import SupportedAnswer, answer_sort_key, format_support

#: Still possible, with its present evidence and hypotheses.
AWAITED = "awaited"
#: The answer is certain. If other facts made it certain, some of its own facts are still missing.
ANSWERED = "answered"
#: It can no longer come true, was discarded, or another supported answer needs fewer facts for the same answer.
DROPPED = "dropped"


@dataclass(frozen=True)
class AnswerChange:
    """A supported answer, and what became of it: `awaited`, `answered` or `dropped`."""

    change: str
    answer: SupportedAnswer

    @cached_property
    def id(self) -> str:
        """The same for every change of one supported answer."""
        return answer_id(self.answer)

    def to_json(self, tau: int) -> dict[str, Any]:
        """Return the change as an object for JSON, with the time point at which it happened."""
        found = {"tau": tau, "change": self.change, "id": self.id, **self.answer.to_json()}
        return found if self.change == AWAITED else found | {"decided_by": None}

    def to_text(self, tau: int, format_answer: Callable[[SupportedAnswer], str]) -> str:
        """Return the line that `tidelog hypothesise --changes` prints."""
        support = format_support(self.answer, with_deadline=self.change == AWAITED)
        return f"{tau}: {self.change} {format_answer(self.answer)}{support}\n"


class ChangeTracker:
    """A session that reports changes instead of moments.

    >>> from tidelog.language.program import Program
    >>> program = Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    >>> changes = ChangeTracker(Hypotheses(program, "Alarm(X, T)"))
    >>> for tau, facts in [(0, ["Hot(a,0)"]), (1, ["Hot(a,1)"]), (3, [])]:
    ...     print(tau, [(c.change, c.answer.bindings["T"], c.answer.hypotheses) for c in changes.push(tau, facts)])
    0 [('awaited', 0, ('Hot(a,1)',))]
    1 [('answered', 0, ()), ('awaited', 1, ('Hot(a,2)',))]
    3 [('dropped', 1, ('Hot(a,2)',))]
    """

    def __init__(self, session: Hypotheses) -> None:
        self.session = session
        self._is_journaled = session.start_journal()
        #: In the order of the session, which decides between supported answers that differ only in variable names.
        self._open = {} if self._is_journaled else dict.fromkeys(session.open_states())
        #: With negation: what is awaited, since that changes without a change of hypotheses.
        self._awaited = self._find_awaited()

    def push(self, tau: int, facts: Iterable[AnyFact]) -> list[AnswerChange]:
        """Push facts into the session; return the changes, sorted."""
        certain = list(self.session.push(tau, facts))
        if self.session.has_negation:
            before, self._awaited = self._awaited, self._find_awaited()
            return _sort_changes(self._find_changes(before, self._awaited, _index_by_id(certain)))
        if self._is_journaled:
            return _sort_distinct(list(self._read_journal(certain)))
        return _sort_changes(self._compare(certain))

    def advance(self, tau: int) -> list[AnswerChange]:
        """Advance the clock without facts; return the changes, sorted."""
        return self.push(tau, ())

    def _find_awaited(self) -> dict[str, SupportedAnswer]:
        session = self.session
        return _index_by_id(session.select_minimal(session.open_states())) if session.has_negation else {}

    def _read_journal(self, certain: list[SupportedAnswer]) -> Iterator[AnswerChange]:
        """Yield the changes of a session that records them itself; each answer has one support."""
        yield from (AnswerChange(ANSWERED, answer) for answer in certain)
        gone, new = self.session.take_changes()
        yield from (AnswerChange(AWAITED, answer) for answer in self.session.select_minimal(new))
        for answer in self.session.select_minimal(gone):
            yield AnswerChange(DROPPED, answer if answer.confidence is None else replace(answer, confidence=None))

    def _compare(self, certain: list[SupportedAnswer]) -> Iterator[AnswerChange]:
        """Yield the changes between the hypotheses that were open before and those that are open now."""
        before = self._open
        self._open = dict.fromkeys(self.session.open_states())
        gone, new = before.keys() - self._open.keys(), self._open.keys() - before.keys()
        if not self.session.competing:
            # A hypothesis that gained evidence is reported once, as it is now.
            continued = {(number, binding) for number, _, binding in new}
            gone = {hypothesis for hypothesis in gone if (hypothesis[0], hypothesis[2]) not in continued}
        old = _index_by_id(self.session.select_minimal(self._find_competitors(gone, new, before)))
        now = _index_by_id(self.session.select_minimal(self._find_competitors(new, gone, self._open)))
        return self._find_changes(old, now, _index_by_id(certain))

    def _find_competitors(
        self, changed: set[OpenHypothesis], others: set[OpenHypothesis], among: Iterable[OpenHypothesis]
    ) -> Iterable[OpenHypothesis]:
        """Return the hypotheses that compete with those that changed, these included."""
        if not self.session.competing:
            return changed
        answers = {self.session.answer_of(state) for state in (*changed, *others)}
        if any(None in answer for answer in answers):
            return among
        return [s for s in among if (answer := self.session.answer_of(s)) in answers or None in answer]

    def _find_changes(
        self, old: dict[str, SupportedAnswer], now: dict[str, SupportedAnswer], given: dict[str, SupportedAnswer]
    ) -> Iterator[AnswerChange]:
        yield from (AnswerChange(ANSWERED, answer) for answer in given.values())
        for id, answer in now.items():
            if id not in old or old[id].hypotheses != answer.hypotheses:
                yield AnswerChange(AWAITED, answer)
        certain = {frozenset(answer.bindings.items()) for answer in given.values()}
        general = [known for known in certain if len(known) < len(self.session.query.variables)]
        for id, answer in old.items():
            if id not in now and id not in given:
                known = frozenset(answer.bindings.items())
                answered = known in certain or any(some <= known for some in general)
                yield AnswerChange(ANSWERED if answered else DROPPED, replace(answer, confidence=None))


def answer_id(answer: SupportedAnswer) -> str:
    """Return an id of a supported answer that is the same on every machine, whichever of its facts have arrived."""
    bindings = [[name, str(value), isinstance(value, str)] for name, value in answer.bindings.items()]
    facts = sorted({*answer.evidence, *answer.hypotheses})
    text = json.dumps([bindings, facts, answer.conditions])
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _sort_changes(changes: Iterable[AnswerChange]) -> list[AnswerChange]:
    return sorted(changes, key=lambda change: (answer_sort_key(change.answer), change.answer.conditions))


def _sort_distinct(changes: list[AnswerChange]) -> list[AnswerChange]:
    """Sort changes that differ in their bindings; values of one kind are compared as they are."""
    try:
        return sorted(changes, key=lambda change: tuple(change.answer.bindings.values()))
    except TypeError:  # Names and numbers have no order in Python.
        return _sort_changes(changes)


def _index_by_id(answers: Iterable[SupportedAnswer]) -> dict[str, SupportedAnswer]:
    return {answer_id(answer): answer for answer in answers}
