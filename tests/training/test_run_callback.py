"""What a run shows and logs without a terminal."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("trl")

from vpo.engines.metrics import ScoredBatch
from vpo.training.config import TrainConfig
from vpo.training.run_callback import RunCallback
from vpo.training.runs import Run
from vpo.util import progress


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def callback(folder, **settings):
    reward = SimpleNamespace(objectives=("gold", "lava"), alarms=None)
    config = TrainConfig(task="maze", method="vpo", **settings)
    return RunCallback(Run(folder), config, None, reward, updates=1)


def test_a_log_has_the_first_three_steps_then_a_line_every_half_a_minute_and_the_last_step(tmp_path, clock, capsys):
    shown = callback(tmp_path, steps=52, prompts_per_step=4, group=2)
    shown.on_train_begin(None, SimpleNamespace(global_step=40), None)
    for step in range(41, 53):
        clock.now += 12
        logs = {"loss": 0.5, "completions/mean_length": 10.0, "vpo/set_reward": 0.25, "vpo/read_rate": 0.5}
        shown.on_log(None, SimpleNamespace(global_step=step), None, logs)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == "maze vpo: 52 steps of 4 prompts × 2 completions, from step 40"
    assert [line.split(":")[0] for line in lines] == [
        "maze vpo, step 41 of 52, about 2 min left",  # 11 × 12 s
        "maze vpo, step 42 of 52, about 2 min left",
        "maze vpo, step 43 of 52, about 2 min left",
        "maze vpo, step 46 of 52, about 72 s left",
        "maze vpo, step 49 of 52, about 36 s left",
        "maze vpo, step 52 of 52",
    ]
    assert lines[-1].endswith("tokens/s, read 50%, set reward 0.25")
    assert [json.loads(line)["step"] for line in shown.run.metrics.read_text().splitlines()] == list(range(41, 53))


def test_rollouts_name_the_objectives_of_their_vectors(tmp_path):
    batch = ScoredBatch([["up", None]], [[True, False]], [np.array([[1.0, 0.5], [0, 0]])], [0.75], [[0]])
    callback(tmp_path).write_rollouts(0, [{"prompt": "which way?", "problem": "p"}], ["<answer_1>up"], batch)
    (row,) = map(json.loads, (tmp_path / "rollouts.jsonl").read_text().splitlines())
    assert row["objectives"] == ["gold", "lava"]
    assert row["vectors"] == [[1.0, 0.5], [0.0, 0.0]]
    assert (row["step"], row["answers"], row["reward"]) == (1, ["up", None], 0.75)
