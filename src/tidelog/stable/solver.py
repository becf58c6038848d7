"""clingo, if it is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.errors import Diagnostic, TidelogError

if TYPE_CHECKING:
    import clingo


def control(arguments: Sequence[str] = ()) -> clingo.Control:
    """A new solver, whose remarks on the text of programs that this package writes nobody needs to see."""
    try:
        import clingo
    except ImportError:
        raise TidelogError(
            Diagnostic(
                "TL324",
                "stable models need clingo, which is not installed",
                help="pip install 'tidelog[stable]'",
            )
        ) from None
    return clingo.Control(list(arguments), logger=lambda code, message: None)
