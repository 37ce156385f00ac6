"""The seconds of a training step by its parts, as `vpo train` takes it and as stock TRL does, in turn.

python benchmarks/step.py MODEL --task code --data mbppplus.jsonl.gz [--method vpo] [--answers 3] [--prompts 32]
    [--group 8] [--max-tokens 150] [--steps 3] [--lora RANK] [--ways stock,vpo] [--json FILE]

Stock is `trl.GRPOTrainer` with the `generate` of transformers, and the same settings. The first step warms up and does
not count. Parts are the means of the others; on a GPU each waits for what was computed. "Tokens a second" counts those
that were sampled, so that a step with longer completions is not taken for a slower one.
"""

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from trl import GRPOTrainer

from step_clock import PARTS, Clock, timed_trainer
from vpo.training import trl_trainer
from vpo.training.config import TrainConfig
from vpo.training.train import train


def measure(way: str, config: TrainConfig) -> dict[str, float]:
    """The mean seconds of the parts of a step."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        chosen = trl_trainer._trainer_class
        base = (lambda *_, **__: GRPOTrainer) if way == "stock" else chosen
        patches.enter_context(
            mock.patch.object(trl_trainer, "_trainer_class", lambda *a, **s: timed_trainer(base(*a, **s), clock))
        )
        if way == "stock":
            patches.enter_context(mock.patch.object(trl_trainer, "share_prompts"))
        train(config, Path(folder) / "run")
    mean = clock.means()
    return {**mean, "rest": mean["step"] - sum(mean[name] for name in PARTS)}


def main() -> None:
    """Print a table of the ways, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--task", default="code")
    parser.add_argument("--data")
    parser.add_argument("--method", default="vpo", help="whose completions have one advantage, as stock TRL needs")
    sizes = {"prompts": 32, "group": 8, "answers": 3, "max-tokens": 150, "steps": 3, "lora": 0}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ways", default="stock,vpo")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    config = TrainConfig(
        task=options.task,
        task_settings={"data": options.data} if options.data else {},
        method_settings={"answers": options.answers},
        model=options.model,
        method=options.method,
        prompts_per_step=options.prompts,
        group=options.group,
        max_tokens=options.max_tokens,
        steps=options.steps + 1,
        lora=options.lora,
    )
    figures = {way: measure(way, config) for way in options.ways.split(",")}
    print(f"{'seconds':20}" + "".join(f"{way:>12}" for way in figures))
    for name in (*PARTS, "rest", "step"):
        print(f"{name:20}" + "".join(f"{figures[way][name]:12.2f}" for way in figures))
    print(f"{'tokens a second':20}" + "".join(f"{each['tokens'] / each['step']:12,.0f}" for each in figures.values()))
    if options.json:
        settings = {name: str(value) for name, value in vars(options).items() if value is not None and name != "json"}
        options.json.write_text(json.dumps({"settings": settings, **figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
