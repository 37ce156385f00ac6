"""The verdict of a comparison: right where results are mixed, and careful where they are level."""

import re

import numpy as np
import pytest

from vpo.evaluation.compare import compare, compare_groups
from vpo.evaluation.eval_folder import Evaluation
from vpo.evaluation.pools import Pool, ProblemPool
from vpo.evaluation.untrained import untrained_groups
from vpo.evaluation.verdict import verdict

PROBLEMS = 40
KS = [1, 3, 6]
BASIS = "40 problems, k = 1, 3, 6 sampled answers, 95% intervals."


def pool(name, *levels, answers=6, noise=0.01, problems=PROBLEMS, tokens=None):
    """Answers of each problem at some levels of their one score, repeated, with a little noise of a seed by name."""
    rng = np.random.default_rng(sum(map(ord, name)))
    scores = np.resize(levels, answers)
    return Pool(
        name,
        {
            f"p{index}": ProblemPool(
                f"p{index}",
                ("score",),
                (1,) * answers,
                np.clip(scores + rng.uniform(-noise, noise, answers), 0, 1)[:, None],
                None,
                None if tokens is None else np.full(answers, float(tokens)),
                None,
                missing=0,
            )
            for index in range(problems)
        },
    )


def said(*pools, untrained=(), ks=KS, **options):
    return verdict(compare(pools, ks=ks, **options), [each.path for each in pools], frozenset(untrained))


# Always 0.5, or 0.2 twice and 0.8: at k = 1 it expects 0.4, at 3 (of 2 high ones among 6) 0.2 + 0.6 · 0.8 = 0.68.
STEADY, VARIED = (0.5,), (0.2, 0.2, 0.8)


def test_a_win_at_every_k():
    text = said(pool("grpo", 0.5), pool("vpo", 0.7))
    assert text == f"At every k from 1 to 6 samples, vpo is ahead of grpo by 0.20. {BASIS}"


def test_the_better_one_is_named_first_in_whatever_order_they_come():
    assert said(pool("vpo", 0.7), pool("grpo", 0.5)) == said(pool("grpo", 0.5), pool("vpo", 0.7))


def test_a_crossing_is_told_from_both_sides():
    text = said(pool("grpo", *STEADY), pool("vpo", *VARIED))
    assert text == f"From 3 samples on, vpo is ahead of grpo by 0.18 to 0.30; at 1 sample grpo leads by 0.10. {BASIS}"


def test_two_crossings():
    base = [{1: 0.5, 3: 0.6, 6: 0.9}, {1: 0.4, 3: 0.7, 6: 0.8}]
    comparison = compare([pool("a", 0.5), pool("b", 0.5)], ks=KS)
    for table, means in zip(comparison.best, base, strict=True):
        for metric in list(table):
            if metric.budget == "answers":
                table[metric] = np.linspace(-0.02, 0.02, PROBLEMS) * (means is base[0]) + means[metric.k]
    text = verdict(comparison, ["a", "b"])
    assert text.startswith("At 1 sample and at 6 samples, a is ahead of b by 0.10; at 3 samples b leads by 0.10.")


def test_a_difference_whose_interval_includes_0_is_level():
    text = said(pool("grpo", 0.5, noise=0.4), pool("maxrl", 0.5, noise=0.4))
    assert text == f"At every k from 1 to 6 samples, grpo is level with maxrl. {BASIS}"


def test_runs_that_are_level_share_a_sentence_and_come_first_where_the_next_best_is_among_them():
    alike = [pool(name, 0.5, noise=0.4) for name in ("grpo", "maxrl", "base")]
    text = said(*alike, pool("gdpo", 0.1), untrained=[2])
    first = "At every k from 1 to 6 samples, grpo is level with maxrl and base (untrained)."
    assert text == f"{first} At every k from 1 to 6 samples, grpo is ahead of gdpo by 0.38 to 0.69. {BASIS}"


def test_level_first_then_ahead():
    # Their first answers are alike; the best of all six is not.
    text = said(pool("grpo", 0.5, 0.5, 0.5, 0.5, 0.5, 0.5), pool("vpo", 0.2, 0.35, 0.5, 0.5, 0.65, 0.8))
    assert text.startswith("From 3 samples on, vpo is ahead of grpo by 0.1")
    assert "; at 1 sample the two are level. " in text


def test_two_runs_that_are_the_same():
    text = said(pool("grpo", *VARIED), Pool("copy", pool("grpo", *VARIED).problems))
    assert text == f"grpo and copy score the same at every k from 1 to 6 samples. {BASIS}"


def test_the_untrained_policy_is_named_last():
    text = said(pool("base", 0.3), pool("grpo", *STEADY), pool("vpo", *VARIED), untrained=[0])
    assert text == (
        "From 3 samples on, vpo is ahead of grpo by 0.18 to 0.30; at 1 sample grpo leads by 0.10. "
        f"At every k from 1 to 6 samples, vpo is ahead of base (untrained) by 0.10 to 0.50. {BASIS}"
    )


def test_a_loss_to_the_untrained_policy_is_not_hidden():
    text = said(pool("base", 0.9), pool("vpo", 0.5), untrained=[0])
    assert text == f"At every k from 1 to 6 samples, vpo is behind base (untrained) by 0.40. {BASIS}"
    text = said(pool("base", *STEADY), pool("vpo", *VARIED), untrained=[0])
    assert "at 1 sample base (untrained) leads by 0.10." in text


def test_one_run_alone():
    assert said(pool("vpo", 0.5, noise=0)) == (
        f"vpo: best@1 0.50 and best@6 0.50; there is no other run to compare it with. {BASIS}"
    )
    assert said(pool("vpo", 0.5, noise=0), ks=[3]).startswith("vpo: best@3 0.50; there is no other")
    assert said(pool("base", 0.5), untrained=[0]).startswith("base: best@1 0.50")


def test_several_untrained_policies_alone_are_compared_with_each_other():
    assert "two is ahead of one" in said(pool("one", 0.5), pool("two", 0.7), untrained=[0, 1])


def test_many_runs_share_a_sentence():
    pools = [pool("best", *VARIED), pool("a", 0.6), pool("b", 0.55), pool("c", *STEADY), pool("d", 0.3)]
    text = said(*pools, pool("e", 0.1))
    assert text.count("best is ahead of") == 2  # the next two
    assert "best is also ahead of c from 3 samples on and behind it at 1 sample; ahead of d at every k from 1" in text
    twin = Pool("twin", pool("best", *VARIED).problems)
    assert "best and twin score the same" in said(*pools, twin)


@pytest.mark.parametrize("ks", [[1], [3], [2, 6]])
def test_other_k(ks):
    text = said(pool("grpo", 0.5), pool("vpo", 0.7), ks=ks)
    when = {1: "At 1 sample, ", 3: "At 3 samples, ", 2: "At every k from 2 to 6 samples, "}[ks[0]]
    last = {1: "k = 1 sampled answer", 3: "k = 3 sampled answers", 2: "k = 2, 6 sampled answers"}[ks[0]]
    assert text == f"{when}vpo is ahead of grpo by 0.20. 40 problems, {last}, 95% intervals."


def test_a_k_that_one_run_lacks_is_left_out():
    comparison = compare([pool("grpo", 0.5), pool("vpo", 0.7)], ks=KS)
    for metric in list(comparison.best[0]):
        if metric.k == 6:
            del comparison.best[0][metric]
    assert verdict(comparison, ["grpo", "vpo"]).startswith("At every k from 1 to 3 samples, vpo is ahead of grpo")
    comparison.best[0].clear()
    assert verdict(comparison, ["grpo", "vpo"]).startswith("vpo and grpo have no k in common.")


def test_one_problem_ranks_nothing():
    text = said(pool("grpo", 0.5, noise=0, problems=1), pool("vpo", 0.7, noise=0, problems=1))
    assert text == (
        "best@6: vpo 0.70, grpo 0.50. One problem has no interval and ranks nothing. 1 problem, k = 1, 3, 6 sampled "
        "answers."
    )


def test_seeds_are_averaged():
    groups = [[pool("grpo-1", 0.5), pool("grpo-2", 0.6)], [pool("vpo-1", 0.9), pool("vpo-2", 0.6)]]
    text = verdict(compare_groups(groups, ks=KS), ["grpo", "vpo"])
    assert text.startswith(
        "At every k from 1 to 6 samples, vpo is ahead of grpo by 0.20. 40 problems, each run averaged"
    )


def test_tokens_that_say_the_opposite_are_told():
    text = said(pool("grpo", 0.5, 0.1, tokens=10), pool("vpo", 0.52, 0.1, 0.1, 0.52, tokens=10))
    assert "Counted by tokens" not in text
    # Ahead by answers at every k, and five times as long.
    text = said(
        pool("grpo", 0.6, 0.1, 0.1, tokens=10, noise=0.001), pool("vpo", 0.61, 0.12, 0.12, tokens=50, noise=0.001)
    )
    assert "vpo is ahead of grpo by" in text
    assert "Counted by tokens, grpo leads at every k from 50 to 60 tokens by 0." in text


def test_every_run_that_leads_by_tokens_alone_is_named():
    def short(name, level):
        return pool(name, level, 0.1, 0.1, tokens=10, noise=0.001)

    leader, rival = (
        pool(name, 0.61 + more, 0.12, 0.12, tokens=50, noise=0.001) for name, more in (("vpo", 0.1), ("b", 0))
    )
    text = said(leader, rival, short("grpo", 0.6), short("base", 0.55), untrained=[3])
    (sentence,) = re.findall(r"Counted by tokens, .*?\d\.(?= )", text)
    parts = sentence.removeprefix("Counted by tokens, ").split("; ")
    assert [part.partition(" leads ")[0] for part in parts] == ["grpo", "base (untrained)"]
    text = said(leader, short("base", 0.6), untrained=[1])
    assert "Counted by tokens, base (untrained) leads at every k from 50 to 60 tokens by 0." in text


def test_small_differences_have_three_decimals():
    assert "by 0.004. 900" in said(pool("grpo", 0.5, problems=900), pool("vpo", 0.504, problems=900), ks=[6])


def test_the_numbers_are_those_of_the_table():
    pools = [pool("grpo", *STEADY, noise=0.3), pool("vpo", *VARIED, noise=0.3)]
    comparison = compare(pools, ks=KS)
    text = verdict(comparison, ["grpo", "vpo"])
    certain = [
        row.differences[0].mean for row in comparison.at_every_k("best@k", "answers") if row.differences[0].certain
    ]
    for change in certain:
        assert f"{abs(change):.2f}" in text


def test_the_policy_before_training_is_known_by_what_a_run_started_from_or_by_its_name(tmp_path):
    def evaluated(name, **facts):
        return Evaluation(pool(name, 0.5), facts, tmp_path / name)

    (tmp_path / "vpo").mkdir()
    (tmp_path / "vpo" / "config.toml").write_text('model = "org/model"\n[trainer]\n')
    groups = [
        [evaluated("vpo", model="vpo")],
        [evaluated("start", model="org/model")],
        [evaluated("other", model="org/other")],
        [evaluated("Base", model="org/third")],
        [evaluated("elsewhere", model=str(tmp_path / "vpo"))],  # an evaluation of the run in another folder
    ]
    names = ["vpo", "start", "other", "Base", "elsewhere"]
    assert untrained_groups(groups, names) == {1, 3}
    assert untrained_groups([[Evaluation(pool("base", 0.5), {})]], ["base"]) == {0}
