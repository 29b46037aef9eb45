"""Executes docs/first_table.ipynb, and compares what its cells print with what it shows.

GRUNDY_BIN names the program. GRUNDY_BLESS=1 stores the new outputs, pictures included.
"""

import json
import os
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
NOTEBOOK = os.path.join(ROOT, "docs", "first_table.ipynb")

pytestmark = pytest.mark.skipif("GRUNDY_BIN" not in os.environ, reason="GRUNDY_BIN is not set")


def text(cell):
    """What a cell prints, and the value of its last line."""
    return "".join(
        "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for output in cell.get("outputs", [])
    )


def test_cells_of_the_notebook_print_what_it_shows(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    for module in ("ipykernel", "matplotlib"):
        pytest.importorskip(module)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "grundy").symlink_to(os.path.abspath(os.environ["GRUNDY_BIN"]))
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.path.join(ROOT, "python"))
    # The kernel of this Python, whatever is installed elsewhere.
    kernel = tmp_path / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))

    shown = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    options = {"timeout": 120, "record_timing": False, "coalesce_streams": True}
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(run, **options, resources=place).execute()
    if os.environ.get("GRUNDY_BLESS"):
        run.metadata["language_info"] = shown.metadata["language_info"]
        nbformat.write(run, NOTEBOOK)
        return
    for old, new in zip(shown.cells, run.cells):
        assert text(new) == text(old), new.source
    pictures = [o for cell in run.cells for o in cell.get("outputs", []) if "image/png" in str(o)]
    assert len(pictures) == 2
