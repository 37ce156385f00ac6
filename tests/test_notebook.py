"""The notebook runs from top to bottom, as a reader would run it; its stored outputs are those of a whole run."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.launch import ROOT

NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"
LARGEST = 400_000  # bytes, with its plots


def read():
    return nbformat.read(NOTEBOOK, as_version=4)


def outputs(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def plots(notebook):
    """How many pictures each cell shows."""
    shown = [[output.get("data", {}) for output in cell.get("outputs", [])] for cell in notebook.cells]
    return [number for each in shown if (number := sum("image/png" in data for data in each))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of Jupyter's packages
def test_it_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = read()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert plots(notebook) == plots(read())
    runs = tmp_path / "quickstart_runs"
    pools = json.loads((runs / "comparison" / "comparison.json").read_text())["pools"]
    assert [Path(pool["path"]).parent.name for pool in pools] == ["base", "grpo", "vpo_marginal"]
    assert (runs / "comparison" / "report.html").stat().st_size > 100_000
    evaluation = json.loads((runs / "vpo_marginal" / "eval.json").read_text())
    assert (evaluation["answers_per_generation"], evaluation["problems"]) == (1, 100)


def test_its_outputs_are_stored_small_and_whole():
    notebook = read()
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert plots(notebook) == [1] * 6  # the five plots, and the curves of the comparison
    assert NOTEBOOK.stat().st_size < LARGEST
    assert not [output for output in outputs(notebook) if output.output_type == "error"]


def test_its_outputs_name_no_path_of_a_machine():
    texts = [output.get("text", "") for output in outputs(read())]
    texts += [text for output in outputs(read()) for kind, text in output.get("data", {}).items() if "text" in kind]
    assert len(texts) > 5
    assert re.findall(r"(?<![\w.])/(?:home|root|tmp|usr|opt|Users|work)/\S*", "\n".join(texts)) == []
