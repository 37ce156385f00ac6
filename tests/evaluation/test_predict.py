"""Predictions against brute force on tiny pools, and facts that hold for any pool."""

import itertools
import json
import runpy
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from vpo.cli.main import main
from vpo.evaluation.pools import read_pool, write_pool
from vpo.evaluation.predict import predict
from vpo.evaluation.prediction_text import outlook_text, recommendation, signal_text
from vpo.evaluation.similarity import similarity_of
from vpo.evaluation.simulate import PoolPolicy, Recipe, Support, simulate
from vpo.evaluation.training_signal import signal_of
from vpo.evaluation.weighted import best_of_completion, best_of_draws, mean_l1
from vpo.methods import advantages, get
from vpo.methods.normalize import centre
from vpo.methods.vpo_marginal import VpoMarginal
from vpo.util.errors import InputError

ALL = ("grpo", "max_at_k", "vpo", "vpo_marginal", "vpo_marginal:answers=1")


def recipe(name, group=4):
    plain, _, setting = name.partition(":")
    return Recipe(name, get(plain, **({"answers": 1} if setting else {})), group)


def pool_of(path, problems, texts=None):
    """A pool from the score vectors of each problem, with texts for the answers where there are any."""
    rows = []
    for p, scores in enumerate(problems):
        for n, vector in enumerate(scores):
            row = {"problem": f"p{p}", "generation": n, "position": 1}
            row["scores"] = {f"o{d}": float(value) for d, value in enumerate(vector)}
            rows.append(row | ({"answer": texts[p][n]} if texts else {}))
    write_pool(path, rows)
    return read_pool(path)


def support_of(scores, target=None, similarity=None):
    scores_nD = np.asarray(scores, dtype=np.float64)
    weights_D = np.full(scores_nD.shape[1], 1 / scores_nD.shape[1]) if target is None else np.asarray(target)
    return Support("p", scores_nD, weights_D, np.eye(len(scores_nD)) if similarity is None else similarity)


def test_best_of_draws_is_the_expectation_over_all_draws(rng):
    probabilities, values = rng.dirichlet(np.ones(4)), rng.integers(0, 3, 4) / 2
    for k in (1, 2, 3):
        draws = itertools.product(range(4), repeat=k)
        expected = sum(np.prod(probabilities[list(draw)]) * values[list(draw)].max() for draw in draws)
        assert best_of_draws(probabilities, values, [k])[0] == pytest.approx(expected, abs=1e-12)


def test_a_completion_draws_each_position_from_its_own_distribution(rng):
    probabilities, values = rng.dirichlet(np.ones(3), size=2), rng.random(3)
    expected = sum(
        probabilities[0, i] * probabilities[1, j] * max(values[i], values[j]) for i in range(3) for j in range(3)
    )
    assert best_of_completion(probabilities, values) == pytest.approx(expected, abs=1e-12)


def test_mean_l1_is_over_pairs_of_draws():
    assert mean_l1(np.asarray([0.25, 0.75]), np.asarray([[1.0, 0.0], [0.0, 1.0]])) == pytest.approx(2 * 0.25 * 0.75 * 2)


@pytest.mark.parametrize("name", ["grpo", "max_at_k", "vpo_marginal:answers=1"])
def test_advantages_of_answers_are_those_of_all_groups(name):
    """The mean advantage of each answer over all 4³ groups, each weighted by its probability."""
    chosen = recipe(name, group=3)
    policy = PoolPolicy(support_of([[1, 0], [0.5, 0.25], [0, 1], [0, 0]]), 1)
    policy.logits_Mn = np.log(np.asarray([[0.4, 0.1, 0.2, 0.3]]))
    weights = policy.probabilities()[0]
    groups = np.asarray(list(itertools.product(range(4), repeat=3)))
    sums, totals = defaultdict(float), defaultdict(float)
    exact = np.asarray(advantages(chosen.method, policy.support.scores_nD[groups][:, :, None, :]))
    for group, values in zip(groups, exact, strict=True):
        for index, value in zip(group, values, strict=True):
            sums[index] += np.prod(weights[group]) * value
            totals[index] += np.prod(weights[group])
    expected = np.asarray([sums[index] / totals[index] for index in range(4)])
    expected -= weights @ expected
    indices = policy.draw(2500, 3)
    drawn = np.asarray(advantages(chosen.method, policy.support.scores_nD[indices]))
    assert policy.by_answer(indices, drawn[..., None])[0] == pytest.approx(expected, abs=0.07)


def test_without_typical_answers_one_step_is_the_exponential_of_the_advantages():
    """Where no answer is like another, and all are learned (ρ = 1), π is proportional to exp(η·a/scale)."""
    support = support_of([[1.0], [0.0]])
    after = simulate(recipe("grpo", group=2), [support], steps=1, rate=0.5, transfer=1.0, rollouts=4000)
    # Groups of 2: half have one of each, with z-scores ±1/√2 (but for 1e-4), the others 0; the scale is their RMS, 1/2.
    # An answer is in a group with the other one half of the time: a = ±(1/√2)/2, over the scale ±1/√2.
    log_odds = np.log(after.probabilities[0][0, 0] / after.probabilities[0][0, 1])
    assert log_odds == pytest.approx(0.5 * 2 / np.sqrt(2), rel=0.05)
    assert after.slope == 0


def test_without_a_signal_no_method_gains(tmp_path):
    pool = pool_of(tmp_path / "pool.jsonl", [[[0.5, 0.25]] * 4, [[0, 0]] * 4])
    outlook = predict(pool, [recipe(name) for name in ALL])
    for each in outlook.predictions:
        assert all(gain.mean == 0 for gain in each.gains.values())
        assert (each.kl, each.slope) == (pytest.approx(0, abs=1e-12), 0)
    assert recommendation(outlook).startswith("Prediction: no method gains here.")
    signal = signal_of(pool, target=None, group=4, ks=[1, 3])
    assert (signal.differ, signal.scalar, signal.groups, signal.spread) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", ALL)
def test_a_problem_whose_answers_score_alike_gains_nothing(name, rng):
    varied, flat = support_of(rng.random((5, 2))), support_of([[0.5, 0.5]] * 5)
    after = simulate(recipe(name), [varied, replace(flat, problem="flat")])
    probabilities = after.probabilities[1].mean(axis=0)
    assert best_of_draws(probabilities, flat.values_n, [1, 3]) == pytest.approx([0.5, 0.5])
    best = best_of_draws(after.probabilities[0].mean(axis=0), varied.values_n, [1])[0]
    assert best > varied.values_n.mean()  # the other one does


@dataclass(frozen=True, kw_only=True)
class CreditWithItsBaseline(VpoMarginal):
    """(K/G)·(c + E_T[max T]), centred: what `max_at_k` computes where there is one objective and one answer."""

    name: ClassVar[str] = "credit_with_its_baseline"
    answers: int = 1

    def advantages(self, rewards, group):
        values, sets, rollouts = group.rewards_GMD[:, 0, 0], self.sets, len(group.rewards_GMD)
        others = [
            np.mean([max(values[list(T)]) for T in itertools.combinations(set(range(rollouts)) - {g}, sets - 1)])
            for g in range(rollouts)
        ]
        return centre(sets / rollouts * (rewards + np.asarray(others)))


def test_with_one_objective_marginal_credit_of_single_answers_is_max_at_k(tmp_path, rng):
    pool = pool_of(tmp_path / "pool.jsonl", rng.random((6, 5, 1)).round(2))
    recipes = [Recipe("max", get("max_at_k", k=2), 4), Recipe("credit", CreditWithItsBaseline(sets=2), 4)]
    one, other = predict(pool, recipes).predictions
    assert one.gains[1].mean > 0
    assert [gain.mean for gain in other.gains.values()] == pytest.approx(
        [gain.mean for gain in one.gains.values()], abs=1e-5
    )


def typical(right, wrong):
    """Scores and texts of 8 answers, of which 6 are the same."""
    scores = [[right, right]] * 6 + [[wrong, wrong]] * 2
    return scores, ["the usual way", *["the usual way"] * 5, "some other way", "yet a third one"]


def test_grpo_sharpens_and_loses_where_the_typical_answer_is_wrong(tmp_path):
    """They are right in 15 of 20 problems: sharpening gains at k = 1, and loses the other 5 in large pools."""
    cases = [typical(1, 0)] * 15 + [typical(0, 1)] * 5
    pool = pool_of(tmp_path / "pool.jsonl", [scores for scores, _ in cases], [texts for _, texts in cases])
    grpo, max_at_k = predict(pool, [recipe("grpo", 8), recipe("max_at_k", 8)], ks=[1, 8]).predictions
    assert grpo.slope > 0.2
    assert grpo.gains[1].mean > 0.03
    assert grpo.gains[8].mean < -0.05
    assert max_at_k.gains[8].mean > grpo.gains[8].mean + 0.03


def test_marginal_credit_keeps_specialists_apart(tmp_path):
    scores = [[1, 0]] * 5 + [[0, 1]] * 3 + [[0, 0]] * 2
    texts = ["go for gold"] * 5 + ["diamonds first"] * 3 + ["lost", "stuck"]
    pool = pool_of(tmp_path / "pool.jsonl", [scores] * 8, [texts] * 8)
    outlook = predict(pool, [recipe("grpo", 8), recipe("vpo_marginal:answers=1", 8)], ks=[1, 5])
    grpo, marginal = outlook.predictions
    assert marginal.l1 > grpo.l1
    assert marginal.slope < grpo.slope


def test_the_order_of_problems_and_objectives_changes_nothing(tmp_path, rng):
    scores = rng.random((4, 6, 3)).round(1)
    pool = pool_of(tmp_path / "pool.jsonl", scores)
    turned = type(pool)(
        pool.path,
        {
            name: replace(problem, objectives=problem.objectives[::-1], scores_nD=problem.scores_nD[:, ::-1])
            for name, problem in reversed(pool.problems.items())
        },
    )
    one, other = (predict(each, [recipe("vpo_marginal")]).predictions[0] for each in (pool, turned))
    assert [gain.mean for gain in one.gains.values()] == pytest.approx([gain.mean for gain in other.gains.values()])


def test_similarity_of_texts_and_of_scores(tmp_path):
    texts = ["abcdefghij", "abcdefghij", "abcdefghXY", "short", None]
    scores = [[1.0], [1.0], [0.5], [0.0], [0.0]]
    pool = pool_of(tmp_path / "pool.jsonl", [scores], [texts])
    similar = similarity_of(pool.problems["p0"])
    # abcdefgh, bcdefghi, cdefghij against abcdefgh, bcdefghX, cdefghXY: 1 of 5 pieces.
    assert similar[0].tolist() == pytest.approx([1, 1, 0.2, 0, 0])
    assert similar[4].tolist() == [0, 0, 0, 0, 1]
    by_scores = similarity_of(replace(pool.problems["p0"], answers=None))
    assert by_scores[0].tolist() == [1, 1, 0, 0, 0]
    assert by_scores[3].tolist() == [0, 0, 0, 1, 0]  # two that fail are not alike


def test_signal_against_brute_force(tmp_path):
    scores = np.asarray([[[1, 0], [0, 1], [0, 0]], [[0.5, 0.5]] * 3])
    signal = signal_of(pool_of(tmp_path / "pool.jsonl", scores), target={"o0": 1.0}, group=2, ks=[1, 2])
    assert (signal.differ, signal.scalar) == (0.5, 0.5)
    # 1, 0, 0 under the target: two draws differ with probability 2 · 1/3 · 2/3 = 4/9.
    assert signal.groups == pytest.approx(4 / 18)
    assert signal.spread == pytest.approx(np.std([1, 0, 0]) / 2)
    # Of two answers out of three: {gold, diamond} E[max(w, 1 − w)] = 3/4 over 1/2, the others gain nothing.
    assert signal.headroom[1].mean == pytest.approx(0)
    assert signal.headroom[2].mean == pytest.approx((1 / 3 * (3 / 4 - 1 / 2)) / 2, abs=1e-3)
    assert "50% of problems have answers that differ" in signal_text(signal)


def test_what_cannot_be_predicted_is_refused(tmp_path):
    pool = pool_of(tmp_path / "pool.jsonl", [[[1, 0], [0, 1]]])
    with pytest.raises(InputError, match="goal_conditioned states a weighting in its prompts"):
        predict(pool, [recipe("goal_conditioned")])
    with pytest.raises(InputError, match=r"k must lie in 1\.\.2, .* not 3"):
        predict(pool, [recipe("grpo")], ks=[3])
    with pytest.raises(InputError, match="3 or more rollouts for max_at_k, not 2"):
        predict(pool, [recipe("max_at_k", 2)])


def test_the_table_and_the_command(tmp_path, capsys, rng):
    path = tmp_path / "pool.jsonl"
    pool = pool_of(path, rng.random((5, 6, 2)).round(1))
    text = outlook_text(predict(pool, [recipe("grpo")]))
    assert "predicted gain of training  best@1  best@3  best@5  one completion  mean L1" in text
    assert "(simulated on 5 problems, of 5 by scores alone, since they have no texts; 95% intervals" in text
    assert main(["diagnose", str(path), "--methods", "grpo,max_at_k:k=2", "--group", "4", "--k", "1,6", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in data["prediction"]["predictions"]] == ["grpo", "max_at_k:k=2"]
    assert list(data["prediction"]["base"]) == ["1", "6"]
    assert data["signal"]["group"] == 4
    assert main(["diagnose", str(path), "--methods", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["prediction"] is None
    for arguments, message in (
        (["--task", "maze"], "task is for a model to sample"),
        (["--methods", "grpo:rate=1e-5"], "rate of grpo:rate=1e-5 has no part in a prediction"),
        (["--k", "7"], "k must lie in 1..6"),
    ):
        assert main(["diagnose", str(path), *arguments]) == 2
        assert message in capsys.readouterr().err


def test_a_model_is_sampled_and_then_diagnosed(tmp_path, capsys):
    folder = str(tmp_path / "base")
    sampled = ["--task", "maze", "--set", "size=7", "--problems", "2", "--pool", "6", "--out", folder]
    assert main(["diagnose", "embedded", *sampled, "--methods", "grpo", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["problems"], data["answers"]) == (2, 6)
    assert data["target"] == {"completion": 0.25, "gold": 0.25, "diamond": 0.25, "avoid_lava": 0.25}
    assert main(["diagnose", folder, "--methods", "grpo", "--json"]) == 0  # the folder of an evaluation
    assert json.loads(capsys.readouterr().out) == data


def test_the_benchmark_compares_predicted_with_realised_gains(tmp_path, capsys, monkeypatch):
    """Two methods on one pool: the results are made so that GRPO gains at k = 1 and loses at k = 5."""
    cases = [typical(1, 0)] * 6 + [typical(0, 1)] * 2
    pool_of(tmp_path / "pool.jsonl", [scores for scores, _ in cases], [texts for _, texts in cases])
    rows = {1: (0.6, 0.7, 0.65, 0.6), 3: (0.8, 0.75, 0.85, 0.8), 5: (0.9, 0.8, 0.95, 0.9)}
    measures = [
        {"section": "best@k", "by": "answers", "at": k, "values": [{"mean": value} for value in values]}
        for k, values in rows.items()
    ]
    results = {"names": ["base", "grpo", "max_at_k", "dr_grpo"], "target": None, "measures": measures}
    (tmp_path / "results.json").write_text(json.dumps(results))
    pair = f"""[[pair]]
name = "typical"
pool = "{tmp_path}/pool.jsonl"
results = ["{tmp_path}/results.json"]
base = "base"
methods = {{ grpo = "grpo", max_at_k = "max_at_k", dr_grpo = "dr_grpo" }}
[[pair]]
name = "missing"
pool = "{tmp_path}/none.jsonl"
"""
    (tmp_path / "pairs.toml").write_text(pair)
    arguments = ["--pairs", "pairs.toml", "--out", ".", "--json", "out.json"]
    script = Path(__file__).parents[2] / "benchmarks" / "predictor.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")
    data = json.loads((tmp_path / "out.json").read_text())
    realised = {(each["method"], each["k"]): each["realised"] for each in data["points"]}
    assert realised["grpo", 1] == pytest.approx(0.1)
    assert realised["max_at_k", 5] == pytest.approx(0.05)
    assert -1 <= data["rank_correlations"]["typical"]["best@5"] <= 1
    assert (tmp_path / "predictor.svg").stat().st_size > 1000
    assert "left out: missing, since" in capsys.readouterr().out
