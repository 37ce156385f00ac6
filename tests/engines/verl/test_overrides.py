"""Settings of a run as verl's command line, and those that are refused."""

from pathlib import Path

import pytest

from vpo.engines.verl.compatibility import check_stock
from vpo.methods import METHODS, get
from vpo.training.config import TrainConfig
from vpo.training.verl_overrides import hydra, overrides
from vpo.util.errors import InputError

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


def written(method="vpo", trainer=None, method_settings=None, **settings):
    """The overrides of a config in which everything is chosen, by name."""
    chosen = {"learning_rate": 1e-6, "kl": 0.001, "max_tokens": 100, **settings}
    config = TrainConfig(task="maze", method=method, engine="verl", trainer=trainer or {}, **chosen)
    lines = overrides(
        config,
        get(method, **(method_settings or {})),
        model="some/model",
        data=Path("/runs/a b/verl"),
        checkpoints=Path("/runs/a b/checkpoints"),
        problems=100,
    )
    pairs = [each.split("=", 1) for each in lines]
    names = [name.lstrip("+") for name, _ in pairs]
    assert len(set(names)) == len(names)
    return dict(pairs)


def test_the_settings_of_a_run_get_the_names_of_verl():
    settings = written(steps=10, prompts_per_step=32, group=4, lora=8, seed=3, report_to=["wandb"], schedule="cosine")
    assert settings["trainer.total_training_steps"] == "10"
    assert settings["trainer.total_epochs"] == "10"  # never too few, whatever verl leaves out
    assert settings["data.train_batch_size"] == settings[f"{ACTOR}.ppo_mini_batch_size"] == "32"
    assert settings[f"{ROLLOUT}.n"] == "4"
    assert settings["data.max_response_length"] == "300"
    assert settings["actor_rollout_ref.model.path"] == "some/model"
    assert (settings["actor_rollout_ref.model.lora_rank"], settings["actor_rollout_ref.model.lora_alpha"]) == (
        "8",
        "16",
    )
    assert (settings[f"{ACTOR}.use_kl_loss"], settings[f"{ACTOR}.kl_loss_coef"]) == ("true", "0.001")
    assert settings[f"{ACTOR}.optim.lr_scheduler_type"] == "cosine"
    assert settings["data.seed"] == settings[f"{ROLLOUT}.seed"] == "3"
    assert settings["trainer.logger"] == "[console,wandb]"
    assert settings["data.train_files"] == "'/runs/a b/verl/train.parquet'"
    assert settings["+reward.custom_reward_function.reward_kwargs.folder"] == "'/runs/a b/verl'"
    assert settings[f"{ACTOR}.use_dynamic_bsz"] == "true"
    sized = written(micro_batch=8)
    assert (
        sized[f"{ACTOR}.ppo_micro_batch_size_per_gpu"] == sized[f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"] == "8"
    )
    assert f"{ACTOR}.kl_loss_coef" not in written(kl=0.0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_the_trainer_of_the_plugin(method):
    settings = written(method)
    assert settings["trainer.v1.trainer_mode"] == "vpo"
    assert settings["algorithm.adv_estimator"] == "grpo"
    plain = method == "dr_grpo"
    assert settings["algorithm.norm_adv_by_std_in_grpo"] == ("false" if plain else "true")
    assert settings.get(f"{ACTOR}.loss_scale_factor") == ("100" if plain else None)


def test_which_methods_the_trainers_of_verl_support():
    refused = []
    for method in METHODS:
        try:
            check_stock(get(method))
        except InputError:
            refused.append(method)
    assert refused == ["gdpo", "maxrl", "max_at_k", "random_weighting", "vpo_anchored", "vpo_marginal"]
    check_stock(get("vpo_anchored", anchor=0.9))
    with pytest.raises(InputError, match="vpo draws weightings for each step"):
        check_stock(get("vpo", draws=100))


def test_settings_of_verl_are_passed_through():
    own = {f"{ROLLOUT}.tensor_model_parallel_size": 2, f"{ROLLOUT}.name": "sglang", "trainer.nnodes": 4}
    own["+actor_rollout_ref.model.override_config.attn_implementation"] = "sdpa"
    own["data.val_files"] = "[a.parquet,b.parquet]"
    settings = written(trainer=own)
    assert settings[f"{ROLLOUT}.tensor_model_parallel_size"] == "2"
    assert settings[f"{ROLLOUT}.name"] == "sglang"
    assert settings["+actor_rollout_ref.model.override_config.attn_implementation"] == "sdpa"
    assert settings["data.val_files"] == "[a.parquet,b.parquet]"
    assert written(trainer={"trainer.v1.trainer_mode": "separate_async"})["trainer.v1.trainer_mode"] == "separate_async"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trainer": {"algorithm.adv_estimator": "gae"}}, "algorithm.adv_estimator must be 'grpo' for vpo, not 'gae'"),
        (
            {"trainer": {"algorithm.use_kl_in_reward": True}},
            "algorithm.use_kl_in_reward must be False for vpo, not True",
        ),
        (
            {"method": "dr_grpo", "trainer": {f"{ACTOR}.loss_agg_mode": "token-mean"}},
            "loss_agg_mode must be 'seq-mean-token-sum-norm' for dr_grpo",
        ),
        ({"trainer": {"trainer.use_v1": False}}, "trainer.use_v1 must be True for vpo, not False"),
        ({"trainer": {"~reward.reward_manager.name": "naive"}}, "reward.reward_manager.name must be 'naive'"),
        (
            {"trainer": {"++reward.custom_reward_function.path": "mine.py"}},
            "reward.custom_reward_function.path must be 'pkg://vpo.engines.verl.reward'",
        ),
        (
            {"trainer": {"custom_reward_function.path": "mine.py"}},
            "custom_reward_function.path is a setting of an older verl, which 0.9 silently drops",
        ),
        (
            {"trainer": {"reward_model.reward_manager": "dapo"}},
            "reward_model.reward_manager is a setting of an older verl",
        ),
        ({"trainer": {f"{ROLLOUT}.n": 4}}, f"set group of the run, not {ROLLOUT}.n of verl"),
        ({"trainer": {"trainer.v1.trainer_mode": "fast"}}, "trainer.v1.trainer_mode must be one of vpo, sync, "),
        (
            {"method": "gdpo", "trainer": {"trainer.v1.trainer_mode": "sync"}},
            "gdpo looks at the rewards of a whole group, and verl calls a reward function for one completion at a "
            "time: "
            "leave trainer.v1.trainer_mode at vpo, the plugin's",
        ),
        ({"generator": "vllm"}, "generator is not a setting of verl: "),
        ({"precision": "bfloat16"}, "precision is not a setting of verl: "),
        ({"rollouts_every": 2}, "rollouts_every is not a setting of verl: "),
        ({"schedule": "linear"}, "schedule must be one of constant_with_warmup, constant, cosine under verl"),
        ({"prompts_per_step": 200}, "prompts_per_step must be at most the 100 problems under verl, not 200"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_the_reason(settings, message):
    with pytest.raises(InputError) as caught:
        written(**settings)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        (1e-6, "1e-06"),
        (["a", 1], "[a,1]"),
        ("null", "'null'"),
        ("1.5", "'1.5'"),
        ("it's $x", "'it\\'s $x'"),
        ("/a-b/c.py", "/a-b/c.py"),
        ("", "''"),
    ],
)
def test_values_are_written_as_hydra_reads_them(value, text):
    assert hydra(value) == text
