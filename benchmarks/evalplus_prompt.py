"""MBPP+ with the prompt of the task code, and with EvalPlus's own: what the form of a single answer costs.

python benchmarks/evalplus_prompt.py sample MODEL MBPPPLUS.jsonl.gz --json completions.json [--name NAME]
python benchmarks/evalplus_prompt.py score completions.json MBPPPLUS.jsonl.gz [--json FILE]

`sample` writes one greedy completion of each problem for three prompts: ours; the problem's text alone; and EvalPlus's,
a request for a script in a fence, with the beginning of the reply. `score` runs them against all tests of MBPP+: ours
as the task reads it, the others as EvalPlus takes the code out of them. It needs the package evalplus
(`pip install --no-deps evalplus termcolor tree-sitter tree-sitter-python`). Intervals are paired over problems.
"""

import argparse
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.intervals import bootstrap
from vpo.tasks import get
from vpo.tasks.code.answers import fenced
from vpo.util.row_files import read_rows

REQUEST = "Please provide a self-contained Python script that solves the following problem in a markdown code block:"
REPLY = (
    "Below is a Python script with a self-contained function that solves the problem and passes corresponding tests:"
)
BEGUN = f"{REPLY}\n```python\n"
PROMPTS = OURS, PLAIN, EVALPLUS = "ours", "plain", "evalplus"


def sample(options: argparse.Namespace) -> None:
    """Sample the completions of a model."""
    from vpo.models.generate import Sampling, complete
    from vpo.models.policy import load

    task = get("code", data=options.data)
    rows = {row["task_id"]: row for _, row in read_rows(Path(options.data))}
    problems = list(task.problems("test"))[: options.problems]
    policy = load(options.model)
    sampling = Sampling(temperature=0, max_new_tokens=options.max_tokens, batch=512)
    texts = [rows[problem.id]["prompt"].strip() for problem in problems]
    prompts = {
        OURS: [task.ask(problem, 1) for problem in problems],
        PLAIN: [[{"role": "user", "content": text}] for text in texts],
        EVALPLUS: [[{"role": "user", "content": f"{REQUEST}\n```\n{text}\n```"}] for text in texts],
    }
    completions = {}
    for name in PROMPTS:
        prefixes = [BEGUN] * len(problems) if name == EVALPLUS else None
        completions[name] = [each.text for each in complete(policy, prompts[name], sampling, prefixes)]
    result = {"model": options.name or options.model, "problems": [each.id for each in problems], **completions}
    options.json.write_text(json.dumps(result, indent=1))


def score(options: argparse.Namespace) -> None:
    """Score the completions of a model with every prompt, and compare ours with the others."""
    task = get("code", data=options.data)
    completions = json.loads(options.completions.read_text())
    by_id = {problem.id: problem for problem in task.problems("test")}
    problems = [by_id[name] for name in completions["problems"]]
    sanitize = evalplus_sanitize()
    answers: dict[str, list[str | None]] = {OURS: [task.parse(text, 1)[0] for text in completions[OURS]]}
    answers[PLAIN] = [
        fenced(sanitize(text, problem.entry)) for text, problem in zip(completions[PLAIN], problems, strict=True)
    ]
    answers[EVALPLUS] = [
        fenced(sanitize(text.partition("\n```")[0], problem.entry))
        for text, problem in zip(completions[EVALPLUS], problems, strict=True)
    ]
    solved = {}
    for name in PROMPTS:
        vectors = task.score_all(problems, answers[name])
        known = task.solved_all(problems, answers[name], vectors)
        if None in known:
            raise SystemExit(f"{known.count(None)} programs could not be scored: see vpo doctor")
        solved[name] = np.array(known, dtype=float)
    read = np.mean([answer is not None and task.normal_form(answer) is not None for answer in answers[OURS]])
    result: dict[str, Any] = {"model": completions["model"], "problems": len(problems), "read": float(read)}
    result["pass@1"] = {name: float(solved[name].mean()) for name in PROMPTS}
    result["ours over"] = {}
    for name in (PLAIN, EVALPLUS):
        difference = solved[OURS] - solved[name]
        interval = bootstrap(difference)
        result["ours over"][name] = {"mean": interval.mean, "low": interval.low, "high": interval.high}
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


def evalplus_sanitize() -> Any:
    """EvalPlus's function that takes the code out of a reply; the module imports a downloader that is not needed."""
    stub = types.ModuleType("evalplus.data")
    for name in ("get_human_eval_plus", "get_mbpp_plus", "load_solutions", "write_directory", "write_jsonl"):
        setattr(stub, name, None)
    sys.modules.setdefault("evalplus.data", stub)
    from evalplus.sanitize import sanitize

    return sanitize


def main() -> None:
    """Sample or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    sampling = commands.add_parser("sample", help="write completions")
    sampling.add_argument("model")
    sampling.add_argument("data")
    sampling.add_argument("--json", type=Path, required=True, metavar="FILE")
    sampling.add_argument("--name", help="of the model, in the JSON file (default: MODEL)")
    sampling.add_argument("--problems", type=int, help="how many (default: all)")
    sampling.add_argument("--max-tokens", type=int, default=768)
    sampling.set_defaults(run=sample)
    scoring = commands.add_parser("score", help="score completions")
    scoring.add_argument("completions", type=Path)
    scoring.add_argument("data")
    scoring.add_argument("--json", type=Path, metavar="FILE")
    scoring.set_defaults(run=score)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
