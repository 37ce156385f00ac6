"""The small policies: their vocabulary, how they are made, and how good the shipped ones are."""

import json
import sys
from pathlib import Path

import array_api_compat
import numpy as np
import pytest

pytest.importorskip("transformers")

from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

from tests.engines.tiny import TEMPLATE, save_tiny_model
from vpo import read_pool
from vpo.cli.main import main
from vpo.evaluation.evaluate import evaluate
from vpo.models.build import _encoded, build_maze
from vpo.models.build_config import BuildConfig
from vpo.models.generate import Sampling
from vpo.models.locate import SHIPPED, embedded
from vpo.models.maze import TRAINING_SEED, examples, make_tokenizer
from vpo.models.policy import load
from vpo.models.sft import to_dataset
from vpo.tasks.answers import write
from vpo.tasks.maze import MazeTask
from vpo.tasks.maze.generator import make_maze
from vpo.util.errors import InputError
from vpo.util.packages import install_command

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def test_the_tokenizer_keeps_every_character():
    tokenizer = make_tokenizer()
    for (message,), completion in examples(9, 0):
        for text in (message["content"], completion):
            tokens = tokenizer(text)["input_ids"]
            assert tokenizer.decode(tokens, skip_special_tokens=True) == text
            assert tokenizer.unk_token_id not in tokens
    assert len(tokenizer("<answer_1>RRD</answer_1>")["input_ids"]) == 5
    task = MazeTask(compact=True)
    prompt = tokenizer.apply_chat_template(task.ask(task.problems(count=1)[0], 3), add_generation_prompt=True)
    assert len(prompt["input_ids"]) < 100


def test_examples_request_as_many_answers_as_they_contain():
    task = MazeTask(size=7, compact=True)
    sizes = []
    for (message,), completion in examples(7, 5):
        count = int(message["content"].split(" ")[-1])
        answers = task.parse(completion, count)
        assert None not in answers
        assert write(answers) == completion
        sizes.append(count)
    assert sizes == [1, 1, 3, 5]


def test_an_example_with_a_goal_gives_the_best_route_under_it():
    task = MazeTask(size=7, compact=True)
    *_, ((message,), completion) = examples(7, 5, goals=True)
    *_, count, tenths = message["content"].split(" ")
    assert count == "1"
    weights = ["0123456789X".index(sign) / 10 for sign in tenths]
    maze = make_maze(7, TRAINING_SEED, 5)
    (answer,) = task.parse(completion, 1)
    others = [task.parse(text, int(prompt[0]["content"].split(" ")[-1])) for prompt, text in examples(7, 5)]
    best = max(np.dot(task.score(maze, route), weights) for routes in others for route in routes)
    assert np.dot(task.score(maze, answer), weights) == pytest.approx(best, abs=0.1)  # tenths are rounded


def test_the_loss_counts_completions_alone():
    rows = _encoded(7, True, 0)
    batch = DataCollatorForLanguageModeling(pad_token_id=0)(list(to_dataset(rows)))
    tokenizer = make_tokenizer()
    for index, (tokens, prompt) in enumerate(rows):
        counted = batch["labels"][index][batch["labels"][index] != -100].tolist()
        assert counted == tokens[prompt:]
        assert tokenizer.decode(tokens[:prompt]).endswith(">")
        assert batch["attention_mask"][index].sum() == len(tokens)


def test_a_policy_is_built_saved_and_loaded(tmp_path):
    done = build_maze(tmp_path / "policy", BuildConfig(size=7, mazes=20, steps=4, batch=8))
    assert done["examples"] == 80
    assert done["loss"][-1] < 5
    policy = load(str(tmp_path / "policy"))
    assert str(policy.model.dtype) == "torch.float32"
    assert {path.name for path in tmp_path.iterdir()} == {"policy"}
    with pytest.raises(ValueError, match="exists: choose another folder"):
        build_maze(tmp_path / "policy", BuildConfig(size=7, mazes=20, steps=1, batch=8))


@pytest.mark.parametrize(("size", "arrives"), [(7, 0.5), (9, 0.85)])
def test_the_shipped_policies_arrive_and_cover_both_corners(size, arrives):
    """The one of size 9 is good; the one of size 7 was stopped early, to leave training something to do."""
    task = MazeTask(size=size, compact=True)
    policy = load(embedded("maze", size=size))
    problems = task.problems("test", count=12)
    for answers in (1, 3):
        sampling = Sampling(temperature=1.0, max_new_tokens=task.longest_answer * answers)
        scored = evaluate(policy, task, problems, answers=answers, pool=30, sampling=sampling)
        rows = [row for each in scored for row in each.rows]
        scores = np.asarray([list(row["scores"].values()) for row in rows]).reshape(12, 30, 4)
        assert scores[..., 0].mean() >= arrives
        assert (scores[..., 1].max(axis=1) > 0).mean() >= 0.9
        assert (scores[..., 2].max(axis=1) > 0).mean() >= 0.9


def test_a_policy_may_be_wider_than_the_shipped_one(tmp_path):
    build_maze(tmp_path / "wide", BuildConfig(size=7, mazes=4, steps=1, batch=4, width=64))
    config = load(str(tmp_path / "wide")).model.config
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == (3, 64, 2)
    for width in (0, 33):
        with pytest.raises(ValueError, match=f"width must be a multiple of 32, not {width}"):
            build_maze(tmp_path / "none", BuildConfig(size=7, mazes=4, steps=1, batch=4, width=width))


def test_a_policy_is_built_from_a_seed_that_numpy_takes():
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match=f"seed must lie in 0..4294967295, not {seed}"):
            BuildConfig(seed=seed)


def test_the_shipped_policies_are_small():
    total = sum(path.stat().st_size for path in Path(SHIPPED).rglob("*") if path.is_file())
    assert total < 8e6


def test_eval_writes_a_pool_and_measures_it(tmp_path, capsys):
    folder = str(tmp_path / "evaluated")
    arguments = [
        "eval",
        "embedded",
        "--task",
        "maze",
        "--set",
        "size=7",
        "--problems",
        "4",
        "--answers",
        "3",
        "--pool",
        "6",
    ]
    assert main([*arguments, "--out", folder]) == 0
    said = capsys.readouterr().out
    assert "8 completions, 24 answers" in said
    assert "best@k, by answers" in said
    pool = read_pool(tmp_path / "evaluated" / "pool.parquet")
    assert len(pool.problems) == 4
    assert pool.set_size == 3
    assert pool.problems["7-4242-0"].tokens_N.shape == (2,)
    assert main([*arguments, "--out", folder, "--overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["completions"] == 8


def test_any_model_with_a_chat_template_is_evaluated(tmp_path, capsys):
    model = save_tiny_model(tmp_path / "llama", "llama")
    arguments = ["eval", model, "--task", "maze", "--problems", "2", "--pool", "2", "--max-tokens", "5"]
    assert main([*arguments, "--out", str(tmp_path / "evaluated")]) == 0
    assert "0.0% present" in capsys.readouterr().out


def test_a_tokenizer_that_ends_answers_unlike_its_template_is_named(tmp_path):
    model = save_tiny_model(tmp_path / "llama", "llama")
    tokenizer = load(model).tokenizer
    for end, ends_alike in (("<eos>\n", True), ("", True), ("<over>\n", False)):
        tokenizer.chat_template = TEMPLATE.replace("{{ each['content'] }}", "{{ each['content'] }}" + end)
        tokenizer.save_pretrained(model)
        if ends_alike:
            load(model)
            continue
        with pytest.warns(UserWarning, match="the chat template ends an answer with '<over>', and the tokenizer's end"):
            load(model)


def test_a_model_without_a_tokenizer_is_named(tmp_path):
    model = save_tiny_model(tmp_path / "llama", "llama")
    for file in Path(model).glob("*token*"):
        file.unlink()
    (Path(model) / "chat_template.jinja").unlink(missing_ok=True)
    with pytest.raises(InputError, match="this folder has no tokenizer"):
        load(model)


def test_policy_build_says_how_long_it_took(tmp_path, capsys):
    arguments = ["policy", "build", "maze", "--size", "7", "--mazes", "8", "--steps", "2", "--batch", "4"]
    assert main([*arguments, "--out", str(tmp_path / "policy")]) == 0
    assert "s for demonstrations" in capsys.readouterr().out


def test_without_torch_the_extra_is_named(capsys, monkeypatch):
    array_api_compat.is_torch_array(np.zeros(1))  # its result is cached; it fails where torch is None
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["eval", "embedded", "--task", "maze"]) == 2
    assert capsys.readouterr().err == f"vpo: error: this command needs torch: {install_command('train')}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "nowhere/model", "--task", "maze"], "nowhere/model: no such folder, and the model cannot be"),
        (["eval", "nowhere"], "nowhere: no such folder; for a model's name on the hub, give a task too"),
        (["eval", "FOLDER", "--task", "maze"], "this is not the folder of a model: it has no config.json"),
        (["eval", "embedded", "--task", "maze", "--answers", "-1"], "answers must be 1 or more, not -1"),
        (
            ["eval", "embedded", "--task", "musique"],
            "no policy is shipped for musique, only for maze-13, maze-7, maze-9",
        ),
        (["eval", "embedded", "--task", "maze", "--set", "size=11"], "no policy is shipped for maze-11"),
        (["eval", "embedded", "--task", "maze", "--answers", "4"], "pool must be a multiple of the 4 answers"),
        (["eval", "embedded", "--task", "maze", "--answers", "9"], "answers must be at most 8 for this model"),
        (["eval", "embedded", "--task", "maze", "--batch", "0"], "batch must be 1 or more, not 0"),
        (["eval", "embedded", "--task", "maze", "--problems", "0"], "problems must be 1 or more, not 0"),
        (["eval", "embedded", "--task", "maez"], "task 'maez' is not known: did you mean 'maze'?"),
        (
            ["policy", "build", "toolrl", "--out", "x"],
            "task must be maze, the only task with a small policy, not 'toolrl'",
        ),
        (["policy", "build", "maze", "--out", "x", "--size", "8"], "size must be odd and 7 or more, not 8"),
        (["policy", "build", "maze", "--out", "x", "--mazes", "1"], "batch must be at most 4, the examples of 1 mazes"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    assert main([str(tmp_path) if each == "FOLDER" else each for each in arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
