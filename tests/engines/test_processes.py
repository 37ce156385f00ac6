"""Two processes over gloo against one: the same completions have the same rewards and advantages."""

import json

import numpy as np
import pytest

pytest.importorskip("trl")

from tests.engines.fixed import CASES, SEED, SPLIT, FixedTask, G, method_of, scored, texts
from tests.engines.tiny import save_tiny_model
from tests.launch import run
from vpo import advantages
from vpo.tasks.answers import duplicates

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


@pytest.fixture(scope="module")
def two(tiny, tmp_path_factory):
    """The results of each of two processes, all cases in one start."""
    folder = tmp_path_factory.mktemp("two")
    code, out, err = run("tests.engines.fixed", tiny, folder, cwd=folder)
    assert code == 0, out + err
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_rewards_of_one(case, two, tiny, tmp_path):
    first, second = (each[str(case)] for each in two)
    alone = scored(case, tiny, tmp_path)
    assert first["problems"] + second["problems"] == alone["problems"]
    assert (first["problems"][-1] == second["problems"][0]) == (case[1] == SPLIT)
    np.testing.assert_array_equal(first["rewards"], alone["rewards"])
    np.testing.assert_array_equal(second["rewards"], alone["rewards"])
    assert first["advantages"] + second["advantages"] == alone["advantages"]
    for result in (first, second):
        assert result["metrics"].keys() == alone["metrics"].keys()
        for name, values in alone["metrics"].items():
            np.testing.assert_allclose(result["metrics"][name], values, rtol=1e-6, err_msg=name)
        assert "vpo/groups_without_spread" in result["metrics"]
        assert result["metrics"]["vpo/unknown"] == [2]


@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_on_the_advantages_of_the_whole_batch(case, two):
    method = method_of(case[0])
    result = [row for each in two for row in each[str(case)]["advantages"]]
    names = [name for each in two for name in each[str(case)]["problems"]]
    expected_PG = expected(method, names)
    assert np.abs(expected_PG).max() > 0.01
    if method.per_answer:  # the first token of each completion is the first answer's
        result, expected_PG = [row[0] for row in result], expected_PG[:, :, 0]
    np.testing.assert_allclose(result, expected_PG.ravel(), atol=2e-5)


def expected(method, names):
    task = FixedTask()
    problems = {problem.id: problem for problem in task.problems()}
    parsed = [task.parse(" ".join(text), method.answers) for text in texts(len(names) // G)]  # as decoded
    vectors = [
        [task.score(problems[name], answer) for answer in answers] for name, answers in zip(names, parsed, strict=True)
    ]
    copies = np.array([duplicates(answers, task.normal_form) for answers in parsed]).reshape(-1, G, method.answers)
    known = np.array([None not in each for each in vectors])
    rewards = np.array(
        [each if fine else np.zeros((method.answers, 3)) for each, fine in zip(vectors, known, strict=True)]
    )
    shape = (-1, G, method.answers, 3)
    valid = known.reshape(-1, G)
    return advantages(method, rewards.reshape(shape), valid=valid, copies=copies, seed=SEED, problems=names[::G])


def test_a_process_that_fails_to_score_ends_all(two):
    assert two[1]["failure"] == ["InputError", "the judge is gone"]
    assert two[0]["failure"] == ["OtherProcessError", "process 1 failed: InputError: the judge is gone"]
