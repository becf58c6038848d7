"""What changes from one moment to the next: entries that are awaited, that became answers, that are so no longer.

Who adds every change to a table under its `id`, replacing what is there, has in it what is awaited now: the entries
whose last change is `awaited`. An entry is one set of facts that makes one answer; what of it has come, and what has
not, changes, and its id does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

from tidelog.hypothetical.entries import SupportedAnswer, entry_order
from tidelog.hypothetical.general import State
from tidelog.hypothetical.online import AnyFact, Hypotheses

#: Still possible, with the evidence and the hypotheses that it has now.
AWAITED = "awaited"
#: It is an answer. If it became one by other facts than its own, some of its own are still missing.
ANSWERED = "answered"
#: It can no longer come true, was discarded, or another entry makes the same answer with less.
DROPPED = "dropped"


@dataclass(frozen=True)
class Change:
    """An entry, and what became of it."""

    change: str
    id: str
    entry: SupportedAnswer


class Changes:
    """A session whose moments are told as changes.

    >>> from tidelog.language.program import Program
    >>> program = Program.parse("Alarm(X, T) :- Hot(X, T), Hot(X, T+1).", syntax="tdl")
    >>> changes = Changes(Hypotheses(program, "Alarm(X, T)"))
    >>> for tau, facts in [(0, ["Hot(a,0)"]), (1, ["Hot(a,1)"]), (3, [])]:
    ...     print(tau, [(c.change, c.entry.bindings["T"], c.entry.hypotheses) for c in changes.push(tau, facts)])
    0 [('awaited', 0, ('Hot(a,1)',))]
    1 [('answered', 0, ()), ('awaited', 1, ('Hot(a,2)',))]
    3 [('dropped', 1, ('Hot(a,2)',))]
    """

    def __init__(self, session: Hypotheses) -> None:
        self.session = session
        #: In the session's order, which decides between entries that differ by the names of variables only.
        self._open: dict[State, None] = dict.fromkeys(session.open_states())

    def push(self, tau: int, facts: Iterable[AnyFact]) -> list[Change]:
        """As the session's own `push`; gives what changes by it, sorted."""
        before = self._open
        given = list(self.session.push(tau, facts))
        self._open = dict.fromkeys(self.session.open_states())
        gone, new = before.keys() - self._open.keys(), self._open.keys() - before.keys()
        if not self.session.competing:
            # What goes on with more evidence is told as it is now.
            going_on = {(number, binding) for number, _, binding in new}
            gone = {state for state in gone if (state[0], state[2]) not in going_on}
        old = _by_id(self.session.shown(self._rivals(gone, new, before)))
        now = _by_id(self.session.shown(self._rivals(new, gone, self._open)))
        return sorted(self._changes(old, now, _by_id(given)), key=lambda change: (entry_order(change.entry), change.id))

    def _rivals(self, changed: set[State], others: set[State], among: Iterable[State]) -> Iterable[State]:
        """The hypotheses among which those that changed decide what is shown."""
        if not self.session.competing:
            return changed
        answers = {self.session.answer_of(state) for state in (*changed, *others)}
        if any(None in answer for answer in answers):
            return among
        return [s for s in among if (answer := self.session.answer_of(s)) in answers or None in answer]

    def _changes(
        self, old: dict[str, SupportedAnswer], now: dict[str, SupportedAnswer], given: dict[str, SupportedAnswer]
    ) -> Iterator[Change]:
        yield from (Change(ANSWERED, id, entry) for id, entry in given.items())
        for id, entry in now.items():
            if id not in old or old[id].hypotheses != entry.hypotheses:
                yield Change(AWAITED, id, entry)
        certain = {frozenset(entry.bindings.items()) for entry in given.values()}
        general = [known for known in certain if len(known) < len(self.session.query.variables)]
        for id, entry in old.items():
            if id not in now and id not in given:
                known = frozenset(entry.bindings.items())
                answered = known in certain or any(some <= known for some in general)
                yield Change(ANSWERED if answered else DROPPED, id, replace(entry, confidence=None))


def entry_id(entry: SupportedAnswer) -> str:
    """The same for an entry whatever of its facts has come, and on every machine."""
    bindings = [[name, str(value), isinstance(value, str)] for name, value in entry.bindings.items()]
    facts = sorted({*entry.evidence, *entry.hypotheses})
    text = json.dumps([bindings, facts, entry.conditions])
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _by_id(entries: Iterable[SupportedAnswer]) -> dict[str, SupportedAnswer]:
    return {entry_id(entry): entry for entry in entries}
