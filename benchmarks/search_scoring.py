"""Candidates a second that a search of programs scores, together and one by one; ratios of one run.

Programs of one problem with 16 tests: right ones, wrong ones, some that raise, and some that loop until their time is
up. Equal programs are run once in a call, so all differ.

python benchmarks/search_scoring.py [--json]
"""

import json
import tempfile
import time
from pathlib import Path

from timing import show
from vpo.search.goals import goals_of
from vpo.search.scorer import GoalScorer, ScoringRequest
from vpo.tasks import get

CANDIDATES = 64
ROW = {
    "task_id": "Square/1",
    "prompt": '"""\nWrite a function to square a number.\n"""\n',
    "entry_point": "square",
    "canonical_solution": "\ndef square(n):\n    return n * n\n",
    "base_input": [[number] for number in range(16)],
    "plus_input": [],
    "atol": 0,
}
BODIES = (
    "return n * n + 0 * {0}",
    "return n + {0}",
    "return {0} // (n - 3)",
    "return {{k: k * k for k in range(5)}}.get(n, {0})",
)
LOOP = "while n > {0} % 9: pass\n    return n * n"


def sources(looping: int) -> list[str]:
    """Different programs, some of which loop in a test."""
    bodies = [(LOOP if index < looping else BODIES[index % len(BODIES)]).format(index) for index in range(CANDIDATES)]
    return [f"```python\ndef square(n):\n    {body}\n```" for body in bodies]


def rows() -> list[tuple[str, float, str]]:
    """Rates of scoring, and their ratio, without and with programs that loop."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.jsonl"
        data.write_text(json.dumps(ROW))
        task = get("code", data=str(data), test_seconds=0.5, seconds=1.0)
        (problem,) = task.problems()
        (goal,) = goals_of(task)
        scorer = GoalScorer(task, {problem.id: problem}, {goal.name: goal})
        for looping in (0, 6):
            requests = [
                ScoringRequest(number, problem.id, goal.name, source, 1)
                for number, source in enumerate(sources(looping))
            ]
            scorer.score(requests[-1:])  # what is started once is started
            start = time.perf_counter()
            together = scorer.score(requests)
            middle = time.perf_counter()
            alone = [result for request in requests for result in scorer.score([request])]
            end = time.perf_counter()
            assert [each.answers[0].scores for each in together] == [each.answers[0].scores for each in alone]
            name = f"candidates a second, {looping} of {CANDIDATES} loop"
            figures += [
                (f"{name}: together", CANDIDATES / (middle - start), ""),
                (f"{name}: one by one", CANDIDATES / (end - middle), ""),
                (f"{name}: times faster", (end - middle) / (middle - start), ""),
            ]
    return figures


if __name__ == "__main__":
    show(__doc__, rows)
