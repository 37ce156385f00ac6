"""Verdicts of the task code on MBPP+ and HumanEval+, compared with those of EvalPlus itself, test by test.

python benchmarks/evalplus_agreement.py MBPPPLUS.jsonl.gz [--mutants 6] [--inputs 20] [--seed 0] [--json]

It needs the package evalplus (`pip install --no-deps evalplus psutil`), which runs programs unprotected: they are the
data set's own solutions, changed in one place or with another result than they return. HumanEval/32 is left out, since
EvalPlus 0.3.1 counts none of its tests as passed. EvalPlus limits the wall clock: a busy machine fails programs there.
"""

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from mutants import mutant
from vpo.sandbox import Limits, Sandbox
from vpo.tasks.code.evalplus import read_humaneval_plus, read_mbpp_plus
from vpo.tasks.code.expected import compute_expected
from vpo.tasks.code.problem import CodeProblem
from vpo.tasks.code.running import Submission, grade

LIMITS = Limits(test_seconds=2, seconds=60, output_bytes=16_000_000)
# What is returned instead of the result, as an expression of it; an error is a wrong answer.
RESULTS = {
    "tuple": "tuple(result)",
    "list": "list(result)",
    "inner tuples": "[tuple(each) for each in result]",
    "inner lists": "[list(each) for each in result]",
    "float": "float(result)",
    "int": "int(result)",
    "bool": "bool(result)",
    "not none": "result is not None",
    "near": "result + 1e-9",
    "near, relative": "result * (1 + 5e-8)",
    "apart": "result + 1e-5",
    "one more": "result + 1",
    "members apart": "[each + 1e-7 for each in result]",
    "members as floats": "[float(each) for each in result]",
    "reversed": "result[::-1]",
    "sorted": "sorted(result)",
    "set": "set(result)",
    "once each": "list(dict.fromkeys(result))",
    "text": "str(result)",
    "nan": "float('nan')",
    "zero": "0",
    "none": "None",
    "complex": "complex(result)",
    "in a list": "[result]",
    "unchanged": "result",
}


def with_result(source: str, entry: str, expression: str) -> str:
    """A solution that returns an expression of its result."""
    change = f"def {entry}(*args, _solution={entry}):\n    result = _solution(*args)\n    return {expression}\n"
    return f"{source}\n\n{change}"


def programs(problem: CodeProblem, count: int, random: Random) -> list[tuple[str, str]]:
    """The kinds and sources of changed solutions: half with another result, half with one small change."""
    source, entry = problem.solution or "", problem.entry or ""
    kinds = random.sample(sorted(RESULTS), count - count // 2)
    changed = [(kind, with_result(source, entry, RESULTS[kind])) for kind in kinds]
    mutants = [mutant(source, random) for _ in range(count // 2)]
    return [*changed, *(("mutant", each[0]) for each in mutants if each)]


def theirs(row: dict[str, Any], source: str, problem: CodeProblem) -> list[bool]:
    """EvalPlus's verdict on each test."""
    from evalplus.eval import untrusted_check

    inputs = [check.case.input for check in problem.checks]
    expected = [check.case.expected for check in problem.checks]
    dataset = "mbpp" if row["task_id"].startswith("Mbpp/") else "humaneval"
    seconds = [1.0] * len(inputs)
    _, details = untrusted_check(dataset, source, inputs, row["entry_point"], expected, row["atol"], seconds)
    return [*map(bool, details), *[False] * (len(inputs) - len(details))]


def compare(path: str, mutants: int, inputs: int, seed: int) -> dict[str, Any]:
    """Tests on which both agree, those on which they do not, and what these are."""
    random = Random(seed)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [row for line in file if (row := json.loads(line))["task_id"] != "HumanEval/32"]
    for row in rows:
        more = row["plus_input"] or []
        row["plus_input"] = random.sample(more, min(len(more), inputs))
    readers = [read_mbpp_plus if row["task_id"].startswith("Mbpp/") else read_humaneval_plus for row in rows]
    drafts = [read(row, row["task_id"]) for read, row in zip(readers, rows, strict=True)]
    counts: Counter[str] = Counter()
    differences = []
    with Sandbox(limits=LIMITS) as sandbox:
        drafts = compute_expected(lambda: sandbox, drafts)
        problems = [CodeProblem(draft, most=len(draft.checks)) for draft in drafts]
        jobs = [
            (row, problem, *program)
            for row, problem in zip(rows, problems, strict=True)
            for program in programs(problem, mutants, random)
        ]
        ours = grade(sandbox, [Submission(problem, source, problem.checks) for _, problem, _, source in jobs])
    for (row, problem, kind, source), verdicts in zip(jobs, ours, strict=True):
        setup = f"{problem.setup}\n\n" if problem.setup else ""
        for index, (one, other) in enumerate(zip(verdicts, theirs(row, setup + source, problem), strict=True)):
            counts["same" if one.passed == other else "different"] += 1
            counts["passed"] += other
            if one.passed != other:
                test = {"problem": problem.id, "kind": kind, "test": index, "ours": one.passed, "why": one.reason}
                differences.append(test)
    return {"programs": len(jobs), **counts, "differences": differences}


def main() -> None:
    """Print how often both agree, and where they do not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--mutants", type=int, default=6)
    parser.add_argument("--inputs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = compare(args.data, args.mutants, args.inputs, args.seed)
    if args.json:
        print(json.dumps(result))
        return
    tests = result["same"] + result.get("different", 0)
    print(f"{result['programs']} programs, {tests} tests, {result['passed']} passed by EvalPlus")
    print(f"the same verdict: {result['same'] / tests:.4%}")
    by_program = Counter((each["problem"], each["kind"], each["ours"], each["why"]) for each in result["differences"])
    for (problem, kind, passed, why), count in by_program.most_common(20):
        print(f"  {problem}, {kind}: {count} tests {'pass here alone' if passed else f'fail here alone ({why})'}")


if __name__ == "__main__":
    main()
