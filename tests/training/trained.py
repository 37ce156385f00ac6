"""A small run on the embedded policy, the results that must be reproducible, and a way to stop it."""

import json

import torch
from transformers import AutoModelForCausalLM

from vpo.training.config import TrainConfig
from vpo.training.run_callback import RunCallback
from vpo.training.runs import Run
from vpo.training.train import train

# Ten problems, four a step: by the last step in the third epoch.
SMALL = TrainConfig(
    task="maze",
    steps=6,
    prompts_per_step=4,
    group=4,
    problems=10,
    micro_batch=8,
    save_every=2,
    rollouts_every=2,
    seed=3,
    task_settings={"size": 7},
)
ARGUMENTS = [
    *("maze", "--set", "size=7", "--steps", "6", "--prompts-per-step", "4", "--group", "4", "--problems", "10"),
    *("--micro-batch", "8", "--save-every", "2", "--rollouts-every", "2", "--seed", "3"),
]


def train_to_the_end(folder):
    """Train the small run to its last step, and return its folder."""
    assert train(SMALL, folder).finished
    return folder


def result(folder):
    """What must be the same at the end of the same run: weights, metrics without times, sampled rollouts."""
    run = Run(folder)
    weights = AutoModelForCausalLM.from_pretrained(run.model).state_dict()
    metrics = [json.loads(line) for line in run.metrics.read_text().splitlines()]
    for row in metrics:
        del row["step_time"]
    return weights, metrics, run.rollouts.read_text()


def assert_same(one, other):
    assert one[1] == other[1]
    assert one[2] == other[2]
    assert one[0].keys() == other[0].keys()
    assert all(torch.equal(value, other[0][name]) for name, value in one[0].items())


def stop_after(monkeypatch, step):
    """As Ctrl-C would during a step."""
    inner = RunCallback.on_step_end

    def on_step_end(self, args, state, control, **more):
        self.stop = self.stop or state.global_step >= step
        return inner(self, args, state, control, **more)

    monkeypatch.setattr(RunCallback, "on_step_end", on_step_end)
