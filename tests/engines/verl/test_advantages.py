"""From what the reward function returned to advantages, without verl."""

from pathlib import Path

import numpy as np
import pytest

from tests.engines.verl.completions import BY_PLUGIN, GROUP, SUPPORTED, completions, expected, exported, scored
from tests.tasks import ragged
from vpo import advantages
from vpo.engines.verl.advantages import read_rollout, rollout_metrics, rollout_result
from vpo.engines.verl.export import Export, read_export, write_export
from vpo.engines.verl.reward import VerlReward
from vpo.methods import METHODS, get
from vpo.tasks.answers import write

pytest.importorskip("pyarrow")

CASES = [*SUPPORTED.items(), *BY_PLUGIN.items(), ("vpo_marginal", {"answers": 1})]


def rollouts_of(export, unknown=()):
    scorer, rollouts = VerlReward(export), []
    for index, (name, text) in enumerate(completions(export)):
        info = scorer.score(text, "train", name, deployed=False)
        info = {**info, "score": 0.0, "vectors": "null"} if index in unknown else info
        rollouts.append(read_rollout(f"group-{index // GROUP}", info, export.method.answers))
    return rollouts


@pytest.mark.parametrize(("method", "settings"), CASES)
def test_advantages_are_those_of_the_library_in_any_order(method, settings, tmp_path, rng):
    export = exported(tmp_path / "out", method, **settings)
    rollouts = rollouts_of(export)
    step = 0 if method == "goal_conditioned" else 7
    due = expected(export, scored(export, completions(export)), step=step)
    due = due.reshape(len(rollouts), *due.shape[2:])
    order = rng.permutation(len(rollouts))
    result = rollout_result(export.reward(None), [rollouts[index] for index in order], GROUP, 7).advantages
    np.testing.assert_allclose(result, due[order], atol=1e-12)
    assert np.abs(result).max() > 0.1


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
    np.testing.assert_allclose(rollout_result(reward, rollouts, GROUP, 1).advantages, due, atol=1e-12)
    rest = [index for index in range(len(rollouts)) if index not in unknown]
    result = rollout_result(reward, [rollouts[index] for index in rest], GROUP, 1).advantages
    np.testing.assert_allclose(result, due[rest], atol=1e-12)
    nothing = rollout_result(reward, rollouts[4:8], GROUP, 1).advantages
    assert (nothing == 0).all()
    assert rollout_metrics(reward, rollouts, {})["vpo/unknown"] == 5


def test_objectives_are_logged_as_by_other_engines(tmp_path):
    export = exported(tmp_path / "out")
    logged = rollout_metrics(export.reward(None), rollouts_of(export), {})
    vectors = np.concatenate([each for each, _ in scored(export, completions(export))])
    assert logged["vpo/objective/gold"] == pytest.approx(vectors[:, 1].mean())
    assert {"vpo/set_reward", "vpo/diversity", "vpo/groups_without_spread"} <= logged.keys()
    assert 0 < logged["vpo/parse_rate"] == logged["vpo/read_rate"] < 1


def test_answers_in_the_requested_form_and_answers_read_leniently_are_told_apart(tmp_path):
    export = exported(tmp_path / "out")
    maze = export.get_task().problems("train", count=1)[0]
    scorer = VerlReward(export)
    texts = (write(["U", "D", "R"]), "<answer_1>U</answer_1><answer_2>D", "no answer")
    rollouts = []
    for index, text in enumerate(texts):
        info = scorer.score(text, "train", maze.id, deployed=False)
        # The last but one has a reward that is not known: its answers were read all the same.
        info = {**info, "vectors": "null"} if index == 1 else info
        rollouts.append(read_rollout("group", info, 3))
    logged = rollout_metrics(export.reward(None), rollouts, {})
    assert logged["vpo/parse_rate"] == pytest.approx((3 + 1 + 0) / 9)
    assert logged["vpo/read_rate"] == pytest.approx((3 + 2 + 0) / 9)


def test_an_answer_that_the_token_budget_cut_off_does_not_count(tmp_path):
    export = exported(tmp_path / "out", "multi_rlvr")
    task = export.get_task()
    maze = task.problems("train", count=1)[0]
    gold = task.gold(maze)
    # Answer 3 repeats answer 1, which is written last, without its closing tag.
    text = f"<answer_2>U</answer_2><answer_3>{gold}</answer_3><answer_1>{gold}"
    info = VerlReward(export).score(text, "train", maze.id, deployed=False)
    ended, cut = (read_rollout("group", info, 3, truncated=each) for each in (False, True))
    assert (ended.mask, ended.copies, ended.read_rate) == ([True] * 3, [False, False, True], 1)
    assert (cut.mask, cut.copies) == ([False, True, True], [False, False, False])
    assert cut.read_rate == pytest.approx(2 / 3)
    np.testing.assert_array_equal(cut.vectors, [[0] * 4, ended.vectors[1], ended.vectors[2]])
    whole = VerlReward(export).score(write([gold] * 3), "train", maze.id, deployed=False)
    assert read_rollout("group", whole, 3, truncated=True).mask == [True] * 3
    unknown = read_rollout("group", {**info, "vectors": "null", "cut_vectors": "null"}, 3, truncated=True)
    assert (unknown.vectors, unknown.read_rate) == (None, pytest.approx(2 / 3))


def test_the_metrics_of_a_method_are_logged(tmp_path):
    reward = exported(tmp_path / "out", "vpo_marginal").reward(None)
    rollouts = rollouts_of(exported(tmp_path / "same", "vpo_marginal"))
    logged = rollout_metrics(reward, rollouts, rollout_result(reward, rollouts, GROUP, 1).means)
    assert 0 < logged["vpo/credit"] < logged["vpo/set_reward"]
    assert 0 < logged["vpo/zero_credit"] < 1
    assert 0 < logged["vpo/from_other_sets"] < 1


def test_copies_are_told_by_the_answers_and_not_by_their_scores(tmp_path):
    export = exported(tmp_path / "out", "multi_rlvr")
    task = export.get_task()
    maze = task.problems("train", count=1)[0]
    gold = task.gold(maze)
    further = f"{gold}U"  # moves after the end change the route, and not its score
    total = sum(task.score(maze, gold)) / 4
    assert task.score(maze, further) == task.score(maze, gold)
    scorer, rollouts = VerlReward(export), []
    for routes, count in ([gold] * 3, 1), ([gold, further, gold], 2), ([gold, "", ""], 1):
        info = scorer.score(write(routes), "train", maze.id, deployed=False)
        assert info["score"] == pytest.approx(count * total)
        rollouts.append(read_rollout("group", info, 3))
    once, twice, alone = rollout_result(export.reward(None), rollouts, 3, 0).advantages
    assert once == alone < twice


@pytest.mark.parametrize("method", METHODS)
def test_problems_may_differ_in_their_objectives(method, tmp_path):
    """Of 2, 4 and 1 bits; the first answer of each completion of the last has a score that nobody knows."""
    task, names = str(Path(ragged.__file__)), ("b2", "b4", "b1")
    export = Export(task=task, method=get(method), group=3, seed=5, counts={"train": 3})
    assert write_export(export, tmp_path / "out", train="train") == {"train.parquet": 3}
    answers = export.method.answers
    sets = {"b2": (["10", "01", "00"], ["00"] * 3, ["11"] * 3), "b4": (["1111"] * 3, ["0000", "1000"], ["0100"] * 3)}
    sets["b1"] = (["?"] * 3,) * 3
    scorer, rollouts = VerlReward(read_export(tmp_path / "out")), []
    for name in names:
        for texts in sets[name]:
            info = scorer.score(write(texts[:answers]), "train", name, deployed=False)
            assert info["known"] == (name != "b1")
            assert not any(key.startswith("objective/") for key in info)
            rollouts.append(read_rollout(name, info, answers))
    result = rollout_result(export.reward(None), rollouts, 3, 0).advantages
    groups = [np.stack([each.vectors for each in rollouts[start : start + 3]]) for start in (0, 3)]
    masks = [np.stack([each.mask for each in rollouts[start : start + 3]]) for start in (0, 3)]
    due = advantages(export.method, groups, mask=masks, seed=5, problems=names[:2])
    np.testing.assert_allclose(result[:6].reshape(due.shape), due, atol=1e-12)
    assert (result[6:] == 0).all()
    assert rollout_metrics(export.reward(None), rollouts, {})["vpo/unknown"] == 3
