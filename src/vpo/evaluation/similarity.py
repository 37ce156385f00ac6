"""How similar each two answers to a problem are, (n, n): by their texts, their normal forms, or their scores."""

import re
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from vpo.core.types import Floats
from vpo.evaluation.answer_rows import words
from vpo.evaluation.pools import ProblemPool

SHINGLE = 8  # characters of the pieces that two texts are compared by
_WORD = re.compile(r"\w+|[^\w\s]")


def similarity_of(problem: ProblemPool) -> Floats:
    """Of each two answers, (n, n), from 0 to 1, and 1 for an answer with itself.

    Of texts it is the share of pieces of 8 characters that both have (Jaccard). Without texts it is 1 for equal score
    vectors and 0 for others; answers that score 0 in everything fail in ways of their own, and are like no other.
    """
    if problem.answers is not None:
        return _of_texts(problem.answers)
    _, kinds_n = np.unique(problem.scores_nD, axis=0, return_inverse=True)
    kinds_n = kinds_n.reshape(-1)
    some_n = (problem.scores_nD != 0).sum(axis=1) > 0
    equal_nn: Floats = ((kinds_n[:, None] == kinds_n) & some_n[:, None]).astype(np.float64)
    np.fill_diagonal(equal_nn, 1.0)
    return equal_nn


def _of_texts(texts: tuple[str | None, ...]) -> Floats:
    """The Jaccard index of the pieces of each two texts; a missing text is like no other."""
    from scipy.sparse import csr_array  # slow to import

    numbers: dict[str, int] = {}
    pieces = [_pieces(text) for text in texts]
    for each in pieces:
        for piece in each:
            numbers.setdefault(piece, len(numbers))
    sizes_n = np.asarray([len(each) for each in pieces])
    columns = [numbers[piece] for each in pieces for piece in each]
    starts = np.concatenate([[0], np.cumsum(sizes_n)])
    incidence = csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), max(1, len(numbers))))
    shared_nn = (incidence @ incidence.T).toarray()
    union_nn = sizes_n[:, None] + sizes_n - shared_nn
    similar_nn: Floats = shared_nn / np.maximum(union_nn, 1)
    np.fill_diagonal(similar_nn, 1.0)
    return similar_nn


def _pieces(text: str | None) -> list[str]:
    """The different pieces of a text, in order; a shorter text is one piece."""
    if text is None:
        return []
    plain = words(text)
    return list(dict.fromkeys(plain[start : start + SHINGLE] for start in range(max(1, len(plain) - SHINGLE + 1))))


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
