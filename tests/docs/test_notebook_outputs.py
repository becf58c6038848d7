"""The notebook of the documentation runs in a real kernel and gives the outputs that it shows."""

from __future__ import annotations

import os
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from locations import ROOT

pytestmark = pytest.mark.usefixtures("kernels")

NOTEBOOK = ROOT / "docs" / "howto" / "readings.ipynb"


def outputs_of(notebook: Any) -> list[list[dict[str, Any]]]:
    """Return what the outputs of each cell show, without the numbers of executions."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[dict(output.get("data", {"text": output.get("text")})) for output in cell.outputs] for cell in code]


def test_the_notebook_gives_the_outputs_that_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    shown = nbformat.read(NOTEBOOK, 4)
    fresh = nbformat.read(NOTEBOOK, 4)
    NotebookClient(fresh, timeout=300, kernel_name="python3").execute()
    assert outputs_of(fresh) == outputs_of(shown)
    assert sum("text/html" in output for cell in outputs_of(shown) for output in cell) == 2
