"""`vpo select`: what is chosen by a weighting, what it is worth, what is written."""

import json

import numpy as np
import pytest

from tests import oracles
from tests.evaluation.selected import chosen, row, small_pool, write
from vpo import directions, read_pool, set_reward
from vpo.cli.main import main
from vpo.evaluation.answer_rows import read_answers
from vpo.evaluation.select import select
from vpo.evaluation.select_config import SelectConfig
from vpo.evaluation.selection_text import selected_rows
from vpo.evaluation.selection_values import selection_values
from vpo.util.row_files import read_rows


@pytest.fixture
def pool(tmp_path):
    return small_pool(tmp_path)


def test_the_cover_has_specialists_where_the_target_has_all_rounders(pool):
    assert chosen(pool, 3) == ["0", "1", "4"]
    assert chosen(pool, 3, SelectConfig(by="target")) == ["0", "3", "1"]
    assert chosen(pool, 1, SelectConfig(by="target"), target={"b": 1.0}) == ["4"]


def test_copies_are_chosen_once_and_smaller_choices_are_beginnings(pool):
    assert chosen(pool, 9) == ["0", "1", "4", "3"]
    for k in (1, 2, 3):
        assert chosen(pool, k) == chosen(pool, 9)[:k]


def test_values_are_those_of_the_sets(pool):
    answers = read_answers(pool)
    scores = np.array([[0.7, 0.7], [1, 0], [0.7, 0.7], [0.7, 0.69], [0, 1]])
    columns = scores @ directions(2).T
    for each in selection_values(answers, select(answers, 3), [1, 2, 3]):
        values = {name: some["weightings"].mean for name, some in each.values.items()}
        picked = [0, 1, 4][: each.k]
        assert values["chosen"] == pytest.approx(set_reward(scores[picked]), abs=1e-9)
        assert values["top"] == pytest.approx(set_reward(scores[[0, 3, 1][: each.k]]), abs=1e-9)
        assert values["random"] == pytest.approx(
            np.mean([oracles.best_at_k(column, each.k) for column in columns.T]), abs=1e-9
        )
        assert values["all"] == pytest.approx(set_reward(scores), abs=1e-9)
        assert oracles.best_set(columns, each.k) <= values["bound"] + 1e-9
        assert each.values["chosen"]["target"].mean == pytest.approx(0.7)
        assert each.differences["random"]["weightings"].mean == pytest.approx(values["chosen"] - values["random"])
        assert each.values["chosen"]["weightings"].low is None  # one problem has no interval


def test_the_order_of_rows_and_objectives_changes_no_value(tmp_path, pool):
    rows = [each for _, each in read_rows(tmp_path / "pool.jsonl")]
    turned = [{**each, "scores": dict(reversed(each["scores"].items()))} for each in reversed(rows)]
    answers = [read_answers(path) for path in (pool, write(tmp_path / "turned.jsonl", turned))]
    values = [selection_values(each, select(each, 3), [3])[0].values["chosen"]["weightings"].mean for each in answers]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_rows_without_a_text_are_chosen_only_where_no_row_has_one(tmp_path):
    rows = [row(0, {"a": 0.0}), {**row(1, {"a": 1.0}), "answer": None}]
    assert chosen(write(tmp_path / "some.jsonl", rows), 2) == ["0"]
    bare = [{name: value for name, value in each.items() if name != "answer"} for each in rows]
    assert chosen(write(tmp_path / "none.jsonl", bare), 2) == ["1", "0"]


def test_rows_without_a_text_count_among_the_sampled_answers(tmp_path, capsys):
    """Four samples, of which two have no text: a random one is worth (1 + 0.5 + 0 + 0) / 4."""
    rows = [row(0, {"a": 1.0}), row(1, {"a": 0.5}), *({**row(n, {"a": 0.0}), "answer": None} for n in (2, 3))]
    path = write(tmp_path / "some.jsonl", rows)
    assert main(["select", path, "--k", "1,4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["answers"], data["different"]) == (4, 2)
    assert data["notes"][1] == "answers without a text, which are not chosen: 2"
    one, four = (each["values"] for each in data["values"])
    assert one["random"]["target"]["mean"] == pytest.approx(0.375)
    assert four["random"]["target"]["mean"] == one["all"]["target"]["mean"] == 1.0
    assert len(data["chosen"]["p"]) == 2


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_what_is_written_is_a_pool(tmp_path, pool, ending, capsys):
    out = tmp_path / f"out.{ending}"
    assert main(["select", pool, "--k", "1,3", "--out", str(out), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["k"] for each in data["values"]] == [1, 3]
    assert data["chosen"] == {"p": [{"generation": name, "position": 1} for name in ("0", "1", "4")]}
    written = read_pool(out)
    assert written.set_size == 3
    assert written.problems["p"].scores_nD.tolist() == [[0.7, 0.7], [1, 0], [0, 1]]
    assert main(["measure", str(out), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["measures"]
    expected = next(each for each in measured if each["at"] == "expected_max")
    assert expected["values"][0]["mean"] == pytest.approx(data["values"][1]["values"]["chosen"]["weightings"]["mean"])


def test_where_fewer_are_chosen_none_is_missing(tmp_path, capsys):
    rows = [row(n, {"a": 1.0}) for n in range(3)] + [row(n, {"a": 0.5}, "same", problem="q") for n in range(3)]
    out = tmp_path / "out.jsonl"
    assert main(["select", write(tmp_path / "pool.jsonl", rows), "--k", "3", "--out", str(out)]) == 0
    assert [each["answers"] for _, each in read_rows(out)] == [3, 3, 3, 1]
    assert read_pool(out).problems["q"].scores_nD.tolist() == [[0.5]]
    capsys.readouterr()
    assert main(["measure", str(out), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["measures"][0]
    assert (best["by"], best["at"], best["values"][0]["mean"]) == ("answers", 1, 0.75)


def test_objectives_may_differ_between_problems(tmp_path, capsys):
    rows = [row(n, {"test_1": n % 2, "test_2": 1 - n % 2}, solved=n == 2) for n in range(3)]
    rows += [row(n, {"test_1": n / 4}, problem="q", solved=False) for n in range(4)]
    path = write(tmp_path / "pool.jsonl", rows)
    assert main(["select", path, "--k", "2"]) == 0
    output = capsys.readouterr().out
    assert "2 problems, 3.5 answers each, 3.5 different; chosen by cover, for every weighting" in output
    assert "random weightings" in output
    assert "solved" in output
    assert "  chosen − top 2 by w*" in output
    assert f"wrote {tmp_path / 'pool.selected.jsonl'}; next: vpo measure" in output
    assert [each["position"] for _, each in read_rows(tmp_path / "pool.selected.jsonl")] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "0"], "k must be 1 or more, not 0"),
        (["--by", "luck"], "by must be one of cover, target, mbr, not 'luck'"),
        (["--error", "0.5"], "error must be 0 or more and below 0.5, not 0.5"),
        (["--error", "-1"], "error must be 0 or more, not -1"),
        (["--by", "mbr", "--error", "0.1"], "error must be 0 with --by mbr, not 0.1"),
        (["--error-of", "answers"], "error_of answers needs --error"),
        (["--similarity", "words"], "similarity and weigh_votes need --by mbr"),
        (["--concentration", "0"], "concentration must be greater than 0, not 0"),
        (["--target", "c=1"], "target names 'c', and the objectives of problem 'p' are a, b"),
        (["--out", "POOL"], "out must not be a pool that is read"),
        (["--judged", "POOL", "--rewards", "x.toml"], "give --judged or --rewards, not both"),
        (["--judged", "nowhere.jsonl"], "no such run, folder or pool: nowhere.jsonl"),
        (["--data", "x"], "name it with --task"),
        (["--out", "/nowhere/x.jsonl"], "/nowhere/x.jsonl: no such folder: /nowhere"),
    ],
)
def test_wrong_options_are_one_line(pool, arguments, message, capsys):
    assert main(["select", pool, *(pool if each == "POOL" else each for each in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_rows_name_their_source(pool):
    answers = read_answers(pool)
    rows = list(selected_rows(answers, select(answers, 2)))
    assert [(each["position"], each["source_generation"], each["source_position"]) for each in rows] == [
        (1, "0", 1),
        (2, "1", 1),
    ]
    assert "judged" not in rows[0]
