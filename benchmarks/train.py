"""Where the time of a training step goes: generation, loss, and what vpo adds. On the embedded maze policy, stock TRL.

python benchmarks/train.py [--method vpo] [--answers M] [--steps 6] [--rollouts 256] [--json]

What vpo adds is parsing, scores, rewards and metrics; "method" is the part of it that the method computes: rewards,
advantages and its own metrics, such as marginal credit.
"""

import argparse
import json
import tempfile
from typing import Any

from transformers import PrinterCallback
from trl import GRPOTrainer

from step_clock import Clock, timed_trainer
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.trl import grpo_config, reward_function, task_dataset
from vpo.models.locate import embedded
from vpo.models.policy import load
from vpo.tasks.maze import MazeTask

GROUP = 8


def measure(method: str, answers: int | None, steps: int, rollouts: int) -> dict[str, float]:
    """Seconds of a step: generation, rewards, of these the method's part, the loss and the rest, and the whole step."""
    task = MazeTask(size=7, compact=True)
    problems = task.problems("train", count=200)
    reward = reward_function(task, method, problems=problems, answers=answers, group=GROUP)
    clock = Clock()
    kind = type(reward.method)
    for name in ("rewards", "advantages", "metrics"):
        setattr(kind, name, clock.timed("method", getattr(kind, name)))
    trainer_class: Any = AnswerTrainer if reward.method.per_answer else GRPOTrainer
    with tempfile.TemporaryDirectory() as folder:
        args = grpo_config(
            reward,
            output_dir=folder,
            num_generations=GROUP,
            per_device_train_batch_size=rollouts,
            max_completion_length=task.longest_answer * reward.method.answers,
            max_steps=steps + 1,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        policy = load(embedded("maze", size=7))
        trainer = timed_trainer(trainer_class, clock)(
            policy.model,
            reward_funcs=reward,
            args=args,
            train_dataset=task_dataset(reward),
            processing_class=policy.tokenizer,
        )
        trainer.remove_callback(PrinterCallback)  # it writes to standard output
        trainer.train()
    mean = clock.means()
    parts = {name: mean[name] for name in ("generation", "rewards", "method")}
    return {**parts, "loss and the rest": mean["step"] - mean["generation"] - mean["rewards"], "step": mean["step"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", default="vpo")
    parser.add_argument("--answers", type=int, metavar="M")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rollouts", type=int, default=256)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    seconds = measure(options.method, options.answers, options.steps, options.rollouts)
    if options.json:
        print(json.dumps(seconds, indent=2))
        return
    for name, value in seconds.items():
        print(f"{name:20} {value:8.3f} s  {value / seconds['step']:6.1%}")
    print(f"what vpo adds: {seconds['rewards'] / seconds['step']:.1%}  at most 2%")
    print(f"of this the method: {seconds['method'] / seconds['step']:.2%}  at most 1%")


if __name__ == "__main__":
    main()
