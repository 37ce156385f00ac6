"""Settings of a run: checked, read, written."""

import pytest

from vpo.training.config import TrainConfig, as_toml, config_of, read_settings


def test_a_config_is_read_back_as_it_was_written(tmp_path):
    config = TrainConfig(
        task="maze",
        method="gdpo",
        learning_rate=2e-4,
        report_to=["tensorboard"],
        target={"gold": 0.5, "diamond": 0.5},
        task_settings={"size": 7, "compact": True},
        trainer={"epsilon_high": 0.28},
    )
    path = tmp_path / "config.toml"
    path.write_text(as_toml(config))
    assert config_of(read_settings(path)) == config


@pytest.mark.parametrize(
    ("vllm", "generator", "mode"), [("off", "transformers", None), ("colocate", "vllm", "colocate")]
)
def test_the_config_of_an_earlier_run_is_read_by_its_former_names(tmp_path, vllm, generator, mode):
    path = tmp_path / "config.toml"
    path.write_text(f'task = "maze"\nprompts = 8\ntokens_per_answer = 29\nvllm = "{vllm}"\n')
    config = config_of(read_settings(path))
    assert (config.prompts_per_step, config.max_tokens) == (8, 29)
    assert (config.generator, config.vllm_mode) == (generator, mode)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be 1 or more, not 0"),
        ({"steps": "80"}, "steps must be an integer, not '80'"),
        ({"steps": 1.5}, "steps must be an integer, not 1.5"),
        ({"steps": True}, "steps must be an integer, not True"),
        ({"problems": 0}, "problems must be 1 or more, not 0"),
        ({"learning_rate": 0}, "learning_rate must be greater than 0, not 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be greater than 0, not nan"),
        ({"kl": -1.0}, "kl must be 0 or more, not -1.0"),
        ({"top_p": 0.0}, "top_p must be greater than 0 and at most 1, not 0.0"),
        ({"lora": -1}, "lora must be 0 or more, not -1"),
        ({"seed": -1}, r"seed must lie in 0\.\.4294967295, not -1"),
        ({"generator": "endpoint"}, "generator must be one of transformers, vllm, not 'endpoint'"),
        ({"generator": "vllm", "vllm_mode": "off"}, "vllm_mode must be one of colocate, server, not 'off'"),
        ({"vllm_mode": "server"}, "vllm_mode needs generator vllm, not transformers"),
        ({"precision": "fp8"}, "precision must be one of auto, float32, mixed, bfloat16, not 'fp8'"),
        ({"report_to": ["tensorbord"]}, "report_to must name tensorboard, wandb, trackio, not 'tensorbord'"),
        ({"report_to": "wandb"}, "report_to must be a list of texts, not 'wandb'"),
        (
            {"micro_batch": 7},
            "micro_batch must divide the 256 rollouts of a step, prompts_per_step × group, and 7 does not",
        ),
        ({"target": {"gold": "much"}}, "target must be a table, not"),
        ({"task_settings": 7}, "task_settings must be a table, not 7"),
    ],
)
def test_what_means_nothing_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        config_of({"task": "maze", **settings})


def test_a_task_is_needed():
    with pytest.raises(ValueError, match="task is missing"):
        config_of({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setps = 3", "setting 'setps' is not known: did you mean 'steps'?"),
        ("steps = ", "the file is not TOML"),
        ("xyz = 1", "setting 'xyz' is not known: there are task, method"),
        ("task_settings = 3", "task_settings must be a table, not 3"),
        ('trainer = "abc"', "trainer must be a table, not 'abc'"),
    ],
)
def test_a_bad_file_is_named(tmp_path, text, message):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message.replace("?", r"\?")) as error:
        read_settings(path)
    assert str(path) in str(error.value)
    with pytest.raises(ValueError, match=r"no such file: .*nowhere\.toml"):
        read_settings("nowhere.toml")
