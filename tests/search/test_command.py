"""`vpo search`: its arguments, output and page, and what it refuses."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from vpo.cli.main import main
from vpo.evaluation.eval_folder import read_evaluation
from vpo.search.result import read_result

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


def test_the_command_searches_compares_and_draws(tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["search", "embedded", "--task", "maze", "--set", "size=7", "--problems", "3", "--goal", "gold>=1"]
    arguments += ["--target", "diamond=1", "--iterations", "3", "--answers", "3", "--out", str(out), "--processes", "0"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    for part in ("embedded evolve", "embedded best_of_n", "of 6", "never by the one in the column", "report.html"):
        assert part in said
    data = json.loads((out / "results.json").read_text())
    page = (out / "report.html").read_text()
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))
    assert shown["search"]["curves"] == data["curves"]
    for index, name in enumerate(("embedded-evolve", "embedded-best_of_n")):
        result = read_result(out / name)
        curve = data["curves"][0]["runs"][index]
        assert data["curves"][0]["unit"] == "iterations"
        assert curve["mean"] == [value.mean for value in result.curve("iterations", curve["budgets"])]
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/*.jsonl")}
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == ["embedded evolve", "embedded best_of_n"]
    assert {path: path.stat().st_mtime_ns for path in out.glob("*/*.jsonl")} == before
    for changed in (["--seed", "1"], ["--problems", "2"], ["--temperature", "1"]):
        assert main([*arguments, *changed]) == 2
        assert "holds another search (it differs in" in capsys.readouterr().err


def test_a_search_of_an_evaluation_uses_its_settings(tmp_path, capsys):
    base = str(tmp_path / "base")
    ask = ["eval", "embedded", "--task", "maze", "--set", "size=7", "--problems", "2", "--answers", "1", "--pool", "2"]
    assert main([*ask, "--out", base]) == 0
    out = tmp_path / "out"
    assert main(["search", base, "--iterations", "1", "--problems", "2", "--no-baseline", "--out", str(out)]) == 0
    capsys.readouterr()
    settings = json.loads((out / "base-evolve" / "search.json").read_text())
    assert settings["answers"] == 1
    assert settings["task_settings"]["size"] == 7


def test_the_problems_that_others_leave_unsolved_are_searched(tmp_path, capsys):
    evaluate = ["eval", "embedded", "--task", "maze", "--set", "size=7", "--problems", "8", "--pool", "2"]
    pools = [str(tmp_path / name) for name in "ab"]
    for seed, folder in enumerate(pools):
        assert main([*evaluate, "--answers", "1", "--seed", str(seed), "--out", folder]) == 0
    problems = [read_evaluation(folder).pool.problems for folder in pools]
    left = {name for name in problems[0] if not any(each[name].solved_n.any() for each in problems)}
    search = ["search", "embedded", "--task", "maze", "--set", "size=7", "--iterations", "1", "--no-baseline"]
    search += ["--problems", "8", "--answers", "1", *(part for folder in pools for part in ("--unsolved-by", folder))]
    capsys.readouterr()
    assert main([*search, "--out", str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    result = read_result(tmp_path / "out" / "embedded-evolve")
    assert 0 < len(left) < 8
    assert data["problems"] == len(left)
    assert set(result.solved) == set(data["solved"]["embedded evolve"])
    assert set(result.problems) == left


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--unsolved-by", "nowhere"], "no such run, folder or pool: nowhere"),
        (["--target", "golf=1"], "target names 'golf', and the objectives are completion"),
        (["--goal", "golf>=1"], "goal names 'golf', and the objectives are completion"),
        (["--goal", "gold>=5"], "goal 'gold>=5' cannot be reached: scores of gold lie in 0..1"),
        (["--strategy", "anneal"], "strategy must be one of evolve, best_of_n, tree, openevolve, not 'anneal'"),
        (["--operators", "regow=1"], "operator 'regow' is not known"),
        (["--operators", "regrow=much"], "operators must be written NAME=SHARE"),
        (["--operators", "extend", "--answers", "1"], "operator extend needs 2 or more answers per generation, not 1"),
        (
            ["--strategy", "tree", "--endpoint", "http://127.0.0.1:9/v1"],
            "strategy tree starts the completion with a prefix, which a chat endpoint does not support",
        ),
        (
            ["--strategy", "tree", "--operators", "repair=1"],
            "strategy tree uses the operators fresh, regrow, branch, not 'repair'",
        ),
        (["--strategy", "openevolve"], "strategy openevolve needs an endpoint: serve the model with vpo serve"),
        (["--generator", "llama.cpp"], "generator must be one of transformers, vllm, endpoint, not 'llama.cpp'"),
        (["--generator", "endpoint"], "generator endpoint needs its URL: give --endpoint URL"),
        (
            ["--generator", "vllm", "--endpoint", "http://127.0.0.1:9/v1"],
            "an endpoint needs generator endpoint, not vllm",
        ),
        (["--features", "golf"], "features names 'golf', and the objectives are completion"),
        (["--parents", "worst"], "parents must be chosen by"),
        (["--per-iteration", "4", "--answers", "3"], "per_iteration must be a multiple of the 3 answers"),
        (["--budget", "money=3"], "budget is counted in answers, generations, tokens, not in 'money'"),
        (["--budget", "answers=0"], "budget of answers must be 1 or more, not 0"),
        (["--iterations", "0"], "iterations must be 1 or more, not 0"),
        (["--jobs", "0"], "jobs must be 1 or more, not 0"),
        (["--population", "0"], "population must be 1 or more, not 0"),
        (["--limit", "0"], "limit must be greater than 0"),
        (["--temperature", "-1"], "temperature must be 0 or more"),
        (["--problems", "0"], "0"),
        (["--reward", "none.py:f"], "no such file: none.py"),
        (
            ["--endpoint", "http://127.0.0.1:9/v1", "--limit", "2", "--iterations", "1", "--problems", "1"],
            "none of 1 requests was answered",
        ),
    ],
)
def test_bad_input_is_one_line(options, message, tmp_path, capsys):
    arguments = ["search", "embedded", "--task", "maze", "--set", "size=7", "--problems", "1"]
    assert main([*arguments, "--out", str(tmp_path / "o"), *options]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("vpo: error: ")
    assert said.count("\n") == 1
    if "--endpoint" not in options:
        assert not (tmp_path / "o").exists()


def test_searches_over_different_problems_are_not_compared(tmp_path, capsys):
    folders = []
    for size in (7, 9):
        folders.append(str(tmp_path / f"base{size}"))
        ask = ["eval", "embedded", "--task", "maze", "--set", f"size={size}", "--problems", "1", "--answers", "1"]
        assert main([*ask, "--pool", "1", "--out", folders[-1]]) == 0
    options = [*folders, "--iterations", "1", "--problems", "1", "--no-baseline", "--processes", "0"]
    assert main(["search", *options, "--out", str(tmp_path / "out")]) == 2
    assert "the searches are not over the same problems and goals" in capsys.readouterr().err


def test_the_same_model_twice_is_refused(capsys):
    assert main(["search", "embedded", "embedded", "--task", "maze"]) == 2
    assert "models must be given once each" in capsys.readouterr().err
    assert not Path("searches").exists()
