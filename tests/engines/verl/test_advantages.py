"""From what the reward function told to advantages, without verl."""

import numpy as np
import pytest

from tests.engines.verl.completions import BY_PLUGIN, CARRIED, GROUP, completions, expected, exported, scored
from vpo.engines.verl.advantages import read_rollout, rollout_advantages, rollout_metrics
from vpo.engines.verl.reward import Scorer

pytest.importorskip("pyarrow")

CASES = [*CARRIED.items(), *BY_PLUGIN.items()]


def rollouts_of(export, unknown=()):
    scorer, found = Scorer(export), []
    for place, (name, text) in enumerate(completions(export)):
        told = scorer.score(text, "train", name, deployed=False)
        told = {**told, "score": 0.0, "vectors": "null"} if place in unknown else told
        found.append(read_rollout(f"group-{place // GROUP}", told, export.get_method().answers))
    return found


@pytest.mark.parametrize(("method", "settings"), CASES)
def test_advantages_are_those_of_the_library_in_any_order(method, settings, tmp_path, rng):
    export = exported(tmp_path / "out", method, **settings)
    rollouts = rollouts_of(export)
    step = 0 if method == "goal_conditioned" else 7
    due = expected(export, scored(export, completions(export)), step=step)
    due = due.reshape(len(rollouts), *due.shape[2:])
    order = rng.permutation(len(rollouts))
    found = rollout_advantages(export.reward(None), [rollouts[place] for place in order], GROUP, 7)
    np.testing.assert_allclose(found, due[order], atol=1e-12)
    assert np.abs(found).max() > 0.1


@pytest.mark.parametrize(("method", "settings"), CASES)
def test_unknown_rewards_and_lost_rollouts_take_no_part(method, settings, tmp_path):
    export = exported(tmp_path / "out", method, **settings)
    unknown = (0, 4, 5, 6, 7)  # the second group has none that is known
    rollouts = rollouts_of(export, unknown)
    valid = np.asarray([[False, True, True, True], [False] * 4, [True] * 4])
    step = 0 if method == "goal_conditioned" else 1
    due = expected(export, scored(export, completions(export)), step=step, valid=valid)
    due = due.reshape(len(rollouts), *due.shape[2:])
    reward = export.reward(None)
    np.testing.assert_allclose(rollout_advantages(reward, rollouts, GROUP, 1), due, atol=1e-12)
    rest = [place for place in range(len(rollouts)) if place not in unknown]
    found = rollout_advantages(reward, [rollouts[place] for place in rest], GROUP, 1)
    np.testing.assert_allclose(found, due[rest], atol=1e-12)
    nothing = rollout_advantages(reward, rollouts[4:8], GROUP, 1)
    assert (nothing == 0).all()
    assert rollout_metrics(reward, rollouts)["vpo/unknown"] == 5


def test_objectives_are_logged_as_by_other_engines(tmp_path):
    export = exported(tmp_path / "out")
    found = rollout_metrics(export.reward(None), rollouts_of(export))
    vectors = np.concatenate([each for each, _ in scored(export, completions(export))])
    assert found["vpo/objective/gold"] == pytest.approx(vectors[:, 1].mean())
    assert {"vpo/set_reward", "vpo/diversity", "vpo/parse_rate", "vpo/groups_without_spread"} <= found.keys()
