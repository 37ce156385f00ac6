"""Trainers whose model writes fixed completions, in one process or in several: rewards, advantages and metrics.

python -m tests.engines.fixed MODEL FOLDER     # in each process, which writes FOLDER/RANK.json
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
from trl import GRPOTrainer

from tests.engines.letters import LettersTask
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.trl import grpo_config, reward_function, task_dataset
from vpo.methods import METHODS, get
from vpo.util.errors import InputError
from vpo.util.processes import end, leave

G, LONGEST = 4, 12
SPLIT, WHOLE = 3, 4  # groups over two processes: of three the second is split
CHARACTERS = "abcdeX48!"
OWN = ["tests.engines.own_methods:Worst", "tests.engines.own_methods:Lead"]
SETTINGS = {"vpo_anchored, λ": {"anchor": 0.5}, "vpo_marginal, 1": {"answers": 1}}
CASES = [(name, SPLIT) for name in (*METHODS, *SETTINGS, *OWN)]
CASES += [
    (name, WHOLE)
    for name in (
        "grpo", "gdpo", "max_at_k", "random_weighting", "vpo", "vpo_anchored", "vpo_marginal", "vpo_marginal, 1", *OWN,
    )
]  # fmt: skip
SEED = 7


def texts(groups):
    """The completions of the batch; some cannot be scored, some are cut off."""
    rng = np.random.default_rng(5)
    completions = ["".join(rng.choice(list(CHARACTERS), size=rng.integers(6, LONGEST + 1))) for _ in range(groups * G)]
    completions[1] = completions[G + 3] = "?" + completions[1][1:]
    return completions


class FixedTask(LettersTask):
    """Letters, but for answers that begin with a question mark, whose scores are not known."""

    def score(self, problem, answer):
        if answer.startswith("?"):
            return None
        return super().score(problem, answer)


class FailingTask(FixedTask):
    """Fails in the second process."""

    def score(self, problem, answer):
        if os.environ["RANK"] == "1":
            raise InputError("the judge is gone")
        return super().score(problem, answer)


def fixed(kind, groups):
    class Fixed(kind):
        """Writes the fixed completions, and keeps their rewards."""

        def _generate_single_turn(self, prompt_ids, *_):
            start = self.accelerator.process_index * len(prompt_ids)
            own = texts(groups)[start : start + len(prompt_ids)]
            return [self.processing_class.encode(text) for text in own], None

        def _calculate_rewards(self, *args):
            self.rewards = super()._calculate_rewards(*args)
            return self.rewards

    return Fixed


def method_of(name):
    return get(name.partition(",")[0], **SETTINGS.get(name, {}))


def trainer_of(case, model, folder, processes, task):
    name, groups = case
    method = method_of(name)
    reward = reward_function(task, method, problems=task.problems(), group=G, seed=SEED)
    args = grpo_config(
        reward,
        output_dir=str(folder),
        per_device_train_batch_size=groups * G // processes,
        max_completion_length=LONGEST,
        report_to="none",
        use_cpu=True,
        shuffle_dataset=False,
    )
    kind = fixed(AnswerTrainer if method.per_answer else GRPOTrainer, groups)
    return kind(model, reward_funcs=reward, args=args, train_dataset=task_dataset(reward))


def scored(case, model, folder, processes=1, task=None):
    """The rewards of the whole batch, and of this process's part the problems, advantages and metrics."""
    trainer = trainer_of(case, model, folder, processes, task or FixedTask())
    trainer.model.train()
    inputs = next(iter(trainer.get_train_dataloader()))
    output = trainer._generate_and_score_completions(inputs)
    return {
        "problems": [row["problem"] for row in inputs],
        "rewards": trainer.rewards.flatten().tolist(),
        "advantages": output["advantages"].tolist(),
        "metrics": dict(trainer._metrics["train"]),
    }


def failure(model, folder):
    """What a process raises where one fails to score."""
    try:
        scored(("vpo", SPLIT), model, folder, 2, FailingTask())
    except Exception as error:
        return type(error).__name__, str(error)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    model, folder = sys.argv[1], Path(sys.argv[2])
    results = {str(case): scored(case, model, folder, 2) for case in CASES}
    results["failure"] = failure(model, folder)
    (folder / f"{os.environ['RANK']}.json").write_text(json.dumps(results))
    leave()
    end(0)
