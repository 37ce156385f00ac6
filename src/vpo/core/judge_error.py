"""What the true scores may be where a judge or verifier errs.

The model: each score is the true one, r, with probability 1 − error, and else its opposite, 1 − r, independently of the
others or, for a judge that takes bad answers for good ones, together with all scores of the answer. What is known
before an answer is judged is how common each vector of true scores is. That is estimated from the judged vectors
themselves, as the shares of a mixture under which they are most likely (the nonparametric maximum likelihood of Kiefer
and Wolfowitz 1956, by EM): answers that are good at everything may be rare, or two objectives may exclude each other.
Bayes' rule then says what each vector may truly be. Scores are compared in tenths of their distance from 1/2, so that r
and 1 − r are opposites; the scenarios have the scores themselves.
"""

from dataclasses import dataclass

import numpy as np

from vpo.core.arrays import as_array, shape, to_numpy
from vpo.core.checks import as_integer, check_finite, check_rank
from vpo.core.types import ArrayLike, Floats
from vpo.util.errors import InputError

ROUNDS = 200  # of EM, at most; it ends where no share changes by more than
CHANGE = 1e-6
# The shares of a class begin as if this many answers were distributed as those of all classes; those of all, as if one
# answer were spread evenly, so that no vector is impossible.
CLASS_PRIOR = 20.0
MOST_PATTERNS = 3000  # of different vectors, the most common; the table of their likelihoods is square


@dataclass(frozen=True)
class ScorePrior:
    """How common each vector of true scores is.

    Attributes:
        error: the probability that a score is wrong.
        whole: whether all scores of an answer are wrong together.
        patterns_VD: the vectors, in tenths of the distance from 1/2: −5 is 0, 5 is 1.
        shares_CV: of each vector among the answers of each class.
    """

    error: float
    whole: bool
    patterns_VD: Floats
    shares_CV: Floats


def score_prior(
    scores: ArrayLike, *, error: float, whole: bool = False, classes: ArrayLike | None = None
) -> ScorePrior:
    """Estimate how common each vector of true scores is, from judged ones, (n, D).

    Args:
        scores: of different answers, in [0, 1], of one problem or of many with the same objectives. Copies of an answer
            would count as independent.
        error: the probability that a score is wrong, 0 or more and below 1/2.
        whole: whether all scores of an answer are wrong together; else each by itself.
        classes: (n,), integers from 0: answers of different classes may differ in their scores, such as those that were
            sampled often and once.
    """
    scores_nD = _checked(scores, error)
    classes_n = _classes(classes, len(scores_nD))
    patterns_UD, inverse_n = np.unique(_patterns(scores_nD), axis=0, return_inverse=True)
    counts_CU = np.zeros((int(classes_n.max()) + 1, len(patterns_UD)))
    np.add.at(counts_CU, (classes_n, inverse_n.reshape(-1)), 1.0)
    common_V = np.sort(np.argsort(-counts_CU.sum(axis=0), kind="stable")[:MOST_PATTERNS])
    patterns_VD, counts_CV = patterns_UD[common_V], counts_CU[:, common_V]
    likelihood_VV = _likelihood(patterns_VD, patterns_VD, error, whole)
    even_V = np.full(len(patterns_VD), 1 / len(patterns_VD))
    all_V = _shares(likelihood_VV, counts_CV.sum(axis=0), even_V)
    shares_CV = np.stack([_shares(likelihood_VV, counts_V, CLASS_PRIOR * all_V) for counts_V in counts_CV])
    return ScorePrior(error, whole, patterns_VD, shares_CV)


def possible_scores(
    scores: ArrayLike,
    *,
    error: float,
    whole: bool = False,
    prior: ScorePrior | None = None,
    classes: ArrayLike | None = None,
    size: int = 64,
    seed: int = 0,
) -> Floats:
    """Score vectors that may be the true ones, equally likely, (n, D) → (size, n, D).

    Args:
        scores: of different answers to one problem, in [0, 1].
        error: the probability that a score is wrong, 0 or more and below 1/2.
        whole: whether all scores of an answer are wrong together; else each by itself.
        prior: how common each true vector is; by default as these scores say, which are few.
        classes: (n,), of the answers, as those of the prior.
        size: how many scenarios of the scores.
        seed: of the order in which the scenarios of each answer come.
    """
    scores_nD = _checked(scores, error)
    classes_n = _classes(classes, len(scores_nD))
    prior = prior or score_prior(scores_nD, error=error, whole=whole, classes=classes_n)
    if (prior.error, prior.whole) != (error, whole):
        raise InputError(f"prior must be for error {error} and whole {whole}, not {prior.error} and {prior.whole}")
    if prior.patterns_VD.shape[1] != scores_nD.shape[1] or len(prior.shares_CV) <= classes_n.max():
        raise InputError(
            f"prior must have {scores_nD.shape[1]} objectives and more than {classes_n.max()} classes, "
            f"not {prior.patterns_VD.shape[1]} and {len(prior.shares_CV)}"
        )
    patterns_nD = _patterns(scores_nD)
    joint_nV = _likelihood(patterns_nD, prior.patterns_VD, error, whole) * prior.shares_CV[classes_n]
    # Stratified: each vector comes in just its share of the scenarios, in an order of its own for each answer.
    levels_S = (np.arange(as_integer(size, "size", 1)) + 0.5) / size
    rng = np.random.default_rng(seed)
    scenarios_SnD = np.repeat(scores_nD[None], size, axis=0)
    for index, joint_V in enumerate(joint_nV):
        if joint_V.sum() > 0:  # else no known vector explains the scores, and they stand
            edges_V = np.cumsum(joint_V / joint_V.sum())
            sampled_S = np.minimum(np.searchsorted(edges_V, rng.permutation(levels_S)), len(edges_V) - 1)
            wrong_SD = prior.patterns_VD[sampled_S] != patterns_nD[index]
            scenarios_SnD[:, index] = np.where(wrong_SD, 1 - scores_nD[index], scores_nD[index])
    return scenarios_SnD


def _checked(scores: ArrayLike, error: float) -> Floats:
    scores = as_array(scores, "scores")
    check_rank(scores, "scores", "n, D", batched=False)
    if 0 in shape(scores):
        raise InputError(f"scores must hold 1 or more answers and objectives, not shape {shape(scores)}")
    check_finite(scores, "scores")
    if not 0 <= error < 0.5:
        raise InputError(f"error must be 0 or more and below 0.5, not {error}")
    scores_nD: Floats = to_numpy(scores).astype(np.float64)
    if scores_nD.min() < 0 or scores_nD.max() > 1:
        outside = scores_nD[(scores_nD < 0) | (scores_nD > 1)][0]
        raise InputError(f"scores must lie in 0..1 for a judge that errs, and hold {outside:g}")
    return scores_nD


def _classes(classes: ArrayLike | None, answers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    classes_n = np.zeros(answers, dtype=np.int64) if classes is None else np.asarray(classes)
    if classes_n.shape != (answers,) or classes_n.dtype.kind not in "iu" or classes_n.min() < 0:
        raise InputError(f"classes must be {answers} integers of 0 or more, not {classes}")
    return classes_n.astype(np.int64)


def _patterns(scores_nD: Floats) -> Floats:
    """Tenths of the distance from 1/2, with the sign of the side; −0.0 and 0.0 are equal."""
    patterns_nD: Floats = np.sign(scores_nD - 0.5) * np.round(np.abs(scores_nD - 0.5) * 10)
    return patterns_nD + 0.0


def _likelihood(judged_nD: Floats, true_VD: Floats, error: float, whole: bool) -> Floats:
    """The probability of each judged pattern where each true one holds, (n, V)."""
    if whole:
        same_nV = (judged_nD[:, None, :] == true_VD[None, :, :]).all(axis=-1)
        opposite_nV = (judged_nD[:, None, :] == -true_VD[None, :, :]).all(axis=-1)
        whole_nV: Floats = (1 - error) * same_nV + error * opposite_nV
        return whole_nV
    likelihood_nV: Floats = np.ones((len(judged_nD), len(true_VD)))
    for judged_n, true_V in zip(judged_nD.T, true_VD.T, strict=True):
        same_nV = judged_n[:, None] == true_V[None, :]
        opposite_nV = judged_n[:, None] == -true_V[None, :]  # both hold at 1/2
        likelihood_nV *= (1 - error) * same_nV + error * opposite_nV
    return likelihood_nV


def _shares(likelihood_VV: Floats, counts_V: Floats, prior_V: Floats) -> Floats:
    """The shares of the true patterns that explain counts of judged ones best, by EM; `prior_V` counts as answers."""
    shares_V: Floats = prior_V / prior_V.sum()
    seen_V = counts_V > 0
    likelihood_sV, counts_s = likelihood_VV[seen_V], counts_V[seen_V]
    for _ in range(ROUNDS):
        total_s = likelihood_sV @ shares_V
        new_V = shares_V * ((counts_s / total_s) @ likelihood_sV) + prior_V
        new_V /= new_V.sum()
        change = np.abs(new_V - shares_V).max()
        shares_V = new_V
        if change < CHANGE:
            break
    return shares_V
