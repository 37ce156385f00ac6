"""A training step without its generation, stock and with little padding: computed columns, seconds, and their ratios.

python benchmarks/padding.py MODEL --task code --data mbppplus.jsonl.gz
    [--rollouts 256] [--group 8] [--answers 3] [--mean 150] [--max-tokens 256] [--layers N] [--repeats 3] [--json FILE]

The prompts are those of the task. An answer has a random number of tokens, geometric with a mean, and cut; the tokens
themselves are random. A backward pass takes a group, as in `vpo train`. Both trainers take a step in turn; a figure is
the shortest of its repeats. --layers keeps the first layers of the model alone, for a CPU.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from vpo.engines.padding import UnpaddedTrainer
from vpo.models.generate import render_prompts
from vpo.models.policy import Policy, load
from vpo.tasks import get


def made(trainer_class: Any) -> Any:
    """A trainer whose completions are given, and that notes how many columns it computes."""

    class Made(trainer_class):  # type: ignore[misc]  # trl is untyped
        sampled: dict[str, Any]

        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            return dict(self.sampled)

    return Made


def completions(options: argparse.Namespace, policy: Policy) -> dict[str, Any]:
    """A batch of rollouts as TRL pads it."""
    generator = torch.Generator().manual_seed(0)
    task = get(options.task, data=options.data) if options.data else get(options.task)
    problems = task.problems("test", count=options.rollouts // options.group)
    texts = render_prompts(
        policy.tokenizer, [task.ask(each, options.answers) for each in problems], None, thinking=False
    )
    prompts = [ids for ids in policy.tokenizer(texts)["input_ids"] for _ in range(options.group)]
    stop = (
        torch.rand(len(prompts), options.answers, generator=generator).log() / torch.tensor(1 - 1 / options.mean).log()
    )
    lengths = stop.ceil().clamp(1, options.max_tokens).sum(1).long().tolist()
    columns, longest = max(lengths), max(map(len, prompts))
    random = torch.randint(0, 1000, (len(prompts), columns), generator=generator)
    return {
        "prompt_ids": torch.tensor([[0] * (longest - len(ids)) + ids for ids in prompts]),
        "prompt_mask": torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts]),
        "completion_ids": random,
        "completion_mask": torch.tensor([[1] * each + [0] * (columns - each) for each in lengths]),
        "advantages": torch.randn(len(prompts), generator=generator),
        "num_items_in_batch": torch.tensor(float(sum(lengths))),
    }


def measure(trainer_class: Any, policy: Policy, batch: dict[str, Any], group: int) -> tuple[float, int]:
    """Seconds of a step, and the columns × rows that its passes computed."""
    computed = []
    hook = policy.model.register_forward_pre_hook(
        lambda _, __, inputs: computed.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    device = policy.model.device
    with tempfile.TemporaryDirectory() as folder:
        args = GRPOConfig(
            output_dir=folder,
            max_steps=1,
            num_generations=group,
            per_device_train_batch_size=group,
            gradient_accumulation_steps=len(batch["prompt_ids"]) // group,
            optim="sgd",
            learning_rate=0.0,
            bf16=device.type == "cuda",
            use_cpu=device.type == "cpu",
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        )
        data = Dataset.from_dict({"prompt": ["x"] * len(batch["prompt_ids"])})
        trainer = made(trainer_class)(
            policy.model, lambda prompts, **_: [0.0] * len(prompts), args, data, processing_class=policy.tokenizer
        )
        trainer.sampled = {name: value.to(device) for name, value in batch.items()}
        start = time.perf_counter()
        trainer.train()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    hook.remove()
    return seconds, sum(computed)


def main() -> None:
    """Print the figures, and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--task", default="gsm8k")
    parser.add_argument("--data")
    sizes = {"rollouts": 256, "group": 8, "answers": 3, "mean": 150, "max-tokens": 256, "repeats": 3}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    policy = load(options.model, precision="float32")
    if options.layers:
        policy.model.model.layers = policy.model.model.layers[: options.layers]
    batch = completions(options, policy)
    tokens = int(batch["prompt_mask"].sum() + batch["completion_mask"].sum())
    figures: dict[str, Any] = {"tokens": tokens}
    for _ in range(options.repeats):
        for name, trainer_class in (("stock", GRPOTrainer), ("unpadded", UnpaddedTrainer)):
            seconds, computed = measure(trainer_class, policy, batch, options.group)
            figures[f"{name}: computed"] = computed
            figures[f"{name}: seconds"] = min(seconds, figures.get(f"{name}: seconds", seconds))
    for what in ("computed", "seconds"):
        figures[f"ratio of {what}"] = figures[f"stock: {what}"] / figures[f"unpadded: {what}"]
    for name, figure in figures.items():
        print(f"{name:24} {figure:12,.2f}")
    if options.json:
        settings = {name: str(value) for name, value in vars(options).items() if value is not None and name != "json"}
        options.json.write_text(json.dumps({"settings": settings, **figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
