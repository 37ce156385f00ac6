"""A new method is one class: no engine is changed for it, whether it has one reward per rollout or one per answer."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("trl")
pytest.importorskip("pyarrow")

from tests.engines.letters import own_reward
from tests.engines.own_methods import Lead, Worst
from tests.engines.tiny import save_tiny_model
from tests.engines.training import G, P, assert_advantages, by_token, run_trainer, swapped
from tests.tasks import ragged
from vpo import advantages
from vpo.engines.answer_trainer import AnswerTrainer
from vpo.engines.trl import grpo_config, reward_function
from vpo.engines.verl.advantages import read_rollout, rollout_result
from vpo.engines.verl.compatibility import ACTOR, check_stock, required_settings
from vpo.engines.verl.export import Export, read_export, write_export
from vpo.engines.verl.reward import VerlReward
from vpo.tasks.answers import write

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other packages


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("qwen3"))


# By hand. Problem b2 has two objectives: under w* = (1/2, 1/2) answer 11 has 1, 10 and 01 have 1/2, and 00 has 0.
SINGLE = [["11"], ["10"], ["00"], ["11"]]
WORST = [0.5, -0.5, -0.5, 0.5]  # min: 1, 0, 0, 1 less their mean, 1/2
SETS = [["11", "00"], ["10", "01"], ["00", "10"]]
# v: (1, 0), (1/2, 1/2), (0, 1/2). The best of the others: 1/2, 1, 1. Rewards: (1/2, −1/2), (−1/2, −1/2), (−1, −1/2).
# Means −1/3 and −1/2. Differences: (5/6, 0), (−1/6, 0), (−2/3, 0); the largest is 5/6.
LEAD = [[1, 0], [-0.2, 0], [-0.8, 0]]


def vectors(sets):
    return np.asarray([[[[float(bit) for bit in answer] for answer in answers] for answers in sets]])


def test_vpo_advantages_takes_the_methods():
    np.testing.assert_allclose(advantages(Worst(), vectors(SINGLE)), [WORST])
    np.testing.assert_allclose(advantages(Lead(), vectors(SETS)), [LEAD])


@pytest.mark.parametrize(("method", "sets", "expected"), [(Worst(), SINGLE, WORST), (Lead(), SETS, LEAD)])
def test_the_advantages_of_verl_by_hand(method, sets, expected, tmp_path):
    """From the exported folder, which names the class, to the advantages; a rollout without a known reward has 0."""
    export = Export(task=str(Path(ragged.__file__)), method=method, group=len(sets) + 1, counts={"train": 1})
    write_export(export, tmp_path / "out", train="train")
    export = read_export(tmp_path / "out")
    assert export.method == method
    reward = VerlReward(export)
    unknown = ["?"] * method.answers
    infos = [reward.score(write(answers), "train", "b2", deployed=False) for answers in [*sets, unknown]]
    rollouts = [read_rollout("group", info, method.answers) for info in infos]
    order = np.arange(len(rollouts))[::-1]
    result = rollout_result(export.reward(None), [rollouts[index] for index in order], len(rollouts), step=1).advantages
    np.testing.assert_allclose(result[order][:-1], expected, atol=1e-6)
    assert not result[order][-1].any()


def test_a_group_with_one_known_reward_has_no_advantage():
    """The method is never asked for the rewards of a group that is too small for it."""

    def score(answer):
        return None if answer == "?" else [float(answer)]

    texts = [["1", "0"], ["?", "1"], ["0", "1"], ["0.5", "0"]]
    reward = reward_function(None, Lead(), score=score, objectives=["x"], group=2)
    result = reward.score([{"prompt": "p"}] * 4, [write(each) for each in texts])
    assert result.rewards[:2] == [None, None]
    # v: (0, 1), (1/2, 0). The best of the other: 1/2, 1. Rewards: (−1/2, 1/2), (−1/2, −1).
    assert result.rewards[2:] == [0, -0.75]
    np.testing.assert_allclose(result.advantages_BM, [[0, 0], [0, 0], [0, 1], [0, -1]])


def test_what_trainers_are_configured_with(tmp_path):
    config = grpo_config(Worst(), output_dir=str(tmp_path), num_generations=4)
    assert (config.scale_rewards, config.loss_type) == ("none", "dapo")
    settings = required_settings(Worst(), tmp_path, stock=True, longest=10)
    assert settings["algorithm.norm_adv_by_std_in_grpo"] is False
    assert settings[f"{ACTOR}.loss_agg_mode"] == "token-mean"
    check_stock(Worst())
    with pytest.raises(ValueError, match="lead looks at the rewards of a whole group"):
        check_stock(Lead())


def test_a_stock_trainer_trains_one_reward_per_rollout(tiny, tmp_path):
    trainer, batches, losses = run_trainer(tiny, own_reward(Worst()), tmp_path, steps=2)
    assert trainer.state.global_step == 2
    for batch, seen in zip(batches, losses, strict=True):
        worst_PG = batch.rewards.min(axis=-1)[:, :, 0]
        expected = batch.by_text(worst_PG - worst_PG.mean(axis=1, keepdims=True))
        assert max(expected.values()) > 0.05
        assert_advantages(seen, expected)
        with pytest.raises(AssertionError):
            assert_advantages(seen, swapped(expected))


def test_the_answer_trainer_trains_answers_by_the_whole_group(tiny, tmp_path):
    trainer, batches, losses = run_trainer(tiny, own_reward(Lead(), group=G), tmp_path, steps=2, kind=AnswerTrainer)
    assert trainer.state.global_step == 2
    for batch, seen in zip(batches, losses, strict=True):
        values_PGM = batch.rewards.mean(axis=-1)  # w* is uniform
        expected_PGM = np.zeros(values_PGM.shape)
        for p in range(P):
            best_G = values_PGM[p].max(axis=1)
            lead_GM = values_PGM[p] - [[max(best_G[other] for other in range(G) if other != g)] for g in range(G)]
            centred_GM = lead_GM - lead_GM.mean(axis=0)
            expected_PGM[p] = centred_GM / np.abs(centred_GM).max()
        expected = batch.by_text(expected_PGM)
        assert_advantages(seen, by_token(expected, seen, trainer.processing_class))
        with pytest.raises(AssertionError):
            assert_advantages(seen, by_token(swapped(expected), seen, trainer.processing_class))


def test_a_stock_trainer_is_refused_for_an_advantage_per_answer(tiny, tmp_path):
    """The method has no settings for one reward, so the message suggests none."""
    with pytest.raises(ValueError, match=r"lead has an advantage for each answer: train with .*AnswerTrainer$"):
        run_trainer(tiny, own_reward(Lead(), group=G), tmp_path)
