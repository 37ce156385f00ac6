"""Train the maze policy that ships with this package, with GRPO and with VPO, on a stock TRL trainer and a bare CPU.

    python examples/maze_trl.py --out maze      # some seven minutes on two cores
    vpo measure maze/grpo.jsonl maze/vpo.jsonl  # who is ahead at one sample, and who from a few on?
    vpo measure maze/base.jsonl maze/vpo.jsonl  # what did training add?

A recipe to read from top to bottom, and to copy: for another model, another task or your own scorer, change the lines
that name them.
"""

import argparse
from pathlib import Path

from trl import GRPOTrainer

from vpo.engines.trl import grpo_config, reward_function, task_dataset
from vpo.evaluate import evaluate
from vpo.generate import Sampling
from vpo.policies import Policy, embedded, load
from vpo.pools import write_pool
from vpo.tasks.maze import MazeTask

SIZE = 7
GROUP = 8


def train(method: str, path: str, task: MazeTask, steps: int, rollouts: int, out: Path) -> Policy:
    """Return the policy after some steps of a method."""
    problems = task.problems("train")
    reward = reward_function(task, method, problems=problems, group=GROUP)
    answers = reward.method.answers
    args = grpo_config(
        reward,
        output_dir=str(out / f"{method}-training"),
        num_generations=GROUP,
        per_device_train_batch_size=rollouts,
        max_completion_length=task.longest_answer * answers,
        learning_rate=2e-4,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=10,
        max_steps=steps,
        logging_steps=10,
        save_strategy="no",
        report_to="none",
        seed=0,
    )
    policy = load(path)
    trainer = GRPOTrainer(
        policy.model,
        reward_funcs=reward,
        args=args,
        train_dataset=task_dataset(reward),
        processing_class=policy.tokenizer,
    )
    trainer.train()
    return Policy(method, trainer.model.eval(), policy.tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small maze policy with GRPO and with VPO.")
    parser.add_argument("--out", type=Path, default=Path("maze"), help="folder for the pools (maze)")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--rollouts", type=int, default=256, help="per step")
    parser.add_argument("--mazes", type=int, default=200, help="to evaluate on")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    task = MazeTask(size=SIZE, compact=True)
    path = embedded("maze", size=SIZE)
    problems = task.problems("test", count=options.mazes)
    for name, answers in (("base", 3), ("grpo", 1), ("vpo", 3)):
        policy = load(path) if name == "base" else train(name, path, task, options.steps, options.rollouts, options.out)
        sampling = Sampling(max_new_tokens=task.longest_answer * answers)
        write_pool(options.out / f"{name}.jsonl", evaluate(policy, task, problems, answers, 30, sampling))
        print(f"{name}: {options.out}/{name}.jsonl")


if __name__ == "__main__":
    main()
