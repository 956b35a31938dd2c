"""The notebook among the examples runs, and shows what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FILE = Path(__file__).resolve().parents[2] / "examples/python/bufferbloat.ipynb"


def test_the_notebook() -> None:
    book = nbformat.read(FILE, 4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    shown = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    pages = [output["data"].get("text/html", "") for output in shown if "data" in output]
    assert any("<svg" in page for page in pages) and any("<table" in page for page in pages)
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2
    text = next(output["text"] for output in shown if output.output_type == "stream")
    late = {line.split()[0]: float(found[1]) for line in text.splitlines() if (found := re.search(r"p99 +(\S+) ms", line))}
    assert late["codel"] < late["100"] / 3
