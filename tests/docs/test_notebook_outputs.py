"""The notebook of the documentation runs in a real kernel and gives the outputs that it shows."""

from __future__ import annotations

import os
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from locations import ROOT
from shell import drop_compilation_notice

pytestmark = pytest.mark.usefixtures("kernels")

NOTEBOOK = ROOT / "docs" / "howto" / "readings.ipynb"


def outputs_of(notebook: Any) -> list[list[dict[str, Any]]]:
    """Return what the outputs of each cell show, without the numbers of executions and the notice of a compilation."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[shown for output in cell.outputs if (shown := content_of(output)) is not None] for cell in code]


def content_of(output: Any) -> dict[str, Any] | None:
    """Return what an output shows; None if it only says that kernels are compiled, which not every machine has to."""
    if "data" in output:
        return dict(output["data"])
    text = output.get("text")
    if output.get("name") == "stderr":
        text = drop_compilation_notice(text.encode()).decode()
        if not text:
            return None
    return {"text": text}


def test_the_notebook_gives_the_outputs_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    shown = nbformat.read(NOTEBOOK, 4)
    fresh = nbformat.read(NOTEBOOK, 4)
    NotebookClient(fresh, timeout=300, kernel_name="python3").execute()
    assert outputs_of(fresh) == outputs_of(shown)
    assert sum("text/html" in output for cell in outputs_of(shown) for output in cell) == 2
