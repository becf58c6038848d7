"""Create clingo solvers, or explain how to install clingo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    import clingo


def create_control(arguments: Sequence[str] = ()) -> clingo.Control:
    """Create a solver that does not log: clingo's warnings are about program text that users never see."""
    try:
        import clingo
    except ImportError:
        raise TidelogError(Diagnostic("TL324", "stable models need clingo, which is not installed")) from None
    return clingo.Control(list(arguments), logger=lambda code, message: None)


def add_ground_rules(
    control: clingo.Control, lines: Sequence[str], symbols: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, int]:
    """Add ground rules to a solver, past clingo's grounder; return the literal of each atom by its name.

    The atoms in `symbols` are shown, as `s` with these arguments: clingo looks for consequences among them.

    A line is `head :- body.`, a fact, a constraint, a choice `{ head }.` or `#project atom.`, with `, ` between the
    literals of a body.
    """
    import clingo

    atoms: dict[str, int] = {}
    projected: list[int] = []
    with control.backend() as backend:

        def number(name: str) -> int:
            atom = atoms.get(name)
            if atom is None:
                arguments = None if symbols is None else symbols.get(name)
                symbol = None if arguments is None else clingo.Function("s", [clingo.Number(n) for n in arguments])
                atom = atoms[name] = backend.add_atom(symbol)
            return atom

        for line in lines:
            head, _, body = line[:-1].partition(":-")
            head = head.strip()
            if head.startswith("#project "):
                projected.append(number(head.removeprefix("#project ")))
                continue
            literals = [
                -number(text[4:]) if text.startswith("not ") else number(text)
                for text in body.strip().split(", ")
                if text
            ]
            is_choice = head.startswith("{")
            heads = [number(head.strip("{} ") if is_choice else head)] if head else []
            backend.add_rule(heads, literals, is_choice)
        if projected:
            backend.add_project(projected)
    return atoms


def add_costs(control: clingo.Control, atoms: Mapping[str, int], costs: Mapping[str, int]) -> None:
    """Tell a solver what atoms cost, by their names; `atoms` are their literals."""
    if costs:
        with control.backend() as backend:
            backend.add_minimize(0, [(atoms[name], cost) for name, cost in costs.items() if name in atoms])
