"""Which form of m answers a model follows: what can be read of its completions, and what the answers are worth.

python benchmarks/forms.py MODEL --tasks code,gsm8k --data code=mbppplus.jsonl.gz --data gsm8k=gsm8k/
    [--forms tags,tags+prefill,headings] [--answers 1,3] [--problems 100] [--json FILE]

For each task, form and m, over completions: the share from which all m answers are read, strictly (complete, in the
form that was asked for) and leniently; the share of the answers that are read and differ from the earlier ones of their
set; the share that copies an answer of the prompt's example; best@1 and best@m (the mean and largest w*·r of a set),
the same for solved problems, and tokens. A single answer has one form, the task's own. An answer counts as read where
the task can make something of it.

The JSON file has the rows and, for each, some completions; it is written after every task and m, and a run that finds
it goes on after the last of them.
"""

import argparse
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vpo.core.targets import weights_for
from vpo.models.forced_tags import ForcedTags, tags_of
from vpo.models.generate import Completion, Sampling, complete
from vpo.models.policy import Policy, load
from vpo.tasks import Task, get
from vpo.tasks.answers import duplicates
from vpo.tasks.forms import FORMS

PREFILL = "+prefill"
OWN = "own"  # the form of a single answer
COLUMNS = (
    *("task", "form", "answers", "problems", "strict", "read", "differ", "copied"),
    *("best@1", "best@m", "solved@1", "solved@m", "tokens"),
)


@dataclass(frozen=True)
class Row:
    """One row of the table: a task with a form, and how many answers are asked for."""

    task: Task[Any]
    form: str
    answers: int

    @property
    def forces_tags(self) -> bool:
        """Whether tags are written for the model."""
        return self.form.endswith(PREFILL)


def sample(policy: Policy, rows: list[Row], problems: list[Any], sampling: Sampling) -> list[list[Completion]]:
    """Completions of each row, one for each problem. Rows without forced tags are sampled in the same batches."""
    completions: dict[int, list[Completion]] = {}
    free = [index for index, row in enumerate(rows) if not row.forces_tags]
    prompts = [rows[index].task.ask(problem, rows[index].answers) for index in free for problem in problems]
    flat = complete(policy, prompts, sampling)
    for number, index in enumerate(free):
        completions[index] = flat[number * len(problems) : (number + 1) * len(problems)]
    for index, row in enumerate(rows):
        if row.forces_tags:
            forced = ForcedTags(policy.tokenizer, tags_of(row.task, row.answers))
            prompts = [row.task.ask(problem, row.answers) for problem in problems]
            completions[index] = complete(policy, prompts, sampling, forced=forced)
    return [completions[index] for index in range(len(rows))]


def measure(row: Row, problems: list[Any], completions: list[Completion], kept: int) -> dict[str, Any]:
    """What can be read of the completions of a row, and what the answers are worth."""
    task, answers = row.task, row.answers
    readings = [task.read(each.text, answers) for each in completions]
    sets = [reading.answers for reading in readings]
    vectors = task.score_sets(problems, sets)
    repeated = [problem for problem in problems for _ in range(answers)]
    flat = [vector for each in vectors for vector in each]
    solved = iter(task.solved_all(repeated, [answer for each in sets for answer in each], flat))
    strict, read, differ, copied, scores, right = [], [], [], [], [], []
    examples = {task.normal_form(answer) for answer in task.example.answers} if task.example else set()
    for problem, reading, scored in zip(problems, readings, vectors, strict=True):
        forms = [None if answer is None else task.normal_form(answer) for answer in reading.answers]
        known = [next(solved) for _ in scored]
        readable = [each is not None for each in forms]
        repeats = duplicates(reading.answers, task.normal_form)
        strict.append(all(here and each for here, each in zip(readable, reading.strict, strict=True)))
        read.append(all(readable))
        differ.append(np.mean([here and not again for here, again in zip(readable, repeats, strict=True)]))
        copied.append(np.mean([each is not None and each in examples for each in forms]))
        if None in scored or None in known:  # the scorer failed
            continue
        scores.append(np.asarray(scored) @ weights_for(task.target, task.names_of(problem)))
        right.append(known)
    scores_NM, solved_NM = np.asarray(scores, dtype=float), np.asarray(right, dtype=float)
    return {
        "problems": len(problems),
        "strict": float(np.mean(strict)),
        "read": float(np.mean(read)),
        "differ": float(np.mean(differ)),
        "copied": float(np.mean(copied)),
        "best@1": float(scores_NM.mean()) if len(scores) else None,
        "best@m": float(scores_NM.max(axis=1).mean()) if len(scores) else None,
        "solved@1": float(solved_NM.mean()) if len(scores) else None,
        "solved@m": float(solved_NM.max(axis=1).mean()) if len(scores) else None,
        "tokens": float(np.mean([each.tokens for each in completions])),
        "unknown": len(problems) - len(scores),
        "prompt": task.ask(problems[0], answers),
        "completions": [each.text for each in completions[:kept]],
    }


def main() -> None:
    """Measure, print the table, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tasks", default="code,gsm8k,countdown,toolrl,musique")
    parser.add_argument("--forms", default=",".join([*FORMS, f"tags{PREFILL}", f"tags-shot{PREFILL}"]))
    parser.add_argument("--answers", default="1,3")
    parser.add_argument("--data", action="append", default=[], metavar="TASK=PATH", help="may be repeated")
    parser.add_argument("--set", action="append", default=[], metavar="TASK.KEY=VALUE", help="a setting, JSON or text")
    parser.add_argument("--split", action="append", default=[], metavar="TASK=SPLIT", help="default: test")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=1, help="completions of each problem")
    parser.add_argument("--max-tokens", type=int, default=384, help="of an answer")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=int, default=5, help="completions of each row that the JSON file has")
    parser.add_argument("--name", help="of the model, in the JSON file (default: MODEL)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    options.name = options.name or options.model
    data, splits = (dict(pair.split("=", 1) for pair in pairs) for pairs in (options.data, options.split))
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    done = {(row["model"], row["task"], row["form"], row["answers"]) for row in rows}
    policy = load(options.model)
    print(" ".join(f"{column:>11}" for column in COLUMNS))
    for name in options.tasks.split(","):
        settings = {"data": data[name]} if name in data else {}
        for assignment in options.set:
            key, value = assignment.split("=", 1)
            if key.startswith(f"{name}."):
                settings[key.removeprefix(f"{name}.")] = _value(value)
        split = splits.get(name, "test")
        problems = list(get(name, **settings).problems(split))[: options.problems] * options.repeats
        rows_of_task = [
            Row(get(name, **settings, **({} if form == OWN else {"format": form.removesuffix(PREFILL)})), form, answers)
            for answers in map(int, options.answers.split(","))
            for form in ([OWN] if answers == 1 else options.forms.split(","))
            if (options.name, name, form, answers) not in done
        ]
        for answers, same in itertools.groupby(rows_of_task, lambda row: row.answers):
            rows_here = list(same)
            sampling = Sampling(
                temperature=options.temperature,
                max_new_tokens=options.max_tokens * answers,
                batch=options.batch,
                seed=options.seed,
            )
            sampled = sample(policy, rows_here, problems, sampling)
            for row, completions in zip(rows_here, sampled, strict=True):
                measured = measure(row, problems, completions, options.kept)
                rows.append({"model": options.name, "task": name, "form": row.form, "answers": answers, **measured})
                print(" ".join(_cell(rows[-1][column]) for column in COLUMNS), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _cell(value: Any) -> str:
    return f"{value:>11.3f}" if isinstance(value, float) else f"{value!s:>11}"


if __name__ == "__main__":
    main()
