"""Training on a task whose problems differ in their objectives: every method, and rewards that are not known."""

import itertools

import numpy as np
import pytest

pytest.importorskip("trl")

from tests.engines.tiny import save_tiny_model
from tests.engines.training import run_trainer
from tests.tasks.ragged import BitsTask
from tests.tasks.readings import reading_of
from vpo import advantages
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.trl import reward_function, task_dataset
from vpo.methods import METHODS, get
from vpo.methods.normalize import centre, z_score
from vpo.tasks.answers import write

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages

TASK = BitsTask()
PROBLEMS = TASK.problems()[:3]  # of 2, 4 and 1 bits
G = 4
SETS = {
    "b2": [("10", "01", "00"), ("11", "00", "00"), ("10", "?", "11"), ("00", "00", "00")],
    "b4": [("1000", "0110", "0001"), ("1111", "0", ""), ("0000", "0000", "1000"), ("1100", "0011", "1010")],
    "b1": [("?", "1", "1")] * G,
}
SINGLE = {name: [each[:1] for each in sets] for name, sets in SETS.items()}


def batch(method):
    """Completions, the names of their problems, the rewards of each group, and which are known."""
    sets = SETS if method.answers == 3 else SINGLE
    completions = [write(texts) for group in sets.values() for texts in group]
    names = [name for name, group in sets.items() for _ in group]
    groups, valid = [], []
    for problem in PROBLEMS:
        scored = [TASK.score_all([problem] * len(texts), texts) for texts in sets[problem.id]]
        valid.append([None not in vectors for vectors in scored])
        empty = [(0.0,) * problem.count] * method.answers
        groups.append(np.asarray([empty if None in vectors else vectors for vectors in scored]))
    return completions, names, groups, np.asarray(valid)


@pytest.mark.parametrize("name", METHODS)
def test_the_rewards_of_every_method_give_its_advantages(name):
    method = get(name)
    reward = reward_function(TASK, method, problems=PROBLEMS, group=G, seed=5)
    completions, names, groups, valid_PG = batch(reward.method)
    result = reward.score([{"prompt": "p", "problem": name} for name in names], completions)
    rewards = result.rewards
    assert reward(["p"] * len(names), completions, problem=names) == rewards
    assert [each is not None for each in rewards] == valid_PG.ravel().tolist()
    expected = advantages(method, groups, valid=valid_PG, seed=5, step=0, problems=[each.id for each in PROBLEMS])
    assert np.abs(expected[:2]).max() > 0
    if method.per_answer:
        computed = result.advantages_BM.reshape(expected.shape)
    elif method.whole_group:
        computed = np.asarray([each or 0.0 for each in rewards]).reshape(expected.shape)
    else:
        computed = np.zeros(expected.shape)
        for p, known_G in enumerate(valid_PG):
            if known_G.sum() > 1:
                known = np.asarray([each for each in rewards[p * G : (p + 1) * G] if each is not None])
                computed[p, known_G] = centre(known) if name == "dr_grpo" else z_score(known)
    np.testing.assert_allclose(computed, expected, atol=1e-5)
    assert (expected[2] == 0).all()  # of that group nothing is known


def test_a_batch_is_scored_in_one_call_and_what_is_unknown_is_counted(monkeypatch):
    calls, logged = [], {}
    reward = reward_function(TASK, "vpo", problems=PROBLEMS, group=G)
    completions, names, _, valid_PG = batch(reward.method)
    inner = TASK.score_all
    monkeypatch.setattr(TASK, "score_all", lambda *args: calls.append(args) or inner(*args))
    reward(["p"] * len(names), completions, problem=names, log_metric=logged.__setitem__)
    assert len(calls) == 1
    assert len(calls[0][0]) == 3 * G * 3
    assert logged["vpo/unknown"] == (~valid_PG).sum() == 5
    assert not any(name.startswith("vpo/objective/") for name in logged)  # bit_1 of other problems is another bit
    assert 0 < logged["vpo/target"] < 1


def test_a_weighting_in_the_prompt_is_one_of_the_problem():
    reward = reward_function(TASK, "goal_conditioned", problems=PROBLEMS, seed=3)
    for row, problem in zip(task_dataset(reward), PROBLEMS, strict=True):
        weights = reward.prompt_weighting(problem.id)
        assert len(weights) == problem.count
        assert row["prompt"][-1]["content"].count("bit_") == problem.count
        (value,) = reward(["p"], ["<answer>1</answer>"], problem=[problem.id])
        assert value == pytest.approx(weights[0], abs=1e-6)
    deployed = task_dataset(reward, evaluation=True)
    assert "bit_1 50%, bit_2 50%" in deployed[0]["prompt"][-1]["content"]
    assert "bit_4 25%" in deployed[1]["prompt"][-1]["content"]


def test_a_target_cannot_be_chosen():
    with pytest.raises(
        ValueError, match="the problems of task bits differ in their objectives: target must be uniform"
    ):
        reward_function(TASK, "vpo", problems=PROBLEMS, target=[0.25] * 4)


@pytest.mark.parametrize("name", ["vpo", "gdpo", "goal_conditioned", "vpo_anchored"])
def test_a_trainer_goes_through(name, tmp_path):
    model = save_tiny_model(tmp_path / "model")
    reward = reward_function(TASK, name, problems=PROBLEMS, group=G)
    texts = itertools.cycle(["?", "10", "01", "11"])  # noise holds no answers: these replace it
    reward.grader.read = lambda text, answers: reading_of(text, [next(texts) for _ in range(answers)])
    kind = AnswerTrainer if get(name).per_answer else None
    trainer, _, seen = run_trainer(model, reward, tmp_path, kind=kind)
    assert trainer.state.global_step == 1
    assert trainer.state.log_history[0]["vpo/unknown"] > 0
    assert all(np.isfinite(each.advantages_T).all() for rollouts in seen for each in rollouts.values())
