"""Every file that vpo writes, damaged in every way: one line that names it and exit code 2, or nothing is lost."""

import json
import shutil
from pathlib import Path

import pytest

from tests.damaged import answer, check, damages

pytest.importorskip("transformers")

from vpo import write_pool
from vpo.cli.main import main
from vpo.evaluation.eval_plan import EvalConfig
from vpo.evaluation.evaluate import evaluate_into
from vpo.models.locate import SHIPPED
from vpo.training import runs
from vpo.training.config import TrainConfig
from vpo.training.plan import plan_for
from vpo.training.reproduce import write_plan
from vpo.util.files import append_rows

MODEL = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "vpo.json")
SEARCH = ("--no-baseline", "--problems", "2", "--target", "gold=1", "--processes", "1", "--answers", "3")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run with the embedded policy as its model, and its evaluation."""
    folder = tmp_path_factory.mktemp("made")
    config = TrainConfig(task="maze", steps=4, task_settings={"size": 7})
    run = runs.create(folder / "run", config)
    run.note_start({"command": "vpo train maze", "processes": 1})
    steps = [{"step": step, "loss": 0.5, "completions/mean_length": 9.0, "vpo/set_reward": 0.1} for step in range(1, 5)]
    append_rows(run.metrics, steps)
    append_rows(run.rollouts, [{"step": step, "completion": "R"} for step in range(1, 5)])
    shutil.copytree(SHIPPED / "maze-7", run.model)
    evaluate_into(run.folder, EvalConfig(model=str(run.folder), problems=2, pool=3, answers=3))
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy of it, in the current folder, so that what is printed does not depend on where that is."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def damage(path, content):
    path.unlink(missing_ok=True) if content is None else path.write_bytes(content)


@pytest.mark.parametrize("name", ["config.toml", "run.json", "metrics.jsonl", "eval.json", "pool.parquet"])
def test_compare_names_a_damaged_file_of_a_run(folder, name, capsys):
    path = Path("run") / name
    arguments = ["compare", "run", "--out", "out"]
    whole = answer(arguments, capsys)
    for damaged in damages(path.read_bytes(), log=name.endswith(".jsonl")).values():
        damage(path, damaged)
        result = answer(arguments, capsys)
        check(result, whole, path)
        assert result.code == 2


def test_what_compare_does_not_read_may_be_damaged(folder, capsys):
    arguments = ["compare", "run", "--out", "out"]
    whole = answer(arguments, capsys)
    Path("run/rollouts.jsonl").write_bytes(b"\xff{")
    assert answer(arguments, capsys) == whole


@pytest.mark.parametrize("name", [*MODEL, "model.safetensors"])
@pytest.mark.parametrize("command", ["eval", "serve", "search"])
def test_a_damaged_file_of_a_model_is_named(folder, name, command, capsys):
    path = Path("run/model") / name
    for damaged in damages(path.read_bytes()).values():
        damage(path, damaged)
        result = answer([command, "run", *(() if command == "serve" else ("--out", "out"))], capsys)
        check(result, None, path)


def test_a_damaged_chat_template_is_named(folder, capsys):
    path = Path("run/model/chat_template.jinja")
    for kind, damaged in damages(path.read_bytes()).items():
        damage(path, damaged)
        result = answer(["eval", "run", "--out", "out"], capsys)
        assert result.code == 2, kind
        check(result, None, path)


def test_weights_that_are_missing_are_not_made_up(folder, capsys):
    from safetensors.torch import load_file, save_file

    path = Path("run/model/model.safetensors")
    tensors = load_file(path)
    del tensors[sorted(tensors)[0]]
    save_file(tensors, path, metadata={"format": "pt"})
    result = answer(["eval", "run", "--out", "out"], capsys)
    assert result.code == 2
    assert "the model has no weights for" in result.error


@pytest.fixture(scope="module")
def searched(made):
    """The files of a search that has ended, and what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        assert main(["search", "run", *SEARCH, "--iterations", "3", "--out", "searches"]) == 0
    return {path.name: path.read_bytes() for path in (made / "searches/run-evolve").iterdir() if path.is_file()}


def search_with(files, iterations, capsys):
    """Search in a folder that holds some files of an earlier search."""
    folder = Path("searches/run-evolve")
    shutil.rmtree("searches", ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        if content is not None:
            (folder / name).write_bytes(content)
    return answer(["search", "run", *SEARCH, "--iterations", iterations, "--out", "searches"], capsys)


@pytest.mark.parametrize("name", ["search.json", "ended.json", "generations.jsonl", "candidates.jsonl"])
@pytest.mark.parametrize("iterations", [3, 4])
def test_a_damaged_file_of_a_search_is_named(searched, folder, name, iterations, capsys):
    whole = search_with(searched, iterations, capsys)
    for damaged in damages(searched[name], log=name.endswith(".jsonl")).values():
        result = search_with({**searched, name: damaged}, iterations, capsys)
        check(result, whole, Path("searches/run-evolve") / name)
        assert result.code == (0 if (name, damaged) == ("ended.json", None) else 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["search.json", "generations.jsonl", "candidates.jsonl"])
def test_an_interrupted_search_goes_on_or_names_the_damage(searched, folder, name, capsys):
    whole = search_with(searched, 3, capsys)
    for damaged in damages(searched[name], log=name.endswith(".jsonl")).values():
        result = search_with({**searched, "ended.json": None, name: damaged}, 3, capsys)
        check(result, whole, Path("searches/run-evolve") / name)
        assert result.output in ("", whole.output)


@pytest.mark.parametrize("name", ["generations.jsonl", "candidates.jsonl"])
def test_a_full_disk_in_a_search_says_how_to_go_on(searched, folder, name, capsys):
    whole = search_with(searched, 3, capsys)
    shutil.rmtree("searches")
    log = Path("searches/run-evolve") / name
    log.parent.mkdir(parents=True)
    log.symlink_to("/dev/full")  # takes nothing, like a disk that is full
    arguments = ["search", "run", *SEARCH, "--iterations", "3", "--out", "searches"]
    full = answer(arguments, capsys)
    assert full.code == 2
    assert full.error.endswith(
        "vpo: error: searches/run-evolve: the disk is full: free some space and repeat the command: the search resumes "
        "where it stopped\n"
    )
    log.unlink()
    assert answer(arguments, capsys).output == whole.output


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz", "pool.parquet"])
def test_a_damaged_pool_is_named(folder, name, capsys):
    rows = [{"problem": "p", "generation": n, "position": 1, "scores": {"a": n / 9, "b": 1 - n / 9}} for n in range(9)]
    write_pool(name, rows)
    write_pool("whole.jsonl", rows)
    for kind, damaged in damages(Path(name).read_bytes(), log=name == "pool.jsonl").items():
        if kind == "empty in a line":  # a file that others write may have empty lines
            continue
        damage(Path(name), damaged)
        for command in (["measure"], ["compare"], ["diagnose"], ["select"]):
            whole = ["whole.jsonl"] if command in (["measure"], ["compare"]) else []
            check(answer([*command, *whole, name], capsys), None, Path(name))


@pytest.mark.parametrize("name", ["plan.toml", "results.json"])
def test_a_damaged_file_of_a_reproduction_is_named(folder, name, capsys):
    plan = ["reproduce", "maze", "--small", "--methods", "grpo", "--out", "all", "--model", "embedded", "--size", "7"]
    write_plan(plan_for("maze", {"methods": ("grpo",), "model": "embedded", "size": 7}, small=True), Path("all"))
    results = {"plan": {"seeds": 1}, "rates": {"grpo": {"rate": 2e-4}}, "names": ["grpo"]}
    Path("all/results.json").write_text(json.dumps(results))
    Path("all/runs").mkdir()
    path = Path("all") / name
    for damaged in damages(path.read_bytes()).values():
        damage(path, damaged)
        check(answer(plan if name == "plan.toml" else ["search", "all", "--out", "out"], capsys), None, path)
