"""The extension that `%load_ext tidelog` loads."""

from __future__ import annotations

from typing import Any

from tidelog.notebook.cell_magic import CellMagic
from tidelog.notebook.completion import make_matcher

#: The matchers of predicates, by the shell that has them.
_matchers: dict[int, Any] = {}


def load_ipython_extension(shell: Any) -> None:
    """Register `%%tidelog` cells, and the completion of predicates in them, with a shell of IPython."""
    magic = CellMagic(shell)

    def run_cell(line: str, cell: str) -> object:
        return magic.run(line, cell)

    run_cell.__doc__ = magic.describe()
    shell.register_magic_function(run_cell, "cell", "tidelog")
    matcher = _matchers[id(shell)] = make_matcher(shell)
    shell.Completer.custom_matchers.append(matcher)


def unload_ipython_extension(shell: Any) -> None:
    """Remove what `load_ipython_extension` registered."""
    shell.magics_manager.magics["cell"].pop("tidelog", None)
    matcher = _matchers.pop(id(shell), None)
    if matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(matcher)
