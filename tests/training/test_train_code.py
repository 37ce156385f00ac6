"""Training, evaluating and searching on code, with real sandboxes, some of which are killed."""

import itertools
import json
import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.engines.tiny import save_tiny_model
from tests.tasks.code_rows import mbppplus_row
from tests.tasks.readings import reading_of
from vpo.cli.main import main
from vpo.sandbox import ISOLATIONS, SAFE, unavailable_reason
from vpo.tasks.code import CodeTask
from vpo.training.config import TrainConfig
from vpo.training.train import train

pytestmark = pytest.mark.skipif(
    all(unavailable_reason(ISOLATIONS[name]) for name in SAFE),
    reason="no isolation on this machine (vpo doctor)",
)

# What the answers of a tiny random model are replaced by, which are noise.
RIGHT = "```python\ndef add(a, b):\n    return a + b\n```"
WRONG = "```python\ndef add(a, b):\n    return a - b\n```"
CRASH = "```python\nimport os\ndef add(a, b):\n    os._exit(0) if a > 20 else None\n    return a + b\n```"


@pytest.fixture
def data(tmp_path):
    """Two problems, of 16 tests and of 2."""
    rows = [mbppplus_row(), mbppplus_row(task_id="Mbpp/9002", plus_input=[])]
    path = tmp_path / "mbppplus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def written(monkeypatch):
    """Let completions be read as programs."""
    programs = itertools.cycle([RIGHT, WRONG, CRASH, None])

    def read(self, text, answers):
        return reading_of(text, [next(programs) for _ in range(answers)])

    monkeypatch.setattr(CodeTask, "read", read)


# A run without any known reward is stopped: that takes four, one for each problem of each of two batches.
MOST_KILLS = 3


class Killer(threading.Thread):
    """Kills the first process below the server of the sandboxes, and some of the others: judges, programs, bwrap."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.killed = threading.Event(), 0

    def run(self):
        draw, seen = random.Random(0), set()
        while not self.over.is_set():
            for server in self.children("self"):
                for process in set(self.below(server)) - seen:
                    seen.add(process)  # each is spared or not once, however long it lives
                    if not self.killed or (self.killed < MOST_KILLS and draw.random() < 0.1):
                        self.kill(process)
            time.sleep(0.01)

    def below(self, process):
        for child in self.children(process):
            yield child
            yield from self.below(child)

    def children(self, process):
        try:
            tasks = list(Path(f"/proc/{process}/task").iterdir())
            return [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:  # it has ended
            return []

    def kill(self, process):
        with suppress(OSError):  # it has ended
            os.kill(process, signal.SIGKILL)
            self.killed += 1


def config(tmp_path, data, **settings):
    return TrainConfig(
        task="code",
        task_settings={"data": str(data)},
        model=save_tiny_model(tmp_path / "tiny"),
        method="vpo",
        method_settings={"answers": 3},
        split="test",
        steps=2,
        prompts_per_step=2,
        group=4,
        problems=2,
        max_tokens=8,
        **settings,
    )


def test_training_goes_through(tmp_path, data, written):
    result = train(config(tmp_path, data), tmp_path / "run")
    assert result.finished
    steps = [json.loads(line) for line in result.run.metrics.read_text().splitlines()]
    assert len(steps) == 2
    assert all(step["vpo/unknown"] == 0 for step in steps)
    assert all(0.3 < step["vpo/set_reward"] < 1 for step in steps)


def test_training_goes_through_where_sandboxes_are_killed(tmp_path, data, written, monkeypatch):
    killer, read = Killer(), CodeTask.read

    def read_and_kill(self, text, answers):
        if not killer.is_alive():  # not before: where solutions cannot be run, there is nothing to train on
            killer.start()
        return read(self, text, answers)

    monkeypatch.setattr(CodeTask, "read", read_and_kill)
    try:
        result = train(config(tmp_path, data), tmp_path / "run")
    finally:
        killer.over.set()
        killer.join()
    assert result.finished
    assert killer.killed
    rows = [json.loads(line) for line in result.run.metrics.read_text().splitlines()]
    assert all(0 <= row["vpo/unknown"] <= 8 for row in rows)


def test_scores_of_completions_make_a_pool(tmp_path, data, capsys):
    rows = [{"problem": "Mbpp/9001", "completion": f"<answer>{text}</answer>"} for text in (RIGHT, WRONG, CRASH, "?")]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "pool.jsonl"
    code = main(["score", str(tmp_path / "c.jsonl"), "--task", "code", "--set", f"data={data}", "--out", str(out)])
    assert code == 0, capsys.readouterr().err
    pool = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["solved"] for row in pool] == [True, False, False, False]
    assert [len(row["scores"]) for row in pool] == [16] * 4
    crashed = sum(pool[2]["scores"].values())
    assert 0 < crashed < 16  # it costs the tests that it crashes in


def test_search_and_evaluation_run_programs(tmp_path, data, written, capsys):
    model = save_tiny_model(tmp_path / "tiny")
    settings = ["--task", "code", "--set", f"data={data}"]
    code = main(["eval", model, *settings, "--answers", "2", "--pool", "4", "--out", str(tmp_path / "pool")])
    assert code == 0, capsys.readouterr().err
    facts = json.loads((tmp_path / "pool" / "eval.json").read_text())
    assert facts["unknown"] == 0
    assert facts["target"] is None
