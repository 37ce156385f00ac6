"""The reward function in ms-swift: on its own, by the real package's loader and arithmetic, and in its trainer."""

import json
import sys
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

from tests.engines.plugged import (
    ANSWERS,
    OBJECTIVES,
    SOLUTIONS,
    completions,
    expected,
    method_of,
    plugin,
    reward_by,
    score,
)
from vpo import advantages
from vpo.engines.reward import reward_function
from vpo.engines.swift import SwiftPlugin, check_arguments, register
from vpo.methods import METHODS
from vpo.models.locate import embedded
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

LAST_LINES = "from vpo.engines.swift import register\nregister(reward_of_vpo)\n"
SUPPORTED = [name for name in METHODS if name != "goal_conditioned"]  # which needs a task


def arguments(name="vpo", **settings):
    """The arguments of ms-swift's GRPOConfig that matter here, as they fit a method."""
    centred = name in ("dr_grpo", "gdpo", "maxrl", "max_at_k", "vpo_marginal")
    fitting = {
        "advantage_estimator": "grpo",
        "scale_rewards": "none" if centred else "group",
        "loss_type": "dr_grpo" if name == "dr_grpo" else "grpo",
        "multi_objective_aggregation": "sum_then_normalize",
        "num_generations": 4,
        "num_generations_eval": None,
        "per_device_train_batch_size": 8,
        "steps_per_generation": 1,
        "world_size": 1,
        "max_completion_length": 100,
        "kl_in_reward": False,
        "beta": 0.04,
        "reward_weights": None,
        "dynamic_sample": False,
    }
    return SimpleNamespace(**{**fitting, **settings})


def conversations(prompt, texts):
    return [[{"role": "user", "content": prompt}, {"role": "assistant", "content": text}] for text in texts]


def test_completions_have_rewards_and_metrics():
    texts, plugin = completions("first", 2), SwiftPlugin(reward_by("vpo"))
    vpo, parse_rate = plugin.reward_function(), plugin.metric_function("vpo/parse_rate")
    rewards = vpo(texts, conversations("first", texts), solution=["4"] * 4)
    assert all(type(each) is float for each in rewards)
    assert rewards == reward_by("vpo")(["first"] * 4, texts, solution=["4"] * 4)
    assert parse_rate(texts) == [1] * 4
    assert (vpo.__name__, parse_rate.__name__) == ("vpo", "vpo/parse_rate")


def test_unknown_rewards_get_the_mean_of_their_group():
    texts = [write([answer]) for answer in ("4", "?", "5555", "?", "5", "5")]
    messages = conversations("first", texts[:3]) + conversations("second", texts[3:])
    rewards = SwiftPlugin(reward_by("grpo")).rewards(texts, messages, solution=["4"] * 6)
    assert rewards == [1.0, 0.5, 0.0, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("vpo", {"scale_rewards": "none"}, "scale_rewards must be 'group' for vpo, not 'none'"),
        ("max_at_k", {"scale_rewards": "group"}, "scale_rewards must be 'none' for max_at_k, not 'group'"),
        ("vpo", {"advantage_estimator": "rloo"}, "--advantage_estimator must be grpo, not rloo"),
        ("vpo", {"kl_in_reward": True}, "--kl_in_reward must be false"),
        ("vpo", {"reward_weights": [1.0, 0.5]}, r"--reward_weights must be 1 for vpo, .* not \[1.0, 0.5\]"),
        ("vpo", {"reward_weights": [2.0]}, "--reward_weights must be 1 for vpo"),
        ("vpo", {"multi_turn_scheduler": "math_tip"}, "--multi_turn_scheduler must not be given, not math_tip"),
        ("vpo", {"num_generations": 8}, "num_generations must be 4, the group of the reward, not 8"),
        ("maxrl", {"num_generations_eval": 2}, "num_generations_eval must be 4 for maxrl, not 2"),
        ("maxrl", {"per_device_train_batch_size": 6}, "maxrl needs whole groups in one process"),
        ("gdpo", {"dynamic_sample": True}, "--dynamic_sample must be false for gdpo"),
        ("dr_grpo", {"loss_type": "grpo"}, "loss_type must be 'dr_grpo' for dr_grpo, not 'grpo'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(name, settings, message):
    check_arguments(reward_by(name), arguments(name))
    with pytest.raises(ValueError, match=message):
        check_arguments(reward_by(name), arguments(name, **settings))


def test_unsupported_methods_are_refused():
    with pytest.raises(ValueError, match="vpo_anchored has an advantage for each answer, and ms-swift has one"):
        register(reward_function(None, "vpo_anchored", score=score, objectives=OBJECTIVES))
    with pytest.raises(ValueError, match="train with swift rlhf"):
        check_arguments(reward_by("vpo"), SimpleNamespace(micro_batch_size=1))


@pytest.fixture
def swift():
    """Modules of ms-swift; what is registered with it is removed again."""
    pytest.importorskip("swift")
    from swift.arguments.base_args.base_args import BaseArguments
    from swift.rewards import orms
    from swift.rl_core.advantage import compute_advantages
    from swift.rl_core.data import GRPOSample
    from swift.rl_core.grpo_algorithm import score_completions
    from swift.rlhf_trainers.utils import make_reward_weights, resolve_reward_funcs

    before = dict(orms)
    yield SimpleNamespace(
        load=lambda file: BaseArguments._import_external_plugins(
            SimpleNamespace(external_plugins=[str(file)], custom_register_path=[])
        ),
        functions=resolve_reward_funcs,
        weights=make_reward_weights,
        sample=GRPOSample.from_row,
        score=score_completions,
        advantages=compute_advantages,
    )
    orms.clear()
    orms.update(before)


def samples_of(swift, count):
    rows = [
        {"messages": messages, "solution": SOLUTIONS[prompt], "prompt_id": prompt, "request_id": f"{prompt}-{index}"}
        for prompt in ANSWERS
        for index, messages in enumerate(conversations(prompt, completions(prompt, count)))
    ]
    return [swift.sample(row) for row in rows]


@pytest.mark.parametrize("name", SUPPORTED)
def test_ms_swift_gets_the_advantages_of_the_method(swift, tmp_path, name):
    import torch

    swift.load(plugin(tmp_path, name, LAST_LINES))
    args = arguments(name, reward_weights=[1.0, 0.0, 0.0])
    functions, shown = swift.functions(["vpo", "vpo/diversity", "vpo/objective/correct"], args=args)
    assert shown == ["vpo", "vpo/diversity", "vpo/objective/correct"]
    samples, state = samples_of(swift, method_of(name).answers), SimpleNamespace(global_step=7)
    rewards = swift.score(samples, functions, [None] * 3, False, torch.device("cpu"), trainer_state=state)
    weights = swift.weights(args.reward_weights, 3, torch.device("cpu"))
    seen_advantages, _ = swift.advantages(rewards, weights, 4, scale_rewards=args.scale_rewards)
    prompts = [repr([{"role": "user", "content": prompt}]) for prompt in ANSWERS]
    want = expected(name, step=7, problems=prompts)
    assert np.abs(want).max() > 0.1
    np.testing.assert_allclose(seen_advantages.numpy().reshape(2, 4), want, atol=1e-5)
    right = np.mean(
        [each == SOLUTIONS[p] for p in ANSWERS for a in ANSWERS[p] for each in a[: method_of(name).answers]]
    )
    assert rewards[:, 2].tolist() == pytest.approx([right] * 8)


def test_ms_swift_refuses_before_it_trains(swift, tmp_path):
    swift.load(plugin(tmp_path, "vpo", LAST_LINES))
    with pytest.raises(ValueError, match="scale_rewards must be 'group' for vpo, not 'batch'"):
        swift.functions(["vpo"], args=arguments(scale_rewards="batch"))
    with pytest.raises(ValueError, match="--reward_weights must be given with vpo/diversity"):
        swift.functions(["vpo", "vpo/diversity"], args=arguments())
    with pytest.raises(ValueError, match="--reward_funcs must name vpo before vpo/diversity"):
        swift.functions(["vpo/diversity", "vpo"], args=arguments(reward_weights=[1.0, 0.0]))


MAZES = """
from vpo.engines.reward import reward_function
from vpo.engines.swift import register
from vpo.tasks.maze import MazeTask

task = MazeTask(size=7, compact=True)
reward = reward_function(task, "{name}", problems=task.problems("train", count=4), group=4)
BATCHES = []
register(reward.observed_by(lambda *batch: BATCHES.append(batch)))
"""


def rows_of_mazes(file, answers):
    """Write a data set as ms-swift takes it: messages, and a column that names the problem."""
    task = MazeTask(size=7, compact=True)
    prompts = [(task.ask(problem, answers), problem.id) for problem in task.problems("train", count=4)]
    file.write_text("\n".join(json.dumps({"messages": messages, "problem": name}) for messages, name in prompts))
    return file


@pytest.mark.parametrize("name", ["vpo", "gdpo"])
def test_the_whole_trainer_of_ms_swift_trains_a_method(tmp_path, monkeypatch, name):
    pytest.importorskip("swift")
    if not version("trl").startswith("0."):
        pytest.skip("the trainer of ms-swift needs TRL below 1.0, and an environment of its own")
    import swift.rlhf_trainers.grpo_trainer as trainer
    from swift.pipelines import rlhf_main

    plugged = tmp_path / "mazes.py"
    plugged.write_text(MAZES.format(name=name))
    seen_advantages = []
    compute = trainer.compute_advantages

    def watched_compute(**settings):
        result = compute(**settings)
        seen_advantages.append(result[0].numpy().reshape(2, 4))
        return result

    monkeypatch.setattr(trainer, "compute_advantages", watched_compute)
    answers = 3 if name == "vpo" else 1
    settings = {
        "rlhf_type": "grpo",
        "model": embedded("maze", size=7),
        "model_type": "qwen3",
        "template": "dummy",
        "template_backend": "jinja",
        "dataset": str(rows_of_mazes(tmp_path / "mazes.jsonl", answers)),
        "external_plugins": str(plugged),
        "scale_rewards": "group" if name == "vpo" else "none",
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "max_steps": 2,
        "max_completion_length": 100 * answers,
        "output_dir": str(tmp_path / "out"),
        "tuner_type": "full",
        "torch_dtype": "float32",
        "bf16": "false",
        "use_vllm": "false",
        "report_to": "none",
        "beta": 0,
        "logging_steps": 1,
        "save_strategy": "no",
        "dataset_num_proc": 1,
        "load_from_cache_file": "false",
        "split_dataset_ratio": 0,
        "gradient_checkpointing": "false",
        "create_checkpoint_symlink": "false",
    }
    flags = [str(each) for setting, value in settings.items() for each in (f"--{setting}", value)]
    rewards = ["--reward_funcs", "vpo", "vpo/diversity", "vpo/objective/gold", "--reward_weights", "1", "0", "0"]
    rlhf_main([*flags, *rewards])
    (module,) = [each for each in list(sys.modules.values()) if getattr(each, "__file__", None) == str(plugged)]
    batches = [batch for _, _, _, batch in module.BATCHES]
    assert len(seen_advantages) == len(batches) == 2
    for advantages_PG, batch in zip(seen_advantages, batches, strict=True):
        rewards_PGMD = np.stack(batch.vectors).reshape(2, 4, answers, 4)
        mask = np.asarray([[answer is not None for answer in each] for each in batch.parsed]).reshape(2, 4, answers)
        np.testing.assert_allclose(
            advantages_PG, advantages(name, rewards_PGMD, mask=mask, target=MazeTask().weights), atol=1e-5
        )
    (log,) = (tmp_path / "out").rglob("logging.jsonl")
    assert "rewards/vpo/objective/gold/mean" in json.loads(log.read_text().splitlines()[0])
