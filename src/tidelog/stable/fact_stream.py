"""A forward-propagating program over the facts of a stream: its components, what they have been given, and errors.

`session` answers from it at the time points of a stream, and a bucket on Spark with intervals (`held_intervals`). Both
decide how far time goes; here, facts are checked and kept, and time is moved on in `stream_components`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tidelog.analysis.time_reach import find_reads, head_distance
from tidelog.compiler.violations import describe_violation
from tidelog.data.dataset import Dataset
from tidelog.data.symbol_table import Symbols
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language.fact_text import format_atom, format_fact
from tidelog.language.hidden_predicates import is_hidden, is_violation
from tidelog.language.printer import format_rule
from tidelog.language.program_json import program_from_json, program_to_json
from tidelog.language.rule_heads import head_atom
from tidelog.language.syntax import Fact
from tidelog.language.syntax_json import value_from_json, value_to_json
from tidelog.stable.clingo_control import create_control
from tidelog.stable.held_intervals import HeldIntervals
from tidelog.stable.normal_form import NormalRule, orient_forward
from tidelog.stable.problem import GRID, collect_fact_intervals, prepare_data, prepare_problem, require_beginnings
from tidelog.stable.stream_components import Facts, NoWindowLeft, StreamComponents
from tidelog.timeline.grid import NEG_INF, POS_INF
from tidelog.timeline.interval import Interval

if TYPE_CHECKING:
    from tidelog.language.program import Program

_ALWAYS = ((NEG_INF, POS_INF),)


class FactStream:
    """The components of a program, and the facts that they were given so far."""

    def __init__(
        self,
        program: Program,
        data: Dataset,
        most: int,
        *,
        held: HeldIntervals | None = None,
        symbols: Symbols | None = None,
    ) -> None:
        """Prepare a program; `data` are facts that hold always, or begin at some time, and are put into `given`.

        A search with more than `most` windows at a time is given up. `held` is kept up to date with what holds, and
        `symbols` are those of a saved state.
        """
        create_control()
        self.program = program
        self._problem = prepare_problem(program, data)
        self._most = most
        forward = orient_forward(self._problem.rules)
        if forward is None or forward.mirrored or any(forward.offsets[p] for p in forward.offsets if not is_hidden(p)):
            raise _looks_ahead_error(program)
        self._rules = forward.rules
        _require_bound_variables(program, forward.rules)
        require_beginnings(self._problem)
        self.symbols = symbols or self._problem.data.symbols
        self.components = StreamComponents(forward.rules, self.symbols, most, held)
        #: The facts to begin with.
        self.given: Facts = self._problem.facts
        self._background = frozenset(atom for atom, pairs in self.given.items() if pairs == _ALWAYS)
        #: Whether times were given as dates, so that answers are printed with dates.
        self.dates = self._problem.data.dates

    def begin(self) -> None:
        """Add the facts to begin with, and find the windows of all infinite pasts; raises `NoWindowLeft`."""
        self.components.add_facts(self.given)
        self.components.find_initial_windows()

    def read(self, data: Dataset, clock: int) -> Facts:
        """Return facts with the symbols of this stream; raise TL328 if one of them begins before the clock."""
        data = prepare_data(self.program, data)
        self.dates |= data.dates
        facts: Facts = {}
        values = data.symbols
        for (predicate, args), pairs in collect_fact_intervals(data).items():
            atom = predicate, tuple(self.symbols.intern(values.value(a)) for a in args)
            if atom in self._background:
                continue
            for lo, hi in pairs:
                if lo < clock:
                    early = Fact(predicate, tuple(values.value(a) for a in args), GRID.to_interval(lo, hi))
                    raise TidelogError(
                        Diagnostic(
                            "TL328",
                            f"the fact {format_fact(early, self.dates)} arrives when the clock is at {clock} already",
                        )
                    )
            facts[atom] = pairs
        return facts

    # Saved states

    def to_json(self) -> dict[str, Any]:
        """Return the whole state as JSON values."""
        return {
            "stable": program_to_json(self.program),
            "most": self._most,
            "dates": self.dates,
            "symbols": [value_to_json(self.symbols.value(number)) for number in range(len(self.symbols))],
            "background": sorted(self._background),
            "components": self.components.to_json(),
        }

    @classmethod
    def from_json(
        cls, state: dict[str, Any], program: Program | None = None, held: HeldIntervals | None = None
    ) -> FactStream:
        """Return a stream that continues where the saved one stopped; raise TL403 if it had another program."""
        if "stable" not in state or (program is not None and program_to_json(program) != state["stable"]):
            raise TidelogError(
                Diagnostic(
                    "TL403",
                    "the state was saved with other rules, or not by a reasoner for stable models",
                    law="a state continues with the rules that it was saved with",
                    help="load it with the same rules, or start without it",
                )
            )
        symbols = Symbols()
        for value in state["symbols"]:
            symbols.intern(value_from_json(value))
        stream = cls(program_from_json(state["stable"]), Dataset(), state["most"], held=held, symbols=symbols)
        stream.dates = state["dates"]
        stream._background = frozenset((name, tuple(args)) for name, args in state["background"])
        stream.components.restore(state["components"])
        return stream

    # Errors

    def find_violations(self, stuck: NoWindowLeft) -> list[Diagnostic]:
        """Describe the constraints that leave no stable model, if there are any."""
        time, part = stuck.time, stuck.part
        found = []
        numbers = {n for window in stuck.windows for n in part.machine.find_violated(window, stuck.given)}
        for rule in (part.component.rules[n] for n in sorted(numbers)[:3]):
            origin = self._rules[rule.rule].origin
            rules = self._problem.rules
            name = next(r.predicate for r in rules if r.origin == origin and is_violation(r.predicate))
            values = [self.symbols.value(a) for a in rule.reported]
            at = Interval.point(Fraction(time)) if time is not None else Interval.always()
            found.append(describe_violation(self._problem.compiled, name, values, at))
        return found

    def name_atoms(self, stuck: NoWindowLeft) -> tuple[str, ...]:
        """Return the atoms that a component derives or, if it derives none, those that it reads, as sorted text."""
        component, ground = stuck.part.component, self.components.grounding.atoms
        named = [
            [ground[atom] for atom in atoms if not is_hidden(ground[atom][0])]
            for atoms in (component.derived, component.read)
        ]
        values = self.symbols.value
        return tuple(sorted(format_atom(name, [*map(values, args)]) for name, args in named[0] or named[1]))


def _looks_ahead_error(program: Program) -> TidelogError:
    for rule in program.rules:
        written = head_distance(rule, "integer") if head_atom(rule) is not None else 0
        if any(read.hi > written for read in find_reads(rule, "integer")):
            why = f"`{rule.text or format_rule(rule)}` looks ahead"
            message = f"{why}, so the facts up to a time do not decide what holds at it"
            return TidelogError(Diagnostic("TL327", message, rule.place))
    return TidelogError(
        Diagnostic("TL327", "these rules look ahead, so the facts up to a time do not decide what holds at it")
    )


def _require_bound_variables(program: Program, rules: Iterable[NormalRule]) -> None:
    wrong = {rule.origin for rule in rules if rule.binders}
    if wrong:
        raise TidelogError(
            Diagnostic(
                "TL327",
                "a variable occurs only in the left operand of Since, which is not supported along a stream",
                program.rules[origin].place,
                law="along a stream, the constants that a variable stands for must have occurred",
                help="use the variable in another literal of the body",
            )
            for origin in sorted(wrong)
        )
