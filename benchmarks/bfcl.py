"""toolrl's scores of BFCL's rows against BFCL's own checker: an answer is valid if and only if all its scores are 1.

Right answers to random rows, each changed in one of many ways, are scored by both. The checker is that of the package
bfcl-eval (`pip install --no-deps bfcl-eval`), the data its single-turn rows with `function` and `ground_truth`.

    python benchmarks/bfcl.py --data bfcl_v4_single_turn.jsonl.gz [--count 2000] [--seed 0] [--json]
"""

import argparse
import itertools
import json
import sys
import types
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random

from scipy.optimize import linear_sum_assignment

from bfcl_changes import CHANGES, Calls, Row, right_calls
from vpo.tasks.toolrl import ToolProblem, ToolrlTask
from vpo.tasks.toolrl.data import from_bfcl
from vpo.util.row_files import read_rows

MODEL = "any-model"

# Disagreements that docs/tasks.md lists.
SOURCE = "Java and JavaScript: the checker takes source text, toolrl JSON values"
UNREACHABLE = "a row for which the checker accepts no answer"
GREEDY = "the checker pairs parallel calls in their order, toolrl in the best way"


def load_checker() -> Callable[[Row, Calls], bool]:
    """BFCL's checker as a function of a row and calls. A row on which it raises is not valid."""
    models = types.ModuleType("bfcl_eval.constants.model_config")  # it imports the clients of all vendors
    models.MODEL_CONFIG_MAPPING = {MODEL: types.SimpleNamespace(underscore_to_dot=False)}  # type: ignore[attr-defined]
    sys.modules["bfcl_eval.constants.model_config"] = models
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(row: Row, calls: Calls) -> bool:
        category = row["category"]
        language = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}.get(category)
        output = [{name: arguments} for name, arguments in deepcopy(calls)]
        try:
            result = ast_checker(
                row["function"], output, row["ground_truth"], language or Language.PYTHON, category, MODEL
            )
        except (TypeError, KeyError, AttributeError, IndexError, OverflowError):
            return False
        return bool(result["valid"])

    return check


@dataclass
class Counts:
    """Of one kind of change: answers, those that the checker accepts, disagreements, and those that docs list."""

    answers: int = 0
    valid: int = 0
    listed: int = 0
    differ: int = 0


def written(calls: Calls) -> str:
    lines = [json.dumps({"name": name, "parameters": arguments}) for name, arguments in calls]
    return "\n".join(["<think>t</think>", "<tool_call>", *lines, "</tool_call>"])


def exception(row: Row, problem: ToolProblem, calls: Calls, check: Callable[[Row, Calls], bool]) -> str | None:
    """Which listed exception a disagreement is, None for none."""
    if "java" in row["category"]:
        return SOURCE
    if not check(row, [(str(call.name), dict(call.parameters)) for call in problem.calls]):
        return UNREACHABLE
    return GREEDY if not check(row, calls) and can_be_paired(row, calls, check) else None


def can_be_paired(row: Row, calls: Calls, check: Callable[[Row, Calls], bool]) -> bool:
    """Whether the checker accepts each call for another gold call, in some pairing of all."""
    gold = [
        {**row, "ground_truth": [one], "function": [tool for tool in row["function"] if tool["name"] in one]}
        for one in row["ground_truth"]
    ]
    valid = [[check({**each, "category": "simple_python"}, [call]) for call in calls] for each in gold]
    pairs = zip(*linear_sum_assignment(valid, maximize=True), strict=True)
    return len(calls) == len(gold) and all(valid[i][j] for i, j in pairs)


def compare(
    rows: list[Row], count: int, seed: int, check: Callable[[Row, Calls], bool]
) -> tuple[dict[str, Counts], Counter[str], list[str]]:
    """Counts by kind of change, listed exceptions by name, and disagreements that are not listed."""
    task = ToolrlTask()
    counts = {name: Counts() for name in CHANGES}
    exceptions: Counter[str] = Counter()
    unlisted: list[str] = []
    for index, name in zip(range(count), itertools.cycle(CHANGES), strict=False):
        random = Random(f"{seed} {index}")
        calls = None
        while not calls:
            row = random.choice(rows)
            calls = CHANGES[name](right_calls(row, random), row, random)
        problem = from_bfcl(row, row["id"], "row")
        valid, ones = check(row, calls), task.score(problem, written(calls)) == (1, 1, 1, 1)
        counts[name].answers += 1
        counts[name].valid += valid
        if valid != ones:
            listed = exception(row, problem, calls, check)
            counts[name].listed += listed is not None
            counts[name].differ += listed is None
            if listed:
                exceptions[listed] += 1
            else:
                unlisted.append(f"{row['id']}, {name}: the checker says {valid}: {json.dumps(calls)}")
    return counts, exceptions, unlisted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="BFCL's single-turn rows")
    parser.add_argument("--count", type=int, default=2000, help="changed answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [dict(row) for _, row in read_rows(Path(options.data))]
    counts, exceptions, unlisted = compare(rows, options.count, options.seed, load_checker())
    others = options.count - sum(exceptions.values())
    agreement = 1 - len(unlisted) / max(1, others)
    if options.json:
        table = {name: vars(each) for name, each in counts.items()}
        print(json.dumps({"agreement": agreement, "exceptions": exceptions, "unlisted": unlisted, "kinds": table}))
        return
    print(f"{'change':36}{'answers':>9}{'valid':>9}{'listed':>9}{'differ':>9}")
    for name, each in counts.items():
        print(f"{name:36}{each.answers:9}{each.valid:9}{each.listed:9}{each.differ:9}")
    for name, answers in exceptions.items():
        print(f"listed, {answers}: {name}")
    for line in unlisted:
        print(line)
    print(f"the other {others} of {options.count} answers: agreement on {agreement:.2%}")


if __name__ == "__main__":
    main()
