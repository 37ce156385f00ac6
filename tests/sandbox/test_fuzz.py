"""Random programs, hostile and honest: a small run of `benchmarks/sandbox_fuzz.py`."""

import json
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[2] / "benchmarks" / "sandbox_fuzz.py"
NONE = ("exceptions", "hostile", "honest", "infrastructure", "open files", "processes")  # must stay 0


def test_random_programs_do_no_harm_and_are_judged_rightly():
    command = [sys.executable, FUZZ, "--programs", "200", "--seed", "21", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = {row["what"].split(":")[0]: row["figure"] for row in json.loads(done.stdout)}
    assert {name: figure for name, figure in figures.items() if name.startswith(NONE) and figure} == {}, done.stderr
    assert figures["seconds"] <= 0.05
    assert figures["megabytes"] <= 64
