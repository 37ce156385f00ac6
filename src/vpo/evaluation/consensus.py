"""How similar the answers to a problem are: the expected value of choosing one where another would be right.

Minimum Bayes risk chooses the answer that is most similar, on average, to what the model samples. With equality as the
similarity that is the majority vote of self-consistency.
"""

import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from vpo.core.types import Floats

_WORD = re.compile(r"\w+|[^\w\s]")


def same_form(texts: Sequence[str], normal_form: Callable[[str], Hashable]) -> Floats:
    """1 for answers of the same normal form, else 0, (n, n). One that cannot be parsed is like itself alone."""
    forms: list[Hashable] = [normal_form(text) for text in texts]
    keys = [("unread", index) if form is None else form for index, form in enumerate(forms)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    codes_n = np.asarray([numbers[key] for key in keys])
    same_nn: Floats = (codes_n[:, None] == codes_n[None, :]).astype(np.float64)
    return same_nn


def word_overlap(texts: Sequence[str]) -> Floats:
    """F1 of the words and signs of two texts, each as often as it occurs, (n, n)."""
    lists = [_WORD.findall(text) for text in texts]
    columns = {word: column for column, word in enumerate(dict.fromkeys(word for each in lists for word in each))}
    counts_nV = np.zeros((len(texts), len(columns)))
    for row_V, each in zip(counts_nV, lists, strict=True):
        np.add.at(row_V, [columns[word] for word in each], 1)
    shared_nn = np.stack([np.minimum(row_V, counts_nV).sum(axis=1) for row_V in counts_nV])
    totals_n = counts_nV.sum(axis=1)
    sums_nn = totals_n[:, None] + totals_n[None, :]
    overlap_nn: Floats = np.divide(2 * shared_nn, sums_nn, out=np.eye(len(texts)), where=sums_nn > 0)
    return overlap_nn


def score_agreement(scores_nD: Floats, weights_D: Floats) -> Floats:
    """1 less the weighted distance of two score vectors, (n, n): how far two answers are judged alike."""
    return 1 - np.abs(scores_nD[:, None, :] - scores_nD[None, :, :]) @ weights_D
