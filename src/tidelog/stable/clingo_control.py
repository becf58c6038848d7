"""Create clingo solvers, or explain how to install clingo."""

from __future__ import annotations

from collections.abc import Sequence
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


def create_ground_control(arguments: Sequence[str], program: str) -> clingo.Control:
    """Create a solver for a program in aspif, whose atoms are numbers."""
    control = create_control(arguments)
    control.add("base", [], program)
    control.ground([("base", [])])
    return control
