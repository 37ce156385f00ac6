"""Data sets whose prompts ask for m answers: your own, and those of a task."""

import warnings
from typing import TYPE_CHECKING, Any

from vpo.engines.grading import TaskGrader
from vpo.tasks.forms import instruction as instruction_for
from vpo.util.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset

    from vpo.engines.scorer import RewardScorer

# The column that is true for rows whose prompt states w*, false where it states a random weighting, for training.
DEPLOYED = "deployed"


def ask_for(dataset: "Dataset", answers: int, *, chat: bool | None = None) -> "Dataset":
    """The data set with the instruction for m answers at the end of its prompts, which are texts or messages.

    Args:
        dataset: has a column `prompt`.
        answers: m.
        chat: whether a prompt that is a text becomes a message of the user's, which trainers write in the model's chat
            template. False leaves texts as they are, for base models. None does, with a warning.
    """
    instruction = instruction_for(answers)

    def ask(row: dict[str, Any]) -> dict[str, Any]:
        prompt = row["prompt"]
        if isinstance(prompt, str):
            text = f"{prompt}\n\n{instruction}"
            return {"prompt": [{"role": "user", "content": text}] if chat else text}
        *before, last = prompt
        if isinstance(last["content"], str):
            content: Any = f"{last['content']}\n\n{instruction}"
        else:
            content = [*last["content"], {"type": "text", "text": instruction}]
        return {"prompt": [*before, {**last, "content": content}]}

    if not hasattr(dataset, "column_names"):
        raise InputError("ask_for takes a data set of the package datasets: Dataset.from_list makes one of rows")
    columns = dataset.column_names
    if isinstance(columns, dict):
        raise InputError(f"give one split of the data set, not all of them: {', '.join(columns)}")
    if columns is not None and "prompt" not in columns:
        raise InputError(f"the data set must have a column prompt, and has {', '.join(columns)}")
    first = next(iter(dataset), None)
    if chat is None and first is not None and isinstance(first["prompt"], str):
        warnings.warn(
            "the prompts are texts, to which trainers apply no chat template: for an instruct model make messages of "
            "them with ask_for(…, chat=True); chat=False says that texts are meant",
            stacklevel=2,
        )
    return dataset.map(ask)


def task_dataset(reward: "RewardScorer", *, evaluation: bool = False) -> "Dataset":
    """A prompt for each problem of a reward function's task, named in the column `problem`.

    Where the method states the weighting in the prompt, it is the one that the reward is computed with: a random one
    for each problem, or for evaluation w*, the deployed one.
    """
    from datasets import Dataset

    return Dataset.from_list(task_rows(reward, evaluation=evaluation))


def task_rows(reward: "RewardScorer", *, evaluation: bool = False) -> list[dict[str, Any]]:
    """The rows of `task_dataset`."""
    if not isinstance(reward.grader, TaskGrader):
        raise InputError("task_dataset takes a reward function of a task; for your own prompts use ask_for")
    task, stated = reward.grader.task, reward.method.target_in_prompt
    rows: list[dict[str, Any]] = []
    if stated:
        reward.grader.prepare()  # the number of a problem's objectives must be known
    for name, problem in reward.grader.problems.items():
        weighting = reward.prompt_target(name) if evaluation else reward.prompt_weighting(name)
        row = {"prompt": task.ask(problem, reward.method.answers, weighting), "problem": name}
        rows.append({**row, DEPLOYED: evaluation} if stated else row)
    return rows
