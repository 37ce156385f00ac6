"""Where the time of a training step goes: generation, loss, and what vpo adds. On the embedded maze policy, stock TRL.

python benchmarks/train.py [--method vpo] [--answers M] [--steps 6] [--rollouts 256] [--json]

What vpo adds is parsing, scores, rewards and metrics; "method" is the part of it that the method computes: rewards,
advantages and its own metrics, such as marginal credit.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from typing import Any

from transformers import PrinterCallback
from trl import GRPOTrainer

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
    seconds: Counter[str] = Counter()
    ends = []

    def timed(name: str, function: Any) -> Any:
        def call(*arguments: Any, **settings: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **settings)
            finally:
                seconds[name] += time.perf_counter() - start

        return call

    kind = type(reward.method)
    for name in ("rewards", "advantages", "metrics"):
        setattr(kind, name, timed("method", getattr(kind, name)))
    trainer_class: Any = AnswerTrainer if reward.method.per_answer else GRPOTrainer

    class TimedTrainer(trainer_class):  # type: ignore[misc]  # trl is untyped
        """Measures times, and changes nothing else."""

        def _generate_single_turn(self, *arguments: Any, **settings: Any) -> Any:
            return timed("generation", super()._generate_single_turn)(*arguments, **settings)

        def _calculate_rewards(self, *arguments: Any, **settings: Any) -> Any:
            return timed("reward", super()._calculate_rewards)(*arguments, **settings)

        def training_step(self, *arguments: Any, **settings: Any) -> Any:
            loss = super().training_step(*arguments, **settings)
            ends.append((time.perf_counter(), dict(seconds)))
            return loss

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
        trainer = TimedTrainer(
            policy.model,
            reward_funcs=reward,
            args=args,
            train_dataset=task_dataset(reward),
            processing_class=policy.tokenizer,
        )
        trainer.remove_callback(PrinterCallback)  # it writes to standard output
        trainer.train()
    (start, before), (end, after) = ends[0], ends[-1]  # the first step warms up
    parts = {name: (after[name] - before[name]) / steps for name in ("generation", "reward", "method")}
    step = (end - start) / steps
    return {**parts, "loss and the rest": step - parts["generation"] - parts["reward"], "step": step}


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
    print(f"what vpo adds: {seconds['reward'] / seconds['step']:.1%}  at most 2%")
    print(f"of this the method: {seconds['method'] / seconds['step']:.2%}  at most 1%")


if __name__ == "__main__":
    main()
