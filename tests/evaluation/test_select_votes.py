"""`vpo select --by mbr`: votes, and answers that are alike."""

import pytest

from tests.evaluation.selected import chosen, row, write
from vpo import InputError, write_pool
from vpo.cli.main import main
from vpo.evaluation.answer_rows import read_answers
from vpo.evaluation.eval_folder import new_pool_path, write_facts
from vpo.evaluation.judged import judged_by_pool
from vpo.evaluation.select import select
from vpo.evaluation.select_config import SelectConfig
from vpo.tasks.maze import MazeTask
from vpo.util.row_files import read_rows


def test_the_majority_is_the_least_risk(tmp_path):
    texts = ["#### 3", "#### 7", "####  7", "#### 5", "#### 7", "#### 3"]
    path = write(tmp_path / "votes.jsonl", [row(n, {"right": 0.0}, text) for n, text in enumerate(texts)])
    assert chosen(path, 3, SelectConfig(by="mbr")) == ["1", "0", "3"]


def test_scores_do_not_break_the_ties_of_a_majority_vote(tmp_path):
    different = [row(n, {"right": score}) for n, score in enumerate([0.0, 0.2, 1.0])]
    path = write(tmp_path / "different.jsonl", different)
    assert chosen(path, 2, SelectConfig(by="mbr")) == ["0", "1"]
    assert chosen(path, 2, SelectConfig(by="mbr", similarity="words")) == ["0", "1"]
    # Three votes for each of two routes; RRD is the text of one that was sampled twice.
    texts = ["R R D", "RRD", "RRD", "DD", "D D", "d d"]
    routes = write(tmp_path / "routes.jsonl", [row(n, {"gold": n / 5}, text) for n, text in enumerate(texts)])
    assert chosen(routes, 2, SelectConfig(by="mbr"), task=MazeTask()) == ["1", "3"]


def test_votes_can_be_weighed_by_a_verifier(tmp_path):
    rows = [row(0, {"v": 0.1}, "x"), row(1, {"v": 0.1}, "x"), row(2, {"v": 0.9}, "y")]
    path = write(tmp_path / "votes.jsonl", rows)
    assert chosen(path, 1, SelectConfig(by="mbr")) == ["0"]
    assert chosen(path, 1, SelectConfig(by="mbr", weigh_votes=True)) == ["2"]


@pytest.mark.parametrize("similarity", ["exact", "words"])
def test_answers_without_a_score_vote(tmp_path, similarity):
    """A judge that abstains on all copies of x but one, and on y, changes no vote; where votes are weighed, it does."""
    texts = ["z", "z", "x", "x", "x", "y"]
    path = write(tmp_path / "votes.jsonl", [row(n, {"v": 0.5}, text) for n, text in enumerate(texts)])
    answers = read_answers(path)
    known = [row(n, {"v": 0.5}, texts[n]) for n in (0, 1, 2)]
    judged = judged_by_pool(answers, write(tmp_path / "judge.jsonl", known))
    vote = select(answers, 3, SelectConfig(by="mbr", similarity=similarity), judged=judged)
    assert (vote.problems["p"].chosen, vote.problems["p"].top, vote.notes) == ((2, 0, 5), (0, 2), ())
    weighed = select(answers, 3, SelectConfig(by="mbr", similarity=similarity, weigh_votes=True), judged=judged)
    assert weighed.problems["p"].chosen == (0, 2)
    assert weighed.notes[0].endswith("which are not chosen: 3")


def test_the_normal_form_of_a_task_decides_what_is_the_same(tmp_path):
    texts = ["R R D", "RRD", "rrd", "DD", "DD"]
    path = write(tmp_path / "routes.jsonl", [row(n, {"gold": 0.0}, text) for n, text in enumerate(texts)])
    assert MazeTask().normal_form("R R D") == MazeTask().normal_form("RRD")
    assert chosen(path, 1, SelectConfig(by="mbr")) == ["3"]
    assert chosen(path, 1, SelectConfig(by="mbr"), task=MazeTask()) == ["0"]


def test_overlap_of_words_and_of_scores(tmp_path):
    texts = ["the cat sat", "the cat sat down", "a dog"]
    vectors = [{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0}, {"a": 0.4, "b": 0.4}]
    path = write(tmp_path / "p.jsonl", [row(n, vectors[n], text) for n, text in enumerate(texts)])
    assert chosen(path, 1, SelectConfig(by="mbr", similarity="words")) == ["0"]  # 6/7 + 1 each; the first
    # Agreements with all three: 1 + 0 + 0.6, 0 + 1 + 0.4, 0.6 + 0.4 + 1.
    assert chosen(path, 1, SelectConfig(by="mbr", similarity="scores")) == ["2"]


def test_a_folder_of_an_evaluation_knows_its_task(tmp_path, capsys):
    texts = ["R R D", "RRD", "rrd", "DD", "DD"]
    folder = tmp_path / "eval"
    write_pool(new_pool_path(folder), [row(n, {"gold": 0.0}, text) for n, text in enumerate(texts)])
    write_facts(folder, {"task": "maze", "task_settings": {"size": 7}, "split": "test", "problems": 1, "target": None})
    assert main(["select", str(folder), "--by", "mbr", "--k", "1"]) == 0
    assert "chosen by minimum Bayes risk (exact)" in capsys.readouterr().out
    assert [each["answer"] for _, each in read_rows(folder / "selected.jsonl")] == ["R R D"]


def test_texts_are_needed_where_they_are_compared(tmp_path):
    rows = [{"problem": "p", "generation": n, "position": 1, "scores": {"a": n / 2}} for n in range(2)]
    path = write(tmp_path / "bare.jsonl", rows)
    with pytest.raises(InputError, match="similarity exact needs texts, and problem 'p' has none: choose scores"):
        select(read_answers(path), 1, SelectConfig(by="mbr"))
    assert chosen(path, 1, SelectConfig(by="mbr", similarity="scores")) == ["0"]
