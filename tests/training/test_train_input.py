"""Wrong input to `vpo train`: one line, exit code 2, and nothing left behind."""

import pytest

pytest.importorskip("trl")

from vpo.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["maez"], "task 'maez' is not known: did you mean 'maze'?"),
        (["maze", "--method", "gpro"], "method 'gpro' is not known: did you mean 'grpo'?"),
        (["maze", "--model", "nowhere/model"], "nowhere/model: no such folder, and the model cannot be loaded from"),
        (["maze", "--model", "."], ": this is not the folder of a model: it has no config.json"),
        (["toolrl", "--model", "nowhere/model"], "task toolrl needs data: download"),
        (["toolrl", "--data", "nowhere"], "no policy is shipped for toolrl, only for maze-13, maze-7, maze-9: name a"),
        (["toolrl", "--model", "x/y", "--data", "nowhere"], "no such file or folder: nowhere (data of task toolrl)"),
        (["maze", "--answers", "0"], "answers must be 1 or more, not 0"),
        (["maze", "--method", "grpo", "--answers", "2"], "grpo takes 1 answer per rollout, not 2"),
        (["maze", "--answers", "9"], "answers must be at most 8 for this model, not 9"),
        (["maze", "--group", "1"], "a group needs 2 or more rollouts for vpo, not 1"),
        (
            ["maze", "--prefill", "--generator", "vllm"],
            "prefill does not work with generator vllm: change that, or give --no-prefill",
        ),
        (["maze", "--prefill", "--trainer-set", "use_transformers_continuous_batching=true"], "prefill does not work"),
        (
            ["maze", "--prefill", "--trainer-set", 'generation_kwargs={"num_beams": 2}'],
            "prefill does not work with num_beams 2 of the trainer",
        ),
        (
            ["maze", "--prefill", "--max-tokens", "1"],
            "with prefill the tags alone take 5 tokens, and a completion has 3: raise max_tokens",
        ),
        (["maze", "--steps", "0"], "steps must be 1 or more, not 0"),
        (["maze", "--set", "size=11"], "no policy is shipped for maze-11"),
        (["maze", "--method-set", "alpha=1"], "vpo has no setting 'alpha': there are answers, concentration"),
        (["maze", "--trainer-set", "beta=1"], "set kl of the run, not beta of the trainer"),
        (
            ["maze", "--trainer-set", "learning_rate=1"],
            "set learning_rate of the run, not learning_rate",
        ),
        (["maze", "--trainer-set", "output_dir=x"], "output_dir of the trainer cannot be set: the run folder"),
        (["maze", "--trainer-set", "steps_per_generation=4"], "cannot be set: a step is one batch of rollouts"),
        (["maze", "--trainer-set", "sync_ref_model=true"], "cannot be set: a resumed run would have another result"),
        (["maze", "--trainer-set", "save_only_model=true"], "cannot be set: a resumed run would have another result"),
        (["maze", "--trainer-set", "eval_strategy=steps"], "cannot be set: the run has eval_every"),
        (["maze", "--trainer-set", "num_iterations=0"], "num_iterations of the trainer must be 1 or more, not 0"),
        (["maze", "--trainer-set", "epsilon_high=abc"], "epsilon_high of the trainer must be a number, not 'abc'"),
        (["maze", "--trainer-set", "min_p=null"], "min_p of the trainer must be a number, not None"),
        (["maze", "--schedule", "warmup_stable_decay"], "the trainer refuses its settings ("),
        (["maze", "--set", "size=8"], "size must be odd and 7 or more, not 8"),
        (["maze", "--config", "."], "vpo: error: .: the file cannot be read (Is a directory)"),
        (["maze", "--precision", "bfloat16"], "precision 'bfloat16' needs lora: "),
        (["maze", "--method", "goal_conditioned"], "states a weighting in each prompt, which this model never learned"),
        (["maze", "--model", "./nowhere"], "./nowhere: no such folder"),
        (["maze", "--trainer-set", "epsilon_hihg=1"], "has no setting 'epsilon_hihg': did you mean 'epsilon_high'?"),
        (["maze", "--schedule", "linaer"], "trl.GRPOConfig refuses its settings (linaer is not a valid SchedulerType"),
        (["maze", "--generator", "vllm"], "generator vllm needs the package vllm: pip install vllm"),
        (["maze", "--vllm-mode", "server"], "vllm_mode needs generator vllm, not transformers"),
        (["maze", "--report-to", "trackio"], "report_to 'trackio' needs the package trackio: pip install trackio"),
        (["maze", "--target", "silver=1"], "target names 'silver', and the objectives are completion, gold"),
        (["maze", "--config", "nowhere.toml"], "no such file: nowhere.toml"),
        (["maze", "--split", "dev"], "no split 'dev' in maze"),
        (["--resume", "nowhere"], "no such run: nowhere"),
        (["--resume", "x", "--steps", "5"], "a resumed run keeps its settings: give --resume x without steps"),
        ([], "task is missing"),
        (["maze", "--out", "."], ". exists: choose another --out, or `vpo train --resume .`"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    if {"--trainer-set", "--target", "--out", "--schedule"} & set(arguments):
        arguments = [*arguments, "--set", "size=7"]
    assert main(["train", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("vpo: error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.glob("*/*")) == []
