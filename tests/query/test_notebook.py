"""The notebook runs from top to bottom, and is committed without what it prints."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples/query.ipynb"


def test_nothing_that_it_prints_is_committed():
    for cell in nbformat.read(NOTEBOOK, 4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
def test_the_notebook_runs(tmp_path):
    book = nbformat.read(NOTEBOOK, 4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert any("<table>" in each.get("data", {}).get("text/html", "") for each in printed)
    assert any("near names are height" in each.get("text", "") for each in printed)
    assert any("classify_ground: about" in each.get("text", "") for each in printed)
